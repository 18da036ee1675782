// What architectures are called. Whoever is given such a name asks here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace palladium {

struct Architecture {
  int compute_capability = 0;  // 10 * major + minor
  /// 'a': its own instructions, of no later one; 'f': those of its family; '\0': neither.
  char variant = '\0';
  bool is_specific() const { return variant == 'a'; }
};

/// CompileError, which lists those that are known, for what no architecture is called.
Architecture parse_architecture(std::string_view name);

/// "sm_75", ..., "sm_90", "sm_90a", ..., in the order of their numbers.
std::vector<std::string> architecture_names();
/// "sm_75, sm_80, ..."
std::string listed(const std::vector<std::string>& names);

}  // namespace palladium
