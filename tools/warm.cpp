// `palladium warm`: shipped kernels into the cache, on any machine, before somebody waits for them.
#include <fmt/format.h>

#include "palladium/cache.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"
#include "tools/shipped.hpp"

namespace palladium::tools {
namespace {

struct Outcome {
  const char* result;  // "compiled", "hit", "failed"
  std::string key;
  double milliseconds = 0;
  std::string error;
};

Outcome warm_one(const ops::Entry& entry, const std::string& arch) {
  try {
    const Compiled compiled = lowered(entry).compile({.arch = arch});
    const Compiled::Times& times = compiled.times();
    Outcome outcome{compiled.from_cache() ? "hit" : "compiled", compiled.key(),
                    times.trace + times.find + times.lower + times.nvrtc, ""};
    if (cache_entries(compiled.key()).empty())
      outcome = {"failed", outcome.key, outcome.milliseconds, "compiled, but not kept"};
    return outcome;
  } catch (const Error& error) {
    return {"failed", "", 0, error.what()};
  }
}

}  // namespace

int warm(const Warm& asked) {
  std::vector<const ops::Entry*> entries;
  for (const std::string& name : asked.kernels) entries.push_back(&ops::find(name, {}));
  const std::vector<std::string> archs =
      asked.archs.empty() ? std::vector{default_arch()} : asked.archs;

  const std::size_t all = entries.size() * archs.size();
  std::size_t done = 0, compiled = 0, hits = 0, failed = 0;
  Json kernels = Json::array();
  for (const ops::Entry* entry : entries) {
    for (const std::string& arch : archs) {
      const Outcome o = warm_one(*entry, arch);
      const std::string_view result = o.result;
      ++(result == "compiled" ? compiled : result == "hit" ? hits : failed);
      note(fmt::format("[{}/{}] {} {}: {}", ++done, all, entry->name, arch,
                       o.error.empty() ? fmt::format("{}, {:.1f} ms", o.result, o.milliseconds)
                                       : "failed: " + o.error));
      kernels.push_back({{"kernel", entry->name},
                         {"arch", arch},
                         {"key", o.key},
                         {"result", o.result},
                         {"milliseconds", o.milliseconds},
                         {"error", o.error}});
    }
  }
  if (asked.json)
    print(Json{{"compiled", compiled},
               {"hits", hits},
               {"failed", failed},
               {"cache", cache_root()},
               {"kernels", std::move(kernels)}});
  else
    print(fmt::format("{} compiled, {} hits, {} failed; in {}", compiled, hits, failed,
                      cache_root()));
  if (failed == 0) return 0;
  complain(fmt::format("{} of {} kernels failed", failed, all));
  return 1;
}

}  // namespace palladium::tools
