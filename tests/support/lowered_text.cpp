#include "tests/support/lowered_text.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "codegen/graph/transform.hpp"
#include "codegen/lowered/fields.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/run.hpp"
#include "palladium/error.hpp"
#include "tests/support/graph_text.hpp"

namespace palladium::test {
namespace {

using namespace lowered;
using graph::ValueId;
using layout::Layout;

// A line: words, of which those behind the first may be name=value.
class PartLine {
 public:
  PartLine(std::string_view text, int number) : text_(text), number_(number) {
    while (true) {
      text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
      if (text.empty()) return;
      bool quoted = false;
      std::size_t n = 0;
      for (; n < text.size() && (quoted || text[n] != ' '); ++n) quoted ^= text[n] == '"';
      words_.emplace_back(text.substr(0, n));
      text.remove_prefix(n);
    }
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw std::runtime_error("line " + std::to_string(number_) + ": " + what + " in '" +
                             std::string(text_) + "'");
  }
  std::string_view text() const { return text_; }
  const std::vector<std::string>& words() const { return words_; }
  const std::string& first() const { return words_[0]; }

  // What is said of a member; it is there once. None where it is as by default.
  std::optional<std::string> take(const std::string& name) {
    for (std::size_t i = 1; i < words_.size(); ++i) {
      std::string& word = words_[i];
      const bool flag = word == name;
      if (!flag && !word.starts_with(name + "=")) continue;
      std::string value = flag ? "true" : word.substr(name.size() + 1);
      words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(i));
      return value;
    }
    return {};
  }
  /// A word that is no member.
  std::string take_word() {
    if (words_.size() < 2) refuse("expected another word");
    std::string word = std::move(words_[1]);
    words_.erase(words_.begin() + 1);
    return word;
  }
  void end() const {
    if (words_.size() > 1) refuse("'" + words_[1] + "' is no member");
  }

  template <class T>
  T number(std::string_view text) const {
    T n{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc() || end != text.data() + text.size())
      refuse("expected a number, not '" + std::string(text) + "'");
    return n;
  }
  std::vector<std::string> list(std::string_view text) const {
    if (!text.starts_with('[') || !text.ends_with(']')) refuse("expected a list");
    text = text.substr(1, text.size() - 2);
    std::vector<std::string> items;
    int depth = 0;
    std::string item;
    for (const char c : text) {
      depth += c == '[' ? 1 : c == ']' ? -1 : 0;
      if (c == ',' && depth == 0)
        items.push_back(std::exchange(item, {}));
      else
        item += c;
    }
    if (!text.empty()) items.push_back(item);
    return items;
  }

 private:
  std::string_view text_;
  int number_;
  std::vector<std::string> words_;
};

// Of "s1:[0,1]:s5" the three.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

class ProgramReader {
 public:
  explicit ProgramReader(std::string_view text) {
    const std::size_t at = text.starts_with("lowered\n") ? 0 : text.find("\nlowered\n");
    if (at == std::string_view::npos) throw std::runtime_error("no line says 'lowered'");
    l_.graph = changed_graph_of(text.substr(0, at));
    const std::vector<int> numbers = graph::text_numbers(l_.graph);
    const std::vector<ValueId> order = text_order(l_.graph);
    for (std::size_t i = 0; i < order.size(); ++i) {
      values_["@" + std::to_string(i)] = order[i];
      values_["%" + std::to_string(numbers[index(order[i])])] = order[i];
    }
    int number = static_cast<int>(std::ranges::count(text.substr(0, at + 1), '\n'));
    for (text.remove_prefix(at + 1); !text.empty();) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      ++number;
      const std::size_t first = line.find_first_not_of(' ');
      if (first != std::string_view::npos && line[first] != ';') lines_.emplace_back(line, number);
    }
  }

  Program run() {
    l_.uses = uses_of(l_.graph);
    for (next_ = 1; next_ < lines_.size();) part();
    check_numbers();
    find_windows();
    return std::move(l_);
  }

 private:
  PartLine& line() {
    if (next_ == lines_.size()) throw std::runtime_error("the program ends too early");
    return lines_[next_];
  }

  void part() {
    PartLine& l = line();
    ++next_;
    const std::string& name = l.first();
    if (name == "machine") return members(l, l_.machine);
    if (name == "program") return members(l, l_);
    if (name == "variable") {
      if (l.take_word() != std::to_string(l_.pinned.size())) l.refuse("not the next number");
      l_.pinned.push_back({});
      set(l, l_.pinned.back(), l.take_word());
      return;
    }
    if (name == "storage") return numbered(l, l_.storages);
    if (name == "window") return numbered(l, l_.windows);
    if (name == "ring") return numbered(l, l_.rings);
    if (name == "barriers") return numbered(l, l_.barriers);
    if (name == "box") return numbered(l, l_.tensor_boxes);
    if (name == "storage_of") return storages_of(l);
    if (name == "around") return table(l, l_.around, 0);
    if (name == "body") return l_.bodies.emplace_back(), l.end();
    if (name == "agent") return agent(l);
    if (name != "remark:") l.refuse("'" + name + "' is no part of a program");
    l_.remarks.push_back({{}, std::string(l.text().substr(l.text().find(": ") + 2))});
  }

  template <class Rows>
  void numbered(PartLine& l, Rows& all) {
    if (l.take_word() != std::to_string(all.size())) l.refuse("not the next number");
    all.push_back({});
    members(l, all.back());
  }

  void storages_of(PartLine& l) {
    table(l, l_.storage_of, StorageId());
    for (const StorageId storage : l_.storage_of)
      if (storage) mention(l, letter_of<Storage>, storage.number());
  }

  // "%5:3 %7:0"
  template <class T>
  void table(PartLine& l, Table<ValueId, T>& all, T usual) {
    all.assign(l_.graph.insts.size(), usual);
    while (l.words().size() > 1) entry(l, all);
  }
  template <class T>
  void entry(PartLine& l, Table<ValueId, T>& all) {
    const std::vector<std::string> parts = parts_of(l.take_word());
    if (parts.size() != 2) l.refuse("expected a value, a colon and a number");
    all[some_value(l, parts[0])] = T(l.number<int>(parts[1]));
  }

  void agent(PartLine& l) {
    if (l_.bodies.empty()) l.refuse("no body stands in front of it");
    Agent a{.name = l.take_word()};
    a.warpgroups = l.number<int>(l.take_word());
    if (a.warpgroups < 1) l.refuse("an agent is of one warpgroup at least");
    a.statements = list();
    l_.bodies.back().agents.push_back(std::move(a));
  }

  // Statements up to the line that closes them, which is taken, too.
  Statements list() {
    Statements found;
    while (line().first() != "}") found.push_back(statement());
    ++next_;
    return found;
  }

  Statement statement() {
    PartLine& l = line();
    const auto* const word = std::ranges::find(statement_words, l.first());
    if (word == std::end(statement_words)) l.refuse("'" + l.first() + "' is no statement");
    ++next_;
    Statement s;
    make(s, static_cast<std::size_t>(word - std::begin(statement_words)), l,
         std::make_index_sequence<std::size(statement_words)>());
    if (auto* const r = std::get_if<Relayout>(&s.what)) plan(l, *r);
    bodies(s);
    return s;
  }

  void plan(const PartLine& l, Relayout& r) const {
    const auto layout = [&](StorageId storage) {
      const bool known = storage && std::cmp_less(storage.number(), l_.storages.size());
      return known && l_.storages[storage].in_registers() ? l_.storages[storage].registers().layout
                                                          : Layout{};
    };
    const Layout from = layout(r.from);
    if (from.domain.empty() || from.domain != layout(r.to).domain)
      l.refuse("these storages have no layouts of one domain");
    r.plan = passes::plan_of(l_, r);
  }

  template <std::size_t... n>
  void make(Statement& s, std::size_t wanted, PartLine& l, std::index_sequence<n...>) {
    ((n == wanted ? members(l, s.what.emplace<n>()) : void()), ...);
  }

  static std::vector<Statements>* branches(Statement& s) {
    return std::visit(
        [](auto& what) -> std::vector<Statements>* {
          if constexpr (requires { what.bodies; }) return &what.bodies;
          return nullptr;
        },
        s.what);
  }

  // What stands in front of it has a name and a brace.
  void bodies(Statement& s) {
    while (next_ < lines_.size() && line().words().size() == 2 && line().words()[1] == "{") {
      const std::string name = line().first();
      ++next_;
      Statements inner = list();
      if (std::vector<Statements>* const all = branches(s); all && name == "branch") {
        all->push_back(std::move(inner));
        continue;
      }
      bool known = false;
      for_each_named_body(s, [&](const std::string& other, Statements& to) {
        if (other == name) to = std::move(inner), known = true;
      });
      if (!known) lines_[next_ - 1].refuse("the statement has no '" + name + "'");
    }
  }

  // ---- members

  template <class T>
  void members(PartLine& l, T& x) {
    take_members(l, x);
    l.end();
  }

  template <class T>
  void take_members(PartLine& l, T& x) {
    fields(x, [&](const char* name, auto&& member) {
      const std::optional<std::string> text = l.take(name);
      if (!text) return;
      set(l, member, *text);
    });
  }

  ValueId value(const PartLine& l, const std::string& text) const {
    if (text == "-") return graph::no_value;
    const auto found = values_.find(text);
    if (found == values_.end()) l.refuse(text + " is not in the graph");
    return found->second;
  }
  ValueId some_value(const PartLine& l, const std::string& text) const {
    const ValueId v = value(l, text);
    if (v == graph::no_value) l.refuse("expected a value");
    return v;
  }

  static void set(const PartLine& l, bool& x, const std::string& text) {
    if (text != "true" && text != "false") l.refuse("expected true or false");
    x = text == "true";
  }
  template <std::integral T>
  static void set(const PartLine& l, T& x, const std::string& text) {
    x = l.number<T>(text);
  }
  static void set(const PartLine& l, DType& x, const std::string& text) {
    x = dtype_named(text.c_str());
    if (x == DType()) l.refuse("'" + text + "' is no type");
  }
  void set(const PartLine& l, ValueId& x, const std::string& text) const { x = value(l, text); }
  static void set(const PartLine& l, Layout& x, const std::string& text) {
    if (text == "-") return void(x = {});
    if (text.size() < 2 || text.front() != '"' || text.back() != '"') l.refuse("expected a layout");
    try {
      x = layout::parse(text.substr(1, text.size() - 2));
    } catch (const Error& e) {
      l.refuse(e.what());
    }
  }
  template <class T>
  static void set(const PartLine& l, const Word<T>& x, const std::string& text) {
    const auto found = std::ranges::find(x.words, text);
    if (found == x.words.end()) l.refuse("'" + text + "' is not one of its words");
    x.value = static_cast<T>(found - x.words.begin());
  }
  template <class V>
  static void set(const PartLine& l, const Alternative<V>& x, const std::string& text) {
    const auto found = std::ranges::find(x.words, text);
    if (found == x.words.end()) l.refuse("'" + text + "' is not one of its words");
    [&]<std::size_t... n>(std::index_sequence<n...>) {
      const auto wanted = static_cast<std::size_t>(found - x.words.begin());
      ((n == wanted ? void(x.value.template emplace<n>()) : void()), ...);
    }
    (std::make_index_sequence<std::variant_size_v<V>>());
  }
  template <class Kind>
  void set(const PartLine& l, Id<Kind>& x, const std::string& text) {
    if (text == "-") return void(x = {});
    if (!text.starts_with(letter_of<Kind>))
      l.refuse(std::string("expected a number behind '") + letter_of<Kind> + "'");
    x = Id<Kind>(l.number<int>(std::string_view(text).substr(1)));
    mention(l, letter_of<Kind>, x.number());
  }
  template <class Kind>
  void set(const PartLine& l, std::vector<Id<Kind>>& x, const std::string& text) {
    x.clear();
    for (const std::string& item : l.list(text)) set(l, x.emplace_back(), item);
  }
  // "1*2+64": of dimension 1 every second element from 64 on
  static void set(const PartLine& l, DimMap& x, const std::string& text) {
    x.clear();
    for (const std::string& item : l.list(text)) {
      const std::size_t times = item.find('*'), plus = item.find('+');
      DimIndex& d = x.emplace_back(l.number<int>(std::string_view(item).substr(0, times)));
      if (times == std::string::npos) continue;
      if (plus == std::string::npos) l.refuse("expected a stride and a start");
      d.sliced = true;
      d.stride = l.number<std::int64_t>(item.substr(times + 1, plus - times - 1));
      d.start = l.number<std::int64_t>(item.substr(plus + 1));
    }
  }
  template <class T>
  static void set(const PartLine& l, std::vector<T>& x, const std::string& text) {
    x.clear();
    for (const std::string& item : l.list(text))
      x.push_back(static_cast<T>(l.number<std::int64_t>(item)));
  }
  void set(PartLine& l, Sink& x, const std::string& text) {
    const auto* const word = std::ranges::find(sink_words, text);
    if (word == std::end(sink_words)) l.refuse("'" + text + "' is no sink");
    make(x, static_cast<std::size_t>(word - std::begin(sink_words)), l,
         std::make_index_sequence<std::size(sink_words)>());
  }
  template <std::size_t... n>
  void make(Sink& x, std::size_t wanted, PartLine& l, std::index_sequence<n...>) {
    ((n == wanted ? take_members(l, x.emplace<n>()) : void()), ...);
  }
  void set(const PartLine& l, std::vector<ValueId>& x, const std::string& text) const {
    x.clear();
    for (const std::string& item : l.list(text)) x.push_back(some_value(l, item));
  }
  void set(const PartLine& l, Redirects& x, const std::string& text) {
    x.clear();
    for (const std::string& item : l.list(text)) {
      const std::vector<std::string> parts = parts_of(item);
      if (parts.size() != 3) l.refuse("expected a storage, a map and another storage");
      auto& [from, redirect] = x.emplace_back();
      set(l, from, parts[0]);
      set(l, redirect.map, parts[1]);
      set(l, redirect.storage, parts[2]);
    }
  }
  void set(const PartLine& l, std::vector<SharedRow>& x, const std::string& text) {
    x.clear();
    for (const std::string& row : l.list(text)) {
      SharedRow& to = x.emplace_back();
      for (const std::string& span : l.list(row)) {
        const std::vector<std::string> parts = parts_of(span);
        if (parts.size() != 3) l.refuse("expected where a span begins and ends, and a width");
        to.spans.push_back({l.number<std::int64_t>(parts[0]), l.number<std::int64_t>(parts[1]),
                            l.number<int>(parts[2])});
      }
    }
  }
  void set(const PartLine& l, std::vector<SharedColumns>& x, const std::string& text) {
    x.clear();
    for (const std::string& item : l.list(text)) {
      const std::vector<std::string> parts = parts_of(item);
      SharedColumns& to = x.emplace_back();
      to.sum = some_value(l, parts[0]);
      for (std::size_t k = 1; k < parts.size(); ++k) set(l, to.rows.emplace_back(), parts[k]);
    }
  }
  void set(const PartLine& l, std::vector<NestEnd>& x, const std::string& text) {
    x.clear();
    for (const std::string& item : l.list(text)) {
      const std::vector<std::string> parts = parts_of(item);
      if (parts.size() != 3)
        l.refuse("expected a dimension, a mapping and a dimension of its array");
      x.push_back({l.number<int>(parts[0]), l.number<int>(parts[1]), l.number<int>(parts[2])});
    }
  }
  void set(const PartLine& l, LengthCases& x, const std::string& text) {
    const std::vector<std::string> parts = parts_of(text);
    if (parts.size() != 4) l.refuse("expected a mapping, a dimension, a tile and their number");
    x = {l.number<int>(parts[0]), l.number<int>(parts[1]), l.number<std::int64_t>(parts[2]),
         l.number<std::int64_t>(parts[3])};
  }
  void set(const PartLine& l, std::vector<IterationSum>& x, const std::string& text) {
    x.clear();
    for (const std::string& item : l.list(text)) {
      const std::vector<std::string> parts = parts_of(item);
      if (parts.size() < 2 || parts.size() % 2 != 0)
        l.refuse("expected a number, one for each iteration, and values with one each");
      const auto number = [&](std::size_t i) { return l.number<std::int64_t>(parts[i]); };
      IterationSum& to = x.emplace_back();
      to.constant = number(0);
      to.per_iteration = number(1);
      for (std::size_t i = 2; i < parts.size(); i += 2)
        to.addends.emplace_back(some_value(l, parts[i]), number(i + 1));
    }
  }
  // "s3[%7]:%8", in the slot %7 of the block %8; "s3@%6", what the view %6 shows of it
  void set(const PartLine& l, Place& x, std::string text) {
    if (const std::size_t at = text.find(':'); at != std::string::npos) {
      x.block = some_value(l, text.substr(at + 1));
      text.resize(at);
    }
    if (const std::size_t at = text.find('['); at != std::string::npos) {
      if (!text.ends_with(']')) l.refuse("expected a slot");
      x.slot = some_value(l, text.substr(at + 1, text.size() - at - 2));
      text.resize(at);
    }
    const std::size_t shown = text.find('@', 1);
    if (shown != std::string::npos) {
      set_view(l, x, text.substr(shown + 1));
      text.resize(shown);
    }
    if (text.starts_with(letter_of<Storage>)) return set(l, x.storage, text);
    if (text.starts_with(letter_of<Window>)) return set(l, x.window, text);
    set_view(l, x, text);
  }
  void set_view(const PartLine& l, Place& x, const std::string& text) {
    x.view = value(l, text);
    if (x.view != graph::no_value && !l_.graph[x.view].type.is_ref())
      l.refuse(text + " is no view");
  }

  // ---- what is named by a number

  // Its line may stand behind the one that names it.
  void mention(const PartLine& l, char kind, int number) {
    mentions_.push_back({&l, kind, number});
  }

  void check_numbers() const {
    for (const Mention& m : mentions_)
      if (m.number < 0 || std::cmp_greater_equal(m.number, count(m.kind)))
        m.line->refuse(std::string("there is no ") + m.kind + std::to_string(m.number));
    for (const Window& w : l_.windows)
      if (w.root == graph::no_value) throw std::runtime_error("a window has no root");
  }

  std::size_t count(char kind) const {
    switch (kind) {
    case letter_of<LayoutVariable>: return l_.pinned.size();
    case letter_of<Storage>: return l_.storages.size();
    case letter_of<Window>: return l_.windows.size();
    case letter_of<Ring>: return l_.rings.size();
    case letter_of<Barriers>: return l_.barriers.size();
    default: return l_.tensor_boxes.size();
    }
  }

  // ---- what follows from the rest

  void find_windows() {
    if (l_.windows.empty()) return;
    l_.window_of.assign(l_.graph.insts.size(), {});
    for (const WindowId w : l_.windows.ids()) l_.window_of[l_.windows[w].root] = w;
    passes::share_index_operands(l_);
  }

  struct Mention {
    const PartLine* line;
    char kind;  // letter_of it
    int number;
  };

  Program l_;
  std::vector<Mention> mentions_;
  std::map<std::string, ValueId> values_;  // by what they are called
  std::vector<PartLine> lines_;
  std::size_t next_ = 0;
};

}  // namespace

lowered::Program lowered_of(std::string_view text) { return ProgramReader(text).run(); }

}  // namespace palladium::test
