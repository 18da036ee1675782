// An InlineCuda by its parts: text of a user's own, and what it is given.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "codegen/graph/register_layout.hpp"

namespace palladium::graph {

struct InlineView {
  enum class Language : std::int64_t { cuda, ptx };
  /// What is done with an operand: of a value its elements are read, in registers; of a Ref what it
  /// shows is read, written as a whole or in part, or both.
  enum class Role : std::int64_t { value, read, write, update };
  struct Operand {
    std::string name;
    Role role = Role::value;
    std::optional<RegisterLayout> layout = {};  // none: that of all of its shape that have none
  };
  struct Result {
    std::string name;
    Type type;
    std::optional<RegisterLayout> layout = {};
  };

  Language language = Language::cuda;
  std::string name;  // of what the text is
  std::vector<Operand> operands;
  std::vector<Result> results;
  std::string text;

  /// Precondition: a well-formed one.
  static InlineView of(const Inst& inline_cuda);
  Attr encode() const;
  bool is_ptx() const { return language == Language::ptx; }

  /// Of the text, without what all are indented by, and blank ones around them.
  std::vector<std::string> lines() const;
  /// What a name stands for in PTX: an expression of CUDA C++, and how asm takes it.
  struct Bound {
    std::string name, expression;
    const char* constraint = "";
    bool is_result = false;
  };
  /// PTX as a statement of CUDA C++. Precondition: all that it names is bound.
  std::string assembly(const std::vector<Bound>& bound) const;
};

/// What is wrong with it as it stands; "" if nothing is.
std::string inline_problem(const Attr& attr, std::size_t num_operands);
/// Whether some kernel text is PTX alone: the first such instruction, or no_value.
ValueId bare_ptx(const Graph& g);
/// Leaves out what texts mean; whether there was any.
bool forget_meanings(Graph& g);
/// Whether a text mentions an identifier, outside of comments and literals.
bool mentions(std::string_view text, std::string_view identifier);

}  // namespace palladium::graph
