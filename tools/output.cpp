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

Json times_json(const std::vector<PassDump>& passes) {
  Json rows = Json::array();
  for (const PassDump& p : passes)
    rows.push_back({{"attempt", p.attempt}, {"pass", p.pass}, {"ms", p.ms}, {"chosen", p.chosen}});
  return rows;
}

Json json_of(const std::vector<PassDump>& passes) {
  Json rows = times_json(passes);
  for (std::size_t i = 0; i < passes.size(); ++i) rows[i]["text"] = passes[i].text;
  return rows;
}

std::string text_of(const std::vector<PassDump>& passes) {
  std::string text;
  for (const PassDump& p : passes)
    text += fmt::format("{}-- attempt {}{}: behind {}\n{}", text.empty() ? "" : "\n", p.attempt,
                        p.chosen ? ", chosen" : "", p.pass, p.text);
  return text;
}

std::string times_text(const std::vector<PassDump>& passes) {
  std::string text;
  double all = 0;
  for (const PassDump& p : passes) {
    text += fmt::format("{:<12} {:<24} {:>9.3f} ms\n", p.attempt + (p.chosen ? "" : " (given up)"),
                        p.pass, p.ms);
    all += p.ms;
  }
  return text + fmt::format("{:<12} {:<24} {:>9.3f} ms\n", "", "all", all);
}

Json json_of(const Occupancy& o) {
  return {{"blocks", o.blocks},
          {"warps", o.warps},
          {"most_warps", o.most_warps},
          {"by_registers", o.by_registers},
          {"by_shared_memory", o.by_shared_memory},
          {"by_warps", o.by_warps},
          {"by_slots", o.by_slots}};
}

std::string text_of(const Occupancy& o) {
  return fmt::format(
      "occupancy      {} of {} warps: {} blocks per multiprocessor (by registers {}, shared memory "
      "{}, warps {}, slots {})\n",
      o.warps, o.most_warps, o.blocks, o.by_registers, o.by_shared_memory, o.by_warps, o.by_slots);
}

namespace {

Json json_of_mix(const SassMix& m) {
  Json classes = Json::object(), opcodes = Json::object();
  for (const auto& [name, count] : m.classes) classes[name] = count;
  for (const auto& [name, count] : m.opcodes) opcodes[name] = count;
  return {{"instructions", m.instructions},
          {"classes", std::move(classes)},
          {"opcodes", std::move(opcodes)}};
}

std::string text_of_counts(const std::vector<std::pair<std::string, int>>& counts) {
  std::string text = "//  ";
  for (const auto& [name, count] : counts) text += fmt::format(" {} {}", name, count);
  return text + "\n";
}

std::string text_of_mix(const SassMix& m) {
  return text_of_counts(m.classes) + text_of_counts(m.opcodes);
}

}  // namespace

Json json_of(const Sass& s) {
  Json loops = Json::array();
  for (const SassLoop& l : s.loops) {
    Json loop = {{"from", l.from},
                 {"to", l.to},
                 {"depth", l.depth},
                 {"every_trip", l.every_trip},
                 {"cold", l.cold}};
    loop.update(json_of_mix(l.mix));
    loops.push_back(std::move(loop));
  }
  return {{"text", s.text}, {"all", json_of_mix(s.all)}, {"loops", std::move(loops)}};
}

std::string text_of(const Sass& s) {
  std::string text = s.text;
  if (!text.ends_with('\n')) text += '\n';
  text += fmt::format("// {} instructions\n", s.all.instructions) + text_of_mix(s.all);
  for (const SassLoop& l : s.loops)
    text += fmt::format("// {}loop /*{:04x}*/ to /*{:04x}*/: {} instructions, {} of every trip{}\n",
                        std::string(static_cast<std::size_t>(2 * (l.depth - 1)), ' '), l.from, l.to,
                        l.mix.instructions, l.every_trip,
                        l.cold == 0 ? "" : fmt::format(", {} beyond it", l.cold)) +
            text_of_mix(l.mix);
  return text;
}

std::string line_of(Location at) {
  return at.line == 0 ? "" : fmt::format("{}:{}", at.file, at.line);
}

Json json_of(const Report& r) {
  Json accesses = Json::array();
  for (const AccessReport& a : r.accesses)
    accesses.push_back({{"function", a.function},
                        {"line", line_of(a.at)},
                        {"space", a.shared ? "shared" : "global"},
                        {"store", a.store},
                        {"bytes", a.bytes},
                        {"element_bytes", a.element_bytes},
                        {"times", a.times},
                        {"touched", a.touched},
                        {"needed", a.needed},
                        {"useful_bytes", a.useful_bytes},
                        {"moved_bytes", a.moved_bytes},
                        {"bytes_per_element", a.bytes_per_element()}});
  Json remarks = Json::array();
  for (const Remark& remark : r.remarks)
    remarks.push_back({{"line", line_of(remark.at)}, {"text", remark.text}});
  const InstructionMix& m = r.mix;
  const CostEstimate& cost = r.cost_estimate;
  const Prediction& p = r.prediction;
  return {{"accesses", std::move(accesses)},
          {"remarks", std::move(remarks)},
          {"cost_estimate",
           {{"flops", cost.flops},
            {"transcendentals", cost.transcendentals},
            {"bytes_accessed", cost.bytes_accessed}}},
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
          {"useful_bytes", r.useful_bytes},
          {"moved_bytes", r.moved_bytes},
          {"bytes_per_element", r.bytes_per_element()},
          {"depends_on_call", r.depends_on_call},
          {"multiply_adds", m.multiply_adds},
          {"prediction",
           {{"device", p.device},
            {"issue", p.issue},
            {"special", p.special},
            {"tensor", p.tensor},
            {"shared", p.shared},
            {"memory", p.memory},
            {"clocks", p.clocks()},
            {"microseconds", p.microseconds}}},
          {"not_compiled", r.not_compiled},
          {"resources", json_of(r.resources)},
          {"occupancy", json_of(r.occupancy)}};
}

std::string text_of(const Report& r) {
  std::string out;
  if (const CostEstimate& cost = r.cost_estimate; cost != CostEstimate{})
    out += fmt::format("estimated by the kernel: {} flops, {} transcendentals, {} bytes\n",
                       cost.flops, cost.transcendentals, cost.bytes_accessed);
  for (const AccessReport& a : r.accesses) {
    out += fmt::format("{:<22} {:>3} bytes x {:<6g}", a.function, a.bytes, a.times);
    if (a.needed > 0)
      out +=
          fmt::format("  {:>3} of {} {}, {:g} bytes for {}", a.touched, a.needed,
                      a.shared ? "wavefronts" : "sectors", a.bytes_per_element(), a.element_bytes);
    if (a.at.line != 0) out += "  " + line_of(a.at);
    out += "\n";
  }
  for (const Remark& remark : r.remarks) {
    out += "note: " + remark.text;
    if (remark.at.line != 0) out += "  " + line_of(remark.at);
    out += "\n";
  }
  const InstructionMix& m = r.mix;
  out +=
      fmt::format("per thread{}: {:g} global loads, {:g} stores; {:g} shared loads, {:g} stores\n",
                  r.depends_on_call ? ", an iteration of loops whose trips a call decides" : "",
                  m.global_loads, m.global_stores, m.shared_loads, m.shared_stores);
  out += fmt::format(
      "            {:g} operations, {:g} special, {:g} products, {:g} exchanges, {:g} barriers\n",
      m.operations, m.special, m.products, m.exchanges, m.barriers);
  out += fmt::format("            {:g} bytes of global memory\n", r.global_bytes);
  out += fmt::format("first warp: {:g} bytes of global memory are moved for {:g} that it takes{}\n",
                     r.moved_bytes, r.useful_bytes,
                     r.stored_elements == 0
                         ? ""
                         : fmt::format(", {:g} for each element stored", r.bytes_per_element()));
  const Prediction& p = r.prediction;
  out += fmt::format(
      "predicted      {:.0f} clocks of a block on {}: issue {:.0f}, special {:.0f}, tensor cores "
      "{:.0f}, shared memory {:.0f}, L2 cache {:.0f}{}\n",
      p.clocks(), p.device, p.issue, p.special, p.tensor, p.shared, p.memory,
      p.microseconds > 0 ? fmt::format("; {:.1f} us of a call", p.microseconds) : "");
  if (!r.not_compiled.empty()) return out + "not compiled: " + r.not_compiled + "\n";
  return out + text_of(r.resources) + text_of(r.occupancy);
}

}  // namespace palladium::tools
