// An NVRTC that does as it is told: by the environment variable FAKE_NVRTC, then by the lines of
// its source that begin with "// fake: ". Verbs, separated by semicolons:
//
//   count FILE    appends a byte to FILE
//   sleep MS
//   until FILE    waits for it
//   say WORDS     on stderr
//   unless FILE   obeys no further if there is a FILE, else makes it
//   hog           allocates until there is nothing left, then aborts
//   refuse WORDS  fails with a log that blames the first line in which they stand (line 1 without)
//   only WORDS    obeys no further unless they stand in the text
//   spill WORDS   says that registers spill where they stand in the text
//   abort, kill, segv, exit
//
// What it is not told to refuse becomes a cubin that only the fake driver would take.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <sstream>
#include <string>

#define FAKE_API extern "C" __attribute__((visibility("default")))

namespace {

struct Program {
  std::string source;
  std::string arch;
  std::string log;
};

constexpr int refused = 6;
constexpr int enough = -1;

void hog() {
  constexpr std::size_t piece = 16 << 20;
  for (;;) {
    void* volatile memory = ::malloc(piece);  // volatile: what nobody looks at is not allocated
    if (memory == nullptr) break;
    ::memset(memory, 1, piece);
  }
  ::fputs("fake NVRTC: out of memory\n", stderr);
  ::abort();
}

int obey(Program& program, const std::string& order) {
  std::istringstream words(order);
  std::string verb, argument;
  words >> verb >> std::ws;
  std::getline(words, argument);
  if (verb == "count" || verb == "unless") {
    const bool is_there = ::access(argument.c_str(), F_OK) == 0;
    const int file = ::open(argument.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (::write(file, "x", 1) != 1) ::abort();
    ::close(file);
    if (verb == "unless" && is_there) return enough;
  }
  if (verb == "sleep") ::usleep(1000u * static_cast<unsigned>(std::stoi(argument)));
  while (verb == "until" && ::access(argument.c_str(), F_OK) != 0) ::usleep(1000);
  if (verb == "say") ::fprintf(stderr, "%s\n", argument.c_str());
  if (verb == "hog") hog();
  if (verb == "only" && program.source.find(argument) == std::string::npos) return enough;
  if (verb == "spill" && program.source.find(argument) != std::string::npos)
    program.log +=
        "ptxas         .     8 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n";
  if (verb == "abort") ::abort();
  if (verb == "kill") ::raise(SIGKILL);
  if (verb == "segv") ::raise(SIGSEGV);
  if (verb == "exit") ::_exit(4);
  if (verb == "refuse") {
    const std::string mark = "#line 1 \"kernel.cu\"\n";
    const std::size_t begin = program.source.find(mark);
    const std::string text =
        begin == std::string::npos ? "" : program.source.substr(begin + mark.size());
    const std::size_t at = std::min(text.find(argument), text.size());
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    program.log = "kernel.cu(" + std::to_string(line) + "): error: refused as told\n";
    return refused;
  }
  return 0;
}

int obey_all(Program& program, const std::string& orders) {
  std::istringstream all(orders);
  for (std::string order; std::getline(all, order, ';');)
    if (const int result = obey(program, order)) return result == enough ? 0 : result;
  return 0;
}

std::string cubin_of(const Program& p) {
  return "\x7f"
         "ELF " +
         p.arch + "\n" + p.source;
}
std::string ptx_of(const Program& p) { return ".target " + p.arch + "\n"; }

void copy(const std::string& text, char* to) { ::memcpy(to, text.data(), text.size()); }

}  // namespace

FAKE_API const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }
FAKE_API int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
FAKE_API int nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return 0;
}
FAKE_API int nvrtcGetSupportedArchs(int* numbers) {
  numbers[0] = 90;
  return 0;
}
FAKE_API int nvrtcCreateProgram(Program** program, const char* source, const char*, int,
                                const char* const*, const char* const*) {
  *program = new Program{source, "", ""};
  return 0;
}
FAKE_API int nvrtcDestroyProgram(Program** program) {
  delete *program;
  return 0;
}
FAKE_API int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  const std::string prefix = "--gpu-architecture=";
  for (int i = 0; i < count; ++i)
    if (::strncmp(options[i], prefix.c_str(), prefix.size()) == 0)
      program->arch = options[i] + prefix.size();
  program->log = "ptxas info    : Used 8 registers, used 1 barriers, 352 bytes cmem[0]\n";
  if (const char* orders = ::getenv("FAKE_NVRTC"))
    if (const int result = obey_all(*program, orders)) return result;
  const std::string mark = "// fake: ";
  std::istringstream lines(program->source);
  for (std::string line; std::getline(lines, line);)
    if (line.compare(0, mark.size(), mark) == 0)
      if (const int result = obey_all(*program, line.substr(mark.size()))) return result;
  return 0;
}
FAKE_API int nvrtcGetProgramLogSize(Program* program, std::size_t* size) {
  *size = program->log.size() + 1;
  return 0;
}
FAKE_API int nvrtcGetProgramLog(Program* program, char* log) {
  ::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return 0;
}
FAKE_API int nvrtcGetPTXSize(Program* program, std::size_t* size) {
  *size = ptx_of(*program).size();
  return 0;
}
FAKE_API int nvrtcGetPTX(Program* program, char* ptx) {
  copy(ptx_of(*program), ptx);
  return 0;
}
FAKE_API int nvrtcGetCUBINSize(Program* program, std::size_t* size) {
  *size = cubin_of(*program).size();
  return 0;
}
FAKE_API int nvrtcGetCUBIN(Program* program, char* cubin) {
  copy(cubin_of(*program), cubin);
  return 0;
}
