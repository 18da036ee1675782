#include "tests/support/hopper_kernels.hpp"

#include <bit>
#include <cmath>
#include <utility>

namespace palladium::test {

extern const char* const gemm_source;
extern const char* const attention_source;

namespace {

std::string substitute(std::string text,
                       const std::vector<std::pair<std::string, int>>& parameters) {
  for (const auto& [name, value] : parameters) {
    const std::string key = "{" + name + "}";
    for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at)) {
      text.replace(at, key.size(), std::to_string(value));
    }
  }
  return text;
}

std::int64_t cdiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

emulator::Buffer buffer(std::string name, std::vector<std::uint16_t>& v, bool written = false) {
  return {.base = v.data(),
          .bytes = v.size() * 2,
          .name = std::move(name),
          .written = written,
          .element_bytes = 2};
}

std::vector<std::uint16_t> eighths(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint16_t> v = small_integers(count, seed);
  for (std::uint16_t& x : v) x = to_bf16(from_bf16(x) / 8);
  return v;
}

}  // namespace

std::string Gemm::text() const {
  return substitute(gemm_source,
                    {{"BN", bn}, {"CLUSTER", cluster}, {"STAGES", stages}, {"FAULT", fault}});
}

std::uint32_t Gemm::shared_bytes() const {
  return static_cast<std::uint32_t>(stages * (128 + bn) * 64 * 2 + 4 * 64 * 64 * 2 + 16 * stages);
}

std::string Attention::text() const {
  return substitute(attention_source, {{"STAGES", stages}, {"FAULT", fault}});
}

std::uint32_t Attention::shared_bytes() const {
  return static_cast<std::uint32_t>((2 + 2 * stages) * 128 * 64 * 2 + 8 + 16 * stages);
}

TensorMapSpec map_of(std::vector<std::uint16_t>& array, int rows, int columns, int box_rows,
                     int box_columns) {
  TensorMapSpec spec;
  spec.type = TensorMapType::bf16;
  spec.rank = 2;
  spec.base = array.data();
  spec.extents = {static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows)};
  spec.strides = {static_cast<std::uint64_t>(columns) * 2};
  spec.box = {static_cast<std::uint32_t>(box_columns), static_cast<std::uint32_t>(box_rows)};
  spec.swizzle = 128;
  return spec;
}

std::vector<std::uint16_t> small_integers(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint16_t> v(count);
  std::uint64_t state = seed * 2 + 1;
  for (std::uint16_t& x : v) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x = to_bf16(static_cast<float>(static_cast<int>((state >> 33) % 9) - 4));
  }
  return v;
}

std::uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float from_bf16(std::uint16_t x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
}

namespace {

struct AttentionArrays {
  std::vector<std::uint16_t> q, k, v;
  explicit AttentionArrays(const Attention& a)
      : q(eighths(static_cast<std::size_t>(a.length) * 64, 1)),
        k(eighths(static_cast<std::size_t>(a.length) * 64, 2)),
        v(eighths(static_cast<std::size_t>(a.length) * 64, 3)) {}
};

}  // namespace

GemmArrays::GemmArrays(const Gemm& g)
    : a(small_integers(static_cast<std::size_t>(g.m) * g.k, 1)),
      b(small_integers(static_cast<std::size_t>(g.n) * g.k, 2)) {}

std::vector<std::uint16_t> run_gemm(const Gemm& g, const emulator::Options& options) {
  GemmArrays arrays(g);
  return run_gemm(g, arrays, options);
}

std::vector<std::uint16_t> run_gemm(const Gemm& g, GemmArrays& arrays,
                                    const emulator::Options& options) {
  std::vector<std::uint16_t> c(static_cast<std::size_t>(g.m) * g.n, 0x7fc0);
  TensorMap a = emulator::encode(map_of(arrays.a, g.m, g.k, 128, 64));
  TensorMap b = emulator::encode(map_of(arrays.b, g.n, g.k, g.bn / g.cluster, 64));
  TensorMap out = emulator::encode(map_of(c, g.m, g.n, 64, 64));
  int k = g.k;
  void* parameters[] = {&a, &b, &out, &k};
  const emulator::Buffer buffers[] = {buffer("args[0]", arrays.a), buffer("args[1]", arrays.b),
                                      buffer("outputs[0]", c, true)};
  const std::string text = g.text();
  emulator::run({.kernel = "gemm",
                 .text = text,
                 .grid = {cdiv(cdiv(g.m, 128), g.cluster) * g.cluster, cdiv(g.n, g.bn), 1},
                 .cluster = {g.cluster, 1, 1},
                 .warpgroups = 3,
                 .shared_bytes = g.shared_bytes(),
                 .parameters = parameters,
                 .buffers = buffers,
                 .options = options});
  return c;
}

std::vector<std::uint16_t> reference_gemm(const Gemm& g) {
  const GemmArrays arrays(g);
  std::vector<std::uint16_t> c(static_cast<std::size_t>(g.m) * g.n);
  for (int i = 0; i < g.m; ++i) {
    for (int j = 0; j < g.n; ++j) {
      float sum = 0;
      for (int l = 0; l < g.k; ++l) {
        sum += from_bf16(arrays.a[static_cast<std::size_t>(i) * g.k + l]) *
               from_bf16(arrays.b[static_cast<std::size_t>(j) * g.k + l]);
      }
      c[static_cast<std::size_t>(i) * g.n + j] = to_bf16(sum);
    }
  }
  return c;
}

std::vector<std::uint16_t> run_attention(const Attention& a, const emulator::Options& options) {
  AttentionArrays arrays(a);
  std::vector<std::uint16_t> o(static_cast<std::size_t>(a.length) * 64, 0x7fc0);
  TensorMap q = emulator::encode(map_of(arrays.q, a.length, 64, 128, 64));
  TensorMap k = emulator::encode(map_of(arrays.k, a.length, 64, 128, 64));
  TensorMap v = emulator::encode(map_of(arrays.v, a.length, 64, 128, 64));
  TensorMap out = emulator::encode(map_of(o, a.length, 64, 64, 64));
  int length = a.length;
  float scale = a.scale;
  void* parameters[] = {&q, &k, &v, &out, &length, &scale};
  const emulator::Buffer buffers[] = {buffer("q", arrays.q), buffer("k", arrays.k),
                                      buffer("v", arrays.v), buffer("o", o, true)};
  const std::string text = a.text();
  emulator::run({.kernel = "attention",
                 .text = text,
                 .grid = {a.length / 128, 1, 1},
                 .warpgroups = 3,
                 .shared_bytes = a.shared_bytes(),
                 .parameters = parameters,
                 .buffers = buffers,
                 .options = options});
  return o;
}

std::vector<double> reference_attention(const Attention& a) {
  const AttentionArrays arrays(a);
  std::vector<double> o(static_cast<std::size_t>(a.length) * 64), p(a.length);
  const auto at = [](const std::vector<std::uint16_t>& x, int row, int column) {
    return static_cast<double>(from_bf16(x[static_cast<std::size_t>(row) * 64 + column]));
  };
  for (int i = 0; i < a.length; ++i) {
    double sum = 0;
    for (int j = 0; j < a.length; ++j) {
      double score = 0;
      for (int c = 0; c < 64; ++c) score += at(arrays.q, i, c) * at(arrays.k, j, c);
      sum += p[j] = std::exp(score * a.scale);
    }
    for (int c = 0; c < 64; ++c) {
      double value = 0;
      for (int j = 0; j < a.length; ++j) value += p[j] * at(arrays.v, j, c);
      o[static_cast<std::size_t>(i) * 64 + c] = value / sum;
    }
  }
  return o;
}

int line_of(const std::string& text, const std::string& marker) {
  const std::size_t at = text.find("// " + marker + "\n");
  if (at == text.npos) return 0;
  int line = 1;
  for (std::size_t i = 0; i < at; ++i) line += text[i] == '\n';
  return line;
}

}  // namespace palladium::test
