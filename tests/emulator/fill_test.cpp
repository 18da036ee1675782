// What elements of a block hold that lie beyond the array (BlockSpecOptions::fill): the same on
// every target.
#include <limits>

#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

const auto copy = [](Ref x, Ref o) { o[_] = x[_]; };
const auto rows = [](Index i) { return Indices{i, 0}; };
const auto along = [](Index i) { return i; };

template <class T>
std::vector<T> values_of(const Array& a) {
  const Array here = on_cpu(a);
  return {here.values<T>().begin(), here.values<T>().end()};
}

Array counted(std::int64_t n) {
  return make_array<float>({n}, [](std::int64_t i) { return i + 1; });
}

}  // namespace

TEST_CASE("a block that reaches over the end of its array is filled, wherever it lives [C10]") {
  for (const MemorySpace space : {MemorySpace{}, gpu::GMEM, gpu::SMEM})
    for_each_target("fill", [&](Target target) {
      CAPTURE(to_string(space.space));
      const BlockSpec spec{{8}, {}, {.memory_space = space, .fill = 7}};
      const Kernel k =
          pallas_call(copy, {.name = "fill", .out_type = {{8}, f32}, .in_specs = {spec}})
              .on(target);
      CHECK(values_of<float>(k(on(target, counted(3)))) ==
            std::vector<float>{1, 2, 3, 7, 7, 7, 7, 7});
    });
}

TEST_CASE("the padding of an Element is filled on both sides [C15]") {
  for_each_target("padding", [](Target target) {
    const BlockSpec window{{Element(6, {1, 2})}, {}, {.fill = -1}};
    const Kernel k =
        pallas_call(copy, {.name = "padding", .out_type = {{6}, f32}, .in_specs = {window}})
            .on(target);
    CHECK(values_of<float>(k(on(target, counted(3)))) == std::vector<float>{-1, 1, 2, 3, -1, -1});
  });
}

TEST_CASE("a stencil over padded windows, whose fill is 0 or another number") {
  for (const double fill : {0.0, 100.0})
    for_each_target("stencil", [&](Target target) {
      CAPTURE(fill);
      constexpr std::int64_t n = 64, side = 2;
      const Kernel k = pallas_call(
                           [](Ref x, Ref o) {
                             Value sum = zeros({n}, f32);
                             for (int i = 0; i <= 2 * side; ++i) sum = sum + x[{ds(i, n)}];
                             o[_] = sum;
                           },
                           {.name = "stencil",
                            .out_type = {{3 * n - 5}, f32},
                            .grid = 3,
                            .in_specs = {BlockSpec{{Element(n + 2 * side, {side, 2 * side})},
                                                   [](Index i) { return i * n; },
                                                   {.fill = fill}}},
                            .out_specs = {BlockSpec{{n}, along}}})
                           .on(target);
      const Array x = counted(3 * n - 5);
      const std::vector<float> y = values_of<float>(k(on(target, x)));
      for (std::int64_t i = 0; i < x.size(); ++i) {
        double sum = 0;
        for (std::int64_t j = i - side; j <= i + side; ++j)
          sum += j < 0 || j >= x.size() ? fill : static_cast<double>(j + 1);
        CAPTURE(i);
        CHECK(y[static_cast<std::size_t>(i)] == sum);
      }
    });
}

TEST_CASE("a reduction over ragged rows needs no mask") {
  for_each_target("top", [](Target target) {
    const Kernel k = pallas_call([](Ref x, Ref o) { o[_] = pl::max(x[_], {.axis = 1}); },
                                 {.name = "top",
                                  .out_type = {{11}, f32},
                                  .grid = {2},
                                  .in_specs = {BlockSpec{{8, 128}, rows, {.fill = -infinity}}},
                                  .out_specs = {BlockSpec{{8}, along}}})
                         .on(target);
    const Array x = make_array<float>({11, 77}, [](std::int64_t i) { return -1.f - i; });
    const std::vector<float> y = values_of<float>(k(on(target, x)));
    for (std::size_t row = 0; row < 11; ++row) CHECK(y[row] == -1.f - 77.f * row);
  });
}

TEST_CASE("of an output too, what lies beyond the array reads as its fill") {
  for_each_target("back", [](Target target) {
    const Kernel k =
        pallas_call(
            [](Ref x, Ref o, Ref seen) {
              o[_] = x[_] * 2.f;
              seen[_] = o[_];
            },
            {.name = "back",
             .out_type = {{{5}, f32}, {{8}, f32}},
             .grid = {2},
             .in_specs = {BlockSpec{{4}, along}},
             .out_specs = {BlockSpec{{4}, along, {.fill = -1}}, BlockSpec{{4}, along}}})
            .on(target);
    const auto [o, seen] = k(on(target, counted(5))).unpack<2>();
    CHECK(values_of<float>(o) == std::vector<float>{2, 4, 6, 8, 10});
    CHECK(values_of<float>(seen) == std::vector<float>{2, 4, 6, 8, 10, -1, -1, -1});
  });
}

TEST_CASE("a fill is a number of the array's dtype, whatever that is") {
  const auto filled = [](DType dtype, double fill, Target target) {
    const BlockSpec spec{{4}, {}, {.fill = fill}};
    const Kernel k =
        pallas_call(
            [](Ref x, Ref o) { o[_] = f64(x[_]); },
            {.name = std::string("of_") + dtype.name(), .out_type = {{4}, f64}, .in_specs = {spec}})
            .on(target);
    const Array x = Array::zeros({1}, dtype);
    return values_of<double>(k(on(target, x)))[3];
  };
  for_each_target("dtypes", [&](Target target) {
    for (const DType dtype : {i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64}) {
      CAPTURE(dtype.name());
      CHECK(filled(dtype, 5, target) == 5);
      if (dtype.is_signed()) CHECK(filled(dtype, -3, target) == -3);
      if (dtype.is_float()) CHECK(filled(dtype, infinity, target) == infinity);
    }
    CHECK(filled(u64, 0x1p63, target) == 0x1p63);
    CHECK(filled(f16, 0.1, target) == 0.0999755859375);
  });
}

TEST_CASE("a bitcast sees the bits of the fill") {
  for_each_target("bits", [](Target target) {
    const auto k = [&](DType to, std::int64_t n, double fill, std::int64_t block) {
      const BlockSpec spec{{block}, {}, {.fill = fill}};
      return pallas_call([to](Ref x, Ref o) { o[_] = x.bitcast(to)[_]; },
                         {.name = "bits", .out_type = {{n}, to}, .in_specs = {spec}})
          .on(target);
    };
    const Array floats = on(target, counted(3));
    CHECK(values_of<std::int32_t>(k(i32, 4, 1, 4)(floats))[3] == 0x3f800000);
    const std::vector<std::uint8_t> narrow = values_of<std::uint8_t>(k(u8, 16, 0, 4)(floats));
    CHECK(narrow[11] == 0x40);
    for (std::size_t i = 12; i < 16; ++i) CHECK(narrow[i] == 0);
    // An element of which only a part is in the array.
    const Array bytes = make_array<std::uint8_t>({6}, [](std::int64_t i) { return i + 1; });
    const std::vector<std::uint32_t> wide =
        values_of<std::uint32_t>(k(u32, 2, 255, 8)(on(target, bytes)));
    CHECK(wide == std::vector<std::uint32_t>{0x04030201, 0xffff0605});
  });
}

TEST_CASE("a ragged product needs no mask: 0 fills both operands [C29]") {
  for_each_target("product", [](Target target) {
    const auto tile = [](double fill) {
      return BlockSpecOptions{.pipeline_mode = pl::Buffered(2), .fill = fill};
    };
    const Kernel k = pallas_call(
                         [](Ref a, Ref b, Ref o) {
                           pl::when(program_id(2) == 0, [&] { o[_] = zeros({32, 32}, f32); });
                           o[_] += pl::dot(a[_], b[_]);
                         },
                         {.name = "product",
                          .out_type = {{32, 33}, f32},
                          .grid = {1, 2, 2},
                          .in_specs = {BlockSpec{{32, 32},
                                                 [](Index i, Index, Index k) {
                                                   return Indices{i, k};
                                                 },
                                                 tile(0)},
                                       BlockSpec{{32, 32},
                                                 [](Index, Index j, Index k) {
                                                   return Indices{k, j};
                                                 },
                                                 tile(0)}},
                          .out_specs = {BlockSpec{{32, 32},
                                                  [](Index i, Index j, Index) {
                                                    return Indices{i, j};
                                                  }}}})
                         .on(target);
    const Array a = make_array<float>({32, 33}, [](std::int64_t i) { return i % 7 - 3; });
    const Array b = make_array<float>({33, 33}, [](std::int64_t i) { return i % 5 - 2; });
    const std::vector<float> y = values_of<float>(k(on(target, a), on(target, b)));
    for (std::int64_t i = 0; i < 32; ++i)
      for (std::int64_t j = 0; j < 33; ++j) {
        float sum = 0;
        for (std::int64_t l = 0; l < 33; ++l)
          sum += a.data<float>()[i * 33 + l] * b.data<float>()[l * 33 + j];
        CHECK(y[static_cast<std::size_t>(i * 33 + j)] == sum);
      }
  });
}
