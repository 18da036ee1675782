// Who waits for whom, of a lowered program, for people.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/lowered/format.hpp"
#include "codegen/lowered/hand.hpp"
#include "codegen/lowered/protocol.hpp"
#include "codegen/lowered/protocol_model.hpp"
#include "codegen/lowered/protocol_run.hpp"
#include "codegen/lowered/protocol_table.hpp"
#include "codegen/lowered/protocol_walk.hpp"

namespace palladium::lowered::protocol {
namespace {

using Events = std::vector<std::vector<Event>>;

class Schedule {
 public:
  explicit Schedule(const Model& m) : m_(m), run_(m) {
    Answers most(true);
    walk(m, most, most_happenings, events_);
    run_(events_);
  }

  std::string run() {
    std::string text = head();
    const std::vector<Question> loops = loops_of_interest();
    if (loops.empty()) return text + "\n" + table_of(rows([](const Event&) { return true; }));
    for (const Question& loop : loops) text += "\n" + of_loop(loop);
    return text;
  }

 private:
  std::string head() const {
    const Program& l = *m_.program;
    std::string text;
    for (const Agent& a : m_.agents)
      text += a.is_one_thread ? fmt::format("{}: one thread\n", a.name)
                              : fmt::format("{}: {} warps\n", a.name, l.num_warps);
    for (const RingId r : l.rings.ids()) {
      std::vector<std::string> parts;
      for (const Cell& c : m_.cells)
        if (c.slot == 0 && l.storages[c.storage].ring() == r)
          parts.push_back(name_of(m_, c, false));
      text += fmt::format("ring {}: {} slots of {}\n", r, l.rings[r].slots, fmt::join(parts, ", "));
    }
    for (const BarrierId b : l.barriers.ids()) text += told(b);
    return text;
  }

  // Whom a barrier is told by, and who waits for it.
  std::string told(BarrierId b) const {
    std::vector<std::string> by, waiting;
    const auto note = [](std::vector<std::string>& names, const std::string& name) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    };
    for (std::size_t i = 0; i < events_.size(); ++i)
      for (const Event& e : events_[i]) {
        if (e.act->barrier != b) continue;
        const std::string& agent = m_.agents[i].name;
        if (e.act->kind == Act::Kind::wait)
          note(waiting, agent);
        else
          note(by, e.act->kind == Act::Kind::copy ? "copies of the " + agent : "the " + agent);
      }
    const Barriers& x = m_.program->barriers[b];
    const int blocks = blocks_told(*m_.program, b);
    return fmt::format("m{}{}: the {} wait{} for {}{}, {} arrival{}\n", b,
                       x.ring ? fmt::format(" of each slot of ring {}", x.ring) : "",
                       fmt::join(waiting, " and the "),
                       waiting == std::vector<std::string>{"producer"} ? "s" : "",
                       fmt::join(by, " and "),
                       blocks > 1 ? fmt::format(" of {} blocks", blocks) : "", x.arrivals,
                       x.arrivals == 1 ? "" : "s");
  }

  // Those in which slots come and go, or somebody waits.
  std::vector<Question> loops_of_interest() const {
    std::vector<Question> loops;
    for (const std::vector<Event>& all : events_)
      for (const Event& e : all)
        if (e.loop != nullptr && e.act->kind != Act::Kind::access &&
            std::ranges::find(loops, e.loop->question) == loops.end())
          loops.push_back(e.loop->question);
    return loops;
  }

  static bool is_in(const Event& e, const Question& loop) {
    return e.loop != nullptr && e.loop->question == loop;
  }

  // Of the last time that it runs the iteration in which most happens, neither the first nor the
  // last if there are others.
  std::string of_loop(const Question& loop) const {
    int entry = 0, count = 0, line = 0;
    for (const std::vector<Event>& all : events_)
      for (const Event& e : all)
        if (is_in(e, loop)) {
          entry = std::max(entry, e.entry);
          count = std::max(count, e.iteration + 1);
          line = e.loop->by->at.line;
        }
    std::vector<int> happens(static_cast<std::size_t>(count));
    for (const std::vector<Event>& all : events_)
      for (const Event& e : all)
        if (is_in(e, loop) && e.entry == entry && !e.is_left_out)
          ++happens[static_cast<std::size_t>(e.iteration)];
    int steady = std::min(1, count - 1);
    for (int i = steady; i < count - 1; ++i)
      if (happens[static_cast<std::size_t>(i)] >= happens[static_cast<std::size_t>(steady)])
        steady = i;
    const auto now = [&](const Event& e) {
      return is_in(e, loop) && e.entry == entry && e.iteration == steady;
    };
    std::string text = summary("in front", loop, entry, 0);
    text += fmt::format("iteration {} of {} of the loop{}:\n{}", steady, count,
                        line > 0 ? fmt::format(" of line {}", line) : "", table_of(rows(now)));
    return text + summary("behind", loop, entry, 1);
  }

  template <class F>
  std::vector<Protocol::Step> rows(const F& meant) const {
    std::vector<Happening> some;
    for (const Happening& h : run_.order())
      if (!h.is_end &&
          meant(events_[static_cast<std::size_t>(h.agent)][static_cast<std::size_t>(h.event)]))
        some.push_back(h);
    return rows_of(m_, events_, some);
  }

  // What each agent does before the loop begins or when it has ended, each thing once.
  std::string summary(const char* where, const Question& loop, int entry, int behind) const {
    std::string text;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      std::vector<std::pair<std::string, int>> counted;
      int place = 0;
      for (std::size_t k = 0; k < events_[i].size(); ++k) {
        const Event& e = events_[i][k];
        if (is_in(e, loop) && e.entry == entry) place = 1;
        if (place != behind || is_in(e, loop) || e.is_left_out) continue;
        if (e.act->kind == Act::Kind::access) continue;
        const std::string words = words_of(m_, e, false);
        const auto found = std::ranges::find(counted, words, &std::pair<std::string, int>::first);
        if (found == counted.end())
          counted.emplace_back(words, 1);
        else
          ++found->second;
      }
      std::vector<std::string> lines;
      for (const auto& [words, times] : counted)
        lines.push_back(times == 1 ? words : fmt::format("{} ({} times)", words, times));
      if (!lines.empty())
        text += fmt::format("{}, the {}: {}\n", where, m_.agents[i].name, fmt::join(lines, "; "));
    }
    return text;
  }

  const Model& m_;
  Events events_;
  Run run_;
};

}  // namespace
}  // namespace palladium::lowered::protocol

namespace palladium::lowered {

std::string schedule(const Program& l) {
  if (l.written) return hand::schedule(*l.written) + "\nprotocol: " + to_text(protocol_of(l));
  const protocol::Model m = protocol::model_of(l);
  const std::string verdict = "protocol: " + to_text(protocol_of(l));
  return m.is_empty() ? verdict : protocol::Schedule(m).run() + "\n" + verdict;
}

}  // namespace palladium::lowered
