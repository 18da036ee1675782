#include "codegen/lowered/protocol_walk.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace palladium::lowered::protocol {

int Answers::ask(const std::vector<int>& question, int count) {
  if (count == 1) return 0;
  if (are_most_)
    return static_cast<Question::Of>(question[0]) < Question::Of::condition ? count - 1 : 0;
  const auto [it, is_new] = given_.try_emplace(question, 0);
  if (!is_new) return std::min(it->second, count - 1);
  if (asked_ == choices_.size()) choices_.push_back({0, count});
  return it->second = choices_[asked_++].taken;
}

bool Answers::next() {
  given_.clear();
  choices_.resize(std::exchange(asked_, 0));
  while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().count)
    choices_.pop_back();
  if (choices_.empty()) return false;
  ++choices_.back().taken;
  return true;
}

namespace {

class Walk {
 public:
  Walk(const Model& m, const Agent& agent, Answers& answers, std::int64_t most,
       std::vector<Event>& out)
      : m_(m),
        l_(*m.program),
        agent_(agent),
        answers_(answers),
        most_(most),
        out_(out),
        slots_(l_.rings.size()),
        waits_(l_.barriers.size()) {}

  bool run(const Steps& steps) {
    visit(steps);
    return std::ssize(out_) <= most_;
  }

 private:
  // As the threads count them: which slot is read or produced, which one is filled ahead, and how
  // often the first has come again.
  struct Slots {
    int from = 0, to = 0, now = 0;
    int leads = 0;  // iterations that were begun in front of the loop
    std::int64_t rounds = 0;
    bool begins = false;  // no iteration before this one has used a slot, but the first so many
    int first_steps = 0;  // ... that a rotated loop's first iteration has left
    std::int64_t version = 0;  // that is read, or by a producer filled
    std::int64_t first = 0;    // version of the first iteration of the loop
    std::int64_t ahead = -1;   // version that is filled ahead
  };
  struct Around {
    const Step* loop = nullptr;
    int iteration = 0, count = 0, entry = 0;
  };

  void visit(const Steps& steps) {
    for (const Step& s : steps) {
      if (std::ssize(out_) > most_) return;
      switch (s.kind) {
      case Step::Kind::act: act(s.act); break;
      case Step::Kind::choice: choose(s); break;
      case Step::Kind::loop: loop(s); break;
      case Step::Kind::lead: lead(s); break;
      case Step::Kind::ahead: ahead(s); break;
      case Step::Kind::advance: advance(s.ring); break;
      }
    }
  }

  // ---- what is decided

  // Of two iterations that follow one another each has an answer of its own.
  int ask(const Question& q, int count, bool changes) {
    std::vector<int> key{static_cast<int>(q.of), q.number};
    if (changes)
      for (const Around& a : around_)
        key.insert(key.end(), {static_cast<int>(a.loop->question.of), a.loop->question.number,
                               a.iteration % 2});
    return answers_.ask(key, count);
  }

  int count_of(const Step& loop) {
    return loop.counts[static_cast<std::size_t>(
        ask(loop.question, static_cast<int>(loop.counts.size()), loop.varies))];
  }

  void choose(const Step& s) {
    const int taken = ask(s.question, static_cast<int>(s.bodies.size()), true);
    for (int i = 0; std::cmp_less(i, s.bodies.size()); ++i)
      if (i != taken) skip(s.bodies[static_cast<std::size_t>(i)]);
    visit(s.bodies[static_cast<std::size_t>(taken)]);
  }

  // Nobody reads what a branch that is not taken would.
  void skip(const Steps& steps) {
    for (const Step& s : steps) {
      if (s.kind == Step::Kind::act && !s.act.reads.empty()) {
        Event e = event(s.act);
        for (const Act::Read& r : s.act.reads) touch(e, r.storage, false, r.back);
        e.is_left_out = true;
        out_.push_back(std::move(e));
      }
      for (const Steps& body : s.bodies) skip(body);
    }
  }

  void loop(const Step& s) {
    const int count = count_of(s);
    around_.push_back({&s, 0, count, entries_[&s]++});
    const bool is_while = s.question.of == Question::Of::repetition;
    for (int i = 0; i < count; ++i) {
      around_.back().iteration = i;
      if (s.ring) turn(s.ring, i);
      if (!s.ring) begin(s, i <= (s.rotated ? 1 : 0));
      visit(s.rotated && i == 0 ? s.prologue : s.bodies[0]);
    }
    if (s.ring && !agent_.is_one_thread) slots_[s.ring].version = slots_[s.ring].first + count;
    if (s.grouped) slots_[s.grouped].begins = count == 0;
    if (s.rotated) begin(s, count <= 1);
    if ((s.rotated && count > 0) || is_while) visit(s.epilogue);
    around_.pop_back();
    if (count == 0) skip(s.bodies[0]);
  }

  void begin(const Step& loop, bool begins) {
    for (Slots& x : slots_) x.begins = begins, x.first_steps = 0;
    for (const Step& s : loop.prologue)
      if (s.kind == Step::Kind::advance) ++slots_[s.ring].first_steps;
  }

  // Of a loop that is unrolled over its slots each iteration has its own, whatever was before.
  void turn(RingId ring, int iteration) {
    if (agent_.is_one_thread) return;
    Slots& x = slots_[ring];
    if (iteration == 0 && l_.rings[ring].empty_barriers) x.first = x.version;
    x.from = x.now = iteration % l_.rings[ring].slots;
    x.rounds = iteration / l_.rings[ring].slots;
    x.version = x.first + iteration;
    x.begins = iteration == 0;
  }

  void lead(const Step& s) {
    if (!s.ring) {
      leads_ = 0;
      visit(s.bodies[0]);
      leads_ = -1;
      return;
    }
    const Ring& ring = l_.rings[s.ring];
    Slots& x = slots_[s.ring];
    if (!ring.fetched) x.from = x.now = x.to = 0;
    x.to = x.from;
    x.first = x.version;
    x.leads = s.iterations;
    for (int i = 0; i < s.iterations; ++i) {
      if (ring.unrolled) x.to = i;
      leads_ = i;
      visit(s.bodies[0]);
      leads_ = -1;
      if (!ring.unrolled) x.to = (x.to + 1) % ring.slots;
    }
    x.now = x.from;
  }

  void ahead(const Step& s) {
    if (!s.ring) return visit(s.bodies[0]);  // which nobody waits for
    const Ring& ring = l_.rings[s.ring];
    Slots& x = slots_[s.ring];
    int iteration = leads_, count = 0;
    if (leads_ >= 0) {
      if (const Step* const loop = loop_of(s)) count = count_of(*loop);
    } else {
      const auto found = std::ranges::find_if(
          around_, [&](const Around& a) { return a.loop->question == s.question; });
      if (found == around_.end()) return;
      iteration = found->iteration;
      count = found->count;
      if (ring.unrolled) x.to = (x.from + s.iterations) % ring.slots;
    }
    if (iteration + s.iterations < count) {
      x.now = x.to;
      x.ahead = x.first + iteration + s.iterations;
      visit(s.bodies[0]);
      x.ahead = -1;
    }
    x.now = x.from;
  }

  // The loop behind a lead: what says how often it runs.
  const Step* loop_of(const Step& lead) const {
    const Step* found = nullptr;
    for (const Steps& agent : m_.steps) find(agent, lead.question, found);
    return found;
  }
  static void find(const Steps& steps, const Question& q, const Step*& found) {
    for (const Step& s : steps) {
      if (found == nullptr && s.kind == Step::Kind::loop && s.question == q) found = &s;
      for (const Steps& body : s.bodies) find(body, q, found);
    }
  }

  void advance(RingId number) {
    const Ring& ring = l_.rings[number];
    Slots& x = slots_[number];
    if (ring.unrolled && !agent_.is_one_thread) return;
    const bool fills_last = x.leads == 0 || x.leads == ring.slots - 1;
    if (!ring.empty_barriers) x.to = fills_last ? x.from : (x.to + 1) % ring.slots;
    x.from = x.now = (x.from + 1) % ring.slots;
    if (x.from == 0) ++x.rounds;
    ++x.version;
    x.begins = false;
  }

  // ---- what is done

  Event event(const Act& a) const {
    Event e{.act = &a};
    if (!around_.empty()) {
      e.loop = around_.back().loop;
      e.iteration = around_.back().iteration;
      e.entry = around_.back().entry;
    }
    return e;
  }

  void act(const Act& a) {
    Event e = event(a);
    for (const Act::Read& r : a.reads) touch(e, r.storage, false, r.back);
    for (const StorageId s : a.fills) touch(e, s, true);
    if (a.barrier && !meet_barrier(e, a)) return;
    out_.push_back(std::move(e));
  }

  void touch(Event& e, StorageId storage, bool fills, int back = 0) const {
    const RingId ring = l_.storages[storage].ring();
    Touch t{.cell = m_.first_cell[storage], .fills = fills};
    if (t.cell < 0) return;
    if (ring) {
      const Slots& x = slots_[ring];
      const int slots = l_.rings[ring].slots;
      t.cell += (x.now + slots - back % slots) % slots;
      t.version = (x.ahead >= 0 ? x.ahead : x.version) - back;
    }
    e.touches.push_back(t);
  }

  // False: there is no iteration so many before.
  bool meet_barrier(Event& e, const Act& a) {
    e.barrier = m_.first_barrier[a.barrier];
    const RingId number = l_.barriers[a.barrier].ring;
    if (!number) {
      if (a.kind == Act::Kind::wait) e.phase = waits_[a.barrier]++;
      return true;
    }
    const Ring& ring = l_.rings[number];
    const Slots& x = slots_[number];
    if (a.kind == Act::Kind::arrive) {
      if (a.back > x.first_steps && x.begins) return false;
      e.barrier += (x.from + ring.slots - a.back % ring.slots) % ring.slots;
      return true;
    }
    e.barrier += x.now;
    e.phase = x.rounds - (ring.empty_barriers == a.barrier ? 1 : 0);
    return true;
  }

  const Model& m_;
  const Program& l_;
  const Agent& agent_;
  Answers& answers_;
  const std::int64_t most_;
  std::vector<Event>& out_;
  Table<RingId, Slots> slots_;
  Table<BarrierId, std::int64_t> waits_;
  std::vector<Around> around_;
  std::map<const Step*, int> entries_;
  int leads_ = -1;  // which of the iterations in front of a loop
};

}  // namespace

bool walk(const Model& m, Answers& answers, std::int64_t most,
          std::vector<std::vector<Event>>& out) {
  out.resize(m.agents.size());
  for (std::size_t i = 0; i < m.agents.size(); ++i) {
    out[i].clear();
    if (!Walk(m, m.agents[i], answers, most, out[i]).run(m.steps[i])) return false;
  }
  return true;
}

}  // namespace palladium::lowered::protocol
