// A profiler that records: NVTX opens it where NVTX_INJECTION64_PATH names it, tests reach in by
// state().
#pragma once

#include <dlfcn.h>

#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace fake_nvtx {

struct Event {
  std::thread::id thread;
  std::string domain;
  std::string pushed;  // "" for the end of a range
};

struct State {
  std::mutex mutex;
  bool is_attached = false;  // NVTX has found it
  std::vector<Event> events;
};

inline State& state(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* get = library == nullptr ? nullptr : dlsym(library, "fake_nvtx_state");
  if (get == nullptr) throw std::runtime_error(path + " is not the fake profiler");
  return *reinterpret_cast<State* (*)()>(get)();
}

}  // namespace fake_nvtx
