#include "codegen/device/wgmma.hpp"

#include <set>
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "palladium/error.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using device::Half;

namespace {

std::string refusal(const std::string& name) {
  try {
    device::wgmma_functions(Half::cuda, "  pl::" + name + "(d, a, b, true);");
  } catch (const InternalError& error) {
    return error.what();
  }
  return "accepted";
}

/// The products that a text defines.
std::set<std::string> defined(const std::string& text) {
  std::set<std::string> names;
  for (std::size_t at = text.find(" wgmma_"); at != text.npos; at = text.find(" wgmma_", at + 1)) {
    const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789", at + 1);
    if (end != text.npos && text[end] == '(') names.insert(text.substr(at + 1, end - at - 1));
  }
  return names;
}

}  // namespace

TEST_CASE("wgmma variants have different names, each of which is understood") {
  std::set<std::string> names;
  std::string text;
  for (const device::Wgmma& op : device::wgmma_variants()) {
    CHECK(names.insert(op.name()).second);
    text += "pl::" + op.name() + "();";
  }
  CHECK(names.size() == 912);
  CHECK(names.contains("wgmma_m64n8k16_f32_bf16_bf16"));
  CHECK(names.contains("wgmma_m64n256k32_f16_e5m2_e4m3_rs"));
  CHECK(names.contains("wgmma_m64n24k32_s32_u8_s8"));
  for (const Half half : {Half::cuda, Half::cpu})
    CHECK(defined(device::wgmma_functions(half, text)) == names);
}

TEST_CASE("a prelude holds the wgmma that its kernel names, once, and no other") {
  const std::string kernel =
      "pl::wgmma_m64n16k16_f32_f16_f16<false, true>(d, a, b, false);"
      "pl::wgmma_m64n16k16_f32_f16_f16(d, a, b, true); pl::wgmma_fence();";
  const std::string text = device::prelude(Half::cuda, kernel);
  const std::size_t first =
      text.find("PL_FN void wgmma_m64n16k16_f32_f16_f16(f32 (&d)[Size], u64 a");
  REQUIRE(first != text.npos);
  CHECK(text.find("wgmma.mma_async") == text.rfind("wgmma.mma_async"));
  CHECK_THAT(text, ContainsSubstring("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16\\n\"\n"
                                     "      \"{%0, %1, %2, %3, %4, %5, %6, %7},\\n\"\n"
                                     "      \"%8, %9, p, 1, 1, %11, %12;}\""));
  CHECK(device::prelude(Half::cuda, "pl::wgmma_fence();").find("mma_async") == text.npos);
}

TEST_CASE("a wgmma takes A from registers, transposes and negation only where there are any") {
  const auto text = [](const char* name) {
    return device::wgmma_functions(Half::cuda, "pl::" + std::string(name) + "(");
  };
  CHECK_THAT(text("wgmma_m64n8k16_f16_f16_f16_rs"),
             ContainsSubstring("template <bool TransposeB = false, int First = 0, int FirstA = 0, "
                               "class D, int Size, int SizeA>") &&
                 ContainsSubstring("(D (&d)[Size], const u32 (&a)[SizeA], u64 b, bool ") &&
                 ContainsSubstring("static_assert(First + 2 <= int(sizeof d / 4) && ") &&
                 ContainsSubstring("{%2, %3, %4, %5}, %6, p, 1, 1, %8;"));
  CHECK_THAT(text("wgmma_m64n8k32_s32_s8_u8"),
             !ContainsSubstring("bool Transpose") &&
                 ContainsSubstring("(i32 (&d)[Size], u64 a, u64 b") &&
                 ContainsSubstring("%4, %5, p;}"));
  CHECK_THAT(text("wgmma_m64n8k8_f32_tf32_tf32"),
             !ContainsSubstring("bool Transpose") && ContainsSubstring("%4, %5, p, 1, 1;}"));
}

TEST_CASE("several steps of wgmma are one statement with the registers of D, which all add to") {
  const auto text = [](Half half, const char* name) {
    return device::wgmma_functions(half, "pl::" + std::string(name) + "(");
  };
  const std::string shared = text(Half::cuda, "wgmma_m64n8k16_f32_bf16_bf16_x2");
  CHECK_THAT(shared, ContainsSubstring("(f32 (&d)[Size], u64 a0, u64 b0, u64 a1, u64 b1, bool ") &&
                         ContainsSubstring(
                             "{.reg .pred p, q; setp.ne.u32 p, %8, 0; setp.eq.u32 q, 0, 0;") &&
                         ContainsSubstring("%4, %5, p, 1, 1, %9, %10;\\n\"") &&
                         ContainsSubstring("%6, %7, q, 1, 1, %9, %10;}\"") &&
                         ContainsSubstring("\"l\"(a0), \"l\"(b0), \"l\"(a1), \"l\"(b1), \"r\""));
  CHECK(shared.find("asm") == shared.rfind("asm"));
  CHECK(shared.find("\"+f\"(d[First + 0])") == shared.rfind("\"+f\"(d[First + 0])"));
  CHECK_THAT(text(Half::cuda, "wgmma_m64n8k32_f32_e4m3_e5m2_rs_x3"),
             ContainsSubstring("const A (&a)[SizeA], u64 b0, u64 b1, u64 b2, bool accumulate") &&
                 ContainsSubstring("FirstA + 12 <= int(sizeof a / 4)") &&
                 ContainsSubstring("{%4, %5, %6, %7}, %16, p, 1, 1;") &&
                 ContainsSubstring("{%12, %13, %14, %15}, %18, q, 1, 1;}") &&
                 ContainsSubstring("\"r\"(left[FirstA + 11]), \"l\"(b0)"));
  CHECK_THAT(
      text(Half::cpu, "wgmma_m64n8k16_f32_f16_f16_rs_x2"),
      ContainsSubstring("host.wgmma(&op, d + First, a + FirstA, 0, b0, accumulate, line)") &&
          ContainsSubstring("host.wgmma(&op, d + First, a + FirstA + 4, 0, b1, true, line)"));
}

TEST_CASE("a wgmma that the hardware lacks is refused with what is legal") {
  CHECK_THAT(refusal("wgmma_m64n20k16_f32_bf16_bf16"),
             ContainsSubstring("there is no pl::wgmma_m64n20k16_f32_bf16_bf16") &&
                 ContainsSubstring("n is a multiple of 8 up to 256"));
  CHECK_THAT(refusal("wgmma_m64n264k16_f32_bf16_bf16"), ContainsSubstring("up to 256"));
  for (const char* behind : {"_x1", "_x", "_x2_rs", "_y2", "_x2_x2", "_x2a"})
    CHECK_THAT(refusal(std::string("wgmma_m64n8k16_f32_bf16_bf16") + behind),
               ContainsSubstring("_x<steps> where there are several"));
  CHECK_THAT(refusal("wgmma_m64n40k32_s32_s8_s8"),
             ContainsSubstring("n is 8, 24 or a multiple of 16 up to 256 for integers"));
  CHECK_THAT(refusal("wgmma_m64n64k8_f32_f16_f16"),
             ContainsSubstring("k is 16 for operands of f16 and f16"));
  for (const char* types : {"f32_bf16_f16", "f16_bf16_bf16", "f32_s8_s8", "s32_s8_e4m3"})
    CHECK_THAT(refusal(std::string("wgmma_m64n64k32_") + types),
               ContainsSubstring("types go together as f32_bf16_bf16, f32_f16_f16, f16_f16_f16"));
  for (const char* name : {"wgmma_m128n64k16_f32_f16_f16", "wgmma_m64n64_f32_f16_f16", "wgmma_wiat",
                           "wgmma_m64n64k16_f32_f16_f16_ss", "wgmma_m64n64k16x_f32_f16_f16",
                           "wgmma_m64nk16_f32_f16_f16"})
    CHECK_THAT(refusal(name), ContainsSubstring("are called wgmma_m64n<N>k<K>_<D>_<A>_<B>"));
}
