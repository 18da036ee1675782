// OS threads that run fibers: they live on, so that the fibers' stacks do.
#pragma once

#include <functional>

namespace palladium::fiber {

/// `wanted`, or one for each core where it is 0; of more than 16, at most four for each core.
int worker_count(int wanted);

/// Runs `work` on the calling thread and on `count` - 1 others at once, which are started when
/// first needed, or on fewer where the process can have no more; returns when all are done. `work`
/// throws nothing. Thread-safe.
void run_on_workers(int count, const std::function<void()>& work);

}  // namespace palladium::fiber
