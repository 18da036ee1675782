// Arrays beyond 2^31 elements and 4 GB, of symbolic extents: copied by TMA as smaller ones are.
#include <sys/mman.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

/// Memory of which only what is touched takes any.
class Reserved {
 public:
  explicit Reserved(std::size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~Reserved() {
    if (is_there()) munmap(data_, bytes_);
  }
  Reserved(const Reserved&) = delete;
  bool is_there() const { return data_ != MAP_FAILED; }
  void* data() const { return data_; }

 private:
  std::size_t bytes_;
  void* data_;
};

/// f32[m,n] of f16[m,k] and f16[k,n].
Kernel matmul() {
  return pallas_call(
      [](Ref a, Ref b, Ref o) {
        when(program_id(2) == 0, [&] { o[_] = zeros({64, 64}, f32); });
        o[_] += dot(a[_], b[_]);
      },
      [](ShapeDtype a, ShapeDtype b) {
        const auto [m, k] = a.shape.unpack<2>();
        require_equal(k, b.shape[0]);
        require_multiple(k, 64);
        return PallasCallOptions{.name = "matmul",
                                 .out_type = {{m, b.shape[1]}, f32},
                                 .grid = {cdiv(m, 64), cdiv(b.shape[1], 64), cdiv(k, 64)},
                                 .in_specs = {{{64, 64},
                                               [](Index i, Index, Index l) {
                                                 return Indices{i, l};
                                               }},
                                              {{64, 64},
                                               [](Index, Index j, Index l) {
                                                 return Indices{l, j};
                                               }}},
                                 .out_specs = {{{64, 64}, [](Index i, Index j, Index) {
                                                  return Indices{i, j};
                                                }}}};
      });
}

/// An array that nobody reads.
Array unread(const Shape& shape) {
  alignas(16) static std::byte memory[16];
  return Array::view(memory, shape, f16);
}

}  // namespace

TEST_CASE("products of arrays beyond 4 GB are fetched by TMA, with extents up to 2^31 each") {
  const auto text = [](std::int64_t m, std::int64_t k, std::int64_t n) {
    return matmul().lower(unread({m, k}), unread({k, n})).cuda_source({.arch = "sm_90a"});
  };
  const std::string near = text(1024, 1024, 1024), far = text(1 << 22, 1 << 12, 1024);
  CHECK_THAT(near, ContainsSubstring("tma_load"));
  CHECK_THAT(far, ContainsSubstring("tma_load"));
  CHECK(near != far);  // offsets of 64 bits
  CHECK(far == text(1 << 23, 1 << 11, 1024));
  // An extent that TMA cannot count.
  CHECK_THAT(text((std::int64_t{1} << 31) + 64, 64, 64), !ContainsSubstring("tma_load"));
}

TEST_CASE("rows of odd lengths cost TMA the operand that they are of alone, near and far") {
  const auto fetched = [](std::int64_t m, std::int64_t n) {
    const std::string text =
        matmul().lower(unread({m, 1024}), unread({1024, n})).cuda_source({.arch = "sm_90a"});
    const auto loads = [&](const std::string& map) {
      return text.find("tma_load(") != text.npos && text.find(", " + map + ", ") != text.npos;
    };
    return std::pair(loads("map0"), loads("map1"));
  };
  constexpr std::int64_t far = std::int64_t{1} << 22;
  for (const std::int64_t m : {std::int64_t{1024}, std::int64_t{1023}, far, far + 1}) {
    CHECK(fetched(m, 1024) == std::pair(true, true));
    CHECK(fetched(m, 1023) == std::pair(true, false));
  }
}

TEST_CASE("classes of what TMA can know are those of extents and strides") {
  const auto is_box = [](std::int64_t m, std::int64_t n, std::int64_t stride = 0) {
    const Kernel copy =
        pallas_call([](Ref x, Ref o) { o[_] = x[_]; },
                    [](ShapeDtype x) {
                      const BlockSpec row{{1, 8}, [](Index i) { return Indices{i, 0}; }};
                      return PallasCallOptions{.name = "copy",
                                               .out_type = {{x.shape[0], 8}, f16},
                                               .grid = {cdiv(x.shape[0], 1 << 20)},
                                               .in_specs = {row},
                                               .out_specs = {row}};
                    });
    const std::int64_t strides[] = {stride == 0 ? n : stride, 1};
    alignas(16) static std::byte memory[16];
    const Array x = Array::view(memory, {m, n}, f16, {.strides = strides});
    const std::string graph = copy.lower(x).graph();
    const bool is_near = graph.find("offsets below 2^31") != graph.npos;
    return is_near ? 2 : graph.find("extents below 2^31") != graph.npos ? 1 : 0;
  };
  constexpr std::int64_t most = INT32_MAX;
  CHECK(is_box(8, 8) == 2);
  CHECK(is_box(most, 8) == 1);
  CHECK(is_box(most + 1, 8) == 0);
  CHECK(is_box(2, most) == 1);
  CHECK(is_box(2, most + 1) == 0);
  // Strides of 2^40 bytes are too far, those of 16 less are not.
  constexpr std::int64_t too_far = std::int64_t{1} << 39;
  CHECK(is_box(2, 8, 1 << 20) == 2);
  CHECK(is_box(2, 8, too_far - 8) == 1);
  CHECK(is_box(2, 8, too_far) == 0);
}

TEST_CASE("rows are gathered of an array of 2^31 - 1 rows, the last among them") {
  constexpr std::int64_t rows = INT32_MAX;
  const Reserved memory(static_cast<std::size_t>(rows) * 16);
  if (!memory.is_there()) SKIP("no room for 32 GB of addresses");
  const Array x = Array::view(memory.data(), {rows, 8}, f16);
  const Kernel gather =
      pallas_call([](Ref, Ref x, Ref o) { o[_] = x[_]; },
                  [](ShapeDtype ids, ShapeDtype) {
                    return PallasCallOptions{.name = "gather",
                                             .out_type = {{ids.shape[0], 8}, f16},
                                             .num_scalar_prefetch = 1,
                                             .grid = {ids.shape[0]},
                                             .in_specs = {{{squeezed, 8},
                                                           [](Index i, Ref ids) {
                                                             return Indices{ids[i], 0};
                                                           }}},
                                             .out_specs = {{{squeezed, 8}, [](Index i, Ref) {
                                                              return Indices{i, 0};
                                                            }}}};
                  });
  const std::int64_t chosen[] = {rows - 1, 0, rows / 2};
  auto* const elements = static_cast<std::uint16_t*>(memory.data());
  for (const std::int64_t row : chosen)
    elements[row * 8 + 3] = static_cast<std::uint16_t>(row % 99);
  const Array ids = make_array<std::int32_t>({3}, [&](std::int64_t i) { return chosen[i]; });
  for (const Target target : {Target::interpreter, Target::emulator}) {
    const Array o = gather.on(target)(ids, x);
    const auto* const found = static_cast<const std::uint16_t*>(o.data());
    for (std::int64_t i = 0; i < 3; ++i) CHECK(found[i * 8 + 3] == chosen[i] % 99);
  }
}

TEST_CASE("of a vector of 2^31 - 1 elements a few blocks are visited, the last among them") {
  constexpr std::int64_t n = INT32_MAX;
  const Reserved memory(static_cast<std::size_t>(n));
  if (!memory.is_there()) SKIP("no room for 2 GB of addresses");
  auto* const elements = static_cast<std::uint8_t*>(memory.data());
  elements[0] = 3, elements[n / 2] = 9, elements[n - 1] = 7;
  const Array x = Array::view(memory.data(), {n}, u8);
  // Blocks by index maps, and slices of the whole Ref.
  const Kernel blocks = pallas_call(
      [](Ref x, Ref o) { o[_] = sum(i32(x[_]), {.axis = 0, .keepdims = true}); },
      [](ShapeDtype x) {
        const Dim last = cdiv(x.shape[0], 128) - 1;
        return PallasCallOptions{
            .name = "few_blocks",
            .out_type = {{3}, i32},
            .grid = {3},
            .in_specs = {{{128}, [=](Index i) { return dim_as_value(last) * i / 2; }, {.fill = 0}}},
            .out_specs = {{{1}, [](Index i) { return i; }}}};
      });
  const Kernel slices = pallas_call(
      [](Ref x, Ref o) {
        const Value size = x.shape()[0], middle = size / 2;
        o[0] = sum(i32(x[{ds(0, 64)}]));
        o[1] = sum(i32(x[{ds(middle, 64)}]));
        o[2] = sum(i32(x[{ds(size - 64, 64)}]));
      },
      [](ShapeDtype) {
        return PallasCallOptions{.name = "few_slices", .out_type = {{3}, i32}};
      });
  for (const Target target : {Target::interpreter, Target::emulator})
    for (const Kernel& k : {blocks, slices}) {
      const Array o = k.on(target)(x);
      CHECK(std::vector<std::int32_t>(o.data<std::int32_t>(), o.data<std::int32_t>() + 3) ==
            std::vector<std::int32_t>{3, 9, 7});
    }
  // Of one element more the size is no i32; nobody touches the array.
  const Array longer = Array::view(memory.data(), {n + 1}, u8);
  for (const Target target : {Target::interpreter, Target::emulator})
    CHECK_THROWS_WITH(slices.on(target)(longer),
                      ContainsSubstring("args[0].shape[0], as an i32: at most 2147483647 elements, "
                                        "given 2147483648"));
}
