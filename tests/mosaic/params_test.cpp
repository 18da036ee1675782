// What CompilerParams take of Mosaic GPU's names.
#include <cmath>

#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace params {

Kernel turned(bool commits, CompilerParams given) {
  return gpu::kernel(
      [=](Ref x, Ref o, Ref room) {
        room[_] = x[_];
        if (commits) gpu::commit_smem();
        o[ds(0, 256)] = room[ds(256, 256)] * 2.0f;
        o[ds(256, 256)] = room[ds(0, 256)] * 2.0f;
      },
      {.name = "turned",
       .out_type = {{512}, f32},
       .scratch_types = {gpu::SMEM({512}, f32)},
       .compiler_params = given});
}

std::size_t syncs(const Lowered& k) {
  const std::string text = k.cuda_source({.arch = "sm_90a"});
  std::size_t n = 0;
  for (std::size_t at = text.find("warpgroup_sync"); at != text.npos;
       at = text.find("warpgroup_sync", at + 1))
    ++n;
  return n;
}

TEST_CASE("unsafe_no_auto_barriers leaves to the body who waits for whom") {
  const auto lowered = [](bool commits, bool unsafe) {
    return turned(commits, {.unsafe_no_auto_barriers = unsafe}).lower(ShapeDtype{{512}, f32});
  };
  CHECK(syncs(lowered(false, false)) > 0);
  CHECK(syncs(lowered(false, true)) == 0);
  CHECK(syncs(lowered(true, true)) == 1);
  CHECK(lowered(false, true).key({.arch = "sm_90a"}) !=
        lowered(false, false).key({.arch = "sm_90a"}));
  const Array ones = Array::full({512}, f32, 1);
  for (const Target target : {Target::interpreter, Target::emulator})
    CHECK(elements<float>(turned(true, {.unsafe_no_auto_barriers = true}).on(target)(ones))[7] ==
          2);
  CHECK_THAT(
      refused([&] { turned(false, {.unsafe_no_auto_barriers = true}).on(Target::emulator)(ones); }),
      ContainsSubstring("before anything was stored there"));
  CHECK_THAT(refused([] {
               pallas_call([](Ref x, Ref o) { o[_] = x[_]; },
                           {.name = "no_mesh",
                            .out_type = {{8}, f32},
                            .compiler_params = {.unsafe_no_auto_barriers = true}})
                   .lower(ShapeDtype{{8}, f32});
             }),
             ContainsSubstring("unsafe_no_auto_barriers is for a kernel over a mesh"));
}

// Sums along both dimensions, in warps and across them.
Kernel summed_up(int scratch_bytes) {
  return gpu::kernel(
      [](Ref x, Ref down, Ref all) {
        const Value v = gpu::load(x, {.layout = gpu::Layout::WGMMA});
        down[_] = pl::sum(v, {.axis = 0});
        all[0] = pl::sum(v);
      },
      {.name = "summed_up",
       .out_type = {{{64}, f32}, {{1}, f32}},
       .compiler_params = {.reduction_scratch_bytes = scratch_bytes}});
}

// Here each reduction has the memory that it needs, and of each warpgroup its own.
TEST_CASE(
    "however much memory reductions are allowed, they wait as often, for the same bits [M13] "
    "[M14]") {
  const Array x = make_array<float>(
      {128, 64}, [](std::int64_t i) { return 1.0f / static_cast<float>(i % 97 + 1); });
  for_each_target("sums", [&](Target target) {
    const auto sums = [&](int bytes) {
      const auto [down, all] = summed_up(bytes).on(target)(on(target, x)).unpack<2>();
      std::vector<float> both = elements<float>(down);
      both.push_back(elements<float>(all)[0]);
      return both;
    };
    const std::vector<float> least = sums(0);
    CHECK((sums(1024) == least && sums(2048) == least));
    double expected = 0;
    for (std::int64_t i = 0; i < 128; ++i) expected += x.data<float>()[i * 64];
    CHECK(std::abs(least[0] - expected) < 1e-4);
  });
  const ShapeDtype type{{128, 64}, f32};
  CHECK(summed_up(0).lower(type).cuda_source({.arch = "sm_90a"}) ==
        summed_up(2048).lower(type).cuda_source({.arch = "sm_90a"}));
}

TEST_CASE("max_concurrent_steps is num_stages, and what is accepted changes no kernel [M13]") {
  const auto summed = [](CompilerParams given) {
    given.dimension_semantics = {pl::parallel, pl::sequential};
    return pallas_call([](Ref x, Ref y, Ref o) { o[_] += pl::dot(x[_], y[_]); },
                       {.name = "summed",
                        .out_type = {{128, 128}, f32},
                        .grid = {2, 8},
                        .in_specs = {BlockSpec{{64, 64},
                                               [](Index i, Index k) {
                                                 return Indices{i, k};
                                               }},
                                     BlockSpec{{64, 128},
                                               [](Index, Index k) {
                                                 return Indices{k, 0};
                                               }}},
                        .out_specs = {BlockSpec{{64, 128},
                                                [](Index i, Index) {
                                                  return Indices{i, 0};
                                                }}},
                        .compiler_params = given})
        .lower(ShapeDtype{{128, 512}, f16}, ShapeDtype{{512, 128}, f16})
        .key({.arch = "sm_90a"});
  };
  CHECK(summed({.max_concurrent_steps = 3}) == summed({.num_stages = 3}));
  CHECK(summed({.max_concurrent_steps = 3}) != summed({.num_stages = 2}));
  CHECK(summed({.reduction_scratch_bytes = 6144,
                .lowering_semantics = gpu::LoweringSemantics::Lane}) == summed({}));
  CHECK_THAT(refused([&] { summed({.num_stages = 2, .max_concurrent_steps = 3}); }),
             ContainsSubstring("cannot specify both compiler_params.num_stages and "
                               "max_concurrent_steps"));
  CHECK_THAT(refused([&] { summed({.max_concurrent_steps = -1}); }),
             ContainsSubstring("compiler_params.max_concurrent_steps is 1 to"));
  CHECK_THAT(refused([&] { summed({.reduction_scratch_bytes = -1}); }),
             ContainsSubstring("reduction_scratch_bytes is 0 or more, given -1"));
}

}  // namespace params
