// Compiled kernels on disk. A cache may be slow or empty, never wrong and never an error: whatever
// is not exactly a whole entry of a trusted owner is a miss with a log line.
//
//   <root>/v1/<2 hex>/<62 hex of the kernel key>.<16 hex of the toolchain id>.k
//
// Entries appear by rename and are read whole: no lock, no memory map, nothing that a network file
// system breaks. Two processes that store one kernel both succeed; the later file stays. Nothing
// bounds the store but remove() and clear().
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/entry.hpp"
#include "cache/key.hpp"

namespace palladium::cache {

/// $PALLADIUM_CACHE_DIR, else $XDG_CACHE_HOME/palladium, else ~/.cache/palladium; "" where the
/// environment gives none of them.
std::string default_root();

/// Thread-safe.
class Store {
 public:
  /// A store without a root finds nothing and keeps nothing.
  explicit Store(std::string root);

  const std::string& root() const { return root_; }

  /// The entry compiled by exactly this toolchain.
  std::optional<Entry> find(const Key& key, std::string_view toolchain,
                            Parts parts = Parts::kernel) const;

  /// The entry compiled by the newest NVRTC whose major version is at most `newest_major`, which is
  /// what a driver of that CUDA major loads.
  std::optional<Entry> find_any(const Key& key, int newest_major,
                                Parts parts = Parts::kernel) const;

  /// Whether the entry is on disk now; if not, the log says why and the caller's bytes serve.
  bool publish(const Entry& entry) const;

  struct Listed {
    Key key;
    std::string toolchain;
    std::string path;
    std::uint64_t bytes = 0;
    std::int64_t modified_ns = 0;
  };

  /// All files named like entries, by key and toolchain; what is in them is not looked at.
  std::vector<Listed> list() const;
  std::optional<Entry> load(const Listed& listed, Parts parts = Parts::all) const;

  /// Why nothing can be kept here, or "". Finds out by making the folder and a file in it.
  std::string problem() const;

  /// Whether the entry is gone now.
  bool remove(const Key& key, std::string_view toolchain) const;
  /// Removes all entries and left-over temporary files, and returns how many entries went.
  std::size_t clear() const;

 private:
  std::string folder_of(const Key& key) const;
  std::string path_of(const Key& key, std::string_view toolchain) const;
  std::optional<Entry> read(const std::string& path, const Key& key, std::string_view toolchain,
                            Parts parts) const;
  bool is_usable() const;

  enum class Trust : int { unknown, granted, refused };

  std::string root_;
  mutable std::atomic<Trust> trust_ = Trust::unknown;
};

}  // namespace palladium::cache
