// Recorder and read_manifest: manifests, as programs see them.
#include <algorithm>
#include <map>
#include <utility>

#include "cache/manifest.hpp"
#include "codegen/graph/transform.hpp"
#include "palladium/record.hpp"
#include "runtime/build/record.hpp"
#include "runtime/lowered.hpp"

namespace palladium {
namespace {

struct RecorderState final : detail::Counted {
  explicit RecorderState(const std::string& path) : recording(path) {}
  const runtime::Recording recording;
};

}  // namespace

Recorder::Recorder(const std::string& path) : state_(new RecorderState(path)) {}
Recorder::~Recorder() = default;

namespace {

Lowered lowered_of(const std::string& json) {
  auto specialization = std::make_shared<runtime::Specialization>();
  specialization->graph = graph::from_json(json);
  specialization->signature = runtime::Signature(specialization->graph);
  return runtime::make_lowered(std::move(specialization));
}

}  // namespace

Manifest read_manifest(const std::string& path) {
  cache::Manifest read;
  if (const files::Outcome outcome = cache::read_manifest(path, read); !outcome)
    throw CompileError("the manifest '" + path + "' cannot be read: " + outcome.message());
  Manifest result;
  for (const cache::Manifest::Damage& damage : read.damages)
    result.damages.push_back({damage.line, damage.defect});
  std::map<cache::Digest, std::size_t> places;
  for (const cache::Record& r : read.records) {
    const auto [place, is_new] = places.try_emplace(r.id, result.kernels.size());
    if (is_new) {
      try {
        result.kernels.push_back({lowered_of(r.graph), {}, r.arguments, r.location});
      } catch (const Error& error) {
        places.erase(place);
        result.damages.push_back({r.line, error.what()});
        continue;
      }
    }
    if (!r.arch.empty()) result.kernels[place->second].archs.push_back(r.arch);
  }
  std::ranges::stable_sort(result.damages, {}, &Manifest::Damage::line);
  return result;
}

}  // namespace palladium
