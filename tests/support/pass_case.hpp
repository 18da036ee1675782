// One pass on one program, as a file: what it shows, the pass, the program in front of it and what
// the pass changes of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/graph/graph.hpp"

namespace palladium::test {

/// The file is
///
///     ; a sentence, which the case shows
///     pass software_pipeline
///     input
///     kernel …                 as lowered::to_full_text prints it
///     expected
///     @12  …                   behind this line of that text, the twelfth,
///     -  …                     lines that the pass takes away, and that it adds
///     +  …                     or "unchanged", or "refused: " and the words of the error
struct PassCase {
  std::string title, pass, input, expected;

  /// std::runtime_error where `text` is no such file.
  static PassCase parse(std::string_view text);
  std::string text() const;
  /// What the pass does to the input.
  std::string result() const;
  /// Whether it changes the graph of the input; where it refuses, it does not.
  bool edits_graph() const;
};

/// The files in tests/passes/cases, in order.
std::vector<std::string> pass_case_files();

/// The fewest lines to take away and to add, with the line that stands before them; "unchanged".
std::string changes(const std::string& before, const std::string& after);

/// The case of a kernel that is lowered for an architecture: its program in front of the pass,
/// where this runs for the first time. std::runtime_error where it does not.
PassCase case_of(const graph::Graph& g, int compute_capability, const std::string& pass);

}  // namespace palladium::test
