#include "runtime/launch/first_run.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "codegen/base/checked.hpp"
#include "codegen/base/format.hpp"
#include "codegen/base/once.hpp"
#include "codegen/cuda/emit.hpp"
#include "runtime/build/dump.hpp"
#include "runtime/build/key.hpp"
#include "runtime/device/target.hpp"

namespace palladium::runtime {
namespace {

/// The architecture whose blocks have most shared memory.
constexpr const char* largest_arch = "sm_90a";

/// Whether blocks, scratch and the largest value are so large that their shared memory is worth
/// being looked at: below, none of what is made of them fills a GPU's.
bool may_need_much(const graph::Graph& g) {
  constexpr std::int64_t small = 64 << 10;
  Checked all = 0;
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < g.insts.size(); ++i) {
    const graph::Type& type = g.insts[i].type;
    const bool is_memory = type.is_ref() && type.space != Space::gmem &&
                           type.space != Space::semaphore && !g.is_view(graph::ValueId(i));
    if (!is_memory && !type.is_value()) continue;
    const Checked bytes = checked_product(type.shape) * type.dtype.bytes();
    if (is_memory)
      all += bytes;
    else
      largest = std::max(largest, bytes.value_or(INT64_MAX));
  }
  return !all.within(0, small) || largest > small;
}

void warn_of_shared_memory(const graph::Graph& g) {
  if (!may_need_much(g)) return;
  if (const std::string problem = cuda::shared_memory_problem(g, text_options(largest_arch));
      !problem.empty())
    warn::once("the interpreter runs what no GPU can: " + problem);
}

std::string cure_of(const KernelState& kernel, const std::string& extent) {
  if (!kernel.source.function)
    return "options that are a value know integers only; as a function, [](pl::ShapeDtype x) "
           "{ return pl::PallasCallOptions{...}; }, they get sizes that stay symbols";
  return "the options function or the body reads " + extent +
         " as an integer: in a block's shape, a comparison, or a load of a whole Ref; passed on as "
         "it is, to out_type, to a grid of pl::cdiv(size, block) with blocks of a fixed size, to a "
         "block of pl::bounded(size, most), or to a loop over slices of the Ref, it stays a "
         "symbol, "
         "and one kernel serves all sizes";
}

}  // namespace

void tell_before_first_run(Variant& variant, Target target) {
  if (target == Target::cuda || variant.is_told.exchange(true)) return;
  const Specialization& s = *variant.specialization;
  if (target == Target::interpreter) warn_of_shared_memory(s.graph);
  dump(s, default_arch(), to_string(target));
}

void tell_of_sizes(const KernelState& kernel) {
  constexpr std::size_t many = 2;
  if (kernel.variants.size() < many) return;
  const graph::Graph& last = kernel.variants.back()->specialization->graph;
  const auto mappings = [](const graph::Graph& g) -> const std::vector<BlockMapping>& {
    return g.mapping.block_mappings;
  };
  for (std::size_t m = 0; m < static_cast<std::size_t>(last.mapping.num_inputs); ++m) {
    const Shape& shape = mappings(last)[m].array_aval.shape;
    for (int d = 0; d < shape.rank(); ++d) {
      if (!shape[d].is_static()) continue;
      std::set<std::int64_t> others;
      for (const auto& variant : kernel.variants) {
        const graph::Graph& g = variant->specialization->graph;
        if (m >= mappings(g).size()) continue;
        const Shape& other = mappings(g)[m].array_aval.shape;
        if (other.rank() == shape.rank() && other[d].is_static() &&
            other[d].value() != shape[d].value())
          others.insert(other[d].value());
      }
      if (others.size() != many - 1) continue;
      const std::string extent = fmt::format("{}.shape[{}]", mappings(last)[m].origin, d);
      warn::once(
          fmt::format("kernel '{}' is traced anew for the {}nd size of {}, and each is "
                      "compiled by itself: {}\n  at {}",
                      last.name, many, extent, cure_of(kernel, extent), to_string(last.at)));
    }
  }
}

}  // namespace palladium::runtime
