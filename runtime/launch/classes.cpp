#include "runtime/launch/classes.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "codegen/base/event.hpp"
#include "codegen/base/format.hpp"
#include "codegen/base/log.hpp"
#include "codegen/base/once.hpp"
#include "codegen/graph/transform.hpp"
#include "runtime/build/compile.hpp"
#include "runtime/build/weaker.hpp"
#include "runtime/driver/capture.hpp"
#include "runtime/driver/device.hpp"

namespace palladium::runtime {
namespace {

using Background = Variant::Background;

bool is_current(const Variant& v) { return v.specialization->debug.is_current(); }

/// The strongest of those that serve the call and are `such`.
template <class F>
Variant* strongest(const KernelState& kernel, const Given& call, F&& such) {
  Variant* best = nullptr;
  int most = 0;
  for (const auto& v : kernel.variants) {
    Signature::Symbols symbols;
    if (!is_current(*v) || !such(*v) || !serves(*v->specialization, call, symbols)) continue;
    const int strength = runtime::strength(v->specialization->graph);
    if (best != nullptr && strength <= most) continue;
    best = v.get();
    most = strength;
  }
  return best;
}

std::size_t kept_of(const KernelState& kernel, const std::string& family) {
  return static_cast<std::size_t>(std::ranges::count_if(
      kernel.variants, [&](const auto& v) { return is_current(*v) && v->family == family; }));
}

/// A variant that is wanted where others serve meanwhile.
class InBackground {
 public:
  InBackground(KernelState& kernel, Variant& wanted, int device, Location at)
      : kernel_(kernel),
        wanted_(wanted),
        device_(device),
        arch_(driver::device(device).arch()),
        at_(at) {}

  /// Whether it can be loaded now, without a compile, or has been.
  bool is_ready() {
    std::optional<Claim> claim;
    switch (next(claim)) {
    case Background::none: return start();
    case Background::running: return take(*claim);
    default: return false;
    }
  }

 private:
  /// What to do about it, which nobody else does then.
  Background next(std::optional<Claim>& claim) {
    const KernelState::Lock lock(kernel_, at_);
    Background& state = wanted_.background[arch_];
    if (state == Background::running) {
      const auto found = wanted_.claims.find(arch_);
      if (found->second.is_of_this_process()) {
        claim = found->second;
        return state;
      }
      wanted_.claims.erase(found);
      state = Background::none;
    }
    return state == Background::none ? std::exchange(state, Background::starting) : state;
  }

  void set(Background state) {
    const KernelState::Lock lock(kernel_, at_);
    wanted_.background[arch_] = state;
  }

  bool start() {
    const std::string& name = wanted_.specialization->graph.name;
    try {
      if (needs_no_compile(*wanted_.specialization, arch_)) {
        set(Background::none);
        return true;
      }
      const Claim claim = compile_in_background(wanted_.specialization, arch_, 0);
      const KernelState::Lock lock(kernel_, at_);
      wanted_.claims.emplace(arch_, claim);
      wanted_.background[arch_] = Background::running;
    } catch (...) {
      set(Background::none);
      throw;
    }
    log::event(log::Level::info, "background",
               fmt::format("'{}' for {} is compiled in the background for another class of sizes; "
                           "meanwhile a kernel that knows less of them serves",
                           name, arch_),
               {{"kernel", name}, {"arch", arch_}});
    return false;
  }

  bool take(const Claim& claim) {
    if (!claim.wait_for(0)) return false;
    try {
      auto made = std::make_unique<const Launcher>(*wanted_.specialization, device_, claim.wait());
      const KernelState::Lock lock(kernel_, at_);
      if (known_launcher(wanted_, device_) == nullptr) wanted_.launchers.push_back(std::move(made));
      return true;
    } catch (const CudaError& error) {
      set(Background::failed);
      log::warning(fmt::format("a kernel that knows less of the sizes serves calls of '{}': {}",
                               wanted_.specialization->graph.name, error.what()));
      return false;
    }
  }

  KernelState& kernel_;
  Variant& wanted_;
  const int device_;
  const std::string arch_;
  const Location at_;
};

bool is_captured(int device, Stream stream) {
  const driver::ContextScope context(device);
  return driver::is_capturing(reinterpret_cast<driver::StreamHandle>(stream.handle()));
}

}  // namespace

std::string family_of(const Specialization& s) {
  const auto least = weakest(s);
  const bool has_symbols = s.graph.num_symbols > 0;
  return least         ? graph::canonical_bytes(least->graph)
         : has_symbols ? graph::canonical_bytes(s.graph)
                       : std::string();
}

Variant* kept_for(const KernelState& kernel, const Given& call, Signature::Symbols& symbols) {
  std::map<std::string, bool> full;
  const auto is_full = [&](const Variant& v) {
    if (v.family.empty()) return false;
    const auto [known, is_new] = full.try_emplace(v.family);
    if (is_new) known->second = kept_of(kernel, v.family) >= most_classes;
    return known->second;
  };
  if (kernel.variants.size() < most_classes) return nullptr;
  Variant* const found = strongest(kernel, call, is_full);
  if (found != nullptr) (void)serves(*found->specialization, call, symbols);
  return found;
}

bool wants_weakest(const KernelState& kernel, const std::string& family) {
  if (family.empty() || kept_of(kernel, family) + 1 != most_classes) return false;
  return std::ranges::none_of(kernel.variants, [&](const auto& v) {
    return is_current(*v) && v->family == family &&
           graph::canonical_bytes(v->specialization->graph) == family;
  });
}

void tell_of_classes(const graph::Graph& g) {
  warn::once(fmt::format(
      "kernel '{}' keeps {} classes of sizes and arrays, those called first and one that serves "
      "all: other calls take the strongest of these; multiples that sizes always are of, said by "
      "pl::require_multiple, and arrays that begin and have rows at multiples of 16 bytes, are "
      "fewer classes\n  at {}",
      g.name, most_classes, to_string(g.at)));
}

const Launcher* known_launcher(const Variant& variant, int device) {
  for (const auto& l : variant.launchers)
    if (l->device() == device) return l.get();
  return nullptr;
}

Variant& serving(KernelState& kernel, Variant& wanted, int device, Stream stream, const Given& call,
                 Signature::Symbols& symbols, Location at) {
  if (wanted.family.empty()) return wanted;
  Variant* other = nullptr;
  {
    const KernelState::Lock lock(kernel, at);
    if (kernel.variants.size() == 1 || known_launcher(wanted, device) != nullptr) return wanted;
    other = strongest(kernel, call, [&](const Variant& v) {
      return v.family == wanted.family && known_launcher(v, device) != nullptr;
    });
  }
  if (other == nullptr) return wanted;
  if (!is_captured(device, stream) && InBackground(kernel, wanted, device, at).is_ready())
    return wanted;
  (void)serves(*other->specialization, call, symbols);
  return *other;
}

}  // namespace palladium::runtime
