// Reads what nvdisasm prints of a cubin.
#pragma once

#include <string_view>
#include <vector>

#include "palladium/sass.hpp"

namespace palladium::nvrtc {

/// Parts of the text.
struct Instruction {
  int address = 0;
  bool is_predicated = false;
  std::string_view name;                  // "LDG.E.128"
  std::string_view operands;              // "R4, desc[UR4][R2.64]"
  std::vector<std::size_t> targets = {};  // indices of instructions that its operands name
};

/// Of the function, without the padding at its end; empty if the text has no such function. Any
/// text will do.
std::vector<Instruction> instructions_of(std::string_view text, std::string_view function);

/// Indices of the instructions of a natural loop.
struct NaturalLoop {
  std::size_t first = 0, last = 0;           // header, and the last branch back to it
  std::vector<std::size_t> hot = {};         // its instructions from first to last
  std::vector<std::size_t> cold = {};        // its others
  std::vector<std::size_t> every_trip = {};  // those without which no trip ends
};

/// By header.
std::vector<NaturalLoop> loops_of(const std::vector<Instruction>& instructions);

SassMix mix_of(const std::vector<Instruction>& instructions);

/// All of it; `all.instructions` is 0 if the text has no such function.
Sass read_sass(std::string text, std::string_view function);

}  // namespace palladium::nvrtc
