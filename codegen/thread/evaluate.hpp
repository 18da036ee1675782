// Integer expressions as numbers: what an address is for one thread in one iteration of its loops.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "codegen/thread/expr.hpp"

namespace palladium::thread {

/// What a variable holds; nothing where that is not known.
using Values = std::function<std::optional<std::int64_t>(VariableId)>;

/// The value of an integer or bool expression, exactly as the program computes it: elementwise
/// operations wrap. Nothing where a part of it is unknown, is no integer, or leaves 64 bits.
std::optional<std::int64_t> evaluate(const Exprs& exprs, ExprId root, const Values& values);

}  // namespace palladium::thread
