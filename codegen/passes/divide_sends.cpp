// Results that several warpgroups leave to TMA in a loop: each stores rows of its own to the panels
// and sends them, so that none waits for another. One is then behind the others by as much as slots
// of the loop's operands allow, and stores while they multiply, and multiplies while they store.
//
// Precondition: assign_layouts, which says which rows a warpgroup has; complete_async, which makes
// waits for what is sent, stands behind it. All of a program's sends are such, or none: who waits
// for the groups of one thread waits for all of these. Others fetch for the loops: whoever fetches
// for a warpgroup beside him has to know that it has seen the last time.
#include <algorithm>
#include <map>
#include <vector>

#include "codegen/lowered/effects.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

constexpr std::int64_t rows_apart = 64;  // that a product of wgmma leaves a warpgroup

bool is_send(const Statement& s) {
  const Copy* const c = std::get_if<Copy>(&s.what);
  return c != nullptr && !c->completes && c->from.storage && !c->to.storage;
}

class DividedSends {
 public:
  explicit DividedSends(Program& l) : l_(l), warpgroups_(l.num_warps / 4) {}

  void run() {
    Statements& agent = l_.bodies[0].agents[0].statements;
    for_each_list(l_, [&](Statements& list) { find(list, false); });
    if (sends_.empty() || !repeats_ || fetches(agent, false)) return;
    std::vector<TensorBox> parts;
    for (const Copy* c : sends_) {
      if (!can_divide(*c, agent)) return;
      parts.push_back(part_of(*c));
      if (parts.back().box.empty() || boxes_[c->box] > count(c->box)) return;
    }
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      l_.tensor_boxes[sends_[i]->box] = parts[i];
      l_.storages[sends_[i]->from.storage].shared().by_warpgroups = true;
    }
  }

 private:
  void find(Statements& list, bool repeated) {
    for (Statement& s : list) {
      if (const Copy* const c = std::get_if<Copy>(&s.what); c != nullptr && c->box)
        ++boxes_[c->box];
      if (is_send(s)) {
        sends_.push_back(&std::get<Copy>(s.what));
        repeats_ = repeats_ || repeated;
      }
      for_each_body(s, [&](Statements& body) { find(body, repeated || repeats(s)); });
    }
  }

  bool fetches(const Statements& list, bool repeated) const {
    return std::ranges::any_of(list, [&](const Statement& s) {
      const Copy* const c = std::get_if<Copy>(&s.what);
      bool found = repeated && c != nullptr && c->completes;
      for_each_body(s, [&](const Statements& body) {
        found = found || fetches(body, repeated || repeats(s));
      });
      return found;
    });
  }

  // Of what is sent.
  std::int64_t count(BoxId box) const {
    return std::ranges::count_if(sends_, [&](const Copy* c) { return c->box == box; });
  }

  // Whether all that touches its panels is what is sent and nests of which each warpgroup has the
  // rows that it sends.
  bool can_divide(const Copy& c, const Statements& agent) const {
    const Storage& s = l_.storages[c.from.storage];
    return c.box && !c.by_hand && c.update < 0 && c.predicate == graph::no_value &&
           s.shared().swizzle > 0 && s.shape.size() == 2 && !s.ring() &&
           s.shape[0] % (rows_apart * warpgroups_) == 0 && touches_apart(agent, c.from.storage);
  }

  bool touches_apart(const Statements& list, StorageId panels) const {
    return std::ranges::all_of(list, [&](const Statement& s) {
      bool apart = true;
      for_each_body(s,
                    [&](const Statements& body) { apart = apart && touches_apart(body, panels); });
      const bool touches =
          std::ranges::any_of(effects(l_, s), [&](const Effect& e) { return e.storage == panels; });
      if (!apart || !touches || is_send(s)) return apart;
      const LoopNest* const p = std::get_if<LoopNest>(&s.what);
      const Stage* const stage = p == nullptr ? nullptr : std::get_if<Stage>(&p->sink);
      return stage != nullptr && !stage->by.asynchronous && has_rows_apart(p->layout);
    });
  }

  // Whether each warpgroup has whole runs of 64 rows, one behind the other's.
  bool has_rows_apart(const layout::Layout& l) const {
    constexpr std::size_t warps_in_warpgroup = 2;  // bits
    if (l.rank() != 2 || l.warp.size() < warps_in_warpgroup ||
        l.tile(0) != rows_apart * warpgroups_)
      return false;
    std::int64_t row = rows_apart;
    for (std::size_t b = warps_in_warpgroup; b < l.warp.size(); ++b, row *= 2)
      if (l.field(0, l.warp[b]) != static_cast<std::uint32_t>(row) || l.field(1, l.warp[b]) != 0)
        return false;
    return row == rows_apart * warpgroups_;
  }

  // The box of so many rows; without extents if it has not all rows in one dimension.
  TensorBox part_of(const Copy& c) const {
    TensorBox box = l_.tensor_boxes[c.box];
    const std::int64_t rows = l_.storages[c.from.storage].shape[0];
    int found = 0;
    for (std::size_t d = 0; d + 1 < box.box.size(); ++d) {
      if (box.box[d] == 1) continue;
      const bool divides = box.box[d] == rows || box.box[d] % rows_apart == 0;
      if (!divides || ++found > 1) return {};
      box.box[d] = rows_apart;
    }
    return found == 1 ? box : TensorBox{};
  }

  Program& l_;
  const std::int64_t warpgroups_;
  std::vector<Copy*> sends_ = {};
  bool repeats_ = false;                      // one is in a loop
  std::map<BoxId, std::int64_t> boxes_ = {};  // how many copies use each
};

}  // namespace

void divide_sends(Program& l) {
  if (l.machine.has_tma() && l.num_warps > 4 && l.warpgroups == 1 && l.bodies.size() == 1 &&
      l.written == nullptr)
    DividedSends(l).run();
}

}  // namespace palladium::passes
