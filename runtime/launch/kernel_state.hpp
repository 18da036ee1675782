// What the handle Kernel refers to.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "codegen/base/forking.hpp"
#include "runtime/build/jobs.hpp"
#include "runtime/build/weaker.hpp"
#include "runtime/call/specialization.hpp"
#include "runtime/launch/launcher.hpp"
#include "runtime/launch/run_emulator.hpp"

namespace palladium::runtime {

/// A specialisation, and what targets made of it.
struct Variant {
  Variant(std::shared_ptr<const Specialization> s, std::string of)
      : specialization(std::move(s)), family(std::move(of)) {}

  const std::shared_ptr<const Specialization> specialization;
  /// Those of calls that are traced alike have one: the bytes of the graph that relies on least.
  /// Empty where there is no other class.
  const std::string family;
  std::vector<std::unique_ptr<const Launcher>> launchers;  // one per device
  std::shared_ptr<const Emulated> emulated;
  std::atomic<bool> is_told = false;  // tell_before_first_run()

  /// Compiled in the background, for an architecture, while another class serves its calls.
  enum class Background : std::uint8_t { none, starting, running, failed };
  std::map<std::string, Background> background = {};
  std::map<std::string, Claim> claims = {};
};

/// The launchers of a kernel's last calls, that of the last one first. Threads read and write it at
/// once: some may stand in it twice then, or not.
class RecentLaunchers {
 public:
  void put_first(const Launcher* launcher) {
    const Launcher* moved = launcher;
    for (auto& place : places_) {
      moved = place.exchange(moved, std::memory_order_acq_rel);
      if (moved == launcher || moved == nullptr) return;
    }
  }
  /// Whether `f` is true of one of them; those behind it are not asked.
  bool any_of(const auto& f) const {
    for (const auto& place : places_) {
      const Launcher* const launcher = place.load(std::memory_order_acquire);
      if (launcher == nullptr) return false;
      if (f(*launcher)) return true;
    }
    return false;
  }

 private:
  std::atomic<const Launcher*> places_[most_classes] = {};
};

struct KernelState final : palladium::detail::Counted {
  explicit KernelState(Source s) : source(std::move(s)) {}

  /// Guards `variants` and what is in them, while something is traced too. CompileError
  /// where this thread holds it: the kernel's options function, or its body, asks for the kernel.
  class Lock {
   public:
    Lock(KernelState& kernel, Location at)
        : kernel_((refuse_holder(kernel, at), kernel)), lock_(kernel.mutex_) {
      kernel_.holder_ = std::this_thread::get_id();
    }
    ~Lock() { kernel_.holder_ = std::thread::id(); }
    Lock(const Lock&) = delete;

   private:
    static void refuse_holder(const KernelState& kernel, Location at) {
      if (kernel.holder_ == std::this_thread::get_id())
        throw CompileError(at, "a kernel's options function calls or lowers the kernel itself");
    }
    KernelState& kernel_;
    const forking::Lock lock_;
  };

  const Source source;
  std::vector<std::unique_ptr<Variant>> variants;  // live, with their launchers, as long as this
  RecentLaunchers recent;                          // what the hot path tries

 private:
  forking::Mutex mutex_;
  std::atomic<std::thread::id> holder_ = std::thread::id();
};

}  // namespace palladium::runtime
