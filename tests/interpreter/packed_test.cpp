// Integers of 4 bits, two in a byte: read, written and converted, the same on interpreter and
// emulator.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <vector>

#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

template <class T>
std::vector<T> elements(const Array& a, DType as) {
  const Array on_host = on_cpu(a).astype(as);
  const auto values = on_host.values<const T>();
  return {values.begin(), values.end()};
}

std::vector<int> numbers(const Array& a) {
  const std::vector<std::int32_t> v = elements<std::int32_t>(a, i32);
  return {v.begin(), v.end()};
}

Array random(const Shape& shape, DType dtype, std::uint64_t seed = 1) {
  return Array::random(shape, dtype, {.seed = seed});
}

int wrapped(int n, DType dtype) {
  n &= 15;
  return dtype.is_signed() && n > 7 ? n - 16 : n;
}

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const CompileError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("integers of 4 bits are read, converted to every dtype, and written in ragged blocks") {
  for (const DType packed : {i4, u4})
    for_each_target(packed.name(), [&](Target target) {
      const Kernel k =
          pallas_call(
              [=](Ref x, Ref wide, Ref half, Ref small, Ref o) {
                const Value v = x[_];
                CHECK(v.dtype() == packed);
                wide[_] = v.astype(f32) * 0.5f;
                half[_] = v.astype(f16);
                small[_] = v.astype(i8);
                o[_] = v.astype(i32) * 3 + 1;  // the low 4 bits of it
              },
              [=](ShapeDtype x) {
                const BlockSpec block{{4, 64}, [](Index i, Index j) { return Indices{i, j}; }};
                return PallasCallOptions{
                    .name = "convert",
                    .out_type = {{x.shape, f32}, {x.shape, f16}, {x.shape, i8}, {x.shape, packed}},
                    .grid = {cdiv(x.shape[0], 4), cdiv(x.shape[1], 64)},
                    .in_specs = {block},
                    .out_specs = {block, block, block, block}};
              })
              .on(target);
      for (const Shape& shape : {Shape{6, 200}, Shape{1, 2}, Shape{9, 66}}) {
        const Array x = random(shape, packed);
        const auto [wide, half, small, o] = k(on(target, x)).unpack<4>();
        CHECK(o.dtype() == packed);
        const std::vector<int> given = numbers(x), small_is = numbers(small), o_is = numbers(o);
        const std::vector<float> wide_is = elements<float>(wide, f32),
                                 half_is = elements<float>(half, f32);
        for (std::size_t i = 0; i < given.size(); ++i) {
          CHECK(wide_is[i] == static_cast<float>(given[i]) * 0.5f);
          CHECK(half_is[i] == static_cast<float>(given[i]));
          CHECK(small_is[i] == given[i]);
          CHECK(o_is[i] == wrapped(given[i] * 3 + 1, packed));
        }
      }
    });
}

TEST_CASE(
    "what is converted to 4 bits saturates from floats and wraps from integers, as on the host") {
  for_each_target("to", [](Target target) {
    const Array x = Array::of(
        {-1e9f, -8.9f, -8.f, -0.5f, 0.f, 7.f, 7.9f, 8.f, 15.f, 15.9f, 1e9f, std::nanf("")});
    const Array n = Array::of<std::int32_t>({-17, -16, -9, -8, -1, 0, 7, 8, 15, 16, 100, -100});
    const auto to = [&](DType packed, const Array& a) {
      const Kernel k = pallas_call([=](Ref x, Ref o) { o[_] = x[_].astype(packed); },
                                   {.name = "to", .out_type = {{12}, packed}})
                           .on(target);
      return numbers(k(on(target, a)));
    };
    for (const DType packed : {i4, u4}) {
      CHECK(to(packed, x) == numbers(x.astype(packed)));
      CHECK(to(packed, n) == numbers(n.astype(packed)));
      CHECK(to(packed, x.astype(bf16)) == numbers(x.astype(bf16).astype(packed)));
    }
    CHECK(to(i4, x) == std::vector<int>{-8, -8, -8, 0, 0, 7, 7, 7, 7, 7, 7, 0});
    CHECK(to(u4, x) == std::vector<int>{0, 0, 0, 0, 0, 7, 7, 8, 15, 15, 15, 0});
    CHECK(to(i4, n) == std::vector<int>{-1, 0, 7, -8, -1, 0, 7, -8, -1, 0, 4, -4});
    CHECK(to(u4, n) == std::vector<int>{15, 0, 7, 8, 15, 0, 7, 8, 15, 0, 4, 12});
  });
}

TEST_CASE("views and masks of integers of 4 bits touch whole bytes, and their halves alone") {
  for_each_target("views", [](Target target) {
    const Array x = random({4, 6, 8}, i4), y = random({4, 6, 8}, i4, 2);
    const Kernel k =
        pallas_call(
            [](Ref x, Ref, Ref start, Ref part, Ref before, Ref after, Ref bytes, Ref kept) {
              part[_] = x.at({_, 1, _}).reshape({2, 2, 8}).at({1, _, ds(start[0], 4)})[_];
              const Value odd = pl::iota(i32, {4, 6, 8}, 2) % 3 == 1;
              const Value old = pl::swap(after, x[_], {.mask = odd});
              before[_] = old;
              bytes[_] = x.at({2}).bitcast(u8)[_];
              kept[_] = pl::load(x, {.mask = odd, .other = -7});
            },
            {.name = "views",
             .out_type =
                 {{{2, 4}, i4}, {{4, 6, 8}, i4}, {{4, 6, 8}, i4}, {{6, 4}, u8}, {{4, 6, 8}, i4}},
             .input_output_aliases = {{1, 2}}})
            .on(target);
    const std::vector<int> from = numbers(x), other = numbers(y);
    const auto [part, before, after, bytes, kept] =
        k(on(target, x), on(target, y).copy(), on(target, Array::of({2}))).unpack<5>();
    const std::vector<int> p = numbers(part), b = numbers(before), a = numbers(after),
                           by = numbers(bytes), m = numbers(kept);
    for (std::size_t i = 0; i < p.size(); ++i)
      CHECK(p[i] == from[(2 + i / 4) * 48 + 8 + 2 + i % 4]);
    for (std::size_t i = 0; i < by.size(); ++i)
      CHECK(by[i] == ((from[96 + 2 * i] & 15) | (from[97 + 2 * i] & 15) << 4));
    for (std::size_t i = 0; i < from.size(); ++i) {
      const bool is_odd = i % 8 % 3 == 1;
      CHECK(b[i] == (is_odd ? other[i] : from[i]));
      CHECK(a[i] == (is_odd ? from[i] : other[i]));
      CHECK(m[i] == (is_odd ? from[i] : -7));
    }
  });
}

TEST_CASE("what is computed of integers of 4 bits wraps in them; products take them as bytes") {
  for_each_target("computed", [](Target target) {
    const Array x = random({16, 32}, i4), w = random({32, 16}, u4, 3);
    const Kernel k =
        pallas_call(
            [](Ref x, Ref w, Ref o, Ref product, Ref carried) {
              const Value v = x[_];
              o[_] = pl::where(v > 3, v + v, -v) * v;
              product[_] = pl::dot(v.astype(f16), w[_].astype(f16));
              const Ref tmp = carried;
              tmp[_] = pl::fori_loop(
                  0, 3, [&](Index, Value c) { return c * 3; }, v);
            },
            {.name = "computed", .out_type = {{{16, 32}, i4}, {{16, 16}, f32}, {{16, 32}, i4}}})
            .on(target);
    const auto [o, product, carried] = k(on(target, x), on(target, w)).unpack<3>();
    const std::vector<int> v = numbers(x), u = numbers(w), is = numbers(o), c = numbers(carried);
    const std::vector<float> dots = elements<float>(product, f32);
    for (std::size_t i = 0; i < v.size(); ++i) {
      CHECK(is[i] == wrapped((v[i] > 3 ? v[i] + v[i] : -v[i]) * v[i], i4));
      CHECK(c[i] == wrapped(v[i] * 27, i4));
    }
    for (std::size_t i = 0; i < dots.size(); ++i) {
      int sum = 0;
      for (std::size_t j = 0; j < 32; ++j) sum += v[i / 16 * 32 + j] * u[j * 16 + i % 16];
      CHECK(dots[i] == static_cast<float>(sum));
    }
  });
}

TEST_CASE("what names half of a byte is refused, with what to write") {
  const auto refused = [](auto body, const std::string& sentence) {
    const std::string told = error_of([&] {
      (void)pallas_call(body, {.name = "k", .out_type = {{4, 8}, i4}})
          .lower(ShapeDtype{{4, 8}, i4});
    });
    CHECK_THAT(told, ContainsSubstring(sentence));
    CHECK_THAT(told, ContainsSubstring("packed_test.cpp"));
  };
  const std::string whole = "share a byte, and views of it are of whole bytes: expected ";
  refused(
      [](Ref x, Ref o) {
        o[_] = pl::broadcast_to(x[{0, 3}], {4, 8});
      },
      whole + "a slice of an even number of neighbours along the last dimension");
  refused(
      [](Ref x, Ref o) {
        o[{_, ds(0, 2)}] = x[{_, ds(1, 2)}];
      },
      whole + "a slice that starts at an even element, given 1");
  refused(
      [](Ref x, Ref o) {
        o[{_, ds(0, 4)}] = x[{_, ds(0, 4, 2)}];
      },
      whole + "a slice of an even");
  refused(
      [](Ref x, Ref o) {
        o[_] = x.transpose({1, 0}).reshape({4, 8})[_];
      },
      whole + "the last dimension to stay the last");
  refused(
      [](Ref x, Ref o) {
        o.reshape({32, 1})[_] = x[_].reshape({32, 1});
      },
      whole + "an even last dimension, given");
  refused([](Ref, Ref o) { (void)pl::atomic_add(o, 1); }, "atomic_add does not support i4");
  refused([](Ref x, Ref o) { o[_] = pl::population_count(x[_]); },
          "expected operands converted to i8, as which i4 is computed");
  CHECK_THAT(error_of([] {
               (void)Array::zeros({4, 3}, i4);
             }),
             ContainsSubstring("two elements of i4 share a byte: the last extent is even"));
  CHECK_THAT(error_of([] { (void)Array::zeros({}, u4); }), ContainsSubstring("share a byte"));
  const BlockSpec odd{{4, 3}, [](Index i) { return Indices{0, i}; }};
  CHECK_THAT(error_of([&] {
               (void)pallas_call([](Ref x, Ref o) { o[_] = x[_]; }, {.name = "k",
                                                                     .out_type = {{4, 6}, i4},
                                                                     .grid = {2},
                                                                     .in_specs = {odd},
                                                                     .out_specs = {odd}})
                   .lower(ShapeDtype{{4, 6}, i4});
             }),
             ContainsSubstring("along its last dimension blocks and padding are even, given 3"));
  CHECK_THAT(error_of([&] {
               (void)pallas_call([](Ref x, Ref o) { o[_] = x[_]; },
                                 {.name = "k", .out_type = {{4, 6}, i4}})
                   .lower(ShapeDtype{{4, pl::dim("n")}, i4});
             }),
             ContainsSubstring("along its last dimension it has a static extent, given 'n'") ||
                 ContainsSubstring("symbolic dimension 'n'"));
  // What is said to be even is looked at where it runs.
  for (const Target target : {Target::interpreter, Target::emulator})
    CHECK_THAT(error_of([&] {
                 pallas_call(
                     [](Ref x, Ref s, Ref o) {
                       o[_] = x[{_, ds(s[0], 4)}];
                     },
                     {.name = "k", .out_type = {{4, 4}, i4}})
                     .on(target)(random({4, 8}, i4), Array::of({3}));
               }),
               ContainsSubstring("multiple of 2"));
}
