// What its options say of a kernel stands where a user looks: `palladium show`, the report, the
// log.
#include "palladium/palladium.hpp"
#include "tests/cli/tool.hpp"
#include "tests/support/captured_stderr.hpp"

using namespace palladium::test;
namespace pl = palladium;
namespace plgpu = palladium::gpu;
using pl::_;

namespace {

const std::vector<std::pair<std::string, std::string>> metadata = {{"owner", "search"}};
constexpr pl::CostEstimate cost{.flops = 1234, .transcendentals = 21, .bytes_accessed = 12345};

pl::Kernel blocks() {
  const auto block = [](int copies) {
    return pl::BlockSpec{
        {4}, [](pl::Index i) { return i; }, {.pipeline_mode = pl::Buffered(copies)}};
  };
  return pl::pallas_call([](pl::Ref x, pl::Ref o) { o[_] = x[_] + 1.0f; },
                         {.name = "told",
                          .out_type = {{16}, pl::f32},
                          .grid = {4},
                          .in_specs = {block(3)},
                          .out_specs = {block(1)},
                          .debug = true,
                          .cost_estimate = cost,
                          .metadata = metadata});
}

}  // namespace

TEST_CASE(
    "name, costs, metadata and buffers are shown of a kernel that was recorded [C115] [C118]") {
  const Tool palladium;
  const std::string path = palladium.folder / "kernels.json";
  std::string log;
  {
    const pl::Recorder recorder(path);
    const CapturedStderr captured;
    const pl::Array x = pl::Array::zeros({16}, pl::f32);
    (void)blocks().on(pl::Target::interpreter)(x);
    const auto over = [&](auto kernel) { (void)kernel.on(pl::Target::interpreter)(x); };
    const auto body = [](pl::Ref x, pl::Ref o) { o[_] = x[_]; };
    over(pl::kernel(body, {.name = "whole",
                           .out_type = {{16}, pl::f32},
                           .mesh = plgpu::Mesh{},
                           .debug = true,
                           .cost_estimate = cost,
                           .metadata = metadata}));
    over(plgpu::kernel(body, {.name = "meshed",
                              .out_type = {{16}, pl::f32},
                              .debug = true,
                              .cost_estimate = cost,
                              .metadata = metadata}));
    log = captured.text();
  }
  const std::vector<std::string> names = {"told", "whole", "meshed"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string kernel = path + "#" + std::to_string(i + 1);
    const Finished shown = palladium({"show", kernel, "--graph", "--report"}, {no_nvrtc});
    CHECK(shown.status == 0);
    for (const std::string& words :
         {"kernel " + names[i], std::string("cost estimate: 1234 flops, 21 transcendentals"),
          std::string("metadata owner: search"),
          std::string("estimated by the kernel: 1234 flops, 21 transcendentals, 12345 bytes")})
      CHECK_THAT(shown.out, ContainsSubstring(words));
    CHECK_THAT(log, ContainsSubstring("kernel " + names[i]));  // .debug
    const Json json = palladium.json({"show", kernel, "--report"}, {no_nvrtc});
    CHECK(json.at("kernel") == names[i]);
    CHECK(json.at("report").at("cost_estimate").at("flops") == 1234);
    CHECK(json.at("report").at("cost_estimate").at("bytes_accessed") == 12345);
  }
  const Finished buffers = palladium({"show", path + "#1"});
  CHECK_THAT(buffers.out, ContainsSubstring("args[0]: f32[16] in blocks [4]") &&
                              ContainsSubstring("buffers 3") && ContainsSubstring("buffers 1"));
}
