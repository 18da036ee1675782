// Small kernels of Mosaic GPU's own tests: operations on values of a warpgroup, loops, layouts.
#include <cmath>

#include "tests/mosaic/mosaic.hpp"
#include "tests/support/worst.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace cases {

constexpr int count = 256;

// f of each of the elements of x, and y.
template <class T, class F>
std::vector<T> mapped(Target target, const Array& x, const Array& y, F f,
                      CompilerParams params = {}) {
  const Kernel k = gpu::kernel(
      [=](Ref a, Ref b, Ref o) {
        const Value left = a[_], right = b[_];
        o[_] = f(left, right);
      },
      {.name = "mapped", .out_type = {{count}, x.dtype()}, .compiler_params = params});
  return elements<T>(k.on(target)(on(target, x), on(target, y)));
}

template <class F, class G>
void check_floats(Target target, F f, G expected, bool approx, float most = 30) {
  const auto at = [=](std::int64_t i) { return most * static_cast<float>(i + 1) / count; };
  const Array x = make_array<float>({count}, at);
  CompilerParams params;
  params.approx_math = approx;
  const std::vector<float> o = mapped<float>(
      target, x, x, [=](const Value& v, const Value&) { return f(v); }, params);
  double worst = 0;
  for (int i = 0; i < count; ++i) {
    const double right = expected(static_cast<double>(at(i)));
    worst = test::worst_of(
        worst, std::abs(o[static_cast<std::size_t>(i)] - right) / std::max(std::abs(right), 1e-30));
  }
  CHECK(worst <= (approx ? 3e-5 : 1e-6));
}

TEST_CASE("operations of one value are those of its elements, approximate or not [M01]") {
  for (const bool approx : {false, true})
    for_each_target(approx ? "approximate" : "exact", [&](Target target) {
      const auto check = [&](auto f, auto expected, float most = 30) {
        check_floats(target, f, expected, approx, most);
      };
      check([](const Value& x) { return -x; }, [](double x) { return -x; });
      check([](const Value& x) { return logistic(x); },
            [](double x) { return 1 / (1 + std::exp(-x)); });
      check([](const Value& x) { return exp(x); }, [](double x) { return std::exp(x); });
      check([](const Value& x) { return square(x); }, [](double x) { return x * x; });
      check([](const Value& x) { return integer_pow(x, 5); },
            [](double x) { return std::pow(x, 5); });
      check([](const Value& x) { return rsqrt(x); }, [](double x) { return 1 / std::sqrt(x); });
      check([](const Value& x) { return tanh(x); }, [](double x) { return std::tanh(x); }, 3);
      check([](const Value& x) { return log(x + 2.0f); }, [](double x) { return std::log(x + 2); });
      check([](const Value& x) { return pl::abs(x); }, [](double x) { return std::abs(x); });
      check([](const Value& x) { return pl::round(x); },
            [](double x) { return std::nearbyint(x); });
      check([](const Value& x) { return gelu(x); },
            [](double x) {
              return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
            });
    });
  for_each_target("bits", [](Target target) {
    const Array x = make_array<std::int32_t>({count}, [](std::int64_t i) { return i; });
    const auto inverted =
        mapped<std::int32_t>(target, x, x, [](const Value& a, const Value&) { return ~a; });
    const auto zeros =
        mapped<std::int32_t>(target, x, x, [](const Value& a, const Value&) { return clz(a); });
    CHECK((inverted[0] == -1 && inverted[255] == -256));
    CHECK((zeros[0] == 32 && zeros[1] == 31 && zeros[255] == 24));
  });
}

TEST_CASE("operations of two values are those of their elements [M02] [M03]") {
  for_each_target("two", [](Target target) {
    const auto a = [](std::int64_t i) { return static_cast<std::int32_t>(i * 0x9e3779b1u); };
    const auto b = [](std::int64_t i) { return static_cast<std::int32_t>(i * 7 % 32); };
    const Array x = make_array<std::int32_t>({count}, a), y = make_array<std::int32_t>({count}, b);
    const auto check = [&](auto f, auto expected) {
      const auto o = mapped<std::int32_t>(target, x, y, f);
      bool right = true;
      for (int i = 0; i < count; ++i)
        right = right && o[static_cast<std::size_t>(i)] ==
                             static_cast<std::int32_t>(expected(std::int64_t{a(i)}, b(i)));
      CHECK(right);
    };
    using V = const Value&;
    check([](V p, V q) { return p + q; }, [](std::int64_t p, int q) { return p + q; });
    check([](V p, V q) { return p - q; }, [](std::int64_t p, int q) { return p - q; });
    check([](V p, V q) { return p * q; }, [](std::int64_t p, int q) { return p * q; });
    check([](V p, V q) { return minimum(p, q); },
          [](std::int64_t p, int q) { return std::min<std::int64_t>(p, q); });
    check([](V p, V q) { return maximum(p, q); },
          [](std::int64_t p, int q) { return std::max<std::int64_t>(p, q); });
    check([](V p, V q) { return p << q; }, [](std::int64_t p, int q) { return p << q; });
    check([](V p, V q) { return p >> q; }, [](std::int64_t p, int q) { return p >> q; });
    check([](V p, V q) { return shift_right_logical(p, q); },
          [](std::int64_t p, int q) { return (p & 0xffffffff) >> q; });
    // Towards zero.
    check([](V p, V q) { return (p % 100) / (q - 40); },
          [](std::int64_t p, int q) { return p % 100 / (q - 40); });
  });
}

TEST_CASE("the sign of a number is -1, 0 or 1 [M04]") {
  for_each_target("sign", [](Target target) {
    const Array x = make_array<std::int32_t>({count}, [](std::int64_t i) { return i - 128; });
    const auto f = [](const Value& v, const Value&) { return pl::sign(v); };
    const auto ints = mapped<std::int32_t>(target, x, x, f);
    const auto floats = mapped<float>(target, x.astype(f32), x.astype(f32), f);
    const auto naturals = mapped<std::uint32_t>(target, x.astype(u32), x.astype(u32), f);
    bool right = true;
    for (std::size_t i = 0; i < count; ++i) {
      const int sign = i < 128 ? -1 : i > 128;
      right = right && ints[i] == sign && floats[i] == static_cast<float>(sign) &&
              naturals[i] == (i == 128 ? 0u : 1u);
    }
    CHECK(right);
  });
}

TEST_CASE("a value is reduced to a number [M05]") {
  for (const Shape& shape : {Shape{128}, Shape{128, 64}})
    for_each_target(to_string(shape), [&](Target target) {
      const Kernel k = gpu::kernel(
          [](Ref x, Ref o) {
            const Value v = x[_];
            o[0] = pl::sum(v);
            o[1] = pl::max(v);
            o[2] = pl::min(v);
          },
          {.name = "scalar", .out_type = {{3}, i32}});
      const Array x =
          make_array<std::int32_t>(shape, [](std::int64_t i) { return i * 37 % 1009 - 300; });
      std::int32_t sum = 0, most = INT32_MIN, least = INT32_MAX;
      for (const std::int32_t e : elements<std::int32_t>(x))
        sum += e, most = test::worst_of(most, e), least = std::min(least, e);
      CHECK(elements<std::int32_t>(k.on(target)(on(target, x))) ==
            std::vector<std::int32_t>{sum, most, least});
    });
}

TEST_CASE("a loop goes on for as long as what it stores says [M06]") {
  for_each_target("while", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o) {
          o[_] = zeros({128}, i32);
          pl::while_loop([&](const Value&) { return pl::sum(o[_]) < 1280; },
                         [&](const Value& i) {
                           o[_] += x[i];
                           return i + 1;
                         },
                         Value(0));
        },
        {.name = "while", .out_type = {{128}, i32}});
    const Array x = make_array<std::int32_t>({128, 128}, [](std::int64_t) { return 1; });
    CHECK(elements<std::int32_t>(k.on(target)(on(target, x))) ==
          std::vector<std::int32_t>(128, 10));
  });
}

TEST_CASE("a condition gives a number and an array [M07]") {
  for_each_target("cond", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o) {
          const Value v = x[_], all = pl::sum(v);
          const auto [n, values] = pl::cond(
              all % 2 == 0, [&] { return pl::carry(all * 2, v); },
              [&] { return pl::carry(all, v + 1); });
          o[_] = values + n;
        },
        {.name = "cond", .out_type = {{count}, i32}});
    const Array x = make_array<std::int32_t>({count}, [](std::int64_t i) { return i; });
    const auto o = elements<std::int32_t>(k.on(target)(on(target, x)));
    CHECK((o[0] == 2 * 32640 && o[255] == 2 * 32640 + 255));
  });
}

TEST_CASE("rows of a layout are cut into several dimensions, and stored to tiles [M08]") {
  for_each_target("reshape", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref room) {
          const Value v = gpu::load(x, {.layout = gpu::Layout::WGMMA});
          room[_] = pl::reshape(v, {2, 3, 64, 8});
          gpu::commit_smem();
          gpu::copy_smem_to_gmem(room, o);
          gpu::wait_smem_to_gmem(0);
        },
        {.name = "reshape",
         .out_type = {{2, 3, 64, 8}, f32},
         .scratch_types = {gpu::SMEM(
             {2, 3, 64, 8}, f32,
             {.transforms = {gpu::TilingTransform({8, 8}), gpu::SwizzleTransform(32)}})}});
    const Array x = counted({384, 8});
    CHECK(elements<float>(k.on(target)(on(target, x))) == elements<float>(x));
  });
}

TEST_CASE("values of a layout are put one behind the other, along rows and columns [M10]") {
  for (const int axis : {0, 1})
    for_each_target(std::to_string(axis), [&](Target target) {
      const Shape wide = axis == 0 ? Shape{128, 64} : Shape{64, 128};
      const Shape all = axis == 0 ? Shape{192, 64} : Shape{64, 192};
      const Kernel k = gpu::kernel(
          [=](Ref x, Ref y, Ref o) {
            const Value a = gpu::load(x, {.layout = gpu::Layout::WGMMA});
            const Value b = gpu::load(y, {.layout = gpu::Layout::WGMMA});
            o[_] = pl::concatenate({a, b}, axis);
          },
          {.name = "concatenate", .out_type = {all, f32}});
      const auto o =
          elements<float>(k.on(target)(on(target, counted({64, 64})), on(target, counted(wide))));
      bool right = true;
      for (int i = 0; i < all[0].value(); ++i)
        for (int j = 0; j < all[1].value(); ++j) {
          const bool first = (axis == 0 ? i : j) < 64;
          const int r = axis == 0 && !first ? i - 64 : i, c = axis == 1 && !first ? j - 64 : j;
          const auto columns = first ? 64 : static_cast<int>(wide[1].value());
          right = right && o[static_cast<std::size_t>(i * all[1].value() + j)] ==
                               static_cast<float>(r * columns + c);
        }
      CHECK(right);
    });
}

TEST_CASE("equal rows, and equal columns, have one sum, bit by bit [M12]") {
  for (const int axis : {0, 1})
    for_each_target(std::to_string(axis), [&](Target target) {
      const Kernel k = gpu::kernel(
          [=](Ref x, Ref o) {
            const Value v = gpu::load(x, {.layout = gpu::Layout::WGMMA});
            o[_] = pl::sum(v, {.axis = axis});
          },
          {.name = "sums", .out_type = {{128}, f32}});
      const Array x = make_array<float>({128, 128}, [=](std::int64_t i) {
        const auto n = static_cast<double>(axis == 1 ? i % 128 : i / 128);
        return std::sin(n) * std::exp(n / 20);
      });
      const auto o = elements<float>(k.on(target)(on(target, x)));
      CHECK(std::all_of(o.begin(), o.end(), [&](float e) { return e == o[0]; }));
    });
}

TEST_CASE("a loop may begin with a value in one layout and go on in another [M20]") {
  for_each_target("layouts", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o) {
          const Value start = gpu::load(x.at(0), {.layout = gpu::Layout::WG_STRIDED(1)});
          o[_] = pl::loop(
              0, 4,
              [&](Index, const Value& carry) {
                const Value rows = gpu::load(x, {.layout = gpu::Layout::WGMMA});
                const Value sums =
                    gpu::layout_cast(pl::sum(rows, {.axis = 1}), gpu::Layout::WGMMA.reduce(1));
                return carry + sums;
              },
              start);
        },
        {.name = "layouts", .out_type = {{128}, f32}});
    const Array x = make_array<float>({128, 128}, [](std::int64_t i) { return i % 128 + i / 128; });
    const auto o = elements<float>(k.on(target)(on(target, x)));
    bool right = true;
    for (int i = 0; i < 128; ++i)
      right = right &&
              o[static_cast<std::size_t>(i)] == static_cast<float>(i + 4 * (127 * 64 + 128 * i));
    CHECK(right);
  });
}

TEST_CASE("a row is normalised, whatever its scale [M21]") {
  for (const float factor : {1e-3f, 1.0f, 100.0f})
    for_each_target(std::to_string(factor), [&](Target target) {
      const Kernel k = gpu::kernel(
          [](Ref x, Ref gain, Ref bias, Ref o) {
            const Value v = x[_];
            const Value mean = pl::sum(v) / static_cast<float>(count);
            const Value centred = v - mean;
            const Value variance = pl::sum(centred * centred) / static_cast<float>(count);
            o[_] = centred * pl::rsqrt(variance + 1e-5f) * gain[_] + bias[_];
          },
          {.name = "layer_norm", .out_type = {{count}, f32}});
      const auto at = [=](std::int64_t i) {
        return factor * static_cast<float>(i * 37 % 101 - 50);
      };
      const Array x = make_array<float>({count}, at);
      const auto o =
          elements<float>(k.on(target)(on(target, x), on(target, Array::full({count}, f32, 2)),
                                       on(target, Array::full({count}, f32, 1))));
      double mean = 0, variance = 0, worst = 0;
      for (int i = 0; i < count; ++i) mean += at(i) / count;
      for (int i = 0; i < count; ++i) variance += (at(i) - mean) * (at(i) - mean) / count;
      for (int i = 0; i < count; ++i) {
        const double right = (at(i) - mean) / std::sqrt(variance + 1e-5) * 2 + 1;
        worst = test::worst_of(worst, std::abs(o[static_cast<std::size_t>(i)] - right));
      }
      CHECK(worst < 1e-4);
    });
}

TEST_CASE("memory of many dimensions is copied, of which most have one element [M32]") {
  const Shape shape{2, 64, 1, 1, 1, 1, 128};
  for_each_target("seven", [&](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref room, Ref done) {
          gpu::copy_gmem_to_smem(x, room, done);
          gpu::barrier_wait(done);
          o[_] = room[_];
        },
        {.name = "seven",
         .out_type = {shape, f32},
         .scratch_types = {
             gpu::SMEM(shape, f32, {.transforms = {gpu::TilingTransform({2, 1, 1, 1, 1, 1, 32})}}),
             gpu::Barrier()}});
    const Array x = counted(shape);
    CHECK(elements<float>(k.on(target)(on(target, x))) == elements<float>(x));
  });
}

TEST_CASE("a part of memory that is seen turned is filled by copies [M33]") {
  for_each_target("turned", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref room, Ref done) {
          const Ref turned = gpu::transpose_ref(room, {1, 0, 2, 3});
          for (int i = 0; i < 2; ++i) gpu::copy_gmem_to_smem(x, turned.at({0, i}), done);
          gpu::barrier_wait(done);
          for (int i = 0; i < 2; ++i) o[{_, i}] = room.at({i, 0})[_];
        },
        {.name = "turned",
         .out_type = {{64, 2, 64}, f32},
         .scratch_types = {
             gpu::SMEM({2, 1, 64, 64}, f32,
                       {.transforms = {gpu::TilingTransform({8, 32}), gpu::SwizzleTransform(128)}}),
             gpu::Barrier({.num_arrivals = 2})}});
    const auto o = elements<float>(k.on(target)(on(target, counted({64, 64}))));
    bool right = true;
    for (std::size_t i = 0; i < o.size(); ++i)
      right = right && o[i] == static_cast<float>(i / 128 * 64 + i % 64);
    CHECK(right);
  });
}

TEST_CASE("one block goes on when all of its cluster have arrived [M48]") {
  for_each_target("leader", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref o, Ref all) {
          gpu::barrier_arrive(all);
          gpu::barrier_wait(all);
          pl::when(axis_index("c") == 0, [&] { o[0] = 42; });
        },
        {.name = "leader",
         .out_type = {{1}, i32},
         .cluster = {2},
         .cluster_names = {"c"},
         .scratch_types = {gpu::ClusterBarrier({{"c"}})}});
    CHECK(elements<std::int32_t>(k.on(target)()) == std::vector<std::int32_t>{42});
  });
}

TEST_CASE("warpgroups add to one memory, each element at once [M51]") {
  for (const bool wgmma : {false, true})
    for_each_target(wgmma ? "WGMMA" : "inferred", [&](Target target) {
      const Kernel k = gpu::kernel(
          [=](Ref x, Ref o, Ref room, Ref both) {
            const Value wg = axis_index("wg");
            pl::when(wg == 0, [&] { room[_] = zeros({128, 64}, i32); });
            const auto meet = [&](int i) {
              gpu::barrier_arrive(both.at(i));
              gpu::barrier_wait(both.at(i));
            };
            meet(0);
            const Value v =
                wgmma ? gpu::load(x.at(wg), {.layout = gpu::Layout::WGMMA}) : Value(x[wg]);
            pl::atomic_add(room, v);
            meet(1);
            pl::when(wg == 0, [&] { o[_] = room[_]; });
          },
          {.name = "adds",
           .out_type = {{128, 64}, i32},
           .num_threads = 2,
           .thread_name = "wg",
           .scratch_types = {gpu::SMEM({128, 64}, i32),
                             gpu::Barrier({.num_arrivals = 2, .num_barriers = 2})}});
      const Array x = make_array<std::int32_t>({2, 128, 64}, [](std::int64_t i) { return i; });
      const auto o = elements<std::int32_t>(k.on(target)(on(target, x)));
      bool right = true;
      for (int i = 0; i < 128 * 64; ++i)
        right = right && o[static_cast<std::size_t>(i)] == 2 * i + 128 * 64;
      CHECK(right);
    });
}

TEST_CASE("sums of 16 bits are carried through a loop [M67]") {
  for_each_target("carried", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o) {
          const Value v = x[_];
          o[_] = pl::loop(
              0, 4, [&](Index, const Value& acc) { return v + acc; },
              pl::full({64, 64}, 1.0f, f16));
        },
        {.name = "carried", .out_type = {{64, 64}, f16}});
    const Array o = k.on(target)(on(target, Array::full({64, 64}, f16, 1)));
    CHECK(elements<float>(o.to(Device::cpu()).astype(f32)) == std::vector<float>(64 * 64, 5));
  });
}

TEST_CASE("tiled memory is seen as one of fewer dimensions, whatever tiles it has [M69]") {
  for_each_target("collapsed", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref room) {
          room[_] = x[_];
          o[_] = room.reshape({64 * 64})[_];
        },
        {.name = "collapsed",
         .out_type = {{64 * 64}, f32},
         .scratch_types = {gpu::SMEM(
             {64, 64}, f32,
             {.transforms = {gpu::TilingTransform({8, 32}), gpu::SwizzleTransform(128)}})}});
    const Array x = counted({64, 64});
    CHECK(elements<float>(k.on(target)(on(target, x))) == elements<float>(x));
  });
}

}  // namespace cases
