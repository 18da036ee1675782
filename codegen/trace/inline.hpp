// What an inline_cuda records.
#pragma once

#include <vector>

#include "codegen/trace/recorder.hpp"
#include "palladium/gpu/inline.hpp"

namespace palladium::trace {

struct InlineParts {
  std::vector<ValueId> args;
  Attr attr;
  std::vector<Type> results;
  Touched touched;
};
/// CompileError where something is not what a text can be given.
InlineParts parts_of(Recorder& recorder, const detail::InlineText& text);

}  // namespace palladium::trace

namespace palladium::detail {

struct Access::InlineFields {
  const std::string& name;
  const Value& value;
  const Ref* ref;  // null: it is a value
  const std::optional<gpu::Layout>& layout;
  gpu::InlineAccess access;
  Location at;
};

}  // namespace palladium::detail
