// SHA-256, the only hash that names or checks a kernel.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace palladium::cache {

/// 32 bytes; as text, 64 lower-case hex digits.
struct Digest {
  std::array<std::uint8_t, 32> bytes = {};

  std::string hex() const;
  auto operator<=>(const Digest&) const = default;
};

/// Hashes bytes piece by piece.
class Hasher {
 public:
  Hasher();
  Hasher& add(std::span<const std::byte> bytes);
  Hasher& add(std::string_view bytes) { return add(std::as_bytes(std::span(bytes))); }
  /// Of everything added; the hasher is spent.
  Digest finish();

 private:
  alignas(std::uint64_t) std::byte state_[128];  // SHA256_CTX, whose header stays out of ours
};

Digest digest(std::span<const std::byte> bytes);
inline Digest digest(std::string_view bytes) { return digest(std::as_bytes(std::span(bytes))); }

}  // namespace palladium::cache
