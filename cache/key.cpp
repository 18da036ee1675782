#include "cache/key.hpp"

#include <algorithm>
#include <string>

#include "palladium/error.hpp"

namespace palladium::cache {
namespace {

constexpr std::string_view domain = "palladium kernel key";

void add_number(Hasher& hasher, std::uint64_t number) {
  char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(number >> (8 * i));
  hasher.add(std::string_view(bytes, sizeof bytes));
}

void add_text(Hasher& hasher, std::string_view text) {
  add_number(hasher, text.size());
  hasher.add(text);
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

Key key_of(std::span<const Field> fields) {
  std::vector<Field> sorted(fields.begin(), fields.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const Field& a, const Field& b) { return a.name < b.name; });
  Hasher hasher;
  add_text(hasher, domain);
  add_number(hasher, key_version);
  add_number(hasher, sorted.size());
  const Field* previous = nullptr;
  for (const Field& field : sorted) {
    if (previous != nullptr && previous->name == field.name)
      throw InternalError("kernel key: field '" + std::string(field.name) + "' is given twice");
    add_text(hasher, field.name);
    add_text(hasher, field.bytes);
    previous = &field;
  }
  return hasher.finish();
}

std::optional<Key> parse_key(std::string_view hex) {
  if (hex.size() != 64) return std::nullopt;
  Key key;
  for (std::size_t i = 0; i < 32; ++i) {
    const int high = digit_of(hex[2 * i]);
    const int low = digit_of(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    key.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return key;
}

}  // namespace palladium::cache
