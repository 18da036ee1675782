// `palladium warm`: what it compiles, what it finds, what fails, and what a warm cache is good for.
#include <sys/stat.h>

#include "tests/cli/npy_file.hpp"
#include "tests/cli/tool.hpp"

using namespace palladium::test;

namespace {

void check_counts(const Json& report, int compiled, int hits, int failed) {
  CHECK(report.at("compiled") == compiled);
  CHECK(report.at("hits") == hits);
  CHECK(report.at("failed") == failed);
  CHECK(report.at("compiled").is_number_integer());
}

}  // namespace

TEST_CASE("what is warmed once is found the second time") {
  const Tool palladium;
  const std::vector<std::string> call = {"warm", "matmul", "softmax", "--arch", "sm_90a,sm_80"};
  const Json first = palladium.json(call);
  check_counts(first, 8, 0, 0);
  REQUIRE(first.at("kernels").size() == 8);
  CHECK(first.at("kernels")[1].at("kernel") == "matmul");
  CHECK(first.at("kernels")[1].at("arch") == "sm_80");
  CHECK(first.at("kernels")[1].at("result") == "compiled");
  const Json second = palladium.json(call);
  check_counts(second, 0, 8, 0);
  for (int i = 0; i < 8; ++i)
    CHECK(first.at("kernels")[i].at("key") == second.at("kernels")[i].at("key"));

  const Finished text = palladium({"warm", "matmul", "blur", "--arch", "sm_90a"});
  CHECK(text.status == 0);
  CHECK_THAT(text.out, StartsWith("1 compiled, 2 hits, 0 failed; in " + palladium.cache()));
  CHECK_THAT(text.err, ContainsSubstring("[1/3] matmul sm_90a: hit, "));
  CHECK_THAT(text.err, ContainsSubstring("[3/3] blur sm_90a: compiled, "));
}

TEST_CASE("kernels are compiled so many at a time, in their order, and each once") {
  const Tool palladium;
  const Finished text =
      palladium({"warm", "matmul", "softmax", "matmul", "--arch", "sm_90a", "-j", "2"});
  CHECK(text.status == 0);
  CHECK_THAT(text.out, StartsWith("4 compiled, 2 hits, 0 failed"));
  const std::size_t first = text.err.find("[1/6] matmul sm_90a: compiled, ");
  const std::size_t second = text.err.find("[3/6] softmax sm_90a: compiled, ");
  const std::size_t third = text.err.find("[5/6] matmul sm_90a: hit, ");
  CHECK(first < second);
  CHECK(second < third);
  CHECK(third != std::string::npos);
  check_error(palladium({"warm", "matmul", "-j", "0"}), 2, "--jobs");
}

TEST_CASE("a shipped kernel is warmed for every size, for short offsets, and for wide rows") {
  const Tool palladium;
  const Json report = palladium.json({"warm", "add", "--arch", "sm_90a"});
  check_counts(report, 3, 0, 0);
  const Json &every = report.at("kernels")[0], &few = report.at("kernels")[1],
             &wide = report.at("kernels")[2];
  CHECK(every.at("name") == "add");
  CHECK(few.at("name") == "add (below 2^31)");
  CHECK(wide.at("name") == "add (16 bytes)");
  CHECK(wide.at("kernel") == "add");
  CHECK(every.at("key") == palladium.json({"show", "add", "--arch", "sm_90a"}).at("key"));
  CHECK(every.at("key") != few.at("key"));
  CHECK(few.at("key") != wide.at("key"));
  // Rows of a known length are wide, or are not.
  const Json softmax = palladium.json({"warm", "softmax", "--arch", "sm_90a"});
  check_counts(softmax, 2, 0, 0);
  CHECK(softmax.at("kernels")[1].at("name") == "softmax (below 2^31)");

  // Nothing else is needed, whatever the size, and none serves that relies on less than it could.
  const std::vector<Variable> strict = {
      {"PALLADIUM_JIT", "off"}, fake_gpu(), {"FAKE_CUDA_ARCH", "90"}};
  for (const std::size_t n : {1, 8, 1000, 1001}) {
    INFO(n << " elements");
    const std::string x = palladium.folder / "x.npy", o = palladium.folder / "o.npy";
    write_npy(x, "<f4", "(" + std::to_string(n) + ",)", std::vector<float>(n, 1));
    const Finished ran =
        palladium({"run", "add", "--in", x, "--in", x, "--out", o, "--target", "cuda"}, strict);
    INFO(ran.err);
    CHECK(ran.status == 0);
    CHECK_THAT(ran.err, !ContainsSubstring("serves this call"));
  }
}

TEST_CASE("what calls of any row length run is warmed where that is asked for") {
  const Tool palladium;
  const Json report = palladium.json({"warm", "softmax", "--any-size", "--arch", "sm_90a"});
  check_counts(report, 4, 0, 0);
  CHECK(report.at("kernels")[2].at("name") == "softmax (any size)");
  const std::vector<Variable> strict = {
      {"PALLADIUM_JIT", "off"}, fake_gpu(), {"FAKE_CUDA_ARCH", "90"}};
  for (const std::size_t n : {513, 1000, 1001, 1024}) {
    INFO(n << " elements");
    const std::string x = palladium.folder / "x.npy", o = palladium.folder / "o.npy";
    write_npy(x, "<f4", "(2," + std::to_string(n) + ")", std::vector<float>(2 * n, 1));
    const Finished ran =
        palladium({"run", "softmax", "--in", x, "--out", o, "--target", "cuda"}, strict);
    INFO(ran.err);
    CHECK(ran.status == 0);
    CHECK_THAT(ran.err, !ContainsSubstring("serves this call"));
  }
}

TEST_CASE("warm without --arch compiles for the GPU that there is, else for sm_90a") {
  const Tool palladium;
  CHECK(palladium.json({"warm", "matmul"}).at("kernels")[0].at("arch") == "sm_90a");
  CHECK(palladium.json({"warm", "matmul"}, {fake_gpu(), {"FAKE_CUDA_ARCH", "80"}})
            .at("kernels")[0]
            .at("arch") == "sm_80");
}

TEST_CASE("a warm cache serves where there is no NVRTC, and its kernels stay what they are") {
  const Tool palladium;
  const std::string ptx = palladium({"show", "blur", "--ptx"}).out;
  check_counts(palladium.json({"warm", "blur", "--arch", "sm_90a"}, {no_nvrtc}), 0, 1, 0);
  check_counts(palladium.json({"warm", "blur", "--arch", "sm_90a"}, {{"PALLADIUM_JIT", "off"}}), 0,
               1, 0);
  CHECK(palladium({"show", "blur", "--ptx"}, {no_nvrtc}).out == ptx);
}

TEST_CASE("a kernel that fails is reported and does not keep others from being compiled") {
  const Tool palladium;
  const Json report = palladium.json({"warm", "blur", "--arch", "sm_42,sm_90a"}, {}, 1);
  check_counts(report, 1, 0, 1);
  CHECK(report.at("kernels")[0].at("result") == "failed");
  CHECK_THAT(report.at("kernels")[0].at("error").get<std::string>(),
             StartsWith("unknown architecture 'sm_42'"));

  const Finished text = palladium({"warm", "blur", "--arch", "sm_80"}, {no_nvrtc});
  CHECK(text.status == 1);
  CHECK_THAT(text.out, StartsWith("0 compiled, 0 hits, 1 failed"));
  CHECK_THAT(text.err, ContainsSubstring("NVRTC 12.9 or newer is needed"));
  CHECK_THAT(text.err, ContainsSubstring("palladium: 1 of 1 kernels failed"));

  const Finished strict =
      palladium({"warm", "blur", "--arch", "sm_80"}, {{"PALLADIUM_JIT", "off"}});
  CHECK(strict.status == 1);
  CHECK_THAT(strict.err, ContainsSubstring("PALLADIUM_JIT=off"));
}

TEST_CASE("a kernel that the cache does not keep has not been warmed") {
  const Tool palladium;
  const std::string file = palladium.folder / "file";
  REQUIRE(palladium::files::publish(file, std::string_view("not a folder")));
  const Json report =
      palladium.json({"warm", "blur"}, {{"PALLADIUM_CACHE_DIR", file + "/cache"}}, 1);
  check_counts(report, 0, 0, 1);
  CHECK_THAT(report.at("kernels")[0].at("error").get<std::string>(), ContainsSubstring("not kept"));
}

TEST_CASE("warm compiles nothing where a kernel is unknown") {
  const Tool palladium;
  check_error(palladium({"warm", "matmul", "sofmax"}), 1, "no shipped kernel is named 'sofmax'");
  CHECK(palladium.json({"cache", "list"}).at("entries").empty());
}
