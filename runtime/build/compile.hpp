// From a traced kernel to a cubin.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/entry.hpp"
#include "cache/key.hpp"
#include "cache/store.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "runtime/build/launch_plan.hpp"
#include "runtime/call/specialization.hpp"

namespace palladium::runtime {

/// A compiled kernel.
struct Program {
  cache::Entry entry;  // PTX and source may be missing in one from the cache
  LaunchPlan plan;
  bool from_cache = false;
  Compiled::Times times;
};

/// 10 * major + minor of "sm_90a". CompileError for what no architecture is called.
int compute_capability(const std::string& arch, Location at);

/// The kernel's name in the cache: of all that decides its cubin but the compiler.
cache::Key key_of(const graph::Graph& g, const std::string& arch);

/// What NVRTC gets: the emitted text behind the device library.
std::string full_text(const std::string& text);
nvrtc::Request request_for(const std::string& text, const std::string& arch, bool lineinfo);

enum class Lookup {
  cached,  // from the cache, if it is there
  fresh,   // compiled anew, because the driver rejects what the cache has
};

/// The whole way: key, cache, and where that has nothing, emit, NVRTC, publish. CudaError where
/// NVRTC refuses the text or is not to be had. Threads that ask for one kernel at once get one
/// compile.
std::shared_ptr<const Program> compile(const Specialization& s, const std::string& arch,
                                       Lookup lookup = Lookup::cached);

class Claim;
/// The same in the background; what cannot be asked for is thrown here. The deadline is in seconds
/// from now, 0 for none.
Claim compile_in_background(std::shared_ptr<const Specialization> s, const std::string& arch,
                            double deadline);

/// As stored, with PTX and source.
cache::Entry complete(const Program& program);

/// Rejected by the driver: forgotten by the cache.
void forget(const Program& program);

/// The process's store, at the root that the environment names now.
cache::Store store();

}  // namespace palladium::runtime
