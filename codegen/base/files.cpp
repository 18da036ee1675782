#include "codegen/base/files.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace palladium::files {
namespace {

constexpr Functions calls_of_the_system = {
    .open = [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); },
    .close = ::close,
    .read = ::read,
    .pread = ::pread,
    .write = ::write,
    .fsync = ::fsync,
    .fstat = ::fstat,
    .stat = ::stat,
    .rename = ::rename,
    .unlink = ::unlink,
    .mkdir = ::mkdir,
    .rmdir = ::rmdir,
    .chmod = ::chmod,
    .utimensat = ::utimensat,
    .realpath = ::realpath,
    .opendir = ::opendir,
    .readdir = ::readdir,
    .closedir = ::closedir,
};

constinit Functions calls = calls_of_the_system;

Outcome failed(const char* call) { return {errno != 0 ? errno : EIO, call}; }

int open_retrying(const char* path, int flags, mode_t mode = 0) {
  int descriptor;
  do descriptor = calls.open(path, flags | O_CLOEXEC, mode);
  while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

/// Closes on every way out; a close that fails after a write is the writer's business.
struct Descriptor {
  int value;
  explicit Descriptor(int descriptor) : value(descriptor) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value < 0) return;
    const int saved = errno;
    calls.close(value);
    errno = saved;
  }
  int release() { return std::exchange(value, -1); }
};

Info info_of(const struct stat& status) {
  return {
      .owner = status.st_uid,
      .group = status.st_gid,
      .mode = status.st_mode & 07777u,
      .size = static_cast<std::uint64_t>(status.st_size),
      .modified_ns = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec,
      .is_directory = S_ISDIR(status.st_mode)};
}

/// Both forms of read(): `Bytes` is a vector of bytes or a string.
template <class Bytes>
Outcome read_whole(const std::string& path, std::size_t limit, Bytes& bytes, Info* about) {
  bytes.clear();
  // O_NONBLOCK so that a FIFO in the place of a file cannot hang us; it means nothing for files.
  const Descriptor file(open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK));
  if (file.value < 0) return failed("open");
  struct stat status;
  if (calls.fstat(file.value, &status) != 0) return failed("fstat");
  if (about != nullptr) *about = info_of(status);
  if (S_ISDIR(status.st_mode)) return {EISDIR, "open"};
  if (!S_ISREG(status.st_mode)) return {EINVAL, "open"};
  if (static_cast<std::uint64_t>(status.st_size) > limit) return {EFBIG, "fstat"};
  bytes.resize(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = calls.read(file.value, bytes.data() + done, bytes.size() - done);
    if (count < 0) {
      if (errno == EINTR) continue;
      const Outcome outcome = failed("read");
      bytes.clear();
      return outcome;
    }
    if (count == 0) break;  // it shrank meanwhile: the caller's own checks decide
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return {};
}

Outcome write_whole(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = calls.write(descriptor, bytes.data(), bytes.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return failed("write");
    }
    if (count == 0) return {ENOSPC, "write"};
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

/// Unique among threads, processes and, by its random part, hosts on a shared file system.
std::string unique_suffix() {
  static std::atomic<unsigned> counter{0};
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) random = 0;
  char unique[64];
  std::snprintf(unique, sizeof unique, ".%ld.%u.%016llx", static_cast<long>(::getpid()),
                counter.fetch_add(1, std::memory_order_relaxed),
                static_cast<unsigned long long>(random));
  return unique;
}

std::string temporary_path(const std::string& path) {
  return directory_of(path) + "/." + name_of(path) + unique_suffix() +
         std::string(temporary_suffix);
}

}  // namespace

Functions& functions() { return calls; }
const Functions& system_functions() { return calls_of_the_system; }

bool Outcome::is_missing() const { return error == ENOENT || error == ENOTDIR; }

std::string Outcome::message() const {
  if (error == 0) return "success";
  char text[256];
  return std::string(call) + ": " + ::strerror_r(error, text, sizeof text);
}

Outcome info(const std::string& path, Info& result) {
  struct stat status;
  if (calls.stat(path.c_str(), &status) != 0) return failed("stat");
  result = info_of(status);
  return {};
}

bool exists(const std::string& path) {
  Info ignored;
  return static_cast<bool>(info(path, ignored));
}

Outcome read(const std::string& path, std::size_t limit, std::vector<std::byte>& bytes,
             Info* about) {
  return read_whole(path, limit, bytes, about);
}

Outcome read(const std::string& path, std::size_t limit, std::string& text) {
  return read_whole(path, limit, text, nullptr);
}

Outcome read_at(const std::string& path, std::uint64_t offset, std::size_t count,
                std::vector<std::byte>& bytes) {
  bytes.clear();
  const Descriptor file(open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK));
  if (file.value < 0) return failed("open");
  bytes.resize(count);
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got = calls.pread(file.value, bytes.data() + done, count - done,
                                    static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const Outcome outcome = got < 0 ? failed("pread") : Outcome{EIO, "pread"};
      bytes.clear();
      return outcome;
    }
    done += static_cast<std::size_t>(got);
  }
  return {};
}

Outcome publish(const std::string& path, std::span<const std::byte> bytes, Durability durability,
                mode_t mode) {
  const std::string temporary = temporary_path(path);
  Descriptor file(open_retrying(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
  if (file.value < 0) return failed("open");

  Outcome outcome = write_whole(file.value, bytes);
  if (outcome && durability == Durability::durable && calls.fsync(file.value) != 0)
    outcome = failed("fsync");
  // NFS and quotas report a full disk only here.
  if (calls.close(file.release()) != 0 && outcome && errno != EINTR) outcome = failed("close");
  if (outcome && calls.rename(temporary.c_str(), path.c_str()) != 0) outcome = failed("rename");
  if (!outcome) {
    calls.unlink(temporary.c_str());
    return outcome;
  }
  if (durability == Durability::durable) {
    const Descriptor directory(open_retrying(directory_of(path).c_str(), O_RDONLY | O_DIRECTORY));
    if (directory.value < 0) return failed("open");
    if (calls.fsync(directory.value) != 0) return failed("fsync");
  }
  return outcome;
}

Outcome publish(const std::string& path, std::string_view text, Durability durability,
                mode_t mode) {
  return publish(path, std::as_bytes(std::span(text)), durability, mode);
}

Outcome append(const std::string& path, std::string_view bytes, mode_t mode) {
  Descriptor file(open_retrying(path.c_str(), O_WRONLY | O_APPEND | O_CREAT, mode));
  if (file.value < 0) return failed("open");
  ssize_t count;
  do count = calls.write(file.value, bytes.data(), bytes.size());
  while (count < 0 && errno == EINTR);
  Outcome outcome = count < 0 ? failed("write") : Outcome{};
  // The rest would land behind what others have added meanwhile.
  if (outcome && static_cast<std::size_t>(count) != bytes.size()) outcome = {ENOSPC, "write"};
  if (calls.close(file.release()) != 0 && outcome && errno != EINTR) outcome = failed("close");
  return outcome;
}

Outcome list(const std::string& directory, std::vector<std::string>& names) {
  names.clear();
  DIR* open = calls.opendir(directory.c_str());
  if (open == nullptr) return failed("opendir");
  Outcome outcome;
  while (true) {
    errno = 0;
    const dirent* entry = calls.readdir(open);
    if (entry == nullptr) {
      if (errno != 0) outcome = failed("readdir");
      break;
    }
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  calls.closedir(open);
  std::sort(names.begin(), names.end());
  return outcome;
}

Outcome make_directory(const std::string& directory, mode_t mode) {
  constexpr mode_t own = 0700;
  if (calls.mkdir(directory.c_str(), mode & own) == 0) {
    // The umask takes away what others may do.
    if ((mode & ~own) != 0 && calls.chmod(directory.c_str(), mode) != 0) return failed("chmod");
    return {};
  }
  const Outcome outcome = failed("mkdir");
  if (outcome.error != EEXIST && outcome.error != EROFS && outcome.error != EISDIR) return outcome;
  // A read-only file system says EROFS even for a directory that exists.
  Info existing;
  const Outcome seen = info(directory, existing);
  if (seen && existing.is_directory) return {};
  if (outcome.error != EEXIST) return outcome;
  return seen ? Outcome{ENOTDIR, "mkdir"} : seen;
}

Outcome make_directories(const std::string& directory) {
  const Outcome outcome = make_directory(directory, 0700);
  if (outcome.error != ENOENT) return outcome;
  const std::string parent = directory_of(directory);
  if (parent == directory) return outcome;
  if (const Outcome made = make_directories(parent); !made) return made;
  if (calls.mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return failed("mkdir");
}

Outcome make_unique_directory(const std::string& prefix, std::string& made) {
  const std::string path = prefix + unique_suffix();
  if (calls.mkdir(path.c_str(), 0700) != 0) return failed("mkdir");
  made = path;
  return {};
}

Outcome touch(const std::string& path) {
  if (calls.utimensat(AT_FDCWD, path.c_str(), nullptr, 0) != 0) return failed("utimensat");
  return {};
}

Outcome remove(const std::string& path) {
  if (calls.unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return failed("unlink");
}

Outcome remove_directory(const std::string& path) {
  if (calls.rmdir(path.c_str()) == 0 || errno == ENOENT) return {};
  return failed("rmdir");
}

Outcome resolve(const std::string& path, std::string& resolved) {
  char* result = calls.realpath(path.c_str(), nullptr);
  if (result == nullptr) return failed("realpath");
  resolved = result;
  std::free(result);
  return {};
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace palladium::files
