// gpu_conformance: the device library on the GPU of this machine, compared with the emulator, or
// whole kernels, compared with the interpreter.
//
// Exit status: 0 all checks agree (or there is no GPU: a last line says so), 1 some do not, 2
// usage, 3 all that ran agree, but not all did.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <thread>

#include "codegen/base/files.hpp"
#include "codegen/base/format.hpp"
#include "palladium/error.hpp"
#include "runtime/driver/device.hpp"
#include "runtime/driver/driver.hpp"
#include "runtime/driver/memory.hpp"
#include "tests/conformance/run.hpp"
#include "tests/conformance/supervise.hpp"
#include "tests/conformance/whole_kernels.hpp"

using namespace palladium;
using namespace palladium::conformance;
using nlohmann::json;

namespace {

struct Settings {
  std::vector<std::string> only;  // names or beginnings of names
  bool full = false, slow = false, sanitized = false;
  bool emulate = false, interpret = false, list = false, probe = false, in_process = false;
  std::string json_file, crash, hang;
  std::string kernels;  // a folder of recorded graphs
  int random = 0;       // kernels
  int jobs = 0;
  double timeout = 30, start = 60, gpu_timeout = 10, budget = 1e9;
  std::vector<int> child;
};

/// Whole kernels are checked instead of the table's cases.
bool of_kernels(const Settings& s) { return !s.kernels.empty() || s.random > 0; }

const WholeKernels& kernels(const Settings& s) {
  static const WholeKernels all(s.kernels, s.random);
  return all;
}

const Case& case_of(int number) { return all_cases()[static_cast<std::size_t>(number)]; }

std::string name_of(int number, const Settings& s) {
  return of_kernels(s) ? kernels(s).name(number) : case_of(number).name;
}

int capability() {
  const driver::Device& d = driver::device(0);
  return 10 * d.major + d.minor;
}

/// How a launch of the case went into the driver.
std::string launch_of(const Case& c) {
  return fmt::format("grid {} cluster {} threads {} shared bytes {}", fmt::join(c.grid, "x"),
                     fmt::join(c.cluster, "x"), 128 * c.warpgroups, c.shared_bytes);
}

/// The GPU refused the kernel, or it does not end: an answer where that was the question.
void set_end(json& record, const Case& c, const char* state, const std::string& sentence) {
  const bool asked = c.outcome == Outcome::open ||
                     (c.outcome == Outcome::refused && std::string_view(state) == "error");
  record["state"] = asked ? "passed" : state;
  record[asked ? "answer" : "detail"] = sentence;
}

/// The kernel has run to its end.
void take_verdict(json& record, const Case& c, const Verdict& verdict) {
  std::string problem = verdict.problem;
  if (c.outcome == Outcome::refused) problem = "the GPU takes what the emulator refuses";
  record["state"] = problem.empty() ? "passed" : "failed";
  if (!problem.empty()) record["detail"] = problem;
  if (!verdict.answer.empty()) record["answer"] = verdict.answer;
  if (!verdict.measured.empty()) record["measured"] = verdict.measured;
  if (!verdict.differing.empty()) record["differing"] = verdict.differing;
}

/// The same as run_check for a whole kernel, which waits for the GPU as long as it takes.
json run_kernel(int number, const Settings& settings, bool& broken) {
  json record = {{"number", number}, {"process", ::getpid()}};
  const auto start = std::chrono::steady_clock::now();
  try {
    using On = WholeKernels::On;
    record.update(kernels(settings).run(number, settings.interpret ? On::nothing
                                                : settings.emulate ? On::emulator
                                                                   : On::gpu));
  } catch (const CudaError& error) {
    record["state"] = "error";
    record["detail"] = error.what();
    broken = true;
  } catch (const std::exception& error) {
    record["state"] = "error";
    record["detail"] = error.what();
  }
  record["seconds"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return record;
}

/// Runs a check here: {"number", "name", "state": "passed" | "failed" | "error" | "skipped", ...}.
/// `broken` becomes true if this process should run no other. Of a kernel that never ends `overdue`
/// gets the record, and must not return.
json run_check(int number, const Settings& settings, bool& broken,
               const std::function<void(const json&)>& overdue) {
  if (of_kernels(settings)) return run_kernel(number, settings, broken);
  const Case c = complete(case_of(number));
  json record = {{"number", number}, {"name", c.name}, {"process", ::getpid()}};
  const auto start = std::chrono::steady_clock::now();
  Account account;
  try {
    if (c.name == settings.crash) std::abort();
    if (c.name == settings.hang) ::pause();
    if (!settings.emulate) {
      const ArchRange archs = archs_of(c);
      if (capability() < archs.first || capability() > archs.last) {
        record["state"] = "skipped";
        return record;
      }
    }
    const std::optional<Arrays> emulated = expected(c);
    const auto hung = [&](const std::string& sentence) {
      set_end(record, c, "hung", sentence);
      overdue(record);
    };
    if (settings.emulate && !emulated) {
      record["state"] = c.emulated ? "passed" : "skipped";
      return record;
    }
    const Arrays got = settings.emulate
                           ? *emulated
                           : run_gpu(c, {settings.gpu_timeout, hung, settings.in_process}, account);
    take_verdict(record, c, judge(c, emulated ? *emulated : got, got));
    if (!account.complaints.empty()) record["ptxas"] = account.complaints;
  } catch (const CudaError& error) {
    set_end(record, c, "error", error.what());
    broken = true;
  } catch (const std::exception& error) {
    record["state"] = "error";
    record["detail"] = error.what();
  }
  if (record["state"] != "passed") {  // what its mending needs
    record["launch"] = launch_of(c);
    record["text"] = c.text;
    if (!account.log.empty()) record["log"] = account.log;
  }
  record["seconds"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return record;
}

/// Tells the supervisor; one write, so that no line is torn when the process ends.
void tell(const json& record) {
  // What is not text (a name from a broken driver) must not end the child.
  const std::string line = record.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  if (::write(1, line.data(), line.size()) != static_cast<ssize_t>(line.size())) ::_exit(1);
}

[[noreturn]] void leave(const json& record) {
  tell(record);
  ::_exit(3);  // the context is lost, and so are the destructors' calls
}

/// What takes long once per process: NVRTC, the context.
void get_ready(const Settings& settings) {
  if (settings.emulate || settings.interpret) return;
  try {
    if (nvrtc::toolchain().found) (void)nvrtc::architectures(*nvrtc::toolchain().found);
    const driver::ContextScope context(0);
    const driver::Stream stream;
  } catch (const std::exception&) {  // each check says it again
  }
  tell({{"ready", true}});
}

int run_child(const Settings& settings) {
  get_ready(settings);
  for (const int number : settings.child) {
    bool broken = false;
    const json record = run_check(number, settings, broken, leave);
    if (broken) leave(record);
    tell(record);
  }
  ::_exit(0);
}

class Results {
 public:
  explicit Results(const Settings& settings, std::size_t total) : settings_(settings) {
    report_["total"] = total;
    describe_machine();
  }

  void add(json record) {
    const std::string name = name_of(record["number"].get<int>(), settings_);
    record["name"] = name;
    record.erase("number");
    const std::string state = record["state"];
    ++states_[name.substr(0, name.find('/'))][state];
    not_run_ += state == "not run";
    skipped_ += state == "skipped";
    if (state == "failed" || state == "error" || state == "crashed" || state == "hung") {
      ++failed_;
      std::cerr << state << ": " << name << "\n  " << record.value("detail", "") << "\n";
    }
    if (record.contains("measured")) report_["measured"].update(record["measured"]);
    if (record.contains("answer")) report_["answers"][name] = record["answer"];
    checks_ += (checks_.empty() ? "" : ",\n") +
               record.dump(-1, ' ', false, json::error_handler_t::replace);
    const auto now = std::chrono::steady_clock::now();
    if (now - written_ > std::chrono::seconds(2)) write();
  }

  void write() {
    written_ = std::chrono::steady_clock::now();
    report_["states"] = states_;
    report_["failed"] = failed_;
    report_["not run"] = not_run_;
    if (settings_.json_file.empty()) return;
    // A line for each check.
    std::string text = report_.dump(1, ' ', false, json::error_handler_t::replace);
    text = "{\n\"checks\": [\n" + checks_ + "\n]," + text.substr(1) + "\n";
    if (const files::Outcome done = files::publish(settings_.json_file, text); !done)
      std::cerr << "cannot write " << settings_.json_file << ": " << done.message() << "\n";
  }

  void print_table() const {
    fmt::print("{:<12} {:>7} {:>7} {:>7} {:>7}\n", "checks", "passed", "failed", "skipped",
               "not run");
    for (const auto& [family, states] : states_) {
      const auto count = [&states = states](std::initializer_list<const char*> of) {
        int n = 0;
        for (const char* state : of) n += states.contains(state) ? states.at(state) : 0;
        return n;
      };
      fmt::print("{:<12} {:>7} {:>7} {:>7} {:>7}\n", family, count({"passed"}),
                 count({"failed", "error", "crashed", "hung"}), count({"skipped"}),
                 count({"not run"}));
    }
    if (report_.contains("answers")) {
      fmt::print("\nwhat the chip answers\n");
      for (const auto& [name, answer] : report_["answers"].items())
        fmt::print("{}: {}\n", name, answer.get<std::string>());
      fmt::print("\n");
    }
    if (!report_.contains("measured")) return;
    fmt::print("\n{:<32} {:>12} {:>12}\n", "greatest error", "measured", "allowed");
    for (const auto& [label, m] : report_["measured"].items())
      fmt::print(
          "{:<32} {:>12} {:>12}\n", label,
          m["error"].is_string() ? "infinite" : fmt::format("{:.3g}", m["error"].get<double>()),
          fmt::format("{:.3g} {}", m["bound"].get<double>(), m["unit"] == "ulp" ? "ulp" : ""));
  }

  int failed() const { return failed_; }
  int not_run() const { return not_run_; }
  int skipped() const { return skipped_; }

 private:
  void describe_machine() {
    if (settings_.emulate || settings_.interpret) {
      report_["device"] = settings_.emulate ? "emulator" : "interpreter";
      return;
    }
    const driver::Device& d = driver::device(0);
    report_["device"] = d.name;
    report_["arch"] = d.arch();
    report_["driver"] = driver::status().version;
    if (nvrtc::toolchain().found) {
      report_["nvrtc"] = nvrtc::toolchain().found->version();
      report_["nvrtc_path"] = nvrtc::toolchain().found->library;
    }
  }

  const Settings& settings_;
  json report_;  // all but the checks
  std::string checks_;
  std::map<std::string, std::map<std::string, int>> states_;
  int failed_ = 0, not_run_ = 0, skipped_ = 0;
  std::chrono::steady_clock::time_point written_ = {};
};

std::vector<int> selected(const Settings& settings) {
  std::vector<int> numbers;
  const auto wanted = [&](const std::string& name) {
    return settings.only.empty() || std::ranges::any_of(settings.only, [&](const auto& beginning) {
             return name.starts_with(beginning);
           });
  };
  if (of_kernels(settings)) {
    for (int i = 0; i < kernels(settings).size(); ++i)
      if (wanted(kernels(settings).name(i))) numbers.push_back(i);
    return numbers;
  }
  for (std::size_t i = 0; i < all_cases().size(); ++i) {
    const Case& c = all_cases()[i];
    if (c.slow ? !settings.full && !settings.slow : settings.slow) continue;
    if (settings.sanitized && !c.sanitized) continue;
    if (!wanted(c.name)) continue;
    numbers.push_back(static_cast<int>(i));
  }
  // Last what may cost the context.
  std::ranges::stable_partition(numbers, [](int n) { return !case_of(n).deadly; });
  return numbers;
}

std::vector<std::string> child_command(const Settings& s) {
  std::vector<std::string> command = {"/proc/self/exe"};
  if (s.emulate) command.push_back("--emulate");
  if (s.interpret) command.push_back("--interpret");
  command.insert(command.end(), {"--gpu-timeout", fmt::format("{}", s.gpu_timeout)});
  if (!s.crash.empty()) command.insert(command.end(), {"--crash", s.crash});
  if (!s.kernels.empty()) command.insert(command.end(), {"--kernels", s.kernels});
  if (s.random > 0) command.insert(command.end(), {"--random", std::to_string(s.random)});
  if (!s.hang.empty()) command.insert(command.end(), {"--hang", s.hang});
  command.push_back("--child");
  return command;
}

/// For scripts: "NVIDIA H200 sm_90a 13000", the last being the driver's CUDA.
int probe() {
  const driver::Status& status = driver::status();
  if (status.state != driver::State::ready) {
    std::cout << status.reason << "\n";
    return 4;
  }
  const driver::Device& d = driver::device(0);
  std::cout << d.name << " " << d.arch() << " " << status.version << "\n";
  return 0;
}

/// In this process; each is announced, since a tool that watches says only that something happened.
void run_here(const std::vector<int>& numbers, const Settings& settings, Results& results) {
  bool broken = false;
  std::string by;
  for (const int n : numbers) {
    const std::string name = name_of(n, settings);
    if (broken) {
      results.add({{"number", n}, {"state", "not run"}, {"detail", "no context after " + by}});
      continue;
    }
    std::cout << "check: " << name << std::endl;
    by = name;
    results.add(run_check(n, settings, broken, [&](const json& record) {
      results.add(record);
      results.write();
      ::_exit(1);
    }));
  }
}

int run(const Settings& settings) {
  if (settings.probe) return probe();
  const std::vector<int> numbers = selected(settings);
  const bool gpu =
      settings.emulate || settings.interpret || driver::status().state == driver::State::ready;
  if (settings.list || !gpu) {
    for (const int n : numbers) std::cout << name_of(n, settings) << "\n";
    if (!settings.list)
      std::cout << "gpu_conformance: no GPU, " << numbers.size() << " checks would run\n";
    return 0;
  }
  Results results(settings, numbers.size());
  if (settings.in_process) {
    run_here(numbers, settings, results);
  } else {
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const int jobs = settings.jobs > 0 ? settings.jobs : std::min(16, cores);
    const auto start = std::chrono::steady_clock::now();
    Supervision how = {.command = child_command(settings),
                       .jobs = jobs,
                       .bunch = std::clamp(static_cast<int>(numbers.size()) / (4 * jobs), 1, 16),
                       .seconds_per_check = settings.timeout,
                       .seconds_to_start = settings.start,
                       .seconds_in_all = settings.budget};
    const auto add = [&](const json& record) { results.add(record); };
    const auto deadly = std::ranges::find_if(
        numbers, [&](int n) { return !of_kernels(settings) && case_of(n).deadly; });
    supervise({numbers.begin(), deadly}, how, add);
    // One after the other, when nothing else is at the GPU.
    how.jobs = how.bunch = 1;
    how.seconds_in_all -=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    supervise({deadly, numbers.end()}, how, add);
  }
  results.write();
  results.print_table();
  std::cout << "gpu_conformance: " << numbers.size() << " checks, " << results.failed()
            << " failed";
  if (results.skipped() > 0) std::cout << ", " << results.skipped() << " skipped";
  if (results.not_run() > 0) std::cout << ", " << results.not_run() << " not run";
  std::cout << std::endl;
  return results.failed() != 0 ? 1 : results.not_run() != 0 ? 3 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Compares the device library, or whole kernels, on the GPU with what the CPU says.");
  app.add_option("names", settings.only, "Checks or beginnings of their names; all without");
  app.add_flag("--full", settings.full, "Also all variants of wgmma");
  app.add_flag("--slow", settings.slow, "Only those that --full adds");
  app.add_flag("--probe", settings.probe, "Say what GPU there is, and 4 if none, and end");
  app.add_flag("--sanitized", settings.sanitized, "Only those that compute-sanitizer runs");
  app.add_flag("--emulate", settings.emulate, "On the emulator, against the formulas alone");
  app.add_flag("--interpret", settings.interpret,
               "Whole kernels: only see which of them can be checked");
  app.add_flag("--list", settings.list, "Print the names");
  app.add_flag("--in-process", settings.in_process, "In this process, as compute-sanitizer wants");
  app.add_option("--json", settings.json_file, "Where results go, while they come");
  app.add_option("--kernels", settings.kernels,
                 "Instead, against the interpreter: the kernels whose graphs tests recorded there");
  app.add_option("--random", settings.random, "And so many random ones");
  app.add_option("--jobs", settings.jobs, "Processes at a time");
  app.add_option("--timeout", settings.timeout, "Seconds for one check");
  app.add_option("--gpu-timeout", settings.gpu_timeout, "Seconds of it on the GPU");
  app.add_option("--start", settings.start, "Seconds more until a process is ready");
  app.add_option("--budget", settings.budget, "Seconds for all: no more are started then");
  app.add_option("--crash", settings.crash, "This check crashes, to see what it costs");
  app.add_option("--hang", settings.hang, "This check hangs");
  app.add_option("--child", settings.child, "Run the checks of these numbers");
  CLI11_PARSE(app, argc, argv);
  try {
    return settings.child.empty() ? run(settings) : run_child(settings);
  } catch (const std::exception& error) {
    std::cerr << "gpu_conformance: " << error.what() << "\n";
    return 2;
  }
}
