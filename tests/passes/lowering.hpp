// From a graph's text to the text of what lowering decides, and to CUDA C++.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <catch2/matchers/catch_matchers_templated.hpp>

#include "codegen/cuda/emit.hpp"
#include "codegen/cuda/lower.hpp"
#include "tests/support/graph_text.hpp"

namespace palladium::test {

/// A kernel without a grid, whose blocks are whole arrays: types like "f32[8,4]" of inputs and of
/// outputs, "smem f32[4]" of scratch. Their Refs are %0, %1, ... in that order.
inline std::string whole(const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs, std::string_view body,
                         const std::vector<std::string>& scratch = {}) {
  std::string text = "kernel k\n  grid\n", refs = "{";
  int number = 0;
  const auto ref = [&](const std::string& type) {
    refs += " %" + std::to_string(number++) + ": ref " + type;
  };
  const auto arrays = [&](const std::vector<std::string>& types, const std::string& origin) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      text += "  " + origin + "[" + std::to_string(i) + "]: " + types[i] + " in blocks " +
              types[i].substr(types[i].find('[')) + "\n";
      ref("block " + types[i]);
    }
  };
  arrays(inputs, "args");
  arrays(outputs, "outputs");
  for (const std::string& type : scratch) ref(type);
  return text + refs + "\n" + std::string(body) + "\n}\n";
}

/// A kernel whose text names no width, computed by so many warps.
inline std::string by_warps(int n, std::string text) {
  return text.insert(text.find("\n{") + 1, "num_warps " + std::to_string(n) + "\n");
}

inline std::string decided(std::string_view graph, int compute_capability = 90) {
  return lowered::to_text(cuda::lower(graph_of(graph), {.compute_capability = compute_capability}));
}

inline std::string emitted(std::string_view graph, int compute_capability = 90) {
  return cuda::emit(graph_of(graph), {.compute_capability = compute_capability}).text;
}

inline int occurrences(std::string_view text, std::string_view of) {
  int n = 0;
  for (std::size_t at = text.find(of); at != std::string_view::npos; at = text.find(of, at + 1))
    ++n;
  return n;
}

/// Matches text in which these words stand, in this order.
class Shows : public Catch::Matchers::MatcherGenericBase {
 public:
  Shows(std::initializer_list<std::string> lines) : lines_(lines) {}

  bool match(const std::string& text) const {
    std::size_t at = 0;
    for (const std::string& words : lines_) {
      at = text.find(words, at);
      if (at == std::string::npos) return false;
      at += words.size();
    }
    return true;
  }
  std::string describe() const override {
    std::string text = "shows";
    for (const std::string& words : lines_) text += "\n  " + words;
    return text;
  }

 private:
  std::vector<std::string> lines_;
};

}  // namespace palladium::test
