// Updates that are atomic for fewer threads than make them: each kernel is correct with fault 0.
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::check_fault;
using test::SmallKernel;

namespace {

constexpr const char* not_atomic =
    "is neither ordered with nor, by its scope and proxy, atomic for the atomic access by thread ";

/// Four blocks in clusters of two.
SmallKernel blocks(const std::string& body, std::vector<std::uint32_t>& o) {
  SmallKernel k(body);
  k.grid = {4, 1, 1};
  k.cluster = {2, 1, 1};
  k.writes("u32", "o", o);
  return k;
}

}  // namespace

TEST_CASE("sums in the scope of a cluster by blocks of several clusters are reported") {
  std::vector<std::uint32_t> o(2);
  SmallKernel k = blocks(R"(
  u32* const at = fault ? o : o + pl::block_x() / 2;
  pl::red_add<pl::release, pl::cluster>(at, 1u);  // add)",
                         o);
  check_fault(k, {"add", "add"},
              {"race: the atomic access of element 0 of o by thread ", not_atomic});
}

TEST_CASE("updates in the scope of a block by the blocks of a cluster are reported") {
  std::vector<std::uint32_t> o(4);
  SmallKernel k = blocks(R"(
  u32* const at = fault ? o + pl::block_x() / 2 : o + pl::block_x();
  pl::atomic_max<pl::relaxed, pl::block>(at, pl::thread());  // max)",
                         o);
  check_fault(k, {"max", "max"}, {"race: the atomic access of element ", not_atomic});
}

TEST_CASE("an update in the scope of the GPU is not atomic for one in a narrower scope") {
  std::vector<std::uint32_t> o(1);
  SmallKernel k = blocks(R"(
  if (pl::block_x() != 3) pl::atomic_add(o, 1u);  // wide
  else if (fault) pl::atomic_add<pl::relaxed, pl::cluster>(o, 1u);  // narrow
  else pl::atomic_add<pl::relaxed, pl::system_scope>(o, 1u);)",
                         o);
  k.fault = 0;
  CHECK(k.report() == "");
  k.fault = 1;
  const test::Told told(k.report());
  INFO(told.all);
  CHECK(told.reports == 1);
  CHECK(told.says(not_atomic));
  CHECK(told.says("emitted line " + std::to_string(k.line("wide")) + ":"));
  CHECK(told.says("emitted line " + std::to_string(k.line("narrow")) + ":"));
}

TEST_CASE("updates in narrow scopes that come one after the other are right") {
  std::vector<std::uint32_t> o(2);
  SmallKernel k = blocks(R"(
  if (pl::thread() != 0 || pl::block_x() > 2) return;
  if (pl::block_x() == 0) pl::atomic_add<pl::relaxed, pl::block>(o, 1u);  // first
  if (pl::block_x() == 0) pl::store_release(o + 1, 1u);
  if (pl::block_x() != 2) return;
  while (!fault && pl::load_acquire(o + 1) == 0) {}
  pl::atomic_add<pl::relaxed, pl::block>(o, 1u);  // second)",
                         o);
  check_fault(k, {"second", "first"}, {"race: the atomic access of element ", not_atomic});
}
