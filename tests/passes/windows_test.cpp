// Where Refs live: in global memory (direct), in registers or in shared memory.
#include <catch2/catch_test_macros.hpp>

#include "tests/passes/lowering.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

/// One f32 input in rows of 128, one output; `body` uses %0 and %1.
std::string rows(const std::string& grid, const std::string& input_map,
                 const std::string& output_map, const std::string& body,
                 const std::string& more = "") {
  const std::string axes =
      grid.find(',') == std::string::npos ? "%0: i32[]" : "%0: i32[] %1: i32[]";
  const auto map = [&](const std::string& results) {
    return results.empty() ? ""
                           : "    { " + axes + "\n      %9: i32[] = constant 0\n      yield " +
                                 results + "\n    }\n";
  };
  return "kernel k\n  grid " + grid + "\n" + more + "  args[0]: f32[4,256] in blocks [1,128]\n" +
         map(input_map) + "  outputs[0]: f32[4,256] in blocks [1,128]\n" + map(output_map) +
         "{ %0: ref block f32[1,128] %1: ref block f32[1,128]\n" + body + "}\n";
}

const std::string sum = R"(
  %2: f32[1,128] = load %0
  %3: f32[1,128] = load %1
  %4: f32[1,128] = add %2, %3
  store %1, %4
)";

const std::string negate = R"(
  %2: f32[128] = load %0
  %3: f32[128] = neg %2
  store %1, %3
)";

}  // namespace

TEST_CASE("a block that is read and one that is written once are direct") {
  CHECK_THAT(
      decided(whole({"f32[128]"}, {"f32[128]"}, negate)),
      Shows({"w0: args[0] direct read only\n", "w1: outputs[0] direct stored\n", "w1 = %3"}));
}

TEST_CASE("a product that is summed along a sequential axis stays in registers to the last visit") {
  CHECK_THAT(
      decided(R"(kernel matmul
  grid 2, 2, 4 sequential
  args[0]: f16[128,256] in blocks [64,64]
    { %0: i32[] %1: i32[] %2: i32[]
      yield %0, %2
    }
  args[1]: f16[256,128] in blocks [64,64]
    { %0: i32[] %1: i32[] %2: i32[]
      yield %2, %1
    }
  outputs[0]: f32[128,128] in blocks [64,64]
    { %0: i32[] %1: i32[] %2: i32[]
      yield %0, %1
    }
{ %0: ref block f16[64,64] %1: ref block f16[64,64] %2: ref block f32[64,64]
  %3: f32[64,64] = load %2
  %4: f16[64,64] = load %0
  %5: f16[64,64] = load %1
  %6: f32[64,64] = dot %4, %5
  %7: f32[64,64] = add %3, %6
  store %2, %7
})"),
      Shows({"w0: args[0] direct read only depth 1", "w2: outputs[0] registers s0 flush stored\n",
             "window w2", "grid loop 2 over the slots of ring 0 {", "window w0", "s0 += s2 * s3",
             "}", "w2 = s0"}));
}

TEST_CASE("a revisited block that is accessed in part is in shared memory") {
  CHECK_THAT(
      decided(R"(kernel k
  grid 4 sequential
  args[0]: f32[4,128] in blocks [1,128]
    { %0: i32[]
      %1: i32[] = constant 0
      yield %0, %1
    }
  outputs[0]: f32[2,128] in blocks [2,128]
{ %0: ref block f32[1,128] %1: ref block f32[2,128]
  %2: ref block f32[1,128] = at %1 [ds(0,1), :]
  %3: f32[1,128] = load %2
  %4: f32[1,128] = load %0
  %5: f32[1,128] = add %3, %4
  store %2, %5
})"),
      Shows({"w1: outputs[0] shared s0 flush stored", "s0: shared f32[2,128]", "of the block",
             "grid loop 0 {", "sync", "%3", "sync", "w1 at %2 = %5", "}", "sync", "w1 = s0"}));
}

TEST_CASE("a revisited block of more than 128 registers per thread is in shared memory") {
  CHECK_THAT(decided(by_warps(4, R"(kernel k
  grid 4 sequential
  args[0]: f32[4,32768] in blocks [1,32768]
    { %0: i32[]
      %1: i32[] = constant 0
      yield %0, %1
    }
  outputs[0]: f32[1,32768] in blocks [1,32768]
{ %0: ref block f32[1,32768] %1: ref block f32[1,32768]
  %2: f32[1,32768] = load %0
  %3: f32[1,32768] = load %1
  %4: f32[1,32768] = add %2, %3
  store %1, %4
})")),
             Shows({"w1: outputs[0] shared s0 flush stored", "shared bytes 131072"}));
}

TEST_CASE("a block that an outer sequential axis revisits after others is direct") {
  const std::string text = decided(rows("4 sequential, 2 sequential", "%0, %1", "%9, %1", sum));
  CHECK_THAT(text, Shows({"w1: outputs[0] direct stored synchronised depth 2", "grid loop 0 {",
                          "grid loop 1 {", "window w1", "w1 = %4"}));
}

TEST_CASE("a block that only the outer sequential axis moves is kept through the inner one") {
  CHECK_THAT(decided(rows("2 sequential, 4 sequential", "%1, %0", "%9, %0", sum)),
             Shows({"w1: outputs[0] registers s0 flush stored depth 1", "grid loop 0 {",
                    "window w1", "grid loop 1 {", "window w0", "}", "w1 = s0", "}"}));
}

TEST_CASE("an input is filled before its alias is written, if it is read after") {
  CHECK_THAT(decided(R"(kernel k
  grid
  args[0]: f32[128] in blocks [128]
  outputs[0]: f32[128] in blocks [128]
  outputs[1]: f32[128] in blocks [128]
  alias: input 0 is output 0
{ %0: ref block f32[128] %1: ref block f32[128] %2: ref block f32[128]
  %3: f32[128] = constant 1
  store %1, %3
  %4: f32[128] = load %0
  store %2, %4
})"),
             Shows({"w0: args[0] registers s0 fill", "s0 = w0", "w1 = %3", "w2 = %4"}));
}

TEST_CASE("an input that is read before its alias is written is direct, and not read only") {
  const std::string text = decided(R"(kernel k
  grid
  args[0]: f32[128] in blocks [128]
  outputs[0]: f32[128] in blocks [128]
  alias: input 0 is output 0
{ %0: ref block f32[128] %1: ref block f32[128]
)" + negate + "}");
  CHECK_THAT(text, Shows({"w0: args[0] direct synchronised\n",
                          "w1: outputs[0] direct stored synchronised\n", "w1 = %3"}));
}

TEST_CASE("a revisited block of several warpgroups is direct, because each has its own registers") {
  const std::string text = rows("4 sequential", "%0, %9", "%9, %9", sum, "  thread axis wg\n");
  const std::size_t body = text.rfind("\n{") + 1;
  CHECK_THAT(decided(text), Shows({"w1: outputs[0] registers s0"}));
  CHECK_THAT(decided(text.substr(0, body) + "warpgroups 2\n" + text.substr(body)),
             Shows({"w1: outputs[0] direct stored synchronised"}));
}

TEST_CASE("shared scratch is one for the block, scratch in registers one for each warpgroup") {
  CHECK_THAT(decided(whole({"f32[8,128]"}, {"f32[8,128]"}, R"(
  %5: f32[8,128] = load %0
  store %2, %5
  %6: f32[8,128] = load %2
  store %3, %6
  %7: f32[8,128] = load %3
  %8: f32[1] = constant 0
  store %4, %8
  store %1, %7)",
                           {"smem f32[8,128]", "regs f32[8,128]", "regs f32[1]"})),
             Shows({"w2: scratch shared s0", "w3: scratch registers s1", "w4: scratch registers s2",
                    "s0: shared f32[8,128] at 0 row stride 128 of the block",
                    "s1: registers f32[8,128]", "s2: scalar f32[1]"}));
}

TEST_CASE(
    "scratch in registers that is accessed in part is in shared memory, a copy per warpgroup") {
  const std::string text = decided(whole({"f32[128]"}, {"f32[128]"}, R"(
  %3: ref regs f32[64] = at %2 [ds(0,64)]
  %4: f32[64] = constant 1
  store %3, %4
  %5: f32[128] = load %2
  store %1, %5)",
                                         {"regs f32[128]"}));
  CHECK_THAT(text, Shows({"w2: scratch shared s0", "s0: shared f32[128] at 0 row stride 128\n"}));
}

TEST_CASE("a memory space that the user names is where the block lives") {
  CHECK_THAT(decided(R"(kernel k
  grid 4
  args[0]: f32[4,128] in blocks [1,128]
    { %0: i32[]
      %1: i32[] = constant 0
      yield %0, %1
    }
  outputs[0]: f32[4,128] in blocks [1,128]
    { %0: i32[]
      %1: i32[] = constant 0
      yield %0, %1
    }
{ %0: ref smem f32[1,128] %1: ref gmem f32[1,128]
  %2: f32[1,128] = load %0
  store %1, %2
})"),
             Shows({"w0: args[0] shared s0 fill\n", "w1: outputs[0] direct stored\n", "window w0",
                    "s0 = w0", "sync", "w1 = %2"}));
}

TEST_CASE("a block in global memory that the user names is direct however it is revisited") {
  CHECK_THAT(decided(R"(kernel k
  grid 4 sequential
  outputs[0]: i32[128] in blocks [128]
{ %0: ref gmem i32[128]
  %1: i32[128] = load %0
  %2: i32[128] = add %1, %1
  store %0, %2
})"),
             Shows({"w0: outputs[0] direct stored synchronised"}));
}

TEST_CASE("a revisited array that no shared memory holds is direct") {
  const auto scattered = [](const std::string& array) {
    return decided(R"(kernel k
  grid 4 sequential
  args[0]: f32[64,128] in blocks [16,128]
    { %0: i32[]
      %1: i32[] = constant 0
      yield %0, %1
    }
  outputs[0]: )" + array +
                   R"(
{ %0: ref block f32[16,128] %1: ref block )" +
                   array.substr(0, array.find(' ')) + R"(
  %2: ref block f32[16,128] = at %1 [ds(16,16), :]
  %3: f32[16,128] = load %0
  store %2, %3
})");
  };
  CHECK_THAT(scattered("f32[65536,128] in blocks [65536,128]"),
             Shows({"w1: outputs[0] direct stored synchronised"}));
  CHECK_THAT(scattered("f32[256,128] in blocks [256,128]"), Shows({"w1: outputs[0] shared"}));
}

TEST_CASE("of programs that a revisited block alone puts in order a remark tells") {
  constexpr const char* told = "run one behind the other, on one multiprocessor";
  const auto tells = [&](const std::string& text) { return text.find(told) != std::string::npos; };
  CHECK(tells(decided(rows("4 sequential, 2 sequential", "%0, %1", "%9, %1", sum))));
  CHECK(tells(decided(rows("1, 2 sequential", "%0, %1", "%0, %9", sum))));
  CHECK_FALSE(tells(decided(rows("4, 2 sequential", "%0, %1", "%0, %9", sum))));
  CHECK_FALSE(tells(decided(rows("4 sequential, 2 sequential", "%0, %1", "%0, %1", sum))));
}

TEST_CASE("a window is proved to be inside by its grid, or is ragged") {
  CHECK_THAT(
      decided(R"(kernel k
  grid s0, 3
  args[0]: f32[s0,1000] in blocks [1,512]
    { %0: i32[] %1: i32[]
      yield %0, %1
    }
  args[1]: f32[64,1024] in blocks [64,512]
    { %0: i32[] %1: i32[]
      %2: i32[] = constant 0
      %3: i32[] = constant 1
      yield %2, %3
    }
  args[2]: f32[64,1024] in blocks [64,512]
    { %0: i32[] %1: i32[]
      %2: i32[] = constant 0
      %3: i32[] = constant 2
      yield %2, %3
    }
  args[3]: f32[8,1024] in blocks [element(4,1,0),1024]
    { %0: i32[] %1: i32[]
      %2: i32[] = constant 0
      yield %0, %2
    }
  args[4]: f32[s0,1024] in blocks [2,1024]
    { %0: i32[] %1: i32[]
      %2: i32[] = constant 0
      yield %0, %2
    }
  outputs[0]: f32[s0,1536] in blocks [1,512]
    { %0: i32[] %1: i32[]
      yield %0, %1
    }
{ %0: ref block f32[1,512] %1: ref block f32[64,512] %2: ref block f32[64,512] %3: ref block f32[4,1024] %4: ref block f32[2,1024] %5: ref block f32[1,512]
  %6: f32[1,512] = load %0
  store %5, %6
})"),
      Shows({"w0: args[0] direct read only ragged(1)\n", "w1: args[1] direct read only\n",
             "w2: args[2] direct read only ragged(1)\n", "w3: args[3] direct read only ragged(0)\n",
             "w4: args[4] direct read only ragged(0)\n", "w5: outputs[0] direct stored\n"}));
}

TEST_CASE("a block in registers goes to its array by vectors as wide as its rows allow") {
  // Rows of two elements, that no wider vector has: the nest that fills the block has its layout.
  const auto kernel = [](const std::string& columns) {
    return "kernel k\n  grid 4 sequential\n  args[0]: f32[4,1] in blocks [1,1]\n"
           "    { %0: i32[]\n      %9: i32[] = constant 0\n      yield %0, %9\n    }\n"
           "  outputs[0]: f32[128," +
           columns + "] in blocks [128," + columns +
           "]\n"
           "    { %0: i32[]\n      %9: i32[] = constant 0\n      yield %9, %9\n    }\n"
           "{ %0: ref block f32[1,1] %1: ref block f32[128," +
           columns +
           "]\n"
           "  %2: f32[1,1] = load %0\n"
           "  %3: f32[128," +
           columns +
           "] = broadcast %2 [0,1]\n"
           "  %4: f32[128," +
           columns +
           "] = load %1\n"
           "  %5: f32[128," +
           columns +
           "] = add %3, %4\n"
           "  store %1, %5\n}\n";
  };
  for (const std::string width : {"1", "2", "4"}) {
    INFO(emitted(kernel(width)));
    CHECK(occurrences(emitted(kernel(width)), "pl::store_global<" + width + ">(out0") == 1);
  }
}
