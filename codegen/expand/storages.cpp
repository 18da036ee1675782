// Where storages live: variables of a thread, and places in shared memory.
#include <algorithm>
#include <string>

#include "codegen/base/format.hpp"
#include "codegen/base/names.hpp"
#include "codegen/expand/expander.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/products.hpp"

namespace palladium::expand {

using graph::Inst;
using graph::Op;
using lowered::Residency;
using lowered::Storage;
using lowered::Window;

std::string Expander::storage_name(StorageId s) const {
  const Storage& x = l_.storages[s];
  const std::string hint = x.of == graph::no_value ? "" : lowered::name_of(g_, x.of);
  return (hint.empty() ? "v" : identifier_of(hint) + "_") + std::to_string(s.number());
}

VariableId Expander::storage(StorageId s) {
  VariableId& v = storages_[s];
  if (v != thread::no_variable) return v;
  const Storage& x = l_.storages[s];
  const bool array = x.in_registers();
  v = e_.declare({.name = storage_name(s),
                  .form = array ? thread::Form::array : thread::Form::value,
                  .type = x.is_packed() ? u32 : x.dtype,
                  .count = !array          ? 0
                           : x.is_packed() ? x.words()
                                           : x.registers().layout.registers(),
                  .facts = {.depends = array ? thread::on_thread : 0}});
  return v;
}

VariableId Expander::declare_storage(StorageId s, bool zeros) {
  const VariableId v = storage(s);
  b_.add(thread::Declare{
      .start = zeros ? thread::Declare::Start::zeros : thread::Declare::Start::nothing,
      .variable = v});
  declared_[s] = true;
  if (Rest& rest = rests_[s]; rest.of != nullptr)
    rest.part = declare_part(storage_name(s) + "_part", *rest.of, thread::Declare::Start::zeros);
  return v;
}

Affine Expander::shared_place(StorageId s) {
  const Storage& x = l_.storages[s];
  if (const lowered::Within& in = x.shared().within; in.storage)
    return shared_place(in.storage) + Affine(in.offset);
  const Storage& placed = !x.ring() ? x : l_.storages[l_.rings[x.ring()].storage];
  const lowered::Shared& in = placed.shared();
  Affine a = Affine::term(smem_) + Affine(in.offset + (!x.ring() ? 0 : x.shared().offset));
  const std::int64_t bytes = lowered::shared_bytes(placed).value();
  if (in.per_warpgroup && l_.warpgroups > 1)
    a = a + Affine::term(warpgroup_, bytes * (in.per_warp ? graph::num_warps : 1));
  if (in.per_warp) a = a + Affine::term(warp_number(), bytes);
  return a;
}

ExprId Expander::shared_address(StorageId s) { return e_.sum(shared_place(s) + slot(s), u32); }

ExprId Expander::shared_base(StorageId s) { return e_.sum(shared_place(s), u32); }

void Expander::find_mutable_storages() {
  for (const Window& w : l_.windows) {
    if (!w.storage()) continue;
    mutable_[w.storage()] = true;
    declared_[w.storage()] = true;
  }
  lowered::for_each_list(l_, [&](const lowered::Statements& list) { find_begun(list); });
  for (const Inst& i : g_.insts) {
    // What regions hand on; a result of a switch is read by a Get.
    if (graph::repeats(i.op))
      for (const ValueId p : g_[graph::Repeated::of(i).region].params) make_mutable(p);
    if (i.op == Op::Get) make_mutable(static_cast<ValueId>(&i - g_.insts.data()));
    if (i.op != Op::Loop) continue;
    const StorageId counter = l_.storage_of[g_[graph::LoopView::of(i).body].params[0]];
    if (counter) declared_[counter] = true;
  }
}

// Accumulators whose first product adds to nothing are not cleared before.
void Expander::find_begun(const lowered::Statements& list) {
  for (const lowered::Statement& s : list) {
    const auto* const d = std::get_if<lowered::Dot>(&s.what);
    if (d != nullptr && d->anew != graph::no_value) begun_by_product_[d->result] = true;
    if (d != nullptr && passes::rests(l_, *d)) rests_[d->result].of = d;
    lowered::for_each_body(s, [&](const lowered::Statements& body) { find_begun(body); });
  }
}

void Expander::make_mutable(ValueId v) {
  if (const StorageId s = l_.storage_of[v]) mutable_[s] = true;
}

// Blocks and scratch in registers that start with nothing, and are read or flushed.
void Expander::find_unstored() {
  for (const WindowId i : l_.windows.ids()) {
    const Window& w = l_.windows[i];
    if (w.residency() != Residency::registers || w.fills()) continue;
    bool used = w.flushes();
    for (const Inst& inst : g_.insts) used |= g_.reads(inst, w.root);
    if (!used) continue;
    const VariableId flag =
        e_.declare({.name = storage_name(w.storage()) + "_stored", .type = bool_});
    unstored_[w.storage()] = {i, flag};
  }
}

void Expander::mark_stored(StorageId storage) {
  const auto it = unstored_.find(storage);
  if (it == unstored_.end()) return;
  b_.add(thread::Assign{e_.variable(it->second.flag), e_.literal(bool_, 1)});
}

ExprId Expander::is_stored(StorageId storage) {
  const auto it = unstored_.find(storage);
  return it == unstored_.end() ? no_expr : e_.variable(it->second.flag);
}

std::string Expander::unstored_message(StorageId storage) const {
  const Window& w = l_.windows[unstored_.at(storage).window];
  int scratch = 0;
  for (const Window& other : l_.windows) {
    if (&other == &w) break;
    scratch += other.mapping < 0 && other.scope == w.scope;
  }
  const char* const scope = w.scope == graph::no_value ? "" : " of run_scoped";
  return fmt::format("{}{} is read before anything was stored there",
                     w.mapping < 0 ? fmt::format("scratch[{}]", scratch)
                                   : g_.mapping.block_mappings[w.mapping].origin,
                     scope);
}

bool Expander::touches(const lowered::Agent& agent, WindowId window) const {
  const StorageId held = l_.windows[window].storage();
  return std::ranges::any_of(agent.statements, [&](const lowered::Statement& s) {
    return any_effect(l_, s, [&](const lowered::Effect& e) {
      return e.storage == held || (e.window == window && e.role != lowered::Effect::Role::block);
    });
  });
}

// Windows and scratch live as long as the program: the first agent has all of the body, others
// those that they touch. Other storages are declared where they are filled.
void Expander::declare_storages(const lowered::Agent& agent, int body) {
  own_.clear();
  const bool is_first = &agent == l_.bodies[static_cast<std::size_t>(body)].agents.data();
  for (const WindowId i : l_.windows.ids()) {
    const Window& w = l_.windows[i];
    if (!w.storage() || w.body != body || (!is_first && !touches(agent, i))) continue;
    own_.insert(w.storage());
    const Storage& s = l_.storages[w.storage()];
    if (s.is_scalar() || s.in_registers())
      declare_storage(w.storage(), !begun_by_product_[w.storage()]);
    if (const auto it = unstored_.find(w.storage()); it != unstored_.end())
      b_.add(thread::Declare{.start = thread::Declare::Start::values,
                             .variable = it->second.flag,
                             .values = {e_.literal(bool_, 0)}});
  }
}

}  // namespace palladium::expand
