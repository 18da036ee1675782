// Attention's loops, whose second product runs while the next iteration computes of its first:
// interpreter and emulator agree, races on, for any number of iterations and of stages.
#include <algorithm>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/emit.hpp"
#include "codegen/cuda/lower.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/wgmma_lint.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

struct Iterations {
  DType dtype = f16;
  int rows = 64, columns = 32, d = 32, stages = 2, programs = 5;
  bool specialize = true, persistent = false;
  bool latent = false;  // keys are the values, too
  int first = 0;        // ... or so many columns of them; 0: all

  int width() const { return first > 0 ? first : d; }
};

// Program i has i iterations.
graph::Graph attention_of(const Iterations& t) {
  const auto body = [=](Ref q, Ref k, Ref v, Ref o, Ref sums) {
    auto iteration = [&](Value i, Value top, Value total, Value acc) {
      const Value at = i * t.columns;
      const Value keys = k[{ds(at, t.columns), _}];
      const Value values = t.first > 0 ? Value(keys[{_, ds(0, t.first)}])
                           : t.latent  ? keys
                                       : Value(v[{ds(at, t.columns), _}]);
      Value s = dot(q[_], keys, {.trans_b = true}) * 0.25f;
      const Value seen = iota(i32, {t.rows, t.columns}, 1) < iota(i32, {t.rows, 1}, 0) + 1;
      s = where((i > 0) | seen, s, -1e30f);
      const Value next = maximum(top, max(s, {.axis = {1}, .keepdims = true}));
      const Value p = exp2(s - next), shrink = exp2(top - next);
      return carry(next, total * shrink + sum(p, {.axis = {1}, .keepdims = true}),
                   acc * shrink + dot(p.astype(t.dtype), values));
    };
    auto [top, total, acc] = loop(0, program_id(0), iteration, full({t.rows, 1}, -1e30f, f32),
                                  zeros({t.rows, 1}, f32), zeros({t.rows, t.width()}, f32));
    (void)top;
    o[_] = acc;
    sums[_] = total;
  };
  const std::int64_t rows = std::int64_t{t.rows} * t.programs, keys = t.columns * t.programs;
  const auto by_program = [](Index i) { return Indices{i, 0}; };
  const BlockSpec all{{keys, t.d}, [](Index) { return Indices{0, 0}; }};
  return traced(
      body,
      {.name = "iterations",
       .out_type = {{{rows, t.width()}, f32}, {{rows, 1}, f32}},
       .grid = {t.programs},
       .in_specs = {{{t.rows, t.d}, by_program}, all, all},
       .out_specs = {{{t.rows, t.width()}, by_program}, {{t.rows, 1}, by_program}},
       .compiler_params = {.num_stages = t.stages,
                           .warp_specialize = t.specialize,
                           .persistent = t.persistent}},
      {array({rows, t.d}, t.dtype), array({keys, t.d}, t.dtype), array({keys, t.d}, t.dtype)});
}

std::string text_of(const graph::Graph& g) {
  return cuda::emit(g, {.compute_capability = 90}).text;
}

}  // namespace

TEST_CASE("loops of two products agree for any number of iterations, stages and warps") {
  for (const Iterations& t :
       {Iterations{.stages = 2, .programs = 4},
        Iterations{.dtype = bf16, .stages = 3, .programs = 5},
        Iterations{.rows = 128, .columns = 48, .d = 64, .stages = 2, .programs = 3},
        Iterations{.stages = 2, .programs = 3, .specialize = false},
        Iterations{.stages = 1, .programs = 3}}) {
    INFO(t.rows << "x" << t.columns << ", " << t.stages << " stages");
    const graph::Graph g = attention_of(t);
    const bool rotated =
        lowered::to_text(cuda::lower(g, {.compute_capability = 90})).find("first iteration") !=
        std::string::npos;
    CHECK(rotated == (t.specialize && t.stages > 1));
    CHECK(text_of(g).find("_rs") != std::string::npos);
    for (const std::string& found : unpinned_registers(text_of(g))) FAIL_CHECK(found);
    CHECK(on_all_targets(g, {}, 90) == "");
  }
}

TEST_CASE("without wgmma a product takes from registers what another leaves there") {
  const auto text = [](const Iterations& t, int cc) {
    return cuda::emit(attention_of(t), {.compute_capability = cc}).text;
  };
  const auto is_held = [](const std::string& emitted) {
    return emitted.find("_from_registers<") != std::string::npos;
  };
  for (const int cc : {75, 80, 89}) {
    CAPTURE(cc);
    for (const Iterations& t :
         {Iterations{.programs = 3}, Iterations{.rows = 128, .columns = 48, .d = 64, .programs = 2},
          Iterations{.columns = 64, .d = 40, .stages = 1, .programs = 2}}) {
      CAPTURE(t.rows, t.columns);
      CHECK(is_held(text(t, cc)));
      CHECK(on_all_targets(attention_of(t), {}, cc) == "");
    }
    // Fewer rows than warps have tiles, and K that is no multiple of one's.
    CHECK_FALSE(is_held(text({.rows = 32}, cc)));
    CHECK_FALSE(is_held(text({.columns = 24}, cc)));
    for (const Iterations& t :
         {Iterations{.rows = 32, .programs = 2}, Iterations{.columns = 24, .programs = 2}})
      CHECK(on_all_targets(attention_of(t), {}, cc) == "");
  }
}

TEST_CASE("wgmma takes few rows, too, from the registers in which it leaves them") {
  const auto held = [](const Iterations& t) {
    const auto l = cuda::lower(attention_of(t), {.compute_capability = 90});
    return std::ranges::count_if(l.storages, [](const lowered::Storage& s) {
      return s.is_packed() && s.dtype == f16 && s.in_registers();
    });
  };
  for (const int rows : {32, 40, 48, 64}) {
    CAPTURE(rows);
    for (const int stages : {1, 3}) {
      const Iterations t{.rows = rows, .columns = 64, .d = 64, .stages = stages, .programs = 3};
      CHECK(held(t) > 0);
      CHECK(on_all_targets(attention_of(t), {}, 90) == "");
    }
  }
  CHECK(held({.rows = 16}) == 0);
}

// The second product reads the slot before the one that the first product of its loop reads.
TEST_CASE(
    "two products that read one block of an iteration agree, and are rotated given three slots") {
  for (const Iterations& t :
       {Iterations{.stages = 2, .programs = 4, .latent = true},
        Iterations{.stages = 3, .programs = 5, .latent = true},
        Iterations{.rows = 128, .stages = 4, .programs = 7, .latent = true},
        Iterations{.stages = 3, .programs = 9, .persistent = true, .latent = true}}) {
    INFO(t.rows << "x" << t.columns << ", " << t.stages << " stages");
    const graph::Graph g = attention_of(t);
    const lowered::Program l = cuda::lower(g, {.compute_capability = 90});
    CHECK((lowered::to_text(l).find("first iteration") != std::string::npos) == (t.stages > 2));
    CHECK(on_all_targets(g, {}, 90) == "");
  }
}

// Of four blocks each goes through programs of none to many iterations, so that slots and phases of
// one program are where the one before left them.
TEST_CASE("values that are the first columns of keys are read where the keys lie") {
  const auto places = [](const graph::Graph& g, int cc, std::int64_t keys) {
    const auto l = cuda::lower(g, {.compute_capability = cc});
    return std::ranges::count_if(l.storages, [&](const lowered::Storage& s) {
      return s.in_shared() && s.dtype == f16 && s.shape[0] == keys;
    });
  };
  for (const int cc : {80, 90})
    for (const Iterations& t : {Iterations{.columns = 48, .d = 128, .programs = 3, .first = 64},
                                Iterations{.rows = 128, .d = 192, .programs = 2, .first = 128},
                                Iterations{.columns = 48, .d = 80, .programs = 3, .first = 64}}) {
      CAPTURE(cc, t.d, t.first);
      const graph::Graph g = attention_of(t);
      // Rows of 160 bytes have other panels than those of 128.
      CHECK(places(g, cc, t.columns) == (cc == 90 && t.d == 80 ? 2 : 1));
      CHECK(on_all_targets(g, {}, cc) == "");
    }
}

TEST_CASE("loops of two products in persistent blocks agree from program to program") {
  for (const Iterations& t :
       {Iterations{.stages = 2, .programs = 10}, Iterations{.stages = 3, .programs = 13},
        Iterations{.dtype = bf16, .rows = 128, .columns = 48, .d = 64, .stages = 2, .programs = 6},
        Iterations{.stages = 2, .programs = 7, .specialize = false}}) {
    INFO(t.rows << "x" << t.columns << ", " << t.stages << " stages");
    Iterations again = t;
    again.persistent = true;
    const graph::Graph g = attention_of(again);
    const std::string text = lowered::to_text(cuda::lower(g, {.compute_capability = 90}));
    CHECK(text.find("grid loop programs") != std::string::npos);
    CHECK((text.find("first iteration") != std::string::npos) == t.specialize);
    for (const std::string& found : unpinned_registers(text_of(g))) FAIL_CHECK(found);
    CHECK(on_all_targets(g, {}, 90) == "");
  }
}

TEST_CASE(
    "what is made of a product under a condition, or of its own sum, stays in its iteration") {
  for (const bool own_sum : {false, true}) {
    const auto body = [=](Ref q, Ref k, Ref o, Ref scores) {
      const auto iteration = [&](Value i, Value acc) {
        const Value keys = k[{ds(i * 64, 64), _}];
        if (own_sum) {
          const Value sum = acc + dot(q[_], keys);
          return sum + dot((sum * 0.5f).astype(f16), keys);
        }
        when(i % 2 == 0, [&] { scores[_] = dot(q[_], keys); });
        return acc + dot(exp2(scores[_] * 0.125f).astype(f16), keys);
      };
      o[_] = loop(0, 5, iteration, zeros({128, 64}, f32));
    };
    const graph::Graph g =
        traced(body,
               {.name = "stays",
                .out_type = {{{128, 64}, f32}},
                .scratch_types = {gpu::REGS({128, 64}, f32)},
                .compiler_params = {.num_warps = 8, .num_stages = 3, .warp_specialize = true}},
               {array({128, 64}, f16), array({320, 64}, f16)});
    const lowered::Program l = cuda::lower(g, {.compute_capability = 90});
    CHECK(lowered::to_text(l).find("first iteration") == std::string::npos);
    CHECK(on_all_targets(g, {}, 90) == "");
  }
}
