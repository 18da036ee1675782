// Scopes in the profile of a launch.
#include <filesystem>
#include <fstream>

#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace profiles {

struct Profiled {
  int space = 0;
  std::string dir = {};
  gpu::TraceScope of = gpu::TraceScope::WARPGROUP;
  bool cuts = false;
  bool scopes = true;
};

/// Two warpgroups, each with a scope around a loop of three, in which there is another.
Kernel kernel_of(const Profiled& p) {
  const auto scope = [on = p.scopes](const char* name, const auto& body) {
    if (on)
      gpu::named_scope(name, body);
    else
      body();
  };
  return gpu::kernel(
      [scope](Ref x, Ref o, Ref room) {
        const Value wg = axis_index("wg"), block = axis_index("i");
        scope("all", [&] {
          pl::loop(0, 3, [&](Index i) {
            scope("step", [&] { room[{wg, _}] = x[{block, i, _}] + 1.0f; });
            o[{block, wg, i, _}] = room[{wg, _}];
          });
        });
      },
      {.name = "profiled",
       .out_type = {{2, 2, 3, 128}, f32},
       .grid = {2},
       .grid_names = {"i"},
       .num_threads = 2,
       .thread_name = "wg",
       .scratch_types = {gpu::SMEM({2, 128}, f32)},
       .compiler_params = {.profile_space = p.space,
                           .profile_dir = p.dir,
                           .profile_trace_scope = p.of,
                           .profile_bounds_check = p.cuts}});
}

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t count_of(const std::string& text, const std::string& words) {
  std::size_t n = 0;
  for (std::size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++n;
  return n;
}

TEST_CASE("scopes of a kernel without profile_space are nothing [M56]") {
  const Lowered with = kernel_of({}).lower(ShapeDtype{{2, 3, 128}, f32});
  const Lowered without = kernel_of({.scopes = false}).lower(ShapeDtype{{2, 3, 128}, f32});
  CHECK(with.key({.arch = "sm_90a"}) == without.key({.arch = "sm_90a"}));
  CHECK(with.cuda_source({.arch = "sm_90a"}) == without.cuda_source({.arch = "sm_90a"}));
  const Folder folder;
  const Lowered told =
      kernel_of({.space = 16, .dir = folder.path()}).lower(ShapeDtype{{2, 3, 128}, f32});
  CHECK(told.key({.arch = "sm_90a"}) != without.key({.arch = "sm_90a"}));
}

TEST_CASE("a profiled kernel computes the same, and each launch leaves a trace [M56]") {
  for (const gpu::TraceScope of : {gpu::TraceScope::WARPGROUP, gpu::TraceScope::WARP})
    for_each_target(of == gpu::TraceScope::WARP ? "warps" : "warpgroups", [&](Target target) {
      const Folder folder;
      const Kernel k = kernel_of({.space = 8, .dir = folder.path(), .of = of}).on(target);
      const std::vector<float> o = elements<float>(k(on(target, counted({2, 3, 128}))));
      CHECK(o[2 * 3 * 128 + 128] == 3 * 128 + 128 + 1);
      const std::string path = folder / "profiled-0.json";
      if (target == Target::interpreter) {
        CHECK_FALSE(std::filesystem::exists(path));
        return;
      }
      const std::string trace = content(path);
      const std::size_t units = of == gpu::TraceScope::WARP ? 16 : 4;
      CHECK(count_of(trace, R"("name": "all", "cat": "works")") == units);
      CHECK(count_of(trace, R"("name": "step")") == 3 * units);
      CHECK(count_of(trace, "thread_name") == units);
      CHECK(count_of(trace, "process_name") == 2);
      CHECK_THAT(trace, ContainsSubstring("profile_test.cpp:26") &&
                            ContainsSubstring(of == gpu::TraceScope::WARP ? "warp 5" : "wg 1"));
      (void)elements<float>(k(on(target, counted({2, 3, 128}))));
      CHECK(std::filesystem::exists(folder / "profiled-1.json"));
    });
}

TEST_CASE("where there is too little room it is an error, or what does not fit is cut off [M56]") {
  const Folder folder;
  const Array x = counted({2, 3, 128});
  CHECK_THAT(
      refused([&] { kernel_of({.space = 6, .dir = folder.path()}).on(Target::emulator)(x); }),
      ContainsSubstring("kernel 'profiled': profile_space = 6 is too small: a warpgroup "
                        "begins and ends 8 scopes in all; give as much, or let "
                        "profile_bounds_check = true leave out what does not fit") &&
          ContainsSubstring("profile_test.cpp:26"));
  CHECK_FALSE(std::filesystem::exists(folder / "profiled-0.json"));
  kernel_of({.space = 6, .dir = folder.path(), .cuts = true}).on(Target::emulator)(x);
  const std::string trace = content(folder / "profiled-0.json");
  CHECK(count_of(trace, R"("name": "all")") == 4);
  CHECK(count_of(trace, R"("name": "step")") == 4 * 3);
}

TEST_CASE("a profile has both a room and a folder") {
  const auto refused_with = [](const Profiled& p) {
    return refused([&] { kernel_of(p).lower(ShapeDtype{{2, 3, 128}, f32}); });
  };
  CHECK_THAT(refused_with({.space = 8}),
             ContainsSubstring("either both compiler_params.profile_space and profile_dir must be "
                               "set, or neither, given 8 and ''"));
  CHECK_THAT(refused_with({.dir = "there"}), ContainsSubstring("given 0 and 'there'"));
  CHECK_THAT(refused_with({.space = -1, .dir = "there"}),
             ContainsSubstring("compiler_params.profile_space is 1 to 1048576"));
  CHECK_THAT(
      refused([] {
        kernel_of({.space = 8, .dir = "/no/such/folder"})
            .on(Target::emulator)(counted({2, 3, 128}));
      }),
      ContainsSubstring("compiler_params.profile_dir = '/no/such/folder' takes no trace (") &&
          ContainsSubstring("No such file or directory"));
}

TEST_CASE("a profiled kernel compiles for every architecture, and reads the clock") {
  const Folder folder;
  const Lowered k =
      kernel_of({.space = 16, .dir = folder.path()}).lower(ShapeDtype{{2, 3, 128}, f32});
  CHECK_THAT(k.cuda_source({.arch = "sm_90a"}),
             ContainsSubstring("pl::profile_begin<2, 128>(profile, 16)") &&
                 ContainsSubstring("pl::profile_event(profile, profile_at, profile_count, 16"));
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    INFO(arch);
    const Resources r = k.compile({.arch = arch}).resources();
    CHECK(r.spill_store_bytes + r.spill_load_bytes == 0);
  }
  CHECK_THAT(k.compile({.arch = "sm_90a"}).ptx(), ContainsSubstring("%clock64"));
}

TEST_CASE("a scope gives what its body returns, in pallas_call, too") {
  for_each_target("sums", [](Target target) {
    const Folder folder;
    const Kernel k = pallas_call(
        [](Ref x, Ref o) {
          const Value sums = gpu::named_scope("sum", [&] { return pl::sum(x[_], {.axis = 2}); });
          o[_] = sums;
        },
        {.name = "sums",
         .out_type = {{4, 8}, f32},
         .grid = {4},
         .in_specs = {BlockSpec{{1, 8, 64},
                                [](Index i) {
                                  return Indices{i, 0, 0};
                                }}},
         .out_specs = {BlockSpec{{1, 8},
                                 [](Index i) {
                                   return Indices{i, 0};
                                 }}},
         .compiler_params = {.profile_space = 2, .profile_dir = folder.path()}});
    const std::vector<float> o = elements<float>(k.on(target)(on(target, counted({4, 8, 64}))));
    CHECK(o[1] == 64 * 64 + 63 * 32);
    if (target != Target::interpreter)
      CHECK(count_of(content(folder / "sums-0.json"), R"("name": "sum")") == 4);
  });
}

}  // namespace profiles
