// Which program wrote each element of an array: finds two parallel programs that write one element.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
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
/// for each element near others. Programs may run on different OS threads at once: of several that
/// write one element, all but the first are told.
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
  struct Page;
  Page& page(std::size_t number);

  std::size_t elements_;
  std::vector<std::atomic<Page*>> pages_;
};

}  // namespace palladium::race
