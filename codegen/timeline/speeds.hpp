// How fast the parts of a multiprocessor are, in its clock cycles.
#pragma once

namespace palladium::timeline {

/// Of one multiprocessor of a GPU that has all of them at work. Each figure is a data sheet's or
/// that of an instruction alone; none is chosen so that some kernel comes out right.
struct Speeds {
  int compute_capability = 0;
  const char* device = "";
  double ghz = 0;  // of its clock when all of it is at work

  // ---- tensor cores
  double wgmma_columns = 0;         // of m64nNk32B, in a cycle; 0: there are none
  double wgmma_from_registers = 0;  // cycles more of an instruction whose A is in registers
  double wgmma_latency = 0;         // until the sum is there and those who wait know it
  /// Of the time that it takes, for how long it keeps from others what its sums need of registers.
  double wgmma_issue = 0, wgmma_integer = 0, wgmma_special = 0;
  double mma_cycles = 0;            // of m16n8k32B of a warp, on its quarter
  double mma_latency = 0;

  // ---- memory, bytes in a cycle
  double l2_bytes = 0;      // this multiprocessor's share of what the L2 cache gives to all
  double copy_bytes = 0;    // that TMA takes for it where nobody else asks
  double device_bytes = 0;  // its share of the device's memory
  double send_bytes = 0;    // that TMA stores
  double copy_latency = 0, send_latency = 0;  // of TMA, beside what the bytes take
  double load_latency = 0;                    // of a thread's load, or cp.async, from L2 ...
  double device_latency = 0;                  // ... and cycles more from the device's memory

  // ---- threads
  double integer_cycles =
      0;  // of what is no addition or product of floats, of a warp on its quarter
  double special_cycles = 0;  // of an approximation of a warp, on its quarter
  double special_latency = 0, shared_latency = 0, operation_latency = 0;
  double meet_one = 0, meet_more = 0;  // a barrier of one warpgroup, of several
  double tell = 0, learn = 0;          // arrival at an mbarrier; a wait for it that is over
  double fence = 0;
};

/// None, nullptr, of an architecture whose figures nobody has measured.
const Speeds* speeds_of(int compute_capability);

}  // namespace palladium::timeline
