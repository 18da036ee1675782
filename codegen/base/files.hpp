// The only door to the file system: a table of system calls, which tests replace, and what
// Palladium does with them.
//
// No function here throws for what a disk can do wrong: a cache must be able to go on without one.
// Every helper returns an Outcome, which says which call failed and why.
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace palladium::files {

/// The system calls, with their meaning, return values and errno.
struct Functions {
  int (*open)(const char* path, int flags, mode_t mode);
  int (*close)(int descriptor);
  ssize_t (*read)(int descriptor, void* bytes, std::size_t count);
  ssize_t (*pread)(int descriptor, void* bytes, std::size_t count, off_t offset);
  ssize_t (*write)(int descriptor, const void* bytes, std::size_t count);
  int (*fsync)(int descriptor);
  int (*fstat)(int descriptor, struct stat* status);
  int (*stat)(const char* path, struct stat* status);
  int (*rename)(const char* from, const char* to);
  int (*unlink)(const char* path);
  int (*mkdir)(const char* path, mode_t mode);
  int (*rmdir)(const char* path);
  int (*chmod)(const char* path, mode_t mode);
  int (*utimensat)(int directory, const char* path, const timespec* times, int flags);
  char* (*realpath)(const char* path, char* resolved);
  DIR* (*opendir)(const char* path);
  dirent* (*readdir)(DIR* directory);
  int (*closedir)(DIR* directory);
};

/// The calls in use. Not for replacing while another thread works with files.
Functions& functions();
/// The calls of the system, for a test to forward to and to restore.
const Functions& system_functions();

/// What became of a file operation: success, or the errno of the call that failed.
struct [[nodiscard]] Outcome {
  int error = 0;
  const char* call = "";

  explicit operator bool() const { return error == 0; }
  /// ENOENT or ENOTDIR: there is no such file, which for a cache is no defect.
  bool is_missing() const;
  /// "rename: No space left on device".
  std::string message() const;
};

struct Info {
  std::uint32_t owner = 0;
  std::uint32_t group = 0;
  std::uint32_t mode = 0;  // permission bits only
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;  // since 1970
  bool is_directory = false;
};

Outcome info(const std::string& path, Info& result);
bool exists(const std::string& path);

/// Reads a whole regular file of at most `limit` bytes (else EFBIG); `about`, when given, describes
/// the very file that was read, which a separate look-up could not promise.
Outcome read(const std::string& path, std::size_t limit, std::vector<std::byte>& bytes,
             Info* about = nullptr);
/// As above, as text.
Outcome read(const std::string& path, std::size_t limit, std::string& text);

/// Reads `count` bytes at `offset`; fewer are an EIO.
Outcome read_at(const std::string& path, std::uint64_t offset, std::size_t count,
                std::vector<std::byte>& bytes);

enum class Durability {
  fast,     // a crash of the machine may leave a torn file: for self-checking content
  durable,  // file and directory reach the disk before the call returns
};

/// Replaces `path` in one step: readers see the old content or the new, whole. Written to a
/// temporary file of that mode (less the umask) in the same directory, then renamed; nothing is
/// left behind on failure. The directory must exist.
Outcome publish(const std::string& path, std::span<const std::byte> bytes,
                Durability durability = Durability::fast, mode_t mode = 0600);
Outcome publish(const std::string& path, std::string_view text,
                Durability durability = Durability::fast, mode_t mode = 0600);

/// Adds `bytes` at the end of a file, which is made if it is missing, by one write in append mode:
/// what several processes add never mixes on a local file system. A write that ends early (a full
/// disk, a killed process) leaves a part of them: readers must be able to tell.
Outcome append(const std::string& path, std::string_view bytes, mode_t mode = 0600);

/// How a temporary file of publish() ends, for sweeps and listings.
inline constexpr std::string_view temporary_suffix = ".tmp";

/// Names in a directory without "." and "..", sorted.
Outcome list(const std::string& directory, std::vector<std::string>& names);

/// Makes the directory and its missing parents, each with mode 0700; an existing one is success.
Outcome make_directories(const std::string& directory);

/// Makes the directory with exactly that mode; one that exists keeps its own.
Outcome make_directory(const std::string& directory, mode_t mode);

/// Makes `<prefix>.<unique>` with mode 0700; one that exists already is never taken.
Outcome make_unique_directory(const std::string& prefix, std::string& made);

/// Makes the file's time of modification now.
Outcome touch(const std::string& path);

/// Removes a file; a missing one is success.
Outcome remove(const std::string& path);
/// Removes an empty directory; a missing one is success.
Outcome remove_directory(const std::string& path);

/// The path with every link resolved.
Outcome resolve(const std::string& path, std::string& resolved);

/// "/a/b/c.k" -> "/a/b"; "c.k" -> ".".
std::string directory_of(const std::string& path);
/// "/a/b/c.k" -> "c.k".
std::string name_of(const std::string& path);

}  // namespace palladium::files
