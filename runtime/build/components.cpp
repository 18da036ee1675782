#include "runtime/build/components.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cache/digest.hpp"
#include "cache/text_digest.hpp"
#include "codegen/base/architecture.hpp"
#include "codegen/base/dim.hpp"
#include "codegen/base/format.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "runtime/build/compiler.hpp"
#include "runtime/build/program.hpp"

namespace palladium::runtime {
namespace {

std::string shortened(const std::string& text) {
  constexpr std::size_t longest = 300;
  return text.size() <= longest ? text : "sha256:" + cache::digest(text).hex().substr(0, 16);
}

template <class List>
std::string joined(const List& elements, const auto& text_of) {
  std::string text;
  for (const auto& e : elements) text += (text.empty() ? "" : ", ") + std::string(text_of(e));
  return text;
}

const std::string& itself(const std::string& text) { return text; }
std::string yes_or_no(bool value) { return value ? "true" : "false"; }

std::string region_text(const graph::Graph& g, RegionIndex region) {
  return region == no_region ? "" : graph::to_text(g, region);
}

std::string text_of(const BlockDim& d) {
  if (d.kind == BlockDim::Kind::squeezed) return "squeezed";
  if (d.kind == BlockDim::Kind::blocked) return std::to_string(d.size);
  if (d.kind == BlockDim::Kind::bounded_slice) return fmt::format("bounded_slice({})", d.size);
  if (d.kind == BlockDim::Kind::bounded) return fmt::format("bounded({})", d.size);
  if (d.kind == BlockDim::Kind::whole) return "whole";
  if (d.kind == BlockDim::Kind::indirect) return fmt::format("indirect({})", d.size);
  return fmt::format("element({}, {}, {})", d.size, d.pad_lo, d.pad_hi);
}

std::string text_of(const AbstractValue& v) {
  const std::string arrivals = v.arrivals > 0 ? fmt::format("({})", v.arrivals) : "";
  return (v.is_ref ? std::string("ref ") + to_string(v.memory_space) + arrivals + " " : "") +
         to_string(v.type);
}

/// Collects the parts of a kernel by their names. What is as it is in most kernels is "".
class Parts {
 public:
  void add(const std::string& name, const std::string& text) { parts_[name] = shortened(text); }
  void add_digest(const std::string& name, std::string_view digest) {
    parts_[name] = "sha256:" + std::string(digest.substr(0, 16));
  }
  std::map<std::string, std::string> take() { return std::move(parts_); }

 private:
  std::map<std::string, std::string> parts_;
};

void add_blocks(const graph::Graph& g, const BlockMapping& m, Parts& parts) {
  parts.add(m.origin + ".dtype", std::string(m.array_aval.dtype.name()));
  parts.add(m.origin + ".shape", to_string(m.array_aval.shape));
  parts.add(m.origin + ".block_shape",
            joined(m.block_shape, [](const BlockDim& d) { return text_of(d); }));
  parts.add(m.origin + ".index_map", region_text(g, m.index_map));
  parts.add(m.origin + ".memory_space", to_string(m.memory_space));
  parts.add(m.origin + ".strided", yes_or_no(!m.dense));
  parts.add(m.origin + ".alignment", std::to_string(m.alignment));
  parts.add(m.origin + ".fill", m.fill ? fmt::format("bits 0x{:x}", *m.fill) : "");
  parts.add(m.origin + ".buffers", m.buffers == 0 ? "" : std::to_string(m.buffers));
}

void add_grid(const graph::Graph& g, Parts& parts) {
  const auto number = [](int n) { return std::to_string(n); };
  const GridMapping& m = g.mapping;
  parts.add("grid", joined(m.grid, [](const Dim& d) { return to_string(d); }));
  parts.add("grid_bounds", joined(m.bounds, number));
  parts.add("grid_names", joined(m.grid_names, itself));
  parts.add("dimension_semantics", joined(g.semantics, [](graph::Semantics s) {
              return s == graph::Semantics::sequential ? "sequential" : "parallel";
            }));
  parts.add("vmapped_dims", joined(m.vmapped_dims, number));
  parts.add("cluster", joined(g.cluster, number));
  parts.add("cluster_names", joined(g.cluster_names, itself));
  parts.add("thread_name", g.thread_name);
  parts.add("index_operands",
            fmt::format("{} of {} + {}: {}", m.num_index_operands, m.index_map_tree.num_program_ids,
                        m.index_map_tree.num_index_operands,
                        joined(m.index_map_avals, [](const auto& v) { return text_of(v); })));
  parts.add("get_grid_indices", region_text(g, m.get_grid_indices));
  parts.add("local_grid_env", region_text(g, m.local_grid_env));
}

void add_operands(const graph::Graph& g, Parts& parts) {
  using graph::Argument;
  parts.add("arguments",
            fmt::format("{} in, {} out: {}", g.mapping.num_inputs, g.mapping.num_outputs,
                        joined(g.arguments, [](const auto& a) {
                          const bool is_scalar = a.kind == Argument::Kind::scalar;
                          return fmt::format(
                              "{} {} {}{}", is_scalar ? "scalar" : "array", a.index, a.dtype.name(),
                              a.symbol < 0 ? "" : fmt::format(" is symbol {}", a.symbol));
                        })));
  for (const BlockMapping& m : g.mapping.block_mappings) add_blocks(g, m, parts);
  parts.add("input_output_aliases", joined(g.aliases, [](const graph::Alias& a) {
              return fmt::format("{} is {}", a.input, a.output);
            }));
  parts.add("symbols", std::to_string(g.num_symbols));
  parts.add("symbol_multiples",
            joined(g.facts.multiples, [](std::int64_t n) { return std::to_string(n); }));
  parts.add("short_offsets", yes_or_no(g.short_offsets));
  parts.add("box_extents", g.box_extents ? "yes" : "");
  for (std::size_t i = 0; i < g.mapping.scratch_avals.size(); ++i)
    parts.add(fmt::format("scratch[{}]", i), text_of(g.mapping.scratch_avals[i]));
}

std::string lines_of(const graph::Graph& g) {
  std::string lines = to_string(g.at);
  for (const Location& at : g.where) lines += "\n" + to_string(at);
  return lines;
}

}  // namespace

std::map<std::string, std::string> components_of(const graph::Graph& g, const std::string& arch) {
  (void)parse_architecture(arch);
  Parts parts;
  parts.add("arch", arch);
  parts.add("name", g.name);
  parts.add_digest("text", cache::text_digest);
  parts.add_digest("graph", cache::digest(graph::canonical_bytes(g)).hex());
  add_grid(g, parts);
  add_operands(g, parts);
  parts.add("fma", yes_or_no(g.fma));
  parts.add("approx_math", yes_or_no(g.approx_math));
  parts.add("fast_accumulation", yes_or_no(g.fast_accumulation));
  parts.add("allow_revisit", yes_or_no(g.allow_revisit));
  parts.add("persistent", yes_or_no(g.persistent));
  parts.add("split_k", std::to_string(g.split_k));
  parts.add("grid_rows", g.grid_rows == 0 ? "unset" : std::to_string(g.grid_rows));
  parts.add("whole_arrays", yes_or_no(g.whole_arrays));
  parts.add("globals", std::to_string(g.num_globals));
  parts.add("lineinfo", g.lineinfo ? lines_of(g) : "false");
  for (std::size_t i = 0; i < g.bodies.size(); ++i) {
    const std::string name = g.bodies.size() == 1 ? "body" : fmt::format("body[{}]", i);
    parts.add(name, region_text(g, index(g.bodies[i].region)));
    parts.add(name + ".warpgroups", std::to_string(g.bodies[i].warpgroups));
    parts.add(name + ".num_warps", std::to_string(g.bodies[i].num_warps));
    parts.add(name + ".num_stages", std::to_string(g.bodies[i].num_stages));
    const std::optional<bool> specialize = g.bodies[i].warp_specialize;
    parts.add(name + ".warp_specialize", specialize ? yes_or_no(*specialize) : "unset");
  }
  return parts.take();
}

std::string drift(const cache::Entry& entry) {
  const auto& parts = entry.metadata.components;
  const auto text = parts.find("text"), lineinfo = parts.find("lineinfo");
  const auto& toolchain = nvrtc::toolchain().found;
  const bool is_comparable =
      toolchain && toolchain->id == entry.toolchain && text != parts.end() &&
      lineinfo != parts.end() &&
      text->second == "sha256:" + std::string(cache::text_digest).substr(0, 16);
  if (!is_comparable) return "";
  const nvrtc::Request request =
      request_for(entry.source, entry.metadata.arch, lineinfo->second == "true");
  const nvrtc::Pool::Outcome outcome = run_nvrtc(request, *toolchain);
  if (outcome.end != nvrtc::Pool::End::result || !outcome.result.ok)
    return "its source does not compile any more";
  if (outcome.result.cubin != entry.cubin) return "its source compiles to other bytes now";
  return "";
}

}  // namespace palladium::runtime
