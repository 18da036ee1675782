#include "runtime/emulator/global_memory.hpp"

#include <algorithm>
#include <tuple>

#include "codegen/base/format.hpp"

namespace palladium::emulator {

GlobalMemory::GlobalMemory(const Launch& launch) {
  for (const Buffer& buffer : launch.buffers) {
    const auto begin = reinterpret_cast<std::uintptr_t>(buffer.base);
    const std::size_t elements =
        buffer.written && launch.options.detect_writers
            ? buffer.bytes / static_cast<std::size_t>(std::max(1, buffer.element_bytes))
            : 0;
    const bool watched = buffer.one_writer || !buffer.initialised;
    regions_.push_back({&buffer, begin, begin + buffer.bytes,
                        race::WriterMap(watched ? elements : 0),
                        race::ReaderMap(buffer.one_writer && buffer.initialised ? elements : 0)});
  }
  // Of an aliased input and output the written one comes first, so that it is found.
  std::stable_sort(regions_.begin(), regions_.end(), [](const Region& a, const Region& b) {
    return std::tuple(a.begin, !a.buffer->written) < std::tuple(b.begin, !b.buffer->written);
  });
}

std::size_t GlobalMemory::find(std::uintptr_t address, std::size_t bytes, std::size_t& hint) const {
  const auto holds = [&](const Region& r) {
    return address >= r.begin && address < r.end && bytes <= r.end - address;
  };
  if (hint < regions_.size() && holds(regions_[hint])) return hint;
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    if (holds(regions_[i])) return hint = i;
  }
  return none;
}

std::string GlobalMemory::nearest(std::uintptr_t address) const {
  const Region* best = nullptr;
  std::uintptr_t distance = 1 << 20;
  for (const Region& r : regions_) {
    const std::uintptr_t d =
        address < r.begin ? r.begin - address : address - std::min(address, r.end);
    if (d < distance) {
      distance = d;
      best = &r;
    }
  }
  if (best == nullptr) return "far from every buffer";
  const char* name = best->buffer->name.c_str();
  if (address < best->begin) return fmt::format("{} bytes before {}", best->begin - address, name);
  return fmt::format("at byte {} of {}, which has {}", address - best->begin, name,
                     best->buffer->bytes);
}

}  // namespace palladium::emulator
