// Which Palladium this is, as far as cubins go.
#pragma once

namespace palladium::cache {

/// Digest over the sources that decide emitted text and how it is compiled, made when Palladium was
/// built: a part of every key, and what program and compile helper must have in common.
extern const char* const text_digest;

}  // namespace palladium::cache
