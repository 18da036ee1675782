#include "runtime/build/compile.hpp"

#include <charconv>
#include <climits>
#include <ctime>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "cache/stats.hpp"
#include "cache/turn.hpp"
#include "codegen/base/environment.hpp"
#include "codegen/base/event.hpp"
#include "codegen/base/forking.hpp"
#include "codegen/base/format.hpp"
#include "codegen/base/log.hpp"
#include "codegen/base/profile.hpp"
#include "codegen/cuda/emit.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "runtime/build/compiler.hpp"
#include "runtime/build/components.hpp"
#include "runtime/build/dump.hpp"
#include "runtime/build/expect.hpp"
#include "runtime/build/jobs.hpp"
#include "runtime/build/key.hpp"
#include "runtime/build/record.hpp"
#include "runtime/build/weaker.hpp"
#include "runtime/call/clock.hpp"
#include "runtime/driver/driver.hpp"

namespace palladium::runtime {
namespace {

using environment::Variable;

bool jit_is_off() { return environment::checked(Variable::jit) == "off"; }

/// The newest NVRTC major version whose cubins load here.
int newest_loadable_major() {
  const driver::Status& status = driver::status();
  return status.state == driver::State::ready ? status.cuda_major() : INT_MAX;
}

std::optional<cache::Entry> find(const cache::Key& key, const std::string& kernel) {
  const profile::Range range("find", kernel);
  const cache::Store entries = store();
  const auto& toolchain = nvrtc::toolchain().found;
  if (toolchain)
    if (auto entry = entries.find(key, toolchain->id)) return entry;
  if (!toolchain || jit_is_off() || environment::checked(Variable::toolchain) == "any")
    return entries.find_any(key, newest_loadable_major());
  return std::nullopt;
}

std::pair<cuda::Emitted, std::string> lower(const graph::Graph& g, const cuda::Options& options) {
  const profile::Range range("lower", g.name);
  cuda::Emitted emitted = cuda::emit(g, options);
  std::string compiled = cuda::compiled_text(g, emitted);
  return {std::move(emitted), std::move(compiled)};
}

bool spills(const nvrtc::Pool::Outcome& outcome) {
  if (outcome.end != nvrtc::Pool::End::result || !outcome.result.ok) return false;
  const Resources r = nvrtc::parse_log(outcome.result.log);
  return r.spill_store_bytes + r.spill_load_bytes > 0;
}

/// Text of NVRTC with the user's line behind every line that blames the emitted text.
std::string translated(const std::string& log, const std::vector<cuda::TextLine>& lines) {
  constexpr std::string_view file = "kernel.cu(";
  std::string result;
  for (std::size_t begin = 0; begin < log.size();) {
    const std::size_t end = std::min(log.find('\n', begin), log.size());
    const std::string_view line(log.data() + begin, end - begin);
    result += line;
    if (const std::size_t at = line.find(file); at != std::string_view::npos) {
      int number = 0;
      std::from_chars(line.data() + at + file.size(), line.data() + line.size(), number);
      Location user;
      for (const cuda::TextLine& l : lines)
        if (l.line <= number) user = l.at;
      if (user.line != 0) result += "  (from " + to_string(user) + ")";
    }
    result += '\n';
    begin = end + 1;
  }
  return result;
}

/// The assembler tells lines of its own text. From there a second compile, of such kernels only,
/// leads to the emitted text and the user's line.
std::vector<std::string> located(const nvrtc::Result& result, nvrtc::Request request,
                                 const nvrtc::Toolchain& toolchain,
                                 const std::vector<cuda::TextLine>& lines) {
  std::vector<std::string> warnings = nvrtc::parse_log(result.log).warnings;
  if (!nvrtc::blame_a_line(warnings)) return warnings;
  if (!request.options.empty()) return nvrtc::located_warnings(result);  // names the user's lines
  request.options = {line_info};
  const nvrtc::Pool::Outcome outcome = run_nvrtc(request, toolchain);
  if (outcome.end != nvrtc::Pool::End::result || !outcome.result.ok) return warnings;
  warnings = nvrtc::located_warnings(outcome.result);
  for (std::string& warning : warnings) {
    warning = translated(warning, lines);
    warning.pop_back();  // the end of its line
  }
  return warnings;
}

std::string summary(const Program& p) {
  const Resources& r = p.entry.metadata.resources;
  const auto shared = static_cast<double>(r.shared_bytes) / 1024;
  const int warps = p.plan.threads / graph::warp_threads;
  return fmt::format("-> {} ({}{} regs, {:.1f} KiB smem)", p.entry.key.hex().substr(0, 6),
                     warps == 4 ? "" : fmt::format("{} warps, ", warps), r.registers, shared);
}

void report(const graph::Graph& g, const Program& p) {
  for (const std::string& w : p.entry.metadata.resources.warnings)
    if (!p.from_cache) log::warning(g.name + ": " + w);
  if (!log::enabled(log::Level::info)) return;
  const CompileTimes& t = p.times;
  const std::string line =
      p.from_cache ? fmt::format("{}  hit   trace {:.1f} ms  disk {:.1f} ms  {}", g.name, t.trace,
                                 t.find, summary(p))
                   : fmt::format("{}  miss  trace {:.1f} ms  lower {:.1f} ms  nvrtc {:.0f} ms  {}",
                                 g.name, t.trace, t.lower, t.nvrtc, summary(p));
  log::event(log::Level::info, p.from_cache ? "hit" : "miss", line,
             {{"kernel", g.name},
              {"arch", p.entry.metadata.arch},
              {"key", p.entry.key.hex()},
              {"trace_ms", t.trace},
              {"find_ms", t.find},
              {"lower_ms", t.lower},
              {"nvrtc_ms", t.nvrtc}});
}

void tell(const graph::Graph& g, const std::vector<Remark>& remarks) {
  if (!log::enabled(log::Level::debug)) return;
  for (const Remark& r : remarks)
    log::debug(fmt::format("{}: {}{}", g.name, r.text,
                           r.at.line == 0 ? "" : fmt::format(" ({})", to_string(r.at))));
}

/// What may help where the values of a program's threads do not fit their registers; nothing else
/// is known to.
void advise(Resources& resources, const graph::Graph& g, int num_warps) {
  if (resources.spill_store_bytes + resources.spill_load_bytes == 0) return;
  const bool may_widen =
      g.bodies.size() == 1 && g.bodies[0].warpgroups == 1 && graph::is_width(2 * num_warps);
  resources.warnings.push_back(
      may_widen ? fmt::format("spills: try num_warps = {}, or smaller blocks", 2 * num_warps)
                : std::string("spills: try smaller blocks"));
}

/// What keeps a kernel from being compiled, with the user's line.
[[noreturn]] void fail(const graph::Graph& g, std::string message) {
  while (message.ends_with('\n')) message.pop_back();
  if (g.at.line != 0) message += "\n  at " + to_string(g.at);
  throw CudaError(message);
}

JobName job_name(const Specialization& s, const std::string& arch, Lookup lookup) {
  return {.key = key_of(s.graph, arch), .lookup = lookup, .kernel = s.graph.name, .arch = arch};
}

/// What NVRTC has refused in this process. A refusal is a function of key and toolchain, so that
/// asking again is in vain; to be used inside of forking::Sections.
class Refusals {
 public:
  static Refusals& instance() {
    static Refusals& refusals = *new Refusals;
    return refusals;
  }
  /// The words, or none.
  std::string find(const cache::Key& key, const std::string& toolchain) const {
    const std::lock_guard lock(mutex_);
    const auto found = messages_.find({key, toolchain});
    return found == messages_.end() ? "" : found->second;
  }
  void add(const cache::Key& key, const std::string& toolchain, const std::string& message) {
    constexpr std::size_t most = 1000;
    const std::lock_guard lock(mutex_);
    if (messages_.size() == most) messages_.clear();
    messages_[{key, toolchain}] = message;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<cache::Key, std::string>, std::string> messages_;
};

/// Whether it was the text that NVRTC refused: then the log blames a line. Else there is the name
/// of a result only, as when memory ran out.
bool blames_the_text(const nvrtc::Result& result) { return !result.log.starts_with("NVRTC_ERROR"); }

/// A kernel in the cache that relies on less than was asked for; null if there is none.
std::shared_ptr<const Program> find_weaker(const Specialization& s, const std::string& arch,
                                           const std::string& reason) {
  const forking::Section section;
  for (const Weaker& weaker : weaker_graphs(s)) {
    const cache::Key key = key_of(weaker.graph, arch);
    auto program = std::make_shared<Program>();
    auto entry = find(key, s.graph.name);
    if (!entry || !from_json(entry->metadata.launch, program->plan)) continue;
    renumber_symbols(program->plan, weaker.symbols);
    program->entry = std::move(*entry);
    program->from_cache = true;
    program->times.trace = s.trace_ms;
    cache::count(cache::Event::hit);
    log::event(
        log::Level::warning, "weaker",
        fmt::format(
            "'{}' for {}: the cached kernel {}, which knows less of the sizes and arrays, serves "
            "this call, for {}",
            s.graph.name, arch, key.hex().substr(0, 6), reason.substr(0, reason.find('\n'))),
        {{"kernel", s.graph.name}, {"arch", arch}, {"key", key.hex()}});
    return program;
  }
  return nullptr;
}

/// The whole story of a kernel that somebody asked for. Null when it was stopped.
std::shared_ptr<const Program> make(const Specialization& s, const JobName& job,
                                    const nvrtc::Pool::Stopped& stopped) {
  const graph::Graph& g = s.graph;
  const std::string& arch = job.arch;
  const cache::Key& key = job.key;
  cuda::Options options = text_options(arch);
  auto program = std::make_shared<Program>();
  program->times.trace = s.trace_ms;
  const forking::Section section;

  record(g, arch);

  // In the cache?
  const Clock finding;
  const auto take = [&](std::optional<cache::Entry> entry) {
    if (!entry || !from_json(entry->metadata.launch, program->plan)) return false;
    program->entry = std::move(*entry);
    program->from_cache = true;
    program->times.find = finding.ms();
    cache::count(cache::Event::hit);
    report(g, *program);
    dump(s, *program);
    expect(g, arch, *program);
    return true;
  };
  const bool may_load = job.lookup == Lookup::cached;
  if (may_load && take(find(key, g.name))) return program;
  program->times.find = finding.ms();
  if (jit_is_off()) {
    cache::count(cache::Event::miss);
    fail(g, "'" + g.name + "' for " + arch + " (" + key.hex().substr(0, 6) +
                ") is not in the cache " + store().root() +
                ", and PALLADIUM_JIT=off forbids to compile it; fill the cache with "
                "`palladium warm`");
  }
  const nvrtc::Search& toolchain = nvrtc::toolchain();
  if (!toolchain.found)
    fail(g, "'" + g.name + "' for " + arch +
                " is not in the cache: " + nvrtc::missing_toolchain_message(toolchain));

  if (const std::string known = Refusals::instance().find(key, toolchain.found->id);
      may_load && !known.empty())
    fail(g, known);

  // Has another process been at it meanwhile?
  const cache::Turn turn(store().root(), key, toolchain.found->id, stopped);
  if (may_load && take(store().find_again(key, toolchain.found->id))) return program;
  cache::count(cache::Event::miss);

  // Graph to text.
  const profile::Range compiling("compile", g.name);
  const Clock lowering;
  auto [emitted, text] = lower(g, options);
  if (g.mapping.debug) log::show(text);
  program->plan = plan_of(emitted);
  program->times.lower = lowering.ms();
  tell(g, emitted.remarks);

  // Text to cubin.
  nvrtc::Request request = request_for(text, arch, g.lineinfo);
  const auto compile = [&] {
    const profile::Range range("nvrtc", g.name);
    return run_nvrtc(request, *toolchain.found, stopped);
  };
  nvrtc::Pool::Outcome outcome = compile();
  if (emitted.min_blocks > 1 && spills(outcome)) {
    options.bounds_launch = false;
    auto unbounded = lower(g, options);
    request = request_for(unbounded.second, arch, g.lineinfo);
    nvrtc::Pool::Outcome again = compile();
    if (again.end == nvrtc::Pool::End::stopped) return nullptr;
    if (again.end == nvrtc::Pool::End::result && again.result.ok) {
      again.result.milliseconds += outcome.result.milliseconds;
      outcome = std::move(again);
      std::tie(emitted, text) = std::move(unbounded);
    } else {
      request = request_for(text, arch, g.lineinfo);  // what spills is there
    }
  }
  if (outcome.end == nvrtc::Pool::End::stopped) return nullptr;
  if (outcome.end == nvrtc::Pool::End::died)
    fail(g, "compiling '" + g.name + "' for " + arch + ": the compile helper " + outcome.why +
                ", as it did before; the text is in " + dump_text(g, key, text));
  const nvrtc::Result& result = outcome.result;
  program->times.nvrtc = result.milliseconds;
  if (!result.ok) {
    const std::string refusal = "NVRTC " + toolchain.found->version() + " refuses '" + g.name +
                                "' for " + arch + ":\n" + translated(result.log, emitted.lines) +
                                "the text is in " + dump_text(g, key, text);
    if (blames_the_text(result)) Refusals::instance().add(key, toolchain.found->id, refusal);
    fail(g, refusal);
  }
  Resources resources = nvrtc::parse_log(result.log);
  resources.warnings = located(result, request, *toolchain.found, emitted.lines);
  resources.shared_bytes += static_cast<int>(program->plan.shared_bytes);
  advise(resources, g, emitted.num_warps);
  program->entry = {.key = key,
                    .toolchain = toolchain.found->id,
                    .metadata = {.kernel = g.name,
                                 .function = emitted.entry,
                                 .arch = arch,
                                 .nvrtc_major = toolchain.found->major,
                                 .nvrtc_minor = toolchain.found->minor,
                                 .resources = std::move(resources),
                                 .built_at = std::time(nullptr),
                                 .compile_ms = result.milliseconds,
                                 .location = to_string(g.at),
                                 .launch = to_json(program->plan),
                                 .components = components_of(g, arch)},
                    .cubin = result.cubin,
                    .ptx = result.ptx,
                    .source = text};

  store().publish(program->entry);
  report(g, *program);
  dump(s, *program);
  expect(g, arch, *program);
  return program;
}

}  // namespace

std::shared_ptr<const Program> compile(const Specialization& s, const std::string& arch,
                                       Lookup lookup) {
  const JobName job = job_name(s, arch, lookup);
  return do_job(job, [&](const auto& stopped) { return make(s, job, stopped); });
}

std::shared_ptr<const Program> compile_or_weaker(const Specialization& s, const std::string& arch,
                                                 Lookup lookup) {
  try {
    return compile(s, arch, lookup);
  } catch (const CudaError& error) {
    if (auto program = find_weaker(s, arch, error.what())) return program;
    throw;
  }
}

bool needs_no_compile(const Specialization& s, const std::string& arch) {
  const forking::Section section;
  return jit_is_off() || !nvrtc::toolchain().found || find(key_of(s.graph, arch), s.graph.name);
}

Claim compile_in_background(std::shared_ptr<const Specialization> s, const std::string& arch,
                            double deadline) {
  const JobName job = job_name(*s, arch, Lookup::cached);
  const auto work = [=, snapshot = environment::Snapshot()](const auto& stopped) {
    const environment::Reading reading(snapshot);
    return make(*s, job, stopped);
  };
  return start_job(job, work, deadline);
}

}  // namespace palladium::runtime
