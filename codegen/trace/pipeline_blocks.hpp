// What pipelines over blocks of arrays have in common: how arrays are cut, which blocks are copied
// ahead together, and when one of an output has been visited for the last time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/trace/recorder.hpp"
#include "palladium/gpu/pipeline.hpp"

namespace palladium::trace {

/// An array, and how the pipeline cuts it.
struct CutArray {
  std::string name;  // "args[0]"
  BlockSpec spec;
  ValueId array;
  Type type;                 // of the array
  Extents block;             // what the body gets of it
  bool is_whole = false;     // the body gets the array
  bool follows_grid = true;  // other steps may have other blocks
  bool leaves = false;       // blocks may end behind the array
  int slots = 1;             // blocks that there is room for
  ValueId rooms = graph::no_value;
  ValueId room = graph::no_value;  // of an output with several: the number of the one that it has
};

/// Inputs whose blocks are copied together, and whose rooms are filled again together.
struct Ring {
  std::vector<std::size_t> inputs;
  int slots = 1;
  int delay = 0;                                  // steps behind which a room is filled again
  bool follows_grid = true;                       // else it is filled once
  std::vector<std::string> collective_axes = {};  // of blocks that share the copies
  ValueId ready = graph::no_value, consumed = graph::no_value;
};

struct Cut {
  const std::vector<Value>& grid;
  const std::vector<BlockSpec>&in_specs, &out_specs;
  int max_concurrent_steps = 1;
  bool one_ring_each = false;  // of inputs
  bool goes_on = false;        // there is another pipeline behind it that uses its rooms
};

class Blocks {
 public:
  /// CompileError where arrays and specifications do not fit.
  Blocks(Recorder& recorder, const char* what, const Cut& cut, const std::vector<Ref>& arrays,
         Location at);

  [[noreturn]] void fail(const std::string& problem) const;

  /// Inputs first.
  std::vector<CutArray> operands;
  std::size_t inputs = 0;
  std::vector<Ring> rings;
  Value steps;
  std::optional<std::int64_t> known_steps = {};

  bool has_outputs() const;
  Value apply(Op op, const Value& a, const Value& b) const { return elementwise(op, {a, b}, at_); }
  /// The rooms of an operand as scratch.
  Scoped rooms_of(const CutArray& o) const;
  Type type_of_rooms(const CutArray& o) const;
  Type barriers(const Extents& shape, std::size_t arrivals) const {
    return Type::ref(u64, shape, Space::barrier, static_cast<int>(arrivals));
  }
  Ref room(const CutArray& o, const Value& number) const;
  /// The indices of a step, row by row.
  std::vector<Value> indices_of(const Value& step) const;
  /// What the step has of an array in GMEM.
  Ref view_of(const CutArray& o, const Value& step) const;
  /// Whether the step behind has another block of an output, or there is none.
  Value is_last(const CutArray& o, const Value& step) const;
  /// Copies the blocks of a step to these rooms of the ring.
  void fetch(const Ring& ring, const Value& step, const Value& slot, const Ref& ready) const;
  /// Copies a room of an output to where the step has its block.
  void store(const CutArray& o, const Value& room, const Value& step,
             bool commit_group = true) const;
  /// Of the body, with what it gets beside the blocks of a step.
  std::vector<Ref> blocks_of(const std::vector<Value>& rooms) const;

 private:
  void add(const BlockSpec& spec, const Ref& array, std::string name);
  void set_steps(int slots);
  void set_slots(const Cut& cut);
  void set_rings(bool one_each);
  bool finds_grid_in(const CutArray& o) const;
  std::vector<Value> starts_of(const CutArray& o, const std::vector<Value>& indices) const;

  Recorder& recorder_;
  std::string what_;
  std::vector<Value> grid_;
  Location at_;
};

/// Calls the body; CompileError if it takes others.
std::vector<Value> call_body(detail::PipelineBody& body, const Blocks& blocks,
                             const std::vector<Value>& indices, const std::vector<Ref>& refs,
                             const std::vector<Value>& carries);

}  // namespace palladium::trace
