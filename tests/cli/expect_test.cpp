// What a kernel is to become (CompilerParams::expect): told, refused or nobody's business.
#include "palladium/palladium.hpp"
#include "tests/cli/tool.hpp"
#include "tests/support/captured_stderr.hpp"

using namespace palladium::test;
namespace pl = palladium;
using pl::_;

namespace {

/// A product of one block; of f32, which tensor cores do not multiply, if `slow`.
pl::Kernel product(bool slow, const pl::Expectation& expect) {
  const pl::DType t = slow ? pl::f32 : pl::f16;
  return pl::pallas_call(
      [](pl::Ref a, pl::Ref b, pl::Ref o) {
        const auto step = [&](pl::Index i, pl::Value sum) {
          const pl::Slice now = pl::ds(i * 64, 64);
          return sum + pl::dot(a[{_, now}], b[{now, _}]);
        };
        o[_] = pl::loop(0, 16, step, pl::zeros({128, 128}, pl::f32)).astype(o.dtype());
      },
      {.name = "expected", .out_type = {{128, 128}, t}, .compiler_params = {.expect = expect}});
}

pl::Lowered lowered(bool slow, const pl::Expectation& expect) {
  const pl::DType t = slow ? pl::f32 : pl::f16;
  return product(slow, expect)
      .lower(pl::ShapeDtype{{128, 1024}, t}, pl::ShapeDtype{{1024, 128}, t});
}

const pl::Expectation fast{.on = "sm_90a", .tensor_cores = true, .tma = true, .spills = 0};

/// What a compile that is refused says; "" where it is not.
std::string refusal(const pl::Lowered& kernel, const std::string& arch = "sm_90a") {
  try {
    (void)kernel.compile({.arch = arch});
  } catch (const pl::CompileError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a kernel that breaks what it is to be is refused with the remark behind it") {
  const Folder cache;
  const Environment in_cache("PALLADIUM_CACHE_DIR", cache.path());
  const Environment is_error("PALLADIUM_EXPECT", "error");
  CHECK(refusal(lowered(false, fast)) == "");
  const std::string why = refusal(lowered(true, fast));
  CHECK_THAT(why, StartsWith("kernel 'expected' on sm_90a is not what its .expect says"));
  CHECK_THAT(why,
             ContainsSubstring(".tensor_cores: the result of dot is multiplied by no tensor core"));
  CHECK_THAT(why,
             ContainsSubstring("remark: the result of dot: multiplied in f32 by no tensor core, "
                               "which with .precision = pl::Precision::tf32"));
  CHECK_THAT(why, ContainsSubstring("expect_test.cpp"));
  // From the cache it is refused as well, and elsewhere nobody has promised anything.
  CHECK(refusal(lowered(true, fast)) == why);
  CHECK(refusal(lowered(true, fast), "sm_80") == "");
}

TEST_CASE("each part of what a kernel is to be is looked at") {
  const Folder cache;
  const Environment in_cache("PALLADIUM_CACHE_DIR", cache.path());
  const Environment is_error("PALLADIUM_EXPECT", "error");
  const auto says = [](const pl::Expectation& e) { return refusal(lowered(false, e)); };
  CHECK_THAT(says({.registers = 16}), ContainsSubstring(".registers: a thread has "));
  CHECK_THAT(says({.on = "sm_90a", .of_limit = 1}),
             ContainsSubstring(" is predicted, not 1.00; bound by "));
  CHECK(says({.on = "sm_90a", .registers = 255, .of_limit = 0.05}) == "");
  CHECK_THAT(refusal(lowered(false, {.tma = true}), "sm_80"),
             ContainsSubstring(".tma: no block is fetched by it"));
  CHECK_THAT(refusal(lowered(false, {.on = "sm_120a", .of_limit = 0.5}), "sm_120a"),
             ContainsSubstring(".of_limit: nothing is predicted: "));
  CHECK(refusal(lowered(false, {.of_limit = 0.5}), "sm_120a") == "");
}

TEST_CASE("what a kernel breaks is a warning, an error or not looked at, as the environment says") {
  const Folder cache;
  const Environment in_cache("PALLADIUM_CACHE_DIR", cache.path());
  const auto log_of = [&](const char* mode) {
    const Environment expect("PALLADIUM_EXPECT", mode);
    const CapturedStderr captured;
    (void)lowered(true, fast).compile({.arch = "sm_90a"});
    return captured.text();
  };
  CHECK_THAT(log_of(nullptr), ContainsSubstring("kernel 'expected' on sm_90a is not what its "
                                                ".expect says"));
  // It was found: what lowering decided is not looked at again.
  CHECK(log_of("warning") == "");
  CHECK(log_of("off") == "");
  const Environment wrong("PALLADIUM_EXPECT", "maybe");
  CHECK_THROWS_WITH(
      lowered(true, fast).compile({.arch = "sm_90a"}),
      ContainsSubstring("PALLADIUM_EXPECT is 'maybe'; it can be warning, error or off"));
}

TEST_CASE("what a kernel is to be is no part of its key, and stands in manifests") {
  CHECK(lowered(false, fast).key({.arch = "sm_90a"}) == lowered(false, {}).key({.arch = "sm_90a"}));
  const Tool palladium;
  const std::string path = palladium.folder / "kernels.json";
  {
    const Environment in_cache("PALLADIUM_CACHE_DIR", palladium.cache());
    const Environment off("PALLADIUM_EXPECT", "off");
    const pl::Recorder recorder(path);
    (void)lowered(true, fast).compile({.arch = "sm_90a"});
  }
  const std::vector<Variable> told = {{"PALLADIUM_EXPECT", "warning"}};
  CHECK(palladium({"warm", path}, told).status == 0);
  const Finished refused = palladium({"warm", path, "--expect"}, told);
  CHECK(refused.status == 1);
  CHECK_THAT(refused.err, ContainsSubstring("failed: kernel 'expected' on sm_90a is not what its"));
  CHECK_THAT(refused.err, ContainsSubstring("remark: the result of dot: multiplied in f32"));
  CHECK(palladium({"warm", path, "--expect", "--arch", "sm_80"}, told).status == 0);
}

TEST_CASE("what nothing can become is refused as it is written") {
  const auto traced = [](const pl::Expectation& e) { (void)lowered(false, e); };
  CHECK_THROWS_WITH(traced({.on = "hopper"}),
                    ContainsSubstring("expect.on is 'hopper'; kernels are "
                                      "compiled for sm_75, "));
  CHECK_THROWS_WITH(traced({.of_limit = 70}),
                    ContainsSubstring("of_limit is a fraction, given 70"));
  CHECK_THROWS_WITH(traced({.spills = -1}),
                    ContainsSubstring("registers and spills are 0 or more"));
}
