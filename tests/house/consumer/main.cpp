// A program outside the tree, which knows nothing but find_package(palladium).
#include <cstdio>
#include <palladium/types.hpp>

namespace pl = palladium;

int main() {
  const pl::ShapeDtype rows = {{pl::dim("m"), 1000}, pl::f32};
  std::printf("%s\n", pl::to_string(rows).c_str());
}
