#include "tools/kernels.hpp"

#include <charconv>
#include <utility>

#include "palladium/error.hpp"
#include "palladium/ops/registry.hpp"

namespace palladium::tools {
namespace {

NamedKernel shipped(const ops::Entry& entry, const std::string& called,
                    const std::vector<ShapeDtype>& inputs) {
  std::vector<ArgType> types;
  for (const ShapeDtype& type : inputs) types.emplace_back(type, Location{});
  return {called, entry.factory().lower(types, {})};
}

/// The types with symbols of such sizes.
std::vector<ShapeDtype> of_sizes(std::vector<ShapeDtype> types, DimOptions sizes) {
  for (ShapeDtype& type : types)
    for (int d = 0; d < type.shape.rank(); ++d)
      if (!type.shape[d].is_static()) type.shape[d] = dim(to_string(type.shape[d]).c_str(), sizes);
  return types;
}

Kernels recorded(const std::string& path) {
  Manifest manifest = read_manifest(path);
  Kernels result;
  for (RecordedKernel& k : manifest.kernels) {
    const std::string number = std::to_string(result.kernels.size() + 1);
    result.kernels.push_back({path + "#" + number, std::move(k.kernel), std::move(k.archs),
                              std::move(k.arguments), std::move(k.location), k.reached});
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
  if (!names_manifest(name)) {
    const ops::Entry& entry = ops::find(name, {});
    return {.kernels = {shipped(entry, entry.name, entry.inputs)}, .damages = {}};
  }
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

Kernels kernels_to_warm(const std::string& name, bool any_size) {
  Kernels kernels = kernels_of(name);
  if (names_manifest(name)) return kernels;
  const ops::Entry& entry = ops::find(name, {});
  // As good as sizes can be: of few elements, and of 16 bytes whatever these are.
  constexpr int few = 16;
  for (const auto& [what, sizes] : {std::pair{" (below 2^31)", DimOptions{.at_most = few}},
                                    {" (16 bytes)", {.multiple_of = few, .at_most = few}}}) {
    NamedKernel other =
        shipped(entry, std::string(entry.name) + what, of_sizes(entry.inputs, sizes));
    if (other.kernel.json() != kernels.kernels.back().kernel.json())
      kernels.kernels.push_back(std::move(other));
  }
  if (any_size && entry.of_calls)
    for (const auto& [what, multiple] : {std::pair{" (any size)", 1}, {" (any wide size)", few}})
      kernels.kernels.push_back(
          shipped(entry, std::string(entry.name) + what, entry.of_calls(multiple)));
  return kernels;
}

}  // namespace palladium::tools
