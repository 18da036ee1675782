// Kernels that start while the one before them still runs: each is correct with fault 0.
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/small_kernel.hpp"

using namespace palladium;
using test::check_fault;
using test::SmallKernel;

TEST_CASE("load_global_nc of what the kernel before may still write is reported") {
  std::vector<std::uint32_t> x(128), y(128), o(128);
  SmallKernel k(R"(
  const u32 t = pl::thread();
  u32 v, w;
  pl::load_global_nc(&w, y + t);
  pl::griddepcontrol_wait();
  if (fault) pl::load_global_nc(&v, x + t);  // read
  else pl::load_global(&v, x + t);
  v += w;
  pl::store_global(o + t, &v);)");
  k.reads("u32", "x", x).overlapped().reads("u32", "y", y).writes("u32", "o", o);
  check_fault(k, {"read"},
              {"reads x by load_global_nc, and the kernel before, which it overlaps, may write it "
               "meanwhile"});
}
