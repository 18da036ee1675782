#include "tests/conformance/run.hpp"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <thread>

#include "codegen/base/format.hpp"
#include "codegen/device/library.hpp"
#include "palladium/error.hpp"
#include "runtime/driver/device.hpp"
#include "runtime/driver/kernel.hpp"
#include "runtime/driver/memory.hpp"
#include "runtime/driver/tensor_map.hpp"

namespace palladium::conformance {
namespace {

constexpr std::size_t guard = 4096;
constexpr auto guard_byte = static_cast<unsigned char>(0xa5);

/// The values that kernelParams point to, for arrays at `addresses`.
struct Arguments {
  std::vector<std::uint64_t> words;
  std::vector<TensorMap> maps;
  std::vector<void*> pointers;

  template <class Encode>
  Arguments(const Case& c, const std::vector<void*>& addresses, bool emulated, Encode encode) {
    for (const Map& m : c.maps) {
      TensorMapSpec spec = m.spec;
      spec.base = addresses[m.array];
      maps.push_back(encode(spec));
    }
    words.reserve(c.parameters.size());
    for (const Parameter& p : c.parameters) {
      if (p.kind == Parameter::Kind::map) {
        pointers.push_back(&maps[p.index]);
        continue;
      }
      words.push_back(p.kind == Parameter::Kind::array
                          ? reinterpret_cast<std::uint64_t>(addresses[p.index])
                      : emulated ? p.emulated
                                 : p.word);
      pointers.push_back(&words.back());
    }
  }
};

driver::Dim3 dim3(const std::array<int, 3>& a) {
  return {static_cast<unsigned>(a[0]), static_cast<unsigned>(a[1]), static_cast<unsigned>(a[2])};
}

/// An array in the GPU's memory between two guards.
class Guarded {
 public:
  Guarded(const std::vector<std::byte>& bytes, driver::StreamHandle stream)
      : bytes_(bytes.size()), memory_(0, bytes.size() + 2 * guard, stream), stream_(stream) {
    driver::fill(memory_.pointer(), guard_byte, bytes_ + 2 * guard, stream);
    driver::copy_to_device(pointer(), bytes.data(), bytes_, stream);
  }
  void* pointer() const { return static_cast<std::byte*>(memory_.pointer()) + guard; }

  /// The array; `touched` becomes true if a guard was written.
  std::vector<std::byte> read(bool& touched) const {
    std::vector<std::byte> all(bytes_ + 2 * guard);
    driver::copy_to_host(all.data(), memory_.pointer(), all.size(), stream_);
    driver::synchronize(stream_);
    const auto whole = [](std::byte b) { return b == std::byte{guard_byte}; };
    const auto begin = all.begin() + guard, end = all.end() - guard;
    touched = !std::all_of(all.begin(), begin, whole) || !std::all_of(end, all.end(), whole);
    return {begin, end};
  }

 private:
  std::size_t bytes_;
  driver::DeviceMemory memory_;
  driver::StreamHandle stream_;
};

void wait(const driver::Event& end, const GpuOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  while (!end.is_done()) {
    if (std::chrono::steady_clock::now() - start > std::chrono::duration<double>(options.seconds))
      options.overdue(
          fmt::format("the kernel runs on the GPU for {:g} s and does not end", options.seconds));
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace

Arrays run_emulator(const Case& c, emulator::Asynchrony asynchrony, emulator::Schedule schedule,
                    std::function<void(int line, const device::Access&)> watch) {
  Arrays arrays;
  for (const Array& a : c.arrays) arrays.push_back(a.bytes);
  std::vector<void*> addresses;
  std::vector<emulator::Buffer> buffers;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Array& a = c.arrays[i];
    addresses.push_back(arrays[i].data());
    buffers.push_back({.base = arrays[i].data(),
                       .bytes = arrays[i].size(),
                       .name = fmt::format("array {}", i),
                       .written = a.output,
                       .element_bytes = bytes_of_type(a.type),
                       .one_writer = !a.many_writers});
  }
  Arguments arguments(c, addresses, true,
                      [](const TensorMapSpec& s) { return emulator::encode(s); });
  std::function<void(int, const device::Access&, std::uint64_t, std::uint64_t)> told;
  if (watch)
    told = [&](int line, const device::Access& a, std::uint64_t, std::uint64_t) { watch(line, a); };
  emulator::run({.kernel = c.name,
                 .text = c.text,
                 .grid = {c.grid[0], c.grid[1], c.grid[2]},
                 .cluster = c.cluster,
                 .warpgroups = c.warpgroups,
                 .shared_bytes = c.shared_bytes,
                 .parameters = arguments.pointers.data(),
                 .buffers = buffers,
                 // A GPU gives zeros.
                 .options = {.out_of_bounds = emulator::OutOfBounds::zero,
                             .asynchrony = asynchrony,
                             .schedule = schedule,
                             .workers = watch ? 1 : 0},
                 .watch = std::move(told)});
  return arrays;
}

std::optional<Arrays> expected(const Case& c) {
  if (!c.emulated) return std::nullopt;
  if (c.outcome != Outcome::refused) return run_emulator(c);
  try {
    (void)run_emulator(c);
  } catch (const InternalError&) {
    return std::nullopt;
  }
  throw InternalError("the emulator takes what the chip should refuse");
}

Arrays run_gpu(const Case& c, const GpuOptions& options, Account& account) {
  const driver::Device& device = driver::device(0);
  const nvrtc::Result compiled = compile({&c}, device.arch(), options.line_info);
  account.log = compiled.log;
  if (!compiled.ok) throw InternalError("NVRTC refuses the text:\n" + compiled.log);
  account.complaints = complaints(compiled);

  const driver::ContextScope context(0);
  std::string rejection;
  const auto kernel = driver::Kernel::load(compiled.cubin, c.entry, 0, rejection);
  if (!kernel) throw CudaError("the driver rejects the cubin: " + rejection);
  if (c.shared_bytes > static_cast<std::uint32_t>(device.shared_bytes))
    kernel->allow_shared_bytes(c.shared_bytes, 0);
  if (c.cluster[0] * c.cluster[1] * c.cluster[2] > 8) kernel->allow_large_clusters(0);

  const driver::Stream stream;
  driver::Event end;
  std::vector<Guarded> memory;
  std::vector<void*> addresses;
  for (const Array& a : c.arrays) {
    memory.emplace_back(a.bytes, stream.handle());
    addresses.push_back(memory.back().pointer());
  }
  Arguments arguments(c, addresses, false,
                      [](const TensorMapSpec& s) { return driver::encode(s); });
  driver::launch(*kernel,
                 {.grid = dim3(c.grid),
                  .block = {static_cast<unsigned>(128 * c.warpgroups), 1, 1},
                  .cluster = dim3(c.cluster),
                  .shared_bytes = c.shared_bytes,
                  .stream = stream.handle()},
                 arguments.pointers.data());
  end.record(stream.handle());
  wait(end, options);
  Arrays arrays;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    bool touched = false;
    arrays.push_back(memory[i].read(touched));
    if (touched) throw InternalError(fmt::format("memory beside array {} was written", i));
    if (!c.arrays[i].output && arrays[i] != c.arrays[i].bytes)
      throw InternalError(fmt::format("array {}, an input, was written", i));
  }
  return arrays;
}

nvrtc::Result compile(const std::vector<const Case*>& cases, std::string_view arch,
                      bool line_info) {
  std::string text;
  for (const Case* c : cases) text += c->text;
  return nvrtc::compile(
      {.source = device::prelude(device::Half::cuda, text) + text,
       .options = line_info ? std::vector<std::string>{"-lineinfo"} : std::vector<std::string>{},
       .arch = std::string(arch)});
}

std::string complaints(const nvrtc::Result& result) {
  const Resources used = nvrtc::parse_log(result.log);
  std::string text;
  for (const std::string& warning : used.warnings) {
    // What sin, cos and tan of great arguments need.
    if (warning.find("bytes of local memory") == warning.npos) text += warning + "\n";
  }
  if (used.spill_load_bytes + used.spill_store_bytes > 0)
    text += fmt::format("spills {} bytes\n", used.spill_store_bytes);
  return text;
}

}  // namespace palladium::conformance
