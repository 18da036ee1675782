#include "runtime/driver/driver.hpp"

#include <dlfcn.h>

#include "codegen/base/environment.hpp"
#include "codegen/base/forking.hpp"
#include "codegen/base/format.hpp"
#include "palladium/error.hpp"

namespace palladium::driver {
namespace {

constexpr const char* default_path = "libcuda.so.1";

using GetProcAddress = abi::Result (*)(const char*, void**, int, std::uint64_t, int*);

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string describe_with(const abi::Functions& functions, abi::Result result) {
  const char* sentence = nullptr;
  const char* name = nullptr;
  if (functions.cuGetErrorString != nullptr) functions.cuGetErrorString(result, &sentence);
  if (functions.cuGetErrorName != nullptr) functions.cuGetErrorName(result, &name);
  if (sentence == nullptr || name == nullptr) return fmt::format("error {}", result);
  return fmt::format("{} ({})", sentence, name);
}

Loaded refused(Loaded loaded, State state, std::string reason) {
  loaded.status.state = state;
  loaded.status.reason = std::move(reason);
  return loaded;
}

/// The loader's word for "there is none" is no more than its text.
bool is_absent(const std::string& path, std::string_view loader_error) {
  return loader_error.starts_with(path) &&
         loader_error.find("No such file or directory") != std::string_view::npos;
}

// CUDA does not survive a fork().
constinit std::atomic<bool> has_started = false;
constinit std::atomic<bool> was_started_by_parent = false;
const forking::Registration registration({.in_child = [] {
  if (!has_started) return;
  was_started_by_parent = true;
  detail::ready_functions = nullptr;
}});

const Loaded& process_driver() {
  const forking::Section section;
  static const Loaded& loaded = *new Loaded([] {
    const std::string path = environment::get(environment::Variable::libcuda);
    Loaded fresh = load(path.empty() ? default_path : path);
    has_started = fresh.status.state == State::ready;
    return fresh;
  }());
  return loaded;
}

}  // namespace

Loaded load(const std::string& path) {
  Loaded loaded;
  loaded.status.path = path;
  abi::Functions& functions = loaded.functions;

  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* error = dlerror();
    const std::string why = error == nullptr ? path : error;
    if (is_absent(path, why)) return refused(loaded, State::no_driver, "no CUDA driver: " + why);
    return refused(
        loaded, State::unusable,
        "the CUDA driver library cannot be loaded: " + why + "; reinstall the NVIDIA driver");
  }
  const auto get_version =
      reinterpret_cast<abi::Result (*)(int*)>(dlsym(library, "cuDriverGetVersion"));
  if (get_version == nullptr || get_version(&loaded.status.version) != abi::success)
    return refused(loaded, State::unusable, path + " is not a CUDA driver library");
  const int version = loaded.status.version;
  const auto get = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr || version < oldest_version)
    return refused(loaded, State::unusable,
                   fmt::format("the CUDA driver is too old: it is for CUDA {}, and {} is needed; "
                               "update the NVIDIA driver to 525 or newer",
                               version_text(version), version_text(oldest_version)));

#define PALLADIUM_DRIVER_LOOKUP(name, since, parameters)                                       \
  {                                                                                            \
    void* address = nullptr;                                                                   \
    int query = 0;                                                                             \
    if (get(#name, &address, since, 0, &query) != abi::success || address == nullptr)          \
      return refused(loaded, State::unusable,                                                  \
                     fmt::format("the CUDA driver for CUDA {} lacks {} of CUDA {}; reinstall " \
                                 "the NVIDIA driver",                                          \
                                 version_text(version), #name, version_text(since)));          \
    functions.name = reinterpret_cast<decltype(functions.name)>(address);                      \
  }
  PALLADIUM_DRIVER_FUNCTIONS(PALLADIUM_DRIVER_LOOKUP)
#undef PALLADIUM_DRIVER_LOOKUP

  abi::Result result = functions.cuInit(0);
  if (result == abi::success) result = functions.cuDeviceGetCount(&loaded.status.devices);
  if (result == abi::no_device || (result == abi::success && loaded.status.devices == 0))
    return refused(loaded, State::no_device,
                   fmt::format("the CUDA driver for CUDA {} finds no GPU", version_text(version)));
  if (result == abi::stub_library)
    return refused(loaded, State::no_driver,
                   "no CUDA driver: " + path + " is the stub that programs are linked with");
  if (result != abi::success)
    return refused(
        loaded, State::unusable,
        fmt::format("the CUDA driver for CUDA {} does not start: cuInit: {}; see whether "
                    "nvidia-smi works and restart after a driver update",
                    version_text(version), describe_with(functions, result)));
  loaded.status.state = State::ready;
  return loaded;
}

const Status& status() { return process_driver().status; }

std::atomic<const abi::Functions*> detail::ready_functions = nullptr;

const abi::Functions& detail::find_functions() {
  const Loaded& loaded = process_driver();
  if (loaded.status.state != State::ready) throw CudaError(loaded.status.reason);
  if (was_started_by_parent)
    throw CudaError(
        "CUDA cannot be used here: this process was forked from one that had started CUDA "
        "already; fork before the first use of a GPU, or let the child run a program (exec)");
  ready_functions.store(&loaded.functions, std::memory_order_release);
  return loaded.functions;
}

std::string describe(abi::Result result) {
  return describe_with(process_driver().functions, result);
}

std::string text(std::string_view words) { return std::string(words); }
std::string text(const char* words) { return words; }
std::string text(const void* pointer) { return fmt::format("{}", pointer); }
std::string text(Dim3 dims) { return fmt::format("{}x{}x{}", dims.x, dims.y, dims.z); }

void fail(abi::Result result, std::string_view call, std::span<const std::string> arguments) {
  std::string message(call);
  const char* separator = "(";
  for (const std::string& argument : arguments) {
    message += separator + argument;
    separator = ", ";
  }
  if (!arguments.empty()) message += ")";
  throw CudaError(message + ": " + describe(result));
}

}  // namespace palladium::driver
