#include "runtime/race/writer_map.hpp"

#include <algorithm>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"

namespace palladium::race {
namespace {

constexpr std::size_t page_elements = 2048;

}  // namespace

struct WriterMap::Page {
  struct Cell {
    std::uint32_t program_plus_1;  // 0: nobody yet
    std::uint32_t tag;
  };
  Cell cells[page_elements] = {};
};

WriterMap::WriterMap(std::size_t elements)
    : elements_(elements), pages_((elements + page_elements - 1) / page_elements) {}
WriterMap::WriterMap(WriterMap&&) noexcept = default;
WriterMap& WriterMap::operator=(WriterMap&&) noexcept = default;
WriterMap::~WriterMap() = default;

std::optional<Conflict> WriterMap::record(std::size_t first, std::size_t count, Write write) {
  if (first > elements_ || count > elements_ - first) {
    throw InternalError(fmt::format("writer map: elements [{}, {}+{}) of an array of {}", first,
                                    first, count, elements_));
  }
  std::optional<Conflict> found;
  const std::uint32_t mine = write.program + 1;
  while (count > 0) {
    std::unique_ptr<Page>& page = pages_[first / page_elements];
    if (!page) page = std::make_unique<Page>();
    const std::size_t offset = first % page_elements, n = std::min(count, page_elements - offset);
    for (std::size_t i = 0; i < n; ++i) {
      Page::Cell& cell = page->cells[offset + i];
      if (cell.program_plus_1 == 0 || cell.program_plus_1 == mine) {
        cell = {mine, write.tag};
      } else if (!found) {
        found = Conflict{first + i, {cell.program_plus_1 - 1, cell.tag}, write};
      }
    }
    first += n;
    count -= n;
  }
  return found;
}

std::optional<Write> WriterMap::writer(std::size_t element) const {
  if (element >= elements_) return std::nullopt;
  const Page* page = pages_[element / page_elements].get();
  if (page == nullptr) return std::nullopt;
  const Page::Cell& cell = page->cells[element % page_elements];
  if (cell.program_plus_1 == 0) return std::nullopt;
  return Write{cell.program_plus_1 - 1, cell.tag};
}

}  // namespace palladium::race
