// The copies of upstream's AsyncCopyTest (Mosaic GPU's own tests), one by one, in this language.
// Not here are those for Blackwell: rows gathered and scattered by TMA, copies of a pair of blocks.
#include "tests/mosaic/mosaic.hpp"
#include "tests/support/full.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace async_copies {

using Transforms = std::vector<gpu::Transform>;

const InterpretParams watched{.detect_races = true};

/// Elements that are numbered, as far as the type counts.
Array numbered(const Shape& shape, DType t) {
  const std::int64_t most = t == i4 ? 16 : 2048, first = t == i4 ? -8 : 0;
  return make_array<float>(shape, [=](std::int64_t i) { return i % most + first; }).astype(t);
}

/// Element `at(i)` of x at each place of o.
template <class F>
bool is(const Array& o, const Array& x, F at) {
  const std::vector<float> got = elements<float>(on_cpu(o).astype(f32));
  const std::vector<float> given = elements<float>(x.astype(f32));
  for (std::size_t i = 0; i < got.size(); ++i)
    if (got[i] != given[at(i)]) return false;
  return true;
}

bool is_same(const Array& o, const Array& x) {
  return is(o, x, [](std::size_t i) { return i; });
}

struct Swizzled {
  int swizzle;  // bytes; 0: none
  Shape shape;
  DType dtype;
  Transforms transforms() const {
    return swizzle == 0 ? Transforms{} : Transforms{gpu::SwizzleTransform(swizzle)};
  }
};

/// Calls f for rows of one swizzle each, as upstream's `product` does, or for one of five of them.
template <class F>
void for_rows(const std::vector<DType>& types, F f) {
  int number = 0;
  for (const int swizzle : {0, 32, 64, 128})
    for (const Shape& front : {Shape{64}, Shape{5}, Shape{2, 3, 5}})
      for (const DType t : types) {
        if (number++ % 5 != 0 && !is_full()) continue;
        Swizzled c{swizzle, front, t};
        c.shape.push_back(swizzle == 0 ? 64 : 8 * swizzle / t.bits());
        INFO("swizzle " << swizzle << ", " << front.rank() + 1 << " dimensions, " << t.name());
        f(c);
      }
}

struct Loading {
  bool prefetches = false;
  bool zeros = false;  // beyond the array
};
Kernel loading(const Shape& shape, DType t, const Transforms& transforms,
               std::function<Ref(const Ref&)> part, Loading how = {}) {
  return gpu::kernel(
      [=](Ref x, Ref o, Ref s, Ref b) {
        if (how.prefetches) gpu::async_prefetch(part(x));
        gpu::copy_gmem_to_smem(part(x), s, b,
                               {.oob_mode = how.zeros ? gpu::OOBFillMode::ZEROS
                                                      : gpu::OOBFillMode::PROMISE_IN_BOUNDS});
        gpu::barrier_wait(b);
        o[_] = s[_];
      },
      {.name = "loading",
       .out_type = {shape, t},
       .scratch_types = {gpu::SMEM(shape, t, {.transforms = transforms}), gpu::Barrier()},
       .interpret = watched});
}

Kernel storing(const Shape& shape, DType t, const Transforms& transforms = {}) {
  return gpu::kernel(
      [](Ref x, Ref o, Ref s) {
        s[_] = x[_];
        gpu::commit_smem();
        gpu::copy_smem_to_gmem(s, o);
        gpu::wait_smem_to_gmem(0);
      },
      {.name = "storing",
       .out_type = {shape, t},
       .scratch_types = {gpu::SMEM(shape, t, {.transforms = transforms})},
       .interpret = watched});
}

Ref all_of(const Ref& x) { return x; }

TEST_CASE(
    "what is loaded, brought near before or not, is what was there: tma_load_basic, "
    "tma_prefetch_basic") {
  for (const bool prefetches : {false, true})
    for_rows({f32, f16, i4}, [&](const Swizzled& c) {
      for_each_target("basic", [&](Target target) {
        const Array x = numbered(c.shape, c.dtype);
        const Kernel k =
            loading(c.shape, c.dtype, c.transforms(), all_of, {.prefetches = prefetches});
        CHECK(is_same(k.on(target)(on(target, x)), x));
      });
    });
}

TEST_CASE("beyond a dimension of one there are zeros: tma_load_oob_over_trivial_gmem_dimension") {
  for_each_target("planes", [](Target target) {
    const Array x = numbered({64, 1, 64}, f32);
    const Kernel k = loading({64, 2, 64}, f32, {},
                             [](const Ref& x) {
                               return x.at({_, ds(0, 2), _});
                             },
                             {.zeros = true});
    const std::vector<float> o = elements<float>(k.on(target)(on(target, x)));
    const std::vector<float> given = elements<float>(x);
    bool right = true;
    for (std::size_t i = 0; i < o.size(); ++i)
      right = right && o[i] == (i / 64 % 2 == 0 ? given[i / 128 * 64 + i % 64] : 0);
    CHECK(right);
  });
}

TEST_CASE("tiles of a row are stored: tma_with_1d_tiling") {
  for_each_target("tiles of a row", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref o, Ref s) {
          s[_] = (iota(i32, {64, 128}, 0) * 128 + iota(i32, {64, 128}, 1)).astype(f16);
          gpu::commit_smem();
          gpu::copy_smem_to_gmem(s, o);
          gpu::wait_smem_to_gmem(0);
        },
        {.name = "tiled_rows",
         .out_type = {{64, 128}, f16},
         .scratch_types = {gpu::SMEM(
             {64, 128}, f16,
             {.transforms = {gpu::TilingTransform({1, 64}), gpu::SwizzleTransform(128)}})},
         .interpret = watched});
    CHECK(is_same(k.on(target)(), counted({64, 128}).astype(f16)));
    CHECK_THAT(k.lower().cuda_source({.arch = "sm_90a"}), ContainsSubstring("pl::tma_store("));
  });
}

// Copies that blocks share along some axes of a cluster: each block of the others has its own, and
// of what it got gives the part that its place among those who share it says.
TEST_CASE("blocks share a load along any axes of their cluster: tma_load_multicast") {
  int number = 0;
  for (int collective = 1; collective < 8; ++collective)
    for (int other = 0; other < 7; ++other)
      for (const std::int64_t size : {1, 2, 4}) {
        if ((collective & other) != 0) continue;
        std::int64_t dims[3], shared = 1, own = 1;
        std::vector<std::string> axes, others;
        for (int d = 0; d < 3; ++d) {
          const std::string name(1, "xyz"[d]);
          const bool is_shared = (collective >> d & 1) != 0, is_own = (other >> d & 1) != 0;
          dims[d] = is_shared ? size : is_own ? 2 : 1;
          (is_shared ? shared : own) *= dims[d];
          if (is_shared) axes.push_back(name);
          if (is_own) others.push_back(name);
        }
        // Not more blocks than every GPU has in a cluster.
        if (shared * own > 8 || (number++ % 6 != 0 && !is_full())) continue;
        INFO(dims[0] << " x " << dims[1] << " x " << dims[2] << ", shared along " << axes.size());
        const Shape shape{own, 2, 16 * shared, 64};
        const auto place = [](const std::vector<std::string>& axes, const std::int64_t* dims) {
          Value at(0);
          for (const std::string& axis : axes)
            at = at * static_cast<int>(dims[axis[0] - 'x']) + axis_index(axis.c_str());
          return at;
        };
        const std::array<std::int64_t, 3> sizes{dims[0], dims[1], dims[2]};
        const Kernel k = gpu::kernel(
            [=](Ref x, Ref o, Ref s, Ref b) {
              const Value row = place(others, sizes.data()), part = place(axes, sizes.data());
              gpu::copy_gmem_to_smem(x.at(row), s, b, {.collective_axes = axes});
              gpu::barrier_wait(b);
              const Slice rows = ds(part * 16, 16);
              o[{row, _, rows, _}] = s[{_, rows, _}];
            },
            {.name = "multicast",
             .out_type = {shape, f16},
             .cluster = {Dim(dims[0]), Dim(dims[1]), Dim(dims[2])},
             .cluster_names = {"x", "y", "z"},
             .scratch_types = {gpu::SMEM({2, 16 * shared, 64}, f16,
                                         {.transforms = {gpu::SwizzleTransform(128)}}),
                               gpu::Barrier()},
             .interpret = watched});
        for_each_target("multicast", [&](Target target) {
          const Array x = numbered(shape, f16);
          CHECK(is_same(k.on(target)(on(target, x)), x));
        });
      }
}

Transforms tiled(int swizzle, DType t, int rows = 32) {
  Transforms all{gpu::TilingTransform({rows, (swizzle == 0 ? 128 : swizzle) / t.bytes()})};
  if (swizzle != 0) all.push_back(gpu::SwizzleTransform(swizzle));
  return all;
}

TEST_CASE("tiles are loaded, of one or several matrices: tma_load_tiled, tma_prefetch_tiled") {
  for (const bool prefetches : {false, true})
    for (const int swizzle : {0, 128})
      for (const Shape& shape : {Shape{128, 128}, Shape{5, 32, 128}})
        for (const DType t : {f16, f32}) {
          CAPTURE(prefetches, swizzle, shape.rank(), t.name());
          const Kernel k = loading(shape, t, tiled(swizzle, t), all_of, {.prefetches = prefetches});
          for_each_target("tiled", [&](Target target) {
            const Array x = numbered(shape, t);
            CHECK(is_same(k.on(target)(on(target, x)), x));
          });
          const std::string text = k.lower(ShapeDtype{shape, t}).cuda_source({.arch = "sm_90a"});
          CHECK(text.find("pl::tma_load") != std::string::npos);
          CHECK((text.find("pl::tma_prefetch(") != std::string::npos) == prefetches);
        }
}

TEST_CASE("of rows that have more whole tiles are loaded: tma_load_tiled_rounding") {
  for (const int swizzle : {0, 128})
    for_each_target("rounding", [&](Target target) {
      const Array x = numbered({5, 32, 144}, f16);
      const Kernel k = loading({5, 32, 128}, f16, tiled(swizzle, f16), [](const Ref& x) {
        return x.at({_, _, ds(0, 128)});
      });
      CHECK(is(k.on(target)(on(target, x)), x,
               [](std::size_t i) { return i / 128 * 144 + i % 128; }));
    });
}

TEST_CASE("of each row of matrices one is loaded in tiles: tma_load_indexed_tiled") {
  for_each_target("indexed", [](Target target) {
    const Array x = numbered({128, 2, 128}, f32);
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref s, Ref b) {
          gpu::copy_gmem_to_smem(x.at({_, 1, _}), s, b);
          gpu::barrier_wait(b);
          gpu::copy_smem_to_gmem(s, o);
          gpu::wait_smem_to_gmem(0);
        },
        {.name = "indexed",
         .out_type = {{128, 128}, f32},
         .scratch_types = {gpu::SMEM({128, 128}, f32,
                                     {.transforms = {gpu::TilingTransform({32, 32})}}),
                           gpu::Barrier()},
         .interpret = watched});
    CHECK(is(k.on(target)(on(target, x)), x,
             [](std::size_t i) { return i / 128 * 256 + 128 + i % 128; }));
  });
}

TEST_CASE("matrices are loaded one by one: tma_squeeze_indexing") {
  for (const int swizzle : {0, 128})
    for (const DType t : {f16, f32})
      for_each_target("squeezed", [&, t](Target target) {
        const Swizzled c{swizzle, {4, 5, swizzle == 0 ? 64 : swizzle / t.bytes()}, t};
        const Array x = numbered(c.shape, t);
        const Kernel k = gpu::kernel(
            [](Ref x, Ref o, Ref s, Ref b) {
              for (int i = 0; i < 4; ++i) {
                gpu::copy_gmem_to_smem(x.at(i), s.at(i), b);
                gpu::barrier_wait(b);
              }
              o[_] = s[_];
            },
            {.name = "squeezed",
             .out_type = {c.shape, t},
             .scratch_types = {gpu::SMEM(c.shape, t, {.transforms = c.transforms()}),
                               gpu::Barrier()},
             .interpret = watched});
        CHECK(is_same(k.on(target)(on(target, x)), x));
      });
}

TEST_CASE("a barrier has as many phases as it is awaited: parity_tracking") {
  for (const bool unrolled : {true, false})
    for_each_target("parity", [&](Target target) {
      const Array x = numbered({16, 64}, f16);
      const Kernel k = gpu::kernel(
          [unrolled](Ref x, Ref o, Ref s, Ref b) {
            const auto row = [&](const Value& i) {
              gpu::copy_gmem_to_smem(x.at(ds(i, 1)), s, b);
              gpu::barrier_wait(b);
              o[ds(i, 1)] = s[_];
            };
            if (unrolled)
              for (int i = 0; i < 16; ++i) row(i32(i));
            else
              pl::loop(0, 16, [&](Index i) { row(i); });
          },
          {.name = "parity",
           .out_type = {{16, 64}, f16},
           .scratch_types = {gpu::SMEM({1, 64}, f16), gpu::Barrier()},
           .interpret = watched});
      CHECK(is_same(k.on(target)(on(target, x)), x));
    });
}

TEST_CASE("what is stored is what was there: tma_store") {
  for_rows({f16, f32}, [](const Swizzled& c) {
    for_each_target("store", [&](Target target) {
      const Array x = numbered(c.shape, c.dtype);
      const Kernel k = storing(c.shape, c.dtype, c.transforms());
      CHECK(is_same(k.on(target)(on(target, x)), x));
    });
  });
}

TEST_CASE(
    "of tiles larger than the array the rest is zeros, and not stored: tma_small_tile_load, "
    "_store") {
  struct Small {
    std::int64_t rows, columns, padded_rows, padded_columns;
  };
  const Transforms tiles{gpu::TilingTransform({64, 64}), gpu::SwizzleTransform(128)};
  for (const Small& c : {Small{4, 128, 64, 128}, Small{128, 8, 128, 64}}) {
    CAPTURE(c.rows, c.columns);
    const Shape small{c.rows, c.columns}, padded{c.padded_rows, c.padded_columns};
    const auto whole = [=](const Ref& x) {
      return x.at({ds(0, c.padded_rows), ds(0, c.padded_columns)});
    };
    for_each_target("small", [&](Target target) {
      const Array x = numbered(small, f16);
      const Kernel load = loading(padded, f16, tiles, whole, {.zeros = true});
      const std::vector<float> o =
          elements<float>(on_cpu(load.on(target)(on(target, x))).astype(f32));
      const std::vector<float> given = elements<float>(x.astype(f32));
      bool right = true;
      for (std::size_t i = 0; i < o.size(); ++i) {
        const auto row = static_cast<std::int64_t>(i) / c.padded_columns;
        const auto column = static_cast<std::int64_t>(i) % c.padded_columns;
        const bool is_there = row < c.rows && column < c.columns;
        right = right &&
                o[i] == (is_there ? given[static_cast<std::size_t>(row * c.columns + column)] : 0);
      }
      CHECK(right);

      const Kernel store = gpu::kernel(
          [=](Ref o, Ref s) {
            const Value row = iota(i32, padded, 0), column = iota(i32, padded, 1);
            s[_] = ((row * static_cast<int>(c.columns) + column) % 2048).astype(f16);
            gpu::commit_smem();
            gpu::copy_smem_to_gmem(s, whole(o), {.clipped = true});
            gpu::wait_smem_to_gmem(0);
          },
          {.name = "small_store",
           .out_type = {small, f16},
           .scratch_types = {gpu::SMEM(padded, f16, {.transforms = tiles})},
           .interpret = watched});
      CHECK(is_same(store.on(target)(), x));
    });
  }
}

// Upstream refuses both: more than five dimensions without strides, and rows of no 128 bits.
TEST_CASE("what TMA cannot copy is copied by others: tma_invalid") {
  for (const Shape& shape : {Shape{1, 1, 1, 1, 1, 1}, Shape{23}})
    for_each_target("invalid", [&](Target target) {
      const Array x = numbered(shape, i32);
      const Kernel k = storing(shape, i32);
      CHECK(is_same(k.on(target)(on(target, x)), x));
    });
}

// By cp.async, as copies without a barrier are.
void check_by_threads(const Shape& shape, DType t, const Transforms& transforms) {
  INFO(shape[0] << " x " << shape[1] << " of " << t.name());
  const Kernel k = gpu::kernel(
      [](Ref x, Ref o, Ref s) {
        gpu::copy_gmem_to_smem(x, s);
        gpu::wait_gmem_to_smem(0);
        o[_] = s[_];
      },
      {.name = "by_threads",
       .out_type = {shape, t},
       .scratch_types = {gpu::SMEM(shape, t, {.transforms = transforms})},
       .interpret = watched});
  for_each_target("by threads", [&](Target target) {
    const Array x = numbered(shape, t);
    CHECK(is_same(k.on(target)(on(target, x)), x));
  });
  for (const char* arch : {"sm_80", "sm_90a"})
    CHECK_THAT(
        k.lower(ShapeDtype{shape, t}).cuda_source({.arch = arch}),
        ContainsSubstring("pl::copy_async<" + std::to_string(128 / std::max(8, t.bits())) + ">("));
}

TEST_CASE("threads copy 16 bytes at once, tiled or not: cp_async_tiled, cp_async_untiled") {
  int number = 0;
  for (const int swizzle : {0, 32, 64, 128})
    for (const Shape& shape : {Shape{64, 128}, Shape{128, 32}})
      for (const DType t : {f32, f16, f8e5m2, i4}) {
        const std::int64_t columns = 8 * (swizzle == 0 ? 16 : swizzle) / t.bits();
        if (shape[1] % columns != 0 || (number++ % 4 != 0 && !is_full())) continue;
        Transforms transforms{gpu::TilingTransform({8, columns})};
        if (swizzle != 0) transforms.push_back(gpu::SwizzleTransform(swizzle));
        INFO("swizzle " << swizzle);
        check_by_threads(shape, t, transforms);
      }
  for (const Shape& shape : {Shape{64, 128}, Shape{128, 40}, Shape{5, 256}})
    for (const DType t : {f32, f16}) check_by_threads(shape, t, {});
}

TEST_CASE("blocks share a load of rows: tma_collective_async_cp_with_no_swizzle") {
  for_each_target("collective", [](Target target) {
    const Array x = numbered({128}, f32);
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref s, Ref b) {
          gpu::copy_gmem_to_smem(x, s, b, {.collective_axes = {"x"}});
          gpu::barrier_wait(b);
          gpu::copy_smem_to_gmem(s, o.at(axis_index("x")));
          gpu::wait_smem_to_gmem(0);
        },
        {.name = "collective",
         .out_type = {{2, 128}, f32},
         .cluster = {2},
         .cluster_names = {"x"},
         .scratch_types = {gpu::SMEM({128}, f32), gpu::Barrier()},
         .interpret = watched});
    CHECK(is(k.on(target)(on(target, x)), x, [](std::size_t i) { return i % 128; }));
  });
}

}  // namespace async_copies
