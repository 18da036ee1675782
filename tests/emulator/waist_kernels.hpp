// Kernel texts as the printer emits them, written by hand, and a launcher for them.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/emulator/emulator.hpp"

namespace palladium::test {

// x + y of m elements, four per thread.
inline constexpr std::string_view add_text =
    R"(PL_KERNEL(128) add(const f32* x, const f32* y, f32* o, i32 m) {
  const i32 i = pl::block_x() * 512 + 4 * static_cast<i32>(pl::thread());
  f32 a[4], b[4], c[4];
  if (m % 4 == 0) {
    pl::load_global<4>(a, x + i, i < m);
    pl::load_global<4>(b, y + i, i < m);
  } else {
    PL_UNROLL for (i32 k = 0; k < 4; ++k) pl::load_global(&a[k], x + i + k, i + k < m);
    PL_UNROLL for (i32 k = 0; k < 4; ++k) pl::load_global(&b[k], y + i + k, i + k < m);
  }
  PL_UNROLL for (i32 k = 0; k < 4; ++k) c[k] = a[k] + b[k];
  PL_UNROLL for (i32 k = 0; k < 4; ++k) pl::store_global(o + i + k, &c[k], i + k < m);
}
PL_EXPORT(add)
)";

// Row softmax: one warpgroup per row of n elements, streamed; two rows per block.
inline constexpr std::string_view softmax_text =
    R"(PL_KERNEL(256) softmax(const f32* x, f32* o, i64 m, i32 n) {
  const u32 t = pl::thread();
  const u32 scratch = pl::shared_base() + 32 * pl::warpgroup();
  const i64 row = 2 * pl::block_x() + static_cast<i64>(pl::warpgroup());
  const bool live = row < m;
  f32 v[1], top = pl::min_value<f32>(), sum = 0;
  PL_NOUNROLL for (i32 c = 0; c < n; c += 128) {
    const i32 i = c + static_cast<i32>(t);
    pl::load_global(v, x + row * n + i, live && i < n);
    top = pl::max(top, i < n ? v[0] : pl::min_value<f32>());
  }
  PL_UNROLL for (u32 d = 16; d > 0; d /= 2) top = pl::max(top, pl::shuffle_xor(top, d));
  pl::store_shared(scratch + 4 * pl::warp(), &top, pl::lane() == 0);
  pl::warpgroup_sync<2>();
  f32 part[4];
  pl::load_shared<4>(part, scratch);
  top = pl::max(pl::max(part[0], part[1]), pl::max(part[2], part[3]));
  PL_NOUNROLL for (i32 c = 0; c < n; c += 128) {
    const i32 i = c + static_cast<i32>(t);
    pl::load_global(v, x + row * n + i, live && i < n);
    sum = sum + (i < n ? pl::exp(v[0] - top) : 0.0f);
  }
  PL_UNROLL for (u32 d = 16; d > 0; d /= 2) sum = sum + pl::shuffle_xor(sum, d);
  pl::store_shared(scratch + 16 + 4 * pl::warp(), &sum, pl::lane() == 0);
  pl::warpgroup_sync<2>();
  pl::load_shared<4>(part, scratch + 16);
  sum = (part[0] + part[1]) + (part[2] + part[3]);
  PL_NOUNROLL for (i32 c = 0; c < n; c += 128) {
    const i32 i = c + static_cast<i32>(t);
    pl::load_global(v, x + row * n + i, live && i < n);
    v[0] = pl::exp(v[0] - top) / sum;
    pl::store_global(o + row * n + i, v, live && i < n);
  }
}
PL_EXPORT(softmax)
)";

// o = a b for 64x64x64 bf16, f32 out: tiles in swizzled shared memory, ldmatrix, mma.sync.
inline constexpr std::string_view matmul_text =
    R"(PL_KERNEL(128) matmul(const bf16* a, const bf16* b, f32* o) {
  const u32 t = pl::thread(), l = pl::lane(), w = pl::warp();
  const u32 sa = pl::shared_base(), sb = sa + 8192;
  PL_UNROLL for (u32 i = 0; i < 4; ++i) {  // 64 rows of 8 chunks of 16 bytes
    const u32 chunk = t + 128 * i, row = chunk / 8, to = row * 128 + ((chunk % 8 ^ row % 8) * 16);
    bf16 v[8];
    pl::load_global_nc<8>(v, a + chunk * 8);
    pl::store_shared<8>(sa + to, v);
    pl::load_global_nc<8>(v, b + chunk * 8);
    pl::store_shared<8>(sb + to, v);
  }
  pl::warpgroup_sync();
  f32 d[32];
  PL_UNROLL for (u32 i = 0; i < 32; ++i) d[i] = 0;
  PL_UNROLL for (u32 k = 0; k < 4; ++k) {
    bf16 x[8];
    const u32 row = 16 * w + l % 16, col = 2 * k + l / 16;
    pl::ldmatrix_x4(x, sa + row * 128 + ((col ^ row % 8) * 16));
    PL_UNROLL for (u32 n = 0; n < 4; ++n) {
      bf16 y[8];
      const u32 kk = 16 * k + l % 16, cc = 2 * n + l / 16;
      pl::ldmatrix_x4_trans(y, sb + kk * 128 + ((cc ^ kk % 8) * 16));
      pl::mma_m16n8k16(&d[8 * n], x, y);
      pl::mma_m16n8k16(&d[8 * n + 4], x, y + 4);
    }
  }
  f32* out = o + (16 * w + l / 4) * 64 + 2 * (l % 4);
  PL_UNROLL for (u32 n = 0; n < 8; ++n) {
    pl::store_global<2>(out + 8 * n, &d[4 * n]);
    pl::store_global<2>(out + 8 * n + 512, &d[4 * n + 2]);
  }
}
PL_EXPORT(matmul)
)";

/// A buffer over a vector.
template <class T>
emulator::Buffer buffer(std::string name, std::vector<T>& v, bool written = false) {
  return {.base = v.data(),
          .bytes = v.size() * sizeof(T),
          .name = std::move(name),
          .written = written,
          .element_bytes = sizeof(T)};
}

/// Sets PALLADIUM_CXX for the length of a scope.
class HostCompiler {
 public:
  explicit HostCompiler(const char* value) {
    if (const char* old = std::getenv("PALLADIUM_CXX")) old_ = old;
    setenv("PALLADIUM_CXX", value, 1);
  }
  ~HostCompiler() {
    if (old_.empty()) {
      unsetenv("PALLADIUM_CXX");
    } else {
      setenv("PALLADIUM_CXX", old_.c_str(), 1);
    }
  }

 private:
  std::string old_;
};

/// g++ and a clang++, as far as this machine has them.
inline std::vector<std::string> host_compilers() {
  std::vector<std::string> found;
  for (const char* name : {"g++", "clang++-16", "clang++"}) {
    if (found.size() == 2) break;
    if (std::system((std::string("command -v ") + name + " >/dev/null").c_str()) == 0) {
      found.push_back(name);
    }
  }
  return found;
}

}  // namespace palladium::test
