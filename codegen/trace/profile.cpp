// Scopes of bodies that are profiled.
#include "palladium/gpu/profile.hpp"
#include "codegen/trace/recorder.hpp"

namespace palladium::detail {

using trace::Op;
using trace::Recorder;

namespace {

void record_scope(Recorder& recorder, const char* name, int number, bool ends, Location at) {
  const graph::ScopeView scope{.number = number,
                               .ends = ends,
                               .space = recorder.profile.space,
                               .of_warps = recorder.profile.of_warps,
                               .cuts = recorder.profile.cuts};
  recorder.builder().add(Op::ScopeEvent, {}, scope.encode(name), {}, at);
}

}  // namespace

ScopeMark::ScopeMark(const char* name, Location at) : name_(name), at_(at) {
  Recorder& recorder = Recorder::current("named_scope", at);
  if (recorder.graph.bodies.empty())
    throw CompileError(at, "named_scope: used in an index map; a scope is a part of the body");
  if (recorder.profile.space == 0) return;
  number_ = recorder.profile.scopes++;
  record_scope(recorder, name_, number_, false, at_);
}

void ScopeMark::end() const {
  if (number_ >= 0) record_scope(Recorder::current("named_scope", at_), name_, number_, true, at_);
}

}  // namespace palladium::detail
