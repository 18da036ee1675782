// A loop over blocks of arrays that are copied ahead, and back, by the primitives of copy.hpp.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "palladium/gpu/barrier.hpp"
#include "palladium/gpu/copy.hpp"
#include "palladium/scoped.hpp"

namespace palladium::gpu {

/// Designators stand in this order.
struct EmitPipelineOptions {
  std::vector<Value> grid =
      {};  ///< numbers, or values of the kernel; the last axis is the inner one
  std::vector<BlockSpec> in_specs = {};
  std::vector<BlockSpec> out_specs = {};
  /// Blocks of each input that are there or on their way at once, and of each output.
  int max_concurrent_steps = 1;
};

}  // namespace palladium::gpu

namespace palladium::detail {

/// What the loop of emit_pipeline does around its body, in the calling thread.
class PALLADIUM_API Pipeline {
 public:
  Pipeline(const gpu::EmitPipelineOptions& options, std::vector<Ref> arrays, Location at);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;

  /// Room for the blocks.
  ScratchTypes scratch() const;
  /// Asks for the blocks of the first steps.
  void open(Refs scratch);
  Value steps() const;
  void begin(const Value& step);
  const std::vector<Value>& indices() const;
  /// Of this step, in the order of the arrays.
  const Ref& block(std::size_t number) const;
  void end(const Value& step);
  void close();

 private:
  struct State;
  State* state_;
};

}  // namespace palladium::detail

namespace palladium::gpu {

/// A body that waits for the arrays of its pipeline.
template <class F>
class EmittedPipeline {
 public:
  EmittedPipeline(F body, EmitPipelineOptions options, Location at)
      : body_(std::move(body)), options_(std::move(options)), at_(at) {}

  /// Runs it: Refs in GMEM, those of the inputs, then those of the outputs.
  template <std::same_as<Ref>... Arrays>
  void operator()(const Arrays&... arrays) const {
    detail::Pipeline pipeline(options_, {arrays...}, at_);
    const auto run = [&](Refs scratch) {
      pipeline.open(scratch);
      loop(detail::Bound(0, at_), detail::Bound(pipeline.steps(), at_), [&](Index step) {
        pipeline.begin(step);
        [&]<std::size_t... I>(std::index_sequence<I...>) {
          body_(pipeline.indices(), pipeline.block(I)...);
        }
        (std::make_index_sequence<sizeof...(Arrays)>());
        pipeline.end(step);
      });
      pipeline.close();
    };
    run_scoped(run, pipeline.scratch(), {}, detail::Expression(at_));
  }

 private:
  F body_;
  EmitPipelineOptions options_;
  Location at_;
};

/// `plgpu::emit_pipeline(body, {.grid = {n}, .in_specs = {...}, .out_specs = {...},
/// .max_concurrent_steps = 2})(x, o)`: the calling thread runs the body for every index of the
/// grid, as body(indices, *blocks of inputs, *blocks of outputs), with blocks in SMEM. Those of
/// inputs are copied so many steps ahead. One of an output is the same room for as long as steps
/// that follow one another have it, holds nothing at the first of them, and is stored behind the
/// last.
///
/// Block shapes divide their arrays. A specification without a block shape, or in GMEM, passes the
/// array as it is. A grid of values may have no step.
template <class F>
EmittedPipeline<F> emit_pipeline(F body, EmitPipelineOptions options, Location at = here()) {
  return {std::move(body), std::move(options), at};
}

}  // namespace palladium::gpu
