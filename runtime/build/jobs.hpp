// Compiles under way: one for all who ask for the same kernel at once, in the thread of the first
// of them or in the background.
//
// Nobody holds a lock while a kernel is compiled: kernels wait for one another only where all
// compile helpers are busy. What went wrong is told to those who asked meanwhile and is then
// forgotten here: the next to ask starts anew (and is told by compile.cpp what NVRTC has refused).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cache/key.hpp"
#include "codegen/nvrtc/pool.hpp"
#include "runtime/build/program.hpp"

namespace palladium::runtime {

enum class Lookup {
  cached,  // from the cache, if it is there
  fresh,   // compiled anew, because the driver rejects what the cache has
};

/// What makes two compiles one, and how messages call it.
struct JobName {
  cache::Key key;
  Lookup lookup = Lookup::cached;
  std::string kernel = {};
  std::string arch = {};
};

/// The compile itself; null when `stopped` ended it.
using Work = std::function<std::shared_ptr<const Program>(const nvrtc::Pool::Stopped& stopped)>;

/// Does the work in this thread, or waits for whoever is at it.
std::shared_ptr<const Program> do_job(const JobName& name, const Work& work);

struct Job;
struct Jobs;
struct Wish;

/// One who asked for a compile in the background. Who drops it still wants the kernel in the cache.
/// Thread-safe.
class Claim {
 public:
  Claim(Jobs& jobs, std::shared_ptr<Job> job, std::shared_ptr<Wish> wish);

  /// CudaError when cancelled or late, and whatever the compile throws.
  std::shared_ptr<const Program> wait() const;
  /// Whether wait() would return or throw at once, within so many seconds.
  bool wait_for(double seconds) const;
  /// False in a child of fork(), for which nobody compiles what its parent asked for.
  bool is_of_this_process() const;
  /// wait() throws from now on. When nobody else wants the kernel its compile ends.
  void cancel() const;

 private:
  Jobs* jobs_;
  std::shared_ptr<Job> job_;
  std::shared_ptr<Wish> wish_;
};

/// Queues the work, unless somebody is at it. The deadline is in seconds from now, 0 for none.
Claim start_job(const JobName& name, Work work, double deadline);

}  // namespace palladium::runtime
