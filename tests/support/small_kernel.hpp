// Kernels of a few lines that a test writes out, with their arrays and tensor maps, run by the
// emulator; and what it says of them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "codegen/base/tensor_map.hpp"
#include "runtime/emulator/emulator.hpp"

namespace palladium::test {

/// The kernel `k` with a body. Its parameters come in the order in which they are added, and last
/// `i32 fault`; arrays must outlive it. Line n of the text is the user's line user.cpp:1000+n.
class SmallKernel {
 public:
  explicit SmallKernel(std::string body) : body_(std::move(body)) {}
  SmallKernel(SmallKernel&&) = default;

  int warpgroups = 1;
  std::array<std::int64_t, 3> grid = {1, 1, 1};
  std::array<int, 3> cluster = {1, 1, 1};
  std::uint32_t shared_bytes = 4096;
  int fault = 0;

  /// `const type* name`, only read.
  template <class T>
  SmallKernel& reads(const std::string& type, const std::string& name, std::vector<T>& array) {
    return pointer("const " + type + "* ", name, buffer(name, array, false));
  }
  /// `type* name`; with `one_writer`, blocks that write one element are an error.
  template <class T>
  SmallKernel& writes(const std::string& type, const std::string& name, std::vector<T>& array,
                      bool one_writer = false) {
    emulator::Buffer b = buffer(name, array, true);
    b.one_writer = one_writer;
    return pointer(type + "* ", name, b);
  }
  /// A tensor map of an array; that of `bytes` is the buffer that may be touched.
  SmallKernel& map(const std::string& name, const TensorMapSpec& spec, std::size_t bytes,
                   bool written);
  /// The kernel before writes the last array and may still run.
  SmallKernel& overlapped() {
    buffers_.back().overlapped = true;
    return *this;
  }
  /// What is no tensor map.
  SmallKernel& no_map(const std::string& name);

  std::string text() const;
  /// The line of the text that ends in `// marker`.
  int line(const std::string& marker) const;
  void run(const emulator::Options& options = {}) const;
  /// Hands over what run() would run.
  void launch(const emulator::Options& options,
              const std::function<void(const emulator::Launch&)>& use) const;
  /// The message of what run() throws; empty if nothing.
  std::string report(const emulator::Options& options = {}) const;

 private:
  template <class T>
  static emulator::Buffer buffer(const std::string& name, std::vector<T>& array, bool written) {
    return {.base = array.data(),
            .bytes = array.size() * sizeof(T),
            .name = name,
            .written = written,
            .element_bytes = sizeof(T),
            .one_writer = false};
  }
  SmallKernel& pointer(const std::string& type, const std::string& name, emulator::Buffer buffer);

  std::string body_, parameters_;
  std::vector<emulator::Buffer> buffers_;
  std::deque<void*> pointers_;
  std::deque<TensorMap> maps_;
  std::vector<void*> arguments_;
};

/// Every asynchrony with every schedule.
std::vector<emulator::Options> policies(std::uint64_t seed = 1);
/// "lazy, lifo, seed 1"
std::string describe(const emulator::Options& options);

/// What an emulator's message tells, taken apart.
struct Told {
  std::string all;
  int reports = 0;
  std::vector<int> lines;  // of the emitted text, in order of appearance

  explicit Told(std::string message);
  bool says(const std::string& words) const { return all.find(words) != all.npos; }
};

/// For faults with consequences that depend on who runs first.
inline constexpr int any_number = -1;

/// Fails the running test unless the message is one report (or `reports`) whose first lines of the
/// text are `lines`, and says all of `words`.
void check_told(const std::string& message, const std::vector<int>& lines,
                std::initializer_list<const char*> words, int reports = 1);

/// Fails the running test unless the kernel reports nothing without its fault and with it one cause
/// (or `reports`), at the lines that end in `markers`.
void check_fault(SmallKernel& kernel, std::initializer_list<const char*> markers,
                 std::initializer_list<const char*> words, int reports = 1);

}  // namespace palladium::test
