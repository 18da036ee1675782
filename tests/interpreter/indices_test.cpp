// Index arrays of Refs, on interpreter and emulator, against plain loops.
#include <cmath>
#include <functional>

#include "tests/interpreter/tensors.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace {

using Numbers = std::vector<std::int64_t>;

Tensor indices(Numbers numbers) {
  const auto n = static_cast<std::int64_t>(numbers.size());
  return Tensor(i32, {n}, [=](std::int64_t i) {
    return static_cast<double>(numbers[static_cast<std::size_t>(i)]);
  });
}

// Those of upstream's test, but for its negative ones.
const Numbers a{1, 1, 1, 1, 1}, b{1, 2, 2, 2, 2}, c{1, 0, 2, 2, 0, 1};
// No pair of elements at one place is there twice.
const Numbers d{2, 0, 1, 2}, e{0, 1, 1, 1};

/// Where the element of the result at an index stands in an array.
using Source = std::function<Numbers(const Numbers&)>;
using View = std::function<Ref(Ref, Ref, Ref, Ref)>;

/// What the view, given the arrays, selects of 0, 1, 2, ... must stand where `source` says; what is
/// stored through it must arrive there, and nowhere else. No place may be stored to twice.
void check(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& selected,
           const View& view, const Source& source, const Numbers (&arrays)[3] = {a, b, c},
           Location at = here()) {
  INFO("check at " << to_string(at));
  Tensor x = arange(i32, shape), o(i32, selected), p(i32, shape), ta = indices(arrays[0]),
         tb = indices(arrays[1]), tc = indices(arrays[2]);
  run([&](Ref x, Ref a, Ref b, Ref c, Ref o) { o[_] = view(x, a, b, c)[_]; }, {},
      {&x, &ta, &tb, &tc}, {&o});
  std::vector<double> stored(static_cast<std::size_t>(x.size()), -1);
  Numbers index(selected.size());
  bool repeats = false;
  for (std::int64_t i = 0; i < o.size(); ++i) {
    std::int64_t rest = i, flat = 0;
    for (std::size_t d = selected.size(); d-- > 0; rest /= selected[d])
      index[d] = rest % selected[d];
    const Numbers from = source(index);
    for (std::size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + from[d];
    REQUIRE(o[i] == static_cast<double>(flat));
    double& place = stored[static_cast<std::size_t>(flat)];
    repeats = repeats || place >= 0;
    place = static_cast<double>(flat + 1000);
  }
  const auto store = [&](Ref x, Ref a, Ref b, Ref c, Ref p) {
    p[_] = full(p.shape(), -1, i32);
    view(p, a, b, c)[_] = Value(view(x, a, b, c)[_]) + 1000;
  };
  if (repeats) {
    CHECK_THAT(failure_of(store, {}, {&x, &ta, &tb, &tc}, {&p}),
               ContainsSubstring("go to one element of outputs[0]"));
  } else {
    run(store, {}, {&x, &ta, &tb, &tc}, {&p});
    CHECK(p.numbers() == stored);
  }
}

std::int64_t of(const Numbers& list, std::int64_t i) { return list[static_cast<std::size_t>(i)]; }

}  // namespace

TEST_CASE("shapes of index arrays are those of NumPy [C31] [C32]") {
  Tensor x = arange(i32, {2, 3, 4}), o(i32, {1});
  run(
      [](Ref x, Ref o) {
        const Value three = iota(i32, {3}), five = iota(i32, {5}) % 2;
        CHECK(x[{0, _, five}].shape() == Shape{5, 3});
        CHECK(x[{0, ds(2, 1), five}].shape() == Shape{5, 1});
        CHECK(x[{0, 1, five}].shape() == Shape{5});
        CHECK(x[{ds(0, 2), expand_dims(five, 1), expand_dims(iota(i32, {4}), 0)}].shape() ==
              Shape{2, 5, 4});
        CHECK(x[{five, three[{ds(0, 1)}]}].shape() == Shape{5, 4});
        CHECK(x[{ellipsis, five}].shape() == Shape{2, 3, 5});
        CHECK(x.at({five}).at({_, ds(1, 2)}).shape() == Shape{5, 2, 4});
        CHECK(x[{expand_dims(iota(i32, {2}), 1), expand_dims(three, 0), 1}].shape() == Shape{2, 3});
        o[0] = x[{0, 0, 0}];
      },
      {}, {&x}, {&o}, {.detect_races = true}, On::interpreter);
}

TEST_CASE("index arrays select and store elements as NumPy does [C34]") {
  SECTION("one dimension, the others whole") {
    check(
        {4, 3, 2}, {6, 3, 2}, [](Ref x, Ref, Ref, Ref c) { return x.at({c[_]}); },
        [](const Numbers& i) {
          return Numbers{of(c, i[0]), i[1], i[2]};
        });
  }
  SECTION("neighbours stay where they are") {
    check(
        {4, 3, 2}, {6, 2},
        [](Ref x, Ref, Ref, Ref c) {
          return x.at({c[_], c[_]});
        },
        [](const Numbers& i) {
          return Numbers{of(c, i[0]), of(c, i[0]), i[1]};
        });
    check(
        {3, 8, 8, 7}, {5, 2, 4},
        [](Ref x, Ref a, Ref b, Ref) {
          return x.at({b[_], a[_], ds(0, 2, 4), ds(0, 4, 2)});
        },
        [](const Numbers& i) {
          return Numbers{of(b, i[0]), of(a, i[0]), 4 * i[1], 2 * i[2]};
        });
  }
  SECTION("apart they go in front") {
    check(
        {8, 8, 3, 7}, {5, 2, 4},
        [](Ref x, Ref a, Ref b, Ref) {
          return x.at({b[_], ds(0, 2, 4), a[_], ds(0, 4, 2)});
        },
        [](const Numbers& i) {
          return Numbers{of(b, i[0]), 4 * i[1], of(a, i[0]), 2 * i[2]};
        });
    check(
        {16, 3, 6, 2}, {5, 4, 3},
        [](Ref x, Ref a, Ref b, Ref) {
          return x.at({ds(0, 4, 4), b[_], ds(1, 3, 2), a[_]});
        },
        [](const Numbers& i) {
          return Numbers{4 * i[1], of(b, i[0]), 1 + 2 * i[2], of(a, i[0])};
        });
    check(
        {5, 8, 8, 3}, {5, 2, 2},
        [](Ref x, Ref a, Ref, Ref) {
          return x.at({2, ds(0, 2, 4), a[_], ds(0, 2, 2)});
        },
        [](const Numbers& i) {
          return Numbers{2, 4 * i[1], of(a, i[0]), 2 * i[2]};
        });
  }
  SECTION("and are broadcast against each other") {
    check(
        {8, 8, 3, 6}, {5, 5, 2},
        [](Ref x, Ref a, Ref b, Ref) {
          return x.at(
              {expand_dims(b[_], 1), ds(0, 2, 4), expand_dims(a[_], 0), expand_dims(a[_], 1)});
        },
        [](const Numbers& i) {
          return Numbers{of(b, i[0]), 4 * i[2], of(a, i[1]), of(a, i[0])};
        });
  }
}

TEST_CASE("index arrays store where they load") {
  const Numbers distinct[] = {d, e, {2, 0}};
  SECTION("side by side") {
    check(
        {4, 3, 2}, {4, 4},
        [](Ref x, Ref d, Ref e, Ref) {
          return x.at({_, d[_], e[_]});
        },
        [](const Numbers& i) {
          return Numbers{i[0], of(d, i[1]), of(e, i[1])};
        },
        distinct);
  }
  SECTION("apart, with strides between") {
    check(
        {3, 9, 2, 70}, {4, 3, 64},
        [](Ref x, Ref d, Ref e, Ref) {
          return x.at({d[_], ds(1, 3, 3), e[_], ds(2, 64)});
        },
        [](const Numbers& i) {
          return Numbers{of(d, i[0]), 1 + 3 * i[1], of(e, i[0]), 2 + i[2]};
        },
        distinct);
  }
  SECTION("broadcast, and beside numbers") {
    check(
        {3, 3, 40, 2}, {2, 3, 40},
        [](Ref x, Ref, Ref, Ref f) {
          return x.at({expand_dims(f[_], 1), iota(i32, {3}), _, 1});
        },
        [](const Numbers& i) {
          return Numbers{i[0] == 0 ? 2 : 0, i[1], i[2], 1};
        },
        distinct);
  }
  SECTION("of views, and views of them") {
    check(
        {6, 3}, {2, 3},
        [](Ref x, Ref, Ref, Ref f) {
          return x.transpose({1, 0}).at({f[_]}).at({_, ds(1, 3, 2)});
        },
        [](const Numbers& i) {
          return Numbers{1 + 2 * i[1], i[0] == 0 ? 2 : 0};
        },
        distinct);
  }
}

TEST_CASE("views of what index arrays select are views") {
  SECTION("parts of it") {
    check(
        {4, 6}, {3, 2},
        [](Ref x, Ref, Ref, Ref c) {
          return x.at({c[_]}).at({ds(1, 3), ds(1, 2, 3)});
        },
        [](const Numbers& i) {
          return Numbers{of(c, i[0] + 1), 1 + 3 * i[1]};
        });
  }
  SECTION("turned and in another shape") {
    check(
        {4, 6}, {6, 6},
        [](Ref x, Ref, Ref, Ref c) {
          return x.at({c[_]}).transpose({1, 0});
        },
        [](const Numbers& i) {
          return Numbers{of(c, i[1]), i[0]};
        });
    check(
        {4, 6}, {12, 3},
        [](Ref x, Ref, Ref, Ref c) {
          return x.at({c[_]}).reshape({12, 3});
        },
        [](const Numbers& i) {
          return Numbers{of(c, i[0] / 2), i[0] % 2 * 3 + i[1]};
        });
  }
  SECTION("index arrays of it") {
    check(
        {4, 6}, {6, 5},
        [](Ref x, Ref, Ref b, Ref c) {
          return x.at({c[_]}).at({_, b[_]});
        },
        [](const Numbers& i) {
          return Numbers{of(c, i[0]), of(b, i[1])};
        });
  }
  SECTION("and index arrays of turned views, from starts that the kernel loads") {
    check(
        {4, 6}, {5, 2},
        [](Ref x, Ref a, Ref b, Ref) {
          return x.transpose({1, 0}).at({b[_], ds(a[0], 2)});
        },
        [](const Numbers& i) {
          return Numbers{1 + i[1], of(b, i[0])};
        });
  }
}

TEST_CASE("indices may be computed, of any integer type, and be read at other places") {
  Tensor x = arange(f32, {64, 20}), o(f32, {20, 64}), p(f32, {32});
  run(
      [](Ref x, Ref o, Ref p) {
        const Value row = iota(u8, {20, 64}, 1), column = (iota(i64, {20, 64}, 0) * 7) % 20;
        o[_] = x[{row, column}];
        const Value hops = pl::cumsum(iota(i32, {32}) % 3);
        p[_] = x[{hops, hops % 20}];
      },
      {}, {&x}, {&o, &p});
  for (int i = 0; i < 20; ++i)
    for (int j = 0; j < 64; ++j) REQUIRE(o[i * 64 + j] == j * 20 + i * 7 % 20);
  int hop = 0;
  for (int i = 0; i < 32; ++i) {
    hop += i % 3;
    REQUIRE(p[i] == hop * 20 + hop % 20);
  }
}

TEST_CASE("lanes that are masked off touch nothing, wherever their indices point [C40]") {
  for (const int size : {1, 2, 64, 129, 1021})
    for (const int block : {1, 16, 128}) {
      Tensor x = arange(f32, {size}), o = full(f32, {size}, -1);
      run(
          [=](Ref x, Ref o) {
            const Value at = program_id(0) * block + iota(i32, {block});
            const Value inside = at < size;
            store(o.at(at), load(x.at(at), {.mask = inside}) + 1, {.mask = inside});
          },
          {.grid = {cdiv(size, block)},
           .in_specs = {BlockSpec()},
           .out_specs = {BlockSpec()},
           .compiler_params = {.dimension_semantics = {parallel}, .allow_revisit = true}},
          {&x}, {&o});
      for (int i = 0; i < size; ++i) REQUIRE(o[i] == i + 1);
    }
}

TEST_CASE("a slice that only its mask keeps inside may start anywhere [C41] [C46]") {
  for (const int start : {-20, -3, 0, 5, 12, 30}) {
    Tensor x = arange(i32, {16}), s = full(i32, {1}, start), o(i32, {2, 24}), q(i32, {16}),
           p(i32, {16});
    run(
        [=](Ref x, Ref s, Ref o, Ref p, Ref q) {
          const Value at = iota(i32, {24}) + start;
          const Value inside = (at >= 0) & (at < 16);
          o[0] = load(x.at({ds(start, 24)}), {.mask = inside, .other = -1});
          o[1] = load(x.at({ds(s[0], 24)}), {.mask = inside, .other = -1});
          p[_] = full({16}, -5, i32);
          store(p.at({ds(start, 24)}), iota(i32, {24}), {.mask = inside});
          q[_] = full({16}, -5, i32);
          const Value old = pl::swap(q.at({ds(s[0], 24)}), iota(i32, {24}), {.mask = inside});
          pl::when(old[0] == -5, [&] { q[0] = -6; });
        },
        {}, {&x, &s}, {&o, &p, &q});
    for (int k = 0; k < 24; ++k) {
      const int at = start + k;
      const bool inside = at >= 0 && at < 16;
      CHECK(o[k] == (inside ? at : -1));
      CHECK(o[24 + k] == (inside ? at : -1));
      if (!inside) continue;
      CHECK(p[at] == k);
      CHECK(q[at] == (at == 0 && k == 0 ? -6 : k == 0 || at > 0 ? k : q[at]));
    }
    for (int i = 0; i < 16; ++i)
      if (i < start || i >= start + 24) CHECK(p[i] == -5);
  }
}

TEST_CASE("rows and columns of a masked store lie where its mask says [C46]") {
  Tensor x = arange(i32, {16, 256}), o(i32, {16, 256});
  run(
      [](Ref x, Ref o) {
        o[_] = full({16, 256}, -1, i32);
        const Value row = iota(i32, {16, 256}, 0), column = iota(i32, {16, 256}, 1);
        const Value mask = (row >= 4) & (row <= 13) & (column >= 5) & (column <= 134);
        store(o, x[_], {.mask = mask});
      },
      {}, {&x}, {&o});
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 256; ++j) {
      const bool on = i >= 4 && i <= 13 && j >= 5 && j <= 134;
      REQUIRE(o[i * 256 + j] == (on ? i * 256 + j : -1));
    }
}

TEST_CASE("an index out of bounds names index, extent and line, where the mask is on") {
  Tensor x = arange(f32, {2, 8}), at = indices({0, 9, -1, 3}), o(f32, {4});
  const int line = __LINE__ + 3;
  const std::string error = failure_of(
      [](Ref x, Ref at, Ref o) {
        o[_] = x[{1, at[_]}];
      },
      {}, {&x, &at}, {&o});
  CHECK_THAT(error, ContainsSubstring("load: index 9 is out of bounds for dimension 1 of ref block "
                                      "f32[2,8], whose extent is 8") &&
                        ContainsSubstring(":" + std::to_string(line)));
  Tensor masked(f32, {4});
  CHECK_THAT(failure_of(
                 [](Ref x, Ref at, Ref o) {
                   const Value lane = iota(i32, {4});
                   o[_] = load(x.at({1, at[_]}), {.mask = lane != 1, .other = -1});
                 },
                 {}, {&x, &at}, {&masked}),
             ContainsSubstring("load: index -1 is out of bounds"));
  run(
      [](Ref x, Ref at, Ref o) {
        const Value lane = iota(i32, {4});
        o[_] = load(x.at({1, at[_]}), {.mask = (lane == 0) | (lane == 3), .other = -1});
      },
      {}, {&x, &at}, {&masked});
  CHECK(masked.numbers() == std::vector<double>{8, -1, -1, 11});
}

TEST_CASE("elements of a store or a swap that go to one place are told by number and line") {
  Tensor x = arange(f32, {4}), at = indices({2, 0, 2, 1}), o(f32, {4});
  const int line = __LINE__ + 4;
  const std::string error = failure_of(
      [](Ref x, Ref at, Ref o) {
        o[_] = zeros({4}, f32);
        o[at[_]] = x[_];
      },
      {}, {&x, &at}, {&o});
  CHECK_THAT(error, ContainsSubstring("store: elements 0 and 2 of the value go to one element of "
                                      "outputs[0], and which of them stays is not defined") &&
                        ContainsSubstring(":" + std::to_string(line)));
  // All but one masked off.
  run(
      [](Ref x, Ref at, Ref o) {
        o[_] = zeros({4}, f32);
        store(o.at(at[_]), x[_], {.mask = iota(i32, {4}) != 0});
      },
      {}, {&x, &at}, {&o});
  CHECK(o.numbers() == std::vector<double>{1, 3, 2, 0});
}

TEST_CASE("addupdate adds all that goes to an element") {
  Tensor x = arange(f32, {6}), at = indices({2, 0, 2, 1, 2, 0}), o(f32, {4}), p(f32, {6});
  run(
      [](Ref x, Ref at, Ref o, Ref p) {
        o[_] = full({4}, 100, f32);
        addupdate(o.at(at[_]), x[_]);
        p[_] = full({6}, 10, f32);
        addupdate(p.at({ds(1, 4)}), full({4}, 1, f32), {.mask = iota(i32, {4}) != 2});
      },
      {.out_specs = {BlockSpec(), BlockSpec()}}, {&x, &at}, {&o, &p});
  CHECK(o.numbers() == std::vector<double>{106, 103, 106, 100});
  CHECK(p.numbers() == std::vector<double>{10, 11, 11, 10, 11, 10});
}

// ---- numbers for subscripts

TEST_CASE(
    "numbers of blocks, of kernels and of C++, are rounded up, exactly for negative ones too") {
  static_assert(pl::cdiv(7, 2) == 4 && pl::align_to(7, 4) == 8 && pl::next_power_of_2(5) == 8);
  static_assert(pl::next_power_of_2(0) == 1 && pl::next_power_of_2(64u) == 64);
  CHECK_THROWS_WITH(pl::next_power_of_2(-1), ContainsSubstring("next_power_of_2: expected"));
  CHECK(to_string(pl::align_to(pl::dim("m"), 16)) == to_string(pl::cdiv(pl::dim("m"), 16) * 16));
  Tensor x = Tensor(i32, {8}, [](std::int64_t i) { return 3.0 * static_cast<double>(i) - 9; }),
         u = arange(u32, {8}), up(i32, {8}), down(i32, {8}), whole(i32, {8}), of_u(u32, {8}),
         part(i32, {4});
  run(
      [](Ref x, Ref u, Ref up, Ref down, Ref whole, Ref of_u, Ref part) {
        up[_] = pl::cdiv(x[_], 3);
        down[_] = pl::cdiv(x[_], -4);
        whole[_] = pl::align_to(x[_], 4);
        of_u[_] = pl::cdiv(u[_], 3);
        part[_] = x[pl::dslice(pl::cdiv(x[4], 2), 2 * 2)];
      },
      {}, {&x, &u}, {&up, &down, &whole, &of_u, &part});
  for (int i = 0; i < 8; ++i) {
    const int n = 3 * i - 9;
    CHECK(up[i] == std::ceil(n / 3.0));
    CHECK(down[i] == std::ceil(n / -4.0));
    CHECK(whole[i] == std::ceil(n / 4.0) * 4);
    CHECK(of_u[i] == std::ceil(i / 3.0));
  }
  for (int i = 0; i < 4; ++i) CHECK(part[i] == x[2 + i]);
  const auto of_floats = [](Ref x, Ref o) { o[_] = pl::cdiv(x[_].astype(f32), 2.0f).astype(i32); };
  Tensor o(i32, {8});
  CHECK_THAT(failure_of(of_floats, {}, {&x}, {&o}),
             ContainsSubstring("cdiv: expected integers, given f32"));
}
