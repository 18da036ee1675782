#include "palladium/cache.hpp"

#include "palladium/error.hpp"
#include "runtime/compile.hpp"

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
    const auto found = store.load(listed, cache::Parts::kernel);
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

}  // namespace palladium
