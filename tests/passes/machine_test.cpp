// What each architecture can do.
#include "codegen/lowered/machine.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "codegen/base/architecture.hpp"

using namespace palladium;
using lowered::Machine;
using lowered::MmaShape;

namespace {

Machine machine(const std::string& name) {
  const Architecture a = parse_architecture(name);
  return {.compute_capability = a.compute_capability, .is_specific = a.is_specific()};
}

// In the order of Machine's questions, letters of those that are answered by yes.
std::string abilities(const Machine& m) {
  std::string all;
  if (m.has_matrix_moves()) all += 'm';
  if (m.has_matrix_stores()) all += 's';
  if (m.has_async_copies()) all += 'a';
  if (m.has_tma()) all += 't';
  if (m.has_clusters()) all += 'c';
  if (m.has_wgmma()) all += 'w';
  if (m.has_fast_byte_floats()) all += 'f';
  return all;
}

}  // namespace

TEST_CASE("every architecture has the copies, clusters and products of its generation") {
  const struct {
    const char* name;
    const char* has;
  } known[] = {{"sm_75", "m"},        {"sm_80", "ma"},      {"sm_86", "ma"},
               {"sm_87", "ma"},       {"sm_89", "maf"},     {"sm_90", "msatcf"},
               {"sm_90a", "msatcwf"}, {"sm_100", "msatc"},  {"sm_100a", "msatc"},
               {"sm_103", "msatc"},   {"sm_120", "msatcf"}, {"sm_120a", "msatcf"},
               {"sm_121", "msatcf"}};
  for (const auto& [name, has] : known) {
    CAPTURE(name);
    CHECK(abilities(machine(name)) == has);
  }
}

TEST_CASE("wgmma multiplies floats of 16 bits, pairs of bytes and tf32 on sm_90a alone") {
  const Machine hopper = machine("sm_90a");
  CHECK(hopper.has_wgmma(f16, f16, false));
  CHECK(hopper.has_wgmma(bf16, bf16, false));
  CHECK(hopper.has_wgmma(f8e4m3, f8e5m2, false));
  CHECK(hopper.has_wgmma(i8, u8, false));
  CHECK(hopper.has_wgmma(f32, f32, true));
  CHECK_FALSE(hopper.has_wgmma(f32, f32, false));
  CHECK_FALSE(hopper.has_wgmma(f16, bf16, false));
  CHECK_FALSE(hopper.has_wgmma(i8, f8e4m3, false));
  CHECK_FALSE(hopper.has_wgmma(i32, i32, false));
  CHECK_FALSE(hopper.has_wgmma(f64, f64, false));
  for (const char* const other : {"sm_80", "sm_90", "sm_100a", "sm_120a"}) {
    CAPTURE(other);
    CHECK_FALSE(machine(other).has_wgmma(f16, f16, false));
  }
}

TEST_CASE("mma.sync has a shape for each dtype from its first architecture on") {
  const auto depth = [](const char* name, DType a, DType b, bool tf32 = false) {
    const std::optional<MmaShape> shape = machine(name).mma(a, b, tf32);
    if (shape) CHECK((shape->m == 16 && shape->n == 8));
    return shape ? shape->k : 0;
  };
  CHECK(depth("sm_75", f16, f16) == 8);
  CHECK(depth("sm_75", bf16, bf16) == 0);
  CHECK(depth("sm_75", f32, f32, true) == 0);
  CHECK(depth("sm_75", i8, u8) == 32);
  for (const char* const name : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    CAPTURE(name);
    CHECK(depth(name, f16, f16) == 16);
    CHECK(depth(name, bf16, bf16) == 16);
    CHECK(depth(name, f32, f32, true) == 8);
    CHECK(depth(name, f32, f32, false) == 0);
    CHECK(depth(name, u8, i8) == 32);
    CHECK(depth(name, f16, bf16) == 0);
    CHECK(depth(name, f64, f64) == 0);
  }
  CHECK(depth("sm_86", f8e4m3, f8e4m3) == 0);
  CHECK(depth("sm_89", f8e4m3, f8e5m2) == 32);
  CHECK(depth("sm_100a", f8e5m2, f8e5m2) == 32);
}
