#include "tests/support/targets.hpp"

#include <catch2/catch_test_macros.hpp>

namespace palladium::test {

void for_each_target(const std::string& name, const std::function<void(Target)>& body) {
  for (const Target target : {Target::interpreter, Target::emulator, Target::cuda}) {
    DYNAMIC_SECTION(name << " on " << to_string(target)) {
      if (target == Target::cuda && devices().empty()) SKIP("there is no GPU");
      body(target);
    }
  }
}

}  // namespace palladium::test
