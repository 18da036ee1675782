// Kernels of symbolic sizes, by class: the widths of their accesses, and the same results.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "codegen/graph/graph.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

/// f32[m,n] of f16[m,k] and f16[k,n], none of which is known when it is compiled.
Kernel matmul() {
  return pallas_call(
      [](Ref a, Ref b, Ref o) {
        when(program_id(2) == 0, [&] { o[_] = zeros({64, 64}, f32); });
        o[_] += dot(a[_], b[_]);
      },
      [](ShapeDtype a, ShapeDtype b) {
        const auto [m, k] = a.shape.unpack<2>();
        const auto [rows, n] = b.shape.unpack<2>();
        require_equal(k, rows);
        require_multiple(k, 32);
        return PallasCallOptions{.name = "matmul",
                                 .out_type = {{m, n}, f32},
                                 .grid = {cdiv(m, 64), cdiv(n, 64), cdiv(k, 32)},
                                 .in_specs = {{{64, 32},
                                               [](Index i, Index, Index l) {
                                                 return Indices{i, l};
                                               }},
                                              {{32, 64},
                                               [](Index, Index j, Index l) {
                                                 return Indices{l, j};
                                               }}},
                                 .out_specs = {{{64, 64}, [](Index i, Index j, Index) {
                                                  return Indices{i, j};
                                                }}}};
      });
}

/// Softmax of rows of up to 1024 elements, how many is an argument.
Kernel softmax() {
  return pallas_call(
      [](Value n, Ref x, Ref o) {
        Value v = where(iota(i32, {1, 1024}, 1) < n, f32(x[_]), -1e30f);
        Value e = exp(v - max(v, {.axis = 1, .keepdims = true}));
        o[_] = f16(e / sum(e, {.axis = 1, .keepdims = true}));
      },
      [](ShapeDtype, ShapeDtype x) {
        const BlockSpec row{{1, 1024}, [](Index i) { return Indices{i, 0}; }};
        return PallasCallOptions{.name = "softmax",
                                 .out_type = x,
                                 .grid = {x.shape[0]},
                                 .in_specs = {row},
                                 .out_specs = {row}};
      });
}

/// Small integers.
Array small_numbers(const Shape& shape, std::uint64_t seed) {
  Array a = Array::empty(shape, f16);
  auto* data = static_cast<std::uint16_t*>(a.data());
  for (std::int64_t i = 0; i < a.size(); ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    data[i] = static_cast<std::uint16_t>(
        graph::to_bits(f16, static_cast<std::int64_t>(seed >> 33) % 9 - 4));
  }
  return a;
}

bool are_equal(const Array& a, const Array& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size() * a.dtype().bytes())) ==
             0;
}

/// The widths of the accesses of a function of the device library, as "<8> <1> ".
std::string widths(const std::string& text, const std::string& function) {
  std::string found;
  for (std::size_t at = text.find(function + "<"); at != text.npos;
       at = text.find(function + "<", at + 1)) {
    const std::size_t from = at + function.size();
    found += text.substr(from, text.find('>', from) + 1 - from) + " ";
  }
  return found;
}

}  // namespace

TEST_CASE("a product of matrices is the same in every class of sizes") {
  const Kernel k = matmul();
  for (const auto& [m, n, depth] :
       {std::tuple{1, 1, 32}, {8, 8, 64}, {3, 1000, 32}, {65, 33, 64}, {70, 72, 32}, {64, 7, 0}}) {
    INFO(m << " x " << n << " x " << depth);
    const Array a = small_numbers({m, depth}, 1), b = small_numbers({depth, n}, 2);
    CHECK(are_equal(k.on(Target::emulator)(a, b), k.on(Target::interpreter)(a, b)));
  }
}

TEST_CASE("products of matrices of symbolic sizes move 16 bytes where rows are multiples of them") {
  const auto text = [](int n) {
    return matmul()
        .lower(small_numbers({100, 64}, 1), small_numbers({64, n}, 2))
        .cuda_source({.arch = "sm_80"});
  };
  const std::string wide = text(72), narrow = text(71);
  CHECK(widths(wide, "copy_async") == "<8> <8> <8> <8> ");  // before the loop, and in it
  CHECK(widths(wide, "load_global_nc") == "");
  CHECK(widths(wide, "store_global") == "<2> ");  // as tensor cores give them
  CHECK_THAT(wide, !ContainsSubstring("_part") && ContainsSubstring("* i32(s2)"));
  CHECK(widths(narrow, "copy_async") == "<8> <8> ");  // the first one's rows are
  // Of rows that begin anywhere the pieces around them, and the last one.
  CHECK(widths(narrow, "copy_async_around") == "<8> <8> <8> <8> ");
  CHECK(widths(narrow, "load_shared_skewed") == "<8> ");
  CHECK(widths(narrow, "load_global_nc") == "");
  CHECK(widths(narrow, "store_global") == "<1> ");
}

TEST_CASE("a softmax over rows of any length is the same in every class of sizes") {
  const Kernel k = softmax();
  for (const int n : {1, 8, 1000, 33}) {
    INFO(n << " columns");
    const Array x = small_numbers({3, n}, 3);
    CHECK(are_equal(k.on(Target::emulator)(scalar(n), x), k.on(Target::interpreter)(scalar(n), x)));
  }
}

TEST_CASE("a softmax of symbolic rows moves 16 bytes where they are multiples of them") {
  const auto text = [](int n) {
    return softmax().lower(scalar(n), small_numbers({3, n}, 3)).cuda_source({.arch = "sm_90a"});
  };
  CHECK(widths(text(1000), "load_global_nc") == "<8> ");
  CHECK(widths(text(1000), "store_global") == "<8> ");
  CHECK(widths(text(1001), "load_global_nc") == "<1> ");
}

TEST_CASE("arrays with gaps between their rows have their own classes") {
  const Kernel k = matmul();
  const Array b = small_numbers({32, 72}, 4), memory = small_numbers({8, 200}, 5);
  for (const std::int64_t stride : {200, 100, 37}) {
    INFO("rows " << stride << " apart");
    const std::int64_t strides[] = {stride, 1};
    const Array a = Array::view(memory.data(), {8, 32}, f16, {.strides = strides});
    CHECK(are_equal(k.on(Target::emulator)(a, b), k.on(Target::interpreter)(a, b)));
    const std::string text = k.lower(a, b).cuda_source({.arch = "sm_80"});
    CHECK_THAT(text, ContainsSubstring("* i32(in0_stride0)"));
    // As far as rows and the begin of the memory are aligned.
    CHECK(widths(text, "copy_async") == (stride == 200   ? "<8> <8> <8> <8> "
                                         : stride == 100 ? "<4> <8> <4> <8> "
                                                         : "<8> <8> "));
    CHECK(widths(text, "load_global_nc") == (stride == 37 ? "<1> " : ""));
  }
}
