#include "runtime/device/target.hpp"

#include <atomic>

#include "codegen/base/architecture.hpp"
#include "codegen/base/environment.hpp"
#include "codegen/base/log.hpp"
#include "runtime/driver/device.hpp"
#include "runtime/driver/driver.hpp"

namespace palladium {
namespace {

constexpr Target targets[] = {Target::cuda, Target::interpreter, Target::emulator};
constexpr int undecided = -1;
std::atomic<int> chosen{undecided};

Target decide() {
  if (const std::string name = environment::checked(environment::Variable::target); !name.empty())
    return target_named(name);
  const driver::Status& status = driver::status();
  switch (status.state) {
  case driver::State::ready: return Target::cuda;
  case driver::State::unusable:
    throw CudaError(status.reason + "; or set PALLADIUM_TARGET=interpreter to do without");
  case driver::State::no_driver:
  case driver::State::no_device: break;
  }
  return Target::interpreter;
}

}  // namespace

const char* to_string(Target target) {
  switch (target) {
  case Target::cuda: return "cuda";
  case Target::interpreter: return "interpreter";
  case Target::emulator: return "emulator";
  }
  return "";
}

Target target_named(const std::string& name, Location at) {
  for (const Target t : targets)
    if (name == to_string(t)) return t;
  throw CompileError(at,
                     "no target is named '" + name + "'; there are cuda, interpreter and emulator");
}

Target runtime::current_target() {
  const int known = chosen.load(std::memory_order_relaxed);
  if (known != undecided) return static_cast<Target>(known);
  const Target target = decide();
  if (target == Target::interpreter && environment::get(environment::Variable::target).empty())
    log::warning("kernels run in the interpreter: " + driver::status().reason);
  int expected = undecided;
  chosen.compare_exchange_strong(expected, static_cast<int>(target), std::memory_order_relaxed);
  return expected == undecided ? target : static_cast<Target>(expected);
}

Target runtime::expected_target() {
  const int known = chosen.load(std::memory_order_relaxed);
  return known != undecided ? static_cast<Target>(known) : decide();
}

std::string runtime::default_arch() {
  return driver::status().state == driver::State::ready ? driver::device(0).arch() : "sm_90a";
}

Target default_target() { return runtime::current_target(); }

void set_default_target(Target target) {
  chosen.store(static_cast<int>(target), std::memory_order_relaxed);
}

Device device_of(Target target) { return target == Target::cuda ? Device::cuda(0) : Device::cpu(); }
Device default_device() { return device_of(default_target()); }
std::string default_arch() { return runtime::default_arch(); }

std::vector<std::string> known_archs() { return architecture_names(); }

const std::string& checked_arch(const std::string& arch) {
  (void)parse_architecture(arch);
  return arch;
}

std::vector<DeviceInfo> devices() {
  const driver::Status& status = driver::status();
  if (status.state == driver::State::no_driver || status.state == driver::State::no_device)
    return {};
  std::vector<DeviceInfo> result;
  driver::api();  // throws what keeps it from being used
  for (int i = 0; i < status.devices; ++i) {
    const driver::Device& d = driver::device(i);
    result.push_back({.device = Device::cuda(i),
                      .name = d.name,
                      .arch = d.arch(),
                      .memory_bytes = static_cast<std::int64_t>(d.memory_bytes),
                      .multiprocessors = d.multiprocessors});
  }
  return result;
}

}  // namespace palladium
