// How shared memory is to be laid out.
#include <algorithm>

#include "codegen/trace/accumulators.hpp"
#include "codegen/trace/recorder.hpp"
#include "palladium/error.hpp"
#include "palladium/gpu/union.hpp"
#include "palladium/gpu/wgmma.hpp"

namespace palladium {

gpu::Transform gpu::TilingTransform(std::vector<std::int64_t> tiling, Location at) {
  if (tiling.empty() || std::ranges::any_of(tiling, [](std::int64_t n) { return n < 1; }))
    throw CompileError(at, "TilingTransform: expected the extents of a tile, at least 1 each");
  return {.tiling = std::move(tiling)};
}

gpu::Transform gpu::SwizzleTransform(int bytes, Location at) {
  if (bytes != 32 && bytes != 64 && bytes != 128)
    throw CompileError(
        at, "SwizzleTransform: expected 32, 64 or 128 bytes, given " + std::to_string(bytes));
  return {.swizzle = bytes};
}

int gpu::find_swizzle(std::int64_t minor_dim_bits, const char* what, Location at) {
  for (const int bytes : {128, 64, 32, 16})
    if (minor_dim_bits > 0 && minor_dim_bits % (8 * bytes) == 0) return bytes;
  const std::string of = *what == '\0' ? "" : std::string(" for ") + what;
  throw CompileError(at, "find_swizzle: no valid swizzle" + of + ": the minor dimension has " +
                             std::to_string(minor_dim_bits) + " bits, expected a multiple of 128");
}

namespace {

// {..., m, n} of tiles {a, b} as {..., m / a, n / b, a, b}.
Ref in_tiles(const Ref& ref, const std::vector<std::int64_t>& tiling, Location at) {
  const Shape shape = ref.shape(at);
  const int tiled = static_cast<int>(tiling.size()), whole = shape.rank() - tiled;
  Shape cut;
  std::vector<std::int64_t> order;
  for (int d = 0; d < whole; ++d) {
    cut.push_back(shape[d]);
    order.push_back(d);
  }
  for (int d = 0; d < tiled; ++d) {
    const std::int64_t tile = tiling[static_cast<std::size_t>(d)];
    if (whole < 0 || shape[whole + d].value() % tile != 0)
      throw CompileError(at, "transform_ref: cannot apply a tiling whose tiles do not divide " +
                                 to_string(shape));
    cut.push_back(shape[whole + d].value() / tile);
    cut.push_back(tile);
    order.push_back(whole + 2 * d);
  }
  for (int d = 0; d < tiled; ++d) order.push_back(whole + 2 * d + 1);
  trace::Recorder& recorder = trace::Recorder::current("transform_ref", at);
  const trace::ValueId tiles = recorder.id(ref.reshape(cut, at), "transform_ref", at);
  return recorder.ref(recorder.builder().add(trace::Op::RefTranspose, {tiles},
                                             trace::Attr{std::move(order), 0}, {}, at));
}

}  // namespace

Ref gpu::transform_ref(const Ref& ref, const Transform& transform, Location at) {
  if (!transform.tiling.empty()) return in_tiles(ref, transform.tiling, at);
  trace::Recorder& recorder = trace::Recorder::current("transform_ref", at);
  const graph::Type& memory =
      recorder.graph[recorder.graph.base(recorder.id(ref, "transform_ref", at))].type;
  if (memory.swizzle != transform.swizzle)
    throw CompileError(at, "transform_ref: a swizzle of " + std::to_string(transform.swizzle) +
                               " bytes is one of memory, which is " + graph::to_string(memory) +
                               "; say it where that is allocated: plgpu::SMEM(shape, dtype, "
                               "{.transforms = {...}})");
  return ref;
}

namespace trace {

int swizzle_given(const Scoped& scratch) {
  int bytes = 0;
  for (const gpu::Transform& t : scratch.transforms)
    if (t.swizzle > 0) bytes = t.swizzle;
  return bytes;
}

std::string transform_problem(const Scoped& scratch) {
  if (scratch.transforms.empty()) return "";
  if (scratch.space != Space::smem) return "has transforms, which are of SMEM alone";
  const Shape& shape = scratch.type.shape;
  const std::string cannot = "is " + to_string(scratch.type) + ": cannot apply a ";
  const std::int64_t bits = scratch.type.dtype.bits();
  std::int64_t row = 0;  // bytes of a tile's
  for (const gpu::Transform& t : scratch.transforms) {
    const auto tiled = static_cast<int>(t.tiling.size());
    for (int d = 0; d < tiled; ++d)
      if (tiled > shape.rank() ||
          shape[d - tiled].value() % t.tiling[static_cast<std::size_t>(d)] != 0)
        return cannot + "tiling whose tiles do not divide it";
    if (tiled > 0) row = t.tiling.back() * bits / 8;
  }
  const int swizzle = swizzle_given(scratch);
  if (swizzle == 0) return "";
  const std::string of = "swizzle of " + std::to_string(swizzle);
  if (row > 0 && row != swizzle)
    return cannot + "tiling with rows of " + std::to_string(row) + " bytes and a " + of;
  if (shape.rank() < 2) return cannot + of + " bytes, which is of rows";
  if (const std::int64_t all = shape[-1].value() * bits / 8; all % swizzle != 0)
    return cannot + of + " bytes to rows of " + std::to_string(all);
  return "";
}

}  // namespace trace
}  // namespace palladium
