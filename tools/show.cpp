// `palladium show`: what becomes of a shipped or recorded kernel on its way to the GPU.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tools/commands.hpp"
#include "tools/kernels.hpp"
#include "tools/output.hpp"
#include "tools/timeline.hpp"
#include "tools/trace.hpp"

namespace palladium::tools {
namespace {

std::vector<PassDump> behind(const std::vector<PassDump>& passes, const std::string& name) {
  std::vector<PassDump> some;
  std::vector<std::string> names;
  for (const PassDump& p : passes) {
    if (p.pass == name) some.push_back(p);
    if (std::find(names.begin(), names.end(), p.pass) == names.end()) names.push_back(p.pass);
  }
  if (some.empty())
    throw CompileError(
        fmt::format("no pass is called '{}'; there are {}", name, fmt::join(names, ", ")));
  return some;
}

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw CompileError("cannot write " + path);
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw CompileError("cannot read " + path);
  return text;
}

int show_kernel(const Show& asked, const NamedKernel& named) {
  const CompileOptions options{.arch = asked.arch            ? *asked.arch
                                       : named.archs.empty() ? default_arch()
                                                             : named.archs.front()};
  const Lowered& kernel = named.kernel;
  const bool asks_passes = asked.passes || asked.times || !asked.after.empty();
  const bool asks_timeline =
      asked.timeline || !asked.svg.empty() || !asked.trace.empty() || !asked.measured.empty();
  const bool only_name = !asked.graph && !asked.cuda && !asked.ptx && !asked.sass &&
                         !asked.resources && !asked.report && !asked.schedule && !asks_passes &&
                         !asks_timeline;

  Json object = {{"kernel", kernel.name()}, {"arch", options.arch}, {"key", kernel.key(options)}};
  std::vector<Part> parts;
  const auto add = [&](const char* name, Json json, std::string text) {
    object[name] = std::move(json);
    parts.push_back({name, std::move(text)});
  };
  if (asked.graph || only_name) add("graph", Json::parse(kernel.json()), kernel.graph());
  if (asks_passes) {
    const std::vector<PassDump> passes = kernel.passes(options);
    if (asked.passes) add("passes", json_of(passes), text_of(passes));
    if (!asked.after.empty()) {
      const std::vector<PassDump> some = behind(passes, asked.after);
      add("after", json_of(some), text_of(some));
    }
    if (asked.times) add("times", times_json(passes), times_text(passes));
  }
  if (asked.schedule) {
    const std::string schedule = kernel.schedule(options);
    add("schedule", schedule, schedule);
  }
  if (asked.cuda) {
    const std::string source = kernel.cuda_source(options);
    add("cuda", source, source);
  }
  if (asked.report || asks_timeline) {
    const Report report = kernel.report(options);
    if (asked.report) add("report", json_of(report), text_of(report));
    if (asked.timeline) add("timeline", json_of(report.timeline), text_of(report.timeline));
    if (!asked.svg.empty()) write(asked.svg, svg_of(report.timeline));
    const Trace predicted = trace_of(report.timeline, kernel.name());
    if (!asked.trace.empty()) write(asked.trace, to_json(predicted));
    if (!asked.measured.empty()) {
      const Trace measured = trace_from_json(read(asked.measured));
      add("measured", Json::parse(to_json(measured)), side_by_side(predicted, measured));
    }
  }
  if (asked.ptx || asked.sass || asked.resources) {
    const Compiled compiled = kernel.compile(options);
    const Resources& resources = compiled.resources();
    if (asked.ptx) add("ptx", compiled.ptx(), compiled.ptx());
    if (asked.sass) {
      const Sass sass = compiled.sass();
      add("sass", json_of(sass), text_of(sass));
    }
    if (asked.resources) add("resources", json_of(resources), text_of(resources));
  }
  asked.json ? print(object) : print(parts);
  return 0;
}

/// What there is to choose from; the exit status says whether all of it can be used.
int show_manifest(const Show& asked, const Kernels& all) {
  Json kernels = Json::array();
  for (const NamedKernel& k : all.kernels) {
    kernels.push_back({{"name", k.name},
                       {"kernel", k.kernel.name()},
                       {"arguments", k.arguments},
                       {"archs", k.archs},
                       {"location", k.location}});
    if (!asked.json)
      print(fmt::format(
          "{}  {}({})  {}  {}", k.name, k.kernel.name(), fmt::join(k.arguments, ", "),
          k.archs.empty() ? "not compiled" : fmt::format("{}", fmt::join(k.archs, ", ")),
          k.location));
  }
  Json damages = Json::array();
  for (const Kernels::Damage& d : all.damages) {
    damages.push_back({{"at", d.at}, {"error", d.what}});
    complain(d.at + ": " + d.what);
  }
  if (asked.json) print(Json{{"kernels", std::move(kernels)}, {"damages", std::move(damages)}});
  return all.damages.empty() ? 0 : 1;
}

}  // namespace

int show(const Show& asked) {
  if (asked.arch) checked_arch(*asked.arch);
  const Kernels found = kernels_of(asked.kernel);
  const bool is_whole_manifest =
      names_manifest(asked.kernel) && asked.kernel.find('#') == std::string::npos;
  return is_whole_manifest ? show_manifest(asked, found)
                           : show_kernel(asked, found.kernels.front());
}

}  // namespace palladium::tools
