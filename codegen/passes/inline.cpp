#include "codegen/passes/inline.hpp"

#include <map>
#include <optional>

#include "codegen/base/format.hpp"
#include "codegen/graph/inline.hpp"
#include "codegen/passes/fetches.hpp"
#include "codegen/passes/said_layouts.hpp"
#include "palladium/error.hpp"

namespace palladium::passes {
namespace {

using graph::Extents;
using graph::InlineView;
using graph::Op;
using graph::RegisterLayout;
using graph::Type;

bool is_number(const Type& t) { return graph::element_count(t.shape) == 1; }

class Text {
 public:
  Text(Program& l, const Analysis& a, ValueId v)
      : l_(l),
        inst_(l.graph[v]),
        at_(l.graph.location(v)),
        v_(v),
        view_(InlineView::of(l.graph[v])),
        gets_(view_.results.size()) {
    for (const ValueId u : a.users[index(v)])
      if (l.graph[u].op == Op::Get) gets_[graph::result_of(l.graph[u])].push_back(u);
  }

  void place_results() {
    for (std::size_t r = 0; r < gets_.size(); ++r) {
      if (gets_[r].empty()) continue;
      const StorageId common = l_.storage_of[gets_[r][0]];
      for (const ValueId u : gets_[r]) l_.storage_of[u] = common;
      if (!l_.storages[common].in_registers()) continue;
      const LayoutVariableId variable = l_.storages[common].variable;
      if (const auto& said = view_.results[r].layout)
        l_.pinned[variable] = layout_of(*said, view_.results[r].type);
      else
        l_.storages[common].variable = unsaid(view_.results[r].type, variable);
    }
  }

  void add(Statements& out) {
    std::vector<StorageId> results;
    for (std::size_t r = 0; r < gets_.size(); ++r) {
      if (!gets_[r].empty()) {
        results.push_back(l_.storage_of[gets_[r][0]]);
        const Storage& s = l_.storages[results.back()];
        if (!view_.results[r].layout && s.in_registers()) unsaid(view_.results[r].type, s.variable);
        continue;
      }
      results.push_back(room(view_.results[r].type, view_.results[r].layout, graph::no_value));
    }
    std::vector<StorageId> operands(view_.operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Type& type = l_.graph[inst_.args[i]].type;
      if (!type.is_value() || is_number(type)) continue;
      operands[i] = room(type, view_.operands[i].layout, inst_.args[i]);
      hold(operands[i], inst_.args[i], out);
    }
    expect_memory();
    out.push_back({Inline{v_, std::move(operands), std::move(results)}, at_});
  }

 private:
  layout::Layout layout_of(const RegisterLayout& said, const Type& type) const {
    return said_layout(l_, said, type, "inline_cuda", at_);
  }

  // One for all values of a shape of which no layout is said; `own`: the first one's.
  LayoutVariableId unsaid(const Type& type, std::optional<LayoutVariableId> own = {}) {
    const auto [known, is_new] = unsaid_.try_emplace(type.shape);
    if (!is_new) return known->second;
    const LayoutVariableId variable = own ? *own : l_.add_variable();
    known->second = variable;
    // Of results alone nobody else says how threads hold them.
    const auto is_such = [&](std::size_t i) {
      return !view_.operands[i].layout && l_.graph[inst_.args[i]].type.is_value() &&
             l_.graph[inst_.args[i]].type.shape == type.shape;
    };
    for (std::size_t i = 0; i < view_.operands.size(); ++i)
      if (is_such(i)) return variable;
    l_.pinned[variable] = layout_of({RegisterLayout::Kind::strided, {0}, {}}, type);
    return variable;
  }

  StorageId room(const Type& type, const std::optional<RegisterLayout>& said, ValueId of) {
    if (is_number(type))
      return l_.add_storage(
          {.in = lowered::OneElement{}, .dtype = type.dtype, .shape = type.shape, .of = of});
    const LayoutVariableId variable = said ? l_.add_variable(layout_of(*said, type)) : unsaid(type);
    return l_.add_storage({.in = Registers{},
                           .dtype = type.dtype,
                           .shape = type.shape,
                           .of = of,
                           .variable = variable});
  }

  void hold(StorageId storage, ValueId value, Statements& out) const {
    const Storage& s = l_.storages[storage];
    out.push_back({LoopNest{.sink = Assign{storage},
                            .value = value,
                            .domain = s.shape,
                            .valid = s.shape,
                            .variable = s.variable},
                   at_});
  }

  // The text steps from element to element by strides.
  void expect_memory() const {
    for (std::size_t i = 0; i < inst_.args.size(); ++i) {
      if (!l_.graph[inst_.args[i]].type.is_ref()) continue;
      const std::string& name = view_.operands[i].name;
      const auto fail = [&](const std::string& what) {
        throw CompileError(at_, fmt::format("inline_cuda: '{}' {}", name, what));
      };
      ValueId ref = inst_.args[i];
      for (; !l_.graph.is_base(ref); ref = l_.graph[ref].args[0])
        if (l_.graph[ref].op == Op::RefReshape || l_.graph[ref].op == Op::RefBitcast)
          fail(
              "is a Ref that is reshaped or bitcast; a text is given one that is indexed, sliced "
              "or transposed, and reshapes itself");
      if (l_.graph.chooses(inst_.args[i]))
        fail("is a Ref with index arrays; a text is given the whole, and the indices");
      const Window& w = l_.windows[l_.window_of[ref]];
      if (w.residency() == lowered::Residency::registers)
        fail("is a block that is in registers: give it memory_space = plgpu::SMEM");
      if (w.storage() && l_.storages[w.storage()].shared().swizzle > 0 && !is_rows(inst_.args[i]))
        fail(
            "lies swizzled, as products read it, and CUDA C++ is given rows of it, as they are or "
            "a "
            "part of them: give it a copy, room[pl::_] = ref[pl::_], or the value ref[pl::_]");
    }
  }

  // Whether the text may step along a swizzled Ref's rows: these are the view's, too.
  bool is_rows(ValueId ref) const {
    const std::optional<std::vector<int>> dimensions = box_dimensions(l_.graph, ref);
    const auto rank = static_cast<int>(l_.graph[ref].type.shape.size());
    return !view_.is_ptx() && dimensions && rank > 0 && dimensions->back() == rank - 1;
  }

  Program& l_;
  const graph::Inst& inst_;
  const Location at_;
  const ValueId v_;
  const InlineView view_;
  std::vector<std::vector<ValueId>> gets_;  // of each result
  std::map<Extents, LayoutVariableId> unsaid_;
};

}  // namespace

void place_results_of_text(Program& l, const Analysis& a, ValueId v) {
  Text(l, a, v).place_results();
}

void add_text(Program& l, const Analysis& a, ValueId v, Statements& out) { Text(l, a, v).add(out); }

}  // namespace palladium::passes
