// `palladium list` and `palladium run`: the shipped kernels, and one of them on .npy files.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <tuple>

#include "palladium/npy.hpp"
#include "palladium/ops/registry.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"

namespace palladium::tools {
namespace {

std::string joined(const std::vector<ShapeDtype>& types) {
  std::string text;
  for (const ShapeDtype& type : types) text += (text.empty() ? "" : ", ") + to_string(type);
  return text;
}

/// "1 array", "2 arrays".
std::string arrays(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " array" : " arrays");
}

/// The ranks are those of the default inputs, and one symbol of theirs stands for one extent.
void require_fit(const ops::Entry& entry, const std::vector<std::string>& paths,
                 const std::vector<Array>& inputs) {
  std::map<std::string, std::int64_t> extents;
  bool fits = true;
  std::string given;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape &wanted = entry.inputs[i].shape, &shape = inputs[i].shape();
    fits = fits && shape.rank() == wanted.rank();
    for (int d = 0; fits && d < shape.rank(); ++d)
      if (!wanted[d].is_static())
        fits = extents.emplace(to_string(wanted[d]), shape[d]).first->second == shape[d];
    given += (i == 0 ? "" : ", ") + paths[i] + " is " + to_string(inputs[i].type());
  }
  if (!fits)
    throw CompileError(
        fmt::format("{} takes arrays like {}; {}", entry.name, joined(entry.inputs), given));
}

/// A result replaces a plain file, never a device or a folder.
void require_writable(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw CompileError("npy: " + path + " cannot be written: it is not a plain file");
}

}  // namespace

int list(const List& asked) {
  Json kernels = Json::array();
  for (const ops::Entry& entry : ops::registry()) {
    if (!asked.json) {
      print(fmt::format("{:<14}{:<52}{}", entry.name, entry.sentence, joined(entry.inputs)));
      continue;
    }
    Json inputs = Json::array();
    for (const ShapeDtype& type : entry.inputs) inputs.push_back(to_string(type));
    kernels.push_back({{"name", entry.name}, {"sentence", entry.sentence}, {"inputs", inputs}});
  }
  if (asked.json) print(Json{{"kernels", std::move(kernels)}});
  return 0;
}

int run(const Run& asked) {
  const ops::Entry& entry = ops::find(asked.kernel, {});
  const Target target = asked.target.empty() ? default_target() : target_named(asked.target, {});
  std::array<Arg, 12> arguments;
  if (asked.inputs.size() != entry.inputs.size() || asked.inputs.size() > arguments.size())
    throw CompileError(fmt::format("{} takes {} like {}; --in names {}", entry.name,
                                   arrays(entry.inputs.size()), joined(entry.inputs),
                                   asked.inputs.size()));
  for (const std::string& path : asked.outputs) require_writable(path);

  std::vector<Array> inputs;
  for (const std::string& path : asked.inputs)
    inputs.push_back(load_npy(path, {}).to(device_of(target), {}));
  require_fit(entry, asked.inputs, inputs);
  arguments.fill(Arg(Location{}));
  for (std::size_t i = 0; i < inputs.size(); ++i) arguments[i] = Arg(inputs[i], Location{});

  const auto start = std::chrono::steady_clock::now();
  const Outputs results = std::apply(
      [&](const auto&... each) { return entry.factory().on(target)(each...); }, arguments);
  std::vector<Array> outputs;
  for (const Array& result : results.all()) outputs.push_back(result.to(Device::cpu(), {}));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;

  if (outputs.size() != asked.outputs.size())
    throw CompileError(fmt::format("{} gives {}; --out names {}", entry.name,
                                   arrays(outputs.size()), asked.outputs.size()));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    save_npy(asked.outputs[i], outputs[i], {});
    print(fmt::format("{}  {}  {}  {:.1f} ms", asked.outputs[i], to_string(outputs[i].type()),
                      to_string(target), took.count()));
  }
  return 0;
}

}  // namespace palladium::tools
