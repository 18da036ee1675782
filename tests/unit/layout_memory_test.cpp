// Vector widths and sectors of global accesses; fits to swizzled shared memory.
#include "codegen/layout/memory.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>

#include "codegen/layout/constructors.hpp"
#include "codegen/layout/transfer.hpp"
#include "palladium/error.hpp"
#include "tests/support/layouts.hpp"

namespace palladium::layout {
namespace {

TEST_CASE("a vector is as wide as registers, rows and alignment allow", "[layout]") {
  const auto vector = [](const Layout& l, int bytes) { return vector_width(l, dense(l, bytes)); };
  CHECK(vector(strided({1, 1024}, 4), 4) == 4);
  CHECK(vector(strided({1, 1024}, 8), 4) == 4);  // 16 bytes at most
  CHECK(vector(strided({1, 1024}, 8), 2) == 8);
  CHECK(vector(accumulator({64, 128}), 4) == 2);
  CHECK(vector(strided({1, 1000}, 8), 2) == 8);
  CHECK(vector(strided({1, 1002}, 8), 2) == 2);
  CHECK(vector(strided({4, 1001}, 4), 4) == 1);
  CHECK(vector(tensor_memory_rows({128, 8}), 4) == 1);
  CHECK(vector(replicated({}), 4) == 1);
  const Layout l = strided({8, 256}, 4);
  MemoryFacts facts = dense(l, 4);
  facts.alignment = 8;
  CHECK(vector_width(l, facts) == 2);
  facts = dense(l, 4);
  facts.strides[0] = Stride::unknown();
  CHECK(vector_width(l, facts) == 1);
  facts.strides[0] = Stride::unknown(6);
  CHECK(vector_width(l, facts) == 2);
  facts.strides[0] = Stride::fixed(1000);
  CHECK(vector_width(l, facts) == 4);
  facts.last_extent_multiple = 2;
  CHECK(vector_width(l, facts) == 2);
  facts.strides[1] = Stride::fixed(2);
  CHECK(vector_width(l, facts) == 1);
  facts.strides[1] = Stride::unknown();
  CHECK(vector_width(l, facts) == 1);
  const Layout row = strided({1, 256}, 4);  // the stride of a unit dimension says nothing
  facts = dense(row, 4);
  facts.strides[0] = Stride::unknown();
  CHECK(vector_width(row, facts) == 4);
}

// Sectors counted address by address.
std::int64_t counted_sectors(const Layout& l, const MemoryFacts& facts, int vector) {
  std::int64_t total = 0;
  for (int warp = 0; warp < l.warps(); ++warp) {
    for (std::int64_t k = 0; k < l.registers(); k += vector) {
      std::set<std::int64_t> sectors;
      for (int t = warp * 32; t < warp * 32 + 32; ++t) {
        const Extents index = l.index(t, k);
        if (!l.in_domain(index)) continue;
        std::int64_t address = 0;
        for (int d = 0; d < l.rank(); ++d) address += index[d] * facts.strides[d].value;
        for (int e = 0; e < vector; ++e) sectors.insert((address + e) * facts.element_bytes / 32);
      }
      total += std::ssize(sectors);
    }
  }
  return total;
}

AccessCost cost_of(const Layout& l, const MemoryFacts& facts) {
  std::vector<std::int64_t> distances;
  for (const std::uint32_t image : l.lane) {
    std::int64_t bytes = 0;
    for (int d = 0; d < l.rank(); ++d)
      bytes += facts.strides[d].value * l.field(d, image) * facts.element_bytes;
    distances.push_back(bytes);
  }
  return access_cost(l, vector_width(l, facts), facts.element_bytes, distances);
}

TEST_CASE("sectors are those that a count of addresses finds", "[layout]") {
  const auto access = [](const Layout& l, int bytes) { return cost_of(l, dense(l, bytes)); };
  CHECK(access(accumulator({64, 128}), 4).sectors == 1024);
  CHECK(access(accumulator({64, 128}), 4).ideal_sectors == 1024);
  CHECK(access(accumulator({64, 128}), 2).sectors == 1024);
  CHECK(access(accumulator({64, 128}), 2).ideal_sectors == 512);
  CHECK(access(strided({64, 128}, 8), 4).sectors == 1024);  // two accesses take one sector
  CHECK(access(strided({64, 128}, 4), 4).sectors == 1024);
  CHECK(access(tensor_memory_rows({128, 32}), 4).sectors == 4096);
  for (const int bytes : {1, 2, 4, 8}) {
    const Extents domains[] = {{64, 128}, {128, 64}, {8, 1024}, {4096}, {16, 16, 32}};
    for (const Extents& domain : domains) {
      for (const int n : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
        const int v = 1 << n % 4, warps = 4 << n / 4;
        const Layout l = strided(domain, v, full_width, warps);
        const MemoryFacts facts = dense(l, bytes);
        const AccessCost a = cost_of(l, facts);
        // What a thread takes by accesses of 16 bytes that follow one another is moved once.
        const int width = vector_width(l, facts);
        const bool follow = width * bytes == 16 && v * bytes <= 64;
        CHECK(a.sectors == counted_sectors(l, facts, follow ? v : width));
        CHECK(a.load <= a.store);
      }
    }
  }
  // Of two stores that fill a sector each is paid for, of loads that do the first.
  CHECK(access(strided({64, 128}, 8), 4).load == access(strided({64, 128}, 4), 4).load);
  CHECK(access(strided({64, 128}, 8), 4).store > access(strided({64, 128}, 4), 4).store);
  // More than 64 bytes per thread cost sectors: the candidate of 16 wins.
  CHECK(access(strided({64, 128}, 4), 4).store < access(strided({64, 128}, 32), 4).store);
}

TEST_CASE("swizzled offsets are the manual's exclusive-or of chunk and row", "[layout]") {
  const std::pair<Swizzle, std::uint32_t> swizzles[] = {
      {Swizzle::B32, 32}, {Swizzle::B64, 64}, {Swizzle::B128, 128}};
  for (const auto& [swizzle, panel] : swizzles) {
    for (const int bytes : {1, 2, 4}) {
      const int row_bits = 4, column_bits = 9 - (bytes == 4 ? 2 : bytes - 1);
      const Bits offsets = swizzled_offsets(row_bits, column_bits, bytes, swizzle);
      std::set<std::uint32_t> all;
      for (std::uint32_t row = 0; row < 16; ++row) {
        for (std::uint32_t column = 0; column < 1u << column_bits; ++column) {
          const std::uint32_t byte = column * bytes;
          std::uint32_t address = byte / panel * panel * 16 + row * panel + byte % panel;
          address ^= address / 128 % (panel / 16) * 16;
          REQUIRE(image_of(offsets, row << column_bits | column) == address);
          all.insert(address);
        }
      }
      CHECK(all.size() == std::size_t{16} << column_bits);
    }
  }
  CHECK_THROWS_AS(swizzled_offsets(3, 4, 2, Swizzle::B128), InternalError);
}

Layout one_tile(const Layout& l) {
  std::vector<int> bits;
  for (const std::int64_t extent : l.domain) {
    int b = 0;
    while (std::int64_t{1} << b < extent) ++b;
    bits.push_back(b);
  }
  return grow_tile(l, bits);
}

TEST_CASE("fragments fit swizzled shared memory without conflicts", "[layout]") {
  const auto fit = [](const Layout& l, int bytes, Swizzle swizzle) {
    const Layout tile = one_tile(l);
    return fit_shared(tile, swizzled_offsets(tile.tile_bits[0], tile.tile_bits[1], bytes, swizzle),
                      bytes);
  };
  const int swap[] = {1, 0};
  const SharedFit acc = fit(accumulator({64, 64}), 2, Swizzle::B128);
  CHECK(acc.vector == 2);
  CHECK(acc.conflicts == 1);
  CHECK(acc.matrix == MatrixMove::Plain);
  CHECK(acc.matrix_conflicts == 1);
  const SharedFit a = fit(operand_a({64, 64}, 16), 2, Swizzle::B128);
  CHECK(a.matrix == MatrixMove::Plain);
  CHECK(a.matrix_conflicts == 1);
  const SharedFit transposed = fit(transpose(accumulator({64, 64}), swap), 2, Swizzle::B128);
  CHECK(transposed.matrix == MatrixMove::Transposed);
  CHECK(transposed.matrix_conflicts == 1);
  const SharedFit flat = fit(accumulator({64, 64}), 2, Swizzle::None);
  CHECK(flat.conflicts == 8);
  CHECK(flat.matrix_conflicts == 8);
  CHECK(fit(accumulator({64, 64}), 4, Swizzle::B128).matrix == MatrixMove::None);
  CHECK(fit(strided({64, 64}, 8), 2, Swizzle::B128).vector == 8);
  CHECK(fit(strided({64, 64}, 8), 2, Swizzle::B128).conflicts == 1);
  CHECK(fit(operand_b({64, 64}, 16), 2, Swizzle::B128).matrix == MatrixMove::Transposed);
  CHECK_THROWS_AS(fit_shared(accumulator({64, 64}), Bits(9, 1), 2), InternalError);
}

TEST_CASE("conflicts by rank are those that a count of banks finds", "[layout]") {
  Random random(30);
  for (int n = 0; n < 2000; ++n) {
    const int bytes = 1 << pick(random, 0, 4);
    Bits lanes;
    for (int i = 0; i < 5; ++i) {
      lanes.push_back(static_cast<std::uint32_t>(pick(random, 0, 255) * bytes));
    }
    const int together = std::min(32, 128 / std::max(bytes, 4));
    std::map<std::uint32_t, std::set<std::uint32_t>> words_of_bank;
    std::set<std::uint32_t> words;
    for (int lane = 0; lane < together; ++lane) {
      const std::uint32_t address = image_of(lanes, static_cast<std::uint32_t>(lane));
      for (std::uint32_t w = address / 4; w <= (address + bytes - 1) / 4; ++w) {
        words_of_bank[w % 32].insert(w);
        words.insert(w);
      }
    }
    std::size_t most = 0;
    for (const auto& [bank, list] : words_of_bank) most = std::max(most, list.size());
    REQUIRE(bank_conflicts(lanes, bytes) == static_cast<int>(most));
  }
}

}  // namespace
}  // namespace palladium::layout
