// What happens to kernels, for people as log lines and for programs as JSON lines.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

#include "codegen/base/log.hpp"

namespace palladium::log {

/// A member of an event's object: text, or a number.
struct Field {
  std::string_view name;
  std::string value;
  bool is_text = true;

  Field(std::string_view n, std::string_view text) : name(n), value(text) {}
  template <class T>
  requires std::integral<T> || std::floating_point<T> Field(std::string_view n, T number)
      : name(n), value(std::to_string(number)), is_text(false) {}
};

/// On stderr the line, or with PALLADIUM_LOG_FORMAT=json {"time", "level", "event", fields...}.
void event(Level level, std::string_view name, std::string_view line,
           std::initializer_list<Field> fields);

}  // namespace palladium::log
