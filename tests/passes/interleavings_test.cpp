// That one run of a way stands for all of its interleavings, looked at by running all of them: each
// agent's next step, or the end of a copy or a product, is one of the ways to go on.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/lowered/protocol_model.hpp"
#include "codegen/lowered/protocol_run.hpp"
#include "codegen/lowered/protocol_walk.hpp"
#include "tests/passes/protocol_subjects.hpp"

using namespace palladium;
using namespace palladium::lowered::protocol;
using namespace palladium::test::waiting;

namespace {

using Kind = Act::Kind;
using Ways = std::vector<std::vector<Event>>;

/// What there is at one time. An agent is one thread: of what several threads of one do to each
/// other nothing is known here.
struct State {
  struct Flight {
    int agent = 0, event = 0;
    auto operator<=>(const Flight&) const = default;
  };
  struct Cell {
    std::int64_t version = -1;
    bool is_full = false, is_seen = true;
    auto operator<=>(const Cell&) const = default;
  };
  struct Barrier {
    std::int64_t phases = 0, bytes = 0;
    int pending = 0;
    auto operator<=>(const Barrier&) const = default;
  };
  std::vector<int> next = {};
  std::vector<Flight> copies = {}, products = {};  // under way; products in order
  std::vector<Cell> cells = {};
  std::vector<Barrier> barriers = {};
  auto operator<=>(const State&) const = default;
};

class Interleavings {
 public:
  Interleavings(const Model& m, const Ways& events) : m_(m), events_(events) {}

  /// Whether something goes wrong in one of them; more than so many states: nobody knows.
  bool go_wrong(std::size_t most, bool& is_known) {
    State first;
    first.next.resize(events_.size());
    first.cells.resize(m_.cells.size());
    first.barriers.resize(static_cast<std::size_t>(m_.barriers));
    for (const lowered::BarrierId b : m_.program->barriers.ids()) {
      const std::int64_t slots = m_.program->storages[m_.program->barriers[b].storage].shape[0];
      for (std::int64_t s = 0; s < slots; ++s)
        first.barriers[static_cast<std::size_t>(m_.first_barrier[b] + s)].pending =
            arrivals_of(m_.first_barrier[b] + static_cast<int>(s));
    }
    visit(first);
    while (!left_.empty() && !is_wrong_ && seen_.size() < most) {
      const State now = left_.back();
      left_.pop_back();
      go_on(now);
    }
    is_known = is_wrong_ || left_.empty();
    return is_wrong_;
  }

 private:
  int arrivals_of(int barrier) const {
    int arrivals = 1;
    for (const lowered::BarrierId b : m_.program->barriers.ids())
      if (m_.first_barrier[b] <= barrier) arrivals = m_.program->barriers[b].arrivals;
    return arrivals;
  }

  void visit(const State& s) {
    if (seen_.insert(s).second) left_.push_back(s);
  }

  void go_on(const State& now) {
    bool moves = false;
    for (std::size_t a = 0; a < events_.size(); ++a) {
      const int at = now.next[a];
      if (std::cmp_equal(at, events_[a].size())) continue;
      const Event& e = event(static_cast<int>(a), at);
      if (!can_begin(now, static_cast<int>(a), e)) continue;
      State then = now;
      ++then.next[a];
      begin(then, static_cast<int>(a), at);
      visit(then);
      moves = true;
    }
    for (std::size_t i = 0; i < now.copies.size(); ++i) {
      State then = now;
      then.copies.erase(then.copies.begin() + static_cast<std::ptrdiff_t>(i));
      end_copy(then, event(now.copies[i].agent, now.copies[i].event));
      visit(then);
      moves = true;
    }
    if (!now.products.empty()) {
      State then = now;
      then.products.erase(then.products.begin());
      visit(then);
      moves = true;
    }
    if (moves) return;
    for (std::size_t a = 0; a < events_.size(); ++a)
      is_wrong_ |= std::cmp_less(now.next[a], events_[a].size());  // a deadlock
    for (std::size_t c = 0; c < now.cells.size(); ++c)
      is_wrong_ |= now.cells[c].version >= 0 && !now.cells[c].is_seen;
  }

  const Event& event(int agent, int at) const {
    return events_[static_cast<std::size_t>(agent)][static_cast<std::size_t>(at)];
  }

  bool can_begin(const State& s, int agent, const Event& e) const {
    if (e.act->kind == Kind::wait)
      return ((s.barriers[static_cast<std::size_t>(e.barrier)].phases ^ e.phase) & 1) != 0;
    if (e.act->kind != Kind::wait_group || e.act->group != device::Completion::wgmma_group)
      return true;
    return std::ranges::count(s.products, agent, &State::Flight::agent) <= e.act->pending;
  }

  void begin(State& s, int agent, int at) {
    const Event& e = event(agent, at);
    for (const Touch& t : e.touches) touch(s, e, t);
    switch (e.act->kind) {
    case Kind::copy: s.copies.push_back({agent, at}); break;
    case Kind::product: s.products.push_back({agent, at}); break;
    case Kind::expect: arrive(s, e.barrier, e.act->bytes, 1); break;
    case Kind::arrive: arrive(s, e.barrier, 0, 1); break;
    case Kind::wait:
      is_wrong_ |= s.barriers[static_cast<std::size_t>(e.barrier)].phases != e.phase + 1;
      break;
    default: break;
    }
    std::ranges::sort(s.copies);
  }

  bool is_slot(int cell) const {
    return bool(m_.program->storages[m_.cells[static_cast<std::size_t>(cell)].storage].ring());
  }

  // Slots alone are looked at, and what is multiplied in them.
  void touch(State& s, const Event& e, const Touch& t) {
    if (!is_slot(t.cell)) return;
    State::Cell& c = s.cells[static_cast<std::size_t>(t.cell)];
    if (!t.fills) {
      is_wrong_ |= !e.is_left_out && (!c.is_full || c.version != t.version);
      c.is_seen = true;
      return;
    }
    is_wrong_ |= (c.version >= 0 && !c.is_full) || !c.is_seen;
    for (const State::Flight& f : s.products)
      for (const Touch& other : event(f.agent, f.event).touches) is_wrong_ |= other.cell == t.cell;
    c = {t.version, false, false};
  }

  void end_copy(State& s, const Event& e) {
    for (const Touch& t : e.touches)
      if (t.fills) s.cells[static_cast<std::size_t>(t.cell)].is_full = true;
    arrive(s, e.barrier, -e.act->bytes, 0);
  }

  void arrive(State& s, int barrier, std::int64_t bytes, int count) {
    State::Barrier& b = s.barriers[static_cast<std::size_t>(barrier)];
    is_wrong_ |= count > 0 && b.pending == 0;
    b.bytes += bytes;
    b.pending -= count;
    is_wrong_ |= b.pending <= 0 && b.bytes < 0;
    if (b.pending <= 0 && b.bytes == 0) b = {b.phases + 1, 0, arrivals_of(barrier)};
  }

  const Model& m_;
  const Ways& events_;
  std::vector<State> left_;
  std::set<State> seen_;
  bool is_wrong_ = false;
};

struct Agreement {
  int good = 0, wrong = 0, unknown = 0;
};

// Of each way that is short enough: where one of its interleavings goes wrong, the run says so.
void compare(const lowered::Program& l, Agreement& all) {
  const Model m = model_of(l);
  Answers answers;
  Run run(m);
  Ways events;
  do {
    REQUIRE(walk(m, answers, 10'000, events));
    bool is_known = false;
    const bool wrong = Interleavings(m, events).go_wrong(4'000, is_known);
    const lowered::protocol::Fault fault = run(events);
    ++(!is_known ? all.unknown : wrong ? all.wrong : all.good);
    if (is_known && wrong) CHECK(fault.is_found());
  } while (answers.next());
}

}  // namespace

TEST_CASE("where an interleaving goes wrong the run that stands for all of them says so") {
  Agreement all;
  const graph::Graph graphs[] = {product({.specialize = false, .stages = 2}),
                                 product({.specialize = true, .stages = 2}),
                                 attention({.specialize = true, .stages = 2})};
  for (const graph::Graph& g : graphs) {
    lowered::Program l = on(g, 90);
    INFO(lowered::to_text(l));
    compare(l, all);
    CHECK(all.wrong == 0);
    Agreement broken;
    for_each_fault(l, [&](const std::string& fault) {
      INFO(fault);
      compare(l, broken);
    });
    CHECK(broken.wrong > 40);
    CHECK(broken.unknown < broken.wrong);
  }
  CHECK(all.good > 10);
  CHECK(all.unknown < all.good);
}
