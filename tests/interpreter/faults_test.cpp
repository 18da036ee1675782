// What only a run can see to be wrong: the messages, and the lines that they name.
#include "tests/interpreter/tensors.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string at_line(int line) { return "faults_test.cpp:" + std::to_string(line); }

}  // namespace

TEST_CASE("two programs of a parallel axis that write one element are reported") {
  Tensor o(f32, {20});
  int line = 0;
  // The block map depends on the axis, so it is parallel; windows of 6 at distance 4 overlap.
  const BlockSpec overlapping{{Element(6)}, [](Index i) { return 4 * i; }};
  const std::string error = failure_of(
      [&](Ref o) {
        line = __LINE__ + 1;
        o[_] = full({6}, 1.0f);
      },
      {.grid = 4, .out_specs = {overlapping}}, {}, {&o});
  CHECK_THAT(error, ContainsSubstring("outputs[0]") && ContainsSubstring("programs (0) and (1)") &&
                        ContainsSubstring("element [4]") && ContainsSubstring("parallel axis 0") &&
                        ContainsSubstring(at_line(line)));
}

TEST_CASE("a conflict names every axis that differs, and both lines") {
  Tensor o(i32, {4, 8});
  int first = 0, second = 0;
  // Programs (i, j) write row i + j; the sequential axis k has no part in it.
  const BlockSpec rows{{Element(1), 8}, [](Index i, Index j, Index) { return Indices{i + j, 0}; }};
  const std::string error = failure_of(
      [&](Ref o) {
        when(program_id(0) == 0, [&] {
          first = __LINE__ + 1;
          o[{0, ds(0, 4)}] = full({4}, 1, i32);
        });
        when(program_id(0) == 1, [&] {
          second = __LINE__ + 1;
          o[{0, ds(3, 4)}] = full({4}, 2, i32);
        });
      },
      {.grid = {{"row", 2}, {"shift", 2}, {"k", 3}}, .out_specs = {rows}}, {}, {&o});
  CHECK_THAT(error,
             ContainsSubstring("(0, 1, *) and (1, 0, *)") && ContainsSubstring("element [1,3]") &&
                 ContainsSubstring("axis 0 (\"row\")") && ContainsSubstring("axis 1 (\"shift\")") &&
                 ContainsSubstring(at_line(first)) && ContainsSubstring(at_line(second)));
}

TEST_CASE("allow_revisit lets parallel programs write one element") {
  Tensor o(f32, {20});
  const BlockSpec overlapping{{Element(6)}, [](Index i) { return 4 * i; }};
  PallasCallOptions options{.grid = 4, .out_specs = {overlapping}};
  options.compiler_params.allow_revisit = true;
  run([](Ref o) { o[_] = full({6}, 1.0f); }, options, {}, {&o});
  CHECK(o[17] == 1);
}

TEST_CASE("parts of one block that different programs write do not conflict") {
  Tensor o(i32, {6});
  const BlockSpec whole_at_zero{{Element(6)}, [](Index i) { return i * 0; }};
  PallasCallOptions options{.grid = 3, .out_specs = {whole_at_zero}};
  options.compiler_params.dimension_semantics = {parallel};
  options.compiler_params.allow_revisit = true;
  run([](Ref o) { o[{ds(2 * program_id(0), 2)}] = full({2}, program_id(0), i32); }, options, {},
      {&o});
  CHECK(o.numbers() == std::vector<double>{0, 0, 1, 1, 2, 2});
}

TEST_CASE("blocks of a cluster that write one element are reported") {
  Tensor o(i32, {4});
  const BlockSpec one{{1}, [](Index i) { return i; }};
  const std::string error = failure_of([](Ref o) { o[0] = program_id(0); },
                                       {.grid = 4, .cluster = {2}, .out_specs = {one}}, {}, {&o});
  CHECK_THAT(error, ContainsSubstring("(0) block 0 and (0) block 1") &&
                        ContainsSubstring("the cluster's blocks"));
}

TEST_CASE("two writes through an aliased input are found as through the output") {
  Tensor x(f32, {8});
  const BlockSpec overlapping{{Element(4)}, [](Index i) { return 2 * i; }};
  const std::string error = failure_of([](Ref x, Ref) { x[_] = ones({4}); },
                                       {.grid = 3,
                                        .in_specs = {overlapping},
                                        .out_specs = {overlapping},
                                        .input_output_aliases = {{0, 0}}},
                                       {&x}, {&x});
  CHECK_THAT(error, ContainsSubstring("programs (0) and (1)") && ContainsSubstring("element [2]"));
}

TEST_CASE("a block wholly out of bounds names operand, program, block and array") {
  Tensor x = arange(f32, {300, 128}), o(f32, {300, 128});
  // The mistake of users: element offsets instead of block indices.
  const int line = __LINE__ + 1;
  const BlockSpec offsets{{128, 128}, [](Index i) { return Indices{i * 128, 0}; }};
  const BlockSpec right{{128, 128}, [](Index i) { return Indices{i, 0}; }};
  const std::string in =
      failure_of([](Ref x, Ref o) { o[_] = x[_]; },
                 {.grid = 3, .in_specs = {offsets}, .out_specs = {right}}, {&x}, {&o});
  CHECK_THAT(in, ContainsSubstring("args[0]") && ContainsSubstring("program (1)") &&
                     ContainsSubstring("block (128, 0)") && ContainsSubstring("[300,128]") &&
                     ContainsSubstring("16384 = 128 * 128") &&
                     ContainsSubstring("block indices, not element offsets") &&
                     ContainsSubstring(at_line(line)));
  const std::string out =
      failure_of([](Ref x, Ref o) { o[_] = x[_]; },
                 {.grid = 3, .in_specs = {right}, .out_specs = {offsets}}, {&x}, {&o});
  CHECK_THAT(out, ContainsSubstring("outputs[0]") && ContainsSubstring("block (128, 0)"));
}

TEST_CASE("windows before the array and in padding alone are wholly out of bounds too") {
  Tensor x = arange(f32, {8}), o(f32, {8});
  const BlockSpec before{{Element(4, {4, 0})}, [](Index i) { return i; }},
      squeezed_far{{squeezed}, [](Index i) { return i + 8; }}, whole;
  const auto sum_up = [](Ref x, Ref o) { o[_] = full({8}, x[0]); };
  CHECK_THAT(
      failure_of(sum_up, {.grid = 1, .in_specs = {before}, .out_specs = {whole}}, {&x}, {&o}),
      ContainsSubstring("starts at -4"));
  CHECK_THAT(failure_of([](Ref x, Ref o) { o[_] = full({8}, x[_]); },
                        {.grid = 1, .in_specs = {squeezed_far}, .out_specs = {whole}}, {&x}, {&o}),
             ContainsSubstring("block (8)") && ContainsSubstring("starts at 8"));
}

TEST_CASE("a dynamic start out of bounds names start, size, extent and line") {
  for (const int start : {-1, 13, 100}) {
    Tensor x = arange(f32, {16}), s = full(i32, {1}, start), o(f32, {4});
    int line = 0;
    const std::string slice = failure_of(
        [&](Ref x, Ref s, Ref o) {
          const Value start = s[0];
          line = __LINE__ + 1;
          o[_] = x[{ds(start, 4)}];
        },
        {}, {&x, &s}, {&o});
    CHECK_THAT(slice,
               ContainsSubstring("load: slice of 4 elements from " + std::to_string(start)) &&
                   ContainsSubstring("dimension 0") && ContainsSubstring("extent is 16") &&
                   ContainsSubstring(at_line(line)));
  }
  Tensor x = arange(f32, {3, 16}), s = full(i32, {1}, 16), o(f32, {3, 16});
  CHECK_THAT(failure_of(
                 [](Ref x, Ref s, Ref o) {
                   o[_] = x[_];
                   const Value i = s[0];
                   o[{1, i}] = f32(1);
                 },
                 {}, {&x, &s}, {&o}),
             ContainsSubstring("store: index 16") && ContainsSubstring("dimension 1"));
  CHECK_THAT(failure_of(
                 [](Ref x, Ref s, Ref o) {
                   o[_] = x[_];
                   const Value i = s[0];
                   o[{_, ds(0, 5)}] = x[{_, ds(i, 5, 2)}];
                 },
                 {}, {&x, &s}, {&o}),
             ContainsSubstring("5 elements with stride 2 from 16"));
}

TEST_CASE("a masked access out of bounds fails only where the mask is on") {
  Tensor x = arange(f32, {16}), s = full(i32, {1}, 10), o(f32, {16});
  for (const int inside : {6, 7}) {
    const std::string error = failure_of(
        [=](Ref x, Ref s, Ref o) {
          const Value start = s[0];
          o[_] = load(x.at({ds(start, 16)}), {.mask = iota(i32, {16}) < inside, .other = 0});
        },
        {}, {&x, &s}, {&o});
    CHECK(error.empty() == (inside == 6));
  }
}

TEST_CASE("after a failed run the next one is sound") {
  Tensor x = arange(f32, {16}), s = full(i32, {1}, 99), o(f32, {16});
  const auto body = [](Ref x, Ref s, Ref o) {
    const Value start = s[0];
    o[_] = zeros({16});
    o[{ds(0, 4)}] = x[{ds(start, 4)}];
  };
  CHECK_FALSE(failure_of(body, {}, {&x, &s}, {&o}).empty());
  s.set(0, 12);
  CHECK(failure_of(body, {}, {&x, &s}, {&o}).empty());
  CHECK(o[3] == 15);
}

TEST_CASE("an invocation that is not the graph's is our own mistake") {
  const graph::Graph g =
      traced([](Ref x, Ref o) { o[_] = x[_]; }, {.out_type = {{4}, f32}}, {array({4})});
  Tensor x(f32, {4}), o(f32, {4}), longer(f32, {5});
  CHECK_THROWS_AS(interpreter::run(g, {{x.buffer()}, {}, {}}), InternalError);
  CHECK_THROWS_AS(interpreter::run(g, {{x.buffer(), longer.buffer()}, {}, {}}), InternalError);
  CHECK_THROWS_AS(interpreter::run(g, {{x.buffer(), o.buffer()}, {1}, {}}), InternalError);
  CHECK_NOTHROW(interpreter::run(g, {{x.buffer(), o.buffer()}, {}, {}}));
}
