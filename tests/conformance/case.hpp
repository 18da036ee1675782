// One check of the hardware: a tiny kernel, its arrays and launch, and how close a GPU must come to
// the emulator or to a formula. The same table runs on a GPU (gpu_conformance), on the emulator and
// through NVRTC (tests).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "codegen/base/tensor_map.hpp"

namespace palladium::conformance {

/// How an output must agree.
enum class Agreement {
  bits,  // with the emulator's in every bit; of float elements any NaN equals any other
  ulp,   // with `reference` within `bound` units of the last place
  near,  // with the emulator's within `bound`, absolutely
  any,   // is only recorded
};

/// What becomes of a check on a GPU, as far as the emulator and our text assume anything.
enum class Outcome {
  agrees,   // its outputs do
  refused,  // an error of the GPU, where the emulator has a report
  open,     // its outputs agree, or the GPU refuses, or the kernel does not end: which is recorded
};

struct Array {
  std::string type;              // of its elements: "f32", "bf16", "u8", ...
  std::vector<std::byte> bytes;  // inputs; what outputs hold before the launch
  bool output = false;
  bool many_writers = false;  // several blocks may write one element
  Agreement agreement = Agreement::bits;
  double bound = 0;
  std::string label = {};  // what is measured: "exp of f32"
  std::function<long double(std::size_t)> reference = {};
};

struct Parameter {
  enum class Kind { array, map, word };
  Kind kind = Kind::array;
  std::size_t index = 0;       // of arrays or maps
  std::uint64_t word = 0;      // an integer, or the bits of a float
  std::uint64_t emulated = 0;  // the same on the emulator
};

struct Map {
  std::size_t array = 0;
  TensorMapSpec spec = {};  // its base is set at the launch
};

struct Case {
  std::string name;  // "tma/load rank 3 swizzle 64"
  std::string text;  // with PL_EXPORT; its kernel is called `entry`
  std::string entry = "KERNEL";
  std::array<int, 3> grid = {1, 1, 1}, cluster = {1, 1, 1};
  int warpgroups = 1;
  std::uint32_t shared_bytes = 0;
  std::vector<Array> arrays = {};
  std::vector<Map> maps = {};
  std::vector<Parameter> parameters = {};
  bool slow = false;  // one of very many of its kind: in gpu_check only
  /// Adds the arrays of a case that has many bytes of them. Slow ones lack them until complete().
  std::function<void(Case&)> make_arrays = {};
  bool alone = false;      // its text has declarations beside the kernel
  bool sanitized = false;  // small enough to run under compute-sanitizer
  Outcome outcome = Outcome::agrees;
  bool deadly = false;   // may cost the context: runs last, in a process of its own
  bool emulated = true;  // the emulator has what it asks; else no output is compared with it
  /// Of a question to the chip: what the arrays say, in a few words.
  std::function<std::string(const std::vector<std::vector<std::byte>>&)> answer = {};

  /// "tma" of "tma/load rank 3".
  std::string family() const { return name.substr(0, name.find('/')); }

  // Each adds a parameter of the kernel.
  template <class T>
  Case& input(const std::string& type, const std::vector<T>& values) {
    return array({.type = type, .bytes = bytes_of(values)});
  }
  /// Bytes of 0x5a before the launch.
  Case& output(const std::string& type, std::size_t count);
  template <class T>
  Case& in_out(const std::string& type, const std::vector<T>& values) {
    return array({.type = type, .bytes = bytes_of(values), .output = true, .many_writers = true});
  }
  Case& array(Array a);
  Case& word(std::int64_t value) { return word(value, value); }
  Case& word(std::int64_t value, std::int64_t on_the_emulator);
  /// A tensor map of array number `of` in the order of addition.
  Case& map(std::size_t of, TensorMapSpec spec);
  /// A tensor map of a new array.
  Case& mapped(Array a, TensorMapSpec spec);

  template <class T>
  static std::vector<std::byte> bytes_of(const std::vector<T>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
};

/// A kernel of `warpgroups` with this parameter list and body; `body` says pl::… as emitted text
/// does.
Case kernel(const std::string& name, const std::string& parameters, const std::string& body,
            int warpgroups = 1);

/// "sm_90a" has everything that the text names: the oldest and newest such number, 75 and INT_MAX
/// for a plain kernel.
struct ArchRange {
  int first, last;
};
ArchRange archs_of(const Case& c);

/// `text` with every `$` replaced.
std::string replaced(std::string text, char what, const std::string& by);

int bytes_of_type(const std::string& type);
/// The bits of a small number that the type holds exactly; "e4m3", "e5m2" and "tf32" too.
std::uint64_t encode(const std::string& type, double value);
/// The bits of element `i` of `size` bytes.
std::uint64_t element(const std::vector<std::byte>& bytes, std::size_t i, std::size_t size);
/// `count` elements, small integers of -2..2 (0..4 for unsigned types), packed.
std::vector<std::byte> integers(const std::string& type, std::size_t count, std::uint64_t seed);
/// `count` random elements of -1..1 in a float type, packed.
std::vector<std::byte> fractions(const std::string& type, std::size_t count, std::uint64_t seed);
std::vector<std::uint32_t> random_words(std::size_t count, std::uint64_t seed);

/// The table, in a fixed order, each kernel with a name of its own.
const std::vector<Case>& all_cases();
/// A case of the table, with its arrays.
Case complete(Case c);

// Its parts.
void add_basics(std::vector<Case>& all);    // ids, barriers, warps, memory, control
void add_numbers(std::vector<Case>& all);   // types, conversions, arithmetic, elementary functions
void add_matrices(std::vector<Case>& all);  // mma, ldmatrix, stmatrix, reductions, dots
void add_atomics(std::vector<Case>& all);
void add_clusters(std::vector<Case>& all);     // mbarriers, clusters, fences, cp.async, bulk copies
void add_tensor_maps(std::vector<Case>& all);  // TMA
void add_wgmma(std::vector<Case>& all);
void add_kernels(std::vector<Case>& all);    // GEMM, attention
void add_questions(std::vector<Case>& all);  // questions that only the chip answers
void add_latencies(std::vector<Case>& all);  // what single instructions take
void add_sweeps(std::vector<Case>& all);     // functions of f32 on all their arguments

}  // namespace palladium::conformance
