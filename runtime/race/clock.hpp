// Vector clocks: what somebody knows of everybody's past. Immutable, and equal ones are one object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

namespace palladium::race {

/// Numbers one sequence of accesses in program order.
using Timeline = std::uint32_t;
using Epoch = std::uint32_t;

/// Memories that fence.proxy.async tells apart.
enum class Space : std::uint8_t { shared, global };
constexpr std::uint32_t spaces = 2;
/// One of each space.
using PerSpace = std::array<Epoch, spaces>;
/// A set of spaces, by their bits.
using Spaces = std::uint8_t;
constexpr Spaces only(Space s) { return static_cast<Spaces>(1 << static_cast<int>(s)); }
constexpr Spaces all_spaces = (1 << spaces) - 1;

/// 32 neighbouring timelines of a clock; clocks share their equal parts.
struct alignas(64) ClockPart {
  static constexpr std::uint32_t timelines = 32;
  std::array<Epoch, timelines> epochs = {};
  bool operator==(const ClockPart&) const = default;
};

/// Of each timeline, up to which epoch everything happened before, and up to which epoch its
/// generic writes to each space were made visible to the async proxy.
class Clock {
 public:
  Epoch happened(Timeline t) const { return epoch(stride * (t / ClockPart::timelines), t); }
  /// For the 32 timelines around t; null if nothing of them is known.
  const ClockPart* happened_around(Timeline t) const {
    const std::uint32_t part = stride * (t / ClockPart::timelines);
    return part < size_ ? parts_[part] : nullptr;
  }
  Epoch fenced(Space s, Timeline t) const {
    return epoch(stride * (t / ClockPart::timelines) + 1 + static_cast<std::uint32_t>(s), t);
  }

 private:
  friend class Clocks;
  static constexpr std::uint32_t stride = 1 + spaces;

  Epoch epoch(std::uint32_t part, Timeline t) const {
    return part < size_ ? parts_[part]->epochs[t % ClockPart::timelines] : 0;
  }

  // In turns what happened and what was fenced for each space.
  const ClockPart* const* parts_ = nullptr;
  std::uint32_t size_ = 0;  // the last part is not empty
  std::uint32_t number_ = 0;
  mutable std::array<const Clock*, all_spaces + 1> all_fenced_ = {};
  mutable std::array<const Clock*, 2> only_some_ = {};  // by the number of the selection
  mutable std::uint64_t visit_ = 0;
};

/// Owns clocks and makes new ones. They stay until `clear`.
class Clocks {
 public:
  Clocks();
  Clocks(const Clocks&) = delete;
  Clocks& operator=(Clocks&&) = default;

  const Clock* nothing() const { return nothing_; }
  std::uint32_t number(const Clock* clock) const { return clock->number_; }

  /// What either knows.
  const Clock* join(const Clock* a, const Clock* b);
  /// Everything that happened counts as fenced for these spaces.
  const Clock* fence_all(const Clock* clock, Spaces spaces);
  /// What it knows to have happened on the timelines of `some`, which has a bit for each and says
  /// the same of a timeline in every call with this `number`.
  const Clock* only(const Clock* clock, std::span<const std::uint32_t> some, int number);
  /// Whether `known` knows all that `clock` knows but for timeline `except` from epoch `since` on.
  bool covers(const Clock* known, const Clock* clock, Timeline except, Epoch since) const;

  /// Joins many clocks and points at once: `start`, `add` each, `finish`.
  void start();
  void add(const Clock* clock);
  void add(Timeline t, Epoch happened, PerSpace fenced);
  const Clock* finish();

  void clear();
  /// Forgets all clocks but these; they move.
  void forget_all_but(std::span<const Clock*> kept);

 private:
  struct Hash {
    std::size_t operator()(const ClockPart* part) const;
    std::size_t operator()(const Clock* clock) const;
  };
  struct Equal {
    bool operator()(const ClockPart* a, const ClockPart* b) const { return *a == *b; }
    bool operator()(const Clock* a, const Clock* b) const;
  };
  struct Memo {
    const Clock *a = nullptr, *b = nullptr, *joined = nullptr;
  };
  static constexpr std::size_t memos = 1024;

  const ClockPart* part(const ClockPart& contents);
  const ClockPart* join(const ClockPart* a, const ClockPart* b);
  const Clock* clock(const std::vector<const ClockPart*>& parts);
  void raise(std::size_t part, Timeline t, Epoch epoch);

  std::deque<ClockPart> part_storage_;
  std::unordered_set<const ClockPart*, Hash, Equal> parts_;
  std::deque<Clock> clock_storage_;
  std::deque<std::unique_ptr<const ClockPart*[]>> lists_;
  std::unordered_set<const Clock*, Hash, Equal> clocks_;
  const ClockPart* empty_ = nullptr;
  const Clock* nothing_ = nullptr;
  std::array<Memo, memos> memo_ = {};

  // Between `start` and `finish`: parts, and which of them are still to be shared.
  std::vector<const ClockPart*> draft_, scratch_;
  std::vector<std::unique_ptr<ClockPart>> own_;
  std::vector<bool> is_own_;
  const Clock* base_ = nullptr;
  std::uint64_t visit_ = 0;
};

}  // namespace palladium::race
