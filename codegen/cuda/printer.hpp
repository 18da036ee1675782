// The program of a thread as CUDA C++. Spells, and decides nothing.
#pragma once

#include "codegen/cuda/emit.hpp"
#include "codegen/thread/program.hpp"

namespace palladium::cuda {

struct Printed {
  std::string text;
  std::vector<TextLine> lines;
  std::vector<int> statements;
  std::vector<int> placements;
};
Printed print(const thread::Program& program);

}  // namespace palladium::cuda
