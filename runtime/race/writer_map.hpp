// Which program wrote each element of an array: finds two parallel programs that write one element.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

namespace palladium::race {

/// A write and what its reporter needs to name it: `tag` is the caller's, for example a line.
struct Write {
  std::uint32_t program = 0;
  std::uint32_t tag = 0;
};

struct Conflict {
  std::size_t element = 0;
  Write first = {}, second = {};
};

/// One per array and launch. `program` numbers the points of the parallel grid axes: two writes by
/// equal programs never conflict. Takes 8 bytes for each 64 elements that were written at once, and
/// for each element near others; nothing for parts of which nobody wrote any. Programs may run on
/// different OS threads at once: of several that write one element, all but the first are told.
class WriterMap {
 public:
  explicit WriterMap(std::size_t elements);
  WriterMap(WriterMap&&) noexcept;
  WriterMap& operator=(WriterMap&&) noexcept;
  ~WriterMap();

  std::size_t elements() const { return elements_; }

  /// Notes that elements [first, first + count) are written; the first conflict found. An element
  /// in conflict keeps its first writer. InternalError for elements that the array does not have.
  std::optional<Conflict> record(std::size_t first, std::size_t count, Write write);

  /// Who wrote the element last, if anybody.
  std::optional<Write> writer(std::size_t element) const;
  /// The first element of [first, last) that nobody wrote, or `last`.
  std::size_t next_unwritten(std::size_t first, std::size_t last) const;

 private:
  // Elements that stand together are mostly written together: a stretch of them has one cell, until
  // somebody writes a part of it.
  static constexpr std::size_t stretch = 64, page = 2048;  // elements
  using Cells = std::array<std::atomic<std::uint64_t>, page>;
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };

  std::atomic_ref<std::uint64_t> whole(std::size_t element) const {
    return std::atomic_ref(whole_[element / stretch]);
  }
  std::atomic<std::uint64_t>& cell(std::size_t element) const;
  void make_cells(std::size_t element);
  std::uint64_t cell_at(std::size_t element) const;
  void take_apart(std::size_t first, std::uint64_t mine);
  bool record_one(std::size_t element, std::uint64_t mine);

  std::size_t elements_;
  // Of each stretch nobody, who wrote all of it, or `apart`: who wrote each element is in its cell.
  std::unique_ptr<std::uint64_t[], Free> whole_;
  std::vector<std::atomic<Cells*>> cells_;  // by page, where a stretch of it is apart
};

}  // namespace palladium::race
