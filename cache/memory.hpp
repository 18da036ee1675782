// What this process has loaded already, by context and kernel key: whoever wants the same gets the
// same, and what nobody holds any more can be taken out again, what was wanted longest ago first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/key.hpp"
#include "codegen/base/forking.hpp"

namespace palladium::cache {

/// Thread-safe.
template <class Loaded>
class Memory {
 public:
  /// Who holds one uses it. The last may be dropped anywhere: that takes no lock and, while the
  /// table has it, destroys nothing.
  using Handle = std::shared_ptr<const Loaded>;

  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// The context is an identity only: a CUDA context, or null for what needs none.
  Handle find(const void* context, const Key& key) {
    const Lock lock(mutex_);
    const auto found = slots_.find({context, key});
    return found == slots_.end() ? nullptr : use(found->second);
  }

  /// What is in the table afterwards: the first that was inserted wins, so that threads which load
  /// one kernel at once go on with the same one.
  Handle insert(const void* context, const Key& key, Loaded loaded) {
    const Lock lock(mutex_);
    std::shared_ptr<Slot>& slot = slots_[{context, key}];
    if (!slot) slot = std::make_shared<Slot>(std::move(loaded));
    return use(slot);
  }

  /// Leaves at most so many that nobody holds, and hands over the others.
  std::vector<Loaded> take_unused(std::size_t most) {
    const Lock lock(mutex_);
    std::vector<std::pair<std::uint64_t, Place>> unused;
    for (const auto& [place, slot] : slots_)
      if (slot.use_count() == 1) unused.emplace_back(slot->wanted, place);
    if (unused.size() <= most) return {};
    std::ranges::sort(unused, {}, &std::pair<std::uint64_t, Place>::first);
    unused.resize(unused.size() - most);
    std::vector<Loaded> taken;
    for (const auto& [wanted, place] : unused) {
      const auto found = slots_.find(place);
      // Nobody can have made another handle. Who dropped the last one has done with it, which this
      // counting up and down comes after.
      (void)use(found->second);
      taken.push_back(std::move(found->second->loaded));
      slots_.erase(found);
    }
    return taken;
  }

  std::size_t size() const {
    const Lock lock(mutex_);
    return slots_.size();
  }

 private:
  using Place = std::pair<const void*, Key>;
  struct Hash {
    // A part of a digest is a hash already.
    std::size_t operator()(const Place& place) const {
      std::size_t bits;
      std::memcpy(&bits, place.second.bytes.data(), sizeof bits);
      return bits ^ reinterpret_cast<std::size_t>(place.first);
    }
  };
  struct Slot {
    explicit Slot(Loaded l) : loaded(std::move(l)) {}
    Loaded loaded;
    std::uint64_t wanted = 0;
  };
  class Lock {
   public:
    explicit Lock(std::mutex& mutex) : lock_(mutex) {}

   private:
    const forking::Section section_;
    const std::lock_guard<std::mutex> lock_;
  };

  Handle use(const std::shared_ptr<Slot>& slot) {
    slot->wanted = ++clock_;
    return {slot, &slot->loaded};
  }

  mutable std::mutex mutex_;
  std::unordered_map<Place, std::shared_ptr<Slot>, Hash> slots_;
  std::uint64_t clock_ = 0;
};

}  // namespace palladium::cache
