#include "runtime/race/reader_map.hpp"

#include <memory>
#include <utility>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"
#include "runtime/race/cell.hpp"

namespace palladium::race {

// Two readers that differ stand for all: a writer is the same as at most one of them.
struct ReaderMap::Page {
  static constexpr std::size_t elements = 1024;
  std::atomic<std::uint64_t> first[elements] = {}, second[elements] = {};
};

ReaderMap::ReaderMap(std::size_t elements)
    : elements_(elements), pages_((elements + Page::elements - 1) / Page::elements) {}

ReaderMap::ReaderMap(ReaderMap&& other) noexcept
    : elements_(std::exchange(other.elements_, 0)), pages_(std::move(other.pages_)) {
  other.pages_.clear();
}

ReaderMap& ReaderMap::operator=(ReaderMap&& other) noexcept {
  std::swap(elements_, other.elements_);
  std::swap(pages_, other.pages_);
  return *this;
}

ReaderMap::~ReaderMap() {
  for (std::atomic<Page*>& page : pages_) delete page.load(std::memory_order_relaxed);
}

ReaderMap::Page& ReaderMap::page(std::size_t number) {
  Page* page = pages_[number].load(std::memory_order_acquire);
  if (page == nullptr) {
    auto made = std::make_unique<Page>();
    if (pages_[number].compare_exchange_strong(page, made.get())) page = made.release();
  }
  return *page;
}

void ReaderMap::record(std::size_t element, Write read) {
  if (element >= elements_)
    throw InternalError(
        fmt::format("reader map: element {} of an array of {}", element, elements_));
  Page& page = this->page(element / Page::elements);
  const std::size_t at = element % Page::elements;
  std::uint64_t reader = page.first[at].load();
  if (reader == nobody && page.first[at].compare_exchange_strong(reader, cell_of(read))) return;
  if (is_by(reader, read.program)) return;
  reader = nobody;
  page.second[at].compare_exchange_strong(reader, cell_of(read));
}

std::optional<Write> ReaderMap::other(std::size_t element, std::uint32_t program) const {
  if (element >= elements_) return std::nullopt;
  const Page* page = pages_[element / Page::elements].load();
  if (page == nullptr) return std::nullopt;
  const std::size_t at = element % Page::elements;
  for (const std::uint64_t reader : {page->first[at].load(), page->second[at].load()})
    if (reader != nobody && !is_by(reader, program)) return write_of(reader);
  return std::nullopt;
}

}  // namespace palladium::race
