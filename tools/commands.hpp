// What each command of the tool is asked for, and the function that does it and returns the exit
// status. What goes wrong is a palladium::Error.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace palladium::tools {

struct Doctor {
  bool json = false;
};
int doctor(const Doctor& asked);

struct List {
  bool json = false;
};
int list(const List& asked);

struct Run {
  std::string kernel;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::string target;
};
int run(const Run& asked);

struct Show {
  std::string kernel;
  std::optional<std::string> arch;
  bool graph = false, cuda = false, ptx = false, sass = false, resources = false, report = false;
  bool passes = false, times = false, schedule = false, timeline = false;
  std::string svg;       // where the timeline goes as a picture
  std::string trace;     // ... and as a trace
  std::string measured;  // a trace that is laid beside it
  std::string after;     // of passes, this one
  bool json = false;
};
int show(const Show& asked);

struct Warm {
  std::vector<std::string> kernels;
  std::vector<std::string> archs;
  int jobs = 0;  // 0: as the library has it
  bool any_size = false;
  bool expect = false;
  bool json = false;
};
int warm(const Warm& asked);

struct CacheList {
  bool json = false;
};
int cache_list(const CacheList& asked);

struct CacheShow {
  std::string key;
  bool cuda = false, ptx = false;
  bool json = false;
};
int cache_show(const CacheShow& asked);

struct CacheStats {
  bool json = false;
};
int cache_stats(const CacheStats& asked);

struct CacheVerify {
  std::string recompile;  // "5%", or "" for none
  bool json = false;
};
int cache_verify(const CacheVerify& asked);

struct CachePrune {
  bool json = false;
};
int cache_prune(const CachePrune& asked);

struct CacheClear {
  bool json = false;
};
int cache_clear(const CacheClear& asked);

struct CacheExplain {
  std::string first;
  std::string second;
  std::optional<std::string> arch;
  bool json = false;
};
int cache_explain(const CacheExplain& asked);

}  // namespace palladium::tools
