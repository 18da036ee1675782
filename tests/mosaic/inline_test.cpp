// Text of the user's own in a kernel.
#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using gpu::Layout;
using pl::_;

namespace inlined {

constexpr const char* every_arch[] = {"sm_75",  "sm_80",   "sm_86",  "sm_89",
                                      "sm_90a", "sm_100a", "sm_120a"};

void compiles(const Lowered& k) {
  for (const char* arch : every_arch) {
    INFO(arch);
    const Resources r = k.compile({.arch = arch}).resources();
    CHECK(r.spill_store_bytes + r.spill_load_bytes == 0);
    for (const std::string& warning : r.warnings) FAIL_CHECK(warning);
  }
}

/// a x + y, one element a register.
Value axpy(Value scale, Value left, Value right, std::optional<Layout> layout = {}) {
  return gpu::inline_cuda(
      R"(
        PL_UNROLL for (i32 i = 0; i < PL_REGISTERS(x); ++i)
          sum[i] = pl::fma(a, x[i], y[i]);
      )",
      {{"a", scale}, {"x", left, layout}, {"y", right, layout}},
      {{"sum", {left.shape(), f32, layout}}},
      {.name = "axpy", .interpret = [&] { return scale * left + right; }});
}

TEST_CASE("a text computes with registers of any layout, as what it means does") {
  const std::vector<std::optional<Layout>> layouts = {std::nullopt, Layout::WGMMA,
                                                      Layout::WG_STRIDED(4), Layout::MMA_ACC(f32),
                                                      Layout::WGMMA_TRANSPOSED};
  for (std::size_t n = 0; n < layouts.size(); ++n)
    for_each_target(std::to_string(n), [&](Target target) {
      const Kernel k =
          gpu::kernel([layout = layouts[n]](
                          Ref x, Ref y, Ref o) { o[_] = axpy(2.0f, x[_], y[_], layout) + 1.0f; },
                      {.name = "axpy", .out_type = {{64, 32}, f32}});
      const Array x = counted({64, 32});
      const std::vector<float> o = elements<float>(k.on(target)(on(target, x), on(target, x)));
      bool right = true;
      for (std::size_t i = 0; i < o.size(); ++i)
        right = right && o[i] == 3 * static_cast<float>(i) + 1;
      CHECK(right);
    });
}

TEST_CASE("a text reads and writes memory: threads wait for what it says that it writes") {
  for_each_target("reversed", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref room) {
          pl::loop(0, 4, [&](Index i) {
            const Ref row = x.at({i, _});
            gpu::inline_cuda(
                "PL_UNROLL for (i32 i = i32(pl::thread()); i < row.extent(0); i += 128)"
                " room(row.extent(0) - 1 - i) = factor * row(i);",
                {{"row", row, gpu::reads}, {"room", room, gpu::writes}, {"factor", 2.0f}},
                {.name = "reversed",
                 .interpret = [&] { room[_] = pl::flip(Value(row[_]), 0) * 2.0f; }});
            o[{i, _}] = room[_];
          });
        },
        {.name = "reversed",
         .out_type = {{4, 256}, f32},
         .scratch_types = {gpu::SMEM({256}, f32)}});
    const std::vector<float> o = elements<float>(k.on(target)(on(target, counted({4, 256}))));
    bool right = true;
    for (std::size_t i = 0; i < o.size(); ++i)
      right = right && o[i] == 2.0f * static_cast<float>(i / 256 * 256 + 255 - i % 256);
    CHECK(right);
  });
}

TEST_CASE("a text of a pallas_call sees where the array of its block ends, and views of it") {
  for_each_target("ragged", [](Target target) {
    const BlockSpec block{{8, 100}, [](Index i, Index j) { return Indices{i, j}; }};
    const Kernel k = pallas_call(
        [](Ref x, Ref o) {
          gpu::inline_cuda(
              R"(
              for (i32 e = i32(pl::thread()); e < 50 * 8; e += 128) {
                const i32 j = e / 8, i = e % 8;
                if (i < turned.extent(1) && j < turned.extent(0))
                  odd(j, i) = turned(j, i) * 2.0f;
              }
            )",
              {{"turned", x.at({_, ds(1, 50, 2)}).transpose({1, 0}), gpu::reads},
               {"odd", o.at({_, ds(1, 50, 2)}).transpose({1, 0}), gpu::writes}},
              {.name = "odd_columns", .interpret = [&] {
                 const Ref from = x.at({_, ds(1, 50, 2)}), to = o.at({_, ds(1, 50, 2)});
                 to[_] = from[_] * 2.0f;
               }});
          o[{_, ds(0, 50, 2)}] = x[{_, ds(0, 50, 2)}];
        },
        {.name = "ragged",
         .out_type = {{20, 150}, f32},
         .grid = {3, 2},
         .in_specs = {block},
         .out_specs = {block}});
    const std::vector<float> o = elements<float>(k.on(target)(on(target, counted({20, 150}))));
    bool right = true;
    for (std::size_t i = 0; i < o.size(); ++i)
      right = right && o[i] == static_cast<float>(i) * (i % 150 % 2 == 1 ? 2.0f : 1.0f);
    CHECK(right);
  });
}

TEST_CASE("a text may have several results, numbers among them, which nobody need read") {
  for_each_target("results", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref n) {
          const Value v = x[_];
          const auto [twice, half, count] = gpu::inline_cuda(
              R"(
                // a brace in a comment: }
                for (i32 i = 0; i < PL_REGISTERS(v); ++i) {
                  twice[i] = i32(2 * v[i]);
                  half[i] = v[i] / 2;
                }
                count = 7 * step;
              )",
              {{"v", v}, {"step", 3}},
              {{"twice", {{128}, i32}}, {"half", {{128}, f32}}, {"count", {{}, i32}}},
              {.interpret = [&] { return carry((v * 2.0f).astype(i32), v / 2.0f, Value(21)); }});
          o[_] = twice;
          n[0] = count;
        },
        {.name = "results", .out_type = {{{128}, i32}, {{1}, i32}}});
    const auto [o, n] = k.on(target)(on(target, counted({128}))).unpack<2>();
    CHECK(elements<std::int32_t>(o)[100] == 200);
    CHECK(elements<std::int32_t>(n)[0] == 21);
  });
}

TEST_CASE("each warp of a WarpMesh runs a text on numbers and Refs") {
  const Kernel k = gpu::kernel(
      [](Ref o) {
        gpu::warp_map([&](Index warp) {
          gpu::inline_cuda("if (pl::lane() == 0) o(w) = 10 * w;",
                           {{"w", warp}, {"o", o, gpu::writes}},
                           {.interpret = [&] { o[warp] = warp * 10; }});
        });
      },
      {.name = "warps", .out_type = {{4}, i32}});
  for_each_target("warps", [&](Target target) {
    CHECK(elements<std::int32_t>(k.on(target)()) == std::vector<std::int32_t>{0, 10, 20, 30});
  });
  CHECK_THAT(
      refused([] {
        gpu::kernel(
            [](Ref x, Ref o) {
              const Value v = x[_];
              gpu::warp_map([&](Index) { gpu::inline_cuda("", {{"v", v}}); });
              o[_] = v;
            },
            {.name = "bad", .out_type = {{4}, f32}})
            .lower(ShapeDtype{{4}, f32});
      }),
      ContainsSubstring("inline_cuda: can only store scalars with a WarpMesh, given f32[4]") &&
          ContainsSubstring("inline_test.cpp"));
}

TEST_CASE("texts compile for every architecture, in pallas_call and plgpu::kernel") {
  compiles(gpu::kernel([](Ref x, Ref y, Ref o) { o[_] = axpy(2.0f, x[_], y[_]); },
                       {.name = "axpy", .out_type = {{64, 64}, f32}})
               .lower(ShapeDtype{{64, 64}, f32}, ShapeDtype{{64, 64}, f32}));
  const BlockSpec row{{1, 300}, [](Index i) { return Indices{i, 0}; }};
  compiles(pallas_call(
               [](Ref x, Ref o) {
                 gpu::inline_cuda(
                     "for (i32 i = i32(threadIdx.x); i < 300; i += i32(blockDim.x)) {"
                     "  f32 old = x(0, i); o(0, i) = __expf(old); o(0, i) += 1.0f; }",
                     {{"x", x, gpu::reads}, {"o", o, gpu::updates}}, {.name = "exps"});
               },
               {.name = "exps",
                .out_type = {{7, 300}, f32},
                .grid = {7},
                .in_specs = {row},
                .out_specs = {row}})
               .lower(ShapeDtype{{7, 300}, f32}));
}

/// 2^x of each register, and one of a shared tile.
Kernel by_ptx() {
  return gpu::kernel(
      [](Ref x, Ref o, Ref tile) {
        tile[_] = x[_];
        const Value v = x[_];
        o[_] = gpu::inline_cuda(R"({
            .reg .f32 first;
            ld.shared.f32 first, [$tile];
            ex2.approx.f32 $y, $x;
            fma.rn.f32 $y, $y, $a, first;  // %laneid is not asked
          })",
                                {{"x", v}, {"a", 2.0f}, {"tile", tile, gpu::reads}},
                                {{"y", {{128}, f32}}}, {.name = "exp2s", .ptx = true});
      },
      {.name = "by_ptx", .out_type = {{128}, f32}, .scratch_types = {gpu::SMEM({128}, f32)}});
}

TEST_CASE("PTX runs for each register; the emulator refuses it by name") {
  const Lowered lowered = by_ptx().lower(ShapeDtype{{128}, f32});
  compiles(lowered);
  CHECK_THAT(lowered.cuda_source({.arch = "sm_80"}), ContainsSubstring("ex2.approx.f32 %0, %1;") &&
                                                         ContainsSubstring("[%3]") &&
                                                         ContainsSubstring("%%laneid"));
  const Array x = counted({128});
  CHECK_THAT(refused([&] { by_ptx().on(Target::emulator)(x); }),
             ContainsSubstring("inline_cuda 'exp2s': the emulator runs CUDA C++ and no PTX") &&
                 ContainsSubstring("inline_test.cpp:196"));
  CHECK_THAT(refused([&] { by_ptx().on(Target::interpreter)(x); }),
             ContainsSubstring("inline_cuda 'exp2s': the interpreter runs no PTX; say what the "
                               "text means") &&
                 ContainsSubstring("inline_test.cpp:196"));
  const Kernel within = gpu::kernel(
      [](Ref o) {
        gpu::inline_cuda("asm volatile(\"membar.gl;\");", {{"o", o, gpu::writes}},
                         {.name = "fenced"});
        o[_] = zeros({4}, f32);
      },
      {.name = "within", .out_type = {{4}, f32}});
  CHECK_THAT(refused([&] { within.on(Target::emulator)(); }),
             ContainsSubstring("inline_cuda 'fenced': the emulator runs CUDA C++ and no PTX"));
  CHECK_THAT(refused([&] { within.on(Target::interpreter)(); }),
             ContainsSubstring("inline_cuda 'fenced': the interpreter runs no CUDA C++"));
}

std::string refused_text(const char* text, std::vector<gpu::InlineOperand> (*operands)(Ref, Ref),
                         gpu::InlineOptions options = {}, DType t = f32) {
  return refused([&] {
    gpu::kernel(
        [=](Ref x, Ref o, Ref) { gpu::inline_cuda(text, operands(x, o), options); },
        {.name = "bad", .out_type = {{128}, t}, .scratch_types = {gpu::SMEM({64, 64}, f16)}})
        .lower(ShapeDtype{{128}, t})
        .cuda_source({.arch = "sm_90a"});
  });
}

TEST_CASE("what is no text, or cannot be given to one, is an error at its line") {
  using List = std::vector<gpu::InlineOperand>;
  const auto none = [](Ref, Ref) { return List{}; };
  CHECK_THAT(refused_text("}", none),
             ContainsSubstring("inline_cuda: there is a } that closes nothing"));
  CHECK_THAT(refused_text("f(", none), ContainsSubstring("inline_cuda: a ( is not closed"));
  CHECK_THAT(
      refused_text(
          "",
          [](Ref x, Ref) {
            return List{{"x", x[_]}};
          },
          {.ptx = true}, i8),
      ContainsSubstring("expected elements of 2, 4 or 8 bytes as 'x', for PTX, given i8[128]"));
  CHECK_THAT(refused_text("",
                          [](Ref x, Ref) {
                            return List{{"x", x[_]}, {"y", x[ds(0, 64)]}};
                          },
                          {.ptx = true}),
             ContainsSubstring("expected 'y' of [128], as what else PTX is given, given f32[64]"));
  CHECK(refused_text("/* ( */ const char* s = \"{\"; (void)s;", none) == "");
  CHECK_THAT(refused_text("", none, {.name = "a b"}), ContainsSubstring("inline_cuda: "));
  CHECK_THAT(refused_text("",
                          [](Ref x, Ref o) {
                            return List{{"x", x, gpu::reads}, {"x", o, gpu::writes}};
                          }),
             ContainsSubstring("two operands or results are called 'x'"));
  CHECK_THAT(refused_text("",
                          [](Ref x, Ref) {
                            return List{{"1x", x, gpu::reads}};
                          }),
             ContainsSubstring("'1x' is no name of a variable"));
  CHECK_THAT(refused_text("",
                          [](Ref x, Ref) {
                            return List{{"x", x, gpu::writes}};
                          }),
             ContainsSubstring("inline_cuda: "));
  CHECK_THAT(refused_text("",
                          [](Ref x, Ref) {
                            return List{{"x", x[0], Layout::WGMMA}};
                          }),
             ContainsSubstring("expected an array with a layout as 'x', given f32[]"));
  CHECK_THAT(refused_text("",
                          [](Ref x, Ref) {
                            return List{{"x", x[_], Layout::WGMMA}};
                          }),
             ContainsSubstring("inline_cuda: WGMMA of f32[128] is no layout"));
  CHECK_THAT(refused_text("",
                          [](Ref x, Ref) {
                            return List{{"x", x.reshape({2, 64}), gpu::reads}};
                          }),
             ContainsSubstring("'x' is a Ref that is reshaped or bitcast"));
  CHECK_THAT(refused_text(
                 "",
                 [](Ref x, Ref) {
                   return List{{"x", x[_]}};
                 },
                 {}, i4),
             ContainsSubstring("expected elements of whole bytes as 'x', given i4[128]"));
  CHECK_THAT(refused_text("mov.b32 $y, $x;",
                          [](Ref x, Ref) {
                            return List{{"x", x[0]}};
                          },
                          {.ptx = true}),
             ContainsSubstring("inline_cuda: '$y' is the name of no operand and of no result"));
  CHECK_THAT(refused([] {
               gpu::kernel(
                   [](Ref x, Ref o) {
                     o[_] = gpu::inline_cuda("", {}, {{"y", {{128}, f32}}}, {.interpret = [&] {
                                               return carry(Value(x[_]), Value(x[_]));
                                             }});
                   },
                   {.name = "bad", .out_type = {{128}, f32}})
                   .lower(ShapeDtype{{128}, f32});
             }),
             ContainsSubstring("inline_cuda: the text has 1 results, but .interpret returns 2"));
  CHECK_THAT(refused([] {
               gpu::kernel(
                   [](Ref x, Ref o) {
                     o[_] = gpu::inline_cuda("", {}, {{"y", {{128}, f32}}},
                                             {.interpret = [&] { return Value(x[0]); }});
                   },
                   {.name = "bad", .out_type = {{128}, f32}})
                   .lower(ShapeDtype{{128}, f32});
             }),
             ContainsSubstring("result 0 is f32[128], but .interpret returns f32[]"));
}

TEST_CASE("what compilers refuse of a text names it and its line") {
  const Folder dumps;
  const Environment there("PALLADIUM_DUMP_DIR", dumps.path());
  const Kernel wrong = gpu::kernel(
      [](Ref x, Ref o) {
        gpu::inline_cuda("o(0) = no_such_name(x(0));",
                         {{"x", x, gpu::reads}, {"o", o, gpu::writes}}, {.name = "wrong"});
      },
      {.name = "wrong", .out_type = {{128}, f32}});
  const Array x = counted({128});
  CHECK_THAT(refused([&] { wrong.on(Target::emulator)(x); }),
             ContainsSubstring("inline_cuda 'wrong': the host compiler refuses the text") &&
                 ContainsSubstring("no_such_name") && ContainsSubstring("inline_test.cpp:339"));
  CHECK_THAT(refused([&] {
               wrong.lower(ShapeDtype{{128}, f32}).compile({.arch = "sm_80"}).resources();
             }),
             ContainsSubstring("no_such_name") && ContainsSubstring("inline_test.cpp:339"));
  const Kernel writes = gpu::kernel(
      [](Ref x, Ref o) {
        gpu::inline_cuda("x(0) = 1.0f;", {{"x", x, gpu::reads}}, {.name = "writes"});
        o[_] = x[_];
      },
      {.name = "writes", .out_type = {{128}, f32}});
  CHECK_THAT(refused([&] { writes.on(Target::emulator)(x); }),
             ContainsSubstring("the text writes to a Ref that it said it reads"));
}

TEST_CASE("a text is a part of the kernel's key; what it means is, too") {
  const auto key = [](const char* text, bool means, const char* name = "text") {
    gpu::InlineOptions options{.name = name};
    const auto one = [] { return Value(full({128}, 1.0f, f32)); };
    if (means) options.interpret = one;
    return gpu::kernel(
               [=](Ref o) {
                 o[_] = gpu::inline_cuda(text, {}, {{"y", {{128}, f32}}}, options);
               },
               {.name = "keyed", .out_type = {{128}, f32}})
        .lower()
        .key({.arch = "sm_80"});
  };
  CHECK(key("y[0] = 1;", false) == key("y[0] = 1;", false));
  CHECK(key("y[0] = 1;", false) != key("y[0] = 2;", false));
  CHECK(key("y[0] = 1;", false) != key("y[0] = 1;", true));
  CHECK(key("y[0] = 1;", false) != key("y[0] = 1;", false, "other"));
}

TEST_CASE("the verdict at compile time knows what a text says of memory") {
  const auto k = [](bool waits) {
    return gpu::kernel(
        [=](Ref x, Ref o, Ref tile, Ref there) {
          gpu::copy_gmem_to_smem(x, tile, there);
          if (waits) gpu::barrier_wait(there);
          gpu::inline_cuda("o(i32(pl::thread())) = tile(i32(pl::thread()));",
                           {{"tile", tile, gpu::reads}, {"o", o, gpu::writes}},
                           {.interpret = [&] { o[_] = tile[_]; }});
          if (!waits) gpu::barrier_wait(there);
        },
        {.name = "fetched",
         .out_type = {{128}, f32},
         .scratch_types = {gpu::SMEM({128}, f32), gpu::Barrier()},
         .interpret = InterpretParams{.detect_races = true}});
  };
  CHECK_THAT(verdict_of(k(true), {ShapeDtype{{128}, f32}}), ContainsSubstring("good"));
  CHECK_THAT(verdict_of(k(false), {ShapeDtype{{128}, f32}}),
             ContainsSubstring("counterexample") && ContainsSubstring("reads at") &&
                 ContainsSubstring("inline_test.cpp:386"));
  const Array x = counted({128});
  CHECK(elements<float>(k(true).on(Target::interpreter)(x))[127] == 127);
  CHECK_THAT(refused([&] { k(false).on(Target::interpreter)(x); }), ContainsSubstring("race"));
  CHECK(elements<float>(k(true).on(Target::emulator)(x))[127] == 127);
}

TEST_CASE("texts on drawn shapes, types and layouts say what operations say") {
  std::uint64_t state = 7;
  const auto below = [&](std::uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>((state >> 33) % n);
  };
  const DType types[] = {f32, i32, u8, i64, f64};
  for (int n = 0; n < 12; ++n) {
    const DType t = types[below(5)];
    const std::int64_t rows = 1 + below(70), columns = 1 + below(150), step = 1 + below(3);
    const bool in_shared = below(2) == 1, turned = below(2) == 1;
    const Shape shape{rows, columns};
    const Kernel k = gpu::kernel(
        [=](Ref x, Ref o, Ref room) {
          const Value v = x[_];
          const Value three = gpu::inline_cuda(
              "for (i32 i = 0; i < PL_REGISTERS(v); ++i) y[i] = pl::add(v[i], pl::add(v[i], "
              "v[i]));",
              {{"v", v}}, {{"y", {shape, t}}}, {.interpret = [&] { return v + v + v; }});
          const Ref to = in_shared ? room : o;
          to[_] = three;
          const Ref slice = to.at({_, ds(0, (columns + step - 1) / step, step)});
          const Ref part = turned ? slice.transpose({1, 0}) : slice;
          gpu::inline_cuda(
              R"(for (i32 e = i32(pl::thread()); e < x.extent(0) * x.extent(1); e += 128)
                   x(e / x.extent(1), e % x.extent(1)) += 1;)",
              {{"x", part, gpu::updates}},
              {.interpret = [&] { part[_] = part[_] + Value(1).astype(t); }});
          if (in_shared) o[_] = room[_];
        },
        {.name = "drawn", .out_type = {shape, t}, .scratch_types = {gpu::SMEM(shape, t)}});
    const Array x = make_array<float>(shape, [](std::int64_t i) { return i % 31; }).astype(t);
    const std::vector<double> expected =
        elements<double>(on_cpu(k.on(Target::interpreter)(x)).astype(f64));
    INFO(n << ": " << t.name() << " " << rows << "x" << columns << " by " << step);
    CHECK(elements<double>(on_cpu(k.on(Target::emulator)(x)).astype(f64)) == expected);
  }
}

TEST_CASE("a text in a batch is run for each element of it") {
  const Kernel one = gpu::kernel(
      [](Ref x, Ref o) {
        gpu::inline_cuda("o(i32(pl::thread())) = 3.0f * x(i32(pl::thread()));",
                         {{"x", x, gpu::reads}, {"o", o, gpu::writes}},
                         {.interpret = [&] { o[_] = 3.0f * x[_]; }});
      },
      {.name = "batched", .out_type = {{128}, f32}});
  const Kernel all = vmap(one);
  for_each_target("batch", [&](Target target) {
    const std::vector<float> o = elements<float>(all.on(target)(on(target, counted({3, 128}))));
    CHECK(o[2 * 128 + 5] == 3 * (2 * 128 + 5));
  });
}

// Of rows of several panels and matrices, at once and in parts that begin where values say.
TEST_CASE("a text steps along rows of memory that lies swizzled") {
  for (const int swizzle : {32, 64, 128})
    for_each_target("swizzled", [&](Target target) {
      const Kernel k = gpu::kernel(
          [](Ref x, Ref o, Ref s, Ref b) {
            gpu::copy_gmem_to_smem(x, s, b);
            gpu::barrier_wait(b);
            const Value column = load(x.at({0, 0, 3})).astype(i32) + 61;  // 64
            const Ref part = s.at({1, ds(8, 16), ds(column, 64)});
            gpu::inline_cuda(
                "const i32 t = i32(pl::thread()), i = t / 8 % 16, j = t % 8 * 8;\n"
                "f16 some[8];\n"
                "pl::load_shared<8>(some, part.address(i, j));\n"
                "for (i32 e = 0; e < 8; ++e) part(i, j + e) = pl::to<f16>(pl::to<f32>(some[e]) + "
                "1.0f);",
                {{"part", part, gpu::updates}},
                {.name = "added", .interpret = [&] { part[_] = part[_] + 1.0f; }});
            gpu::inline_cuda(
                "const i32 t = i32(pl::thread());\n"
                "for (i32 i = 0; i < 2; ++i)\n"
                "  for (i32 j = 0; j < 32; ++j) o(i, j, t) = m(i, j, t);",
                {{"m", s, gpu::reads}, {"o", o, gpu::writes}},
                {.name = "moved", .interpret = [&] { o[_] = s[_]; }});
          },
          {.name = "swizzled",
           .out_type = {{2, 32, 128}, f16},
           .scratch_types = {
               gpu::SMEM({2, 32, 128}, f16, {.transforms = {gpu::SwizzleTransform(swizzle)}}),
               gpu::Barrier()}});
      if (target == Target::interpreter)
        CHECK_NOTHROW(k.lower(ShapeDtype{{2, 32, 128}, f16}).compile({.arch = "sm_90a"}));
      const auto element = [](std::int64_t i) { return i % 1024; };
      const Array x = make_array<float>({2, 32, 128}, element).astype(f16);
      const std::vector<float> o = elements<float>(on_cpu(k.on(target)(on(target, x))).astype(f32));
      bool right = true;
      for (std::int64_t i = 0; i < 2 * 32 * 128; ++i) {
        const std::int64_t row = i / 128 % 32, column = i % 128;
        const bool more = i >= 32 * 128 && row >= 8 && row < 24 && column >= 64;
        right = right && o[static_cast<std::size_t>(i)] == static_cast<float>(element(i) + more);
      }
      CHECK(right);
    });
}

TEST_CASE("what lies swizzled is given to CUDA C++ alone, in its own order") {
  const auto k = [](bool ptx) {
    return gpu::kernel(
        [=](Ref x, Ref o, Ref s, Ref b) {
          gpu::copy_gmem_to_smem(x, s, b);
          gpu::barrier_wait(b);
          const Ref given = ptx ? s : gpu::transpose_ref(s, {1, 0});
          gpu::inline_cuda(ptx ? "ld.shared.b16 $o, [$m];" : "o(0, 1) = m(0, 2);",
                           {{"m", given, gpu::reads}, {"o", o, gpu::writes}},
                           {.name = "moved", .ptx = ptx, .interpret = [&] {
                              o[{_, 1}] = s[{_, 2}];
                            }});
        },
        {.name = "swizzled",
         .out_type = {{128, 64}, f16},
         .scratch_types = {gpu::SMEM({128, 64}, f16, {.transforms = {gpu::SwizzleTransform(128)}}),
                           gpu::Barrier()}});
  };
  for (const bool ptx : {true, false})
    CHECK_THAT(
        refused([&] {
          k(ptx).lower(ShapeDtype{{128, 64}, f16}).cuda_source({.arch = "sm_90a"});
        }),
        ContainsSubstring("inline_cuda: 'm' lies swizzled, as products read it, and CUDA C++ "
                          "is given rows of it, as they are or a part of them: give it a "
                          "copy, room[pl::_] = ref[pl::_], or the value ref[pl::_]"));
}

}  // namespace inlined
