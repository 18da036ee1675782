// Two kernels in the form in which Hopper's are emitted, and how the emulator runs them: tests,
// benchmarks and gpu_check share them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/base/tensor_map.hpp"
#include "runtime/emulator/emulator.hpp"

namespace palladium::test {

/// tests/kernels/gemm.cu; `fault` 0 is correct.
struct Gemm {
  int m = 128, n = 128, k = 256;
  int bn = 128, cluster = 1, stages = 4, fault = 0;

  std::string text() const;
  std::uint32_t shared_bytes() const;
};

/// tests/kernels/attention.cu.
struct Attention {
  int length = 256;
  int stages = 2, fault = 0;
  float scale = 0.125f;

  std::string text() const;
  std::uint32_t shared_bytes() const;
};

/// An array of rows x columns of bf16, and the map of its boxes.
TensorMapSpec map_of(std::vector<std::uint16_t>& array, int rows, int columns, int box_rows,
                     int box_columns);

/// Small integers, in bf16, by a seed.
std::vector<std::uint16_t> small_integers(std::size_t count, std::uint64_t seed);

std::uint16_t to_bf16(float x);
float from_bf16(std::uint16_t x);

/// A and B, made by small_integers.
struct GemmArrays {
  std::vector<std::uint16_t> a, b;
  explicit GemmArrays(const Gemm& g);
};

/// C, whose sums are exact.
std::vector<std::uint16_t> run_gemm(const Gemm& g, const emulator::Options& options);
std::vector<std::uint16_t> run_gemm(const Gemm& g, GemmArrays& arrays,
                                    const emulator::Options& options);
std::vector<std::uint16_t> reference_gemm(const Gemm& g);

/// O, of Q, K and V made of small multiples of 1/8; and by doubles.
std::vector<std::uint16_t> run_attention(const Attention& a, const emulator::Options& options);
std::vector<double> reference_attention(const Attention& a);

/// The line of `text` that ends in the comment `// <marker>`; 0 if none does.
int line_of(const std::string& text, const std::string& marker);

}  // namespace palladium::test
