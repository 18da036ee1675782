// Kernels whose programs have rows of some arrays, and go through blocks of rows of others.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "palladium/palladium.hpp"

namespace palladium::test {

/// What the body of an iteration has, and what it leaves.
struct BlockStep {
  Value i;
  std::vector<Value> own;                      // rows of the program
  std::vector<std::function<Value()>> blocks;  // of the iteration: each call loads
  std::vector<Value> sums;                 // as the iteration before left them, then as this one
  std::function<void(const Value&)> keep;  // [rows, kept]
};

struct BlockLoop {
  enum class Spelling {
    carried,         // sums are carries of a loop
    held,            // ... or scratch in registers
    axis_registers,  // iterations are an axis of the grid, sums scratch
    axis_shared,
  };
  struct Sum {
    std::int64_t width = 1;
    float first = 0;
  };
  struct Walked {
    std::int64_t width = 32;
    bool is_turned = false;  // stored as [width, rows]
  };

  Spelling spelling = Spelling::carried;
  DType dtype = f16;
  std::int64_t rows = 64, columns = 32;  // of a program, of a block of an iteration
  /// Program i of a loop has i % (iterations + 1) iterations; of an axis each has all.
  int programs = 4, iterations = 3;
  bool all_alike = false;              // programs of a loop, too, have all iterations
  std::vector<std::int64_t> own = {};  // widths
  std::vector<Walked> walked = {};     // arrays of which an iteration has a block
  std::vector<Sum> sums = {};          // [rows, width] of f32: outputs
  std::int64_t kept = 0;               // width of an output with rows for each iteration; 0: none
  int masked = 0;  // so many of the last rows of what is walked are read as zeros
  int num_warps = 0, num_stages = 2, cluster = 1;
  std::optional<bool> specialize = true;
  bool persistent = false;
  std::function<void(BlockStep&)> body = {};

  bool by_axis() const { return spelling >= Spelling::axis_registers; }
  int trips(int program) const {
    return by_axis() || all_alike ? iterations : program / cluster % (iterations + 1);
  }
  std::int64_t keys() const { return columns * std::max(iterations, 1); }
  graph::Graph graph() const;

 private:
  PallasCallOptions options() const;
  void run(const Refs& refs) const;
  void loop_over(const BlockStep& step, const Refs& refs, int scratch) const;
  void along_axis(BlockStep step, const Refs& refs, int scratch) const;
  Value block(const Walked& w, const Ref& of, const Value& i) const;
  void store(const Refs& refs, const std::vector<Value>& all) const;
  std::vector<Value> at_first() const;
};

}  // namespace palladium::test
