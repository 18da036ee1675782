// CUDA C++ to cubin: plain bytes in, plain bytes out, so that the compile may happen in another
// process.
//
// A cubin is a pure function of request and toolchain: NVRTC reads no file, keeps no cache of its
// own and sees a fixed program name. In this process it has side effects that nobody can prevent,
// only mend: while it compiles it replaces the handlers of SIGINT and SIGTERM (a signal then ends
// the process with status 4), lifts the stack limit, and a child forked meanwhile hangs in its own
// next compile. compile() puts handlers and limit back.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/nvrtc/toolchain.hpp"
#include "palladium/resources.hpp"

namespace palladium::nvrtc {

/// A file that the source may #include by this name; there are no others.
struct Header {
  std::string name;
  std::string text;
};

struct Request {
  std::string source;
  std::vector<Header> headers = {};
  std::vector<std::string> options = {};  // besides those that every compile gets
  std::string arch;                       // "sm_90a"
};

struct Result {
  bool ok = false;  // else `log` says why
  std::vector<std::byte> cubin = {};
  std::string ptx = {};
  std::string log = {};
  double milliseconds = 0;
};

/// Compiles with the process's toolchain. Bad source is a Result that is not ok; CudaError says
/// that no NVRTC can be used, CompileError that it does not know the architecture. Thread-safe.
Result compile(const Request& request);
Result compile(const Request& request, const Toolchain& toolchain);

/// "sm_75", ..., "sm_90", "sm_90a", ...: what the toolchain compiles for.
std::vector<std::string> architectures(const Toolchain& toolchain);

/// What the log of a successful compile says about the kernel. Warnings are all that the assembler
/// says beside figures, in its own words, which change from version to version; and local memory.
Resources parse_log(std::string_view log);

/// Those of the warnings that are about products by wgmma: that they wait for each other.
std::vector<std::string> warnings_of_wgmma(const Resources& resources);

/// Whether the assembler blames a place: "line 181", which is a line of its PTX.
bool blame_a_line(const std::vector<std::string>& warnings);

/// The warnings of a successful compile with line information, which knows what such a line was made
/// of: "around kernel.cu(14)", or a file that the text names by #line. The library's own text is
/// called library.cuh.
std::vector<std::string> located_warnings(const Result& with_line_information);

}  // namespace palladium::nvrtc
