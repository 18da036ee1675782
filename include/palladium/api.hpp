// Marks what libpalladium.so exports; everything else is hidden. Every public header includes this
// before it declares anything: under an older standard nothing is read behind it, since pages of
// errors in templates would follow. Only a file that is not there stops both compilers.
#pragma once

#if !defined(__cplusplus) || __cplusplus < 202002L
#  error Palladium needs C++20 (g++ 12, clang 16 or newer): compile with -std=c++20, \
in CMake by target_compile_features(your_target PRIVATE cxx_std_20)
#  include "Palladium needs C++20, as said above"
#endif

#define PALLADIUM_API __attribute__((visibility("default")))
