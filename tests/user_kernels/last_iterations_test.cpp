// What a body does in its last iteration along an axis, and where it does it.
#include <catch2/catch_test_macros.hpp>

#include "codegen/base/format.hpp"
#include "tests/user_kernels/along_k.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

struct Asked {
  const char* name;
  std::function<Value(const Step&)> condition;
  bool is_last = true;  // the loop is left for it
};

const Asked conditions[] = {
    {"k == n - 1", [](const Step& t) { return t.k == t.n - 1; }},
    {"n - 1 == k", [](const Step& t) { return t.n - 1 == t.k; }},
    {"k + 1 == n", [](const Step& t) { return t.k + 1 == t.n; }},
    {"n == k + 1", [](const Step& t) { return t.n == t.k + 1; }},
    {"k + 3 == n + 2", [](const Step& t) { return t.k + 3 == t.n + 2; }},
    {"1 + k == n", [](const Step& t) { return 1 + t.k == t.n; }},
    {"k == n - 2", [](const Step& t) { return t.k == t.n - 2; }, false},
    {"k == n", [](const Step& t) { return t.k == t.n; }, false},
    {"k + 1 == n - 1", [](const Step& t) { return t.k + 1 == t.n - 1; }, false},
    {"k + 2 == n", [](const Step& t) { return t.k + 2 == t.n; }, false},
    {"k == n + 1", [](const Step& t) { return t.k == t.n + 1; }, false},
    {"1 - k == n", [](const Step& t) { return 1 - t.k == t.n; }, false},
    {"k == 1 - n", [](const Step& t) { return t.k == 1 - t.n; }, false},
    {"k >= n - 1", [](const Step& t) { return t.k >= t.n - 1; }, false},
    {"k != n - 1", [](const Step& t) { return t.k != t.n - 1; }, false},
    {"k == 1", [](const Step& t) { return t.k == 1; }, false},
    {"i == n - 1", [](const Step& t) { return t.i == t.n - 1; }, false},
    {"k == rows - 1", [](const Step& t) { return t.k == num_programs(0) - 1; }, false},
    {"k == n - 1 and i == 1", [](const Step& t) { return (t.k == t.n - 1) & (t.i == 1); }, false},
    {"k - n == -1", [](const Step& t) { return t.k - t.n == -1; }, false},
    {"k == n - i - 1", [](const Step& t) { return t.k == t.n - t.i - 1; }, false},
};

// Whether a condition stands in the loop over the axis.
bool has_condition(const lowered::Statements& list) {
  bool found = false;
  for (const lowered::Statement& s : list) {
    found = found || std::holds_alternative<lowered::When>(s.what);
    lowered::for_each_body(
        s, [&](const lowered::Statements& body) { found = found || has_condition(body); });
  }
  return found;
}

bool asks_in_loop(const graph::Graph& g, int cc) {
  const lowered::Program l = cuda::lower(g, {.compute_capability = cc});
  bool found = false;
  const std::function<void(const lowered::Statements&)> visit = [&](const auto& list) {
    for (const lowered::Statement& s : list) {
      const auto* const loop = std::get_if<lowered::GridLoop>(&s.what);
      if (loop != nullptr && loop->axis == 1)
        found = found || has_condition(loop->body);
      else
        lowered::for_each_body(s, visit);
    }
  };
  for_each_list(l, visit);
  return found;
}

void check(const std::string& name, const graph::Graph& g, std::size_t number,
           const std::vector<int>& steps = {1, 2, 3, 5}) {
  for (const int cc : {90, 80}) {
    if (!is_full() && (number % 2 == 0) != (cc == 90)) continue;
    INFO(name << " on " << cc);
    try {
      for (const int n : steps) {
        INFO(n << " steps");
        CHECK(problem_of(g, {n}, cc) == "");
        if (g.num_symbols == 0) break;
      }
    } catch (const std::exception& e) {
      FAIL_CHECK(e.what());
    }
  }
}

struct Case {
  const char* name;
  StepBody body;  // behind the sum
  bool each = false, alias = false;
};

const Case lasts[] = {
    {"the sum", [](const Step& t) { t.finish(); }},
    {"an operand's block",
     [](const Step& t) {
       when(t.last(), [&] {
         t.o[_] = t.s[_] + pl::sum(t.a[_].astype(f32), {.axis = {1}, .keepdims = true});
       });
     }},
    {"the number of the iteration",
     [](const Step& t) { when(t.last(), [&] { t.o[_] = t.s[_] + t.k.astype(f32); }); }},
    {"a number that is computed of it",
     [](const Step& t) {
       const Value x = (t.k * 3 + 1).astype(f32);
       when(t.last(), [&] { t.o[_] = t.s[_] * x; });
     }},
    {"a loop as long as it",
     [](const Step& t) {
       when(t.last(), [&] {
         t.o[_] = loop(
             0, t.k, [](Index j, Value x) { return x + j.astype(f32); }, t.s[_]);
       });
     }},
    {"a place that it says",
     [](const Step& t) {
       when(t.last(), [&] { t.o[_] = t.s[_]; });
       when(t.last(), [&] { t.o[{t.k % 8, _}] = full({64}, 7, f32); });
     }},
    {"what the loop computes of the block",
     [](const Step& t) {
       const Value row = pl::sum(t.a[_].astype(f32), {.axis = {1}, .keepdims = true});
       t.each[_] = t.s[_] + row;
       when(t.last(), [&] { t.o[_] = t.s[_] - row; });
     },
     true},
    {"the product of the last iteration",
     [](const Step& t) {
       const Value p = t.second();
       t.s[_] += p;
       when(t.last(), [&] { t.o[_] = t.s[_] + p; });
     }},
    {"a product of its own",
     [](const Step& t) { when(t.last(), [&] { t.o[_] = t.s[_] + t.second(); }); }},
    {"the other axis",
     [](const Step& t) { when(t.last(), [&] { t.o[_] = t.s[_] * (t.i + 1).astype(f32); }); }},
    {"the number of iterations",
     [](const Step& t) { when(t.last(), [&] { t.o[_] = t.s[_] * t.n.astype(f32); }); }},
    {"a block of the last iteration",
     [](const Step& t) {
       when(t.last(), [&] { t.o[_] = t.s[_]; });
       when(t.last(), [&] { t.each[_] = t.s[_] * 2; });
     },
     true},
    {"what is stored elsewhere too",
     [](const Step& t) {
       when(t.first(), [&] { t.o[_] = full({64, 64}, 9, f32); });
       t.finish();
     }},
    {"what every iteration stores",
     [](const Step& t) {
       t.o[_] = t.s[_];
       when(t.last(), [&] { t.o[_] = t.s[_] * 2; });
     }},
    {"a part of the output",
     [](const Step& t) {
       when(t.first(), [&] { t.o[_] = full({64, 64}, 9, f32); });
       when(t.last(), [&] { t.o[{ds(0, 32), _}] = full({32, 64}, 3, f32); });
     }},
    {"a part of the output alone",
     [](const Step& t) { when(t.last(), [&] {
                           t.o[{ds(16, 32), _}] = full({32, 64}, 3, f32);
                         }); }},
    {"two parts of the output",
     [](const Step& t) {
       when(t.last(), [&] {
         t.o[{ds(0, 32), _}] = full({32, 64}, 3, f32);
         t.o[{ds(32, 32), _}] = full({32, 64}, 4, f32);
       });
     }},
    {"two stores, one over the other",
     [](const Step& t) {
       when(t.last(), [&] {
         t.o[_] = t.s[_];
         t.o[{ds(32, 32), _}] = full({32, 64}, 4, f32);
       });
     }},
    {"an output that it reads",
     [](const Step& t) {
       when(t.first(), [&] { t.o[_] = full({64, 64}, 1, f32); });
       when(t.last(), [&] { t.o[_] = t.o[_] + t.s[_]; });
     }},
    {"an output that it reads back",
     [](const Step& t) {
       when(t.last(), [&] {
         t.o[_] = t.s[_];
         t.o[_] = t.o[_] * 2;
       });
     }},
    {"an output that the next iteration reads",
     [](const Step& t) {
       when(t.first(), [&] { t.o[_] = full({64, 64}, 1, f32); });
       t.each[_] = t.o[_];
       when(t.last(), [&] { t.o[_] = t.s[_]; });
     },
     true},
    {"in front of what all do",
     [](const Step& t) {
       t.finish();
       t.each[_] = t.s[_];
     },
     true},
    {"in front of a change of the sum",
     [](const Step& t) {
       t.finish();
       t.s[_] = t.s[_] * 2;
     }},
    {"in front of another sum",
     [](const Step& t) {
       t.finish();
       t.s[_] += t.second();
     }},
    {"a condition on the other axis in it",
     [](const Step& t) { when(t.last(), [&] { when(t.i == 1, [&] { t.o[_] = t.s[_]; }); }); }},
    {"in a condition on the other axis",
     [](const Step& t) { when(t.i == 1, [&] { when(t.last(), [&] { t.o[_] = t.s[_]; }); }); }},
    {"a condition on data in it",
     [](const Step& t) {
       when(t.last(), [&] { when(pl::sum(t.s[_]) > 0, [&] { t.o[_] = t.s[_]; }); });
     }},
    {"changes the sum, and stores it",
     [](const Step& t) {
       when(t.last(), [&] {
         t.s[_] = t.s[_] * 2;
         t.o[_] = t.s[_] + 1;
       });
     }},
    {"an aliased output, which the first iteration reads",
     [](const Step& t) {
       when(t.first(), [&] { t.s[_] = t.s[_] + t.c[_]; });
       t.finish();
     },
     false, true},
    {"an aliased output, which it reads",
     [](const Step& t) { when(t.last(), [&] { t.o[_] = t.s[_] + t.c[_]; }); }, false, true},
    {"an aliased output, which every iteration reads",
     [](const Step& t) {
       t.each[_] = t.c[_] + t.s[_];
       when(t.last(), [&] { t.o[_] = t.s[_]; });
     },
     true, true},
    {"an aliased output of which it stores a part",
     [](const Step& t) { when(t.last(), [&] {
                           t.o[{ds(0, 32), _}] = full({32, 64}, 4, f32);
                         }); },
     false, true},
};

}  // namespace

TEST_CASE("what is done where the number of an iteration says so agrees, however it is written") {
  std::size_t number = 0;
  for (const Asked& c : conditions) {
    const auto body = [&](const Step& t) {
      t.start();
      t.s[_] += t.product();
      when(c.condition(t), [&] { t.o[_] = t.s[_]; });
    };
    const graph::Graph g = along_k({}, body);
    INFO(c.name);
    CHECK(asks_in_loop(g, 90) != c.is_last);
    check(c.name, g, number++, is_full() ? std::vector{1, 2, 3, 4, 5} : std::vector{1, 2, 4});
  }
}

TEST_CASE("a number of iterations that is known says which one is the last") {
  std::size_t count = 0;
  for (const int number : {2, 3, 4}) {
    const auto body = [&](const Step& t) {
      t.start();
      t.s[_] += t.product();
      when(t.k == number, [&] { t.o[_] = t.s[_]; });
    };
    const graph::Graph g = along_k({.steps = 4}, body);
    CHECK(asks_in_loop(g, 90) == (number != 3));
    check("of four, in " + std::to_string(number), g, count++);
  }
}

TEST_CASE("what the last iteration does agrees, whatever it asks for") {
  std::size_t number = 0;
  for (const Case& c : lasts) {
    const auto body = [&](const Step& t) {
      t.start();
      t.s[_] += t.product();
      c.body(t);
    };
    const auto held = static_cast<Held>(number % 2);
    check(c.name, along_k({.held = held, .each = c.each, .alias = c.alias}, body), number);
    if (is_full())
      check(c.name, along_k({.held = Held(1 - number % 2), .each = c.each, .alias = c.alias}, body),
            number);
    ++number;
  }
}
