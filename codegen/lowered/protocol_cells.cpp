// Which storages matter to the protocol.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "codegen/lowered/effects.hpp"
#include "codegen/lowered/protocol_model.hpp"

namespace palladium::lowered::protocol {
namespace {

using Of = device::Effects::Role;

class Cells {
 public:
  explicit Cells(Model& m) : m_(m), l_(*m.program), asynchronous_(l_.storages.size()) {}

  void run() {
    for (const Agent& a : m_.agents) visit(*a.statements);
    m_.first_cell = Table<StorageId, int>(l_.storages.size(), -1);
    for (const StorageId s : l_.storages.ids())
      if (asynchronous_[s]) add(s, true);
    const std::size_t count = m_.cells.size();
    for (const StorageId s : l_.storages.ids())
      if (!asynchronous_[s] && touched_.contains(s) && meets_any(s, count)) add(s, false);
    find_others();
  }

 private:
  struct Set {
    std::vector<StorageId> all;
    bool contains(StorageId s) const { return std::ranges::find(all, s) != all.end(); }
  };

  void visit(const Statements& list) {
    for (const Statement& s : list) {
      if (const auto* const semaphore = std::get_if<Semaphore>(&s.what);
          semaphore && l_.graph[semaphore->inst].op == graph::Op::SemaphoreWait)
        m_.waits_for_others = &s;
      for (const Effect& e : effects(l_, s)) {
        if (!e.storage || e.role == Effect::Role::barrier) continue;
        if (l_.storages[e.storage].in_shared() && !touched_.contains(e.storage))
          touched_.all.push_back(e.storage);
        const bool awaited = e.completion == Of::awaits;
        if (e.completion == Of::completes || awaited || e.proxy == device::Proxy::async ||
            l_.storages[e.storage].ring())
          asynchronous_[e.storage] = true;
      }
      for_each_body(s, [&](const Statements& body) { visit(body); });
    }
  }

  void add(StorageId s, bool asynchronous) {
    if (l_.storages[s].is_by_warpgroups()) return;  // no agent is a warpgroup
    const RingId ring = l_.storages[s].ring();
    m_.first_cell[s] = static_cast<int>(m_.cells.size());
    for (int slot = 0; slot < (ring ? l_.rings[ring].slots : 1); ++slot)
      m_.cells.push_back({.storage = s,
                          .slot = slot,
                          .in_registers = !l_.storages[s].in_shared(),
                          .asynchronous = asynchronous});
  }

  struct Span {
    std::int64_t begin = 0, end = 0;
    bool meets(const Span& o) const { return begin < o.end && o.begin < end; }
  };
  Span span(StorageId storage, int slot) const {
    const Storage& s = l_.storages[storage];
    if (!s.in_shared()) return {};
    std::int64_t begin = s.shared().offset;
    if (const RingId ring = s.ring())
      begin +=
          l_.storages[l_.rings[ring].storage].shared().offset + slot * l_.rings[ring].slot_bytes;
    const std::int64_t copies = (s.shared().per_warpgroup && !s.ring() ? l_.warpgroups : 1) *
                                (s.shared().per_warp ? graph::num_warps : 1);
    return {begin, begin + shared_bytes(s).value() * copies};
  }

  bool meets_any(StorageId s, std::size_t count) const {
    const Span own = span(s, 0);
    return std::any_of(m_.cells.begin(), m_.cells.begin() + static_cast<std::ptrdiff_t>(count),
                       [&](const Cell& c) { return own.meets(span(c.storage, c.slot)); });
  }

  void find_others() {
    for (Cell& a : m_.cells)
      for (std::size_t i = 0; i < m_.cells.size(); ++i) {
        const Cell& b = m_.cells[i];
        if (a.storage != b.storage && span(a.storage, a.slot).meets(span(b.storage, b.slot)))
          a.others.push_back(static_cast<int>(i));
      }
  }

  Model& m_;
  const Program& l_;
  Table<StorageId, bool> asynchronous_;
  Set touched_;
};

}  // namespace

void find_cells(Model& m) { Cells(m).run(); }

}  // namespace palladium::lowered::protocol
