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

Json json_of(const Report& r) {
  Json accesses = Json::array();
  for (const AccessReport& a : r.accesses)
    accesses.push_back({{"function", a.function},
                        {"line", a.at.line == 0 ? "" : fmt::format("{}:{}", a.at.file, a.at.line)},
                        {"space", a.shared ? "shared" : "global"},
                        {"store", a.store},
                        {"bytes", a.bytes},
                        {"times", a.times},
                        {"touched", a.touched},
                        {"needed", a.needed}});
  const InstructionMix& m = r.mix;
  return {{"accesses", std::move(accesses)},
          {"global_loads", m.global_loads},
          {"global_stores", m.global_stores},
          {"shared_loads", m.shared_loads},
          {"shared_stores", m.shared_stores},
          {"operations", m.operations},
          {"special", m.special},
          {"products", m.products},
          {"exchanges", m.exchanges},
          {"barriers", m.barriers},
          {"global_bytes", r.global_bytes},
          {"depends_on_call", r.depends_on_call}};
}

std::string text_of(const Report& r) {
  std::string out;
  for (const AccessReport& a : r.accesses) {
    out += fmt::format("{:<22} {:>3} bytes x {:<6g}", a.function, a.bytes, a.times);
    if (a.needed > 0)
      out +=
          fmt::format("  {:>3} of {} {}", a.touched, a.needed, a.shared ? "wavefronts" : "sectors");
    if (a.at.line != 0) out += fmt::format("  {}:{}", a.at.file, a.at.line);
    out += "\n";
  }
  const InstructionMix& m = r.mix;
  out +=
      fmt::format("per thread{}: {:g} global loads, {:g} stores; {:g} shared loads, {:g} stores\n",
                  r.depends_on_call ? ", a turn of loops whose trips a call decides" : "",
                  m.global_loads, m.global_stores, m.shared_loads, m.shared_stores);
  out += fmt::format(
      "            {:g} operations, {:g} special, {:g} products, {:g} exchanges, {:g} barriers\n",
      m.operations, m.special, m.products, m.exchanges, m.barriers);
  out += fmt::format("            {:g} bytes of global memory\n", r.global_bytes);
  return out;
}

}  // namespace palladium::tools
