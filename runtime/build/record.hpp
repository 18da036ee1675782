// What a program uses, for its manifests.
#pragma once

#include <string>

#include "codegen/graph/graph.hpp"
#include "runtime/call/specialization.hpp"

namespace palladium::runtime {

/// While it lives, what is recorded goes to the manifest at `path`, too.
class Recording {
 public:
  explicit Recording(std::string path);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording();

 private:
  const std::string path_;
};

/// Adds the kernel to what PALLADIUM_RECORD names and to the manifest of every Recording. `arch` is
/// empty for one that runs on the CPU. `reached`: by a call.
void record(const graph::Graph& g, const std::string& arch, bool reached = true);

/// Adds the classes that calls of other sizes can be of, likewise.
void record_reachable(const Specialization& s, const std::string& arch);

}  // namespace palladium::runtime
