// The compile helpers of a process: started when there is work, used again, never more than asked.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/nvrtc/helper.hpp"

namespace palladium::nvrtc {

/// Thread-safe.
class Pool {
 public:
  using Stopped = Helper::Stopped;

  Pool(HelperOptions options, int jobs);

  enum class End {
    result,
    stopped,      // `stopped` said so
    died,         // the compile ended two helpers: `why` says how
    unavailable,  // no process can be had to compile in: `why` says what keeps it
  };
  struct Outcome {
    End end = End::result;
    Result result = {};
    std::string why = {};
    bool is_lasting = true;  // of what is unavailable: whether another try would end like this one
  };
  /// As nvrtc::compile(), in a helper. Waits while all of them are busy; what `stopped` says is
  /// asked every 20 ms, wherever this waits.
  Outcome compile(const Request& request, const Toolchain& toolchain, const Stopped& stopped = {});

  /// How many may work at once from now on.
  void set_jobs(int jobs);

  /// Of the helpers that wait for work.
  std::vector<process::Id> idle_processes() const;

 private:
  class Lease;

  const HelperOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable returned_;
  int jobs_;
  int lent_ = 0;
  std::vector<std::unique_ptr<Helper>> idle_;
};

}  // namespace palladium::nvrtc
