// `palladium show`: what becomes of a shipped kernel on its way to the GPU.
#include "tools/commands.hpp"
#include "tools/output.hpp"
#include "tools/shipped.hpp"

namespace palladium::tools {

int show(const Show& asked) {
  const ops::Entry& entry = ops::find(asked.kernel, {});
  const CompileOptions options{.arch = asked.arch.empty() ? default_arch() : asked.arch};
  const Lowered kernel = lowered(entry);
  const bool only_name = !asked.graph && !asked.cuda && !asked.ptx && !asked.resources;

  Json object = {{"kernel", entry.name}, {"arch", options.arch}, {"key", kernel.key(options)}};
  std::vector<Part> parts;
  const auto add = [&](const char* name, Json json, std::string text) {
    object[name] = std::move(json);
    parts.push_back({name, std::move(text)});
  };
  if (asked.graph || only_name) add("graph", Json::parse(kernel.json()), kernel.graph());
  if (asked.cuda) {
    const std::string source = kernel.cuda_source(options);
    add("cuda", source, source);
  }
  if (asked.ptx || asked.resources) {
    const Compiled compiled = kernel.compile(options);
    const Resources& resources = compiled.resources();
    if (asked.ptx) add("ptx", compiled.ptx(), compiled.ptx());
    if (asked.resources) add("resources", json_of(resources), text_of(resources));
  }
  asked.json ? print(object) : print(parts);
  return 0;
}

}  // namespace palladium::tools
