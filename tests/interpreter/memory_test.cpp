// Views, subscripts, load, store and swap.
#include <bit>

#include "tests/interpreter/tensors.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("subscripts select parts of a Ref [C31] [C32]") {
  Tensor x = arange(f32, {5, 6}), corner(f32, {}), row(f32, {6}), column(f32, {5}),
         part(f32, {1, 2}), all(f32, {5, 6});
  run(
      [](Ref x, Ref corner, Ref row, Ref column, Ref part, Ref all) {
        corner[_] = x[{4, 5}];
        row[_] = x[3];
        column[_] = x[{ellipsis, 4}];
        part[_] = x[{ds(2, 1), ds(4, 2)}];
        all[_] = x[_];
      },
      {}, {&x}, {&corner, &row, &column, &part, &all});
  CHECK(corner[0] == 29);
  CHECK(row.numbers() == std::vector<double>{18, 19, 20, 21, 22, 23});
  CHECK(column.numbers() == std::vector<double>{4, 10, 16, 22, 28});
  CHECK(part.numbers() == std::vector<double>{16, 17});
  CHECK(all.numbers() == x.numbers());
}

TEST_CASE("views of views [C35]") {
  Tensor x = arange(f32, {4, 4}), o = full(f32, {16, 16, 16}, 0);
  run(
      [](Ref x, Ref o) {
        o[_] = zeros(o.shape());
        o.at({ds(0, 8)}).at(0).at({ds(0, 4), ds(0, 4)})[_] = x[_];
      },
      {}, {&x}, {&o});
  for (int i = 0; i < 16 * 16 * 16; ++i) {
    const int a = i / 256, b = i / 16 % 16, c = i % 16;
    REQUIRE(o[i] == (a == 0 && b < 4 && c < 4 ? b * 4 + c : 0));
  }
}

TEST_CASE("slices have strides, in loads and in stores [C36] [C37]") {
  const int starts[] = {0, 3, 5}, strides[] = {1, 2, 4};
  for (const int start : starts)
    for (const int stride : strides) {
      const int n = (32 - start + stride - 1) / stride;
      Tensor x = arange(i32, {8, 32}), o(i32, {2, n}), p = full(i32, {8, 32}, -1);
      run(
          [=](Ref x, Ref o, Ref p) {
            o[_] = x[{ds(1, 2, 5), ds(start, n, stride)}];
            p[_] = full({8, 32}, -1, i32);
            p[{ds(1, 2, 5), ds(start, n, stride)}] = full({2, n}, 7, i32);
          },
          {}, {&x}, {&o, &p});
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < n; ++j) REQUIRE(o[i * n + j] == (1 + 5 * i) * 32 + start + stride * j);
      for (int i = 0; i < 8 * 32; ++i) {
        const int row = i / 32, column = i % 32;
        const bool hit =
            (row == 1 || row == 6) && column >= start && (column - start) % stride == 0;
        REQUIRE(p[i] == (hit ? 7 : -1));
      }
    }
}

TEST_CASE("a slice of stride 0 repeats its element, and is only read [C36b]") {
  Tensor x = arange(i32, {8, 32}), start = full(i32, {1}, 5), o(i32, {3, 40}), p(i32, {8, 32}),
         q(i32, {4, 6});
  run(
      [](Ref x, Ref start, Ref o, Ref p, Ref q) {
        o[_] = x[{ds(1, 3, 2), ds(start[0], 40, 0)}];
        p[_] = x[{_, ds(0, 32, 0)}];
        q[_] = x.at({ds(7, 6, 0), ds(2, 8)})
                   .transpose({1, 0})
                   .reshape({2, 24})
                   .at(1)
                   .reshape({4, 6})[_];
      },
      {}, {&x, &start}, {&o, &p, &q});
  for (int i = 0; i < 3 * 40; ++i) REQUIRE(o[i] == (1 + 2 * (i / 40)) * 32 + 5);
  for (int i = 0; i < 8 * 32; ++i) REQUIRE(p[i] == i / 32 * 32);
  for (int i = 0; i < 4 * 6; ++i) REQUIRE(q[i] == 7 * 32 + 6 + i / 6);
}

TEST_CASE("a start that the kernel loads [C39]") {
  Tensor x = arange(i32, {32, 128}), start = full(i32, {1}, 2), o(i32, {10, 128});
  run([](Ref x, Ref start, Ref o) { o[_] = x[{ds(start[0], 10), _}]; }, {}, {&x, &start}, {&o});
  for (int i = 0; i < 10 * 128; ++i) REQUIRE(o[i] == i + 2 * 128);
}

TEST_CASE("masked lanes of a ragged array are not touched [C40]") {
  for (const int size : {1, 2, 64, 129, 1021})
    for (const int block : {1, 16, 128}) {
      Tensor x = arange(f32, {size}), o(f32, {size});
      const BlockSpec spec{{block}, [](Index i) { return i; }};
      run(
          [=](Ref x, Ref o) {
            const Value mask = iota(i32, {block}) + program_id(0) * block < size;
            store(o, load(x, {.mask = mask}) + 1, {.mask = mask});
          },
          {.grid = {cdiv(size, block)}, .in_specs = {spec}, .out_specs = {spec}}, {&x}, {&o});
      for (int i = 0; i < size; ++i) REQUIRE(o[i] == i + 1);
    }
}

TEST_CASE("masked lanes of a slice may lie beyond the Ref [C41]") {
  for (const int start : {0, 1, 9, 16, 40}) {
    Tensor x = arange(i32, {16}), s = full(i32, {1}, start), o(i32, {16}), p = full(i32, {16}, -5);
    run(
        [](Ref x, Ref s, Ref o, Ref p) {
          const Value start = s[0];
          const Value inside = iota(i32, {16}) + start < 16;
          o[_] = load(x.at({ds(start, 16)}), {.mask = inside, .other = -1});
          store(p.at({ds(start, 16)}), full({16}, 3, i32), {.mask = inside});
        },
        {}, {&x, &s}, {&o, &p});
    for (int k = 0; k < 16; ++k) {
      CHECK(o[k] == (start + k < 16 ? start + k : -1));
      CHECK(p[k] == (k >= start ? 3 : -5));
    }
  }
}

TEST_CASE("a masked swap gives the new value where the mask is off [C42]") {
  Tensor x(f32, {16, 32}, [](auto i) { return double(i); }),
      y(f32, {16, 32}, [](auto i) { return -1 - double(i); }),
      mask(bool_, {16, 32}, [](auto i) { return i % 3 == 0; });
  const Tensor x0 = x, y0 = y;
  run(
      [](Ref, Ref, Ref mask, Ref x, Ref y) {
        const Value old = pl::swap(y, x[_], {.mask = mask[_]});
        x[_] = old;
      },
      {.input_output_aliases = {{0, 0}, {1, 1}}}, {&x, &y, &mask}, {&x, &y});
  for (int i = 0; i < 16 * 32; ++i) {
    CHECK(x[i] == (i % 3 == 0 ? y0[i] : x0[i]));
    CHECK(y[i] == (i % 3 == 0 ? x0[i] : y0[i]));
  }
}

TEST_CASE("an unmasked swap exchanges") {
  Tensor x = arange(i16, {4, 8}), o(i16, {4, 8}), old(i16, {4, 4});
  run(
      [](Ref x, Ref o, Ref old) {
        o[_] = x[_];
        const Value before = pl::swap(o.at({_, ds(0, 4, 2)}), full({4, 4}, -1, i16));
        old[_] = before;
      },
      {}, {&x}, {&o, &old});
  for (int i = 0; i < 32; ++i) CHECK(o[i] == (i % 2 == 0 ? -1 : i));
  for (int i = 0; i < 16; ++i) CHECK(old[i] == 2 * i);
}

TEST_CASE("a masked store leaves other elements alone [C46]") {
  Tensor x = arange(f32, {16, 256}), o = full(f32, {16, 256}, -1);
  run(
      [](Ref x, Ref o) {
        const Value row = iota(i32, {16, 256}, 0), column = iota(i32, {16, 256}, 1);
        store(o, x[_], {.mask = (row >= 4) & (row < 14) & (column >= 5) & (column < 135)});
      },
      {}, {&x}, {&o});
  for (int i = 0; i < 16 * 256; ++i) {
    const int row = i / 256, column = i % 256;
    const bool inside = row >= 4 && row < 14 && column >= 5 && column < 135;
    REQUIRE(o[i] == (inside ? i : -1));
  }
}

TEST_CASE("masked-off lanes of a load without `other` are poison") {
  Tensor x = arange(f32, {4}), o(f32, {4});
  const auto body = [](Ref x, Ref o) { o[_] = load(x, {.mask = iota(i32, {4}) < 2}); };
  run(body, {}, {&x}, {&o});
  CHECK((o[0] == 0 && o[1] == 1 && o.is_poison(2) && o.is_poison(3)));
  run(body, {}, {&x}, {&o}, {.poison = false});
  CHECK(o.numbers() == std::vector<double>{0, 1, 0, 0});
}

TEST_CASE("a conditional write [C47]") {
  for (const bool flag : {false, true}) {
    Tensor x = arange(f32, {8}), f = full(bool_, {1}, flag), o(f32, {8});
    run(
        [](Ref x, Ref f, Ref o) {
          o[_] = -x[_];
          when(f[0], [&] { o[4] = x[6]; });
        },
        {}, {&x, &f}, {&o});
    for (int i = 0; i < 8; ++i) CHECK(o[i] == (flag && i == 4 ? 6 : -i));
  }
}

TEST_CASE("a Ref is reshaped, transposed and seen as other bits without a copy [C51]") {
  Tensor x = arange(i32, {6, 8}), a(i32, {3, 16}), b(i32, {8, 6}), c(i32, {2, 3, 4}),
         d(i16, {6, 16}), e(i32, {4, 12});
  run(
      [](Ref x, Ref a, Ref b, Ref c, Ref d, Ref e) {
        a[_] = x.reshape({3, 16})[_];
        b[_] = x.transpose({1, 0})[_];
        // A part of a transposed Ref has no constant distances in its new shape.
        c[_] = x.transpose({1, 0}).at({ds(2, 4), _}).reshape({2, 3, 4})[_];
        d[_] = x.bitcast(i16)[_];
        e[_] = i32(
            x.at({_, ds(0, 4, 2)}).reshape({2, 12}).reshape({24}).reshape({4, 6}).bitcast(i16)[_]);
      },
      {}, {&x}, {&a, &b, &c, &d, &e});
  for (int i = 0; i < 48; ++i) {
    CHECK(a[i] == i);
    CHECK(b[i] == i % 6 * 8 + i / 6);
    CHECK(d[2 * i] == i);
    CHECK(d[2 * i + 1] == 0);
  }
  for (int i = 0; i < 24; ++i) {
    const int row = 2 + i / 6, column = i % 6;
    CHECK(c[i] == column * 8 + row);
    CHECK(e[2 * i] == 2 * i);
    CHECK(e[2 * i + 1] == 0);
  }
}

TEST_CASE("stores through views reach the root") {
  Tensor o(i32, {4, 6}), p(i32, {2, 4});
  run(
      [](Ref o, Ref p) {
        o.transpose({1, 0})[_] = iota(i32, {6, 4}, 0) * 10 + iota(i32, {6, 4}, 1);
        o.transpose({1, 0}).at({ds(0, 3, 2), _}).reshape({12}).at({ds(0, 6)})[_] =
            full({6}, -1, i32);
        p[_] = full({2, 4}, 0x01020304, i32);
        p.bitcast(i8).at({1, ds(0, 4, 4)})[_] = full({4}, -1, i8);
      },
      {}, {}, {&o, &p});
  for (int i = 0; i < 24; ++i) {
    const int row = i / 6, column = i % 6;
    // Transposed columns 0 and the first half of 2 (rows 0 and 1).
    const bool hit = column == 0 || (column == 2 && row < 2);
    CHECK(o[i] == (hit ? -1 : column * 10 + row));
  }
  for (int i = 0; i < 8; ++i) CHECK(p[i] == (i < 4 ? 0x01020304 : 0x010203ff));
}

TEST_CASE("bits joined into wider elements need not be neighbours") {
  Tensor x = arange(u16, {4, 6}), o(u32, {6, 2}), p(u16, {4, 6});
  run(
      [](Ref x, Ref o, Ref p) {
        o[_] = x.transpose({1, 0}).bitcast(u32)[_];
        p[_] = zeros({4, 6}, u16);
        p.transpose({1, 0}).bitcast(u32).at({1})[_] = full({2}, 0x00050004, u32);
      },
      {}, {&x}, {&o, &p});
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 2; ++j)
      CHECK(o[2 * i + j] == 65536.0 * ((2 * j + 1) * 6 + i) + (2 * j) * 6 + i);
  for (int i = 0; i < 24; ++i) CHECK(p[i] == (i % 6 != 1 ? 0 : i / 6 % 2 ? 5 : 4));
}

TEST_CASE("a part of an element that is written keeps the rest, poison if nobody wrote it") {
  Tensor o = full(u32, {2}, 7);
  run([](Ref o) { o.bitcast(u16).at({ds(0, 2, 2)})[_] = full({2}, 9, u16); }, {}, {}, {&o});
  CHECK(o.numbers() == std::vector<double>{9, 9});  // the poison of u32 is 0
}

TEST_CASE("bits of one width are seen as another dtype [C72]") {
  Tensor x(i32, {3}, {42, 0x3f800000, -2147483648.0}), o(f32, {3}), h(u16, {1}, {0x3c00}),
      p(f16, {1});
  run(
      [](Ref x, Ref h, Ref o, Ref p) {
        o[_] = x.bitcast(f32)[_];
        p[_] = h.bitcast(f16)[_];
      },
      {}, {&x, &h}, {&o, &p});
  CHECK(o[0] == std::bit_cast<float>(42));
  CHECK(o[1] == 1);
  CHECK((o[2] == 0 && std::signbit(o[2])));
  CHECK(p[0] == 1);
}

TEST_CASE("gathers and scatters of a scan: o[y[i]] += x[i]") {
  Tensor x = arange(i32, {20}), y(i32, {20}, [](auto i) { return double(i * 7 % 5); }), o(i32, {5});
  run(
      [](Ref x, Ref y, Ref o) {
        o[_] = zeros({5}, i32);
        loop(0, 20, {}, [&](Index i) {
          const Value bin = y[i];
          o[bin] += x[i];
        });
      },
      {}, {&x, &y}, {&o});
  std::vector<double> expected(5);
  for (int i = 0; i < 20; ++i) expected[static_cast<std::size_t>(i * 7 % 5)] += i;
  CHECK(o.numbers() == expected);
}
