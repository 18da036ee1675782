// Plans between layouts, executed on the CPU for all threads.
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <string>

#include "codegen/layout/constructors.hpp"
#include "codegen/layout/relayout.hpp"
#include "codegen/layout/transfer.hpp"
#include "palladium/error.hpp"
#include "tests/support/layouts.hpp"

namespace palladium::layout {
namespace {

TEST_CASE("3,000 relayouts between random layouts deliver every element", "[layout]") {
  Random random(1);
  std::map<Move, int> kinds;
  Wavefronts total;
  int conflict_free = 0;
  for (int n = 0; n < 3000; ++n) {
    const Extents domain = random_domain(random);
    const Layout from = random_layout(random, domain);
    Layout to = random_layout(random, domain);
    if (n % 3 == 0) {  // a few exchanged bits: renamings and shuffles
      to = from;
      for (int i = pick(random, 1, 3); i > 0 && !to.reg.empty(); --i) {
        const int registers = static_cast<int>(to.reg.size());
        std::uint32_t& image = to.reg[static_cast<std::size_t>(pick(random, 0, registers - 1))];
        std::uint32_t& other =
            i == 1 ? to.reg.back() : to.lane[static_cast<std::size_t>(pick(random, 0, 4))];
        if (other != 0) std::swap(image, other);
      }
    }
    check(from);
    check(to);
    const int bytes = 1 << pick(random, 0, 3);
    PlanOptions options;
    options.scratch_limit = 1024 << pick(random, 0, 5);
    options.matrix_stores = pick(random, 0, 1) != 0;
    const Plan plan = plan_relayout(from, to, bytes, options);
    REQUIRE(run(plan) == "");
    REQUIRE(plan.scratch_bytes <= options.scratch_limit);
    REQUIRE(plan.cost == relayout_cost(from, to, bytes, options));
    ++kinds[plan.kind];
    if (plan.kind != Move::Shared) continue;
    const Wavefronts w = wavefronts(plan);
    conflict_free += w.counted == w.ideal;
    total.counted += w.counted;
    total.ideal += w.ideal;
  }
  INFO("no-op " << kinds[Move::Noop] << ", rename " << kinds[Move::Rename] << ", shuffle "
                << kinds[Move::Shuffle] << ", shared " << kinds[Move::Shared] << ", memory "
                << kinds[Move::Memory] << "; conflict-free " << conflict_free << ", wavefronts "
                << total.counted << " of ideal " << total.ideal);
  CHECK(kinds[Move::Shuffle] > 100);
  CHECK(kinds[Move::Rename] > 100);
  CHECK(kinds[Move::Shared] > 1000);
  CHECK(conflict_free >= kinds[Move::Shared] * 98 / 100);
  CHECK(static_cast<double>(total.counted) <= 1.01 * static_cast<double>(total.ideal));
}

}  // namespace
}  // namespace palladium::layout
