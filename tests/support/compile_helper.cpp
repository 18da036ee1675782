#include "tests/support/compile_helper.hpp"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "cache/text_digest.hpp"
#include "tests/support/paths.hpp"

namespace palladium::test {
namespace {

namespace fs = std::filesystem;

struct Status {
  char state = 'X';
  pid_t parent = -1;
};

/// From /proc/<pid>/stat: "1234 (palladium-compi) S 1 ...".
Status status_of(process::Id process) {
  std::ifstream file("/proc/" + std::to_string(process.number()) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(text.substr(name_end + 1));
  Status status;
  rest >> status.state >> status.parent;
  return status;
}

}  // namespace

nvrtc::HelperOptions helper_options() {
  return {.program = binary_dir() + "/palladium-compile", .digest = cache::text_digest};
}

const nvrtc::Toolchain& toolchain() {
  const nvrtc::Search& search = nvrtc::toolchain();
  if (!search.found) SKIP(nvrtc::missing_toolchain_message(search));
  return *search.found;
}

nvrtc::Request scale(const std::string& arch, int variant) {
  return {.source =
              "#include \"twice.cuh\"\nextern \"C\" __global__ void scale(float* a, int n) {\n"
              "  int i = blockIdx.x * 128 + threadIdx.x;\n"
              "  if (i < n) a[i] = twice(a[i]) + " +
              std::to_string(variant) + ";\n}\n",
          .headers = {{"twice.cuh", "__device__ inline float twice(float x) { return 2 * x; }\n"}},
          .arch = arch};
}

nvrtc::Toolchain fake_toolchain() {
  const std::string folder = binary_dir() + "/tests/fake/";
  return {.library = folder + "libnvrtc.so.13",
          .builtins = folder + "libnvrtc-builtins.so.13.0",
          .major = 13,
          .minor = 0,
          .id = "fakefakefakefake"};
}

nvrtc::Request fake(const std::string& orders) {
  return {.source = "// fake: " + orders + "\n", .arch = "sm_90a"};
}

std::vector<process::Id> children_of(process::Id process) {
  std::vector<process::Id> children;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto candidate = process::Id::of(std::atoi(entry.path().filename().c_str()));
    if (candidate && status_of(*candidate).parent == process.number())
      children.push_back(*candidate);
  }
  return children;
}

std::vector<std::string> descriptors_of(process::Id process) {
  std::vector<std::string> names;
  for (const auto& entry :
       fs::directory_iterator("/proc/" + std::to_string(process.number()) + "/fd"))
    names.push_back(fs::read_symlink(entry.path()));
  return names;
}

std::string descriptor_name(int descriptor) {
  return fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor));
}

std::vector<int> sockets_of_this_process() {
  std::vector<int> sockets;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd"))
    if (fs::read_symlink(entry.path()).string().starts_with("socket:"))
      sockets.push_back(std::atoi(entry.path().filename().c_str()));
  return sockets;
}

std::string mapped_files() {
  std::ifstream file("/proc/self/maps");
  return {std::istreambuf_iterator<char>(file), {}};
}

bool ends_within(process::Id process, int milliseconds) {
  for (int waited = 0;; waited += 5) {
    const char state = status_of(process).state;
    if (state == 'X' || state == 'Z') return true;
    if (waited >= milliseconds) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace palladium::test
