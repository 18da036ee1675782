// What tests of compile helpers share: a pool's options, a kernel, and a look at other processes.
#pragma once

#include <string>
#include <vector>

#include "codegen/nvrtc/pool.hpp"

namespace palladium::test {

/// The helper that is built beside the tests.
nvrtc::HelperOptions helper_options();

/// Skips the test where there is no NVRTC.
const nvrtc::Toolchain& toolchain();

/// Compiles in some 60 ms; every `variant` is another text.
nvrtc::Request scale(const std::string& arch = "sm_90a", int variant = 0);

/// tests/fake_nvrtc, and what it is to do.
nvrtc::Toolchain fake_toolchain();
nvrtc::Request fake(const std::string& orders);

std::vector<process::Id> children_of(process::Id process);
/// "/dev/null", "socket:[1234]", ...
std::vector<std::string> descriptors_of(process::Id process);
std::string descriptor_name(int descriptor);  // of this process
std::vector<int> sockets_of_this_process();
/// The text of /proc/self/maps.
std::string mapped_files();
/// Whether it runs no more after so long; one that nobody has buried yet counts as gone.
bool ends_within(process::Id process, int milliseconds);

}  // namespace palladium::test
