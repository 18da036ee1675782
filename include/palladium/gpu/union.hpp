// Shared memory that holds one thing after another, and Refs that show how it lies.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "palladium/ref.hpp"
#include "palladium/spec.hpp"

namespace palladium::gpu {

/// Members of a union that lie one behind the other: one, or `{a, b}`.
class RefGroup {
 public:
  RefGroup(Scoped member) : members{std::move(member)} {}
  RefGroup(std::initializer_list<Scoped> list) : members(list) {}

  std::vector<Scoped> members;
};

/// Scratch in SMEM whose groups lie over one another: `plgpu::RefUnion({a, {b, c}})` takes as much
/// as the larger of a and of b and c together. The body gets a Ref of each member, in order; what
/// is stored to one is no more there in those that lie over it. Each begins at a multiple of 1024
/// bytes, and has transforms of its own.
PALLADIUM_API Scoped RefUnion(std::initializer_list<RefGroup> groups, Location at = here());

/// The same memory as a transform lays it out: in tiles, {m, n} as {m / a, n / b, a, b} of a
/// TilingTransform({a, b}). Memory is swizzled where it is allocated: a SwizzleTransform gives the
/// Ref itself, of memory that is.
PALLADIUM_API Ref transform_ref(const Ref& ref, const Transform& transform, Location at = here());

}  // namespace palladium::gpu
