// Values made of elements of others, against loops over the elements, on interpreter and emulator.
#include <functional>

#include "tests/interpreter/tensors.hpp"

using namespace palladium;
using namespace palladium::test;
using palladium::_;

namespace {

constexpr DType every[] = {bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64};

using Numbers = std::vector<std::int64_t>;

// Row-major.
Numbers unravelled(std::int64_t i, const Numbers& shape) {
  Numbers at(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; i /= shape[d]) at[d] = i % shape[d];
  return at;
}
std::int64_t ravelled(const Numbers& at, const Numbers& shape) {
  std::int64_t i = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) i = i * shape[d] + at[d];
  return i;
}

Tensor numbered(DType t, const Numbers& shape) {
  return Tensor(t, shape, [=](std::int64_t i) {
    return static_cast<double>(t.is_bool() ? i % 3 == 0 : i % 97);
  });
}

using Operation = std::function<Value(Value)>;
using Source = std::function<std::int64_t(const Numbers&)>;  // -1: zero

/// Whether the result's elements are the operand's that `source` says: of a value that streams from
/// memory, of one in registers, and of one that is computed.
void check(DType t, const Numbers& from, const Numbers& to, const Operation& operation,
           const Source& source) {
  CAPTURE(t.name(), from, to);
  Tensor x = numbered(t, from), o(t, to), p(t, to), q(t, to);
  run(
      [&](Ref x, Ref o, Ref p, Ref q) {
        o[_] = operation(x[_]);
        // A sum is at hand in registers.
        if (t.is_bool()) {
          p[_] = operation(~x[_]);
        } else {
          const Value v = cumsum(x[_], {.axis = 0});
          p[_] = operation(v);
        }
        q[_] = operation(where(x[_] == x[_], x[_], x[_]));
      },
      {}, {&x}, {&o, &p, &q});
  for (std::int64_t i = 0; i < o.size(); ++i) {
    const std::int64_t at = source(unravelled(i, to));
    REQUIRE(o[i] == (at < 0 ? 0 : x[at]));
    REQUIRE(q[i] == o[i]);
  }
}

}  // namespace

TEST_CASE("values of every dtype are sliced, by starts, sizes and strides [C76]") {
  for (const DType t : every) {
    check(
        t, {9, 10}, {4, 10},
        [](Value v) {
          return v[{ds(3, 4), _}];
        },
        [](const Numbers& c) { return (c[0] + 3) * 10 + c[1]; });
    check(
        t, {9, 10}, {9, 3},
        [](Value v) {
          return v[{_, ds(2, 3, 3)}];
        },
        [](const Numbers& c) { return c[0] * 10 + 2 + 3 * c[1]; });
  }
}

TEST_CASE("values of every rank are sliced and indexed") {
  check(
      f32, {7}, {}, [](Value v) { return v[5]; }, [](const Numbers&) { return 5; });
  check(
      f32, {7, 9}, {9}, [](Value v) { return v[6]; }, [](const Numbers& c) { return 54 + c[0]; });
  check(
      f32, {7, 9}, {7},
      [](Value v) {
        return v[{_, 8}];
      },
      [](const Numbers& c) { return c[0] * 9 + 8; });
  check(
      f32, {7, 9}, {},
      [](Value v) {
        return v[{2, 3}];
      },
      [](const Numbers&) { return 21; });
  check(
      f32, {5, 6, 70}, {5, 33},
      [](Value v) {
        return v[{_, 4, ds(30, 33)}];
      },
      [](const Numbers& c) { return (c[0] * 6 + 4) * 70 + 30 + c[1]; });
  check(
      f32, {5, 6, 70}, {5, 6, 1},
      [](Value v) {
        return v[{ellipsis, ds(69, 1)}];
      },
      [](const Numbers& c) { return (c[0] * 6 + c[1]) * 70 + 69; });
  check(
      f32, {1000}, {999}, [](Value v) { return v[ds(1, 999)]; },
      [](const Numbers& c) { return c[0] + 1; });
  check(
      f32, {4096}, {1024}, [](Value v) { return v[ds(1024, 1024)]; },
      [](const Numbers& c) { return c[0] + 1024; });
  check(
      f32, {64, 128}, {64, 64},
      [](Value v) {
        return v[{_, ds(64, 64)}];
      },
      [](const Numbers& c) { return c[0] * 128 + 64 + c[1]; });
}

TEST_CASE("values are flipped and rolled along any axes") {
  for (const DType t : {bool_, i8, f16, f32, u64}) {
    check(
        t, {6, 11}, {6, 11}, [](Value v) { return flip(v); },
        [](const Numbers& c) { return (5 - c[0]) * 11 + 10 - c[1]; });
    check(
        t, {6, 11}, {6, 11}, [](Value v) { return flip(v, 1); },
        [](const Numbers& c) { return c[0] * 11 + 10 - c[1]; });
    check(
        t, {6, 11}, {6, 11}, [](Value v) { return roll(v, 3, 1); },
        [](const Numbers& c) { return c[0] * 11 + (c[1] + 8) % 11; });
    check(
        t, {6, 11}, {6, 11}, [](Value v) { return roll(v, -13, 0); },
        [](const Numbers& c) { return (c[0] + 13) % 6 * 11 + c[1]; });
    check(
        t, {6, 11}, {6, 11}, [](Value v) { return roll(v, 5); },
        [](const Numbers& c) { return (c[0] * 11 + c[1] + 61) % 66; });
  }
}

TEST_CASE("values are concatenated and stacked along any axis") {
  for (const DType t : every)
    check(
        t, {5, 6}, {5, 12},
        [](Value v) {
          return concatenate({v, flip(v, 0)}, 1);
        },
        [](const Numbers& c) { return (c[1] < 6 ? c[0] : 4 - c[0]) * 6 + c[1] % 6; });
  check(
      f32, {5, 6}, {17, 6},
      [](Value v) {
        return concatenate({v, v[{ds(1, 2), _}], v, v});
      },
      [](const Numbers& c) {
        const std::int64_t row = c[0] < 5 ? c[0] : c[0] < 7 ? c[0] - 4 : (c[0] - 7) % 5;
        return row * 6 + c[1];
      });
  check(
      f32, {300}, {900},
      [](Value v) {
        return concatenate({v, v, v}, -1);
      },
      [](const Numbers& c) { return c[0] % 300; });
  check(
      f32, {64, 32}, {64, 64},
      [](Value v) {
        return concatenate({v, flip(v, 0)}, 1);
      },
      [](const Numbers& c) { return (c[1] < 32 ? c[0] : 63 - c[0]) * 32 + c[1] % 32; });
  check(
      f32, {5, 6}, {5, 2, 6},
      [](Value v) {
        return stack({v, flip(v)}, 1);
      },
      [](const Numbers& c) {
        const std::int64_t i = c[0] * 6 + c[2];
        return c[1] == 0 ? i : 29 - i;
      });
  check(
      f32, {7}, {7, 3},
      [](Value v) {
        return stack({v, v, flip(v)}, -1);
      },
      [](const Numbers& c) { return c[1] < 2 ? c[0] : 6 - c[0]; });
  check(
      i32, {1}, {3},
      [](Value v) {
        return concatenate({v, v, v});
      },
      [](const Numbers&) { return 0; });
}

TEST_CASE("what is concatenated may be of several blocks, ragged ones too") {
  Tensor x = numbered(f32, {10, 37}), y = numbered(f32, {10, 37}), o(f32, {10, 74});
  const auto block = [](std::int64_t n) {
    return BlockSpec{{4, n}, [](Index i) { return Indices{i, 0}; }};
  };
  run(
      [](Ref x, Ref y, Ref o) {
        o[_] = concatenate({x[_], y[_] + 1000.0f}, 1);
      },
      {.grid = {3}, .in_specs = {block(37), block(37)}, .out_specs = {block(74)}}, {&x, &y}, {&o});
  for (std::int64_t i = 0; i < 10; ++i)
    for (std::int64_t j = 0; j < 74; ++j)
      REQUIRE(o[i * 74 + j] == (j < 37 ? x[i * 37 + j] : y[i * 37 + j - 37] + 1000));
}

TEST_CASE("values are split into parts of one size [C78]") {
  struct Case {
    Numbers shape;
    std::int64_t parts;
    int axis;
  };
  for (const Case& s : {Case{{32}, 2, 0}, {{32, 64}, 4, 0}, {{32, 16}, 8, 1}, {{32, 16, 2}, 16, 1}})
    for (std::int64_t k = 0; k < s.parts; ++k) {
      const auto along = static_cast<std::size_t>(s.axis);
      Numbers to = s.shape;
      to[along] /= s.parts;
      check(
          f32, s.shape, to,
          [&](Value v) { return split(v, s.parts, s.axis)[static_cast<std::size_t>(k)]; },
          [&](Numbers c) {
            c[along] += k * to[along];
            return ravelled(c, s.shape);
          });
    }
}

TEST_CASE("values are padded: by a number, by themselves, by their ends") {
  for (const DType t : every)
    check(
        t, {4, 5}, {7, 9},
        [](Value v) {
          return pad(v, {{1, 2}, {4, 0}});
        },
        [](const Numbers& c) {
          const std::int64_t i = c[0] - 1, j = c[1] - 4;
          return i < 0 || i >= 4 || j < 0 ? -1 : i * 5 + j;
        });
  check(
      f32, {4, 5}, {9, 20},
      [](Value v) {
        return pad(v, {{3, 2}, {7, 8}}, {.mode = PadMode::wrap});
      },
      [](const Numbers& c) { return (c[0] + 1) % 4 * 5 + (c[1] + 3) % 5; });
  check(
      f32, {4, 5}, {6, 9},
      [](Value v) {
        return pad(v, {{1, 1}, {0, 4}}, {.mode = PadMode::edge});
      },
      [](const Numbers& c) {
        return std::clamp<std::int64_t>(c[0] - 1, 0, 3) * 5 + std::min<std::int64_t>(c[1], 4);
      });
  check(
      i16, {4, 5}, {11, 4},
      [](Value v) {
        return pad(v, {{2, -1, 2}, {-2, 1}});
      },
      [](const Numbers& c) {
        const std::int64_t i = c[0] - 2, j = c[1] + 2;
        return i < 0 || i % 3 != 0 || j >= 5 ? -1 : i / 3 * 5 + j;
      });
  check(
      f32, {4}, {3},
      [](Value v) {
        return pad(v, {{-6, 5}});
      },
      [](const Numbers&) { return -1; });
  check(
      f32, {3}, {4},
      [](Value v) {
        return pad(v, {{-1, 0, 1}});
      },
      [](const Numbers& c) { return c[0] % 2 == 0 ? -1 : (c[0] + 1) / 2; });
  Tensor x = numbered(f32, {3}), o(f32, {8});
  run([](Ref x, Ref o) { o[_] = pad(x[_], {{1, 4}}, {.value = 2.5}); }, {}, {&x}, {&o});
  CHECK(o.numbers() == std::vector<double>{2.5, 0, 1, 2, 2.5, 2.5, 2.5, 2.5});
}

TEST_CASE("values are repeated and tiled") {
  for (const DType t : {bool_, i8, f16, f32, i64}) {
    check(
        t, {4, 5}, {12, 5}, [](Value v) { return repeat(v, 3, 0); },
        [](const Numbers& c) { return c[0] / 3 * 5 + c[1]; });
    check(
        t, {4, 5}, {4, 10}, [](Value v) { return repeat(v, 2, -1); },
        [](const Numbers& c) { return c[0] * 5 + c[1] / 2; });
    check(
        t, {4, 5}, {60}, [](Value v) { return repeat(v, 3); },
        [](const Numbers& c) { return c[0] / 3; });
    check(
        t, {4, 5}, {8, 15},
        [](Value v) {
          return tile(v, {2, 3});
        },
        [](const Numbers& c) { return c[0] % 4 * 5 + c[1] % 5; });
    check(
        t, {4, 5}, {2, 4, 5},
        [](Value v) {
          return tile(v, {2, 1, 1});
        },
        [](const Numbers& c) { return c[1] * 5 + c[2]; });
  }
}

TEST_CASE("triangles and diagonals of matrices") {
  for (const DType t : {bool_, i8, f16, f32, u64})
    for (const std::int64_t k : {-2, 0, 1, 9}) {
      check(
          t, {5, 7}, {5, 7}, [=](Value v) { return tril(v, k); },
          [=](const Numbers& c) { return c[1] - c[0] <= k ? c[0] * 7 + c[1] : -1; });
      check(
          t, {2, 5, 7}, {2, 5, 7}, [=](Value v) { return triu(v, k); },
          [=](const Numbers& c) { return c[2] - c[1] >= k ? (c[0] * 5 + c[1]) * 7 + c[2] : -1; });
    }
  check(
      f32, {5, 7}, {5}, [](Value v) { return diagonal(v); },
      [](const Numbers& c) { return c[0] * 8; });
  check(
      f32, {5, 7}, {3}, [](Value v) { return diagonal(v, 4); },
      [](const Numbers& c) { return c[0] * 8 + 4; });
  check(
      f32, {5, 7}, {1}, [](Value v) { return diagonal(v, -4); }, [](const Numbers&) { return 28; });
}

TEST_CASE("dimensions of extent 1 come and go") {
  check(
      f32, {1, 5, 1, 7}, {5, 7}, [](Value v) { return squeeze(v); },
      [](const Numbers& c) { return c[0] * 7 + c[1]; });
  check(
      f32, {1, 5, 1, 7}, {1, 5, 7}, [](Value v) { return squeeze(v, 2); },
      [](const Numbers& c) { return c[1] * 7 + c[2]; });
  check(
      f32, {5, 7}, {1, 5, 7, 1},
      [](Value v) {
        return expand_dims(v, {0, -1});
      },
      [](const Numbers& c) { return c[1] * 7 + c[2]; });
  check(
      f32, {5, 7}, {7, 5}, [](Value v) { return swapaxes(v, 0, -1); },
      [](const Numbers& c) { return c[1] * 7 + c[0]; });
}

TEST_CASE("slices begin where values say, moved to where they fit") {
  for (const DType t : every)
    for (const int start : {-4, 0, 3, 8, 100}) {
      Tensor x = numbered(t, {9, 10}), at(i32, {}, {double(start)});
      Tensor o(t, {4, 10}), p(t, {10}), q(t, {9, 10});
      run(
          [&](Ref x, Ref at, Ref o, Ref p, Ref q) {
            const Value i = at[_];
            const Value v = x[_];
            o[_] = v[{ds(i, 4), _}];
            p[_] = v[i];
            q[_] = dynamic_update_slice(v, flip(v[{ds(0, 2), ds(0, 10)}], 0), {i, 0});
          },
          {}, {&x, &at}, {&o, &p, &q});
      const std::int64_t four = std::clamp(start, 0, 5), one = std::clamp(start, 0, 8),
                         two = std::clamp(start, 0, 7);
      for (std::int64_t i = 0; i < 40; ++i) REQUIRE(o[i] == x[four * 10 + i]);
      for (std::int64_t i = 0; i < 10; ++i) REQUIRE(p[i] == x[one * 10 + i]);
      for (std::int64_t i = 0; i < 90; ++i) {
        const std::int64_t row = i / 10 - two;
        REQUIRE(q[i] == (row == 0 || row == 1 ? x[(1 - row) * 10 + i % 10] : x[i]));
      }
    }
}

TEST_CASE("a part of a value is replaced in every dimension") {
  Tensor x = numbered(f32, {20, 30}), y = numbered(f32, {5, 8}), o(f32, {20, 30});
  run(
      [](Ref x, Ref y, Ref o) {
        const Value sums = cumsum(y[_], {.axis = 1});
        o[_] = dynamic_update_slice(x[_], sums, {program_id(0) + 3, program_id(0) + 7});
      },
      {.grid = {1}}, {&x, &y}, {&o});
  for (std::int64_t i = 0; i < 20; ++i)
    for (std::int64_t j = 0; j < 30; ++j) {
      double expected = x[i * 30 + j];
      if (i >= 3 && i < 8 && j >= 7 && j < 15) {
        expected = 0;
        for (std::int64_t k = 0; k <= j - 7; ++k) expected += y[(i - 3) * 8 + k];
      }
      REQUIRE(o[i * 30 + j] == expected);
    }
}

TEST_CASE("elements are taken by numbers that are values, out of bounds the nearest") {
  for (const DType t : every) {
    Tensor x = numbered(t, {9, 6}), rows(i32, {2, 4}, {0, 8, 3, 3, -5, 1, 100, 2});
    Tensor columns(u8, {3}, {5, 0, 200}), o(t, {2, 4, 6}), p(t, {9, 3}), q(t, {9, 2});
    Tensor each(i64, {9, 2}, [](std::int64_t i) { return double(i * 5 % 9 - 1); });
    run(
        [](Ref x, Ref rows, Ref columns, Ref each, Ref o, Ref p, Ref q) {
          o[_] = take(x[_], rows[_]);
          p[_] = take(x[_], columns[_], 1);
          q[_] = take_along_axis(x[_], each[_]);
        },
        {}, {&x, &rows, &columns, &each}, {&o, &p, &q});
    const auto near = [](double i, std::int64_t extent) {
      return std::clamp<std::int64_t>(static_cast<std::int64_t>(i), 0, extent - 1);
    };
    for (std::int64_t i = 0; i < 48; ++i) REQUIRE(o[i] == x[near(rows[i / 6], 9) * 6 + i % 6]);
    for (std::int64_t i = 0; i < 27; ++i) REQUIRE(p[i] == x[i / 3 * 6 + near(columns[i % 3], 6)]);
    for (std::int64_t i = 0; i < 18; ++i) REQUIRE(q[i] == x[i / 2 * 6 + near(each[i], 6)]);
  }
}

TEST_CASE("elements are taken of what is computed, at numbers that are computed") {
  Tensor x = numbered(f32, {1000}), o(f32, {1000}), p(f32, {});
  run(
      [](Ref x, Ref o, Ref p) {
        const Value v = cumsum(x[_]);
        const Value reversed = 999 - iota(i32, {1000});
        o[_] = take(v, reversed) - take(x[_], reversed);
        p[_] = v[argmax(x[_])];
      },
      {}, {&x}, {&o, &p});
  std::vector<double> sums{0};
  for (std::int64_t i = 0; i < 1000; ++i) sums.push_back(sums.back() + x[i]);
  for (std::int64_t i = 0; i < 1000; ++i) REQUIRE(o[i] == sums[static_cast<std::size_t>(999 - i)]);
  CHECK(p[0] == sums[97]);
}

TEST_CASE("large values are moved by loops") {
  Tensor x = numbered(f32, {1 << 18}), o(f32, {1 << 18}), p(f32, {1 << 19});
  run(
      [](Ref x, Ref o, Ref p) {
        o[_] = flip(x[_]);
        p[_] = concatenate({x[_], x[_] * 2.0f});
      },
      {}, {&x}, {&o, &p});
  for (std::int64_t i = 0; i < 1 << 18; i += 77) {
    REQUIRE(o[i] == x[(1 << 18) - 1 - i]);
    REQUIRE(p[i] == x[i]);
    REQUIRE(p[(1 << 18) + i] == 2 * x[i]);
  }
}

TEST_CASE("a subscript converts, reshapes and tells its shape by itself") {
  Tensor x = numbered(f32, {6, 4}), o(i32, {24}), p(u32, {4, 2});
  run(
      [](Ref x, Ref o, Ref p) {
        CHECK(x[{ds(1, 2), _}].shape() == Shape{2, 4});
        CHECK(x[0].shape() == Shape{4});
        CHECK(x[_].dtype() == f32);
        o[_] = x[_].astype(i32).reshape({-1});
        p[_] = x[{ds(1, 2), _}].transpose().bitcast(u32);
      },
      {}, {&x}, {&o, &p});
  for (std::int64_t i = 0; i < 24; ++i) CHECK(o[i] == x[i]);
  for (std::int64_t i = 0; i < 8; ++i) CHECK(p.bits(i) == x.bits(4 + i % 2 * 4 + i / 2));
}
