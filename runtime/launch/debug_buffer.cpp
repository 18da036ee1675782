#include "runtime/launch/debug_buffer.hpp"

#include <algorithm>
#include <string>

#include "codegen/base/format.hpp"
#include "codegen/base/log.hpp"
#include "codegen/graph/debug.hpp"
#include "palladium/error.hpp"

namespace palladium::runtime {
namespace {

// As in codegen/device/common/debug.cuh.
enum Slot : std::size_t { taken = 0, size = 1, lost = 2, failed = 3, program = 4, records = 16 };

/// The lines of all records, in the order in which they were begun.
std::string told(std::span<const std::uint64_t> buffer, const graph::Graph& g) {
  std::string lines;
  for (std::size_t at = records; at < buffer.size() && buffer[at] != 0;) {
    const graph::ValueId print = graph::debug_site(g, static_cast<std::int64_t>(buffer[at] - 1));
    if (print == graph::no_value || g[print].op != graph::Op::DebugPrint) break;
    const auto count = static_cast<std::size_t>(graph::count_printed(g, print));
    if (count > buffer.size() - at - 1) break;
    lines += graph::printed_lines(g, print, buffer.subspan(at + 1, count));
    at += count + 1;
  }
  return lines;
}

std::exception_ptr failure(std::span<const std::uint64_t> buffer, const graph::Graph& g) {
  if (buffer[failed] == 0) return nullptr;
  const graph::ValueId check = graph::debug_site(g, static_cast<std::int64_t>(buffer[failed] - 1));
  if (check == graph::no_value) return nullptr;
  std::vector<std::int64_t> ids;
  for (std::size_t axis = 0; axis < g.mapping.grid.size(); ++axis)
    ids.push_back(static_cast<std::int64_t>(buffer[program + axis]));
  return std::make_exception_ptr(
      CompileError(g.location(check), graph::failed_check(g[check], ids)));
}

}  // namespace

void begin_debug_buffer(std::span<std::uint64_t> buffer) {
  buffer[taken] = records;
  buffer[size] = buffer.size();
}

std::exception_ptr drain_debug_buffer(std::span<std::uint64_t> buffer, const graph::Graph& g) {
  if (const std::string lines = told(buffer, g); !lines.empty()) log::print(lines);
  if (const std::uint64_t n = buffer[lost]; n > 0)
    log::warning(fmt::format(
        "kernel '{}': {} of the calls of debug_print had no room in the {} bytes that a launch has "
        "for what it prints, and those behind them neither; print in fewer programs",
        g.name, n, buffer.size_bytes()));
  std::exception_ptr result = failure(buffer, g);
  const auto used = std::clamp<std::uint64_t>(buffer[taken], records, buffer.size());
  std::ranges::fill(buffer.first(static_cast<std::size_t>(used)), 0);
  return result;
}

}  // namespace palladium::runtime
