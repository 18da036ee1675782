// What a program and its compile helper say to each other: messages over a stream socket.
//
// A message is 16 bytes of header (a mark, the kind, the length) and a body of length-prefixed
// fields. Whoever reads believes nothing: a wrong mark, an unknown kind, a length above the limit
// and a body that is not exactly its fields are all Received::malformed, and memory is taken for
// bytes that came, not for bytes that were announced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "codegen/nvrtc/nvrtc.hpp"

namespace palladium::nvrtc::wire {

enum class Kind : std::uint32_t {
  open = 1,  // program → helper: Open
  ready,     // helper → program: Ready
  compile,   // program → helper: Compile
  done,      // helper → program: Result
  failed,    // helper → program: Failed, the exception that in-process NVRTC would have thrown
  died,      // helper → program: Died, the compile took its process with it
  bye,       // helper → program: it ends because nobody wanted it; no body
  unable,    // helper → program: Unable, there was no process to compile in; it waits for another
};

/// Far above any kernel (a cubin of 100,000 instructions has 2 MB), far below memory.
inline constexpr std::uint64_t most_body_bytes = std::uint64_t{256} << 20;

struct Message {
  Kind kind = {};
  std::string body = {};
};

struct Open {
  std::string digest;              // of the program's build
  std::uint64_t process = 0;       // the program's process id
  std::uint64_t idle_ms = 0;       // after so long without a request the helper ends
  std::uint64_t memory_bytes = 0;  // what a compile may allocate
};
struct Ready {
  std::string digest;  // of the helper's build
};
struct Compile {
  Toolchain toolchain;
  Request request;
};
struct Failed {
  bool is_compile_error = false;  // else a CudaError
  std::string message;
};
struct Died {
  std::string how;    // "was killed by signal 9 (Killed)"
  std::string words;  // the last that it wrote to stderr
};
struct Unable {
  std::string problem;  // "fork: Resource temporarily unavailable"
};

std::string encode(const Open& open);
std::string encode(const Ready& ready);
std::string encode(const Compile& compile);
std::string encode(const Result& result);
std::string encode(const Failed& failed);
std::string encode(const Died& died);
std::string encode(const Unable& unable);

/// False for a body that is not exactly that.
bool decode(std::string_view body, Open& open);
bool decode(std::string_view body, Ready& ready);
bool decode(std::string_view body, Compile& compile);
bool decode(std::string_view body, Result& result);
bool decode(std::string_view body, Failed& failed);
bool decode(std::string_view body, Died& died);
bool decode(std::string_view body, Unable& unable);

/// Header and body, as they are sent.
std::string frame(Kind kind, std::string_view body);

/// Cuts messages out of a stream.
class Stream {
 public:
  enum class Next { message, incomplete, malformed };

  void append(std::string_view bytes) { bytes_ += bytes; }
  /// The first message of what came, taken off it. After `malformed` there is no more to be had.
  Next next(Message& message);

 private:
  std::string bytes_;
};

enum class Received { message, nothing, closed, malformed };

/// One end of the conversation. Owns the socket.
class Channel {
 public:
  explicit Channel(int socket) : socket_(socket) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel() { close(); }

  int socket() const { return socket_; }
  void close();
  /// Leaves the socket to whoever has it now.
  int release() { return std::exchange(socket_, -1); }

  /// Asked now and then while waiting; true ends the wait.
  using Stopped = std::function<bool()>;

  /// False when the other end has gone or the wait was ended. Never raises SIGPIPE.
  bool send(Kind kind, std::string_view body, const Stopped& stopped = {});
  /// `nothing` only when the wait was ended.
  Received receive(Message& message, const Stopped& stopped = {});
  /// Without waiting: `nothing` when there is no whole message yet.
  Received receive_now(Message& message);

 private:
  enum class Read { some, none, closed };
  Read read_some();
  bool wait(short events, const Stopped& stopped) const;

  int socket_;
  Stream stream_;
};

}  // namespace palladium::nvrtc::wire
