// The lowered graph as text, for people and tests. Values have the numbers of the graph's text,
// windows are w0 w1 ..., storages s0 s1 ...
#include "codegen/base/format.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/lowered/fields.hpp"
#include "codegen/lowered/format.hpp"

namespace palladium::lowered {
namespace {

class Text {
 public:
  explicit Text(const Program& l) : l_(l), g_(l.graph), numbers_(graph::text_numbers(l.graph)) {}

  std::string run() {
    out_ = "lowered " + g_.name + "\n";
    if (l_.num_warps != 4) line(fmt::format("{} warps", l_.num_warps));
    if (l_.grid_rows > 1) line(fmt::format("programs by {} rows", l_.grid_rows));
    for (const WindowId i : l_.windows.ids())
      line(fmt::format("w{}: {}", i, window(l_.windows[i])));
    for (const StorageId i : l_.storages.ids())
      line(fmt::format("s{}: {}", i, storage(l_.storages[i])));
    for (const BarrierId i : l_.barriers.ids())
      line(fmt::format("m{}: s{}{}{}", i, l_.barriers[i].storage,
                       l_.barriers[i].ring ? fmt::format(" of ring {}", l_.barriers[i].ring) : "",
                       l_.barriers[i].by_warps ? " told by warps" : ""));
    for (const RingId i : l_.rings.ids()) {
      const Ring& r = l_.rings[i];
      line(fmt::format("ring {}: s{}, {} slots of {} bytes", i, r.storage, r.slots, r.slot_bytes));
    }
    for (const Body& b : l_.bodies)
      for (const Agent& a : b.agents)
        nested(fmt::format("{}, {} warpgroup{}", a.name, a.warpgroups, a.warpgroups > 1 ? "s" : ""),
               a.statements);
    if (const LengthCases& c = l_.length_cases; !c.empty())
      line(fmt::format("written for each of {} tiles of {} up to {}", c.tiles, c.tile,
                       to_string(g_.mapping.block_mappings[static_cast<std::size_t>(c.mapping)]
                                     .array_aval.shape[c.along])));
    line(fmt::format("shared bytes {}", l_.shared_bytes));
    for (const Remark& r : l_.remarks)
      line(r.at.line ? fmt::format("remark, line {}: {}", r.at.line, r.text)
                     : fmt::format("remark: {}", r.text));
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_ += std::string(indent_, ' ') + text + "\n"; }

  std::string value(ValueId v) const {
    return v == graph::no_value ? "-" : fmt::format("%{}", numbers_[index(v)]);
  }

  static std::string extents(const Extents& shape) {
    return fmt::format("[{}]", fmt::join(shape, ","));
  }

  std::string window(const Window& w) const {
    std::string text = w.mapping < 0
                           ? "scratch"
                           : g_.mapping.block_mappings[static_cast<std::size_t>(w.mapping)].origin;
    text += fmt::format(" {}", residency_words[static_cast<int>(w.residency())]);
    if (w.storage()) text += fmt::format(" s{}", w.storage());
    if (const auto* const s = std::get_if<Staged>(&w.in))
      text +=
          fmt::format(" by {}{}{}", s->vector, s->lead > 0 ? fmt::format(" lead {}", s->lead) : "",
                      s->zeros ? " zeros" : "");
    if (w.fills()) text += " fill";
    if (w.flushes()) text += " flush";
    if (w.stored) text += " stored";
    if (w.read_only) text += " read only";
    if (w.is_synchronised()) text += " synchronised";
    if (w.depth > 0) text += fmt::format(" depth {}", w.depth);
    for (std::size_t d = 0; d < w.in_bounds.size(); ++d)
      if (!w.in_bounds[d]) text += fmt::format(" ragged({})", d);
    return text;
  }

  static std::string storage(const Storage& s) {
    const std::string type = graph::to_string(graph::Type::value(s.dtype, s.shape));
    std::string text = fmt::format("{} {}", place_words[s.in.index()], type);
    if (s.in_registers()) text += " " + layout::to_string(s.registers().layout);
    if (s.in_shared()) text += shared(s.shared());
    return text;
  }

  static std::string shared(const Shared& s) {
    std::string text = s.swizzle > 0
                           ? fmt::format(" at {} in panels of {} bytes", s.offset, s.swizzle)
                           : fmt::format(" at {} row stride {}", s.offset, s.row_stride);
    if (s.row_swizzle > 0) text += fmt::format(" swizzle {}", s.row_swizzle);
    if (s.rows_alike > 1) text += fmt::format(" of {} rows", s.rows_alike);
    if (s.skewed) text += " skewed";
    if (s.ring) text += fmt::format(" in ring {}", s.ring);
    if (s.within.storage)
      text += fmt::format(" within s{} at {}", s.within.storage, s.within.offset);
    if (!s.per_warpgroup) text += " of the block";
    return text;
  }

  void list(const Statements& statements) {
    indent_ += 2;
    for (const Statement& s : statements) statement(s);
    indent_ -= 2;
  }

  void nested(const std::string& head, const Statements& body) {
    line(head + (head.empty() ? "{" : " {"));
    list(body);
    line("}");
  }

  void statement(const Statement& s) {
    std::visit([this](const auto& what) { print(what); }, s.what);
  }

  void print(const LoopNest& p) { line(nest(p) + redirects(p.redirects)); }
  void print(const Dot& d) { line(dot(d)); }
  void print(const Copy& c) {
    if (brings_near(c)) return line(fmt::format("bring near {}", place(c.from)));
    line(fmt::format("copy {} {}= {}{}{}{}", place(c.to),
                     c.update < 0 ? "" : graph::name_of(graph::Update{c.update}) + std::string(" "),
                     place(c.from),
                     c.completes ? fmt::format(" on m{}{}", c.completes, slot(c.slot)) : "",
                     c.share.axes != 0 ? fmt::format(" of {} blocks together", blocks(c.share.axes))
                                       : some(" to blocks ", c.multicast),
                     some(" where ", c.predicate)));
  }
  std::int64_t blocks(std::int64_t axes) const { return graph::blocks_along(g_, axes); }
  std::string place(const Place& p) const {
    const std::string what =
        p.storage  ? fmt::format("s{}", p.storage)
        : p.window ? fmt::format("w{}", p.window)
                   : fmt::format("w{} at {}", l_.window_of[g_.base(p.view)], value(p.view));
    return what + slot(p.slot) + some(" of block ", p.block);
  }
  std::string slot(ValueId v) const {
    return v == graph::no_value ? "" : fmt::format("[{}]", value(v));
  }
  std::string some(const char* words, ValueId v) const {
    return v == graph::no_value ? "" : words + value(v);
  }
  void print(const Arrive& a) {
    line(fmt::format("arrive m{}{}{}{}{}", a.barrier, slot(a.slot),
                     !l_.barriers[a.barrier].along.empty() ? std::string(" in all blocks")
                                                           : some(" in block ", a.block),
                     a.bytes > 0 ? fmt::format(" for {} bytes", a.bytes) : "",
                     a.back > 0 ? fmt::format(" {} back", a.back) : ""));
  }
  void print(const Wait& w) { line(fmt::format("wait m{}{}", w.barrier, slot(w.slot))); }
  void print(const Close& c) { line(fmt::format("close {}", kind_of(c.kind))); }
  void print(const WaitGroup& w) {
    std::string storages;
    for (const StorageId s : w.storages) storages += fmt::format(" s{}", s);
    line(fmt::format("wait {}{}{}", kind_of(w.kind),
                     w.pending > 0 ? fmt::format(" all but {}", w.pending) : "", storages));
  }
  static const char* kind_of(device::Completion c) {
    return completion_words[static_cast<std::size_t>(c)];
  }
  void print(const Fence&) { line("fence"); }
  void print(const Relayout& r) {
    line(fmt::format("s{} = relayout s{}: {}", r.to, r.from, layout::describe(r.plan)));
  }
  void print(const Sync& s) {
    line(s.of == Sync::Of::program
             ? "sync"
             : std::string("sync ") + sync_words[static_cast<std::size_t>(s.of)]);
  }
  void print(const SetRegisters& s) {
    line(fmt::format("{} registers of a thread, {}", s.count, s.more ? "more" : "fewer"));
  }
  void print(const Semaphore& s) {
    line((!s.storage ? "" : fmt::format("s{} = ", s.storage)) + value(s.inst));
  }
  void print(const HostCall& t) {
    line(value(t.inst) + (!t.scratch ? "" : fmt::format(" through s{}", t.scratch)));
  }
  void print(const Inline& t) {
    std::string results, operands;
    for (const StorageId s : t.results) results += fmt::format("s{} ", s);
    for (const StorageId s : t.operands)
      if (s) operands += fmt::format(" s{}", s);
    line(results + (results.empty() ? "" : "= ") + value(t.inst) +
         (operands.empty() ? "" : " of" + operands));
  }
  void print(const Scalar& s) {
    line(fmt::format("s{} = {}{}", s.storage, value(s.value), redirects(s.redirects)));
  }
  void print(const CopyStorage& a) { line(fmt::format("s{} = s{}", a.to, a.from)); }
  void print(const When& w) { nested("when " + value(w.condition), w.body); }
  void print(const Warps& w) { nested("warps", w.body); }
  void print(const Elected& e) { nested("elected", e.body); }
  void print(const IfWhole& w) {
    std::string windows;
    for (const WindowId i : w.windows) windows += fmt::format(" w{}", i);
    line(fmt::format("if whole{} {{", windows));
    list(w.bodies[0]);
    nested("} else", w.bodies[1]);
  }
  void print(const IfMasked& m) {
    nested("if masked " + value(m.load) + (m.sums.empty() ? "" : " unless" + all(m.sums)), m.body);
  }
  void print(const Loop& l) { loop("loop " + value(l.inst), l); }
  template <class T>
  void loop(const std::string& head, const T& l) {
    if (!l.prologue.empty()) nested("first iteration of " + head, l.prologue);
    nested(head + over(l.ring) + known(l.known), l.body);
    if (!l.epilogue.empty()) nested("behind the last iteration", l.epilogue);
  }
  std::string known(const KnownIterations& k) const {
    std::string text;
    for (const ValueId v : k.holding) text += fmt::format(" {} holds", value(v));
    for (const ValueId v : k.failing) text += fmt::format(" {} fails", value(v));
    if (text.empty()) return text;
    return text + " where" + all(k.sums);
  }
  std::string all(const std::vector<IterationSum>& sums) const {
    std::string text;
    for (const IterationSum& s : sums) text += (&s == sums.data() ? " " : ", ") + sum(s);
    return text;
  }
  // "127 - 128 i + %5", that is not negative
  std::string sum(const IterationSum& s) const {
    std::string text = std::to_string(s.constant);
    const auto add = [&](std::int64_t times, const std::string& what) {
      text +=
          fmt::format(" {} {}{}", times < 0 ? "-" : "+",
                      times == 1 || times == -1 ? "" : fmt::format("{} ", std::abs(times)), what);
    };
    if (s.per_iteration != 0) add(s.per_iteration, "i");
    for (const auto& [v, times] : s.addends) add(times, value(v));
    return text + " >= 0";
  }
  static std::string over(RingId ring) {
    return !ring ? "" : fmt::format(" over the slots of ring {}", ring);
  }
  void print(const While& w) {
    line("while " + value(w.inst) + " {");
    list(w.test);
    nested("} do", w.body);
  }
  void print(const Scope& s) {
    std::string windows;
    for (const WindowId w : s.windows) windows += fmt::format(" w{}", w);
    nested("scope" + windows, s.body);
  }
  void print(const Switch& s) {
    line("switch " + value(s.inst));
    for (const Statements& body : s.bodies) nested("", body);
  }
  void print(const GridLoop& l) {
    const std::string axis = l.axis == programs_axis ? "programs" : std::to_string(l.axis);
    const ValueId end = l_.end_of(l.axis);
    loop("grid loop " + axis + (end == graph::no_value ? "" : " to " + value(end)), l);
  }
  void print(const Advance& a) { line(fmt::format("advance ring {}", a.ring)); }
  void print(const Lead& e) { nested(before_iterations("lead", e), e.body); }
  void print(const Ahead& e) { nested(before_iterations("ahead", e), e.body); }
  template <class Early>
  static std::string before_iterations(const char* word, const Early& e) {
    std::string text = word;
    if (e.ring) text += fmt::format(" ring {}", e.ring);
    text += fmt::format(" by {}", e.iterations);
    if (!e.kept.empty()) text += " for";
    for (const StorageId s : e.kept) text += fmt::format(" s{}", s);
    return text;
  }
  void print(const EnterWindow& w) { line(fmt::format("window w{}", w.window)); }

  std::string nest(const LoopNest& p) const {
    std::string text = sink(p);
    if (p.domain != p.valid)
      text += fmt::format(" as {} of {}", extents(p.valid), extents(p.domain));
    for (std::size_t d = 0; d < p.rolled.size(); ++d)
      if (p.rolled[d] > 0)
        text += p.rolled[d] == 1 ? fmt::format(" rolled({})", d)
                                 : fmt::format(" rolled({}, {} together)", d, p.rolled[d]);
    for (const NestEnd& e : p.ends)
      text += fmt::format(" up to {}",
                          to_string(g_.mapping.block_mappings[static_cast<std::size_t>(e.mapping)]
                                        .array_aval.shape[e.along]));
    text += " by " + layout::to_string(p.layout);
    if (p.unless_one) text += fmt::format(" unless s{} is one", p.unless_one);
    for (const WindowId w : p.forked) text += fmt::format(" two ways for w{}", w);
    return text + (p.repeats_first ? " repeating" : "");
  }

  std::string sink(const LoopNest& p) const {
    return std::visit([&](const auto& to) { return sink(p, to); }, p.sink);
  }

  std::string sink(const LoopNest& p, const Assign& to) const {
    return fmt::format("s{} = {}", to.storage, value(p.value));
  }
  static std::string copying(const CopyMode& by) {
    return fmt::format("{}{}", by.asynchronous ? " asynchronously" : "", by.zeros ? " zeros" : "");
  }
  std::string sink(const LoopNest& p, const Stage& to) const {
    return fmt::format("s{} = {}{}", to.storage, value(p.value), copying(to.by));
  }
  std::string sink(const LoopNest& p, const Store& to) const {
    const graph::MemoryView m = graph::MemoryView::of(g_[to.inst]);
    std::string text = fmt::format("w{}", l_.window_of[g_.base(m.ref)]);
    if (!g_.is_base(m.ref)) text += fmt::format(" at {}", value(m.ref));
    text += " = " + value(p.value);
    if (m.mask != graph::no_value) text += " where " + value(m.mask);
    return text;
  }
  std::string sink(const LoopNest& p, const Update& to) const {
    const graph::MemoryView m = graph::MemoryView::of(g_[to.inst]);
    std::string text = !to.storage ? std::string() : fmt::format("s{} = ", to.storage);
    text += fmt::format("{} w{}", graph::name_of(graph::update_of(g_[to.inst])),
                        l_.window_of[g_.base(m.ref)]);
    if (!g_.is_base(m.ref)) text += fmt::format(" at {}", value(m.ref));
    text += " by " + value(p.value);
    if (m.mask != graph::no_value) text += " where " + value(m.mask);
    return text;
  }
  template <class Fold>
  std::string sink(const LoopNest& p, const Fold& to) const {
    std::string text = fmt::format("s{} = {} {} {}", to.storage, graph::info(g_[to.inst].op).name,
                                   value(p.value), to.along());
    const Storage& scratch = l_.storages[to.scratch];
    if (graph::element_count(scratch.shape) > 0) text += fmt::format(" through s{}", to.scratch);
    return text;
  }
  std::string sink(const LoopNest& p, const Print& to) const {
    return value(to.inst) + " " + value(p.value);
  }
  std::string sink(const LoopNest&, const Fill& to) const {
    return fmt::format("s{} = w{}{}", to.storage, to.window, copying(to.by));
  }
  std::string sink(const LoopNest&, const Flush& to) const {
    return fmt::format("w{} = s{}", to.window, to.from);
  }
  std::string sink(const LoopNest&, const Spill& to) const {
    return fmt::format("s{} = s{}", to.storage, to.from);
  }
  std::string sink(const LoopNest& p, const Clear& to) const {
    return fmt::format("s{} = 0 but where {}", to.storage, value(p.value));
  }

  static std::string dot(const Dot& d) {
    const std::string text =
        fmt::format("s{} {} s{} * s{} by {}", d.result, d.accumulates ? "+=" : "=", d.a, d.b,
                    unit_words[static_cast<int>(d.unit)]);
    if (d.unit == Dot::Unit::fma) return text;
    return fmt::format("{} on {}x{} warps{}", text, d.warps_m, d.warps_n,
                       d.back > 0 ? fmt::format(", s{} of {} back", d.b, d.back) : "");
  }

  static std::string redirects(const Redirects& redirects) {
    std::string text;
    for (const auto& [from, redirect] : redirects)
      text += fmt::format(" reading s{} from s{}", from, redirect.storage);
    return text;
  }

  const Program& l_;
  const graph::Graph& g_;
  std::vector<int> numbers_;
  std::string out_;
  std::size_t indent_ = 2;
};

}  // namespace

std::string to_text(const Program& l) { return Text(l).run(); }

}  // namespace palladium::lowered
