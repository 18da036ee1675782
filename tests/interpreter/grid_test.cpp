// Grids, blocks and windows: which program sees and writes which elements. [Cnn] are the upstream
// conformance cases.
#include "tests/interpreter/tensors.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

// The first block, whatever the program.
BlockSpec fixed(std::initializer_list<BlockDim> shape) { return BlockSpec(shape); }

const auto copy = [](Ref x, Ref o) { o[_] = x[_]; };

void fill_with_id(Ref o) { o[_] = full(o.shape(), program_id(0), i32); }

std::vector<double> repeat(double x, std::size_t n) { return std::vector<double>(n, x); }

}  // namespace

TEST_CASE("every program adds one to its block [C01]") {
  Tensor x = full(f32, {1024}, 1), o(f32, {1024});
  const BlockSpec rows{{128}, [](Index i) { return i; }};
  run([](Ref x, Ref o) { o[_] = x[_] + 1; }, {.grid = 8, .in_specs = {rows}, .out_specs = {rows}},
      {&x}, {&o});
  CHECK(o.numbers() == repeat(2, 1024));

  Tensor y = full(f32, {64, 128}, 1), p(f32, {64, 128});
  const BlockSpec bands{{8, 128}, [](Index i) { return Indices{i, 0}; }};
  run([](Ref x, Ref o) { o[_] = x[_] + 1; }, {.grid = 8, .in_specs = {bands}, .out_specs = {bands}},
      {&y}, {&p});
  CHECK(p.numbers() == repeat(2, 64 * 128));
}

TEST_CASE(
    "a program's slice of the array is as many blocks in as its ids say, also at the end [C12]") {
  Tensor x = arange(f32, {100, 90}), first(f32, {10, 5}), last(f32, {10, 5});
  const BlockSpec block{{10, 20}, [](Index i, Index j) { return Indices{i, j}; }};
  const BlockSpec one{{1, 1}, [](Index i, Index j) { return Indices{i, j}; }};
  run(
      [](Ref x, Ref first, Ref last) {
        first[_] = x[{ds(0, 1), ds(0, 1)}];
        last[_] = x[{ds(9, 1), ds(9, 1)}];
      },
      {.grid = {10, 5}, .in_specs = {block}, .out_specs = {one, one}}, {&x}, {&first, &last});
  CHECK(first[2 * 5 + 4] == 20 * 90 + 80);
  CHECK(last[2 * 5 + 4] == 29 * 90 + 89);
  CHECK(first[9 * 5] == 90 * 90);
}

TEST_CASE("a block without a shape or an index map is the whole array [C02]") {
  const BlockSpec specs[] = {fixed({128}), BlockSpec(),
                             BlockSpec{{128}, [](Index i) { return i; }}};
  for (const BlockSpec& spec : specs) {
    Tensor o(i32, {128});
    run(fill_with_id, {.grid = 1, .out_specs = {spec}}, {}, {&o});
    CHECK(o.numbers() == repeat(0, 128));
  }
}

TEST_CASE("a block has the shape that somebody else has") {
  const Shape shape{8, 128};
  const BlockSpec all{shape}, bands{shape, [](Index i) { return Indices{i, 0}; }, {.fill = 3}};
  CHECK(!all.whole);
  CHECK(bands.fill == 3);
  Tensor x = full(f32, {20, 128}, 1), o(f32, {24, 128});
  run([](Ref x, Ref o) { o[_] = x[_] + 1; }, {.grid = 3, .in_specs = {bands}, .out_specs = {bands}},
      {&x}, {&o});
  std::vector<double> expected = repeat(2, 20 * 128);
  expected.resize(24 * 128, 4);
  CHECK(o.numbers() == expected);
}

TEST_CASE("the last block may reach over the end of the array [C03]") {
  const BlockSpec threes{{3}, [](Index i) { return i; }}, twos{{2}, [](Index i) { return i; }},
      eights{{8}, [](Index i) { return i; }};
  Tensor a(i32, {8}), b(i32, {8}), c(i32, {3});
  run(fill_with_id, {.grid = 3, .out_specs = {threes}}, {}, {&a});
  CHECK(a.numbers() == std::vector<double>{0, 0, 0, 1, 1, 1, 2, 2});
  run(fill_with_id, {.grid = 4, .out_specs = {twos}}, {}, {&b});
  CHECK(b.numbers() == std::vector<double>{0, 0, 1, 1, 2, 2, 3, 3});
  run(
      [](Ref o) {
        CHECK(o.shape()[0] == 8);
        fill_with_id(o);
      },
      {.grid = 1, .out_specs = {eights}}, {}, {&c});
  CHECK(c.numbers() == repeat(0, 3));
}

TEST_CASE("ragged blocks of two dimensions [C04] [C05]") {
  const BlockSpec tiles{{2, 3}, [](Index i, Index j) { return Indices{i, j}; }};
  const auto body = [](Ref o) { o[_] = full(o.shape(), 10 * program_id(0) + program_id(1), i32); };
  Tensor o(i32, {7, 5});
  run(body, {.grid = {4, 2}, .out_specs = {tiles}}, {}, {&o});
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < 5; ++j) CHECK(o[i * 5 + j] == 10 * (i / 2) + j / 3);
  Tensor small(i32, {1, 2});
  run(body, {.grid = {1, 1}, .out_specs = {tiles}}, {}, {&small});
  CHECK(small.numbers() == repeat(0, 2));
}

TEST_CASE("a squeezed dimension vanishes from the Ref [C07]") {
  Tensor o(i32, {3, 4});
  const BlockSpec spec{{squeezed, 2}, [](Index i, Index j) { return Indices{i, j}; }};
  run(
      [](Ref o) {
        CHECK(o.shape().rank() == 1);
        o[_] = full({2}, 10 * program_id(1) + program_id(0), i32);
      },
      {.grid = {3, 2}, .out_specs = {spec}}, {}, {&o});
  CHECK(o.numbers() == std::vector<double>{0, 0, 10, 10, 1, 1, 11, 11, 2, 2, 12, 12});
}

TEST_CASE("of the programs that revisit a block the last one wins [C08]") {
  for (const BlockSpec& spec : {BlockSpec(), fixed({4, 4})}) {
    Tensor o(i32, {4, 4});
    run([](Ref o) { o[_] = full(o.shape(), 10 * program_id(0) + program_id(1), i32); },
        {.grid = {2, 3}, .out_specs = {spec}}, {}, {&o});
    CHECK(o.numbers() == repeat(12, 16));
  }
}

TEST_CASE("one array through two specs [C09]") {
  Tensor xy = arange(f32, {2, 4}), o(f32, {4});
  const BlockSpec first{{squeezed, 4},
                        [](Index) {
                          return Indices{0, 0};
                        }},
      second{{squeezed, 4}, [](Index) {
               return Indices{1, 0};
             }};
  run([](Ref x, Ref y, Ref o) { o[_] = x[_] + y[_]; },
      {.grid = 1, .in_specs = {first, second}, .out_specs = {BlockSpec()}}, {&xy, &xy}, {&o});
  CHECK(o.numbers() == std::vector<double>{4, 6, 8, 10});
}

TEST_CASE("what lies out of bounds reads as poison, or zero by option [C10]") {
  for (const DType dtype : {bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64}) {
    Tensor x = full(dtype, {3}, dtype.is_bool() ? 0 : 42), o(dtype, {6});
    const PallasCallOptions options{.grid = 1, .in_specs = {fixed({6})}, .out_specs = {fixed({6})}};
    run(copy, options, {&x}, {&o});
    CAPTURE(dtype.name());
    for (int i = 0; i < 6; ++i) {
      if (i < 3) {
        CHECK(o[i] == x[i]);
      } else {
        CHECK(o.is_poison(i));
      }
    }
    run(copy, options, {&x}, {&o}, {.poison = false});
    for (int i = 3; i < 6; ++i) CHECK(o[i] == 0);
  }
  CHECK(std::isnan(graph::to_double(f16, interpreter::poison_bits(f16))));
  CHECK(graph::to_int(i32, interpreter::poison_bits(i32)) == INT32_MIN);
  CHECK(interpreter::poison_bits(u16) == 0);
}

TEST_CASE("what lies out of bounds of a bitcast reads as the poison of the dtype that is read") {
  const auto bits = [](DType to) { return [to](Ref x, Ref o) { o[_] = x.bitcast(to)[_]; }; };
  Tensor x = full(f32, {3}, 42), same(i32, {4}), narrow(i16, {8}), wide(i64, {2});
  const std::vector<BlockSpec> in{fixed({4})};
  run(bits(i32), {.grid = 1, .in_specs = in, .out_specs = {fixed({4})}}, {&x}, {&same});
  CHECK(same.bits(2) == 0x42280000);
  CHECK(same.is_poison(3));
  run(bits(i16), {.grid = 1, .in_specs = in, .out_specs = {fixed({8})}}, {&x}, {&narrow});
  CHECK(narrow.bits(5) == 0x4228);
  CHECK(narrow.is_poison(6));
  CHECK(narrow.is_poison(7));
  run(bits(i64), {.grid = 1, .in_specs = in, .out_specs = {fixed({2})}}, {&x}, {&wide});
  CHECK(wide.bits(0) == 0x4228000042280000);
  CHECK(wide.is_poison(1));  // half of it
}

TEST_CASE("blocks of any shape copy an array [C11]") {
  struct Case {
    std::vector<std::int64_t> shape, block;
  };
  const Case cases[] = {{{9, 129}, {8, 129}}, {{6, 16, 128}, {3, 8, 128}},
                        {{5, 128}, {8, 128}}, {{}, {}},
                        {{7}, {2}},           {{1, 1}, {1, 1}},
                        {{13, 17}, {4, 5}},   {{2, 3, 4, 5}, {1, 2, 3, 4}}};
  for (const DType dtype : {i32, i16, i8, f64})
    for (const Case& c : cases) {
      Tensor x = arange(dtype, c.shape), o(dtype, c.shape);
      std::vector<BlockDim> block;
      PallasCallOptions options;
      for (std::size_t d = 0; d < c.shape.size(); ++d) {
        block.push_back(c.block[d]);
        options.grid.sizes.push_back(cdiv(c.shape[d], c.block[d]));
      }
      const IndexMap map = [&]() -> IndexMap {
        switch (c.shape.size()) {
        case 0: return [] { return Indices{}; };
        case 1: return [](Index i) { return Indices{i}; };
        case 2: return [](Index i, Index j) { return Indices{i, j}; };
        case 3: return [](Index i, Index j, Index k) { return Indices{i, j, k}; };
        default: return [](Index i, Index j, Index k, Index l) { return Indices{i, j, k, l}; };
        }
      }();
      const BlockSpec spec = BlockSpec::of(block, map);
      options.in_specs = options.out_specs = {spec};
      run(copy, options, {&x}, {&o});
      CHECK(o.numbers() == x.numbers());
    }
}

TEST_CASE("an element window starts where the index map says and may overlap others [C13]") {
  Tensor x = arange(f32, {128, 128}), o(f32, {120, 128});
  const BlockSpec in{{Element(16), Element(128)},
                     [](Index i) {
                       return Indices{8 * i, 0};
                     }},
      out{{8, 128}, [](Index i) {
            return Indices{i, 0};
          }};
  run(
      [](Ref x, Ref o) {
        o[_] = x[{ds(0, 8), _}] + x[{ds(8, 8), _}];
      },
      {.grid = 15, .in_specs = {in}, .out_specs = {out}}, {&x}, {&o});
  for (int i = 0; i < 120 * 128; ++i) REQUIRE(o[i] == x[i] + x[i + 8 * 128]);
}

TEST_CASE("an element window reaches into the padding [C14] [C15]") {
  Tensor o(i32, {14, 128});
  const BlockSpec high{{Element(8, {0, 2}), Element(128)}, [](Index i) {
                         return Indices{8 * i, 0};
                       }};
  run(fill_with_id, {.grid = 2, .out_specs = {high}}, {}, {&o});
  for (int i = 0; i < 14 * 128; ++i) REQUIRE(o[i] == i / (8 * 128));

  Tensor x = full(f32, {3}, 42), p(f32, {6});
  const BlockSpec both{{Element(6, {1, 2})}, [](Index) { return 0; }};
  run(copy, {.grid = 1, .in_specs = {both}, .out_specs = {BlockSpec()}}, {&x}, {&p});
  for (int i = 0; i < 6; ++i) {
    if (i >= 1 && i < 4) {
      CHECK(p[i] == 42);
    } else {
      CHECK(p.is_poison(i));
    }
  }
}

TEST_CASE("element windows of an aliased array update it in place [C17]") {
  Tensor x = arange(i32, {20, 256});
  const BlockSpec rows{{Element(8), 256}, [](Index i) { return Indices{10 * i + 1, 0}; }};
  run([](Ref x, Ref o) { o[_] = x[_] + 1; },
      {.grid = 2, .in_specs = {rows}, .out_specs = {rows}, .input_output_aliases = {{0, 0}}}, {&x},
      {&x});
  for (int i = 0; i < 20 * 256; ++i) {
    const int row = i / 256;
    REQUIRE(x[i] == i + ((row >= 1 && row <= 8) || (row >= 11 && row <= 18)));
  }
}

TEST_CASE("program ids count in row-major order over any number of axes [C19]") {
  Tensor o(i32, {2, 3, 4, 5, 128});
  const BlockSpec spec{{1, 1, 1, 1, 128}, [](Index i, Index j, Index k, Index l) {
                         return Indices{i, j, k, l, 0};
                       }};
  run(
      [](Ref o) {
        Value id = 0;
        for (int axis = 0; axis < 4; ++axis) id = id * num_programs(axis) + program_id(axis);
        o[_] = full(o.shape(), id, i32);
      },
      {.grid = {2, 3, 4, 5}, .out_specs = {spec}}, {}, {&o});
  for (int i = 0; i < 120 * 128; ++i) REQUIRE(o[i] == i / 128);
}

TEST_CASE("the number of programs can be stored [C20]") {
  Tensor o(i32, {4});
  run([](Ref o) { o[{program_id(0)}] = Value(num_programs(0)).astype(i32); },
      {.grid = 4, .out_specs = {BlockSpec()}}, {}, {&o});
  CHECK(o.numbers() == repeat(4, 4));
}

TEST_CASE("an accumulator is initialised by the first program and updated by all [C22]") {
  Tensor a(f32, {8, 128}), b(f32, {8, 128});
  const auto body = [](Ref o) {
    when((program_id(0) == 0), [&] { o[_] = zeros(o.shape()); });
    o[_] += 1;
  };
  run(body, {.grid = 8, .out_specs = {BlockSpec()}}, {}, {&a});
  CHECK(a.numbers() == repeat(8, 8 * 128));
  run(
      [](Ref o) {
        when((program_id(0) == 0) & (program_id(1) == 0) & (program_id(2) == 0),
             [&] { o[_] = zeros(o.shape()); });
        o[_] += 1;
      },
      {.grid = {8, 5, 3}, .out_specs = {BlockSpec()}}, {}, {&b});
  CHECK(b.numbers() == repeat(120, 8 * 128));
}

TEST_CASE("a named grid axis is found by its name [C23]") {
  Tensor x = arange(f32, {4, 8, 128}), o(f32, {4, 8, 128});
  const BlockSpec spec{{1, 8, 128}, [](Index i) { return Indices{i, 0, 0}; }};
  run([](Ref x, Ref o) { o[_] = x[_] + axis_index("i").astype(f32); },
      {.grid = {{"i", 4}}, .in_specs = {spec}, .out_specs = {spec}}, {&x}, {&o});
  for (int i = 0; i < 4 * 8 * 128; ++i) REQUIRE(o[i] == x[i] + i / (8 * 128));
}

TEST_CASE("a reduction over the first grid axis runs it in order for every other one [C30]") {
  Tensor x = full(f32, {8, 64, 64}, 1), o(f32, {64, 64});
  const BlockSpec in{{squeezed, 16, 16},
                     [](Index i, Index j, Index k) {
                       return Indices{k, i, j};
                     }},
      out{{16, 16}, [](Index i, Index j, Index) {
            return Indices{i, j};
          }};
  const auto body = [](Ref x, Ref o) {
    when(program_id(2) == 0, [&] { o[_] = zeros(o.shape()); });
    o[_] += x[_];
  };
  run(body, {.grid = {4, 4, 8}, .in_specs = {in}, .out_specs = {out}}, {&x}, {&o});
  CHECK(o.numbers() == repeat(8, 64 * 64));

  // The revisited axis first: it is the inner loop all the same.
  const BlockSpec first_in{{squeezed, 16, 16},
                           [](Index k, Index i, Index j) {
                             return Indices{k, i, j};
                           }},
      first_out{{16, 16}, [](Index, Index i, Index j) {
                  return Indices{i, j};
                }};
  Tensor p(f32, {64, 64});
  run(
      [](Ref x, Ref o) {
        when(program_id(0) == 0, [&] { o[_] = zeros(o.shape()); });
        o[_] += x[_];
      },
      {.grid = {8, 4, 4}, .in_specs = {first_in}, .out_specs = {first_out}}, {&x}, {&p});
  CHECK(p.numbers() == repeat(8, 64 * 64));
}

TEST_CASE("a block that is left and visited again holds what was stored before") {
  // Two outputs, each revisited along the axis that moves the other: the blocks of the second
  // alternate 0 1 0 1 0 1.
  Tensor a(i32, {3}), b(i32, {2});
  const BlockSpec rows{{1}, [](Index i, Index) { return i; }},
      columns{{1}, [](Index, Index j) { return j; }};
  run(
      [](Ref a, Ref b) {
        when(program_id(1) == 0, [&] { a[_] = full({1}, 0, i32); });
        when(program_id(0) == 0, [&] { b[_] = full({1}, 0, i32); });
        a[_] += 1;
        b[_] += 10;
      },
      {.grid = {3, 2}, .out_specs = {rows, columns}}, {}, {&a, &b});
  CHECK(a.numbers() == repeat(2, 3));
  CHECK(b.numbers() == repeat(30, 2));
}

TEST_CASE("scratch lives as long as the sequential axes") {
  Tensor o(f32, {4, 3});
  const BlockSpec row{{1, 3}, [](Index i, Index) { return Indices{i, 0}; }};
  const auto body = [](Ref o, Ref scratch) {
    when(program_id(1) == 0, [&] { scratch[_] = zeros({1}); });
    scratch[_] += 1;
    o[_] = full({1, 3}, scratch[{0}]);
  };
  run(body, {.grid = {4, 5}, .out_specs = {row}, .scratch_types = {gpu::SMEM({1}, f32)}}, {}, {&o});
  CHECK(o.numbers() == repeat(5, 12));
}

TEST_CASE("an output window stores only what was written") {
  Tensor o = full(f32, {8}, -7);
  const BlockSpec fours{{4}, [](Index i) { return i; }};
  run(
      [](Ref o) {
        o[{ds(1, 2)}] = ones({2});
        when(program_id(0) == 1, [&] { o[{3}] = f32(9); });
      },
      {.grid = 2, .out_specs = {fours}}, {}, {&o});
  CHECK(o.numbers() == std::vector<double>{-7, 1, 1, -7, -7, 1, 1, 9});
}

TEST_CASE("an output window that is revisited stores only what was written") {
  for (const Space space : {Space::automatic, Space::smem}) {
    Tensor o = full(f32, {4, 8}, -7);
    const BlockSpec rows{{1, 8},
                         [](Index i, Index) {
                           return Indices{i, 0};
                         },
                         {.memory_space = {space}}};
    run(
        [=](Ref o) {
          if (space == Space::smem) {
            o[{0, ds(2, 3)}] = full({3}, program_id(1).astype(f32), f32);
          } else {
            when(program_id(0) > 1, [&] { o[_] = ones({1, 8}); });
          }
        },
        {.grid = {4, 2}, .out_specs = {rows}}, {}, {&o});
    for (int i = 0; i < 32; ++i) {
      const bool written = space == Space::smem ? i % 8 >= 2 && i % 8 < 5 : i >= 16;
      CHECK(o[i] == (written ? 1 : -7));
    }
  }
}

TEST_CASE("writes out of bounds are dropped, within the program too") {
  Tensor x = full(f32, {5}, 1), o(f32, {5}), sums(f32, {2});
  const BlockSpec fours{{4}, [](Index i) { return i; }}, one{{1}, [](Index i) { return i; }};
  run(
      [](Ref x, Ref o, Ref sums) {
        o[_] = x[_];
        o[_] = full({4}, 2.0f);
        sums[_] = sum(o[_], {.keepdims = true});
      },
      {.grid = 2, .in_specs = {fours}, .out_specs = {fours, one}}, {&x}, {&o, &sums});
  CHECK(o.numbers() == repeat(2, 5));
  CHECK(sums[0] == 8);
  CHECK(std::isnan(sums[1]));
}

TEST_CASE("a grid without programs leaves its outputs alone") {
  Tensor x = arange(f32, {4}), o = full(f32, {4}, 3);
  const BlockSpec all{{4}, [](Index, Index) { return 0; }};
  run(copy, {.grid = {2, 0}, .in_specs = {all}, .out_specs = {all}}, {&x}, {&o});
  CHECK(o.numbers() == repeat(3, 4));
}

TEST_CASE("a kernel without a grid is one program") {
  Tensor x = arange(f32, {}), o(f32, {});
  run([](Ref x, Ref o) { o[_] = x[_] + 42; }, {}, {&x}, {&o});
  CHECK(o[0] == 42);
}

TEST_CASE("aliased windows see the array's old contents and share its memory [C49] [C50]") {
  // Written through the input Ref alone: the same memory.
  Tensor a = full(f32, {64, 64}, 0);
  run([](Ref x, Ref) { x[_] = ones(x.shape()); }, {.input_output_aliases = {{0, 0}}}, {&a}, {&a});
  CHECK(a.numbers() == repeat(1, 64 * 64));

  Tensor x = full(f32, {32, 16, 8}, 1);
  const BlockSpec spec{{squeezed, 16, 8}, [](Index i) { return Indices{i, 0, 0}; }};
  run([](Ref x, Ref o) { o[_] = x[_] + 1; },
      {.grid = 32, .in_specs = {spec}, .out_specs = {spec}, .input_output_aliases = {{0, 0}}}, {&x},
      {&x});
  CHECK(x.numbers() == repeat(2, 32 * 16 * 8));

  // The output window starts with the contents; windows are private, so the input stays old.
  Tensor y = arange(f32, {8}), old(f32, {8});
  run(
      [](Ref y, Ref o, Ref old) {
        o[_] = o[_] * 2;
        old[_] = y[_];
      },
      {.input_output_aliases = {{0, 0}}}, {&y}, {&y, &old});
  for (int i = 0; i < 8; ++i) {
    CHECK(y[i] == 2 * i);
    CHECK(old[i] == i);
  }
}

TEST_CASE("rows with gaps and transposed outer dimensions are read and written by their strides") {
  std::vector<float> memory(100, -1), result(100, -1);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 5; ++j)
      memory[static_cast<std::size_t>(i * 9 + j)] = static_cast<float>(10 * i + j);
  const BlockSpec tiles{{3, 2}, [](Index i, Index j) { return Indices{i, j}; }};
  graph::Graph g =
      traced([](Ref x, Ref o) { o[_] = x[_] + 0.5f; },
             {.out_type = {{4, 5}, f32}, .grid = {2, 3}, .in_specs = {tiles}, .out_specs = {tiles}},
             {{{{4, 5}, f32}, false, false, 4}});
  interpreter::run(g,
                   {{{memory.data(), {4, 5}, {9, 1}}, {result.data(), {4, 5}, {11, 1}}}, {}, {}});
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 11; ++j)
      CHECK(result[static_cast<std::size_t>(i * 11 + j)] ==
            (j < 5 ? static_cast<float>(10 * i + j) + 0.5f : -1));
}

TEST_CASE("one graph with symbolic dims serves every size") {
  const BlockSpec eights{{8}, [](Index i) { return i; }};
  const Dim m = dim("m");
  const graph::Graph g = traced(
      [](Ref x, Ref o) { o[_] = x[_] * 2; },
      {.out_type = {{m}, i32}, .grid = {cdiv(m, 8)}, .in_specs = {eights}, .out_specs = {eights}},
      {array({m}, i32)});
  REQUIRE(g.num_symbols == 1);
  for (const std::int64_t n : {0, 1, 7, 8, 9, 1000}) {
    Tensor x = arange(i32, {n}), o(i32, {n});
    test::Call emulated = call_of({&x}, {&o});
    emulated.symbols = {n};
    interpreter::run(g, {{x.buffer(), o.buffer()}, {}, {n}});
    for (std::int64_t i = 0; i < n; ++i) REQUIRE(o[i] == 2 * i);
    run_emulator(g, {.compute_capability = 90}, emulated);
    CHECK(difference(g, call_of({&x}, {&o}), emulated) == "");
  }
}

TEST_CASE("scalar arguments of every dtype reach the body as values") {
  for (const DType dtype : {bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64}) {
    const graph::Graph g =
        traced([](Value a, Ref x, Value b, Ref o) { o[_] = where(b, x[_], full({3}, a)); },
               {.out_type = {{3}, dtype}}, {number(dtype), array({3}, dtype), number(bool_)});
    Tensor x = full(dtype, {3}, 1), o(dtype, {3});
    const double a = dtype.is_bool() ? 0 : 100;
    for (const std::uint64_t b : {0, 1}) {
      test::Call emulated = call_of({&x}, {&o});
      emulated.scalars = {graph::to_bits(dtype, a), b};
      interpreter::run(g, {{x.buffer(), o.buffer()}, emulated.scalars, {}});
      CHECK(o.numbers() == repeat(b == 0 ? a : 1, 3));
      run_emulator(g, {.compute_capability = 90}, emulated);
      CHECK(difference(g, call_of({&x}, {&o}), emulated) == "");
    }
  }
}

TEST_CASE("a matrix product whose inner blocks reach out of bounds needs a mask [C29]") {
  Tensor x = Tensor(f32, {32, 33}, [](auto i) { return double(i % 7) - 3; }),
         y = Tensor(f32, {33, 32}, [](auto i) { return double(i % 5) - 2; }), o(f32, {32, 32});
  const BlockSpec xs{{32, 32},
                     [](Index i, Index, Index k) {
                       return Indices{i, k};
                     }},
      ys{{32, 32},
         [](Index, Index j, Index k) {
           return Indices{k, j};
         }},
      os{{32, 32}, [](Index i, Index j, Index) {
           return Indices{i, j};
         }};
  for (const bool masked : {false, true}) {
    run(
        [=](Ref x, Ref y, Ref o) {
          const Value k = program_id(2);
          when(k == 0, [&] { o[_] = zeros({32, 32}); });
          Value a = x[_], b = y[_];
          if (masked) {
            a = where(iota(i32, {32, 32}, 1) + 32 * k < 33, a, 0.0f);
            b = where(iota(i32, {32, 32}, 0) + 32 * k < 33, b, 0.0f);
          }
          o[_] += dot(a, b);
        },
        {.grid = {1, 1, 2}, .in_specs = {xs, ys}, .out_specs = {os}}, {&x, &y}, {&o});
    for (int i = 0; i < 32; ++i)
      for (int j = 0; j < 32; ++j) {
        double expected = 0;
        for (int k = 0; k < 33; ++k) expected += x[i * 33 + k] * y[k * 32 + j];
        const double got = o[i * 32 + j];
        if (masked) {
          REQUIRE(got == expected);
        } else {
          REQUIRE(std::isnan(got));
        }
      }
  }
}
