// The passes over the lowered program: which there are, in which order, and why.
#pragma once

#include <cstdint>
#include <span>

#include "codegen/lowered/program.hpp"

namespace palladium::passes {

using namespace lowered;

/// What holds of a program from the pass that leaves it on.
enum class Fact : std::uint16_t {
  none = 0,
  windows = 1 << 0,     // every root Ref has a window, which says where its block lives
  stages = 1 << 1,      // it is decided which windows are read from a copy in shared memory
  values = 1 << 2,      // every value is inlined or has a storage
  statements = 1 << 3,  // bodies are statements; what the graph says is in them
  layouts = 1 << 4,     // loop nests and storages in registers have their layouts
  registers = 1 << 5,   // it is known what a thread holds at most
  rows = 1 << 6,        // rows in shared memory lie as they will
  copies = 1 << 7,      // it is decided how what is staged comes to shared memory
  rings = 1 << 8,       // what loops copy ahead has its slots
  waits = 1 << 9,       // what is asynchronous is awaited where somebody needs it
  offsets = 1 << 10,    // storages in shared memory have their place there
  order = 1 << 11,      // threads wait for each other where they touch the same memory
};
constexpr Fact operator|(Fact a, Fact b) {
  return static_cast<Fact>(static_cast<std::uint16_t>(a) | static_cast<std::uint16_t>(b));
}
constexpr bool holds(Fact all, Fact wanted) {
  return (static_cast<std::uint16_t>(all) & static_cast<std::uint16_t>(wanted)) ==
         static_cast<std::uint16_t>(wanted);
}

/// Whether a pass changes the graph, too, which is checked behind it; nothing: statements,
/// storages and what is decided of them.
enum class Edits : bool { nothing, graph };

/// A row of the manifest. Passes change the program in place; a CompileError is what the user wrote
/// that cannot be, and leaves a program that nobody may go on with.
struct Pass {
  const char* name;
  void (*run)(Program&);
  Fact needs;       // what has to hold before it
  Fact leaves;      // what holds behind it that did not before
  Edits edits;      // of the graph
  const char* why;  // it stands here
};

/// What an attempt at a width is made by, ...
std::span<const Pass> attempt_passes();
/// ... and what makes a whole program of the attempt that was chosen.
std::span<const Pass> chosen_passes();

}  // namespace palladium::passes
