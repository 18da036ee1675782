// Matrix products and relayouts.

#include "codegen/base/format.hpp"
#include "codegen/cuda/printer.hpp"
#include "codegen/cuda/spelling.hpp"
#include "codegen/layout/terms.hpp"

namespace palladium::cuda {

using layout::Move;
using passes::Dot;
using passes::Relayout;
using passes::Storage;

namespace {

std::string terms_text(const std::string& v, const layout::Bits& columns) {
  const layout::Terms terms = layout::terms_of(columns);
  std::string out;
  for (const layout::Term& t : terms.terms) {
    const std::string part = t.shift > 0 ? fmt::format("(({} & {}) << {})", v, t.mask, t.shift)
                             : t.shift < 0
                                 ? fmt::format("({} >> {} & {})", v, -t.shift, t.mask >> -t.shift)
                                 : fmt::format("({} & {})", v, t.mask);
    out += (out.empty() ? "" : terms.disjoint ? " | " : " ^ ") + part;
  }
  return out.empty() ? "0" : out;
}

}  // namespace

void Printer::print_dot(const Dot& d) {
  const Storage& a = l_.storages[d.a];
  const Storage& b = l_.storages[d.b];
  const Storage& result = l_.storages[d.result];
  const graph::DotView view = graph::DotView::of(g_[d.inst]);
  const Extents& shape = g_[d.inst].type.shape;
  const std::int64_t rows = cdiv(shape[0], 16 * d.warps_m), columns = cdiv(shape[1], 8 * d.warps_n);
  const std::string name = storage_name(d.result), t = type_name(a.dtype);
  const std::string acc = type_name(result.dtype);
  const std::int64_t registers = result.layout.registers();
  const std::int64_t depth = view.trans_a ? a.shape[0] : a.shape[1];
  if (!d.accumulates) {
    w_.line(fmt::format("{} {}[{}] = {{}};", acc, name, registers));
    declared_.insert(d.result);
  }
  std::string function, types;
  switch (d.unit) {
  case Dot::Unit::mma_16816: function = "dot_mma_16816", types = ", " + t; break;
  case Dot::Unit::mma_1688: function = "dot_mma_1688"; break;
  case Dot::Unit::mma_tf32: function = "dot_mma_tf32"; break;
  case Dot::Unit::fma: function = "dot_fma", types = ", " + t + ", " + acc; break;
  }
  w_.line(fmt::format("pl::{}<{}, {}, {}, {}, {}{}>({}, {}, {}, {}, {}, {});", function, rows,
                      columns, d.warps_m, view.trans_a, view.trans_b, types, name,
                      shared_address(d.a), a.row_stride * a.dtype.bytes(), shared_address(d.b),
                      b.row_stride * b.dtype.bytes(), depth));
}

void Printer::print_relayout(const Relayout& r) {
  const Storage& to = l_.storages[r.to];
  w_.line("// " + layout::describe(r.plan));
  w_.line(
      fmt::format("{} {}[{}];", type_name(to.dtype), storage_name(r.to), to.layout.registers()));
  switch (r.plan.kind) {
  case Move::Noop:
  case Move::Rename: print_rename(r); return;
  case Move::Shuffle: print_shuffles(r); return;
  case Move::Shared: print_shared_moves(r); break;
  case Move::Memory: print_memory_move(r); break;
  }
  synced_ = false;
}

void Printer::print_rename(const Relayout& r) {
  const std::string from = storage_name(r.from), to = storage_name(r.to);
  if (r.plan.kind == Move::Noop) {
    w_.line(fmt::format("PL_UNROLL for (i32 k = 0; k < {}; ++k) {}[k] = {}[k];",
                        l_.storages[r.to].layout.registers(), to, from));
    return;
  }
  for (std::size_t k = 0; k < r.plan.sources.size(); ++k)
    if (r.plan.sources[k] >= 0)
      w_.line(fmt::format("{}[{}] = {}[{}];", to, k, from, r.plan.sources[k]));
}

// Words of `pack` elements are permuted in a thread, exchanged between lanes, permuted again.
void Printer::print_shuffles(const Relayout& r) {
  const layout::Shuffles& s = r.plan.shuffle;
  const std::string from = storage_name(r.from), to = storage_name(r.to);
  const std::string type = type_name(l_.storages[r.to].dtype);
  w_.open_block("");
  w_.line("const u32 lane = pl::lane();");
  if (!s.by_xor) w_.line(fmt::format("const u32 source = {};", terms_text("lane", s.source_lane)));
  const int in = s.words_in * s.pack, out = s.words_out * s.pack;
  const auto select = [&](const layout::Select& x, const char* words, int count) {
    w_.open_block("");
    w_.line(fmt::format("{} y[{}];", type, count * s.pack));
    w_.line(
        fmt::format("PL_UNROLL for (i32 k = 0; k < {0}; ++k) y[k] = (lane >> {1} & 1) != 0 ? "
                    "{2}[k ^ {3}] : {2}[k];",
                    count * s.pack, x.lane_bit, words, x.flip * s.pack));
    w_.line(fmt::format("PL_UNROLL for (i32 k = 0; k < {0}; ++k) {1}[k] = y[k];", count * s.pack,
                        words));
    w_.close_block();
  };
  for (const layout::ShufflePass& p : s.passes) {
    w_.open_block("");
    w_.line(fmt::format("{} x[{}] = {{}}, z[{}] = {{}};", type, in, out));
    for (std::size_t k = 0; k < p.in.size(); ++k)
      if (p.in[k] >= 0) w_.line(fmt::format("x[{}] = {}[{}];", k, from, p.in[k]));
    for (const layout::Select& x : s.before) select(x, "x", s.words_in);
    for (const layout::Round& round : p.rounds)
      for (int e = 0; e < s.pack; ++e) {
        const std::string source = fmt::format("x[{}]", round.from * s.pack + e);
        const std::string target = fmt::format("z[{}]", round.to * s.pack + e);
        if (!s.by_xor)
          w_.line(fmt::format("{} = pl::shuffle_idx({}, source ^ {});", target, source,
                              round.lane_flip));
        else if (round.lane_flip == 0)
          w_.line(fmt::format("{} = {};", target, source));
        else
          w_.line(fmt::format("{} = pl::shuffle_xor({}, {});", target, source, round.lane_flip));
      }
    for (const layout::Select& x : s.after) select(x, "z", s.words_out);
    for (std::size_t k = 0; k < p.out.size(); ++k)
      if (p.out[k] >= 0) w_.line(fmt::format("{}[{}] = z[{}];", to, p.out[k], k));
    w_.close_block();
  }
  w_.close_block();
}

void Printer::print_shared_moves(const Relayout& r) {
  const layout::SharedMoves& m = r.plan.shared;
  const std::string from = storage_name(r.from), to = storage_name(r.to);
  const std::string type = type_name(l_.storages[r.to].dtype);
  const auto barrier = [&] {
    if (r.plan.warp_barrier) return w_.line("pl::warp_sync();");
    synced_ = false;
    print_sync();
  };
  const auto address = [&](const layout::SharedAccess& a, const char* offset) {
    return fmt::format("scratch + ({}{}) + {}", offset, a.flip ? fmt::format(" ^ {}", a.flip) : "",
                       a.offset);
  };
  w_.open_block("");
  w_.line(fmt::format("const u32 t = pl::thread(), scratch = {};", shared_address(r.scratch)));
  w_.line(fmt::format("const u32 st = {}, ld = {};", terms_text("t", m.store.thread_offset),
                      terms_text("t", m.load.thread_offset)));
  const auto only = [](const layout::ThreadTest& x) {
    return x.mask ? fmt::format(", (t & {}) == {}", x.mask, x.value) : "";
  };
  for (const layout::SharedStep& step : m.steps) {
    if (loops_ > 0 || &step != &m.steps.front()) barrier();
    for (const layout::SharedAccess& a : step.stores) {
      std::string words;
      for (int k : a.registers)
        words += (words.empty() ? "" : ", ") +
                 (k < 0 ? fmt::format("{}()", type) : fmt::format("{}[{}]", from, k));
      w_.line(fmt::format("{{ const {} w[{}] = {{{}}}; pl::store_shared<{}>({}, w{}); }}", type,
                          a.registers.size(), words, m.store.vector, address(a, "st"),
                          only(step.storing)));
    }
    barrier();
    for (const layout::SharedAccess& a : step.loads) {
      std::string moves;
      for (std::size_t e = 0; e < a.registers.size(); ++e)
        if (a.registers[e] >= 0) moves += fmt::format(" {}[{}] = w[{}];", to, a.registers[e], e);
      const std::string place = address(a, "ld");
      const bool some = step.loading.mask != 0;
      const std::string test = some ? "if (" + only(step.loading).substr(2) + ") " : "";
      const std::string load =
          m.load.mode == layout::SharedMode::Plain
              ? fmt::format("pl::load_shared{}<{}>(w, {});", a.padded ? "_padded" : "",
                            m.load.vector, place)
              : fmt::format("pl::ldmatrix_x{}{}(w, {});", a.registers.size() / 2,
                            m.load.mode == layout::SharedMode::MatrixTransposed ? "_trans" : "",
                            place);
      w_.line(fmt::format("{}{{ {} w[{}]; {}{} }}", test, type, a.registers.size(), load, moves));
    }
  }
  w_.close_block();
}

// Row-major through shared memory, a window of addresses at a time.
void Printer::print_memory_move(const Relayout& r) {
  const layout::MemoryMove& m = r.plan.memory;
  const Storage& s = l_.storages[r.to];
  const int bytes = s.dtype.bytes();
  w_.open_block("");
  w_.line(fmt::format("const i32 t = pl::thread();"));
  w_.line(fmt::format("const u32 scratch = {};", shared_address(r.scratch)));
  const auto side = [&](const layout::Layout& l, const layout::MemorySide& x,
                        const std::string& array, bool store) {
    const std::vector<layout::Coordinate> coordinates = layout::coordinates(l);
    w_.open_block(fmt::format("PL_UNROLL for (i32 k = 0; k < {}; ++k)", l.registers()));
    std::string test, at = std::to_string(x.offset);
    for (int d = 0; d < l.rank(); ++d) {
      const layout::Coordinate& c = coordinates[d];
      std::string text = fmt::format("({}) ^ ({})", terms_text("t", fields_of(l, l.thread(), d)),
                                     terms_text("k", fields_of(l, l.reg, d)));
      if (c.repeats) {
        std::string rep = fmt::format("(k >> {}) / {}", c.repetition_shift, c.repetition_divisor);
        if (c.repetition_modulus) rep = fmt::format("{} % {}", rep, c.repetition_modulus);
        text = fmt::format("({}) + {} * {}", text, rep, c.tile);
      }
      w_.line(fmt::format("const i32 i{} = {};", d, text));
      if (l.pads(d)) test += (test.empty() ? "" : " && ") + fmt::format("i{} < {}", d, l.domain[d]);
      at += fmt::format(" + i{} * {}", d, x.strides[d]);
    }
    if (m.windows > 1) {
      w_.line(fmt::format("const i32 at = {} - window * {};", at, m.window));
      test += (test.empty() ? "" : " && ") + fmt::format("at >= 0 && at < {}", m.window);
    } else {
      w_.line(fmt::format("const i32 at = {};", at));
    }
    if (store && x.replicated)
      test += (test.empty() ? "" : " && ") + fmt::format("(t & {}) == 0", x.replicated);
    if (store)
      w_.line(fmt::format("pl::store_shared<1>(scratch + at * {}, {} + k{});", bytes, array,
                          test.empty() ? "" : ", " + test));
    else
      w_.line(fmt::format("{}pl::load_shared<1>({} + k, scratch + at * {});",
                          test.empty() ? "" : "if (" + test + ") ", array, bytes));
    w_.close_block();
  };
  if (m.windows > 1) {
    w_.open_block(
        fmt::format("PL_NOUNROLL for (i32 window = 0; window < {}; ++window)", m.windows));
    ++loops_;
  }
  print_scratch_sync();
  side(r.plan.from, m.store, storage_name(r.from), true);
  synced_ = false;
  print_sync();
  side(r.plan.to, m.load, storage_name(r.to), false);
  if (m.windows > 1) {
    w_.close_block();
    --loops_;
  }
  w_.close_block();
}

layout::Bits fields_of(const layout::Layout& l, const layout::Bits& images, int d) {
  layout::Bits out;
  for (std::uint32_t b : images) out.push_back(l.field(d, b));
  return out;
}

}  // namespace palladium::cuda
