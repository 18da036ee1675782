#include "runtime/fiber/fiber.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "palladium/error.hpp"

using palladium::fiber::Fiber;
using palladium::fiber::Scheduler;

TEST_CASE("fibers run in order of spawning and interleave at yields") {
  Scheduler s;
  std::string order;
  for (char name : {'a', 'b', 'c'}) {
    s.spawn([&, name] {
      for (int i = 0; i < 3; ++i) {
        order += name;
        s.yield();
      }
    });
  }
  s.run();
  CHECK(order == "abcabcabc");
  CHECK(s.live() == 0);
}

TEST_CASE("a running fiber knows whose it is") {
  Scheduler s;
  int a = 1, b = 2;
  std::vector<int> seen;
  for (int* owner : {&a, &b}) {
    s.spawn(
        [&] {
          s.yield();
          seen.push_back(*static_cast<int*>(s.current()->owner()));
        },
        owner);
  }
  s.spawn([&] { seen.push_back(s.current()->owner() == nullptr ? 0 : -1); });
  s.run();
  CHECK(seen == std::vector<int>{0, 1, 2});
}

TEST_CASE("a parked fiber sleeps until it is unparked") {
  Scheduler s;
  std::string order;
  int object = 0;
  Fiber& sleeper = s.spawn([&] {
    order += "sleep ";
    s.park(&object);
    order += "awake ";
  });
  s.spawn([&] {
    CHECK(sleeper.parked());
    CHECK(sleeper.waits_on() == &object);
    order += "wake ";
    s.unpark(sleeper);
    order += "on ";
  });
  s.run();
  CHECK(order == "sleep wake on awake ");
}

TEST_CASE("fibers may spawn fibers and a scheduler may run again") {
  Scheduler s;
  int sum = 0;
  for (int round = 0; round < 3; ++round) {
    s.spawn([&] {
      for (int i = 0; i < 100; ++i) {
        s.spawn([&sum, &s] {
          s.yield();
          ++sum;
        });
      }
    });
    s.run();
  }
  CHECK(sum == 300);
}

namespace {
struct CountsDeath {
  int& deaths;
  ~CountsDeath() { ++deaths; }
};
}  // namespace

TEST_CASE("an exception in a fiber reaches the caller of run and the other stacks are unwound") {
  Scheduler s;
  int deaths = 0, after = 0;
  for (int i = 0; i < 4; ++i) {
    s.spawn([&] {
      CountsDeath local{deaths};
      try {
        s.park();
      } catch (const std::exception&) {  // the unwinding is no std::exception
        ++after;
      }
      ++after;
    });
  }
  s.spawn([&] {
    CountsDeath local{deaths};
    throw std::runtime_error("boom");
  });
  s.spawn([&] { ++after; });  // never started
  try {
    s.run();
    FAIL("no exception");
  } catch (const std::runtime_error& e) {
    CHECK(std::string(e.what()) == "boom");
  }
  CHECK(deaths == 5);
  CHECK(after == 0);
  s.spawn([&] { after = 7; });
  s.run();
  CHECK(after == 7);
}

TEST_CASE("a fiber may yield while it handles an exception") {
  Scheduler s;
  std::string seen;
  for (const char* name : {"x", "y"}) {
    s.spawn([&, name] {
      try {
        throw std::runtime_error(name);
      } catch (...) {
        s.yield();
        try {
          throw;
        } catch (const std::runtime_error& e) {
          seen += e.what();
        }
      }
    });
  }
  s.run();
  CHECK(seen == "xy");
}

TEST_CASE("a deadlock is an error, and the callback may name it or end it") {
  Scheduler s;
  s.spawn([&] { s.park(); });
  CHECK_THROWS_AS(s.run(), palladium::InternalError);

  s.on_deadlock([](Scheduler& all) {
    throw std::runtime_error(std::to_string(all.live()) + " of " +
                             std::to_string(all.fibers().size()) + " wait");
  });
  s.spawn([&] { s.park(); });
  s.spawn([] {});
  try {
    s.run();
    FAIL("no exception");
  } catch (const std::runtime_error& e) {
    CHECK(std::string(e.what()) == "1 of 2 wait");
  }

  int woken = 0;
  s.on_deadlock([](Scheduler& all) {
    for (auto& fiber : all.fibers()) all.unpark(*fiber);
  });
  for (int i = 0; i < 3; ++i) {
    s.spawn([&] {
      s.park();
      ++woken;
    });
  }
  s.run();
  CHECK(woken == 3);
}

TEST_CASE("each fiber has its own stack, on every thread, and schedulers nest") {
  auto deep = [](auto&& self, int n) -> int {
    volatile char page[512] = {};
    page[0] = 1;
    return n == 0 ? 0 : self(self, n - 1) + page[0];
  };
  auto work = [&](int& out) {
    Scheduler outer({.stack_bytes = 128 * 1024});
    for (int i = 0; i < 40; ++i) {
      outer.spawn([&] {
        int depth = 0;
        Scheduler inner({.stack_bytes = 64 * 1024});
        for (int j = 0; j < 3; ++j) {
          inner.spawn([&] {
            inner.yield();
            depth += deep(deep, 50);
          });
        }
        outer.yield();
        inner.run();
        outer.yield();
        out += depth;
      });
    }
    outer.run();
  };
  int a = 0, b = 0;
  std::thread other([&] { work(a); });
  work(b);
  other.join();
  CHECK(a == 40 * 3 * 50);
  CHECK(b == a);
}

namespace {
using palladium::fiber::Stack;

template <class Context>
struct PingPong {
  Context outside, inside;
  double value = 0;
  void (*swap)(Context&, Context&);
  static void entry(void* p) {
    auto& self = *static_cast<PingPong*>(p);
    for (double step = 1.5;; step *= 2) {
      self.value += step;
      self.swap(self.inside, self.outside);
    }
  }
  double run() {
    for (int i = 0; i < 4; ++i) swap(outside, inside);
    return value;
  }
};
}  // namespace

TEST_CASE("the portable switch does what the assembly one does") {
  namespace portable = palladium::fiber::portable;
  Stack stack = palladium::fiber::take_stack(64 * 1024);
  PingPong<portable::Context> p{};
  p.swap = &portable::swap;
  portable::make(p.inside, stack, stack.low + stack.bytes, &p.entry, &p);
  CHECK(p.run() == 1.5 * 15);
#if defined(__x86_64__)
  namespace assembly = palladium::fiber::assembly;
  PingPong<assembly::Context> a{};
  a.swap = &assembly::swap;
  assembly::make(a.inside, stack, stack.low + stack.bytes, &a.entry, &a);
  CHECK(a.run() == 1.5 * 15);
#endif
  palladium::fiber::return_stack(stack);
}

TEST_CASE("returned stacks are handed out again") {
  Stack first = palladium::fiber::take_stack(100 * 1024);
  CHECK(first.bytes >= 100 * 1024);
  first.low[0] = first.low[first.bytes - 1] = std::byte{1};
  palladium::fiber::return_stack(first);
  Stack second = palladium::fiber::take_stack(100 * 1024);
  CHECK(second.low == first.low);
  palladium::fiber::return_stack(second);
}
