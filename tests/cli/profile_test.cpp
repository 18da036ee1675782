// What a launch tells of its scopes, read as other traces are, beside what is predicted.
#include <fstream>
#include <iterator>
#include <string>

#include "palladium/palladium.hpp"
#include "tests/cli/tool.hpp"
#include "tools/trace.hpp"

using namespace palladium::test;
namespace pl = palladium;
namespace plgpu = palladium::gpu;
namespace tools = palladium::tools;

namespace {

std::string profile_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a profile is a trace: spans of each warpgroup nested, in order, in instructions [M56]") {
  const Tool palladium;
  const pl::Kernel k = plgpu::kernel(
      [](pl::Ref x, pl::Ref o) {
        const pl::Value wg = pl::axis_index("wg");
        plgpu::named_scope("loop of \"sums\"", [&] {
          pl::loop(0, 4, [&](pl::Index i) {
            const pl::Value sum = plgpu::named_scope("product", [&] {
              return pl::sum(x[{wg, i, pl::_}]);
            });
            o[{wg, i}] = sum;
          });
        });
      },
      {.name = "measured",
       .out_type = {{2, 4}, pl::f32},
       .num_threads = 2,
       .thread_name = "wg",
       .compiler_params = {.profile_space = 10, .profile_dir = palladium.folder.path()}});
  k.on(pl::Target::emulator)(pl::Array::full({2, 4, 256}, pl::f32, 1));
  const std::string path = palladium.folder / "measured-0.json";
  const tools::Trace t = tools::trace_from_json(profile_of(path));
  CHECK(t.kernel == "measured");
  CHECK(t.clock == "instructions");
  CHECK_THAT(t.device, StartsWith("emulator of sm_"));
  REQUIRE(t.lanes.size() == 2);
  for (const tools::Trace::Lane& lane : t.lanes) {
    CHECK(lane.process == "block 0");
    REQUIRE(lane.spans.size() == 5);
    CHECK(lane.spans[0].what == "loop of \"sums\"");
    CHECK_THAT(lane.spans[0].line, ContainsSubstring("profile_test.cpp:29"));
    double last = lane.spans[0].begin;
    for (std::size_t i = 1; i < 5; ++i) {
      const tools::Trace::Span& s = lane.spans[i];
      CHECK(s.what == "product");
      CHECK(s.begin >= last);
      CHECK(s.end > s.begin);
      last = s.end;
    }
    CHECK(lane.spans[0].end >= last);
  }
  CHECK(t.lanes[0].name == "wg 0");
  CHECK(t.lanes[1].name == "wg 1");

  const Finished both = palladium(
      {"show", "attention", "--timeline", "--measured", path, "--arch", "sm_90a"}, {no_nvrtc});
  CHECK(both.status == 0);
  for (const char* words : {"predicted", "measured", "product", "instructions", "wg 1"})
    CHECK_THAT(both.out, ContainsSubstring(words));
}
