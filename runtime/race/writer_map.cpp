#include "runtime/race/writer_map.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"
#include "runtime/race/cell.hpp"

namespace palladium::race {

struct WriterMap::Page {
  static constexpr std::size_t elements = 2048;
  std::atomic<std::uint64_t> cells[elements] = {};
};

WriterMap::WriterMap(std::size_t elements)
    : elements_(elements), pages_((elements + Page::elements - 1) / Page::elements) {}

WriterMap::WriterMap(WriterMap&& other) noexcept
    : elements_(std::exchange(other.elements_, 0)), pages_(std::move(other.pages_)) {
  other.pages_.clear();
}

WriterMap& WriterMap::operator=(WriterMap&& other) noexcept {
  std::swap(elements_, other.elements_);
  std::swap(pages_, other.pages_);
  return *this;
}

WriterMap::~WriterMap() {
  for (std::atomic<Page*>& page : pages_) delete page.load(std::memory_order_relaxed);
}

WriterMap::Page& WriterMap::page(std::size_t number) {
  Page* page = pages_[number].load(std::memory_order_acquire);
  if (page == nullptr) {
    auto made = std::make_unique<Page>();
    if (pages_[number].compare_exchange_strong(page, made.get(), std::memory_order_acq_rel))
      page = made.release();
  }
  return *page;
}

std::optional<Conflict> WriterMap::record(std::size_t first, std::size_t count, Write write) {
  if (first > elements_ || count > elements_ - first) {
    throw InternalError(fmt::format("writer map: elements [{}, {}+{}) of an array of {}", first,
                                    first, count, elements_));
  }
  std::optional<Conflict> found;
  const std::uint64_t mine = cell_of(write);
  while (count > 0) {
    Page& page = this->page(first / Page::elements);
    const std::size_t offset = first % Page::elements, n = std::min(count, Page::elements - offset);
    for (std::size_t i = 0; i < n; ++i) {
      std::atomic<std::uint64_t>& at = page.cells[offset + i];
      std::uint64_t writer = at.load(std::memory_order_relaxed);
      // In one order with what ReaderMap keeps.
      if (writer == nobody && at.compare_exchange_strong(writer, mine)) continue;
      if (writer >> 32 == mine >> 32) {
        at.store(mine, std::memory_order_relaxed);
      } else if (!found) {
        found = Conflict{first + i, write_of(writer), write};
      }
    }
    first += n;
    count -= n;
  }
  return found;
}

std::optional<Write> WriterMap::writer(std::size_t element) const {
  if (element >= elements_) return std::nullopt;
  const Page* page = pages_[element / Page::elements].load(std::memory_order_acquire);
  if (page == nullptr) return std::nullopt;
  const std::uint64_t writer = page->cells[element % Page::elements].load();
  if (writer == nobody) return std::nullopt;
  return write_of(writer);
}

std::size_t WriterMap::next_unwritten(std::size_t first, std::size_t last) const {
  while (first < last && first < elements_) {
    const Page* page = pages_[first / Page::elements].load(std::memory_order_acquire);
    if (page == nullptr) return first;
    const std::size_t end = std::min(last, (first / Page::elements + 1) * Page::elements);
    for (; first < end; ++first)
      if (page->cells[first % Page::elements].load(std::memory_order_relaxed) == nobody)
        return first;
  }
  return std::min(first, last);
}

}  // namespace palladium::race
