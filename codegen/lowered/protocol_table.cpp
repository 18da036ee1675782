#include "codegen/lowered/protocol_table.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/lowered/format.hpp"

namespace palladium::lowered::protocol {

using Kind = Act::Kind;

std::string name_of(const Model& m, const Cell& cell, bool names_slot) {
  const Storage& s = m.program->storages[cell.storage];
  std::string name = fmt::format("s{}", cell.storage);
  if (s.of != graph::no_value) name += fmt::format(" ({})", description_of(m.program->graph, s.of));
  return s.ring() && names_slot ? fmt::format("{} in slot {}", name, cell.slot) : name;
}

std::string name_of(const Model& m, const Event& e, bool names_slot) {
  const BarrierId b = e.act->barrier;
  return m.program->barriers[b].ring && names_slot
             ? fmt::format("m{} of slot {}", b, e.barrier - m.first_barrier[b])
             : fmt::format("m{}", b);
}

namespace {

std::string touched(const Model& m, const Event& e, bool fills, bool names_slot) {
  std::vector<std::string> names;
  for (const Touch& t : e.touches)
    if (t.fills == fills)
      names.push_back(name_of(m, m.cells[static_cast<std::size_t>(t.cell)], names_slot));
  return fmt::format("{}", fmt::join(names, ", "));
}

const char* group_of(device::Completion c) {
  switch (c) {
  case device::Completion::bulk_group: return "sends";
  case device::Completion::wgmma_group: return "products";
  default: return "copies";
  }
}

std::string words_of_wait(const Model& m, const Event& e, bool names_slot) {
  const std::string barrier = name_of(m, e, names_slot);
  return names_slot ? fmt::format("waits for phase {} of {}", e.phase, barrier)
                    : "waits for " + barrier;
}

// Who works on while those who asked for it go on, and what it has done then; "" of others.
Protocol::Step row_of_end(const Model& m, const Event& e) {
  Protocol::Step row{.iteration = e.iteration, .line = e.act->by->at.line};
  if (e.act->kind == Kind::copy) {
    row.agent = "TMA";
    row.what = "has filled " + touched(m, e, true, true);
  }
  if (e.act->kind == Kind::send) {
    row.agent = "TMA";
    row.what = "has read " + touched(m, e, false, true);
  }
  return row;
}

}  // namespace

std::string words_of(const Model& m, const Event& e, bool names_slot) {
  const Act& a = *e.act;
  const std::string reads = touched(m, e, false, names_slot),
                    fills = touched(m, e, true, names_slot);
  switch (a.kind) {
  case Kind::access:
    return reads.empty()   ? "fills " + fills
           : fills.empty() ? "reads " + reads
                           : fmt::format("reads {}, fills {}", reads, fills);
  case Kind::copy_by_threads: return "begins copies to " + fills;
  case Kind::copy: return "begins to fetch " + fills;
  case Kind::send: return "begins to send " + reads;
  case Kind::product: return "begins a product of " + reads;
  case Kind::expect:
    return fmt::format("expects {} bytes at {}", a.bytes, name_of(m, e, names_slot));
  case Kind::arrive: return fmt::format("says at {} that it has read", name_of(m, e, names_slot));
  case Kind::wait: return words_of_wait(m, e, names_slot);
  case Kind::close: return fmt::format("closes a group of {}", group_of(a.group));
  case Kind::wait_group:
    return a.pending > 0
               ? fmt::format("waits for all {} but the last {}", group_of(a.group), a.pending)
               : fmt::format("waits for all {}", group_of(a.group));
  case Kind::sync:
    return a.by_warpgroups ? "waits for the threads of each warpgroup"
                           : "waits for all its threads";
  case Kind::meet: return "waits for all of the cluster";
  }
  return "";
}

std::vector<Protocol::Step> rows_of(const Model& m, const std::vector<std::vector<Event>>& events,
                                    const std::vector<Happening>& happened) {
  std::vector<Protocol::Step> rows;
  Happening last{.agent = -1};
  for (const Happening& h : happened) {
    const Event& e = events[static_cast<std::size_t>(h.agent)][static_cast<std::size_t>(h.event)];
    const bool again = last.agent == h.agent && last.event == h.event && last.is_end == h.is_end;
    // Between the ends of what several threads have begun others of them begin.
    const bool begins_again = !h.is_end && last.agent == h.agent && last.event == h.event;
    last = h;
    if (again || begins_again) continue;
    Protocol::Step row{.agent = m.agents[static_cast<std::size_t>(h.agent)].name,
                       .what = words_of(m, e),
                       .iteration = e.iteration,
                       .line = e.act->by->at.line};
    if (h.is_end) row = row_of_end(m, e);
    if (!row.what.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

std::string table_of(const std::vector<Protocol::Step>& rows) {
  struct Column {
    std::string name;
    std::size_t width = 0;
  };
  std::vector<Column> columns;
  const auto column_of = [&](const std::string& name) -> Column& {
    const auto found = std::ranges::find(columns, name, &Column::name);
    if (found != columns.end()) return *found;
    columns.push_back({name, name.size()});
    return columns.back();
  };
  for (const Protocol::Step& r : rows)
    if (Column& c = column_of(r.agent); c.width < r.what.size()) c.width = r.what.size();
  // Of a line no more than the column in which it says something.
  const auto line_of = [&](const std::string& number, int line, const auto& words_in) {
    std::string text = fmt::format("{:>4}  {:>5}", number,
                                   number.empty() ? "line"
                                   : line > 0     ? fmt::format("{}", line)
                                                  : "");
    std::string gap;
    for (const Column& c : columns) {
      const std::string words = words_in(c);
      if (!words.empty()) text += std::exchange(gap, "") + "  " + words;
      gap += std::string(c.width + (words.empty() ? 2 : 0) - words.size(), ' ');
    }
    return text + "\n";
  };
  std::string text = line_of("", 0, [](const Column& c) { return c.name; });
  for (std::size_t i = 0; i < rows.size(); ++i)
    text += line_of(fmt::format("{}", i + 1), rows[i].line,
                    [&](const Column& c) { return c.name == rows[i].agent ? rows[i].what : ""; });
  return text;
}

}  // namespace palladium::lowered::protocol
