#include "runtime/ops/blocks.hpp"

#include <algorithm>
#include <limits>

#include "palladium/palladium.hpp"

namespace palladium::ops {
namespace {

// Of a H100 or H200 (benchmarks/NOTES.md): a clock's multiply-adds of operands of one byte, and the
// least bytes that L2 gives a multiprocessor in one when all ask for some.
constexpr double multiply_adds = 4096, bytes_of_clock = 59;
constexpr std::int64_t multiprocessors = 132;
constexpr std::int64_t in_large_clusters = 128;  // of 4 and 8 blocks: the others have none
// Not measured: what it takes blocks of a cluster to begin and to meet, and the bytes that one
// reads from another's shared memory in a clock. A split must promise more than that it is as fast.
constexpr double meeting_clocks = 2000, bytes_of_peer = 14, worth = 1.2;

struct Tile {
  int m, n;
  bool for_16_bits = false;  // sums take all registers: measured of these alone
};
// The first of those that take equally long is chosen: fewer instructions for each product.
constexpr Tile tiles[] = {{128, 256, true}, {128, 128}, {64, 256, true}, {64, 128},
                          {128, 64},        {64, 64},   {64, 32}};
// Up to such a size each is a few rows, and twice as much of k is fetched at once.
constexpr int few = 128;

constexpr std::int64_t least_class = 64, large = std::int64_t{1} << 20;

// No more than this many, whatever the call; `large` where nobody knows.
std::int64_t most_of(const Dim& d) {
  if (d.is_static()) return std::clamp<std::int64_t>(d.value(), 1, large);
  try {
    return std::clamp<std::int64_t>(size_class(d, least_class), 1, large);
  } catch (const CompileError&) {
    return large;
  }
}

struct Sizes {
  std::int64_t rows, columns, batches, depth;
  std::int64_t waves(const Tile& t, int parts) const {
    return cdiv(cdiv(rows, t.m) * cdiv(columns, t.n) * batches * parts,
                parts > 2 ? in_large_clusters : multiprocessors);
  }
};

// Of all blocks that one multiprocessor takes, where so many share the elements of k.
double clocks(const Tile& t, const Sizes& s, int bytes, int parts) {
  const double products = t.m * t.n * bytes / multiply_adds,
               operands = (t.m + t.n) * bytes / bytes_of_clock,
               sums = (parts - 1) * t.m * t.n * 4 / bytes_of_peer,
               meeting = parts == 1 ? 0 : meeting_clocks + sums;
  return static_cast<double>(s.waves(t, parts)) *
         (std::max(products, operands) * static_cast<double>(cdiv(s.depth, parts)) + meeting);
}

struct Choice {
  Tile tile = {};
  int parts = 1;
  double clocks = std::numeric_limits<double>::infinity();
};

Choice fastest(const Sizes& s, int bytes, int parts) {
  Choice best;
  for (const Tile& t : tiles) {
    if (t.for_16_bits && bytes != 2) continue;
    const double taken = clocks(t, s, bytes, parts);
    if (taken < best.clocks) best = {t, parts, taken};
  }
  return best;
}

Choice fastest(const Sizes& s, int bytes) {
  const Choice whole = fastest(s, bytes, 1);
  Choice split;
  for (const int parts : {2, 4, 8}) {
    const Choice other = fastest(s, bytes, parts);
    if (other.clocks < split.clocks) split = other;
  }
  return split.clocks * worth < whole.clocks ? split : whole;
}

// Who is alone on a multiprocessor has its memory for copies that are under way.
int stages_of(const MatmulBlocks& b, int bytes) {
  constexpr int memory = 192 << 10, fewest = 3, most = 8;
  return std::clamp(memory / ((b.m + b.n) * b.k * bytes), fewest, most);
}

int given_or(int given, int otherwise) { return given > 0 ? given : otherwise; }

bool by_tensor_cores(DType t, const MatmulOptions& o) {
  return t.bytes() <= 2 || (t == f32 && o.precision == tf32);
}

// Whatever the sizes are: the others of those that are given.
MatmulBlocks usual(DType t, const MatmulOptions& o) {
  const bool large = by_tensor_cores(t, o);
  const int k = o.trans_b && t.bytes() == 1 ? 128 : t.bytes() <= 2 ? 64 : 32;
  return {.m = given_or(o.block_m, large ? 128 : 64),
          .n = given_or(o.block_n, large ? 128 : 64),
          .k = given_or(o.block_k, k),  // a row has 128 bytes
          .split_k = std::max(o.split_k, 1),
          .persistent = large && o.split_k <= 1,
          .are_chosen = o.block_m == 0 && o.block_n == 0 && o.block_k == 0};
}

}  // namespace

MatmulBlocks blocks_of(DType t, const Dim& rows, const Dim& columns, const Dim& depth,
                       const MatmulOptions& options) {
  MatmulBlocks b = usual(t, options);
  if (!by_tensor_cores(t, options) || options.block_m > 0 || options.block_n > 0) return b;
  const Sizes sizes{most_of(rows), most_of(columns), most_of(batch_size()), most_of(depth)};
  const Choice chosen =
      options.split_k > 0 ? fastest(sizes, t.bytes(), options.split_k) : fastest(sizes, t.bytes());
  b.m = chosen.tile.m, b.n = chosen.tile.n, b.split_k = chosen.parts;
  if (b.m + b.n <= few && options.block_k == 0) b.k *= 2;
  b.persistent = chosen.parts == 1 && sizes.waves(chosen.tile, 1) > 1;
  if (!b.persistent && b.m * b.n < few * few) b.stages = stages_of(b, t.bytes());
  return b;
}

}  // namespace palladium::ops
