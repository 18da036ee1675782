// Products of a warpgroup by hand, and who waits for them.
#include <optional>

#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace products {

/// Small integers, whose products are exact in any dtype.
float a_at(std::int64_t i, std::int64_t p) { return static_cast<float>((3 * i + 5 * p) % 7 - 3); }
float b_at(std::int64_t p, std::int64_t j) { return static_cast<float>((2 * p + 3 * j) % 5 - 2); }

/// Of rows and columns, or transposed.
template <class F>
Array matrix(std::int64_t rows, std::int64_t columns, bool transposed, DType dtype, F at) {
  const Shape shape = transposed ? Shape{columns, rows} : Shape{rows, columns};
  const std::int64_t width = transposed ? rows : columns;
  return make_array<float>(shape,
                           [=](std::int64_t i) {
                             return transposed ? at(i % width, i / width)
                                               : at(i / width, i % width);
                           })
      .astype(dtype);
}

/// acc += a @ b, which are copied to shared memory.
struct Case {
  std::string name;
  DType a, b;
  std::int64_t m, n, k;
  bool trans_a = false, trans_b = false;
  int swizzle = 0;  // given, for both
  bool held = false;
  bool is_short = false;  // sums of f16

  DType sum() const { return is_short ? f16 : a.is_float() ? f32 : i32; }
};

Scoped room(const Shape& shape, DType dtype, int swizzle) {
  if (swizzle == 0) return gpu::SMEM(shape, dtype);
  return gpu::SMEM(shape, dtype,
                   {.transforms = {gpu::TilingTransform({8, swizzle / dtype.bytes()}),
                                   gpu::SwizzleTransform(swizzle)}});
}

Kernel kernel_of(const Case& c) {
  const Shape a = c.trans_a ? Shape{c.k, c.m} : Shape{c.m, c.k};
  const Shape b = c.trans_b ? Shape{c.n, c.k} : Shape{c.k, c.n};
  return gpu::kernel(
      [=](Ref x, Ref y, Ref o, Ref a_smem, Ref b_smem, Ref done) {
        gpu::copy_gmem_to_smem(x, a_smem, done);
        gpu::copy_gmem_to_smem(y, b_smem, done);
        gpu::barrier_wait(done);
        const Ref right = c.trans_b ? gpu::transpose_ref(b_smem, {1, 0}) : b_smem;
        run_scoped(
            [&](Ref acc) {
              if (c.held) {
                const Value left = a_smem[_];
                gpu::wgmma(acc, left, right);
              } else {
                gpu::wgmma(acc, c.trans_a ? gpu::transpose_ref(a_smem, {1, 0}) : a_smem, right);
              }
              gpu::wgmma_wait(0);
              o[_] = acc[_];
            },
            {gpu::ACC({c.m, c.n}, c.sum())});
      },
      {.name = "product",
       .out_type = {{c.m, c.n}, c.sum()},
       .scratch_types = {room(a, c.a, c.swizzle), room(b, c.b, c.swizzle),
                         gpu::Barrier({.num_arrivals = 2})}});
}

template <class T>
void check(const Array& o, std::int64_t m, std::int64_t n, std::int64_t k, float factor = 1) {
  const std::vector<T> sums = elements<T>(o);
  bool right = true;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      float expected = 0;
      for (std::int64_t p = 0; p < k; ++p) expected += a_at(i, p) * b_at(p, j);
      right =
          right && sums[static_cast<std::size_t>(i * n + j)] == static_cast<T>(factor * expected);
    }
  CHECK(right);
}

void try_on_targets(const Case& c) {
  for_each_target(c.name, [&](Target target) {
    const Array o = kernel_of(c).on(target)(on(target, matrix(c.m, c.k, c.trans_a, c.a, a_at)),
                                            on(target, matrix(c.k, c.n, c.trans_b, c.b, b_at)));
    if (c.sum() == i32)
      check<std::int32_t>(o, c.m, c.n, c.k);
    else if (c.is_short)
      check<float>(o.to(Device::cpu()).astype(f32), c.m, c.n, c.k);
    else
      check<float>(o, c.m, c.n, c.k);
  });
}

TEST_CASE(
    "a product by hand is that of its operands, of any dtype, swizzle and transposition [M57]") {
  const std::vector<Case> cases = {
      {"f16", f16, f16, 64, 64, 64},
      {"f16, 128 rows", f16, f16, 128, 192, 128},
      {"bf16, swizzled by 64", bf16, bf16, 192, 64, 64, false, false, 64},
      {"bf16, swizzled by 32", bf16, bf16, 64, 128, 32, false, true, 32},
      {"f16, A transposed", f16, f16, 128, 64, 64, true, false},
      {"f16, B transposed", f16, f16, 64, 192, 64, false, true},
      {"f16, both transposed", f16, f16, 128, 128, 128, true, true},
      {"f16, both transposed, swizzled by 64", f16, f16, 64, 64, 64, true, true, 64},
      {"tf32", f32, f32, 64, 64, 32, false, true},
      {"e4m3", f8e4m3, f8e4m3, 128, 64, 128, false, true},
      {"e5m2", f8e5m2, f8e5m2, 64, 64, 64, false, true, 64}};
  for (const Case& c : cases) try_on_targets(c);
}

TEST_CASE("a product by hand of operands that lie transposed in large tiles [M58]") {
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true})
      for (const int swizzle : {32, 128})
        try_on_targets({std::string(trans_a ? "AT" : "A") + (trans_b ? " BT " : " B ") +
                            std::to_string(swizzle),
                        bf16, bf16, 128, 192, 64, trans_a, trans_b, swizzle});
}

TEST_CASE("a product by hand of integers is exact, of unsigned ones above 127, too [M59]") {
  try_on_targets({"i8", i8, i8, 64, 96, 64, false, true});
  for_each_target("u8", [](Target target) {
    const Case c{"u8", u8, i8, 64, 64, 128, false, true};
    const auto large = [](std::int64_t i, std::int64_t p) {
      return static_cast<float>((37 * i + 11 * p) % 256);
    };
    const Array o = kernel_of(c).on(target)(on(target, matrix(c.m, c.k, false, u8, large)),
                                            on(target, matrix(c.k, c.n, true, i8, b_at)));
    const std::vector<std::int32_t> sums = elements<std::int32_t>(o);
    bool right = true;
    for (std::int64_t i = 0; i < c.m; ++i)
      for (std::int64_t j = 0; j < c.n; ++j) {
        float expected = 0;
        for (std::int64_t p = 0; p < c.k; ++p) expected += large(i, p) * b_at(p, j);
        right = right && sums[static_cast<std::size_t>(i * c.n + j)] == expected;
      }
    CHECK(right);
  });
}

TEST_CASE("a product by hand of two kinds of 8-bit floats [M60]") {
  try_on_targets({"e5m2 and e4m3", f8e5m2, f8e4m3, 64, 128, 128, false, true});
}

TEST_CASE("a product by hand takes its A from registers [M61]") {
  for (const DType t : {f16, bf16})
    for (const std::int64_t m : {64, 128})
      try_on_targets({std::string(t.name()) + " of " + std::to_string(m), t, t, m, 64, 64, false,
                      m == 64, 0, true});
}

TEST_CASE("a product by hand takes an A of 8 bits from registers [M61]") {
  for (const auto& [a, b] :
       {std::pair{i8, i8}, std::pair{f8e4m3, f8e4m3}, std::pair{f8e5m2, f8e4m3}})
    for (const std::int64_t m : {64, 128})
      try_on_targets({std::string(a.name()) + " and " + b.name() + ", " + std::to_string(m), a, b,
                      m, m == 64 ? 64 : 16, m == 64 ? 64 : 128, false, true, 0, true});
}

TEST_CASE("sums of a product by hand may be of 16 bits [M57]") {
  const std::vector<Case> cases = {
      {"f16", f16, f16, 64, 64, 64},
      {"f16, 128 rows, both transposed", f16, f16, 128, 24, 64, true, true},
      {"f16, A in registers", f16, f16, 64, 128, 32, false, false, 0, true},
      {"e4m3", f8e4m3, f8e4m3, 64, 64, 64, false, true},
      {"e5m2 in registers and e4m3", f8e5m2, f8e4m3, 128, 8, 32, false, true, 0, true}};
  for (Case c : cases) {
    c.is_short = true;
    try_on_targets(c);
  }
}

TEST_CASE("a product by hand has 8 columns or more [M62]") {
  for (const std::int64_t n : {8, 16, 24}) {
    const Case c{std::to_string(n), f16, f16, 64, n, 64, false, true};
    try_on_targets(c);
  }
  // A slice of a wider B.
  for_each_target("a slice", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref y, Ref o, Ref a, Ref b, Ref done) {
          gpu::copy_gmem_to_smem(x, a, done);
          gpu::copy_gmem_to_smem(y, b, done);
          gpu::barrier_wait(done);
          run_scoped(
              [&](Ref acc) {
                gpu::wgmma(acc, a, gpu::transpose_ref(b.at({ds(8, 16), _}), {1, 0}));
                o[_] = acc[_];
              },
              {gpu::ACC({64, 16})});
        },
        {.name = "slice",
         .out_type = {{64, 16}, f32},
         .scratch_types = {gpu::SMEM({64, 64}, f16), gpu::SMEM({32, 64}, f16),
                           gpu::Barrier({.num_arrivals = 2})}});
    const auto shifted = [](std::int64_t p, std::int64_t j) { return b_at(p, j - 8 + 40); };
    const Array o = k.on(target)(on(target, matrix(64, 64, false, f16, a_at)),
                                 on(target, matrix(64, 32, true, f16, shifted)));
    check<float>(o, 64, 16, 64);
  });
}

TEST_CASE(
    "what is computed of a sum in front of and behind another product into it are two things") {
  for_each_target("a sum that goes on", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref y, Ref first, Ref both, Ref a, Ref b, Ref done) {
          gpu::copy_gmem_to_smem(x, a, done);
          gpu::copy_gmem_to_smem(y, b, done);
          gpu::barrier_wait(done);
          run_scoped(
              [&](Ref acc) {
                for (Ref o : {first, both}) {
                  gpu::wgmma(acc, a, gpu::transpose_ref(b, {1, 0}));
                  gpu::wgmma_wait(0);
                  o[_] = acc[_] * 2;
                }
              },
              {gpu::ACC({64, 32})});
        },
        {.name = "sums",
         .out_type = {{{64, 32}, f32}, {{64, 32}, f32}},
         .scratch_types = {gpu::SMEM({64, 64}, f16), gpu::SMEM({32, 64}, f16),
                           gpu::Barrier({.num_arrivals = 2})}});
    const Outputs o = k.on(target).call({on(target, matrix(64, 64, false, f16, a_at)),
                                                    on(target, matrix(64, 32, true, f16, b_at))});
    const auto once = elements<float>(o[0]), twice = elements<float>(o[1]);
    bool differ = true, some = false;
    for (std::size_t i = 0; i < once.size(); ++i) {
      differ = differ && twice[i] == 2 * once[i];
      some = some || once[i] != 0;
    }
    CHECK(differ);
    CHECK(some);
  });
}

}  // namespace products
