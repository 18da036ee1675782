// Where this build of the tests stands: for tests that compile, start programs or read sources.
#pragma once

#include <string>

namespace palladium::test {

/// Root of the source tree.
std::string source_dir();
/// Root of the build tree: the CLI, the shared library and the fakes are found in it.
std::string binary_dir();
/// The compiler that built the tests.
std::string cxx_compiler();

}  // namespace palladium::test
