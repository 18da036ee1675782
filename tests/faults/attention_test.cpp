// Faults of an attention kernel: operands in registers, accumulators used between products.
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "palladium/error.hpp"
#include "tests/support/hopper_kernels.hpp"
#include "tests/support/small_kernel.hpp"

using namespace palladium;

namespace {

void check(int fault, std::initializer_list<const char*> markers,
           std::initializer_list<const char*> words, int reports = 1) {
  const test::Attention a = {.length = 384, .fault = fault};
  std::string told;
  try {
    test::run_attention(a, {});
  } catch (const InternalError& e) {
    told = e.what();
  }
  std::vector<int> lines;
  for (const char* marker : markers) lines.push_back(test::line_of(a.text(), marker));
  test::check_told(told, lines, words, reports);
}

}  // namespace

TEST_CASE("attention without faults reports nothing") { check(0, {}, {}, 0); }

TEST_CASE("an operand that nobody waits for is read while it is copied") {
  check(1, {"scores", "load Q", "load Q"},
        {"race: the read of Q by wgmma of warpgroup 1 of block (0, 0, 0)",
         "is not ordered with the write by tma_load of thread 0",
         "block (0, 0, 0) ends and nobody has waited on q_full for this copy"},
        2);
}

TEST_CASE("scores used before they are done are reported where they are used") {
  check(2, {"pack"},
        {"uses an accumulator register that a wgmma in flight still writes",
         "has written accumulator registers while a wgmma was in flight, before"},
        3);
}

TEST_CASE("operands in registers given to a product without wgmma_fence are reported") {
  check(3, {"output"},
        {"gives registers to a wgmma without wgmma_fence since they may have been written"});
}

TEST_CASE("an accumulator written while products are in flight is reported at the wait") {
  check(4, {"wait output"},
        {"has written accumulator registers while a wgmma was in flight, before"});
}

TEST_CASE("a stage released before the products that read it is overwritten while they do") {
  check(5, {"load V", "output"},
        {"race: the write of V by tma_load of thread 0 of block (0, 0, 0)",
         "is not ordered with the read by wgmma of warpgroup 1 of block (0, 0, 0)"});
}

TEST_CASE("attention that ends while TMA still reads its output is reported") {
  check(6, {"store O"},
        {"returns without waiting until its copy has read shared memory", "(warpgroup "});
}
