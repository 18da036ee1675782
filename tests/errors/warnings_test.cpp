// What is no error, but should not pass in silence: a line in the log, once for each cause.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "palladium/palladium.hpp"
#include "tests/support/captured_stderr.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using palladium::test::CapturedStderr;
using pl::_;

namespace {

/// What `action` writes to the log.
template <class F>
std::string log_of(const F& action) {
  const CapturedStderr captured;
  action();
  return captured.text();
}

std::string counted_words(const std::string& text, const std::string& words) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(words, at)) != std::string::npos; ++at) ++count;
  return std::to_string(count) + " times " + words;
}

Array numbers(std::int64_t n) { return Array::zeros({n}, f32); }
const BlockSpec four{{4}, [](Index i) { return i; }};

}  // namespace

// ---- Extents under one walk of blocks

namespace {

// Of a name that no other test uses: what was told once of a kernel is not told again.
Kernel add_blocks(const std::string& name, const BlockSpec& of_x = four) {
  return pallas_call([](Ref x, Ref y, Ref o) { o[_] = x[_] + y[_]; }, {.name = name,
                                                                       .out_type = {{12}, f32},
                                                                       .grid = {2},
                                                                       .in_specs = {of_x, four},
                                                                       .out_specs = {four}})
      .on(Target::interpreter);
}

}  // namespace

TEST_CASE("arrays of different extents that one walk of blocks goes along are told, once") {
  const auto call = [] { add_blocks("walk")(numbers(8), numbers(12)); };
  CHECK_THAT(log_of(call), ContainsSubstring("kernel 'walk': one walk of blocks of 4") &&
                               ContainsSubstring("dimension 0 of args[0], which has 8 elements") &&
                               ContainsSubstring("dimension 0 of args[1], which has 12") &&
                               ContainsSubstring("pl::require_equal") &&
                               ContainsSubstring("at warnings_test.cpp:"));
  CHECK_THAT(log_of(call), !ContainsSubstring("one walk of blocks"));
}

TEST_CASE("an output that is longer than its input is told, whichever its dimension") {
  const Kernel k = pallas_call([](Ref x, Ref o) { o[_] = transpose(x[_]); },
                               {.name = "turned",
                                .out_type = {{12, 4}, f32},
                                .grid = {2},
                                .in_specs = {BlockSpec{{4, 4},
                                                       [](Index i) {
                                                         return Indices{0, i};
                                                       }}},
                                .out_specs = {BlockSpec{{4, 4},
                                                        [](Index i) {
                                                          return Indices{i, 0};
                                                        }}}})
                       .on(Target::interpreter);
  CHECK_THAT(log_of([&] {
               k(Array::zeros({4, 8}, f32));
             }),
             ContainsSubstring("dimension 1 of args[0], which has 8 elements") &&
                 ContainsSubstring("dimension 0 of outputs[0], which has 12"));
}

TEST_CASE("extents that are symbols are told where a call makes them differ") {
  const Kernel k = pallas_call([](Ref x, Ref y, Ref o) { o[_] = x[_] + y[_]; },
                               [](ShapeDtype x, ShapeDtype) {
                                 return PallasCallOptions{.name = "symbols",
                                                          .out_type = x,
                                                          .grid = {cdiv(x.shape[0], 4)},
                                                          .in_specs = {four, four},
                                                          .out_specs = {four}};
                               })
                       .on(Target::interpreter);
  CHECK(log_of([&] { k(numbers(8), numbers(8)); }).empty());
  CHECK_THAT(log_of([&] { k(numbers(8), numbers(12)); }),
             ContainsSubstring("args[0], which has 8 elements"));
}

TEST_CASE("extents that differ and are said to be meant, or are not walked as one, are not told") {
  const BlockSpec filled{{4}, [](Index i) { return i; }, {.fill = 0}};
  CHECK(log_of([&] { add_blocks("filled", filled)(numbers(8), numbers(12)); }).find("args[0]") ==
        std::string::npos);
  const BlockSpec first{{4}, [](Index) { return 0; }}, other{{4}, [](Index i) { return 1 - i; }};
  CHECK(log_of([&] { add_blocks("first", first)(numbers(8), numbers(12)); }).find("args[0]") ==
        std::string::npos);
  CHECK(log_of([&] { add_blocks("other", other)(numbers(8), numbers(12)); }).find("args[0]") ==
        std::string::npos);
  const Kernel equal = pallas_call([](Ref x, Ref y, Ref o) { o[_] = x[_] + y[_]; },
                                   [](ShapeDtype x, ShapeDtype y) {
                                     require_equal(x, y);
                                     return PallasCallOptions{.name = "equal",
                                                              .out_type = x,
                                                              .grid = {cdiv(x.shape[0], 4)},
                                                              .in_specs = {four, four},
                                                              .out_specs = {four}};
                                   })
                           .on(Target::interpreter);
  CHECK(log_of([&] {
          CHECK_THROWS_AS(equal(numbers(8), numbers(12)), CompileError);
          equal(numbers(8), numbers(8));
        }).empty());
}

// ---- Shared memory

TEST_CASE("the interpreter tells of shared memory that no GPU has, in the emulator's words") {
  const auto kernel = [](std::int64_t rows) {
    return pallas_call(
        [](Ref x, Ref o, Ref s) {
          s[_] = broadcast_to(x[_], s.shape());
          o[_] = sum(s[_], {.axis = 0});
        },
        {.name = "large",
         .out_type = {{128}, f32},
         .scratch_types = {gpu::SMEM({rows, 128}, f32)}});
  };
  std::string words;
  try {
    kernel(512).on(Target::emulator)(numbers(128));
  } catch (const CompileError& error) {
    words = error.what();
  }
  CHECK_THAT(words, ContainsSubstring("bytes of shared memory, sm_90 has"));
  const auto run = [&] { kernel(512).on(Target::interpreter)(numbers(128)); };
  CHECK_THAT(log_of(run), ContainsSubstring("the interpreter runs what no GPU can: " + words));
  CHECK(log_of(run).empty());
  CHECK(log_of([&] { kernel(256).on(Target::interpreter)(numbers(128)); }).empty());
}

// ---- Sizes

TEST_CASE("a kernel that is traced for the 2nd size of an argument says so once, with the cure") {
  const Kernel rows =
      pallas_call([](Ref x, Ref o) { o[_] = x[_] * 2.f; },
                  [](ShapeDtype x) {
                    const BlockSpec row{{1, x.shape[1]}, [](Index i) { return Indices{i, 0}; }};
                    return PallasCallOptions{.name = "rows",
                                             .out_type = x,
                                             .grid = {x.shape[0]},
                                             .in_specs = {row},
                                             .out_specs = {row}};
                  })
          .on(Target::interpreter);
  const auto call = [&](std::int64_t n) { rows(Array::zeros({n, n}, f32)); };
  CHECK(log_of([&] { call(1); }).empty());
  const std::string log = log_of([&] {
    for (int n = 2; n < 6; ++n) call(n);
  });
  CHECK(counted_words(log, "is traced anew") == "1 times is traced anew");
  CHECK_THAT(log,
             ContainsSubstring("kernel 'rows' is traced anew for the 2nd size of "
                               "args[0].shape[1]") &&
                 ContainsSubstring("the options function or the body reads args[0].shape[1] as an "
                                   "integer") &&
                 ContainsSubstring("pl::bounded(size, most)"));
}

TEST_CASE("a kernel whose options are a value is told to take a function of the sizes") {
  const Kernel any =
      pallas_call([](Ref x, Ref o) { o[0] = x[0]; }, {.name = "any", .out_type = {{1}, f32}})
          .on(Target::interpreter);
  CHECK_THAT(log_of([&] {
               for (int n = 1; n < 10; ++n) any(numbers(n));
             }),
             ContainsSubstring("2nd size of args[0].shape[0]") &&
                 ContainsSubstring("[](pl::ShapeDtype x)"));
  const Kernel one = pallas_call([](Ref x, Ref o) { o[_] = x[_]; },
                                 [](ShapeDtype x) {
                                   return PallasCallOptions{.name = "one",
                                                            .out_type = x,
                                                            .grid = {cdiv(x.shape[0], 4)},
                                                            .in_specs = {four},
                                                            .out_specs = {four}};
                                 })
                         .on(Target::interpreter);
  CHECK(log_of([&] {
          for (int n = 1; n < 20; ++n) one(numbers(n));
        }).empty());
}

// ---- Captures by reference

TEST_CASE("a kernel function, index map or options function that captures by reference is told") {
  float factor = 2;
  std::int64_t offset = 0;
  const auto options = [](IndexMap map) {
    return PallasCallOptions{.name = "captures",
                             .out_type = {{8}, f32},
                             .grid = {2},
                             .in_specs = {BlockSpec{{4}, std::move(map)}},
                             .out_specs = {four}};
  };
  const auto map = [](Index i) { return i; };
  const auto run = [](const Kernel& k) { k.on(Target::interpreter)(numbers(8)); };
  const auto body = [](Ref x, Ref o) { o[_] = x[_]; };
  CHECK_THAT(
      log_of([&] { run(pallas_call([&](Ref x, Ref o) { o[_] = x[_] * factor; }, options(map))); }),
      ContainsSubstring("kernel 'captures': the kernel function captured by reference") &&
          ContainsSubstring("capture by value, [=]") && ContainsSubstring("at warnings_test.cpp:"));
  CHECK_THAT(
      log_of([&] { run(pallas_call(body, options([&](Index i) { return i + Index(offset); }))); }),
      ContainsSubstring("the index map of args[0] captured by reference"));
  CHECK_THAT(log_of([&] { run(pallas_call(body, [&](ShapeDtype) { return options(map); })); }),
             ContainsSubstring("the options function captured by reference"));
  CHECK_THAT(log_of([&] {
               run(pallas_call([p = &factor](Ref x, Ref o) { o[_] = x[_] * *p; }, options(map)));
             }),
             ContainsSubstring("or a pointer to that"));
}

TEST_CASE("the same line is told once of many kernels") {
  float factor = 2;
  const std::string log = log_of([&] {
    for (int i = 0; i < 5; ++i)
      pallas_call([&](Ref x, Ref o) { o[_] = x[_] * factor; },
                  {.name = "again", .out_type = {{8}, f32}})
          .on(Target::interpreter)(numbers(8));
  });
  CHECK(counted_words(log, "captured by reference") == "1 times captured by reference");
}

TEST_CASE("captures by value are told nothing of, whatever they hold") {
  static const float table[] = {1, 2, 3};
  const std::vector<float> owned = {1, 2};
  const auto heap = std::make_unique<float>(2.f);
  const auto silent = [](const auto& body) {
    CHECK(log_of([&] {
            pallas_call(body, {.name = "values", .out_type = {{8}, f32}})
                .on(Target::interpreter)(numbers(8));
          }).empty());
  };
  std::int64_t number = -1;
  silent([=](Ref x, Ref o) { o[_] = x[_] * float(number); });
  silent([p = &table[1]](Ref x, Ref o) { o[_] = x[_] * *p; });
  silent([p = heap.get()](Ref x, Ref o) { o[_] = x[_] * *p; });
  silent([owned](Ref x, Ref o) { o[_] = x[_] * owned[0]; });
  // An address that is no longer word for word, and numbers below and above the stack.
  int here_on_the_stack = 0;
  struct Packed {
    char before;
    char bytes[sizeof(void*)];
  } packed = {};
  const void* const address = &here_on_the_stack;
  std::memcpy(packed.bytes, &address, sizeof address);
  silent([packed](Ref x, Ref o) { o[_] = x[_] + float(packed.before); });
  // What lay on the stack before, where an option has no value.
  struct Partly {
    const void* stale;
    std::int64_t number;
  } partly = {&here_on_the_stack, 2};
  silent([partly](Ref x, Ref o) { o[_] = x[_] * float(partly.number); });
  std::uint64_t below = 0x1000, above = ~std::uint64_t{0} / 2;
  silent([=](Ref x, Ref o) { o[_] = x[_] + float(below % 2 + above % 2); });
}

TEST_CASE("what runs at once, within a body or as a core_map, may capture by reference") {
  const ArrayRef r = new_ref(Array::zeros({8}, f32));
  CHECK(log_of([&] {
          const float by = 3;
          set_default_target(Target::interpreter);
          core_map(gpu::Mesh{})([&] { r[_] = r[_] + by; });
          pallas_call(
              [](Ref x, Ref o) {
                when(x[0] == 0.f, [&] { o[_] = x[_]; });
                loop(0, 3, [&](Index) { o[_] = o[_] + 1.f; });
              },
              {.name = "inner", .out_type = {{8}, f32}})
              .on(Target::interpreter)(numbers(8));
        }).empty());
}
