#include "codegen/nvrtc/toolchain.hpp"

#include <dlfcn.h>

#include <charconv>
#include <string_view>

#include "codegen/base/environment.hpp"
#include "codegen/base/files.hpp"
#include "codegen/base/forking.hpp"
#include "codegen/nvrtc/elf.hpp"

namespace palladium::nvrtc {
namespace {

constexpr std::string_view library_prefix = "libnvrtc.so.";
constexpr std::string_view builtins_prefix = "libnvrtc-builtins.so.";

// File names are probed rather than directories listed: a system's library folder has thousands of
// entries, and this runs at every start of a program.
constexpr int newest_major_probed = 20;
constexpr int oldest_major_probed = 10;
constexpr int newest_minor_probed = 20;

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    if (end != 0) parts.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return parts;
}

/// Major and minor of "libnvrtc.so.12.9.86"; -1 for what the name does not say.
struct Version {
  int major = -1;
  int minor = -1;
};

Version version_in(const std::string& name) {
  Version version;
  if (!name.starts_with(library_prefix)) return version;
  const char* at = name.data() + library_prefix.size();
  const char* end = name.data() + name.size();
  const auto [after_major, bad_major] = std::from_chars(at, end, version.major);
  if (bad_major == std::errc() && after_major != end && *after_major == '.')
    std::from_chars(after_major + 1, end, version.minor);
  return version;
}

/// What a libnvrtc at `path` is, or in `problem` why it cannot be used.
std::optional<Toolchain> identify(const std::string& path, std::string& problem) {
  Toolchain toolchain;
  toolchain.library = path;
  std::string real;
  if (const files::Outcome outcome = files::resolve(path, real); !outcome) {
    problem = path + ": " + outcome.message();
    return std::nullopt;
  }
  const Version named = version_in(files::name_of(real));
  // The builtins name the exact version; they stand where the link or the file stands.
  for (const std::string& folder : {files::directory_of(path), files::directory_of(real)}) {
    const int first = named.major > 0 ? named.major : newest_major_probed;
    const int last = named.major > 0 ? named.major : oldest_major_probed;
    for (int major = first; major >= last && toolchain.builtins.empty(); --major) {
      for (int minor = newest_minor_probed; minor >= 0; --minor) {
        if (named.minor >= 0 && minor != named.minor) continue;
        const std::string builtins = folder + "/" + std::string(builtins_prefix) +
                                     std::to_string(major) + "." + std::to_string(minor);
        if (!files::exists(builtins)) continue;
        toolchain.builtins = builtins;
        toolchain.major = major;
        toolchain.minor = minor;
        break;
      }
    }
  }
  const bool too_old_by_name = named.major > 0 && named.major < oldest_major;
  if (toolchain.builtins.empty() && !too_old_by_name) {
    problem = path + ": no libnvrtc-builtins.so.<version> stands beside it";
    return std::nullopt;
  }
  if (too_old_by_name || toolchain.major < oldest_major ||
      (toolchain.major == oldest_major && toolchain.minor < oldest_minor)) {
    problem = path + ": NVRTC " +
              (toolchain.builtins.empty() ? std::to_string(named.major) : toolchain.version()) +
              " is older than " + std::to_string(oldest_major) + "." + std::to_string(oldest_minor);
    return std::nullopt;
  }
  const std::string library_id = build_id(path);
  const std::string builtins_id = build_id(toolchain.builtins);
  if (library_id.size() < 8 || builtins_id.size() < 8) {
    problem = (library_id.size() < 8 ? path : toolchain.builtins) +
              ": no ELF build-id, so kernels compiled with it could not be told apart";
    return std::nullopt;
  }
  toolchain.id = library_id.substr(0, 8) + builtins_id.substr(0, 8);
  return toolchain;
}

class Searcher {
 public:
  Search run() {
    const std::string exactly = environment::get(environment::Variable::nvrtc);
    if (!exactly.empty()) {
      try_library(exactly);
      if (!search_.found)
        search_.passed_over.back() = "PALLADIUM_NVRTC=" + search_.passed_over.back();
      return std::move(search_);
    }
    search();
    return std::move(search_);
  }

 private:
  void search() {
    const std::string home = environment::get("CUDA_HOME");
    if (!home.empty() && try_toolkit(home)) return;
    if (try_toolkit("/usr/local/cuda")) return;
    for (const std::string& folder : split(environment::get("PATH"), ':')) {
      std::string nvcc;
      if (!files::exists(folder + "/nvcc") || !files::resolve(folder + "/nvcc", nvcc)) continue;
      if (try_toolkit(files::directory_of(files::directory_of(nvcc)))) return;
      break;
    }
    for (const std::string& folder : split(environment::get("LD_LIBRARY_PATH"), ':'))
      if (try_folder(folder)) return;
    if (try_loader_cache()) return;
    try_beside_this_library();
  }

  bool try_library(const std::string& path) {
    std::string problem;
    search_.found = identify(path, problem);
    if (!search_.found) search_.passed_over.push_back(std::move(problem));
    return search_.found.has_value();
  }

  bool try_folder(const std::string& folder) {
    if (!files::exists(folder)) return false;
    for (int major = newest_major_probed; major >= oldest_major_probed; --major) {
      const std::string path = folder + "/" + std::string(library_prefix) + std::to_string(major);
      if (files::exists(path) && try_library(path)) return true;
    }
    return false;
  }

  bool try_toolkit(const std::string& root) {
    for (const char* folder : {"/lib64", "/lib", "/targets/x86_64-linux/lib",
                               "/targets/sbsa-linux/lib", "/targets/aarch64-linux/lib"})
      if (try_folder(root + folder)) return true;
    return false;
  }

  /// The loader's cache is a list of paths between zero bytes, behind a table that we do not need.
  bool try_loader_cache() {
    std::string cache;
    if (!files::read("/etc/ld.so.cache", 64 << 20, cache)) return false;
    const std::string needle = "/" + std::string(library_prefix);
    for (std::size_t at = cache.find(needle); at != std::string::npos;
         at = cache.find(needle, at + 1)) {
      const std::size_t before = cache.rfind('\0', at);
      const std::size_t begin = before == std::string::npos ? 0 : before + 1;
      if (try_library(cache.substr(begin, cache.find('\0', at) - begin))) return true;
    }
    return false;
  }

  bool try_beside_this_library() {
    Dl_info self;
    if (dladdr(reinterpret_cast<const void*>(&find_toolchain), &self) == 0 ||
        self.dli_fname == nullptr)
      return false;
    std::string real;
    if (!files::resolve(self.dli_fname, real)) return false;
    std::string folder = files::directory_of(real);
    for (int level = 0; level < 3; ++level, folder = files::directory_of(folder)) {
      for (int major = newest_major_probed; major > oldest_major; --major)
        if (try_folder(folder + "/.deps/nvidia/cu" + std::to_string(major) + "/lib")) return true;
      if (try_folder(folder + "/.deps/nvidia/cuda_nvrtc/lib")) return true;
    }
    return false;
  }

  Search search_;
};

}  // namespace

Search find_toolchain() { return Searcher().run(); }

const Search& toolchain() {
  const forking::Section section;
  static const Search search = find_toolchain();
  return search;
}

std::string toolchain_advice() {
  return "install a CUDA toolkit or run `pip install --target .deps nvidia-cuda-nvrtc`, or set "
         "PALLADIUM_NVRTC to the path of libnvrtc.so";
}

std::string missing_toolchain_message(const Search& search) {
  const std::string oldest = std::to_string(oldest_major) + "." + std::to_string(oldest_minor);
  std::string text =
      "NVRTC " + oldest + " or newer is needed to compile kernels, and none was found";
  for (const std::string& line : search.passed_over) text += "\n  " + line;
  if (search.passed_over.empty())
    text += " (looked in CUDA_HOME, /usr/local/cuda, nvcc's toolkit, the loader's path and .deps)";
  return text + "\n  " + toolchain_advice();
}

}  // namespace palladium::nvrtc
