// Views that see other bits than their array holds: elements that are cut, joined, or both.
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"

using namespace palladium;
using namespace palladium::test;
using palladium::_;

namespace {

// "" if interpreter and emulator agree on random numbers, poison out of bounds included.
std::string both(const graph::Graph& g, std::vector<std::int64_t> symbols = {}) {
  Random random(7);
  test::Call a = random_call(g, symbols, random, false), b = a;
  run_interpreter(g, a);
  run_emulator(g, {.compute_capability = 90}, b);
  return difference(g, a, b);
}

using View = std::function<Ref(Ref)>;

// o = the bits of x through the view, one program.
graph::Graph read_through(const View& view, ShapeDtype x, ShapeDtype o) {
  return traced([&](Ref in, Ref out) { out[_] = view(in)[_]; }, {.name = "read", .out_type = o},
                {{x, false}});
}

// o starts as y and gets x through the view.
graph::Graph write_through(const View& view, ShapeDtype x, ShapeDtype o) {
  return traced(
      [&](Ref in, Ref old, Ref out) {
        out[_] = old[_];
        view(out)[_] = in[_];
      },
      {.name = "write", .out_type = o}, {{x, false}, {o, false}});
}

std::string text_of_cuda(const graph::Graph& g) {
  return cuda::emit(g, {.compute_capability = 90}).text;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("elements of any width are cut and joined as the interpreter does") {
  const DType types[] = {i8, u16, f16, i32, f32, u64, f64};
  for (const DType from : types)
    for (const DType to : types) {
      if (from == to) continue;
      CAPTURE(from.name(), to.name());
      const ShapeDtype x{{6, 64}, from}, o{{6, 64 * from.bytes() / to.bytes()}, to};
      const View view = [=](Ref r) { return r.bitcast(to); };
      CHECK(both(read_through(view, x, o)) == "");
      CHECK(both(write_through(view, o, x)) == "");
    }
}

TEST_CASE("bits join across rows, strides and subscripts, and are cut again") {
  const ShapeDtype x{{8, 24}, u8};
  const struct {
    const char* name;
    View view;
    ShapeDtype out;
  } cases[] = {
      {"columns",
       [](Ref r) {
         return r.transpose({1, 0}).bitcast(f32);
       },
       {{24, 2}, f32}},
      {"every other",
       [](Ref r) {
         return r.at({_, ds(1, 8, 2)}).bitcast(i32);
       },
       {{8, 2}, i32}},
      {"from an odd byte",
       [](Ref r) {
         return r.at({_, ds(3, 16)}).bitcast(f64);
       },
       {{8, 2}, f64}},
      {"where a number says",
       [](Ref r) {
         const Value start = i32(Value(r[{0, 0}])) & 15;
         return r.at({_, ds(start, 8)}).bitcast(u16);
       },
       {{8, 4}, u16}},
      {"flat", [](Ref r) { return r.reshape({192}).bitcast(u64); }, {{24}, u64}},
      {"joined, then cut",
       [](Ref r) {
         return r.bitcast(u64).at({_, ds(1, 2)}).bitcast(u16);
       },
       {{8, 8}, u16}},
      {"joined, turned and cut",
       [](Ref r) {
         return r.bitcast(u32).transpose({1, 0}).bitcast(i16);
       },
       {{6, 16}, i16}},
      {"turned, joined and joined again",
       [](Ref r) {
         return r.transpose({1, 0}).bitcast(u16).bitcast(f32);
       },
       {{24, 2}, f32}},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    CHECK(both(read_through(c.view, x, c.out)) == "");
    CHECK(both(write_through(c.view, c.out, x)) == "");
    const graph::Graph shared = traced(
        [&](Ref in, Ref out, Ref tmp) {
          tmp[_] = in[_];
          out[_] = c.view(tmp)[_];
        },
        {.name = "shared", .out_type = c.out, .scratch_types = {gpu::SMEM({8, 24}, u8)}},
        {{x, false}});
    CHECK(both(shared) == "");
  }
}

TEST_CASE("an element is out of bounds where a part of it is; parts in bounds are stored") {
  const BlockSpec bytes{{16}, [](Index i) { return i; }}, words{{4}, [](Index i) { return i; }};
  const graph::Graph joined = traced([](Ref x, Ref o) { o[_] = x.bitcast(f32)[_]; },
                                     {.name = "joined",
                                      .out_type = ShapeDtype{{12}, f32},
                                      .grid = {3},
                                      .in_specs = {bytes},
                                      .out_specs = {words}},
                                     {array({dim("n")}, u8)});
  for (const std::int64_t n : {48, 47, 45, 36, 33}) CHECK(both(joined, {n}) == "");
  const graph::Graph cut = traced([](Ref x, Ref o) { o[_] = x.bitcast(i8)[_]; },
                                  {.name = "cut",
                                   .out_type = ShapeDtype{{48}, i8},
                                   .grid = {3},
                                   .in_specs = {words},
                                   .out_specs = {bytes}},
                                  {array({dim("n")}, f32)});
  for (const std::int64_t n : {12, 11, 9}) CHECK(both(cut, {n}) == "");
  const graph::Graph stored = traced([](Ref x, Ref o) { o.bitcast(i32)[_] = x[_]; },
                                     {.name = "stored",
                                      .out_type = ShapeDtype{{dim("n")}, u8},
                                      .grid = {3},
                                      .in_specs = {words},
                                      .out_specs = {bytes}},
                                     {array({12}, i32)});
  for (const std::int64_t n : {48, 47, 45, 36, 33}) CHECK(both(stored, {n}) == "");
}

TEST_CASE("masked lanes of a joined view are neither read nor written") {
  const graph::Graph g = traced(
      [](Ref x, Ref o) {
        const Value some = iota(i32, {2, 4}, 1) % 2 == 0;
        const Value bits = load(x.transpose({1, 0}).bitcast(u32), {.mask = some, .other = 9});
        o[_] = zeros({8, 2}, u16);
        store(o.transpose({1, 0}).bitcast(u32), bits, {.mask = some});
      },
      {.name = "masked", .out_type = ShapeDtype{{8, 2}, u16}}, {array({8, 2}, u16)});
  CHECK(both(g) == "");
}

TEST_CASE("neighbours that are aligned are read and written as what they form") {
  const View joined = [](Ref r) { return r.bitcast(f32); };
  const std::string read = text_of_cuda(read_through(joined, {{4096}, u8}, {{1024}, f32}));
  CHECK(holds(read, "pl::load_global_nc<4>("));
  CHECK(holds(read, "reinterpret_cast<const f32*>(in0)"));
  CHECK_FALSE(holds(read, "<<"));
  const View cut = [](Ref r) { return r.bitcast(u8); };
  const std::string write = text_of_cuda(write_through(cut, {{4096}, u8}, {{1024}, f32}));
  CHECK(holds(write, "reinterpret_cast<u8*>(out0)"));
}
