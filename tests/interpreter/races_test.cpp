// Races between the Pallas threads of a block: what is reported, with which words and lines.
#include "runtime/launch/run_interpreter.hpp"
#include "tests/interpreter/tensors.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string at_line(int line) { return "races_test.cpp:" + std::to_string(line); }

std::size_t times(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

/// The number of the Pallas thread.
Value thread() { return axis_index("thread"); }

/// Makes its cluster axis the axis of threads.
void make_threads(graph::Graph& g) {
  g.bodies[0].warpgroups = g.cluster.at(0);
  g.cluster.clear();
  g.cluster_names.clear();
  g.thread_name = "thread";
  for (graph::Inst& inst : g.insts)
    if (inst.op == graph::Op::AxisIndex) inst.attr.ints = {int(graph::AxisKind::thread), 0};
  graph::verify(g, "threads");
}

/// Traces a body for `threads` warpgroups. A call has one thread so far: the axis is traced as one
/// of a cluster.
graph::Graph threaded(int threads, const Body& body, PallasCallOptions options,
                      const std::vector<trace::ArgumentType>& arguments, Location at = here()) {
  options.cluster = {threads};
  options.cluster_names = {"thread"};
  graph::Graph g = traced(body, options, arguments, at);
  make_threads(g);
  return g;
}

std::string races_of(const graph::Graph& g, std::vector<Tensor*> arrays, bool detect = true) {
  interpreter::Invocation call;
  for (Tensor* t : arrays) call.arrays.push_back(t->buffer());
  try {
    interpreter::run(g, call, {.detect_races = detect});
  } catch (const CompileError& e) {
    return e.what();
  }
  return "";
}

const ShapeDtype rows_of_40 = {{16, 40}, f32};

}  // namespace

TEST_CASE("threads that write their own rows do not race [C108]") {
  Tensor x = arange(f32, {16, 40}), o(f32, {16, 40});
  const graph::Graph g = threaded(2,
                                  [](Ref x, Ref o) {
                                    o[{ds(thread() * 8, 8)}] =
                                        Value(x[{ds(thread() * 8, 8)}]) + Value(x[{ds(0, 8)}]);
                                  },
                                  {.out_type = rows_of_40}, {array({16, 40})});
  CHECK(races_of(g, {&x, &o}) == "");
  CHECK(o[8 * 40] == 8 * 40);
}

TEST_CASE("threads that write overlapping rows are reported once, with both lines [C108]") {
  Tensor o(f32, {16, 40});
  int first = 0, second = 0;
  const graph::Graph g = threaded(2,
                                  [&](Ref o) {
                                    when(thread() == 0, [&] {
                                      first = __LINE__ + 1;
                                      o[{ds(0, 9)}] = full({9, 40}, 1.0f);
                                    });
                                    when(thread() == 1, [&] {
                                      second = __LINE__ + 1;
                                      o[{ds(7, 9)}] = full({9, 40}, 2.0f);
                                    });
                                  },
                                  {.name = "overlap", .out_type = rows_of_40}, {});
  const std::string error = races_of(g, {&o});
  CHECK_THAT(
      error,
      ContainsSubstring("'overlap'") && ContainsSubstring("outputs[0]") &&
          ContainsSubstring("thread 1 writes elements [7,0] to [8,39] at " + at_line(second)) &&
          ContainsSubstring("thread 0 wrote at " + at_line(first)) && ContainsSubstring("\n  at "));
  CHECK(times(error, "race on") == 1);
  CHECK(races_of(g, {&o}, false) == "");
}

TEST_CASE("a race in many programs is one report, and different lines are different ones") {
  Tensor o(i32, {6, 4}), p(i32, {6, 4});
  int both = 0, reader = 0, writer = 0;
  const BlockSpec row{{1, 4}, [](Index i) { return Indices{i, 0}; }};
  const graph::Graph g =
      threaded(3,
               [&](Ref o, Ref p) {
                 both = __LINE__ + 1;
                 o[_] = full({1, 4}, thread(), i32);
                 when(thread() == 0, [&] {
                   writer = __LINE__ + 1;
                   p[{0, 2}] = 1;
                 });
                 when(thread() == 2, [&] {
                   reader = __LINE__ + 1;
                   p[{0, 3}] = Value(p[{0, 2}]) + 1;
                 });
               },
               {.out_type = OutType(std::vector<ShapeDtype>{{{6, 4}, i32}, {{6, 4}, i32}}),
                .grid = 6,
                .out_specs = {row, row}},
               {});
  const std::string error = races_of(g, {&o, &p});
  CHECK(times(error, "race on") == 2);
  CHECK_THAT(error, ContainsSubstring("race on outputs[0]: in program (0) thread 1 writes elements "
                                      "[0,0] to [0,3] at " +
                                      at_line(both)) &&
                        ContainsSubstring("thread 0 wrote at " + at_line(both)) &&
                        ContainsSubstring("race on outputs[1]: in program (0) thread 2 reads "
                                          "element [0,2] at " +
                                          at_line(reader)) &&
                        ContainsSubstring("thread 0 wrote at " + at_line(writer)));
}

TEST_CASE("narrow elements next to each other do not race") {
  for (const DType dtype : {u8, bf16, bool_}) {
    CAPTURE(dtype.name());
    Tensor o(dtype, {5});
    const graph::Graph g = threaded(5, [&](Ref o) { o[thread()] = (thread() * 0).astype(dtype); },
                                    {.out_type = ShapeDtype{{5}, dtype}}, {});
    CHECK(races_of(g, {&o}) == "");
  }
}

TEST_CASE("what a mask switches off does not race") {
  Tensor o(i32, {2, 8});
  const auto kernel = [](std::int64_t shared) {
    return [shared](Ref o) {
      const Value column = iota(i32, {2, 8}, 1);
      store(o, full({2, 8}, thread(), i32),
            {.mask = where(thread() == 0, column < 4 + shared, column >= 4)});
    };
  };
  const ShapeDtype type = {{2, 8}, i32};
  CHECK(races_of(threaded(2, kernel(0), {.out_type = type}, {}), {&o}) == "");
  CHECK_THAT(races_of(threaded(2, kernel(1), {.out_type = type}, {}), {&o}),
             ContainsSubstring("thread 1 writes element [0,4]"));
}

TEST_CASE("strided, transposed and bitcast views race where they overlap") {
  Tensor o(i32, {4, 6});
  const ShapeDtype type = {{4, 6}, i32};
  const auto columns = threaded(2,
                                [](Ref o) {
                                  o[{_, ds(thread(), 3, 2)}] = full({4, 3}, thread(), i32);
                                },
                                {.out_type = type}, {});
  CHECK(races_of(columns, {&o}) == "");
  const auto crossing =
      threaded(2,
               [](Ref o) {
                 when(thread() == 0, [&] { o[{_, 4}] = full({4}, 0, i32); });
                 when(thread() == 1, [&] { o.transpose({1, 0})[{_, 2}] = full({6}, 1, i32); });
               },
               {.out_type = type}, {});
  CHECK_THAT(races_of(crossing, {&o}), ContainsSubstring("writes element [2,4]"));
  const auto halves =
      threaded(2,
               [](Ref o) {
                 o.bitcast(i16)[{_, ds(thread(), 6, 2)}] = full({4, 6}, thread(), i16);
               },
               {.out_type = type}, {});
  CHECK(races_of(halves, {&o}) == "");
}

TEST_CASE("scratch is shared by the threads of a block, also from one visit to the next") {
  Tensor o(i32, {4});
  const auto kernel = [](int reader) {
    return threaded(2,
                    [reader](Ref o, Ref s) {
                      when(thread() == 0, [&] { s[0] = program_id(0); });
                      when(thread() == reader, [&] { o[0] = Value(s[0]); });
                    },
                    {.out_type = ShapeDtype{{4}, i32},
                     .grid = 4,
                     .out_specs = {BlockSpec{{1}, [](Index i) { return i; }}},
                     .scratch_types = {gpu::SMEM({1}, i32)},
                     .compiler_params = {.dimension_semantics = {sequential}}},
                    {});
  };
  CHECK(races_of(kernel(0), {&o}) == "");
  CHECK(o.numbers() == std::vector<double>{0, 1, 2, 3});
  CHECK_THAT(races_of(kernel(1), {&o}), ContainsSubstring("race on scratch[0]: in program (*)") &&
                                            ContainsSubstring("thread 1 reads element [0]"));
}

TEST_CASE("a block that moves on is another memory") {
  Tensor o(i32, {6});
  const auto g =
      threaded(2, [](Ref o) { when(thread() == program_id(0) % 2, [&] { o[0] = thread(); }); },
               {.out_type = ShapeDtype{{6}, i32},
                .grid = 6,
                .out_specs = {BlockSpec{{1}, [](Index i) { return i; }}},
                .compiler_params = {.dimension_semantics = {sequential}}},
               {});
  CHECK(races_of(g, {&o}) == "");
  CHECK(o.numbers() == std::vector<double>{0, 1, 0, 1, 0, 1});
}

TEST_CASE("a swap reads and writes") {
  Tensor x(i32, {1});
  const auto g = threaded(2, [](Ref, Ref o) { swap(o.at({0}), thread()); },
                          {.out_type = ShapeDtype{{1}, i32}, .input_output_aliases = {{0, 0}}},
                          {array({1}, i32)});
  const std::string error = races_of(g, {&x, &x});
  CHECK(times(error, "race on") == 1);
  CHECK_THAT(error, ContainsSubstring("thread 1 reads element [0]"));
}

TEST_CASE("threads of different blocks of a cluster have their own Refs") {
  Tensor o(i32, {2});
  run([](Ref o) { o[0] = axis_index("c"); },
      {.cluster = {2},
       .cluster_names = {"c"},
       .out_specs = {BlockSpec{{1}, [] { return Indices{axis_index("c")}; }}}},
      {}, {&o}, {.detect_races = true});
  CHECK(o.numbers() == std::vector<double>{0, 1});
}

TEST_CASE("an error that a race may have caused is told after the race") {
  Tensor o(i32, {4});
  const auto g = threaded(2,
                          [](Ref o) {
                            o[0] = thread() * 100;
                            o[Value(o[0])] = 1;
                          },
                          {.out_type = ShapeDtype{{4}, i32}}, {});
  const std::string error = races_of(g, {&o});
  CHECK_THAT(error, ContainsSubstring("race on outputs[0]") && ContainsSubstring("out of bounds"));
  CHECK(error.find("race on") < error.find("out of bounds"));
  CHECK_THAT(races_of(g, {&o}, false), !ContainsSubstring("race on"));
}

TEST_CASE("a call finds races exactly when its options ask for it") {
  const auto result_of = [](Interpret interpret) {
    const runtime::Source source = {.body = {[](Ref x, Ref o) { o[_] = Value(x[_]) + 1.0f; }},
                                    .options = {.out_type = ShapeDtype{{8}, f32},
                                                .cluster = {2},
                                                .cluster_names = {"thread"},
                                                .interpret = interpret},
                                    .at = here()};
    const Array x = make_array<float>({8}, [](std::int64_t i) { return i; });
    const Array y = Array::empty({8}, f32);
    const std::vector<Arg> arguments = {x}, outputs = {y};
    const std::vector<runtime::Request> types = {runtime::request(arguments[0])};
    const auto made = runtime::specialize(source, types, {}, here());
    make_threads(made->graph);
    const runtime::Signature::Symbols none = {};
    runtime::run_interpreter(*made, arguments, outputs, none, false);
    return y.data<float>()[7];
  };
  CHECK(result_of(true) == 8);
  CHECK_THROWS_WITH(result_of(InterpretParams{.detect_races = true}),
                    ContainsSubstring("race on outputs[0]") &&
                        ContainsSubstring("thread 1 writes elements [0] to [7]"));
}
