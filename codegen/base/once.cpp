#include "codegen/base/once.hpp"

#include <mutex>
#include <set>

#include "codegen/base/forking.hpp"
#include "codegen/base/log.hpp"

namespace palladium::warn {
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

void once(const std::string& line) {
  if (log::enabled(log::Level::warning) && add(line)) log::warning(line);
}

}  // namespace palladium::warn
