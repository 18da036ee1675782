#include "runtime/build/record.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "cache/manifest.hpp"
#include "codegen/base/dim.hpp"
#include "codegen/base/environment.hpp"
#include "codegen/base/forking.hpp"
#include "codegen/graph/transform.hpp"
#include "palladium/error.hpp"
#include "palladium/record.hpp"
#include "runtime/launch/kernel_state.hpp"

namespace palladium {
namespace runtime {
namespace {

using Writer = std::shared_ptr<cache::ManifestWriter>;

/// The manifests in use, by path; those of PALLADIUM_RECORD stay for the life of the process.
class Manifests {
 public:
  static Manifests& instance() {
    static Manifests* const manifests = new Manifests();
    return *manifests;
  }

  void open(const std::string& path) {
    const forking::Section section;
    const std::lock_guard lock(mutex_);
    ++entry(path).recorders;
  }
  void close(const std::string& path) {
    const forking::Section section;
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(path);
    if (--found->second.recorders == 0 && !found->second.is_of_environment) open_.erase(found);
  }
  std::vector<Writer> all() {
    const std::string named = environment::get(environment::Variable::record);
    const std::lock_guard lock(mutex_);
    if (!named.empty()) entry(named).is_of_environment = true;
    std::vector<Writer> result;
    for (const auto& [path, manifest] : open_)
      if (manifest.recorders > 0 || path == named) result.push_back(manifest.writer);
    return result;
  }

 private:
  struct Open {
    Writer writer;
    int recorders = 0;
    bool is_of_environment = false;
  };
  Open& entry(const std::string& path) {
    Open& manifest = open_[path];
    if (!manifest.writer) manifest.writer = std::make_shared<cache::ManifestWriter>(path);
    return manifest;
  }

  std::mutex mutex_;
  std::map<std::string, Open> open_;
};

struct RecorderState final : detail::Counted {
  explicit RecorderState(const std::string& p) : path(p) { Manifests::instance().open(path); }
  ~RecorderState() override { Manifests::instance().close(path); }
  const std::string path;
};

std::vector<std::string> arguments_of(const graph::Graph& g) {
  std::vector<std::string> result;
  for (const graph::Argument& a : g.arguments)
    result.push_back(
        a.kind == graph::Argument::Kind::scalar
            ? std::string(a.dtype.name())
            : to_string(g.mapping.block_mappings[static_cast<std::size_t>(a.index)].array_aval));
  return result;
}

}  // namespace

void record(const graph::Graph& g, const std::string& arch) {
  const forking::Section section;
  std::vector<Writer> writers = Manifests::instance().all();
  if (writers.empty()) return;
  cache::Record made{.id = cache::digest(graph::canonical_bytes(g)), .arch = arch};
  std::erase_if(writers, [&](const Writer& w) { return w->has(made.id, arch); });
  if (writers.empty()) return;
  made.kernel = g.name;
  made.arguments = arguments_of(g);
  made.location = to_string(g.at);
  made.graph = graph::to_json(g);
  for (const Writer& writer : writers) writer->add(made);
}

}  // namespace runtime

Recorder::Recorder(const std::string& path) : state_(new runtime::RecorderState(path)) {}
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
