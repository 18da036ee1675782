// A planned call on a target, and what came of it.
#pragma once

#include <string>
#include <vector>

#include "tests/random/plan.hpp"

namespace palladium::test::random_calls {

struct Outcome {
  enum class Kind : std::uint8_t {
    result,
    compile_error,
    cuda_error,
    internal_error,
    users_own,  ///< UsersOwn
    other,      ///< any other exception, which nobody may see
  };
  Kind kind = Kind::result;
  std::string message = {};
  std::vector<Array> outputs = {};  ///< dense copies
  std::string trespass = {};        ///< memory that was written and is no output's
};
const char* to_string(Outcome::Kind kind);

Outcome run(const Plan& plan, const Kernel& kernel, Target target);

/// Graph and emitted text of the call, or why there are none.
std::string lowered_text(const Plan& plan);

/// What differs between two outcomes of one call; "" if nothing does.
std::string difference(const Plan& plan, const Outcome& a, const Outcome& b);

}  // namespace palladium::test::random_calls
