// Compiled kernels on disk. A cache may be slow or empty, never wrong and never an error: whatever
// is not exactly a whole entry of a trusted owner is a miss with a log line.
//
//   <root>/v1/<2 hex>/<62 hex of the kernel key>.<16 hex of the toolchain id>.k
//
// Entries appear by rename and are read whole: no lock, no memory map, nothing that a network file
// system breaks. Two processes that store one kernel both succeed; the later file stays.
//
// Bounded in bytes and files. A hit is noted in the file's time, seldom enough to cost nothing; who
// stores throws a die, weighted by what is stored, whether to sweep: remove what was not used for
// longest until a tenth of the bounds is free, and temporary files that killed processes left. Many
// processes may sweep at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/entry.hpp"
#include "cache/key.hpp"
#include "cache/trust.hpp"

namespace palladium::cache {

/// $PALLADIUM_CACHE_DIR, else $XDG_CACHE_HOME/palladium, else ~/.cache/palladium; "" where the
/// environment gives none of them.
std::string default_root();

struct StoreOptions {
  std::uint64_t most_bytes = std::uint64_t{2} << 30;
  std::uint64_t most_files = 200'000;
  Sharing sharing = Sharing::own;
  std::int64_t note_use_after_ns = std::int64_t{600} * 1'000'000'000;
  std::int64_t temporaries_live_ns = std::int64_t{3600} * 1'000'000'000;
};
/// As PALLADIUM_CACHE_SIZE, PALLADIUM_CACHE_FILES and PALLADIUM_CACHE_SHARING say; what cannot be
/// read in them is a log line.
StoreOptions default_store_options();

/// Thread-safe.
class Store {
 public:
  /// A store without a root finds nothing and keeps nothing.
  explicit Store(std::string root, const StoreOptions& options = {});

  const std::string& root() const { return root_; }
  const StoreOptions& options() const { return options_; }

  /// The entry compiled by exactly this toolchain.
  std::optional<Entry> find(const Key& key, std::string_view toolchain,
                            Parts parts = Parts::kernel) const;

  /// The same without a log line: for a second look, when what is wrong has been said.
  std::optional<Entry> find_again(const Key& key, std::string_view toolchain) const;

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
    std::int64_t modified_ns = 0;  // when it was stored, or its last use noted
  };

  /// All files named like entries, by key and toolchain; what is in them is not looked at.
  std::vector<Listed> list() const;
  std::optional<Entry> load(const Listed& listed, Parts parts = Parts::all) const;
  /// Why load() gives nothing, or "".
  std::string defect(const Listed& listed) const;

  /// Why nothing can be kept here, or "". Finds out by making the folder and a file in it.
  std::string problem() const;

  /// Whether the entry is gone now.
  bool remove(const Key& key, std::string_view toolchain) const;

  struct Removed {
    std::size_t entries = 0;
    std::uint64_t bytes = 0;
    std::size_t temporaries = 0;
  };
  /// Keeps the bounds, whether or not they are exceeded by little.
  Removed sweep() const;
  /// Removes all entries and all temporary files.
  Removed clear() const;

 private:
  struct Contents;

  std::string base() const;
  std::string folder_of(const Key& key) const;
  std::string path_of(const Key& key, std::string_view toolchain) const;
  std::optional<Entry> read(const std::string& path, const Key& key, std::string_view toolchain,
                            Parts parts, std::string& defect) const;
  std::optional<Entry> read_or_log(const std::string& path, const Key& key,
                                   std::string_view toolchain, Parts parts) const;
  files::Outcome make_folders(const std::string& folder) const;
  bool is_usable() const;
  Contents contents() const;
  void remove_temporaries(const Contents& contents, std::int64_t older_than_ns,
                          Removed& removed) const;
  void look_into(const std::string& folder, Contents& found) const;
  void sweep_if_time(std::uint64_t bytes) const;
  Removed sweep_above(double part) const;
  bool is_time_to_look(std::uint64_t bytes, unsigned& random) const;
  std::optional<double> worth_a_sweep(unsigned first_folder) const;
  std::size_t count_names(const std::string& folder) const;

  enum class Trust : int { unknown, granted, refused };

  std::string root_;
  StoreOptions options_;
  mutable std::atomic<Trust> trust_ = Trust::unknown;
};

}  // namespace palladium::cache
