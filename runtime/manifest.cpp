// Recorder and read_manifest: manifests, as programs see them.
#include <algorithm>
#include <map>
#include <utility>

#include "cache/manifest.hpp"
#include "codegen/base/architecture.hpp"
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
    try {
      if (!r.arch.empty()) (void)parse_architecture(r.arch);
      const auto place = places.find(r.id);
      const std::size_t number = place == places.end() ? result.kernels.size() : place->second;
      if (number == result.kernels.size())
        result.kernels.push_back({lowered_of(r.graph), {}, r.arguments, r.location, false});
      places[r.id] = number;
      result.kernels[number].reached |= r.reached;
      if (!r.arch.empty()) result.kernels[number].archs.push_back(r.arch);
    } catch (const Error& error) {
      result.damages.push_back({r.line, error.what()});
    }
  }
  std::ranges::stable_sort(result.damages, {}, &Manifest::Damage::line);
  return result;
}

}  // namespace palladium
