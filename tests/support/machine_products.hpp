// Products that an assembler leaves out, because it takes what is computed of one for what was
// computed of another: in machine code a product without operands stands in the place of each.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "codegen/nvrtc/disassemble.hpp"

namespace palladium::test {

/// How many products of wgmma a cubin has, and how many of its text it lacks.
struct MachineProducts {
  int kept = 0, left_out = 0;
};

/// Needs an nvdisasm.
inline MachineProducts machine_products(std::span<const std::byte> cubin) {
  const std::string sass = nvrtc::disassemble(nvrtc::find_nvdisasm(), cubin);
  MachineProducts found;
  for (std::size_t at = sass.find("GMMA."); at != sass.npos; at = sass.find("GMMA.", at + 1)) {
    const std::string line = sass.substr(at, sass.find('\n', at) - at);
    ++(line.find("gdesc[URZ], RZ") != line.npos ? found.left_out : found.kept);
  }
  return found;
}

}  // namespace palladium::test
