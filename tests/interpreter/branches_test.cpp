// cond, switch_ and while_loop: on the interpreter, and their text in the emulator.
#include <array>
#include <functional>

#include "tests/interpreter/tensors.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

// o = what the body makes of n, for each n.
std::vector<double> for_each_number(const std::vector<int>& numbers,
                                    const std::function<Value(Value)>& body) {
  std::vector<double> results;
  for (const int n : numbers) {
    Tensor x(i32, {1}, {double(n)}), o(f32, {1});
    run([=](Ref x, Ref o) { o[0] = body(x[0]).astype(f32); }, {}, {&x}, {&o});
    results.push_back(o[0]);
  }
  return results;
}

}  // namespace

TEST_CASE("switch_ runs the branch whose number the index is, or the nearest [C83]") {
  const auto chosen = for_each_number({-7, 0, 1, 2, 3, INT32_MAX, INT32_MIN}, [](Value i) {
    const Value x = i32(6);
    return switch_(
        i, [&] { return x * x; }, [&] { return -x; }, [&] { return -(x * x); });
  });
  CHECK(chosen == std::vector<double>{36, 36, -6, -36, -36, -36, 36});
}

TEST_CASE("switch_ gives matrices [C83]") {
  for (int which = 0; which < 3; ++which) {
    Tensor i(i32, {1}, {double(which)}), x = arange(f32, {64, 128}), o(f32, {64, 128});
    Tensor y(f32, {64, 128}, [](std::int64_t k) { return double(8192 - 2 * k); });
    run(
        [](Ref i, Ref x, Ref y, Ref o) {
          const Value a = x[_], b = y[_];
          o[_] = switch_(
              i[0], [&] { return (a - b) * (a - b); }, [&] { return -pl::abs(a - b); },
              [&] { return pl::sqrt(pl::abs(a - b)); });
        },
        {}, {&i, &x, &y}, {&o});
    for (const std::int64_t k : {0, 1, 2730, 2731, 8191}) {
      const double d = 3 * double(k) - 8192;
      const double expected[] = {d * d, -std::fabs(d), std::sqrt(std::fabs(float(d)))};
      CHECK(float(o[k]) == float(expected[which]));
    }
  }
}

TEST_CASE("an index of any integer dtype that no i32 holds is the nearest branch") {
  Tensor wide(i64, {2}, {5e12, -5e12}), o(i32, {2});
  run(
      [](Ref wide, Ref o) {
        for (const int k : {0, 1})
          o[k] = switch_(
              wide[k], [] { return i32(10); }, [] { return i32(20); }, [] { return i32(30); });
      },
      {}, {&wide}, {&o});
  CHECK(o.numbers() == std::vector<double>{30, 10});
}

TEST_CASE("cond gives arrays of one branch, whatever the other would have done [C92]") {
  for (const int odd : {0, 1}) {
    Tensor x = arange(f32, {256}), o(f32, {256}), p(f32, {1});
    x.set(0, odd);
    run(
        [](Ref x, Ref o, Ref p) {
          const Value v = x[_], s = sum(v);
          const auto [a, b] = cond(
              s.astype(i32) % 2 == 0, [&] { return carry(s * 2, v); },
              [&] { return carry(s, -v); });
          o[_] = b + a;
          p[0] = a;
        },
        {}, {&x}, {&o, &p});
    const double s = 32640 + odd;
    CHECK(p[0] == (odd ? s : 2 * s));
    for (int k = 1; k < 256; ++k) CHECK(o[k] == (odd ? -k + s : k + 2 * s));
  }
}

TEST_CASE("the branches of cond may read and write Refs, and give nothing") {
  for (const int n : {0, 3}) {
    Tensor x = arange(i32, {8}), c(i32, {1}, {double(n)}), o(i32, {8});
    run(
        [](Ref x, Ref c, Ref o) {
          o[_] = -x[_];
          cond(
              c[0], [&] { o[4] = x[6]; }, [&] { o[_] = o[_] * 2; });
        },
        {}, {&x, &c}, {&o});
    for (int k = 0; k < 8; ++k) CHECK(o[k] == (n == 0 ? -2 * k : k == 4 ? 6 : -k));
  }
}

TEST_CASE("a branch that only stores stands beside one that does nothing") {
  for (const int n : {-1, 0, 1, 2, 5}) {
    Tensor c(i32, {1}, {double(n)}), o = full(i32, {4}, 9);
    run(
        [](Ref c, Ref o) {
          o[_] = i32(9) + zeros({4}, i32);
          switch_(
              c[0], [] {}, [&] { o[_] = zeros({4}, i32); }, [] {});
        },
        {}, {&c}, {&o});
    CHECK(o.numbers() == std::vector<double>(4, n == 1 ? 0 : 9));
  }
}

TEST_CASE("conditions nest in branches and in loops [C84]") {
  const auto results = for_each_number({0, 1, 2, 3, 4, 5, 6, 7}, [](Value n) {
    const auto pick = [&](auto& self, int bit) -> Value {
      if (bit < 0) return i32(0);
      return cond((n >> bit) & 1, [&] { return self(self, bit - 1) * 10 + 1; },
                  [&] { return self(self, bit - 1) * 10; });
    };
    return pl::loop(
        0, 2,
        [&](Index i, Value s) {
          return s + cond(
                         i == 0, [&] { return pick(pick, 2); }, [&] { return n; });
        },
        i32(0));
  });
  for (int n = 0; n < 8; ++n) {
    const double bits = (n & 1) * 100 + (n >> 1 & 1) * 10 + (n >> 2 & 1);
    CHECK(results[static_cast<std::size_t>(n)] == bits + n);
  }
}

TEST_CASE("a C++ bool or number decides while tracing, and the other branch is not called") {
  Tensor o(i32, {4});
  run(
      [](Ref o) {
        const auto never = []() -> Value { throw std::string("called"); };
        o[0] = cond(
            true, [] { return i32(1); }, never);
        o[1] = cond(false, never, [] { return 2; });
        o[2] = switch_(
            1, never, [] { return i32(3); }, never);
        o[3] = switch_(
            -5, [] { return i32(4); }, never);
      },
      {}, {}, {&o});
  CHECK(o.numbers() == std::vector<double>{1, 2, 3, 4});
}

TEST_CASE("branches may stand in a list, and take operands") {
  for (int n = 0; n < 4; ++n) {
    Tensor i(i32, {1}, {double(n)}), x(f32, {3}, {1, 2, 3}), o(f32, {3});
    run(
        [](Ref i, Ref x, Ref o) {
          std::vector<std::function<Value(Value, Value)>> operations = {
              [](Value a, Value b) { return a + b; }, [](Value a, Value b) { return a - b; },
              [](Value a, Value b) { return a * b; }};
          const Value v = switch_(i[0], operations, x[_], 10);
          o[_] = cond(
              i[0] == 3, [](Value a, Value b) { return a + b; }, [](Value a, Value) { return a; },
              v, x[_]);
        },
        {}, {&i, &x}, {&o});
    for (int k = 0; k < 3; ++k) {
      const double a = k + 1, of[] = {a + 10, a - 10, a * 10, a * 10 + a};
      CHECK(o[k] == of[n]);
    }
  }
}

TEST_CASE("literals take the dtype of the other branch") {
  const auto results = for_each_number({0, 1}, [](Value n) {
    const Value half = cond(
        n == 0, [] { return f16(0.5f); }, [] { return 2; });
    const Value mixed = switch_(
        n, [] { return 1; }, [] { return 0.25; });
    return half.astype(f32) + mixed * 100;
  });
  CHECK(results == std::vector<double>{100.5, 27});
}

TEST_CASE("what all branches give alike is not chosen, and what none reads is not computed") {
  const std::string text = text_of(
      [](Ref x, Ref i, Ref o) {
        const Value v = x[_];
        const auto [a, b, c] = switch_(
            i[0], [&] { return carry(v, exp(v), v + 1); }, [&] { return carry(v, v, v + 2); });
        (void)b;
        o[_] = a * c;
      },
      {.out_type = ShapeDtype{{8}, f32}}, {array({8}), array({1}, i32)});
  CHECK(text.find("exp") == std::string::npos);
  CHECK(text.find("get", text.find("get") + 1) == std::string::npos);
  CHECK(text.find("yield %") != std::string::npos);
}

TEST_CASE("an index that tracing knows leaves its branch alone") {
  const std::string text = text_of(
      [](Ref x, Ref o) {
        const Value v = x[_];
        o[_] = switch_(
            num_programs(0) - 1, [&] { return exp(v); }, [&] { return log(v); });
      },
      {.out_type = ShapeDtype{{8}, f32},
       .grid = {1},
       .in_specs = {BlockSpec()},
       .out_specs = {BlockSpec()}},
      {array({8})});
  CHECK(text.find("switch") == std::string::npos);
  CHECK(text.find("exp") != std::string::npos);
  CHECK(text.find("log") == std::string::npos);
}

TEST_CASE("products in branches and a reduction behind them") {
  for (const int n : {0, 1}) {
    Tensor c(i32, {1}, {double(n)}), a(f32, {16, 16}, [](std::int64_t k) { return k % 5; }),
        o(f32, {16});
    run(
        [](Ref c, Ref a, Ref o) {
          const Value v = a[_];
          const Value m = cond(
              c[0] == 1, [&] { return dot(v, v); }, [&] { return pl::transpose(v); });
          o[_] = pl::sum(m, {.axis = {1}});
        },
        {}, {&c, &a}, {&o});
    for (int i = 0; i < 16; ++i) {
      double expected = 0;
      for (int j = 0; j < 16; ++j)
        if (n == 0)
          expected += (16 * j + i) % 5;
        else
          for (int k = 0; k < 16; ++k) expected += double((16 * i + k) % 5) * ((16 * k + j) % 5);
      CHECK(o[i] == expected);
    }
  }
}

// ---- while_loop

TEST_CASE("while_loop goes on as long as its condition holds [C89]") {
  CHECK(for_each_number({1, 4, 100, 0, -3}, [](Value n) {
          return while_loop([&](Value i) { return i < n; }, [](Value i) { return i + 1; }, i32(0));
        }) == std::vector<double>{1, 4, 100, 0, 0});
}

TEST_CASE("while_loop reads a Ref in its condition and its body [C85]") {
  Tensor x = arange(i32, {8, 128}), o(i32, {2});
  run(
      [](Ref x, Ref o) {
        const auto [i, s] =
            while_loop([](Value i, Value s) { return (i < 1024) & (s < 1024); },
                       [&](Value i, Value s) {
                         return carry(i + 1, s + pl::sum(x[{ds(i / 128, 1), ds(i % 128, 1)}]));
                       },
                       0, i32(0));
        o[0] = s;
        o[1] = i;
      },
      {}, {&x}, {&o});
  CHECK(o.numbers() == std::vector<double>{1035, 46});

  Tensor y = arange(i32, {16}), p(i32, {16});
  run(
      [](Ref y, Ref p) {
        p[_] = y[_];
        while_loop([&](Value i) { return p[i] + i < 20; },
                   [&](Value i) {
                     p[i + 1] += 2 * i;
                     return i + 1;
                   },
                   i32(0));
      },
      {}, {&y}, {&p});
  std::vector<double> expected;
  for (int i = 0; i < 16; ++i) expected.push_back(i);
  for (std::size_t i = 0; expected[i] + double(i) < 20; ++i) expected[i + 1] += 2 * double(i);
  CHECK(p.numbers() == expected);
}

TEST_CASE("while_loop carries arrays [C87] [C88]") {
  Tensor o(f32, {8, 128}), s(i32, {1}), x = arange(i32, {4096});
  run(
      [](Ref x, Ref o, Ref s) {
        o[_] = while_loop([](Value v) { return pl::max(v) < 16; }, [](Value v) { return v * 2; },
                          full({8, 128}, 3.0f));
        const auto [i, acc] =
            while_loop([](Value i, Value) { return i < 1024; },
                       [&](Value i, Value acc) {
                         return carry(i + 128, acc + x[{ds(pl::multiple_of(i, 128), 128)}]);
                       },
                       0, zeros({128}, i32));
        (void)i;
        s[0] = pl::sum(acc);
      },
      {}, {&x}, {&o, &s});
  CHECK(o.numbers() == std::vector<double>(1024, 24));
  CHECK(s[0] == 523776);
}

TEST_CASE("carries of while_loop change places") {
  Tensor o(i32, {2}), p(f32, {2, 4}), q(f32, {2, 4});
  run(
      [](Ref o, Ref p, Ref q) {
        const auto [a, b] =
            while_loop([](Value a, Value) { return a < 50; },
                       [](Value a, Value b) { return carry(b, a + b); }, i32(0), i32(1));
        o[0] = a;
        o[1] = b;
        const auto [v, w, n] =
            while_loop([](Value, Value, Value n) { return n < 3; },
                       [](Value v, Value w, Value n) { return carry(w, v, n + 1); },
                       pl::iota(f32, {2, 4}, 1), ones({2, 4}), i32(0));
        (void)n;
        p[_] = v;
        q[_] = w;
      },
      {}, {}, {&o, &p, &q});
  CHECK(o.numbers() == std::vector<double>{55, 89});
  CHECK(p.numbers() == std::vector<double>(8, 1));
  CHECK(q.numbers() == std::vector<double>{0, 1, 2, 3, 0, 1, 2, 3});
}

TEST_CASE("while_loop, loop, cond and when stand in each other") {
  const auto steps = [](int n) {
    int count = 0;
    for (; n != 1; ++count) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    return count;
  };
  Tensor o(i32, {27}), longest(i32, {1});
  run(
      [](Ref o, Ref longest) {
        longest[0] = i32(0);
        pl::loop(1, 28, [&](Index start) {
          const auto [n, count] =
              while_loop([](Value n, Value) { return n != 1; },
                         [](Value n, Value count) {
                           const Value next = cond(
                               n % 2 == 0, [&] { return n / 2; }, [&] { return 3 * n + 1; });
                           return carry(next, count + 1);
                         },
                         start, i32(0));
          (void)n;
          o[start - 1] = count;
          when(count > longest[0], [&] { longest[0] = count; });
        });
      },
      {}, {}, {&o, &longest});
  int most = 0;
  for (int n = 1; n < 28; ++n) {
    CHECK(o[n - 1] == steps(n));
    most = std::max(most, steps(n));
  }
  CHECK(longest[0] == most);
}

// ---- structs, fori_loop, scan

namespace {

struct State {
  Value count, sum;
};
struct Nested {
  Value last;
  State state;
};

}  // namespace

TEST_CASE("plain structs of Values are carried, given and nested") {
  Tensor o(i32, {9}), v(f32, {2, 2});
  run(
      [](Ref o, Ref v) {
        const State s = pl::loop(
            0, 5,
            [](Index i, State s) {
              return State{s.count + 1, s.sum + i};
            },
            State{i32(0), i32(100)});
        const Nested n =
            while_loop([](Nested n) { return n.state.count < 9; },
                       [](Nested n) {
                         return Nested{n.state.sum, {n.state.count + 1, n.state.sum * 2}};
                       },
                       Nested{i32(-1), s});
        const State chosen = cond(
            n.last > 0, [&] { return n.state; },
            [&] {
              return State{i32(0), i32(0)};
            });
        const State scanned = pl::scan(
            [](State c) {
              return State{c.sum, c.count};
            },
            chosen, {.length = 3});
        const std::array<Value, 3> listed = pl::fori_loop(
            0, 2,
            [](Index i, std::array<Value, 3> a) {
              return std::array<Value, 3>{a[1], a[2], i};
            },
            std::array<Value, 3>{i32(7), i32(8), i32(9)});
        const Value results[] = {s.count,     s.sum,     n.last,    scanned.count,
                                 scanned.sum, listed[0], listed[1], listed[2]};
        for (int k = 0; k < 8; ++k) o[k] = results[k];
        const auto [twice, matrix, other] = pl::loop(
            0, 2, [](Index, Value k, State m) { return carry(k + 1, m.sum, m.count + 1.0f); },
            i32(5), State{ones({2, 2}), zeros({2, 2})});
        (void)other;
        o[8] = twice;
        v[_] = matrix;
      },
      {}, {}, {&o, &v});
  CHECK(o.numbers() == std::vector<double>{5, 110, 880, 1760, 9, 9, 0, 1, 7});
  CHECK(v.numbers() == std::vector<double>(4, 2));
}

TEST_CASE("fori_loop and scan are loops [C82] [C90]") {
  for (const int unroll : {1, 2, 0}) {
    Tensor bounds(i32, {2}, {2, 5}), o(i32, {5});
    run(
        [=](Ref bounds, Ref o) {
          o[0] = pl::fori_loop(
              2, 5, {.unroll = unroll}, [](Index i, Value s) { return s + i; }, i32(6));
          o[1] = pl::fori_loop(
              bounds[0], bounds[1], [](Index i, Value s) { return s + i; }, i32(0));
          o[2] = pl::scan([](Value s) { return s * 3; }, i32(1), {.length = 5, .unroll = unroll});
          o[3] = pl::scan([](Value s) { return s + 1; }, i32(4), {.length = 0, .reverse = true});
          pl::fori_loop(4, 5, [&](Index i) { o[i] = i; });
        },
        {}, {&bounds}, {&o});
    CHECK(o.numbers() == std::vector<double>{15, 9, 243, 4, 4});
  }
}

TEST_CASE("bounds that are equal or reversed are no iteration") {
  Tensor bounds(i32, {2}, {3, -2}), o(i32, {3});
  run(
      [](Ref bounds, Ref o) {
        o[0] = pl::loop(
            5, 5, [](Index, Value v) { return v + 1; }, i32(1));
        o[1] = pl::loop(
            9, 2, [](Index, Value v) { return v + 1; }, i32(2));
        o[2] = pl::loop(
            bounds[0], bounds[1], [](Index, Value v) { return v + 1; }, i32(3));
      },
      {}, {&bounds}, {&o});
  CHECK(o.numbers() == std::vector<double>{1, 2, 3});
}
