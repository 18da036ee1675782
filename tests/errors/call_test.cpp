// What a call can do wrong: each a sentence that names kernel, operand and the user's line.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>
#include <vector>

#include "palladium/ops/attention.hpp"
#include "palladium/ops/matmul.hpp"
#include "palladium/ops/registry.hpp"
#include "palladium/palladium.hpp"
#include "runtime/driver/driver.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

Kernel add() {
  return pallas_call([](Ref x, Ref y, Ref o) { o[_] = x[_] + y[_]; },
                     {.name = "add4", .out_type = {{4}, f32}})
      .on(Target::interpreter);
}

Array four() { return Array::of<float>({1, 2, 3, 4}); }

/// The message holds all of it, and the line of the call: of a statement that ends in `line`.
void refused(const auto& action, int line, const std::vector<std::string>& parts) {
  try {
    action();
  } catch (const CompileError& error) {
    const std::string message = error.what();
    for (const std::string& part : parts) CHECK_THAT(message, ContainsSubstring(part));
    const auto names = [&](int n) {
      return message.ends_with("call_test.cpp:" + std::to_string(n));
    };
    INFO(message << " names a line near " << line);
    CHECK((names(line) || names(line - 1) || names(line - 2)));
    return;
  }
  FAIL("nothing was refused");
}

}  // namespace

TEST_CASE("an output that overlaps an input or another output is refused") {
  const Kernel k = add();
  const Array x = four(), y = four();
  refused([&] { k.into({x}, {x, y}); }, __LINE__, {"'add4'", "outputs[0] overlaps args[0]"});
  refused(
      [&] {
        k.into({y}, {x, y});
      },
      __LINE__, {"outputs[0] overlaps args[1]", ".input_output_aliases"});
  std::vector<float> memory(6);
  const Array low = Array::view(memory.data(), {4}, f32);
  const Array high = Array::view(memory.data() + 2, {4}, f32);
  refused([&] { k.into({high}, {low, y}); }, __LINE__, {"outputs[0] overlaps args[0]"});

  const Kernel two = pallas_call(
                         [](Ref x, Ref a, Ref b) {
                           a[_] = x[_];
                           b[_] = x[_];
                         },
                         {.name = "two", .out_type = {{{4}, f32}, {{4}, f32}}})
                         .on(Target::interpreter);
  refused([&] { two.into({low, high}, {x}); }, __LINE__, {"outputs[1] overlaps outputs[0]"});
}

TEST_CASE("inputs may be one array, and may overlap") {
  const Array x = four();
  const Array z = add()(x, x);
  CHECK(z.data<float>()[3] == 8);
}

TEST_CASE("an aliased output must be the very input") {
  const Kernel k =
      pallas_call([](Ref, Ref o) { o[_] = o[_] + 1.f; },
                  {.name = "increment", .out_type = {{4}, f32}, .input_output_aliases = {{0, 0}}})
          .on(Target::interpreter);
  const Array x = four(), y = four();
  refused([&] { k.into({y}, {x}); }, __LINE__, {"outputs[0] is aliased to args[0]"});
  const std::vector<float> constant(4);
  const Array read_only = Array::view(std::span(constant));
  refused([&] { k(read_only); }, __LINE__, {"read-only"});
}

TEST_CASE("an array on another device is refused with the way out") {
  const Device gpu = Device::cuda(0);
  std::vector<float> memory(4);
  const Array far = Array::view(memory.data(), {4}, f32, {.device = &gpu});
  const Kernel k = add();
  refused([&] { k(far, four()); }, __LINE__,
          {"args[0] is on cuda:0", "interpreter", ".to(pl::Device::cpu())"});
  refused([&] { k.into({far}, {four(), four()}); }, __LINE__, {"outputs[0] is on cuda:0"});
}

TEST_CASE("a call of a target that is not there says why, not where to bring the arrays") {
  const Kernel k = add().on(Target::cuda);
  if (driver::status().state == driver::State::ready) SKIP("there is a GPU");
  const int line = __LINE__ + 1;
  const auto call = [&] { k(four(), four()); };
  CHECK_THROWS_WITH(call(),
                    ContainsSubstring("'add4': the target is cuda, but kernels cannot run there") &&
                        ContainsSubstring(driver::status().reason) &&
                        Catch::Matchers::EndsWith("call_test.cpp:" + std::to_string(line)));
}

TEST_CASE("gaps along the last dimension are refused by their stride") {
  std::vector<float> memory(8);
  const std::int64_t two[] = {2};
  const Array gappy = Array::view(memory.data(), {4}, f32, {.strides = two});
  const Kernel k = add();
  refused([&] { k(four(), gappy); }, __LINE__,
          {"args[1]", "f32[4]", "stride 2", "last dimension", ".copy()"});
  CHECK(Array(k(four(), gappy.copy())).data<float>()[0] == 1);
}

TEST_CASE("outputs that cannot be written are refused") {
  const Kernel k = add();
  const std::vector<float> constant(4);
  const Array read_only = Array::view(std::span(constant));
  refused([&] { k.into({read_only}, {four(), four()}); }, __LINE__, {"outputs[0] is read-only"});
  const Kernel rows =
      pallas_call([](Ref x, Ref o) { o[_] = x[_]; }, {.name = "rows", .out_type = {{3, 4}, f32}})
          .on(Target::interpreter);
  std::vector<float> memory(12);
  const std::int64_t same[] = {0, 1};
  const Array folded = Array::view(memory.data(), {3, 4}, f32, {.strides = same});
  const Array x = Array::zeros({3, 4}, f32);
  refused([&] { rows.into({folded}, {x}); }, __LINE__, {"outputs[0] has stride 0"});
  CHECK(Array(rows(folded)).size() == 12);  // as an input it repeats its row
}

TEST_CASE("outputs of another type or number are refused") {
  const Kernel k = add();
  const Array x = four();
  refused(
      [&] {
        k.into({Array::zeros({5}, f32)}, {x, x});
      },
      __LINE__, {"outputs[0] must be f32[4], not f32[5]"});
  refused(
      [&] {
        k.into({Array::zeros({4}, i32)}, {x, x});
      },
      __LINE__, {"outputs[0] must be f32[4], not i32[4]"});
  refused([&] { k.into({four(), four()}, {x, x}); }, __LINE__, {"1 outputs but 2"});
  refused([&] { k.into({}, {x, x}); }, __LINE__, {"needs the kernel's outputs"});
}

TEST_CASE("nothing is no argument") {
  const Kernel k = add();
  const Array none;
  refused([&] { k(none, four()); }, __LINE__, {"args[0] is an empty pl::Array"});
  refused([&] { k({}, four()); }, __LINE__, {"args[0] is nothing"});
  refused(
      [&] {
        k.into({scalar(1.f)}, {four(), four()});
      },
      __LINE__, {"outputs[0] must be an array"});
}

TEST_CASE("a function of the types takes as many as there are arguments") {
  const Kernel k =
      pallas_call([](Ref x, Ref o) { o[_] = x[_]; },
                  [](ShapeDtype x) { return PallasCallOptions{.name = "copy", .out_type = x}; })
          .on(Target::interpreter);
  refused([&] { k(four(), four()); }, __LINE__, {"takes 1 types but the call has 2 arguments"});
}

TEST_CASE("a kernel is neither launched nor lowered while another is traced") {
  const Kernel inner = add();
  const Array x = four();
  const auto outer = [&](const auto& act) {
    return pallas_call(
               [=](Ref, Ref o) {
                 act();
                 o[_] = zeros({4}, f32);
               },
               {.name = "outer", .out_type = {{4}, f32}})
        .on(Target::interpreter);
  };
  refused([&] { outer([=] { inner(x, x); })(x); }, __LINE__,
          {"cannot be launched while the kernel 'outer' is being traced"});
  refused([&] { outer([=] { inner.into({x}, {x, x}); })(x); }, __LINE__, {"cannot be launched"});
  refused([&] { outer([=] { inner.lower(x, x); })(x); }, __LINE__, {"cannot be lowered"});
  CHECK(Array(inner(x, x)).data<float>()[0] == 2);
}

TEST_CASE("a body or an options function that throws leaves a kernel that works") {
  bool fail = true;
  const Kernel k = pallas_call(
                       [&](Ref x, Ref o) {
                         if (fail) throw std::runtime_error("the user's own");
                         o[_] = x[_];
                       },
                       {.name = "moody", .out_type = {{4}, f32}})
                       .on(Target::interpreter);
  CHECK_THROWS_AS(k(four()), std::runtime_error);
  fail = false;
  CHECK(Array(k(four())).data<float>()[2] == 3);
  const Kernel f = pallas_call([](Ref x, Ref o) { o[_] = x[_]; },
                               [&](ShapeDtype x) {
                                 if (fail) throw std::runtime_error("the user's own");
                                 return PallasCallOptions{.name = "moody", .out_type = x};
                               })
                       .on(Target::interpreter);
  fail = true;
  CHECK_THROWS_WITH(f(four()), "the user's own");
  fail = false;
  CHECK(Array(f(four())).data<float>()[2] == 3);
}

TEST_CASE("a symbol without a size cannot be read, and the message names it") {
  CHECK_THROWS_WITH(ops::find("matmul").factory().lower(ShapeDtype{{100, dim("k")}, f32},
                                                        ShapeDtype{{dim("k"), 30}, f32}),
                    ContainsSubstring("'k' is symbolic"));
}

TEST_CASE("a symbol that only a product of extents knows has no value at a call") {
  const Kernel k = pallas_call([](Ref, Ref o) { o[_] = zeros({8}, f32); },
                               {.name = "product",
                                .out_type = {{dim("rows") * dim("columns")}, f32},
                                .grid = {cdiv(dim("rows") * dim("columns"), 8)},
                                .out_specs = {BlockSpec{{8}, [](Index i) { return i; }}}})
                       .on(Target::interpreter);
  CHECK_THROWS_WITH(k(four()), ContainsSubstring("no call can give it a value"));
}

TEST_CASE("an architecture that there is not is refused with those that there are") {
  const Kernel k = add();
  const Lowered lowered = k.lower(ShapeDtype{{4}, f32}, ShapeDtype{{4}, f32});
  for (const char* arch :
       {"sm_70", "sm_", "90", "90a", "sm_99", "sm_90b", "sm_90z", "sm_80a", "sm_090", "sm_+90",
        "sm_900", "sm_90aa", "sm_90 ", "SM_90a", "sm_99999999999", "compute_90"}) {
    const auto says = Catch::Matchers::Equals(
        "unknown architecture '" + std::string(arch) +
        "'; kernels are compiled for sm_75, sm_80, sm_86, sm_87, sm_88, sm_89, sm_90, sm_90a, "
        "sm_100, sm_100a, sm_100f, sm_101, sm_101a, sm_101f, sm_103, sm_103a, sm_103f, sm_110, "
        "sm_110a, sm_110f, sm_120, sm_120a, sm_120f, sm_121, sm_121a, sm_121f");
    const CompileOptions options{.arch = arch};
    CHECK_THROWS_WITH(lowered.compile(options), says);
    CHECK_THROWS_WITH(lowered.compile_async(options), says);
    CHECK_THROWS_WITH(lowered.compile({.arch = arch, .deadline = 5}), says);
    CHECK_THROWS_WITH(lowered.key(options), says);
    CHECK_THROWS_WITH(lowered.key_components(options), says);
    CHECK_THROWS_WITH(lowered.cuda_source(options), says);
    CHECK_THROWS_WITH(lowered.decisions(options), says);
    CHECK_THROWS_WITH(lowered.passes(options), says);
    CHECK_THROWS_WITH(lowered.report(options), says);
    CHECK_THROWS_WITH(checked_arch(arch), says);
  }
  for (const std::string& arch : known_archs()) {
    CHECK(checked_arch(arch) == arch);
    CHECK_FALSE(lowered.cuda_source({.arch = arch}).empty());
  }
  CHECK(lowered.key() == lowered.key({.arch = default_arch()}));
  CHECK_THROWS_WITH(checked_arch(""), ContainsSubstring("unknown architecture ''; kernels are "));
}

TEST_CASE("an unknown shipped kernel or target is refused with those that there are") {
  refused([&] { ops::find("sofmax"); }, __LINE__,
          {"no shipped kernel is named 'sofmax'", "add, softmax, layer_norm"});
  CHECK_THROWS_WITH(target_named("gpu"), ContainsSubstring("cuda, interpreter and emulator"));
}

TEST_CASE("arrays that must be of one type are named with what they are") {
  const Kernel add = ops::find("add").factory().on(Target::interpreter);
  const Array five = Array::zeros({5}, f32), seven = Array::zeros({7}, f32);
  refused([&] { add(five, seven); }, __LINE__,
          {"expected arrays of one shape and dtype", "args[0] f32[5] and args[1] f32[7]"});
  refused([&] { add(five, Array::zeros({5}, f16)); }, __LINE__,
          {"args[0] f32[5] and args[1] f16[5]"});
  refused(
      [&] {
        add(five, Array::zeros({5, 1}, f32));
      },
      __LINE__, {"args[0] f32[5] and args[1] f32[5,1]"});
  refused(
      [&] {
        add.lower(ShapeDtype{{5}, f32}, ShapeDtype{{7}, f32});
      },
      __LINE__, {"args[0] f32[5] and args[1] f32[7]"});
  // After a call that fits, too.
  add(five, five);
  refused(
      [&] {
        add.into({five.copy()}, {five, seven});
      },
      __LINE__, {"args[0] f32[5] and args[1] f32[7]"});
}

TEST_CASE("extents that must be equal are named with their sizes") {
  const Kernel k = pallas_call([](Ref, Ref, Ref o) { o[_] = zeros({1}, f32); },
                               [](ShapeDtype x, ShapeDtype bias) {
                                 require_equal(x.shape[1], bias.shape[0]);
                                 return PallasCallOptions{.name = "k", .out_type = {{1}, f32}};
                               })
                       .on(Target::interpreter);
  refused(
      [&] {
        k(Array::zeros({2, 3}, f32), four());
      },
      __LINE__, {"expected equal extents, given args[0].shape[1] = 3 and args[1].shape[0] = 4"});
  refused(
      [&] {
        k.lower(ShapeDtype{{2, 3}, f32}, ShapeDtype{{4}, f32});
      },
      __LINE__, {"expected equal extents, given 3 and 4"});
}

TEST_CASE("an extent beyond the rank is refused by argument, index and rank") {
  const Kernel softmax = ops::find("softmax").factory().on(Target::interpreter);
  refused([&] { softmax(four()); }, __LINE__, {"args[0] has rank 1, expected 2"});
  const Kernel second =
      pallas_call([](Ref x, Ref o) { o[_] = x[_]; },
                  [](ShapeDtype x) {
                    return PallasCallOptions{.name = "second", .out_type = {{x.shape[1]}, f32}};
                  });
  refused(
      [&] {
        second.lower(ShapeDtype{{4}, f32});
      },
      __LINE__, {"args[0] has no dimension 1: its rank is 1"});
  const Kernel last = pallas_call(
      [](Ref x, Ref o) { o[_] = x[_]; },
      [](ShapeDtype x) {
        return PallasCallOptions{.name = "last", .out_type = {{x.shape[-1], x.shape[-3]}, f32}};
      });
  refused(
      [&] {
        last.lower(ShapeDtype{{4, 2}, f32});
      },
      __LINE__, {"args[0] has no dimension -3: its rank is 2"});
  CHECK_THROWS_WITH(four().shape()[1], "a shape has no dimension 1: its rank is 1");
}

TEST_CASE("matmul refuses matrices that do not chain") {
  CHECK_THROWS_WITH(
      ops::find("matmul").factory().lower(ShapeDtype{{8, 16}, f32}, ShapeDtype{{15, 8}, f32}),
      ContainsSubstring("matmul: a has 16 columns and b has 15 rows"));
  const Kernel matmul = ops::find("matmul").factory().on(Target::interpreter);
  refused(
      [&] {
        matmul(Array::zeros({8, 16}, f32), Array::zeros({15, 8}, f32));
      },
      __LINE__, {"matmul: a has 16 columns and b has 15 rows"});
}

TEST_CASE("shipped kernels name sizes, not symbols") {
  const auto zeros = [](const Shape& shape) { return Array::zeros(shape, f16); };
  const auto says = [](const Kernel& k, std::initializer_list<Arg> args, const char* sentence) {
    std::string words;
    try {
      k.on(Target::interpreter).call(args);
    } catch (const CompileError& e) {
      words = e.what();
    }
    CHECK_THAT(words, ContainsSubstring(sentence));
    CHECK_THAT(words, !ContainsSubstring(".shape["));
  };
  says(ops::attention(), {zeros({2, 4, 8, 32}), zeros({2, 3, 8, 32}), zeros({2, 3, 8, 32})},
       "attention: q is f16[2,4,8,32] and k f16[2,3,8,32]; a number of heads that k's divides");
  says(ops::attention({.causal = true}),
       {zeros({2, 4, 9, 32}), zeros({2, 4, 8, 32}), zeros({2, 4, 8, 32})},
       "attention: q is f16[2,4,9,32] and k f16[2,4,8,32]; causal queries");
  says(ops::attention(), {zeros({1, 1, 8, 24}), zeros({1, 1, 8, 24}), zeros({1, 1, 8, 24})},
       "attention: q is f16[1,1,8,24] and k f16[1,1,8,24]; one dtype");
  says(ops::matmul(), {zeros({4, 5}), zeros({6, 4})}, "matmul: a has 5 columns and b has 6 rows");
}

TEST_CASE("a member of one array is refused of several outputs, which are counted") {
  const Kernel both = pallas_call(
                          [](Ref x, Ref o, Ref lse) {
                            o[_] = x[_];
                            lse[_] = x[_];
                          },
                          {.name = "both", .out_type = {{"o", {{4}, f32}}, {"lse", {{4}, f32}}}})
                          .on(Target::interpreter);
  const int made = __LINE__ + 1;
  const auto y = both(four());
  const std::string take =
      ": the kernel gives 2 arrays, not 1; one of them is y[\"o\"] or y[0], all of them auto [o, "
      "lse] = y.unpack<2>()";
  refused([&] { (void)y.values<float>(); }, __LINE__, {"values" + take});
  refused([&] { (void)y.shape(); }, __LINE__, {"shape" + take});
  refused([&] { (void)y.astype(f16); }, __LINE__, {"astype" + take});
  refused([&] { (void)y.to(Device::cpu()); }, __LINE__, {"to" + take});
  refused([&] { (void)y.reshape({2, 2}); }, __LINE__, {"reshape" + take});
  refused([&] { add()(y, four()); }, __LINE__, {"an argument" + take});
  refused([&] { (void)(y ? 1 : 2); }, made, {"a truth value" + take});
  refused([&] { print(y); }, made, {"an array" + take});
  refused([&] { (void)y[2]; }, made, {"there is no output 2: the kernel gives 2 arrays"});
  refused([&] { (void)y[-3]; }, made, {"there is no output -3"});
  refused([&] { (void)y["olse"]; }, made, {"no output is named 'olse'"});
  refused([&] { (void)y.unpack<3>(); }, made,
          {"unpack: the kernel gives 2 arrays, not 3; one of them is"});
  const int added = __LINE__ + 1;
  const auto one = add()(four(), four());
  refused(
      [&] {
        const auto [a, b] = one;
        (void)a, (void)b;
      },
      added, {"the kernel gives 1 array, not 2"});
}
