// Runs emitted CUDA C++ on the CPU: the host compiler makes a shared object of it, fibers are its
// threads, and what the text does wrong is reported.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/base/tensor_map.hpp"
#include "codegen/device/waist.hpp"
#include "palladium/error.hpp"

namespace palladium::emulator {

/// Global memory that a kernel may touch. Accesses outside all of them are reported.
struct Buffer {
  void* base = nullptr;
  std::size_t bytes = 0;
  std::string name = {};  // "args[0]", "outputs[1]"
  bool written = false;
  int element_bytes = 1;
  /// Whether two blocks of which one writes an element that the other reads or writes are an error.
  bool one_writer = true;
  /// Whether it holds something before the kernel writes. Else what nobody wrote is not read, and
  /// at the end told.
  bool initialised = true;
  /// Whether the kernel before writes it and may still run (programmatic dependent launch).
  bool overlapped = false;
  /// In elements; where they are empty the buffer is one row without gaps.
  std::vector<std::int64_t> shape = {}, strides = {};
};

enum class OutOfBounds {
  poison,  // NaN, the least integer, true
  zero,    // what a GPU gives
};

/// When an asynchronous copy or product takes effect.
enum class Asynchrony {
  eager,   // at its issue
  lazy,    // when somebody waits for it and nobody can run
  random,  // in between, by the seed
};

/// Which thread runs next. By `random` clusters begin in another order than that of their numbers,
/// too: one that the seed gives.
enum class Schedule { fifo, lifo, random };

/// What is looked for does not depend on luck: races are found by what happens before what, so one
/// eager fifo run finds them. The other schedules check the emulator and what is not modelled.
struct Options {
  OutOfBounds out_of_bounds = OutOfBounds::poison;
  bool detect_writers = true;
  /// Elements of a buffer that was not initialised and that nobody wrote are an error, rather than
  /// a warning in the log.
  bool unwritten_is_error = false;
  bool detect_races = true;
  /// Whether fence_async counts only for what its own thread wrote (see race::Engine).
  bool strict_fences = true;
  Asynchrony asynchrony = Asynchrony::eager;
  Schedule schedule = Schedule::fifo;
  std::uint64_t seed = 0;  // decides which lane elect_one elects, too
  /// OS threads; 0: one for each core. A kernel whose blocks wait for each other gets one.
  int workers = 0;
  /// How many clusters a GPU holds at once. Where blocks wait for each other, so many run together
  /// if they must: a few at first, and more whenever those ask for what nobody of them tells.
  std::int64_t resident_clusters = 528;
};

/// Blocks of a persistent kernel: as many as a GPU would run at once.
inline constexpr std::int64_t persistent_blocks = 4;

/// One launch, as cuLaunchKernelEx would get it.
struct Launch {
  std::string_view kernel = {};  // for messages
  std::string_view text = {};    // the emitted text, without prelude, with PL_EXPORT
  std::array<std::int64_t, 3> grid = {1, 1, 1};
  std::array<int, 3> cluster = {1, 1, 1};
  int warpgroups = 1;
  std::uint32_t shared_bytes = 0;
  void** parameters = nullptr;
  std::span<const Buffer> buffers = {};
  /// The user's line of each line of the text, from its first; shorter is fine.
  std::span<const Location> lines = {};
  /// The lines of the text, in order, that check where an index map has placed a block.
  std::span<const int> placements = {};
  /// The text was emitted for a kernel graph: what an index of the user's, or the order of programs
  /// and Pallas threads, leads to is the user's error.
  bool is_emitted = false;
  Options options = {};
  /// Where it is set, is told of every access of memory by which line, with race detection; from
  /// several threads where there are several workers. Shared memory of the thread's own block is
  /// `shared`, of another `shared_cluster`; what is atomic says neither read nor write. `at`: an
  /// address, or in shared memory an offset.
  std::function<void(int line, const device::Access&, std::uint64_t at, std::uint64_t bytes)>
      watch = {};
};

/// What a line of Launch::placements has found.
class Misplaced : public CompileError {
 public:
  using CompileError::CompileError;
};

/// Compiles the text (once per process and text), runs all blocks and returns when the last is
/// done. Blocks of 128 * warpgroups threads, x fastest; the blocks of a cluster run together.
///
/// InternalError, which names kernel, block, thread, emitted line and the user's line, for what
/// only a wrong text can do: accesses outside the buffers or misaligned, reads of shared memory
/// that nobody wrote, collectives that not all threads reach, misused barriers, races and missing
/// fences, accumulators touched in flight, copies nobody waited for, deadlock. What does not stop
/// the kernel is collected, once per cause, and thrown at the end. CompileError for what the user
/// did: blocks that write one element, a block wholly out of bounds (Misplaced), a slice that
/// leaves its block, a read of what nobody has stored and, where the text is emitted, accesses out
/// of bounds and races between blocks or warpgroups. CompileError also when the host compiler
/// cannot be run, or does not compile the device library, and CudaError when there is no memory for
/// it.
void run(const Launch& launch);

/// A tensor map for tma_load and its like under the emulator, with the same checks that
/// cuTensorMapEncodeTiled makes: CompileError with problem_of's sentence.
TensorMap encode(const TensorMapSpec& spec);

/// Registers of each thread of a kernel at its entry, as far as its text binds them: where threads
/// hand registers over, all of a block's are given out. 0: only the assembler knows.
int known_registers(int threads, std::string_view text);

/// Compiles only, so that a first `run` is as fast as the next; the seconds it took, 0 if it was
/// compiled before.
double prepare(std::string_view kernel, std::string_view text);

}  // namespace palladium::emulator
