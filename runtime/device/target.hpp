// The process's default target, without a lock.
#pragma once

#include "palladium/device.hpp"

namespace palladium::runtime {

/// As palladium::default_target(); decided at most once between calls of set_default_target().
Target current_target();
/// What current_target() would decide now; decides and logs nothing.
Target expected_target();

/// The architecture that kernels are compiled for where nobody says: the first GPU's, or sm_90a.
std::string default_arch();

}  // namespace palladium::runtime
