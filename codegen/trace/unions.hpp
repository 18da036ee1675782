// Scratch that lies over other scratch: a union's bytes, and Refs of its members within them.
#pragma once

#include "codegen/trace/recorder.hpp"
#include "palladium/block_spec.hpp"

namespace palladium::trace {

inline bool is_member(const Scoped& scratch) { return scratch.member.number >= 0; }
/// What stands for the whole union, where the first of its members stands.
inline bool begins_union(const Scoped& scratch) { return scratch.member.number == 0; }
Type type_of_union(const Scoped& member);
ValueId part_of_union(Recorder& recorder, ValueId all, const Scoped& member, const Type& type,
                      Location at);

}  // namespace palladium::trace
