#include "runtime/build/dump.hpp"

#include "codegen/base/environment.hpp"
#include "codegen/base/files.hpp"
#include "codegen/base/log.hpp"
#include "codegen/base/names.hpp"
#include "codegen/graph/transform.hpp"
#include "runtime/build/key.hpp"

namespace palladium::runtime {
namespace {

using environment::Variable;

std::string path_of(const graph::Graph& g, const cache::Key& key, const std::string& suffix) {
  std::string folder = environment::get(Variable::dump_dir);
  if (folder.empty()) folder = "palladium-dump";
  if (const auto made = files::make_directories(folder); !made)
    log::warning("dump: " + folder + ": " + made.message());
  // Names that are not their own file's may share one: more of the key keeps the files apart.
  const std::string name = file_name_of(g.name);
  return folder + "/" + name + "." + key.hex().substr(0, name == g.name ? 6 : 16) + suffix;
}

void write(const std::string& path, const std::string& text) {
  if (const auto written = files::publish(path, text, files::Durability::fast, 0666); !written)
    log::warning("dump: " + path + ": " + written.message());
}

bool is_wanted(const std::string& list, const std::string& what) {
  return ("," + list + ",").find("," + what + ",") != std::string::npos;
}

}  // namespace

std::string dump_text(const graph::Graph& g, const cache::Key& key, const std::string& text) {
  const std::string path = path_of(g, key, ".cu");
  write(path, text);
  write(path_of(g, key, ".full.cu"), full_text(text));
  return path;
}

void dump(const Specialization& s, const Program& program) {
  const std::string wanted = environment::checked(Variable::dump);
  if (wanted.empty()) return;
  const graph::Graph& g = s.graph;
  const cache::Key& key = program.entry.key;
  const cuda::Options options = text_options(program.entry.metadata.arch, g.at);
  if (is_wanted(wanted, "graph")) write(path_of(g, key, ".graph"), graph::to_text(g, true));
  if (is_wanted(wanted, "passes")) write(path_of(g, key, ".passes"), cuda::describe(g, options));
  if (is_wanted(wanted, "cuda")) dump_text(g, key, cuda::compiled_text(g, cuda::emit(g, options)));
  if (is_wanted(wanted, "ptx")) write(path_of(g, key, ".ptx"), complete(program).ptx);
}

}  // namespace palladium::runtime
