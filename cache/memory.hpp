// What this process has loaded already, by context and kernel key.
#pragma once

#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "cache/key.hpp"

namespace palladium::cache {

/// `Handle` is cheap to copy. Thread-safe; grows by what is inserted and shrinks by clear().
template <class Handle>
class Memory {
 public:
  /// The context is an identity only: a CUDA context, or null for what needs none.
  std::optional<Handle> find(const void* context, const Key& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = handles_.find({context, key});
    if (found == handles_.end()) return std::nullopt;
    return found->second;
  }

  /// The handle in the table afterwards: the first that was inserted wins, so that threads which
  /// load one kernel at once go on with the same handle.
  Handle insert(const void* context, const Key& key, Handle handle) {
    const std::lock_guard lock(mutex_);
    return handles_.try_emplace({context, key}, std::move(handle)).first->second;
  }

  void erase(const void* context, const Key& key) {
    const std::lock_guard lock(mutex_);
    handles_.erase({context, key});
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    handles_.clear();
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return handles_.size();
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

  mutable std::mutex mutex_;
  std::unordered_map<Place, Handle, Hash> handles_;
};

}  // namespace palladium::cache
