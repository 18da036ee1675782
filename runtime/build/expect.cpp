#include "runtime/build/expect.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include "codegen/base/environment.hpp"
#include "codegen/base/format.hpp"
#include "codegen/base/log.hpp"
#include "codegen/cuda/expectations.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "codegen/thread/occupancy.hpp"
#include "palladium/error.hpp"
#include "runtime/build/key.hpp"

namespace palladium::runtime {
namespace {

std::string message(const graph::Graph& g, const std::string& arch,
                    const std::vector<std::string>& broken,
                    const std::vector<std::string>& remarks) {
  std::string text = fmt::format("kernel '{}' on {} is not what its .expect says", g.name, arch);
  for (const std::string& what : broken) text += "\n  " + what;
  for (const std::string& remark : remarks) text += "\n  remark: " + remark;
  return text;
}

}  // namespace

void expect(const graph::Graph& g, const std::string& arch, const Program& program) {
  const std::string mode = environment::checked(environment::Variable::expect);
  if (mode == "off" || !cuda::is_expected_on(g, arch)) return;
  const bool is_error = mode == "error";
  const Resources& resources = program.entry.metadata.resources;
  std::vector<std::string> broken =
      cuda::broken_by(g, resources, nvrtc::warnings_of_wgmma(resources));
  const cuda::Options options = text_options(arch);
  if (is_error || !program.from_cache) {
    const int blocks =
        thread::occupancy(options.compute_capability, program.plan.threads, resources).blocks;
    std::ranges::move(cuda::broken_by_program(g, options, blocks), std::back_inserter(broken));
  }
  if (broken.empty()) return;
  const std::string text = message(g, arch, broken, cuda::remarks_of(g, options));
  if (is_error) throw CompileError(g.at, text);
  log::warning(text);
}

}  // namespace palladium::runtime
