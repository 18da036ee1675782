// What the trace refuses of operations: shapes, dtypes, indices, masks, control flow, axes.
#include <string>

#include "tests/errors/refused.hpp"

using pl::_;
using pl::ds;
using pl::test::array;
using pl::test::line;
using pl::test::refused;

namespace {

void keep(const pl::Value&) {}
void keep(const pl::Ref&) {}

}  // namespace

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

TEST_CASE("numbers that arange cannot count are refused") {
  const auto refuses = [](const std::string& sentence, auto count, pl::Location at = pl::here()) {
    line = at.line;
    refused([=](pl::Ref x, pl::Ref) { keep(count(x)); }, sentence);
  };
  // clang-format off
  refuses("arange: the step is 0", [](pl::Ref) { return pl::arange(0, 8, 0); });
  refuses("arange: there is no number before the stop, and a value has at least one element", [](pl::Ref) { return pl::arange(0); });
  refuses("arange: there is no number before the stop", [](pl::Ref) { return pl::arange(8, 2); });
  refuses("arange: there are more numbers before the stop than a value has elements", [](pl::Ref) { return pl::arange(0., 1e12); });
  refuses("arange: the stop must be a C++ number, since the extent comes of it, given f32[]; pl::iota(dtype, {n}) + start counts from a Value", [](pl::Ref x) { return pl::arange(x[0]); });
  refuses("arange: the start must be a C++ number, since the extent comes of it, given f32[8]", [](pl::Ref x) { return pl::arange(x[_], 8); });
  refuses("arange: the stop must be a finite number, given an infinite one", [](pl::Ref) { return pl::arange(1 / 0.); });
  refuses("arange: the step must be a finite number, given NaN", [](pl::Ref) { return pl::arange(0, 1, 0 / 0.); });
  refuses("arange: the start must be a finite number, given a bool", [](pl::Ref) { return pl::arange(true, 8); });
  refuses("arange: expected a number's dtype, given bool", [](pl::Ref) { return pl::arange(2, pl::bool_); });
  refuses("arange: the literal 255 is no i8, which holds -128 to 127", [](pl::Ref) { return pl::arange(256, pl::i8); });
  refuses("arange: the literal -1 is no u32", [](pl::Ref) { return pl::arange(-1, 8, 1, pl::u32); });
  refuses("arange: numbers from 0 on by steps of 0.5 are no i32; .astype(i32) rounds them", [](pl::Ref) { return pl::arange(0, 4, .5, pl::i32); });
  refuses("arange: numbers from 0 on by steps of 1.5 are no i32", [](pl::Ref) { return pl::arange(0, 4, 1.5, pl::i32); });
  refuses("full_like: the literal 0.5 is no i32", [](pl::Ref) { return pl::full_like(pl::arange(8), .5); });
  refuses("broadcast: cannot broadcast f32[8] to shape [3]", [](pl::Ref x) { return pl::full_like(pl::zeros({3}), x[_]); });
  refuses("delay: the nanoseconds must be an integer, given f32", [](pl::Ref) { pl::delay(.5); return pl::zeros({8}); });
  refuses("delay: the nanoseconds must be an integer scalar, given f32[8]", [](pl::Ref x) { pl::delay(x[_]); return pl::zeros({8}); });
  // clang-format on
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
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = pl::population_count(x[_]);
      },
      "population_count: expected integers, given f32[8]");
  refused(
      [](pl::Ref, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = pl::erf_inv(pl::iota(pl::i32, {8}));
      },
      "erf_inv: expected floating-point operands, given i32[8]");
}

TEST_CASE("a shape that forgotten specifications explain is explained by them") {
  const pl::PallasCallOptions no_inputs{.name = "k",
                                        .out_type = {{64}, pl::f32},
                                        .grid = {8},
                                        .out_specs = {{{8}, [](pl::Index i) { return i; }}}};
  constexpr const char* in_specs =
      "; in_specs is not given, so that the Ref of args[0] is the whole array, f32[64], beside "
      "outputs[0], which the grid cuts into blocks of f32[8]";
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = x[_] * 2;
      },
      no_inputs, {array({64})},
      std::string("store: expected a value of the view's shape, f32[8], given f32[64]") + in_specs);
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] += x[_];
      },
      no_inputs, {array({64})},
      std::string("add: expected operands whose shapes can be broadcast to one, given f32[8] and "
                  "f32[64]") +
          in_specs);
  // What is computed of whole arrays has the shape of the whole output.
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = pl::sum(x[_], {.axis = 1});
      },
      no_inputs, {array({64, 16})},
      "; in_specs is not given, so that the Ref of args[0] is the whole array, f32[64,16], beside");
  const pl::PallasCallOptions no_outputs{.name = "k",
                                         .out_type = {{64}, pl::f32},
                                         .grid = {8},
                                         .in_specs = {{{8}, [](pl::Index i) { return i; }}}};
  refused(
      [](pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = x[_];
      },
      no_outputs, {array({64})},
      "given f32[8]; out_specs is not given, so that the Ref of outputs[0] is the whole array, "
      "f32[64], beside args[0], which the grid cuts into blocks of f32[8]");
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

TEST_CASE("a scalar is no block of one element, which has one to store it into") {
  const auto scalar = [](pl::Ref x, pl::Ref o) {
    line = __LINE__ + 1;
    o[_] = pl::sum(x[_]);
  };
  refused(scalar, {.name = "k", .out_type = {{1}, pl::f32}}, {array({8})},
          "expected a value of the view's shape, f32[1], given f32[]; a scalar is stored into an "
          "element, as in o[0] = v");
  refused(scalar, {.name = "k", .out_type = {{1, 1, 1}, pl::f32}}, {array({8})},
          "given f32[]; a scalar is stored into an element, as in o[{0, 0, 0}] = v");
  refused(scalar, {.name = "k", .out_type = {{1, 2}, pl::f32}}, {array({8})},
          "given f32[]; nothing is broadcast here: pl::broadcast_to(v, shape)");
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
      "add: the literal 300 is no i8, which holds -128 to 127; pl::i64(300) has a dtype that does, "
      "pl::i8(300) keeps its low bits");
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
      "load: slice of size 9 is out of bounds for dimension 0 of ref block f32[8]: a mask may keep "
      "it inside");
  refused(
      [](pl::Ref x, pl::Ref) {
        const pl::Ref beyond = x.at(pl::ds(-2, 4));
        line = __LINE__ + 1;
        keep(pl::load(beyond));
      },
      "load: slice of start -2, size 4 is out of bounds for dimension 0 of ref block f32[8]: a "
      "mask "
      "may keep it inside");
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

TEST_CASE("an index is a number or an array of integers [C33]") {
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(x[pl::f32(1)]);
      },
      "load: an index must be an integer scalar, given f32[]");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(x[pl::iota(pl::f32, {4})]);
      },
      "load: an index must be of integers, given f32[4] in dimension 0 of ref block f32[8]");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(x[pl::iota(pl::i32, {8}) > 3]);
      },
      "load: booleans are no indices, given bool[8] in dimension 0 of ref block f32[8]; access "
      "with "
      "a mask: pl::load(x, {.mask = m})");
  refused(
      [](pl::Ref x, pl::Ref) {
        const pl::Ref square = x.reshape({2, 4});
        line = __LINE__ + 1;
        keep(square[{pl::iota(pl::i32, {1, 3}), pl::iota(pl::i32, {1, 4})}]);
      },
      "load: cannot broadcast shapes for indexing: [1,3], [1,4]");
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
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(pl::cumsum(x[_], {.axis = 1}));
      },
      "cumsum: axis 1 is out of bounds for a value of 1 dimensions");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(pl::cumsum(x[_], {.axis = -2, .reverse = true}));
      },
      "cumsum: axis -2 is out of bounds for a value of 1 dimensions");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(pl::cumsum(pl::sum(x[_])));
      },
      "cumsum: axis 0 is out of bounds for a value of 0 dimensions");
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        keep(pl::cumsum(x[_] > 0));
      },
      "cumsum: expected numbers, given bool[8]");
}

TEST_CASE("a mask is a bool that fits the view [C44]") {
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
