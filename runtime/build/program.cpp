#include "runtime/build/program.hpp"

#include <utility>

#include "codegen/device/library.hpp"

namespace palladium::runtime {

std::string full_text(const std::string& text) {
  return "#line 1 \"library.cuh\"\n" + device::prelude(device::Half::cuda, text) + text;
}

nvrtc::Request request_for(const std::string& text, const std::string& arch, bool lineinfo) {
  nvrtc::Request request{.source = full_text(text), .arch = arch};
  if (lineinfo) request.options = {line_info};
  return request;
}

cache::Store store() { return cache::Store(cache::default_root(), cache::default_store_options()); }

cache::Entry complete(const Program& program) {
  const cache::Entry& e = program.entry;
  if (!program.from_cache) return e;
  if (auto whole = store().find(e.key, e.toolchain, cache::Parts::all)) return std::move(*whole);
  return e;
}

void forget(const Program& program) { store().remove(program.entry.key, program.entry.toolchain); }

}  // namespace palladium::runtime
