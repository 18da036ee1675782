// Shared memory that lies in swizzled tiles: what is copied, read and stored there by views.
#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace transforms {

std::vector<gpu::Transform> swizzled(int bytes, DType t) {
  return {gpu::TilingTransform({8, bytes / t.bytes()}), gpu::SwizzleTransform(bytes)};
}

TEST_CASE("what is copied to swizzled memory and back is what was there [M31]") {
  for (const int swizzle : {32, 64, 128})
    for_each_target(std::to_string(swizzle), [&](Target target) {
      const Shape shape{128, swizzle / 4};
      const Kernel k = gpu::kernel(
          [](Ref x, Ref o, Ref room, Ref done) {
            gpu::copy_gmem_to_smem(x, room, done);
            gpu::barrier_wait(done);
            gpu::copy_smem_to_gmem(room, o);
            gpu::wait_smem_to_gmem(0);
          },
          {.name = "through",
           .out_type = {shape, f32},
           .scratch_types = {
               gpu::SMEM(shape, f32, {.transforms = {gpu::SwizzleTransform(swizzle)}}),
               gpu::Barrier()}});
      const Array x = counted(shape);
      CHECK(elements<float>(k.on(target)(on(target, x))) == elements<float>(x));
      CHECK_THAT(k.lower(ShapeDtype{shape, f32}).cuda_source({.arch = "sm_90a"}),
                 ContainsSubstring("pl::tma_load(") && ContainsSubstring("pl::tma_store("));
    });
}

TEST_CASE("threads read and store swizzled memory by views of views [M34]") {
  for_each_target("views", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref room, Ref done) {
          gpu::copy_gmem_to_smem(x, room, done);
          gpu::barrier_wait(done);
          const Ref part = room.at({ds(0, 64), ds(32, 64)}).at({_, ds(0, 32)});
          part[_] = part[_] + 1;
          gpu::commit_smem();
          gpu::copy_smem_to_gmem(room, o);
          gpu::wait_smem_to_gmem(0);
        },
        {.name = "views",
         .out_type = {{128, 128}, f32},
         .scratch_types = {gpu::SMEM({128, 128}, f32, {.transforms = swizzled(128, f32)}),
                           gpu::Barrier()}});
    const Array x = counted({128, 128});
    const std::vector<float> o = elements<float>(k.on(target)(on(target, x)));
    bool right = true;
    for (int i = 0; i < 128 * 128; ++i) {
      const bool inside = i / 128 < 64 && i % 128 >= 32 && i % 128 < 64;
      right = right && o[static_cast<std::size_t>(i)] == static_cast<float>(i + inside);
    }
    CHECK(right);
  });
}

TEST_CASE("a copy may begin in any tile of swizzled memory, and elsewhere threads make it [M35]") {
  for (const bool whole : {true, false})
    for_each_target(whole ? "tiles" : "elements", [&](Target target) {
      const Kernel k = gpu::kernel(
          [=](Ref x, Ref o, Ref room, Ref done) {
            gpu::copy_gmem_to_smem(x, room, done);
            gpu::barrier_wait(done);
            pl::loop(0, 2, [&](Index i) {
              const Value at = whole ? i * 32 : i * 32 + 3 * (1 - i);
              gpu::copy_smem_to_gmem(room.at({_, ds(at, 32)}), o.at(i));
            });
            gpu::wait_smem_to_gmem(0);
          },
          {.name = "parts",
           .out_type = {{2, 64, 32}, i32},
           .scratch_types = {gpu::SMEM({64, 64}, i32, {.transforms = swizzled(128, i32)}),
                             gpu::Barrier()}});
      const Array x = make_array<std::int32_t>({64, 64}, [](std::int64_t i) { return i; });
      const std::vector<std::int32_t> o = elements<std::int32_t>(k.on(target)(on(target, x)));
      bool right = true;
      for (int i = 0; i < 2; ++i)
        for (int r = 0; r < 64; ++r)
          for (int c = 0; c < 32; ++c)
            right = right && o[static_cast<std::size_t>((i * 64 + r) * 32 + c)] ==
                                 r * 64 + i * 32 + c + (whole || i == 1 ? 0 : 3);
      CHECK(right);
    });
}

TEST_CASE("swizzled memory of several matrices is read as one of another shape [M09]") {
  for_each_target("reshape", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref room, Ref done) {
          for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j)
              gpu::copy_gmem_to_smem(x.at({i, ds(64 * j, 64)}), room.at({i, j}), done);
          gpu::barrier_wait(done);
          o[_] = room.at(1).reshape({128, 64})[_];
        },
        {.name = "reshape",
         .out_type = {{128, 64}, f32},
         .scratch_types = {gpu::SMEM({2, 2, 64, 64}, f32, {.transforms = swizzled(128, f32)}),
                           gpu::Barrier({.num_arrivals = 4})}});
    const Array x = counted({2, 128, 64});
    const std::vector<float> all = elements<float>(x);
    CHECK(elements<float>(k.on(target)(on(target, x))) ==
          std::vector<float>(all.begin() + 128 * 64, all.end()));
  });
}

TEST_CASE("find_swizzle gives the widest of which rows are a multiple") {
  CHECK(gpu::find_swizzle(1024) == 128);
  CHECK(gpu::find_swizzle(3 * 512) == 64);
  CHECK(gpu::find_swizzle(256) == 32);
  CHECK(gpu::find_swizzle(128) == 16);
  CHECK_THAT(refused([] { gpu::find_swizzle(96, "out"); }),
             ContainsSubstring("no valid swizzle for out: the minor dimension has 96 bits"));
}

std::string problem_of(const Shape& shape, DType t, std::vector<gpu::Transform> given) {
  return refused([&] {
    gpu::kernel([](Ref o, Ref) { o[0] = 0.0f; },
                {.name = "bad",
                 .out_type = {{1}, f32},
                 .scratch_types = {gpu::SMEM(shape, t, {.transforms = std::move(given)})}})
        .lower();
  });
}

TEST_CASE("tilings and swizzles that do not go together are refused") {
  CHECK_THAT(refused([] { gpu::SwizzleTransform(48); }),
             ContainsSubstring("expected 32, 64 or 128 bytes, given 48"));
  CHECK_THAT(problem_of({64, 32}, bf16, {gpu::SwizzleTransform(128)}),
             ContainsSubstring("cannot apply a swizzle of 128 bytes to rows of 64"));
  CHECK_THAT(
      problem_of({64, 64}, bf16, {gpu::TilingTransform({8, 32}), gpu::SwizzleTransform(128)}),
      ContainsSubstring("cannot apply a tiling with rows of 64 bytes and a swizzle of 128"));
  CHECK_THAT(problem_of({60, 64}, bf16, {gpu::TilingTransform({8, 64})}),
             ContainsSubstring("cannot apply a tiling whose tiles do not divide it"));
  CHECK(problem_of({64, 64}, bf16, swizzled(128, bf16)) == "");
}

TEST_CASE("memory whose users want it to lie in different ways is refused, with all of them") {
  const auto source = [](std::vector<gpu::Transform> given) {
    return refused([&] {
      gpu::kernel(
          [](Ref o, Ref a, Ref b) {
            for (const Ref& x : {a, b}) x[_] = zeros({64, 64}, f16);
            gpu::commit_smem();
            run_scoped(
                [&](Ref acc, Ref narrow) {
                  gpu::wgmma(acc, a, b);
                  gpu::wgmma(narrow, a, b.at({_, ds(32, 32)}));
                  o[_] = acc[_];
                },
                {gpu::ACC({64, 64}), gpu::ACC({64, 32})});
          },
          {.name = "conflict",
           .out_type = {{64, 64}, f32},
           .scratch_types = {gpu::SMEM({64, 64}, f16),
                             gpu::SMEM({64, 64}, f16, {.transforms = std::move(given)})}})
          .lower()
          .cuda_source({.arch = "sm_90a"});
    });
  };
  CHECK(source({}) == "");  // in panels of 64 bytes
  const std::string found = source({gpu::SwizzleTransform(128)});
  CHECK_THAT(found,
             ContainsSubstring("no swizzle is one for all who use ref smem(128) f16[64,64]") &&
                 ContainsSubstring("not of 128 bytes, which SwizzleTransform gives") &&
                 ContainsSubstring("the operand begins at no multiple of 64 columns") &&
                 ContainsSubstring("transforms_test.cpp"));
}

}  // namespace transforms
