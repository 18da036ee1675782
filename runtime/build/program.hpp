// A compiled kernel, and what it is compiled from.
#pragma once

#include <string>

#include "cache/entry.hpp"
#include "cache/store.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "palladium/resources.hpp"
#include "runtime/build/launch_plan.hpp"

namespace palladium::runtime {

struct Program {
  cache::Entry entry;  // PTX and source may be missing in one from the cache
  LaunchPlan plan;
  bool from_cache = false;
  CompileTimes times;
};

/// Of NVRTC and its assembler: that they tell lines.
inline constexpr const char* line_info = "--generate-line-info";

/// What NVRTC gets: the emitted text behind the device library.
std::string full_text(const std::string& text);
nvrtc::Request request_for(const std::string& text, const std::string& arch, bool lineinfo);

/// The process's store, at the root that the environment names now.
cache::Store store();

/// As stored, with PTX and source.
cache::Entry complete(const Program& program);

/// Rejected by the driver: forgotten by the cache.
void forget(const Program& program);

}  // namespace palladium::runtime
