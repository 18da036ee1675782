// Which Palladium this is: the headers by macros, the library by functions.
#pragma once

#include "palladium/api.hpp"

/// Of the headers that a program is compiled with. CMakeLists.txt reads these three lines.
#define PALLADIUM_VERSION_MAJOR 0
#define PALLADIUM_VERSION_MINOR 1
#define PALLADIUM_VERSION_PATCH 0
/// One number, for `#if PALLADIUM_VERSION >= 10203`: here version 1.2.3.
#define PALLADIUM_VERSION \
  (PALLADIUM_VERSION_MAJOR * 10000 + PALLADIUM_VERSION_MINOR * 100 + PALLADIUM_VERSION_PATCH)
/// "1.2.3"
#define PALLADIUM_VERSION_STRING                                                \
  PALLADIUM_DETAIL_TEXT(PALLADIUM_VERSION_MAJOR)                                \
  "." PALLADIUM_DETAIL_TEXT(PALLADIUM_VERSION_MINOR) "." PALLADIUM_DETAIL_TEXT( \
      PALLADIUM_VERSION_PATCH)
#define PALLADIUM_DETAIL_TEXT(x) PALLADIUM_DETAIL_TEXT_OF(x)
#define PALLADIUM_DETAIL_TEXT_OF(x) #x

namespace palladium {

/// Of the library that a program runs with: the number that PALLADIUM_VERSION was when it was
/// built. `palladium::version() == PALLADIUM_VERSION` where headers and library belong together.
PALLADIUM_API int version() noexcept;
/// The same as PALLADIUM_VERSION_STRING was.
PALLADIUM_API const char* version_string() noexcept;
/// SHA-256, in hexadecimal digits, of the sources that decide what text a kernel becomes: libraries
/// that agree in it share the kernels of a cache.
PALLADIUM_API const char* text_digest() noexcept;

}  // namespace palladium
