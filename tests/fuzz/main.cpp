// The entry point of one target, which the build names.
#include "tests/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  palladium::fuzz::PALLADIUM_FUZZ_TARGET(std::as_bytes(std::span(bytes, count)));
  return 0;
}
