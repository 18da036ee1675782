// All of a lowered program as text: its graph, then a line for each of its parts, with the members
// that are not what they are by default. tests/support/lowered_text.hpp reads it back.
#include <algorithm>
#include <map>
#include <span>

#include "codegen/base/format.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/lowered/fields.hpp"
#include "codegen/lowered/format.hpp"

namespace palladium::lowered {
namespace {

using Members = std::vector<std::pair<std::string, std::string>>;

class FullText {
 public:
  explicit FullText(const Program& l)
      : l_(l), g_(l.graph), numbers_(graph::text_numbers(l.graph)), order_(text_order(l.graph)) {
    for (std::size_t i = 0; i < order_.size(); ++i) places_[order_[i]] = i;
  }

  std::string run() {
    out_ = graph::to_text(g_);
    line("lowered");
    ++indent_;
    part("machine", l_.machine);
    part("program", l_);
    each("variable", l_.pinned, [&](const layout::Layout& pin) { return " " + word(pin); });
    each("storage", l_.storages);
    each("window", l_.windows);
    each("ring", l_.rings);
    each("barriers", l_.barriers);
    each("box", l_.tensor_boxes);
    table("storage_of", l_.storage_of, [](ValueId) { return StorageId(); });
    table("around", l_.around, [](ValueId) { return 0; });
    for (const Body& b : l_.bodies) body(b);
    for (const Remark& r : l_.remarks) line("remark: " + r.text);
    return std::move(out_);
  }

 private:
  // ---- lines

  void line(const std::string& text) {
    out_ += std::string(2 * static_cast<std::size_t>(indent_), ' ') + text + "\n";
  }

  template <class T>
  void part(const std::string& name, const T& x) {
    line(name + members_of(x));
  }

  template <class Rows>
  void each(const std::string& name, const Rows& all) {
    each(name, all, [&](const auto& x) { return members_of(x); });
  }
  template <class Rows, class F>
  void each(const std::string& name, const Rows& all, const F& text) {
    int i = 0;
    for (const auto& row : all) line(fmt::format("{} {}{}", name, i++, text(row)));
  }

  // Of the instructions of bodies, what is not as usual.
  template <class T, class F>
  void table(const std::string& name, const Table<ValueId, T>& all, const F& usual) {
    if (all.empty()) return;
    std::string text = name;
    for (const ValueId v : order_)
      if (all[v] != usual(v)) text += fmt::format(" {}:{}", word(v), all[v]);
    line(text);
  }

  void body(const Body& b) {
    line("body");
    for (const Agent& a : b.agents) {
      line(fmt::format("agent {} {} {{", a.name, a.warpgroups));
      nested(a.statements);
      line("}");
    }
  }

  void nested(const Statements& list) {
    ++indent_;
    for (const Statement& s : list) statement(s);
    --indent_;
  }

  void statement(const Statement& s) {
    line(statement_words[s.what.index()] +
         std::visit([&](const auto& what) { return members_of(what); }, s.what));
    ++indent_;
    for_each_named_body(s, [&](const std::string& name, const Statements& list) {
      if (list.empty() && name != "branch") return;
      line(name + " {");
      nested(list);
      line("}");
    });
    --indent_;
  }

  // ---- members

  // " name=word" for those that are not as by default; of what is true the name alone.
  template <class T>
  std::string members_of(const T& x) const {
    Members usual = members(T{});
    for (auto& more : members(alike(x))) usual.push_back(std::move(more));
    std::string text;
    for (const auto& [name, value] : members(x))
      if (value != std::ranges::find(usual, name, &Members::value_type::first)->second)
        text += " " + (value == "true" ? name : fmt::format("{}={}", name, value));
    return text;
  }
  // What has the same members and is as by default.
  template <class T>
  static T alike(const T&) {
    return {};
  }
  template <class T>
  requires requires(T x) { x.in; }
  static T alike(const T& x) {
    T usual;
    std::visit([&]<class In>(const In&) { usual.in = In{}; }, x.in);
    return usual;
  }

  template <class T>
  Members members(const T& x) const {
    Members found;
    fields(x, [&](const char* name, const auto& value) { found.emplace_back(name, word(value)); });
    return found;
  }

  // With the members of its kind, which have other names than those of a nest.
  std::string word(const Sink& sink) const {
    return sink_words[sink.index()] +
           std::visit([&](const auto& to) { return members_of(to); }, sink);
  }
  static std::string word(bool x) { return x ? "true" : "false"; }
  template <std::integral T>
  static std::string word(T x) {
    return std::to_string(x);
  }
  static std::string word(DType t) { return t.name(); }
  std::string word(ValueId v) const {
    if (v == graph::no_value) return "-";
    const int number = numbers_[index(v)];
    return number >= 0 ? fmt::format("%{}", number) : fmt::format("@{}", places_.at(v));
  }
  static std::string word(const layout::Layout& l) {
    return l.domain.empty() && l == layout::Layout{} ? "-" : '"' + layout::to_string(l) + '"';
  }
  template <class V>
  static std::string word(const Alternative<V>& a) {
    return a.words[a.value.index()];
  }
  template <class T>
  static std::string word(const Word<T>& w) {
    return w.words[static_cast<std::size_t>(w.value)];
  }
  template <class Kind>
  static std::string word(Id<Kind> id) {
    return id ? letter_of<Kind> + std::to_string(id.number()) : "-";
  }
  template <class Kind>
  static std::string word(const std::vector<Id<Kind>>& all) {
    std::vector<std::string> words;
    for (const Id<Kind> id : all) words.push_back(word(id));
    return list(words);
  }
  // "[0,1*2+64]", along dimension 1 every second from 64 on
  static std::string word(const DimMap& map) {
    std::vector<std::string> words;
    for (const DimIndex& d : map)
      words.push_back(d.sliced ? fmt::format("{}*{}+{}", d.dim, d.stride, d.start)
                               : std::to_string(d.dim));
    return list(words);
  }
  template <class T>
  static std::string word(const std::vector<T>& all) {
    std::vector<std::string> words;
    for (const T x : all) words.push_back(std::to_string(static_cast<std::int64_t>(x)));
    return list(words);
  }
  std::string word(const std::vector<ValueId>& values) const {
    std::vector<std::string> words;
    for (const ValueId v : values) words.push_back(word(v));
    return list(words);
  }
  std::string word(const Redirects& redirects) const {
    std::vector<std::string> words;
    for (const auto& [from, redirect] : redirects)
      words.push_back(fmt::format("s{}:{}:s{}", from, word(redirect.map), redirect.storage));
    return list(words);
  }
  // "s3[%7]:%8", in the slot %7 of the block %8; "s3@%6", what the view %6 shows of it
  std::string word(const Place& p) const {
    std::string text = p.storage ? word(p.storage) : p.window ? word(p.window) : word(p.view);
    if (p.storage && p.view != graph::no_value) text += "@" + word(p.view);
    if (p.slot != graph::no_value) text += fmt::format("[{}]", word(p.slot));
    if (p.block != graph::no_value) text += ":" + word(p.block);
    return text;
  }
  // "[1:0:1]", dimension 1 where the array of mapping 0 ends along its dimension 1
  static std::string word(const std::vector<NestEnd>& ends) {
    std::vector<std::string> words;
    for (const NestEnd& e : ends)
      words.push_back(fmt::format("{}:{}:{}", e.dimension, e.mapping, e.along));
    return list(words);
  }
  // "1:1:512:8", for each of 8 tiles of 512 of the array of mapping 1 along its dimension 1
  static std::string word(const LengthCases& c) {
    return fmt::format("{}:{}:{}:{}", c.mapping, c.along, c.tile, c.tiles);
  }
  // "[[0:8:4,12:16:4],[0:8:4]]"
  static std::string word(const std::vector<SharedRow>& rows) {
    std::vector<std::string> words;
    for (const SharedRow& r : rows) {
      std::vector<std::string> spans;
      for (const RowSpan& s : r.spans)
        spans.push_back(fmt::format("{}:{}:{}", s.low, s.high, s.width));
      words.push_back(list(spans));
    }
    return list(words);
  }
  // "[%5:[0,1]:[2,3]]"
  std::string word(const std::vector<SharedColumns>& columns) const {
    std::vector<std::string> words;
    for (const SharedColumns& c : columns) {
      words.push_back(word(c.sum));
      for (const std::vector<int>& places : c.rows) words.back() += ":" + word(places);
    }
    return list(words);
  }
  // "[127:-128:%5:1:%8:-1]"
  std::string word(const std::vector<IterationSum>& sums) const {
    std::vector<std::string> words;
    for (const IterationSum& s : sums) {
      words.push_back(fmt::format("{}:{}", s.constant, s.per_iteration));
      for (const auto& [v, times] : s.addends)
        words.back() += fmt::format(":{}:{}", word(v), times);
    }
    return list(words);
  }
  static std::string list(const std::vector<std::string>& words) {
    return fmt::format("[{}]", fmt::join(words, ","));
  }

  const Program& l_;
  const graph::Graph& g_;
  std::vector<int> numbers_;
  std::vector<ValueId> order_;
  std::map<ValueId, std::size_t> places_;
  std::string out_;
  int indent_ = 0;
};

}  // namespace

std::vector<ValueId> text_order(const graph::Graph& g) {
  std::vector<ValueId> order;
  const auto visit = [&](const auto& self, graph::RegionId r) -> void {
    for (const auto& list : {g[r].params, g[r].insts})
      for (const ValueId v : list) {
        order.push_back(v);
        for (const graph::RegionId inner : g[v].regions) self(self, inner);
      }
  };
  for (const graph::Body& b : g.bodies) visit(visit, b.region);
  return order;
}

std::string to_full_text(const Program& l) { return FullText(l).run(); }

}  // namespace palladium::lowered
