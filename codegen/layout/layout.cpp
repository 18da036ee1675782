#include "codegen/layout/layout.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "palladium/error.hpp"

namespace palladium::layout {
namespace {

// Images are moved between tiles by moving each dimension's field.
std::uint32_t on_tile(const Layout& from, const Layout& tile, std::uint32_t image) {
  std::uint32_t moved = 0;
  for (int d = 0, shift = tile.index_bits(); d < from.rank(); ++d) {
    shift -= tile.tile_bits[d];
    moved |= from.field(d, image) << shift;
  }
  return moved;
}

Bits on_tile(const Layout& from, const Layout& tile, const Bits& images) {
  Bits moved;
  for (const std::uint32_t image : images) moved.push_back(on_tile(from, tile, image));
  return moved;
}

std::uint32_t span_of(const Bits& images) {
  return std::accumulate(images.begin(), images.end(), 0u, std::bit_or<>());
}

// The register bit that is the top tile bit of d and nothing else, if no other bit touches it.
std::optional<int> register_of_top_bit(const Layout& l, int d) {
  if (l.tile_bits[d] == 0) return std::nullopt;
  const std::uint32_t top = 1u << (l.field_shift(d) + l.tile_bits[d] - 1);
  if ((l.thread_span() & top) != 0) return std::nullopt;
  std::optional<int> position;
  for (std::size_t i = 0; i < l.reg.size(); ++i) {
    if ((l.reg[i] & top) == 0) continue;
    if (l.reg[i] != top) return std::nullopt;
    position = static_cast<int>(i);
  }
  return position;
}

// Whether shrinking the tile along d leaves all register numbers as they are: its top bit is the
// top register bit, no faster dimension repeats, and if a slower one does, the number of
// repetitions along d doubles exactly.
bool top_register_bit_repeats(const Layout& l, int d) {
  if (l.reg.empty() || register_of_top_bit(l, d) != static_cast<int>(l.reg.size()) - 1) {
    return false;
  }
  const std::int64_t half = l.tile(d) / 2;
  const bool doubles = (l.domain[d] + half - 1) / half == 2 * l.repetitions(d);
  for (int e = 0; e < l.rank(); ++e) {
    if (e != d && l.repetitions(e) > 1 && (e > d || !doubles)) return false;
  }
  return true;
}

void fail(const Layout& l, const char* what) {
  throw InternalError("malformed layout: " + std::string(what) + "\n  " + to_string(l));
}

}  // namespace

int Layout::index_bits() const { return std::accumulate(tile_bits.begin(), tile_bits.end(), 0); }

std::int64_t Layout::repetitions() const {
  std::int64_t product = 1;
  for (int d = 0; d < rank(); ++d) product *= repetitions(d);
  return product;
}

int Layout::field_shift(int d) const {
  return std::accumulate(tile_bits.begin() + d + 1, tile_bits.end(), 0);
}

std::uint32_t Layout::field_mask(int d) const {
  return ((1u << tile_bits[d]) - 1) << field_shift(d);
}

std::uint32_t Layout::field(int d, std::uint32_t tile_index) const {
  return tile_index >> field_shift(d) & ((1u << tile_bits[d]) - 1);
}

Bits Layout::thread() const {
  Bits images = lane;
  images.append(warp);
  return images;
}

std::uint32_t Layout::replicated_threads() const {
  std::uint32_t mask = 0;
  for (int i = 0; i < thread_bits(); ++i) {
    if ((i < lane_bits ? lane[i] : warp[i - lane_bits]) == 0) mask |= 1u << i;
  }
  return mask;
}

std::uint32_t Layout::thread_span() const { return span_of(lane) | span_of(warp); }

Extents Layout::repetition(std::int64_t reg_number) const {
  Extents number(domain.size());
  std::int64_t rest = reg_number >> reg.size();
  for (int d = rank() - 1; d >= 0; --d) {
    number[d] = rest % repetitions(d);
    rest /= repetitions(d);
  }
  return number;
}

Extents Layout::index(int t, std::int64_t k) const {
  const auto lanes = static_cast<std::uint32_t>(t & 31), warps = static_cast<std::uint32_t>(t >> 5);
  const auto tile_register = static_cast<std::uint32_t>(k & ((std::int64_t{1} << reg.size()) - 1));
  const std::uint32_t x =
      image_of(lane, lanes) ^ image_of(warp, warps) ^ image_of(reg, tile_register);
  Extents coordinates = repetition(k);
  for (int d = 0; d < rank(); ++d) coordinates[d] = (coordinates[d] << tile_bits[d]) + field(d, x);
  return coordinates;
}

bool Layout::in_domain(std::span<const std::int64_t> index) const {
  for (int d = 0; d < rank(); ++d) {
    if (index[d] >= domain[d]) return false;
  }
  return true;
}

void check(const Layout& l) {
  if (l.tile_bits.size() != l.domain.size()) fail(l, "one tile extent per dimension");
  if (l.lane.size() != lane_bits) fail(l, "five lane bits");
  if (l.warp.size() < least_warp_bits || l.warp.size() > most_warp_bits)
    fail(l, "two to four warp bits");
  for (int d = 0; d < l.rank(); ++d) {
    if (l.tile_bits[d] < 0 || l.domain[d] < 0) fail(l, "extents are not negative");
  }
  // A solver holds 32 vectors.
  const int bits = l.index_bits();
  if (bits > 24 || l.reg.size() > 24) fail(l, "at most 24 bits of tile index and of registers");
  Solver images;
  int independent = 0;
  for (const Bits* part : {&l.reg, &l.lane, &l.warp}) {
    for (const std::uint32_t image : *part) {
      if (image >> bits != 0) fail(l, "an image lies outside the tile");
      if (image == 0 && part == &l.reg) fail(l, "a register bit holds nothing");
      if (image == 0) continue;
      if (!images.add(image)) fail(l, "images are dependent");
      ++independent;
    }
  }
  if (independent != bits) fail(l, "images do not cover the tile");
}

bool is_unit(const Layout& l) {
  const auto unit = [](std::uint32_t image) { return std::popcount(image) <= 1; };
  return std::all_of(l.reg.begin(), l.reg.end(), unit) &&
         std::all_of(l.lane.begin(), l.lane.end(), unit) &&
         std::all_of(l.warp.begin(), l.warp.end(), unit);
}

std::optional<Layout> shrink_tile(const Layout& l, int d) {
  const auto position = register_of_top_bit(l, d);
  if (!position) return std::nullopt;
  Layout smaller{l.domain, l.tile_bits, {}, {}, {}};
  --smaller.tile_bits[d];
  smaller.reg = on_tile(l, smaller, l.reg);
  smaller.lane = on_tile(l, smaller, l.lane);
  smaller.warp = on_tile(l, smaller, l.warp);
  smaller.reg.erase_at(static_cast<std::size_t>(*position));
  return smaller;
}

Layout canonical(Layout l) {
  for (int d = l.rank() - 1; d >= 0;) {
    if (top_register_bit_repeats(l, d)) {
      l = *shrink_tile(l, d);
      d = l.rank() - 1;
    } else {
      --d;
    }
  }
  return l;
}

Layout grow_tile(const Layout& l, std::span<const int> tile_bits) {
  Layout grown{l.domain, l.tile_bits, {}, {}, {}};
  for (int d = 0; d < l.rank(); ++d) grown.tile_bits[d] = std::max(l.tile_bits[d], tile_bits[d]);
  grown.reg = on_tile(l, grown, l.reg);
  grown.lane = on_tile(l, grown, l.lane);
  grown.warp = on_tile(l, grown, l.warp);
  for (int d = l.rank() - 1; d >= 0; --d) {
    for (int b = l.tile_bits[d]; b < grown.tile_bits[d]; ++b) {
      grown.reg.push_back(1u << (grown.field_shift(d) + b));
    }
  }
  return grown;
}

}  // namespace palladium::layout
