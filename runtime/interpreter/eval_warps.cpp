// Warps of a Pallas thread, each with a fiber and a frame of its own while they last.
#include <cstring>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"
#include "runtime/fiber/fiber.hpp"
#include "runtime/interpreter/eval.hpp"

namespace palladium::interpreter {

Frame& Frame::split(int warp) {
  warps_.resize(graph::num_warps);
  std::unique_ptr<Frame>& own = warps_[static_cast<std::size_t>(warp)];
  if (!own) own = std::make_unique<Frame>(plan_, poison_);
  std::memcpy(own->memory_.get(), memory_.get(), plan_.frame_bytes());
  own->views_ = views_;
  own->position = position;
  own->position.warp = warp;
  own->races = races;
  own->launch = launch;
  own->semaphores = semaphores;
  own->scheduler = scheduler;
  own->cluster = cluster;
  own->barriers = barriers;
  own->copy_agents = copy_agents;
  own->copies = {};
  if (races != nullptr) {
    own->agent = warp_agents[static_cast<std::size_t>(warp)];
    races->engine().acquire(own->agent, races->engine().release(agent));
  }
  return *own;
}

void Frame::join(const Frame& warp) {
  CopyGroups sent = warp.copies;
  if (!sent.open.empty()) sent.closed.push_back(sent.open);
  for (std::size_t i = sent.read; i < sent.closed.size(); ++i)
    if (!sent.closed[i].empty())
      throw CompileError(
          sent.closed[i][0].at,
          fmt::format("copy_smem_to_gmem: warp {} of thread {} ends before the copy has read what "
                      "it copies: plgpu::wait_smem_to_gmem(0)",
                      warp.position.warp, position.thread));
  if (races != nullptr) races->engine().acquire(agent, races->engine().release(warp.agent));
}

// What is there behind them is there for all of the thread: they have waited for each other.
void eval_Warps(Frame& f, ValueId, const Inst& inst) {
  fiber::Fiber* const self = f.scheduler->current();
  int left = graph::num_warps;
  std::vector<Frame*> warps;
  for (int w = 0; w < graph::num_warps; ++w) warps.push_back(&f.split(w));
  for (Frame* const warp : warps)
    f.scheduler->spawn([&f, &left, self, warp, region = inst.regions[0]] {
      warp->run(region);
      if (--left == 0) f.scheduler->unpark(*self);
    });
  while (left > 0) f.scheduler->park(&left);
  for (const Frame* const warp : warps) f.join(*warp);
}

}  // namespace palladium::interpreter
