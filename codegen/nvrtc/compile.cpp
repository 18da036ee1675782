// NVRTC by dlopen: loaded at the first compile, never linked, no header of its own needed.
#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>

#include "codegen/base/architecture.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "palladium/error.hpp"

namespace palladium::nvrtc {
namespace {

// Enough of nvrtc.h: results are an int with 0 for success, a program is an opaque pointer. This
// part of the interface has not changed since CUDA 11.2.
using Program = struct ProgramOfNvrtc*;
constexpr int success = 0;

// clang-format off
#define PALLADIUM_NVRTC_FUNCTIONS(X) \
  X(nvrtcGetErrorString,        const char*, (int)) \
  X(nvrtcVersion,               int, (int*, int*)) \
  X(nvrtcGetNumSupportedArchs,  int, (int*)) \
  X(nvrtcGetSupportedArchs,     int, (int*)) \
  X(nvrtcCreateProgram,         int, (Program*, const char*, const char*, int, const char* const*, const char* const*)) \
  X(nvrtcDestroyProgram,        int, (Program*)) \
  X(nvrtcCompileProgram,        int, (Program, int, const char* const*)) \
  X(nvrtcGetProgramLogSize,     int, (Program, std::size_t*)) \
  X(nvrtcGetProgramLog,         int, (Program, char*)) \
  X(nvrtcGetPTXSize,            int, (Program, std::size_t*)) \
  X(nvrtcGetPTX,                int, (Program, char*)) \
  X(nvrtcGetCUBINSize,          int, (Program, std::size_t*)) \
  X(nvrtcGetCUBIN,              int, (Program, char*))
// clang-format on

/// One loaded NVRTC; stays loaded, since unloading a compiler gives nothing back.
struct Nvrtc {
#define PALLADIUM_NVRTC_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  PALLADIUM_NVRTC_FUNCTIONS(PALLADIUM_NVRTC_MEMBER)
#undef PALLADIUM_NVRTC_MEMBER

  std::string version;
  std::vector<int> architectures;
  const void* base = nullptr;  // where it is mapped, to know its signal handlers by

  explicit Nvrtc(const Toolchain& toolchain) {
    // NVRTC opens its builtins by bare name, which finds them when they are loaded already.
    if (dlopen(toolchain.builtins.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) refuse(dlerror());
    void* library = dlopen(toolchain.library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) refuse(dlerror());
#define PALLADIUM_NVRTC_LOOKUP(name, result, parameters)                \
  name = reinterpret_cast<result(*) parameters>(dlsym(library, #name)); \
  if (name == nullptr) refuse(toolchain.library + " has no function " #name);
    PALLADIUM_NVRTC_FUNCTIONS(PALLADIUM_NVRTC_LOOKUP)
#undef PALLADIUM_NVRTC_LOOKUP
    int major = 0;
    int minor = 0;
    check(nvrtcVersion(&major, &minor), "nvrtcVersion");
    version = std::to_string(major) + "." + std::to_string(minor);
    if (version != toolchain.version())
      refuse(toolchain.library + " is NVRTC " + version + " but its builtins are " +
             toolchain.version());
    int count = 0;
    check(nvrtcGetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs");
    architectures.resize(static_cast<std::size_t>(count));
    check(nvrtcGetSupportedArchs(architectures.data()), "nvrtcGetSupportedArchs");
    Dl_info self;
    if (dladdr(reinterpret_cast<const void*>(nvrtcVersion), &self) != 0) base = self.dli_fbase;
  }

  void check(int result, const char* call) const {
    if (result != success) throw CudaError(std::string(call) + ": " + nvrtcGetErrorString(result));
  }

  [[noreturn]] static void refuse(const std::string& why) {
    throw CudaError("NVRTC could not be loaded: " + why);
  }
};

const Nvrtc& load(const Toolchain& toolchain) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Nvrtc>>& loaded =
      *new std::map<std::string, std::unique_ptr<Nvrtc>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Nvrtc>& slot = loaded[toolchain.library];
  if (!slot) slot = std::make_unique<Nvrtc>(toolchain);
  return *slot;
}

/// While at least one compile runs, remembers the process's signal handlers and stack limit; the
/// last compile to end puts back what NVRTC changed, and only that: a handler which the
/// application installed meanwhile stays.
class ProcessState {
 public:
  explicit ProcessState(const Nvrtc& nvrtc) : nvrtc_(nvrtc) {
    const std::lock_guard lock(shared().mutex);
    if (shared().compiles++ > 0) return;
    for (int i = 0; i < 2; ++i) sigaction(signals[i], nullptr, &shared().handlers[i]);
    getrlimit(RLIMIT_STACK, &shared().stack);
  }
  ProcessState(const ProcessState&) = delete;
  ProcessState& operator=(const ProcessState&) = delete;
  ~ProcessState() {
    const std::lock_guard lock(shared().mutex);
    if (--shared().compiles > 0) return;
    for (int i = 0; i < 2; ++i) {
      struct sigaction now;
      if (sigaction(signals[i], nullptr, &now) == 0 && is_of_nvrtc(now))
        sigaction(signals[i], &shared().handlers[i], nullptr);
    }
    rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur != shared().stack.rlim_cur &&
        stack.rlim_cur == stack.rlim_max)
      setrlimit(RLIMIT_STACK, &shared().stack);
  }

 private:
  struct Shared {
    std::mutex mutex;
    int compiles = 0;
    struct sigaction handlers[2] = {};
    rlimit stack = {};
  };
  static constexpr int signals[] = {SIGINT, SIGTERM};

  static Shared& shared() {
    static Shared instance;
    return instance;
  }

  bool is_of_nvrtc(const struct sigaction& action) const {
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) return false;
    Dl_info owner;
    return dladdr(reinterpret_cast<const void*>(action.sa_handler), &owner) != 0 &&
           owner.dli_fbase == nvrtc_.base;
  }

  const Nvrtc& nvrtc_;
};

/// Those that Palladium knows, too.
std::vector<std::string> names(const std::vector<int>& numbers) {
  std::vector<std::string> result = architecture_names();
  std::erase_if(result, [&](const std::string& name) {
    const int number = parse_architecture(name).compute_capability;
    return std::find(numbers.begin(), numbers.end(), number) == numbers.end();
  });
  return result;
}

void require_architecture(const std::string& arch, const Nvrtc& nvrtc) {
  (void)parse_architecture(arch);
  const std::vector<std::string> known = names(nvrtc.architectures);
  if (std::find(known.begin(), known.end(), arch) == known.end())
    throw CompileError("NVRTC " + nvrtc.version + " does not compile for " + arch + ", only for " +
                       listed(known));
}

class OwnedProgram {
 public:
  OwnedProgram(const Nvrtc& nvrtc, const Request& request) : nvrtc_(nvrtc) {
    std::vector<const char*> texts;
    std::vector<const char*> header_names;
    for (const Header& header : request.headers) {
      texts.push_back(header.text.c_str());
      header_names.push_back(header.name.c_str());
    }
    nvrtc.check(
        nvrtc.nvrtcCreateProgram(&program_, request.source.c_str(), "kernel.cu",
                                 static_cast<int>(texts.size()), texts.data(), header_names.data()),
        "nvrtcCreateProgram");
  }
  OwnedProgram(const OwnedProgram&) = delete;
  OwnedProgram& operator=(const OwnedProgram&) = delete;
  ~OwnedProgram() { nvrtc_.nvrtcDestroyProgram(&program_); }

  Program get() const { return program_; }

  /// Log, PTX or cubin by its pair of functions.
  template <class Bytes>
  void fetch(Bytes& bytes, int (*size_of)(Program, std::size_t*), int (*get)(Program, char*),
             const char* call) const {
    std::size_t size = 0;
    nvrtc_.check(size_of(program_, &size), call);
    bytes.resize(size);
    if (size > 0) nvrtc_.check(get(program_, reinterpret_cast<char*>(bytes.data())), call);
  }

 private:
  const Nvrtc& nvrtc_;
  Program program_ = nullptr;
};

/// NVRTC counts the terminating zero as text.
void trim_zeros(std::string& text) {
  while (!text.empty() && text.back() == '\0') text.pop_back();
}

}  // namespace

Result compile(const Request& request) {
  const Search& search = toolchain();
  if (!search.found) throw CudaError(missing_toolchain_message(search));
  return compile(request, *search.found);
}

Result compile(const Request& request, const Toolchain& toolchain) {
  const auto start = std::chrono::steady_clock::now();
  const Nvrtc& nvrtc = load(toolchain);
  require_architecture(request.arch, nvrtc);

  std::vector<std::string> options = {
      "--gpu-architecture=" + request.arch,
      "--no-cache",           // else NVRTC starts the driver (cuInit) for a cache of its own
      "--fmad=false",         // contraction is decided in the graph, for every target alike
      "--ptxas-options=-v",   // registers, spills and complaints, for parse_log()
      "--no-source-include",  // the source's folder is not a place to look for headers
      // Nothing of the runtime, of textures, of launches, of std::initializer_list: 5 ms less.
      "--minimal",
      "--builtin-initializer-list=false",
  };
  options.insert(options.end(), request.options.begin(), request.options.end());
  std::vector<const char*> arguments;
  for (const std::string& option : options) arguments.push_back(option.c_str());

  Result result;
  const OwnedProgram program(nvrtc, request);
  int code;
  {
    const ProcessState state(nvrtc);
    code = nvrtc.nvrtcCompileProgram(program.get(), static_cast<int>(arguments.size()),
                                     arguments.data());
  }
  program.fetch(result.log, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog,
                "nvrtcGetProgramLog");
  trim_zeros(result.log);
  result.ok = code == success;
  if (result.ok) {
    program.fetch(result.cubin, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, "nvrtcGetCUBIN");
    program.fetch(result.ptx, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, "nvrtcGetPTX");
    trim_zeros(result.ptx);
  } else if (result.log.empty()) {
    result.log = nvrtc.nvrtcGetErrorString(code);
  }
  result.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

std::vector<std::string> architectures(const Toolchain& toolchain) {
  return names(load(toolchain).architectures);
}

}  // namespace palladium::nvrtc
