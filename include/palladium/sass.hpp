// The machine instructions of a compiled kernel, as nvdisasm tells them, counted by kind and loop.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "palladium/api.hpp"

namespace palladium {

/// How many instructions of each kind stand in the text, however often they run.
struct SassMix {
  int instructions = 0;
  /// "HMMA", "LDG", "STS", "MUFU", "FP32", "INT", ..., in that order; what is of none is "other".
  std::vector<std::pair<std::string, int>> classes = {};
  /// By name, with what matters of it: "LDG.128", "HMMA.16816", "MUFU.EX2", "FFMA".
  std::vector<std::pair<std::string, int>> opcodes = {};

  bool operator==(const SassMix&) const = default;
};

/// A natural loop: a branch back to an instruction by which all of it is entered.
struct SassLoop {
  int from = 0, to = 0;  // addresses of its first instruction and of its last branch back
  int depth = 1;         // 1 for a loop that stands in no other
  /// Of the instructions between the two: those of the loop, by kind, and how many of all of the
  /// loop's run in every trip. Beyond the two stands what is rare, the tails of waits.
  SassMix mix = {};
  int every_trip = 0, cold = 0;

  bool operator==(const SassLoop&) const = default;
};

struct Sass {
  std::string text;  // as nvdisasm prints it
  SassMix all = {};
  std::vector<SassLoop> loops = {};  // by address
};

}  // namespace palladium
