// `palladium show`: graph, CUDA C++, PTX and resources of the shipped kernels.
#include <fstream>
#include <iterator>

#include "palladium/palladium.hpp"
#include "tests/cli/tool.hpp"

using namespace palladium::test;
namespace pl = palladium;
using pl::_;

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
    CHECK_THAT(shown.out, ContainsSubstring("PL_KERNEL(128") && ContainsSubstring(") " + kernel));
  }
}

TEST_CASE("show prints the program behind each pass, or behind one, and what they took") {
  const Tool palladium;
  const Finished all = palladium({"show", "softmax", "--passes"}, {no_nvrtc});
  CHECK(all.status == 0);
  CHECK_THAT(all.out, ContainsSubstring("-- attempt 4, chosen: behind place_windows\nlowered"));
  CHECK_THAT(all.out, ContainsSubstring("behind number_temporaries\nPL_KERNEL(128) softmax"));
  const Finished one = palladium({"show", "softmax", "--after", "assign_layouts"}, {no_nvrtc});
  CHECK(one.status == 0);
  CHECK(one.out.size() < all.out.size());
  CHECK_THAT(one.out, ContainsSubstring("behind assign_layouts\n"));
  const Json times = palladium.json({"show", "softmax", "--times"}).at("times");
  CHECK(times.front().at("pass") == "arrange_sums");
  CHECK(times.back().at("pass") == "number_temporaries");
  for (const Json& row : times) CHECK(row.at("ms") >= 0);
  const Finished none = palladium({"show", "softmax", "--after", "rotate"}, {no_nvrtc});
  CHECK(none.status != 0);
  CHECK_THAT(none.err, ContainsSubstring("no pass is called 'rotate'; there are arrange_sums"));
}

TEST_CASE("show tells who waits for whom, and whether they do so as they must") {
  const Tool palladium;
  const Finished shown = palladium({"show", "matmul", "--schedule"}, {no_nvrtc});
  CHECK(shown.status == 0);
  for (const char* words :
       {"ring 0: 3 slots of ", "in front, the threads: ", "iteration ", "closes a group of copies",
        "waits for all copies but the last 1", "protocol: good: "})
    CHECK_THAT(shown.out, ContainsSubstring(words));
  const Json one = palladium.json({"show", "attention", "--schedule", "--arch", "sm_90a"});
  CHECK_THAT(std::string(one.at("schedule")), ContainsSubstring("the producer waits for the "));
  CHECK(palladium({"show", "add", "--schedule"}, {no_nvrtc}).out ==
        "protocol: good: nothing is asynchronous\n");
}

TEST_CASE("show draws two iterations of a loop in cycles, and says who waits for what") {
  const Tool palladium;
  const Finished shown =
      palladium({"show", "attention", "--timeline", "--arch", "sm_90a"}, {no_nvrtc});
  CHECK(shown.status == 0);
  for (const char* words : {"by the figures of H100 SXM", " cycles an iteration", "bound by ",
                            "\ntensor cores ", "\nproducer ", "  .  waits\n", "\nbusy\n"})
    CHECK_THAT(shown.out, ContainsSubstring(words));
  const Json one =
      palladium.json({"show", "attention", "--timeline", "--arch", "sm_90a"}, {no_nvrtc})
          .at("timeline");
  CHECK(one.at("unknown") == "");
  for (const Json& loop : one.at("loops")) {
    CHECK(loop.at("cycles") > 0);
    CHECK(loop.at("fraction") <= 1.001);
    CHECK(!loop.at("lanes").empty());
  }
  CHECK_THAT(palladium({"show", "add", "--timeline", "--arch", "sm_90a"}, {no_nvrtc}).out,
             ContainsSubstring("which is a block"));
  CHECK(palladium({"show", "add", "--timeline", "--arch", "sm_75"}, {no_nvrtc}).out ==
        "no timeline: how fast the parts of sm_75 are is not known\n");
}

TEST_CASE("show draws the timeline as a picture") {
  const Tool palladium;
  const std::string path = palladium.folder / "matmul.svg";
  const Finished shown =
      palladium({"show", "matmul", "--svg", path, "--arch", "sm_80"}, {no_nvrtc});
  CHECK(shown.status == 0);
  CHECK(shown.out.empty());
  std::ifstream file(path);
  const std::string picture(std::istreambuf_iterator<char>(file), {});
  CHECK_THAT(picture, StartsWith("<svg "));
  CHECK_THAT(picture, ContainsSubstring("cycles an iteration"));
  CHECK_THAT(picture, ContainsSubstring("</svg>"));
  check_error(palladium({"show", "matmul", "--svg", "/no/such/folder/x.svg"}, {no_nvrtc}), 1,
              "cannot write /no/such/folder/x.svg");
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
  CHECK(resources.at("shared_bytes") == 0);  // each warp reduces rows of its own
  CHECK(resources.at("spill_store_bytes") == 0);
  CHECK(resources.at("warnings").empty());
}

TEST_CASE("show reports sectors, bank conflicts and instructions where there is no NVRTC") {
  const Tool palladium;
  const Finished shown = palladium({"show", "softmax", "--report"}, {no_nvrtc});
  CHECK(shown.status == 0);
  for (const char* words :
       {"load_global_nc", "of 16 sectors, 4 bytes for 4", "per thread", "special", "barriers",
        "8 for each element stored", "not compiled: ", "NVRTC 12.9 or newer is needed"})
    CHECK_THAT(shown.out, ContainsSubstring(words));
  const Json report = palladium.json({"show", "softmax", "--report"}).at("report");
  CHECK(report.at("accesses").size() == 2);
  CHECK(report.at("accesses").at(0).at("touched") == report.at("accesses").at(0).at("needed"));
  CHECK_THAT(std::string(report.at("accesses").at(0).at("line")),
             ContainsSubstring("softmax.cpp:"));
  CHECK(report.at("special") > 0);
  CHECK(report.at("prediction").at("clocks") > 0);
  CHECK_THAT(shown.out, ContainsSubstring("clocks of a block on "));
  CHECK(report.at("accesses").at(0).at("bytes_per_element") == 4);
  CHECK(report.at("bytes_per_element") == 8);
}

TEST_CASE("what was decided for a kernel is reported, and logged as it is compiled") {
  const Tool tool;
  const std::string path = tool.folder / "kernels.json";
  const auto by = [](int row, int column) {
    return pl::BlockSpec{{16, 16}, [=](pl::Index i, pl::Index j) {
                           const pl::Index at[] = {i, j, 0};
                           return pl::Indices{at[row], at[column]};
                         }};
  };
  const auto product =
      pl::pallas_call([](pl::Ref a, pl::Ref b, pl::Ref o) { o[_] = pl::dot(a[_], b[_]); },
                      {.name = "product",
                       .out_type = pl::ShapeDtype{{512, 512}, pl::f32},
                       .grid = {32, 32},
                       .in_specs = {by(0, 2), by(2, 1)},
                       .out_specs = {by(0, 1)}});
  {
    const pl::Recorder recorder(path);
    (void)product.on(pl::Target::interpreter)(pl::Array::zeros({512, 16}, pl::f32),
                                              pl::Array::zeros({16, 512}, pl::f32));
  }
  const std::string about = "programs go through 8 rows of the grid at once";
  const Finished warmed = tool({"warm", path, "--arch", "sm_80"}, {{"PALLADIUM_LOG", "debug"}});
  CHECK(warmed.status == 0);
  CHECK_THAT(warmed.err, ContainsSubstring("product: " + about));
  const std::vector<std::string> report = {"show", path + "#1", "--report", "--arch", "sm_80"};
  CHECK_THAT(tool(report).out, ContainsSubstring("note: " + about));
  const Json remarks = tool.json(report).at("report").at("remarks");
  CHECK_THAT(std::string(remarks.at(0).at("text")), ContainsSubstring(about));
  CHECK(remarks.at(0).at("line") == "");
}

TEST_CASE("show reports registers and occupancy where the kernel can be compiled") {
  const Tool palladium;
  const Json report =
      palladium.json({"show", "softmax", "--report", "--arch", "sm_80"}).at("report");
  CHECK(report.at("not_compiled") == "");
  CHECK(report.at("resources").at("registers") > 0);
  const Json& occupancy = report.at("occupancy");
  CHECK(occupancy.at("most_warps") == 64);
  CHECK(occupancy.at("by_warps") == 16);
  CHECK(occupancy.at("warps") == 4 * occupancy.at("blocks").get<int>());
  const Finished text = palladium({"show", "softmax", "--report", "--arch", "sm_80"});
  CHECK_THAT(text.out, ContainsSubstring("of 64 warps: "));
  CHECK_THAT(text.out, ContainsSubstring("blocks per multiprocessor (by registers "));
  // From the cache, where there is no NVRTC any more.
  CHECK(palladium({"show", "softmax", "--report", "--arch", "sm_80"}, {no_nvrtc}).out == text.out);
}

TEST_CASE("show prints machine code with its instructions by loop, as an nvdisasm tells it") {
  const Tool palladium;
  const std::string recorded = source_dir() + "/tests/ptxas/golden/loops.sass";
  const std::string program = palladium.folder / "nvdisasm";
  const auto prints = [&](const std::string& command) {
    REQUIRE(palladium::files::publish(program, "#!/bin/sh\n" + command + "\n",
                                      palladium::files::Durability::fast, 0755));
  };
  const Variable named = {"PALLADIUM_NVDISASM", program};
  prints("sed s/loops_kernel/add_kernel/ " + recorded);
  const Finished shown = palladium({"show", "add", "--sass"}, {named});
  CHECK(shown.status == 0);
  for (const char* words : {"LDG.E.128", "// 56 instructions", "// loop /*00d0*/ to /*0360*/: 42",
                            "//   loop /*0160*/ to /*01e0*/: 9 instructions, 9 of every trip"})
    CHECK_THAT(shown.out, ContainsSubstring(words));
  const Json sass = palladium.json({"show", "add", "--sass"}, {named}).at("sass");
  CHECK(sass.at("all").at("instructions") == 56);
  CHECK(sass.at("loops").at(1).at("classes").at("FP32") == 3);
  CHECK_THAT(std::string(sass.at("text")), ContainsSubstring("MUFU.EX2"));

  prints("echo what is this");
  check_error(palladium({"show", "add", "--sass"}, {named}), 1,
              "prints no instructions of 'add_kernel': what is this");
  prints("echo old >&2; exit 1");
  check_error(palladium({"show", "add", "--sass"}, {named}), 1, "ended with status 1:\nold");
  check_error(palladium({"show", "add", "--sass"}, {{"PALLADIUM_NVDISASM", "/nonexistent"}}), 1,
              "/nonexistent cannot be started");
  if (!palladium::files::exists("/usr/local/cuda/bin/nvdisasm") &&
      !palladium::files::exists(source_dir() + "/.deps/nvdisasm/nvidia"))
    check_error(palladium({"show", "add", "--sass"}, {{"PATH", "/bin"}, {"CUDA_HOME", "/none"}}), 1,
                "pip install --target .deps nvidia-cuda-nvdisasm");
}

TEST_CASE("show puts all that it is asked for into one object") {
  const Tool palladium;
  const Json shown = palladium.json(
      {"show", "matmul", "--graph", "--cuda", "--ptx", "--resources", "--arch", "sm_80"});
  CHECK(shown.at("kernel") == "matmul");
  CHECK(shown.at("arch") == "sm_80");
  CHECK(shown.at("key").get<std::string>().size() == 64);
  CHECK(shown.at("graph").is_object());
  CHECK_THAT(shown.at("cuda").get<std::string>(), ContainsSubstring("PL_KERNEL(128, 4) matmul"));
  CHECK_THAT(shown.at("ptx").get<std::string>(), ContainsSubstring(".target sm_80"));
  CHECK(shown.at("resources").at("registers") > 0);

  const Finished text = palladium({"show", "matmul", "--cuda", "--ptx", "--arch", "sm_80"});
  CHECK(text.out == "// ---- cuda\n" + shown.at("cuda").get<std::string>() + "// ---- ptx\n" +
                        shown.at("ptx").get<std::string>());
}

TEST_CASE("show says what it does not know") {
  const Tool palladium;
  check_error(palladium({"show", "sofmax"}), 1,
              "no shipped kernel is named 'sofmax'; there are add, softmax, layer_norm, "
              "rms_norm, cross_entropy, matmul, attention, transpose, blur");
  check_error(palladium({"show", "add", "--ptx"}, {no_nvrtc}), 1, "NVRTC 12.9 or newer is needed");
}

TEST_CASE(
    "each command that takes an architecture refuses one that there is not, in one sentence") {
  const Tool palladium;
  const std::string manifest = palladium.folder / "kernels.json";
  REQUIRE(palladium({"warm", "add", "--arch", "sm_80"}, {{"PALLADIUM_RECORD", manifest}}).status ==
          0);
  const std::string key =
      palladium.json({"cache", "list"}).at("entries")[0].at("key").get<std::string>();
  for (const std::string arch : {"sm_99", "90", "sm_90b", "SM_90a", ""}) {
    const std::string sentence =
        "palladium: unknown architecture '" + arch + "'; kernels are compiled for sm_75, sm_80, ";
    const auto refused = [&](std::vector<std::string> command) {
      command.insert(command.end(), {"--arch", arch});
      const Finished finished = palladium(command);
      CHECK(finished.status == 1);
      CHECK(finished.out.empty());
      CHECK_THAT(finished.err, ContainsSubstring(sentence) && !ContainsSubstring("\n  at "));
    };
    for (const char* what :
         {"--graph", "--cuda", "--ptx", "--sass", "--resources", "--report", "--passes", "--times"})
      refused({"show", "add", what});
    refused({"show", "add"});
    refused({"show", manifest});
    refused({"show", manifest + "#1", "--cuda"});
    refused({"cache", "explain", "add"});
    refused({"cache", "explain", key.substr(0, 8)});
    const Json report = palladium.json({"warm", "add", "--arch", arch}, {}, 1);
    CHECK_THAT(report.at("kernels")[0].at("error").get<std::string>(),
               StartsWith(sentence.substr(sentence.find("unknown"))));
  }
}

TEST_CASE("an architecture that there is not is a damage of the manifest that names it") {
  const Tool palladium;
  const std::string manifest = palladium.folder / "kernels.json";
  REQUIRE(palladium({"warm", "add", "--arch", "sm_80"}, {{"PALLADIUM_RECORD", manifest}}).status ==
          0);
  std::string text = text_of(manifest);
  for (std::size_t at = 0; (at = text.find("\"sm_80\"", at)) != std::string::npos; ++at)
    text.replace(at, 7, "\"sm_99\"");
  REQUIRE(palladium::files::publish(manifest, text));
  const Finished shown = palladium({"show", manifest});
  CHECK(shown.status == 1);
  CHECK_THAT(shown.err,
             ContainsSubstring(":1: unknown architecture 'sm_99'; kernels are compiled"));
  CHECK(palladium({"warm", manifest}).status == 1);
}
