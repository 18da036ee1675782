#include "cache/store.hpp"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "cache/stats.hpp"
#include "cache/store_names.hpp"
#include "codegen/base/event.hpp"
#include "codegen/base/files.hpp"
#include "codegen/base/forking.hpp"
#include "codegen/base/format.hpp"
#include "codegen/base/log.hpp"

namespace palladium::cache {
namespace {

void say_unused(const std::string& path, const std::string& why) {
  log::event(log::Level::warning, "refuse", fmt::format("cache: '{}' is not used: {}", path, why),
             {{"path", path}, {"reason", why}});
}

/// Whether this process hears that of this root for the first time: every compile has a Store of
/// its own.
bool is_news(const std::string& root, const std::string& why) {
  static constinit std::mutex mutex;
  const forking::Section section;
  const std::lock_guard lock(mutex);
  static auto& told = *new std::set<std::pair<std::string, std::string>>;
  return told.emplace(root, why).second;
}

}  // namespace

Store::Store(std::string root, const StoreOptions& options)
    : root_(std::move(root)), options_(options) {
  while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
}

std::string Store::base() const { return root_ + std::string(names::layout_folder); }

std::string Store::folder_of(const Key& key) const { return base() + "/" + key.hex().substr(0, 2); }

std::string Store::path_of(const Key& key, std::string_view toolchain) const {
  return folder_of(key) + "/" + names::entry_name(key, toolchain);
}

/// Judged once by a Store, and a process is warned of a verdict once. A root that does not exist is
/// judged when it does.
bool Store::is_usable() const {
  if (root_.empty()) return false;
  const Trust known = trust_.load(std::memory_order_acquire);
  if (known != Trust::unknown) return known == Trust::granted;
  files::Info info;
  if (!files::info(root_, info)) return true;
  const std::string why = info.is_directory ? distrust_of_folder(root_, info, options_.sharing)
                                            : std::string("it is not a directory");
  Trust expected = Trust::unknown;
  const Trust verdict = why.empty() ? Trust::granted : Trust::refused;
  if (trust_.compare_exchange_strong(expected, verdict) && !why.empty() && is_news(root_, why))
    say_unused(root_, why);
  return why.empty();
}

/// Nothing, and in `defect` the reason if it is not that there is no such file.
std::optional<Entry> Store::read(const std::string& path, const Key& key,
                                 std::string_view toolchain, Parts parts,
                                 std::string& defect) const {
  std::vector<std::byte> bytes;
  files::Info info;
  if (const files::Outcome outcome = files::read(path, most_entry_bytes, bytes, &info); !outcome) {
    if (!outcome.is_missing()) defect = outcome.message();
    return std::nullopt;
  }
  defect = distrust_of_entry(path, info, options_.sharing);
  if (!defect.empty()) return std::nullopt;
  std::optional<Entry> entry = decode(bytes, parts, defect);
  if (entry && (entry->key != key || entry->toolchain != toolchain)) {
    defect = "it holds another kernel than its name says";
    entry.reset();
  }
  // A cache that cannot be written serves all the same.
  if (entry && names::now_ns() - info.modified_ns >= options_.note_use_after_ns)
    (void)files::touch(path);
  return entry;
}

std::optional<Entry> Store::read_or_log(const std::string& path, const Key& key,
                                        std::string_view toolchain, Parts parts) const {
  std::string defect;
  std::optional<Entry> entry = read(path, key, toolchain, parts, defect);
  if (!defect.empty()) {
    count(Event::refused);
    say_unused(path, defect);
  }
  return entry;
}

std::optional<Entry> Store::find(const Key& key, std::string_view toolchain, Parts parts) const {
  if (!is_usable()) return std::nullopt;
  return read_or_log(path_of(key, toolchain), key, toolchain, parts);
}

std::optional<Entry> Store::find_again(const Key& key, std::string_view toolchain) const {
  std::string ignored;
  if (!is_usable()) return std::nullopt;
  return read(path_of(key, toolchain), key, toolchain, Parts::kernel, ignored);
}

std::optional<Entry> Store::find_any(const Key& key, int newest_major, Parts parts) const {
  if (!is_usable()) return std::nullopt;
  const std::string folder = folder_of(key);
  std::vector<std::string> candidates;
  if (const files::Outcome outcome = files::list(folder, candidates); !outcome) {
    if (!outcome.is_missing()) say_unused(folder, outcome.message());
    return std::nullopt;
  }
  const std::string hex = key.hex();
  const std::string_view wanted = std::string_view(hex).substr(2);
  std::optional<Entry> best;
  const auto version = [](const Entry& entry) {
    return std::pair(entry.metadata.nvrtc_major, entry.metadata.nvrtc_minor);
  };
  for (const std::string& name : candidates) {
    if (!names::is_entry(name) || !name.starts_with(wanted)) continue;
    std::optional<Entry> entry =
        read_or_log(folder + "/" + name, key, names::toolchain_in(name), parts);
    if (!entry || entry->metadata.nvrtc_major > newest_major) continue;
    if (!best || version(*entry) > version(*best)) best = std::move(entry);
  }
  return best;
}

/// The folders down from the root get the store's mode, what is above it the user's own.
files::Outcome Store::make_folders(const std::string& folder) const {
  if (const auto made = files::make_directories(files::directory_of(root_)); !made) return made;
  for (const std::string& each : {root_, base(), folder})
    if (const auto made = files::make_directory(each, folder_mode(options_.sharing)); !made)
      return made;
  return {};
}

bool Store::publish(const Entry& entry) const {
  if (!is_usable()) return false;
  const auto refuse = [&](const std::string& why) {
    count(Event::not_stored);
    log::warning(
        fmt::format("cache: {} is not stored in '{}': {}", entry.metadata.kernel, root_, why));
    return false;
  };
  const std::vector<std::byte> bytes = encode(entry);
  const std::string path = path_of(entry.key, entry.toolchain);
  if (const std::uint64_t most = std::min<std::uint64_t>(most_entry_bytes, options_.most_bytes);
      bytes.size() > most)
    return refuse(fmt::format("its {} bytes are more than {}", bytes.size(), most));
  // The digest makes a file torn by a crash a miss, so there is nothing to wait for the disk for.
  const auto put = [&] {
    return files::publish(path, bytes, files::Durability::fast, entry_mode(options_.sharing));
  };
  files::Outcome outcome = put();
  if (outcome.is_missing()) {
    outcome = make_folders(folder_of(entry.key));
    // The root may have come into being only now, by somebody else's hand.
    if (outcome && !is_usable()) return false;
    if (outcome) outcome = put();
  }
  if (!outcome) return refuse(outcome.message());
  count(Event::stored);
  sweep_if_time(bytes.size());
  return true;
}

std::string Store::problem() const {
  if (root_.empty()) return "PALLADIUM_CACHE_DIR, XDG_CACHE_HOME and HOME name no folder for it";
  const std::string probe =
      fmt::format("{}/probe.{}{}", base(), ::getpid(), files::temporary_suffix);
  if (const files::Outcome made = make_folders(base()); !made) return made.message();
  files::Info info;
  if (const files::Outcome outcome = files::info(root_, info); !outcome) return outcome.message();
  if (std::string why = distrust_of_folder(root_, info, options_.sharing); !why.empty()) return why;
  if (const files::Outcome written = files::publish(probe, std::string_view()); !written)
    return written.message();
  (void)files::remove(probe);
  return "";
}

std::optional<Entry> Store::load(const Listed& listed, Parts parts) const {
  return read_or_log(listed.path, listed.key, listed.toolchain, parts);
}

std::string Store::defect(const Listed& listed) const {
  std::string why;
  if (!read(listed.path, listed.key, listed.toolchain, Parts::all, why) && why.empty())
    why = "it is gone";
  return why;
}

bool Store::remove(const Key& key, std::string_view toolchain) const {
  if (!is_usable()) return false;
  const std::string path = path_of(key, toolchain);
  const files::Outcome outcome = files::remove(path);
  if (!outcome) log::warning(fmt::format("cache: '{}' stays: {}", path, outcome.message()));
  return static_cast<bool>(outcome);
}

}  // namespace palladium::cache
