#include "palladium/version.hpp"

#include "cache/text_digest.hpp"

namespace palladium {

int version() noexcept { return PALLADIUM_VERSION; }
const char* version_string() noexcept { return PALLADIUM_VERSION_STRING; }
const char* text_digest() noexcept { return cache::text_digest; }

}  // namespace palladium
