// pl::kernel and plgpu::kernel: whole arrays over a mesh, the same on interpreter and emulator.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

template <class T>
std::vector<T> elements(const Array& a) {
  const Array on_host = on_cpu(a);
  const auto values = on_host.values<const T>();
  return {values.begin(), values.end()};
}

Array counted(std::int64_t n) {
  return make_array<float>({n}, [](std::int64_t i) { return i; });
}

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const CompileError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a kernel over a mesh gets whole arrays and says by axis names where it is [C94][C107]") {
  for_each_target("places", [](Target target) {
    const Kernel k = gpu::kernel(
                         [](Ref o) {
                           const Value place = axis_index({"x", "y"});
                           o.at({place, axis_index("wg")})[_] =
                               broadcast_to(axis_index({"y", "x"}) * 2 + axis_index("wg"), {128});
                         },
                         {.name = "places",
                          .out_type = {{4, 2, 128}, i32},
                          .grid = {2, 2},
                          .grid_names = {"x", "y"},
                          .num_threads = 2,
                          .thread_name = "wg"})
                         .on(target);
    const std::vector<std::int32_t> o = elements<std::int32_t>(k());
    const int expected[] = {0, 1, 4, 5, 2, 3, 6, 7};
    for (std::size_t i = 0; i < o.size(); ++i) CHECK(o[i] == expected[i / 128]);
  });
}

TEST_CASE("a kernel over a mesh is mapped over batches along any axis, and twice [C98] [C99] [M95]") {
  for_each_target("mapped", [](Target target) {
    const Kernel add = gpu::kernel(
        [](Ref x, Ref y, Ref o, Scratch s) {
          const auto part = ds(axis_index("half") * 4, 4);
          s["tmp"][_] = x[part] + y[part];
          o[part] = s["tmp"][_];
        },
        {.name = "mapped",
         .out_type = {{8}, f32},
         .grid = {2},
         .grid_names = {"half"},
         .scratch_types = {{"tmp", gpu::SMEM({4}, f32)}}});
    const Array x = on(target, counted(24).reshape({3, 8})), y = on(target, counted(8)),
                across = on(target, counted(24).reshape({8, 3}));
    const auto check = [](const Array& sum, auto expected) {
      const std::vector<float> v = elements<float>(sum);
      for (std::size_t i = 0; i < v.size(); ++i)
        CHECK(v[i] == static_cast<float>(expected(i / 8, i % 8)));
    };
    check(vmap(add).on(target)(x, x), [](auto b, auto i) { return 2 * (8 * b + i); });
    check(vmap(add, {0, 1}).on(target)(x, across),
          [](auto b, auto i) { return 8 * b + i + 3 * i + b; });
    check(vmap(add, {unbatched, 0}).on(target)(y, x), [](auto b, auto i) { return 8 * b + 2 * i; });
    const Array twice =
        vmap(vmap(add), {0, unbatched}).on(target)(on(target, counted(48).reshape({2, 3, 8})), x);
    CHECK(twice.shape() == Shape{2, 3, 8});
    check(twice, [](auto b, auto i) { return 8 * b + i + 8 * (b % 3) + i; });
  });
}

TEST_CASE("of a batch each element of an ArrayRef is changed, one for all of it is only read") {
  for_each_target("changed", [](Target target) {
    const Array x = on(target, counted(12).reshape({3, 4}));
    const Array y = on(target, counted(4));
    const auto body = [](Ref a, Ref b) { a[_] = a[_] + b[_]; };
    vmap(gpu::kernel(body, {.name = "changed"}), {0, unbatched}).on(target)(new_ref(x), y);
    const std::vector<float> v = elements<float>(x);
    for (std::size_t i = 0; i < v.size(); ++i) CHECK(v[i] == static_cast<float>(i + i % 4));
    const ArrayRef weights = new_ref(y), passed = new_ref(on(target, counted(4)));
    const Kernel k = gpu::kernel([=](Ref a, Ref b, Ref o) { o[_] = a[_] * weights[_] + b[_]; },
                                 {.name = "captures", .out_type = {{4}, f32}});
    const std::vector<float> o =
        elements<float>(vmap(vmap(k, {0, unbatched}), {0, unbatched})
                            .on(target)(on(target, counted(24).reshape({2, 3, 4})), passed));
    for (std::size_t i = 0; i < o.size(); ++i)
      CHECK(o[i] == static_cast<float>(i * (i % 4) + i % 4));
  });
  const ArrayRef kept = new_ref(counted(4));
  const auto refused = [](const Kernel& k, auto... arguments) {
    CHECK_THAT(error_of([&] { k.on(Target::interpreter)(arguments...); }),
               ContainsSubstring("is one Ref for the whole batch, which each element of it would "
                                 "write; give each its own: pass pl::new_ref(array)"));
  };
  const Array x = counted(12).reshape({3, 4});
  refused(vmap(gpu::kernel([=](Ref a) { kept[_] = a[_]; }, {.name = "captures"})), x);
  refused(vmap(gpu::kernel([](Ref a, Ref b) { b[_] = a[_]; }, {.name = "passes"}), {0, unbatched}),
          x, kept);
}

TEST_CASE("both forms of pl::kernel make the same kernel [C107]") {
  for_each_target("forms", [](Target target) {
    const auto body = [](Ref x, Ref o, Ref next) {
      o[_] = x[_];
      next[_] = x[_] + 1.f;
    };
    const KernelOptions options{.name = "forms",
                                .out_type = {{{40}, f32}, {{40}, f32}},
                                .mesh = gpu::Mesh{},
                                .scratch_types = {},
                                .interpret = InterpretParams{.random_seed = 3},
                                .compiler_params = {.num_warps = 4}};
    const Array x = on(target, counted(40));
    for (const Kernel& k : {pl::kernel(body, options), pl::kernel(options)(body)}) {
      const auto [o, next] = k.on(target)(x).unpack<2>();
      CHECK(elements<float>(o)[17] == 17);
      CHECK(elements<float>(next)[17] == 18);
    }
  });
}

TEST_CASE("options of a kernel over a mesh are a function of the types, results a struct") {
  for_each_target("halves", [](Target target) {
    struct Halves {
      Array low, high;
    };
    const Kernel k = gpu::kernel(
                         [](Ref x, Refs outputs) {
                           const Value half = axis_index("half");
                           const Dim n = outputs[0].shape()[0];
                           for (int i = 0; i < 2; ++i)
                             pl::when(half == i, [&] { outputs[i][_] = x[ds(i * n.value(), n)]; });
                         },
                         [](ShapeDtype x) {
                           const ShapeDtype part{{x.shape[0] / 2}, x.dtype};
                           return gpu::KernelOptions{.name = "halves",
                                                     .out_type = {{"low", part}, {"high", part}},
                                                     .grid = {2},
                                                     .grid_names = {"half"}};
                         })
                         .on(target);
    const Outputs outputs = k(on(target, counted(10)));
    const auto [low, high] = outputs.as<Halves>();
    CHECK(elements<float>(low)[4] == 4);
    CHECK(elements<float>(high)[0] == 5);
    CHECK(elements<float>(outputs["high"])[4] == 9);
    CHECK_THROWS_WITH(outputs["middle"], ContainsSubstring("there are: 'low', 'high'"));
  });
}

TEST_CASE("an array that is passed as a Ref is changed in place [C105]") {
  for_each_target("in_place", [](Target target) {
    const Kernel k = pl::kernel(
                         [](Ref x, Ref total, Ref o) {
                           total[_] += x[_];
                           o[_] = total[_] * 2.f;
                         },
                         {.name = "in_place", .out_type = {{16}, f32}, .mesh = gpu::Mesh{}})
                         .on(target);
    const Array x = on(target, counted(16)), total = on(target, counted(16));
    const ArrayRef ref = new_ref(total);
    for (int call = 1; call <= 2; ++call) {
      const Array o = k(x, ref);
      CHECK(elements<float>(total)[5] == 5.f * static_cast<float>(call + 1));
      CHECK(elements<float>(o)[5] == 10.f * static_cast<float>(call + 1));
    }
  });
}

TEST_CASE("a view of a Ref may be passed, and its array sees the writes [C105]") {
  for_each_target("views", [](Target target) {
    const Kernel k =
        pl::kernel([](Ref x) { x[_] = x[_] * 10.f; }, {.name = "views", .mesh = gpu::Mesh{}})
            .on(target);
    const Array x = on(target, counted(24));
    const ArrayRef ref = new_ref(x);
    k(ref.reshape({4, -1}).at({ds(1, 2), ds(0, 3)}));
    k(ref.at(ds(20, 4)));
    const std::vector<float> now = elements<float>(x);
    for (std::size_t i = 0; i < now.size(); ++i) {
      const bool changed = (i / 6 >= 1 && i / 6 <= 2 && i % 6 < 3) || i >= 20;
      CHECK(now[i] == static_cast<float>(i) * (changed ? 10.f : 1.f));
    }
  });
}

TEST_CASE(
    "a body reads and writes the Refs that it captured, and its scalars are constants [C105]") {
  for_each_target("captured", [](Target target) {
    const Array total = on(target, counted(16)), log = on(target, Array::zeros({2, 4}, i32));
    const ArrayRef totals = new_ref(total), logs = new_ref(log);
    const float scale = 3;
    const Kernel k = pl::kernel(
                         [=](Ref x, Ref o) {
                           totals[_] = totals[_] + x[_] * scale;
                           pl::Ref row = logs;
                           row[1] = full({4}, 7, i32);
                           o[_] = x[_] - 1.f;
                         },
                         {.name = "captured", .out_type = {{16}, f32}, .mesh = gpu::Mesh{}})
                         .on(target);
    const Array x = on(target, counted(16));
    const Array o = k(x);
    k(x);
    CHECK(elements<float>(o)[3] == 2);
    CHECK(elements<float>(total)[3] == 3 + 2 * 3 * scale);
    CHECK(elements<std::int32_t>(log) == std::vector<std::int32_t>{0, 0, 0, 0, 7, 7, 7, 7});
  });
}

TEST_CASE("scratch and structs of Refs reach a body over a mesh by name and in order [C98] [M95]") {
  struct In {
    Ref a, b;
  };
  for_each_target("structs", [](Target target) {
    const Kernel k = gpu::kernel(
                         [](In in, Ref o, Scratch s) {
                           const Ref sum = s["sum"];
                           sum[_] = in.a[_] + in.b[_];
                           o[_] = sum[_] * 2.f;
                         },
                         {.name = "structs",
                          .out_type = {{2, 128}, f32},
                          .scratch_types = {{"sum", gpu::SMEM({2, 128}, f32)}}})
                         .on(target);
    const Array x = make_array<float>({2, 128}, [](std::int64_t i) { return i; });
    const Array there = on(target, x);
    CHECK(elements<float>(k(there, there))[200] == 800);
  });
}

TEST_CASE("axis indices of a grid of any rank do not see the cluster [C96] [C97] [M52]") {
  for_each_target("ranks", [](Target target) {
    const Kernel k = gpu::kernel(
                         [](Ref o, Ref rank) {
                           const Value place = axis_index({"a", "b", "c", "d", "e"});
                           o.at({place, axis_index("z")})[_] = broadcast_to(place, {1});
                           rank.at({place, axis_index("z")})[_] =
                               broadcast_to(axis_index("z") + 10 * program_id(1), {1});
                         },
                         {.name = "ranks",
                          .out_type = {{{24, 2, 1}, i32}, {{24, 2, 1}, i32}},
                          .grid = {2, 3, 1, 2, 2},
                          .grid_names = {"a", "b", "c", "d", "e"},
                          .cluster = {2},
                          .cluster_names = {"z"}})
                         .on(target);
    const auto [o, rank] = k().unpack<2>();
    const auto places = elements<std::int32_t>(o), ranks = elements<std::int32_t>(rank);
    for (int i = 0; i < 48; ++i) {
      CHECK(places[static_cast<std::size_t>(i)] == i / 2);
      CHECK(ranks[static_cast<std::size_t>(i)] == i % 2 + 10 * (i / 2 / 4 % 3));
    }
  });
}

TEST_CASE("outputs of shape () are written by a kernel over a mesh [C100]") {
  for_each_target("one", [](Target target) {
    const Kernel k = pl::kernel(
                         [](Ref x, Ref sum, Ref answer) {
                           sum[_] = pl::sum(x[_]);
                           const Value old = pl::swap((answer[_] = 41, answer), 42);
                           answer[_] = old + 1;
                         },
                         {.name = "one",
                          .out_type = {{{}, f32}, {{}, i32}},
                          .mesh = gpu::Mesh{.grid = {1}, .grid_names = {"i"}}})
                         .on(target);
    const auto [sum, answer] = k(on(target, counted(100))).unpack<2>();
    CHECK(elements<float>(sum)[0] == 4950);
    CHECK(elements<std::int32_t>(answer)[0] == 42);
  });
}

TEST_CASE("core_map runs its body at once on the Refs that it captured [C109]") {
  for_each_target("core_map", [](Target target) {
    const Array x = on(target, make_array<std::int32_t>({256}, [](std::int64_t i) { return i; }));
    const Array zero = on(target, Array::zeros({256}, i32));
    const Target before = default_target();
    set_default_target(target);
    const Outputs state = pl::run_state([&](ArrayRef x, ArrayRef y) {
      pl::core_map(gpu::Mesh{.grid = {2}, .grid_names = {"i"}})([=] {
        const Value first = axis_index("i") * 128;
        y[ds(first, 128)] = x[ds(first, 128)] + 1;
      });
    })({x, zero});
    set_default_target(before);
    const auto y = elements<std::int32_t>(state.all()[1]);
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == static_cast<std::int32_t>(i) + 1);
    CHECK(elements<std::int32_t>(zero)[5] == 0);
  });
}

TEST_CASE("bodies of one launch run on threads of their own over the same arrays [C106]") {
  for_each_target("parallel", [](Target target) {
    const gpu::Mesh one{.grid = {2}, .grid_names = {"i"}};
    gpu::Mesh two = one;
    two.num_threads = 2;
    two.thread_name = "wg";
    const Array log = on(target, Array::zeros({2, 2}, i32));
    const ArrayRef logs = new_ref(log);
    const Kernel k =
        pl::kernel({[](Ref x, Ref o, Ref, Ref) {
                      const Value first = axis_index("i") * 8;
                      o[ds(first, 8)] = x[ds(first, 8)] * 3.f;
                    },
                    [=](Ref x, Ref o, Ref both, Ref kept) {
                      const Value i = axis_index("i"), wg = axis_index("wg");
                      kept[_] = x[ds(i * 8 + wg * 4, 4)] * 4.f;
                      both[{wg, _}] = kept[_];
                      o[ds(i * 8 + wg * 4 + 16, 4)] = both[{wg, _}];
                      logs[{i, wg}] = axis_size("wg") * 10 + wg;
                    }},
                   {.name = "parallel",
                    .out_type = {{32}, f32},
                    .mesh = {one, two},
                    .scratch_types = {gpu::SMEM({2, 4}, f32), gpu::REGS({4}, f32).on(1)}})
            .on(target);
    const Array o = k(on(target, counted(16)));
    const std::vector<float> values = elements<float>(o);
    for (std::size_t i = 0; i < 32; ++i)
      CHECK(values[i] == static_cast<float>(i < 16 ? i * 3 : (i - 16) * 4));
    CHECK(elements<std::int32_t>(log) == std::vector<std::int32_t>{20, 21, 20, 21});
  });
}

// ---- what is refused

namespace {

const auto nothing = [] {};
const auto copy = [](Ref x, Ref o) { o[_] = x[_]; };

std::string mesh_error(const gpu::Mesh& mesh) {
  return error_of([&] { (void)pl::kernel(nothing, {.mesh = mesh}); });
}

}  // namespace

TEST_CASE("a mesh that cannot be is refused where the kernel is made [E26]") {
  const gpu::Mesh named_twice{.grid = {1}, .grid_names = {"i", "j"}};
  const int line = __LINE__ + 1;
  const std::string where = error_of([&] { (void)pl::kernel(nothing, {.mesh = named_twice}); });
  CHECK_THAT(where, ContainsSubstring("mesh_kernel_test.cpp:" + std::to_string(line)));
  CHECK_THAT(where, ContainsSubstring("grid_names must have the same length as grid, got (i, j)"));
  CHECK_THAT(mesh_error({.cluster = {1, 1, 1, 1}}),
             ContainsSubstring("cluster= must be at most 3D, got (1, 1, 1, 1)"));
  CHECK_THAT(mesh_error({.cluster = {2}, .cluster_names = {"a", "b"}}),
             ContainsSubstring("cluster_names must have the same length as cluster, got (a, b)"));
  CHECK_THAT(mesh_error({.num_threads = 2}),
             ContainsSubstring("num_threads and thread_name must be either both set or both None"));
  CHECK_THAT(mesh_error({.thread_name = "wg"}), ContainsSubstring("either both set or both None"));
  CHECK_THAT(mesh_error({.num_threads = 17, .thread_name = "wg"}),
             ContainsSubstring("Requested too many CUDA threads per block."));
  CHECK_THAT(mesh_error({.grid = {2}, .grid_names = {"i"}, .num_threads = 2, .thread_name = "i"}),
             ContainsSubstring("two axes are named 'i'"));
}

TEST_CASE("a kernel over a mesh is not made persistent") {
  CHECK_THAT(error_of([] {
               (void)gpu::kernel(copy, {.out_type = {{8}, f32},
                                        .compiler_params = {.persistent = true}})(counted(8));
             }),
             ContainsSubstring(
                 "compiler_params.persistent is for the programs of a grid of blocks; a kernel "
                 "over a mesh goes through its work by a loop of its own"));
}

TEST_CASE("bodies and meshes that do not belong together are refused [E26]") {
  const gpu::Mesh mesh;
  const auto refused = [](const std::string& message, const std::string& sentence) {
    CHECK_THAT(message, ContainsSubstring(sentence));
  };
  refused(error_of([&] {
            (void)pl::kernel({.mesh = {mesh, mesh}});
          }),
          "mesh cannot be a sequence when using pl::kernel as a factory");
  refused(error_of([&] {
            (void)pl::kernel({nothing, nothing}, {.mesh = mesh});
          }),
          "mesh must be a sequence when body is a sequence of callables");
  refused(error_of([&] {
            (void)pl::kernel({nothing, nothing}, {.mesh = {mesh, mesh, mesh}});
          }),
          "body and mesh sequences must have the same length");
  refused(error_of([&] {
            (void)pl::kernel(std::initializer_list<Body>{},
                             {.mesh = Meshes(std::vector<gpu::Mesh>())});
          }),
          "at least one mesh/function pair is required");
  refused(error_of([&] {
            (void)pl::kernel(nothing, {.mesh = {mesh, mesh}});
          }),
          "mesh cannot be a sequence when body is a single callable");
  refused(error_of([&] { (void)pl::kernel(nothing, KernelOptions{}); }), "a mesh is needed");
  const gpu::Mesh larger{.grid = {2}};
  refused(error_of([&] {
            (void)pl::kernel({nothing, nothing}, {.mesh = {mesh, larger}});
          }),
          "their meshes have one grid, given () and (2)");
  const gpu::Mesh two{.num_threads = 2, .thread_name = "wg"},
      three{.num_threads = 3, .thread_name = "wg"};
  refused(error_of([&] {
            (void)pl::kernel({nothing, nothing}, {.mesh = {two, three}});
          }),
          "axis 'wg' has the sizes 2 and 3");
}

TEST_CASE("a kernel over a mesh is given options once, behind its body or in place of it") {
  const auto refused = [](const std::string& message, const std::string& sentence) {
    CHECK_THAT(message, ContainsSubstring(sentence) && ContainsSubstring("mesh_kernel_test.cpp:"));
  };
  constexpr const char* missing = "kernel: options stand beside a body: pl::kernel(body, {";
  constexpr const char* twice = "kernel: options wait for a body, and no others stand beside them";
  refused(error_of([&] { (void)pl::kernel(copy); }), missing);
  refused(error_of([&] { (void)gpu::kernel(copy); }), missing);
  const KernelOptions options{.mesh = gpu::Mesh{}};
  refused(error_of([&] { (void)pl::kernel(options, {.name = "k"}); }), twice);
  refused(error_of([&] { (void)pl::kernel([](ShapeDtype) { return KernelOptions{}; }, options); }),
          twice);
  refused(error_of([&] { (void)gpu::kernel({.grid = {4}}, {.name = "k"}); }), twice);
  const auto types = [](ShapeDtype) { return KernelOptions{}; };
  refused(error_of([&] { (void)pl::kernel(options, types); }), twice);
  refused(error_of([&] {
            pl::kernel([](Ref) { pl::core_map(gpu::WarpMesh{"w"}, {.name = "k"})([] {}); }, options)
                .on(Target::interpreter)(new_ref(counted(8)));
          }),
          "core_map: a WarpMesh is that of a part of a body, which takes no options");
  // Each form of what is right; an options function of one generic parameter takes the type.
  const auto sized = [](auto t) { return KernelOptions{.out_type = t, .mesh = gpu::Mesh{}}; };
  const auto one = [](const ShapeDtype& t) {
    return KernelOptions{.out_type = t, .mesh = gpu::Mesh{}};
  };
  const Array x = counted(8);
  const KernelOptions given{.out_type = {{8}, f32}, .mesh = gpu::Mesh{}};
  for (const Kernel& k :
       {pl::kernel(copy, given), pl::kernel(Body(copy), given), pl::kernel(given)(copy),
        pl::kernel(given, here())(copy), pl::kernel(copy, sized), pl::kernel(one)(copy),
        pl::kernel(std::initializer_list<Body>{copy},
                   {.out_type = {{8}, f32}, .mesh = {gpu::Mesh{}}})})
    CHECK(elements<float>(k.on(Target::interpreter)(x)) == elements<float>(x));
}

TEST_CASE("both spellings of one option, and names of axes that there are not, are refused") {
  const Array x = counted(8);
  const auto refused = [](const std::string& message, const std::string& sentence) {
    CHECK_THAT(message, ContainsSubstring(sentence));
  };
  refused(error_of([&] {
            gpu::kernel(copy, {.out_type = {{8}, f32}, .out_shape = {{8}, f32}})
                .on(Target::interpreter)(x);
          }),
          "cannot specify both out_shape and out_type; use out_type");
  refused(error_of([&] {
            gpu::kernel(copy, {.out_type = {{8}, f32},
                               .scratch_types = {gpu::SMEM({1}, f32)},
                               .scratch_shapes = {gpu::SMEM({1}, f32)}})
                .on(Target::interpreter)(x);
          }),
          "cannot specify both scratch_shapes and scratch_types; use scratch_types");
  refused(error_of([&] { (void)gpu::kernel(copy, {.name = "a", .kernel_name = "b"}); }),
          "cannot specify both kernel_name and name; use name");
  const int line = __LINE__ + 2;
  const std::string unknown = error_of([&] {
    gpu::kernel([](Ref o) { o[_] = broadcast_to(axis_index("k"), {8}); }, {.out_type = {{8}, i32},
                                                                           .grid = {1},
                                                                           .grid_names = {"i"},
                                                                           .num_threads = 2,
                                                                           .thread_name = "wg"})
        .on(Target::interpreter)();
  });
  refused(unknown, "no axis is named 'k'; there are: 'i', 'wg'");
  refused(unknown, "mesh_kernel_test.cpp:" + std::to_string(line));
}

TEST_CASE("Refs that share memory, and writes of what is only passed, are refused [E19]") {
  const Array x = counted(8);
  const ArrayRef ref = new_ref(x);
  const auto k = [](auto body, int outputs = 0) {
    return pl::kernel(body, {.out_type = std::vector<ShapeDtype>(static_cast<std::size_t>(outputs),
                                                                 ShapeDtype{{8}, f32}),
                             .mesh = gpu::Mesh{}})
        .on(Target::interpreter);
  };
  const auto refused = [](const std::string& message, const std::string& sentence) {
    CHECK_THAT(message, ContainsSubstring(sentence));
  };
  refused(error_of([&] { k([](Ref a, Ref b) { a[_] = b[_]; })(ref, ref); }),
          "cannot pass the same ref into a kernel multiple times: args[0] and args[1]");
  refused(error_of([&] { k([](Ref a, Ref b) { a[_] = b[_]; })(ref, x); }),
          "args[0] and args[1] share memory, of which one is an ArrayRef");
  refused(
      error_of([&] { k([=](Ref a) { a[_] = ref[_]; })(ref); }),
      "a closed-over ref that aliases a passed-in ref is not supported: args[0] and captured[0]");
  const ArrayRef half = ref.at(ds(0, 4));
  refused(error_of([&] { k([=] { half[_] = ref[ds(4, 4)]; })(); }),
          "captured[0] and captured[1] are closed-over refs that share memory");
  const int line = __LINE__ + 1;
  const std::string write = error_of([&] { k([](Ref a) { a[_] = full({8}, 1, f32); })(x); });
  refused(write,
          "store: args[0] is an array, which a kernel over a mesh only reads; to change it "
          "pass pl::new_ref(array)");
  refused(write, "mesh_kernel_test.cpp:" + std::to_string(line));
  refused(error_of([&] {
            pallas_call(copy, {.out_type = {{8}, f32}}).on(Target::interpreter)(ref);
          }),
          "args[0] is an ArrayRef, which pl::kernel takes");
  refused(error_of([&] {
            pallas_call([=](Ref o) { o[_] = ref[_]; }, {.out_type = {{8}, f32}})
                .on(Target::interpreter)();
          }),
          "captures an ArrayRef, which only the bodies of pl::kernel and pl::core_map can");
  refused(error_of([&] { (void)ref.at(ds(4, 5)); }),
          "slice of start 4, size 5, stride 1 is out of bounds for dimension 0 of f32[8]");
  const std::vector<float> constant(8);
  refused(error_of([&] { (void)new_ref(Array::view(std::span(constant))); }), "is read-only");
}

TEST_CASE("a core_map that writes no Ref is refused [E20]") {
  const ArrayRef x = new_ref(counted(8));
  CHECK_THAT(error_of([&] { pl::core_map(gpu::Mesh{})([=] { (void)Value(x[_]); }); }),
             ContainsSubstring("the body writes no Ref"));
  CHECK_THAT(error_of([&] {
               pl::core_map(gpu::Mesh{}, {.scratch_types = {gpu::SMEM({8}, f32)}})(
                   [](Ref s) { s[_] = full({8}, 1, f32); });
             }),
             ContainsSubstring("the body writes no Ref"));
}

TEST_CASE("scratch of several meshes is that of its mesh, which REGS must say [E19]") {
  const gpu::Mesh mesh;
  const auto call = [&](auto f, auto g, ScratchTypes scratch) {
    return error_of([&] {
      pl::kernel({f, g}, {.mesh = {mesh, mesh}, .scratch_types = scratch})
          .on(Target::interpreter)();
    });
  };
  const auto one = [](Ref s) { s[_] = full({8}, 1, f32); };
  const auto other = [](Ref) {};
  CHECK_THAT(
      call(one, other, {gpu::REGS({8}, f32)}),
      ContainsSubstring("scratch[0] is in registers, which only the threads of one mesh have"));
  CHECK_THAT(call(one, other, {gpu::REGS({8}, f32).on(2)}),
             ContainsSubstring("scratch[0] is said to be of mesh 2, of 2"));
  CHECK_THAT(call(one, other, {gpu::SMEM({8}, f32).on(1)}),
             ContainsSubstring("store: scratch[0] is of mesh 1, and the body of mesh 0 cannot "
                               "access it"));
  CHECK(call(one, other, {gpu::SMEM({8}, f32)}).empty());
}

TEST_CASE("programs over a mesh that write one element, or read what was not written, are told") {
  for (const Target target : {Target::interpreter, Target::emulator}) {
    CAPTURE(to_string(target));
    const auto call = [&](auto body) {
      return error_of([&] {
        gpu::kernel(body, {.out_type = {{8}, f32}, .grid = {2}, .grid_names = {"i"}}).on(target)();
      });
    };
    CHECK_THAT(call([](Ref o) { o[_] = full({8}, 1, f32); }), ContainsSubstring("outputs[0]"));
    CHECK_THAT(call([](Ref o) { o[ds(axis_index("i") * 4, 4)] = o[ds(0, 4)] + 1.f; }),
               ContainsSubstring("outputs[0]"));
  }
}

TEST_CASE("plgpu::Mesh says what the protocol of meshes asks") {
  STATIC_REQUIRE(pl::Mesh<gpu::Mesh>);
  const gpu::Mesh mesh{.grid = {2, 3},
                       .grid_names = {"x", "y"},
                       .cluster = {2},
                       .cluster_names = {"c"},
                       .num_threads = 4,
                       .thread_name = "wg"};
  const std::vector<MeshAxis> shape = mesh.shape();
  REQUIRE(shape.size() == 4);
  CHECK(shape[1].name == "y");
  CHECK(shape[1].size.value() == 3);
  CHECK(shape[2].name == "c");
  CHECK(shape[3].size.value() == 4);
  CHECK(mesh.default_memory_space().space == Space::gmem);
  CHECK(mesh.supported_memory_spaces().size() == 3);
  mesh.check_is_compatible_with(mesh);
}
