#include "runtime/build/record.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "cache/manifest.hpp"
#include "codegen/base/environment.hpp"
#include "codegen/base/forking.hpp"
#include "codegen/graph/transform.hpp"
#include "runtime/build/weaker.hpp"

namespace palladium::runtime {
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

Recording::Recording(std::string path) : path_(std::move(path)) {
  Manifests::instance().open(path_);
}
Recording::~Recording() { Manifests::instance().close(path_); }

void record(const graph::Graph& g, const std::string& arch, bool reached) {
  const forking::Section section;
  std::vector<Writer> writers = Manifests::instance().all();
  if (writers.empty()) return;
  cache::Record made{.id = cache::digest(graph::canonical_bytes(g)), .arch = arch};
  std::erase_if(writers, [&](const Writer& w) { return w->has(made.id, arch, reached); });
  if (writers.empty()) return;
  made.kernel = g.name;
  made.arguments = arguments_of(g);
  made.location = to_string(g.at);
  made.reached = reached;
  made.graph = graph::to_json(g);
  for (const Writer& writer : writers) writer->add(made);
}

void record_reachable(const Specialization& s, const std::string& arch) {
  const forking::Section section;
  if (Manifests::instance().all().empty()) return;
  for (const graph::Graph& g : reachable_classes(s)) record(g, arch, false);
}

}  // namespace palladium::runtime
