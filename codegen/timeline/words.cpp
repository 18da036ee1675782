// What agents do and wait for, in words.
#include <type_traits>
#include <variant>

#include "codegen/base/format.hpp"
#include "codegen/lowered/protocol_table.hpp"
#include "codegen/timeline/window.hpp"

namespace palladium::timeline {

using device::Completion;
using Kind = Act::Kind;

namespace {

std::string name_of(const lowered::Program& l, lowered::StorageId s) {
  return l.storages[s].of == graph::no_value ? fmt::format("s{}", s.number())
                                             : lowered::description_of(l.graph, l.storages[s].of);
}

std::string words_of(const lowered::Program& l, const lowered::LoopNest& nest) {
  if (const lowered::StorageId s = storage_filled(nest.sink)) return "computes " + name_of(l, s);
  return accessed_by(nest.sink) != graph::no_value || window_moved(nest.sink) ? "stores" : "prints";
}

std::string words_of(const lowered::Program& l, const lowered::Statement& s) {
  return std::visit(
      [&](const auto& what) -> std::string {
        using T = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<T, lowered::LoopNest>)
          return words_of(l, what);
        else if constexpr (std::is_same_v<T, lowered::Dot>)
          return "multiplies";
        else if constexpr (std::is_same_v<T, lowered::Relayout>)
          return "moves to another layout";
        else if constexpr (std::is_same_v<T, lowered::Fence>)
          return "fences";
        else if constexpr (std::is_same_v<T, lowered::CopyStorage>)
          return "moves registers";
        else
          return "counts";
      },
      s.what);
}

const char* group_of(Completion c) {
  switch (c) {
  case Completion::bulk_group: return "its sends";
  case Completion::wgmma_group: return "its products";
  default: return "its copies";
  }
}

}  // namespace

std::string words_of(const Model& m, const Event& e) {
  if (e.act->kind != Kind::access) return lowered::protocol::words_of(m, e, false);
  return words_of(*m.program, *e.act->by);
}

Reason reason_of(const Model& m, const Events& events, const Event& e) {
  const Act& a = *e.act;
  if (a.kind == Kind::sync) return {"the warpgroups beside it", {}};
  if (a.kind == Kind::meet) return {"the blocks of the cluster", {}};
  if (a.kind == Kind::wait_group) return {group_of(a.group), a.by->at};
  if (a.kind != Kind::wait) return {others, {}};
  for (const std::vector<Event>& all : events)
    for (const Event& other : all)
      if (other.act->kind == Kind::copy && other.act->barrier == a.barrier &&
          !other.act->fills.empty())
        return {"the copy to " + name_of(*m.program, other.act->fills[0]), other.act->by->at};
  return {"a slot to be free", {}};
}

}  // namespace palladium::timeline
