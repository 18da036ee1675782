// One compiled kernel as bytes that check themselves.
//
//   offset  size
//        0     8  magic
//        8     4  format version, 1
//       12     4  size of this header, 112
//       16    32  kernel key
//       48    16  toolchain id, hex digits
//       64     8  size of the metadata: JSON
//       72     8  size of the cubin, stored as it is: it goes to the driver without a copy
//       80    16  sizes of the PTX: stored (zstd) and as text
//       96    16  sizes of the source: stored (zstd) and as text
//      112        metadata, cubin, PTX, source
//      end    32  SHA-256 of everything before it
//
// Numbers are little-endian. Any other byte, or one more or fewer, makes it a defect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/key.hpp"
#include "palladium/resources.hpp"

namespace palladium::cache {

inline constexpr std::uint32_t entry_format = 1;

/// No entry is larger: what claims to be is a defect, and what is, is not stored.
inline constexpr std::size_t most_entry_bytes = std::size_t{256} << 20;

struct Metadata {
  std::string kernel = {};    // its name, for people
  std::string function = {};  // of the cubin, for the driver
  std::string arch = {};      // "sm_90a"
  int nvrtc_major = 0;
  int nvrtc_minor = 0;
  Resources resources = {};
  std::int64_t built_at = 0;  // seconds since 1970
  double compile_ms = 0;
  std::string location = {};  // the user's line, "softmax.cpp:12"
  std::string launch = "{}";  // JSON of whoever launches, opaque here
  /// What the key was made of, by name, for people: short parts as text, long ones as digests.
  std::map<std::string, std::string> components = {};

  bool operator==(const Metadata&) const = default;
};

struct Entry {
  Key key = {};
  std::string toolchain = {};  // 16 hex digits
  Metadata metadata = {};
  std::vector<std::byte> cubin = {};
  std::string ptx = {};
  std::string source = {};
};

/// PTX, source and Metadata::components are for people: decoding them is left out where only the
/// kernel is wanted.
enum class Parts { kernel, all };

std::vector<std::byte> encode(const Entry& entry);

/// Nothing, and in `defect` the reason, for bytes that are not exactly what encode() writes.
std::optional<Entry> decode(std::span<const std::byte> bytes, Parts parts, std::string& defect);

}  // namespace palladium::cache
