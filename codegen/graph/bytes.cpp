// The bytes of all that decides a kernel's meaning, for keys: length-prefixed, so that no two
// graphs share them.
#include <concepts>
#include <span>
#include <string>

#include "codegen/base/dim.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/graph/uses.hpp"

namespace palladium::graph {
namespace {

class Writer {
 public:
  explicit Writer(const Graph& g)
      : g_(g), value_(g.insts.size()), region_(g.regions.size(), no_region) {}

  std::string run() {
    text("palladium graph 3");
    text(g_.name);
    const GridMapping& m = g_.mapping;
    list(m.grid, [&](const Dim& d) { dim(d); });
    list(m.bounds, [&](int b) { number(b); });
    list(m.grid_names, [&](const std::string& s) { text(s); });
    list(g_.semantics, [&](Semantics s) { number(static_cast<std::uint64_t>(s)); });
    list(g_.cluster, [&](int n) { number(n); });
    list(g_.cluster_names, [&](const std::string& s) { text(s); });
    text(g_.thread_name);
    list(g_.arguments, [&](const Argument& a) {
      number(static_cast<std::uint64_t>(a.kind));
      number(a.index);
      number(a.dtype.kind());
      number(a.symbol);
    });
    list(g_.aliases, [&](const Alias& a) {
      number(a.input);
      number(a.output);
    });
    number(g_.num_symbols);
    list(g_.facts.multiples, [&](std::int64_t n) { number(n); });
    number(static_cast<std::uint64_t>(g_.short_offsets ? 1 : g_.box_extents ? 2 : 0));
    number(g_.fma);
    number(g_.approx_math);
    number(g_.fast_accumulation);
    number(g_.allow_revisit);
    number(g_.grid_rows);
    number(g_.split_k);
    number(g_.persistent);
    number(static_cast<std::uint64_t>((g_.lineinfo ? 1 : 0) + (g_.no_auto_barriers ? 2 : 0)));
    number(g_.whole_arrays);
    number(g_.num_globals);
    location(g_.at);
    list(m.block_mappings, [&](const BlockMapping& b) { mapping(b); });
    number(m.index_map_tree.num_program_ids);
    number(m.index_map_tree.num_index_operands);
    list(m.index_map_avals, [&](const AbstractValue& v) { abstract(v); });
    list(m.vmapped_dims, [&](int d) { number(d); });
    list(m.scratch_avals, [&](const AbstractValue& v) { abstract(v); });
    number(m.num_index_operands);
    number(m.num_inputs);
    number(m.num_outputs);
    region(m.get_grid_indices);
    region(m.local_grid_env);
    list(g_.bodies, [&](const Body& b) {
      number(b.warpgroups);
      number(b.num_warps);
      number(b.num_stages);
      number(b.warp_specialize ? 1 + *b.warp_specialize : 0);
      region(index(b.region));
    });
    return std::move(out_);
  }

 private:
  // Seven bits a byte, least significant first: most numbers are small.
  void number(std::uint64_t n) {
    for (; n >= 0x80; n >>= 7) out_ += static_cast<char>(n | 0x80);
    out_ += static_cast<char>(n);
  }
  // Negative numbers are rare: as their 64-bit pattern.
  template <std::signed_integral T>
  void number(T n) {
    number(static_cast<std::uint64_t>(static_cast<std::int64_t>(n)));
  }
  void number(bool b) { number(static_cast<std::uint64_t>(b)); }
  void number(DType::Kind kind) { number(static_cast<std::uint64_t>(kind)); }

  void text(std::string_view s) {
    number(static_cast<std::uint64_t>(s.size()));
    out_ += s;
  }

  template <class List, class Write>
  void list(const List& elements, const Write& write) {
    number(static_cast<std::uint64_t>(elements.size()));
    for (const auto& e : elements) write(e);
  }

  void dim(const Dim& d) {
    if (d.is_static()) {
      number(static_cast<std::uint64_t>(detail::DimOp::constant));
      number(d.value());
      return;
    }
    const DimNode n = dim_node(d);
    number(static_cast<std::uint64_t>(n.op));
    if (n.op == detail::DimOp::symbol) {
      number(static_cast<std::uint64_t>(n.symbol));
      return;
    }
    dim(n.a);
    dim(n.b);
  }

  void array(const ShapeDtype& t) {
    number(t.dtype.kind());
    list(std::span(t.shape.begin(), t.shape.end()), [&](const Dim& d) { dim(d); });
  }

  void abstract(const AbstractValue& v) {
    array(v.type);
    number(v.is_ref);
    number(static_cast<std::uint64_t>(v.memory_space));
    if (v.memory_space == Space::barrier) number(v.arrivals);
    if (v.memory_space == Space::smem) number(v.swizzle);
  }

  void mapping(const BlockMapping& b) {
    list(b.block_shape, [&](const BlockDim& d) {
      number(static_cast<std::uint64_t>(d.kind));
      number(d.size);
      number(d.pad_lo);
      number(d.pad_hi);
    });
    array(b.array_aval);
    number(static_cast<std::uint64_t>(b.memory_space));
    number(b.dense);
    number(b.alignment);
    number(b.fill.has_value());
    number(b.fill.value_or(0));
    number(b.buffers);
    region(b.index_map);
  }

  void type(const Type& t) {
    number(static_cast<std::uint64_t>(t.kind));
    number(t.dtype.kind());
    list(t.shape, [&](std::int64_t n) { number(n); });
    number(static_cast<std::uint64_t>(t.space));
    if (t.space == Space::barrier) number(t.arrivals);
    if (t.space == Space::smem) number(t.swizzle);
  }

  // Where the text names lines, they are part of it.
  void location(Location at) {
    if (!g_.lineinfo) return;
    text(at.file);
    number(at.line);
  }

  void use(ValueId v) { number(value_[index(v)]); }

  // In place where it is met first (an index map that several arrays share: later its number).
  void region(RegionIndex r) {
    if (r == no_region) return number(std::uint64_t(0));
    if (region_[r] != no_region) {
      number(std::uint64_t(1));
      number(static_cast<std::uint64_t>(region_[r]));
      return;
    }
    number(std::uint64_t(2));
    region_[r] = regions_++;
    const Region& region = g_.regions[r];
    list(region.params, [&](ValueId v) { instruction(v); });
    list(region.insts, [&](ValueId v) { instruction(v); });
    list(region.yields, [&](ValueId v) { use(v); });
  }

  void instruction(ValueId v) {
    value_[index(v)] = values_++;
    const Inst& in = g_[v];
    // By name: the numbers of ops change when the table grows.
    text(info(in.op).name);
    type(in.type);
    list(in.attr.ints, [&](std::int64_t n) { number(n); });
    number(in.attr.bits);
    if (says_something(in.op)) text(in.attr.text);
    list(in.args, [&](ValueId a) { use(a); });
    location(g_.location(v));
    list(in.regions, [&](RegionId r) { region(index(r)); });
  }

  const Graph& g_;
  std::string out_;
  std::vector<std::uint64_t> value_;
  std::vector<RegionIndex> region_;
  std::uint64_t values_ = 0;
  RegionIndex regions_ = 0;
};

}  // namespace

std::string canonical_bytes(const Graph& g) { return Writer(g).run(); }

}  // namespace palladium::graph
