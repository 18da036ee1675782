#include "runtime/build/dump.hpp"

#include <map>
#include <utility>
#include <vector>

#include "codegen/base/environment.hpp"
#include "codegen/base/files.hpp"
#include "codegen/base/forking.hpp"
#include "codegen/base/format.hpp"
#include "codegen/base/log.hpp"
#include "codegen/base/names.hpp"
#include "codegen/graph/transform.hpp"
#include "runtime/build/compiler.hpp"
#include "runtime/build/key.hpp"

namespace palladium::runtime {
namespace {

using environment::Variable;

/// The files of one kernel. Trouble is one line in the log, and nothing more is written.
class Files {
 public:
  Files(const graph::Graph& g, const cache::Key& key) {
    std::string folder = environment::get(Variable::dump_dir);
    if (folder.empty()) folder = "palladium-dump";
    if (const auto made = files::make_directories(folder); !made) fail(folder, made);
    // Names that are not their own file's may share one: more of the key keeps the files apart.
    const std::string name = file_name_of(g.name);
    stem_ = folder + "/" + name + "." + key.hex().substr(0, name == g.name ? 6 : 16);
  }

  const std::string& stem() const { return stem_; }

  /// In a folder of the kernel's own.
  void write(const std::string& folder, const std::string& name, const std::string& text) {
    if (has_failed_) return;
    const std::string path = stem_ + folder;
    if (const auto made = files::make_directories(path); !made) return fail(path, made);
    write(folder + "/" + name, text);
  }

  /// The path.
  std::string write(const std::string& suffix, const std::string& text) {
    const std::string path = stem_ + suffix;
    if (has_failed_) return path;
    if (const auto written = files::publish(path, text, files::Durability::fast, 0666); !written)
      fail(path, written);
    return path;
  }

 private:
  void fail(const std::string& path, const files::Outcome& outcome) {
    log::warning("dump: " + path + ": " + outcome.message());
    has_failed_ = true;
  }

  std::string stem_;
  bool has_failed_ = false;
};

std::string write_text(Files& files, const std::string& text) {
  const std::string path = files.write(".cu", text);
  files.write(".full.cu", full_text(text));
  return path;
}

/// What PALLADIUM_DUMP names.
class Wanted {
 public:
  Wanted() : list_("," + environment::checked(Variable::dump) + ",") {}
  bool nothing() const { return list_ == ",,"; }
  bool has(const std::string& what) const {
    return list_.find("," + what + ",") != std::string::npos;
  }

 private:
  std::string list_;
};

std::string commented(const std::string& text) {
  std::string result = "// ";
  for (const char c : text) result += c == '\n' ? std::string("\n// ") : std::string(1, c);
  return result + "\n";
}

/// What each pass left, in a folder for each attempt at a width.
void write_passes(Files& files, const std::vector<PassDump>& passes) {
  std::map<std::string, int> numbers;
  for (const PassDump& p : passes) {
    const std::string folder = ".attempt-" + p.attempt + (p.chosen ? ".chosen" : "");
    files.write(folder, fmt::format("{:02}-{}.txt", ++numbers[folder], p.pass), p.text);
  }
}

/// Passes and text.
void write_lowered(Files& files, const Wanted& wanted, const graph::Graph& g,
                   const std::string& arch) {
  const cuda::Options options = text_options(arch);
  if (wanted.has("passes")) {
    files.write(".passes", cuda::describe(g, options));
    write_passes(files, cuda::pass_dumps(g, options));
  }
  if (wanted.has("cuda")) write_text(files, cuda::compiled_text(g, cuda::emit(g, options)));
}

/// By NVRTC, in nobody's cache; "" and a line in the log where it cannot be had.
std::string ptx_of(const graph::Graph& g, const std::string& arch) {
  const std::string who = "dump: no PTX of kernel '" + g.name + "' for " + arch + ": ";
  const nvrtc::Search& toolchain = nvrtc::toolchain();
  if (!toolchain.found) {
    log::warning(who + nvrtc::missing_toolchain_message(toolchain));
    return "";
  }
  const std::string text = cuda::compiled_text(g, cuda::emit(g, text_options(arch)));
  const nvrtc::Pool::Outcome outcome =
      run_nvrtc(request_for(text, arch, g.lineinfo), *toolchain.found);
  const bool has_died = outcome.end != nvrtc::Pool::End::result;
  if (!has_died && outcome.result.ok) return outcome.result.ptx;
  log::warning(who + (has_died ? "the compile helper " + outcome.why : outcome.result.log));
  return "";
}

}  // namespace

std::string dump_text(const graph::Graph& g, const cache::Key& key, const std::string& text) {
  Files files(g, key);
  return write_text(files, text);
}

void dump(const Specialization& s, const Program& program) {
  const Wanted wanted;
  if (wanted.nothing()) return;
  const graph::Graph& g = s.graph;
  Files files(g, program.entry.key);
  if (wanted.has("graph")) files.write(".graph", graph::to_text(g, true));
  write_lowered(files, wanted, g, program.entry.metadata.arch);
  if (wanted.has("ptx")) files.write(".ptx", complete(program).ptx);
}

void dump(const Specialization& s, const std::string& arch, const char* target) {
  const Wanted wanted;
  if (wanted.nothing()) return;
  const forking::Section section;
  const graph::Graph& g = s.graph;
  Files files(g, key_of(g, arch));
  log::show("dump: kernel '" + g.name + "' runs on the " + target + "; " + files.stem() +
            ".* are what " + arch + " gets");
  if (wanted.has("graph")) files.write(".graph", graph::to_text(g, true));
  try {
    write_lowered(files, wanted, g, arch);
    if (!wanted.has("ptx")) return;
    if (const std::string ptx = ptx_of(g, arch); !ptx.empty()) files.write(".ptx", ptx);
  } catch (const Error& error) {
    const std::string why =
        "kernel '" + g.name + "' is not lowered for " + arch + ": " + error.what();
    log::warning("dump: " + why);
    for (const auto& [what, suffix] :
         {std::pair("passes", ".passes"), {"cuda", ".cu"}, {"ptx", ".ptx"}})
      if (wanted.has(what)) files.write(suffix, commented(why));
  }
}

}  // namespace palladium::runtime
