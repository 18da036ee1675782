// Operands of products that threads compute in an iteration of a loop have slots of a ring: they
// are computed while the product of the iteration before runs. Of two slots all threads wait for
// each other in front of what they compute and behind it; of three the one barrier does for both.
// An A that threads compute in registers has those that the product reads and others beside them.
//
// Precondition: choose_copies, which says what threads compute rather than copy. It stands before
// build_pipelines, which gives what room is left to copies ahead. A product of wgmma that adds to
// what the iteration before it left, and that nobody asks for meanwhile, goes on while what the
// next one reads is stored beside it: complete_async awaits it where its slot is filled again.
#include <algorithm>
#include <optional>
#include <set>

#include "codegen/base/format.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/products.hpp"
#include "codegen/passes/registers.hpp"
#include "codegen/passes/slots.hpp"

namespace palladium::passes {
namespace {

constexpr int least_slots = 2, most_slots_of_computed = 3;
// Slots of copies that have to have room, beside the one that is read.
constexpr std::int64_t least_ahead = 2, wanted_ahead = most_slots - 1;

class DoubleBuffers {
 public:
  explicit DoubleBuffers(Program& l) : l_(l) {}

  void run() {
    for_each_list(l_, [&](Statements& list) { visit(list); });
  }

 private:
  void visit(Statements& list) {
    for (Statement& s : list) {
      for_each_body(s, [&](Statements& body) { visit(body); });
      if (Loop* const loop = std::get_if<Loop>(&s.what))
        build({.body = &loop->body, .loop = loop->inst}, loop->shared, s.at);
      else if (GridLoop* const loop = std::get_if<GridLoop>(&s.what);
               loop != nullptr && loop->axis != programs_axis)
        build({.body = &loop->body, .axis = loop->axis}, loop->shared, s.at);
    }
  }

  void build(const Over& over, std::vector<StorageId>& shared, Location at) {
    if (trips(l_, over) < least_slots) return;
    for (std::size_t i = 0; i < over.body->size(); ++i)
      if (const StorageId held = computed_in_registers((*over.body)[i]);
          held && runs_on(*over.body, held) && !follows_product(*over.body, i) &&
          compute_beside(*over.body, i, held))
        shared.push_back(held);
    std::vector<StorageId> computed;
    for (const Statement& s : *over.body)
      if (const StorageId filled = computed_by(s); filled && runs_on(*over.body, filled))
        computed.push_back(filled);
    if (computed.empty()) return;
    const bool fits_most = has_room(*over.body, computed, most_slots_of_computed, wanted_ahead);
    if (!fits_most && !has_room(*over.body, computed, least_slots, least_ahead)) {
      for (const StorageId s : computed)
        l_.remarks.push_back(
            {at, fmt::format("{}: stored when the product before is done, not beside it, because a "
                             "block has no more shared memory",
                             description_of(l_.graph, l_.storages[s].of))});
      return;
    }
    const int slots = fits_most ? most_slots_of_computed : least_slots;
    const RingId ring = add_ring(computed, slots, trips(l_, over));
    over.body->push_back({Advance{ring}, at});
  }

  // What a nest computes for products; none of other statements.
  StorageId computed_by(const Statement& s) const {
    const LoopNest* const p = std::get_if<LoopNest>(&s.what);
    const Stage* const stage = p == nullptr ? nullptr : std::get_if<Stage>(&p->sink);
    if (stage == nullptr || stage->by.asynchronous) return {};
    const Storage& to = l_.storages[stage->storage];
    const bool alone = !to.ring() && !to.shared().within.storage && !to.shared().per_warp;
    return alone ? stage->storage : StorageId();
  }

  // An A in registers, of which wgmma reads pairs.
  StorageId computed_in_registers(const Statement& s) const {
    const LoopNest* const p = std::get_if<LoopNest>(&s.what);
    const Assign* const a = p == nullptr ? nullptr : std::get_if<Assign>(&p->sink);
    return a != nullptr && l_.storages[a->storage].is_packed() ? a->storage : StorageId();
  }

  // Whether the nest is made of what products of its list leave: software_pipeline is asked of
  // that.
  bool follows_product(const Statements& body, std::size_t nest) const {
    const Effects reads = effects(l_, body[nest]);
    return std::ranges::any_of(body, [&](const Statement& s) {
      const Dot* const d = std::get_if<Dot>(&s.what);
      return d != nullptr && std::ranges::any_of(reads, [&](const Effect& e) {
               return e.reads() && e.storage == d->result;
             });
    });
  }

  // In registers of its own, which the product takes over when that of the iteration before, which
  // reads them as long as it runs, is done.
  bool compute_beside(Statements& body, std::size_t nest, StorageId held) {
    const auto product = std::ranges::find_if(body, [&](const Statement& s) {
      const Dot* const d = std::get_if<Dot>(&s.what);
      return d != nullptr && d->a == held;
    });
    if (!holds_next(l_, std::get<Dot>(product->what).inst)) return false;
    const StorageId next = l_.add_storage(Storage(l_.storages[held]));
    std::get<Assign>(std::get<LoopNest>(body[nest].what).sink).storage = next;
    const Location at = product->at;
    body.insert(product, {lowered::CopyStorage{.from = next, .to = held}, at});
    return true;
  }

  // Whether it is filled once in the iteration, for products in its list that go on behind it.
  bool runs_on(const Statements& body, StorageId operand) const {
    int fills = 0, products = 0;
    for (const Statement& s : body) {
      if (computed_by(s) == operand || computed_in_registers(s) == operand) {
        ++fills;
      } else if (const Dot* const d = std::get_if<Dot>(&s.what);
                 d != nullptr && (d->a == operand || d->b == operand)) {
        if (fills == 0 || !goes_on(body, *d)) return false;
        ++products;
      }
    }
    return fills == 1 && products > 0 && touching(operand) == fills + products;
  }

  bool goes_on(const Statements& body, const Dot& d) const {
    return d.accumulates && (d.unit == Dot::Unit::wgmma || rests(l_, d)) &&
           std::ranges::none_of(body, [&](const Statement& s) {
             const Dot* const other = std::get_if<Dot>(&s.what);
             const bool adds = other != nullptr && other->result == d.result && other->accumulates;
             return !adds && touches(s, d.result);
           });
  }

  bool touches(const Statement& s, StorageId storage) const {
    return any_effect(l_, s, [&](const Effect& e) { return e.storage == storage; });
  }

  // Statements of the program, those in others counting by themselves.
  int touching(StorageId storage) const {
    int count = 0;
    for_each_list(l_, [&](const Statements& list) { count += touching(list, storage); });
    return count;
  }
  int touching(const Statements& list, StorageId storage) const {
    int count = 0;
    for (const Statement& s : list) {
      count += std::ranges::any_of(effects(l_, s),
                                   [&](const Effect& e) { return e.storage == storage; });
      for_each_body(s, [&](const Statements& body) { count += touching(body, storage); });
    }
    return count;
  }

  // Beside so many slots for what is copied.
  bool has_room(const Statements& body, const std::vector<StorageId>& computed, int slots,
                std::int64_t ahead) const {
    Checked all = placed_bytes(l_);
    for (const StorageId s : computed)
      all = all + shared_bytes(l_.storages[s]) * (std::int64_t{slots} - 1);
    for (std::size_t i = 0; i < body.size(); ++i)
      if (begins_copies(body, i))
        for (const StorageId s : filled_by(l_, copies_at(body, i)))
          all = all + shared_bytes(l_.storages[s]) * ahead;
    return all.within(0, l_.machine.max_shared_bytes);
  }

  RingId add_ring(const std::vector<StorageId>& computed, int slots, std::int64_t trips) {
    const RingId ring(static_cast<int>(l_.rings.size()));
    Ring r{.storage = {}, .slots = slots, .trips = trips};
    std::int64_t alignment = 1;
    for (const StorageId operand : computed) {
      Storage& s = l_.storages[operand];
      s.shared().ring = ring;
      s.shared().offset = round_up(r.slot_bytes, shared_alignment(s));
      r.slot_bytes = s.shared().offset + shared_bytes(s).value();
      alignment = std::max(alignment, shared_alignment(s));
    }
    r.slot_bytes = round_up(r.slot_bytes, alignment);
    r.storage = l_.add_storage({.in = Shared{.row_stride = slots * r.slot_bytes,
                                             .per_warpgroup = l_.warpgroups > 1,
                                             .alignment = alignment},
                                .dtype = u8,
                                .shape = {slots * r.slot_bytes},
                                .of = l_.storages[computed[0]].of});
    l_.rings.push_back(r);
    return ring;
  }

  Program& l_;
};

}  // namespace

void double_buffer_operands(Program& l) {
  const bool wanted = std::ranges::none_of(l.graph.bodies, [](const graph::Body& b) {
    return b.num_stages == 1;  // a user says that nothing is to be there twice
  });
  if (wanted) DoubleBuffers(l).run();
}

}  // namespace palladium::passes
