// How long storages live, of registers and of shared memory by one rule.
#include "codegen/lowered/lives.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/passes/lowering.hpp"
#include "tests/support/lowered_text.hpp"

using namespace palladium;
using namespace palladium::test;
using lowered::StorageId;

namespace {

// Four storages of shared memory, of registers two, and a body of such statements.
lowered::Program program(const std::string& statements, const std::string& others = "") {
  std::string text =
      whole({"f32[512]"}, {"f32[512]"}, "  %2: f32[512] = load %0\n  store %1, %2") + "lowered\n";
  for (int i = 0; i < 4; ++i)
    text += "storage " + std::to_string(i) + " place=shared dtype=f32 shape=[512]\n";
  for (int i = 4; i < 6; ++i)
    text += "storage " + std::to_string(i) +
            " dtype=f32 shape=[512] layout=\"dom(512) tile(512) reg[i1 i2] lane[i4 i8 i16 i32 i64] "
            "warp[i128 i256]\"\n";
  return lowered_of(text + others + "body\nagent all 1 {\n" + statements + "}\n");
}

bool meet(const lowered::Program& l, int a, int b) {
  return lowered::Lives(l).meet(StorageId(a), StorageId(b));
}

}  // namespace

TEST_CASE("a storage lives from the statement that fills it to the last that reads it") {
  const lowered::Program l =
      program("copy_storage from=s0 to=s1\ncopy_storage from=s1 to=s2\nsync\n");
  CHECK(meet(l, 0, 1));
  CHECK(meet(l, 1, 2));
  CHECK_FALSE(meet(l, 0, 2));
  const lowered::Lives lives(l);
  CHECK(lives.has(StorageId(2)));
  CHECK_FALSE(lives.has(StorageId(3)));
  CHECK(lives.of(StorageId(2)).last < lives.end());
}

TEST_CASE("what enters a loop, or outlives it, lives as long as the loop does") {
  const std::string loop =
      "grid_loop axis=0\nbody {\ncopy_storage from=s0 to=s1\ncopy_storage from=s1 to=s2\n"
      "copy_storage from=s2 to=s3\n}\n";
  const lowered::Program inside = program(loop);
  CHECK_FALSE(meet(inside, 0, 3));
  CHECK_FALSE(meet(inside, 1, 3));
  const lowered::Program enters = program("copy_storage from=s4 to=s0\n" + loop);
  CHECK(meet(enters, 0, 3));
  CHECK_FALSE(meet(enters, 4, 1));
  const lowered::Program outlives = program(loop + "copy_storage from=s3 to=s4\n");
  CHECK(meet(outlives, 0, 3));
  const lowered::Program twice = program("copy_storage from=s4 to=s0\ngrid_loop axis=0\nbody {\n" +
                                         loop + "copy_storage from=s2 to=s5\n}\n");
  CHECK(meet(twice, 0, 5));
  CHECK(meet(twice, 2, 0));
  CHECK_FALSE(meet(twice, 5, 3));
}

TEST_CASE("elements take the place of those in registers that they are made of, no others") {
  const auto spilled = [](const std::string& map) {
    return program("nest sink=spill from=s4 storage=s0 domain=[512] valid=[512] " + map +
                   " rolled=[0]\n");
  };
  CHECK_FALSE(meet(
      spilled("layout=\"dom(512) tile(512) reg[i1 i2] lane[i4 i8 i16 i32 i64] warp[i128 i256]\""),
      4, 0));
  CHECK(meet(
      spilled("layout=\"dom(512) tile(512) reg[i1 i2 i4] lane[i8 i16 i32 i64 i128] warp[i256 *]\""),
      4, 0));
  CHECK(meet(program("nest sink=spill from=s1 storage=s0 domain=[512] valid=[512] "
                     "layout=\"dom(512) tile(512) reg[i1 i2] lane[i4 i8 i16 i32 i64] warp[i128 "
                     "i256]\" rolled=[0]\n"),
             1, 0));
}

TEST_CASE("a window lives as long as the program, one of a scope as long as that") {
  lowered::Program l = program("sync\nscope windows=[w0]\nbody {\nsync\n}\nsync\n",
                               "window 0 root=%0 residency=shared storage=s3\n");
  const auto span = [&] { return lowered::Lives(l).of(StorageId(3)); };
  CHECK(span().first == 0);
  CHECK(span().last == lowered::Lives(l).end());
  l.windows[lowered::WindowId(0)].scope = graph::ValueId{2};
  CHECK(span().first > 1);
  CHECK(span().last < lowered::Lives(l).end() - 1);
}

TEST_CASE("a window in registers lives as long as the loops of a program that touch it") {
  const std::string window = "window 0 root=%0 residency=registers storage=s4\n";
  const std::string loop = "grid_loop axis=0\nbody {\nsync\ncopy_storage from=s0 to=s4\nsync\n}\n";
  const auto span = [&](const std::string& statements) {
    return lowered::Lives(program(statements, window)).of(StorageId(4));
  };
  const auto begins = span("sync\n" + loop + "copy_storage from=s4 to=s1\nsync\n");
  CHECK(begins.first == 3);  // behind the first statement, with the loop
  CHECK(begins.last == 11);  // in the copy behind it
  const std::string programs =
      "grid_loop axis=-2\nbody {\nsync\n" + loop + "copy_storage from=s4 to=s1\nsync\n}\n";
  CHECK(span(programs).first > 3);
  CHECK(span(programs).last < lowered::Lives(program(programs, window)).end() - 2);
}

TEST_CASE("a ring lives for its slots") {
  lowered::Program l = program("copy_storage from=s0 to=s1\nsync\n", "ring 0 storage=s3 slots=2\n");
  l.storages[StorageId(0)].shared().ring = lowered::RingId(0);
  const lowered::Lives lives(l);
  CHECK(lives.has(StorageId(3)));
  CHECK(lives.meet(StorageId(3), StorageId(1)));
  CHECK_FALSE(lives.has(StorageId(0)));
}

TEST_CASE("each statement is shown once, in order, with a position of its own") {
  const lowered::Program l = program("sync\ngrid_loop axis=0\nbody {\nsync\n}\nsync\n");
  std::vector<std::pair<std::size_t, int>> seen;
  const lowered::Lives lives(l, [&](const lowered::Statement& s, int position) {
    seen.emplace_back(s.what.index(), position);
  });
  REQUIRE(seen.size() == 4);
  for (std::size_t i = 1; i < seen.size(); ++i) CHECK(seen[i - 1].second < seen[i].second);
  CHECK(seen.back().second < lives.end());
}
