// Runs a kernel graph on the CPU: the meaning of every operation.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/graph/graph.hpp"

namespace palladium::interpreter {

/// An array in the caller's memory.
struct Buffer {
  void* data = nullptr;  // may be null if the array has no elements
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> strides = {};  // in elements; empty: row-major without gaps
};

/// What one call gives to a kernel. Outputs are written in place; an output aliased to an input has
/// the input's data and strides.
struct Invocation {
  std::vector<Buffer> arrays = {};          // inputs, then outputs, as GridMapping::block_mappings
  std::vector<std::uint64_t> scalars = {};  // bits in each scalar's dtype, zero-extended
  std::vector<std::int64_t> symbols = {};   // value of dim_symbol(0), dim_symbol(1), ...
};

struct Options {
  /// What does not exist (elements out of bounds, masked-off lanes) reads as poison_bits; otherwise
  /// as zero.
  bool poison = true;
  /// Finds accesses of threads of one block to one Ref that nothing orders.
  bool detect_races = false;
  /// Elements of outputs to which no input is aliased, and which have no gaps, become poison_bits
  /// where nobody wrote them; otherwise they stay as they were.
  bool poison_unwritten = false;
  /// Elements of an output that nobody wrote are an error, rather than a warning in the log.
  bool unwritten_is_error = false;
  /// OS threads that share programs of parallel axes; 0: one for each core, where a call lasts long
  /// enough. Nobody sees how many: results and errors are those of one. Kernels whose outputs alias inputs, or may be written by
  /// several programs, and races are left to one.
  int cores = 0;
  /// Programs that no sequential axis orders, and the threads of a block, take turns in an order
  /// that it gives; without it programs run row-major.
  std::optional<std::uint64_t> seed = {};
};

/// Runs every program of the grid. Precondition: `g` passes graph::verify, and the buffers of an
/// output and of another array overlap only where Graph::aliases says so.
///
/// CompileError, naming operand, program ids and the user's line, for what only a run can see: a
/// block wholly out of bounds, a dynamic start out of bounds of its Ref (of an element that the
/// mask does not switch off), a read of an element in bounds, of scratch or of an output to which
/// no input is aliased, that the program has not written, two programs that differ on a parallel
/// axis of which one writes an element that the other reads or writes (unless
/// Graph::allow_revisit), races. Outputs may then be partly written. InternalError for an
/// invocation that is not one of the graph.
void run(const graph::Graph& g, const Invocation& call, const Options& options = {});

/// Only places the blocks of every program, in order, and runs no body: CompileError for the first
/// one that lies wholly out of bounds of its array, or of which the index map gives a slice that
/// leaves it.
void place_blocks(const graph::Graph& g, const Invocation& call);

/// What the interpreter puts where nobody wrote: NaN, the least integer, true.
std::uint64_t poison_bits(DType dtype);

}  // namespace palladium::interpreter
