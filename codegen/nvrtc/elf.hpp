// Reads the identity of a shared library from its file.
#pragma once

#include <string>

namespace palladium::nvrtc {

/// The GNU build-id of a 64-bit little-endian ELF file in hex, "" if the file has none or is not
/// one. Reads its headers and notes only.
std::string build_id(const std::string& path);

}  // namespace palladium::nvrtc
