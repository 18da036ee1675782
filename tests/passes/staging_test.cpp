// Windows that are read at several offsets: which of them are staged in shared memory, how they
// come there, and how they are read.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/base/format.hpp"
#include "tests/passes/lowering.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// What surrounds the sum of `taps` slices, one element apart, of a window of rows.
struct Stencil {
  std::string type = "f32";
  int taps = 3;
  std::string rows = "[4096]", window = "[element(1026,1,1)]";
  std::string start = "mul %0, %10";  // %10: 1024
  std::string space = "block";
  std::string more = "";
};

std::string text_of(const Stencil& s) {
  std::string text =
      fmt::format(R"(kernel k
  grid 4
{}  args[0]: {}{} in blocks {}
    {{ %0: i32[]
      %10: i32[] = constant 1024
      %11: i32[] = {}
      yield %11
    }}
  outputs[0]: {}[4096] in blocks [1024]
    {{ %0: i32[]
      yield %0
    }}
{{ %0: ref {} {}[1026] %1: ref block {}[1024]
)",
                  "", s.type, s.rows, s.window, s.start, s.type, s.space, s.type, s.type);
  int last = 2;
  std::string sum;
  for (int k = 0; k < s.taps; ++k) {
    text += fmt::format("  %{}: ref {} {}[1024] = at %0 [ds({},1024)]\n", last, s.space, s.type, k);
    text += fmt::format("  %{}: {}[1024] = load %{}\n", last + 1, s.type, last);
    last += 2;
    if (k == 0) {
      sum = fmt::format("%{}", last - 1);
      continue;
    }
    text += fmt::format("  %{}: {}[1024] = add {}, %{}\n", last, s.type, sum, last - 1);
    sum = fmt::format("%{}", last++);
  }
  text += fmt::format("  store %1, {}\n}}\n", sum);
  if (!s.more.empty()) text.insert(text.find("\n{") + 1, s.more);
  return text;
}

/// The mean of three columns of [64,256], guarded by `column` >= 0 and < 256 where it says so.
std::string guarded(const std::string& right, const std::string& left = "0",
                    const std::string& other = "0") {
  std::string text = R"(kernel k
  grid 4, 2
  args[0]: u8[64,256] in blocks [16,element(130,1,1)]
    { %0: i32[] %1: i32[]
      %2: i32[] = constant 128
      %3: i32[] = mul %1, %2
      yield %0, %3
    }
  outputs[0]: i32[64,256] in blocks [16,128]
    { %0: i32[] %1: i32[]
      yield %0, %1
    }
{ %0: ref block u8[16,130] %1: ref block i32[16,128]
  %2: i32[] = program_id [1]
  %3: i32[] = constant 128
  %4: i32[] = mul %2, %3
  %5: i32[16,128] = broadcast %4
  %6: i32[16,128] = iota [1]
  %7: i32[16,128] = add %5, %6
  %8: i32[16,128] = constant )" +
                     left + R"(
  %9: i32[16,128] = constant )" +
                     right + R"(
  %10: i32[16,128] = constant )" +
                     other + "\n";
  int last = 11;
  std::string sum;
  for (int k = 0; k < 3; ++k) {
    const int n = last;
    text += fmt::format(R"(  %{}: i32[16,128] = constant {}
  %{}: i32[16,128] = add %7, %{}
  %{}: bool[16,128] = ge %{}, %8
  %{}: bool[16,128] = lt %{}, %9
  %{}: bool[16,128] = and %{}, %{}
  %{}: ref block u8[16,128] = at %0 [ds(0,16), ds({},128)]
  %{}: u8[16,128] = load %{}
  %{}: i32[16,128] = cast %{}
  %{}: i32[16,128] = select %{}, %{}, %10
)",
                        n, k - 1, n + 1, n, n + 2, n + 1, n + 3, n + 1, n + 4, n + 2, n + 3, n + 5,
                        k, n + 6, n + 5, n + 7, n + 6, n + 8, n + 4, n + 7);
    last += 9;
    if (k == 0) {
      sum = fmt::format("%{}", last - 1);
      continue;
    }
    text += fmt::format("  %{}: i32[16,128] = add {}, %{}\n", last, sum, last - 1);
    sum = fmt::format("%{}", last++);
  }
  return text + "  store %1, " + sum + "\n}\n";
}

}  // namespace

TEST_CASE("a window that is read at three offsets is staged, by vectors that are aligned") {
  const std::string text = text_of({});
  CHECK_THAT(decided(text), Shows({"w0: args[0] staged s0 by 4 lead 3 fill read only ragged(0)\n",
                                   "s0: shared f32[1032]", "of the block", "window w0", "s0 = w0",
                                   "sync", "w1 = "}));
  const std::string cuda = emitted(text);
  CHECK(occurrences(cuda, "copy_async<4>") == 1);
  CHECK(occurrences(cuda, "load_global") == 0);
  CHECK(occurrences(cuda, "store_shared") == 0);
  CHECK(occurrences(cuda, "load_shared_padded<4>") == 1);  // what three reads share
  CHECK(occurrences(cuda, "warpgroup_sync") == 1);
}

TEST_CASE("a window that is read once, or half at a time, is read from global memory") {
  CHECK_THAT(decided(text_of({.taps = 1})), ContainsSubstring("w0: args[0] direct"));
  CHECK_THAT(decided(whole({"f32[2048]"}, {"f32[1024]"}, R"(
  %2: ref block f32[1024] = at %0 [ds(0,1024)]
  %3: f32[1024] = load %2
  %4: ref block f32[1024] = at %0 [ds(1024,1024)]
  %5: f32[1024] = load %4
  %6: f32[1024] = add %3, %5
  store %1, %6)")),
             ContainsSubstring("w0: args[0] direct"));
}

TEST_CASE("what the user pins is not staged, nor what somebody writes while the kernel runs") {
  CHECK_THAT(decided(text_of({.space = "gmem"})), ContainsSubstring("w0: args[0] direct"));
  CHECK_THAT(decided(text_of({.space = "smem"})), ContainsSubstring("w0: args[0] shared"));
  std::string aliased = text_of({.rows = "[4096]"});
  aliased.insert(aliased.find("{ %0: ref"), "  alias: input 0 is output 0\n");
  CHECK_THAT(decided(aliased), !ContainsSubstring("staged"));
}

TEST_CASE("a window is staged in elements as wide as its rows and starts are known to be") {
  CHECK_THAT(decided(text_of({.rows = "[4098]"})), ContainsSubstring("staged s0 by 2 lead 1"));
  CHECK_THAT(decided(text_of({.rows = "[4097]"})), ContainsSubstring("staged s0 by 1 fill"));
  CHECK_THAT(decided(text_of({.start = "add %0, %10"})), ContainsSubstring("staged s0 by 1 fill"));
  CHECK_THAT(decided(text_of({.type = "u8"})), ContainsSubstring("staged s0 by 16 lead 15"));
  CHECK_THAT(decided(text_of({.type = "f64"})), ContainsSubstring("staged s0 by 2 lead 1"));
  CHECK_THAT(decided(text_of({.type = "f32", .window = "[element(1026,2,0)]"})),
             ContainsSubstring("staged s0 by 4 lead 2"));
}

TEST_CASE("a window that is too large beside others is read from global memory") {
  // 4 blocks on a multiprocessor of sm_75 have 16 KiB each.
  CHECK_THAT(decided(text_of({.type = "f64"}), 75), ContainsSubstring("staged"));
  const std::string large = whole({"f64[4098]"}, {"f64[4096]"}, R"(
  %2: ref block f64[4096] = at %0 [ds(0,4096)]
  %3: f64[4096] = load %2
  %4: ref block f64[4096] = at %0 [ds(1,4096)]
  %5: f64[4096] = load %4
  %6: f64[4096] = add %3, %5
  %7: ref block f64[4096] = at %0 [ds(2,4096)]
  %8: f64[4096] = load %7
  %9: f64[4096] = add %6, %8
  store %1, %9)");
  CHECK_THAT(decided(large, 90), ContainsSubstring("staged"));
  CHECK_THAT(decided(large, 75), ContainsSubstring("w0: args[0] direct"));
}

TEST_CASE("a window whose bits are seen as another type is read from global memory") {
  std::string text = text_of({});
  const std::string before = "at %0 [ds(2,1024)]\n";
  text.insert(text.find(before) + before.size(),
              "  %90: ref block i32[1026] = ref_bitcast %0\n"
              "  %91: ref block i32[1024] = at %90 [ds(0,1024)]\n"
              "  %92: i32[1024] = load %91\n");
  CHECK_THAT(decided(text), ContainsSubstring("w0: args[0] direct"));
}

TEST_CASE("a window gives way where the rest of the kernel needs the shared memory") {
  const auto text = [](const char* scratch) {
    return whole({"f32[1028]"}, {"f32[1024]"}, R"(
  %3: ref block f32[1024] = at %0 [ds(0,1024)]
  %4: f32[1024] = load %3
  %5: ref block f32[1024] = at %0 [ds(1,1024)]
  %6: f32[1024] = load %5
  %7: f32[1024] = add %4, %6
  %8: ref block f32[1024] = at %0 [ds(3,1024)]
  %9: f32[1024] = load %8
  %10: f32[1024] = add %7, %9
  store %1, %10)",
                 {scratch});
  };
  CHECK_THAT(decided(text("smem f32[14000]"), 75), ContainsSubstring("w0: args[0] staged"));
  CHECK_THAT(decided(text("smem f32[16000]"), 75), ContainsSubstring("w0: args[0] direct"));
}

TEST_CASE("a window is staged again wherever its block changes") {
  std::string text = text_of({});
  text.replace(text.find("grid 4"), 6, "grid 4 sequential");
  CHECK_THAT(decided(text, 75), Shows({"w0: args[0] staged", "depth 1", "grid loop 0 {",
                                       "window w0", "sync", "s0 = w0", "sync", "w1 = "}));
}

TEST_CASE("reads in a loop are at as many offsets as the loop has iterations") {
  const auto text = [](int iterations) {
    return whole({"f32[1032]"}, {"f32[1024]"},
                 fmt::format(R"(
  %2: i32[] = constant 0
  %3: i32[] = constant {}
  %4: f32[1024] = constant 0
  %5 = loop %2, %3 carry %4
    {{ %6: i32[] %7: f32[1024]
      %8: ref block f32[1024] = at %0 [ds(%6,1024)]
      %9: f32[1024] = load %8
      %10: f32[1024] = add %7, %9
      yield %10
    }}
  %11: f32[1024] = get %5 [0]
  store %1, %11)",
                             iterations));
  };
  CHECK_THAT(decided(text(8)), Shows({"w0: args[0] staged", "s0 = w0", "sync", "loop %5"}));
  CHECK_THAT(decided(text(1)), ContainsSubstring("w0: args[0] direct"));
}

TEST_CASE("what may not happen is no reason to stage") {
  std::string text = whole({"f32[1026]"}, {"f32[1024]"}, R"(
  %2: i32[] = num_programs [0]
  %3: i32[] = constant 1
  %4: bool[] = eq %2, %3
  when %4
    {
      %5: ref block f32[1024] = at %0 [ds(0,1024)]
      %6: f32[1024] = load %5
      %7: ref block f32[1024] = at %0 [ds(1,1024)]
      %8: f32[1024] = load %7
      %9: f32[1024] = add %6, %8
      %10: ref block f32[1024] = at %0 [ds(2,1024)]
      %11: f32[1024] = load %10
      %12: f32[1024] = add %9, %11
      store %1, %12
    })");
  text.replace(text.find("grid"), 4, "grid 1");
  CHECK_THAT(decided(text), ContainsSubstring("w0: args[0] direct"));
}

TEST_CASE("a guard that keeps all that is in the window's bounds is left out, any other stays") {
  for (const std::string& text : {guarded("256"), guarded("257"), guarded("256", "-1")}) {
    CHECK_THAT(decided(text), ContainsSubstring("staged s0 by 16 lead 15 zeros"));
    CHECK(occurrences(emitted(text), "? pl::to") == 0);
    CHECK(occurrences(emitted(text), "copy_async_zero<16>") == 1);
    CHECK(occurrences(emitted(text, 75), "load_global_nc_zero<16>") == 1);
  }
  for (const std::string& text : {guarded("255"), guarded("256", "1"), guarded("256", "0", "1")}) {
    CHECK_THAT(decided(text), ContainsSubstring("staged s0 by 16 lead 15 fill"));
    CHECK(occurrences(emitted(text), "copy_async<16>") == 1);
    CHECK(occurrences(emitted(text, 75), "load_global_nc<16>") == 1);
    CHECK(occurrences(emitted(text), "? pl::to") > 0);
  }
}

TEST_CASE("where a block is whole, conditions that its elements are inside hold") {
  // A guard that does not keep what it guards stays, but for blocks that are whole.
  const std::string text = emitted(guarded("256", "0", "1"));
  CHECK_THAT(text, Shows({"load_shared_padded", "if (", " == ", ") {", "} else {", " ? ", " : 1",
                          "store_global"}));
  CHECK(text.find(" : 1") > text.find("} else {"));
  // What both ways read, and what they store, stands once.
  CHECK(text.rfind("load_shared_padded") < text.find(" == "));
  CHECK(occurrences(text, "store_global") == 1);
}

TEST_CASE("rows of a staged window lie so that lanes read from different banks") {
  for (const int columns : {64, 96, 128, 160, 256}) {
    CAPTURE(columns);
    std::string body;
    for (int k = 0; k < 3; ++k)
      body += fmt::format(
          "  %{}: ref block u8[16,{}] = at %0 [ds({},16), ds({},{})]\n"
          "  %{}: u8[16,{}] = load %{}\n",
          2 + 2 * k, columns, k, k, columns, 3 + 2 * k, columns, 2 + 2 * k);
    body += fmt::format(
        "  %8: u8[16,{0}] = max %3, %5\n  %9: u8[16,{0}] = max %8, %7\n  store %1, %9", columns);
    const std::string text =
        whole({fmt::format("u8[18,{}]", columns + 16)}, {fmt::format("u8[16,{}]", columns)}, body);
    const Report r = cuda::report(graph_of(text), {.compute_capability = 90});
    int reads = 0;
    for (const AccessReport& a : r.accesses) {
      if (!a.shared || a.store) continue;
      ++reads;
      CHECK(a.touched == a.needed);
    }
    CHECK(reads > 0);
    CHECK(r.mix.barriers == 1);
  }
}

TEST_CASE("what is stored along another dimension than it is read is turned in shared memory") {
  for (const std::string type : {"f32", "f16", "u8", "i64"}) {
    CAPTURE(type);
    const std::string text = whole({type + "[64,64]"}, {type + "[64,64]"},
                                   "  %2: " + type + "[64,64] = load %0\n  %3: " + type +
                                       "[64,64] = transpose %2 [1,0]\n  store %1, %3");
    CHECK_THAT(decided(text), ContainsSubstring("staged"));
    const Report r = cuda::report(graph_of(text), {.compute_capability = 90});
    for (const AccessReport& a : r.accesses)
      if (!a.shared || (!a.store && a.element_bytes >= 4)) CHECK(a.touched == a.needed);
    CHECK(r.mix.barriers == 1);
  }
  // Elements that no vector holds lie an odd number of words apart; vectors change places.
  const auto turned = [](const std::string& shape) {
    return decided(whole({"f32" + shape}, {"f32" + shape},
                         "  %2: f32" + shape + " = load %0\n  %3: f32" + shape +
                             " = transpose %2 [1,0]\n  store %1, %3"));
  };
  CHECK_THAT(turned("[63,63]"), ContainsSubstring("row stride 65"));
  CHECK_THAT(turned("[64,64]"), ContainsSubstring("row stride 64 swizzle 3 of 4 rows"));
}

TEST_CASE("what stays along its dimension, or is folded, is not turned") {
  const auto text = [](const std::string& result, const std::string& body) {
    return decided(whole({"f32[64,64]"}, {result}, "  %2: f32[64,64] = load %0\n" + body));
  };
  CHECK_THAT(text("f32[64,64]", "  store %1, %2"), !ContainsSubstring("staged"));
  CHECK_THAT(text("f32[64]",
                  "  %3: f32[64,64] = transpose %2 [1,0]\n"
                  "  %4: f32[64] = reduce_sum %3 [0]\n  store %1, %4"),
             !ContainsSubstring("staged"));
  CHECK_THAT(text("f32[64,64]",
                  "  %3: f32[64,64] = transpose %2 [1,0]\n"
                  "  %4: f32[64,64] = transpose %3 [1,0]\n  store %1, %4"),
             !ContainsSubstring("staged"));
}
