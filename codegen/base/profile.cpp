#include "codegen/base/profile.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "codegen/base/environment.hpp"
#include "codegen/base/forking.hpp"
#include "codegen/base/log.hpp"

#ifdef PALLADIUM_HAS_NVTX
#  include <nvtx3/nvToolsExt.h>
#endif

namespace palladium::profile {
namespace {

bool is_asked_for() { return environment::get(environment::Variable::nvtx) == "1"; }

#ifdef PALLADIUM_HAS_NVTX

constexpr bool is_there = true;

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t ours = nvtxDomainCreateA("palladium");
  return ours;
}

/// As ARGB: compilers orange, launches green, all else blue.
std::uint32_t color_of(std::string_view what) {
  if (what == "compile" || what == "nvrtc") return 0xffe69f00;
  return what == "launch" ? 0xff009e73 : 0xff56b4e9;
}

/// Registered once: profilers begin a capture at such names only, and need not copy them.
nvtxStringHandle_t registered(const std::string& message) {
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::map<std::string, nvtxStringHandle_t>;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = all.try_emplace(message);
  if (is_new) at->second = nvtxDomainRegisterStringA(domain(), message.c_str());
  return at->second;
}

void push(std::string_view what, const std::string& message) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.colorType = NVTX_COLOR_ARGB;
  attributes.color = color_of(what);
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = registered(message);
  nvtxDomainRangePushEx(domain(), &attributes);
}

void pop() { nvtxDomainRangePop(domain()); }

#else

constexpr bool is_there = false;
void push(std::string_view, const std::string&) {}
void pop() {}

#endif

bool is_on() {
  static const bool is = [] {
    if (!is_asked_for()) return false;
    if (!is_there)
      log::warning(
          "PALLADIUM_NVTX=1 does nothing: nvtx3/nvToolsExt.h was not there when Palladium was "
          "configured (-DPALLADIUM_NVTX_INCLUDE names its folder)");
    return is_there;
  }();
  return is;
}

}  // namespace

std::atomic<bool> Range::off_ = false;

// The first call into NVTX opens the profiler's library, under a lock of NVTX's own.
void Range::begin(const char* what, std::string_view kernel) {
  const forking::Section section;
  if (!is_on()) {
    off_.store(true, std::memory_order_relaxed);
    return;
  }
  push(what, std::string(what) + " " + std::string(kernel));
  has_begun_ = true;
}

void Range::end() {
  const forking::Section section;
  pop();
}

}  // namespace palladium::profile
