// What ptxas said of kernels that give it reason to, recorded for each version of NVRTC that is
// tested: tests/ptxas/golden/words-<version>.txt, which tests/ptxas/lint_test.cpp writes.
#pragma once

#include <map>
#include <string>

namespace palladium::test {

using PtxasWords = std::map<std::string, std::string>;  // logs by the names of kernels

/// What was recorded of a version like "13.0"; nothing if it was not.
PtxasWords recorded_words(const std::string& version);

void record_words(const std::string& version, const PtxasWords& words);

}  // namespace palladium::test
