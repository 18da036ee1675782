#include "codegen/base/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "codegen/base/environment.hpp"
#include "codegen/base/event.hpp"
#include "codegen/base/forking.hpp"
#include "codegen/base/format.hpp"

namespace palladium::log {
namespace {

spdlog::level::level_enum spdlog_level(Level level) {
  constexpr spdlog::level::level_enum levels[] = {spdlog::level::debug, spdlog::level::info,
                                                  spdlog::level::warn, spdlog::level::err,
                                                  spdlog::level::off};
  return levels[static_cast<int>(level)];
}

bool is_json() {
  static const bool asked = environment::get(environment::Variable::log_format) == "json";
  return asked;
}

/// As a JSON string. Bytes that are no ASCII pass as they are, being UTF-8 or part of a path.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20)
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result + '"';
}

spdlog::logger& logger() {
  static spdlog::logger* instance = [] {
    auto* l =
        new spdlog::logger("palladium", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    if (is_json())
      l->set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})",
                     spdlog::pattern_time_type::utc);
    else
      l->set_pattern("palladium %^%l%$ %v");
    const std::string wanted = environment::get(environment::Variable::log);
    const auto level = spdlog::level::from_str(wanted);  // off where there is no such level
    l->set_level(wanted == "off" || level != spdlog::level::off ? level : spdlog::level::warn);
    l->flush_on(spdlog::level::debug);
    return l;
  }();
  return *instance;
}

}  // namespace

bool enabled(Level level) {
  const forking::Section section;
  return logger().should_log(spdlog_level(level));
}

void write(Level level, std::string_view line) {
  const forking::Section section;
  std::string json;
  if (is_json()) line = json = "\"message\":" + quoted(line);
  logger().log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
}

void show(std::string_view text) {
  const forking::Section section;
  const spdlog::level::level_enum level = logger().level();
  if (level == spdlog::level::off) return;
  std::string json;
  if (is_json()) text = json = "\"message\":" + quoted(text);
  // As the least of what is printed.
  logger().log(std::max(level, spdlog::level::debug),
               spdlog::string_view_t(text.data(), text.size()));
}

void print(std::string_view text) {
  const forking::Section section;
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void event(Level level, std::string_view name, std::string_view line,
           std::initializer_list<Field> fields) {
  const forking::Section section;
  std::string json;
  if (is_json()) {
    json = "\"event\":" + quoted(name);
    for (const Field& field : fields)
      json += "," + quoted(field.name) + ":" + (field.is_text ? quoted(field.value) : field.value);
    line = json;
  }
  logger().log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace palladium::log
