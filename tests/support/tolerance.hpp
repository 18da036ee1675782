// How far two implementations of a kernel may lie apart: derived from its graph and its inputs.
//
// What only moves, integer and IEEE operations lead to must agree in every bit. Where an elementary
// function or a sum has its share, the kernel runs again with each such result displaced by the
// most that the op table, or the length of the accumulation, allows two implementations; how far
// the outputs move is how far they may lie apart. So the bound knows the conditioning: a difference
// of two nearly equal sums has a wide one, their quotient a narrow one.
#pragma once

#include <string>
#include <vector>

#include "tests/support/differential.hpp"

namespace palladium::test {

/// Of each element of each block mapping's array the greatest difference; an array without numbers
/// must agree in every bit.
using Tolerance = std::vector<std::vector<double>>;

/// For the call that starts with the arrays of `before`; `poison` as for run_interpreter.
Tolerance tolerance_of(const graph::Graph& g, const Call& before, bool poison = true);

/// As `difference`, with this much allowed. Where nothing is, it is every bit: -0 is not 0, and
/// only NaNs are all alike.
std::string difference(const graph::Graph& g, const Call& a, const Call& b,
                       const Tolerance& tolerance);

/// "" if a random call of small integers gives the same on interpreter, emulator and, where there
/// is one, the GPU, as far as its tolerance goes.
std::string on_all_targets(const graph::Graph& g, const std::vector<std::int64_t>& symbols = {},
                           int compute_capability = 90);

/// The same of a call.
std::string call_on_all_targets(const graph::Graph& g, const Call& call,
                                int compute_capability = 90);

/// Which block mappings' arrays hold what an elementary function or a floating-point sum has a
/// share in.
std::vector<bool> inexact_arrays(const graph::Graph& g);

/// `g` with the result of every elementary function and floating-point sum displaced: up, down, or
/// (from 2 on) either way, element by element, as the number of the variant says.
graph::Graph displaced(const graph::Graph& g, int variant);

}  // namespace palladium::test
