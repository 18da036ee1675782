// What each agent does, one thing behind the other, where conditions and numbers of iterations are
// given.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "codegen/lowered/protocol_model.hpp"

namespace palladium::lowered::protocol {

/// One answer to every question that a run asks; the next of all others, until there is none left.
/// Or one of all: most iterations, and conditions that hold.
class Answers {
 public:
  explicit Answers(bool are_most = false) : are_most_(are_most) {}
  /// One of the numbers below `count`: the same for who asks the same again in this run.
  int ask(const std::vector<int>& question, int count);
  /// Begins the next run; false: there is none.
  bool next();

 private:
  struct Choice {
    int taken = 0, count = 0;
  };
  bool are_most_;
  std::vector<Choice> choices_;
  std::size_t asked_ = 0;
  std::map<std::vector<int>, int> given_;
};

/// A cell that an event reads or fills. `version`: of a slot, the iteration of all that the ring
/// has had whose part it is; -1: of no ring.
struct Touch {
  int cell = 0;
  std::int64_t version = -1;
  bool fills = false;
};

struct Event {
  const Act* act = nullptr;
  std::vector<Touch> touches = {};
  int barrier = -1;                // which of all
  std::int64_t phase = 0;          // that is waited for; -1: the one before the first
  bool is_left_out = false;        // a branch that is not taken, which would read
  const Step* loop = nullptr;      // the innermost one; nullptr: it stands in none ...
  int iteration = -1, entry = -1;  // ... and which of its iterations, of which time that it runs
};

/// What the agents do; false: more than so many things.
bool walk(const Model& m, Answers& answers, std::int64_t most,
          std::vector<std::vector<Event>>& out);

}  // namespace palladium::lowered::protocol
