// What an iteration loads into a few registers is loaded while the one before it computes.
//
// Precondition: software_pipeline, so that loops are as they stay. Of a loop in which threads wait,
// for products or for each other, such a load would begin behind a wait, and be awaited as a whole.
// In front of the loop stand those for its first iteration; in it, behind the last statement that
// reads what was loaded, those for the next one.
//
// A load can stand there if all that it needs follows from the number of the iteration, and nobody
// writes what it reads.
#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "codegen/lowered/effects.hpp"
#include "codegen/passes/needs.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/registers.hpp"

namespace palladium::passes {
namespace {

using graph::Op;

constexpr std::int64_t most_loaded_ahead = 24;  // of all that is loaded ahead, of a thread
constexpr std::int64_t register_bytes = 4;

class LoadAhead {
 public:
  explicit LoadAhead(Program& l) : l_(l), g_(l.graph), reads_(l.storages.size()) {
    for_each_list(l_, [&](const Statements& list) { count_reads(list); });
  }

  void run() {
    for (Body& b : l_.bodies)
      for (Agent& a : b.agents) visit(a.statements);
  }

 private:
  void visit(Statements& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      for_each_body(list[i], [&](Statements& body) { visit(body); });
      if (Loop* const loop = std::get_if<Loop>(&list[i].what)) {
        if (loop->prologue.empty()) i += build(list, i, {.body = &loop->body, .loop = loop->inst});
      } else if (GridLoop* const grid = std::get_if<GridLoop>(&list[i].what)) {
        if (grid->prologue.empty() && grid->axis != programs_axis)
          i += build(list, i, {.body = &grid->body, .axis = grid->axis});
      }
    }
  }

  /// Loads that stand behind one statement, with what they need.
  struct Group {
    std::vector<StorageId> kept;
    std::set<std::size_t> needed;
    Statements loads;
  };

  // How many statements stand in front of the loop that did not.
  std::size_t build(Statements& list, std::size_t at, const Over& over) {
    Statements& body = *over.body;
    if (!waits(body) || std::ranges::any_of(body, waits_for_others)) return 0;
    Needs needs(l_, over);
    Readers all = readers_in(body);
    std::map<std::size_t, Group> groups;  // by the last statement that reads
    std::set<std::size_t> moved;
    std::int64_t registers = 0;
    for (std::size_t i = body.size(); i-- > 0;) {
      const StorageId filled = filled_by_load(body[i]);
      if (!filled || !is_read_behind(all[filled], i, filled)) continue;
      const std::size_t last = last_reader(all[filled], i, moved);
      const std::int64_t more = last == i ? 0 : registers_of(filled);
      std::set<std::size_t> needed;
      if (registers + more > room() || !needs.add(std::span(&body[i], 1), needed).empty()) continue;
      moved.insert(i);
      registers += more;
      if (last == i) continue;  // none but those that have it again
      Group& group = groups[last];
      group.kept.insert(group.kept.begin(), filled);
      group.needed.merge(needed);
      group.loads.insert(group.loads.begin(), body[i]);
    }
    if (moved.empty()) return 0;
    const Location where = list[at].at;
    Statements first = rewrite(over, moved, groups, where);
    const std::size_t count = first.size();
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(at),
                std::make_move_iterator(first.begin()), std::make_move_iterator(first.end()));
    return count;
  }

  // The loop with its loads for the next iteration; returns those for the first.
  Statements rewrite(const Over& over, const std::set<std::size_t>& moved,
                     const std::map<std::size_t, Group>& groups, Location where) const {
    const Statements body = std::move(*over.body);
    Statements out, first;
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (!moved.contains(i)) out.push_back(body[i]);
      const auto found = groups.find(i);
      if (found == groups.end()) continue;
      Ahead ahead{.iterations = 1,
                  .axis = over.axis,
                  .loop = over.loop,
                  .kept = found->second.kept,
                  .body = {}};
      for (const std::size_t n : found->second.needed) ahead.body.push_back(body[n]);
      for (const Statement& load : found->second.loads) ahead.body.push_back(load);
      out.push_back({ahead, where});
      ahead.iterations = 0;
      Lead lead{
          .iterations = 1, .axis = over.axis, .loop = over.loop, .kept = ahead.kept, .body = {}};
      lead.body.push_back({std::move(ahead), where});
      first.push_back({std::move(lead), where});
    }
    *over.body = std::move(out);
    return first;
  }

  // For products or for each other.
  bool waits(const Statements& body) const {
    return std::ranges::any_of(body, [&](const Statement& s) {
      const LoopNest* const p = std::get_if<LoopNest>(&s.what);
      return std::holds_alternative<Dot>(s.what) || (p != nullptr && is_fold(p->sink)) ||
             effects(l_, s).syncs;
    });
  }

  // Behind whom arrays of the call may hold something else.
  static bool waits_for_others(const Statement& s) {
    bool found = std::holds_alternative<Semaphore>(s.what);
    for_each_body(s, [&](const Statements& body) {
      found = found || std::ranges::any_of(body, waits_for_others);
    });
    return found;
  }

  // Registers, or a scalar, that the statement fills with what it loads of an array that nobody
  // writes; none: it does something else.
  StorageId filled_by_load(const Statement& s) const {
    ValueId value = graph::no_value;
    StorageId filled;
    if (const Scalar* const x = std::get_if<Scalar>(&s.what)) {
      if (x->redirects.empty()) value = x->value, filled = x->storage;
    } else if (const LoopNest* const p = std::get_if<LoopNest>(&s.what)) {
      const Assign* const to = std::get_if<Assign>(&p->sink);
      if (to != nullptr && p->redirects.empty()) value = p->value, filled = to->storage;
    }
    if (!filled || g_[value].op != Op::Load || l_.storage_of[value] != filled) return {};
    if (!l_.storages[filled].in_registers() && !l_.storages[filled].is_scalar()) return {};
    const Window& w = l_.window_loaded(value);
    return w.is_direct() && w.read_only && w.mapping >= 0 ? filled : StorageId();
  }

  /// Of each storage, by number, the statements of an iteration that read it, once for each time.
  using Readers = std::map<StorageId, std::vector<std::size_t>>;

  Readers readers_in(const Statements& body) const {
    Readers all;
    for (std::size_t i = 0; i < body.size(); ++i) add_readers(body[i], i, all);
    return all;
  }

  void add_readers(const Statement& s, std::size_t number, Readers& all) const {
    for (const Effect& e : effects(l_, s))
      if (e.reads() && e.storage) all[e.storage].push_back(number);
    for_each_body(s, [&](const Statements& body) {
      for (const Statement& inner : body) add_readers(inner, number, all);
    });
  }

  // Whether all who read what the load fills stand behind it in the iteration, and there are such.
  bool is_read_behind(const std::vector<std::size_t>& readers, std::size_t load,
                      StorageId filled) const {
    return !readers.empty() && readers.front() > load && std::ssize(readers) == reads_[filled];
  }

  // The last of those that stay; the load if there is none.
  static std::size_t last_reader(const std::vector<std::size_t>& readers, std::size_t load,
                                 const std::set<std::size_t>& moved) {
    const auto last = std::find_if(readers.rbegin(), readers.rend(),
                                   [&](std::size_t i) { return !moved.contains(i); });
    return last == readers.rend() ? load : *last;
  }

  void count_reads(const Statements& list) {
    for (const Statement& s : list) {
      for (const Effect& e : effects(l_, s))
        if (e.reads() && e.storage) ++reads_[e.storage];
      for_each_body(s, [&](const Statements& body) { count_reads(body); });
    }
  }

  std::int64_t registers_of(StorageId s) const {
    const Storage& x = l_.storages[s];
    const std::int64_t elements = x.in_registers() ? x.registers().layout.registers() : 1;
    return (elements * x.dtype.bytes() + register_bytes - 1) / register_bytes;
  }

  std::int64_t room() const {
    return std::min(most_loaded_ahead, registers_of_thread(l_) - l_.most_held);
  }

  Program& l_;
  const graph::Graph& g_;
  Table<StorageId, int> reads_;  // in the whole text
};

}  // namespace

void load_ahead(Program& l) { LoadAhead(l).run(); }

}  // namespace palladium::passes
