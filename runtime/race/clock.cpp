#include "runtime/race/clock.hpp"

#include <algorithm>
#include <utility>

namespace palladium::race {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

}  // namespace

std::size_t Clocks::Hash::operator()(const ClockPart* part) const {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < part->epochs.size(); i += 2)
    hash = mix(hash, std::uint64_t{part->epochs[i]} << 32 | part->epochs[i + 1]);
  return hash;
}

std::size_t Clocks::Hash::operator()(const Clock* clock) const {
  std::uint64_t hash = clock->size_;
  for (std::uint32_t i = 0; i < clock->size_; ++i)
    hash = mix(hash, reinterpret_cast<std::uintptr_t>(clock->parts_[i]));
  return hash;
}

bool Clocks::Equal::operator()(const Clock* a, const Clock* b) const {
  return std::equal(a->parts_, a->parts_ + a->size_, b->parts_, b->parts_ + b->size_);
}

Clocks::Clocks() { clear(); }

void Clocks::clear() {
  memo_ = {};
  clocks_.clear();
  parts_.clear();
  lists_.clear();
  clock_storage_.clear();
  part_storage_.clear();
  empty_ = part(ClockPart{});
  nothing_ = clock({});
}

void Clocks::forget_all_but(std::span<const Clock*> kept) {
  Clocks others;
  for (const Clock*& c : kept) {
    others.scratch_.clear();
    for (std::uint32_t i = 0; i < c->size_; ++i)
      others.scratch_.push_back(others.part(*c->parts_[i]));
    c = others.clock(others.scratch_);
  }
  *this = std::move(others);
}

const ClockPart* Clocks::part(const ClockPart& contents) {
  const auto known = parts_.find(&contents);
  if (known != parts_.end()) return *known;
  const ClockPart* added = &part_storage_.emplace_back(contents);
  parts_.insert(added);
  return added;
}

// Parts are pointers to shared contents: trailing empty ones are left away so that equal clocks
// have equal lists.
const Clock* Clocks::clock(const std::vector<const ClockPart*>& parts) {
  std::size_t size = parts.size();
  while (size > 0 && parts[size - 1] == empty_) --size;
  Clock made;
  made.parts_ = parts.data();
  made.size_ = static_cast<std::uint32_t>(size);
  const auto known = clocks_.find(&made);
  if (known != clocks_.end()) return *known;
  auto& list = lists_.emplace_back(std::make_unique<const ClockPart*[]>(size));
  std::copy_n(parts.begin(), size, list.get());
  made.parts_ = list.get();
  made.number_ = static_cast<std::uint32_t>(clock_storage_.size());
  const Clock* added = &clock_storage_.emplace_back(made);
  clocks_.insert(added);
  return added;
}

const ClockPart* Clocks::join(const ClockPart* a, const ClockPart* b) {
  if (a == b || b == empty_) return a;
  if (a == empty_) return b;
  ClockPart joined;
  for (std::size_t i = 0; i < joined.epochs.size(); ++i)
    joined.epochs[i] = std::max(a->epochs[i], b->epochs[i]);
  if (joined == *a) return a;
  if (joined == *b) return b;
  return part(joined);
}

const Clock* Clocks::join(const Clock* a, const Clock* b) {
  if (a == b || b == nothing_) return a;
  if (a == nothing_) return b;
  Memo& memo = memo_[mix(a->number_, b->number_) % memos];
  if (memo.a == a && memo.b == b) return memo.joined;
  const Clock *longer = a->size_ >= b->size_ ? a : b, *shorter = longer == a ? b : a;
  scratch_.assign(longer->parts_, longer->parts_ + longer->size_);
  bool is_longer = true, is_shorter = longer->size_ == shorter->size_;
  for (std::uint32_t i = 0; i < shorter->size_; ++i) {
    scratch_[i] = join(longer->parts_[i], shorter->parts_[i]);
    is_longer = is_longer && scratch_[i] == longer->parts_[i];
    is_shorter = is_shorter && scratch_[i] == shorter->parts_[i];
  }
  memo = {a, b, is_longer ? longer : is_shorter ? shorter : clock(scratch_)};
  return memo.joined;
}

const Clock* Clocks::fence_all(const Clock* c, Spaces which) {
  const Clock*& fenced = c->all_fenced_[which];
  if (fenced == nullptr) {
    scratch_.assign(c->parts_, c->parts_ + c->size_);
    while (scratch_.size() % Clock::stride != 0) scratch_.push_back(empty_);
    for (std::size_t i = 0; i < scratch_.size(); i += Clock::stride) {
      for (std::uint32_t s = 0; s < spaces; ++s)
        if ((which >> s & 1) != 0) scratch_[i + 1 + s] = join(scratch_[i], scratch_[i + 1 + s]);
    }
    fenced = clock(scratch_);
    fenced->all_fenced_[which] = fenced;
  }
  return fenced;
}

const Clock* Clocks::only(const Clock* c, std::span<const std::uint32_t> some, int number) {
  const Clock*& selected = c->only_some_[number];
  if (selected == nullptr) {
    scratch_.assign(c->size_, empty_);
    for (std::size_t i = 0; i < scratch_.size(); i += Clock::stride) {
      ClockPart kept = *c->parts_[i];
      for (std::uint32_t t = 0; t < ClockPart::timelines; ++t)
        if ((some[i / Clock::stride] >> t & 1) == 0) kept.epochs[t] = 0;
      scratch_[i] = part(kept);
    }
    selected = clock(scratch_);
  }
  return selected;
}

bool Clocks::covers(const Clock* known, const Clock* clock, Timeline except, Epoch since) const {
  for (std::uint32_t p = 0; p < clock->size_; ++p) {
    const ClockPart *theirs = clock->parts_[p],
                    *mine = p < known->size_ ? known->parts_[p] : empty_;
    if (theirs == mine) continue;
    for (std::uint32_t i = 0; i < ClockPart::timelines; ++i) {
      const Timeline t = p / Clock::stride * ClockPart::timelines + i;
      const bool excepted = t == except && theirs->epochs[i] >= since;
      if (theirs->epochs[i] > mine->epochs[i] && !excepted) return false;
    }
  }
  return true;
}

void Clocks::start() {
  base_ = nothing_;
  draft_.clear();
  is_own_.clear();
  ++visit_;
}

void Clocks::add(const Clock* clock) {
  if (clock->visit_ == visit_) return;
  clock->visit_ = visit_;
  base_ = join(base_, clock);
}

void Clocks::add(Timeline t, Epoch happened, PerSpace fenced) {
  const std::size_t part = Clock::stride * (t / ClockPart::timelines);
  raise(part, t, happened);
  for (std::uint32_t s = 0; s < spaces; ++s)
    if (fenced[s] > 0) raise(part + 1 + s, t, fenced[s]);
}

void Clocks::raise(std::size_t part, Timeline t, Epoch epoch) {
  if (part >= is_own_.size()) is_own_.resize(part + 1);
  if (own_.size() < is_own_.size()) own_.resize(is_own_.size());
  if (!is_own_[part]) {
    if (!own_[part]) own_[part] = std::make_unique<ClockPart>();
    *own_[part] = {};
    is_own_[part] = true;
  }
  Epoch& mine = own_[part]->epochs[t % ClockPart::timelines];
  mine = std::max(mine, epoch);
}

const Clock* Clocks::finish() {
  draft_.assign(base_->parts_, base_->parts_ + base_->size_);
  if (draft_.size() < is_own_.size()) draft_.resize(is_own_.size(), empty_);
  for (std::size_t i = 0; i < is_own_.size(); ++i) {
    if (!is_own_[i]) continue;
    for (std::size_t k = 0; k < ClockPart::timelines; ++k)
      own_[i]->epochs[k] = std::max(own_[i]->epochs[k], draft_[i]->epochs[k]);
    draft_[i] = part(*own_[i]);
  }
  return clock(draft_);
}

}  // namespace palladium::race
