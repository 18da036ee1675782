// What is known of NVRTC without running it: where it is, which one it is, what its log says.
#include <elf.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "codegen/nvrtc/elf.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "palladium/error.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/ptxas_words.hpp"

using namespace palladium;
using nvrtc::find_toolchain;
using test::Environment;
using test::Folder;

namespace {

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// An ELF file that holds two notes, the second a build-id, and nothing else.
std::string elf_with_build_id(const std::string& id) {
  std::string notes;
  append(notes, Elf64_Nhdr{.n_namesz = 4, .n_descsz = 3, .n_type = NT_GNU_ABI_TAG});
  notes += std::string("GNU\0abc\0", 8);
  append(notes, Elf64_Nhdr{.n_namesz = 4,
                           .n_descsz = static_cast<Elf64_Word>(id.size()),
                           .n_type = NT_GNU_BUILD_ID});
  notes += std::string("GNU\0", 4) + id;

  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  Elf64_Phdr load = {};
  load.p_type = PT_LOAD;
  Elf64_Phdr segment = {};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof header + 2 * sizeof segment;
  segment.p_filesz = notes.size();
  std::string bytes;
  append(bytes, header);
  append(bytes, load);
  append(bytes, segment);
  return bytes + notes;
}

/// The two files of an NVRTC, as far as a search looks at them.
void make_nvrtc(const std::string& folder, const std::string& version) {
  REQUIRE(files::make_directories(folder));
  const std::string major = version.substr(0, version.find('.'));
  REQUIRE(files::publish(folder + "/libnvrtc.so." + major,
                         elf_with_build_id("\x01\x23\x45\x67\x89\xab\xcd\xef")));
  REQUIRE(files::publish(folder + "/libnvrtc-builtins.so." + version,
                         elf_with_build_id("\xfe\xdc\xba\x98\x76\x54\x32\x10")));
}

}  // namespace

TEST_CASE("a build-id is read from the notes of an ELF file") {
  const Folder folder;
  const std::string good = elf_with_build_id("\x12\x34\xab\xcd");
  REQUIRE(files::publish(folder / "good", good));
  CHECK(nvrtc::build_id(folder / "good") == "1234abcd");
  CHECK(nvrtc::build_id(folder / "missing").empty());
  REQUIRE(files::publish(folder / "text",
                         "not an ELF file, but longer than the header of one is, "
                         "so that there is something to look at"));
  CHECK(nvrtc::build_id(folder / "text").empty());
}

TEST_CASE("a truncated or overwritten ELF file has no build-id and harms nobody") {
  const Folder folder;
  const std::string good = elf_with_build_id("\x12\x34\xab\xcd");
  for (std::size_t size = 0; size < good.size(); ++size) {
    REQUIRE(files::publish(folder / "cut", good.substr(0, size)));
    CHECK(nvrtc::build_id(folder / "cut").empty());
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = '\xff';
    REQUIRE(files::publish(folder / "bad", bad));
    CHECK(nvrtc::build_id(folder / "bad").size() <= 8);
  }
}

TEST_CASE("PALLADIUM_NVRTC names the library exactly") {
  const Folder folder;
  make_nvrtc(folder / "lib", "13.4");
  const Environment variable("PALLADIUM_NVRTC", folder / "lib/libnvrtc.so.13");
  const nvrtc::Search search = find_toolchain();
  REQUIRE(search.found);
  CHECK(search.found->library == folder / "lib/libnvrtc.so.13");
  CHECK(search.found->builtins == folder / "lib/libnvrtc-builtins.so.13.4");
  CHECK(search.found->version() == "13.4");
  CHECK(search.found->id == "01234567fedcba98");
}

TEST_CASE("a PALLADIUM_NVRTC that does not exist hides every NVRTC") {
  const Folder folder;
  make_nvrtc(folder / "lib64", "13.0");
  const Environment home("CUDA_HOME", folder.path());
  const Environment variable("PALLADIUM_NVRTC", "/nonexistent");
  const nvrtc::Search search = find_toolchain();
  CHECK_FALSE(search.found);
  const std::string message = nvrtc::missing_toolchain_message(search);
  CHECK(message.find("NVRTC 12.9 or newer is needed to compile kernels") == 0);
  CHECK(message.find("PALLADIUM_NVRTC=/nonexistent: realpath: No such file or directory") !=
        std::string::npos);
  CHECK(message.find("pip install") != std::string::npos);
}

TEST_CASE("CUDA_HOME is looked in first, the newest of its libraries wins") {
  const Folder folder;
  make_nvrtc(folder / "lib64", "12.9");
  make_nvrtc(folder / "lib64", "14.1");
  const Environment hidden("PALLADIUM_NVRTC", nullptr);
  const Environment home("CUDA_HOME", folder.path());
  const nvrtc::Search search = find_toolchain();
  REQUIRE(search.found);
  CHECK(search.found->library == folder / "lib64/libnvrtc.so.14");
  CHECK(search.found->version() == "14.1");
}

TEST_CASE("an NVRTC that is too old is passed over, and named when there is no other") {
  const Folder folder;
  make_nvrtc(folder / "lib", "12.8");
  make_nvrtc(folder / "lib", "11.8");
  SECTION("a search goes on behind it") {
    make_nvrtc(folder / "other", "13.0");
    const Environment hidden("PALLADIUM_NVRTC", nullptr);
    const Environment home("CUDA_HOME", folder.path());
    const Environment loader("LD_LIBRARY_PATH", folder / "other");
    const nvrtc::Search search = find_toolchain();
    REQUIRE(search.passed_over.size() >= 2);
    CHECK(search.passed_over[0] ==
          (folder / "lib/libnvrtc.so.12") + ": NVRTC 12.8 is older than 12.9");
    CHECK(search.passed_over[1] ==
          (folder / "lib/libnvrtc.so.11") + ": NVRTC 11.8 is older than 12.9");
    REQUIRE(search.found);
  }
  SECTION("one that is asked for is an error when it compiles") {
    const Environment variable("PALLADIUM_NVRTC", folder / "lib/libnvrtc.so.12");
    const nvrtc::Search search = find_toolchain();
    CHECK_FALSE(search.found);
    CHECK(nvrtc::missing_toolchain_message(search).find("NVRTC 12.8 is older than 12.9") !=
          std::string::npos);
  }
}

TEST_CASE("an NVRTC without its builtins or without a build-id is not used") {
  const Folder folder;
  make_nvrtc(folder.path(), "13.0");
  const Environment variable("PALLADIUM_NVRTC", folder / "libnvrtc.so.13");
  SECTION("builtins") {
    REQUIRE(files::remove(folder / "libnvrtc-builtins.so.13.0"));
    const nvrtc::Search search = find_toolchain();
    CHECK_FALSE(search.found);
    CHECK(search.passed_over.at(0).find("no libnvrtc-builtins.so.<version> stands beside it") !=
          std::string::npos);
  }
  SECTION("build-id") {
    REQUIRE(files::publish(folder / "libnvrtc.so.13", "no ELF"));
    const nvrtc::Search search = find_toolchain();
    CHECK_FALSE(search.found);
    CHECK(search.passed_over.at(0).find("no ELF build-id") != std::string::npos);
  }
}

TEST_CASE("a file that cannot be loaded is a CudaError that says why") {
  const Folder folder;
  make_nvrtc(folder.path(), "13.0");
  const Environment variable("PALLADIUM_NVRTC", folder / "libnvrtc.so.13");
  const nvrtc::Search search = find_toolchain();
  REQUIRE(search.found);
  try {
    nvrtc::compile({.source = "", .arch = "sm_80"}, *search.found);
    FAIL("loaded an empty library");
  } catch (const CudaError& error) {
    CHECK(std::string(error.what()).find("NVRTC could not be loaded: " + folder.path()) == 0);
  }
}

TEST_CASE("the log of a clean compile gives registers, shared memory and barriers") {
  const Resources resources = nvrtc::parse_log(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Function properties for k\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 38 registers, used 2 barriers, 4224 bytes smem, 400 bytes cmem[0]\n"
      "ptxas info    : Compile time = 3.267 ms\n");
  CHECK(resources == Resources{.registers = 38, .shared_bytes = 4224, .barriers = 2});
}

TEST_CASE("spills are summed over functions and the deepest stack counts") {
  const Resources resources = nvrtc::parse_log(
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Function properties for k\n"
      "    592 bytes stack frame, 256 bytes spill stores, 256 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers, 600 bytes cumulative stack size, 64 "
      "bytes smem\n"
      "ptxas info    : Function properties for _Z1fPfi\n"
      "ptxas         .     0 bytes stack frame, 172 bytes spill stores, 188 bytes spill loads");
  CHECK(resources == Resources{.registers = 32,
                               .shared_bytes = 64,
                               .stack_bytes = 600,
                               .spill_store_bytes = 428,
                               .spill_load_bytes = 444,
                               .barriers = 1,
                               .warnings = {"registers spill to 600 bytes of local memory per "
                                            "thread: code for 428 bytes of stores and 444 of "
                                            "loads"}});
}

TEST_CASE("all that the assembler says beside figures becomes a warning, each once") {
  const std::string serialized =
      "(C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
      "insufficient register resources for the wgmma pipeline in the function 'k'";
  const Resources resources = nvrtc::parse_log(
      "kernel.cu(3): warning #177-D: variable \"x\" (C7511) was declared but never referenced\n"
      "                                        ^\n\n"
      "ptxas info    : " +
      serialized + "\nptxas info    : " + serialized +
      "\nptxas info    : (C9123) of a number that nobody knows\n"
      "ptxas info    : something new without a number\n"
      "ptxas warning : Value of threads per SM for entry k is out of range\n"
      "ptxas application ptx input, line 35; info    : Advisory: another modifier\n"
      "ptxas remark  : a severity of tomorrow\n"
      "        and what belongs to it\n"
      "ptxas info    : Used 38 registers, used 3 tomorrows, 64 bytes smem\n"
      "ptxas info    : 24 bytes gmem, 8 bytes cmem[3]\n");
  CHECK(resources.warnings ==
        std::vector<std::string>{
            serialized, "(C9123) of a number that nobody knows", "something new without a number",
            "Value of threads per SM for entry k is out of range",
            "application ptx input, line 35; info    : Advisory: another modifier",
            "remark  : a severity of tomorrow", "and what belongs to it",
            "Used 38 registers, used 3 tomorrows, 64 bytes smem"});
  CHECK(resources.registers == 38);
  CHECK(resources.shared_bytes == 64);
}

TEST_CASE("a log that is no log says nothing, and figures without numbers are words") {
  CHECK(nvrtc::parse_log("") == Resources{});
  CHECK(nvrtc::parse_log("\n\n    \n  ^\n") == Resources{});
  CHECK(nvrtc::parse_log("ptxas info    : Used many registers, used  barriers\n\n\n") ==
        Resources{.warnings = {"Used many registers, used  barriers"}});
}

namespace {

/// The numbers of the assembler's advice, sorted; 0 for what has none.
std::vector<int> numbers_of(const std::vector<std::string>& warnings) {
  std::vector<int> numbers;
  for (const std::string& w : warnings)
    numbers.push_back(w.starts_with("(C") ? std::atoi(w.c_str() + 2) : 0);
  std::ranges::sort(numbers);
  return numbers;
}

/// What each recorded version warns of, by kernel.
using Numbers = std::map<std::string, std::vector<int>>;

Numbers numbers_of(const std::string& version) {
  Numbers numbers = {{"right", {}},
                     {"no_fence", {7519}},
                     {"no_wait", {7517, 7519}},
                     {"touched_early", {7517}},
                     {"touched_in_a_branch", {7515, 7519, 7519}},
                     {"product_in_a_call", {0, 7510, 7517, 7519, 7519}},
                     {"setmaxnreg_without_bounds", {7508}},
                     {"bounds_too_large", {0}},
                     {"sparse_product", {0}},
                     {"recursion", {0}},
                     {"tangent", {0}},
                     {"spills", {0}},
                     {"array_in_memory", {0}}};
  if (version == "13.5") {
    for (auto& [kernel, all] : numbers) std::erase(all, 7519);
    numbers["recursion"] = {0, 0};  // one on the stack, whose size nobody knows
    numbers["tangent"] = {};        // reduces its argument without an array in memory
  }
  return numbers;
}

}  // namespace

TEST_CASE("what NVRTC 12.9, 13.0 and 13.5 say of kernels is understood") {
  for (const std::string version : {"12.9", "13.0", "13.5"}) {
    const test::PtxasWords words = test::recorded_words(version);
    Numbers numbers;
    for (const auto& [kernel, log] : words) {
      CAPTURE(version, kernel);
      const Resources resources = nvrtc::parse_log(log);
      numbers[kernel] = numbers_of(resources.warnings);
      CHECK(resources.registers > 0);
      CHECK((resources.spill_store_bytes > 0) == (kernel == "spills" || kernel == "recursion"));
      if (kernel == "array_in_memory") CHECK(resources.stack_bytes == 256);
    }
    CHECK(numbers == numbers_of(version));
  }
}

TEST_CASE("a line that ptxas blames is led back to the kernel's text") {
  nvrtc::Result result;
  result.ptx =
      ".visible .entry k()\n{\n"
      "\t.loc\t1 4 3\n"
      "\t.loc\t2 477 13, function_name $L__info_string0, inlined_at 1 4 3\n"
      "\twgmma\n"                                                              // 5
      "\t.loc\t1 9 3\n"                                                        // 6
      "\t.loc\t2 415 3, function_name $L__info_string5, inlined_at 1 12 13\n"  // 7
      "\t.loc\t2 394 11, function_name $L__info_string6, inlined_at 2 415 3\n"
      "\tst.global\n"  // 9
      "}\n"
      "\t.file\t1 \"/somewhere/kernel.cu\"\n\t.file\t2 \"/somewhere/library.cuh\"\n";
  const auto warning = [&](const std::string& line) {
    result.log = "ptxas info    : (C7519) warpgroup.arrive is injected in around line " + line +
                 " by compiler in function 'k'\n";
    return nvrtc::located_warnings(result).at(0);
  };
  CHECK(warning("5") ==
        "(C7519) warpgroup.arrive is injected in around kernel.cu(4) by compiler in function 'k'");
  CHECK_THAT(warning("9"), Catch::Matchers::ContainsSubstring(" around kernel.cu(12) by"));
  const std::string ptx = result.ptx;
  result.ptx.replace(ptx.find("/somewhere/kernel.cu"), 20, "/home/attention.cpp");
  CHECK_THAT(warning("9"),
             Catch::Matchers::ContainsSubstring(" around /home/attention.cpp(12) by"));
  result.ptx = ptx;
  // Where nothing is known, ptxas keeps its word.
  CHECK_THAT(warning("2"), Catch::Matchers::ContainsSubstring(" around line 2 by"));
  CHECK_THAT(warning("x"), Catch::Matchers::ContainsSubstring(" around line x by"));
  result.ptx = "";
  CHECK_THAT(warning("5"), Catch::Matchers::ContainsSubstring(" around line 5 by"));
  CHECK_FALSE(nvrtc::blame_a_line({"(C7508) 'setmaxnreg' ignored"}));
}

TEST_CASE("a line is led back by whatever words ptxas blames it") {
  nvrtc::Result result;
  result.ptx = "\t.loc\t1 4 3\n\twgmma\n\t.file\t1 \"/somewhere/kernel.cu\"\n";
  const auto located = [&](const std::string& log) {
    result.log = log + "\n";
    return nvrtc::located_warnings(result).at(0);
  };
  CHECK(located("ptxas info    : (C7515) serialized in the function 'k' in line 2") ==
        "(C7515) serialized in the function 'k' in kernel.cu(4)");
  CHECK(located("ptxas application ptx input, line 2; warning : a line of words") ==
        "application ptx input, kernel.cu(4); warning : a line of words");
  CHECK(nvrtc::blame_a_line({"all's well", "a line of words on line 2"}));
  CHECK_FALSE(nvrtc::blame_a_line({"a line of words", "line"}));
}
