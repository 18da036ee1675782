// Calls with options, arguments and bodies drawn at random: half of them valid, the others with one
// to three mistakes. Each ends in a result that interpreter and emulator agree on, or in a
// CompileError or CudaError that blames a line of the user's, on both.
//
// PALLADIUM_TEST_CALLS=10000, or 500-600, tries more calls or others; PALLADIUM_TEST_CALL=17/0,2/4
// tries again call 17 with its mistakes 0 and 2 and 4 statements, as a failure names it.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <sstream>

#include "codegen/base/format.hpp"
#include "tests/random/run.hpp"
#include "tests/support/full.hpp"

using namespace palladium;
using namespace palladium::test;
using namespace palladium::test::random_calls;

namespace {

// ---- A call that hangs says which it was.

char watched[256] = "";
constexpr unsigned most_seconds = 150;

void too_slow(int) {
  const char text[] = "\na random call takes too long: PALLADIUM_TEST_CALL=";
  for (const char* part : {text, static_cast<const char*>(watched), "\n"})
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  std::abort();  // which Catch reports like a crash
}

class Watch {
 public:
  explicit Watch(const std::string& call) {
    std::snprintf(watched, sizeof watched, "%s", call.c_str());
    ::signal(SIGALRM, too_slow);
    ::alarm(most_seconds);
  }
  Watch(const Watch&) = delete;
  ~Watch() { ::alarm(0); }
};

// ---- One call

/// Which call, and how much of it.
struct Case {
  std::uint64_t seed = 0;
  std::vector<int> mistakes = {};
  int statements = -1;  // as drawn
  bool emulated = false;

  std::string text() const {
    std::string list;
    for (const int m : mistakes) list += (list.empty() ? "" : ",") + std::to_string(m);
    return std::to_string(seed) + "/" + list +
           (statements >= 0 ? "/" + std::to_string(statements) : "");
  }
};

struct Verdict {
  std::string problem = {};  // "" if all is well
  std::string kind = {};     // what came of the call
  std::string description = {};
};

bool names_a_line(const std::string& message, const Blame& blame, bool exactly) {
  const auto names = [&](const std::string& line) {
    for (std::size_t at = message.find(line); at != std::string::npos;
         at = message.find(line, at + 1)) {
      const std::size_t end = at + line.size();
      if (end == message.size() || !std::isdigit(static_cast<unsigned char>(message[end])))
        return true;
    }
    return false;
  };
  const auto names_file = [&](const std::string& file) {
    const std::size_t at = message.find(file + ":");
    return at != std::string::npos && at + file.size() + 1 < message.size() &&
           std::isdigit(static_cast<unsigned char>(message[at + file.size() + 1]));
  };
  const auto names_code = [&] {
    for (const char* file : {"faults.cpp", "statements.cpp", "values.cpp", "accesses.cpp",
                             "regions.cpp", "body.cpp", "option_mistakes.cpp", "build.cpp"})
      if (names_file(file)) return true;
    return false;
  };
  if (!exactly) return names_file(user_file) || names_code();
  if (blame.code && names_code()) return true;
  return std::any_of(blame.lines.begin(), blame.lines.end(), [&](int line) {
    // Called with parentheses, the call stands where its first argument does.
    return names(fmt::format("{}:{}", user_file, line)) ||
           (line == call_line && names(fmt::format("{}:{}", user_file, int(argument_line))));
  });
}

// What the emulator's text may not fit into although its meaning is fine.
bool is_limit(const Outcome& o) {
  return o.kind == Outcome::Kind::compile_error &&
         (o.message.find("registers") != std::string::npos ||
          o.message.find("shared memory") != std::string::npos);
}

std::string problem_of(const Outcome& o, const std::vector<Blame>& blames) {
  if (!o.trespass.empty()) return o.trespass;
  switch (o.kind) {
  case Outcome::Kind::result:
    if (blames.size() == 1 && blames[0].expect == Expect::refused) return "nothing was refused";
    return "";
  case Outcome::Kind::users_own:
    for (const Blame& b : blames)
      if (b.text == "an exception of the user's own") return "";
    return "the user's own exception comes from nowhere";
  case Outcome::Kind::internal_error:
  case Outcome::Kind::other: return fmt::format("{}: {}", to_string(o.kind), o.message);
  case Outcome::Kind::compile_error:
  case Outcome::Kind::cuda_error: break;
  }
  if (std::all_of(blames.begin(), blames.end(),
                  [](const Blame& b) { return b.expect == Expect::harmless; }))
    return fmt::format("a valid call is refused: {}", o.message);
  if (!names_a_line(o.message, blames[0], blames.size() == 1))
    return fmt::format("blames no line of the mistake's: {}", o.message);
  return "";
}

struct Planned {
  Plan plan;
  std::vector<Blame> blames = {};
  std::string description = {};
};

Planned planned(const Case& c) {
  Planned p{draw(c.seed)};
  if (c.statements >= 0) p.plan.statements = c.statements;
  p.description = describe(p.plan);
  for (const int m : c.mistakes) {
    p.blames.push_back(spoil(p.plan, m));
    p.description += "\n  mistake " + std::to_string(m) + ": " + p.blames.back().text;
  }
  return p;
}

Verdict judge(const Case& c) {
  const Watch watch(c.text());
  const auto [plan, blames, description] = planned(c);
  Verdict v{.description = description};
  std::optional<Kernel> kernel;
  Outcome meaning;
  try {
    kernel.emplace(kernel_of(plan));
    meaning = run(plan, *kernel, Target::interpreter);
  } catch (const CompileError& e) {  // by the options' own constructors
    meaning.kind = Outcome::Kind::compile_error;
    meaning.message = e.what();
  }
  v.kind = to_string(meaning.kind);
  v.problem = problem_of(meaning, blames);
  if (!v.problem.empty() || !kernel) return v;
  if (const Outcome again = run(plan, *kernel, Target::interpreter);
      !difference(plan, meaning, again).empty()) {
    v.problem = "called again: " + difference(plan, meaning, again);
    return v;
  }
  if (!c.emulated) return v;
  const Outcome emulated = run(plan, *kernel, Target::emulator);
  if (meaning.kind == Outcome::Kind::result && is_limit(emulated) &&
      names_a_line(emulated.message, {}, false)) {
    v.kind = "limit of the emulator";
    return v;
  }
  v.problem = problem_of(emulated, blames);
  if (v.problem.empty()) v.problem = difference(plan, meaning, emulated);
  if (!v.problem.empty()) v.problem = "emulator: " + v.problem;
  return v;
}

// ---- The smallest call that fails

// Drops what it can: mistakes, then statements.
Case shrunk(Case c) {
  for (std::size_t i = 0; i < c.mistakes.size();) {
    Case less = c;
    less.mistakes.erase(less.mistakes.begin() + static_cast<std::ptrdiff_t>(i));
    if (judge(less).problem.empty())
      ++i;
    else
      c = less;
  }
  if (c.statements < 0) c.statements = draw(c.seed).statements;
  while (c.statements > 0) {
    Case less = c;
    less.statements = c.statements - 1;
    if (judge(less).problem.empty()) break;
    c = less;
  }
  return c;
}

void report(const Case& c) {
  const Verdict v = judge(c);
  FAIL_CHECK("PALLADIUM_TEST_CALL=" << c.text() << "\n" << v.description << "\n" << v.problem);
}

// ---- Which calls

std::vector<Case> drawn(std::uint64_t first, std::uint64_t last) {
  std::vector<Case> cases;
  for (std::uint64_t seed = first; seed < last; ++seed) {
    Case c{.seed = seed, .emulated = is_emulated(seed)};
    for (int m = 0; m < mistakes_of(seed); ++m) c.mistakes.push_back(m);
    cases.push_back(c);
  }
  return cases;
}

Case parsed(const std::string& text) {
  Case c{.emulated = true};
  std::istringstream words(text);
  std::string seed, mistakes, statements, number;
  std::getline(words, seed, '/');
  std::getline(words, mistakes, '/');
  std::getline(words, statements, '/');
  c.seed = std::stoull(seed);
  std::istringstream list(mistakes);
  while (std::getline(list, number, ',')) c.mistakes.push_back(std::stoi(number));
  if (text.find('/') == std::string::npos)
    for (int m = 0; m < mistakes_of(c.seed); ++m) c.mistakes.push_back(m);
  if (!statements.empty()) c.statements = std::stoi(statements);
  return c;
}

std::vector<Case> asked() {
  if (const char* one = std::getenv("PALLADIUM_TEST_CALL")) return {parsed(one)};
  const char* many = std::getenv("PALLADIUM_TEST_CALLS");
  if (!many) return drawn(1, 151);
  char* end = nullptr;
  const std::uint64_t n = std::strtoull(many, &end, 10);
  return *end == '-' ? drawn(n, std::strtoull(end + 1, nullptr, 10)) : drawn(1, n + 1);
}

}  // namespace

TEST_CASE("random calls end in one result on all targets or in an error that blames a line") {
  std::map<std::string, int> kinds;
  int valid = 0, emulated = 0, failed = 0;
  const std::vector<Case> cases = asked();
  if (cases.size() == 1) {  // before it can crash
    const Planned p = planned(cases[0]);
    std::fprintf(stderr, "%s\n", p.description.c_str());
    std::fprintf(stderr, "%s\n", lowered_text(p.plan).c_str());
  }
  for (const Case& c : cases) {
    INFO("PALLADIUM_TEST_CALL=" << c.text());  // for what crashes
    const Verdict v = judge(c);
    ++kinds[v.kind];
    valid += c.mistakes.empty();
    emulated += c.emulated;
    if (v.problem.empty()) continue;
    report(cases.size() > 1 && ++failed <= 10 ? shrunk(c) : c);
  }
  std::string text;
  for (const auto& [kind, count] : kinds) text += fmt::format(", {} {}", count, kind);
  WARN(cases.size() << " calls, " << valid << " valid, " << emulated << " emulated" << text);
  if (cases.size() >= 100) {
    CHECK(kinds["result"] * 3 > static_cast<int>(cases.size()));
    CHECK(kinds["CompileError"] * 5 > static_cast<int>(cases.size()));
  }
}
