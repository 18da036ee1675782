#include "palladium/ops/registry.hpp"

#include "palladium/ops/add.hpp"
#include "palladium/ops/attention.hpp"
#include "palladium/ops/blur.hpp"
#include "palladium/ops/matmul.hpp"
#include "palladium/ops/softmax.hpp"

namespace palladium::ops {

std::span<const Entry> registry() {
  static const std::vector<Entry> entries = {
      {"add", "x + y of two vectors", add, {{{dim("n")}, f32}, {{dim("n")}, f32}}},
      {"softmax", "softmax along the rows of a matrix", softmax, {{{dim("m"), 1000}, f32}}},
      {"matmul",
       "product of two matrices of any size",
       matmul,
       {{{dim("m"), 700}, f32}, {{700, 300}, f32}}},
      {"attention",
       "attention of queries to keys, by heads",
       [] { return attention(); },
       {{{2, 8, 1000, 64}, f16}, {{2, 2, 1000, 64}, f16}, {{2, 2, 1000, 64}, f16}}},
      {"blur", "mean over 5x5 pixels of an 8-bit image", blur, {{{480, 640}, u8}}},
  };
  return entries;
}

const Entry& find(const std::string& name, Location at) {
  std::string names;
  for (const Entry& e : registry()) {
    if (name == e.name) return e;
    names += (names.empty() ? "" : ", ") + std::string(e.name);
  }
  throw CompileError(at, "no shipped kernel is named '" + name + "'; there are " + names);
}

}  // namespace palladium::ops
