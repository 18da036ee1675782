#include "codegen/nvrtc/find_helper.hpp"

#include <dlfcn.h>

#include "codegen/base/environment.hpp"
#include "codegen/base/files.hpp"

namespace palladium::nvrtc {
namespace {

constexpr const char* name = "palladium-compile";

/// The folder of the library or program that holds this code, or "".
std::string own_folder() {
  Dl_info self;
  std::string path;
  // A program is named as it was called, which the working directory may have made wrong.
  if (dladdr(reinterpret_cast<const void*>(&find_helper), &self) == 0 ||
      self.dli_fname == nullptr || !files::resolve(self.dli_fname, path))
    if (!files::resolve("/proc/self/exe", path)) return "";
  return files::directory_of(path);
}

}  // namespace

HelperPath find_helper() {
  const std::string named = environment::get(environment::Variable::compile_helper);
  if (!named.empty()) return {named, ""};
  const std::string here = own_folder();
  // A Debian package has the library one folder deeper than what is installed by hand. Gone from
  // another folder, its way would lead out of the prefix.
  const bool packaged = here.ends_with("/lib/" PALLADIUM_MULTIARCH);
  const std::string installed =
      here + "/" + (packaged ? PALLADIUM_HELPER_FROM_MULTIARCH : PALLADIUM_HELPER_FROM_LIBRARY);
  for (const std::string& folder : {here, installed}) {
    std::string path;
    if (files::resolve(folder + "/" + name, path)) return {path, ""};
  }
  return {"", std::string(name) + " is neither in " + here + " nor in " + installed};
}

}  // namespace palladium::nvrtc
