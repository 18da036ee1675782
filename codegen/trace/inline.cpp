#include "codegen/trace/inline.hpp"

#include "codegen/graph/inline.hpp"
#include "palladium/error.hpp"

namespace palladium {

using graph::InlineView;
using graph::RegisterLayout;
using trace::Recorder;

detail::Access::InlineFields detail::Access::fields(const gpu::InlineOperand& o) {
  return {o.name_, o.value_, o.ref_ ? &*o.ref_ : nullptr, o.layout_, o.access_, o.at_};
}

namespace {

std::optional<RegisterLayout> layout_of(const std::optional<gpu::Layout>& given) {
  if (!given) return {};
  graph::Inst cast;
  cast.attr.ints = given->encoded();
  return RegisterLayout::of(cast);
}

}  // namespace

gpu::InlineOperand::InlineOperand(std::string name, const Operand& value,
                                  std::optional<Layout> layout)
    : name_(std::move(name)),
      value_(trace::resolve(value)),
      layout_(std::move(layout)),
      at_(trace::location(value)) {}

trace::InlineParts trace::parts_of(Recorder& recorder, const detail::InlineText& text) {
  using Role = InlineView::Role;
  const char* const what = "inline_cuda";
  const gpu::InlineOptions& options = text.options;
  InlineView view{.language = options.ptx ? InlineView::Language::ptx : InlineView::Language::cuda,
                  .name = options.name,
                  .operands = {},
                  .results = {},
                  .text = text.text};
  InlineParts parts;
  for (const gpu::InlineOperand& o : text.operands) {
    const detail::Access::InlineFields fields = detail::Access::fields(o);
    InlineView::Operand& operand = view.operands.emplace_back();
    operand.name = fields.name;
    operand.layout = layout_of(fields.layout);
    if (fields.ref == nullptr) {
      expect_given(fields.value, what, fields.at);
      parts.args.push_back(recorder.typed(fields.value, what, fields.at));
      continue;
    }
    const ValueId ref = recorder.id(*fields.ref, what, fields.at);
    parts.args.push_back(ref);
    operand.role = fields.access == gpu::InlineAccess::reads    ? Role::read
                   : fields.access == gpu::InlineAccess::writes ? Role::write
                                                                : Role::update;
    const int memory = recorder.memory_of(ref);
    if (operand.role != Role::write) parts.touched.reads.push_back(memory);
    if (operand.role == Role::read) continue;
    recorder.expect_writable(ref, what, fields.at);
    parts.touched.writes.push_back(memory);
  }
  for (std::size_t i = 0; i < text.count; ++i) {
    const gpu::InlineResult& r = text.results[i];
    parts.results.push_back(Type::value(r.type.dtype, extents(r.type.shape)));
    view.results.push_back({r.name, parts.results.back(), layout_of(r.type.layout)});
  }
  parts.attr = view.encode();
  return parts;
}

void gpu::inline_cuda(const char* text, const std::vector<InlineOperand>& operands,
                      const InlineOptions& options, const detail::Expression& at) {
  detail::Building building(detail::InlineText{text, operands, nullptr, 0, options}, at);
  if (options.interpret) options.interpret.record(building);
}

}  // namespace palladium
