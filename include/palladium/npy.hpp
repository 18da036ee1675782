// Arrays in NumPy's .npy files.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "palladium/array.hpp"

namespace palladium {

/// The array in a .npy file (versions 1 to 3, C order, little endian), on the CPU. bf16 is what
/// ml_dtypes writes: a void type of two bytes. CompileError naming the file and what is wrong with
/// it.
PALLADIUM_API Array load_npy(const std::string& path, Location at = here());

/// Writes any array, from wherever it is, as a version 1 file; replaces an existing one in one step.
PALLADIUM_API void save_npy(const std::string& path, const Array& array, Location at = here());

/// What load_npy does with the bytes of a file; `name` stands for it in messages.
PALLADIUM_API Array parse_npy(std::span<const std::byte> bytes, const std::string& name,
                              Location at = here());

}  // namespace palladium
