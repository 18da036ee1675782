// A use of every function that emitted text may call, for the tests that compile or run them all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/device/waist.hpp"

namespace palladium::test {

/// Statements that call one function with operands of all its types, inside waist_kernel().
struct WaistUse {
  std::string name, statement;
};

/// One for each row of waist.def, as sm_<arch> has it: what is of another architecture is among
/// them, but no variant of a function that only later ones have.
std::vector<WaistUse> waist_uses(int arch);

/// The row of that name.
const device::RowInfo& waist_function(std::string_view name);

/// Whether the threads of a warp can call it without others that wait, arrive or copy.
bool needs_no_partner(const device::RowInfo& f);

/// A kernel of the given statements, between what they need; its parameters are a buffer of 4 KB
/// and a tensor map, its shared memory 2 KB.
std::string waist_kernel(const std::string& name, const std::string& statements);

}  // namespace palladium::test
