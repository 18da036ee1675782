// Blocks in which ops::matmul computes products of different sizes, and how many elements of a
// batch an options function hears of.
#include <memory>
#include <vector>

#include "palladium/ops/matmul.hpp"
#include "runtime/ops/blocks.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

using Tile = std::vector<int>;  // rows, columns, of k

Tile tile(DType t, std::int64_t m, std::int64_t n, const ops::MatmulOptions& options = {}) {
  const ops::MatmulBlocks b = ops::blocks_of(t, m, n, 512, options);
  return {b.m, b.n, b.k};
}

struct Split {
  Tile tile;
  int parts;
  bool operator==(const Split&) const = default;
};

Split sharing(std::int64_t m, std::int64_t n, std::int64_t k, int given = 0) {
  const ops::MatmulBlocks b = ops::blocks_of(f16, m, n, k, {.split_k = given});
  CHECK((b.split_k == 1 || !b.persistent));
  return {{b.m, b.n, b.k}, b.split_k};
}

Array small(const Shape& shape) {
  return make_array<float>(shape, [](std::int64_t i) { return (i * 7 + i / 5) % 13 - 6; });
}

}  // namespace

TEST_CASE("blocks of a product are so large that a GPU has enough of them") {
  CHECK(tile(f16, 8192, 8192) == Tile{128, 256, 64});
  CHECK(tile(bf16, 2048, 2048) == Tile{128, 256, 64});
  CHECK(tile(f16, 1024, 1024) == Tile{64, 128, 64});
  CHECK(tile(f16, 512, 512) == Tile{64, 32, 128});
  // Of few rows, and of few columns.
  CHECK(tile(f16, 16, 1024) == Tile{64, 32, 128});
  CHECK(tile(f16, 16, 4096) == Tile{64, 32, 128});
  CHECK(tile(f16, 16, 8192) == Tile{64, 64, 128});
  CHECK(tile(f16, 16, 16384) == Tile{64, 128, 64});
  CHECK(tile(f16, 64, 131072) == Tile{64, 256, 64});
  CHECK(tile(f16, 65536, 64) == Tile{128, 64, 64});
  // Sums of 128 x 256 elements in blocks of 8-bit floats and tf32 have not been measured.
  CHECK(tile(f8e4m3, 8192, 8192, {.trans_b = true}) == Tile{128, 128, 128});
  CHECK(tile(f8e4m3, 16, 4096, {.trans_b = true}) == Tile{64, 32, 256});
  CHECK(tile(f32, 8192, 8192, {.precision = tf32}) == Tile{128, 128, 32});
  CHECK(tile(f32, 16, 4096, {.precision = tf32}) == Tile{64, 32, 64});
  // Without tensor cores, and as a caller wants it.
  CHECK(tile(f32, 16, 4096) == Tile{64, 64, 32});
  CHECK(tile(f64, 8192, 8192) == Tile{64, 64, 32});
  CHECK(tile(f64, 16, 4096, {.precision = tf32}) == Tile{64, 64, 32});
  CHECK(tile(f16, 16, 4096, {.block_n = 256}) == Tile{128, 256, 64});
  CHECK(tile(f16, 16, 4096, {.block_k = 32}) == Tile{64, 32, 32});
  CHECK(tile(f16, 0, 0) == Tile{64, 32, 128});
  // Of sizes of which nothing is said.
  const ops::MatmulBlocks unknown = ops::blocks_of(f16, dim("m"), dim("n"), dim("k"), {});
  CHECK(Tile{unknown.m, unknown.n, unknown.k} == Tile{128, 256, 64});
  CHECK(unknown.persistent);
}

TEST_CASE("blocks share the sums of a product of few results") {
  CHECK(sharing(16, 1024, 4096) == Split{{64, 32, 128}, 4});
  CHECK(sharing(16, 2048, 4096) == Split{{64, 32, 128}, 2});
  CHECK(sharing(16, 256, 8192) == Split{{64, 32, 128}, 8});
  CHECK(sharing(512, 512, 8192) == Split{{64, 64, 128}, 2});
  // Not where all multiprocessors have a block, nor where a sum is short.
  CHECK(sharing(16, 4096, 4096) == Split{{64, 32, 128}, 1});
  CHECK(sharing(4096, 4096, 65536) == Split{{128, 256, 64}, 1});
  CHECK(sharing(16, 1024, 512) == Split{{64, 32, 128}, 1});
  CHECK(sharing(16, 1024, 0) == Split{{64, 32, 128}, 1});
  // As a caller wants it.
  CHECK(sharing(16, 1024, 4096, 1) == Split{{64, 32, 128}, 1});
  CHECK(sharing(4096, 4096, 64, 3) == Split{{128, 256, 64}, 3});
  CHECK(ops::blocks_of(f16, 16, 1024, 4096, {.block_m = 64}).split_k == 1);
  CHECK(ops::blocks_of(f16, 16, 1024, 4096, {.block_m = 64, .split_k = 8}).split_k == 8);
  CHECK(ops::blocks_of(f32, 16, 1024, 4096, {}).split_k == 1);
}

TEST_CASE("a block that has a multiprocessor for itself has its memory for copies") {
  const ops::MatmulBlocks few = ops::blocks_of(f16, 16, 4096, 512, {});
  CHECK(few.stages == 8);
  CHECK_FALSE(few.persistent);
  const ops::MatmulBlocks many = ops::blocks_of(f16, 4096, 4096, 512, {});
  CHECK(many.stages == 0);
  CHECK(many.persistent);
  CHECK(ops::blocks_of(f16, 16, 4096, 512, {.block_k = 256}).stages == 4);
}

TEST_CASE("products of all sizes that have the same blocks have one kernel") {
  const Kernel matmul = ops::matmul({.out_dtype = f16});
  const auto key = [&](std::int64_t m, std::int64_t n) {
    return matmul.lower(Array::empty({m, 64}, f16), Array::empty({64, n}, f16)).key();
  };
  CHECK(key(8, 4096) == key(48, 2048));
  CHECK(key(504, 512) == key(48, 2048));
  CHECK(key(16, 8192) != key(16, 4096));
  CHECK(key(2048, 4096) == key(4096, 8192));
}

TEST_CASE("an options function hears for how many elements of batches its kernel runs") {
  const auto heard = std::make_shared<std::int64_t>();
  const Kernel twice = pallas_call([](Ref x, Ref o) { o[_] = x[_] * 2; },
                                   [=](ShapeDtype x) {
                                     *heard = size_class(batch_size());
                                     return PallasCallOptions{.name = "twice", .out_type = x};
                                   });
  CHECK(batch_size().value() == 1);
  const auto last = [&](const Kernel& kernel, const Shape& shape) {
    (void)kernel.on(Target::interpreter)(Array::full(shape, f32, 1));
    return *heard;
  };
  CHECK(last(twice, {8}) == 1);
  CHECK(last(vmap(twice), {6, 8}) == 8);
  CHECK(last(vmap(twice), {9, 8}) == 16);
  CHECK(last(vmap(vmap(twice)), {3, 6, 8}) == 32);
  CHECK(last(vmap(twice), {0, 8}) == 0);
}

TEST_CASE("products of few results and long sums are those of plain loops") {
  const std::int64_t m = 5, n = 40, k = 4000;
  const Array a = small({m, k}), b = small({k, n}), bias = small({n});
  std::vector<float> expected(static_cast<std::size_t>(m * n));
  for (std::int64_t e = 0; e < m * n; ++e) {
    float sum = bias.data<float>()[e % n];
    for (std::int64_t l = 0; l < k; ++l)
      sum += a.data<float>()[e / n * k + l] * b.data<float>()[l * n + e % n];
    expected[static_cast<std::size_t>(e)] = std::max(sum, 0.0f);
  }
  CHECK(sharing(m, n, k).parts > 1);
  const std::string text =
      ops::matmul({.bias = true})
          .lower(ShapeDtype{{m, k}, bf16}, ShapeDtype{{k, n}, bf16}, ShapeDtype{{n}, f32})
          .cuda_source({.arch = "sm_90a"});
  CHECK(text.find("pl::load_cluster") != text.npos);
  for_each_target("few_results", [&](Target target) {
    for (const bool is_double : {false, true}) {
      const DType t = is_double ? f64 : bf16;  // without tensor cores, too
      const Kernel kernel =
          ops::matmul(
              {.bias = true, .activation = ops::Activation::relu, .split_k = is_double ? 3 : 0})
              .on(target);
      const Array c =
          on_cpu(kernel(on(target, a.astype(t)), on(target, b.astype(t)), on(target, bias)));
      for (std::int64_t e = 0; e < m * n; ++e)
        REQUIRE(c.data<float>()[e] == expected[static_cast<std::size_t>(e)]);
    }
  });
}

TEST_CASE("products of a batch have blocks for all of it, and are those of each") {
  const Kernel all = vmap(ops::matmul({.out_dtype = f16}), {0, unbatched});
  const auto key = [&](std::int64_t batch) {
    return all.lower(Array::empty({batch, 128, 64}, f16), Array::empty({64, 256}, f16)).key();
  };
  CHECK(key(2) == key(4));
  CHECK(key(2) != key(1000));
  for_each_target("batched_matmul", [&](Target target) {
    for (const std::int64_t batch : {3, 70}) {
      const std::int64_t m = 20, k = 24, n = 40;
      const Array a = small({batch, m, k}), b = small({k, n});
      const Array c =
          on_cpu(all.on(target)(on(target, a.astype(f16)), on(target, b.astype(f16)))).astype(f32);
      for (std::int64_t e = 0; e < batch * m * n; ++e) {
        float sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += a.data<float>()[e / n * k + l] * b.data<float>()[l * n + e % n];
        REQUIRE(c.data<float>()[e] == sum);
      }
    }
  });
}
