#include "codegen/base/environment.hpp"

#include <cstdlib>

namespace palladium::environment {
namespace {

constexpr Row rows[] = {
#define PALLADIUM_ROW(id, name, fallback, meaning) {Variable::id, name, fallback, meaning},
    PALLADIUM_ENVIRONMENT(PALLADIUM_ROW)
#undef PALLADIUM_ROW
};

}  // namespace

std::span<const Row> table() { return rows; }

std::string get(Variable variable) {
  const char* value = std::getenv(rows[static_cast<int>(variable)].name);
  return value ? value : "";
}

}  // namespace palladium::environment
