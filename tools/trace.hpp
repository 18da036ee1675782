// Traces in the format that Perfetto and Chrome's tracing page open: what each of those who work on
// a kernel does, from when to when.
#pragma once

#include <string>
#include <vector>

#include "palladium/report.hpp"

namespace palladium::tools {

struct Trace {
  struct Span {
    double begin = 0, end = 0;
    std::string what = {};
    std::string line = {};  // "kernel.cpp:12"; "": nobody's
    bool waits = false;
  };
  struct Lane {
    std::string process = {}, name = {};  // "loop of kernel.cpp:12", "producer"
    std::vector<Span> spans = {};         // by their begin, those around others first
  };
  std::string kernel = {}, device = {};
  /// Of all times: "cycles", "ns" or "instructions"; "us" of a trace that does not say.
  std::string clock = "cycles";
  std::vector<Lane> lanes = {};
};

/// Two iterations of each loop, as they are predicted.
Trace trace_of(const Timeline& timeline, const std::string& kernel);

/// JSON: an event of phase X for each span, names of processes and threads by phase M. Times are
/// those of the clock, which "otherData" names, and which a page that opens it takes for
/// microseconds.
std::string to_json(const Trace& trace);

/// Of such a text, or another program's: events of phase X, or B and E, of other phases none. Error
/// that says which event is wrong and how.
Trace trace_from_json(const std::string& text);

/// What was measured beside what was predicted: of each name of a span, how often, and what it
/// takes in both, then the measured lanes as they lie in time.
std::string side_by_side(const Trace& predicted, const Trace& measured);

}  // namespace palladium::tools
