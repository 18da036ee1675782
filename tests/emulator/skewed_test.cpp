// Products of arrays whose rows begin anywhere: what is copied in pieces of 16 bytes around them is
// what a plain loop would read, and nothing outside of an array is.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "tests/support/hidden.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

enum class Sum { registers, output };

struct Product {
  Sum sum = Sum::output;
  bool trans_a = false, trans_b = false;
  std::int64_t m = 64, n = 64, k = 32;  // of a block
};

/// o[m,n] of a[m,k] and b[k,n], all of them symbols.
Kernel matmul(const Product& p) {
  const auto product = [=](Value a, Value b) {
    return dot(a, b, {.trans_a = p.trans_a, .trans_b = p.trans_b});
  };
  const auto body = [=](Ref a, Ref b, Ref o) {
    when(program_id(2) == 0, [&] { o[_] = zeros({p.m, p.n}, o.dtype()); });
    o[_] += product(a[_], b[_]);
  };
  const auto scratch_body = [=](Ref a, Ref b, Ref o, Ref sum) {
    when(program_id(2) == 0, [&] { sum[_] = zeros({p.m, p.n}, o.dtype()); });
    sum[_] += product(a[_], b[_]);
    when(program_id(2) == num_programs(2) - 1, [&] { o[_] = sum[_]; });
  };
  const auto options = [=](ShapeDtype a, ShapeDtype b) {
    const Dim m = a.shape[p.trans_a ? 1 : 0], k = a.shape[p.trans_a ? 0 : 1];
    const Dim n = b.shape[p.trans_b ? 0 : 1];
    require_equal(k, b.shape[p.trans_b ? 1 : 0]);
    PallasCallOptions o{.name = "skewed_matmul",
                        .out_type = {{m, n}, a.dtype == i8 ? i32 : f32},
                        .grid = {cdiv(m, p.m), cdiv(n, p.n), cdiv(k, p.k)},
                        .in_specs = {{{p.trans_a ? p.k : p.m, p.trans_a ? p.m : p.k},
                                      [=](Index i, Index, Index l) {
                                        return p.trans_a ? Indices{l, i} : Indices{i, l};
                                      },
                                      {.fill = 0}},
                                     {{p.trans_b ? p.n : p.k, p.trans_b ? p.k : p.n},
                                      [=](Index, Index j, Index l) {
                                        return p.trans_b ? Indices{j, l} : Indices{l, j};
                                      },
                                      {.fill = 0}}},
                        .out_specs = {{{p.m, p.n}, [](Index i, Index j, Index) {
                                         return Indices{i, j};
                                       }}}};
    if (p.sum == Sum::registers)
      o.scratch_types = {gpu::REGS({p.m, p.n}, a.dtype == i8 ? i32 : f32)};
    return o;
  };
  return p.sum == Sum::registers ? pallas_call(scratch_body, options) : pallas_call(body, options);
}

/// Small integers, in memory that ends with them and begins `lead` elements before them.
class Numbers {
 public:
  Numbers(const Shape& shape, DType t, std::int64_t lead, std::uint64_t seed)
      : memory_(Array::empty({shape.size() + lead}, t)) {
    const int bytes = t.bytes();
    auto* const data = static_cast<std::byte*>(memory_.data());
    for (std::int64_t i = 0; i < memory_.size(); ++i) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      const std::uint64_t bits = graph::to_bits(t, static_cast<std::int64_t>(seed >> 33) % 9 - 4);
      std::memcpy(data + i * bytes, &bits, static_cast<std::size_t>(bytes));
    }
    array_ = Array::view(data + lead * bytes, shape, t);
  }
  const Array& array() const { return array_; }

 private:
  Array memory_, array_;
};

bool are_equal(const Array& a, const Array& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size() * a.dtype().bytes())) ==
             0;
}

Shape turned(bool is_turned, std::int64_t m, std::int64_t n) {
  return is_turned ? Shape{n, m} : Shape{m, n};
}

void check(const Product& p, DType t, std::int64_t m, std::int64_t n, std::int64_t k,
           std::int64_t lead) {
  INFO(t.name() << " " << m << " x " << n << " x " << k << ", " << lead << " elements behind");
  const Kernel kernel = matmul(p);
  const Numbers a(turned(p.trans_a, m, k), t, lead, 1), b(turned(p.trans_b, k, n), t, 3 * lead, 2);
  CHECK(are_equal(kernel.on(Target::emulator)(a.array(), b.array()),
                  kernel.on(Target::interpreter)(a.array(), b.array())));
}

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
  return count;
}

std::string text_of(const Product& p, DType t, const std::string& arch) {
  const ShapeDtype a{{dim("m"), dim("k")}, t}, b{{dim("k"), dim("n")}, t};
  return matmul(p).lower(a, b).cuda_source({.arch = arch});
}

}  // namespace

TEST_CASE("products of rows that begin anywhere are what they are elsewhere") {
  for (const DType t : {f16, bf16})
    for (const std::int64_t lead : {0, 1, 5})
      for (const auto& [m, n, k] :
           {std::tuple{1, 1, 1}, {65, 71, 33}, {64, 64, 31}, {3, 130, 66}, {70, 9, 100}})
        check({}, t, m, n, k, lead);
}

TEST_CASE("sums in registers and transposed operands take rows that begin anywhere, too") {
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true})
      for (const Sum sum : {Sum::registers, Sum::output})
        check({.sum = sum, .trans_a = trans_a, .trans_b = trans_b}, f16, 67, 73, 45, 1);
}

TEST_CASE("products of bytes take rows that begin anywhere along the products") {
  for (const std::int64_t lead : {0, 1, 3, 7}) check({.trans_b = true}, i8, 65, 66, 67, lead);
}

TEST_CASE("GPUs of before Hopper take rows that begin anywhere, too") {
  const Environment arch("PALLADIUM_ARCH", "sm_80");
  check({}, f16, 65, 71, 33, 1);
  check({.trans_b = true, .m = 128, .n = 32}, bf16, 65, 71, 77, 3);
}

TEST_CASE("every spelling of a product of sizes of which nothing is known copies ahead") {
  for (const char* arch : {"sm_80", "sm_90a"})
    for (const Sum sum : {Sum::registers, Sum::output}) {
      const std::string text = text_of({.sum = sum, .k = 64}, bf16, arch);
      CHECK(count_of(text, "copy_async_around_zero<8>") >= 8);  // before the loop, and in it
      CHECK(count_of(text, "load_shared_skewed<8>") >= 2);
      CHECK(count_of(text, "load_global") == 0);
      CHECK_THAT(text, ContainsSubstring("cp_async_commit"));
    }
}

TEST_CASE("rows that are not one behind the other are loaded where they are used") {
  const Kernel kernel = matmul({});
  const Numbers memory({200, 40}, f16, 1, 3), b({32, 72}, f16, 0, 4);
  const std::int64_t strides[] = {37, 1};
  const Array a = Array::view(memory.array().data(), {100, 32}, f16, {.strides = strides});
  CHECK(are_equal(kernel.on(Target::emulator)(a, b.array()),
                  kernel.on(Target::interpreter)(a, b.array())));
  const std::string text = kernel.lower(a, b.array()).cuda_source({.arch = "sm_90a"});
  CHECK(count_of(text, "copy_async_around") == 0);
}
