// Values whose layout in registers a user says.
#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using gpu::Layout;
using pl::_;

namespace layouts {

struct Named {
  const char* name;
  Layout layout;
};
/// Of 128 x 64 elements.
const std::vector<Named> layouts = {
    {"WGMMA", Layout::WGMMA},
    {"WGMMA_8BIT", Layout::WGMMA_8BIT},
    {"WGMMA_UPCAST_2X", Layout::WGMMA_UPCAST_2X},
    {"WGMMA_UPCAST_4X", Layout::WGMMA_UPCAST_4X},
    {"WGMMA_TRANSPOSED", Layout::WGMMA_TRANSPOSED},
    {"WG_STRIDED", Layout::WG_STRIDED()},
    {"WG_STRIDED of 4", Layout::WG_STRIDED(4)},
    {"MMA_LHS", Layout::MMA_LHS(bf16)},
    {"MMA_ACC", Layout::MMA_ACC(f32)},
    {"TILED", Layout::TILED({{64, 8}, {16, 8}, {8, 8}, {2}}, {-7}, {-3, -2}, -1)}};

TEST_CASE("a value in any layout is that value, as are its sums [M11]") {
  for (const Named& n : layouts)
    for_each_target(n.name, [&](Target target) {
      const Kernel k = gpu::kernel(
          [layout = n.layout](Ref x, Ref o, Ref sums) {
            const Value v = gpu::layout_cast(x[_], layout);
            o[_] = v + 1.0f;
            sums[_] = pl::sum(v, {.axis = 1});
          },
          {.name = "layouts", .out_type = {{{128, 64}, f32}, {{128}, f32}}});
      const auto [o, sums] = k.on(target)(on(target, counted({128, 64}))).unpack<2>();
      const std::vector<float> all = elements<float>(o), rows = elements<float>(sums);
      bool right = true;
      for (int i = 0; i < 128; ++i) {
        float sum = 0;
        for (int j = 0; j < 64; ++j) {
          const float x = static_cast<float>(64 * i + j);
          sum += x;
          right = right && all[static_cast<std::size_t>(64 * i + j)] == x + 1;
        }
        right = right && rows[static_cast<std::size_t>(i)] == sum;
      }
      CHECK(right);
    });
}

TEST_CASE("what is left of a layout when rows or columns are reduced holds vectors [M15] [M22]") {
  for_each_target("row and column", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref y, Ref o) {
          const Value row = gpu::load(x, {.layout = Layout::WGMMA.reduce({1})});
          const Value column =
              gpu::load(y, {.layout = Layout::WGMMA.reduce(0), .optimized = false});
          o[_] = gpu::layout_cast(broadcast_to(row.reshape({128, 1}), {128, 64}) +
                                      broadcast_to(column.reshape({1, 64}), {128, 64}),
                                  Layout::WGMMA);
        },
        {.name = "vectors", .out_type = {{128, 64}, f32}});
    const std::vector<float> o =
        elements<float>(k.on(target)(on(target, counted({128})), on(target, counted({64}))));
    bool right = true;
    for (int i = 0; i < 128 * 64; ++i)
      right = right && o[static_cast<std::size_t>(i)] == static_cast<float>(i / 64 + i % 64);
    CHECK(right);
  });
}

TEST_CASE("layouts may follow one another: what lies between moves elements [M16] [M17]") {
  for_each_target("casts", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref room) {
          room[_] = x[_];
          const Value turned =
              gpu::load(gpu::transpose_ref(room, {1, 0}), {.layout = Layout::WGMMA_TRANSPOSED});
          o[_] = gpu::layout_cast(turned, Layout::WGMMA);
        },
        {.name = "casts",
         .out_type = {{64, 128}, f32},
         .scratch_types = {gpu::SMEM({128, 64}, f32)}});
    const std::vector<float> o = elements<float>(k.on(target)(on(target, counted({128, 64}))));
    bool right = true;
    for (int i = 0; i < 64; ++i)
      for (int j = 0; j < 128; ++j)
        right = right && o[static_cast<std::size_t>(128 * i + j)] == static_cast<float>(64 * j + i);
    CHECK(right);
  });
}

TEST_CASE("the numbers of a dimension in a layout, and elements that warps hold alike [M19]") {
  for_each_target("iota", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref o, Ref copies) {
          o[_] = gpu::broadcasted_iota(i32, {64, 32}, 1, {.layout = Layout::WGMMA});
          copies[_] = gpu::broadcasted_iota(i32, {32}, 0,
                                            {.layout = Layout::TILED({{32}, {1}}, {4}, {-2}, -1)});
        },
        {.name = "numbers", .out_type = {{{64, 32}, i32}, {{32}, i32}}});
    const auto [o, copies] = k.on(target)().unpack<2>();
    const std::vector<std::int32_t> all = elements<std::int32_t>(o);
    const std::vector<std::int32_t> row = elements<std::int32_t>(copies);
    bool right = true;
    for (std::size_t i = 0; i < all.size(); ++i)
      right = right && all[i] == static_cast<std::int32_t>(i % 32);
    for (std::size_t i = 0; i < row.size(); ++i)
      right = right && row[i] == static_cast<std::int32_t>(i);
    CHECK(right);
  });
}

TEST_CASE("elements of 4 bits in a layout widen to any type [M18]") {
  for_each_target("i4", [](Target target) {
    const Kernel k =
        gpu::kernel([](Ref x, Ref o) { o[_] = gpu::layout_cast(x[_].astype(f32), Layout::WGMMA); },
                    {.name = "widen", .out_type = {{64, 64}, f32}});
    const Array x = make_array<float>({64, 64}, [](std::int64_t i) { return i % 16 - 8; });
    CHECK(elements<float>(k.on(target)(on(target, x.astype(i4)))) == elements<float>(x));
  });
}

std::string problem_of(const Layout& layout, const Shape& shape) {
  return refused([&] {
    gpu::kernel([=](Ref x, Ref o) { o[_] = gpu::layout_cast(x[_], layout); },
                {.name = "bad", .out_type = {shape, f32}})
        .lower(ShapeDtype{shape, f32})
        .cuda_source({.arch = "sm_90a"});
  });
}

TEST_CASE("a layout that a value cannot have is refused, with the shape and the line") {
  CHECK_THAT(problem_of(Layout::WGMMA, {100, 64}),
             ContainsSubstring("layout_cast: WGMMA of f32[100,64] is no layout: its tiles of "
                               "f32[64,8] do not divide it") &&
                 ContainsSubstring("layouts_test.cpp"));
  CHECK_THAT(problem_of(Layout::WGMMA, {128}),
             ContainsSubstring("it is of values of 2 dimensions or more"));
  CHECK_THAT(problem_of(Layout::WGMMA.reduce({2}), {128}),
             ContainsSubstring("WGMMA.reduce({2}) of f32[128] is no layout"));
  CHECK_THAT(problem_of(Layout::WG_SPLAT, {128}),
             ContainsSubstring("WG_SPLAT holds one value for all elements, given f32[128]"));
  CHECK_THAT(problem_of(Layout::TILED({{64, 8}, {16, 8}}, {-4}, {-2}, -1), {64, 8}),
             ContainsSubstring("lane dimensions take 16, expected 32"));
  // One value is in any.
  const Kernel k =
      gpu::kernel([](Ref o) { o[_] = gpu::layout_cast(zeros({128}, f32), Layout::WG_SPLAT); },
                  {.name = "splat", .out_type = {{128}, f32}});
  CHECK(elements<float>(k.on(Target::interpreter)())[0] == 0);
}

TEST_CASE("how a value or memory lies is a remark of the compiled kernel") {
  const Lowered k = gpu::kernel(
                        [](Ref x, Ref o, Ref room) {
                          const Value v = gpu::layout_cast(x[_], Layout::WGMMA);
                          gpu::print_layout("the value: {}", v);
                          gpu::print_layout("the room: {}", room);
                          room[_] = v;
                          gpu::commit_smem();
                          gpu::copy_smem_to_gmem(room, o);
                          gpu::wait_smem_to_gmem(0);
                        },
                        {.name = "told",
                         .out_type = {{64, 64}, f32},
                         .scratch_types = {gpu::SMEM(
                             {64, 64}, f32, {.transforms = {gpu::SwizzleTransform(128)}})}})
                        .lower(ShapeDtype{{64, 64}, f32});
  std::string all;
  for (const Remark& r : k.report({.arch = "sm_90a"}).remarks) all += r.text + "\n";
  CHECK_THAT(all, ContainsSubstring("the value: in registers, dom(64,64) tile(64,8)") &&
                      ContainsSubstring("the room: in shared memory, in panels of 128 bytes"));
}

}  // namespace layouts
