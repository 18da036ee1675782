// Operations on layouts against brute force: apply the operation to every thread's coordinates.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <numeric>
#include <set>
#include <string>

#include "codegen/layout/constructors.hpp"
#include "codegen/layout/transfer.hpp"
#include "palladium/error.hpp"
#include "tests/support/layouts.hpp"

namespace palladium::layout {
namespace {

using Map = std::function<Extents(const Extents&)>;

Extents unflatten(std::int64_t flat, const Extents& shape) {
  Extents index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; flat /= shape[d]) index[d] = flat % shape[d];
  return index;
}

std::int64_t flatten(const Extents& index, const Extents& shape) {
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + index[d];
  return flat;
}

// What a thread holds, in order, as places of its domain.
std::vector<std::int64_t> places(const Layout& l, int t) {
  std::vector<std::int64_t> held;
  for (std::int64_t k = 0; k < l.registers(); ++k) {
    const Extents index = l.index(t, k);
    if (l.in_domain(index)) held.push_back(flatten(index, l.domain));
  }
  std::sort(held.begin(), held.end());
  held.erase(std::unique(held.begin(), held.end()), held.end());
  return held;
}

std::vector<Extents> elements(const Layout& l, int t) {
  std::vector<Extents> held;
  for (const std::int64_t place : places(l, t)) held.push_back(unflatten(place, l.domain));
  return held;
}

// The maps are linear: each thread bit and some sums of them tell all.
std::vector<int> some_threads(const Layout& l) {
  std::vector<int> list = {0, l.threads() * 2 / 3, l.threads() - 1};
  for (int bit = 0; bit < l.thread_bits(); ++bit) list.push_back(1 << bit);
  return list;
}

// Every thread holds of `result` exactly what `to_source` says of `source`, and `registers` finds
// it. "" or the difference.
std::string difference(const Layout& source, const Layout& result,
                       const std::vector<int>& registers, const Map& to_source) {
  check(result);
  const std::string both = "\n  " + to_string(source) + "\n  " + to_string(result);
  if (std::ssize(registers) != result.registers()) return "another number of registers" + both;
  for (const int t : some_threads(source)) {
    const auto held = places(source, t);
    for (std::int64_t k = 0; k < result.registers(); ++k) {
      const Extents index = result.index(t, k);
      if (!result.in_domain(index)) continue;
      const Extents wanted = to_source(index);
      if (!std::binary_search(held.begin(), held.end(), flatten(wanted, source.domain)))
        return "an element is in another thread" + both;
      if (registers[k] < 0 || source.index(t, registers[k]) != wanted)
        return "wrong register" + both;
    }
  }
  return "";
}

// Every thread holds in `result` as many elements as it has in `source` of those that `kept` keeps.
bool complete(const Layout& source, const Layout& result,
              const std::function<bool(const Extents&)>& kept) {
  for (const int t : some_threads(source)) {
    const auto have = elements(source, t);
    if (std::count_if(have.begin(), have.end(), kept) != std::ssize(places(result, t))) {
      return false;
    }
  }
  return true;
}

TEST_CASE("a transposed layout holds the transposed elements", "[layout]") {
  Random random(20);
  for (int n = 0; n < 300; ++n) {
    const Layout l = random_layout(random, random_domain(random), true, random_warps(random));
    std::vector<int> p(l.domain.size());
    std::iota(p.begin(), p.end(), 0);
    for (std::size_t i = p.size(); i > 1; --i) {
      std::swap(p[i - 1], p[static_cast<std::size_t>(pick(random, 0, static_cast<int>(i) - 1))]);
    }
    const Layout result = transpose(l, p);
    CHECK(result.registers() == l.registers());
    REQUIRE(difference(l, result, registers_of_transpose(l, result, p), [&](const Extents& x) {
              Extents source(x.size());
              for (std::size_t d = 0; d < x.size(); ++d) source[p[d]] = x[d];
              return source;
            }) == "");
  }
}

TEST_CASE("a reduced layout holds what is left, once per register", "[layout]") {
  Random random(21);
  for (int n = 0; n < 300; ++n) {
    const Layout l = random_layout(random, random_domain(random), true, random_warps(random));
    const int d = pick(random, 0, l.rank() - 1);
    const Layout result = drop(l, d);
    check(result);
    const auto registers = registers_of_reduce(l, result, {{d}});
    REQUIRE(std::ssize(registers) == l.registers());
    for (const int t : some_threads(l)) {
      // A thread with nothing but padding along d gets its result from the others.
      Layout along = l;
      along.domain[d] = along.repetitions(d) << along.tile_bits[d];
      std::set<Extents> left;
      for (Extents index : elements(along, t)) {
        index.erase(index.begin() + d);
        left.insert(index);
      }
      REQUIRE(std::ranges::equal(left, elements(result, t)));
      for (std::int64_t k = 0; k < l.registers(); ++k) {
        Extents index = l.index(t, k);
        if (!l.in_domain(index)) continue;
        index.erase(index.begin() + d);
        REQUIRE(result.index(t, registers[k]) == index);
      }
    }
  }
}

TEST_CASE("several dimensions are dropped in any order", "[layout]") {
  Random random(22);
  for (int n = 0; n < 100; ++n) {
    const Layout l = random_layout(random, {8, 13, 16}, true, random_warps(random));
    CHECK(drop(l, std::vector<int>{0, 2}) == drop(drop(l, 2), 0));
    CHECK(drop(l, std::vector<int>{2, 0}) == drop(drop(l, 0), 1));
  }
  const Layout mixed = parse("dom(2,64) tile(2,64) reg[] lane[i1^j1 j1 j2 j4 j8] warp[j16 j32]");
  CHECK_FALSE(separable(mixed, 0));
  CHECK_THROWS_AS(drop(mixed, 0), InternalError);
}

TEST_CASE("a broadcast is free exactly when every thread has the elements it needs", "[layout]") {
  Random random(23);
  int free = 0;
  for (int n = 0; n < 400; ++n) {
    const Layout result = random_layout(random, random_domain(random), true, random_warps(random));
    const int d = pick(random, 0, result.rank() - 1);
    Layout source = drop(result, d);
    if (n % 2 == 0) source = random_layout(random, source.domain, true, result.warps());
    const Map to_source = [&](Extents x) {
      x.erase(x.begin() + d);
      return x;
    };
    if (!broadcasts(source, result, d)) continue;
    ++free;
    REQUIRE(difference(source, result, registers_of_broadcast(source, result, d), to_source) == "");
  }
  CHECK(free >= 200);
  CHECK(broadcasts(drop(accumulator({64, 128}), 1), accumulator({64, 128}), 1));
  CHECK_FALSE(broadcasts(drop(accumulator({64, 64}), 0), accumulator({64, 64}), 1));
}

TEST_CASE("a reshape that is possible moves nothing", "[layout]") {
  Random random(24);
  int possible = 0;
  const std::vector<std::pair<Extents, Extents>> shapes = {
      {{64, 24}, {64, 3, 8}},    {{64, 128}, {8192}},    {{8192}, {64, 128}},
      {{64, 128}, {4, 16, 128}}, {{7, 13}, {7, 1, 13}},  {{1, 91, 1}, {7, 13}},
      {{6, 4, 4}, {24, 4}},      {{24, 16}, {6, 4, 16}}, {{32, 48}, {1536}},
      {{1536}, {32, 48}},        {{12, 40}, {3, 4, 40}}, {{16, 8, 8}, {8, 128}}};
  for (int n = 0; n < 600; ++n) {
    const auto& [from, to] = shapes[static_cast<std::size_t>(n) % shapes.size()];
    const Layout l = random_layout(random, from, true, random_warps(random));
    const auto result = reshape(l, to);
    if (!result) continue;
    ++possible;
    CHECK(result->domain == to);
    const Map to_source = [&, &from = from, &to = to](const Extents& x) {
      return unflatten(flatten(x, to), from);
    };
    REQUIRE(difference(l, *result, registers_of_reshape(l, *result), to_source) == "");
    REQUIRE(complete(l, *result, [](const Extents&) { return true; }));
  }
  CHECK(possible > 200);
}

TEST_CASE("reshapes of the accumulator: which are free", "[layout]") {
  const auto free = [](const Layout& l, const Extents& shape) {
    return reshape(l, shape).has_value();
  };
  CHECK(free(accumulator({64, 128}), {64, 16, 8}));
  CHECK(free(accumulator({64, 128}), {4, 16, 128}));
  CHECK(free(accumulator({64, 128}), {8192}));
  CHECK(free(accumulator({64, 24}), {64, 3, 8}));
  CHECK_FALSE(free(accumulator({64, 24}), {64, 8, 3}));
  CHECK_FALSE(free(accumulator({64, 24}), {1536}));
  CHECK_FALSE(free(strided({1536}, 4), {64, 24}));
  CHECK(free(strided({64, 24}, 1), {1, 64, 1, 24}));
  CHECK(free(strided({1000}, 2), {1, 1000}));
  CHECK(free(strided({1, 1000}, 2), {1000}));
  CHECK(same_elements(*reshape(*reshape(accumulator({64, 128}), {64, 16, 8}), {64, 128}),
                      accumulator({64, 128})));
  CHECK_THROWS_AS(reshape(accumulator({64, 24}), {64, 25}), InternalError);
}

TEST_CASE("a slice that is free holds the elements of the range", "[layout]") {
  Random random(25);
  int free = 0;
  for (int n = 0; n < 600; ++n) {
    const Layout l = random_layout(random, random_domain(random), true, random_warps(random));
    const int d = pick(random, 0, l.rank() - 1);
    const auto extent = static_cast<int>(l.domain[d]);
    const int offset = pick(random, 0, extent - 1), count = pick(random, 1, extent - offset);
    const auto result = slice(l, d, offset, count);
    if (!result) continue;
    ++free;
    const Map to_source = [&](Extents x) {
      x[d] += offset;
      return x;
    };
    REQUIRE(difference(l, *result, registers_of_slice(l, *result, d, offset), to_source) == "");
    REQUIRE(complete(l, *result,
                     [&](const Extents& x) { return x[d] >= offset && x[d] < offset + count; }));
  }
  CHECK(free > 100);
  const Layout acc = accumulator({64, 256});
  CHECK(slice(acc, 1, 64, 64).has_value());
  CHECK(slice(acc, 1, 8, 5).has_value());
  CHECK_FALSE(slice(acc, 1, 4, 8).has_value());
  CHECK(slice(tensor_memory_rows({128, 64}), 1, 3, 7).has_value());
  CHECK(slice(grow_tile(acc, std::vector<int>{6, 8}), 1, 8, 8).has_value());
}

TEST_CASE("the pieces of a concatenation are slices of the result", "[layout]") {
  const Layout whole = accumulator({64, 40});
  const std::vector<std::int64_t> extents = {8, 16, 16}, ragged = {8, 27, 5};
  const auto pieces = concat_pieces(whole, 1, extents);
  REQUIRE(pieces.has_value());
  std::int64_t offset = 0, registers = 0;
  for (const Layout& piece : *pieces) {
    const auto from = registers_of_slice(whole, piece, 1, offset);
    CHECK(difference(whole, piece, from, [&](Extents x) {
            x[1] += offset;
            return x;
          }) == "");
    offset += piece.domain[1];
    registers += piece.registers();
  }
  CHECK(registers == whole.registers());
  CHECK_FALSE(concat_pieces(whole, 1, ragged).has_value());
  CHECK(concat_pieces(whole, 1, std::vector<std::int64_t>{24, 16}).has_value());
  CHECK(concat_pieces(whole, 1, std::vector<std::int64_t>{32, 8}).has_value());
}

TEST_CASE("unit dimensions come and go", "[layout]") {
  const Layout l = accumulator({64, 24});
  for (int d = 0; d <= 2; ++d) CHECK(remove_unit_dim(insert_unit_dim(l, d), d) == l);
  CHECK_THROWS_AS(remove_unit_dim(l, 0), InternalError);
}

TEST_CASE("layouts are the same up to registers exactly when all threads hold the same",
          "[layout]") {
  Random random(26);
  int same = 0;
  for (int n = 0; n < 400; ++n) {
    const Layout a = random_layout(random, random_domain(random), n % 3 != 0, random_warps(random));
    Layout b = a;
    if (n % 2 == 0 && !b.reg.empty()) std::swap(b.reg.front(), b.reg.back());
    if (n % 4 == 1) b = canonical(b);
    if (n % 4 == 3) std::swap(b.lane[0], b.warp[1]);
    bool equal = true;
    for (const int t : some_threads(a)) equal &= elements(a, t) == elements(b, t);
    REQUIRE(same_elements(a, b) == equal);
    const auto registers = same_up_to_registers(a, b);
    REQUIRE(registers.has_value() == equal);
    same += equal;
    if (!equal) continue;
    REQUIRE(difference(a, b, *registers, [](const Extents& x) { return x; }) == "");
  }
  CHECK(same > 200);
  CHECK(same_elements(operand_a({64, 64}, 16), accumulator({64, 64})));
  CHECK_FALSE(same_elements(operand_a({64, 64}, 8), accumulator({64, 64})));
  CHECK_FALSE(same_elements(accumulator({64, 64}), accumulator({64, 32})));
  CHECK_FALSE(same_elements(replicated({64, 64}, 4), replicated({64, 64}, 8)));
}

}  // namespace
}  // namespace palladium::layout
