// A GEMM and attention in the form in which Hopper's kernels are emitted, whatever runs first.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/base/files.hpp"
#include "tests/support/hopper_kernels.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/small_kernel.hpp"
#include "tests/support/worst.hpp"

using namespace palladium;

namespace {

void check_everywhere(const test::Gemm& g) {
  const std::vector<std::uint16_t> expected = test::reference_gemm(g);
  for (const emulator::Options& options : test::policies()) {
    INFO(test::describe(options));
    REQUIRE(test::run_gemm(g, options) == expected);
  }
}

double error_of(const test::Attention& a, const emulator::Options& options,
                const std::vector<double>& expected) {
  const std::vector<std::uint16_t> o = test::run_attention(a, options);
  double worst = 0;
  for (std::size_t i = 0; i < o.size(); ++i) {
    worst =
        test::worst_of(worst, std::abs(static_cast<double>(test::from_bf16(o[i])) - expected[i]));
  }
  return worst;
}

}  // namespace

TEST_CASE("a GEMM with tiles of 128 x 128 is exact under every policy") {
  check_everywhere({.m = 128, .n = 128, .k = 320});
}

TEST_CASE("a GEMM with tiles of 128 x 256 is exact under every policy") {
  check_everywhere({.m = 128, .n = 256, .k = 320, .bn = 256});
}

TEST_CASE("a GEMM whose clusters share B by multicast is exact under every policy") {
  check_everywhere({.m = 256, .n = 128, .k = 320, .cluster = 2});
}

TEST_CASE("a GEMM with large tiles and multicast is exact under every policy") {
  check_everywhere({.m = 256, .n = 256, .k = 192, .bn = 256, .cluster = 2});
}

TEST_CASE("a GEMM whose last tiles are ragged in every dimension is exact under every policy") {
  check_everywhere({.m = 200, .n = 136, .k = 88});
}

TEST_CASE("a cluster whose last block has no rows of its own takes part and stores nothing") {
  check_everywhere({.m = 104, .n = 72, .k = 200, .cluster = 2});
}

TEST_CASE("a GEMM smaller than one tile is exact") {
  const test::Gemm g = {.m = 8, .n = 8, .k = 8};
  CHECK(test::run_gemm(g, {}) == test::reference_gemm(g));
}

TEST_CASE("attention is right within 2e-3 under every policy") {
  const test::Attention a = {.length = 384};
  const std::vector<double> expected = test::reference_attention(a);
  for (const emulator::Options& options : test::policies()) {
    INFO(test::describe(options));
    REQUIRE(error_of(a, options, expected) <= 2e-3);
  }
}

TEST_CASE("a GEMM is never suspected, whatever the seed") {
  const test::Gemm g = {.m = 256, .n = 128, .k = 192, .cluster = 2, .stages = 2};
  const std::vector<std::uint16_t> expected = test::reference_gemm(g);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const emulator::Options random = {.asynchrony = emulator::Asynchrony::random,
                                      .schedule = emulator::Schedule::random,
                                      .seed = seed};
    REQUIRE(test::run_gemm(g, random) == expected);
  }
}

TEST_CASE("attention is never suspected, whatever the seed") {
  const test::Attention a = {.length = 256};
  const std::vector<double> expected = test::reference_attention(a);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const emulator::Options random = {.asynchrony = emulator::Asynchrony::random,
                                      .schedule = emulator::Schedule::random,
                                      .seed = seed};
    REQUIRE(error_of(a, random, expected) <= 2e-3);
  }
}

TEST_CASE("several OS threads give what one gives, and find the same faults") {
  test::Gemm g = {.m = 512, .n = 384, .k = 128, .stages = 2};
  const std::vector<std::uint16_t> expected = test::reference_gemm(g);
  CHECK(test::run_gemm(g, {.workers = 1}) == expected);
  CHECK(test::run_gemm(g, {.workers = 3}) == expected);
  g.fault = 8;
  const auto report = [&](int workers) -> std::string {
    try {
      test::run_gemm(g, {.workers = workers});
    } catch (const InternalError& e) {
      return e.what();
    }
    return {};
  };
  const std::string told = report(1);
  CHECK(told.find("of block (0, 0, 0)") != told.npos);
  CHECK(report(3) == told);
}

TEST_CASE("the emulator runs without looking for races, fences by anybody count if asked") {
  const test::Gemm g = {.m = 128, .n = 128, .k = 128};
  const std::vector<std::uint16_t> expected = test::reference_gemm(g);
  CHECK(test::run_gemm(g, {.detect_races = false}) == expected);
  CHECK(test::run_gemm(g, {.strict_fences = false}) == expected);
}

// On a GPU that orders all that a thread has done, and an acquire throws away the L1 cache; what
// frees a slot is that products, or copies, are done.
TEST_CASE("kernels by hand hand slots over without the scope of the cluster") {
  for (const char* const name : {"gemm", "attention"}) {
    std::string text;
    REQUIRE(files::read(test::source_dir() + "/tests/kernels/" + name + ".cu", 1 << 20, text));
    CAPTURE(name);
    CHECK(text.find("mbarrier_arrive") != text.npos);
    CHECK(text.find("mbarrier_arrive_cluster(") == text.npos);
    CHECK(text.find("mbarrier_wait_cluster(") == text.npos);
  }
}
