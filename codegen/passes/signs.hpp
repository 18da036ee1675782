// What the making of a value tells of its sign and size. Of a NaN nothing is said.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "codegen/graph/graph.hpp"

namespace palladium::passes {

/// Whether bools of the shape of a value hold for all of its elements that are asked about.
using Holding = std::function<bool(graph::ValueId condition)>;

/// Whether no element of a float value is above 0.
bool is_nonpositive(const graph::Graph& g, graph::ValueId v, const Holding& holds = {});
/// Whether none is below 0.
bool is_nonnegative(const graph::Graph& g, graph::ValueId v);

/// Whether the elements of a float value are integers that are not below 0: sizes, and what
/// unsigned integers hold.
bool is_count(const graph::Graph& g, graph::ValueId v);
/// Whether it is an f32 divided by such, exactly.
bool divides_by_count(const graph::Graph& g, const graph::Inst& i);
/// The symbol whose size it is, in f32.
std::optional<std::uint32_t> symbol_counted(const graph::Graph& g, graph::ValueId v);

/// Whether |part| <= |whole| element by element: a part of the sum, or of the maximum, of sizes.
/// Rounding keeps that. Where an element of `part` is NaN, so is that of `whole`.
bool is_part_of(const graph::Graph& g, graph::ValueId part, graph::ValueId whole,
                const Holding& holds = {});

}  // namespace palladium::passes
