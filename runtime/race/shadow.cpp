#include "runtime/race/shadow.hpp"

#include <algorithm>
#include <bit>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"

namespace palladium::race {
namespace {

constexpr std::uint32_t link_kind = 3;

Record link_to(std::uint32_t number) {
  return {std::uint64_t{link_kind} << Record::kind_shift | number};
}
bool is_link(Record r) { return r.kind() == link_kind; }
std::uint32_t target(Record r) { return static_cast<std::uint32_t>(r.bits); }

std::uint32_t neighbourhood(Record r) {
  static_assert(ClockPart::timelines == 1 << 5);
  return static_cast<std::uint32_t>((r.bits & Record::source_mask) >> (Record::timeline_shift + 5));
}

}  // namespace

/// One access on its way through the cells.
class Shadow::Check {
 public:
  Check(Shadow& shadow, Agent agent, Record mine, std::span<const View> views)
      : shadow_(shadow),
        agent_(agent),
        mine_(mine),
        since_(shadow.engine_.view(agent).since),
        views_(views) {}

  void range(std::size_t offset, std::size_t bytes) {
    if (offset > shadow_.bytes_ || bytes > shadow_.bytes_ - offset) {
      throw InternalError(fmt::format("race: bytes [{}, {}+{}) of a memory of {}", offset, offset,
                                      bytes, shadow_.bytes_));
    }
    switch (static_cast<Kind>(mine_.kind())) {
    case Kind::read: return range<Kind::read>(offset, offset + bytes);
    case Kind::write: return range<Kind::write>(offset, offset + bytes);
    case Kind::atomic: return range<Kind::atomic>(offset, offset + bytes);
    }
  }

  std::optional<Race> race(const Access& later) const {
    if (earlier_.empty()) return std::nullopt;
    return Race{shadow_.engine_.access(earlier_), later, offset_, bytes_, missing_fence_};
  }

 private:
  enum class Order { ordered, not_fenced, none };

  template <Kind kind>
  void range(std::size_t begin, std::size_t end) {
    while (begin < end) {
      Page& page = shadow_.page(begin / page_bytes);
      const std::size_t first = begin % page_bytes / cell_bytes, at = begin - begin % cell_bytes;
      const std::size_t stop = std::min(end, begin - begin % page_bytes + page_bytes);
      const std::size_t whole = begin == at ? (stop - begin) / cell_bytes : 0;
      for (std::size_t i = 0; i < whole; ++i) {
        Cell& cell = page.cells[first + i];
        if (is_link(cell.last)) {
          visit<kind>(cell, at + i * cell_bytes, cell_bytes, begin, end);
        } else {
          touch<kind>(cell, at + i * cell_bytes, cell_bytes);
        }
      }
      if (whole == 0) visit<kind>(page.cells[first], at, cell_bytes, begin, end);
      begin = whole == 0 ? std::min(end, at + cell_bytes) : begin + whole * cell_bytes;
    }
  }

  /// The part of the cell, whose first byte is number `at`, that lies in [begin, end).
  template <Kind kind>
  void visit(Cell& cell, std::size_t at, std::size_t size, std::size_t begin, std::size_t end) {
    const bool whole = begin <= at && at + size <= end;
    if (!is_link(cell.last)) {
      if (whole) return touch<kind>(cell, at, size);
      split(cell, size);
    }
    const std::uint32_t number = target(cell.last);
    const std::span<Cell> parts = size == cell_bytes ? std::span<Cell>(shadow_.quarters_[number])
                                                     : std::span<Cell>(shadow_.halves_[number]);
    const std::size_t part = size / parts.size();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::size_t first = at + i * part;
      if (first < end && begin < first + part) visit<kind>(parts[i], first, part, begin, end);
    }
    if (kind == Kind::write && whole) {
      cell = parts[0];
      size == cell_bytes ? shadow_.quarters_.give(number) : shadow_.halves_.give(number);
    }
  }

  template <Kind kind>
  void touch(Cell& cell, std::size_t at, std::size_t size) {
    if (!cell.last.empty() && cell.last != ordered_write_) compare(cell.last, at, size);
    if constexpr (kind == Kind::write) {
      for (const Record r : cell.since) {
        if (r.empty()) break;
        if (is_link(r)) {
          compare_many(target(r), at, size);
        } else if (r != ordered_read_) {
          compare(r, at, size);
        }
      }
      cell.last = mine_;
      cell.since = {};
    } else {
      if (kind == Kind::atomic || shadow_.has_atomics_) compare_conflicting(cell, at, size);
      add(cell);
    }
  }

  // Of reads and atomics.
  bool conflicts(Record earlier) const {
    if (earlier.kind() != mine_.kind()) return true;
    return mine_.kind() == static_cast<std::uint32_t>(Kind::atomic) &&
           (earlier.proxy() != mine_.proxy() || !shadow_.engine_.is_mutual(earlier, agent_, mine_));
  }

  void compare_conflicting(const Cell& cell, std::size_t at, std::size_t size) {
    for (const Record r : cell.since) {
      if (is_link(r)) {
        for (std::uint32_t i = target(r); i != none; i = shadow_.many_[i].next)
          for (const Record one : shadow_.many_[i].records)
            if (!one.empty() && conflicts(one)) compare(one, at, size);
      } else if (!r.empty() && conflicts(r)) {
        compare(r, at, size);
      }
    }
  }

  // Gives the list back.
  void compare_many(std::uint32_t i, std::size_t at, std::size_t size) {
    while (i != none) {
      const Many& many = shadow_.many_[i];
      if (!all_ordered(many)) {
        for (const Record r : many.records)
          if (!r.empty()) compare(r, at, size);
      }
      const std::uint32_t next = many.next;
      shadow_.many_.give(i);
      i = next;
    }
  }

  // Whether they plainly are: the usual case, and quick to see for all at once.
  bool all_ordered(const Many& many) const {
    if (mine_.proxy() == Proxy::async) return false;
    bool ordered = true;
    for (const View& view : views_) {
      const ClockPart* known = view.clock->happened_around(many.first);
      if (known == nullptr) return false;
      for (std::size_t k = 0; k < many.records.size(); ++k)
        ordered &= many.records[k].epoch() <= known->epochs[k];
    }
    return ordered;
  }

  Order order(Record earlier) const {
    if (earlier.timeline() != mine_.timeline() || earlier.epoch() < since_) {
      for (const View& view : views_)
        if (!view.knows(earlier) && !shadow_.engine_.is_own(agent_, earlier)) return Order::none;
    }
    if (mine_.proxy() == Proxy::async && earlier.kind() != static_cast<std::uint32_t>(Kind::read)) {
      for (const View& view : views_)
        if (!is_fenced(earlier, view)) return Order::not_fenced;
    }
    return Order::ordered;
  }

  // What happened before is also seen through the async proxy.
  bool is_fenced(Record earlier, const View& view) const {
    if (earlier.proxy() == Proxy::generic) return view.knows_fenced(shadow_.space_, earlier);
    Engine& engine = shadow_.engine_;
    return shadow_.space_ == Space::shared || !engine.is_of_other_block(earlier, agent_) ||
           engine.is_admitted(earlier, agent_, view);
  }

  void compare(Record earlier, std::size_t at, std::size_t size) {
    const Order found = order(earlier);
    if (found == Order::ordered) {
      (earlier.kind() == static_cast<std::uint32_t>(Kind::read) ? ordered_read_ : ordered_write_) =
          earlier;
      return;
    }
    const bool missing_fence = found == Order::not_fenced;
    if (earlier_.empty()) {
      earlier_ = earlier;
      offset_ = at;
      bytes_ = size;
      missing_fence_ = missing_fence;
    } else if (at == offset_ + bytes_ && missing_fence == missing_fence_ &&
               earlier.same_source(earlier_) && earlier.tag_number() == earlier_.tag_number()) {
      bytes_ += size;
    }
  }

  void add(Cell& cell) {
    for (Record& r : cell.since) {
      if (r.empty() || r.same_source(mine_)) {
        r = mine_;
        return;
      }
    }
    Record& list = cell.since.back();
    if (!is_link(list)) {
      const Record one = list;
      list = link_to(none);
      add(list, one);
    }
    add(list, mine_);
  }

  // The one that was used last comes first: neighbouring threads run after each other.
  void add(Record& list, Record r) {
    const std::uint32_t source = neighbourhood(r);
    std::uint32_t before = none, i = target(list);
    while (i != none && shadow_.many_[i].source != source) {
      before = i;
      i = shadow_.many_[i].next;
    }
    if (i == none) {
      i = shadow_.many_.take();
      shadow_.many_[i] = {
          source, r.timeline() - r.timeline() % ClockPart::timelines, target(list), {}};
    } else if (before != none) {
      shadow_.many_[before].next = shadow_.many_[i].next;
      shadow_.many_[i].next = target(list);
    }
    list = link_to(i);
    shadow_.many_[i].records[r.timeline() % ClockPart::timelines] = r;
  }

  void split(Cell& cell, std::size_t size) {
    const auto share = [&](auto& parts, std::uint32_t number) {
      parts.fill(cell);
      if (is_link(cell.since.back()))
        for (std::size_t i = 1; i < parts.size(); ++i)
          parts[i].since.back() = copy(cell.since.back());
      cell.last = link_to(number);
    };
    if (size == cell_bytes) {
      const std::uint32_t number = shadow_.quarters_.take();
      share(shadow_.quarters_[number], number);
    } else {
      const std::uint32_t number = shadow_.halves_.take();
      share(shadow_.halves_[number], number);
    }
  }

  Record copy(Record list) {
    std::uint32_t copied = none;
    for (std::uint32_t i = target(list); i != none; i = shadow_.many_[i].next) {
      const std::uint32_t made = shadow_.many_.take();
      shadow_.many_[made] = shadow_.many_[i];
      shadow_.many_[made].next = copied;
      copied = made;
    }
    return link_to(copied);
  }

  Shadow& shadow_;
  const Agent agent_;
  const Record mine_;
  const Epoch since_;
  const std::span<const View> views_;
  Record ordered_write_, ordered_read_;  // the last that were found to be ordered
  Record earlier_;                       // of the first race
  std::size_t offset_ = 0, bytes_ = 0;
  bool missing_fence_ = false;
};

Shadow::Shadow(Engine& engine, std::size_t bytes, Space space)
    : engine_(engine),
      bytes_(bytes),
      space_(space),
      pages_((bytes + page_bytes - 1) / page_bytes) {}

void Shadow::clear() {
  ++generation_;
  has_atomics_ = false;
  many_.clear();
  quarters_.clear();
  halves_.clear();
}

Shadow::Page& Shadow::fresh_page(std::size_t number) {
  std::unique_ptr<Page>& page = pages_[number];
  if (!page) page = std::make_unique_for_overwrite<Page>();
  page->generation = generation_;
  page->cells = {};
  return *page;
}

// The cell of exactly these bytes, if they have one.
Shadow::Cell* Shadow::cell_of(std::size_t offset, std::size_t bytes) {
  if (!std::has_single_bit(bytes) || bytes > cell_bytes || offset % bytes != 0 ||
      offset >= bytes_ || bytes > bytes_ - offset)
    return nullptr;
  Cell* cell = &page(offset / page_bytes).cells[offset % page_bytes / cell_bytes];
  std::size_t size = cell_bytes;
  while (size > bytes) {
    if (!is_link(cell->last)) return nullptr;
    const std::uint32_t parts = target(cell->last);
    if (size == cell_bytes) {
      size = cell_bytes / 4;
      cell = &quarters_[parts][offset / size % 4];
    } else {
      size /= 2;
      cell = &halves_[parts][offset / size % 2];
    }
  }
  return size == bytes ? cell : nullptr;
}

// Records what plainly races with nothing; false, and nothing done, where one must look closer.
bool Shadow::passes(Cell& cell, Record mine, const View& view) const {
  if (is_link(cell.last) || has_atomics_ || mine.proxy() == Proxy::async ||
      !(cell.last.empty() || view.knows(cell.last)))
    return false;
  if (mine.kind() == static_cast<std::uint32_t>(Kind::read)) {
    for (Record& r : cell.since) {
      if (!r.empty() && !r.same_source(mine)) continue;
      r = mine;
      return true;
    }
    return false;
  }
  for (const Record r : cell.since) {
    if (r.empty()) break;
    if (is_link(r) || !view.knows(r)) return false;
  }
  cell.last = mine;
  cell.since = {};
  return true;
}

Record Shadow::record(const Access& access) {
  has_atomics_ = has_atomics_ || access.kind == Kind::atomic;
  if (space_ == Space::global && access.proxy == Proxy::async && access.kind != Kind::read)
    engine_.watch_fences();
  return engine_.record(access);
}

std::optional<Race> Shadow::check(std::size_t offset, std::size_t bytes, const Access& access,
                                  std::span<const View> views) {
  Check check(*this, access.agent, record(access), views);
  check.range(offset, bytes);
  return check.race(access);
}

std::optional<Race> Shadow::access(std::size_t offset, std::size_t bytes, Access access) {
  const View view = engine_.view(access.agent);
  const Record mine = record(access);
  if (Cell* cell = cell_of(offset, bytes); cell != nullptr && passes(*cell, mine, view))
    return std::nullopt;
  Check check(*this, access.agent, mine, {&view, 1});
  check.range(offset, bytes);
  return check.race(access);
}

std::optional<Race> Shadow::access(std::size_t offset, std::size_t bytes, Access access,
                                   std::span<const Agent> issuers) {
  views_.clear();
  for (const Agent a : issuers) views_.push_back(engine_.view(a));
  return check(offset, bytes, access, views_);
}

std::optional<Race> Shadow::access(std::size_t offset, std::size_t bytes, Access access,
                                   std::span<const Snapshot> known) {
  views_.clear();
  for (const Snapshot s : known) views_.push_back(engine_.view(s));
  return check(offset, bytes, access, views_);
}

std::optional<Race> Shadow::access(std::span<const std::uint32_t> offsets, std::size_t bytes_each,
                                   Access access, std::span<const Snapshot> known) {
  views_.clear();
  for (const Snapshot s : known) views_.push_back(engine_.view(s));
  Check check(*this, access.agent, record(access), views_);
  for (const std::uint32_t offset : offsets) check.range(offset, bytes_each);
  return check.race(access);
}

}  // namespace palladium::race
