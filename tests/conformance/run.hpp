// Runs one check on the emulator, through NVRTC and on a GPU, and judges what came out.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/nvrtc/nvrtc.hpp"
#include "runtime/emulator/emulator.hpp"
#include "tests/conformance/case.hpp"

namespace palladium::conformance {

/// What the arrays of a case hold after its kernel.
using Arrays = std::vector<std::vector<std::byte>>;

/// With race detection on; throws what the emulator does.
Arrays run_emulator(const Case& c, emulator::Asynchrony asynchrony = emulator::Asynchrony::eager,
                    emulator::Schedule schedule = emulator::Schedule::fifo,
                    std::function<void(int line, const device::Access&)> watch = {});

/// The same for what a GPU is compared with: nothing where the emulator lacks what the check asks,
/// or refuses as the chip is expected to. InternalError if it takes what the chip refuses.
std::optional<Arrays> expected(const Case& c);

/// What a compile and a launch tell besides the arrays, as far as they came.
struct Account {
  std::string complaints;  // what the log of a good kernel does not hold
  std::string log;         // NVRTC's, ptxas's words within
};

/// Gets a sentence about a kernel that does not end, and must not return: whatever frees the
/// kernel's memory or context would wait for it.
using Overdue = std::function<void(const std::string&)>;

struct GpuOptions {
  double seconds = 10;  // that a kernel may take
  Overdue overdue;
  bool line_info = false;  // for tools that name lines of the text
};

/// With what NVRTC makes of the text for the first GPU. Every array lies between guards, and
/// InternalError says which of them was written. CudaError when the driver or the kernel fails:
/// the process should end then.
Arrays run_gpu(const Case& c, const GpuOptions& options, Account& account);

/// All kernels of the texts in one compile.
nvrtc::Result compile(const std::vector<const Case*>& cases, std::string_view arch,
                      bool line_info = false);

/// What a compile's log holds that a good kernel's does not: serialised products, spills; "" if
/// nothing.
std::string complaints(const nvrtc::Result& result);

struct Verdict {
  std::string problem;           // "" if all outputs agree
  nlohmann::json measured = {};  // label -> greatest error seen, and the bound
  /// Of each array that differs: its first such elements as [index, got, emulator], all in bits,
  /// and its bytes as they came, from the first on.
  nlohmann::json differing = {};
  std::string answer = {};  // to a case's question
};

/// Compares `got` with `emulated` and with the formulas of the case.
Verdict judge(const Case& c, const Arrays& emulated, const Arrays& got);

}  // namespace palladium::conformance
