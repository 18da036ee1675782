#include "palladium/cache.hpp"

#include "cache/stats.hpp"
#include "palladium/error.hpp"
#include "runtime/build/components.hpp"
#include "runtime/build/program.hpp"

namespace palladium {

std::string cache_root() { return cache::default_root(); }

std::vector<CacheEntry> cache_entries(const std::string& prefix) {
  const cache::Store store = runtime::store();
  std::vector<CacheEntry> result;
  for (const cache::Store::Listed& listed : store.list()) {
    const std::string key = listed.key.hex();
    if (!(key + "." + listed.toolchain).starts_with(prefix)) continue;
    CacheEntry& e = result.emplace_back();
    e.key = key;
    e.toolchain = listed.toolchain;
    e.path = listed.path;
    e.bytes = static_cast<std::int64_t>(listed.bytes);
    const auto found = store.load(listed, cache::Parts::all);
    if (!found) continue;
    const cache::Metadata& m = found->metadata;
    e.usable = true;
    e.kernel = m.kernel;
    e.function = m.function;
    e.arch = m.arch;
    e.nvrtc = std::to_string(m.nvrtc_major) + "." + std::to_string(m.nvrtc_minor);
    e.location = m.location;
    e.built_at = m.built_at;
    e.compile_ms = m.compile_ms;
    e.resources = m.resources;
    e.components.assign(m.components.begin(), m.components.end());
  }
  return result;
}

CacheText cache_text(const CacheEntry& entry) {
  const auto key = cache::parse_key(entry.key);
  const auto found =
      key ? runtime::store().find(*key, entry.toolchain, cache::Parts::all) : std::nullopt;
  if (!found) throw CompileError("cache: " + entry.path + " is gone or cannot be used");
  return {.cuda_source = found->source, .ptx = found->ptx};
}

CacheStats cache_stats() {
  using cache::Event;
  const auto number = [](Event event) { return static_cast<std::int64_t>(cache::counted(event)); };
  return {.hits = number(Event::hit),
          .misses = number(Event::miss),
          .refused = number(Event::refused),
          .stored = number(Event::stored),
          .not_stored = number(Event::not_stored),
          .evicted = number(Event::evicted),
          .evicted_bytes = number(Event::evicted_bytes),
          .temporaries = number(Event::temporary)};
}

CacheBounds cache_bounds() {
  const cache::StoreOptions options = cache::default_store_options();
  return {.bytes = static_cast<std::int64_t>(options.most_bytes),
          .files = static_cast<std::int64_t>(options.most_files)};
}

namespace {

CacheRemoved removed_of(const cache::Store::Removed& removed) {
  return {.entries = static_cast<std::int64_t>(removed.entries),
          .bytes = static_cast<std::int64_t>(removed.bytes),
          .temporaries = static_cast<std::int64_t>(removed.temporaries)};
}

}  // namespace

CacheRemoved prune_cache() { return removed_of(runtime::store().sweep()); }
CacheRemoved clear_cache() { return removed_of(runtime::store().clear()); }

std::string verify_cache_entry(const CacheEntry& entry, bool recompile) {
  const auto key = cache::parse_key(entry.key);
  if (!key) return "its key is no key";
  const cache::Store store = runtime::store();
  if (std::string defect = store.defect({*key, entry.toolchain, entry.path}); !defect.empty())
    return defect;
  const auto found =
      recompile ? store.find(*key, entry.toolchain, cache::Parts::all) : std::nullopt;
  return found ? runtime::drift(*found) : "";
}

}  // namespace palladium
