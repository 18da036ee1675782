#include "runtime/race/writer_map.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"

namespace palladium::race {
namespace {

constexpr std::size_t page_elements = 2048;

constexpr std::uint64_t nobody = 0;
std::uint64_t cell(Write w) { return (std::uint64_t{w.program} + 1) << 32 | w.tag; }
Write write(std::uint64_t cell) {
  return {static_cast<std::uint32_t>((cell >> 32) - 1), static_cast<std::uint32_t>(cell)};
}

}  // namespace

struct WriterMap::Page {
  std::atomic<std::uint64_t> cells[page_elements] = {};
};

WriterMap::WriterMap(std::size_t elements)
    : elements_(elements), pages_((elements + page_elements - 1) / page_elements) {}

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
  const std::uint64_t mine = cell(write);
  while (count > 0) {
    Page& page = this->page(first / page_elements);
    const std::size_t offset = first % page_elements, n = std::min(count, page_elements - offset);
    for (std::size_t i = 0; i < n; ++i) {
      std::atomic<std::uint64_t>& at = page.cells[offset + i];
      std::uint64_t writer = at.load(std::memory_order_relaxed);
      // In one order with what ReaderMap keeps.
      if (writer == nobody && at.compare_exchange_strong(writer, mine)) continue;
      if (writer >> 32 == mine >> 32) {
        at.store(mine, std::memory_order_relaxed);
      } else if (!found) {
        found = Conflict{first + i, race::write(writer), write};
      }
    }
    first += n;
    count -= n;
  }
  return found;
}

std::optional<Write> WriterMap::writer(std::size_t element) const {
  if (element >= elements_) return std::nullopt;
  const Page* page = pages_[element / page_elements].load(std::memory_order_acquire);
  if (page == nullptr) return std::nullopt;
  const std::uint64_t writer = page->cells[element % page_elements].load();
  if (writer == nobody) return std::nullopt;
  return write(writer);
}

std::size_t WriterMap::next_unwritten(std::size_t first, std::size_t last) const {
  while (first < last && first < elements_) {
    const Page* page = pages_[first / page_elements].load(std::memory_order_acquire);
    if (page == nullptr) return first;
    const std::size_t end = std::min(last, (first / page_elements + 1) * page_elements);
    for (; first < end; ++first)
      if (page->cells[first % page_elements].load(std::memory_order_relaxed) == nobody)
        return first;
  }
  return std::min(first, last);
}

}  // namespace palladium::race
