// A check of texts that only a GPU can punish: registers of a wgmma used after its wait without
// wgmma_registers between. The emulator has them in memory; NVRTC may move the use before the wait.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace palladium::test {

/// A sentence for each register array of a product (its accumulators, or A) whose first mention
/// after a wgmma_wait is neither wgmma_registers nor another product. Loops are read twice.
std::vector<std::string> unpinned_registers(std::string_view text);

}  // namespace palladium::test
