// What the handles Kernel, Lowered and Compiled refer to.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "palladium/kernel.hpp"
#include "runtime/specialization.hpp"

namespace palladium::runtime {

class Launcher;

struct KernelState final : palladium::detail::Counted {
  explicit KernelState(Source s) : source(std::move(s)) {}

  const Source source;
  std::mutex mutex;  // of `specializations`, and of tracing
  std::vector<std::shared_ptr<Specialization>> specializations;
  /// The launcher that ran last, which lives as long as this: what the hot path tries.
  std::atomic<const Launcher*> last_launcher{nullptr};
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
