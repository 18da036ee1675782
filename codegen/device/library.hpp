// The device library as text: what stands before every emitted kernel.
//
// A kernel gets only those declarations that it needs, since NVRTC's time grows with every one.
// What it needs follows from names: a declaration is taken if the kernel, or another that is taken,
// mentions its name, and a function with overloads (or a template with specialisations) only if
// also the library's types among its operands are mentioned: exp(f16) stays out of a kernel that
// never says f16. Mentioning is textual; comments, literals and members do not count.
//
// A new function: write it in a .cuh of both halves (or once in common/), by the rules at the top
// of declarations.hpp, and add its row to waist.def; a new .cuh also joins the lists of files in
// library.cpp, behind those that it uses. Prefer an overload for each type to `if constexpr` over
// types, which mentions them all.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace palladium::device {

/// One embedded .cuh, by its path below codegen/device ("common/types.cuh").
struct File {
  std::string_view name, text;
};

/// All files, both halves, sorted by name. What the text digest of the kernel key covers.
std::span<const File> files();

enum class Half { cuda, cpu };

/// The text to put before `kernel`: the declarations that it needs, in a fixed order, without
/// comments. Ends in `#line 1 "kernel.cu"`, so that compilers and the emulator count lines in the
/// kernel's own text.
std::string prelude(Half half, std::string_view kernel);

}  // namespace palladium::device
