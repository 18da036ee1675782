#include "tools/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "palladium/error.hpp"

namespace palladium::tools {
namespace {

using Json = nlohmann::ordered_json;
using Span = Trace::Span;
using Lane = Trace::Lane;

std::string line_of(Location at) {
  return at.line == 0 ? "" : fmt::format("{}:{}", at.file, at.line);
}

}  // namespace

Trace trace_of(const Timeline& timeline, const std::string& kernel) {
  Trace trace{.kernel = kernel, .device = timeline.device};
  for (const Timeline::Loop& loop : timeline.loops) {
    const std::string line = line_of(loop.at);
    const std::string process = fmt::format("{}{}", loop.is_kernel ? "the kernel" : "loop",
                                            line.empty() ? "" : " of " + line);
    for (const Timeline::Lane& lane : loop.lanes) {
      Lane to{.process = process, .name = lane.name};
      for (const Timeline::Span& s : lane.spans)
        to.spans.push_back({s.begin, s.end, s.what, line_of(s.at), s.waits});
      trace.lanes.push_back(std::move(to));
    }
  }
  return trace;
}

// ---- JSON

namespace {

Json named(const char* what, int process, int thread, const std::string& name) {
  return {
      {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

}  // namespace

std::string to_json(const Trace& trace) {
  Json events = Json::array();
  std::map<std::string, int> processes;
  for (std::size_t thread = 0; thread < trace.lanes.size(); ++thread) {
    const Lane& lane = trace.lanes[thread];
    const auto [it, is_new] =
        processes.try_emplace(lane.process, static_cast<int>(processes.size()));
    const int process = it->second, number = static_cast<int>(thread);
    if (is_new) events.push_back(named("process_name", process, number, lane.process));
    events.push_back(named("thread_name", process, number, lane.name));
    for (const Span& s : lane.spans)
      events.push_back({{"ph", "X"},
                        {"name", s.what},
                        {"cat", s.waits ? "waits" : "works"},
                        {"pid", process},
                        {"tid", number},
                        {"ts", s.begin},
                        {"dur", s.end - s.begin},
                        {"args", {{"line", s.line}}}});
  }
  const Json all = {
      {"traceEvents", std::move(events)},
      {"displayTimeUnit", "ns"},
      {"otherData", {{"kernel", trace.kernel}, {"device", trace.device}, {"clock", trace.clock}}}};
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

class Reader {
 public:
  explicit Reader(const Json& all) : all_(all) {}

  Trace run() {
    const Json* events = &all_;
    if (all_.is_object()) {
      events = member(all_, "traceEvents");
      if (events == nullptr) throw CompileError("trace: it has no traceEvents");
      head();
    } else {
      trace_.clock = "us";
    }
    if (!events->is_array()) throw CompileError("trace: its events are no list");
    for (const Json& e : *events) {
      event(e);
      ++number_;
    }
    return finish();
  }

 private:
  using Thread = std::pair<std::string, std::string>;

  void add(const Thread& thread, Span s) {
    if (!std::isfinite(s.end - s.begin)) fail("it takes too long for a number");
    spans_[thread].push_back(std::move(s));
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw CompileError(fmt::format("trace: event {}: {}", number_, what));
  }

  static const Json* member(const Json& of, const char* name) {
    const auto it = of.find(name);
    return it == of.end() ? nullptr : &*it;
  }

  void head() {
    trace_.clock = "us";
    const Json* const data = member(all_, "otherData");
    if (data == nullptr || !data->is_object()) return;
    const auto read = [&](const char* name, std::string& to) {
      if (const Json* const s = member(*data, name); s != nullptr && s->is_string())
        to = s->get<std::string>();
    };
    read("kernel", trace_.kernel);
    read("device", trace_.device);
    read("clock", trace_.clock);
  }

  std::string text(const Json& e, const char* name) const {
    const Json* const found = member(e, name);
    if (found == nullptr) return "";
    if (!found->is_string()) fail(fmt::format("its {} is no text", name));
    return found->get<std::string>();
  }
  double time(const Json& e, const char* name) const {
    const Json* const found = member(e, name);
    if (found == nullptr || !found->is_number()) fail(fmt::format("its {} is no number", name));
    const double n = found->get<double>();
    if (!std::isfinite(n)) fail(fmt::format("its {} is not finite", name));
    return n;
  }
  // Numbers, or texts, as programs have them.
  std::string id(const Json& e, const char* name) const {
    const Json* const found = member(e, name);
    return found == nullptr ? "" : found->is_string() ? found->get<std::string>() : found->dump();
  }

  void event(const Json& e) {
    if (!e.is_object()) fail("it is no object");
    const std::string phase = text(e, "ph");
    const Thread thread{id(e, "pid"), id(e, "tid")};
    if (phase == "M") return name(e, thread);
    if (phase == "X") {
      Span s = span(e);
      const double duration = time(e, "dur");
      if (duration < 0) fail("it ends before it begins");
      s.end = s.begin + duration;
      add(thread, std::move(s));
    } else if (phase == "B") {
      open_[thread].push_back(span(e));
    } else if (phase == "E") {
      std::vector<Span>& open = open_[thread];
      if (open.empty()) fail("it ends what has not begun");
      Span s = std::move(open.back());
      open.pop_back();
      s.end = time(e, "ts");
      if (s.end < s.begin) fail("it ends before it begins");
      add(thread, std::move(s));
    }
  }

  Span span(const Json& e) const {
    Span s{.begin = time(e, "ts"), .what = text(e, "name"), .waits = text(e, "cat") == "waits"};
    s.end = s.begin;
    if (const Json* const args = member(e, "args"); args != nullptr && args->is_object())
      s.line = text(*args, "line");
    return s;
  }

  void name(const Json& e, const Thread& thread) {
    const std::string what = text(e, "name");
    const Json* const args = member(e, "args");
    if (args == nullptr || !args->is_object()) return;
    if (what == "process_name") processes_[thread.first] = text(*args, "name");
    if (what == "thread_name") threads_[thread] = text(*args, "name");
  }

  Trace finish() {
    for (const auto& [thread, open] : open_)
      if (!open.empty())
        throw CompileError(
            fmt::format("trace: '{}' begins at {} and does not end", open[0].what, open[0].begin));
    for (auto& [thread, spans] : spans_) {
      std::ranges::stable_sort(spans, [](const Span& a, const Span& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
      });
      const auto name_in = [](const auto& names, const auto& key, const std::string& otherwise) {
        const auto it = names.find(key);
        return it == names.end() || it->second.empty() ? otherwise : it->second;
      };
      trace_.lanes.push_back({name_in(processes_, thread.first, "process " + thread.first),
                              name_in(threads_, thread, "thread " + thread.second),
                              std::move(spans)});
    }
    return std::move(trace_);
  }

  const Json& all_;
  Trace trace_;
  std::size_t number_ = 0;
  std::map<Thread, std::vector<Span>> spans_, open_;
  std::map<std::string, std::string> processes_;
  std::map<Thread, std::string> threads_;
};

}  // namespace

Trace trace_from_json(const std::string& text) {
  const Json all = Json::parse(text, nullptr, false);
  if (all.is_discarded()) throw CompileError("trace: it is no JSON");
  return Reader(all).run();
}

// ---- side by side

namespace {

struct Sum {
  int count = 0;
  double time = 0;
  double mean() const { return count == 0 ? 0 : time / count; }
};

std::map<std::string, Sum> sums_of(const Trace& trace) {
  std::map<std::string, Sum> all;
  for (const Lane& lane : trace.lanes)
    for (const Span& s : lane.spans) {
      Sum& sum = all[(s.waits ? "waits for " : "") + s.what];
      ++sum.count;
      sum.time += s.end - s.begin;
    }
  return all;
}

std::string table_of(const Trace& predicted, const Trace& measured) {
  const std::map<std::string, Sum> before = sums_of(predicted), after = sums_of(measured);
  std::set<std::string> names;
  for (const auto* sums : {&before, &after})
    for (const auto& [name, _] : *sums) names.insert(name);
  const auto cell = [](const std::map<std::string, Sum>& sums, const std::string& name) {
    const auto it = sums.find(name);
    return it == sums.end() ? fmt::format("{:>14}{:>7}", "-", "")
                            : fmt::format("{:>14.0f} x{:<5}", it->second.mean(), it->second.count);
  };
  std::string text = fmt::format("{:>14} {:<6}{:>14} {:<6}\n", "predicted", "", "measured", "");
  text += fmt::format("{:>14} {:<6}{:>14} {:<6}{:>8}\n", predicted.clock, "", measured.clock, "",
                      "ratio");
  for (const std::string& name : names) {
    const auto a = before.find(name), b = after.find(name);
    const bool both = a != before.end() && b != after.end() && a->second.mean() > 0;
    text += cell(before, name) + cell(after, name) +
            (both ? fmt::format("{:8.2f}", b->second.mean() / a->second.mean())
                  : fmt::format("{:>8}", "")) +
            "  " + name + "\n";
  }
  return text;
}

// A column is the name's first letter where something is done, a point where somebody waits.
std::string lanes_of(const Trace& trace, const std::string& title) {
  constexpr int columns = 96;
  double begin = INFINITY, end = -INFINITY;
  std::size_t width = 0;
  for (const Lane& lane : trace.lanes) {
    width = std::max(width, lane.name.size());
    for (const Span& s : lane.spans) {
      begin = std::min(begin, s.begin);
      end = std::max(end, s.end);
    }
  }
  if (!(begin < end) || !std::isfinite(end - begin))
    return title + ": nothing that takes time, or too much of it\n";
  std::string text = fmt::format("{}, {:.0f} {}\n", title, end - begin, trace.clock);
  for (const Lane& lane : trace.lanes) {
    std::string row(columns, ' ');
    for (const Span& s : lane.spans) {
      const auto column = [&](double at) {
        return std::clamp(static_cast<int>((at - begin) / (end - begin) * columns), 0, columns - 1);
      };
      const char letter = s.waits ? '.' : s.what.empty() ? '?' : s.what[0];
      std::fill(row.begin() + column(s.begin), row.begin() + column(s.end) + 1,
                std::isprint(static_cast<unsigned char>(letter)) != 0 ? letter : '?');
    }
    text += fmt::format("{:<{}} |{}|\n", lane.name, width, row);
  }
  return text;
}

}  // namespace

std::string side_by_side(const Trace& predicted, const Trace& measured) {
  return table_of(predicted, measured) + "\n" + lanes_of(predicted, "predicted") + "\n" +
         lanes_of(measured, "measured");
}

}  // namespace palladium::tools
