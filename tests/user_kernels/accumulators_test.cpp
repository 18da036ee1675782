// Sums that products are added to in scratch or in an output, and what else a body does with them:
// interpreter and emulator agree for any number of iterations, races on.
#include <algorithm>

#include <catch2/catch_test_macros.hpp>

#include "codegen/base/format.hpp"
#include "tests/user_kernels/along_k.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

struct Case {
  const char* name;
  StepBody body;
  bool each = false;
};

// What stands between the store that begins the sum and the one that hands it on.
const Case sums[] = {
    {"added up", [](const Step& t) { t.s[_] += t.product(); }},
    {"the sum behind the product", [](const Step& t) { t.s[_] = t.product() + t.s[_]; }},
    {"subtracted", [](const Step& t) { t.s[_] = t.s[_] - t.product(); }},
    {"subtracted from", [](const Step& t) { t.s[_] = t.product() - t.s[_]; }},
    {"stored under a condition",
     [](const Step& t) {
       const Value p = t.product();
       when(t.k % 2 == 0, [&] { t.s[_] = t.s[_] + p; });
     }},
    {"stored under a condition, loaded under none",
     [](const Step& t) {
       const Value x = t.s[_], p = t.product();
       when(t.k % 2 == 0, [&] { t.s[_] = x + p; });
     }},
    {"all under a condition",
     [](const Step& t) { when(t.k % 2 == 0, [&] { t.s[_] += t.product(); }); }},
    {"one of two branches",
     [](const Step& t) {
       cond(
           t.k % 2 == 0, [&] { t.s[_] += t.product(); }, [&] { t.s[_] = t.s[_] - t.product(); });
     }},
    {"read between load and store",
     [](const Step& t) {
       const Value x = t.s[_], p = t.product();
       t.each[_] = t.s[_] * 2;
       t.s[_] = x + p;
     },
     true},
    {"read between sum and store",
     [](const Step& t) {
       const Value sum = t.s[_] + t.product();
       t.each[_] = t.s[_];
       t.s[_] = sum;
     },
     true},
    {"read before, used behind the store",
     [](const Step& t) {
       const Value r = t.s[_];
       t.s[_] += t.product();
       t.each[_] = r;
     },
     true},
    {"read before, used before",
     [](const Step& t) {
       t.each[_] = t.s[_];
       t.s[_] += t.product();
     },
     true},
    {"computed before, used on both sides",
     [](const Step& t) {
       const Value r = t.s[_] * 2 + 1;
       when(t.k == 1, [&] { t.each[_] = r * 3; });
       t.s[_] += t.product();
       when(t.k != 1, [&] { t.each[_] = r; });
     },
     true},
    {"folded before, used behind the store",
     [](const Step& t) {
       const Value r = max(t.s[_], {.axis = {1}, .keepdims = true});
       t.s[_] += t.product();
       t.each[_] = t.s[_] - r;
     },
     true},
    {"read behind the store",
     [](const Step& t) {
       t.s[_] += t.product();
       t.each[_] = t.s[_];
     },
     true},
    {"read behind the store under a condition",
     [](const Step& t) {
       t.s[_] += t.product();
       when(t.k != 1, [&] { t.each[_] = t.s[_] * 2; });
     },
     true},
    {"changed behind the store",
     [](const Step& t) {
       t.s[_] += t.product();
       t.s[_] = t.s[_] * 0.5f;
     }},
    {"added to itself",
     [](const Step& t) {
       const Value r = t.s[_];
       t.s[_] += t.product();
       t.s[_] = t.s[_] + r;
     }},
    {"two products, one behind the other",
     [](const Step& t) {
       t.s[_] += t.product();
       t.s[_] += t.second();
     }},
    {"two products in one sum", [](const Step& t) { t.s[_] = t.s[_] + t.product() + t.second(); }},
    {"two products on both sides",
     [](const Step& t) { t.s[_] = t.product() + (t.s[_] + t.second()); }},
    {"one product twice",
     [](const Step& t) {
       const Value p = t.product();
       t.s[_] += p;
       t.s[_] += p;
     }},
    {"two products, the second under a condition",
     [](const Step& t) {
       t.s[_] += t.product();
       when(t.k % 2 == 1, [&] { t.s[_] += t.second(); });
     }},
    {"two products, read between",
     [](const Step& t) {
       t.s[_] += t.product();
       t.each[_] = t.s[_];
       t.s[_] += t.second();
     },
     true},
    {"scaled before", [](const Step& t) { t.s[_] = t.s[_] * 2 + t.product(); }},
    {"scaled by the number of the iteration",
     [](const Step& t) { t.s[_] = t.s[_] * t.k.astype(f32) + t.product(); }},
    {"scaled by what is made of the operand",
     [](const Step& t) {
       const Value by = max(t.a[_].astype(f32), {.axis = {1}, .keepdims = true}) * 0.25f;
       t.s[_] = t.s[_] * by + t.product();
     }},
    {"scaled by itself", [](const Step& t) { t.s[_] = t.s[_] * t.s[_] * 0x1p-12f + t.product(); }},
    {"scaled by another load of itself",
     [](const Step& t) {
       const Value top = max(t.s[_], {.axis = {1}, .keepdims = true});
       t.s[_] = (t.s[_] - top) + t.product();
     }},
    {"scaled and read before",
     [](const Step& t) {
       t.each[_] = t.s[_] + 1;
       t.s[_] = t.s[_] * 2 + t.product();
     },
     true},
    {"scaled and read between",
     [](const Step& t) {
       const Value x = t.s[_] * 2;
       t.each[_] = x;
       t.s[_] = x + t.product();
     },
     true},
    {"begun anew where a value says so",
     [](const Step& t) { t.s[_] = where(t.k == 2, 0.0f, t.s[_]) + t.product(); }},
    {"scaled under a condition in front",
     [](const Step& t) {
       when(t.k == 1, [&] { t.s[_] = t.s[_] * 2; });
       t.s[_] += t.product();
     }},
    {"the product scaled", [](const Step& t) { t.s[_] += t.product() * 2; }},
    {"the product used otherwise",
     [](const Step& t) {
       const Value p = t.product();
       t.s[_] += p;
       t.each[_] = p;
     },
     true},
    {"another product under a condition, beside a sum in flight",
     [](const Step& t) {
       const Value p = t.product();
       when(t.k % 2 == 0, [&] { t.each[_] = p * 2; });
       t.s[_] += t.second();
     },
     true},
    {"in a loop of the body",
     [](const Step& t) {
       loop(0, 2, [&](Index i) {
         t.s[_] += dot(t.a[{_, ds(i * 16, 16)}], t.b[{ds(i * 16, 16), _}]);
       });
     }},
    {"in a loop of the body, which reads what was before",
     [](const Step& t) {
       const Value x = t.s[_] + 1;
       loop(0, 2, [&](Index i) {
         t.each[_] = x + i.astype(f32);
         t.s[_] += dot(t.a[{_, ds(i * 16, 16)}], t.b[{ds(i * 16, 16), _}]);
       });
     },
     true},
    {"the carry of a loop of the body",
     [](const Step& t) {
       t.s[_] += loop(
           0, 2,
           [&](Index i, Value sum) {
             return sum + dot(t.a[{_, ds(i * 16, 16)}], t.b[{ds(i * 16, 16), _}]);
           },
           zeros({64, 64}, f32));
     }},
    {"carried from the sum and back",
     [](const Step& t) {
       t.s[_] = loop(
           0, 2,
           [&](Index i, Value sum) {
             return sum + dot(t.a[{_, ds(i * 16, 16)}], t.b[{ds(i * 16, 16), _}]);
           },
           t.s[_]);
     }},
};

// How it begins.
const Case beginnings[] = {
    {"ones",
     [](const Step& t) {
       t.start(1);
       t.s[_] += t.product();
     }},
    {"numbers by place",
     [](const Step& t) {
       when(t.first(), [&] { t.s[_] = iota(i32, {64, 64}, 1).astype(f32); });
       t.s[_] += t.product();
     }},
    {"the first product",
     [](const Step& t) {
       const Value p = t.product();
       when(t.first(), [&] { t.s[_] = p; });
       when(t.k != 0, [&] { t.s[_] += p; });
     }},
    {"a product of its own",
     [](const Step& t) {
       when(t.first(), [&] { t.s[_] = t.second(); });
       t.s[_] += t.product();
     }},
    {"in every second iteration",
     [](const Step& t) {
       when(t.k % 2 == 0, [&] { t.s[_] = zeros({64, 64}, f32); });
       t.s[_] += t.product();
     }},
    {"in two iterations",
     [](const Step& t) {
       t.start();
       when(t.k == 2, [&] { t.s[_] = full({64, 64}, 3, f32); });
       t.s[_] += t.product();
     }},
    {"in every iteration",
     [](const Step& t) {
       t.s[_] = zeros({64, 64}, f32);
       t.s[_] += t.product();
     }},
    {"behind the product",
     [](const Step& t) {
       const Value p = t.product();
       t.start();
       t.s[_] += p;
     }},
    {"in the second one, behind a sum of its own",
     [](const Step& t) {
       t.start();
       t.s[_] += t.product();
       when(t.k == 1, [&] { t.s[_] = zeros({64, 64}, f32); });
     }},
    {"twice in the first one",
     [](const Step& t) {
       t.start(1);
       t.s[_] += t.product();
       t.start(2);
     }},
    {"in the first program of both axes alone, else by the first of this one",
     [](const Step& t) {
       when((t.i == 0) & (t.k == 0), [&] { t.s[_] = full({64, 64}, 1, f32); });
       when((t.i != 0) & (t.k == 0), [&] { t.s[_] = full({64, 64}, 2, f32); });
       t.s[_] += t.product();
     }},
};

const char* name_of(Held held) {
  return held == Held::registers ? "registers" : held == Held::shared ? "shared" : "output";
}

// By default the place and the architecture alternate from case to case.
void check(const std::string& name, AlongK p, const StepBody& body, std::size_t number) {
  for (int held = 0; held < 3; ++held)
    for (const int cc : {90, 80}) {
      const std::size_t turn = number % 6;
      const bool is_turn = turn % 3 == static_cast<std::size_t>(held) && (turn < 3) == (cc == 90);
      if (!is_full() && !is_turn) continue;
      p.held = static_cast<Held>(held);
      INFO(name << ", in " << name_of(p.held) << ", on " << cc);
      try {
        const graph::Graph g = along_k(p, body);
        for (const int steps : {1, 2, 3, 5, 7}) {
          if (!is_full() && (steps == 3 || steps == 7)) continue;
          INFO(steps << " steps");
          CHECK(problem_of(g, {steps}, cc) == "");
        }
        p.steps = 4;
        if (is_full()) CHECK(problem_of(along_k(p, body), {}, cc) == "");
        p.steps = 0;
      } catch (const std::exception& e) {
        FAIL_CHECK(e.what());
      }
    }
}

}  // namespace

TEST_CASE("sums of products agree, whatever else a body does with them") {
  std::size_t number = 0;
  for (const Case& c : sums) {
    const auto body = [&](const Step& t) {
      t.start();
      c.body(t);
      t.finish();
    };
    check(c.name, {.each = c.each}, body, number++);
  }
}

TEST_CASE("sums of products agree, however they begin") {
  std::size_t number = 0;
  for (const Case& c : beginnings) {
    const auto body = [&](const Step& t) {
      c.body(t);
      t.finish();
    };
    check(c.name, {.each = c.each}, body, number++);
  }
}
