#include "tests/support/small_kernel.hpp"

#include <algorithm>
#include <cstdlib>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "palladium/error.hpp"
#include "tests/support/hopper_kernels.hpp"
#include "tests/support/wgmma_lint.hpp"

namespace palladium::test {
namespace {

void separate(std::string& parameters) {
  if (!parameters.empty()) parameters += ", ";
}

}  // namespace

SmallKernel& SmallKernel::pointer(const std::string& type, const std::string& name,
                                  emulator::Buffer buffer) {
  separate(parameters_);
  parameters_ += type + name;
  arguments_.push_back(&pointers_.emplace_back(buffer.base));
  buffers_.push_back(std::move(buffer));
  return *this;
}

SmallKernel& SmallKernel::map(const std::string& name, const TensorMapSpec& spec, std::size_t bytes,
                              bool written) {
  separate(parameters_);
  parameters_ += "PL_TENSOR_MAP(" + name + ")";
  arguments_.push_back(&maps_.emplace_back(emulator::encode(spec)));
  buffers_.push_back({.base = spec.base,
                      .bytes = bytes,
                      .name = name,
                      .written = written,
                      .element_bytes = static_cast<int>(bytes_of(spec.type)),
                      .one_writer = false});
  return *this;
}

SmallKernel& SmallKernel::no_map(const std::string& name) {
  separate(parameters_);
  parameters_ += "PL_TENSOR_MAP(" + name + ")";
  arguments_.push_back(&maps_.emplace_back());
  return *this;
}

std::string SmallKernel::text() const {
  const std::string head = "PL_KERNEL(" + std::to_string(128 * warpgroups) + ") k(" + parameters_;
  return head + (parameters_.empty() ? "" : ", ") + "i32 fault) {\n" + body_ +
         "\n}\nPL_EXPORT(k)\n";
}

int SmallKernel::line(const std::string& marker) const { return line_of(text(), marker); }

void SmallKernel::run(const emulator::Options& options) const { launch(options, emulator::run); }

void SmallKernel::launch(const emulator::Options& options,
                         const std::function<void(const emulator::Launch&)>& use) const {
  const std::string emitted = text();
  CHECK(unpinned_registers(emitted) == std::vector<std::string>{});
  std::vector<void*> arguments = arguments_;
  std::vector<Location> lines;
  for (std::ptrdiff_t i = std::count(emitted.begin(), emitted.end(), '\n'); i > 0; --i) {
    lines.push_back({"user.cpp", 1001 + static_cast<int>(lines.size())});
  }
  int which = fault;
  arguments.push_back(&which);
  use({.kernel = "k",
       .text = emitted,
       .grid = grid,
       .cluster = cluster,
       .warpgroups = warpgroups,
       .shared_bytes = shared_bytes,
       .parameters = arguments.data(),
       .buffers = buffers_,
       .lines = lines,
       .options = options});
}

std::string SmallKernel::report(const emulator::Options& options) const {
  try {
    run(options);
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

std::vector<emulator::Options> policies(std::uint64_t seed) {
  std::vector<emulator::Options> all;
  for (const auto asynchrony :
       {emulator::Asynchrony::eager, emulator::Asynchrony::lazy, emulator::Asynchrony::random}) {
    for (const auto schedule :
         {emulator::Schedule::fifo, emulator::Schedule::lifo, emulator::Schedule::random}) {
      all.push_back({.asynchrony = asynchrony, .schedule = schedule, .seed = seed});
    }
  }
  return all;
}

std::string describe(const emulator::Options& options) {
  constexpr const char* asynchronies[] = {"eager", "lazy", "random"};
  constexpr const char* schedules[] = {"fifo", "lifo", "random"};
  return std::string(asynchronies[static_cast<int>(options.asynchrony)]) + ", " +
         schedules[static_cast<int>(options.schedule)] + ", seed " + std::to_string(options.seed);
}

Told::Told(std::string message) : all(std::move(message)) {
  if (all.empty()) return;
  reports = 1;
  if (const std::size_t end = all.find(" reports"); end != all.npos && end < all.find('\n')) {
    reports = std::atoi(&all[all.rfind(' ', end - 1)]);
  }
  const std::string key = "emitted line ";
  for (std::size_t at = all.find(key); at != all.npos; at = all.find(key, at)) {
    at += key.size();
    lines.push_back(std::atoi(&all[at]));
  }
}

void check_told(const std::string& message, const std::vector<int>& lines,
                std::initializer_list<const char*> words, int reports) {
  Told told(message);
  INFO(message);
  if (reports != any_number) CHECK(told.reports == reports);
  told.lines.resize(std::min(told.lines.size(), lines.size()));
  CHECK(told.lines == lines);
  for (const char* w : words) CHECK_THAT(message, Catch::Matchers::ContainsSubstring(w));
}

void check_fault(SmallKernel& kernel, std::initializer_list<const char*> markers,
                 std::initializer_list<const char*> words, int reports) {
  kernel.fault = 0;
  CHECK(kernel.report() == "");
  kernel.fault = 1;
  std::vector<int> lines;
  for (const char* marker : markers) lines.push_back(kernel.line(marker));
  check_told(kernel.report(), lines, words, reports);
}

}  // namespace palladium::test
