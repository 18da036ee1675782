// A compile helper as its program sees it: a process of its own that runs NVRTC.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "codegen/base/process.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "codegen/nvrtc/wire.hpp"

namespace palladium::nvrtc {

struct HelperOptions {
  std::string program;                      // path of palladium-compile
  std::string digest;                       // of this build, which must be the helper's too
  std::uint64_t memory_bytes = 2ull << 30;  // what a compile may allocate
  std::uint64_t idle_ms = 10'000;           // after so long without a request it ends
};

/// Not thread-safe. Ends with the object.
class Helper {
 public:
  ~Helper();

  using Stopped = wire::Channel::Stopped;

  struct Started {
    std::unique_ptr<Helper> helper;  // or
    std::string problem;             // why there is none
    bool is_lasting = true;          // whether another try would end like this one
  };
  static Started start(const HelperOptions& options, const Stopped& stopped);

  enum class End {
    result,
    stopped,  // the caller's wish; the helper is spent, as after `gone` and `died`
    gone,     // it had ended before it took the request, or its socket was closed by the program
    died,     // the request, or somebody, killed it
    unable,   // it has no process to compile in; it may have one for the next request
  };
  struct Answer {
    End end = End::died;
    Result result = {};
    /// Of a death: "was killed by signal 9 (Killed)", and its last words. Of being unable: why.
    std::string how = {};
  };
  /// CudaError and CompileError as of nvrtc::compile().
  Answer compile(const wire::Compile& request, const Stopped& stopped);

  process::Id process() const { return process_; }

 private:
  Helper(int socket, process::Id process);
  std::string greet(const HelperOptions& options, const Stopped& stopped);

  bool is_intact() const;

  wire::Channel channel_;
  const ino_t identity_;  // of the channel's socket
  const process::Id process_;
};

}  // namespace palladium::nvrtc
