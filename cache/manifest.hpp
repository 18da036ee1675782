// A manifest: the kernels that programs used, to be compiled elsewhere before somebody waits.
//
// One JSON object per line:
//
//   {"palladium_manifest": 1,        the version of this format
//    "id": "<64 hex>",               of the kernel, whichever its architecture
//    "arch": "sm_90a",               "" where it ran without being compiled
//    "kernel": "softmax",
//    "arguments": ["f32[m,1000]"],   for people
//    "location": "softmax.cpp:12",   the user's line
//    "reachable": true,              no call was of it: calls of other sizes can be; else missing
//    "digest": "<64 hex>",           SHA-256 of the graph as the library writes it
//    "graph": {...}}                 the kernel specialised, with all its options
//
// Each line is added by one write in append mode, so that processes which record into one file
// neither wait for one another nor mix their lines (on a local file system; hosts that share a
// network file system record into a file each). A line that a crash cut short spoils nothing but
// itself: whoever adds the next one ends it first, and readers report it. A kernel that stands in
// the file is not added again, unless it is now reached; should two processes add it at the same
// moment, readers see it once.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/digest.hpp"
#include "codegen/base/files.hpp"

namespace palladium::cache {

inline constexpr int manifest_version = 1;

/// No manifest is larger, and no line of one.
inline constexpr std::size_t most_manifest_bytes = std::size_t{1} << 30;

struct Record {
  Digest id = {};
  std::string arch = {};
  std::string kernel = {};
  std::vector<std::string> arguments = {};
  std::string location = {};
  bool reached = true;     // by a call
  std::string graph = {};  // JSON, opaque here
  std::size_t line = 0;    // of the manifest that it was read from, from 1

  bool operator==(const Record&) const = default;
};

/// With its newline. The graph is an object of nlohmann_json's shortest form.
std::string to_line(const Record& record);
/// Nothing, and in `defect` the reason, for a line that to_line() did not write.
std::optional<Record> from_line(std::string_view line, std::string& defect);

struct Manifest {
  std::vector<Record> records;  // each kernel of each architecture once
  struct Damage {
    std::size_t line;  // from 1
    std::string defect;
  };
  std::vector<Damage> damages;
};
Manifest parse_manifest(std::string_view text);
files::Outcome read_manifest(const std::string& path, Manifest& manifest);

/// Adds records to one file. Thread-safe; trouble with the file is a log line, once.
class ManifestWriter {
 public:
  explicit ManifestWriter(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  /// Whether the kernel stands in the file for this architecture, and as one that is reached where
  /// that is asked, as far as this writer knows.
  bool has(const Digest& id, const std::string& arch, bool reached) const;
  /// Adds what is not there yet.
  void add(const Record& record);

 private:
  using Name = std::pair<Digest, std::string>;

  files::Outcome look();
  void complain(const files::Outcome& outcome);

  const std::string path_;
  mutable std::mutex mutex_;
  std::map<Name, bool> names_;  // whether they are reached
  std::size_t seen_ = 0;        // bytes of the file that have been looked at
  bool ends_in_line_ = false;   // the last of them is no newline
  bool has_complained_ = false;
};

}  // namespace palladium::cache
