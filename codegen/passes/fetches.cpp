#include "codegen/passes/fetches.hpp"

#include <algorithm>

#include "codegen/passes/addresses.hpp"
#include "codegen/passes/analysis.hpp"
#include "codegen/passes/iteration_bounds.hpp"

namespace palladium::passes {

using graph::Inst;
using graph::Op;
using thread::Affine;

namespace {

constexpr std::int64_t aligned_bytes = 16, room_bytes = 128;  // in global, in shared memory
constexpr std::int64_t most_rows = 256;                       // of a box
constexpr int most_dimensions = 5;

}  // namespace

Fetches::Fetches(const Program& l) : l_(l), g_(l.graph), indices_(l.graph, exprs_), guards_(l) {
  for (int s = 0; s < g_.num_symbols; ++s)
    symbols_.push_back(exprs_.variable(
        exprs_.declare({.name = "", .type = i64, .facts = facts_of_symbol(g_, s)})));
}

// x, or where(x is in bounds, x, 0), or rows of that; x alone may have a mask.
std::optional<ValueId> Fetches::load_of(ValueId operand) {
  const ValueId rows = rows_of(g_, operand), load = read_by(g_, operand);
  if (g_[load].op != Op::Load) return {};
  if (operand != load && graph::MemoryView::of(g_[load]).mask != graph::no_value) return {};
  if (rows != load && !guards_.guards(l_.window_loaded(load), rows, load, g_[load].args[0]))
    return {};
  return load;
}

// Whether the load has a mask, where it is known before anything is read which blocks that
// concerns. What a mask hides and nothing stands in for may be what the array has there.
bool Fetches::is_masked(ValueId load, std::optional<lowered::IfMasked>& masked) const {
  const graph::MemoryView m = graph::MemoryView::of(g_[load]);
  if (m.mask == graph::no_value || m.other == graph::no_value) return false;
  masked.reset();
  if (g_[m.other].op != Op::Constant || g_[m.other].attr.bits != 0 ||
      g_[m.mask].type.shape != g_[load].type.shape)
    return true;
  const IterationNumber none;
  std::optional<Known> whole = IterationBounds(l_, none).of(m.mask, true);
  if (!whole) return true;
  masked = lowered::IfMasked{.load = load, .sums = std::move(whole->sums), .body = {}};
  for (const auto& [v, holds] : whole->conditions)
    (holds ? masked->holding : masked->failing).push_back(v);
  return true;
}

// How many elements are in a row of the array.
thread::Facts Fetches::row_facts(const BlockMapping& m) {
  const int last = m.array_aval.shape.rank() - 1;
  return exprs_.facts(expr_of_dim(exprs_, m.array_aval.shape[last], symbols_));
}

// Whether rows, and boxes along them, begin where TMA can: at multiples of 16 bytes.
bool Fetches::is_aligned(const BlockMapping& m, ValueId view) {
  const std::int64_t n = aligned_bytes / m.array_aval.dtype.bytes();
  const std::size_t last = m.block_shape.size() - 1;
  const BlockDim& b = m.block_shape[last];
  if (m.alignment < aligned_bytes || b.kind == BlockDim::Kind::squeezed) return false;
  if (m.num_indices() != m.block_shape.size()) return false;  // TMA knows of the array's end alone
  if ((m.dense ? row_facts(m) : facts_of_stride(m)).multiple % n != 0) return false;
  if (m.index_map != no_region) {
    const ValueId at = g_[graph::RegionId{m.index_map}].yields[last];
    const std::int64_t step = b.step();
    if (exprs_.facts(indices_.expr(at)).multiple % n * (step % n) % n != 0) return false;
  }
  for (; g_[view].op == Op::At; view = g_[view].args[0]) {
    const std::vector<graph::SubscriptDim> dims = graph::Subscript::of(g_[view]).dims;
    if (dims.back().start % n != 0) return false;
    if (dims.back().dynamic && exprs_.facts(indices_.expr(g_[view].args.back())).multiple % n != 0)
      return false;
  }
  return true;
}

std::optional<Fetches::Found> Fetches::find(ValueId operand, const Extents& shape, int swizzle,
                                            int padded_k, std::string& why) {
  const auto refuse = [&](const char* reason) {
    why = reason;
    return std::nullopt;
  };
  if (l_.warpgroups > 1) return refuse("several warpgroups run bodies of their own");
  const std::optional<ValueId> load = load_of(operand);
  if (!load) {
    // What is computed was not to be fetched.
    if (g_[read_by(g_, operand)].op != Op::Load) return std::nullopt;
    return refuse("a mask asks more than where its array ends");
  }
  std::optional<lowered::IfMasked> masked;
  if (is_masked(*load, masked) && !masked)
    return refuse("which elements its mask leaves out is known for each alone");
  const Window& w = l_.window_loaded(*load);
  if (!w.is_direct() || !w.read_only || w.mapping < 0)
    return refuse("its memory is written, or in shared memory already");
  const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
  if (m.fill.value_or(0) != 0) return refuse("what lies beyond its array is another number than 0");
  // Rows and columns beyond the operand add to nothing that anybody reads; what is beyond K does.
  const auto k = static_cast<std::size_t>(padded_k);
  if (padded_k >= 0 && g_[operand].type.shape[k] != shape[k])
    return refuse("its extent along K is padded");
  const std::optional<TensorBox> box = box_of(*load, shape, swizzle, why);
  return box ? std::optional(Found{*load, *box, std::move(masked)}) : std::nullopt;
}

std::optional<TensorBox> Fetches::box_of_load(ValueId load, int swizzle, std::string& why) {
  const Window& w = l_.window_loaded(load);
  if (!w.is_direct() || !w.read_only || w.mapping < 0 ||
      graph::MemoryView::of(g_[load]).mask != graph::no_value) {
    why = "it is more than a load of what nobody writes";
    return {};
  }
  if (g_.mapping.block_mappings[w.mapping].fill.value_or(0) != 0) {
    why = "what lies beyond its array is another number than 0";
    return {};
  }
  return swizzle > 0 ? box_of(load, g_[load].type.shape, swizzle, why)
                     : box_of_rows_loaded(load, why);
}

// Rows one behind the other, in the order of their array.
std::optional<TensorBox> Fetches::box_of_rows_loaded(ValueId load, std::string& why) {
  const ValueId view = graph::MemoryView::of(g_[load]).ref;
  const BlockMapping& m =
      g_.mapping.block_mappings[l_.windows[l_.window_of[g_.base(view)]].mapping];
  std::optional<std::vector<int>> dimensions = box_dimensions(g_, view);
  if (dimensions) std::erase_if(*dimensions, [](int d) { return d < 0; });
  if (!dimensions || dimensions->empty() || !std::ranges::is_sorted(*dimensions) ||
      dimensions->back() + 1 != std::ssize(g_[load].type.shape)) {
    why = "its view is none of rows";
    return {};
  }
  return lies_in_array(m, view, 1, why) ? box_of_rows(view, why) : std::nullopt;
}

std::optional<TensorBox> Fetches::box_of_window(const Window& w, std::string& why) {
  const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
  const Storage& s = l_.storages[w.storage()];
  const auto refuse = [&](const char* reason) {
    why = reason;
    return std::nullopt;
  };
  if (!lies_in_array(m, w.root, 2, why)) return {};
  if (w.staged().lead != 0 || s.shared().row_stride != s.shape.back() ||
      s.shared().row_swizzle != 0)
    return refuse("its rows lie apart in shared memory");
  TensorBox box{.mapping = w.mapping};
  std::size_t next = 0;
  for (const BlockDim& b : m.block_shape) {
    const std::int64_t extent = b.kind == BlockDim::Kind::squeezed ? 1 : s.shape[next++];
    if (extent > most_rows) return refuse("its block has more than 256 elements in a dimension");
    box.box.push_back(static_cast<std::int32_t>(extent));
  }
  if (s.shape.back() * s.dtype.bytes() % aligned_bytes != 0)
    return refuse("its rows are no multiples of 16 bytes");
  return box;
}

std::optional<TensorBox> Fetches::box_of_store(ValueId store, int swizzle, std::string& why) {
  const graph::MemoryView m = graph::MemoryView::of(g_[store]);
  const BlockMapping& array =
      g_.mapping.block_mappings[l_.windows[l_.window_of[g_.base(m.ref)]].mapping];
  if (!ends_aligned(array)) {
    why = "its rows do not end at multiples of 16 bytes";
    return {};
  }
  if (std::ranges::any_of(array.block_shape, [](auto& b) { return b.pad_lo + b.pad_hi > 0; })) {
    why = "its blocks have padding";
    return {};
  }
  return box_of(store, g_[m.value].type.shape, swizzle, why);
}

// TMA stores 16 bytes at once, over the end of a row too.
bool Fetches::ends_aligned(const BlockMapping& m) {
  const std::int64_t n = aligned_bytes / m.array_aval.dtype.bytes();
  return m.array_aval.shape.rank() == 0 || row_facts(m).multiple % n == 0;
}

namespace {

// What TMA makes of elements in global memory.
bool reduces(graph::Update how, DType t) {
  const bool is_wide = t == i64 || t == u64;
  switch (how) {
  case graph::Update::add:
    return t == i32 || t == u32 || t == u64 || t == f32 || t == f16 || t == bf16;
  case graph::Update::min:
  case graph::Update::max: return t == i32 || t == u32 || is_wide || t == f16 || t == bf16;
  case graph::Update::increment:
  case graph::Update::decrement: return t == u32;
  default: return t == i32 || t == u32 || is_wide;
  }
}

}  // namespace

std::optional<TensorBox> Fetches::box_of_copy(ValueId copy, Panels& panels, std::string& why) {
  const graph::CopyView c = graph::CopyView::of(g_[copy]);
  const auto refuse = [&](const char* reason) {
    why = reason;
    return std::nullopt;
  };
  const int mapping = g_.mapping_of(g_.root(c.global));
  const BlockMapping& m = g_.mapping.block_mappings[static_cast<std::size_t>(mapping)];
  const std::optional<std::vector<int>> dimensions = box_dimensions(g_, c.global);
  if (!dimensions) return refuse("its view in global memory is no box");
  if (!lies_in_array(m, c.global, 1, why)) return {};
  if (graph::is_copy_to_global(g_[copy].op) && !ends_aligned(m))
    return refuse("its rows do not end at multiples of 16 bytes");
  if (g_[copy].op == Op::ReduceToGlobal && !reduces(graph::update_of(g_[copy]), m.array_aval.dtype))
    return refuse("TMA has no such reduction of these elements");
  if (const int swizzle = panels.swizzle(g_.base(c.shared)); swizzle > 0) {
    const std::optional<MatrixView> view = panels.matrices(c.shared);
    const Extents &all = g_[g_.base(c.shared)].type.shape, &shown = g_[c.shared].type.shape;
    const std::int64_t width = swizzle / g_[c.shared].type.dtype.bytes();
    // Patterns begin every 8 rows; what is all that there is begins with one.
    const bool is_all = g_.is_base(c.shared) && all.back() == width;
    const bool begins = view && view->row_multiple % 8 == 0 && all[all.size() - 2] % 8 == 0;
    if (!view || !(begins || is_all) || view->column_multiple % width != 0 ||
        view->columns % width != 0)
      return refuse(
          "what it is of in shared memory, which lies in panels, is none of whole panels");
    if (shown.size() == 2 || is_all) return box_of_view(c.global, shown, swizzle, why);
    return box_of_matrices(c.global, swizzle, why);
  }
  if (!is_run(c.shared, room_bytes))
    return refuse("its view in shared memory is no run from 128 bytes");
  return box_of_rows(c.global, why);
}

std::optional<TensorBox> Fetches::box_near(ValueId view, std::string& why) {
  if (!box_dimensions(g_, view)) {
    why = "its view is no box";
    return {};
  }
  const BlockMapping& m =
      g_.mapping.block_mappings[static_cast<std::size_t>(g_.mapping_of(g_.root(view)))];
  return lies_in_array(m, view, 1, why) ? box_of_rows(view, why) : std::nullopt;
}

// Of rows one behind the other: one of the boxes that follow each other along the first dimension.
std::optional<TensorBox> Fetches::box_of_rows(ValueId view, std::string& why) {
  const auto refuse = [&](const char* reason) {
    why = reason;
    return std::nullopt;
  };
  const int mapping = g_.mapping_of(g_.root(view));
  const BlockMapping& m = g_.mapping.block_mappings[static_cast<std::size_t>(mapping)];
  const std::optional<std::vector<int>> dimensions = box_dimensions(g_, view);
  const Extents& shape = g_[view].type.shape;
  TensorBox box{.mapping = mapping};
  std::size_t next = 0;
  for (const BlockDim& b : m.block_shape) {
    const int d = b.kind == BlockDim::Kind::squeezed ? -1 : (*dimensions)[next++];
    const std::int64_t extent = d < 0 ? 1 : shape[static_cast<std::size_t>(d)];
    const bool is_first = std::ranges::all_of(box.box, [](std::int32_t n) { return n == 1; });
    if (extent > most_rows && (!is_first || extent % most_rows != 0))
      return refuse("it has more than 256 elements in a dimension");
    box.box.push_back(static_cast<std::int32_t>(std::min(extent, most_rows)));
  }
  if (box.box.back() * m.array_aval.dtype.bytes() % aligned_bytes != 0)
    return refuse("its rows are no multiples of 16 bytes");
  return box;
}

bool Fetches::is_run_of_bytes(ValueId copy, const Panels& panels) {
  constexpr std::int64_t most_bytes = 1 << 20;  // that a barrier counts
  const graph::CopyView c = graph::CopyView::of(g_[copy]);
  const graph::Type& type = g_[c.shared].type;
  const std::int64_t bytes = graph::element_count(type.shape) * type.dtype.bytes();
  if (g_[copy].op == Op::ReduceToGlobal || c.axes != 0 || c.beyond != graph::Beyond::none ||
      panels.swizzle(g_.base(c.shared)) > 0 || bytes % aligned_bytes != 0 || bytes >= most_bytes)
    return false;
  const BlockMapping& m =
      g_.mapping.block_mappings[static_cast<std::size_t>(g_.mapping_of(g_.root(c.global)))];
  const auto is_all = [&](const BlockDim& b) {
    const Dim& extent = m.array_aval.shape[static_cast<int>(&b - m.block_shape.data())];
    return b.kind == BlockDim::Kind::whole ||
           (b.kind == BlockDim::Kind::blocked && extent.is_static() && b.size == extent.value());
  };
  return m.dense && m.alignment >= aligned_bytes && std::ranges::all_of(m.block_shape, is_all) &&
         is_run(c.global, aligned_bytes) && is_run(c.shared, room_bytes);
}

// Whether the elements of a view follow one another, from such a multiple of bytes on.
bool Fetches::is_run(ValueId ref, std::int64_t aligned) {
  std::vector<ValueId> views;
  for (; !g_.is_base(ref); ref = g_[ref].args[0]) {
    if (g_[ref].op != Op::At || g_.chooses(ref)) return false;
    views.push_back(ref);
  }
  const graph::Type& all = g_[ref].type;
  for (std::size_t d = 1; d < all.shape.size(); ++d)
    if (all.shape[d] == unknown_extent) return false;
  Extents extents = all.shape, strides(extents.size());
  std::int64_t stride = all.dtype.bytes(), begin = 0;
  for (std::size_t d = extents.size(); d-- > 0; stride *= extents[d]) strides[d] = stride;
  for (auto view = views.rbegin(); view != views.rend(); ++view) {
    const std::vector<graph::SubscriptDim> dims = graph::Subscript::of(g_[*view]).dims;
    Extents inner;
    std::size_t operand = 1;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].is_slice && dims[d].stride != 1) return false;
      if (dims[d].dynamic && exprs_.facts(indices_.expr(g_[*view].args[operand++])).multiple %
                                     aligned * (strides[d] % aligned) % aligned !=
                                 0)
        return false;
      begin += dims[d].start * strides[d];
      if (dims[d].is_slice) inner.push_back(strides[d]);
    }
    strides = std::move(inner);
    extents = g_[*view].type.shape;
  }
  std::int64_t expected = all.dtype.bytes();
  for (std::size_t d = extents.size(); d-- > 0; expected *= extents[d])
    if (extents[d] > 1 && strides[d] != expected) return false;
  return begin % aligned == 0;
}

// Whether boxes of the view lie where TMA finds them in its array.
bool Fetches::lies_in_array(const BlockMapping& m, ValueId view, int least, std::string& why) {
  const auto refuse = [&](const char* reason) {
    why = reason;
    return false;
  };
  const int rank = m.array_aval.shape.rank();
  if (rank > most_dimensions || rank < least)
    return refuse(least == 1 ? "its array has more than 5 dimensions"
                             : "its array has less than 2 dimensions, or more than 5");
  if (const BlockDim& b = m.block_shape.back(); b.pad_lo + b.pad_hi > 0)
    return refuse("its rows have padding");
  for (const Dim& d : m.array_aval.shape)
    if (d.is_static() ? d.value() < 1 || d.value() > INT32_MAX
                      : !g_.short_offsets && (!g_.box_extents || rank == 1))
      return refuse("its array may have 2^31 elements or more along a dimension");
  return is_aligned(m, view) ||
         refuse("its rows or its inner offset are not multiples of 16 bytes");
}

// Of the view that a Load or a Store moves.
std::optional<TensorBox> Fetches::box_of(ValueId access, const Extents& shape, int swizzle,
                                         std::string& why) {
  return box_of_view(graph::MemoryView::of(g_[access]).ref, shape, swizzle, why);
}

std::optional<TensorBox> Fetches::box_of_view(ValueId view, const Extents& shape, int swizzle,
                                              std::string& why) {
  const auto refuse = [&](const char* reason) {
    why = reason;
    return std::nullopt;
  };
  const int mapping = g_.mapping_of(g_.root(view));
  const BlockMapping& m = g_.mapping.block_mappings[static_cast<std::size_t>(mapping)];
  const std::optional<std::vector<int>> dimensions = box_dimensions(g_, view);
  if (!dimensions || g_[view].type.shape.size() < 2) return refuse("its view is no box");
  if (!lies_in_array(m, view, 2, why)) return {};
  const Extents& viewed = g_[view].type.shape;
  const int last = static_cast<int>(viewed.size()) - 1;
  if (dimensions->back() != last || std::ranges::count(*dimensions, last) != 1)
    return refuse("its rows are not contiguous");
  // Rows of several dimensions follow each other in one box; of one, what a box has no room for is
  // in the next.
  const bool in_one = last > 1;
  if (in_one && graph::element_count(viewed) != graph::element_count(shape))
    return refuse("rows of several dimensions are padded");
  if (!in_one && shape[0] > most_rows && shape[0] % most_rows != 0)
    return refuse("it has more than 256 rows");
  if (in_one && std::ranges::any_of(viewed.begin(), viewed.end() - 1,
                                    [](std::int64_t n) { return n > most_rows; }))
    return refuse("it has more than 256 rows in a dimension");
  TensorBox box{.mapping = mapping, .swizzle = swizzle};
  std::size_t next = 0;
  for (const BlockDim& b : m.block_shape) {
    const int d = b.kind == BlockDim::Kind::squeezed ? -1 : (*dimensions)[next++];
    const std::int64_t columns = swizzle / m.array_aval.dtype.bytes();
    const std::int64_t extent = d < 0       ? 1
                                : d == last ? columns
                                : in_one    ? viewed[static_cast<std::size_t>(d)]
                                            : std::min(shape[0], most_rows);
    box.box.push_back(static_cast<std::int32_t>(extent));
  }
  return box;
}

// Of several matrices, whose panels are boxes each.
std::optional<TensorBox> Fetches::box_of_matrices(ValueId view, int swizzle, std::string& why) {
  constexpr std::int64_t most_copies = 64;
  const Extents& shape = g_[view].type.shape;
  const std::int64_t rows = shape[shape.size() - 2];
  const std::int64_t bytes = graph::element_count(shape) * g_[view].type.dtype.bytes();
  std::optional<TensorBox> box = box_of_view(view, shape, swizzle, why);
  if (!box) return {};
  if (bytes / (rows * swizzle) > most_copies) {
    why = "it is of more than 64 boxes";
    return {};
  }
  const std::optional<std::vector<int>> dimensions = box_dimensions(g_, view);
  const BlockMapping& m = g_.mapping.block_mappings[static_cast<std::size_t>(box->mapping)];
  std::size_t next = 0;
  for (std::size_t d = 0; d < box->box.size(); ++d) {
    if (m.block_shape[d].kind == BlockDim::Kind::squeezed) continue;
    const int shown = (*dimensions)[next++] + 2 - static_cast<int>(shape.size());
    if (shown < 0) box->box[d] = 1;
  }
  return box;
}

BoxId number_of(Program& l, const TensorBox& box, std::string& why) {
  constexpr std::size_t most_boxes = 16;
  for (const BoxId known : l.tensor_boxes.ids())
    if (l.tensor_boxes[known] == box) return known;
  if (l.tensor_boxes.size() < most_boxes) return l.tensor_boxes.add(box);
  why = "a kernel has at most " + std::to_string(most_boxes) + " tensor maps";
  return {};
}

ValueId rows_of(const graph::Graph& g, ValueId value) {
  const auto is_rows = [&](const Inst& i) {
    if (i.op != Op::Reshape || i.type.shape.empty()) return false;
    const Extents& from = g[i.args[0]].type.shape;
    return !from.empty() && from.back() == i.type.shape.back();
  };
  while (is_rows(g[value])) value = g[value].args[0];
  return value;
}

ValueId read_by(const graph::Graph& g, ValueId operand) {
  const ValueId rows = rows_of(g, operand);
  return g[rows].op == Op::Select ? g[rows].args[1] : rows;
}

std::optional<std::vector<int>> box_dimensions(const graph::Graph& g, ValueId view) {
  if (g.chooses(view)) return {};
  std::vector<int> map(g[view].type.shape.size());
  for (std::size_t d = 0; d < map.size(); ++d) map[d] = static_cast<int>(d);
  for (; !g.is_base(view); view = g[view].args[0]) {
    if (g[view].op != Op::At) return {};
    std::vector<int> inner;
    std::size_t next = 0;
    for (const graph::SubscriptDim& d : graph::Subscript::of(g[view]).dims) {
      if (d.is_slice && d.stride != 1) return {};
      inner.push_back(d.is_slice ? map[next++] : -1);
    }
    map = std::move(inner);
  }
  return map;
}

}  // namespace palladium::passes
