// The name of a kernel in the cache: a digest over everything that decides its cubin except the
// compiler, whose identity is the other half of an entry's name.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cache/digest.hpp"

namespace palladium::cache {

/// 64 hex digits; equal keys mean equal fields.
using Key = Digest;

/// One part of what a kernel is, by name: "graph", "arch", "options.fma"...
struct Field {
  std::string_view name;
  std::string_view bytes;
};

/// Raised whenever fields of the same bytes come to mean something else.
inline constexpr std::uint32_t key_version = 1;

/// The key of a kernel with these fields, in whichever order they are given. Injective: every name
/// and content enters behind its length. A name given twice is an InternalError.
Key key_of(std::span<const Field> fields);
inline Key key_of(std::initializer_list<Field> fields) {
  return key_of(std::span(fields.begin(), fields.size()));
}

/// The key that 64 hex digits spell.
std::optional<Key> parse_key(std::string_view hex);

}  // namespace palladium::cache
