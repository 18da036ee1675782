// Products of values in registers.
#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace mma {

TEST_CASE("mma adds the product of values in registers to another [M72]") {
  for (const DType t : {bf16, f16, f8e4m3, f8e5m2, i8})
    for_each_target(t.name(), [&](Target target) {
      const DType sum = t.is_float() ? f32 : i32;
      const Kernel k = gpu::kernel(
          [=](Ref x, Ref y, Ref o) {
            o[_] = gpu::mma(full({128, 8}, 1, sum), x[_], y[_]);
          },
          {.name = "mma", .out_type = {{128, 8}, sum}});
      const auto a = [](std::int64_t i, std::int64_t p) { return (3 * i + 5 * p) % 7 - 3; };
      const auto b = [](std::int64_t p, std::int64_t j) { return (2 * p + 3 * j) % 5 - 2; };
      const Array x =
          make_array<float>({128, 128}, [&](std::int64_t i) { return a(i / 128, i % 128); });
      const Array y = make_array<float>({128, 8}, [&](std::int64_t i) { return b(i / 8, i % 8); });
      const Array o = on_cpu(k.on(target)(on(target, x.astype(t)), on(target, y.astype(t))));
      const Array sums = o.astype(f32);
      bool right = true;
      for (std::int64_t i = 0; i < 128; ++i)
        for (std::int64_t j = 0; j < 8; ++j) {
          std::int64_t expected = 1;
          for (std::int64_t p = 0; p < 128; ++p) expected += a(i, p) * b(p, j);
          right = right && sums.data<float>()[8 * i + j] == static_cast<float>(expected);
        }
      CHECK(right);
    });
}

TEST_CASE("mma is by tensor cores from sm_80 on") {
  const Lowered k = gpu::kernel(
                        [](Ref x, Ref y, Ref o) {
                          o[_] = gpu::mma(zeros({128, 8}, f32), x[_], y[_]);
                        },
                        {.name = "mma", .out_type = {{128, 8}, f32}})
                        .lower(ShapeDtype{{128, 64}, f16}, ShapeDtype{{64, 8}, f16});
  for (const char* arch : {"sm_80", "sm_90a"}) {
    INFO(arch);
    CHECK_THAT(k.cuda_source({.arch = arch}),
               ContainsSubstring("pl::dot_mma") || ContainsSubstring("pl::wgmma"));
    const Resources r = k.compile({.arch = arch}).resources();
    CHECK(r.spill_store_bytes + r.spill_load_bytes == 0);
  }
}

TEST_CASE("mma takes an acc of the type and the shape of the product") {
  CHECK_THAT(refused([] {
               gpu::kernel(
                   [](Ref x, Ref o) {
                     o[_] = gpu::mma(zeros({64, 64}, f16), x[_], x[_]).astype(f32);
                   },
                   {.name = "bad", .out_type = {{64, 64}, f32}})
                   .lower(ShapeDtype{{64, 64}, f16});
             }),
             ContainsSubstring("mma: expected an acc f32[64,64] for f16[64,64] and f16[64,64], "
                               "given f16[64,64]"));
}

}  // namespace mma
