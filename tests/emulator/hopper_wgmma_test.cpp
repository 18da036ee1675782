// wgmma: every pair of types, every swizzle and transpose, against plain sums of integers.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/hopper_kernels.hpp"
#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::SmallKernel;

namespace {

using Words = std::vector<std::uint32_t>;

// An integer from -4 to 4 in a format of wgmma; u8 holds its square.
std::uint32_t encode(const std::string& type, int x) {
  const auto sign = [&](std::uint32_t magnitude, int bits) {
    return magnitude | (x < 0 ? 1u << (bits - 1) : 0u);
  };
  const auto m = static_cast<std::size_t>(x < 0 ? -x : x);
  constexpr std::uint32_t e4m3[] = {0, 0x38, 0x40, 0x44, 0x48};
  constexpr std::uint32_t e5m2[] = {0, 0x3c, 0x40, 0x42, 0x44};
  if (type == "e4m3") return sign(e4m3[m], 8);
  if (type == "e5m2") return sign(e5m2[m], 8);
  if (type == "s8") return static_cast<std::uint8_t>(x);
  if (type == "u8") return static_cast<std::uint32_t>(x * x);
  if (type == "bf16") return test::to_bf16(static_cast<float>(x));
  if (type == "f16") return std::bit_cast<std::uint16_t>(static_cast<_Float16>(x));
  return std::bit_cast<std::uint32_t>(static_cast<float>(x)) | 0x0fff;  // tf32: not read
}
int meaning(const std::string& type, int x) { return type == "u8" ? x * x : x; }
std::size_t size_of(const std::string& type) {
  return type == "tf32" ? 4 : type == "bf16" || type == "f16" ? 2 : 1;
}

// In which column a 16-byte chunk of a row lies.
std::size_t exchanged(int swizzle, std::size_t row, std::size_t chunk) {
  switch (swizzle) {
  case 128: return chunk ^ (row % 8);
  case 64: return chunk ^ (row / 2 % 4);
  case 32: return chunk ^ (row / 4 % 2);
  default: return chunk;
  }
}

// `rows` x `k` numbers in shared memory in one of the canonical layouts.
struct Operand {
  std::string type;
  std::size_t rows, k;
  int swizzle = 0;
  bool transposed = false;  // rows are neighbours, not k
  std::vector<int> numbers = {};

  int at(std::size_t row, std::size_t along) const { return numbers[row * k + along]; }

  std::size_t address(std::size_t row, std::size_t along) const {
    const std::size_t size = size_of(type), pitch = static_cast<std::size_t>(swizzle);
    if (!transposed) {
      const std::size_t byte = along * size, chunk = byte / 16;
      if (swizzle == 0) return row % 8 * 16 + row / 8 * 128 + chunk * (16 * rows) + byte % 16;
      return row * pitch + 16 * exchanged(swizzle, row, chunk) + byte % 16;
    }
    const std::size_t chunk = row / 8, within = row % 8 * 2, w = pitch / 16;
    if (swizzle == 0) return chunk * 128 + along % 8 * 16 + along / 8 * (16 * rows) + within;
    return chunk / w * (k * pitch) + along * pitch + 16 * exchanged(swizzle, along, chunk % w) +
           within;
  }
  std::size_t leading() const {
    if (swizzle == 0) return 16 * rows;
    return transposed ? k * static_cast<std::size_t>(swizzle) : 16;
  }
  std::size_t stride() const { return swizzle == 0 ? 128 : 8 * static_cast<std::size_t>(swizzle); }
  std::string descriptor(const std::string& base) const {
    return "pl::matrix_descriptor(" + base + ", " + std::to_string(leading()) + ", " +
           std::to_string(stride()) + ", " + std::to_string(swizzle) + ")";
  }

  void fill(std::uint32_t seed) {
    for (std::size_t i = 0; i < rows * k; ++i) {
      seed = seed * 1664525 + 1013904223;
      numbers.push_back(static_cast<int>((seed >> 24) % 9) - 4);
    }
  }
  void put(Words& memory, std::size_t base) const {
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t i = 0; i < k; ++i) {
        const std::uint32_t bits = encode(type, at(r, i));
        std::memcpy(reinterpret_cast<char*>(memory.data()) + base + address(r, i), &bits,
                    size_of(type));
      }
    }
  }
};

struct Product {
  std::string d, a, b;
  std::size_t n, k;
  int swizzle_a = 0, swizzle_b = 0;
  bool transpose_a = false, transpose_b = false, rs = false;

  std::size_t registers() const { return d == "f16" ? n / 4 : n / 2; }
  std::string name() const {
    return "wgmma_m64n" + std::to_string(n) + "k" + std::to_string(k) + "_" + d + "_" + a + "_" +
           b + (rs ? "_rs" : "");
  }
};

constexpr std::size_t b_at = 16384, memory_bytes = 16384 + 32768;

// A block of the kernel that makes 2 A B of what lies in shared memory.
std::string text(const Product& p, int number) {
  const Operand a = {p.a, 64, p.k, p.swizzle_a, p.transpose_a},
                b = {p.b, p.n, p.k, p.swizzle_b, p.transpose_b};
  const std::string type = p.d == "f32" ? "f32" : p.d == "f16" ? "u32" : "i32";
  const std::string r = std::to_string(p.registers());
  std::string transposes;
  const auto flag = [](bool x) { return std::string(x ? "true" : "false"); };
  if (size_of(p.a) == 2) {
    transposes = p.rs ? "<" + flag(p.transpose_b) + ">"
                      : "<" + flag(p.transpose_a) + ", " + flag(p.transpose_b) + ">";
  }
  const std::string call = "    pl::" + p.name() + transposes + "(d, " +
                           (p.rs ? "ra" : a.descriptor("smem")) + ", " +
                           b.descriptor("smem + " + std::to_string(b_at)) + ", ";
  return "  if (fault == " + std::to_string(number) + ") {\n    " + type + " d[" + r +
         "];\n    pl::wgmma_registers(d);\n    pl::wgmma_fence();\n" + call + "false);\n" + call +
         "true);\n    pl::wgmma_commit();\n    pl::wgmma_wait<0>();\n    "
         "pl::wgmma_registers(d);\n" +
         "    for (i32 i = 0; i < " + r +
         "; ++i) { const u32 v = pl::bitcast<u32>(d[i]); "
         "pl::store_global(o + " +
         r + " * t + i, &v); }\n  }\n";
}

constexpr const char* head = R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  for (u32 i = 16 * t; i < 49152; i += 2048) {
    u32 v[4];
    pl::load_global<4>(v, memory + i / 4);
    pl::store_shared<4>(smem + i, v);
  }
  pl::fence_async_shared();
  pl::warpgroup_sync();
  u32 ra[4];
  pl::load_global<4>(ra, fragments + 4 * t);
)";

// Element (row, column) in the registers of the accumulator's fragment.
double element(const Words& o, const Product& p, std::size_t row, std::size_t column) {
  const std::size_t thread = 32 * (row / 16) + 4 * (row % 8) + column % 8 / 2;
  const std::size_t index = 4 * (column / 8) + 2 * (row / 8 % 2) + column % 2;
  if (p.d == "f16") {
    const std::uint32_t word = o[thread * p.registers() + index / 2];
    const auto half = static_cast<std::uint16_t>(word >> 16 * (index % 2));
    return static_cast<double>(static_cast<float>(std::bit_cast<_Float16>(half)));
  }
  const std::uint32_t word = o[thread * p.registers() + index];
  return p.d == "f32" ? static_cast<double>(std::bit_cast<float>(word))
                      : static_cast<double>(static_cast<std::int32_t>(word));
}

// A as fragments of four registers.
Words fragments_of(const Operand& a) {
  const std::size_t per = 4 / size_of(a.type);
  Words words(128 * 4);
  for (std::size_t row = 0; row < 64; ++row) {
    for (std::size_t along = 0; along < a.k; ++along) {
      const std::size_t thread = 32 * (row / 16) + 4 * (row % 8) + along / per % 4;
      const std::size_t index = row / 8 % 2 + 2 * (along / (4 * per));
      words[4 * thread + index] |= encode(a.type, a.at(row, along))
                                   << 8 * size_of(a.type) * (along % per);
    }
  }
  return words;
}

void check(const std::vector<Product>& products) {
  std::string body = head;
  for (std::size_t i = 0; i < products.size(); ++i) body += text(products[i], static_cast<int>(i));
  const std::vector<emulator::Options> policies = test::policies();
  for (std::size_t i = 0; i < products.size(); ++i) {
    const Product& p = products[i];
    INFO(p.name() << ", swizzles " << p.swizzle_a << " and " << p.swizzle_b << ", transposed "
                  << p.transpose_a << p.transpose_b);
    Operand a = {p.a, 64, p.k, p.swizzle_a, p.transpose_a};
    Operand b = {p.b, p.n, p.k, p.swizzle_b, p.transpose_b};
    a.fill(3);
    b.fill(5);
    Words memory(memory_bytes / 4), o(128 * p.registers());
    a.put(memory, 0);
    b.put(memory, b_at);
    Words fragments = fragments_of(a);
    SmallKernel k(body);
    k.shared_bytes = memory_bytes;
    k.fault = static_cast<int>(i);
    k.reads("u32", "memory", memory).reads("u32", "fragments", fragments).writes("u32", "o", o);
    k.run(policies[i % policies.size()]);
    bool same = true;
    for (std::size_t row = 0; row < 64; ++row) {
      for (std::size_t column = 0; column < p.n; ++column) {
        int sum = 0;
        for (std::size_t x = 0; x < p.k; ++x) {
          sum += meaning(p.a, a.at(row, x)) * meaning(p.b, b.at(column, x));
        }
        same = same && element(o, p, row, column) == 2.0 * sum;
      }
    }
    CHECK(same);
  }
}

}  // namespace

TEST_CASE("wgmma multiplies every pair of floats into f32") {
  std::vector<Product> products;
  for (const bool rs : {false, true}) {
    for (const char* type : {"bf16", "f16"}) {
      products.push_back({.d = "f32", .a = type, .b = type, .n = 24, .k = 16, .rs = rs});
    }
    products.push_back({.d = "f32", .a = "tf32", .b = "tf32", .n = 40, .k = 8, .rs = rs});
    for (const char* a : {"e4m3", "e5m2"}) {
      for (const char* b : {"e4m3", "e5m2"}) {
        products.push_back({.d = "f32", .a = a, .b = b, .n = 16, .k = 32, .rs = rs});
      }
    }
  }
  check(products);
}

TEST_CASE("wgmma multiplies f16 and 8-bit floats into f16") {
  std::vector<Product> products;
  for (const bool rs : {false, true}) {
    products.push_back({.d = "f16", .a = "f16", .b = "f16", .n = 40, .k = 16, .rs = rs});
    for (const char* a : {"e4m3", "e5m2"}) {
      for (const char* b : {"e4m3", "e5m2"}) {
        products.push_back({.d = "f16", .a = a, .b = b, .n = 8, .k = 32, .rs = rs});
      }
    }
  }
  check(products);
}

TEST_CASE("wgmma multiplies every pair of 8-bit integers into s32") {
  std::vector<Product> products;
  for (const bool rs : {false, true}) {
    for (const char* a : {"s8", "u8"}) {
      for (const char* b : {"s8", "u8"}) {
        products.push_back({.d = "s32", .a = a, .b = b, .n = 24, .k = 32, .rs = rs});
      }
    }
  }
  check(products);
}

TEST_CASE("wgmma takes K-major operands of every size in every swizzle") {
  std::vector<Product> products;
  for (const int swizzle : {0, 32, 64, 128}) {
    products.push_back({.d = "f32",
                        .a = "bf16",
                        .b = "bf16",
                        .n = 64,
                        .k = 16,
                        .swizzle_a = swizzle,
                        .swizzle_b = swizzle});
    products.push_back({.d = "f32",
                        .a = "tf32",
                        .b = "tf32",
                        .n = 8,
                        .k = 8,
                        .swizzle_a = swizzle,
                        .swizzle_b = 128});
    products.push_back({.d = "s32",
                        .a = "s8",
                        .b = "u8",
                        .n = 32,
                        .k = 32,
                        .swizzle_a = 64,
                        .swizzle_b = swizzle});
  }
  check(products);
}

TEST_CASE("wgmma takes MN-major operands of 16 bits in every swizzle") {
  std::vector<Product> products;
  for (const int swizzle : {0, 32, 64, 128}) {
    for (const int which : {1, 2, 3}) {
      products.push_back({.d = "f32",
                          .a = "bf16",
                          .b = "bf16",
                          .n = 64,
                          .k = 16,
                          .swizzle_a = swizzle,
                          .swizzle_b = swizzle,
                          .transpose_a = (which & 1) != 0,
                          .transpose_b = (which & 2) != 0});
    }
    products.push_back({.d = "f32",
                        .a = "f16",
                        .b = "f16",
                        .n = 128,
                        .k = 16,
                        .swizzle_b = swizzle,
                        .transpose_b = true,
                        .rs = true});
  }
  check(products);
}

TEST_CASE("wgmma has results of 8 to 256 columns") {
  check({{.d = "f32", .a = "bf16", .b = "bf16", .n = 8, .k = 16, .swizzle_a = 32, .swizzle_b = 32},
         {.d = "f32", .a = "f16", .b = "f16", .n = 248, .k = 16, .swizzle_b = 128},
         {.d = "f32", .a = "bf16", .b = "bf16", .n = 256, .k = 16, .swizzle_b = 128, .rs = true},
         {.d = "s32", .a = "u8", .b = "s8", .n = 256, .k = 32, .swizzle_b = 128}});
}

TEST_CASE("groups of products are done in their order, accumulators in flight are left alone") {
  // Two accumulators by two groups: wgmma_wait<1> gives back the first alone.
  Words o(4);
  SmallKernel k(R"(
  const u32 smem = pl::shared_base(), t = pl::thread();
  bf16 ones[8];
  PL_UNROLL for (i32 i = 0; i < 8; ++i) ones[i] = pl::to<bf16>(1.0f);
  pl::store_shared<8>(smem + 16 * t, ones);
  pl::store_shared<8>(smem + 2048 + 16 * t, ones, t < 16);
  pl::fence_async_shared();
  pl::warpgroup_sync();
  const u64 a = pl::matrix_descriptor(smem, 1024, 128, 0), b = pl::matrix_descriptor(smem + 2048, 128, 128, 0);
  f32 d[4] = {1, 1, 1, 1}, e[4];
  pl::wgmma_fence();
  pl::wgmma_m64n8k16_f32_bf16_bf16(d, a, b, true);
  pl::wgmma_commit();
  pl::wgmma_m64n8k16_f32_bf16_bf16(e, a, b, false);
  pl::wgmma_m64n8k16_f32_bf16_bf16(e, a, b, true);
  pl::wgmma_commit();
  pl::wgmma_wait<1>();
  pl::wgmma_registers(d);
  const f32 first = d[3];
  pl::wgmma_wait<0>();
  pl::wgmma_registers(e);
  const u32 v = u32(first + 100 * e[0]);
  if (t % 32 == 0) pl::store_global(o + t / 32, &v);)");
  k.writes("u32", "o", o);
  for (const emulator::Options& options : test::policies()) {
    INFO(test::describe(options));
    k.run(options);
    REQUIRE(o == Words(4, 3217));
  }
}
