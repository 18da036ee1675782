#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/emulator/waist_kernels.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using test::buffer;

namespace {

struct Outcome {
  std::string internal, user;
  Location at;
};

// Runs a kernel `k(const f32* x, f32* o)` whose body is `body`, each of its lines being the user's
// line 100 + n of user.cpp, and says what it reported.
Outcome outcome(const std::string& body, int blocks = 1, int warpgroups = 1,
                std::uint32_t shared_bytes = 1024, emulator::Options options = {}) {
  const std::string text =
      "PL_KERNEL(128) k(const f32* x, f32* o) {\n" + body + "\n}\nPL_EXPORT(k)\n";
  std::vector<float> x(1024, 1), o(1024);
  void *px = x.data(), *po = o.data();
  void* parameters[] = {&px, &po};
  const emulator::Buffer buffers[] = {buffer("args[0]", x), buffer("outputs[0]", o, true)};
  std::vector<Location> lines;
  for (int i = 0; i < 40; ++i) lines.push_back({"folder/user.cpp", 100 + i});
  try {
    emulator::run({.kernel = "k",
                   .text = text,
                   .grid = {blocks, 1, 1},
                   .warpgroups = warpgroups,
                   .shared_bytes = shared_bytes,
                   .parameters = parameters,
                   .buffers = buffers,
                   .lines = lines,
                   .options = options});
  } catch (const InternalError& e) {
    return {.internal = e.what(), .user = "", .at = {}};
  } catch (const CompileError& e) {
    return {.internal = "", .user = e.what(), .at = e.at()};
  }
  return {};
}

}  // namespace

TEST_CASE("a correct kernel reports nothing") {
  const Outcome r = outcome(R"(  const u32 t = pl::thread();
  f32 v;
  pl::load_global(&v, x + t);
  pl::store_shared(pl::shared_base() + 4 * t, &v);
  pl::warpgroup_sync();
  pl::load_shared(&v, pl::shared_base() + 4 * (127 - t));
  pl::store_global(o + t, &v);)");
  CHECK(r.internal == "");
  CHECK(r.user == "");
}

TEST_CASE("a read outside every buffer is reported with thread, text and the user's line") {
  const Outcome r = outcome("  f32 v[4];\n  pl::load_global<4>(v, x + 1000 + 4 * pl::thread());");
  CHECK_THAT(r.internal, ContainsSubstring("kernel 'k'"));
  CHECK_THAT(r.internal, ContainsSubstring("thread 6 of block (0, 0, 0)"));
  CHECK_THAT(r.internal, ContainsSubstring("reads 16 bytes outside every buffer"));
  CHECK_THAT(r.internal, ContainsSubstring("at byte 4096 of args[0], which has 4096"));
  CHECK_THAT(r.internal, ContainsSubstring("emitted line 3: pl::load_global<4>(v, x + 1000"));
  CHECK_THAT(r.internal, ContainsSubstring("at user.cpp:102"));
}

TEST_CASE("writes outside every buffer, to read-only ones, and misaligned accesses are reported") {
  CHECK_THAT(outcome("f32 v = 0; pl::store_global(o - 1, &v);").internal,
             ContainsSubstring("writes 4 bytes outside every buffer, 4 bytes before outputs[0]"));
  CHECK_THAT(outcome("f32 v = 0; pl::store_global(const_cast<f32*>(x), &v);").internal,
             ContainsSubstring("writes to args[0], which is only read"));
  CHECK_THAT(outcome("f32 v[2]; pl::load_global<2>(v, x + 1);").internal,
             ContainsSubstring("reads 8 bytes at an address that is no multiple of it"));
  CHECK_THAT(outcome("f32 v[2] = {}; pl::store_global<2>(o + 1, v);").internal,
             ContainsSubstring("writes 8 bytes at an address that is no multiple of it"));
}

TEST_CASE("an access whose predicate is false touches nothing") {
  const Outcome r = outcome(
      "f32 v = 0; pl::load_global(&v, x - 9, false); pl::store_global(o + 4096, &v, false);\n"
      "pl::load_shared(&v, 0, false); pl::store_shared(0, &v, false);");
  CHECK(r.internal == "");
}

TEST_CASE("shared memory: uninitialised, outside and misaligned accesses are reported") {
  CHECK_THAT(outcome("f32 v; pl::load_shared(&v, pl::shared_base() + 8);").internal,
             ContainsSubstring("reads 4 bytes of shared memory at offset 8 that nobody wrote"));
  CHECK(outcome("f32 v; pl::load_shared_padded(&v, pl::shared_base() + 8);").internal == "");
  CHECK_THAT(outcome("f32 v = 1; pl::store_shared(pl::shared_base() + 1024, &v);").internal,
             ContainsSubstring("writes 4 bytes of shared memory at offset 1024 of 1024"));
  CHECK_THAT(outcome("f32 v = 1; pl::store_shared(pl::shared_base() - 4, &v);").internal,
             ContainsSubstring("writes 4 bytes of shared memory at offset -4 of 1024"));
  CHECK_THAT(outcome("f32 v = 1; pl::store_shared(pl::shared_base() + 2, &v);").internal,
             ContainsSubstring("at offset 2, which is no multiple of it"));
  CHECK_THAT(
      outcome("bf16 v[8]; pl::ldmatrix_x4(v, pl::shared_base() + 16 * pl::lane());").internal,
      ContainsSubstring("that nobody wrote"));
}

TEST_CASE("a read of what the user did not store is the user's mistake, with the line") {
  const Outcome r = outcome("f32 v;\npl::load_resident(&v, pl::shared_base() + 8);");
  CHECK(r.internal == "");
  CHECK_THAT(r.user, ContainsSubstring("before anything was stored there"));
  CHECK(r.at.line == 102);
  CHECK(outcome("f32 v; pl::load_resident(&v, pl::shared_base() + 8, false);").user == "");
  CHECK(outcome("f32 v[2] = {}; pl::store_shared(pl::shared_base() + 8, v);\n"
                "pl::load_resident_part<2>(v, pl::shared_base() + 8, 1);")
            .user == "");
}

TEST_CASE("a block that ends leaves alone what nobody stored, and nothing behind") {
  const Outcome r = outcome(R"(
  const u32 s = pl::shared_base() + 16 * pl::thread();
  if (pl::thread() < 64) {
    f32 v[4] = {1, 2, 3, 4};
    pl::store_shared<2>(s, v);
    pl::flush_resident<4>(o + 4 * pl::thread(), s);
    pl::load_global<4>(v, o + 4 * pl::thread());
    pl::check(v[0] == 1 && v[1] == 2 && v[2] == 0 && v[3] == 0, "stored");
    pl::load_resident(v, s);
  })");
  CHECK(r.internal == "");
  CHECK_THAT(r.user, ContainsSubstring("before anything was stored there"));
}

TEST_CASE("a value against what was said of it is the user's mistake, with the value") {
  CHECK(outcome("pl::check_value(true, 12, \"x is {}\");").user == "");
  CHECK_THAT(outcome("pl::check_value(false, -12, \"x is {}, said 8\");").user,
             ContainsSubstring("x is -12, said 8 (in block (0, 0, 0))"));
}

TEST_CASE("a range that leaves its extent is the user's mistake, with its numbers") {
  CHECK(outcome("pl::check_range(0, 7, 8, \"x\");").user == "");
  CHECK_THAT(outcome("pl::check_range(1, 8, 8, \"x\");").user,
             ContainsSubstring("x: elements 1 to 8 are out of bounds, the extent is 8"));
  CHECK_THAT(outcome("pl::check_range(-1, -1, 8, \"x\");").user,
             ContainsSubstring("x: element -1 is out of bounds, the extent is 8"));
}

TEST_CASE("shared memory of one block is not seen by the next") {
  CHECK_THAT(outcome("f32 v = 1;\n"
                     "if (pl::block_x() == 0) pl::store_shared(pl::shared_base(), &v);\n"
                     "else pl::load_shared(&v, pl::shared_base());",
                     2)
                 .internal,
             ContainsSubstring("block (1, 0, 0)"));
}

TEST_CASE("threads that skip a barrier are a deadlock that says who waits where") {
  const Outcome r = outcome("  if (pl::warp() != 2)\n    pl::warpgroup_sync();");
  CHECK_THAT(r.internal, ContainsSubstring("deadlock: of 128 threads 32 have returned"));
  CHECK_THAT(r.internal, ContainsSubstring(
                             "96 of block (0, 0, 0) (0 to 63, 96 to 127) wait in warpgroup_sync"));
  CHECK_THAT(r.internal, ContainsSubstring("emitted line 3: pl::warpgroup_sync();"));
  CHECK_THAT(r.internal, ContainsSubstring("at user.cpp:102"));
}

TEST_CASE("collectives that threads reach at different lines or in different kinds are reported") {
  CHECK_THAT(
      outcome("  u32 v = 0;\n"
              "  if (pl::lane() < 16)\n    v = pl::shuffle_xor(v, 1);\n"
              "  else\n    v = pl::shuffle_xor(v, 1);")
          .internal,
      ContainsSubstring("reaches shuffle while threads that must take part wait in shuffle"));
  CHECK_THAT(outcome("if (pl::lane() == 3) pl::vote_any(true); else pl::warp_sync();").internal,
             ContainsSubstring("reaches vote while threads that must take part wait in warp_sync"));
  CHECK_THAT(outcome("if (pl::lane() == 3) return; pl::vote_any(true);").internal,
             ContainsSubstring("wait in vote"));
  CHECK_THAT(outcome("u32 v = pl::shuffle_xor(1u, 32u);").internal,
             ContainsSubstring("shuffles by 32, which is not below 32"));
}

TEST_CASE("a warpgroup barrier for another number of warpgroups is reported") {
  CHECK_THAT(outcome("pl::warpgroup_sync<1>();", 1, 2).internal,
             ContainsSubstring("calls warpgroup_sync<1> in a block of 2 warpgroups"));
}

TEST_CASE("two blocks that write one element are the user's error, with the user's line") {
  const Outcome r = outcome(
      "  const u32 t = pl::thread();\n  f32 v = 1;\n"
      "  pl::store_global(o + 100 * pl::block_x() + t, &v);",
      2);
  CHECK_THAT(r.user, ContainsSubstring("blocks (0, 0, 0) and (1, 0, 0) both write element 100 of "
                                       "outputs[0]"));
  CHECK(r.at.line == 103);
  CHECK(
      outcome("f32 v = 1; pl::store_global(o + 128 * pl::block_x() + pl::thread(), &v);", 2).user ==
      "");
  CHECK(outcome("f32 v = 1; pl::store_global(o, &v);", 2, 1, 0, {.detect_writers = false}).user ==
        "");
}

TEST_CASE("a failed check is the user's error") {
  const Outcome r = outcome(
      "  pl::check(pl::block_x() < 1, \"the block of args[0] is wholly out of bounds\");", 2);
  CHECK_THAT(r.user, ContainsSubstring("the block of args[0] is wholly out of bounds (in block "
                                       "(1, 0, 0))"));
  CHECK(r.at.line == 101);
}

TEST_CASE("what a check of placements finds is told apart by its line, whatever it says") {
  constexpr std::string_view text =
      "PL_KERNEL(128) k(u32 n) {\n  pl::check(n != 1, \"an index map gives what it may not\");\n"
      "  pl::check(n != 2, \"anything\");\n}\nPL_EXPORT(k)\n";
  const int placements[] = {3};
  for (std::uint32_t n : {0u, 1u, 2u}) {
    CAPTURE(n);
    void* parameters[] = {&n};
    std::string misplaced, other;
    try {
      emulator::run(
          {.kernel = "k", .text = text, .parameters = parameters, .placements = placements});
    } catch (const emulator::Misplaced& e) {
      misplaced = e.what();
    } catch (const CompileError& e) {
      other = e.what();
    }
    CHECK(other.empty() == (n != 1));
    CHECK(misplaced.empty() == (n != 2));
  }
}

TEST_CASE("lanes out of bounds hold poison, or zero when asked") {
  constexpr std::string_view text = R"(PL_KERNEL(128) k(const f32* x, u32* o) {
  f32 a[1];
  i16 b[2];
  bool c[1];
  f16 d[1];
  u16 e[1];
  pl::load_global(a, x, false);
  pl::load_shared<2>(b, 0, false);
  pl::load_global(c, static_cast<const bool*>(nullptr), false);
  pl::load_global_nc(d, static_cast<const f16*>(nullptr), false);
  pl::load_shared(e, 0, false);
  u32 v[4] = {pl::bitcast<u32>(a[0]), pl::pack(b[0], b[1]), c[0] | u32(e[0]) << 16, d[0].bits};
  pl::store_global<4>(o, v, pl::thread() == 0);
}
PL_EXPORT(k)
)";
  const auto run = [&](emulator::OutOfBounds rule) {
    std::vector<std::uint32_t> o(4);
    void *px = nullptr, *po = o.data();
    void* parameters[] = {&px, &po};
    const emulator::Buffer buffers[] = {buffer("outputs[0]", o, true)};
    emulator::run({.kernel = "k",
                   .text = text,
                   .parameters = parameters,
                   .buffers = buffers,
                   .options = {.out_of_bounds = rule}});
    return o;
  };
  CHECK(run(emulator::OutOfBounds::poison) ==
        std::vector<std::uint32_t>{0x7fffffff, 0x80008000, 1, 0x7fff});
  CHECK(run(emulator::OutOfBounds::zero) == std::vector<std::uint32_t>{0, 0, 0, 0});
}

TEST_CASE("a text that the host compiler refuses is our error, with its words") {
  const Outcome r = outcome("  pl::no_such_function();");
  CHECK_THAT(r.internal, ContainsSubstring("the host compiler refuses the text of kernel 'k'"));
  CHECK_THAT(r.internal, ContainsSubstring("kernel.cu:2:"));
  CHECK_THAT(r.internal, ContainsSubstring("no_such_function"));
}

TEST_CASE("a launch that no GPU could do is refused") {
  CHECK_THAT(outcome("f32 v = 2;", 1, 9).internal, ContainsSubstring("9 warpgroups"));
  CHECK_THAT(outcome("f32 v = 2;", 1, 1, 300000).internal,
             ContainsSubstring("300000 bytes of shared memory"));
}

TEST_CASE("without a host compiler the error says which was tried and how to name another") {
  const std::string body = "f32 v = 3;  // a text that no other test compiles";
  {
    test::HostCompiler none("/nonexistent/c++");
    const Outcome r = outcome(body);
    CHECK_THAT(r.user, ContainsSubstring("the host compiler /nonexistent/c++ cannot be run"));
    CHECK_THAT(r.user, ContainsSubstring("PALLADIUM_CXX names another"));
  }
  CHECK(outcome(body).user == "");  // the failure is not remembered
}

TEST_CASE("both host compilers run the same text") {
  for (const std::string& compiler : test::host_compilers()) {
    test::HostCompiler chosen(compiler.c_str());
    const std::string own_text = std::string("  // ") + compiler;
    const Outcome r = outcome(own_text + "\n  f32 v;\n  pl::load_shared(&v, pl::shared_base());");
    INFO(compiler);
    CHECK_THAT(r.internal, ContainsSubstring("emitted line 4: pl::load_shared(&v"));
  }
}
