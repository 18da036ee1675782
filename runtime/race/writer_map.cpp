#include "runtime/race/writer_map.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"
#include "runtime/race/cell.hpp"

namespace palladium::race {
namespace {

// No writer's cell is so small.
constexpr std::uint64_t apart = 1;

bool is_by_same(std::uint64_t a, std::uint64_t b) { return a >> 32 == b >> 32; }

// `at` becomes `mine`, if it was nobody's or the same program's. In one order with what ReaderMap
// keeps.
template <class Atomic>
bool claim(Atomic&& at, std::uint64_t mine) {
  std::uint64_t writer = at.load(std::memory_order_relaxed);
  if (writer == nobody && at.compare_exchange_strong(writer, mine)) return true;
  if (!is_by_same(writer, mine)) return false;
  if (writer != mine) at.store(mine, std::memory_order_relaxed);
  return true;
}

}  // namespace

WriterMap::WriterMap(std::size_t elements)
    : elements_(elements), cells_((elements + page - 1) / page) {
  // Fresh memory of the system's is zero without being touched.
  const std::size_t stretches = std::max<std::size_t>(1, (elements + stretch - 1) / stretch);
  whole_.reset(static_cast<std::uint64_t*>(std::calloc(stretches, sizeof(std::uint64_t))));
  if (whole_ == nullptr) throw std::bad_alloc();
}

WriterMap::WriterMap(WriterMap&& other) noexcept
    : elements_(std::exchange(other.elements_, 0)),
      whole_(std::move(other.whole_)),
      cells_(std::move(other.cells_)) {
  other.cells_.clear();
}

WriterMap& WriterMap::operator=(WriterMap&& other) noexcept {
  std::swap(elements_, other.elements_);
  std::swap(whole_, other.whole_);
  std::swap(cells_, other.cells_);
  return *this;
}

WriterMap::~WriterMap() {
  for (std::atomic<Cells*>& cells : cells_) delete cells.load(std::memory_order_relaxed);
}

// Of an element whose page has cells.
std::atomic<std::uint64_t>& WriterMap::cell(std::size_t element) const {
  return (*cells_[element / page].load(std::memory_order_acquire))[element % page];
}

void WriterMap::make_cells(std::size_t element) {
  std::atomic<Cells*>& cells = cells_[element / page];
  Cells* known = cells.load(std::memory_order_acquire);
  if (known != nullptr) return;
  auto made = std::make_unique<Cells>();
  if (cells.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel))
    (void)made.release();
}

std::uint64_t WriterMap::cell_at(std::size_t element) const {
  const std::uint64_t all = whole(element).load();
  return all == apart ? cell(element).load() : all;
}

// Each element of the stretch that begins at `first` gets a cell, unless all of it is another
// program's or `mine` already.
void WriterMap::take_apart(std::size_t first, std::uint64_t mine) {
  std::uint64_t all = whole(first).load(std::memory_order_acquire);
  if (all == apart || all == mine) return;
  make_cells(first);
  if (all == nobody && whole(first).compare_exchange_strong(all, apart)) return;
  // Nobody but this program, which runs here, changes a stretch that it wrote.
  if (!is_by_same(all, mine)) return;
  for (std::size_t i = 0; i < stretch; ++i) cell(first + i).store(all, std::memory_order_relaxed);
  whole(first).store(apart);
}

// False where another program wrote it.
bool WriterMap::record_one(std::size_t element, std::uint64_t mine) {
  const std::uint64_t all = whole(element).load(std::memory_order_acquire);
  if (all != apart) return all == mine;
  return claim(cell(element), mine);
}

std::optional<Conflict> WriterMap::record(std::size_t first, std::size_t count, Write write) {
  if (first > elements_ || count > elements_ - first) {
    throw InternalError(fmt::format("writer map: elements [{}, {}+{}) of an array of {}", first,
                                    first, count, elements_));
  }
  std::optional<Conflict> found;
  const std::uint64_t mine = cell_of(write);
  for (const std::size_t end = first + count; first < end;) {
    const std::size_t begin = first - first % stretch;
    const std::size_t stop = std::min(begin + stretch, elements_), last = std::min(stop, end);
    // All of a stretch is claimed at once, unless others wrote it, or parts of it.
    if (first == begin && last == stop && claim(whole(first), mine)) {
      first = last;
      continue;
    }
    take_apart(begin, mine);
    for (; first < last; ++first)
      if (!record_one(first, mine) && !found)
        found = Conflict{first, write_of(cell_at(first)), write};
  }
  return found;
}

std::optional<Write> WriterMap::writer(std::size_t element) const {
  if (element >= elements_) return std::nullopt;
  const std::uint64_t writer = cell_at(element);
  if (writer == nobody) return std::nullopt;
  return write_of(writer);
}

std::size_t WriterMap::next_unwritten(std::size_t first, std::size_t last) const {
  last = std::max(first, std::min(last, elements_));
  while (first < last) {
    const std::uint64_t all = whole(first).load(std::memory_order_relaxed);
    if (all == nobody) return first;
    if (all == apart) {
      if (cell_at(first) == nobody) return first;
      ++first;
    } else {
      first += stretch - first % stretch;
    }
  }
  return std::min(first, last);
}

}  // namespace palladium::race
