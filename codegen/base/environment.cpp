#include "codegen/base/environment.hpp"

#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace palladium::environment {
namespace {

constexpr Row rows[] = {
#define PALLADIUM_ROW(id, name, fallback, meaning) {Variable::id, name, fallback, meaning},
    PALLADIUM_ENVIRONMENT(PALLADIUM_ROW)
#undef PALLADIUM_ROW
};

thread_local const Snapshot* read_from = nullptr;

}  // namespace

std::span<const Row> table() { return rows; }

std::string get(Variable variable) { return get(rows[static_cast<int>(variable)].name); }

std::string get(const char* name) {
  if (read_from) return read_from->get(name);
  const char* value = std::getenv(name);
  return value ? value : "";
}

Snapshot::Snapshot() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    entries_.emplace_back(*entry);
}

std::string Snapshot::get(const char* name) const {
  const std::string start = std::string(name) + "=";
  for (const std::string& entry : entries_)
    if (entry.starts_with(start)) return entry.substr(start.size());
  return "";
}

Reading::Reading(const Snapshot& snapshot) : before_(std::exchange(read_from, &snapshot)) {}
Reading::~Reading() { read_from = before_; }

std::vector<char*> pointers() {
  std::vector<char*> result;
  if (read_from)
    for (const std::string& entry : read_from->entries())
      result.push_back(const_cast<char*>(entry.c_str()));
  else
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
      result.push_back(*entry);
  result.push_back(nullptr);
  return result;
}

}  // namespace palladium::environment
