// Computes what a launch on the fake driver would: the emulator runs the kernel's text on the
// driver's memory.
#include "tests/fake_cuda/player.hpp"

#include <cstring>
#include <list>

#include "codegen/base/format.hpp"
#include "runtime/emulator/emulator.hpp"

using palladium::TensorMapSpec;

namespace {

/// The map that an argument of 128 bytes leads to, for the emulator.
palladium::TensorMap encoded(const std::vector<std::byte>& argument,
                             const std::vector<fake_cuda::TensorMap>& maps) {
  std::uint64_t number = 0;
  std::memcpy(&number, argument.data(), sizeof number);
  const fake_cuda::TensorMap& map = maps.at(number);
  TensorMapSpec spec;
  spec.type = static_cast<palladium::TensorMapType>(map.type);
  spec.rank = static_cast<int>(map.rank);
  spec.base = const_cast<void*>(map.base);
  std::copy(map.extents.begin(), map.extents.end(), spec.extents.begin());
  std::copy(map.strides.begin(), map.strides.end(), spec.strides.begin());
  std::copy(map.box.begin(), map.box.end(), spec.box.begin());
  std::copy(map.element_strides.begin(), map.element_strides.end(), spec.element_strides.begin());
  spec.swizzle = map.swizzle == 0 ? 0 : 16 << map.swizzle;
  spec.l2_promotion = map.l2_promotion == 0 ? 0 : 32 << map.l2_promotion;
  spec.nan_fill = map.fill != 0;
  return palladium::emulator::encode(spec);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void fake_cuda_play(
    const fake_cuda::Launch& launch, const std::string& text,
    const std::vector<fake_cuda::TensorMap>& maps, const std::vector<fake_cuda::Memory>& memory,
    std::string& problem) {
  try {
    std::list<palladium::TensorMap> tensor_maps;
    std::vector<std::vector<std::byte>> arguments = launch.arguments;
    std::vector<void*> parameters;
    for (std::vector<std::byte>& argument : arguments) {
      if (argument.size() == sizeof(palladium::TensorMap))
        parameters.push_back(&tensor_maps.emplace_back(encoded(argument, maps)));
      else
        parameters.push_back(argument.data());
    }
    std::vector<palladium::emulator::Buffer> buffers;
    for (const fake_cuda::Memory& m : memory)
      buffers.push_back({.base = m.base,
                         .bytes = m.bytes,
                         .name = fmt::format("allocation {}", buffers.size()),
                         .written = true,
                         .one_writer = false});
    const auto number = [](unsigned n) { return static_cast<int>(n); };
    palladium::emulator::run(
        {.kernel = launch.kernel,
         .text = text,
         .grid = {launch.grid[0], launch.grid[1], launch.grid[2]},
         .cluster = {number(launch.cluster[0]), number(launch.cluster[1]),
                     number(launch.cluster[2])},
         .warpgroups = number(launch.block[0]) / 128,
         .shared_bytes = launch.shared_bytes,
         .parameters = parameters.data(),
         .buffers = buffers,
         .options = {.out_of_bounds = palladium::emulator::OutOfBounds::zero}});
  } catch (const std::exception& error) {
    problem = error.what();
  }
}
