// A kernel run in eight ways, each of which must give what the others give.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "cache/entry.hpp"
#include "cache/store.hpp"
#include "codegen/cuda/emit.hpp"
#include "tests/random/drawn_kernels.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/tolerance.hpp"

namespace palladium::test {

enum class Way : std::uint8_t {
  interpreter,   // in an order of the seed's, against row-major
  emulator,      // the emitted text, against the interpreter
  graph_text,    // the graph as it is read from its text
  lowered_text,  // the lowered program as it is read from its text
  sizes,         // with numbers for symbols, or symbols for numbers
  stages,        // without fetching ahead
  order,         // the emitted text, its blocks and threads and what is asynchronous in an order of
                 // the seed's
  cache,         // what another process has stored
};
inline constexpr int num_ways = 8;
const char* name_of(Way way);

struct Verdict {
  enum class Kind : std::uint8_t { agrees, does_not_apply, differs };
  Kind kind = Kind::agrees;
  std::string why = {};  // it does not apply, or what differs
};

/// What a kernel is made of, as far as tests ask whether such kernels are drawn.
struct Made {
  bool producer = false, sends = false, stages = false, persists = false, several_blocks = false;
};

class EightWays {
 public:
  explicit EightWays(std::uint64_t seed);

  /// Nothing, or why the kernel cannot be: it takes more than the architecture has.
  const std::string& refusal() const { return refusal_; }
  const std::string& family() const { return drawn_.family; }
  std::string words() const { return drawn_.words + ", for " + arch_; }
  std::string graph_text() const;
  const std::string& text() const { return emitted_.text; }
  Made made() const;

  /// What stands in the cache for the kernel, but that there is no cubin: its text is in its place.
  cache::Entry entry() const;

  /// By way. `entries`: another process's.
  std::array<Verdict, num_ways> run(const cache::Store& entries);

 private:
  Verdict run(Way way, const cache::Store& entries);
  Verdict interpreted();
  Verdict emulated();
  Verdict by_graph_text() const;
  Verdict by_lowered_text() const;
  Verdict resized() const;
  Verdict without_stages() const;
  Verdict reordered() const;
  Verdict stored(const cache::Store& entries) const;

  /// Another kernel on the same arrays, against the interpreter.
  Verdict other(const Sized& kernel, bool must_differ) const;
  /// Against what the interpreter gave, as far apart as sums in another order may be.
  Verdict judged(const Call& result) const;
  Verdict same_as(const Call& expected, const Call& result) const;

  cuda::Options options() const;

  std::uint64_t seed_;
  std::string arch_;
  DrawnKernel drawn_;
  std::string refusal_ = {};
  cuda::Emitted emitted_ = {};
  Call start_ = {}, expected_ = {}, emulated_ = {};
};

}  // namespace palladium::test
