// What the trace refuses of bodies and options: operands, specs, grids, aliases, scratch.
#include <stdexcept>
#include <string>

#include "tests/errors/refused.hpp"

using Catch::Matchers::ContainsSubstring;
using pl::_;
using pl::test::array;
using pl::test::line;
using pl::test::number;
using pl::test::one_output;
using pl::test::refused;

namespace {

void copy(pl::Ref x, pl::Ref o) { o[_] = x[_]; }

// Options are at fault: the error names the call.
void refused_options(const pl::PallasCallOptions& options, const std::string& sentence,
                     const pl::test::Arguments& arguments = {array({8})},
                     pl::Location at = pl::here()) {
  line = at.line;
  refused(&copy, options, arguments, sentence, at);
}

}  // namespace

TEST_CASE("a body of the wrong arity is refused with the list of operands [E01]") {
  line = __LINE__ + 1;
  refused([](pl::Ref) {},
          "kernel 'k': the function takes 1 operand but 2 are given: args[0], outputs[0]");
  line = __LINE__ + 1;
  refused([](pl::Ref, pl::Ref, pl::Ref) {}, "takes 3 operands but 2 are given");
  line = __LINE__ + 1;
  refused([](auto x, auto y, auto o) { o[_] = x[_] + y[_]; }, "takes 3 operands but 2 are given");
  line = __LINE__ + 1;
  refused([](pl::Ref, pl::Ref, pl::Refs, pl::Ref) {}, "takes at least 3 operands but 2 are given");
  line = __LINE__ + 1;
  refused([](pl::Ref, pl::Ref) {}, {.name = "k"}, {array({8})},
          "takes 2 operands but 1 is given: args[0] (inputs, then outputs, then scratch); the "
          "options name no outputs: .out_type");
  struct Three {
    pl::Ref a, b, c;
  };
  line = __LINE__ + 1;
  refused([](Three) {}, "takes 3 operands but 2 are given");
}

TEST_CASE("a name that messages would show in part is refused") {
  refused_options(
      {.name = std::string("a\0b", 3), .out_type = {{8}, pl::f32}},
      "a kernel's name ends at its NUL character, given one at position 1 of 3: 'a...'");
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

TEST_CASE("a block has the rank of its array [E10]") {
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

TEST_CASE("a fill is a number that the array's dtype holds") {
  pl::PallasCallOptions options = one_output();
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{8}, {}, {.fill = 0.5}}};
  refused(&copy, options, {array({8}, pl::i32)}, "args[0]: .fill is 0.5, which no i32 is");
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{8}, {}, {.fill = -1}}};
  refused(&copy, options, {array({8}, pl::u8)}, "args[0]: .fill is -1, which no u8 is");
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{8}, {}, {.fill = 2}}};
  refused(&copy, options, {array({8}, pl::bool_)}, "args[0]: .fill is 2, which no bool is");
  options.in_specs = {pl::BlockSpec{{8}, {}, {.fill = 1}}};
  line = __LINE__ + 1;
  refused([](pl::Ref x, pl::Ref o) { o[_] = pl::f32(x.bitcast(pl::u8)[{pl::ds(0, 8)}]); }, options,
          {array({8})}, "bitcast: args[0] has a .fill whose bytes differ");
}

TEST_CASE("a block has at least one buffer") {
  pl::PallasCallOptions options = one_output();
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{8}, {}, {.pipeline_mode = pl::Buffered(0)}}};
  refused(&copy, options, {array({8})}, "args[0]: pl::Buffered has at least one buffer, given 0");
}

TEST_CASE("index operands are arrays, the first arguments, and read only") {
  const auto with = [](int count) {
    return pl::PallasCallOptions{
        .name = "k", .out_type = {{8}, pl::f32}, .num_scalar_prefetch = count};
  };
  refused_options(with(2), "num_scalar_prefetch is 2, but the call has 1 argument");
  refused_options(with(-1), "num_scalar_prefetch is -1, but the call has 1 argument");
  refused_options(with(1), "num_scalar_prefetch is 1, but args[0] is a scalar", {number()});
  pl::PallasCallOptions options = with(1);
  options.in_specs = {pl::BlockSpec{{8}}};
  refused_options(options, "in_specs has 1 entry for 0 array argument behind the index operands");
  options = with(1);
  options.grid_spec.grid = {2};
  refused_options(options, "if grid_spec is given, then num_scalar_prefetch must not be");
  options = with(1);
  options.input_output_aliases = {{0, 0}};
  refused_options(options, "but args[0] is an index operand, which is read only");
  line = __LINE__ + 1;
  refused([](pl::Ref s, pl::Ref) { s[0] = 1.f; }, with(1), {array({8})},
          "store: ref gmem f32[8] is an index operand (num_scalar_prefetch), which is read only");
  line = __LINE__ + 1;
  refused([](pl::Ref s, pl::Ref) { s.at({pl::ds(0, 4)})[_] += 1.f; }, with(1), {array({8})},
          "is an index operand (num_scalar_prefetch), which is read only");
}

TEST_CASE("an index map takes a Ref for each index operand") {
  pl::PallasCallOptions options = one_output();
  options.num_scalar_prefetch = 1;
  options.grid = {2};
  const auto refused_map = [&](const pl::BlockSpec& spec, const std::string& sentence) {
    options.out_specs = {spec};
    refused(&copy, options, {array({8})}, sentence);
  };
  line = __LINE__ + 1;
  refused_map(pl::BlockSpec{{4}, [](pl::Index i) { return i; }},
              "index map function for outputs[0] takes 1 parameters, but a pl::Index for each axis "
              "and then a pl::Ref for each index operand are expected: the grid [2] has 1 axis, "
              "and num_scalar_prefetch is 1");
  line = __LINE__ + 1;
  refused_map(pl::BlockSpec{{4}, [](pl::Index i, pl::Ref, pl::Ref) { return i; }},
              "takes 3 parameters");
  line = __LINE__ + 1;
  refused_map(pl::BlockSpec{{4}, [](auto i, auto) { return i; }}, "takes parameters of no type");
  line = __LINE__ + 3;
  refused_map(pl::BlockSpec{{4},
                            [](pl::Index i, pl::Ref s) {
                              s[0] = 0.f;
                              return i;
                            }},
              "is an index operand (num_scalar_prefetch), which is read only");
}

TEST_CASE("a size of a grid that an argument says is one integer") {
  const auto of = [](pl::Dim size) {
    return pl::PallasCallOptions{.name = "k", .out_type = {{8}, pl::f32}, .grid = {size}};
  };
  refused_options(of(pl::argument(1)), "grid axis 0, args[1]: the call has 1 arguments");
  refused_options(of(pl::argument(0)), "args[0] is f32[8], but a size is one integer");
  refused_options(of(pl::argument(0)), "args[0] is f32[], but a size is one integer", {number()});
  refused_options(of(pl::argument(0)),
                  "only the device knows what args[0] holds: pass it by value, pl::scalar(n), or, "
                  "in a grid, say how many programs there are at most: "
                  "pl::at_most(pl::argument(0), n)",
                  {array({1}, pl::i32)});
  refused_options(of(pl::at_most(pl::argument(0) + 1, 4)), "only the device knows",
                  {array({1}, pl::i32)});
  pl::PallasCallOptions options = of(pl::at_most(pl::argument(0), 4));
  options.out_type = {{1}, pl::i32};
  options.input_output_aliases = {{0, 0}};
  refused_options(options, "but args[0] holds a size of the grid", {array({1}, pl::i32)});
  options = one_output();
  options.out_type = {{pl::argument(0)}, pl::f32};
  options.out_specs = {pl::BlockSpec{{8}}};
  refused_options(options, "outputs[0] is f32[args[0]]: only the device knows",
                  {array({1}, pl::i32)});
  CHECK_THROWS_WITH(pl::argument(-1), ContainsSubstring("a call has no argument -1"));
}

TEST_CASE(
    "an index map takes an index per grid axis and returns one per block dimension [E05] [E06]") {
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

TEST_CASE("an index map cannot capture values [E08]") {
  pl::Value captured;
  pl::test::traced([&](pl::Ref, pl::Ref) { captured = pl::program_id(0); },
                   {.name = "other", .out_type = {{8}, pl::f32}, .grid = {2}}, {array({8})});
  pl::PallasCallOptions options = one_output();
  options.grid = {2};
  line = __LINE__ + 1;
  options.in_specs = {pl::BlockSpec{{4}, [=](pl::Index i) { return i + captured; }}};
  refused(&copy, options, {array({8})}, "add in kernel 'k' uses a value of kernel 'other'");
}

TEST_CASE("there is one spec per array, or none [E04] [E09]") {
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

TEST_CASE("a program has 4, 8 or 16 warps") {
  for (const int n : {-4, 1, 2, 6, 12, 32}) {
    pl::PallasCallOptions options = one_output();
    options.compiler_params.num_warps = n;
    refused_options(options,
                    "compiler_params.num_warps is 4, 8 or 16, or 0 to let the compiler choose, "
                    "given " +
                        std::to_string(n));
  }
}

TEST_CASE("a pipeline has 1 to 16 stages") {
  for (const int n : {-1, 17, 100}) {
    pl::PallasCallOptions options = one_output();
    options.compiler_params.num_stages = n;
    refused_options(
        options, "compiler_params.num_stages is 1 to 16, or 0 to let the compiler choose, given " +
                     std::to_string(n));
  }
}

TEST_CASE("1 to 8 blocks share a sum, and count as blocks of the grid") {
  pl::PallasCallOptions options = one_output();
  for (const int n : {-1, 9, 1000}) {
    options.compiler_params.split_k = n;
    refused_options(options,
                    "compiler_params.split_k is a number of blocks, 1 to 8, or 0 for one, given " +
                        std::to_string(n));
  }
  refused_options(
      {.name = "k",
       .out_type = {{8}, pl::f32},
       .grid = {{"i", 1 << 15}, {"j", 1 << 15}},
       .compiler_params = {.dimension_semantics = {pl::parallel, pl::parallel},
                           .allow_revisit = true,
                           .split_k = 3}},
      "have 32768 * 32768 programs of 3 blocks, 3221225472 blocks; a launch can have 2147483647");
}

TEST_CASE("an order of the grid takes 1 to 65536 rows of two parallel axes") {
  pl::PallasCallOptions options = one_output();
  for (const int rows : {0, -1, 65537}) {
    options.compiler_params.grid_order = pl::grouped(rows);
    refused_options(options,
                    "compiler_params.grid_order has 1 to 65536 rows at once, given pl::grouped(" +
                        std::to_string(rows) + ")");
  }
  options.compiler_params.grid_order = pl::grouped(8);
  refused_options(options,
                  "compiler_params.grid_order = pl::grouped(8) takes rows of the last two parallel "
                  "axes of the grid, which is ");
}

TEST_CASE("programs that run at once are not made persistent") {
  refused_options({.name = "k",
                   .out_type = {{8}, pl::f32},
                   .grid = {4},
                   .cluster = {2},
                   .compiler_params = {.persistent = true}},
                  "compiler_params.persistent is for the programs of a grid of blocks; those of a "
                  "cluster run at once, given cluster = [2]");
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
  refused(
      [](pl::Ref, pl::Ref o) { o[_] = 0; }, options, {array({8})},
      "grid axis 1 ('k') cannot be parallel: the index map of outputs[0] does not depend on it");
  pl::PallasCallOptions allowed = options;
  allowed.compiler_params.allow_revisit = true;
  CHECK_NOTHROW(pl::test::traced([](pl::Ref, pl::Ref o) { o[_] = 0; }, allowed, {array({8})}));
}

TEST_CASE("aliases are of equal types, and one each [E11]") {
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

TEST_CASE("a grid is symbolic in sizes that a call has, and a cluster never [E18]") {
  const auto fill = [](pl::Ref o) { o[pl::_] = pl::full({8}, 1, pl::f32); };
  const pl::BlockSpec first{{8}, [](pl::Index) { return pl::Indices{0}; }};
  CHECK_THROWS_WITH(pl::pallas_call(fill, {.name = "k",
                                           .out_type = {{8}, pl::f32},
                                           .grid = {pl::dim("n")},
                                           .out_specs = {first}})(),
                    Catch::Matchers::ContainsSubstring(
                        "a symbolic dimension of grid or outputs is the extent of no array, so "
                        "that no call can give it a value"));
  CHECK_THROWS_WITH(
      plgpu::kernel(fill, {.out_type = {{8}, pl::f32}, .cluster = {pl::dim("n")}}).lower(),
      Catch::Matchers::ContainsSubstring("'n'"));
}

TEST_CASE("a load of a whole array needs a size, or a block, where its extent is symbolic [E17]") {
  const pl::PallasCallOptions options{.name = "k", .out_type = {{pl::dim("n")}, pl::f32}};
  line = __LINE__ + 1;
  refused([](pl::Ref x, pl::Ref o) { o[pl::_] = x[pl::_]; }, options, {array({pl::dim("n")})},
          "load: dimension 0 of args[0], ref block f32[?], has 'n' elements, which only a call "
          "knows");
}
