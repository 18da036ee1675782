// Shadow memory: who accessed each byte of a memory last, and with it the races.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/race/engine.hpp"
#include "runtime/race/pool.hpp"

namespace palladium::race {

/// Two accesses to the same bytes that are not ordered; or that are, but the earlier was made
/// through the generic proxy and not fenced for the later, which is asynchronous.
struct Race {
  Access earlier, later;
  std::size_t offset = 0, bytes = 0;
  bool missing_fence = false;
};

/// The shadow of one memory: a block's shared memory, a buffer, the elements of a Ref.
///
/// What must be ordered: two accesses to a byte of which one is a write, or one is atomic and the
/// other is not, or not with it (see Kind). After a generic write or atomic an asynchronous access
/// needs the writer's fence for this space too; after a read it does not. In global memory an
/// asynchronous access after another block's asynchronous write needs a fence by its own block,
/// after that block was told of the write. Exact for every byte: cells are 16 bytes wide and are
/// split where accesses are narrower, and no reader is forgotten. A write that has been found to be
/// ordered after what was there stands for it: whoever is ordered after the write need not know the
/// rest.
class Shadow {
 public:
  /// `engine` must outlive the shadow.
  Shadow(Engine& engine, std::size_t bytes, Space space = Space::shared);
  Shadow(const Shadow&) = delete;

  std::size_t bytes() const { return bytes_; }

  /// Checks [offset, offset + bytes) against everything recorded and records it: the first race, if
  /// there is one. `access.agent` is checked with what it knows.
  std::optional<Race> access(std::size_t offset, std::size_t bytes, Access access);
  /// Checked with what each of `issuers` knows now instead.
  std::optional<Race> access(std::size_t offset, std::size_t bytes, Access access,
                             std::span<const Agent> issuers);
  /// Checked with what each of `known` held when it was released instead.
  std::optional<Race> access(std::size_t offset, std::size_t bytes, Access access,
                             std::span<const Snapshot> known);
  /// One access to many places of equal size, as the rows of a matrix.
  std::optional<Race> access(std::span<const std::uint32_t> offsets, std::size_t bytes_each,
                             Access access, std::span<const Snapshot> known);

  /// The memory is fresh again.
  void clear();

 private:
  static constexpr std::size_t cell_bytes = 16, page_cells = 256,
                               page_bytes = cell_bytes * page_cells;
  static constexpr std::uint32_t none = ~0u;

  /// What happened to some neighbouring bytes. `last` is the last write; `since` are the reads and
  /// atomics after it, one of each source, without gaps. Instead of them `last` can be a link to
  /// narrower cells, and the last of `since` one to a list of Many.
  struct Cell {
    Record last;
    std::array<Record, 3> since;
  };
  struct Page {
    std::uint32_t generation = 0;
    std::array<Cell, page_cells> cells;
  };
  /// Reads or atomics of 32 neighbouring timelines.
  struct Many {
    std::uint32_t source = 0;  // timeline / 32, proxy and kind
    Timeline first = 0;
    std::uint32_t next = none;
    std::array<Record, ClockPart::timelines> records;
  };
  using Quarters = std::array<Cell, 4>;  // of a cell of 16 bytes
  using Halves = std::array<Cell, 2>;    // of one of 4 or 2 bytes
  class Check;

  std::optional<Race> check(std::size_t offset, std::size_t bytes, const Access& access,
                            std::span<const View> views);
  Record record(const Access& access);
  Cell* cell_of(std::size_t offset, std::size_t bytes);
  bool passes(Cell& cell, Record mine, const View& view) const;
  Page& page(std::size_t number) {
    Page* page = pages_[number].get();
    return page != nullptr && page->generation == generation_ ? *page : fresh_page(number);
  }
  Page& fresh_page(std::size_t number);

  Engine& engine_;
  std::size_t bytes_;
  Space space_;
  std::vector<std::unique_ptr<Page>> pages_;
  std::uint32_t generation_ = 1;  // of pages; others are of a memory that was cleared
  bool has_atomics_ = false;
  std::vector<View> views_;
  Pool<Many> many_;
  Pool<Quarters> quarters_;
  Pool<Halves> halves_;
};

}  // namespace palladium::race
