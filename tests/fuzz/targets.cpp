#include "tests/fuzz/targets.hpp"

#include <cstdlib>
#include <string>
#include <vector>

#include "cache/entry.hpp"
#include "cache/manifest.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/nvrtc/sass.hpp"
#include "palladium/error.hpp"
#include "palladium/npy.hpp"
#include "tools/trace.hpp"

namespace palladium::fuzz {
namespace {

/// What a reader accepts must be what it says it is.
void require(bool holds) {
  if (!holds) std::abort();
}

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void decode(Bytes bytes) {
  for (const cache::Parts parts : {cache::Parts::kernel, cache::Parts::all}) {
    std::string defect;
    const auto entry = cache::decode(bytes, parts, defect);
    require(entry.has_value() == defect.empty());
    if (!entry || parts != cache::Parts::all) continue;
    const auto again = cache::decode(cache::encode(*entry), parts, defect);
    require(again && again->key == entry->key && again->cubin == entry->cubin &&
            again->ptx == entry->ptx && again->source == entry->source);
  }
}

}  // namespace

void entry(Bytes bytes) { decode(bytes); }

void entry_body(Bytes bytes) {
  std::vector<std::byte> whole(bytes.begin(), bytes.end());
  const cache::Digest digest = cache::digest(bytes);
  for (const std::uint8_t byte : digest.bytes) whole.push_back(static_cast<std::byte>(byte));
  decode(whole);
}

void manifest(Bytes bytes) {
  const cache::Manifest read = cache::parse_manifest(text_of(bytes));
  for (const cache::Record& record : read.records) {
    std::string defect;
    auto again = cache::from_line(cache::to_line(record), defect);
    require(again.has_value());
    again->line = record.line;
    require(*again == record);
  }
}

void manifest_body(Bytes bytes) {
  const cache::Record record = {.kernel = "fuzzed", .graph = std::string(text_of(bytes))};
  const std::string line = cache::to_line(record);
  manifest(std::as_bytes(std::span(line)));
}

void graph(Bytes bytes) {
  try {
    const graph::Graph read = graph::from_json(text_of(bytes));
    require(graph::defect(read).empty());
    const graph::Graph again = graph::from_json(graph::to_json(read));
    require(graph::canonical_bytes(again) == graph::canonical_bytes(read));
  } catch (const CompileError&) {
  }
}

void npy(Bytes bytes) {
  try {
    const Array array = parse_npy(bytes, "fuzzed.npy");
    require(static_cast<std::size_t>(array.size() * array.dtype().bytes()) <= bytes.size());
  } catch (const CompileError&) {
  }
}

void trace(Bytes bytes) {
  try {
    const tools::Trace read = tools::trace_from_json(std::string(text_of(bytes)));
    require(tools::trace_from_json(tools::to_json(read)).lanes.size() == read.lanes.size());
    require(!tools::side_by_side(read, read).empty());
  } catch (const CompileError&) {
  }
}

void sass(Bytes bytes) {
  const Sass read = nvrtc::read_sass(std::string(text_of(bytes)), "loops_kernel");
  const auto require_whole = [](const SassMix& mix) {
    int by_class = 0, by_opcode = 0;
    for (const auto& [name, count] : mix.classes) by_class += count;
    for (const auto& [name, count] : mix.opcodes) by_opcode += count;
    require(by_class == mix.instructions && by_opcode == mix.instructions);
  };
  require_whole(read.all);
  for (const SassLoop& loop : read.loops) {
    require_whole(loop.mix);
    require(loop.depth >= 1 && loop.every_trip >= 1 && loop.mix.instructions >= 1);
    require(loop.mix.instructions + loop.cold <= read.all.instructions);
    require(loop.every_trip <= loop.mix.instructions + loop.cold);
  }
}

}  // namespace palladium::fuzz
