// A call of a kernel as data: drawn from a seed, spoiled by mistakes, built, and described.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "palladium/palladium.hpp"
#include "tests/support/random_graph.hpp"

namespace palladium::test::random_calls {

/// The lines of an imagined user.cpp that parts of a call claim to stand on, so that a message
/// tells whom it blames. Bodies stand where they stand: in the files that statements.hpp names, and
/// what is wrong in faults.cpp.
inline constexpr const char* user_file = "user.cpp";
enum Line : int {
  call_line = 10,
  kernel_line = 20,
  body_line = 21,
  in_spec_line = 30,
  out_spec_line = 40,
  in_map_line = 50,
  out_map_line = 60,
  scratch_line = 70,
  argument_line = 80,
  output_line = 90,
};
constexpr Location user(int line, int i = 0) { return {user_file, line + i}; }

/// A grid axis and the extent that its blocks of `block` elements cover.
struct Axis {
  std::int64_t block = 1, programs = 1, extent = 1;
};

/// A dimension of an array and how the grid cuts it.
struct Cut {
  BlockDim block{1};
  std::int64_t extent = 1;
  int axis = -1;  ///< of the grid; -1: every program has block `index`
  std::int64_t index = 0;
  bool reversed = false;  ///< the last program has the first block
};

/// How the memory of an array lies.
enum class Layout : std::uint8_t {
  owned,      ///< allocated for it
  shifted,    ///< from an address that is aligned to the element only
  gaps,       ///< between the rows
  repeated,   ///< one row for all: stride 0
  read_only,  ///< const
};

struct Operand {
  DType dtype = f32;
  std::vector<Cut> cuts = {};
  bool whole = false;  ///< the block is the array, and there is no index map
  bool fixed_arity = false;
  Space space = Space::automatic;
  std::optional<double> fill = {};
  Layout layout = Layout::owned;

  Shape shape() const;
  bool moves_along(int axis) const;
  bool is_ragged() const;  ///< some block reaches over an end of the array
};

struct Number {
  DType dtype = f32;
  std::uint64_t bits = 0;
};

/// What is wrong in a body, after so many of its statements.
struct BodyFault {
  int kind = 0;
  int after = 0;
  std::uint64_t seed = 0;
};

/// What a call gives for an argument or an output.
struct Given {
  enum class Kind : std::uint8_t { array, scalar, nothing };
  Kind kind = Kind::array;
  Array array = {};
  Scalar scalar = {};
};
struct Givens {
  std::vector<Given> arguments, outputs;
};

struct Plan {
  std::uint64_t seed = 0;
  std::vector<Axis> axes = {};
  std::vector<Operand> inputs = {}, outputs = {};
  std::vector<Number> numbers = {};
  std::string pattern = {};  ///< of the arguments: 'v' a number, 'r' an array
  std::vector<NamedScoped> scratch = {};
  bool aliased = false;  ///< outputs[0] is inputs[0]
  enum class Options : std::uint8_t { plain, function, call } options = Options::plain;
  bool symbolic = false;  ///< grid and outputs are made of the arguments' extents
  enum class Entry : std::uint8_t { parentheses, call, into } entry = Entry::parentheses;
  PallasCallOptions rest = {};  ///< what does not follow from the above
  bool as_grid_spec = false;
  int statements = 8;  ///< of the body
  bool elementary = false;

  // Mistakes.
  std::vector<BodyFault> faults = {};
  int operands_more = 0;  ///< than the body takes; negative: less
  std::vector<std::function<void(PallasCallOptions&)>> spoil_options = {};
  std::vector<std::function<void(Givens&)>> spoil_call = {};

  int revisited() const;  ///< an axis along which an output stays where it is, or -1
};

/// A valid call.
Plan draw(std::uint64_t seed);

/// What must come of a mistake.
enum class Expect : std::uint8_t {
  refused,   ///< a CompileError that names a line of the mistake's
  free,      ///< a result too; either way on both targets
  harmless,  ///< a result
};
struct Blame {
  Expect expect = Expect::refused;
  std::set<int> lines = {};  ///< of user.cpp
  bool code = false;         ///< a line of the code of bodies and index maps
  std::string text = {};     ///< what was done, for people
};

/// Mistakes of this seed: how many, and the plan with one of them. Each depends on nothing but the
/// valid plan and its number, so that they can be dropped one at a time.
int mistakes_of(std::uint64_t seed);
Blame spoil(Plan& plan, int number);

/// Kinds of faults of bodies: how many, and what is expected of them.
int body_faults();
const char* body_fault_name(int kind);
Expect body_fault_expectation(int kind);

/// The operands of a body, apart.
struct Parts {
  std::vector<Ref> inputs, outputs, scratch;
  std::vector<Value> numbers;
};
Body body_of(const Plan& plan);
/// One line of the body that cannot be.
void record_fault(int kind, Random& random, const Plan& plan, const Parts& parts);

/// Thrown by a body of the user's: it must come out as it went in.
struct UsersOwn {};

PallasCallOptions options_of(const Plan& plan, std::span<const ShapeDtype> types);
Kernel kernel_of(const Plan& plan);

std::string describe(const Plan& plan);

}  // namespace palladium::test::random_calls
