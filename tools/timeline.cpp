#include "tools/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace palladium::tools {
namespace {

using Loop = Timeline::Loop;
using Span = Timeline::Span;

constexpr int columns = 96;

std::string line_of(Location at) {
  return at.line == 0 ? "" : fmt::format("{}:{}", at.file, at.line);
}

std::string words_of(const Span& s) {
  const std::string line = line_of(s.at);
  return s.what + (line.empty() ? "" : "  " + line);
}

// What is done, in the order in which it first is; what takes longest has letters.
class Letters {
 public:
  explicit Letters(const Loop& loop) {
    for (const Timeline::Lane& lane : loop.lanes)
      for (const Span& s : lane.spans) {
        if (s.waits) continue;
        const auto [it, is_new] = cycles_.try_emplace(words_of(s), 0);
        if (is_new) order_.push_back(it->first);
        it->second += s.end - s.begin;
      }
    std::vector<std::string> longest = order_;
    std::ranges::stable_sort(longest, std::greater(),
                             [&](const std::string& w) { return cycles_[w]; });
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (std::size_t i = 0; i < std::min(longest.size(), letters.size()); ++i)
      shown_.insert(longest[i]);
    std::size_t next = 0;
    for (const std::string& w : order_)
      if (shown_.contains(w)) letters_[w] = letters[next++];
  }

  char of(const Span& s) const {
    if (s.waits) return '.';
    const auto it = letters_.find(words_of(s));
    return it == letters_.end() ? '*' : it->second;
  }
  std::string legend() const {
    std::string text = "  .  waits\n";
    for (const std::string& w : order_)
      if (const auto it = letters_.find(w); it != letters_.end())
        text += fmt::format("  {}  {}\n", it->second, w);
    return shown_.size() < order_.size() ? text + "  *  all that is shorter\n" : text;
  }

 private:
  std::map<std::string, double> cycles_;
  std::map<std::string, char> letters_;
  std::vector<std::string> order_;
  std::set<std::string> shown_;
};

// In each column what takes most of it.
std::string row_of(const Timeline::Lane& lane, const Letters& letters, double cycles) {
  std::string row(columns, ' ');
  const double width = 2 * cycles / columns;
  for (int c = 0; c < columns; ++c) {
    std::map<char, double> in;
    for (const Span& s : lane.spans) {
      const double time = std::min(s.end, (c + 1) * width) - std::max(s.begin, c * width);
      if (time > 0) in[letters.of(s)] += time;
    }
    const auto most = std::ranges::max_element(in, {}, [](const auto& x) { return x.second; });
    if (most != in.end()) row[static_cast<std::size_t>(c)] = most->first;
  }
  return row;
}

std::string title_of(const Loop& loop) {
  const std::string line = line_of(loop.at);
  return fmt::format("{}{}: {:.0f} cycles an iteration{}{}{}",
                     loop.is_kernel ? "the kernel" : "loop", line.empty() ? "" : " of " + line,
                     loop.cycles, loop.is_kernel ? ", which is a block" : "",
                     loop.blocks > 1 ? fmt::format(", of {} blocks at once", loop.blocks) : "",
                     loop.around > 0 ? fmt::format(", {:.0f} around it", loop.around) : "");
}

std::string judgement_of(const Loop& loop) {
  return fmt::format("bound by {}; {:.0f} % of what tensor cores or memory give", loop.bound_by,
                     loop.fraction * 100);
}

std::string picture_of(const Loop& loop) {
  std::size_t names = 0;
  for (const Timeline::Lane& lane : loop.lanes) names = std::max(names, lane.name.size());
  const Letters letters(loop);
  const std::string middle = fmt::format("{:.0f}", loop.cycles),
                    end = fmt::format("{:.0f}", 2 * loop.cycles);
  std::string text =
      fmt::format("{:{}}  0{:>{}}{:>{}}\n", "", names, middle, columns / 2, end, columns / 2 - 1);
  for (const Timeline::Lane& lane : loop.lanes)
    text += fmt::format("{:<{}} |{}|\n", lane.name, names, row_of(lane, letters, loop.cycles));
  return text + letters.legend();
}

std::string text_of(const Loop& loop) {
  std::string text = title_of(loop) + "\n" + judgement_of(loop) + "\n\n" + picture_of(loop);
  if (!loop.waits.empty()) text += "\nwaits, in cycles of an iteration\n";
  for (const Timeline::Wait& w : loop.waits)
    text += fmt::format("{:8.0f}  {}: {}{}\n", w.cycles, w.agent, w.what,
                        w.at.line == 0 ? "" : "  " + line_of(w.at));
  text += "\nbusy\n";
  for (const Timeline::Use& u : loop.uses)
    text += fmt::format("{:7.0f} %  {}\n", u.share * 100, u.part);
  return text;
}

Json json_of(const Loop& loop) {
  Json lanes = Json::array(), waits = Json::array(), uses = Json::array();
  for (const Timeline::Lane& lane : loop.lanes) {
    Json spans = Json::array();
    for (const Span& s : lane.spans)
      spans.push_back({{"begin", s.begin},
                       {"end", s.end},
                       {"what", s.what},
                       {"line", line_of(s.at)},
                       {"waits", s.waits}});
    lanes.push_back({{"name", lane.name}, {"spans", std::move(spans)}});
  }
  for (const Timeline::Wait& w : loop.waits)
    waits.push_back(
        {{"agent", w.agent}, {"what", w.what}, {"line", line_of(w.at)}, {"cycles", w.cycles}});
  for (const Timeline::Use& u : loop.uses) uses.push_back({{"part", u.part}, {"share", u.share}});
  return {{"line", line_of(loop.at)},  {"is_kernel", loop.is_kernel}, {"cycles", loop.cycles},
          {"blocks", loop.blocks},     {"around", loop.around},       {"bound_by", loop.bound_by},
          {"fraction", loop.fraction}, {"lanes", std::move(lanes)},   {"waits", std::move(waits)},
          {"uses", std::move(uses)}};
}

// ---- SVG

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '&'   ? "&amp;"
           : c == '<' ? "&lt;"
           : c == '>' ? "&gt;"
           : c == '"' ? "&quot;"
                      : std::string(1, c);
  return out;
}

// The same words have the same colour in all pictures; waits have none.
std::string colour_of(const Span& s) {
  if (s.waits) return "#e8e8e8";
  unsigned hash = 2166136261u;
  for (const char c : words_of(s)) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return fmt::format("hsl({}, 60%, {}%)", hash % 360, 50 + hash / 360 % 20);
}

constexpr double left = 220, width = 1200, row = 26, gap = 24;

std::string svg_of(const Timeline::Lane& lane, double y, double cycles) {
  std::string svg =
      fmt::format("<text x=\"8\" y=\"{}\">{}</text>\n", y + row / 2 + 4, escaped(lane.name));
  for (const Span& s : lane.spans) {
    const double x = left + s.begin / (2 * cycles) * width,
                 w = (s.end - s.begin) / (2 * cycles) * width;
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\">"
        "<title>{}{}: {:.0f} to {:.0f}, {:.0f} cycles</title></rect>\n",
        x, y + 2, w, row - 4, colour_of(s), s.waits ? "waits for " : "", escaped(words_of(s)),
        s.begin, s.end, s.end - s.begin);
    constexpr double of_letter = 6.5;
    const auto fits = static_cast<std::size_t>(std::max(0.0, w / of_letter - 1));
    const std::string words = s.waits ? "" : s.what.substr(0, fits);
    if (words.size() >= std::min<std::size_t>(s.what.size(), 6) && !words.empty())
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" class=\"in\">{}</text>\n", x + 3,
                         y + row / 2 + 4, escaped(words));
  }
  return svg;
}

std::string svg_of(const Loop& loop, double& y) {
  std::string svg = fmt::format("<text x=\"8\" y=\"{}\" class=\"title\">{}</text>\n", y + 16,
                                escaped(title_of(loop)));
  svg += fmt::format("<text x=\"8\" y=\"{}\">{}</text>\n", y + 36, escaped(judgement_of(loop)));
  y += 2 * gap + 4;
  const double top = y;
  for (const Timeline::Lane& lane : loop.lanes) {
    svg += svg_of(lane, y, loop.cycles);
    y += row;
  }
  for (int i = 0; i <= 2; ++i)
    svg += fmt::format(
        "<line x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\" stroke=\"#888\"/>"
        "<text x=\"{0}\" y=\"{3}\">{4:.0f}</text>\n",
        left + i * width / 2, top, y, y + 14, i * loop.cycles);
  y += 2 * gap;
  for (const Timeline::Wait& w : loop.waits) {
    const std::string line = w.at.line == 0 ? "" : "  " + line_of(w.at);
    svg += fmt::format("<text x=\"8\" y=\"{}\">{:.0f} cycles: {} waits for {}{}</text>\n", y,
                       w.cycles, escaped(w.agent), escaped(w.what), escaped(line));
    y += 18;
  }
  y += gap;
  return svg;
}

}  // namespace

std::string text_of(const Timeline& t) {
  if (!t.unknown.empty()) return "no timeline: " + t.unknown + "\n";
  std::string text = "by the figures of " + t.device + "\n";
  for (const Loop& loop : t.loops) text += "\n" + text_of(loop);
  if (t.microseconds > 0) text += fmt::format("\n{:.1f} us of a call\n", t.microseconds);
  return text;
}

Json json_of(const Timeline& t) {
  Json loops = Json::array();
  for (const Loop& loop : t.loops) loops.push_back(json_of(loop));
  return {{"device", t.device},
          {"unknown", t.unknown},
          {"microseconds", t.microseconds},
          {"loops", std::move(loops)}};
}

std::string svg_of(const Timeline& t) {
  double y = gap;
  std::string body;
  if (!t.unknown.empty()) {
    body = fmt::format("<text x=\"8\" y=\"{}\">no timeline: {}</text>\n", y, escaped(t.unknown));
    y += gap;
  }
  for (const Loop& loop : t.loops) body += svg_of(loop, y);
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
             "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n"
             "<style>text {{ font: 12px monospace; fill: #222; }} .title {{ font-weight: bold; }} "
             ".in {{ font-size: 10px; pointer-events: none; }}</style>\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
             left + width + 60, y) +
         body + "</svg>\n";
}

}  // namespace palladium::tools
