// The kernels that a program uses, written down to be compiled elsewhere before somebody waits.
#pragma once

#include <string>
#include <vector>

#include "palladium/kernel.hpp"

namespace palladium {

/// While it lives, every kernel that this process compiles, loads or runs on the CPU is added to
/// the manifest at `path`, once for each architecture; PALLADIUM_RECORD does the same for the life
/// of a process. Processes may share a manifest. A file that cannot be written is a log line.
class PALLADIUM_API Recorder {
 public:
  explicit Recorder(const std::string& path);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

 private:
  detail::Shared<detail::Counted> state_;
};

/// A kernel of a manifest.
struct RecordedKernel {
  Lowered kernel;
  std::vector<std::string> archs;      ///< what it was compiled for; none if it ran on the CPU
  std::vector<std::string> arguments;  ///< "f32[s0,1000]", for people
  std::string location;                ///< the user's line, "softmax.cpp:12"
  bool reached = true;                 ///< by a call; else calls of other sizes can be of its class
};

struct Manifest {
  std::vector<RecordedKernel> kernels;
  /// A line that cannot be used: cut short by a crash, damaged, or of a newer Palladium.
  struct Damage {
    std::size_t line = 0;  ///< from 1
    std::string what;
  };
  std::vector<Damage> damages;
};
/// CompileError if there is no such file, or it cannot be read.
PALLADIUM_API Manifest read_manifest(const std::string& path);

}  // namespace palladium
