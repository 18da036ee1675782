// What the handles of a kernel's artefacts refer to.
#pragma once

#include <memory>
#include <utility>

#include "palladium/kernel.hpp"
#include "runtime/call/specialization.hpp"

namespace palladium::runtime {

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
