// The helper's first process: talks to the program, and keeps a second one that compiles.
//
// The keeper never loads NVRTC, so it is always there to say how a compile ended, and to end one
// that nobody wants any more. It ends when the program closes the socket or ends itself, and when
// it had nothing to do for a while.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "codegen/base/process.hpp"
#include "codegen/nvrtc/wire.hpp"

namespace palladium::tools {

class Keeper {
 public:
  explicit Keeper(int socket);
  ~Keeper();
  /// The exit status.
  int run();

 private:
  bool greet();
  void serve();
  bool take_request();
  void take_answer();
  bool take_words();
  void report_death(const std::string& how);

  std::string start_worker();
  std::string bury_worker();

  nvrtc::wire::Channel program_;
  int program_process_ = -1;  // a pidfd
  int idle_ms_ = 0;
  std::uint64_t memory_bytes_ = 0;

  struct Worker;
  std::unique_ptr<Worker> worker_;  // none at first, and after a death
  std::string words_;               // the last that it said
  bool is_busy_ = false;
};

}  // namespace palladium::tools
