// Operands that threads convert or compute of what is copied ahead: interpreter and emulator agree,
// and whoever works on them waits for the others as it must.
#include <catch2/catch_test_macros.hpp>

#include "codegen/base/format.hpp"
#include "tests/user_kernels/along_k.hpp"
#include "tests/user_kernels/traced.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

// What becomes of a block of x or of weights before it is multiplied.
struct Computed {
  const char* name;
  Value (*of)(const Value& x, DType to);
};

const Computed computed[] = {
    {"as it is", [](const Value& x, DType to) { return x.astype(to); }},
    {"relu", [](const Value& x, DType to) { return relu(x.astype(to)); }},
    {"silu", [](const Value& x, DType to) { return silu(x.astype(f32)).astype(to); }},
    {"scaled", [](const Value& x, DType to) { return (x.astype(f32) * 0.125f).astype(to); }},
    {"twice", [](const Value& x, DType to) { return x.astype(to) + x.astype(to); }},
};

struct Blocks {
  std::int64_t m, n, k, steps;
};

struct Converted {
  DType a, b, to;
  const Computed *left, *right;
  Blocks shape;
  bool trans_b = false, grid = false, persistent = false;
  int stages = 0;
};

std::string name_of(const Converted& p) {
  return fmt::format("{} {} by {} {} in {}, {}x{}x{}, {} steps, trans_b {}, grid {}, stages {}",
                     p.left->name, p.a.name(), p.right->name, p.b.name(), p.to.name(), p.shape.m,
                     p.shape.n, p.shape.k, p.shape.steps, p.trans_b, p.grid, p.stages);
}

Value product(const Converted& p, const Value& a, const Value& b) {
  return dot(p.left->of(a, p.to), p.right->of(b, p.to), {.trans_b = p.trans_b});
}

graph::Graph kernel(const Converted& p) {
  const auto [m, n, k, steps] = p.shape;
  const Blocks s = p.shape;
  // The last rows of blocks end within their arrays' blocks.
  const std::int64_t rows = 2 * m - 3;
  PallasCallOptions options{
      .name = "converted",
      .out_type = ShapeDtype{{rows, n}, f32},
      .compiler_params = {.num_stages = p.stages, .persistent = p.persistent}};
  const std::vector<trace::ArgumentType> types{
      array({rows, k * steps}, p.a),
      p.trans_b ? array({n, k * steps}, p.b) : array({k * steps, n}, p.b)};
  const bool trans_b = p.trans_b;
  if (p.grid) {
    options.grid = {2, steps};
    options.in_specs = {{{m, k},
                         [](Index i, Index l) {
                           return Indices{i, l};
                         }},
                        {{trans_b ? n : k, trans_b ? k : n}, [=](Index, Index l) {
                           return trans_b ? Indices{0, l} : Indices{l, 0};
                         }}};
    options.out_specs = {{{m, n}, [](Index i, Index) { return Indices{i, 0}; }}};
    options.scratch_types = {gpu::REGS({m, n}, f32)};
    options.compiler_params.dimension_semantics = {parallel, sequential};
    return traced(
        [=](Ref a, Ref b, Ref o, Ref sum) {
          const Value l = program_id(1);
          when(l == 0, [&] { sum[_] = zeros({s.m, s.n}, f32); });
          sum[_] += product(p, a[_], b[_]);
          when(l == s.steps - 1, [&] { o[_] = sum[_]; });
        },
        options, types);
  }
  options.grid = {2};
  options.in_specs = {{{m, k * steps},
                       [](Index i) {
                         return Indices{i, 0};
                       }},
                      {{trans_b ? n : k * steps, trans_b ? k * steps : n}, [](Index) {
                         return Indices{0, 0};
                       }}};
  options.out_specs = {{{m, n}, [](Index i) { return Indices{i, 0}; }}};
  return traced(
      [=](Ref a, Ref b, Ref o) {
        const auto add = [&](Index l, Value sum) {
          const Slice now = ds(l * s.k, s.k);
          return sum + (trans_b ? product(p, a[{_, now}], b[{_, now}])
                                : product(p, a[{_, now}], b[{now, _}]));
        };
        o[_] = loop(0, s.steps, add, zeros({s.m, s.n}, f32));
      },
      options, types);
}

// What stands between two texts, behind the first.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  REQUIRE(from != std::string::npos);
  return text.substr(from, text.find(end, from) - from);
}

std::string text_of(const user_kernels::UserKernel& k) {
  const std::vector<ArgType> types(k.inputs.begin(), k.inputs.end());
  return k.kernel.lower(types).cuda_source({.arch = "sm_90a"});
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void check(const Converted& p, int cc) {
  INFO(name_of(p) << " on sm_" << cc);
  try {
    CHECK(problem_of(kernel(p), {}, cc) == "");
  } catch (const std::exception& e) {
    FAIL_CHECK(e.what());
  }
}

}  // namespace

TEST_CASE("operands that threads convert agree, of every dtype and in both styles") {
  constexpr Blocks shapes[] = {
      {64, 64, 64, 3}, {128, 128, 64, 5}, {64, 96, 32, 2}, {64, 64, 64, 1}, {64, 40, 48, 4}};
  std::size_t number = 0;
  for (const DType narrow : {i8, u8, f8e4m3, f8e5m2, f32})
    for (const DType to : {bf16, f16})
      for (const bool left : {false, true})
        for (const Blocks& shape : shapes) {
          ++number;
          // One of five, of each dtype others.
          if (!is_full() && (number + number / 5) % 5 != 0) continue;
          const Computed& of = computed[number % std::size(computed)];
          Converted p{.a = left ? narrow : to,
                      .b = left ? to : narrow,
                      .to = to,
                      .left = left ? &of : &computed[0],
                      .right = left ? &computed[0] : &of,
                      .shape = shape,
                      .trans_b = number % 3 == 0,
                      .grid = number % 2 == 0,
                      .persistent = number % 2 == 1 && shape.steps > 2,
                      .stages = number % 4 == 0 ? 2 : 0};
          check(p, 90);
          if (number % 4 == 1 || is_full()) check(p, 80);
        }
}

TEST_CASE("threads load all that they convert before they store any of it") {
  for (const DType narrow : {i8, i4}) {
    const auto weights = user_kernels::narrow_weights({.dtype = narrow});
    const std::string loop = between(text_of(weights), "mbarrier_wait", "wgmma_fence");
    const std::size_t stored = loop.find("store_shared");
    REQUIRE(stored != std::string::npos);
    CHECK(loop.find("load_shared") < stored);
    CHECK(loop.find("load_shared", stored) == std::string::npos);
  }
}

TEST_CASE("what is folded of 16 bits in shared memory is read by sixteen bytes") {
  const std::string text = text_of(user_kernels::norm_matmul({}));
  CHECK(holds(text, "load_shared_padded<8>"));
  CHECK_FALSE(holds(text, "load_shared_padded<4>"));
}

TEST_CASE("rows that an array chooses, copied ahead, agree") {
  using user_kernels::Tile;
  for (const int cc : {80, 90}) {
    CAPTURE(cc);
    const auto check = [&](std::int64_t m, std::int64_t k, const Tile& tile) {
      const auto of = user_kernels::gathered_matmul({.m = m, .n = 64, .k = k, .tile = tile});
      CHECK(problem_of(graph_of(of), {}, cc) == "");
    };
    check(128, 256, {64, 64, 64});
    check(128, 64, {64, 64, 32});
    check(64, 32, {64, 64, 32});
    for (const std::int64_t steps : {3, 5, 6, 9}) check(64, 32 * steps, {64, 64, 32});
  }
}

TEST_CASE("sums of 8-bit floats agree, of which the last part goes on beside the next iteration") {
  std::size_t number = 0;
  for (const std::int64_t steps : {1, 2, 3, 6})
    for (const Blocks& shape : {Blocks{128, 256, 128, steps}, Blocks{64, 64, 256, steps}})
      for (const bool trans_b : {false, true})
        for (const bool grid : {false, true}) {
          if (!is_full() && ++number % 3 != 0) continue;
          check({.a = f8e4m3,
                 .b = f8e4m3,
                 .to = f8e4m3,
                 .left = &computed[0],
                 .right = &computed[0],
                 .shape = shape,
                 .trans_b = trans_b,
                 .grid = grid,
                 .persistent = !grid && steps > 2},
                90);
        }
}

// In one statement NVVM would compute the addresses of threads in each iteration.
TEST_CASE("steps of wgmma are one statement, but where threads reach shared memory beside them") {
  const user_kernels::Sizes sizes{.m = 256, .n = 256, .k = 1024};
  const std::string plain = text_of(user_kernels::matmul({.m = 256, .n = 256, .k = 1024}));
  CHECK(holds(plain, "k16_f32_bf16_bf16_x4<"));
  CHECK_FALSE(holds(plain, "k16_f32_bf16_bf16<"));
  const std::string beside = text_of(user_kernels::activated_matmul(sizes));
  CHECK(holds(beside, "_rs<true>"));
  CHECK_FALSE(holds(beside, "_rs_x"));
}

TEST_CASE("an A that threads compute goes to wgmma from registers, beside the product before") {
  const user_kernels::Sizes sizes{.m = 256, .n = 256, .k = 1024};
  const std::string loop = between(text_of(user_kernels::activated_matmul(sizes)),
                                   "pl::setmaxnreg_inc", "pl::program_sync");
  CHECK(holds(loop, "_rs<true>"));
  CHECK_FALSE(holds(loop, "pl::store_shared"));
  // Nobody waits before what is computed.
  const std::string before = between(loop, "PL_NOUNROLL", "pl::wgmma_wait");
  CHECK(holds(before, "pl::logistic_approx"));
  CHECK(holds(before, "pl::pack"));
}

TEST_CASE("rows are gathered beside the product that goes on") {
  const user_kernels::Sizes sizes{.m = 256, .n = 256, .k = 1024};
  const std::string text = text_of(user_kernels::gathered_matmul(sizes));
  const std::size_t copies = text.rfind("pl::copy_async");
  const std::string loop = text.substr(text.rfind("PL_NOUNROLL", copies));
  CHECK(loop.find("pl::wgmma_wait<1>") < loop.find("pl::copy_async"));
  CHECK(loop.find("pl::wgmma_wait<0>") > loop.find("pl::wgmma_commit"));
}

TEST_CASE(
    "8-bit floats are transposed beside the product, and what it leaves is added behind that") {
  const std::string text = text_of(user_kernels::matmul(
      {.m = 256, .n = 256, .k = 1024, .tile = {128, 256, 128}, .dtype = f8e4m3}));
  const std::string loop = between(text, "PL_NOUNROLL for (i32 v", "pl::stmatrix");
  CHECK(loop.find("pl::transpose_bytes") < loop.find("pl::wgmma_wait<0>"));
  CHECK(loop.find("pl::wgmma_wait<0>") < loop.find("pl::promote<64"));
  CHECK(loop.find("pl::promote<64") < loop.find("pl::wgmma_m64"));
}

TEST_CASE("what TMA has rounded to tf32 is transposed as it is") {
  const auto text = [](bool trans_b) {
    return text_of(user_kernels::matmul({.m = 256,
                                         .n = 256,
                                         .k = 256,
                                         .tile = {128, 128, 32},
                                         .dtype = f32,
                                         .trans_b = trans_b,
                                         .precision = Precision::tf32}));
  };
  CHECK_FALSE(holds(text(false), "round_to_tf32"));
  CHECK_FALSE(holds(text(true), "round_to_tf32"));
}

TEST_CASE("both operands that threads compute agree") {
  for (const Computed& of : computed)
    for (const bool grid : {false, true}) {
      if (!is_full() && grid == (&of == computed)) continue;
      check({.a = bf16,
             .b = i8,
             .to = bf16,
             .left = &of,
             .right = &of,
             .shape = {64, 64, 64, 4},
             .grid = grid},
            90);
    }
}
