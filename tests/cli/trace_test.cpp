// Traces: what is predicted, in the form that Perfetto opens, and what is read of other traces.
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "palladium/palladium.hpp"
#include "tests/cli/tool.hpp"
#include "tools/trace.hpp"

using namespace palladium::test;
namespace pl = palladium;
namespace tools = palladium::tools;

namespace {

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

tools::Trace some_trace() {
  return {.kernel = "matmul",
          .device = "a \"chip\"",
          .clock = "ns",
          .lanes = {{"loop of k.cpp:3",
                     "producer",
                     {{0, 10, "fetch", "k.cpp:4", false}, {10, 12.5, "slot", "", true}}},
                    {"loop of k.cpp:3", "consumers", {{2, 30, "product", "k.cpp:5", false}}},
                    {"loop of k.cpp:9", "threads", {}}}};
}

std::string refused(const std::string& text) {
  try {
    (void)tools::trace_from_json(text);
  } catch (const pl::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a trace that is written and read again is the same") {
  const tools::Trace given = some_trace();
  const std::string text = tools::to_json(given);
  tools::Trace again = tools::trace_from_json(text);
  CHECK(again.kernel == given.kernel);
  CHECK(again.device == given.device);
  CHECK(again.clock == "ns");
  REQUIRE(again.lanes.size() == 2);  // one without spans is nowhere
  CHECK(again.lanes[0].process == "loop of k.cpp:3");
  CHECK(again.lanes[0].name == "producer");
  REQUIRE(again.lanes[0].spans.size() == 2);
  CHECK(again.lanes[0].spans[1].what == "slot");
  CHECK(again.lanes[0].spans[1].waits);
  CHECK(again.lanes[0].spans[1].end == 12.5);
  CHECK(again.lanes[1].spans[0].line == "k.cpp:5");
  again.lanes.push_back(given.lanes[2]);
  CHECK(tools::to_json(again) == text);
}

TEST_CASE("traces of other programs are read: lists, begins and ends, what is nested") {
  const tools::Trace t = tools::trace_from_json(R"([
    {"ph": "B", "name": "outer", "pid": 7, "tid": "a", "ts": 1},
    {"ph": "B", "name": "inner", "pid": 7, "tid": "a", "ts": 2},
    {"ph": "i", "name": "instant", "pid": 7, "tid": "a", "ts": 2},
    {"ph": "E", "pid": 7, "tid": "a", "ts": 3},
    {"ph": "E", "pid": 7, "tid": "a", "ts": 9}])");
  CHECK(t.clock == "us");
  REQUIRE(t.lanes.size() == 1);
  CHECK(t.lanes[0].process == "process 7");
  CHECK(t.lanes[0].name == "thread a");
  REQUIRE(t.lanes[0].spans.size() == 2);
  CHECK(t.lanes[0].spans[0].what == "outer");
  CHECK(t.lanes[0].spans[1].end == 3);
}

TEST_CASE("what is no trace is refused, with the event and what is wrong with it") {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "it is no JSON"},
      {"{\"traceEvents\": [", "it is no JSON"},
      {"3", "its events are no list"},
      {"{}", "it has no traceEvents"},
      {"{\"traceEvents\": 3}", "its events are no list"},
      {"[3]", "event 0: it is no object"},
      {R"([{"ph": "i"}, {"ph": 3}])", "event 1: its ph is no text"},
      {R"([{"ph": "X", "ts": "now", "dur": 1}])", "event 0: its ts is no number"},
      {R"([{"ph": "X", "ts": 1}])", "event 0: its dur is no number"},
      {R"([{"ph": "X", "ts": 1, "dur": -1}])", "event 0: it ends before it begins"},
      {R"([{"ph": "X", "ts": 1e308, "dur": 1e308}])", "event 0: it takes too long for a number"},
      {R"([{"ph": "X", "ts": 1e999, "dur": 1}])", "it is no JSON"},
      {R"([{"ph": "X", "ts": 1, "dur": 1, "name": []}])", "event 0: its name is no text"},
      {R"([{"ph": "E", "ts": 1}])", "event 0: it ends what has not begun"},
      {R"([{"ph": "B", "name": "x", "ts": 4}, {"ph": "E", "ts": 1}])",
       "event 1: it ends before it begins"},
      {R"([{"ph": "B", "name": "x", "ts": 4}])", "'x' begins at 4 and does not end"},
  };
  for (const auto& [text, words] : wrong) {
    CAPTURE(text);
    CHECK_THAT(refused(text), ContainsSubstring("trace: ") && ContainsSubstring(words));
  }
}

TEST_CASE("a trace with any byte changed, left out or doubled is read, or refused") {
  const std::string text = tools::to_json(some_trace());
  std::uint64_t state = 1;
  const auto below = [&](std::size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state >> 33) % n;
  };
  int read_all = 0, refused_all = 0;
  for (int n = 0; n < 3000; ++n) {
    std::string broken = text;
    for (std::size_t times = 1 + below(3); times > 0 && !broken.empty(); --times) {
      const std::size_t at = below(broken.size());
      switch (below(4)) {
      case 0: broken[at] = static_cast<char>(below(256)); break;
      case 1: broken.erase(at, 1 + below(8)); break;
      case 2: broken.insert(at, broken.substr(at, 1 + below(8))); break;
      case 3: broken.resize(at); break;
      }
    }
    try {
      const tools::Trace t = tools::trace_from_json(broken);
      (void)tools::to_json(t);
      (void)tools::side_by_side(some_trace(), t);
      ++read_all;
    } catch (const pl::Error&) {
      ++refused_all;
    }
  }
  CHECK(read_all > 100);
  CHECK(refused_all > 100);
}

TEST_CASE("show writes the timeline as a trace, and lays a measured one beside it") {
  const Tool palladium;
  const std::string path = palladium.folder / "attention.json";
  const Finished shown =
      palladium({"show", "attention", "--trace", path, "--arch", "sm_90a"}, {no_nvrtc});
  CHECK(shown.status == 0);
  CHECK(shown.out.empty());
  const tools::Trace predicted = tools::trace_from_json(read(path));
  CHECK(predicted.kernel == "attention");
  CHECK(predicted.clock == "cycles");
  CHECK(predicted.lanes.size() > 2);

  // As if it had been measured: all takes twice as long.
  tools::Trace twice = predicted;
  for (tools::Trace::Lane& lane : twice.lanes)
    for (tools::Trace::Span& s : lane.spans) s.begin *= 2, s.end *= 2;
  const std::string other = palladium.folder / "measured.json";
  write(other, tools::to_json(twice));
  const Finished both =
      palladium({"show", "attention", "--measured", other, "--arch", "sm_90a"}, {no_nvrtc});
  CHECK(both.status == 0);
  for (const char* words :
       {"predicted", "measured", "ratio", "    2.00  ", "producer", " cycles\n"})
    CHECK_THAT(both.out, ContainsSubstring(words));
  check_error(palladium({"show", "add", "--measured", "/no/such/trace.json"}, {no_nvrtc}), 1,
              "cannot read /no/such/trace.json");
  write(other, "[3]");
  check_error(palladium({"show", "add", "--measured", other, "--arch", "sm_90a"}, {no_nvrtc}), 1,
              "trace: event 0: it is no object");
}
