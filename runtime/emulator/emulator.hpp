// Runs emitted CUDA C++ on the CPU: the host compiler makes a shared object of it, fibers are its
// threads, and what the text does wrong is reported.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "palladium/error.hpp"

namespace palladium::emulator {

/// Global memory that a kernel may touch. Accesses outside all of them are reported.
struct Buffer {
  void* base = nullptr;
  std::size_t bytes = 0;
  std::string name = {};  // "args[0]", "outputs[1]"
  bool written = false;
  int element_bytes = 1;
  /// Whether two blocks that write one element are an error.
  bool one_writer = true;
};

enum class OutOfBounds {
  poison,  // NaN, the least integer, true
  zero,    // what a GPU gives
};

struct Options {
  OutOfBounds out_of_bounds = OutOfBounds::poison;
  bool detect_writers = true;
};

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
  Options options = {};
};

/// Compiles the text (once per process and text), runs all blocks one after another and returns
/// when the last is done. Blocks of 128 * warpgroups threads, x fastest.
///
/// InternalError, which names kernel, block, thread, emitted line and the user's line, for what
/// only a wrong text can do: accesses outside the buffers or misaligned, reads of shared memory
/// that nobody wrote, collectives that not all threads reach, deadlock. CompileError for what the
/// user did: blocks that write one element, a block wholly out of bounds. CompileError also when no
/// host compiler can be run.
void run(const Launch& launch);

/// Compiles only, so that a first `run` is as fast as the next; the seconds it took, 0 if it was
/// compiled before.
double prepare(std::string_view kernel, std::string_view text);

}  // namespace palladium::emulator
