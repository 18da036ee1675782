// What the handles Kernel, Lowered and Compiled refer to.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "codegen/base/forking.hpp"
#include "palladium/kernel.hpp"
#include "runtime/call/specialization.hpp"

namespace palladium::runtime {

class Launcher;

struct KernelState final : palladium::detail::Counted {
  explicit KernelState(Source s) : source(std::move(s)) {}

  /// Guards `specializations` and what is in them, while something is traced too. CompileError
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
  std::vector<std::shared_ptr<Specialization>> specializations;
  /// The launcher that ran last, which lives as long as this: what the hot path tries.
  std::atomic<const Launcher*> last_launcher{nullptr};

 private:
  forking::Mutex mutex_;
  std::atomic<std::thread::id> holder_ = std::thread::id();
};

struct LoweredState final : palladium::detail::Counted {
  explicit LoweredState(std::shared_ptr<Specialization> s) : specialization(std::move(s)) {}
  const std::shared_ptr<Specialization> specialization;
};

Lowered make_lowered(std::shared_ptr<Specialization> specialization);

template <class State>
State& state_of(const palladium::detail::Shared<palladium::detail::Counted>& handle) {
  return static_cast<State&>(*handle.operator->());
}

}  // namespace palladium::runtime
