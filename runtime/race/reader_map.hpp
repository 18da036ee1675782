// Which programs read each element of an array that programs write: finds a write by one program
// of what another reads.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/race/writer_map.hpp"

namespace palladium::race {

/// A companion of WriterMap for arrays that are read as well. Whoever writes asks `other` after its
/// WriterMap::record, whoever reads asks WriterMap::writer after `record`: of two programs on
/// different OS threads at least one then sees the other. Takes 16 bytes for each element of the
/// pages that were read.
class ReaderMap {
 public:
  explicit ReaderMap(std::size_t elements);
  ReaderMap(ReaderMap&&) noexcept;
  ReaderMap& operator=(ReaderMap&&) noexcept;
  ~ReaderMap();

  std::size_t elements() const { return elements_; }

  /// Notes that an element is read.
  void record(std::size_t element, Write read);
  /// A program other than `program` that read the element, if there is one.
  std::optional<Write> other(std::size_t element, std::uint32_t program) const;

 private:
  struct Page;
  Page& page(std::size_t number);

  std::size_t elements_;
  std::vector<std::atomic<Page*>> pages_;
};

}  // namespace palladium::race
