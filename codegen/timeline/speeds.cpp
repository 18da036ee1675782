#include "codegen/timeline/speeds.hpp"

#include <iterator>

namespace palladium::timeline {
namespace {

// "Measured": an instruction alone, on an H200, by `gpu_conformance question/cycles`; the table of
// benchmarks/NOTES.md. Data sheets are divided by boost clock and multiprocessors of the device
// that thread/occupancy.cpp names.
constexpr Speeds table[] = {
    {
        .compute_capability = 80,
        .device = "A100 SXM",
        .ghz = 1.41,  // data sheet: boost
        // Data sheet: 312 TFLOPS are 1024 multiply-adds in a cycle, 256 on each quarter, of 2048 of
        // an instruction. The latency is the one measured on an H200.
        .mma_cycles = 8,
        .mma_latency = 24,
        // A100 whitepaper: 5120 bytes in a cycle for 108 multiprocessors; 64 bytes are the port of
        // each. Data sheet: 2039 GB/s at 1.41 GHz.
        .l2_bytes = 5120.0 / 108,
        .copy_bytes = 64,
        .device_bytes = 2039 / (108 * 1.41),
        // Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture"
        // (arXiv:2402.13499), table of latencies: 262 from L2, 466 from memory.
        .load_latency = 262,
        .device_latency = 466 - 262,
        // CUDA programming guide, throughput of native instructions: 16 approximations in a cycle,
        // 64 operations of integers.
        // Latencies and barriers as measured on an H200: nobody has measured them here.
        .integer_cycles = 2,
        .special_cycles = 8,
        .special_latency = 17,
        .shared_latency = 24,
        .operation_latency = 4,
        .meet_one = 20,
        .meet_more = 28,
    },
    {
        .compute_capability = 90,
        .device = "H100 SXM",
        // FlashMLA's notes: a practical peak of 865 TFLOPS, which power leaves of a boost of 1.83.
        .ghz = 1.6,
        // Measured: m64nNk16 of 16 bits and m64nNk32 of 8 bits take N / 2 cycles each, by one
        // warpgroup or two, 5 more with A in registers, and N / 2 + 54 until a result is there.
        .wgmma_columns = 2,
        .wgmma_from_registers = 5,
        .wgmma_latency = 54,
        // Measured beside products of 128 columns: an fma takes 1.1 cycles of a warp, not 1, a
        // maximum 4.0, not 2.1, ex2.approx 9.4, not 8.
        .wgmma_issue = 1 - 1 / 1.1,
        .wgmma_integer = 1 - 2.1 / 4.0,
        .wgmma_special = 1 - 8 / 9.4,
        // Measured: m16n8k16 from each of eight warps every 12.5 cycles; 24 until it is there.
        .mma_cycles = 6.25,
        .mma_latency = 24,
        // Measured: products of 128x128x64 on all multiprocessors take 59 from the L2 cache, and
        // are bound by tensor cores; 64 are the port of each, as of an A100. Measured alone: 105
        // bytes in a cycle behind the first box, which takes 404 - 8192 / 105.
        .l2_bytes = 64,
        .copy_bytes = 105,
        .device_bytes = 3352 / (132 * 1.755),  // data sheet: GB/s, GHz
        // Measured: stores of one box of 8 KiB and of four take 369 and 1142 cycles.
        .send_bytes = 3 * 8192.0 / (1142 - 369),
        .copy_latency = 404 - 8192 / 105.0,
        .send_latency = 369 - (1142 - 369) / 3.0,
        // Measured: cp.async from L2. Luo et al. (arXiv:2402.13499): memory 479, L2 263.
        .load_latency = 324,
        .device_latency = 479 - 263,
        // Measured, from each of four warps: prmt, lop3, a maximum of f32 and two f32 to bf16 every
        // 2 cycles, ex2.approx and tanh.approx every 8, 17 until it is there; an fma 4, a shuffle
        // 24; block_sync of 128 and of 256 threads 20 and 28.
        .integer_cycles = 2,
        .special_cycles = 8,
        .special_latency = 17,
        .shared_latency = 24,
        .operation_latency = 4,
        .meet_one = 20,
        .meet_more = 28,
        // Measured: an arrival and the wait for it take 49 together. Half each is a guess: only
        // their sum stands in a round of who fills and who reads.
        .tell = 24.5,
        .learn = 24.5,
        .fence = 15,  // measured
    },
};

}  // namespace

// Of others than these two nothing has been measured; what they share with an older one is not
// known either.
const Speeds* speeds_of(int compute_capability) {
  for (const Speeds& s : table)
    if (s.compute_capability == compute_capability) return &s;
  return nullptr;
}

}  // namespace palladium::timeline
