// mma.sync, ldmatrix and stmatrix for a whole warp; the fragment maps stand in
// codegen/device/waist.def. Compiled without contraction: a product is rounded before it is added,
// on every CPU.
#include <bit>
#include <cstdint>
#include <cstring>

#include "runtime/emulator/machine.hpp"
#include "runtime/emulator/numbers.hpp"

namespace palladium::emulator {
namespace {

struct Place {
  int row, column;
};

// Element e of lane l in the A operand (m16 x k), for elements of `bytes` bytes.
Place a_place(int l, int e, int bytes) {
  const int g = l / 4, c = l % 4;
  switch (bytes) {
  case 1: return {g + 8 * (e / 4 % 2), 4 * c + e % 4 + 16 * (e / 8)};
  case 2: return {g + 8 * (e / 2 % 2), 2 * c + e % 2 + 8 * (e / 4)};
  default: return {g + 8 * (e % 2), c + 4 * (e / 2)};
  }
}

// Element e of lane l in the B operand (k x n8).
Place b_place(int l, int e, int bytes) {
  const int g = l / 4, c = l % 4;
  switch (bytes) {
  case 1: return {4 * c + e % 4 + 16 * (e / 4), g};
  case 2: return {2 * c + e % 2 + 8 * (e / 2), g};
  default: return {c + 4 * e, g};
  }
}

Place d_place(int l, int e) { return {l / 4 + 8 * (e / 2), 2 * (l % 4) + e % 2}; }

struct Formats {
  abi::Format a, b;
};

Formats formats_of(abi::Product product) {
  using enum abi::Format;
  switch (product) {
  case abi::Product::f16_f32: return {f16, f16};
  case abi::Product::bf16_f32: return {bf16, bf16};
  case abi::Product::tf32_f32: return {tf32, tf32};
  case abi::Product::i8_i8: return {i8, i8};
  case abi::Product::i8_u8: return {i8, u8};
  case abi::Product::u8_i8: return {u8, i8};
  case abi::Product::u8_u8: return {u8, u8};
  case abi::Product::e4m3_e4m3: return {e4m3, e4m3};
  case abi::Product::e4m3_e5m2: return {e4m3, e5m2};
  case abi::Product::e5m2_e4m3: return {e5m2, e4m3};
  case abi::Product::e5m2_e5m2: return {e5m2, e5m2};
  }
  return {};
}

bool is_integer(abi::Format f) { return f == abi::Format::i8 || f == abi::Format::u8; }

template <class Number>
Number read(const void* operand, int e, abi::Format format) {
  const auto byte = [&] { return static_cast<const std::uint8_t*>(operand)[e]; };
  const auto half = [&] { return static_cast<const std::uint16_t*>(operand)[e]; };
  switch (format) {
  case abi::Format::i8: return static_cast<Number>(static_cast<std::int8_t>(byte()));
  case abi::Format::u8: return static_cast<Number>(byte());
  case abi::Format::e4m3: return static_cast<Number>(widen_e4m3(byte()));
  case abi::Format::e5m2: return static_cast<Number>(widen_e5m2(byte()));
  case abi::Format::f16: return static_cast<Number>(widen_f16(half()));
  case abi::Format::bf16: return static_cast<Number>(widen_bf16(half()));
  default: return static_cast<Number>(round_to_tf32(static_cast<const float*>(operand)[e]));
  }
}

}  // namespace

template <class Number>
static void multiply_warp(std::span<Thread> lanes, int k, abi::Product product) {
  const Formats formats = formats_of(product);
  const int bytes = static_cast<int>(bytes_of(formats.a));
  // Sums wrap for integers, which unsigned arithmetic does.
  Number a[16][32], b[32][8], d[16][8];
  for (int l = 0; l < 32; ++l) {
    for (int e = 0; e < 16 * k / 32; ++e) {
      const Place p = a_place(l, e, bytes);
      a[p.row][p.column] = read<Number>(lanes[l].a, e, formats.a);
    }
    for (int e = 0; e < 8 * k / 32; ++e) {
      const Place p = b_place(l, e, bytes);
      b[p.row][p.column] = read<Number>(lanes[l].b, e, formats.b);
    }
    for (int e = 0; e < 4; ++e) {
      const Place p = d_place(l, e);
      std::memcpy(&d[p.row][p.column], static_cast<const std::byte*>(lanes[l].d) + 4 * e, 4);
    }
  }
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < k; ++j) {
      for (int n = 0; n < 8; ++n) d[i][n] += a[i][j] * b[j][n];
    }
  }
  for (int l = 0; l < 32; ++l) {
    for (int e = 0; e < 4; ++e) {
      const Place p = d_place(l, e);
      std::memcpy(static_cast<std::byte*>(lanes[l].d) + 4 * e, &d[p.row][p.column], 4);
    }
  }
}

void Machine::multiply(std::span<Thread> warp, int k, abi::Product product) {
  if (is_integer(formats_of(product).a)) {
    multiply_warp<std::uint32_t>(warp, k, product);
  } else {
    multiply_warp<float>(warp, k, product);
  }
}

// Lane l gives the address of row l % 8 of matrix l / 8; element [i][2c + h] of a matrix belongs to
// lane 4i + c, or of its transpose.
void Machine::read_matrices(std::span<Thread> warp, int matrices, bool transposed, int line) {
  std::uint16_t rows[8][8];
  for (int j = 0; j < matrices; ++j) {
    for (int r = 0; r < 8; ++r) move_row(warp[8 * j + r], rows[r], nullptr, line);
    for (int lane = 0; lane < 32; ++lane) {
      auto* out = static_cast<std::uint16_t*>(warp[lane].d) + 2 * j;
      for (int h = 0; h < 2; ++h) {
        const int i = lane / 4, k = 2 * (lane % 4) + h;
        out[h] = transposed ? rows[k][i] : rows[i][k];
      }
    }
  }
}

void Machine::write_matrices(std::span<Thread> warp, int matrices, bool transposed, int line) {
  std::uint16_t rows[8][8];
  for (int j = 0; j < matrices; ++j) {
    for (int lane = 0; lane < 32; ++lane) {
      const auto* in = static_cast<const std::uint16_t*>(warp[lane].a) + 2 * j;
      for (int h = 0; h < 2; ++h) {
        const int i = lane / 4, k = 2 * (lane % 4) + h;
        (transposed ? rows[k][i] : rows[i][k]) = in[h];
      }
    }
    for (int r = 0; r < 8; ++r) move_row(warp[8 * j + r], nullptr, rows[r], line);
  }
}

// A row of a matrix, at the address that `lane` gave and in its name: read into `to` or written
// from `from`.
void Machine::move_row(Thread& lane, void* to, const void* from, int line) {
  constexpr std::uint32_t bytes = 16;
  const Place at = shared(lane.operand, bytes, bytes, from != nullptr ? "writes" : "reads", line);
  std::byte* row = &at.block->shared[at.offset];
  if (from != nullptr) {
    mark_written(*at.block, at.offset, bytes, line);
    std::memcpy(row, from, bytes);
  } else {
    require_written(*at.block, at.offset, bytes, "reads", line);
    std::memcpy(to, row, bytes);
  }
  record_shared(*at.block, at.offset, bytes,
                {lane.agent, from != nullptr ? race::Kind::write : race::Kind::read,
                 race::Proxy::generic, static_cast<std::uint32_t>(line)},
                {&lane.agent, 1});
}

}  // namespace palladium::emulator
