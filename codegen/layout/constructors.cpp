#include "codegen/layout/constructors.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "palladium/error.hpp"

namespace palladium::layout {
namespace {

// Index bit `bit` of dimension `dim`; dim < 0 is replication.
struct Place {
  int dim = -1, bit = 0;
};

constexpr Place copies{};

using Places = std::vector<Place>;

std::uint32_t image(const Layout& l, Place p) {
  return p.dim < 0 ? 0 : 1u << (l.field_shift(p.dim) + p.bit);
}

Bits images(const Layout& l, const Places& places) {
  Bits list;
  for (const Place p : places) list.push_back(image(l, p));
  return list;
}

Layout make(const Extents& domain, std::vector<int> tile_bits, const Places& reg,
            const Places& lane, const Places& warp) {
  Layout l{domain, std::move(tile_bits), {}, {}, {}};
  l.reg = images(l, reg);
  l.lane = images(l, lane);
  l.warp = images(l, warp);
  return l;
}

int log2_ceil(std::int64_t n) {
  return n <= 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(n - 1));
}

void expect_rank(const char* what, const Extents& domain, std::size_t rank) {
  if (domain.size() != rank) {
    throw CompileError(std::string(what) + " layout: expected a value of rank " +
                       std::to_string(rank) + ", got rank " + std::to_string(domain.size()));
  }
}

struct WarpBits {
  int m = 0, n = 0;
};

bool is_width(int warps) { return warps == 4 || warps == 8 || warps == 16; }

WarpBits log2_of(Warps warps) {
  if (warps.m < 1 || warps.n < 1 || !is_width(warps.m * warps.n)) {
    throw InternalError("warps of a fragment: expected m * n to be 4, 8 or 16, got " +
                        std::to_string(warps.m) + " * " + std::to_string(warps.n));
  }
  return {log2_ceil(warps.m), log2_ceil(warps.n)};
}

int warp_bits_of(int warps) {
  if (!is_width(warps)) {
    throw InternalError("a layout: expected 4, 8 or 16 warps, got " + std::to_string(warps));
  }
  return log2_ceil(warps);
}

// Fragments consist of 32-bit words: log2 of the elements in one.
int word_bits(int element_bits) {
  switch (element_bits) {
  case 4: return 3;
  case 8: return 2;
  case 16: return 1;
  case 32: return 0;
  default:
    throw CompileError("tensor core operand: expected elements of 4, 8, 16 or 32 bits, got " +
                       std::to_string(element_bits));
  }
}

// Warp bits from the lowest: first those that step dimension m, then those that step n.
Places warp_places(WarpBits warps, Place m, Place n) {
  Places places;
  for (int i = 0; i < warps.m; ++i) places.push_back(m.dim < 0 ? m : Place{m.dim, m.bit + i});
  for (int i = 0; i < warps.n; ++i) places.push_back(n.dim < 0 ? n : Place{n.dim, n.bit + i});
  return places;
}

}  // namespace

Layout replicated(const Extents& domain, int warps) {
  const auto warp_bits = static_cast<std::size_t>(warp_bits_of(warps));
  return {domain, std::vector<int>(domain.size(), 0), {}, Bits(lane_bits, 0), Bits(warp_bits, 0)};
}

Layout strided(const Extents& domain, int vec, std::int64_t max_width, int warps) {
  const bool unlimited = max_width == full_width;
  const int thread_bits = lane_bits + warp_bits_of(warps);
  if (vec < 1 || !std::has_single_bit(static_cast<unsigned>(vec)) || max_width < 1 ||
      !(unlimited || std::has_single_bit(static_cast<std::uint64_t>(max_width)))) {
    throw InternalError("strided layout: expected powers of two, got vector " +
                        std::to_string(vec) + ", width " + std::to_string(max_width));
  }
  const int vec_bits = log2_ceil(vec), wanted = vec_bits + thread_bits;
  Places places;
  std::vector<int> tile_bits(domain.size(), 0);
  for (int d = static_cast<int>(domain.size()) - 1; d >= 0; --d) {
    const bool last = d + 1 == static_cast<int>(domain.size());
    const int cap = log2_ceil(last ? std::min(domain[d], max_width) : domain[d]);
    while (tile_bits[d] < cap && static_cast<int>(places.size()) < wanted) {
      places.push_back({d, tile_bits[d]++});
    }
  }
  const auto reg_end = places.begin() + std::min<std::ptrdiff_t>(vec_bits, std::ssize(places));
  const Places reg(places.begin(), reg_end);
  Places thread(reg_end, places.end());
  thread.resize(static_cast<std::size_t>(thread_bits), copies);
  return make(domain, tile_bits, reg, Places(thread.begin(), thread.begin() + lane_bits),
              Places(thread.begin() + lane_bits, thread.end()));
}

namespace {

// Whether a tile may have a bit of the dimension: rows are not padded, others a little.
bool may_be_in_tile(const Extents& domain, int d, int bit) {
  constexpr std::int64_t least = 8;  // elements for each that is padding
  const std::int64_t tile = std::int64_t{2} << bit, padding = (tile - domain[d] % tile) % tile;
  const bool is_last = d + 1 == static_cast<int>(domain.size());
  return is_last ? padding == 0 : least * padding <= domain[d];
}

}  // namespace

Layout strided_beside(const Extents& domain, int vec, const std::vector<bool>& alike, int warps) {
  const int rank = static_cast<int>(domain.size());
  std::vector<int> tile_bits(domain.size(), 0);
  const auto fill = [&](Places& places, int wanted, const auto& takes) {
    for (int d = rank - 1; d >= 0; --d)
      while (takes(d) && std::ssize(places) < wanted && may_be_in_tile(domain, d, tile_bits[d]))
        places.push_back({d, tile_bits[d]++});
  };
  const auto is_last = [&](int d) { return d + 1 == rank; };
  const auto is_alike = [&](int d) {
    return static_cast<bool>(alike[static_cast<std::size_t>(d)]);
  };
  const auto any = [](int) { return true; };
  const int warp_bits = warp_bits_of(warps);
  Places reg, lane, warp;
  fill(reg, log2_ceil(vec), is_last);
  fill(lane, lane_bits, is_last);
  fill(lane, lane_bits, is_alike);
  fill(warp, warp_bits, [&](int d) { return !is_alike(d); });
  fill(lane, lane_bits, any);
  fill(warp, warp_bits, any);
  lane.resize(lane_bits, copies);
  warp.resize(static_cast<std::size_t>(warp_bits), copies);
  return make(domain, tile_bits, reg, lane, warp);
}

Layout accumulator(const Extents& domain, Warps warps, std::int64_t run) {
  expect_rank("accumulator", domain, 2);
  if (run < 8 || !std::has_single_bit(static_cast<std::uint64_t>(run)))
    throw InternalError("accumulator: expected runs of a power of two from 8 on, got " +
                        std::to_string(run));
  const WarpBits w = log2_of(warps);
  const int run_bits = log2_ceil(run);
  Places reg = {{1, 0}, {0, 3}};
  for (int bit = 3; bit < run_bits; ++bit) reg.push_back({1, bit});
  return make(domain, {4 + w.m, run_bits + w.n}, reg, {{1, 1}, {1, 2}, {0, 0}, {0, 1}, {0, 2}},
              warp_places(w, {0, 4}, {1, run_bits}));
}

Layout operand_a(const Extents& domain, int element_bits, Warps warps, bool half_k) {
  expect_rank("operand A", domain, 2);
  const WarpBits w = log2_of(warps);
  const int v = word_bits(element_bits);
  Places reg;
  for (int i = 0; i < v; ++i) reg.push_back({1, i});
  reg.push_back({0, 3});
  if (!half_k) reg.push_back({1, v + 2});
  return make(domain, {4 + w.m, v + (half_k ? 2 : 3)}, reg,
              {{1, v}, {1, v + 1}, {0, 0}, {0, 1}, {0, 2}}, warp_places(w, {0, 4}, copies));
}

Layout operand_b(const Extents& domain, int element_bits, Warps warps, bool half_k) {
  expect_rank("operand B", domain, 2);
  const WarpBits w = log2_of(warps);
  const int v = word_bits(element_bits);
  Places reg;
  for (int i = 0; i < v; ++i) reg.push_back({0, i});
  if (!half_k) reg.push_back({0, v + 2});
  return make(domain, {v + (half_k ? 2 : 3), 3 + w.n}, reg,
              {{0, v}, {0, v + 1}, {1, 0}, {1, 1}, {1, 2}}, warp_places(w, copies, {1, 3}));
}

Layout matrix_tile(const Extents& domain, bool transposed, int warps) {
  expect_rank("matrix tile", domain, 2);
  const int row = transposed ? 1 : 0, column = transposed ? 0 : 1;
  return make(domain, {3, 3}, {{column, 0}},
              {{column, 1}, {column, 2}, {row, 0}, {row, 1}, {row, 2}},
              Places(static_cast<std::size_t>(warp_bits_of(warps)), copies));
}

Layout tensor_memory_rows(const Extents& domain) {
  expect_rank("tensor memory", domain, 2);
  return make(domain, {7, 0}, {}, {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}}, {{0, 5}, {0, 6}});
}

namespace {

// A dimension of the tiled shape: index bits [bit, bit + size) of a dimension of the domain.
struct TiledDim {
  int dim = 0, bit = 0, size = 0;
};

[[noreturn]] void bad_tiling(const std::string& what) {
  throw CompileError("tiled layout: " + what);
}

int log2_exact(std::int64_t n) {
  if (n < 1 || !std::has_single_bit(static_cast<std::uint64_t>(n))) {
    bad_tiling("expected a power of two, got " + std::to_string(n));
  }
  return log2_ceil(n);
}

// The dimensions inside the first tile after all further tiles.
std::vector<TiledDim> tiled_dims(int rank, std::span<const std::vector<int>> tiles) {
  const int first = static_cast<int>(tiles[0].size());
  std::vector<TiledDim> dims;
  for (int i = 0; i < first; ++i) {
    dims.push_back({rank - first + i, 0, log2_exact(tiles[0][i])});
  }
  for (const std::vector<int>& tile : tiles.subspan(1)) {
    const std::size_t n = tile.size();
    if (n > dims.size()) bad_tiling("a tile has more dimensions than what it divides");
    std::vector<TiledDim> inner;
    for (std::size_t i = 0; i < n; ++i) {
      TiledDim& outer = dims[dims.size() - n + i];
      const int size = log2_exact(tile[i]);
      if (size > outer.size) bad_tiling("a tile is larger than the one it divides");
      inner.push_back({outer.dim, outer.bit, size});
      outer.bit += size;
      outer.size -= size;
    }
    dims.insert(dims.end(), inner.begin(), inner.end());
  }
  return dims;
}

// Thread bits from the lowest: the last of `list` changes fastest.
Places spread(std::vector<TiledDim>& dims, const std::vector<int>& list) {
  Places places;
  for (auto it = list.rbegin(); it != list.rend(); ++it) {
    if (*it > 0) {
      places.insert(places.end(), log2_exact(*it), copies);
      continue;
    }
    if (*it == 0 || -*it > static_cast<int>(dims.size())) {
      bad_tiling("there is no dimension " + std::to_string(*it));
    }
    TiledDim& dim = dims[dims.size() + *it];
    for (int i = 0; i < dim.size; ++i) places.push_back({dim.dim, dim.bit + i});
    dim.size = 0;
  }
  return places;
}

void expect_bits(const char* what, const Places& places, int least, int most,
                 const char* expected) {
  const int bits = static_cast<int>(places.size());
  if (bits < least || bits > most) {
    bad_tiling(std::string(what) + " take " + std::to_string(1 << bits) + ", expected " + expected);
  }
}

}  // namespace

Layout tiled(const Extents& domain, std::span<const std::vector<int>> tiles,
             const std::vector<int>& warp_dims, const std::vector<int>& lane_dims, int vector_dim) {
  const int rank = static_cast<int>(domain.size());
  if (tiles.empty() || tiles[0].size() > domain.size()) {
    bad_tiling("the first tile has more dimensions than the value");
  }
  std::vector<TiledDim> dims = tiled_dims(rank, tiles);
  std::vector<int> tile_bits(domain.size(), 0);
  for (std::size_t i = 0; i < tiles[0].size(); ++i) {
    tile_bits[domain.size() - tiles[0].size() + i] = log2_exact(tiles[0][i]);
  }
  if (vector_dim >= 0 || -vector_dim > static_cast<int>(dims.size())) {
    bad_tiling("there is no dimension " + std::to_string(vector_dim));
  }
  const Places warp = spread(dims, warp_dims), lane = spread(dims, lane_dims);
  expect_bits("warp dimensions", warp, least_warp_bits, most_warp_bits, "4, 8 or 16");
  expect_bits("lane dimensions", lane, lane_bits, lane_bits, "32");
  Places reg;
  const auto take = [&](TiledDim& dim) {
    for (int i = 0; i < dim.size; ++i) reg.push_back({dim.dim, dim.bit + i});
    dim.size = 0;
  };
  take(dims[dims.size() + vector_dim]);
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) take(*dim);
  return make(domain, tile_bits, reg, lane, warp);
}

Layout consecutive(Layout layout, int d) {
  const int more = log2_ceil(layout.repetitions(d));
  int at = layout.field_shift(d);
  const int end = at + layout.tile_bits[static_cast<std::size_t>(d)];
  while (at < end && std::find(layout.reg.begin(), layout.reg.end(), 1u << at) != layout.reg.end())
    ++at;
  const std::uint32_t below = (1u << at) - 1;
  for (Bits* images : {&layout.reg, &layout.lane, &layout.warp})
    for (std::uint32_t& image : *images) image = (image & below) | (image & ~below) << more;
  for (int i = 0; i < more; ++i) layout.reg.push_back(1u << (at + i));
  layout.tile_bits[static_cast<std::size_t>(d)] += more;
  return layout;
}

Layout widen(const Layout& layout, int v) {
  if (layout.rank() == 0 || v < 1 || !std::has_single_bit(static_cast<unsigned>(v)) ||
      !is_unit(layout)) {
    throw InternalError("widen to " + std::to_string(v) + ": expected a power of two and unit " +
                        "images, got " + to_string(layout));
  }
  const int wanted = log2_ceil(v), last = layout.rank() - 1;
  std::vector<int> tile_bits = layout.tile_bits;
  // Each thread bit below v needs a register bit above it.
  const std::uint32_t low = static_cast<std::uint32_t>(v) - 1;
  const int in_threads = std::popcount(layout.thread_span() & low & layout.field_mask(last));
  const auto high_registers = [&](const Layout& l) {
    return std::count_if(l.reg.begin(), l.reg.end(), [&](std::uint32_t image) {
      return (image & l.field_mask(last) & ~low) != 0;
    });
  };
  tile_bits[last] = std::max(tile_bits[last], wanted);
  Layout l = grow_tile(layout, tile_bits);
  while (high_registers(l) < in_threads) {
    ++tile_bits[last];
    l = grow_tile(layout, tile_bits);
  }
  std::uint32_t next = static_cast<std::uint32_t>(v);
  const auto exchange = [&](std::uint32_t& image) {
    if (image == 0 || (image & low) == 0) return;
    while (std::find(l.reg.begin(), l.reg.end(), next) == l.reg.end()) next *= 2;
    std::swap(image, *std::find(l.reg.begin(), l.reg.end(), next));
  };
  for (std::uint32_t& image : l.lane) exchange(image);
  for (std::uint32_t& image : l.warp) exchange(image);
  // The last dimension has the low bits of the tile index, so these are 1, 2, 4, ...
  std::stable_sort(l.reg.begin(), l.reg.end(), [&](std::uint32_t a, std::uint32_t b) {
    const bool vector_a = (a & low) != 0, vector_b = (b & low) != 0;
    return vector_a && (!vector_b || a < b);
  });
  return l;
}

}  // namespace palladium::layout
