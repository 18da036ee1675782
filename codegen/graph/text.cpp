// The graph as text for people and goldens. Prints broken graphs too: errors about them show it.
#include <charconv>
#include <cmath>
#include <string>

#include "codegen/graph/transform.hpp"

namespace palladium::graph {
namespace {

constexpr int deepest_region = 600;

template <class T>
std::string shortest(T number) {
  char buffer[64];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr};
}

std::string hex(std::uint64_t bits) {
  char buffer[24];
  return "0x" + std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, bits, 16).ptr);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? "\\n" : std::string(1, c);
  }
  return result + '"';
}

}  // namespace

std::string number_text(DType dtype, std::uint64_t bits) {
  switch (dtype.kind()) {
  case DType::None: return hex(bits);
  case DType::Bool: return bits ? "true" : "false";
  case DType::U64: return shortest(bits);
  case DType::F64: {
    const double x = to_double(dtype, bits);
    return std::isnan(x) ? "nan " + hex(bits) : shortest(x);
  }
  case DType::F8E4M3:
  case DType::F8E5M2:
  case DType::F16:
  case DType::BF16:
  case DType::F32: {
    const auto x = static_cast<float>(to_double(dtype, bits));
    return std::isnan(x) ? "nan " + hex(bits) : shortest(x);
  }
  default: return shortest(to_int(dtype, bits));
  }
}

namespace {

class Printer {
 public:
  Printer(const Graph& g, bool locations) : g_(g), locations_(locations) {}

  std::string run(RegionIndex only) {
    region(RegionId{only});
    return std::move(out_);
  }

  std::string run() {
    out_ = "kernel " + g_.name + "\n";
    header();
    for (const BlockMapping& m : g_.mapping.block_mappings) mapping(m);
    for (const Argument& a : g_.arguments)
      if (a.kind == Argument::Kind::scalar)
        line("scalar " + std::to_string(a.index) + ": " + a.dtype.name() +
             (a.symbol < 0 ? "" : " is symbol " + std::to_string(a.symbol)));
    for (const Alias& a : g_.aliases)
      line("alias: input " + std::to_string(a.input) + " is output " + std::to_string(a.output));
    grid_region("get_grid_indices", g_.mapping.get_grid_indices);
    grid_region("local_grid_env", g_.mapping.local_grid_env);
    indent_ = 0;
    next_ = 0;
    for (const Body& body : g_.bodies) {
      if (g_.bodies.size() > 1 || body.warpgroups != 1)
        line("warpgroups " + std::to_string(body.warpgroups));
      if (body.num_warps != 0) line("num_warps " + std::to_string(body.num_warps));
      if (body.num_stages != 0) line("num_stages " + std::to_string(body.num_stages));
      if (body.warp_specialize)
        line(std::string("warp_specialize ") + (*body.warp_specialize ? "1" : "0"));
      region(body.region);
    }
    return std::move(out_);
  }

  std::vector<int> numbers() && { return std::move(numbers_); }

 private:
  void line(const std::string& text) {
    out_.append(static_cast<std::size_t>(indent_), ' ');
    out_ += text;
    out_ += '\n';
  }

  void header() {
    indent_ = 2;
    const GridMapping& m = g_.mapping;
    std::string text = "grid";
    for (std::size_t i = 0; i < m.grid.size(); ++i) {
      text += i ? ", " : " ";
      if (i < m.grid_names.size()) text += m.grid_names[i] + "=";
      text += to_string(m.grid[i]);
      if (i < m.bounds.size() && m.bounds[i] >= 0)
        text += " bounded by input " + std::to_string(m.bounds[i]);
      if (i < g_.semantics.size() && g_.semantics[i] == Semantics::sequential)
        text += " sequential";
    }
    line(text);
    text = "cluster";
    for (std::size_t i = 0; i < g_.cluster.size(); ++i) {
      text += i ? ", " : " ";
      if (i < g_.cluster_names.size()) text += g_.cluster_names[i] + "=";
      text += std::to_string(g_.cluster[i]);
    }
    if (!g_.cluster.empty()) line(text);
    if (!g_.thread_name.empty()) line("thread axis " + g_.thread_name);
    text = "vmapped";
    for (const int d : m.vmapped_dims) text += " " + std::to_string(d);
    if (!m.vmapped_dims.empty()) line(text);
    for (std::size_t s = 0; s < g_.facts.multiples.size(); ++s)
      if (const std::int64_t n = g_.facts.multiples[s]; n != 1)
        line("symbol " + std::to_string(s) + ": multiple of " + std::to_string(n));
    if (g_.short_offsets) line("offsets below 2^31");
    if (g_.box_extents) line("extents below 2^31");
    if (!g_.fma) line("without fma");
    if (g_.approx_math) line("approximate maths");
    if (g_.fast_accumulation) line("fast accumulation");
    if (g_.allow_revisit) line("revisits allowed");
    if (g_.persistent) line("persistent");
    if (g_.split_k > 0) line("sums split among " + std::to_string(g_.split_k));
    if (g_.grid_rows > 0) line("rows of the grid at once: " + std::to_string(g_.grid_rows));
    if (g_.lineinfo) line("line info");
    if (g_.no_auto_barriers) line("no automatic barriers");
    if (g_.cost != CostEstimate{})
      line("cost estimate: " + std::to_string(g_.cost.flops) + " flops, " +
           std::to_string(g_.cost.transcendentals) + " transcendentals, " +
           std::to_string(g_.cost.bytes_accessed) + " bytes");
    for (const auto& [key, value] : g_.metadata) line("metadata " + key + ": " + value);
    if (g_.whole_arrays) line("whole arrays");
    if (g_.num_globals > 0) line("globals " + std::to_string(g_.num_globals));
  }

  void mapping(const BlockMapping& m) {
    std::string text = m.origin + ": " + to_string(m.array_aval) + " in blocks [";
    for (std::size_t i = 0; i < m.block_shape.size(); ++i) {
      const BlockDim& d = m.block_shape[i];
      if (i) text += ",";
      if (d.kind == BlockDim::Kind::squeezed)
        text += "squeezed";
      else if (d.kind == BlockDim::Kind::blocked)
        text += std::to_string(d.size);
      else if (d.kind == BlockDim::Kind::whole)
        text += "whole";
      else if (d.kind == BlockDim::Kind::bounded_slice)
        text += "bounded_slice(" + std::to_string(d.size) + ")";
      else if (d.kind == BlockDim::Kind::bounded)
        text += "bounded(" + std::to_string(d.size) + ")";
      else if (d.kind == BlockDim::Kind::indirect)
        text += "indirect(" + std::to_string(d.size) + ")";
      else
        text += "element(" + std::to_string(d.size) + "," + std::to_string(d.pad_lo) + "," +
                std::to_string(d.pad_hi) + ")";
    }
    text += "]";
    if (!m.dense) text += " strided";
    if (m.alignment != 16) text += " aligned " + std::to_string(m.alignment);
    if (m.fill) text += " filled with " + number_text(m.array_aval.dtype, *m.fill);
    if (m.buffers != 0) text += " buffers " + std::to_string(m.buffers);
    if (is_index_operand(m)) text += " index operand";
    line(text);
    grid_region("", m.index_map);
  }

  bool is_index_operand(const BlockMapping& m) const {
    return &m - g_.mapping.block_mappings.data() < g_.mapping.num_index_operands;
  }

  void grid_region(const char* title, RegionIndex r) {
    if (r == no_region) return;
    if (*title) line(title);
    indent_ += 2;
    next_ = 0;
    region(RegionId{r});
    indent_ -= 2;
  }

  std::string name(ValueId v) const {
    const bool known = index(v) < numbers_.size() && numbers_[index(v)] >= 0;
    return known ? "%" + std::to_string(numbers_[index(v)]) : "%?";
  }

  void define(ValueId v) {
    if (numbers_.size() <= index(v)) numbers_.resize(index(v) + 1, -1);
    numbers_[index(v)] = next_++;
  }

  std::string list(std::span<const ValueId> values) const {
    std::string text;
    for (const ValueId v : values) text += (text.empty() ? " " : ", ") + name(v);
    return text;
  }

  void region(RegionId r) {
    if (index(r) >= g_.regions.size() || depth_ == deepest_region) {
      line("{ ? }");
      return;
    }
    ++depth_;
    const Region& region = g_[r];
    std::string text = "{";
    for (const ValueId p : region.params) {
      if (index(p) >= g_.insts.size()) continue;
      define(p);
      text += " " + name(p) + ": " + to_string(g_[p].type);
    }
    line(text);
    indent_ += 2;
    for (const ValueId v : region.insts) instruction(v);
    if (!region.yields.empty()) line("yield" + list(region.yields));
    indent_ -= 2;
    line("}");
    --depth_;
  }

  void instruction(ValueId v) {
    if (index(v) >= g_.insts.size()) {
      line("%? = ?");
      return;
    }
    const Inst& in = g_[v];
    std::string text = info(in.op).name + operands(in);
    if (in.type.kind != Type::Kind::none || has_results(in.op) || in.op == Op::InlineCuda) {
      define(v);
      const std::string type = to_string(in.type);
      text = name(v) + (type.empty() ? "" : ": " + type) + " = " + text;
    }
    if (locations_) {
      const bool named = index(v) < g_.names.size() && !g_.names[index(v)].empty();
      const std::string at = to_string(g_.location(v));
      if (named || !at.empty())
        text += "  ;" + (named ? " " + g_.names[index(v)] : "") + (at.empty() ? "" : " " + at);
    }
    line(text);
    indent_ += 2;
    for (const RegionId r : in.regions) region(r);
    indent_ -= 2;
  }

  std::string operands(const Inst& in) const {
    const std::vector<std::int64_t>& ints = in.attr.ints;
    const auto at = [&](std::size_t i) { return i < ints.size() ? ints[i] : -1; };
    std::string text = list(in.args);
    switch (in.op) {
    case Op::Constant: return " " + number_text(in.type.dtype, in.attr.bits);
    case Op::Load:
    case Op::Store:
    case Op::Swap: {
      const MemoryView m = MemoryView::of(in);
      text = " " + name(m.ref);
      if (m.value != no_value) text += ", " + name(m.value);
      if (m.mask != no_value) text += " mask " + name(m.mask);
      if (m.other != no_value) text += " other " + name(m.other);
      return text;
    }
    case Op::Atomic: {
      const MemoryView m = MemoryView::of(in);
      text = (at(2) < 0 || at(2) >= num_updates ? " ? "
                                                : " " + std::string(name_of(update_of(in))) + " ") +
             name(m.ref) + ", " + name(m.value);
      if (m.mask != no_value) text += " mask " + name(m.mask);
      if (m.other != no_value) text += " expected " + name(m.other);
      return text;
    }
    case Op::At: return subscript(in);
    case Op::DebugPrint:
    case Op::DebugCheck: return " " + std::to_string(at(0)) + " " + quoted(in.attr.text) + text;
    case Op::ScopeEvent:
      return " " + std::to_string(at(0)) + (at(1) == 1 ? " ends " : " begins ") +
             quoted(in.attr.text) + " of " + std::to_string(at(2)) +
             (at(3) == 1 ? " of warps" : "") + (at(4) == 1 ? " cut" : "");
    case Op::PrintLayout: return " " + std::to_string(at(0)) + " " + quoted(in.attr.text) + text;
    case Op::InlineCuda: text += " " + quoted(in.attr.text); break;
    case Op::BarrierWait: return text + (waits_in_turn(in) ? " in turn" : "");
    case Op::Dot:
    case Op::Wgmma:
    case Op::WgmmaHeld:
      if (at(0) == 1) text += " trans_a";
      if (at(1) == 1) text += " trans_b";
      if (at(2) == static_cast<std::int64_t>(Precision::tf32)) text += " tf32";
      return text;
    case Op::Loop:
      if (in.args.size() > 2) {
        const std::span<const ValueId> args = in.args;
        text = list(args.first(2)) + " carry" + list(args.subspan(2));
      }
      if (at(0) != 1) text += " step " + std::to_string(at(0));
      if (at(1) != 1) text += " unroll " + std::to_string(at(1));
      return text;
    case Op::AxisIndex:
    case Op::AxisSize: {
      constexpr const char* kinds[] = {"grid", "cluster", "thread"};
      const bool known = at(0) >= 0 && at(0) < 3;
      return std::string(" ") + (known ? kinds[at(0)] : "?") + " " + std::to_string(at(1));
    }
    default: break;
    }
    if (!ints.empty()) {
      text += " [";
      for (std::size_t i = 0; i < ints.size(); ++i)
        text += (i ? "," : "") + std::to_string(ints[i]);
      text += "]";
    }
    return text;
  }

  std::string subscript(const Inst& in) const {
    if (in.args.empty() || in.attr.ints.size() % 4 != 0) return " ?";
    const Subscript s = Subscript::of(in);
    const bool known = index(in.args[0]) < g_.insts.size();
    const Extents& shape = known ? g_[in.args[0]].type.shape : in.type.shape;
    std::string text = " " + name(in.args[0]) + " [";
    std::size_t next = 1;
    for (std::size_t i = 0; i < s.dims.size(); ++i) {
      const SubscriptDim& d = s.dims[i];
      const bool given = d.dynamic && next < in.args.size();
      const std::string start = given       ? name(in.args[next++])
                                : d.dynamic ? "%?"
                                            : std::to_string(d.start);
      if (i) text += ", ";
      if (!d.is_slice) {
        text += start;
      } else if (!d.dynamic && i < shape.size() && d.size == shape[i] && d.stride == 1) {
        text += ":";
      } else {
        text += "ds(" + start + "," + std::to_string(d.size);
        if (d.stride != 1) text += "," + std::to_string(d.stride);
        text += ")";
      }
    }
    return text + "]";
  }

  const Graph& g_;
  bool locations_;
  std::string out_;
  int indent_ = 0, depth_ = 0;
  int next_ = 0;
  std::vector<int> numbers_;
};

}  // namespace

std::string to_text(const Graph& g, bool locations) { return Printer(g, locations).run(); }

std::vector<int> text_numbers(const Graph& g) {
  Printer printer(g, false);
  printer.run();
  std::vector<int> numbers = std::move(printer).numbers();
  numbers.resize(g.insts.size(), -1);
  return numbers;
}

std::string to_text(const Graph& g, RegionIndex region) { return Printer(g, false).run(region); }

}  // namespace palladium::graph
