// What the handles Kernel, Lowered and Compiled refer to.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "codegen/base/forking.hpp"
#include "palladium/kernel.hpp"
#include "runtime/specialization.hpp"

namespace palladium::runtime {

class Launcher;

struct KernelState final : palladium::detail::Counted {
  explicit KernelState(Source s) : source(std::move(s)) {}

  /// Guards `specializations` and what is in them, while something is traced too.
  class Lock {
   public:
    explicit Lock(KernelState& kernel) : lock_(kernel.mutex_) {}

   private:
    const forking::Lock lock_;
  };

  const Source source;
  std::vector<std::shared_ptr<Specialization>> specializations;
  /// The launcher that ran last, which lives as long as this: what the hot path tries.
  std::atomic<const Launcher*> last_launcher{nullptr};

 private:
  forking::Mutex mutex_;
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
