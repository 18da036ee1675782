// What computes for the fake driver: a library of its own, so that the driver stays small.
#pragma once

#include <string>
#include <vector>

#include "tests/fake_cuda/fake_cuda.hpp"

namespace fake_cuda {

struct Memory {
  void* base = nullptr;
  std::size_t bytes = 0;
};

/// Runs the kernel of `text` on the emulator; `problem` becomes what went wrong.
using Play = void (*)(const Launch& launch, const std::string& text,
                      const std::vector<TensorMap>& maps, const std::vector<Memory>& memory,
                      std::string& problem);

}  // namespace fake_cuda
