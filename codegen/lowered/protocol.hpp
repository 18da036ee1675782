// Whether those who work on a kernel wait for each other as they must, and for nothing for ever.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/lowered/program.hpp"

namespace palladium::lowered {

/// What is to be said of the agents of a program, which are the Pallas threads and what fetches for
/// them, and of the copies and products that they begin.
///
/// Each way through the program, which is one answer to each condition and one number of iterations
/// of each loop, is run once: the order in which its agents come to their statements is followed in
/// what is sure to happen before what. Of what is not sure both orders are possible. A way on which
/// nothing depends on such an order stands for all interleavings, since an agent does one thing
/// behind the other and learns of others by waits alone.
///
/// Conditions and loops that are one value have one answer in all agents. A loop whose number of
/// iterations nobody knows has 0 to two more than there are slots; of a known number it has no more
/// than that. What is asked in each iteration is answered for two that follow one another, and so
/// on in turns. Shared memory that threads alone touch, and fences, are other rules'. What is done
/// for other programs, and who waits for them, are not known here. Of bodies with barriers or
/// copies by hand, whose threads go different ways through the statements of one agent, see
/// hand.hpp.
struct Protocol {
  enum class Verdict : std::uint8_t {
    good,
    counterexample,  // `steps` lead to what `why` says
    not_explored,    // `why` says what kept it from being
  };
  struct Step {
    std::string agent = {}, what = {};
    int iteration = -1;  // of the innermost loop; -1: it stands in none
    int line = 0;
  };
  Verdict verdict = Verdict::good;
  std::string why = {};
  const Statement* by = nullptr;  // of a counterexample, the one that goes wrong
  Location at = {};               // ... and its line
  std::vector<Step> steps = {};
  std::int64_t ways = 0, happenings = 0;
};

/// Happenings that are looked at before it is given up.
inline constexpr std::int64_t most_happenings = 1 << 15;

/// Of a program that has its offsets in shared memory.
Protocol protocol_of(const Program& l, std::int64_t most = most_happenings);

/// What is wrong, with the rule "protocol", the statement and the steps that lead there, as
/// defect() says it; "" if nothing is, where it was not explored, or where it is the user's.
std::string protocol_defect(const Program& l);

/// The verdict; of a counterexample with a row for each step, a column for each who does one.
std::string to_text(const Protocol& p);

/// Who waits for whom: what stands before a loop with a ring, one of its iterations and what stands
/// behind, and what protocol_of() says. For people.
std::string schedule(const Program& l);

}  // namespace palladium::lowered
