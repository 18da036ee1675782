// Global memory during one launch: the buffers that a kernel may touch and who wrote their
// elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/emulator/emulator.hpp"
#include "runtime/race/reader_map.hpp"
#include "runtime/race/writer_map.hpp"

namespace palladium::emulator {

/// Shared by the workers of a launch.
class GlobalMemory {
 public:
  explicit GlobalMemory(const Launch& launch);

  struct Region {
    const Buffer* buffer = nullptr;
    std::uintptr_t begin = 0, end = 0;
    race::WriterMap writers;  // without elements where nobody wants to know
    race::ReaderMap readers;  // where what a block reads another must not write

    std::size_t element_of(std::uintptr_t address) const {
      return (address - begin) / static_cast<std::size_t>(buffer->element_bytes);
    }
  };
  static constexpr std::size_t none = ~std::size_t{0};
  /// The index of the region that holds all of [address, address + bytes), or none. `hint` is the
  /// caller's: the region that it found last.
  std::size_t find(std::uintptr_t address, std::size_t bytes, std::size_t& hint) const;
  Region& region(std::size_t index) { return regions_[index]; }
  std::size_t size() const { return regions_.size(); }
  /// "at byte 12 of outputs[0], which has 8" for messages.
  std::string nearest(std::uintptr_t address) const;

 private:
  std::vector<Region> regions_;  // by address
};

}  // namespace palladium::emulator
