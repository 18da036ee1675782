#include "runtime/launch/scope_trace.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "codegen/base/files.hpp"
#include "codegen/base/format.hpp"
#include "codegen/base/log.hpp"
#include "palladium/error.hpp"

namespace palladium::runtime {
namespace {

using graph::ScopeView;
using graph::ValueId;

// As in codegen/device/common/profile.cuh.
enum Slot : std::size_t {
  known,
  begin_time,
  begin_clock,
  end_clock,
  end_time,
  events_told,
  first_event = 8
};

ScopeView view_of(const graph::Graph& g) { return ScopeView::of(g[graph::first_scope(g)]); }

std::size_t numbers_of_unit(const graph::Graph& g) {
  return first_event + 2 * static_cast<std::size_t>(view_of(g).space);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out +=
        static_cast<unsigned char>(c) < 0x20 ? fmt::format("\\u{:04x}", int{c}) : std::string(1, c);
  }
  return out + "\"";
}

struct Span {
  double begin = 0, end = 0;
  ValueId event = graph::no_value;
};

/// What one warpgroup, or warp, has told.
class Unit {
 public:
  Unit(std::span<const std::uint64_t> told, const ScopeView& scope) : told_(told), scope_(scope) {}

  bool is_known() const { return told_[known] != 0; }
  std::uint64_t begun() const { return told_[begin_time]; }
  double clocks() const { return static_cast<double>(told_[end_clock] - told_[begin_clock]); }
  double nanoseconds() const { return static_cast<double>(told_[end_time] - told_[begin_time]); }
  std::int64_t count() const { return static_cast<std::int64_t>(told_[events_told]); }
  bool lacks() const { return count() > scope_.space; }

  /// By their begin, outer ones first; what has not ended when there was no more room ends with the
  /// unit. Times count from `from`.
  std::vector<Span> spans(double from, const std::map<std::uint64_t, ValueId>& by_tag) const {
    std::vector<Span> all;
    std::vector<std::size_t> open;
    const auto time = [&](std::uint64_t clock) {
      return from + static_cast<double>(clock - told_[begin_clock]);
    };
    for (std::int64_t n = 0; n < std::min(count(), scope_.space); ++n) {
      const std::size_t at = first_event + 2 * static_cast<std::size_t>(n);
      if (told_[at] == 0) break;
      const std::uint64_t tag = told_[at] - 1;
      const auto event = by_tag.find(tag);
      if (event == by_tag.end()) break;
      if (tag % 2 == 0) {
        open.push_back(all.size());
        all.push_back({time(told_[at + 1]), 0, event->second});
      } else if (!open.empty()) {
        all[open.back()].end = time(told_[at + 1]);
        open.pop_back();
      }
    }
    for (const std::size_t left : open) all[left].end = time(told_[end_clock]);
    return all;
  }

 private:
  std::span<const std::uint64_t> told_;
  const ScopeView& scope_;
};

std::map<std::uint64_t, ValueId> events_by_tag(const graph::Graph& g) {
  std::map<std::uint64_t, ValueId> all;
  for (std::uint32_t v = 0; v < g.insts.size(); ++v) {
    if (g.insts[v].op != graph::Op::ScopeEvent) continue;
    const ScopeView s = ScopeView::of(g.insts[v]);
    all[2 * static_cast<std::uint64_t>(s.number) + (s.ends ? 1 : 0)] = ValueId{v};
  }
  return all;
}

/// The events of a trace, one line each.
class Events {
 public:
  void name(const char* what, std::int64_t process, std::int64_t thread, const std::string& name) {
    add(fmt::format(R"({{"ph": "M", "name": "{}", "pid": {}, "tid": {}, "args": {{"name": {}}}}})",
                    what, process, thread, quoted(name)));
  }
  void span(const graph::Graph& g, const Span& s, std::int64_t process, std::int64_t thread) {
    const Location at = g.location(s.event);
    add(fmt::format(R"({{"ph": "X", "name": {}, "cat": "works", "pid": {}, "tid": {}, "ts": {}, )"
                    R"("dur": {}, "args": {{"line": {}}}}})",
                    quoted(g[s.event].attr.text), process, thread, s.begin, s.end - s.begin,
                    quoted(at.line == 0 ? "" : fmt::format("{}:{}", at.file, at.line))));
  }
  const std::string& text() const { return text_; }

 private:
  void add(const std::string& event) { text_ += (text_.empty() ? "  " : ",\n  ") + event; }
  std::string text_;
};

// The first name of a file that there is none of.
std::string free_path(const graph::Graph& g) {
  std::string name = g.name;
  std::ranges::replace(name, '/', '_');
  for (int n = 0;; ++n) {
    std::string path = fmt::format("{}/{}-{}.json", g.profile_dir, name, n);
    if (!files::exists(path)) return path;
  }
}

}  // namespace

bool has_scopes(const LaunchPlan& plan) {
  return std::ranges::count(plan.parameters, cuda::Parameter::Kind::profile,
                            &cuda::Parameter::kind) > 0;
}

std::size_t ScopeTrace::numbers() const {
  const int of_unit = view_of(graph).of_warps ? graph::warp_threads : graph::warpgroup_threads;
  return static_cast<std::size_t>(blocks) * static_cast<std::size_t>(threads / of_unit) *
         numbers_of_unit(graph);
}

std::string ScopeTrace::write(std::span<const std::uint64_t> told, const std::string& device,
                              const std::string& clock) const {
  const ScopeView scope = view_of(graph);
  const Location at = graph.location(graph::first_scope(graph));
  const std::size_t size = numbers_of_unit(graph);
  std::vector<Unit> units;
  for (std::size_t n = 0; n + size <= told.size(); n += size)
    units.emplace_back(told.subspan(n, size), scope);
  std::int64_t most = 0;
  std::uint64_t first = ~std::uint64_t{0};
  double clocks = 0, nanoseconds = 0;
  for (const Unit& u : units) {
    if (!u.is_known()) continue;
    most = std::max(most, u.count());
    first = std::min(first, u.begun());
    clocks += u.clocks();
    nanoseconds += u.nanoseconds();
  }
  if (most > scope.space) {
    const std::string what = fmt::format(
        "kernel '{}': profile_space = {} is too small: a {} begins and ends {} scopes "
        "in all",
        graph.name, scope.space, scope.of_warps ? "warp" : "warpgroup", most);
    if (!scope.cuts)
      throw CompileError(at, what +
                                 "; give as much, or let profile_bounds_check = true leave out "
                                 "what does not fit");
    log::warning(what + ", and those that do not fit are left out");
  }
  const double rate = nanoseconds > 0 ? clocks / nanoseconds : 1;
  const auto by_tag = events_by_tag(graph);
  const std::int64_t of_block =
      std::max<std::int64_t>(1, std::ssize(units) / std::max<std::int64_t>(1, blocks));
  const std::string thread = scope.of_warps              ? "warp"
                             : graph.thread_name.empty() ? "warpgroup"
                                                         : graph.thread_name;
  Events events;
  for (std::int64_t u = 0; u < std::ssize(units); ++u) {
    const Unit& unit = units[static_cast<std::size_t>(u)];
    if (!unit.is_known()) continue;
    const std::int64_t block = u / of_block;
    if (u % of_block == 0) events.name("process_name", block, u, fmt::format("block {}", block));
    events.name("thread_name", block, u, fmt::format("{} {}", thread, u % of_block));
    const double from = static_cast<double>(unit.begun() - first) * rate;
    for (const Span& s : unit.spans(from, by_tag)) events.span(graph, s, block, u);
  }
  const std::string text = fmt::format(
      "{{\n \"traceEvents\": [\n{}\n ],\n \"displayTimeUnit\": \"ns\",\n \"otherData\": "
      "{{\"kernel\": {}, \"device\": {}, \"clock\": {}}}\n}}\n",
      events.text(), quoted(graph.name), quoted(device), quoted(clock));
  const std::string path = free_path(graph);
  if (const files::Outcome written = files::publish(path, text, files::Durability::fast, 0644);
      !written)
    throw CompileError(at, fmt::format("kernel '{}': compiler_params.profile_dir = '{}' takes no "
                                       "trace ({})",
                                       graph.name, graph.profile_dir, written.message()));
  log::info(fmt::format("{}  profile  {}", graph.name, path));
  return path;
}

}  // namespace palladium::runtime
