// How the files of a store are called.
#pragma once

#include <time.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cache/key.hpp"

namespace palladium::cache::names {

inline constexpr std::string_view layout_folder = "/v1";
inline constexpr std::string_view suffix = ".k";
inline constexpr std::size_t key_digits = 62;  // the first two name the folder
inline constexpr std::size_t toolchain_digits = 16;

inline bool are_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

inline bool is_folder(std::string_view name) { return name.size() == 2 && are_hex(name); }

/// "<62 hex>.<16 hex>.k"
inline bool is_entry(std::string_view name) {
  return name.size() == key_digits + 1 + toolchain_digits + suffix.size() &&
         name.ends_with(suffix) && name[key_digits] == '.' && are_hex(name.substr(0, key_digits)) &&
         are_hex(name.substr(key_digits + 1, toolchain_digits));
}

inline std::string entry_name(const Key& key, std::string_view toolchain) {
  return key.hex().substr(2) + "." + std::string(toolchain) + std::string(suffix);
}

inline std::string_view toolchain_in(std::string_view name) {
  return name.substr(key_digits + 1, toolchain_digits);
}

/// Of the clock that stamps files, since 1970.
inline std::int64_t now_ns() {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace palladium::cache::names
