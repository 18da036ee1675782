#include "tools/output.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace palladium::tools {

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!text.ends_with('\n')) std::fputc('\n', stdout);
}

// Names of files need not be UTF-8.
void print(const Json& object) {
  print(object.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print(const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    if (parts.size() > 1) print("// ---- " + part.name);
    print(part.text);
  }
}

void note(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }
void complain(const std::string& what) { note("palladium: " + what); }

bool finish() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  complain(std::string("cannot write to stdout: ") + std::strerror(errno));
  return false;
}

Json json_of(const Resources& r) {
  return {{"registers", r.registers},
          {"shared_bytes", r.shared_bytes},
          {"stack_bytes", r.stack_bytes},
          {"spill_store_bytes", r.spill_store_bytes},
          {"spill_load_bytes", r.spill_load_bytes},
          {"barriers", r.barriers},
          {"warnings", r.warnings}};
}

std::string text_of(const Resources& r) {
  std::string text = fmt::format(
      "registers      {} per thread\n"
      "shared memory  {} bytes per block\n"
      "stack          {} bytes per thread\n"
      "spills         {} bytes stored, {} loaded\n"
      "barriers       {}\n",
      r.registers, r.shared_bytes, r.stack_bytes, r.spill_store_bytes, r.spill_load_bytes,
      r.barriers);
  for (const std::string& warning : r.warnings) text += "warning        " + warning + "\n";
  return text;
}

}  // namespace palladium::tools
