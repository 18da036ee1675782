#include "palladium/diagnosis.hpp"

#include "codegen/base/format.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "runtime/build/compiler.hpp"
#include "runtime/build/program.hpp"
#include "runtime/device/target.hpp"
#include "runtime/driver/driver.hpp"
#include "runtime/emulator/module.hpp"

namespace palladium {
namespace {

Finding find_driver() {
  const driver::Status& status = driver::status();
  const std::string version = fmt::format("{}.{}", status.cuda_major(), status.version % 1000 / 10);
  Finding f{.name = "driver", .found = status.reason};
  if (status.version != 0) f.details.emplace_back("version", version);
  f.details.emplace_back("path", status.path);
  switch (status.state) {
  case driver::State::ready:
  case driver::State::no_device:
    f.ok = true;
    f.found = "CUDA " + version + ", " + status.path;
    break;
  case driver::State::no_driver:
    f.advice = "install the NVIDIA driver to run kernels on a GPU";
    break;
  case driver::State::unusable:
    f.advice = "or set PALLADIUM_TARGET=interpreter to do without";
    break;
  }
  return f;
}

void find_gpus(std::vector<Finding>& findings) {
  const driver::Status& status = driver::status();
  try {
    for (const DeviceInfo& d : devices()) {
      const double gib = static_cast<double>(d.memory_bytes) / (1 << 30);
      findings.push_back({.name = "gpu",
                          .ok = true,
                          .found = fmt::format("{}, {}, {:.0f} GiB, {} multiprocessors", d.name,
                                               d.arch, gib, d.multiprocessors),
                          .details = {{"device", to_string(d.device)}, {"arch", d.arch}}});
    }
    if (status.devices == 0)
      findings.push_back(
          {.name = "gpu",
           .found = "none",
           .advice = status.state == driver::State::no_device
                         ? "see whether nvidia-smi shows one and CUDA_VISIBLE_DEVICES hides it"
                         : ""});
  } catch (const CudaError& error) {
    findings.push_back({.name = "gpu", .found = error.what()});
  }
}

Finding find_nvrtc() {
  Finding f{.name = "nvrtc"};
  const nvrtc::Search& search = nvrtc::toolchain();
  if (!search.found) {
    f.found = fmt::format("none that is {}.{} or newer", nvrtc::oldest_major, nvrtc::oldest_minor);
    for (const std::string& line : search.passed_over) f.found += "\n" + line;
    f.advice = nvrtc::toolchain_advice() + "; kernels in the cache and the interpreter do without";
    return f;
  }
  const nvrtc::Toolchain& t = *search.found;
  f.details = {{"version", t.version()}, {"path", t.library}, {"toolchain", t.id}};
  try {
    const std::vector<std::string> known = nvrtc::architectures(t);
    f.ok = true;
    f.found = fmt::format("{}, {}, compiles for {} to {}, toolchain {}", t.version(), t.library,
                          known.front(), known.back(), t.id);
  } catch (const Error& error) {
    f.found = error.what();
    f.advice = nvrtc::toolchain_advice();
  }
  return f;
}

Finding find_compile_helper() {
  Finding f{.name = "compile helper"};
  try {
    const runtime::HelperCheck helper = runtime::check_helper();
    const int jobs = runtime::compile_jobs();
    f.ok = helper.problem.empty();
    f.found = f.ok ? fmt::format("{}, {} at once", helper.path, jobs) : helper.problem;
    f.details = {{"path", helper.path}, {"jobs", std::to_string(jobs)}};
  } catch (const CompileError& error) {
    f.found = error.what();
  }
  if (!f.ok)
    f.advice =
        "install Palladium whole, or set PALLADIUM_COMPILE_HELPER to the path of "
        "palladium-compile; until then programs compile by themselves, and NVRTC takes "
        "their SIGINT and SIGTERM meanwhile";
  return f;
}

Finding find_cache() {
  const cache::Store store = runtime::store();
  Finding f{.name = "cache", .details = {{"path", store.root()}}};
  const std::string problem = store.problem();
  if (!problem.empty()) {
    f.found = store.root() + (store.root().empty() ? "" : ": ") + problem;
    f.advice = "set PALLADIUM_CACHE_DIR to a folder of yours; without, each process compiles anew";
    return f;
  }
  std::uint64_t bytes = 0;
  const auto entries = store.list();
  for (const auto& e : entries) bytes += e.bytes;
  f.ok = true;
  f.found = fmt::format("{}, {} kernels, {:.1f} MiB", store.root(), entries.size(),
                        static_cast<double>(bytes) / (1 << 20));
  f.details.emplace_back("kernels", std::to_string(entries.size()));
  f.details.emplace_back("bytes", std::to_string(bytes));
  return f;
}

Finding find_host_compiler() {
  Finding f{.name = "host compiler"};
  try {
    const emulator::HostCompiler compiler = emulator::host_compiler();
    f.ok = true;
    f.found = compiler.command + ": " + compiler.version;
    f.details = {{"command", compiler.command}, {"version", compiler.version}};
  } catch (const Error& error) {
    f.found = error.what();
    f.advice = "install g++ or clang++; only the emulator needs it";
  }
  return f;
}

}  // namespace

Diagnosis diagnose() {
  Diagnosis d;
  d.findings.push_back(find_driver());
  find_gpus(d.findings);
  d.findings.push_back(find_nvrtc());
  d.findings.push_back(find_compile_helper());
  d.findings.push_back(find_cache());
  d.findings.push_back(find_host_compiler());
  try {
    d.target = runtime::expected_target();
    if (d.target == Target::cuda) driver::api();
    if (d.target == Target::emulator && !d.findings.back().ok) d.problem = d.findings.back().found;
  } catch (const Error& error) {
    d.problem = error.what();
  }
  return d;
}

}  // namespace palladium
