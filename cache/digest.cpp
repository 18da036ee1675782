// The low-level functions of libcrypto: fetching an EVP algorithm costs 1 ms of a program's start.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "cache/digest.hpp"

#include <openssl/sha.h>

#include <new>

namespace palladium::cache {
namespace {

SHA256_CTX* context(std::byte* state) { return std::launder(reinterpret_cast<SHA256_CTX*>(state)); }

}  // namespace

std::string Digest::hex() const {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(64);
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

Hasher::Hasher() {
  static_assert(sizeof(SHA256_CTX) <= sizeof state_ && alignof(SHA256_CTX) <= 8);
  SHA256_Init(new (state_) SHA256_CTX);
}

Hasher& Hasher::add(std::span<const std::byte> bytes) {
  SHA256_Update(context(state_), bytes.data(), bytes.size());
  return *this;
}

Digest Hasher::finish() {
  Digest result;
  SHA256_Final(result.bytes.data(), context(state_));
  return result;
}

Digest digest(std::span<const std::byte> bytes) { return Hasher().add(bytes).finish(); }

}  // namespace palladium::cache
