// Every environment variable that Palladium reads, in one table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace palladium::environment {

// clang-format off
#define PALLADIUM_ENVIRONMENT(X) \
  X(target,      "PALLADIUM_TARGET",     "first GPU, else interpreter", "cuda, interpreter or emulator: where kernels run") \
  X(log,         "PALLADIUM_LOG",        "warning",                     "debug, info, warning, error or off: lines on stderr") \
  X(log_format,  "PALLADIUM_LOG_FORMAT", "text",                        "json: one object per line, with the fields of hit, miss, evict and refuse") \
  X(debug,       "PALLADIUM_DEBUG",      "print",                       "comma list of print and check, or off: what bodies record of pl::debug_print and pl::debug_check") \
  X(dump,        "PALLADIUM_DUMP",       "",                            "comma list of graph, passes, cuda, ptx: artefacts to write") \
  X(dump_dir,    "PALLADIUM_DUMP_DIR",   "palladium-dump",              "folder for the artefacts") \
  X(verify,      "PALLADIUM_VERIFY",     "1 in debug builds",           "1: check what each pass of the compiler leaves, and refuse barriers by hand that do not go together; 0: check what the last one leaves") \
  X(expect,      "PALLADIUM_EXPECT",     "warning",                     "error: a kernel that is not what its .expect says is refused, whenever it is compiled or loaded; off: nobody looks") \
  X(cache_dir,   "PALLADIUM_CACHE_DIR",  "$XDG_CACHE_HOME/palladium, else ~/.cache/palladium", "root of the kernel cache") \
  X(cache_size,  "PALLADIUM_CACHE_SIZE", "2048",                        "MiB that the cache may hold; what was not used for longest goes") \
  X(cache_files, "PALLADIUM_CACHE_FILES", "200000",                     "kernels that the cache may hold") \
  X(cache_sharing, "PALLADIUM_CACHE_SHARING", "own",                    "group: whoever is in the group of the cache's folder is trusted with it") \
  X(nvtx,        "PALLADIUM_NVTX",       "0",                           "1: NVTX ranges around trace, compile, load and launch, for profilers") \
  X(record,      "PALLADIUM_RECORD",     "",                            "manifest to which all kernels that are compiled or loaded are added") \
  X(jit,         "PALLADIUM_JIT",        "on",                          "off: never compile, only load from the cache") \
  X(toolchain,   "PALLADIUM_TOOLCHAIN",  "",                            "any: accept cached cubins of any NVRTC the driver can load") \
  X(compile,     "PALLADIUM_COMPILE",    "helper",                      "in-process: run NVRTC in the program itself, not in helper processes") \
  X(compile_helper, "PALLADIUM_COMPILE_HELPER", "found",                "path of palladium-compile") \
  X(compile_jobs, "PALLADIUM_COMPILE_JOBS", "number of cores",          "compiles at once, each in a helper process") \
  X(compile_memory, "PALLADIUM_COMPILE_MEMORY", "2048",                 "MiB that a compile in a helper process may allocate") \
  X(nvrtc,       "PALLADIUM_NVRTC",      "found",                       "path of libnvrtc.so") \
  X(nvdisasm,    "PALLADIUM_NVDISASM",   "found",                       "path of nvdisasm, which shows machine code") \
  X(libcuda,     "PALLADIUM_LIBCUDA",    "libcuda.so.1",                "path of the CUDA driver library") \
  X(cxx,         "PALLADIUM_CXX",        "c++",                         "host compiler of the emulator")
// clang-format on

enum class Variable {
#define PALLADIUM_VARIABLE(id, name, fallback, meaning) id,
  PALLADIUM_ENVIRONMENT(PALLADIUM_VARIABLE)
#undef PALLADIUM_VARIABLE
};

struct Row {
  Variable variable;
  const char* name;
  const char* fallback;  // as documented, not necessarily a literal value
  const char* meaning;
};

std::span<const Row> table();

/// The variable's value, "" when unset. Reads the environment: not for hot paths.
std::string get(Variable variable);
/// The same of somebody else's variable.
std::string get(const char* name);

/// The variable's value; CompileError that names variable, value and what it can be, where it is
/// not a word that the variable takes, a list of those, or a number in its range.
std::string checked(Variable variable);
/// The same as a number; none where the variable is not set.
std::optional<std::uint64_t> number(Variable variable);
/// Checks all variables.
void check();
/// Variables that begin with PALLADIUM_ and are none of the table: misspelt ones.
std::vector<std::string> unknown();

/// The environment as it was when this was made. An application that changes its environment does
/// so while no thread of its own reads it; of our threads it knows nothing, so they read one of
/// these.
class Snapshot {
 public:
  Snapshot();
  std::string get(const char* name) const;
  std::span<const std::string> entries() const { return entries_; }

 private:
  std::vector<std::string> entries_;  // "HOME=/root"
};

/// For a scope this thread's environment is that of the snapshot.
class Reading {
 public:
  explicit Reading(const Snapshot& snapshot);
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading();

 private:
  const Snapshot* const before_;
};

/// This thread's environment for a program to start with, ended by a null pointer. Good as long as
/// the environment, or the snapshot, stays.
std::vector<char*> pointers();

}  // namespace palladium::environment
