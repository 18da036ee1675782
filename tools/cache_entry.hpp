// Entries of the cache as commands name them.
#pragma once

#include <string>

#include "palladium/cache.hpp"

namespace palladium::tools {

/// The entry whose name begins so: a key, where several NVRTCs compiled it "<key>.<toolchain>".
/// CompileError if there is none, several, or it cannot be used.
CacheEntry find_entry(const std::string& prefix);

}  // namespace palladium::tools
