// A pipeline whose copies a warpgroup of their own asks for, beside those that compute.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "palladium/gpu/pipeline.hpp"

namespace palladium::detail {
class SpecializedLoop;
}

namespace palladium::gpu {

/// For compute_context: the pipeline, to be called once: with Refs, which the body gets behind the
/// blocks and barriers (an accumulator), then with the first carries. It gives the last ones.
class PALLADIUM_API PipelineRun {
 public:
  template <class... Given>
  auto operator()(const Given&... given) const {
    constexpr int count = (0 + ... + values_in<Given>());
    std::vector<Ref> refs;
    Value init[count + 1];
    [[maybe_unused]] Value* to = init;
    (put(refs, to, given), ...);
    const std::vector<Value> last = run(refs, {init, init + count});
    const auto value = [&](int i) { return last[static_cast<std::size_t>(i)]; };
    if constexpr (count == 1)
      return value(0);
    else if constexpr (count > 1)
      return detail::taken<Values<static_cast<std::size_t>(count)>>(value);
  }

 private:
  friend class detail::SpecializedLoop;
  explicit PipelineRun(detail::SpecializedLoop& loop) : loop_(&loop) {}
  template <class T>
  static consteval int values_in() {
    if constexpr (std::same_as<T, Ref>)
      return 0;
    else
      return detail::value_count<T>();
  }
  template <class T>
  static void put(std::vector<Ref>& refs, Value*& to, const T& given) {
    if constexpr (std::same_as<T, Ref>)
      refs.push_back(given);
    else
      detail::put_values(to, given);
  }
  std::vector<Value> run(const std::vector<Ref>& refs, const std::vector<Value>& init) const;
  detail::SpecializedLoop* loop_;
};

/// What computing threads do around the pipeline.
class ComputeContext {
 public:
  ComputeContext() = default;
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, ComputeContext>) ComputeContext(F f)
      : function_(new Model<F>(std::move(f))) {
    static_assert(std::is_invocable_v<F&, const PipelineRun&>,
                  "palladium: a compute_context takes the pipeline: [&](const plgpu::PipelineRun& "
                  "pipeline) { ... }");
  }
  explicit operator bool() const { return static_cast<bool>(function_); }
  void operator()(const PipelineRun& run) const { function_->call(run); }

 private:
  struct Base : detail::Counted {
    virtual void call(const PipelineRun& run) = 0;
  };
  template <class F>
  struct Model final : Base {
    explicit Model(F f) : function(std::move(f)) {}
    void call(const PipelineRun& run) override { function(run); }
    F function;
  };
  detail::Shared<Base> function_;
};

/// Which of pipelines, one behind the other over the same allocations, this is: the first, one in
/// between, the last, or the only one.
struct PipelinePipeline {
  static constexpr int START = 0, STEADY = 1, STOP = 2, ALONE = 3;
};

/// Designators stand in this order.
struct EmitPipelineWarpSpecializedOptions {
  std::vector<Value> grid = {};
  int memory_registers = 0;  ///< of the thread that copies; others get what it leaves. 0: as it is
  std::vector<BlockSpec> in_specs = {};
  std::vector<BlockSpec> out_specs = {};
  int max_concurrent_steps = 2;
  std::string wg_axis = {};  ///< the thread axis
  int num_compute_wgs = 1;   ///< the thread behind these copies
  /// One of PipelinePipeline, or a value that is: blocks of the next pipeline are copied while this
  /// one ends. None: it begins with nothing, and ends when all is done.
  MaybeValue pipeline_state = {};
  bool manual_ready_barriers = false;     ///< the body waits for blocks itself,
  bool manual_consumed_barriers = false;  ///< and says itself when it has read them
  ComputeContext compute_context = {};
  std::optional<int> memory_thread_idx = {};
};

/// Memory and barriers of a pipeline, for several calls of it.
struct PipelineAllocations {
  std::vector<Ref> rooms = {};  ///< of blocks
  std::vector<Ref> ready = {}, consumed = {};
  /// Of steps and pipelines so far, and of those before the last start, in registers.
  std::vector<Ref> counts = {};
  std::vector<Ref> meeting = {};  ///< of computing threads
};

}  // namespace palladium::gpu

namespace palladium::detail {

PALLADIUM_API gpu::PipelineAllocations pipeline_allocations(
    const gpu::EmitPipelineWarpSpecializedOptions& options, const std::vector<Ref>& arrays,
    Location at);
PALLADIUM_API void emit_pipeline_warp_specialized(
    PipelineBody& body, const gpu::EmitPipelineWarpSpecializedOptions& options,
    const std::vector<Ref>& arrays, const gpu::PipelineAllocations* allocations, Location at);

}  // namespace palladium::detail

namespace palladium::gpu {

/// A body that waits for the arrays of its pipeline.
class SpecializedPipeline {
 public:
  SpecializedPipeline(detail::Shared<detail::PipelineBody> body,
                      EmitPipelineWarpSpecializedOptions options, Location at)
      : body_(std::move(body)), options_(std::move(options)), at_(at) {}

  /// All threads of the block call it.
  void operator()(const std::vector<Ref>& arrays) const {
    detail::emit_pipeline_warp_specialized(*body_.operator->(), options_, arrays, nullptr, at_);
  }
  template <std::same_as<Ref>... Arrays>
  void operator()(const Arrays&... arrays) const {
    detail::emit_pipeline_warp_specialized(*body_.operator->(), options_, {arrays...}, nullptr,
                                           at_);
  }
  /// The same over these allocations.
  template <std::same_as<Ref>... Arrays>
  void operator()(const PipelineAllocations& allocations, const Arrays&... arrays) const {
    detail::emit_pipeline_warp_specialized(*body_.operator->(), options_, {arrays...}, &allocations,
                                           at_);
  }
  /// For pipelines of such arrays and such options but for grid, pipeline_state and
  /// compute_context.
  template <std::same_as<Ref>... Arrays>
  PipelineAllocations get_allocations(const Arrays&... arrays) const {
    return detail::pipeline_allocations(options_, {arrays...}, at_);
  }

 private:
  detail::Shared<detail::PipelineBody> body_;
  EmitPipelineWarpSpecializedOptions options_;
  Location at_;
};

/// As emit_pipeline, in a block of num_compute_wgs threads that run the body, all of them each
/// step, and one thread behind these that copies blocks of inputs ahead of them. The body gets,
/// behind the blocks, with manual_ready_barriers a barrier of each input that follows the grid,
/// with manual_consumed_barriers another, at which each computing thread arrives once a step; with
/// `.delay_release = d` that of the step d before, so none in the first d steps.
///
/// Carries are those of compute_context, which says what computing threads do before and behind
/// the pipeline. Blocks of outputs are the threads' common memory: each stores its part.
template <class F>
SpecializedPipeline emit_pipeline_warp_specialized(F body,
                                                   EmitPipelineWarpSpecializedOptions options,
                                                   Location at = here()) {
  return {detail::pipeline_body(std::move(body)), std::move(options), at};
}

}  // namespace palladium::gpu
