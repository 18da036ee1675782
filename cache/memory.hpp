// What this process has loaded already, by context and kernel key: whoever wants the same gets the
// same, and what nobody uses any more can be taken out again, longest unused first.
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

/// Thread-safe. Must outlive its handles.
template <class Loaded>
class Memory {
 public:
  /// Who holds one uses it. The last may be dropped anywhere: that destroys nothing.
  using Handle = std::shared_ptr<const Loaded>;

  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// The context is an identity only: a CUDA context, or null for what needs none.
  Handle find(const void* context, const Key& key) {
    const Lock lock(mutex_);
    const auto found = slots_.find({context, key});
    return found == slots_.end() ? nullptr : use(*found->second);
  }

  /// What is in the table afterwards: the first that was inserted wins, so that threads which load
  /// one kernel at once go on with the same one.
  Handle insert(const void* context, const Key& key, Loaded loaded) {
    const Lock lock(mutex_);
    std::unique_ptr<Slot>& slot = slots_[{context, key}];
    if (!slot) slot = std::make_unique<Slot>(std::move(loaded));
    return use(*slot);
  }

  /// Leaves at most so many that nobody uses, and hands over the others.
  std::vector<Loaded> take_unused(std::size_t most) {
    const Lock lock(mutex_);
    std::vector<std::pair<std::uint64_t, Place>> unused;
    for (const auto& [place, slot] : slots_)
      if (slot->users == 0) unused.emplace_back(slot->unused_since, place);
    if (unused.size() <= most) return {};
    std::ranges::sort(unused, {}, &std::pair<std::uint64_t, Place>::first);
    unused.resize(unused.size() - most);
    std::vector<Loaded> taken;
    for (const auto& [since, place] : unused) {
      const auto found = slots_.find(place);
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
    std::weak_ptr<const Loaded> handle = {};
    std::size_t users = 0;  // generations of handles, of which one may be on its way out
    std::uint64_t unused_since = 0;
  };
  class Lock {
   public:
    explicit Lock(std::mutex& mutex) : lock_(mutex) {}

   private:
    const forking::Section section_;
    const std::lock_guard<std::mutex> lock_;
  };

  Handle use(Slot& slot) {
    if (Handle known = slot.handle.lock()) return known;
    Handle made(&slot.loaded, [this, &slot](const Loaded*) { release(slot); });
    slot.handle = made;
    ++slot.users;
    return made;
  }
  void release(Slot& slot) {
    const Lock lock(mutex_);
    if (--slot.users == 0) slot.unused_since = ++clock_;
  }

  mutable std::mutex mutex_;
  std::unordered_map<Place, std::unique_ptr<Slot>, Hash> slots_;
  std::uint64_t clock_ = 0;
};

}  // namespace palladium::cache
