// What the user says of numbers, on interpreter and emulator: the same results where it is true,
// the same words where it is not.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

/// 1024 elements of x from `start`, which is said to be a multiple of n.
Kernel slice_at_multiples(std::int64_t n) {
  return pallas_call(
      [=](Value start, Ref x, Ref o) { o[_] = x[{ds(pl::multiple_of(start, n), 1024)}]; },
      {.name = "slice", .out_type = {{1024}, i16}});
}

/// What `numbers` makes of its index: 64 of them.
Kernel indices(const std::function<Value(Value)>& numbers) {
  return pallas_call([=](Value first, Ref o) { o[_] = numbers(first + iota(i32, {64})); },
                     {.name = "indices", .out_type = {{64}, i32}});
}

Array shorts(std::int64_t n) {
  return make_array<std::int16_t>({n}, [](auto i) { return static_cast<std::int16_t>(i * 3); });
}

bool are_equal(const Array& a, const Array& b) {
  return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size() * a.dtype().bytes())) ==
         0;
}

/// Calls on both targets: the same words, with this file, or the same numbers and "".
template <class... Args>
std::string outcome(const Kernel& k, const Args&... args) {
  std::string words[2];
  Array results[2];
  const Target targets[] = {Target::interpreter, Target::emulator};
  for (int i = 0; i < 2; ++i) try {
      results[i] = k.on(targets[i])(args...);
    } catch (const CompileError& e) {
      words[i] = std::string(e.what());
      CHECK_THAT(words[i], ContainsSubstring("hints_test.cpp:"));
    }
  INFO(words[0] << "\n" << words[1]);
  CHECK(words[0].empty() == words[1].empty());
  if (words[0].empty()) {
    CHECK(are_equal(results[0], results[1]));
    return "";
  }
  const std::string said = words[0].substr(0, words[0].find('\n'));
  CHECK_THAT(words[1], ContainsSubstring(said.substr(said.rfind(": the value") + 2)));
  return words[0];
}

}  // namespace

TEST_CASE("a slice whose start is said to be a multiple moves 16 bytes, and the same elements") {
  const Array x = shorts(4096);
  const Kernel k = slice_at_multiples(64);
  for (const int start : {0, 64, 3072}) CHECK(outcome(k, scalar(start), x).empty());
  const auto text = [](int n) {
    return slice_at_multiples(n)
        .lower(scalar(0), ShapeDtype{{4096}, i16})
        .cuda_source({.arch = "sm_90a"});
  };
  CHECK_THAT(text(64), ContainsSubstring("load_global_nc<8>"));
  CHECK_THAT(text(1), ContainsSubstring("load_global_nc<1>"));
}

TEST_CASE("a start that is no multiple is an error with the line, the value and the number") {
  const Array x = shorts(4096);
  const Kernel k = slice_at_multiples(8);
  CHECK_THAT(outcome(k, scalar(12), x),
             ContainsSubstring("multiple_of: the value 12 is no multiple of 8"));
  CHECK(outcome(k, scalar(16), x).empty());
}

TEST_CASE("a run of numbers begins at a multiple, as is said of arrays") {
  const Kernel k = indices([](Value v) { return pl::multiple_of(v, 16); });
  CHECK(outcome(k, scalar(32)).empty());
  CHECK_THAT(outcome(k, scalar(24)),
             ContainsSubstring("multiple_of: the value 24, with which a run along dimension 0 "
                               "begins, is no multiple of 16"));
  // Each of these is a run of one.
  const Kernel apart = indices([](Value v) { return pl::multiple_of(v * 4, 4); });
  CHECK(outcome(apart, scalar(3)).empty());
  const Kernel wraps = indices([](Value v) { return pl::multiple_of(v % 48, 16); });
  CHECK(outcome(wraps, scalar(16)).empty());
  CHECK(outcome(indices([](Value v) { return pl::multiple_of(v % 50 + 14, 16); }), scalar(2)) !=
        "");
}

TEST_CASE("groups of numbers that ascend by 1 are what is said to be contiguous") {
  const Kernel k = indices([](Value v) { return pl::max_contiguous(v % 48, 16); });
  CHECK(outcome(k, scalar(32)).empty());
  CHECK_THAT(outcome(k, scalar(40)),
             ContainsSubstring("max_contiguous: the value 0 does not follow the one before it, in "
                               "16 along dimension 0"));
  const Kernel both = indices(
      [](Value v) { return pl::max_contiguous(pl::multiple_of(v, 64), 64); });  // as in Triton
  CHECK(outcome(both, scalar(128)).empty());
  CHECK(outcome(both, scalar(96)) != "");
}

TEST_CASE("hints speak of each dimension") {
  const auto k = [](std::int64_t rows, std::int64_t columns) {
    return pallas_call(
        [=](Value stride, Ref o) {
          const Value i = iota(i32, {8, 32}, 0), j = iota(i32, {8, 32}, 1);
          o[_] = pl::max_contiguous(pl::multiple_of(i * stride + j, {1, rows}), {1, columns});
        },
        {.name = "tile", .out_type = {{8, 32}, i32}});
  };
  CHECK(outcome(k(16, 32), scalar(48)).empty());
  CHECK_THAT(outcome(k(32, 32), scalar(48)),
             ContainsSubstring("the value 48, with which a run along dimension 1 begins"));
  CHECK(outcome(k(16, 64), scalar(16)).empty());  // a row is shorter than what is said
}

TEST_CASE("hints keep numbers of every integer dtype") {
  for (const DType t : {i8, i16, i32, i64, u8, u16, u32, u64}) {
    INFO(t.name());
    const Kernel k = pallas_call(
        [=](Value first, Ref o) {
          const Value v = first.astype(t) + iota(t, {32});
          o[_] =
              pl::max_contiguous(pl::multiple_of(v, 8), 32) + pl::multiple_of(first.astype(t), 4);
        },
        {.name = "numbers", .out_type = {{32}, t}});
    CHECK(outcome(k, scalar(64)).empty());
    CHECK_THAT(outcome(k, scalar(68)), ContainsSubstring("the value 68"));
  }
}

TEST_CASE("of numbers that are loaded the interpreter says what is false") {
  const Kernel k =
      pallas_call([](Ref x, Ref o) { o[_] = pl::max_contiguous(pl::multiple_of(x[_], 4), 4); },
                  {.name = "loaded", .out_type = {{16}, i32}});
  const Array good = make_array<int>({16}, [](auto i) { return static_cast<int>(i % 8 + 8); });
  CHECK(are_equal(k.on(Target::interpreter)(good), k.on(Target::emulator)(good)));
  const Array bad = make_array<int>({16}, [](auto i) { return static_cast<int>(i * 4); });
  CHECK_THROWS_WITH(k.on(Target::interpreter)(bad), ContainsSubstring("max_contiguous: the value"));
}

TEST_CASE("what a hint cannot be is refused with the user's line") {
  const auto lowered = [](const Body& body) {
    pallas_call(body, {.name = "k", .out_type = {{8}, i32}}).lower(ShapeDtype{{8}, i32});
  };
  CHECK_THROWS_WITH(lowered([](Ref x, Ref o) {
                      o[_] = pl::multiple_of(x[_], {8, 8});
                    }),
                    ContainsSubstring("multiple_of: expected one number for i32[8], one per "
                                      "dimension, given [8,8]"));
  CHECK_THROWS_WITH(lowered([](Ref x, Ref o) { o[_] = x[_] + pl::multiple_of(pl::max(x[_]), 0); }),
                    ContainsSubstring("multiple_of: expected numbers from 1, given [0]"));
  CHECK_THROWS_WITH(lowered([](Ref x, Ref o) { o[_] = x[_] + pl::multiple_of(12, 8); }),
                    ContainsSubstring("multiple_of: the value 12 is no multiple of 8"));
  CHECK_THROWS_WITH(lowered([](Ref x, Ref o) { o[_] = x[_] + pl::multiple_of(1.5, 1); }),
                    ContainsSubstring("multiple_of: expected integers, given f32[]"));
  CHECK_THROWS_WITH(
      lowered([](Ref x, Ref o) { o[_] = x[_] + pl::max_contiguous(8, 8); }),
      ContainsSubstring("max_contiguous: expected a value of at least one dimension"));
  lowered([](Ref x, Ref o) { o[_] = x[_] + pl::multiple_of(16, 8); });
}
