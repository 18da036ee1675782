// What becomes of a launch on the fake driver: who computes it, and which faults were asked for.
#include <dlfcn.h>
#include <signal.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/fake_cuda/driver.hpp"
#include "tests/fake_cuda/player.hpp"
#include "tests/fake_cuda/texts.hpp"

using namespace fake_cuda;

namespace {

constexpr int launch_failed = 719;

Play player() {
  static const Play play = []() -> Play {
    const char* path = std::getenv("FAKE_CUDA_PLAYER");
    if (path == nullptr) return nullptr;
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) std::fprintf(stderr, "FAKE_CUDA_PLAYER: %s\n", dlerror());
    return library == nullptr ? nullptr : reinterpret_cast<Play>(dlsym(library, "fake_cuda_play"));
  }();
  return play;
}

/// What FAKE_CUDA_FAULT says of the kernel: "off" of "check_3=off,check_4=hang".
std::string fault_of(const std::string& kernel) {
  const char* all = std::getenv("FAKE_CUDA_FAULT");
  std::istringstream faults(all == nullptr ? "" : all);
  for (std::string each; std::getline(faults, each, ',');)
    if (each.starts_with(kernel + "=")) return each.substr(kernel.size() + 1);
  return {};
}

std::vector<Memory> device_memory() {
  std::vector<Memory> all;
  for (const auto& [address, allocation] : driver().allocations)
    if (allocation.device >= 0) all.push_back({reinterpret_cast<void*>(address), allocation.bytes});
  return all;
}

void compute(const CudaKernel& kernel, const Launch& launch) {
  std::ifstream file(text_file(kernel.library->image.data()));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::string problem = "FAKE_CUDA_TEXTS has no text of it";
  if (!text.empty()) {
    problem.clear();
    player()(launch, text, driver().state.tensor_maps, device_memory(), problem);
  }
  if (problem.empty()) return;
  std::fprintf(stderr, "fake CUDA: kernel %s: %s\n", kernel.name.c_str(), problem.c_str());
  driver().broken = launch_failed;
}

/// Changes one bit of the last byte that the launch changed.
class OneBitOff {
 public:
  explicit OneBitOff(bool wanted) {
    if (!wanted) return;
    for (const Memory& m : device_memory()) {
      const auto* bytes = static_cast<const std::byte*>(m.base);
      before_.emplace_back(bytes, bytes + m.bytes);
    }
  }
  void apply() const {
    const std::vector<Memory> after = device_memory();
    for (std::size_t k = 0; k < before_.size(); ++k) {
      auto* bytes = static_cast<std::byte*>(after[k].base);
      for (std::size_t i = after[k].bytes; i-- > 0;) {
        if (bytes[i] == before_[k][i]) continue;
        bytes[i] ^= std::byte{0x40};
        return;
      }
    }
  }

 private:
  std::vector<std::vector<std::byte>> before_;
};

}  // namespace

void fake_cuda::play(const CudaKernel& kernel, const Launch& launch) {
  const std::string fault = fault_of(kernel.name);
  if (fault == "crash") ::raise(SIGSEGV);
  if (fault == "hang") driver().hangs = true;
  const int error = std::atoi(fault.c_str());
  if (error != 0) driver().broken = error;
  if (player() == nullptr || error != 0 || fault == "hang") return;
  const OneBitOff off(fault == "off");
  compute(kernel, launch);
  off.apply();
}
