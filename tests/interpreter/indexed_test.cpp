// Products named by letters, and elements named by arrays of numbers, against loops over all
// numbers, on interpreter and emulator.
#include <algorithm>
#include <cmath>

#include "tests/interpreter/tensors.hpp"

using namespace palladium;
using namespace palladium::test;
using palladium::_;

namespace {

using Numbers = std::vector<std::int64_t>;

Tensor small_numbers(DType t, const Numbers& shape, int seed) {
  return Tensor(t, shape, [=](std::int64_t i) { return double((i * 7 + seed) % 5 - 2); });
}

// What the letters of `subscripts` ("ik,kj->ij") say, of extents by letter.
struct Letters {
  std::string a, b, result;
  Numbers shape(const std::string& letters) const {
    Numbers to;
    for (const char c : letters) to.push_back(c - 'a' + 2);  // a 2, b 3, ...
    return to;
  }
};

void check_einsum(const Letters& l, DType t, DType wide, bool implicit = false) {
  const std::string subscripts = l.a + "," + l.b + (implicit ? "" : " -> " + l.result);
  CAPTURE(subscripts, t.name());
  Tensor x = small_numbers(t, l.shape(l.a), 1), y = small_numbers(t, l.shape(l.b), 3);
  Tensor o(wide, l.shape(l.result));
  run([&](Ref x, Ref y, Ref o) { o[_] = einsum(subscripts.c_str(), x[_], y[_]); }, {}, {&x, &y},
      {&o});
  std::string all = l.a;
  for (const char c : l.b)
    if (all.find(c) == all.npos) all += c;
  std::vector<double> sums(static_cast<std::size_t>(o.size()));
  const Numbers extents = l.shape(all);
  const auto place = [&](const std::string& letters, std::int64_t i) {
    std::int64_t at = 0;
    for (const char c : letters) {
      std::int64_t inner = 1;
      for (std::size_t d = all.find(c) + 1; d < all.size(); ++d) inner *= extents[d];
      at = at * (c - 'a' + 2) + i / inner % (c - 'a' + 2);
    }
    return at;
  };
  for (std::int64_t i = 0; i < graph::element_count(extents); ++i)
    sums[static_cast<std::size_t>(place(l.result, i))] += x[place(l.a, i)] * y[place(l.b, i)];
  CHECK(o.numbers() == sums);
}

}  // namespace

TEST_CASE(
    "products are named by letters: matrices in any order, batches, vectors, outer ones [C73]") {
  check_einsum({"ik", "kj", "ij"}, f32, f32);
  check_einsum({"ki", "jk", "ji"}, f16, f32);
  check_einsum({"gbi", "igc", "cb"}, f32, f32);  // two letters are summed
  check_einsum({"bij", "bjk", "bik"}, bf16, f32);
  check_einsum({"i", "i", ""}, f8e4m3, f32);
  check_einsum({"d", "c", "dc"}, i8, i32);
  check_einsum({"cdi", "db", "bc"}, i16, i32);  // i is summed before
  check_einsum({"db", "cd", "bc"}, f64, f64, true);
}

TEST_CASE("products by numbered dimensions have the batch's first, then what is left of both") {
  const auto check = [](const Numbers& a, const Numbers& b, const DotDimensionNumbers& numbers,
                        const char* as, const Numbers& shape, DType t = f16) {
    CAPTURE(as);
    Tensor x = small_numbers(t, a, 1), y = small_numbers(t, b, 3);
    Tensor o(t.is_float() ? f32 : i32, shape), p = o;
    run(
        [&](Ref x, Ref y, Ref o, Ref p) {
          o[_] = dot_general(x[_], y[_], numbers);
          p[_] = einsum(as, x[_], y[_]);
        },
        {}, {&x, &y}, {&o, &p});
    CHECK(o.numbers() == p.numbers());
  };
  check({4, 5}, {5, 3}, {.contracting = {1, 0}}, "ik,kj->ij", {4, 3});
  check({2, 4, 5}, {2, 5, 3}, {.contracting = {2, 1}, .batch = {0, 0}}, "bik,bkj->bij", {2, 4, 3});
  check({4, 2, 5}, {3, 5, 2}, {.contracting = {-1, 1}, .batch = {1, 2}}, "ibk,jkb->bij", {2, 4, 3},
        i8);
  check({2, 4, 5, 3}, {3, 2, 5}, {.contracting = {{2, 3}, {2, 0}}, .batch = {0, 1}}, "bikl,lbk->bi",
        {2, 4});
  check({5}, {5, 3}, {.contracting = {0, 0}}, "k,kj->j", {3});
  check({5}, {5}, {.contracting = {0, 0}}, "k,k->", {});
  check({4}, {3}, {}, "i,j->ij", {4, 3});
  check({40, 2, 3}, {40, 3, 2}, {.contracting = {2, 1}, .batch = {0, 0}}, "bik,bkj->bij",
        {40, 2, 2});  // more than are computed one by one
}

TEST_CASE("products have the preferred dtype, rounded once") {
  Tensor x(f16, {2, 256}, [](std::int64_t i) { return i % 256 == 0 ? 256 : 0.5; });
  Tensor n(i8, {2, 2}, {100, 100, 3, -4}), y(f32, {1, 2}, {1, 1e-9});
  Tensor half(f16, {2, 2}), brain(bf16, {2, 2}), wide(f64, {2, 2}), bytes(i8, {2, 2}),
      floats(f32, {2, 2}), exact(f64, {1, 1});
  run(
      [](Ref x, Ref n, Ref y, Ref half, Ref brain, Ref wide, Ref bytes, Ref floats, Ref exact) {
        const auto squared = [&](DType t) {
          return dot(x[_], x[_], {.trans_b = true, .preferred_element_type = t});
        };
        half[_] = squared(f16);
        brain[_] = einsum("ik,jk->ij", x[_], x[_], {.preferred_element_type = bf16});
        wide[_] = dot_general(x[_], x[_], {.contracting = {1, 1}}, {.preferred_element_type = f64});
        bytes[_] = dot(n[_], n[_], {.preferred_element_type = i8});
        floats[_] = dot(n[_], n[_], {.preferred_element_type = f32});
        exact[_] = dot(y[_], y[_], {.trans_b = true, .preferred_element_type = f64});
      },
      {}, {&x, &n, &y}, {&half, &brain, &wide, &bytes, &floats, &exact});
  const double sum = 256.0 * 256 + 255 * 0.25;
  CHECK(half.numbers() == std::vector<double>(4, INFINITY));
  CHECK(brain.numbers() == std::vector<double>(4, 65536));
  CHECK(wide.numbers() == std::vector<double>(4, sum));
  CHECK(bytes.numbers() ==
        std::vector<double>{static_cast<std::int8_t>(10300), static_cast<std::int8_t>(9600),
                            static_cast<std::int8_t>(288), static_cast<std::int8_t>(316)});
  CHECK(floats.numbers() == std::vector<double>{10300, 9600, 288, 316});
  CHECK(exact.numbers() == std::vector<double>{1 + 1e-9f * static_cast<double>(1e-9f)});
}

TEST_CASE("elements are gathered by several arrays of numbers, which broadcast") {
  for (const DType t : {f32, i8}) {
    Tensor x(t, {4, 5, 3}, [](std::int64_t i) { return double(i); });
    Tensor i(i32, {2, 1}, {3, -7}), j(i16, {3}, {0, 4, 9}), k(u8, {}, {2});
    Tensor o(t, {2, 3, 3}), p(t, {2, 3, 5}), q(t, {4, 3, 2}), r(t, {5, 3});
    run(
        [](Ref x, Ref i, Ref j, Ref k, Ref o, Ref p, Ref q, Ref r) {
          o[_] = gather(x[_], {i[_], j[_]});
          p[_] = gather(x[_], {i[_], j[_]}, {0, 2});  // not neighbours: in front
          q[_] = gather(x[_], {i[_], j[_]}, {2, 1}).transpose({0, 2, 1});
          r[_] = gather(x[_], {k[_]});
        },
        {}, {&x, &i, &j, &k}, {&o, &p, &q, &r});
    const auto near = [](double n, std::int64_t extent) {
      return std::clamp<std::int64_t>(static_cast<std::int64_t>(n), 0, extent - 1);
    };
    const auto at = [&](std::int64_t a, std::int64_t b, std::int64_t c) {
      return x[(a * 5 + b) * 3 + c];
    };
    for (std::int64_t u = 0; u < 2; ++u)
      for (std::int64_t v = 0; v < 3; ++v) {
        for (std::int64_t c = 0; c < 3; ++c)
          CHECK(o[(u * 3 + v) * 3 + c] == at(near(i[u], 4), near(j[v], 5), c));
        for (std::int64_t b = 0; b < 5; ++b)
          CHECK(p[(u * 3 + v) * 5 + b] == at(near(i[u], 4), b, near(j[v], 3)));
        for (std::int64_t a = 0; a < 4; ++a)
          CHECK(q[(a * 3 + v) * 2 + u] == at(a, near(j[v], 5), near(i[u], 3)));
      }
    for (std::int64_t e = 0; e < 15; ++e) CHECK(r[e] == x[30 + e]);
  }
}

TEST_CASE(
    "elements are scattered: set, added, the greatest and the least, out of bounds left out") {
  for (const DType t : {f32, f16, i8, f8e5m2}) {
    CAPTURE(t.name());
    Tensor x(t, {4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3}), i(i32, {5}, {2, 0, 2, 4, -1});
    Tensor u(t, {5, 3}, [](std::int64_t i) { return double(i % 8); });
    Tensor set(t, {4, 3}), sum(t, {4, 3}), most(t, {4, 3}), least(t, {4, 3}), one(t, {4, 3});
    run(
        [](Ref x, Ref i, Ref u, Ref set, Ref sum, Ref most, Ref least, Ref one) {
          const Value v = x[_];
          set[_] = scatter(v, {iota(i32, {3}), iota(i32, {3})}, 12);
          sum[_] = scatter(v, {i[_]}, u[_], {.mode = ScatterMode::add});
          most[_] = scatter(v, {i[_]}, u[_], {.mode = ScatterMode::max});
          least[_] = scatter(v, {i[_]}, u[_], {.mode = ScatterMode::min});
          one[_] = scatter(v, {1}, u[{0, _}], {.mode = ScatterMode::add});
        },
        {}, {&x, &i, &u}, {&set, &sum, &most, &least, &one});
    for (std::int64_t e = 0; e < 12; ++e) {
      const std::int64_t row = e / 3, column = e % 3;
      CHECK(one[e] == x[e] + (row == 1 ? u[column] : 0));
      CHECK(set[e] == (row == column ? 12 : x[e]));
      double added = x[e], greatest = x[e], smallest = x[e];
      for (std::int64_t n = 0; n < 5; ++n) {
        if (i[n] != double(row)) continue;
        added += u[n * 3 + column];
        greatest = std::max(greatest, u[n * 3 + column]);
        smallest = std::min(smallest, u[n * 3 + column]);
      }
      CHECK(sum[e] == Tensor(t, {1}, {added})[0]);
      CHECK(most[e] == greatest);
      CHECK(least[e] == smallest);
    }
  }
}
