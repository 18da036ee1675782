// Instructions that a thread issues for a row, counted in machine code (benchmarks/sass_path.py)
// along the way that the row's length says: of kernels of one length, beside those of any length up
// to a bound, of any multiple of 16 bytes and of any at all. They are compiled and never run.
//
//   benchmark_rows [--out FOLDER]
//
// $PALLADIUM_NVDISASM names the disassembler. In FOLDER the texts and cubins stay.
#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/user_kernels/kernels.hpp"
#include "codegen/base/format.hpp"
#include "codegen/nvrtc/disassemble.hpp"
#include "codegen/nvrtc/nvrtc.hpp"

using namespace palladium;
using pl::_;

namespace {

constexpr std::int64_t most = 4096;
constexpr std::int64_t rows = 64;
const ReduceOptions along{.axis = 1, .keepdims = true};

struct Built {
  Lowered lowered;
  int arrays;  // that the kernel takes
};

/// A kernel along rows of n columns, with so many vectors of as many elements.
Built by_rows(const Dim& n, int vectors, const std::function<Value(Value, Refs)>& f) {
  const BlockDim row = n.is_static() ? BlockDim(n.value()) : bounded(n, most);
  const BlockSpec one{{1, row},
                      [](Index i) {
                        return Indices{i, 0};
                      }},
      all{{row}, [](Index) { return Indices{0}; }};
  PallasCallOptions options{.name = "rows",
                            .out_type = {{dim("m"), n}, f32},
                            .grid = {dim("m")},
                            .in_specs = {one},
                            .out_specs = {one},
                            .compiler_params = {.num_warps = 4}};
  std::vector<ArgType> inputs{ShapeDtype{{dim("m"), n}, f32}};
  for (int v = 0; v < vectors; ++v) {
    options.in_specs.push_back(all);
    inputs.emplace_back(ShapeDtype{{n}, f32});
  }
  const auto body = [=](Ref x, Refs more, Ref o) { o[_] = f(x[_], more); };
  return {pallas_call(body, options).lower(inputs), vectors + 2};
}

Built softmax(const Dim& n) {
  return by_rows(n, 0, [](Value x, Refs) { return pl::softmax(x, {.axis = 1}); });
}
Built rms_norm(const Dim& n) {
  return by_rows(n, 1,
                 [](Value x, Refs w) { return x * rsqrt(mean(x * x, along) + 1e-6f) * w[0][_]; });
}
Built layer_norm(const Dim& n) {
  return by_rows(n, 2, [](Value x, Refs w) {
    const Value centred = x - mean(x, along);
    return centred * rsqrt(mean(centred * centred, along) + 1e-5f) * w[0][_] + w[1][_];
  });
}
/// In bf16, masked by hand.
Built masked_layer_norm(const Dim& n) {
  const user_kernels::UserKernel k =
      user_kernels::layer_norm({.rows = rows, .columns = most, .block = 1}, n);
  return {k.kernel.lower(std::vector<ArgType>(k.inputs.begin(), k.inputs.end())), 4};
}

class Lines {
 public:
  explicit Lines(std::string folder) : folder_(std::move(folder)), out_(folder_ + "/lines") {}

  /// Of a kernel that is called with these numbers behind its arrays; the number of the line.
  /// `times`: at most so many of those of the line `other`; else at most so many.
  int add(const std::string& name, const Built& k, const std::vector<std::int64_t>& numbers,
          const std::string& at_most = "-", int other = -1) {
    const Compiled compiled = k.lowered.compile({.arch = "sm_90a"});
    const std::string path = fmt::format("{}/{}.cubin", folder_, count_);
    const std::span<const std::byte> cubin = compiled.cubin();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(cubin.data()),
               static_cast<std::streamsize>(cubin.size()));
    std::ofstream(fmt::format("{}/{}.cu", folder_, count_)) << k.lowered.cuda_source();
    std::string arguments;
    for (int a = 0; a < k.arrays; ++a) arguments += arguments.empty() ? "-" : ",-";
    for (const std::int64_t n : numbers) arguments += fmt::format(",{}", n);
    out_ << fmt::format("{}, {} registers\t{}\t{}\t{}\t{}\n", name, compiled.resources().registers,
                        path, arguments, at_most, other < 0 ? "-" : std::to_string(other));
    return count_++;
  }
  std::string close() {
    out_.close();
    return folder_ + "/lines";
  }

 private:
  std::string folder_;
  std::ofstream out_;
  int count_ = 0;
};

using Make = Built (*)(const Dim&);

void add_bounded(Lines& lines, const char* name, Make make) {
  const Built any = make(dim("n", {.multiple_of = 4, .at_most = most}));
  for (const auto& [n, at_most] :
       {std::pair(most, "1.25"), std::pair(most / 2, "1.25"), std::pair(most / 8, "1.6")}) {
    const int alone = lines.add(fmt::format("{} of {}", name, n), make(n), {rows});
    lines.add(fmt::format("{} of {} of up to {}", name, n, most), any, {rows, n}, at_most, alone);
  }
}

int report(const std::string& list) {
  const char* chosen = std::getenv("PYTHON");
  const std::string command =
      fmt::format("'{}' '{}/sass_path.py' '{}'", chosen != nullptr ? chosen : "python3",
                  PALLADIUM_BENCHMARKS, list);
  return std::system(command.c_str()) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string folder =
      argc > 2 && std::string(argv[1]) == "--out"
          ? argv[2]
          : (std::filesystem::temp_directory_path() / "palladium-rows").string();
  const std::string nvdisasm = nvrtc::find_nvdisasm();
  if (!nvrtc::toolchain().found || nvdisasm.empty()) {
    std::puts("no NVRTC, or no nvdisasm (scripts/setup --nvdisasm): nothing to measure");
    return 0;
  }
  ::setenv("PALLADIUM_NVDISASM", nvdisasm.c_str(), 1);
  ::setenv("PALLADIUM_LOG", "off", 1);
  std::filesystem::create_directories(folder);
  Lines lines(folder);
  add_bounded(lines, "softmax", softmax);
  add_bounded(lines, "rms_norm", rms_norm);
  add_bounded(lines, "layer_norm", layer_norm);
  const int alone = lines.add("masked layer_norm of 4096", masked_layer_norm(most), {});
  lines.add("masked layer_norm of 4096, n % 8 == 0",
            masked_layer_norm(dim("n", {.multiple_of = 8, .at_most = most})), {most}, "1.05",
            alone);
  lines.add("masked layer_norm of 4095, any n", masked_layer_norm(dim("n")), {most - 1}, "520");
  return report(lines.close());
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
