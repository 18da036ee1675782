// Prints a case for tests/passes/cases: the program in front of a pass, and what the pass does to
// it, of the kernel whose graph, as text, is the standard input.
//
//   pass_case PASS [COMPUTE_CAPABILITY]     e.g. pass_case place_windows 90 < a.graph
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>

#include "codegen/graph/transform.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/pass_case.hpp"

int main(int count, char** arguments) {
  if (count < 2 || count > 3) {
    std::fprintf(stderr, "usage: pass_case PASS [COMPUTE_CAPABILITY] < GRAPH\n");
    return 2;
  }
  try {
    const std::string text(std::istreambuf_iterator<char>(std::cin), {});
    const int compute_capability = count == 3 ? std::atoi(arguments[2]) : 90;
    const auto g = palladium::test::changed_graph_of(text);
    std::cout << palladium::test::case_of(g, compute_capability, arguments[1]).text();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "pass_case: %s\n", e.what());
    return 1;
  }
}
