#include "palladium/ops/registry.hpp"

#include "palladium/ops/add.hpp"
#include "palladium/ops/attention.hpp"
#include "palladium/ops/blur.hpp"
#include "palladium/ops/cross_entropy.hpp"
#include "palladium/ops/layer_norm.hpp"
#include "palladium/ops/matmul.hpp"
#include "palladium/ops/rms_norm.hpp"
#include "palladium/ops/softmax.hpp"
#include "palladium/ops/transpose.hpp"

namespace palladium::ops {
namespace {

// Of few rows, so that no array is large.
Dim some(const char* name, std::int64_t multiple, std::int64_t most = 16) {
  return dim(name, {.multiple_of = multiple, .at_most = most});
}

ShapeDtype rows(std::int64_t multiple, std::int64_t columns) {
  return {{some("m", multiple), some("n", multiple, columns)}, f32};
}
ShapeDtype columns(std::int64_t multiple, std::int64_t most) {
  return {{some("n", multiple, most)}, f32};
}

std::vector<ShapeDtype> of_attention(std::int64_t multiple) {
  const Dim batch = some("b", multiple), queries = some("q", multiple), keys = some("k", multiple);
  const ShapeDtype kv{{batch, 2, keys, 128}, f16};
  return {{{batch, 8, queries, 128}, f16}, kv, kv};
}

}  // namespace

std::span<const Entry> registry() {
  static const std::vector<Entry> entries = {
      {"add", "x + y of two vectors", add, {{{dim("n")}, f32}, {{dim("n")}, f32}}},
      {"softmax",
       "softmax along the rows of a matrix",
       softmax,
       {{{dim("m"), 1000}, f32}},
       [](std::int64_t multiple) { return std::vector{rows(multiple, 1000)}; }},
      {"layer_norm",
       "rows with mean 0 and variance 1, scaled and shifted",
       [] { return layer_norm(); },
       {{{dim("m"), 768}, f32}, {{768}, f32}, {{768}, f32}},
       [](std::int64_t n) {
         return std::vector{rows(n, 768), columns(n, 768), columns(n, 768)};
       }},
      {"rms_norm",
       "rows with mean square 1, scaled",
       [] { return rms_norm(); },
       {{{dim("m"), 768}, f32}, {{768}, f32}},
       [](std::int64_t n) {
         return std::vector{rows(n, 768), columns(n, 768)};
       }},
      {"cross_entropy",
       "-log softmax of each row at its label",
       [] { return cross_entropy(); },
       {{{dim("m"), 1000}, f32}, {{dim("m")}, i32}},
       [](std::int64_t n) {
         return std::vector{rows(n, 1000), ShapeDtype{{some("m", n)}, i32}};
       }},
      {"matmul",
       "product of two matrices of any size",
       [] { return matmul(); },
       {{{dim("m"), 700}, f32}, {{700, 300}, f32}},
       [](std::int64_t n) {
         const Dim depth = some("k", n);
         return std::vector{ShapeDtype{{some("m", n), depth}, f32},
                            ShapeDtype{{depth, some("n", n)}, f32}};
       }},
      {"attention",
       "attention of queries to keys, by heads",
       [] { return attention(); },
       {{{2, 8, 1000, 128}, f16}, {{2, 2, 1000, 128}, f16}, {{2, 2, 1000, 128}, f16}},
       of_attention},
      {"transpose", "columns as rows", transpose, {{{dim("m"), dim("n")}, f32}}},
      {"blur",
       "mean over 5x5 pixels of an 8-bit image",
       blur,
       {{{480, 640}, u8}},
       [](std::int64_t n) {
         return std::vector{ShapeDtype{{some("m", n), some("n", n)}, u8}};
       }},
  };
  return entries;
}

const Entry& find(const std::string& name, Location at) {
  std::string names;
  for (const Entry& e : registry()) {
    if (name == e.name) return e;
    names += (names.empty() ? "" : ", ") + std::string(e.name);
  }
  throw CompileError(at, "no shipped kernel is named '" + name + "'; there are " + names);
}

}  // namespace palladium::ops
