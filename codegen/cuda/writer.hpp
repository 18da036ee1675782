// Lines of emitted text with indentation, and the user's line that each came from.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/cuda/emit.hpp"

namespace palladium::cuda {

class Writer {
 public:
  void line(const std::string& text) {
    if (at_.line != 0) lines_.push_back({number_, at_});
    text_ += std::string(static_cast<std::size_t>(2 * depth_), ' ') + text + "\n";
    ++number_;
  }
  void blank() {
    text_ += "\n";
    ++number_;
  }
  void open(const std::string& text) {
    line(text.empty() ? "{" : text + " {");
    ++depth_;
  }
  void close() {
    --depth_;
    line("}");
  }
  /// Lines from here on come from `at`.
  void at(Location at) { at_ = at; }

  std::string text() const { return text_; }
  std::vector<TextLine> lines() const { return lines_; }

 private:
  std::string text_;
  std::vector<TextLine> lines_;
  Location at_;
  int number_ = 1;
  int depth_ = 0;
};

}  // namespace palladium::cuda
