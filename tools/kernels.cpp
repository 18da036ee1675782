#include "tools/kernels.hpp"

#include <charconv>
#include <utility>

#include "palladium/error.hpp"
#include "palladium/ops/registry.hpp"

namespace palladium::tools {
namespace {

NamedKernel shipped(const std::string& name) {
  const ops::Entry& entry = ops::find(name, {});
  std::vector<ArgType> types;
  for (const ShapeDtype& type : entry.inputs) types.emplace_back(type, Location{});
  return {entry.name, entry.factory().lower(types, {})};
}

Kernels recorded(const std::string& path) {
  Manifest manifest = read_manifest(path);
  Kernels result;
  for (RecordedKernel& k : manifest.kernels) {
    const std::string number = std::to_string(result.kernels.size() + 1);
    result.kernels.push_back({path + "#" + number, std::move(k.kernel), std::move(k.archs),
                              std::move(k.arguments), std::move(k.location)});
  }
  for (Manifest::Damage& d : manifest.damages)
    result.damages.push_back({path + ":" + std::to_string(d.line), std::move(d.what)});
  return result;
}

}  // namespace

bool names_manifest(const std::string& name) {
  return name.find_first_of("./") != std::string::npos;
}

Kernels kernels_of(const std::string& name) {
  if (!names_manifest(name)) return {.kernels = {shipped(name)}, .damages = {}};
  const std::size_t hash = name.rfind('#');
  if (hash == std::string::npos) return recorded(name);
  std::size_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, bad] = std::from_chars(name.data() + hash + 1, end, number);
  const std::string path = name.substr(0, hash);
  Kernels all = recorded(path);
  if (bad != std::errc() || rest != end || number < 1 || number > all.kernels.size())
    throw CompileError("the manifest '" + path + "' has kernels #1 to #" +
                       std::to_string(all.kernels.size()) + ", not '" + name.substr(hash) + "'");
  return {.kernels = {std::move(all.kernels[number - 1])}, .damages = {}};
}

}  // namespace palladium::tools
