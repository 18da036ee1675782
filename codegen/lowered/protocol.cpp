#include "codegen/lowered/protocol.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/lowered/hand.hpp"
#include "codegen/lowered/protocol_model.hpp"
#include "codegen/lowered/protocol_run.hpp"
#include "codegen/lowered/protocol_table.hpp"
#include "codegen/lowered/protocol_walk.hpp"
#include "codegen/lowered/verify.hpp"

namespace palladium::lowered::protocol {
namespace {

// Each way once, as far as `most` allows.
void explore(const Model& m, std::int64_t most, Protocol& out) {
  Answers answers;
  Run run(m);
  Fault found;
  std::vector<std::vector<Event>> events, of_fault;
  do {
    if (!walk(m, answers, most - run.happenings(), events) || run.happenings() > most) {
      out.verdict = Protocol::Verdict::not_explored;
      out.why = fmt::format("more than {} things happen on its ways, of which {} were looked at",
                            most, out.ways);
      break;
    }
    ++out.ways;
    Fault fault = run(events);
    if (!fault.is_found() || (found.is_found() && found.steps.size() <= fault.steps.size()))
      continue;
    found = std::move(fault);
    of_fault = events;
  } while (answers.next());
  out.happenings = run.happenings();
  if (!found.is_found()) return;
  out.verdict = Protocol::Verdict::counterexample;
  out.why = found.what;
  out.by = found.by;
  out.at = found.by->at;
  out.steps = rows_of(m, of_fault, found.steps);
}

}  // namespace
}  // namespace palladium::lowered::protocol

namespace palladium::lowered {
namespace {

bool is_by_hand(const Program& l) {
  return l.written || std::ranges::any_of(l.barriers, &Barriers::by_hand);
}

Protocol of_hand(const Program& l) {
  if (!l.written)
    return {.verdict = Protocol::Verdict::not_explored,
            .why = "it has barriers at which threads arrive by hand"};
  Protocol out = hand::protocol_of(*l.written);
  if (out.verdict != Protocol::Verdict::good || l.rings.empty()) return out;
  out.verdict = Protocol::Verdict::not_explored;
  out.why = "beside copies by hand it has others that lowering planned";
  return out;
}

}  // namespace

Protocol protocol_of(const Program& l, std::int64_t most) {
  if (is_by_hand(l)) return of_hand(l);
  Protocol out;
  const protocol::Model m = protocol::model_of_cluster(l);
  if (!m.is_empty()) protocol::explore(m, most, out);
  if (out.verdict != Protocol::Verdict::good || m.waits_for_others == nullptr) return out;
  out.verdict = Protocol::Verdict::not_explored;
  out.why = fmt::format("whether others do what the {} waits for is not known here",
                        where(*m.waits_for_others));
  return out;
}

std::string protocol_defect(const Program& l) {
  if (is_by_hand(l)) return "";
  const Protocol p = protocol_of(l);
  if (p.verdict != Protocol::Verdict::counterexample) return "";
  return fmt::format("protocol: {}: {}\n{}", where(*p.by), p.why, protocol::table_of(p.steps));
}

std::string to_text(const Protocol& p) {
  const std::string looked =
      fmt::format("{} {}, {} happenings", p.ways, p.ways == 1 ? "way" : "ways", p.happenings);
  switch (p.verdict) {
  case Protocol::Verdict::good:
    return p.ways == 0 ? "good: nothing is asynchronous\n" : fmt::format("good: {}\n", looked);
  case Protocol::Verdict::not_explored: return fmt::format("not explored: {}\n", p.why);
  case Protocol::Verdict::counterexample: break;
  }
  return fmt::format("counterexample, behind these steps: {}\n{}", p.why,
                     protocol::table_of(p.steps));
}

}  // namespace palladium::lowered
