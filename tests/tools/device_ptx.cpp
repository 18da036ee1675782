// device_ptx FUNCTION|TEXT.cu [ARCH]: the PTX of a function of the device library, called as the
// tests call it, or of a kernel's text; what ptxas says of it goes to stderr.
#include <algorithm>
#include <cstdio>
#include <string>

#include "codegen/base/files.hpp"
#include "codegen/device/wgmma.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "palladium/error.hpp"
#include "tests/support/waist_uses.hpp"

using namespace palladium;

namespace {

std::string product_kernel(const device::Wgmma& op) {
  const std::string type = op.d == "f32" ? "f32" : op.d == "f16" ? "u32" : "i32";
  const std::string count = std::to_string(op.registers());
  return "PL_KERNEL(128) k(" + type + "* o, u64 a, u64 b, u32 x, bool more) {\n  " + type + " d[" +
         count + "];\n  PL_UNROLL for (i32 i = 0; i < " + count +
         "; ++i) d[i] = 0;\n  const u32 w[4] = {x, x, x, x};\n"
         "  pl::wgmma_fence();\n  pl::" +
         op.name() + "(d, " + (op.rs ? "w" : "a") +
         ", b, more);\n"
         "  pl::wgmma_commit();\n  pl::wgmma_wait<0>();\n  pl::wgmma_registers(d);\n"
         "  PL_UNROLL for (i32 i = 0; i < " +
         count + "; ++i) pl::store_global(o + i, d + i);\n}\n";
}

std::string text_of(const std::string& what, int arch) {
  if (what.ends_with(".cu")) {
    std::string text;
    if (const files::Outcome read = files::read(what, 1 << 20, text); !read)
      throw CompileError(what + ": " + read.message());
    return text;
  }
  for (const device::Wgmma& op : device::wgmma_variants())
    if (op.name() == what) return product_kernel(op);
  for (const test::WaistUse& use : test::waist_uses(arch))
    if (use.name == what) return test::waist_kernel("k", use.statement);
  throw CompileError("no function pl::" + what + "; codegen/device/waist.def has them all");
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fputs("device_ptx FUNCTION|TEXT.cu [ARCH], e.g. device_ptx tma_load sm_90a\n", stderr);
    return 2;
  }
  try {
    const std::string arch = count > 2 ? arguments[2] : "sm_90a";
    const std::string text = text_of(arguments[1], std::atoi(arch.c_str() + 3));
    const nvrtc::Result result =
        nvrtc::compile({.source = device::prelude(device::Half::cuda, text) + text, .arch = arch});
    std::fputs(result.log.c_str(), stderr);
    std::fputs(result.ptx.c_str(), stdout);
    return result.ok ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
