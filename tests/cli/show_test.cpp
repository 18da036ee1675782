// `palladium show`: graph, CUDA C++, PTX and resources of the shipped kernels.
#include "tests/cli/tool.hpp"

using namespace palladium::test;

TEST_CASE("show prints the graph of a kernel, by default and by name") {
  const Tool palladium;
  const Finished shown = palladium({"show", "softmax"});
  CHECK(shown.status == 0);
  CHECK_THAT(shown.out, ContainsSubstring("softmax"));
  CHECK_THAT(shown.out, ContainsSubstring("reduce"));
  CHECK(palladium({"show", "softmax", "--graph"}).out == shown.out);
}

TEST_CASE("show prints the emitted CUDA C++ where there is no NVRTC") {
  const Tool palladium;
  for (const std::string kernel : {"add", "softmax", "matmul", "blur"}) {
    const Finished shown = palladium({"show", kernel, "--cuda"}, {no_nvrtc});
    CHECK(shown.status == 0);
    CHECK_THAT(shown.out, ContainsSubstring("PL_KERNEL(128) " + kernel));
  }
}

TEST_CASE("show compiles for the architecture that it is given") {
  const Tool palladium;
  for (const std::string arch : {"sm_75", "sm_100a"}) {
    const Finished shown = palladium({"show", "add", "--arch", arch, "--ptx"});
    CHECK(shown.status == 0);
    CHECK_THAT(shown.out, ContainsSubstring(".target " + arch + "\n"));
    CHECK_THAT(shown.out, ContainsSubstring(".entry add"));
  }
  CHECK_THAT(palladium({"show", "add", "--ptx"}).out, ContainsSubstring(".target sm_90a"));
  CHECK_THAT(palladium({"show", "add", "--ptx"}, {fake_gpu(), {"FAKE_CUDA_ARCH", "80"}}).out,
             ContainsSubstring(".target sm_80"));
}

TEST_CASE("show prints registers, shared memory and spills") {
  const Tool palladium;
  const Finished shown = palladium({"show", "softmax", "--resources"});
  CHECK(shown.status == 0);
  for (const char* row : {"registers ", "shared memory ", "stack ", "spills ", "barriers "})
    CHECK_THAT(shown.out, ContainsSubstring(row));
  const Json resources = palladium.json({"show", "softmax", "--resources"}).at("resources");
  CHECK(resources.at("registers") > 0);
  CHECK(resources.at("registers") <= 255);
  CHECK(resources.at("shared_bytes") > 0);  // a row is reduced across four warps
  CHECK(resources.at("spill_store_bytes") == 0);
  CHECK(resources.at("warnings").empty());
}

TEST_CASE("show reports sectors, bank conflicts and instructions where there is no NVRTC") {
  const Tool palladium;
  const Finished shown = palladium({"show", "softmax", "--report"}, {no_nvrtc});
  CHECK(shown.status == 0);
  for (const char* words : {"load_global_nc", "of 16 sectors", "per thread", "special", "barriers"})
    CHECK_THAT(shown.out, ContainsSubstring(words));
  const Json report = palladium.json({"show", "softmax", "--report"}).at("report");
  CHECK(report.at("accesses").size() == 2);
  CHECK(report.at("accesses").at(0).at("touched") == report.at("accesses").at(0).at("needed"));
  CHECK_THAT(std::string(report.at("accesses").at(0).at("line")),
             ContainsSubstring("softmax.cpp:"));
  CHECK(report.at("special") > 0);
}

TEST_CASE("show puts all that it is asked for into one object") {
  const Tool palladium;
  const Json shown = palladium.json(
      {"show", "matmul", "--graph", "--cuda", "--ptx", "--resources", "--arch", "sm_80"});
  CHECK(shown.at("kernel") == "matmul");
  CHECK(shown.at("arch") == "sm_80");
  CHECK(shown.at("key").get<std::string>().size() == 64);
  CHECK(shown.at("graph").is_object());
  CHECK_THAT(shown.at("cuda").get<std::string>(), ContainsSubstring("PL_KERNEL(128) matmul"));
  CHECK_THAT(shown.at("ptx").get<std::string>(), ContainsSubstring(".target sm_80"));
  CHECK(shown.at("resources").at("registers") > 0);

  const Finished text = palladium({"show", "matmul", "--cuda", "--ptx", "--arch", "sm_80"});
  CHECK(text.out == "// ---- cuda\n" + shown.at("cuda").get<std::string>() + "// ---- ptx\n" +
                        shown.at("ptx").get<std::string>());
}

TEST_CASE("show says what it does not know") {
  const Tool palladium;
  check_error(palladium({"show", "sofmax"}), 1,
              "no shipped kernel is named 'sofmax'; there are add, softmax, matmul, blur");
  for (const char* what : {"--cuda", "--ptx", "--resources"})
    check_error(palladium({"show", "add", "--arch", "sm_42", what}), 1,
                "unknown architecture 'sm_42'; kernels are compiled for sm_75, ");
  check_error(palladium({"show", "add", "--ptx"}, {no_nvrtc}), 1, "NVRTC 12.9 or newer is needed");
}
