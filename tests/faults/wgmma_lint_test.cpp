// The check of wgmma_registers after waits, on texts with and without them, and on our own kernels.
#include "tests/support/wgmma_lint.hpp"

#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/hopper_kernels.hpp"

using namespace palladium;
using test::unpinned_registers;

namespace {

using Lines = std::vector<std::string>;

const std::string issue = R"(  f32 d[4];
  pl::wgmma_registers(d);
  pl::wgmma_fence();
  pl::wgmma_m64n8k16_f32_bf16_bf16(d, a, b, false);
  pl::wgmma_commit();
)";

// `kernel` without its line that says so, for one after the other: each must be found.
void check_each_pin(const std::string& kernel, const std::string& pin, int needed) {
  CHECK(unpinned_registers(kernel) == Lines{});
  int found = 0;
  for (std::size_t at = kernel.find(pin); at != kernel.npos; at = kernel.find(pin, at + 1)) {
    std::string without = kernel;
    without.erase(at, pin.size());
    found += !unpinned_registers(without).empty();
  }
  CHECK(found == needed);
}

}  // namespace

TEST_CASE("registers used after a wait without wgmma_registers are found with their line") {
  CHECK(unpinned_registers(issue + "  pl::wgmma_wait<0>();\n  f32 x = d[0];\n") ==
        Lines{"line 7 uses d after wgmma_wait without wgmma_registers between"});
  CHECK(unpinned_registers(issue +
                           "  pl::wgmma_wait<0>();\n  pl::wgmma_registers(d);\n  f32 x = d[0];\n")
            .empty());
  CHECK(unpinned_registers(issue + "  pl::wgmma_wait<0>();  // d is not mentioned\n").empty());
}

TEST_CASE("registers pinned before the wait alone are found") {
  CHECK(unpinned_registers(issue +
                           "  pl::wgmma_registers(d);\n  pl::wgmma_wait<0>();\n  f32 x = d[0];\n")
            .size() == 1);
  // A wait that leaves products in flight does not pin for the next.
  CHECK(unpinned_registers(issue + "  pl::wgmma_wait<1>();\n  pl::wgmma_registers(d);\n"
                                   "  pl::wgmma_wait<0>();\n  f32 x = d[0];\n")
            .size() == 1);
}

TEST_CASE("registers of a product that is over are as a wait for another one finds them") {
  const std::string two = issue +
                          "  pl::wgmma_m64n8k16_f32_bf16_bf16(e, a, b, false);\n"
                          "  pl::wgmma_commit();\n  pl::wgmma_wait<1>();\n";
  const std::string rest =
      "  pl::wgmma_wait<0>();\n  pl::wgmma_registers(e);\n  f32 x = d[0] + e[0];\n";
  CHECK(unpinned_registers(two + "  pl::wgmma_registers(d);\n" + rest).empty());
  CHECK(unpinned_registers(two + rest).size() == 1);
}

TEST_CASE("operands in registers written after a wait without wgmma_registers are found") {
  const std::string text = R"(
  pl::wgmma_m64n8k16_f32_bf16_bf16_rs<true>(d, a[kk], b, true);
  pl::wgmma_commit();
  pl::wgmma_wait<0>();
  pl::wgmma_registers(d);
  a[0][0] = 1;
)";
  CHECK(unpinned_registers(text) ==
        Lines{"line 6 uses a after wgmma_wait without wgmma_registers between"});
}

TEST_CASE("operands in registers of several steps written after a wait are found") {
  const std::string text = R"(
  pl::wgmma_m64n8k16_f32_bf16_bf16_rs_x2<true>(d, a, b, b + 2, true);
  pl::wgmma_wait<0>();
  pl::wgmma_registers(d);
  a[0] = 1;
)";
  CHECK(unpinned_registers(text) ==
        Lines{"line 5 uses a after wgmma_wait without wgmma_registers between"});
}

TEST_CASE("a use at the beginning of a loop meets the wait at its end") {
  const std::string text = R"(
  PL_NOUNROLL for (i32 i = 0; i < n; ++i) {
    sum += d[0];
    pl::wgmma_m64n8k16_f32_bf16_bf16(d, a, b, true);
    pl::wgmma_commit();
    pl::wgmma_wait<0>();
  }
)";
  CHECK(unpinned_registers(text) ==
        Lines{"line 3 uses d after wgmma_wait without wgmma_registers between"});
}

TEST_CASE("our kernels pin what they multiply after each wait") {
  for (const int cluster : {1, 2}) {
    check_each_pin(test::Gemm{.cluster = cluster}.text(), "pl::wgmma_registers(d);", 1);
  }
  CHECK(unpinned_registers(test::Attention{}.text()) == Lines{});
  check_each_pin(test::Attention{}.text(), "pl::wgmma_registers(p);", 1);
}
