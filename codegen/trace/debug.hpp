// Which operations for debugging a body records.
#pragma once

namespace palladium::trace {

/// A set of bits.
using DebugKinds = unsigned;
inline constexpr DebugKinds debug_prints = 1, debug_checks = 2;

/// Those that are recorded now: as PALLADIUM_DEBUG and pl::enable_debug_checks say.
DebugKinds debug_kinds();

}  // namespace palladium::trace
