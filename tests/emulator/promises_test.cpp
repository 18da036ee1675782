// What interpreter and emulator promise alike: reads of what nobody stored, lanes that do not
// exist, what a kernel leaves unwritten, slices that leave their block, programs that the grid does
// not order. Each case stands beside a right neighbour, which stays silent.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "palladium/palladium.hpp"
#include "tests/support/captured_stderr.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

constexpr Target targets[] = {Target::interpreter, Target::emulator};

std::string at_line(int line) { return "promises_test.cpp:" + std::to_string(line); }

Array counting(const Shape& shape) {
  return make_array<float>(shape, [](auto i) { return static_cast<float>(i); });
}

// The message of what a call throws; "" if nothing.
std::string told(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// That a kernel of no arguments, or of x, is refused on every target with `words` and the line,
// which is known once the body was traced.
void check_refused(const Kernel& kernel, const std::vector<Array>& x, const int& line,
                   std::initializer_list<const char*> words) {
  for (const Target target : targets) {
    CAPTURE(to_string(target));
    const std::string error = told([&] {
      if (x.empty())
        kernel.on(target)();
      else
        kernel.on(target)(x[0]);
    });
    CHECK_THAT(error, ContainsSubstring(at_line(line)));
    for (const char* word : words) CHECK_THAT(error, ContainsSubstring(word));
  }
}

void check_silent(const Kernel& kernel, const std::vector<Array>& x) {
  for (const Target target : targets) {
    CAPTURE(to_string(target));
    CHECK(told([&] {
            if (x.empty())
              kernel.on(target)();
            else
              kernel.on(target)(x[0]);
          }) == "");
  }
}

const BlockSpec row = {{1, 64}, [](Index i) { return Indices{i, 0}; }};
constexpr const char* unstored = "before anything was stored there";

}  // namespace

// ---- reads of what nobody stored

TEST_CASE("scratch is read only after it was stored, in shared memory and in registers") {
  for (const Scoped& where : {gpu::SMEM({64}, f32), gpu::REGS({64}, f32), gpu::REGS({1}, f32)})
    for (const bool stores : {false, true}) {
      int line = 0;
      const Kernel k = pallas_call(
          [=, &line](Ref o, Ref s) {
            if (stores) s[_] = ones(s.shape());
            line = __LINE__ + 1;
            const Value v = s[_];
            o[_] = v + 1;
          },
          {.out_type = where.type, .scratch_types = {where}});
      if (stores)
        check_silent(k, {});
      else
        check_refused(k, {}, line, {unstored});
    }
}

TEST_CASE("a part of scratch that was stored is read, the whole is not") {
  enum Read { part, whole, masked };
  for (const Read read : {part, whole, masked}) {
    int line = 0;
    const Kernel k = pallas_call(
        [=, &line](Ref o, Ref s) {
          s[{ds(0, 40)}] = ones({40});
          o[_] = zeros({64});
          if (read == part) {
            o[{ds(0, 8)}] = s[{ds(32, 8)}];
          } else if (read == masked) {
            o[_] = load(s, {.mask = iota(i32, {64}) < 40, .other = 2});
          } else {
            line = __LINE__ + 1;
            o[_] = s[_];
          }
        },
        {.out_type = {{64}, f32}, .scratch_types = {gpu::SMEM({64}, f32)}});
    if (read == whole)
      check_refused(k, {}, line, {unstored});
    else
      check_silent(k, {});
  }
}

TEST_CASE("every program starts with scratch of its own that holds nothing") {
  for (const Scoped& where : {gpu::SMEM({64}, f32), gpu::REGS({64}, f32)}) {
    int line = 0;
    const auto body = [&](bool parallel_axis) {
      return pallas_call(
          [&line](Ref o, Ref s) {
            when(program_id(0) == 0, [&] { s[_] = ones({64}); });
            line = __LINE__ + 1;
            o[_] = reshape(Value(s[_]), {1, 64});
          },
          {.out_type = {{4, 64}, f32},
           .grid = 4,
           .out_specs = {row},
           .scratch_types = {where},
           .compiler_params = {.dimension_semantics = {parallel_axis ? parallel : sequential}}});
    };
    check_refused(body(true), {}, line, {unstored});
    check_silent(body(false), {});
  }
}

TEST_CASE("an output is read only after it was stored, unless an input is aliased to it") {
  enum Case { nothing, stored, aliased };
  for (const Case which : {nothing, stored, aliased}) {
    int line = 0;
    PallasCallOptions options{
        .out_type = {{3, 64}, f32}, .grid = 3, .in_specs = {row}, .out_specs = {row}};
    if (which == aliased) options.input_output_aliases = {{0, 0}};
    const Kernel k = pallas_call(
        [=, &line](Ref x, Ref o) {
          if (which == stored) o[_] = x[_];
          line = __LINE__ + 1;
          o[_] = o[_] * 2;
        },
        options);
    if (which == nothing)
      check_refused(k, {counting({3, 64})}, line, {"outputs[0]", unstored});
    else
      check_silent(k, {counting({3, 64})});
  }
}

TEST_CASE("what one program stored is nothing to the next") {
  int line = 0;
  const BlockSpec rows = {{Element(2), 64}, [](Index i) { return Indices{i, 0}; }};
  const Kernel k = pallas_call(
      [&line](Ref o) {
        o[{0}] = ones({64});
        line = __LINE__ + 1;
        when(program_id(0) == 0, [&] { o[{1}] = o[{1}] + 1; });
      },
      {.out_type = {{4, 64}, f32}, .grid = 3, .out_specs = {rows}});
  check_refused(k, {}, line, {"outputs[0]", unstored});
}

TEST_CASE(
    "an accumulator is initialised by somebody, in registers, in shared memory, of a product") {
  enum Sum { registers, shared, scalar, product };
  for (const Sum sum_in : {registers, shared, scalar, product})
    for (const bool initialises : {false, true}) {
      int line = 0;
      const std::int64_t columns = sum_in == shared ? 20000 : sum_in == scalar ? 1 : 32;
      const BlockSpec in = {{32, columns}, [](Index k) { return Indices{k, 0}; }};
      const BlockSpec out = {{sum_in == product ? 32 : 1, columns}};
      const Kernel k = pallas_call(
          [=, &line](Ref x, Ref o) {
            if (initialises) when(program_id(0) == 0, [&] { o[_] = zeros(o.shape()); });
            line = __LINE__ + 1;
            const Value old = o[_];
            o[_] = old +
                   (sum_in == product ? dot(x[_], x[_]) : sum(x[_], {.axis = 0, .keepdims = true}));
          },
          {.out_type = {{sum_in == product ? 32 : 1, columns}, f32},
           .grid = 2,
           .in_specs = {in},
           .out_specs = {out}});
      if (initialises)
        check_silent(k, {counting({64, columns})});
      else
        check_refused(k, {counting({64, columns})}, line, {unstored});
    }
}

TEST_CASE("an output's next block starts with nothing, whatever stands where it lives") {
  for (const Space space : {Space::automatic, Space::smem})
    for (const bool every_block : {false, true}) {
      int line = 0;
      const BlockSpec out = {{1, 64},
                             [](Index i, Index) {
                               return Indices{i, 0};
                             },
                             {.memory_space = {space}}};
      const Kernel k = pallas_call(
          [=, &line](Ref o) {
            const Value first = program_id(1) == 0;
            when(every_block ? first : first & (program_id(0) == 0), [&] {
              o[_] = zeros({1, 64});
            });
            line = __LINE__ + 1;
            o[_] = o[_] + 1;
          },
          {.out_type = {{3, 64}, f32},
           .grid = {3, 2},
           .out_specs = {out},
           .compiler_params = {.dimension_semantics = {sequential, sequential}}});
      if (every_block)
        check_silent(k, {});
      else
        check_refused(k, {}, line, {unstored});
    }
}

// ---- what a kernel leaves unwritten

TEST_CASE("parts of an output that nobody wrote are a warning, an error by option") {
  enum Where { memory, registers, shared };
  for (const Where where : {memory, registers, shared})
    for (const bool all : {false, true})
      for (const Target target : targets) {
        CAPTURE(where, all, to_string(target));
        const auto make = [=](InterpretParams params) {
          const BlockSpec out = {
              {4, 64},
              [](Index i, Index) {
                return Indices{i, 0};
              },
              {.memory_space = {where == shared ? Space::smem : Space::automatic}}};
          PallasCallOptions options{.name = "partial", .out_type = {{8, 64}, f32}};
          options.grid = {2, where == memory ? 1 : 2};
          options.out_specs = {out};
          options.interpret = params;
          return pallas_call(
                     [=](Ref o) {
                       const Value stores = program_id(0) >= (all ? 0 : 1);
                       if (where == registers) {
                         when(stores, [&] { o[_] = ones({4, 64}); });
                       } else {
                         o[{ds(0, 3)}] = ones({3, 64});
                         when(stores, [&] { o[{3}] = ones({64}); });
                       }
                     },
                     options)
              .on(target);
        };
        const char* words = where == registers ? "nobody wrote 256 of the 512 elements of "
                                                 "outputs[0], the first of them [0,0]"
                                               : "nobody wrote 64 of the 512 elements of "
                                                 "outputs[0], the first of them [3,0]";
        std::string log;
        Array o;
        {
          const CapturedStderr captured;
          o = make({})();
          log = captured.text();
        }
        const std::string error = told([&] { make({.uninitialised = InterpretParams::error})(); });
        if (all) {
          CHECK_THAT(log, !ContainsSubstring("nobody wrote"));
          CHECK(error == "");
        } else {
          CHECK_THAT(log, ContainsSubstring("'partial'") && ContainsSubstring(words));
          CHECK_THAT(error, ContainsSubstring(words) && ContainsSubstring("promises_test.cpp:"));
        }
        // It holds what it held: the poison of a fresh output.
        CHECK(o.data<float>()[4 * 64] == 1);
        CHECK((o.data<float>()[3 * 64] == 1) == all);
      }
}

TEST_CASE("an output without programs is unwritten, one without elements or with an input is not") {
  const BlockSpec all = {{8}, [](Index) { return 0; }};
  const auto make = [&](std::int64_t programs, std::int64_t elements, bool alias) {
    PallasCallOptions options{.out_type = {{elements}, f32}, .grid = programs};
    options.in_specs = options.out_specs = {all};
    options.interpret = InterpretParams{.uninitialised = InterpretParams::error};
    if (alias) options.input_output_aliases = {{0, 0}};
    return pallas_call([](Ref x, Ref o) { o[_] = x[_]; }, options);
  };
  for (const Target target : targets) {
    CAPTURE(to_string(target));
    CHECK_THAT(told([&] { make(0, 8, false).on(target)(counting({8})); }),
               ContainsSubstring("nobody wrote 8 of the 8 elements"));
    CHECK(told([&] { make(1, 8, false).on(target)(counting({8})); }) == "");
    CHECK(told([&] { make(0, 8, true).on(target)(counting({8})); }) == "");
    CHECK(told([&] { make(0, 0, false).on(target)(counting({0})); }) == "");
  }
}

// ---- slices that leave their block

TEST_CASE("a static slice that leaves its block is refused while tracing, with the line") {
  int line = 0;
  const auto make = [&](int start) {
    return pallas_call(
        [=, &line](Ref x, Ref o) {
          line = __LINE__ + 1;
          o[_] = x[{ds(start, 2), _}];
        },
        {.out_type = {{2, 64}, f32},
         .grid = 1,
         .in_specs = {{{4, 64},
                       [](Index) {
                         return Indices{0, 0};
                       }}},
         .out_specs = {BlockSpec()}});
  };
  const ShapeDtype x{{16, 64}, f32};
  const std::string error = told([&] { make(3).lower(x); });
  CHECK_THAT(error, ContainsSubstring("out of bounds") && ContainsSubstring("f32[4,64]") &&
                        ContainsSubstring(at_line(line)));
  CHECK(told([&] { make(2).lower(x); }) == "");
}

TEST_CASE("a dynamic slice that leaves its block is an error where the array goes on") {
  // Blocks of 4 rows of an array of 16, whose number of rows is known, or a symbol.
  for (const bool symbolic : {false, true})
    for (const int start : {-1, 0, 2, 3}) {
      CAPTURE(symbolic, start);
      int line = 0;
      const BlockSpec in = {{4, 64}, [](Index i) { return Indices{i, 0}; }};
      const auto body = [=, &line](Value s, Ref x, Ref o) {
        line = __LINE__ + 1;
        const Value v = x[{ds(s, 2), _}];
        o[_] = sum(v, {.axis = 0, .keepdims = true});
      };
      const Kernel k =
          symbolic
              ? pallas_call(body,
                            [=](ShapeDtype, ShapeDtype x) {
                              const Dim blocks = cdiv(x.shape[0], 4);
                              return PallasCallOptions{.out_type = {{blocks, 64}, f32},
                                                       .grid = {blocks},
                                                       .in_specs = {in},
                                                       .out_specs = {row}};
                            })
              : pallas_call(
                    body,
                    {.out_type = {{4, 64}, f32}, .grid = 4, .in_specs = {in}, .out_specs = {row}});
      for (const Target target : targets) {
        const std::string error = told([&] { k.on(target)(scalar(start), counting({16, 64})); });
        CAPTURE(to_string(target));
        if (start == 0 || start == 2)
          CHECK(error == "");
        else
          CHECK_THAT(error, ContainsSubstring("out of bounds") &&
                                ContainsSubstring("dimension 0 of ref block f32[4,64]") &&
                                ContainsSubstring(at_line(line)));
      }
    }
}

TEST_CASE("a store, an index and a part of scratch do not leave their block either") {
  enum What { store_to, index_of, scratch_of, swap_in };
  for (const What what : {store_to, index_of, scratch_of, swap_in})
    for (const int at : {3, 4}) {
      CAPTURE(what, at);
      int line = 0;
      const BlockSpec block = {{4, 64}, [](Index i) { return Indices{i, 0}; }};
      const Kernel k = pallas_call(
          [=, &line](Value i, Ref x, Ref o, Ref s) {
            o[_] = x[_];
            s[_] = x[_];
            if (what == store_to) {
              line = __LINE__ + 1;
              o[{i}] = zeros({64});
            } else if (what == index_of) {
              line = __LINE__ + 1;
              o[{0}] = x[{i}];
            } else if (what == swap_in) {
              line = __LINE__ + 1;
              const Value old = pl::swap(o.at({i}), ones({64}));
              o[{0}] = old;
            } else {
              line = __LINE__ + 1;
              o[{0}] = s[{i}];
            }
          },
          {.out_type = {{8, 64}, f32},
           .grid = 2,
           .in_specs = {block},
           .out_specs = {block},
           .scratch_types = {gpu::SMEM({4, 64}, f32)}});
      for (const Target target : targets) {
        CAPTURE(to_string(target));
        const std::string error = told([&] { k.on(target)(scalar(at), counting({8, 64})); });
        if (at == 3)
          CHECK(error == "");
        else
          CHECK_THAT(error, ContainsSubstring("out of bounds") && ContainsSubstring(at_line(line)));
      }
    }
}

TEST_CASE("a masked slice leaves its block only where the mask is on, a view where it is read") {
  enum Way { masked, view, reshaped };
  for (const Way way : {masked, view, reshaped})
    for (const bool leaves : {false, true}) {
      CAPTURE(way, leaves);
      int line = 0;
      const BlockSpec block = {{16}, [](Index i) { return i; }};
      const int inside = 6 + leaves, rows = 1 + leaves;
      const Kernel k = pallas_call(
          [=, &line](Value s, Ref x, Ref o) {
            o[_] = x[_];
            line = __LINE__ + 1;
            const Ref part = x.at({ds(s, 16)});
            if (way == masked)
              o[_] = load(part, {.mask = iota(i32, {16}) < inside, .other = 0});
            else if (way == view)
              o[{ds(0, inside)}] = part[{ds(0, inside)}];
            else
              o[{ds(0, 4 * rows)}] =
                  reshape(Value(part.reshape({4, 4})[{ds(0, rows), _}]), {4 * rows});
          },
          {.out_type = {{32}, f32}, .grid = 2, .in_specs = {block}, .out_specs = {block}});
      for (const Target target : targets) {
        CAPTURE(to_string(target));
        const std::string error = told([&] { k.on(target)(scalar(10), counting({32})); });
        if (leaves)
          CHECK_THAT(error, ContainsSubstring("out of bounds") && ContainsSubstring(at_line(line)));
        else
          CHECK(error == "");
      }
    }
}

// ---- lanes beyond an array

TEST_CASE("lanes of an output's block beyond the array read as poison, or zero by option") {
  for (const DType dtype : {f32, i32})
    for (const Space space : {Space::automatic, Space::smem})
      for (const bool zero : {false, true})
        for (const Target target : targets) {
          CAPTURE(dtype.name(), static_cast<int>(space), zero, to_string(target));
          const BlockSpec ragged = {{8}, [](Index) { return 0; }, {.memory_space = {space}}};
          PallasCallOptions options{.out_type = {{{5}, dtype}, {{8}, dtype}}, .grid = 2};
          options.out_specs = {ragged, BlockSpec{{8}, [](Index) { return 0; }}};
          options.interpret = InterpretParams{.out_of_bounds = zero ? InterpretParams::zero
                                                                    : InterpretParams::poison};
          const Kernel k = pallas_call(
              [=](Ref o, Ref seen) {
                when(program_id(0) == 0, [&] { o[_] = full({8}, 1, dtype); });
                seen[_] = o[_];
              },
              options);
          const auto [o, seen] = k.on(target)().unpack<2>();
          for (int i = 0; i < 8; ++i) {
            const bool is_one =
                dtype == f32 ? seen.data<float>()[i] == 1 : seen.data<std::int32_t>()[i] == 1;
            const bool is_zero =
                dtype == f32 ? seen.data<float>()[i] == 0 : seen.data<std::int32_t>()[i] == 0;
            const bool is_poison = dtype == f32 ? std::isnan(seen.data<float>()[i])
                                                : seen.data<std::int32_t>()[i] == INT32_MIN;
            CHECK((i < 5 ? is_one : zero ? is_zero : is_poison));
          }
        }
}

// ---- programs that the grid does not order

TEST_CASE("a program that reads what another writes is found, whichever comes first") {
  enum Case { before, after, another_array, in_order, allowed };
  for (const Case which : {before, after, another_array, in_order, allowed}) {
    CAPTURE(which);
    int reader = 0, writer = 0;
    // The element before or behind the program's own, and its own.
    const Padding padding = which == after ? Padding{0, 1} : Padding{1, 0};
    const BlockSpec in = {{Element(2, padding), 64}, [](Index i) { return Indices{i, 0}; }};
    PallasCallOptions options{.out_type = {{6, 64}, f32}, .grid = 6};
    options.in_specs = {in};
    options.out_specs = {row};
    if (which != another_array) options.input_output_aliases = {{0, 0}};
    if (which == in_order) options.compiler_params.dimension_semantics = {sequential};
    options.compiler_params.allow_revisit = which == allowed;
    const Kernel k = pallas_call(
        [&](Ref x, Ref o) {
          reader = __LINE__ + 1;
          const Value v = x[_];
          const Value total = sum(where(v == v, v, 0.0f), {.axis = 0, .keepdims = true});
          writer = __LINE__ + 1;
          o[_] = total;
        },
        options);
    for (const Target target : targets) {
      CAPTURE(to_string(target));
      const std::string error = told([&] { k.on(target)(counting({6, 64})); });
      if (which == before || which == after)
        CHECK_THAT(error, ContainsSubstring("reads element") &&
                              ContainsSubstring(at_line(reader)) &&
                              ContainsSubstring(at_line(writer)));
      else
        CHECK(error == "");
    }
  }
}
