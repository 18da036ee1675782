#include "codegen/nvrtc/helper.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "codegen/base/forking.hpp"
#include "codegen/nvrtc/spawn.hpp"
#include "palladium/error.hpp"

namespace palladium::nvrtc {
namespace {

// A helper says that it is ready within milliseconds; a machine that swaps may need seconds.
constexpr std::chrono::seconds longest_greeting{20};
constexpr const char* no_word = "it ended without a word";

std::string short_form(const std::string& digest) { return digest.substr(0, 12); }

/// What a descriptor stands for now, 0 for nothing: an application that closes descriptors it does
/// not know may have given the number to a file of its own.
ino_t identity_of(int socket) {
  struct stat status;
  return ::fstat(socket, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

/// The sockets of all helpers, for a child of fork() to let go of: a helper must see the end of the
/// process that it works for, whoever else lives on.
class Sockets {
 public:
  static Sockets& instance() {
    static Sockets& sockets = *new Sockets;
    return sockets;
  }
  void add(int socket, ino_t identity) {
    const std::lock_guard lock(mutex_);
    open_[socket] = identity;
  }
  void remove(int socket) {
    const std::lock_guard lock(mutex_);
    open_.erase(socket);
  }
  void abandon() {
    for (const auto& [socket, identity] : open_)
      if (identity_of(socket) == identity) ::close(socket);
    open_.clear();
  }

 private:
  std::mutex mutex_;
  std::map<int, ino_t> open_;
};
const forking::Registration registration({.in_child = [] { Sockets::instance().abandon(); }});

/// Errors of a moment: no more processes, memory or descriptors.
bool is_lasting(int error) {
  return error != EAGAIN && error != ENOMEM && error != EMFILE && error != ENFILE;
}

}  // namespace

Helper::Helper(int socket, process::Id process)
    : channel_(socket), identity_(identity_of(socket)), process_(process) {
  Sockets::instance().add(socket, identity_);
}

Helper::~Helper() {
  const forking::Section section;
  Sockets::instance().remove(channel_.socket());
  is_intact() ? channel_.close() : void(channel_.release());
}

bool Helper::is_intact() const { return identity_of(channel_.socket()) == identity_; }

Helper::Started Helper::start(const HelperOptions& options, const Stopped& stopped) {
  std::optional<forking::Section> section(std::in_place);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return {nullptr, std::string("socketpair: ") + std::strerror(errno), is_lasting(errno)};
  wire::Channel ours(ends[0]), theirs(ends[1]);
  const Spawned spawned = spawn(options.program, {"--serve"}, theirs.socket());
  if (!spawned.process)
    return {nullptr, options.program + ": " + spawned.call + ": " + std::strerror(spawned.error),
            is_lasting(spawned.error)};
  theirs.close();
  // Whose socket it is changes hands once there is memory for the helper, and before it is made.
  std::unique_ptr<Helper> helper(new Helper(ours.release(), *spawned.process));
  section.reset();
  std::string problem = helper->greet(options, stopped);
  if (problem.empty()) return {std::move(helper), ""};
  // What ends before it has said a word may have been short of something for a moment.
  return {nullptr, options.program + ": " + problem, problem != no_word};
}

std::string Helper::greet(const HelperOptions& options, const Stopped& stopped) {
  const auto start = std::chrono::steady_clock::now();
  bool late = false;
  const Stopped given_up = [&] {
    late = std::chrono::steady_clock::now() - start > longest_greeting;
    return late || (stopped && stopped());
  };
  channel_.send(wire::Kind::open,
                wire::encode(wire::Open{options.digest, static_cast<std::uint64_t>(::getpid()),
                                        options.idle_ms, options.memory_bytes}),
                given_up);
  wire::Message message;
  const wire::Received received = channel_.receive(message, given_up);
  if (received == wire::Received::nothing) return late ? "it does not answer" : "stopped";
  if (received == wire::Received::closed) return no_word;
  wire::Ready ready;
  if (received == wire::Received::malformed || message.kind != wire::Kind::ready ||
      !wire::decode(message.body, ready))
    return "it does not speak like a helper of this build";
  if (ready.digest != options.digest)
    return "it is of another build (" + short_form(ready.digest) + ", not " +
           short_form(options.digest) + ")";
  return "";
}

Helper::Answer Helper::compile(const wire::Compile& request, const Stopped& stopped) {
  if (!is_intact()) return {End::gone};
  // Whether this arrives or not, what the helper said last is there to be read.
  channel_.send(wire::Kind::compile, wire::encode(request), stopped);
  wire::Message message;
  switch (channel_.receive(message, stopped)) {
  case wire::Received::message: break;
  case wire::Received::nothing: return {End::stopped};
  case wire::Received::closed: return {End::died, {}, "ended without a word, as if killed"};
  case wire::Received::malformed: return {End::died, {}, "answered with what is no message"};
  }
  Answer answer;
  wire::Died died;
  wire::Failed failed;
  wire::Unable unable;
  switch (message.kind) {
  case wire::Kind::done:
    if (!wire::decode(message.body, answer.result)) break;
    answer.end = End::result;
    return answer;
  case wire::Kind::failed:
    if (!wire::decode(message.body, failed)) break;
    if (failed.is_compile_error) throw CompileError(failed.message);
    throw CudaError(failed.message);
  case wire::Kind::died:
    if (!wire::decode(message.body, died)) break;
    answer.how = died.how;
    if (!died.words.empty()) answer.how += " and had said:\n" + died.words;
    return answer;
  case wire::Kind::bye: return {End::gone};
  case wire::Kind::unable:
    if (!wire::decode(message.body, unable)) break;
    return {End::unable, {}, std::move(unable.problem)};
  default: break;
  }
  return {End::died, {}, "answered with what is no answer"};
}

}  // namespace palladium::nvrtc
