// What is read off nvdisasm's text, and how the program that prints it is run.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <random>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/nvrtc/disassemble.hpp"
#include "codegen/nvrtc/sass.hpp"
#include "palladium/error.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/paths.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace {

using Counts = std::vector<std::pair<std::string, int>>;

/// Of a kernel for sm_90a: a loop of loads and products, and one that waits for a flag, in a third.
std::string recorded() {
  std::string text;
  REQUIRE(files::read(source_dir() + "/tests/ptxas/golden/loops.sass", 1 << 20, text));
  return text;
}

/// A program of the test's, in its folder.
std::string script(const Folder& folder, const std::string& body, mode_t mode = 0755) {
  const std::string path = folder / "nvdisasm";
  REQUIRE(files::publish(path, "#!/bin/sh\n" + body + "\n", files::Durability::fast, mode));
  return path;
}

std::string printed(const Folder& folder, const std::string& body, double seconds = 60) {
  const std::string bytes = "a cubin";
  return nvrtc::disassemble(script(folder, body), std::as_bytes(std::span(bytes)), seconds);
}

std::string error_of(const std::string& body, double seconds = 60) {
  const Folder folder;
  try {
    printed(folder, body, seconds);
  } catch (const CudaError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("instructions are counted by kind and by loop") {
  const Sass sass = nvrtc::read_sass(recorded(), "loops_kernel");
  CHECK(sass.all.instructions == 56);
  CHECK(sass.all.classes == Counts{{"LDG", 2},
                                   {"STG", 1},
                                   {"LDS", 1},
                                   {"STS", 1},
                                   {"BAR/SYNCS", 2},
                                   {"MUFU", 1},
                                   {"FP32", 7},
                                   {"FP16", 1},
                                   {"INT", 11},
                                   {"MOV", 9},
                                   {"ISETP/BRA", 14},
                                   {"UNIFORM", 6}});
  REQUIRE(sass.loops.size() == 3);
  const SassLoop &outer = sass.loops[0], &products = sass.loops[1], &wait = sass.loops[2];
  CHECK(outer.from == 0xd0);
  CHECK(outer.to == 0x360);
  CHECK(outer.depth == 1);
  CHECK(outer.mix.instructions == 42);
  CHECK(outer.every_trip == 20);
  CHECK(products.from == 0x160);
  CHECK(products.to == 0x1e0);
  CHECK(products.depth == 2);
  CHECK(products.every_trip == 9);
  CHECK(products.mix.classes ==
        Counts{{"LDG", 1}, {"FP32", 3}, {"INT", 2}, {"ISETP/BRA", 2}, {"UNIFORM", 1}});
  CHECK(products.mix.opcodes == Counts{{"BRA", 1},
                                       {"FADD", 1},
                                       {"FFMA", 1},
                                       {"FMUL", 1},
                                       {"IMAD", 1},
                                       {"ISETP", 1},
                                       {"LDG.128", 1},
                                       {"UIADD3", 1},
                                       {"VIADD", 1}});
  CHECK(wait.from == 0x300);
  CHECK(wait.mix.instructions == 3);
  CHECK(wait.depth == 2);
}

TEST_CASE("instructions of a loop that stand beyond its branch back are told apart") {
  const Sass sass = nvrtc::read_sass(
      "\t.section\t.text.k,\"ax\",@progbits\n"
      ".L_x_0:\n"
      "  /*0000*/ @!P0 BRA `(.L_x_2) ;\n"
      ".L_x_1:\n"
      "  /*0010*/ @P1 BRA `(.L_x_0) ;\n"
      "  /*0020*/ EXIT ;\n"
      ".L_x_2:\n"
      "  /*0030*/ YIELD ;\n"
      "  /*0040*/ BRA `(.L_x_1) ;\n"
      ".L_x_3:\n"
      "  /*0050*/ BRA `(.L_x_3);\n"
      "  /*0060*/ NOP;\n",
      "k");
  CHECK(sass.all.instructions == 5);
  REQUIRE(sass.loops.size() == 1);
  CHECK(sass.loops[0].mix.instructions == 2);
  CHECK(sass.loops[0].cold == 2);
  CHECK(sass.loops[0].every_trip == 2);
}

TEST_CASE("kinds of instructions are known by their names") {
  const auto kind = [](const std::string& name) {
    const Sass sass = nvrtc::read_sass(".section .text.k,\n/*0000*/ " + name + " R0 ;\n", "k");
    REQUIRE(sass.all.classes.size() == 1);
    return sass.all.classes[0].first + " " + sass.all.opcodes[0].first;
  };
  CHECK(kind("HGMMA.64x256x16.F32.BF16") == "HGMMA HGMMA.64x256x16");
  CHECK(kind("HMMA.16816.F32") == "HMMA HMMA.16816");
  CHECK(kind("HFMA2.MMA") == "FP16 HFMA2");
  CHECK(kind("LDG.E.128.CONSTANT") == "LDG LDG.128");
  CHECK(kind("LDG.E") == "LDG LDG.32");
  CHECK(kind("LDGSTS.E.BYPASS.LTC128B.128") == "LDGSTS LDGSTS.128");
  CHECK(kind("LDSM.16.MT88.4") == "LDSM LDSM.16.MT88.4");
  CHECK(kind("REDG") == "ATOM/RED REDG");
  CHECK(kind("REDUX.SUM") == "SHFL/VOTE REDUX");
  CHECK(kind("USETMAXREG.DEALLOC.CTAPOOL") == "WARPGROUP USETMAXREG");
  CHECK(kind("MUFU.EX2.F16.X") == "MUFU MUFU.EX2.F16");
  CHECK(kind("UTMALDG.2D.MULTICAST.X") == "TMA UTMALDG.2D.MULTICAST.X");
  CHECK(kind("SYNCS.PHASECHK.TRANS64.TRYWAIT") == "BAR/SYNCS SYNCS.PHASECHK.TRANS64");
  CHECK(kind("UIADD3") == "UNIFORM UIADD3");
  CHECK(kind("S2UR") == "MOV S2UR");
  CHECK(kind("DFMA") == "other DFMA");
}

TEST_CASE("text that is cut, mixed and made of anything is read all the same") {
  const std::string text = recorded();
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return random() % n; };
  for (int round = 0; round < 2000; ++round) {
    std::string broken = text;
    for (std::size_t edits = 1 + below(8); edits > 0; --edits) {
      const std::size_t at = below(broken.size()), length = below(200);
      switch (below(4)) {
      case 0: broken[at] = static_cast<char>(random()); break;
      case 1: broken.erase(at, length); break;
      case 2: broken.insert(at, text, below(text.size()), length); break;
      default: broken.insert(at, "`(.L_x_" + std::to_string(below(10)) + ")"); break;
      }
      if (broken.empty()) broken = text;
    }
    fuzz::sass(std::as_bytes(std::span(broken)));
  }
}

TEST_CASE("the program gets the cubin, and nothing else that is open") {
  const Folder folder;
  CHECK(printed(folder, "[ \"$1\" = -c ] && cat \"$2\"") == "a cubin");
  CHECK(
      printed(folder, "for d in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$d ] && echo $d; done; :")
          .starts_with("0\n1\n2\n3\n"));
  CHECK(printed(folder, "read line || echo nothing") == "nothing\n");
}

TEST_CASE("much text on both of the program's outputs keeps nobody waiting") {
  const Folder folder;
  const std::string text = printed(folder,
                                   "i=0; while [ $i -lt 300 ]; do i=$((i+1)); printf '%01000d\\n' "
                                   "0 >&2; printf '%01000d\\n' 1; done");
  CHECK(text.size() == 300 * 1001);
}

TEST_CASE("a program that is not there, cannot run or fails is named with what it said") {
  try {
    nvrtc::disassemble("/nonexistent/nvdisasm", {});
    FAIL("started nothing");
  } catch (const CudaError& error) {
    CHECK_THAT(error.what(), ContainsSubstring("/nonexistent/nvdisasm cannot be started (No such"));
    CHECK_THAT(error.what(), ContainsSubstring("PALLADIUM_NVDISASM names another"));
  }
  const Folder folder;
  CHECK_THROWS_AS(nvrtc::disassemble(script(folder, "exit 0", 0644), {}), CudaError);
  CHECK_THAT(error_of("echo not this chip >&2; exit 3"),
             ContainsSubstring("ended with status 3:\nnot this chip"));
  CHECK_THAT(error_of("kill -9 $$"), ContainsSubstring("was killed by signal 9"));
}

TEST_CASE("a program that hangs is ended, with what it has started") {
  const Folder folder;
  const auto before = std::chrono::steady_clock::now();
  for (const std::string hang : {"sleep 60", "exec >&- 2>&-; sleep 60"}) {
    const std::string late = folder / "late";
    try {
      printed(folder, "(sleep 1; echo > " + late + ") & " + hang, 0.2);
      FAIL("came back");
    } catch (const CudaError& error) {
      CHECK_THAT(error.what(), ContainsSubstring("is not done after 0.2 seconds"));
    }
    ::usleep(1'500'000);
    CHECK_FALSE(files::exists(late));
  }
  CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(30));
}

TEST_CASE("the nvdisasm that is named comes first, then the toolkit's, then PATH's") {
  const Folder folder;
  for (const std::string place : {"/home", "/home/bin", "/path"})
    REQUIRE(files::make_directories(folder.path() + place));
  for (const std::string place : {"/home/bin", "/path"})
    REQUIRE(files::publish(folder.path() + place + "/nvdisasm", std::string_view("")));
  const Environment path("PATH", "/nonexistent::" + folder.path() + "/path");
  const Environment unnamed("PALLADIUM_NVDISASM", "");
  {
    const Environment home("CUDA_HOME", folder / "home");
    CHECK(nvrtc::find_nvdisasm() == folder / "home/bin/nvdisasm");
    const Environment named("PALLADIUM_NVDISASM", "/nonexistent/nvdisasm");
    CHECK(nvrtc::find_nvdisasm() == "/nonexistent/nvdisasm");
  }
  const Environment home("CUDA_HOME", "/nonexistent");
  if (!files::exists("/usr/local/cuda/bin/nvdisasm"))
    CHECK(nvrtc::find_nvdisasm() == folder / "path/nvdisasm");
}
