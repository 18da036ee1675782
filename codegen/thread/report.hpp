// How a program's accesses fall on memory, and how many instructions of each kind a thread
// executes.
#pragma once

#include <string>

#include "codegen/thread/program.hpp"
#include "palladium/report.hpp"

namespace palladium::thread {

/// By evaluating the addresses of the first warp's lanes.
Report report(const Program& program);

}  // namespace palladium::thread
