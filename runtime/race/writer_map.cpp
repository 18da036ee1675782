#include "runtime/race/writer_map.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"
#include "runtime/race/cell.hpp"

namespace palladium::race {

// Elements that stand together are mostly written together: a stretch of them has one cell, until
// somebody writes a part of it.
struct WriterMap::Page {
  static constexpr std::size_t stretch = 64, stretches = 32, elements = stretch * stretches;
  // No writer's cell is so small.
  static constexpr std::uint64_t apart = 1;
  using Cells = std::array<std::atomic<std::uint64_t>, elements>;

  // nobody, who wrote all of a stretch, or `apart`: who wrote each element is in `cells`.
  std::atomic<std::uint64_t> whole[stretches] = {};
  std::atomic<Cells*> cells = nullptr;

  ~Page() { delete cells.load(std::memory_order_relaxed); }

  Cells& made_cells() {
    Cells* known = cells.load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    auto made = std::make_unique<Cells>();
    if (cells.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel))
      known = made.release();
    return *known;
  }
  std::uint64_t writer(std::size_t at) const {
    const std::uint64_t all = whole[at / stretch].load();
    return all == apart ? (*cells.load(std::memory_order_acquire))[at].load() : all;
  }
  bool record_whole(std::size_t number, std::uint64_t mine);
  void take_apart(std::size_t number, std::uint64_t mine);
  bool record_one(std::size_t at, std::uint64_t mine);
};

namespace {

bool is_by_same(std::uint64_t a, std::uint64_t b) { return a >> 32 == b >> 32; }

// `at` becomes `mine`, if it was nobody's or the same program's. In one order with what ReaderMap
// keeps.
bool claim(std::atomic<std::uint64_t>& at, std::uint64_t mine) {
  std::uint64_t writer = at.load(std::memory_order_relaxed);
  if (writer == nobody && at.compare_exchange_strong(writer, mine)) return true;
  if (!is_by_same(writer, mine)) return false;
  if (writer != mine) at.store(mine, std::memory_order_relaxed);
  return true;
}

}  // namespace

// False where others wrote it, or parts of it.
bool WriterMap::Page::record_whole(std::size_t number, std::uint64_t mine) {
  return claim(whole[number], mine);
}

// Each element of the stretch gets a cell, unless all of it is another program's or `mine` already.
void WriterMap::Page::take_apart(std::size_t number, std::uint64_t mine) {
  std::uint64_t all = whole[number].load(std::memory_order_acquire);
  if (all == apart || all == mine) return;
  Cells& own = made_cells();
  if (all == nobody && whole[number].compare_exchange_strong(all, apart)) return;
  // Nobody but this program, which runs here, changes a stretch that it wrote.
  if (!is_by_same(all, mine)) return;
  for (std::size_t i = 0; i < stretch; ++i)
    own[number * stretch + i].store(all, std::memory_order_relaxed);
  whole[number].store(apart);
}

// False where another program wrote it.
bool WriterMap::Page::record_one(std::size_t at, std::uint64_t mine) {
  const std::uint64_t all = whole[at / stretch].load(std::memory_order_acquire);
  if (all != apart) return all == mine;
  return claim((*cells.load(std::memory_order_acquire))[at], mine);
}

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
  const auto conflict = [&](const Page& page, std::size_t at) {
    if (!found) found = Conflict{first, write_of(page.writer(at)), write};
  };
  for (const std::size_t end = first + count; first < end;) {
    Page& page = this->page(first / Page::elements);
    const std::size_t at = first % Page::elements, stretch = at / Page::stretch;
    const std::size_t begin = first - at % Page::stretch;
    const std::size_t stop = std::min(begin + Page::stretch, elements_), last = std::min(stop, end);
    if (first == begin && last == stop && page.record_whole(stretch, mine)) {
      first = last;
      continue;
    }
    page.take_apart(stretch, mine);
    for (; first < last; ++first) {
      const std::size_t element = first % Page::elements;
      if (!page.record_one(element, mine)) conflict(page, element);
    }
  }
  return found;
}

std::optional<Write> WriterMap::writer(std::size_t element) const {
  if (element >= elements_) return std::nullopt;
  const Page* page = pages_[element / Page::elements].load(std::memory_order_acquire);
  if (page == nullptr) return std::nullopt;
  const std::uint64_t writer = page->writer(element % Page::elements);
  if (writer == nobody) return std::nullopt;
  return write_of(writer);
}

std::size_t WriterMap::next_unwritten(std::size_t first, std::size_t last) const {
  while (first < last && first < elements_) {
    const Page* page = pages_[first / Page::elements].load(std::memory_order_acquire);
    if (page == nullptr) return first;
    const std::size_t at = first % Page::elements;
    if (page->writer(at) == nobody) return first;
    const bool is_whole =
        page->whole[at / Page::stretch].load(std::memory_order_relaxed) != Page::apart;
    first += is_whole ? Page::stretch - at % Page::stretch : 1;
  }
  return std::min(first, last);
}

}  // namespace palladium::race
