// What launches take on the first GPU.
#pragma once

#include <algorithm>
#include <functional>

#include "runtime/driver/device.hpp"
#include "runtime/driver/memory.hpp"

namespace palladium::benchmark {

/// The least of several stretches of launches, one behind the other, in microseconds. A context of
/// the GPU is current.
inline double gpu_microseconds(const std::function<void()>& launch, float enough_ms = 20) {
  constexpr int stretches = 5;
  const driver::StreamHandle stream{};
  driver::Event begin(driver::Event::Timing::on), end(driver::Event::Timing::on);
  const auto stretch = [&](int launches) {
    begin.record(stream);
    for (int i = 0; i < launches; ++i) launch();
    end.record(stream);
    end.synchronize();
    return end.milliseconds_since(begin);
  };
  for (int i = 0; i < 3; ++i) stretch(1);
  const float once = stretch(3) / 3;
  const int launches = std::clamp(static_cast<int>(enough_ms / std::max(once, 1e-3f)), 3, 1000);
  float least = 1e30f;
  for (int i = 0; i < stretches; ++i) least = std::min(least, stretch(launches));
  return 1e3 * static_cast<double>(least) / launches;
}

}  // namespace palladium::benchmark
