// Where threads meet: barriers of warps, warpgroups, blocks and clusters, shuffles, votes,
// registers.
#include <algorithm>
#include <utility>

#include "codegen/base/format.hpp"
#include "runtime/emulator/machine.hpp"

namespace palladium::emulator {

template <class Finish>
void Machine::meet(Meeting& meeting, Wait kind, int variant, int line, Finish finish) {
  if (meeting.arrived == 0) {
    meeting.kind = kind;
    meeting.variant = variant;
    meeting.line = line;
    meeting.arrived_with = {};
  } else if (meeting.kind != kind || meeting.variant != variant || meeting.line != line) {
    fail(line,
         fmt::format("reaches {} while threads that must take part wait in {} elsewhere",
                     name(kind), name(meeting.kind)),
         "they wait at", meeting.line);
  }
  Thread& me = self();
  const bool orders = kind == Wait::warpgroup_sync || kind == Wait::warp_sync;
  if (races() && orders) {
    if (meeting.arrived == 0) engine_.touch(me.agent);  // so that the meeting itself is known of
    meeting.arrived_with = engine_.join(meeting.arrived_with, engine_.release(me.agent));
  }
  if (++meeting.arrived < meeting.count) {
    park(kind, line);
    return;
  }
  finish();
  meeting.arrived = 0;
  polls_ = 0;
  for (Thread& thread : threads_of(me, meeting)) {
    if (races() && orders) engine_.acquire(thread.agent, meeting.arrived_with);
    if (&thread != &me) unpark(thread);
  }
}

// ---- in step: `.aligned` instructions need all lanes of a warp at one line, those of wgmma all
// threads of a warpgroup. Threads that have returned need not come.

void Machine::in_step(Meeting& group, std::uint32_t& number, Wait kind, int line) {
  const InStep::Step mine = {kind, line}, theirs = group.steps.next(number++, mine, group.live);
  if (theirs == mine) return;
  fail(
      line,
      fmt::format("executes {} where other threads of its {} execute {}: all must execute the same "
                  "together",
                  name(kind), group.count == 32 ? "warp" : "warpgroup", name(theirs.kind)),
      "they are at", theirs.line);
}

void Machine::warp_in_step(Wait kind, int line) {
  in_step(warp_of(self()), self().warp_steps, kind, line);
}

// As often as products are made, and therefore only where more than results is asked for.
void Machine::warpgroup_in_step(Wait kind, int line) {
  if (!races()) return;
  Thread& me = self();
  in_step(me.block->warpgroups[me.ids.warpgroup], me.warpgroup_steps, kind, line);
}

// ---- 16 barriers of the block, which warpgroup_sync and block_sync use as well

void Machine::use_barrier(std::uint32_t id, Wait user, const Others& others, int line) {
  Thread& me = self();
  if (others.there) {
    fail(line,
         fmt::format("comes by {} to barrier {} of the block, where other threads wait by {}",
                     name(user), id, name(others.by)),
         "they wait at", others.line);
  }
  const Barrier& b = me.block->barriers[id];
  if (!races() || b.user == Wait::nothing || engine_.knows(me.agent, b.passed)) return;
  if (!b.passed_at.empty() && engine_.view(me.agent).knows(b.passed_at)) return;
  report(
      *me.block, {"barrier", line, b.user_line},
      fmt::format("race: {} comes by {} to barrier {} of the block and is not ordered after those "
                  "who met there by {}{}\nthey met at{}",
                  describe_self(), name(user), id, name(b.user), where(line), where(b.user_line)));
}

void Machine::warpgroup_sync(int warpgroups, int line) {
  if (warpgroups != launch_.warpgroups) {
    fail(line, fmt::format("calls warpgroup_sync<{}> in a block of {} warpgroups", warpgroups,
                           launch_.warpgroups));
  }
  Thread& me = self();
  Meeting& meeting = me.block->warpgroups[me.ids.warpgroup];
  const std::uint32_t id = 1 + me.ids.warpgroup;
  Barrier& b = me.block->barriers[id];
  if (b.arrived != 0 || b.user != Wait::warpgroup_sync) {
    use_barrier(id, Wait::warpgroup_sync, {b.arrived != 0, Wait::barrier_sync, b.line}, line);
  }
  meet(meeting, Wait::warpgroup_sync, 0, line, [&] {
    b.user = Wait::warpgroup_sync;
    b.user_line = line;
    b.passed_at = {};
    b.passed = meeting.arrived_with;
  });
}

void Machine::warp_sync(int line) {
  meet(warp_of(self()), Wait::warp_sync, 0, line, [] {});
}

// Threads that have returned count as come.
void Machine::block_sync(int line) {
  Thread& me = self();
  Meeting& meeting = me.block->everyone;
  const Barrier& b = me.block->barriers[0];
  if (b.arrived != 0 || b.user != Wait::block_sync) {
    use_barrier(0, Wait::block_sync, {b.arrived != 0, Wait::barrier_sync, b.line}, line);
  }
  if (meeting.arrived == 0) {
    meeting.line = line;
    meeting.arrived_with = {};
  } else if (meeting.line != line) {
    fail(line, "reaches block_sync while threads that must take part wait in block_sync elsewhere",
         "they wait at", meeting.line);
  }
  if (races()) {
    if (meeting.arrived == 0) engine_.touch(me.agent);
    meeting.arrived_with = engine_.join(meeting.arrived_with, engine_.release(me.agent));
  }
  ++meeting.arrived;
  if (meeting.arrived < me.block->live) {
    park(Wait::block_sync, line);
  } else {
    me.waits_in = Wait::block_sync;
    pass_if_all_came(*me.block);
    me.waits_in = Wait::nothing;
  }
}

void Machine::pass_if_all_came(Block& block) {
  Meeting& meeting = block.everyone;
  if (meeting.arrived == 0 || meeting.arrived < block.live) return;
  meeting.arrived = 0;
  Barrier& b = block.barriers[0];
  b.user = Wait::block_sync;
  b.user_line = meeting.line;
  b.passed_at = {};
  b.passed = meeting.arrived_with;
  progress();
  for (Thread& thread : block.threads) {
    if (thread.waits_in != Wait::block_sync) continue;
    if (races()) engine_.acquire(thread.agent, meeting.arrived_with);
    unpark(thread);
  }
}

std::uint64_t Machine::shuffle(std::uint64_t value, abi::Shuffle kind, std::uint32_t operand,
                               int line) {
  Thread& me = self();
  me.value = value;
  me.operand = operand;
  if (operand >= 32) fail(line, fmt::format("shuffles by {}, which is not below 32", operand));
  Meeting& warp = warp_of(me);
  meet(warp, Wait::shuffle, static_cast<int>(kind), line, [&] {
    const std::span<Thread> lanes = threads_of(me, warp);
    for (std::uint32_t i = 0; i < 32; ++i) {
      const std::uint32_t by = lanes[i].operand;
      std::uint32_t from = i;
      switch (kind) {
      case abi::Shuffle::by_xor: from = i ^ by; break;
      case abi::Shuffle::by_index: from = by; break;
      case abi::Shuffle::up:
        if (i >= by) from = i - by;
        break;
      case abi::Shuffle::down:
        if (i + by < 32) from = i + by;
        break;
      }
      lanes[i].result = lanes[from].value;
    }
  });
  return me.result;
}

std::uint32_t Machine::ballot(bool p, int line) {
  Thread& me = self();
  me.value = p;
  Meeting& warp = warp_of(me);
  meet(warp, Wait::vote, 0, line, [&] {
    const std::span<Thread> lanes = threads_of(me, warp);
    std::uint32_t bits = 0;
    for (int i = 0; i < 32; ++i) bits |= static_cast<std::uint32_t>(lanes[i].value) << i;
    for (Thread& lane : lanes) lane.result = bits;
  });
  return static_cast<std::uint32_t>(me.result);
}

std::uint32_t Machine::warp_uniform(std::uint32_t x, abi::Uniform what, int line) {
  constexpr Wait waits[] = {Wait::warp_uniform, Wait::warp, Wait::warpgroup};
  Thread& me = self();
  me.value = x;
  Meeting& warp = warp_of(me);
  meet(warp, waits[static_cast<int>(what)], 0, line, [&] {
    const std::span<Thread> lanes = threads_of(me, warp);
    for (Thread& lane : lanes) lane.result = lanes[0].value;
  });
  return static_cast<std::uint32_t>(me.result);
}

bool Machine::elect_one(int line) {
  Thread& me = self();
  meet(warp_of(me), Wait::elect_one, 0, line, [] {});
  return me.ids.lane == launch_.options.seed % 32;
}

// ---- named barriers: whoever comes is counted, whole warps at a time on a GPU

void Machine::barrier(std::uint32_t id, std::uint32_t threads, bool wait, int line) {
  Thread& me = self();
  if (threads == 0 || threads % 32 != 0 || threads > me.block->threads.size()) {
    fail(line,
         fmt::format("names {} threads at barrier {}: a multiple of 32, at most the block's {}",
                     threads, id, me.block->threads.size()));
  }
  warp_in_step(wait ? Wait::barrier_sync : Wait::barrier_arrive, line);
  Block& block = *me.block;
  Others others;
  if (id <= block.warpgroups.size()) {
    const Meeting& m = id == 0 ? block.everyone : block.warpgroups[id - 1];
    const bool there = m.arrived != 0 && (id == 0 || m.kind == Wait::warpgroup_sync);
    others = {there, id == 0 ? Wait::block_sync : Wait::warpgroup_sync, m.line};
  }
  use_barrier(id, wait ? Wait::barrier_sync : Wait::barrier_arrive, others, line);
  Barrier& b = block.barriers[id];
  const std::uint32_t thread = me.ids.warpgroup * 128 + me.ids.thread;
  // Who arrives and then waits himself counts twice: so begin two groups that take turns.
  if (!wait && b.came[thread]) {
    fail(line, fmt::format("arrives at barrier {} twice before its {} threads have come", id,
                           b.expected));
  }
  b.came.set(thread);
  if (b.arrived == 0) {
    b.expected = threads;
    b.line = line;
    b.arrived_with = {};
  } else if (b.expected != threads) {
    fail(line,
         fmt::format("comes to barrier {} for {} threads, others for {}", id, threads, b.expected),
         "they came by", b.line);
  }
  if (races()) {
    engine_.touch(me.agent);
    b.arrived_with = engine_.join(b.arrived_with, engine_.release(me.agent));
  }
  ++b.arrived;
  if (b.arrived == b.expected) {
    b.user = Wait::barrier_sync;
    b.user_line = line;
    b.came.reset();
    if (races()) {
      // Who only arrives does not learn of it, even if he is the last.
      b.passed_at = engine_.record({.agent = b.witness});
      b.arrived_with = engine_.join(b.arrived_with, engine_.released(b.witness));
    }
    pass(b);
    if (races() && wait) engine_.acquire(me.agent, b.passed);
  } else if (wait) {
    b.waiting.push_back(&me);
    park(Wait::barrier_sync, line, id);
  }
}

void Machine::pass(Barrier& b) {
  b.passed = b.arrived_with;
  b.arrived = 0;
  ++b.phase;
  progress();
  wake_all(b.waiting, b.passed);
}

// ---- the cluster's barrier: every thread arrives, then waits; who has returned has arrived

void Machine::cluster_arrive(bool release, int line) {
  Thread& me = self();
  Cluster& cluster = *me.block->cluster;
  warp_in_step(Wait::cluster_arrive, line);
  if (me.arrived_in_cluster) {
    fail(line, "arrives at the cluster's barrier twice without cluster_wait between");
  }
  me.arrived_in_cluster = true;
  me.cluster_phase = cluster.barrier.phase;
  if (cluster.barrier.arrived == 0) cluster.barrier.arrived_with = {};
  if (races()) {
    const race::Snapshot all = engine_.release(me.agent);
    cluster.barrier.arrived_with = engine_.join(
        cluster.barrier.arrived_with,
        release ? all : engine_.join(me.fenced[cluster_reach], engine_.only_witnesses(all)));
  }
  // fence_mbarrier_init has released them, so that this arrival may be relaxed.
  for (const std::uint32_t offset : std::exchange(me.published, {})) {
    const auto found = me.block->mbarriers.find(offset);
    if (found != me.block->mbarriers.end()) found->second.visible = me.cluster_phase + 1;
  }
  ++cluster.barrier.arrived;
  pass_if_all_came(cluster);
}

void Machine::cluster_wait(int line) {
  Thread& me = self();
  Barrier& b = me.block->cluster->barrier;
  warp_in_step(Wait::cluster_wait, line);
  if (!me.arrived_in_cluster) fail(line, "waits at the cluster's barrier without cluster_arrive");
  if (b.phase == me.cluster_phase) {
    b.waiting.push_back(&me);
    park(Wait::cluster_wait, line);
  } else if (races()) {
    engine_.acquire(me.agent, b.passed);
  }
  me.arrived_in_cluster = false;
  me.met_cluster = true;
  me.clusters_passed = me.cluster_phase + 1;
}

void Machine::pass_if_all_came(Cluster& cluster) {
  Barrier& b = cluster.barrier;
  if (b.arrived == 0 || static_cast<int>(b.arrived - b.left) < cluster.live) return;
  b.left = 0;
  pass(b);
}

// ---- registers move between warpgroups through the block's pool

void Machine::setmaxnreg(int registers, bool increase, int line) {
  Thread& me = self();
  Block& block = *me.block;
  const char* direction = increase ? "setmaxnreg_inc" : "setmaxnreg_dec";
  if (registers % 8 != 0 || registers < 24 || registers > 256) {
    fail(line, fmt::format("asks {} for {} registers: a multiple of 8 from 24 to 256", direction,
                           registers));
  }
  const std::uint32_t warpgroup = me.ids.warpgroup;
  Block::RegisterChange& last = block.register_changes[warpgroup];
  if (races() && last.line != 0 && !engine_.knows(me.agent, last.after)) {
    report(block, {"setmaxnreg", line, last.line},
           fmt::format("{} calls {} and has not met all warps of its warpgroup since the last "
                       "change of its registers{}\nwhich was{}",
                       describe_self(), direction, where(line), where(last.line)));
  }
  meet(block.warpgroups[warpgroup], Wait::setmaxnreg, registers * 2 + increase, line, [&] {
    last.line = line;
    last.after = {};
    if (races()) {
      for (Thread& t : threads_of(me, block.warpgroups[warpgroup])) {
        // The change itself, without which a thread that has touched no memory is known to all.
        (void)engine_.record({.agent = t.agent, .kind = race::Kind::write});
        last.after = engine_.join(last.after, engine_.release(t.agent));
      }
    }
    int& now = block.registers_of[warpgroup];
    if (increase ? registers < now : registers > now) {
      fail(line, fmt::format("calls {}<{}> and has {} registers", direction, registers, now));
    }
    if (increase) {
      block.wishes.push_back({warpgroup, registers});
    } else {
      block.registers_free += (now - registers) * 128;
      now = registers;
    }
    give_registers(block);
  });
  while (block.registers_of[warpgroup] != registers) {
    park(Wait::setmaxnreg, line, static_cast<std::uint32_t>(registers));
  }
}

// To warpgroups in the order in which they asked; one that asks for much does not hold up others.
void Machine::give_registers(Block& block) {
  std::erase_if(block.wishes, [&](const Block::Wish& wish) {
    int& now = block.registers_of[wish.warpgroup];
    const int needed = (wish.registers - now) * 128;
    if (needed > block.registers_free) return false;
    block.registers_free -= needed;
    now = wish.registers;
    progress();
    for (Thread& t : block.threads) {
      if (t.ids.warpgroup == wish.warpgroup && t.waits_in == Wait::setmaxnreg) unpark(t);
    }
    return true;
  });
}

// ---- matrices of a warp: where their threads meet

void Machine::mma(void* d, const void* a, const void* b, int k, abi::Product product, int line) {
  Thread& me = self();
  me.d = d;
  me.a = a;
  me.b = b;
  Meeting& warp = warp_of(me);
  meet(warp, Wait::mma, k * 16 + static_cast<int>(product), line,
       [&] { multiply(threads_of(me, warp), k, product); });
}

void Machine::ldmatrix(void* dst, std::uint32_t row, int matrices, bool transposed, int line) {
  Thread& me = self();
  me.d = dst;
  me.operand = row;
  Meeting& warp = warp_of(me);
  meet(warp, Wait::ldmatrix, matrices * 2 + transposed, line,
       [&] { read_matrices(threads_of(me, warp), matrices, transposed, line); });
}

void Machine::stmatrix(std::uint32_t row, const void* src, int matrices, bool transposed,
                       int line) {
  Thread& me = self();
  me.a = src;
  me.operand = row;
  Meeting& warp = warp_of(me);
  meet(warp, Wait::stmatrix, matrices * 2 + transposed, line,
       [&] { write_matrices(threads_of(me, warp), matrices, transposed, line); });
}

}  // namespace palladium::emulator
