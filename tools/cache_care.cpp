// `palladium cache stats|verify|prune|clear`: the cache as a whole.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "palladium/cache.hpp"
#include "palladium/error.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"

namespace palladium::tools {
namespace {

double mib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

/// The number of "5%" or "0.5%". CompileError for what is none from 0 to 100.
double percent(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, number);
  const bool is_whole = rest == end || std::string_view(rest, end) == "%";
  if (bad != std::errc() || !is_whole || !(number >= 0 && number <= 100))
    throw CompileError("--recompile takes a share such as 5%, not '" + text + "'");
  return number;
}

int print_removed(const CacheRemoved& removed, bool json) {
  if (json)
    print(Json{{"root", cache_root()},
               {"entries", removed.entries},
               {"bytes", removed.bytes},
               {"temporaries", removed.temporaries}});
  else
    print(fmt::format("{} kernels, {:.1f} MiB, and {} left-over files removed from {}",
                      removed.entries, mib(removed.bytes), removed.temporaries, cache_root()));
  return 0;
}

}  // namespace

int cache_stats(const CacheStats& asked) {
  const std::vector<CacheEntry> entries = cache_entries();
  const CacheBounds bounds = cache_bounds();
  std::int64_t bytes = 0, unusable = 0;
  double compile_ms = 0;
  for (const CacheEntry& e : entries) {
    bytes += e.bytes;
    unusable += !e.usable;
    compile_ms += e.compile_ms;
  }
  if (asked.json)
    print(Json{{"root", cache_root()},
               {"entries", entries.size()},
               {"unusable", unusable},
               {"bytes", bytes},
               {"compile_ms", compile_ms},
               {"most_bytes", bounds.bytes},
               {"most_entries", bounds.files}});
  else
    print(
        fmt::format("{}\n{} of at most {} kernels, {} of them unusable\n"
                    "{:.1f} of at most {:.1f} MiB\n{:.1f} s of compiling",
                    cache_root(), entries.size(), bounds.files, unusable, mib(bytes),
                    mib(bounds.bytes), compile_ms / 1000));
  return 0;
}

int cache_verify(const CacheVerify& asked) {
  const double share = asked.recompile.empty() ? 0 : percent(asked.recompile) / 100;
  const std::vector<CacheEntry> entries = cache_entries();
  Json defects = Json::array();
  std::size_t recompiled = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    // Evenly spread over the keys, which are random, and the same ones each time.
    const auto due = static_cast<std::size_t>(std::ceil(share * static_cast<double>(i + 1)));
    const bool recompile = due > recompiled;
    recompiled += recompile;
    const CacheEntry& e = entries[i];
    const std::string defect = verify_cache_entry(e, recompile);
    if (recompile) note(fmt::format("[{}/{}] {} compiled again", i + 1, entries.size(), e.kernel));
    if (defect.empty()) continue;
    defects.push_back({{"path", e.path}, {"kernel", e.kernel}, {"defect", defect}});
    if (!asked.json) print(fmt::format("{}: {}", e.path, defect));
  }
  const std::size_t bad = defects.size();
  if (asked.json)
    print(Json{{"root", cache_root()},
               {"entries", entries.size()},
               {"recompiled", recompiled},
               {"defects", std::move(defects)}});
  else
    print(fmt::format("{} kernels checked, {} compiled again, {} defects", entries.size(),
                      recompiled, bad));
  if (bad == 0) return 0;
  complain(
      fmt::format("{} of {} kernels are defective; they are never loaded, and compiled again "
                  "when somebody needs them",
                  bad, entries.size()));
  return 1;
}

int cache_prune(const CachePrune& asked) { return print_removed(prune_cache(), asked.json); }
int cache_clear(const CacheClear& asked) { return print_removed(clear_cache(), asked.json); }

}  // namespace palladium::tools
