// `palladium cache`: the compiled kernels on disk.
#include "palladium/cache.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "palladium/error.hpp"
#include "tools/cache_entry.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"

namespace palladium::tools {
namespace {

constexpr std::size_t short_key = 12;

/// "2026-01-31 09:30:00Z"
std::string time_text(std::int64_t seconds) {
  return fmt::format("{:%F %TZ}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

Json object_of(const CacheEntry& e) {
  Json object = {{"key", e.key},
                 {"toolchain", e.toolchain},
                 {"path", e.path},
                 {"bytes", e.bytes},
                 {"usable", e.usable}};
  if (!e.usable) return object;
  object.update({{"kernel", e.kernel},
                 {"arch", e.arch},
                 {"nvrtc", e.nvrtc},
                 {"built_at", time_text(e.built_at)},
                 {"compile_ms", e.compile_ms},
                 {"location", e.location},
                 {"function", e.function},
                 {"resources", json_of(e.resources)}});
  return object;
}

std::string description_of(const CacheEntry& e) {
  return fmt::format(
             "kernel         {}\n"
             "arch           {}\n"
             "key            {}\n"
             "nvrtc          {}, toolchain {}\n"
             "built          {} in {:.0f} ms\n"
             "traced at      {}\n"
             "function       {}\n"
             "file           {}, {} bytes\n",
             e.kernel, e.arch, e.key, e.nvrtc, e.toolchain, time_text(e.built_at), e.compile_ms,
             e.location, e.function, e.path, e.bytes) +
         text_of(e.resources);
}

}  // namespace

CacheEntry find_entry(const std::string& prefix) {
  const std::vector<CacheEntry> found = cache_entries(prefix);
  if (found.empty())
    throw CompileError("no kernel in the cache " + cache_root() + " has a key that begins with '" +
                       prefix + "'; `palladium cache list` shows what there is");
  if (found.size() > 1) {
    std::string names;
    for (const CacheEntry& e : found) names += "\n  " + e.key + "." + e.toolchain + "  " + e.kernel;
    throw CompileError("several kernels in the cache begin with '" + prefix + "':" + names);
  }
  if (!found[0].usable) throw CompileError(found[0].path + " cannot be used");
  return found[0];
}

int cache_list(const CacheList& asked) {
  std::vector<CacheEntry> entries = cache_entries();
  std::ranges::stable_sort(entries, {},
                           [](const CacheEntry& e) { return std::tie(e.kernel, e.arch); });
  if (asked.json) {
    Json list = Json::array();
    for (const CacheEntry& e : entries) list.push_back(object_of(e));
    print(Json{{"root", cache_root()}, {"entries", std::move(list)}});
    return 0;
  }
  const std::string root = cache_root();
  note(root.empty() ? "no place for a cache: set PALLADIUM_CACHE_DIR"
                    : fmt::format("{} {} in {}", entries.size(),
                                  entries.size() == 1 ? "kernel" : "kernels", root));
  for (const CacheEntry& e : entries) {
    const std::string key = e.key.substr(0, short_key);
    print(e.usable ? fmt::format("{}  {:<16}{:<9}nvrtc {:<6}{:>8} bytes  {}", key, e.kernel, e.arch,
                                 e.nvrtc, e.bytes, time_text(e.built_at))
                   : fmt::format("{}  unusable", key));
  }
  return 0;
}

int cache_show(const CacheShow& asked) {
  const CacheEntry entry = find_entry(asked.key);
  const bool wants_text = asked.cuda || asked.ptx;
  const CacheText text = wants_text ? cache_text(entry) : CacheText();

  Json object = object_of(entry);
  std::vector<Part> parts;
  if (asked.cuda) object["cuda"] = text.cuda_source, parts.push_back({"cuda", text.cuda_source});
  if (asked.ptx) object["ptx"] = text.ptx, parts.push_back({"ptx", text.ptx});
  if (!wants_text) parts.push_back({"entry", description_of(entry)});
  asked.json ? print(object) : print(parts);
  return 0;
}

}  // namespace palladium::tools
