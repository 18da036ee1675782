#include "cache/store.hpp"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "codegen/base/environment.hpp"
#include "codegen/base/files.hpp"
#include "codegen/base/format.hpp"
#include "codegen/base/log.hpp"

namespace palladium::cache {
namespace {

constexpr std::string_view layout_folder = "/v1";
constexpr std::string_view suffix = ".k";
constexpr std::size_t key_digits = 62;  // the first two name the folder
constexpr std::size_t toolchain_digits = 16;
constexpr std::size_t name_size = key_digits + 1 + toolchain_digits + suffix.size();

bool are_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// "<62 hex>.<16 hex>.k"
bool is_entry_name(std::string_view name) {
  return name.size() == name_size && name.ends_with(suffix) && name[key_digits] == '.' &&
         are_hex(name.substr(0, key_digits)) &&
         are_hex(name.substr(key_digits + 1, toolchain_digits));
}

std::string_view toolchain_in(std::string_view name) {
  return name.substr(key_digits + 1, toolchain_digits);
}

/// A cubin is code that runs with the user's rights: it must come from the user, or from root, who
/// has those rights anyway (an image built by root and run by another).
bool is_trusted_owner(const files::Info& info) {
  return info.owner == ::geteuid() || info.owner == 0;
}
bool is_writable_by_others(const files::Info& info) { return (info.mode & 022u) != 0; }

/// Why a file or folder is not to be trusted, and what to do about it; "" when it is.
std::string distrust(const std::string& path, const files::Info& info) {
  if (!is_trusted_owner(info))
    return fmt::format(
        "belongs to uid {}, not to uid {} who runs this: use another PALLADIUM_CACHE_DIR or "
        "`chown -R {} '{}'`",
        info.owner, ::geteuid(), ::geteuid(), path);
  if (is_writable_by_others(info))
    return fmt::format("is writable by others (mode {:o}): `chmod go-w '{}'`", info.mode, path);
  return "";
}

void miss(const std::string& path, const std::string& why) {
  log::warning(fmt::format("cache: '{}' is not used: {}", path, why));
}

}  // namespace

std::string default_root() {
  std::string root = environment::get(environment::Variable::cache_dir);
  if (!root.empty()) return root;
  // By the XDG rules a relative path is to be ignored.
  const char* base = std::getenv("XDG_CACHE_HOME");
  if (base != nullptr && base[0] == '/') return std::string(base) + "/palladium";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/palladium";
  return "";
}

Store::Store(std::string root) : root_(std::move(root)) {
  while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
}

std::string Store::folder_of(const Key& key) const {
  return root_ + std::string(layout_folder) + "/" + key.hex().substr(0, 2);
}

std::string Store::path_of(const Key& key, std::string_view toolchain) const {
  return fmt::format("{}/{}.{}{}", folder_of(key), std::string_view(key.hex()).substr(2), toolchain,
                     suffix);
}

/// Judged once: a verdict is a warning, and one is enough. A root that does not exist is judged
/// when it does.
bool Store::is_usable() const {
  if (root_.empty()) return false;
  const Trust known = trust_.load(std::memory_order_acquire);
  if (known != Trust::unknown) return known == Trust::granted;
  files::Info info;
  if (!files::info(root_, info)) return true;
  const std::string why =
      info.is_directory ? distrust(root_, info) : std::string("it is not a directory");
  Trust expected = Trust::unknown;
  const Trust verdict = why.empty() ? Trust::granted : Trust::refused;
  if (trust_.compare_exchange_strong(expected, verdict) && !why.empty()) miss(root_, why);
  return why.empty();
}

std::optional<Entry> Store::read(const std::string& path, const Key& key,
                                 std::string_view toolchain, Parts parts) const {
  std::vector<std::byte> bytes;
  files::Info info;
  if (const files::Outcome outcome = files::read(path, most_entry_bytes, bytes, &info); !outcome) {
    if (!outcome.is_missing()) miss(path, outcome.message());
    return std::nullopt;
  }
  if (const std::string why = distrust(path, info); !why.empty()) {
    miss(path, why);
    return std::nullopt;
  }
  std::string defect;
  std::optional<Entry> entry = decode(bytes, parts, defect);
  if (entry && (entry->key != key || entry->toolchain != toolchain)) {
    defect = "it holds another kernel than its name says";
    entry.reset();
  }
  if (!entry) miss(path, defect);
  return entry;
}

std::optional<Entry> Store::find(const Key& key, std::string_view toolchain, Parts parts) const {
  if (!is_usable()) return std::nullopt;
  return read(path_of(key, toolchain), key, toolchain, parts);
}

std::optional<Entry> Store::find_any(const Key& key, int newest_major, Parts parts) const {
  if (!is_usable()) return std::nullopt;
  const std::string folder = folder_of(key);
  std::vector<std::string> names;
  if (const files::Outcome outcome = files::list(folder, names); !outcome) {
    if (!outcome.is_missing()) miss(folder, outcome.message());
    return std::nullopt;
  }
  const std::string hex = key.hex();
  const std::string_view wanted = std::string_view(hex).substr(2);
  std::optional<Entry> best;
  const auto version = [](const Entry& entry) {
    return std::pair(entry.metadata.nvrtc_major, entry.metadata.nvrtc_minor);
  };
  for (const std::string& name : names) {
    if (!is_entry_name(name) || !name.starts_with(wanted)) continue;
    std::optional<Entry> entry = read(folder + "/" + name, key, toolchain_in(name), parts);
    if (!entry || entry->metadata.nvrtc_major > newest_major) continue;
    if (!best || version(*entry) > version(*best)) best = std::move(entry);
  }
  return best;
}

bool Store::publish(const Entry& entry) const {
  if (!is_usable()) return false;
  const std::vector<std::byte> bytes = encode(entry);
  const std::string path = path_of(entry.key, entry.toolchain);
  if (bytes.size() > most_entry_bytes) {
    log::warning(
        fmt::format("cache: {} is not stored: its {} bytes are more than the {} of an entry",
                    entry.metadata.kernel, bytes.size(), most_entry_bytes));
    return false;
  }
  // The digest makes a file torn by a crash a miss, so there is nothing to wait for the disk for.
  files::Outcome outcome = files::publish(path, bytes);
  if (outcome.is_missing()) {
    outcome = files::make_directories(folder_of(entry.key));
    // The root may have come into being only now, by somebody else's hand.
    if (outcome && !is_usable()) return false;
    if (outcome) outcome = files::publish(path, bytes);
  }
  if (!outcome)
    log::warning(fmt::format("cache: {} is not stored in '{}': {}", entry.metadata.kernel, root_,
                             outcome.message()));
  return static_cast<bool>(outcome);
}

std::string Store::problem() const {
  if (root_.empty()) return "PALLADIUM_CACHE_DIR, XDG_CACHE_HOME and HOME name no folder for it";
  const std::string base = root_ + std::string(layout_folder);
  const std::string probe = fmt::format("{}/probe.{}{}", base, ::getpid(), files::temporary_suffix);
  if (const files::Outcome made = files::make_directories(base); !made) return made.message();
  files::Info info;
  if (const files::Outcome outcome = files::info(root_, info); !outcome) return outcome.message();
  if (std::string why = distrust(root_, info); !why.empty()) return why;
  if (const files::Outcome written = files::publish(probe, std::string_view()); !written)
    return written.message();
  (void)files::remove(probe);
  return "";
}

std::vector<Store::Listed> Store::list() const {
  std::vector<Listed> result;
  if (!is_usable()) return result;
  const std::string base = root_ + std::string(layout_folder);
  std::vector<std::string> folders;
  if (const files::Outcome outcome = files::list(base, folders); !outcome) {
    if (!outcome.is_missing()) miss(base, outcome.message());
    return result;
  }
  for (const std::string& folder : folders) {
    std::vector<std::string> names;
    if (folder.size() != 2 || !are_hex(folder)) continue;
    if (!files::list(base + "/" + folder, names)) continue;
    for (const std::string& name : names) {
      if (!is_entry_name(name)) continue;
      Listed listed;
      listed.key = *parse_key(folder + name.substr(0, key_digits));
      listed.toolchain = toolchain_in(name);
      listed.path = base + "/" + folder + "/" + name;
      files::Info info;
      if (!files::info(listed.path, info)) continue;  // gone since
      listed.bytes = info.size;
      listed.modified_ns = info.modified_ns;
      result.push_back(std::move(listed));
    }
  }
  return result;
}

std::optional<Entry> Store::load(const Listed& listed, Parts parts) const {
  return read(listed.path, listed.key, listed.toolchain, parts);
}

bool Store::remove(const Key& key, std::string_view toolchain) const {
  if (!is_usable()) return false;
  const std::string path = path_of(key, toolchain);
  const files::Outcome outcome = files::remove(path);
  if (!outcome) log::warning(fmt::format("cache: '{}' stays: {}", path, outcome.message()));
  return static_cast<bool>(outcome);
}

std::size_t Store::clear() const {
  if (!is_usable()) return 0;
  const std::string base = root_ + std::string(layout_folder);
  std::size_t removed = 0;
  std::vector<std::string> folders;
  if (!files::list(base, folders)) return 0;
  for (const std::string& folder : folders) {
    std::vector<std::string> names;
    if (folder.size() != 2 || !are_hex(folder)) continue;
    const std::string path = base + "/" + folder;
    if (!files::list(path, names)) continue;
    for (const std::string& name : names) {
      const bool is_entry = is_entry_name(name);
      if (!is_entry && !name.ends_with(files::temporary_suffix)) continue;
      const files::Outcome outcome = files::remove(path + "/" + name);
      if (!outcome)
        log::warning(fmt::format("cache: '{}/{}' stays: {}", path, name, outcome.message()));
      if (outcome && is_entry) ++removed;
    }
    // Not empty where something of another's lies in it: that is left alone.
    (void)files::remove_directory(path);
  }
  return removed;
}

}  // namespace palladium::cache
