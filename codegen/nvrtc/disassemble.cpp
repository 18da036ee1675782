#include "codegen/nvrtc/disassemble.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/base/environment.hpp"
#include "codegen/base/files.hpp"
#include "codegen/base/format.hpp"
#include "codegen/base/process.hpp"
#include "palladium/error.hpp"

namespace palladium::nvrtc {
namespace {

constexpr int cubin_descriptor = 3;
constexpr std::size_t most_output_bytes = std::size_t{1} << 30;

/// Owned, and never one of those that a started program gets by number.
class Descriptor {
 public:
  explicit Descriptor(int number) {
    if (number < 0) return;
    number_ = ::fcntl(number, F_DUPFD_CLOEXEC, cubin_descriptor + 1);
    ::close(number);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() { close(); }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void close() {
    if (is_open()) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

struct Pipe {
  Descriptor read, write;
};
Pipe make_pipe() {
  int ends[2] = {-1, -1};
  (void)::pipe2(ends, O_CLOEXEC);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// A file without a name.
Descriptor file_of(std::span<const std::byte> bytes) {
  Descriptor file(::memfd_create("cubin", MFD_CLOEXEC));
  while (file.is_open() && !bytes.empty()) {
    const ssize_t written = ::write(file.number(), bytes.data(), bytes.size());
    if (written > 0)
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    else if (errno != EINTR)
      file.close();
  }
  return file;
}

/// Starts `program -c <cubin>` in a process group of its own, with signals by default, nothing to
/// read and no other descriptor of ours. The errno of what failed.
int start(const std::string& program, const Descriptor& cubin, const Descriptor& out,
          const Descriptor& error, std::optional<process::Child>& child) {
  std::string words[] = {program, "-c", fmt::format("/proc/self/fd/{}", cubin_descriptor)};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  const std::vector<char*> variables = environment::pointers();

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.number(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, error.number(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, cubin.number(), cubin_descriptor);
  posix_spawn_file_actions_addclosefrom_np(&actions, cubin_descriptor + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);

  pid_t number = 0;
  const int failed =
      posix_spawn(&number, words[0].c_str(), &actions, &attributes, arguments, variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed == 0) child.emplace(process::Id::of(number).value());
  return failed;
}

using Clock = std::chrono::steady_clock;

/// Takes what there is to read; closes at the end of it.
void read_some(Descriptor& from, std::string& to) {
  char bytes[1 << 16];
  const ssize_t count = ::read(from.number(), bytes, sizeof bytes);
  if (count > 0)
    to.append(bytes, static_cast<std::size_t>(count));
  else if (count == 0 || errno != EINTR)
    from.close();
}

/// Until both have ended; false if that takes too long, or is too much.
bool read_both(Descriptor& out, std::string& text, Descriptor& error, std::string& words,
               Clock::time_point until) {
  while (out.is_open() || error.is_open()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0 || text.size() + words.size() > most_output_bytes) return false;
    pollfd both[] = {{out.number(), POLLIN, 0}, {error.number(), POLLIN, 0}};
    if (::poll(both, 2, static_cast<int>(std::min<long long>(left, 1000))) <= 0) continue;
    if (out.is_open() && both[0].revents != 0) read_some(out, text);
    if (error.is_open() && both[1].revents != 0) read_some(error, words);
  }
  return true;
}

std::optional<process::Ending> wait_until(process::Child& child, Clock::time_point until) {
  while (true) {
    if (auto ending = child.wait_now()) return ending;
    if (Clock::now() > until) return std::nullopt;
    ::usleep(1000);
  }
}

[[noreturn]] void fail(const std::string& program, const std::string& what,
                       std::string words = {}) {
  constexpr std::size_t most = 2000;
  if (words.size() > most) words.resize(most);
  while (words.ends_with('\n')) words.pop_back();
  throw CudaError(fmt::format("nvdisasm: {} {}{}{}\n  PALLADIUM_NVDISASM names another", program,
                              what, words.empty() ? "" : ":\n", words));
}

/// Folders of .deps beside this library: scripts/setup's own first.
std::string in_wheel() {
  Dl_info self;
  std::string real;
  if (dladdr(reinterpret_cast<const void*>(&find_nvdisasm), &self) == 0 ||
      self.dli_fname == nullptr || !files::resolve(self.dli_fname, real))
    return "";
  std::string folder = files::directory_of(real);
  for (int level = 0; level < 3; ++level, folder = files::directory_of(folder))
    for (const char* place : {"nvdisasm/nvidia/cu13", "nvidia/cu13", "nvidia/cuda_nvdisasm"})
      if (const std::string path = fmt::format("{}/.deps/{}/bin/nvdisasm", folder, place);
          files::exists(path))
        return path;
  return "";
}

}  // namespace

std::string find_nvdisasm() {
  if (const std::string named = environment::get(environment::Variable::nvdisasm); !named.empty())
    return named;
  std::vector<std::string> folders;
  if (const std::string home = environment::get("CUDA_HOME"); !home.empty())
    folders.push_back(home + "/bin");
  folders.push_back("/usr/local/cuda/bin");
  const std::string path = environment::get("PATH");
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin) folders.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  for (const std::string& folder : folders)
    if (files::exists(folder + "/nvdisasm")) return folder + "/nvdisasm";
  return in_wheel();
}

std::string missing_nvdisasm_message() {
  return "nvdisasm is needed to show machine code, and none was found (looked in CUDA_HOME, "
         "/usr/local/cuda, PATH and .deps)\n  install a CUDA toolkit or run `pip install --target "
         ".deps nvidia-cuda-nvdisasm`, or set PALLADIUM_NVDISASM to its path";
}

std::string disassemble(const std::string& program, std::span<const std::byte> cubin,
                        double seconds) {
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(seconds));
  const Descriptor file = file_of(cubin);
  Pipe out = make_pipe(), error = make_pipe();
  if (!file.is_open() || !out.write.is_open() || !error.write.is_open())
    fail(program, fmt::format("cannot be started ({})", std::strerror(errno)));
  std::optional<process::Child> child;
  if (const int failed = start(program, file, out.write, error.write, child); failed != 0)
    fail(program, fmt::format("cannot be started ({})", std::strerror(failed)));
  out.write.close();
  error.write.close();

  std::string text, words;
  const bool is_done = read_both(out.read, text, error.read, words, until);
  const std::optional<process::Ending> ending = is_done ? wait_until(*child, until) : std::nullopt;
  if (!ending) {
    child->id().signal_group(SIGKILL);
    fail(program, fmt::format("is not done after {:g} seconds", seconds), words);
  }
  // Where nobody knows how it ended, its text tells.
  if (ending->is_known && !ending->is_good()) fail(program, ending->words(), words + text);
  return text;
}

}  // namespace palladium::nvrtc
