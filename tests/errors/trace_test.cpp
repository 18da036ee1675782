// What the trace refuses: each mistake on its words and on the line where it stands.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/tracing.hpp"

using Catch::Matchers::ContainsSubstring;
using pl::_;
using pl::ds;
using pl::test::array;
using pl::test::number;

namespace {

using Arguments = std::vector<pl::trace::ArgumentType>;

// The line of the next mistake: `line = __LINE__ + 1;` stands above it.
int line = 0;

pl::PallasCallOptions one_output() { return {.name = "k", .out_type = {{8}, pl::f32}}; }

// Tracing throws a CompileError that says `sentence` and names this file's `line`.
void refused(const pl::Body& body, const pl::PallasCallOptions& options, const Arguments& arguments,
             const std::string& sentence, pl::Location at = pl::here()) {
  CAPTURE(sentence, at.line);
  try {
    pl::trace::trace({&body, 1}, options, arguments, at);
  } catch (const pl::CompileError& e) {
    CHECK_THAT(e.what(), ContainsSubstring(sentence));
    CHECK(e.at().line == line);
    CHECK(std::strcmp(e.at().file, __FILE__) == 0);
    CHECK_THAT(e.what(), ContainsSubstring("trace_test.cpp:" + std::to_string(line)));
    CHECK_FALSE(pl::trace::tracing());
    return;
  }
  FAIL_CHECK("nothing was refused");
}

// One input x and one output o, both f32[8].
void refused(const pl::Body& body, const std::string& sentence, pl::Location at = pl::here()) {
  refused(body, one_output(), {array({8})}, sentence, at);
}

void copy(pl::Ref x, pl::Ref o) { o[_] = x[_]; }

// Options are at fault: the error names the call, or the spec.
void refused_options(const pl::PallasCallOptions& options, const std::string& sentence,
                     const Arguments& arguments = {array({8})}) {
  CAPTURE(sentence);
  const std::string message = pl::test::error_of(&copy, options, arguments);
  CHECK_THAT(message, ContainsSubstring(sentence));
  CHECK_THAT(message, ContainsSubstring("trace_test.cpp:"));
}

void keep(const pl::Value&) {}
void keep(const pl::Ref&) {}

pl::Value twice(const pl::Value& a, const pl::Value& b) { return a + b; }

}  // namespace

TEST_CASE("a body of the wrong arity is refused with the list of operands") {
  line = __LINE__ + 1;
  refused([](pl::Ref) {},
          "kernel 'k': the function takes 1 operand but 2 are given: args[0], outputs[0]");
  line = __LINE__ + 1;
  refused([](pl::Ref, pl::Ref, pl::Ref) {}, "takes 3 operands but 2 are given");
  line = __LINE__ + 1;
  refused([](auto x, auto y, auto o) { o[_] = x[_] + y[_]; }, "takes 3 operands but 2 are given");
  line = __LINE__ + 1;
  refused([](pl::Ref, pl::Ref, pl::Refs, pl::Ref) {}, "takes at least 3 operands but 2 are given");
  struct Three {
    pl::Ref a, b, c;
  };
  line = __LINE__ + 1;
  refused([](Three) {}, "takes 3 operands but 2 are given");
}

TEST_CASE("a scalar argument is a pl::Value of the body, an array is a Ref") {
  line = __LINE__ + 1;
  refused([](pl::Ref, pl::Ref, pl::Ref) {}, one_output(), {array({8}), number()},
          "args[1] is a scalar: parameter 1 must be a pl::Value");
  line = __LINE__ + 1;
  refused([](pl::Value, pl::Ref) {}, "args[0] is an array: parameter 0 must be a pl::Ref");
}

TEST_CASE("scratch is found by the names that it has") {
  pl::PallasCallOptions options = one_output();
  options.scratch_types = {{"acc", plgpu::SMEM({8}, pl::f32)}};
  refused(
      [](pl::Ref, pl::Ref, pl::Scratch s) {
        line = __LINE__ + 1;
        s["sum"][_] = 0;
      },
      options, {array({8})}, "no scratch is named 'sum'; there are: 'acc'");
}

TEST_CASE("a body that throws leaves nothing behind, and its kernel works the next time") {
  bool broken = true;
  const pl::Body body([&](pl::Ref x, pl::Ref o) {
    pl::loop(0, 8, [&](pl::Index i) {
      o[i] = x[i];
      if (broken) throw std::runtime_error("the user's");
    });
  });
  CHECK_THROWS_AS(pl::test::text_of(body, one_output(), {array({8})}), std::runtime_error);
  CHECK_FALSE(pl::trace::tracing());
  broken = false;
  const std::string text = pl::test::text_of(body, one_output(), {array({8})});
  CHECK_THAT(text, ContainsSubstring("loop"));
}

TEST_CASE("a loop abandoned by an exception that the body catches is not recorded") {
  const std::string text = pl::test::text_of(
      [](pl::Ref x, pl::Ref o) {
        try {
          pl::loop(0, 4, [&](pl::Index i) {
            o[i] = 1;
            throw 1;
          });
        } catch (int) {
        }
        o[_] = x[_];
      },
      one_output(), {array({8})});
  CHECK_THAT(text, !ContainsSubstring("loop"));
}

TEST_CASE("a block has the rank of its array") {
  pl::PallasCallOptions options = one_output();
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{1, 8}}};
  refused(&copy, options, {array({8})},
          "block shape for args[0] (= [1,8]) must have the same number of dimensions as the array "
          "shape [8]");
  options = one_output();
  line = __LINE__ + 1;
  options.out_specs = {pl::BlockSpec{{pl::squeezed, pl::Element(4)}}};
  refused(&copy, options, {array({8})}, "block shape for outputs[0] (= [squeezed,Element(4)])");
}

TEST_CASE("a block has elements and a place") {
  pl::PallasCallOptions options = one_output();
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{0}}};
  refused(&copy, options, {array({8})}, "must have at least one element in each dimension");
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{pl::Element(8, {-1, 0})}}};
  refused(&copy, options, {array({8})}, "padding must not be negative");
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{8}, {}, {.memory_space = plgpu::REGS}}};
  refused(&copy, options, {array({8})}, "args[0]: a block cannot be pinned to registers");
}

TEST_CASE("an index map takes an index per grid axis and returns one per block dimension") {
  pl::PallasCallOptions options = one_output();
  options.grid = {2};
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{4}, [](pl::Index i, pl::Index) { return i; }}};
  refused(&copy, options, {array({8})},
          "index map function for args[0] takes 2 program ids, but the grid [2] has 1 axis");
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{4}, [](pl::Index i) { return pl::Indices{i, 0}; }}};
  refused(&copy, options, {array({8})},
          "index map function for args[0] must return 1 values to match block_shape=[4]. Currently "
          "returning 2 values");
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{4}, [](pl::Index) { return 0.5; }}};
  refused(&copy, options, {array({8})},
          "index map function for args[0] must return integer scalars. Output[0] has type f32[]");
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{4}, [](pl::Index i) { return pl::full({4}, i); }}};
  refused(&copy, options, {array({8})}, "Output[0] has type i32[4]");
}

TEST_CASE("an index map cannot capture values") {
  pl::Value captured;
  pl::test::traced([&](pl::Ref, pl::Ref) { captured = pl::program_id(0); },
                   {.name = "other", .out_type = {{8}, pl::f32}, .grid = {2}}, {array({8})});
  pl::PallasCallOptions options = one_output();
  options.grid = {2};
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{4}, [=](pl::Index i) { return i + captured; }}};
  refused(&copy, options, {array({8})}, "add in kernel 'k' uses a value of kernel 'other'");
}

TEST_CASE("there is one spec per array, or none") {
  pl::PallasCallOptions options = one_output();
  options.in_specs = {pl::BlockSpec{{8}}, pl::BlockSpec{{8}}};
  refused_options(options, "in_specs has 2 entries for 1 array argument");
  options = one_output();
  options.in_specs = {pl::BlockSpec{{8}}};
  refused_options(options, "in_specs has 1 entry for 2 array arguments", {array({8}), array({8})});
  options = one_output();
  options.out_specs = {pl::BlockSpec{{8}}, pl::BlockSpec{{8}}};
  refused_options(options, "out_specs has 2 entries for 1 output");
}

TEST_CASE("an old and a new spelling are not given both") {
  pl::PallasCallOptions options = one_output();
  options.out_shape = {{8}, pl::f32};
  refused_options(options, "cannot specify both out_shape and out_type; use out_type");
  options = one_output();
  options.scratch_types = options.scratch_shapes = {plgpu::SMEM({8}, pl::f32)};
  refused_options(options, "cannot specify both scratch_shapes and scratch_types");
  options = one_output();
  options.grid_spec.grid = {2};
  options.grid = {2};
  refused_options(options, "if grid_spec is given, then grid must not be");
  options.grid = {};
  options.in_specs = {pl::BlockSpec{{8}}};
  refused_options(options, "if grid_spec is given, then in_specs must not be");
}

TEST_CASE("axes have one name each, or none") {
  pl::PallasCallOptions options = one_output();
  options.grid = {2, 2};
  options.grid_names = {"i"};
  refused_options(options, "grid_names must have the same length as grid, given [i] for 2 axes");
  options.grid_names = {"i", "i"};
  refused_options(options, "axis name 'i' is given twice in grid_names");
  options.grid_names = {"i", "j"};
  options.cluster = {2};
  options.cluster_names = {"j"};
  refused_options(options, "axis name 'j' is both a grid and a cluster axis");
  options.grid = {{"i", 2}, {"j", 2}};
  refused_options(options, "the grid's axes are named twice");
}

TEST_CASE("grids and clusters have sensible sizes") {
  pl::PallasCallOptions options = one_output();
  options.grid = {2, -1};
  refused_options(options, "a grid has no negative sizes, given [2,-1]");
  options.grid = {2};
  options.cluster = {1, 1, 1, 1};
  refused_options(options, "cluster must be at most 3D, given [1,1,1,1]");
  options.cluster = {0};
  refused_options(options, "a cluster's sizes are positive");
  options.cluster = {};
  options.compiler_params.dimension_semantics = {pl::parallel, pl::parallel};
  refused_options(options, "dimension_semantics has 2 entries for a grid of 1 axes");
}

TEST_CASE("an axis along which an output is revisited cannot be parallel") {
  const pl::PallasCallOptions options{
      .name = "k",
      .out_type = {{8}, pl::f32},
      .grid = {{"i", 2}, {"k", 4}},
      .in_specs = {{{2}, [](pl::Index, pl::Index k) { return k; }}},
      .out_specs = {{{4}, [](pl::Index i, pl::Index) { return i; }}},
      .compiler_params = {.dimension_semantics = {pl::parallel, pl::parallel}}};
  line = __LINE__ + 1;
  refused([](pl::Ref, pl::Ref o) { o[_] = 0; }, options, {array({8})}, "outputs[0]");
  pl::PallasCallOptions allowed = options;
  allowed.compiler_params.allow_revisit = true;
  CHECK_NOTHROW(pl::test::traced([](pl::Ref, pl::Ref o) { o[_] = 0; }, allowed, {array({8})}));
}

TEST_CASE("aliases are of equal types, and one each") {
  pl::PallasCallOptions options = one_output();
  options.input_output_aliases = {{2, 0}};
  refused_options(options,
                  "input_output_aliases contains the mapping '2:0' with input index 2 outside the "
                  "range [0, 1)");
  options.input_output_aliases = {{0, 1}};
  refused_options(options, "'0:1' with output index 1 outside the range [0, 1)");
  options.input_output_aliases = {{0, 0}};
  refused_options(options, "of args[0], which is f32[16], to outputs[0], which is f32[8]",
                  {array({16})});
  refused_options(options, "of args[0], which is i32[8], to outputs[0], which is f32[8]",
                  {array({8}, pl::i32)});
  options.input_output_aliases = {{0, 0}, {0, 0}};
  refused_options(options, "has an alias already");
}

TEST_CASE("scratch lives in SMEM or REGS") {
  pl::PallasCallOptions options = one_output();
  line = __LINE__ + 1;
  options.scratch_types = {plgpu::GMEM({8}, pl::f32)};
  refused([](pl::Ref, pl::Ref, pl::Ref) {}, options, {array({8})},
          "scratch[0] must be in SMEM or REGS");
}

TEST_CASE("shapes that do not broadcast are refused") {
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = x[_] + pl::zeros({3});
      },
      "add: expected operands whose shapes can be broadcast to one, given f32[8] and f32[3]");
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = pl::broadcast_to(x[_], {4, 3});
      },
      "broadcast: cannot broadcast f32[8] to shape [4,3]");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(pl::dot(pl::reshape(x[_], {2, 4}), pl::zeros({2, 4})));
      },
      "dot: inner sizes differ: f32[2,4] has 4, f32[2,4] has 2");
}

TEST_CASE("dtypes that differ are refused, with the conversion to write") {
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = x[_] + pl::bf16(x[_]);
      },
      "add: expected operands of one dtype, given f32 and bf16; convert one of them: pl::f32(x)");
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = pl::where(x[_] > 0, x[_], pl::i32(x[_]));
      },
      "where: expected operands of one dtype, given f32 and i32");
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = x[_] & 1;
      },
      "and: expected integers or bools, given f32[8]");
  refused(
      [](pl::Ref, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = pl::exp(pl::iota(pl::i32, {8}));
      },
      "exp: expected floating-point operands, given i32[8]");
}

TEST_CASE("a store has the exact shape and dtype") {
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = x[0];
      },
      "store: expected a value of the view's shape, f32[8], given f32[]");
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = pl::f16(x[_]);
      },
      "store: expected a value of the Ref's dtype f32, given f16; convert it: pl::f32(v)");
  refused(
      [](pl::Ref, pl::Ref o) {
        line = __LINE__ + 1;
        pl::store(o, pl::iota(pl::i32, {8}));
      },
      "store: expected a value of the Ref's dtype f32, given i32");
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        keep(pl::swap(o, x[ds(0, 4)]));
      },
      "swap: expected a value of the view's shape, f32[8], given f32[4]");
}

TEST_CASE("a literal that the dtype cannot hold is refused") {
  refused(
      [](pl::Ref, pl::Ref) {
        line = __LINE__ + 1;
        keep(pl::iota(pl::i32, {8}) * 0.5);
      },
      "mul: the literal 0.5 is no i32; convert the other operand: pl::f32(x)");
  refused(
      [](pl::Ref, pl::Ref) {
        line = __LINE__ + 1;
        keep(pl::iota(pl::i8, {8}) + 300);
      },
      "add: the literal 300 is no i8; write it in a wider dtype");
}

TEST_CASE("a pl::Value without a value is refused") {
  refused(
      [](pl::Ref, pl::Ref o) {
        pl::Value acc;
        line = __LINE__ + 1;
        o[_] = acc;
      },
      "store uses a pl::Value that was given no value");
  refused(
      [](pl::Ref, pl::Ref) {
        pl::Value acc;
        line = __LINE__ + 1;
        acc += 1;
      },
      "add uses a pl::Value that was given no value");
}

TEST_CASE("static indices and slices are checked against the shape") {
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(x[8]);
      },
      "load: index 8 is out of bounds for dimension 0 of ref block f32[8]");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(x[-1]);
      },
      "load: index -1 is out of bounds");
  refused(
      [](pl::Ref, pl::Ref o) {
        line = __LINE__ + 1;
        o[ds(6, 4)] = 0;
      },
      "store: slice of start 6, size 4, stride 1 is out of bounds");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(x[ds(0, 5, 2)]);
      },
      "load: slice of start 0, size 5, stride 2 is out of bounds");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(x[ds(pl::program_id(0), 9)]);
      },
      {.name = "k", .out_type = {{8}, pl::f32}, .grid = {2}}, {array({8})},
      "slice of 9 elements with stride 1 does not fit into dimension 0");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(x.at(ds(0, 0)));
      },
      "at: a slice takes at least one element");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(x[{0, 1}]);
      },
      "load: 2 indices for ref block f32[8], which has 1 dimensions");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(x[{pl::ellipsis, pl::ellipsis}]);
      },
      "load: only one ellipsis is supported");
}

TEST_CASE("an index is an integer scalar") {
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(x[pl::f32(1)]);
      },
      "load: an index must be an integer scalar, given f32[]");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(x[pl::iota(pl::i32, {4})]);
      },
      "load: an index must be an integer scalar, given i32[4]");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(x[pl::Value(1.5)]);
      },
      "load: an index must be an integer, given f32");
}

TEST_CASE("reshapes and permutations fit the shape") {
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(x.reshape({3, -1}));
      },
      "reshape: the given dimensions of [3,-1] do not divide 8 elements");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(pl::reshape(x[_], {-1, -1}));
      },
      "reshape: at most one dimension can be -1");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(pl::reshape(x[_], {3, 3}));
      },
      "reshape: expected a shape of 8 elements for f32[8], given [3,3]");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(x.transpose({0, 0}));
      },
      "transpose: axis 0 is given twice");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(pl::sum(x[_], {.axis = 1}));
      },
      "sum: axis 1 is out of bounds for a value of 1 dimensions");
}

TEST_CASE("a mask is a bool that fits the view") {
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(pl::load(x, {.mask = x[_]}));
      },
      "load: the mask must be bool, given f32[8]; compare: v != 0");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(pl::load(x, {.mask = pl::iota(pl::i32, {4}) > 1}));
      },
      "load: cannot broadcast the mask bool[4] to the view's shape, [8]");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(pl::load(x, {.other = 0}));
      },
      "load: `other` requires a mask");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(pl::load(x, {.mask = x[_] > 0, .other = pl::i32(0)}));
      },
      "load: `other` must have the Ref's dtype f32, given i32[]");
}

TEST_CASE("control flow takes scalars, and carries keep their types") {
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        pl::when(x[_] > 0, [&] { o[_] = 0; });
      },
      "when: the condition must be a scalar, given bool[8]");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        pl::loop(0, x[0], [&](pl::Index) {});
      },
      "loop: the upper bound must be an integer scalar, given f32[]");
  refused(
      [](pl::Ref, pl::Ref) {
        line = __LINE__ + 1;
        pl::loop(0, 2.5, [&](pl::Index) {});
      },
      "loop: the upper bound must be an integer, given f32");
  refused(
      [](pl::Ref, pl::Ref) {
        line = __LINE__ + 1;
        pl::loop(0, 8, {.step = 0}, [&](pl::Index) {});
      },
      "loop: the step must be positive, given 0");
  refused(
      [](pl::Ref, pl::Ref) {
        const pl::Value n = pl::i32(3);
        line = __LINE__ + 1;
        pl::loop(0, n, {.unroll = 2}, [&](pl::Index) {});
      },
      "loop: unroll needs bounds that are C++ numbers");
  refused(
      [](pl::Ref x, pl::Ref) {
        const auto add = [&](pl::Index, pl::Value c) { return c + x[_]; };
        line = __LINE__ + 1;
        keep(pl::loop(0, 8, add, 0.f));
      },
      "loop: carry 0 starts as f32[] but the body returns f32[8]");
}

TEST_CASE("axes are those of the grid and the names that there are") {
  const pl::PallasCallOptions options{.name = "k",
                                      .out_type = {{8}, pl::f32},
                                      .grid = {{"i", 4}, {"j", 2}},
                                      .cluster = {2},
                                      .cluster_names = {"half"}};
  refused(
      [](pl::Ref, pl::Ref) {
        line = __LINE__ + 1;
        keep(pl::program_id(2));
      },
      options, {array({8})}, "program_id: axis 2 is out of bounds for grid [4,2]");
  refused(
      [](pl::Ref, pl::Ref) {
        line = __LINE__ + 1;
        keep(pl::axis_index("k"));
      },
      options, {array({8})}, "axis_index: no axis is named 'k'; there are: 'i', 'j', 'half'");
  refused(
      [](pl::Ref, pl::Ref) {
        line = __LINE__ + 1;
        keep(pl::axis_size("k"));
      },
      "axis_size: no axis is named 'k'; none has a name");
}

TEST_CASE("values are good only in the trace that recorded them") {
  pl::Value leaked;
  pl::test::traced([&](pl::Ref x, pl::Ref) { leaked = x[_]; },
                   {.name = "first", .out_type = {{8}, pl::f32}}, {array({8})});
  refused(
      [&](pl::Ref, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = leaked;
      },
      "store in kernel 'k' uses a value of kernel 'first', whose trace is over or runs on another "
      "thread");
  CHECK_THROWS_WITH(leaked + 1, ContainsSubstring("add: used outside a kernel body"));
  CHECK_THROWS_WITH(pl::zeros({8}), ContainsSubstring("zeros: used outside a kernel body"));
}

TEST_CASE("a kernel traced inside another cannot use its values") {
  refused(
      [](pl::Ref x, pl::Ref) {
        const pl::Value v = x[_];
        const pl::Body inner([=](pl::Ref, pl::Ref q) {
          line = __LINE__ + 1;
          q[_] = v;
        });
        CHECK(pl::trace::tracing());
        CHECK(pl::trace::traced_kernel() == "k");
        pl::trace::trace({&inner, 1}, {.name = "inner", .out_type = {{8}, pl::f32}},
                         Arguments{array({8})}, pl::here());
      },
      "store in kernel 'inner' uses a value of kernel 'k', which encloses it; pass it as an "
      "argument");
}

TEST_CASE("a value cannot be used on another thread") {
  std::string message;
  pl::test::traced(
      [&](pl::Ref x, pl::Ref) {
        pl::Value v = x[_];
        std::thread([&] {
          try {
            v = v + 1;
          } catch (const pl::CompileError& e) {
            message = e.what();
          }
        }).join();
      },
      one_output(), {array({8})});
  CHECK_THAT(message, ContainsSubstring("add: used outside a kernel body"));
}

TEST_CASE("a value of a body that has ended must be carried out") {
  refused(
      [](pl::Ref x, pl::Ref o) {
        pl::Value acc = 0.f;
        pl::loop(0, 8, [&](pl::Index i) { acc += x[i]; });
        line = __LINE__ + 1;
        o[0] = acc;
      },
      "inside a body that has ended; carry it out: acc = pl::loop(lo, hi, body, init)");
  refused(
      [](pl::Ref x, pl::Ref) {
        pl::Value inside;
        pl::when(x[0] > 0, [&] { inside = x[1]; });
        line = __LINE__ + 1;
        keep(inside * 2);
      },
      "mul uses a value recorded at trace_test.cpp:");
}

TEST_CASE("two effects in one expression are refused") {
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = twice(pl::swap(x, pl::zeros({8})), pl::swap(o, pl::zeros({8})));
      },
      "two effects in one expression: swap after swap at trace_test.cpp:");
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = twice(x[_], pl::swap(x, pl::zeros({8})));
      },
      "a read and a write of one Ref in one expression");
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = twice(pl::exp(x[_]), pl::swap(x, pl::zeros({8})));
      },
      "a read and a write of one Ref in one expression");
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = twice(pl::load(x), pl::swap(x, pl::zeros({8})));
      },
      "a read and a write of one Ref in one expression");
  refused(
      [](pl::Ref x, pl::Ref o) {
        const auto fill = [](pl::Ref r) {
          return [=](pl::Index i, pl::Value c) {
            r[i] = c;
            return c + 1;
          };
        };
        line = __LINE__ + 1;
        keep(twice(pl::loop(0, 4, fill(x), 0.f), pl::loop(0, 4, fill(o), 0.f)));
      },
      "two effects in one expression: loop after loop");
}

TEST_CASE("effects whose order the language fixes are allowed") {
  const auto allowed = [](const pl::Body& body) {
    CHECK_NOTHROW(pl::test::traced(body, one_output(), {array({8})}));
  };
  allowed([](pl::Ref x, pl::Ref o) { o[_] = pl::swap(x, pl::zeros({8})); });
  allowed([](pl::Ref x, pl::Ref o) { o[_] = pl::swap(x, pl::exp(x[_])); });
  allowed([](pl::Ref x, pl::Ref o) { o[_] = twice(pl::swap(x, twice(x[_], 1)), 2); });
  allowed([](pl::Ref x, pl::Ref o) {
    const pl::Value a = pl::swap(x, o[_]);
    const pl::Value b = pl::swap(x, a);
    pl::swap(o, b);
    pl::swap(o, a);
  });
  allowed([](pl::Ref x, pl::Ref o) { x[_] += twice(pl::swap(o, x[_]), 1); });
  allowed([](pl::Ref x, pl::Ref o) { o[_] = twice(o[_], pl::swap(x, pl::zeros({8}))); });
}

TEST_CASE("a block needs a shape where the array's is symbolic") {
  pl::PallasCallOptions options{.name = "k", .out_type = {{pl::dim("n")}, pl::f32}};
  refused_options(options, "args[0] has a symbolic dimension 'n' and no block shape",
                  {array({pl::dim("n")})});
}
