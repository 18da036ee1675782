// Scratch that lies over other scratch.
#include "codegen/trace/unions.hpp"

#include <algorithm>

#include "codegen/base/checked.hpp"
#include "palladium/error.hpp"
#include "palladium/gpu/union.hpp"

namespace palladium {

namespace {

// Of a member, up to where the next one of its group begins.
std::int64_t bytes_of(const Scoped& member) {
  if (member.space != Space::smem)
    throw CompileError(member.at, "RefUnion: expected members in SMEM, given one of " +
                                      std::string(to_string(member.type)) + " elsewhere");
  if (!member.groups.empty())
    throw CompileError(member.at, "RefUnion: a member of a union is no union, but its members");
  Checked elements = 1;
  for (const Dim& d : member.type.shape) elements = elements * d.value();
  const Checked bits = elements * member.type.dtype.bits();
  const Checked bytes = checked_align_up(bits / 8, graph::union_alignment);
  if (!bytes.within(0, INT32_MAX))
    throw CompileError(member.at, "RefUnion: a member is " + to_string(member.type) +
                                      ", which no shared memory holds");
  return bytes.value();
}

}  // namespace

Scoped gpu::RefUnion(std::initializer_list<RefGroup> groups, Location at) {
  Scoped all{Space::smem, {{}, u8}, at};
  for (const RefGroup& group : groups) {
    if (group.members.empty()) throw CompileError(at, "RefUnion: a group has members");
    all.groups.push_back(group.members);
  }
  if (all.groups.empty()) throw CompileError(at, "RefUnion: a union has members");
  return all;
}

void ScratchTypes::add(const NamedScoped& type) {
  if (type.type.groups.empty()) return list.push_back(type);
  const std::size_t first = list.size();
  std::int64_t bytes = 0;
  for (const std::vector<Scoped>& group : type.type.groups) {
    std::int64_t offset = 0;
    for (const Scoped& member : group) {
      const auto number = static_cast<int>(list.size() - first);
      std::string name = type.name;
      if (!name.empty()) name += "[" + std::to_string(number) + "]";
      list.push_back({std::move(name), member});
      list.back().type.mesh = type.type.mesh;
      list.back().type.member = {.number = number, .offset = offset};
      offset += bytes_of(member);
    }
    bytes = std::max(bytes, offset);
  }
  for (std::size_t i = first; i < list.size(); ++i) list[i].type.member.bytes = bytes;
}

namespace trace {

Type type_of_union(const Scoped& member) {
  return Type::ref(u8, {member.member.bytes}, Space::smem);
}

ValueId part_of_union(Recorder& recorder, ValueId all, const Scoped& member, const Type& type,
                      Location at) {
  return recorder.builder().add(Op::RefPart, {all}, Attr{{member.member.offset}, 0}, type, at);
}

}  // namespace trace
}  // namespace palladium
