// Which part of the work a block does next: loops over what the blocks of a grid share, and orders
// in which neighbours in time are neighbours in space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "palladium/control.hpp"

namespace palladium::gpu {

/// What there is to do: numbers, or values of the kernel.
class LoopGrid {
 public:
  LoopGrid(std::initializer_list<Value> sizes, Location at = here()) : sizes(sizes), at(at) {}
  LoopGrid(std::vector<Value> sizes, Location at = here()) : sizes(std::move(sizes)), at(at) {}

  std::vector<Value> sizes;
  Location at;
};

/// An iteration of one who takes part in a loop.
struct NDLoopInfo {
  std::vector<Value> index;    ///< in the grid
  Value local_index;           ///< how many came before, of the same thread
  Value num_local_steps = {};  ///< of an nd_loop
};

struct NDLoopOptions {
  std::vector<std::string> collective_axes = {};  ///< whose programs share the iterations
  /// Extents of tiles, which divide the grid: those of a tile follow one another.
  std::vector<std::int64_t> tiling = {};
};

struct DynamicSchedulingOptions {
  std::string thread_axis = {};  ///< of a block of several threads, all of which run it
  /// Blocks that differ along these alone go through the same indices together; all run the loop.
  std::vector<std::string> cluster_axes = {};
};

}  // namespace palladium::gpu

namespace palladium::detail {

class PALLADIUM_API NDLoop {
 public:
  NDLoop(gpu::LoopGrid grid, gpu::NDLoopOptions options);
  const Value& steps() const { return steps_; }
  gpu::NDLoopInfo at(const Value& step) const;
  Location location() const { return grid_.at; }

 private:
  gpu::LoopGrid grid_;
  gpu::NDLoopOptions options_;
  Value rank_, size_, steps_;  // of the program among those that share, their number
};

class PALLADIUM_API DynamicLoop {
 public:
  DynamicLoop(std::vector<std::string> grid_names, gpu::DynamicSchedulingOptions options,
              Location at);
  ~DynamicLoop();
  DynamicLoop(const DynamicLoop&) = delete;
  /// What is there first; whether it is something; what follows it.
  Value first();
  Value is_there(const Value& item) const;
  gpu::NDLoopInfo begin(const Value& item, const Value& step);
  Value next(const Value& step);
  void close(const Value& steps);
  Location location() const;

 private:
  struct State;
  State* state_;
};

}  // namespace palladium::detail

namespace palladium::gpu {

/// `plgpu::nd_loop({m, n}, {.collective_axes = {"sm"}}, [&](const plgpu::NDLoopInfo& it) { ... })`:
/// the programs along these axes share the indices of the grid, row by row; one has each
/// axis_size-th of them, from axis_index on. The body takes and returns carries as that of
/// pl::loop.
template <class F, class... Init>
auto nd_loop(LoopGrid grid, NDLoopOptions options, F&& body, Init&&... init) {
  const detail::NDLoop loop(std::move(grid), std::move(options));
  const Location at = loop.location();
  return palladium::loop(
      detail::Bound(0, at), detail::Bound(loop.steps(), at),
      [&](Index step, auto... carries) { return body(loop.at(step), std::move(carries)...); },
      std::forward<Init>(init)...);
}

/// The names of grid axes, as `{"m", "n"}`.
class AxisNames {
 public:
  AxisNames(std::initializer_list<const char*> names, Location at = here())
      : names(names.begin(), names.end()), at(at) {}
  AxisNames(std::vector<std::string> names, Location at = here())
      : names(std::move(names)), at(at) {}

  std::vector<std::string> names;
  Location at;
};

/// The programs of a grid, which stands for the work that there is, as those blocks run them that
/// are free: who comes first takes the next index from a counter, and late blocks find nothing
/// left. `plgpu::dynamic_scheduling_loop({"m", "n"}, {.thread_axis = "wg"}, [&](const
/// plgpu::NDLoopInfo& it) { ... })`; all threads of a block run it, and the body takes and returns
/// carries as that of pl::loop.
template <class F, class... Init>
auto dynamic_scheduling_loop(AxisNames grid_names, DynamicSchedulingOptions options, F&& body,
                             Init&&... init) {
  using R = std::invoke_result_t<F&, const NDLoopInfo&, detail::Carried<Init>...>;
  static_assert(detail::closes<R, Init...>,
                "palladium: the body of a loop returns as many values as were given to start with: "
                "pl::carry(a, b, ...)");
  constexpr int own = 2, count = (0 + ... + detail::value_count<Init>());
  detail::DynamicLoop loop(std::move(grid_names.names), std::move(options), grid_names.at);
  const detail::Start<Init...> start(std::forward<Init>(init)...);
  Value values[own + count] = {loop.first(), Value(0)};
  for (int i = 0; i < count; ++i) values[own + i] = start.values[i];
  const detail::Expression expression(grid_names.at);
  detail::Building building(values, own + count, expression);
  const Value goes_on = loop.is_there(building.carry(0));
  building.close(&goes_on, 1);
  const Value item = building.carry(0), step = building.carry(1);
  const NDLoopInfo info = loop.begin(item, step);
  const auto carry = [&](int i) { return building.carry(own + i); };
  Value* to = values + own;
  if constexpr (std::is_void_v<R>)
    body(info);
  else
    detail::put_values(to, detail::call_with_carries<Init...>(body, carry, info));
  values[0] = loop.next(step);
  values[1] = step + 1;
  building.close(values, own + count);
  loop.close(building.result(1));
  if constexpr (!std::is_void_v<R>)
    return detail::taken<typename detail::Outcome<R, Init...>::type>(
        [&](int i) { return building.result(own + i); });
}

/// The place of a number in a plane of rows and columns along a curve that turns at the ends of
/// strips: strips of `tile_width` of the dimension `minor_dim` follow one another, and every other
/// one is gone through backwards. `auto [row, column] = plgpu::planar_snake(i, {rows, columns}, 0,
/// 8)`.
PALLADIUM_API Values<2> planar_snake(const Value& lin_idx, const LoopGrid& shape, int minor_dim,
                                     int tile_width);

}  // namespace palladium::gpu
