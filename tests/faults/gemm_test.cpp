// Faults of a GEMM's pipeline, each found by one run.
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "palladium/error.hpp"
#include "tests/support/hopper_kernels.hpp"
#include "tests/support/small_kernel.hpp"

using namespace palladium;

namespace {

using test::any_number;

constexpr test::Gemm alone = {.m = 128, .n = 128, .k = 256, .stages = 2};
constexpr test::Gemm cluster = {.m = 256, .n = 128, .k = 256, .cluster = 2, .stages = 2};

std::string report(const test::Gemm& g) {
  try {
    test::run_gemm(g, {});
  } catch (const InternalError& e) {
    return e.what();
  }
  return {};
}

void check(test::Gemm g, int fault, std::initializer_list<const char*> markers,
           std::initializer_list<const char*> words, int reports = 1) {
  g.fault = fault;
  std::vector<int> lines;
  for (const char* marker : markers) lines.push_back(test::line_of(g.text(), marker));
  test::check_told(report(g), lines, words, reports);
}

}  // namespace

TEST_CASE("a GEMM without faults reports nothing") {
  CHECK(report(alone) == "");
  CHECK(report(cluster) == "");
}

TEST_CASE("a stage that is overwritten without waiting is a race of its copies") {
  // What else goes wrong depends on who runs first: consumers may sleep through phases.
  test::Gemm g = alone;
  g.k = 192;
  check(g, 1, {"load A", "load A", "load B", "load B"},
        {"race: the write of A by tma_load of thread 0 of block (0, 0, 0)",
         "race: the write of B by tma_load of thread 0 of block (0, 0, 0)"},
        any_number);
}

TEST_CASE("bytes expected that no copy brings are a deadlock that counts them") {
  check(alone, 2, {"wait empty", "wait full"},
        {"deadlock: of 384 threads 127 have returned",
         "1 of block (0, 0, 0) (0) wait in mbarrier_wait for parity 0 of empty[0] (phase 0: 2 "
         "of 2 arrivals and 0 bytes outstanding)",
         "256 of block (0, 0, 0) (128 to 383) wait in mbarrier_wait for parity 0 of full[0] (phase "
         "0: 0 of 1 arrivals and 16 bytes outstanding)"});
}

TEST_CASE("bytes that nobody expected are a deadlock that counts them") {
  check(alone, 17, {"wait empty", "wait full"},
        {"0 of 1 arrivals and 0 bytes outstanding, 16 more than expected"});
}

TEST_CASE("a consumer that does not wait for its stage is reported where it multiplies") {
  // It races with the copies, or comes even before them and finds what nobody wrote.
  check(alone, 3, {"multiply"}, {"wgmma"}, any_number);
}

TEST_CASE("accumulators given to a product without wgmma_fence are reported") {
  check(alone, 4, {"multiply"},
        {"gives accumulator registers to a wgmma without wgmma_fence since they may have been "
         "written"});
}

TEST_CASE("a stage released before its products are done is overwritten while they read") {
  check(alone, 5, {"load A", "multiply", "load B", "multiply"},
        {"race: the write of A by tma_load of thread 0",
         "is not ordered with the read by wgmma of warpgroup 1 of block (0, 0, 0)",
         "race: the write of B by tma_load of thread 0"},
        2);
}

TEST_CASE("accumulators read while their products are in flight are reported where they are read") {
  check(alone, 6, {"convert", "multiply"},
        {"uses an accumulator register that a wgmma in flight still writes: wgmma_wait must come "
         "before",
         "returns with a wgmma in flight"},
        2);
}

TEST_CASE("a tile stored by TMA without a fence after it was written is reported") {
  check(alone, 7, {"store C", "write C"},
        {"missing fence: the read of C", "by tma_store of thread ",
         "is asynchronous and comes after, but without fence_async between them, the write by "
         "thread "});
}

TEST_CASE("a tile stored by TMA without a barrier after other threads wrote it is a race") {
  check(alone, 8, {"store C", "write C"},
        {"race: the read of C", "by tma_store of thread ",
         "is not ordered with the write by thread "});
}

TEST_CASE("a block that ends while TMA still reads its memory is reported") {
  check(alone, 9, {"store C"},
        {"returns without waiting until its copy has read shared memory", "(warpgroup "});
}

TEST_CASE("a block that ends while its cluster still arrives at its barriers is reported") {
  check(cluster, 10, {"release in cluster"},
        {"touches shared memory of block (0, 0, 0), which may have ended by then; a cluster "
         "barrier must come between"});
}

TEST_CASE("a barrier with too large a count is a deadlock that shows it") {
  check(alone, 11, {"wait empty", "wait full"},
        {"wait in mbarrier_wait for parity 0 of empty[0] (phase 0: 1 of 3 arrivals and 0 bytes "
         "outstanding)"});
}

TEST_CASE("a deadlock of a cluster lists its blocks in order") {
  test::Gemm g = cluster;
  g.fault = 11;
  const test::Told told(report(g));
  INFO(told.all);
  CHECK(told.says("deadlock: of 768 threads 0 have returned"));
  CHECK(told.all.find("of block (0, 0, 0)") < told.all.find("of block (1, 0, 0)"));
  CHECK(told.lines == [&] {
    std::vector<int> lines;
    for (int block = 0; block < 2; ++block) {
      for (const char* marker : {"leave", "wait empty", "wait full"}) {
        lines.push_back(test::line_of(g.text(), marker));
      }
    }
    return lines;
  }());
}

TEST_CASE("copies that complete on a barrier without fence_mbarrier_init are reported") {
  check(alone, 12, {"load A", "init full", "load B", "init full"},
        {"lets a copy complete on full[0], whose initialisation has no fence_mbarrier_init"}, 2);
}

TEST_CASE("arrivals from another block need fence_mbarrier_init as well") {
  check(cluster, 12,
        {"load A", "init full", "multicast B", "init full", "release in cluster", "init empty"},
        {"arrives at empty[0] of another block, whose initialisation has no fence_mbarrier_init"},
        3);
}

TEST_CASE("threads that use a barrier before its initialisation is ordered race with it") {
  check(alone, 13, {"wait full", "init full"},
        {"race: thread ", "uses full[0] and is not ordered with its initialisation"});
}

TEST_CASE("a cluster that starts with a block barrier only may meet blocks that have not started") {
  check(cluster, 14, {"multicast B", "release in cluster", "init empty", "release in cluster"},
        {"touches shared memory of block (1, 0, 0), which may not have started: no cluster barrier "
         "has come before",
         "uses empty[0] and is not ordered with its initialisation"},
        3);
}

TEST_CASE("a descriptor with a wrong stride shows in the result") {
  test::Gemm g = alone;
  g.fault = 15;
  CHECK(test::run_gemm(g, {}) != test::reference_gemm(g));
}

TEST_CASE("a buffer written again before TMA has read it is a race with the thread that stores") {
  test::Gemm g = alone;
  g.n = g.bn = 256;
  check(g, 16, {"write C", "store C"},
        {"race: the write of C", "is not ordered with the read by tma_store of thread "});
}

TEST_CASE("a race names the thread that issued the copy, not one that issued another since") {
  test::Gemm g = alone;
  g.n = g.bn = 256;
  g.fault = 16;
  const std::string told = report(g);
  const std::size_t writer = told.find("by thread "), reader = told.find("tma_store of thread ");
  INFO(told);
  REQUIRE(writer != told.npos);
  REQUIRE(reader != told.npos);
  const auto warpgroup = [&](std::size_t at) {
    return told.substr(told.find("(warpgroup ", at), 12);
  };
  CHECK(warpgroup(writer) == warpgroup(reader));
}
