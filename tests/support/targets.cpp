#include "tests/support/targets.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>

namespace palladium::test {

bool is_wanted(Target target) {
  const char* const only = std::getenv("PALLADIUM_TEST_TARGETS");
  return only == nullptr || std::string(only).find(to_string(target)) != std::string::npos;
}

void for_each_target(const std::string& name, const std::function<void(Target)>& body) {
  for (const Target target : {Target::interpreter, Target::emulator, Target::cuda}) {
    if (!is_wanted(target)) continue;
    if (target == Target::cuda && devices().empty()) {
      // Not SKIP: that would count the targets before as skipped too.
      WARN("skipped: " << name << " on cuda, there is no GPU");
      continue;
    }
    INFO(name << " on " << to_string(target));
    body(target);
  }
}

}  // namespace palladium::test
