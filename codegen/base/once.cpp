#include "codegen/base/once.hpp"

#include <mutex>
#include <set>

#include "codegen/base/forking.hpp"
#include "codegen/base/log.hpp"

namespace palladium::log {
namespace {

/// Whether it is new. Beyond so many lines nobody reads what comes.
bool add(const std::string& line) {
  constexpr std::size_t most = 10'000;
  const forking::Section section;
  static std::mutex& mutex = *new std::mutex;
  static std::set<std::string>& said = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return said.size() < most && said.insert(line).second;
}

}  // namespace

void warn_once(const std::string& line) {
  if (enabled(Level::warning) && add(line)) warning(line);
}

}  // namespace palladium::log
