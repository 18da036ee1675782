// What the store does with all of its files: listing, bounds, temporary files of killed processes.
#include <algorithm>
#include <charconv>
#include <random>
#include <utility>

#include "cache/stats.hpp"
#include "cache/store.hpp"
#include "cache/store_names.hpp"
#include "codegen/base/environment.hpp"
#include "codegen/base/event.hpp"
#include "codegen/base/files.hpp"
#include "codegen/base/format.hpp"
#include "codegen/base/log.hpp"

namespace palladium::cache {

using environment::Variable;

static_assert(names::layout_folder == "/v1" && entry_format == 1,
              "entries of another format lie in a folder of their own, which older libraries leave "
              "alone");

/// Everything in the folders of the store.
struct Store::Contents {
  std::vector<std::string> folders;
  std::vector<Listed> entries;
  std::vector<std::string> temporaries;
};

std::string default_root() {
  std::string root = environment::get(Variable::cache_dir);
  if (!root.empty()) return root;
  // By the XDG rules a relative path is to be ignored.
  const std::string base = environment::get("XDG_CACHE_HOME");
  if (base.starts_with('/')) return base + "/palladium";
  const std::string home = environment::get("HOME");
  if (home.starts_with('/')) return home + "/.cache/palladium";
  return "";
}

namespace {

void set_number(Variable variable, const char* name, std::uint64_t unit, std::uint64_t& number) {
  const std::string text = environment::get(variable);
  if (text.empty()) return;
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  std::uint64_t given = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, given);
  if (bad == std::errc() && rest == end && given >= 1 && given <= most) {
    number = given * unit;
    return;
  }
  log::warning(fmt::format("cache: {} is '{}', not a number from 1; it is taken as {}", name, text,
                           number / unit));
}

}  // namespace

StoreOptions default_store_options() {
  StoreOptions options;
  constexpr std::uint64_t mib = std::uint64_t{1} << 20;
  set_number(Variable::cache_size, "PALLADIUM_CACHE_SIZE", mib, options.most_bytes);
  set_number(Variable::cache_files, "PALLADIUM_CACHE_FILES", 1, options.most_files);
  const std::string sharing = environment::get(Variable::cache_sharing);
  if (sharing == "group")
    options.sharing = Sharing::group;
  else if (!sharing.empty() && sharing != "own")
    log::warning("cache: PALLADIUM_CACHE_SHARING is '" + sharing +
                 "'; it can be own or group, and is taken as own");
  return options;
}

/// Adds what lies in "3f" below the base.
void Store::look_into(const std::string& folder, Contents& found) const {
  const std::string path = base() + "/" + folder;
  std::vector<std::string> inside;
  if (!files::list(path, inside)) return;
  found.folders.push_back(path);
  for (const std::string& name : inside) {
    if (name.ends_with(files::temporary_suffix)) found.temporaries.push_back(path + "/" + name);
    if (!names::is_entry(name)) continue;
    Listed listed;
    listed.key = *parse_key(folder + name.substr(0, names::key_digits));
    listed.toolchain = names::toolchain_in(name);
    listed.path = path + "/" + name;
    files::Info info;
    if (!files::info(listed.path, info)) continue;  // gone since
    listed.bytes = info.size;
    listed.modified_ns = info.modified_ns;
    found.entries.push_back(std::move(listed));
  }
}

Store::Contents Store::contents() const {
  Contents found;
  std::vector<std::string> folders;
  if (const files::Outcome outcome = files::list(base(), folders); !outcome) {
    if (!outcome.is_missing())
      log::warning(fmt::format("cache: '{}' is not listed: {}", base(), outcome.message()));
    return found;
  }
  for (const std::string& folder : folders) {
    if (folder.ends_with(files::temporary_suffix))
      found.temporaries.push_back(base() + "/" + folder);
    if (names::is_folder(folder)) look_into(folder, found);
  }
  return found;
}

std::vector<Store::Listed> Store::list() const {
  return is_usable() ? contents().entries : std::vector<Listed>();
}

/// On average once for every fiftieth part of a bound that is stored, whoever stores it: nobody has
/// to know what the others did.
bool Store::is_time_to_look(std::uint64_t bytes, unsigned& random) const {
  constexpr double parts = 50;
  const double of_bytes =
      parts * static_cast<double>(bytes) / static_cast<double>(options_.most_bytes);
  const double of_files = parts / static_cast<double>(options_.most_files);
  thread_local std::minstd_rand die{std::random_device()()};
  if (!(std::generate_canonical<double, 32>(die) < of_bytes + of_files)) return false;
  random = static_cast<unsigned>(die());
  return true;
}

/// A part of a large store tells whether it is worth to look at all of it: as many of the 256
/// folders, over which keys are spread evenly, as hold some hundred kernels, which is their number
/// within some percent. The sizes of those in sixteen stand for all, since to ask for each takes
/// longer than to list them. Gives the part of the bounds above which to make room: less than 1
/// where much has to be looked at for it.
std::optional<double> Store::worth_a_sweep(unsigned first_folder) const {
  constexpr unsigned folders = 256, sized = 16;
  constexpr std::size_t enough = 800;
  constexpr double nearly = 0.95;
  Contents part;
  std::size_t count = 0;
  unsigned seen = 0;
  for (; seen < folders && (seen < sized || count < enough); ++seen) {
    const std::string folder = fmt::format("{:02x}", (first_folder + seen) % folders);
    if (seen < sized) {
      look_into(folder, part);
      count = part.entries.size();
    } else {
      count += count_names(folder);
    }
  }
  const double above = seen < folders ? nearly : 1;
  if (part.entries.empty() || !part.temporaries.empty()) return above;
  double bytes = 0;
  for (const Listed& entry : part.entries) bytes += static_cast<double>(entry.bytes);
  bytes /= static_cast<double>(part.entries.size());
  const double all = static_cast<double>(count) * folders / seen;
  const bool is_full = all > static_cast<double>(options_.most_files) ||
                       all * bytes > nearly * static_cast<double>(options_.most_bytes);
  return is_full ? std::optional(above) : std::nullopt;
}

/// Of entries in a folder.
std::size_t Store::count_names(const std::string& folder) const {
  std::vector<std::string> inside;
  if (!files::list(base() + "/" + folder, inside)) return 0;
  return static_cast<std::size_t>(std::ranges::count_if(inside, names::is_entry));
}

void Store::remove_temporaries(const Contents& contents, std::int64_t older_than_ns,
                               Removed& removed) const {
  const std::int64_t now = names::now_ns();
  for (const std::string& path : contents.temporaries) {
    files::Info info;
    if (!files::info(path, info) || now - info.modified_ns < older_than_ns) continue;
    if (!files::remove(path)) continue;
    ++removed.temporaries;
    count(Event::temporary);
  }
}

Store::Removed Store::sweep() const { return sweep_above(1); }

void Store::sweep_if_time(std::uint64_t bytes) const {
  unsigned random = 0;
  if (!is_time_to_look(bytes, random)) return;
  if (const auto part = worth_a_sweep(random)) sweep_above(*part);
}

/// Until a tenth of the bounds is free, where more than that part of them is used.
Store::Removed Store::sweep_above(double part) const {
  Removed removed;
  if (!is_usable()) return removed;
  Contents all = contents();
  remove_temporaries(all, options_.temporaries_live_ns, removed);

  std::uint64_t bytes = 0;
  for (const Listed& entry : all.entries) bytes += entry.bytes;
  std::uint64_t count_left = all.entries.size();
  const auto is_above = [&](std::uint64_t used, std::uint64_t most) {
    return static_cast<double>(used) > part * static_cast<double>(most);
  };
  if (!is_above(bytes, options_.most_bytes) && !is_above(count_left, options_.most_files))
    return removed;
  const std::uint64_t enough_bytes = options_.most_bytes - options_.most_bytes / 10;
  const std::uint64_t enough_files = options_.most_files - options_.most_files / 10;
  std::ranges::sort(all.entries, {}, &Listed::modified_ns);
  for (const Listed& entry : all.entries) {
    if (bytes <= enough_bytes && count_left <= enough_files) break;
    if (!files::remove(entry.path)) continue;
    bytes -= entry.bytes;
    --count_left;
    ++removed.entries;
    removed.bytes += entry.bytes;
  }
  count(Event::evicted, removed.entries);
  count(Event::evicted_bytes, removed.bytes);
  log::event(
      log::Level::info, "evict",
      fmt::format("cache  evict  {} kernels, {:.1f} MiB, {} temporary files", removed.entries,
                  static_cast<double>(removed.bytes) / (1 << 20), removed.temporaries),
      {{"entries", removed.entries},
       {"bytes", removed.bytes},
       {"temporaries", removed.temporaries}});
  return removed;
}

Store::Removed Store::clear() const {
  Removed removed;
  if (!is_usable()) return removed;
  const Contents all = contents();
  remove_temporaries(all, 0, removed);
  for (const Listed& entry : all.entries) {
    const files::Outcome outcome = files::remove(entry.path);
    if (!outcome) {
      log::warning(fmt::format("cache: '{}' stays: {}", entry.path, outcome.message()));
      continue;
    }
    ++removed.entries;
    removed.bytes += entry.bytes;
  }
  // Not empty where something of another's lies in it: that is left alone.
  for (const std::string& folder : all.folders) (void)files::remove_directory(folder);
  return removed;
}

}  // namespace palladium::cache
