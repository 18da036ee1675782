// Kernels over meshes drawn at random: programs and threads that compute, wait for each other, hand
// on what they have and print. Interpreter and emulator give what plain loops give, line for line.
//
// PALLADIUM_TEST_CALLS=10000 tries a quarter as many; a failure says which by
// PALLADIUM_TEST_MESH=17, which tries that one again.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "codegen/base/format.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/captured_stderr.hpp"
#include "tests/support/full.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

using Numbers = std::vector<std::int32_t>;

struct Step {
  enum Kind : std::uint8_t {
    add,
    times,
    exclusive,
    largest,
    folded,
    turned,
    rolled,
    scanned,
    with_sum,
    looped,
    placed,
    branched,
    exchanged,  // with the other thread of the block
    relayed,    // through all programs in their order
    printed,
  };
  static constexpr int kinds = printed + 1;
  Kind kind = add;
  int number = 0;
};

struct Plan {
  std::uint64_t seed = 0;
  Shape grid = {};
  int programs = 1, threads = 1, elements = 1;
  std::vector<Step> steps = {};
  bool watched = false;  // by the detector of races
  bool shuffled = false;

  int places() const { return programs * threads; }
};

Plan drawn(std::uint64_t seed) {
  Random random(seed * 7919 + 3);
  Plan plan{.seed = seed};
  for (int rank = random.between(1, 2); rank > 0; --rank) {
    const int size = random.between(1, 3);
    plan.grid.push_back(size);
    plan.programs *= size;
  }
  plan.threads = random.between(1, 2);
  plan.elements = random.pick({1, 2, 3, 8, 17, 32, 64, 100});
  plan.watched = random.chance(50);
  plan.shuffled = random.chance(50);
  for (int n = random.between(2, 10); n > 0; --n) {
    const auto kind = static_cast<Step::Kind>(random.below(Step::kinds));
    plan.steps.push_back({kind, random.between(1, 9)});
  }
  return plan;
}

std::string describe(const Plan& plan) {
  std::string steps;
  for (const Step& s : plan.steps) steps += fmt::format(" {}({})", int(s.kind), s.number);
  return fmt::format("PALLADIUM_TEST_MESH={}: {} programs of {} threads, {} elements, steps{}",
                     plan.seed, plan.programs, plan.threads, plan.elements, steps);
}

int count(const Plan& plan, Step::Kind kind) {
  return static_cast<int>(
      std::ranges::count_if(plan.steps, [=](const Step& s) { return s.kind == kind; }));
}

// ---- As a kernel

struct Place {
  Value program, thread;
};

Value computed(const Step& s, const Value& v, const Place& at) {
  switch (s.kind) {
  case Step::add: return v + s.number;
  case Step::times: return v * s.number;
  case Step::exclusive: return v ^ s.number;
  case Step::largest: return pl::maximum(v, s.number);
  case Step::folded: return pl::where(v > s.number, v, s.number - v);
  case Step::turned: return pl::flip(v);
  case Step::rolled: return pl::roll(v, s.number);
  case Step::scanned: return pl::cumsum(v, {.axis = 0});
  case Step::with_sum: return v + pl::sum(v);
  case Step::looped: {
    const auto next = [](Index i, Value carry) { return carry * 3 + i; };
    return pl::loop(0, s.number, next, v);
  }
  case Step::placed: return v + at.program * 2 + at.thread;
  case Step::branched: {
    const Value w = v;
    return pl::cond(
        at.program % 2 == 0, [=] { return w + s.number; }, [=] { return w * 5; });
  }
  default: return v;
  }
}

Value exchanged(const Plan& plan, const Step& s, const Value& v, const Place& at, Scratch& scratch,
                int number) {
  const Value other = plan.threads - 1 - at.thread;
  scratch["seats"][{number, at.thread, _}] = v;
  pl::semaphore_signal(scratch["told"].at({number, at.thread}), s.number);
  pl::semaphore_wait(scratch["told"].at({number, other}), s.number);
  const Value theirs = scratch["seats"][{number, other, _}];
  return v + theirs;
}

Value relayed(const Plan& plan, const Value& v, const Place& at) {
  const Ref sum = pl::get_global(gpu::GMEM({plan.threads, plan.elements}, i32));
  const Ref turn = pl::get_global(gpu::SemaphoreType::REGULAR({plan.threads}));
  pl::semaphore_wait(turn.at(at.thread), at.program, {.decrement = false});
  const Value before = sum[{at.thread, _}];
  const Value all = before + v;
  sum[{at.thread, _}] = all;
  pl::semaphore_signal(turn.at(at.thread));
  return all;
}

Kernel kernel_of(const Plan& plan) {
  const std::vector<std::string> names =
      plan.grid.rank() == 1 ? std::vector<std::string>{"a"} : std::vector<std::string>{"a", "b"};
  const std::int64_t exchanges = std::max(1, count(plan, Step::exchanged));
  gpu::KernelOptions options{
      .name = "mesh",
      .out_type = {{plan.programs, plan.threads, plan.elements}, i32},
      .num_threads = plan.threads,
      .thread_name = "wg",
      .scratch_types = {{"seats", gpu::SMEM({exchanges, plan.threads, plan.elements}, i32)},
                        {"told", gpu::SemaphoreType::REGULAR({exchanges, plan.threads})}}};
  for (int d = 0; d < plan.grid.rank(); ++d) options.grid.push_back(plan.grid[d]);
  for (const std::string& name : names) options.grid_names.push_back(name);
  options.interpret.params.detect_races = plan.watched;
  if (plan.shuffled) options.interpret.params.random_seed = static_cast<std::int64_t>(plan.seed);
  return gpu::kernel(
      [plan](Ref x, Ref o, Scratch scratch) {
        const Value first = axis_index("a");
        const Place at{
            plan.grid.rank() == 1 ? first : first * plan.grid[1].value() + axis_index("b"),
            axis_index("wg")};
        Value v = x[{at.program, at.thread, _}];
        int exchange = 0;
        for (const Step& s : plan.steps) {
          if (s.kind == Step::exchanged) {
            v = exchanged(plan, s, v, at, scratch, exchange++);
          } else if (s.kind == Step::relayed) {
            v = relayed(plan, v, at);
          } else if (s.kind == Step::printed) {
            pl::debug_print("{} of {}: {}", at.thread, at.program, pl::sum(v));
          } else {
            v = computed(s, v, at);
          }
        }
        o[{at.program, at.thread, _}] = v;
      },
      options);
}

// ---- As plain loops

std::int32_t wrapped(std::int64_t x) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(x)));
}

std::int32_t sum_of(const Numbers& v) {
  return wrapped(std::accumulate(v.begin(), v.end(), std::int64_t{0}));
}

std::int32_t computed(const Step& s, std::int64_t x, int program, int thread) {
  switch (s.kind) {
  case Step::add: return wrapped(x + s.number);
  case Step::times: return wrapped(x * s.number);
  case Step::exclusive: return wrapped(x ^ s.number);
  case Step::largest: return wrapped(std::max<std::int64_t>(x, s.number));
  case Step::folded: return wrapped(x > s.number ? x : s.number - x);
  case Step::looped:
    for (int i = 0; i < s.number; ++i) x = wrapped(x * 3 + i);
    return wrapped(x);
  case Step::placed: return wrapped(x + program * 2 + thread);
  case Step::branched: return wrapped(program % 2 == 0 ? x + s.number : x * 5);
  default: return wrapped(x);
  }
}

void compute(const Step& s, Numbers& v, int program, int thread) {
  const auto n = static_cast<std::ptrdiff_t>(v.size());
  switch (s.kind) {
  case Step::turned: std::ranges::reverse(v); return;
  case Step::rolled: std::rotate(v.begin(), v.begin() + (n - s.number % n) % n, v.end()); return;
  case Step::scanned:
    for (std::size_t i = 1; i < v.size(); ++i) v[i] = wrapped(std::int64_t{v[i - 1]} + v[i]);
    return;
  case Step::with_sum: {
    const std::int32_t sum = sum_of(v);
    for (std::int32_t& x : v) x = wrapped(std::int64_t{x} + sum);
    return;
  }
  default:
    for (std::int32_t& x : v) x = computed(s, x, program, thread);
  }
}

void add_to(Numbers& v, const Numbers& w) {
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = wrapped(std::int64_t{v[i]} + w[i]);
}

/// What every place holds at the end, and the lines that are printed, sorted.
struct Expected {
  Numbers numbers;
  std::vector<std::string> lines;
};

Expected expected_of(const Plan& plan, const Numbers& x) {
  std::vector<Numbers> all;  // by place
  const auto n = static_cast<std::size_t>(plan.elements);
  for (std::size_t p = 0; p < static_cast<std::size_t>(plan.places()); ++p)
    all.emplace_back(x.begin() + static_cast<std::ptrdiff_t>(p * n),
                     x.begin() + static_cast<std::ptrdiff_t>((p + 1) * n));
  Expected e;
  const auto threads = static_cast<std::size_t>(plan.threads);
  for (const Step& s : plan.steps) {
    const std::vector<Numbers> before = all;
    for (std::size_t p = 0; p < all.size(); ++p) {
      const std::size_t program = p / threads, thread = p % threads;
      if (s.kind == Step::exchanged)
        add_to(all[p], before[program * threads + threads - 1 - thread]);
      else if (s.kind == Step::relayed && program > 0)
        add_to(all[p], all[p - threads]);
      else if (s.kind == Step::printed)
        e.lines.push_back(fmt::format("{} of {}: {}", thread, program, sum_of(all[p])));
      else
        compute(s, all[p], static_cast<int>(program), static_cast<int>(thread));
    }
  }
  for (const Numbers& v : all) e.numbers.insert(e.numbers.end(), v.begin(), v.end());
  std::ranges::sort(e.lines);
  return e;
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::ranges::sort(lines);
  return lines;
}

void check(const Plan& plan, const Kernel& kernel, Target target) {
  Random random(plan.seed);
  const Array x = make_array<std::int32_t>({plan.programs, plan.threads, plan.elements},
                                           [&](std::int64_t) { return random.between(-99, 99); });
  const auto given = x.values<const std::int32_t>();
  const Expected expected = expected_of(plan, {given.begin(), given.end()});
  INFO(describe(plan) << " on " << to_string(target));
  Array o;
  std::vector<std::string> lines;
  {
    const CapturedStdout captured;
    o = kernel.on(target)(x);
    lines = sorted_lines(captured.text());
  }
  const auto got = o.values<const std::int32_t>();
  CHECK(Numbers(got.begin(), got.end()) == expected.numbers);
  CHECK(lines == expected.lines);
}

}  // namespace

TEST_CASE("kernels over meshes drawn at random give and print what plain loops do") {
  std::uint64_t first = 1, last = 51;
  if (const char* many = std::getenv("PALLADIUM_TEST_CALLS"))
    last = 1 + std::strtoull(many, nullptr, 10) / 4;
  const char* one = std::getenv("PALLADIUM_TEST_MESH");
  if (one != nullptr) last = 1 + (first = std::strtoull(one, nullptr, 10));
  for (std::uint64_t seed = first; seed < last; ++seed) {
    const Plan plan = drawn(seed);
    INFO(describe(plan));
    const Kernel kernel = kernel_of(plan);
    check(plan, kernel, Target::interpreter);
    if (one != nullptr || is_emulated(seed)) check(plan, kernel, Target::emulator);
  }
}
