#include "codegen/base/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "palladium/error.hpp"

namespace palladium::environment {
namespace {

constexpr Row rows[] = {
#define PALLADIUM_ROW(id, name, fallback, meaning) {Variable::id, name, fallback, meaning},
    PALLADIUM_ENVIRONMENT(PALLADIUM_ROW)
#undef PALLADIUM_ROW
};

thread_local const Snapshot* read_from = nullptr;

/// What a variable can be: words, a comma list of them, or a number from 1. Others are paths.
struct Values {
  Variable variable;
  std::initializer_list<std::string_view> words = {};
  bool is_list = false;
  std::uint64_t most = 0;
};
const Values values[] = {
    {Variable::target, {"cuda", "interpreter", "emulator"}},
    {Variable::log, {"debug", "info", "warning", "error", "off"}},
    {Variable::log_format, {"text", "json"}},
    {Variable::debug, {"print", "check", "off"}, true},
    {Variable::dump, {"graph", "passes", "cuda", "ptx"}, true},
    {Variable::verify, {"0", "1"}},
    {Variable::expect, {"warning", "error", "off"}},
    {Variable::nvtx, {"0", "1"}},
    {Variable::cache_size, {}, false, std::uint64_t{1} << 40},
    {Variable::cache_files, {}, false, std::uint64_t{1} << 40},
    {Variable::cache_sharing, {"own", "group"}},
    {Variable::jit, {"on", "off"}},
    {Variable::toolchain, {"any"}},
    {Variable::compile, {"helper", "in-process"}},
    {Variable::compile_jobs, {}, false, 1024},
    {Variable::compile_memory, {}, false, std::uint64_t{1} << 20},
};

std::string sentence(const Values& v) {
  if (v.most != 0) return "a number from 1 to " + std::to_string(v.most);
  std::string text = v.is_list ? "a comma list of " : "";
  for (std::size_t i = 0; i < v.words.size(); ++i) {
    if (i != 0) text += i + 1 < v.words.size() ? ", " : v.is_list ? " and " : " or ";
    text += v.words.begin()[i];
  }
  return text;
}

[[noreturn]] void refuse(const Values& v, const std::string& given) {
  throw CompileError(std::string(rows[static_cast<int>(v.variable)].name) + " is '" + given +
                     "'; it can be " + sentence(v));
}

std::uint64_t number_in(const Values& v, const std::string& text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, number);
  if (bad != std::errc() || rest != end || number < 1 || number > v.most) refuse(v, text);
  return number;
}

bool is_word(const Values& v, std::string_view word) {
  return std::find(v.words.begin(), v.words.end(), word) != v.words.end();
}

void check(const Values& v, const std::string& given) {
  if (given.empty()) return;
  if (v.most != 0) {
    number_in(v, given);
  } else if (!v.is_list) {
    if (!is_word(v, given)) refuse(v, given);
  } else {
    for (std::size_t begin = 0, end = 0; begin <= given.size(); begin = end + 1) {
      end = std::min(given.find(',', begin), given.size());
      const std::string_view word = std::string_view(given).substr(begin, end - begin);
      if (!word.empty() && !is_word(v, word)) refuse(v, given);
    }
  }
}

const Values* values_of(Variable variable) {
  for (const Values& v : values)
    if (v.variable == variable) return &v;
  return nullptr;
}

}  // namespace

std::span<const Row> table() { return rows; }

std::string get(Variable variable) { return get(rows[static_cast<int>(variable)].name); }

std::string get(const char* name) {
  if (read_from) return read_from->get(name);
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string checked(Variable variable) {
  const std::string given = get(variable);
  if (const Values* v = values_of(variable)) check(*v, given);
  return given;
}

std::optional<std::uint64_t> number(Variable variable) {
  const std::string given = get(variable);
  if (given.empty()) return std::nullopt;
  return number_in(*values_of(variable), given);
}

void check() {
  for (const Values& v : values) check(v, get(v.variable));
}

std::vector<std::string> unknown() {
  const std::string ours = std::string("PALLADIUM") + "_", of_tests = ours + "TEST_";
  std::vector<std::string> result;
  for (const char* entry : pointers()) {
    if (entry == nullptr) break;
    const std::string_view text(entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with(ours) || name.starts_with(of_tests)) continue;
    if (std::none_of(std::begin(rows), std::end(rows),
                     [&](const Row& r) { return r.name == name; }))
      result.emplace_back(name);
  }
  return result;
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
