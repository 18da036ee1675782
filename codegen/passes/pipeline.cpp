// Pipelines: what a loop copies to shared memory is copied for iterations that are to come, while
// earlier ones compute.
//
// Precondition: choose_copies. Each iteration has a slot of a ring of shared memory. Before the
// loop stand the copies for its first iterations; in it, behind one wait and one barrier, those for
// the iteration that is `slots - 1` ahead: they overwrite what the iteration before has read.
// Copies that the loop does not have iterations for are not made, so that nothing is under way
// behind it.
//
// Where products of wgmma go on while the next iteration begins, which nobody waits for, and slots
// are not few, threads copy for the iteration that is `slots - 2` ahead: they overwrite what the
// one before that has read.
//
// What TMA fetches is there when the barrier of its slot says so: who reads it waits for that
// alone. Of a loop of nothing but products that add to what the iteration before it left those of
// one iteration are in flight: each overwrites, behind its own, what those before have read.
//
// Where shared memory has one slot for each fetch it is filled again as soon as it is read.
//
// Of several fetches of an iteration that take turns each has the next slot, where all of them at
// once would leave too few.
//
// A copy can be made ahead if all that it needs follows from the number of the iteration: the
// blocks of windows, scalars that are computed of nothing but it. What is read is written by
// nobody.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "codegen/base/format.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/needs.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/producer.hpp"
#include "codegen/passes/products.hpp"
#include "codegen/passes/registers.hpp"
#include "codegen/passes/short_operands.hpp"
#include "codegen/passes/slots.hpp"
#include "codegen/passes/take_turns.hpp"

namespace palladium::passes {
namespace {

// Beside the values of a product: descriptors, addresses, what an epilogue needs.
constexpr std::int64_t least_beside_values = 40;
// Slots of which one is left to products that go on beside what threads copy.
constexpr int least_beside_products = 4;
// Slots of copies that are fewer for a text without numbers of slots.
constexpr int least_followed = 3;
// Slots of which none is awaited soon after it is filled.
constexpr std::int64_t least_ahead = 3;

class Pipelines {
 public:
  Pipelines(Program& l, const SlotRoom& room)
      : l_(l), g_(l.graph), room_(room), given_(g_.bodies[0].num_stages) {}

  void run() {
    for (Body& b : l_.bodies) {
      Statements& list = b.agents[0].statements;
      top_ = l_.bodies.size() == 1 && l_.warpgroups == 1 ? &list : nullptr;
      visit(list, nullptr);
      if (!produced_.empty()) add_producer(l_, b, produced_);
    }
  }

 private:
  static bool is_over_programs(const Statement& s) {
    const GridLoop* const loop = std::get_if<GridLoop>(&s.what);
    return loop != nullptr && loop->axis == programs_axis;
  }

  // Why nobody can make copies ahead of what stands in the bodies of a statement; nullptr: a loop,
  // which is built, or nothing repeats them.
  const char* obstacle(const Statement& s, const char* around) const {
    if (std::holds_alternative<While>(s.what))
      return "whether a while_loop has a next iteration is known only then";
    if (const GridLoop* const loop = std::get_if<GridLoop>(&s.what))
      return loop->axis == programs_axis ? "it is copied once for each program" : nullptr;
    if (std::holds_alternative<Loop>(s.what) || (loops_around_ == 0 && around == nullptr))
      return nullptr;
    if (std::holds_alternative<When>(s.what) || std::holds_alternative<Switch>(s.what))
      return "it is copied under a condition";
    return "it is copied in a scope of its own";
  }

  void visit(Statements& list, const char* why) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (why != nullptr && given_ != 1 && begins_copies(list, i) && is_awaited_soon(list, i))
        tell_not_pipelined(l_, copies_at(list, i), why);
      const char* const inside = obstacle(list[i], why);
      loops_around_ += repeats(list[i]);
      const bool is_followed = can_follow(list, list[i]);
      if (is_followed) around_.push_back({&list, i});
      for_each_body(list[i], [&](Statements& body) { visit(body, inside); });
      if (is_followed) around_.pop_back();
      loops_around_ -= repeats(list[i]);
      if (is_over_programs(list[i])) continue;
      if (GridLoop* loop = std::get_if<GridLoop>(&list[i].what))
        i += build(list, i, {.body = &loop->body, .axis = loop->axis, .unrolled = &loop->ring});
      else if (Loop* loop = std::get_if<Loop>(&list[i].what))
        i += build(list, i, {.body = &loop->body, .loop = loop->inst, .unrolled = &loop->ring});
    }
  }

  // Whether no loop stands between copies and those who read what they bring.
  bool is_awaited_soon(const Statements& list, std::size_t first) const {
    const std::vector<StorageId> filled = filled_by(l_, copies_at(list, first));
    const auto reads_it = [&](const Effect& e) {
      return e.reads() && e.storage && std::ranges::count(filled, e.storage) > 0;
    };
    for (std::size_t i = end_of_copies(list, first); i < list.size(); ++i) {
      if (any_effect(l_, list[i], reads_it)) return true;
      if (repeats(list[i])) return false;
    }
    return true;
  }

  // Whether a producer that goes through the list may go into the statement.
  bool can_follow(const Statements& list, const Statement& s) const {
    return is_followed(list) &&
           (std::holds_alternative<When>(s.what) || std::holds_alternative<Loop>(s.what) ||
            std::holds_alternative<GridLoop>(s.what));
  }

  // Whether nothing but conditions and loops, whose numbers say all of them, stands around the
  // list.
  bool is_followed(const Statements& list) const {
    if (around_.empty()) return &list == top_;
    bool found = false;
    for_each_body((*around_.back().list)[around_.back().at],
                  [&](const Statements& body) { found = found || &body == &list; });
    return found;
  }

  // Returns how many statements stand in front of the loop that did not.
  std::size_t build(Statements& list, std::size_t at, const Over& over) {
    split_fetches(*over.body);
    std::set<std::size_t> moved, needed;  // where copies that are made together begin
    std::size_t copies = 0;
    Needs needs(l_, over);
    for (std::size_t i = 0; i < over.body->size(); ++i) {
      if (!begins_copies(*over.body, i)) continue;
      const Copies made = copies_at(*over.body, i);
      ++copies;
      const int given = slots_given(l_, made);
      if (given == 1 && given_ != 1)
        l_.remarks.push_back(
            {made[0].at,
             fmt::format("{}: not pipelined, as pl::Buffered(1) says",
                         description_of(g_, l_.windows[window_copied(l_, made)].root))});
      if (given == 1) continue;
      const std::string why = needs.add(made, needed);
      if (why.empty())
        moved.insert(i);
      else
        tell_not_pipelined(l_, made, why);
    }
    if (moved.empty()) return 0;
    const bool fetched = std::ranges::all_of(
        moved, [&](std::size_t i) { return bool(completed_by((*over.body)[i])); });
    const char* obstacle =
        !fetched || moved.size() != copies ? "threads copy a part of what it reads"
        : !is_followed(list)               ? "what stands around it, or beside it, is no loop"
        : !holds_beside_producer(l_, l_.most_held) ? "values take the registers that it would have"
                                                   : nullptr;
    Over by_turns = over;
    by_turns.steps = static_cast<int>(moved.size());
    const bool turns =
        obstacle == nullptr && would_take_turns({&list, at}, by_turns, moved, needed);
    if (turns) take_turns(l_, *over.body, moved);
    const bool wanted = turns || (obstacle == nullptr && is_worth_a_producer(over));
    std::map<std::size_t, int> slots =
        turns ? slots_by_turns(by_turns, moved, list[at].at)
              : slots_for(l_, over, moved, room_, copied_for(over, wanted), wanted, list[at].at);
    std::erase_if(moved, [&](std::size_t i) { return !slots.contains(i); });
    if (moved.empty()) return 0;
    const RingId follows = wanted && !turns ? followed(*over.body, moved, slots) : RingId();
    const int of_first = slots.at(*moved.begin());
    const bool in_groups = fetched && !turns && (loops_around_ == 0 || wanted) && of_first > 1 &&
                           trips(l_, over) >= of_first &&
                           (follows || (only_products(*over.body, moved) &&
                                        parts_of(*over.body, moved, slots, false).size() == 1));
    const RingId first_ring(static_cast<int>(l_.rings.size()));
    std::vector<Ahead> ahead;
    for (const std::set<std::size_t>& part :
         parts_of(*over.body, moved, slots, fetched && (!in_groups || follows))) {
      Ahead a = ahead_of(over, part, turns ? needed_by_turn(moved, needed, *part.begin()) : needed);
      const int of_ring = slots.at(*part.begin());
      a.ring =
          turns && !ahead.empty() ? first_ring : add_ring(turns ? by_turns : over, part, of_ring);
      a.iterations = std::max(1, of_ring - 1);
      ahead.push_back(std::move(a));
    }
    const Location where = list[at].at;
    const bool produced = wanted && produce({&list, at}, ahead);
    const bool unrolled = in_groups && loops_around_ == 0 && (produced || !follows);
    l_.rings[first_ring].unrolled = unrolled;
    if (follows && in_groups && produced) {
      l_.rings[follows].follows = first_ring;
      for (std::size_t i = 1; i < ahead.size(); ++i) l_.rings[ahead[i].ring].follows = first_ring;
    }
    const bool in_flight = unrolled && are_sums(*over.body);
    if (!produced && !in_flight && go_on(*over.body))
      for (Ahead& a : ahead)
        if (a.iterations + 1 >= least_beside_products) --a.iterations;

    if (wanted && !produced) obstacle = "where its blocks begin, the program computes";
    if (obstacle != nullptr && l_.machine.has_tma() && g_.bodies[0].warp_specialize.value_or(false))
      l_.remarks.push_back(
          {where, fmt::format("no warpgroup fetches for the loop, because {}", obstacle)});
    turns ? step_by_turns(*over.body, moved, first_ring, where)
          : rewrite(*over.body, moved, ahead, where, in_flight);
    if (unrolled || (in_groups && produced)) *over.unrolled = first_ring;
    if (produced) return 0;
    Statements first;
    for (Ahead& a : ahead) {
      Lead lead{
          .ring = a.ring, .iterations = a.iterations, .axis = a.axis, .loop = a.loop, .body = {}};
      a.iterations = 0;
      lead.body.push_back({std::move(a), where});
      first.push_back({std::move(lead), where});
    }
    // What is read behind the loop is asked for behind what its first iterations read.
    std::size_t front = at;
    while (front > 0 && is_for_later(list[front - 1], list[at])) --front;
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(front),
                std::make_move_iterator(first.begin()), std::make_move_iterator(first.end()));
    return first.size();
  }

  bool is_for_later(const Statement& s, const Statement& loop) const {
    if (!completed_by(s)) return false;
    const std::vector<StorageId> filled = filled_by(l_, Copies(&s, 1));
    return !any_effect(l_, loop, [&](const Effect& e) {
      return e.storage && std::ranges::count(filled, e.storage) > 0;
    });
  }

  // Leaves the copies of a loop to a producer, if it can make them.
  bool produce(Standing loop, const std::vector<Ahead>& ahead) {
    if (!can_produce(l_, around_, loop, ahead)) return false;
    for (const Ahead& a : ahead)
      if (lowered::Ring& ring = l_.rings[a.ring]; !ring.empty_barriers)
        ring.empty_barriers = l_.add_barriers(a.ring, ring.slots);
    produced_[ahead[0].ring] = ahead;
    return true;
  }

  // What the copies of a part need and are, for iterations to come.
  Ahead ahead_of(const Over& over, const std::set<std::size_t>& part,
                 const std::set<std::size_t>& needed) const {
    Ahead a{.axis = over.axis, .loop = over.loop, .body = {}};
    for (std::size_t i = 0; i < over.body->size(); ++i) {
      if (needed.contains(i)) a.body.push_back((*over.body)[i]);
      if (!part.contains(i)) continue;
      const Copies made = copies_at(*over.body, i);
      a.body.insert(a.body.end(), made.begin(), made.end());
    }
    return a;
  }

  std::vector<Ahead> each_alone(const Over& over, const std::set<std::size_t>& moved,
                                const std::set<std::size_t>& needed) const {
    std::vector<Ahead> all;
    for (const std::size_t i : moved)
      all.push_back(ahead_of(over, {i}, needed_by_turn(moved, needed, i)));
    return all;
  }

  // What a fetch needs that those in front of it have not made.
  static std::set<std::size_t> needed_by_turn(const std::set<std::size_t>& moved,
                                              const std::set<std::size_t>& needed,
                                              std::size_t fetch) {
    const auto of = moved.find(fetch);
    return {needed.lower_bound(of == moved.begin() ? 0 : *std::prev(of)),
            needed.lower_bound(fetch)};
  }

  // Whether a producer can fetch in turn what has no room all at once.
  bool would_take_turns(Standing loop, const Over& over, const std::set<std::size_t>& moved,
                        const std::set<std::size_t>& needed) const {
    return trips(l_, over) > 1 && have_few(over, moved) && is_worth_a_producer(over) &&
           can_take_turns(l_, *over.body, moved) &&
           can_produce(l_, around_, loop, each_alone(over, moved, needed));
  }

  // As many for each, as all share them.
  std::map<std::size_t, int> slots_by_turns(const Over& over, const std::set<std::size_t>& moved,
                                            Location at) {
    std::map<std::size_t, int> slots =
        slots_for(l_, over, {*moved.begin()}, room_, copied_for(over, true), true, at);
    if (slots.empty()) return slots;
    const int of_each = slots.begin()->second;
    for (const std::size_t i : moved) slots[i] = of_each;
    return slots;
  }

  // Whether there is no room for the copies of iterations that are far enough ahead.
  bool have_few(const Over& over, const std::set<std::size_t>& moved) const {
    Checked once = 0;
    for (const std::size_t i : moved)
      for (const StorageId s : filled_by(l_, copies_at(*over.body, i)))
        once = once + shared_bytes(l_.storages[s]);
    const std::int64_t all = placed_bytes(l_).value_or(INT64_MAX / 2);
    const std::int64_t others = std::max<std::int64_t>(0, all - once.value_or(INT64_MAX / 2));
    return room_.most > 1 && !(once * least_ahead + others).within(0, l_.machine.max_shared_bytes);
  }

  // The ring of operands that threads store, if what is copied has a multiple of its slots, or may
  // have: in a text over these all slots are constants.
  RingId followed(const Statements& body, const std::set<std::size_t>& moved,
                  std::map<std::size_t, int>& slots) const {
    const ShortOperands computed = short_operands(l_, body, moved);
    if (!computed.ring) return {};
    const int least = l_.rings[computed.ring].slots, first = slots.at(*moved.begin());
    bool any_given = false;
    Checked bytes = placed_bytes(l_);
    const int more = (first + least - 1) / least * least, fewer = first / least * least;
    for (const std::size_t i : moved) {
      if (slots.at(i) != first) return {};
      any_given = any_given || slots_given(l_, copies_at(body, i)) > 0;
      for (const StorageId s : filled_by(l_, copies_at(body, i)))
        bytes = bytes + shared_bytes(l_.storages[s]) * std::int64_t{more - 1};
    }
    const int chosen = bytes.within(0, l_.machine.max_shared_bytes) ? more : fewer;
    const bool is_other =
        chosen != first && (any_given || chosen < std::min(first, least_followed));
    if (is_other || computed.elements * chosen > most_elements_over_slots) return {};
    for (const std::size_t i : moved) slots[i] = chosen;
    return computed.ring;
  }

  // What is in slots of one ring: all of as many slots, those of most first; or what each of
  // several fetches brings, so that its slots are free as soon as products have read that. What
  // threads read is free at the end of the iteration.
  std::vector<std::set<std::size_t>> parts_of(const Statements& body,
                                              const std::set<std::size_t>& moved,
                                              const std::map<std::size_t, int>& slots,
                                              bool apart) const {
    std::map<std::pair<bool, int>, std::set<std::size_t>, std::greater<>> parts;
    for (const std::size_t i : moved) {
      const bool alone = apart && is_read_by_products(body, copies_at(body, i));
      parts[{alone, alone ? -static_cast<int>(i) : slots.at(i)}].insert(i);
    }
    std::vector<std::set<std::size_t>> list;
    for (auto& [_, part] : parts) list.push_back(std::move(part));
    return list;
  }

  // Whether the last to read what copies bring is one.
  bool is_read_by_products(const Statements& body, Copies copies) const {
    const std::vector<StorageId> filled = filled_by(l_, copies);
    const auto last = std::find_if(body.rbegin(), body.rend(), [&](const Statement& s) {
      return any_effect(l_, s, [&](const Effect& e) {
        return e.reads() && e.storage && std::ranges::count(filled, e.storage) > 0;
      });
    });
    return last != body.rend() && is_wgmma(*last);
  }

  // What is fetched for rings of different numbers of slots has barriers of its own.
  void split_fetches(Statements& body) {
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (!completed_by(body[i])) continue;
      const auto all = std::span(body).subspan(i, end_of_copies(body, i) - i);
      const int given = slots_given(l_, all.first(1));
      const auto others = std::ranges::stable_partition(
          all, [&](const Statement& s) { return slots_given(l_, Copies(&s, 1)) == given; });
      if (!others.empty()) {
        const BarrierId more = l_.add_barriers();
        for (Statement& s : others) std::get<Copy>(s.what).completes = more;
      }
      i += all.size() - others.size() - 1;
    }
  }

  static bool only_products(const Statements& body, const std::set<std::size_t>& moved) {
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (moved.contains(i)) {
        i = end_of_copies(body, i) - 1;
        continue;
      }
      const auto& what = body[i].what;
      const bool plain =
          std::holds_alternative<EnterWindow>(what) || std::holds_alternative<Scalar>(what);
      if (!plain && !is_wgmma(body[i])) return false;
    }
    return true;
  }

  // Whether each product adds to what the iteration before left: nobody asks for it meanwhile.
  static bool are_sums(const Statements& body) {
    return std::ranges::all_of(body, [](const Statement& s) {
      const Dot* const d = std::get_if<Dot>(&s.what);
      return d == nullptr || d->accumulates;
    });
  }

  // Whether its products are such, by wgmma, and go on while the next iteration begins.
  bool go_on(const Statements& body) const {
    bool any = false;
    for (const Statement& s : body) {
      const Dot* const d = std::get_if<Dot>(&s.what);
      if (d == nullptr) continue;
      any = true;
      if (d->unit != Dot::Unit::wgmma || !d->accumulates) return false;
      for (const Statement& other : body)
        if (!is_wgmma(other) &&
            any_effect(l_, other, [&](const Effect& e) { return e.storage == d->result; }))
          return false;
    }
    return any;
  }

  // The loop without what is copied ahead. All threads say together that they have read slots, at
  // the end of the iteration. Of a product in flight the slot is free when the next one has begun:
  // the copies for later iterations stand behind that.
  void rewrite(Statements& body, const std::set<std::size_t>& moved,
               const std::vector<Ahead>& ahead, Location at, bool in_flight) {
    Statements out;
    for (std::size_t i = 0; i < body.size(); ++i)
      if (moved.contains(i))
        i = end_of_copies(body, i) - 1;
      else
        out.push_back(std::move(body[i]));
    for (const Ahead& a : ahead) {
      const std::size_t end = behind_reads(out, a.ring);
      const bool at_end = ahead.size() == 1 || end == 0 || !is_wgmma(out[end - 1]);
      const std::size_t step = at_end ? out.size() : in_front_of_who_asks(out, end);
      out.insert(out.begin() + static_cast<std::ptrdiff_t>(step), {Advance{a.ring}, at});
    }
    body = std::move(out);
    if (l_.rings[ahead[0].ring].empty_barriers) return;
    Statements next;
    for (const Ahead& a : ahead)
      if (l_.rings[a.ring].slots > 1)
        next.push_back({a, at});
      else
        body.insert(behind_step(body, a.ring), {a, at});
    body.insert(in_flight ? body.end() - 1 : body.begin(), std::make_move_iterator(next.begin()),
                std::make_move_iterator(next.end()));
  }

  // The one slot of a ring is filled behind the step from it.
  static Statements::iterator behind_step(Statements& body, RingId ring) {
    return std::next(std::ranges::find_if(body, [&](const Statement& s) {
      const Advance* const step = std::get_if<Advance>(&s.what);
      return step != nullptr && step->ring == ring;
    }));
  }

  // The loop without what a producer fetches for it: behind those that read the slot of a fetch the
  // next one's follows.
  void step_by_turns(Statements& body, const std::set<std::size_t>& moved, RingId ring,
                     Location at) const {
    Statements out;
    std::size_t read = 0;  // of `out`: behind the last that reads the slot
    const auto step = [&] {
      out.insert(out.begin() + static_cast<std::ptrdiff_t>(read), {Advance{ring}, at});
    };
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (moved.contains(i)) {
        if (i != *moved.begin()) step();
        i = end_of_copies(body, i) - 1;
        continue;
      }
      out.push_back(std::move(body[i]));
      if (reads(out.back(), ring)) read = out.size();
    }
    step();
    body = std::move(out);
  }

  // Behind the last statement that reads slots of the ring.
  std::size_t behind_reads(const Statements& body, RingId ring) const {
    std::size_t end = 0;
    for (std::size_t i = 0; i < body.size(); ++i)
      if (reads(body[i], ring)) end = i + 1;
    return end;
  }

  // Behind a product: where its result is asked for, which is where it is awaited, too. If nobody
  // asks in the iteration, there.
  std::size_t in_front_of_who_asks(const Statements& body, std::size_t behind) const {
    const StorageId result = std::get<Dot>(body[behind - 1].what).result;
    for (std::size_t i = behind; i < body.size(); ++i) {
      const Dot* const d = std::get_if<Dot>(&body[i].what);
      const bool adds = d != nullptr && d->result == result && is_wgmma(body[i]);
      if (!adds && any_effect(l_, body[i], [&](const Effect& e) { return e.storage == result; }))
        return i;
    }
    return behind;
  }

  bool reads(const Statement& s, RingId ring) const {
    return any_effect(l_, s, [&](const Effect& e) {
      return e.reads() && e.storage && l_.storages[e.storage].ring() == ring;
    });
  }

  // ---- a warpgroup that fetches

  // It issues what all others would wait for at a barrier, and takes registers from them. A loop
  // that can begin with all of its iterations fetched needs none. What it fetches for a loop it
  // fetches for those around it, too.
  bool is_worth_a_producer(const Over& over) const {
    if (const std::optional<bool> given = g_.bodies[0].warp_specialize) return *given;
    const int warpgroups = l_.num_warps / 4;
    const int registers = registers_beside_producer(warpgroups).consumer;
    const bool by_wgmma = std::ranges::any_of(*over.body, [](const Statement& s) {
      const Dot* const d = std::get_if<Dot>(&s.what);
      return d != nullptr && is_of_wgmma(d->unit);
    });
    if (fetches_in(produced_, *over.body)) return true;
    return by_wgmma && warpgroups == 2 && runs(over) > most_slots &&
           l_.most_held + least_beside_values <= registers;
  }

  // Iterations of the loop for which copies are made one behind the other: a producer goes on to
  // those of the next iteration, or program, around it.
  std::int64_t copied_for(const Over& over, bool has_producer) const {
    if (!has_producer) return trips(l_, over);
    return g_.persistent ? INT64_MAX : runs(over);
  }

  // Iterations of the loop in all those of the loops around it.
  std::int64_t runs(const Over& over) const {
    Checked all = trips(l_, over);
    for (const Standing& s : around_) {
      const Statement& around = (*s.list)[s.at];
      if (const Loop* const loop = std::get_if<Loop>(&around.what))
        all = all * trips(l_, {.loop = loop->inst});
      const GridLoop* const grid = std::get_if<GridLoop>(&around.what);
      if (grid != nullptr && grid->axis != programs_axis)
        all = all * trips(l_, {.axis = grid->axis});
    }
    return all.value_or(INT64_MAX);
  }

  RingId add_ring(const Over& over, const std::set<std::size_t>& moved, int slots) {
    const RingId ring(static_cast<int>(l_.rings.size()));
    Ring r{.storage = {}, .slots = slots, .trips = trips(l_, over)};
    std::int64_t alignment = 1;
    StorageId of;
    for (const std::size_t i : moved) {
      const Copies made = copies_at(*over.body, i);
      const BarrierId barrier = completed_by(made[0]);
      if (barrier) give_slots_to(barrier, ring, slots);
      (barrier ? r.fetched : r.copied) = true;
      for (const StorageId filled : filled_by(l_, made)) {
        Storage& s = l_.storages[filled];
        if (!of) of = filled;
        s.shared().ring = ring;
        s.shared().offset = round_up(r.slot_bytes, shared_alignment(s));
        r.slot_bytes = s.shared().offset + shared_bytes(s).value();
        alignment = std::max(alignment, shared_alignment(s));
      }
    }
    r.slot_bytes = round_up(r.slot_bytes, alignment);
    r.storage = l_.add_storage({.in = Shared{.row_stride = slots * r.slot_bytes,
                                             .per_warpgroup = l_.warpgroups > 1,
                                             .fetched = r.fetched,
                                             .alignment = alignment},
                                .dtype = u8,
                                .shape = {slots * r.slot_bytes},
                                .of = l_.storages[of].of});
    l_.rings.push_back(r);
    return ring;
  }

  // One for each slot.
  void give_slots_to(BarrierId barrier, RingId ring, int slots) {
    Barriers& all = l_.barriers[barrier];
    all.ring = ring;
    Storage& s = l_.storages[all.storage];
    s.shape = {slots};
    s.shared().row_stride = slots;
  }

  Program& l_;
  const graph::Graph& g_;
  const SlotRoom room_;
  const int given_;
  int loops_around_ = 0;
  Statements* top_ = nullptr;          // of a body that a producer can fetch for
  std::vector<Standing> around_ = {};  // what it goes into
  Produced produced_;
};

}  // namespace

namespace {

bool copies_any(const Statements& list) {
  bool found = false;
  for (std::size_t i = 0; i < list.size() && !found; ++i) {
    found = begins_copies(list, i);
    for_each_body(list[i], [&](const Statements& body) { found = found || copies_any(body); });
  }
  return found;
}

}  // namespace

// As many slots as there is room for.
void build_pipelines(Program& l) {
  bool found = false;
  for_each_list(l, [&](const Statements& list) { found = found || copies_any(list); });
  if (!found) return Pipelines(l, {most_slots}).run();
  int most = std::max(static_cast<int>(most_slots), l.graph.bodies[0].num_stages);
  for (const BlockMapping& m : l.graph.mapping.block_mappings) most = std::max(most, m.buffers);
  if (l.most_slots > 0) most = std::min(most, l.most_slots);
  const auto fits = [&](Program& built, int slots) {
    Pipelines(built = l, {slots}).run();
    return built.rings.size() == l.rings.size() || fits_shared_memory(built);
  };
  Program best, built;
  if (fits(best, most)) return void(l = std::move(best));
  // Of one slot what is fetched has a ring, if the barriers have room.
  int fit = 1, too_many = most;
  if (!fits(best, fit)) Pipelines(best = l, {}).run();
  while (too_many - fit > 1) {
    const int slots = fit + (too_many - fit) / 2;
    (fits(built, slots) ? fit : too_many) = slots;
    if (fit == slots) best = std::move(built);
  }
  for (int second = 1; fit == 1 && best.rings.size() > l.rings.size() + second; ++second) {
    Pipelines(built = l, {fit, second}).run();
    if (!fits_shared_memory(built)) break;
    best = std::move(built);
  }
  l = std::move(best);
}

}  // namespace palladium::passes
