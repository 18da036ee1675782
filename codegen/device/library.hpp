// The device library as text: what stands before every emitted kernel.
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

/// The text to put before `kernel`: types, conversions and those files whose functions the kernel's
/// text names, in a fixed order, without comments. Ends in `#line 1 "kernel.cu"`, so that compilers
/// and the emulator count lines in the kernel's own text.
std::string prelude(Half half, std::string_view kernel);

/// A row of waist.def.
struct Function {
  std::string_view file;  // "memory"
  std::string_view name;  // "load_global"
  int first_arch;         // 75
  int last_arch;          // 90 for what Hopper alone has
  int ulp_f32, ulp_f64;   // -1: not an elementary function of that type
  std::string_view declaration, meaning;
};
std::span<const Function> functions();

}  // namespace palladium::device
