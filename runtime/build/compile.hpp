// From a traced kernel to a cubin.
#pragma once

#include <memory>
#include <string>

#include "runtime/build/jobs.hpp"
#include "runtime/build/program.hpp"
#include "runtime/call/specialization.hpp"

namespace palladium::runtime {

/// The whole way: key, cache, and where that has nothing, emit, NVRTC, publish. CudaError where
/// NVRTC refuses the text or is not to be had. Threads that ask for one kernel at once get one
/// compile.
std::shared_ptr<const Program> compile(const Specialization& s, const std::string& arch,
                                       Lookup lookup = Lookup::cached);

/// The same for a call, which a kernel of weaker facts serves too: where compiling is off or fails,
/// such a one from the cache, with a line in the log.
std::shared_ptr<const Program> compile_or_weaker(const Specialization& s, const std::string& arch,
                                                 Lookup lookup = Lookup::cached);

/// Whether a compile would find it in the cache, or may not be made.
bool needs_no_compile(const Specialization& s, const std::string& arch);

/// The same in the background; what cannot be asked for is thrown here. The deadline is in seconds
/// from now, 0 for none.
Claim compile_in_background(std::shared_ptr<const Specialization> s, const std::string& arch,
                            double deadline);

}  // namespace palladium::runtime
