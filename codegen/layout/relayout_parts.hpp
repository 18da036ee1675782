// What the makers of plans share: two layouts on their common tile, and the parts of plan_relayout.
// Internal to relayout*.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/layout/layout.hpp"
#include "codegen/layout/relayout.hpp"

namespace palladium::layout {

/// A layout on a larger tile. Register bits above its own are virtual: they stand for repetitions,
/// of which some have no register.
class OnCommonTile {
 public:
  OnCommonTile(const Layout& base, const std::vector<int>& tile_bits);

  const Bits& reg() const { return grown_.reg; }
  const Bits& lane() const { return grown_.lane; }
  const Bits& warp() const { return grown_.warp; }
  std::uint32_t registers() const { return 1u << grown_.reg.size(); }
  const Layout& base() const { return *base_; }

  /// The base's register that is tile register `r` in a repetition of the common tile; -1 if there
  /// is none.
  int physical(std::uint32_t r, const Extents& repetition) const;

 private:
  struct Virtual {
    int dim, bit;  // the bit of the base's repetition number along dim
  };
  const Layout* base_;
  Layout grown_;
  std::vector<Virtual> virtual_bits_;
};

/// Two layouts of one domain and how the second reads the first: images of b's register, lane and
/// warp bits in a's bits, [register | lane | warp] from the lowest.
struct Pair {
  Pair(const Layout& from, const Layout& to, int element_bytes);

  std::vector<int> tile_bits;
  Extents repetitions;  // of the common tile, per dimension
  std::int64_t repetition_count = 1;
  OnCommonTile a, b;
  int element_bytes;
  Bits reg, lane, warp;

  int index_bits() const;
  /// The source register bits, lane and warp of an image.
  std::uint32_t register_part(std::uint32_t image) const { return image & (a.registers() - 1); }
  std::uint32_t lane_part(std::uint32_t image) const { return image >> a.reg().size() & 31; }
  std::uint32_t warp_part(std::uint32_t image) const {
    return image >> (a.reg().size() + lane_bits);
  }
  /// Every element stays in its warp.
  bool within_warps() const;
  Extents repetition(std::int64_t number) const;
};

// Clocks, from throughput tables: of a warpgroup's instructions, and latencies.
inline constexpr double shuffle_cost = 4, select_cost = 2, wavefront_cost = 4, issue_cost = 1;
inline constexpr double shuffle_latency = 25, index_cost = 8, shared_latency = 60,
                        barrier_cost = 30;

/// The cheapest shuffle program without its passes, and its cost; nothing if there is none.
struct ShuffleChoice {
  Shuffles program;
  std::vector<std::uint32_t> pack_from, pack_to;    // register bits that number a word's elements
  std::vector<std::uint32_t> words_from, words_to;  // register bits that number words
  Bits round_from, round_lane;  // images of the bits of a round: word to send, lane to flip
  double cost = 0;
};
std::optional<ShuffleChoice> choose_shuffles(const Pair& pair);
Shuffles build_shuffles(const Pair& pair, ShuffleChoice choice);

/// The cheapest linear map of tile indices to scratch within the limit; nothing if none fits.
struct SharedChoice {
  SharedMode store_mode = SharedMode::Plain, load_mode = SharedMode::Plain;
  Bits vector;   // tile-index bits in the lowest address bits
  Bits offsets;  // element offset of each tile-index bit; 0 for those in `loops`
  Bits loops;    // tile-index bits that steps run over
  std::int64_t tile_bytes = 0;
  double cost = 0;
};
std::optional<SharedChoice> choose_shared(const Pair& pair, const PlanOptions& options);
void build_shared(const Pair& pair, const SharedChoice& choice, const PlanOptions& options,
                  Plan& plan);

}  // namespace palladium::layout
