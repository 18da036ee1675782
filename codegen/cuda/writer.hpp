// Lines of emitted text with indentation, and the user's line that each came from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/cuda/affine.hpp"
#include "codegen/cuda/emit.hpp"

namespace palladium::cuda {

class Writer {
 public:
  void line(const std::string& text) { lines_.push_back({text, depth_, at_}); }
  /// A line that comes from elsewhere, if that is known.
  void line(const std::string& text, Location at) {
    lines_.push_back({text, depth_, at == Location{} ? at_ : at});
  }
  void open_block(const std::string& text) {
    line(text.empty() ? "{" : text + " {");
    ++depth_;
  }
  void close_block() {
    --depth_;
    line("}");
  }
  /// Lines from here on come from `at`.
  void at(Location at) { at_ = at; }

  std::size_t size() const { return lines_.size(); }
  /// Whether a line from number `from` on names the identifier.
  bool names(std::size_t from, std::string_view identifier) const {
    for (std::size_t i = from; i < lines_.size(); ++i)
      if (names_identifier(lines_[i].text, identifier)) return true;
    return false;
  }
  /// Takes out the line from number `from` on that declares the identifier, if no other names it.
  void drop_if_unused(std::size_t from, const std::string& type, const std::string& identifier) {
    const std::string start = type + " " + identifier + " = ";
    std::size_t declaration = lines_.size();
    for (std::size_t i = from; i < lines_.size(); ++i) {
      if (lines_[i].text.starts_with(start))
        declaration = i;
      else if (names_identifier(lines_[i].text, identifier))
        return;
    }
    if (declaration < lines_.size())
      lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(declaration));
  }
  void insert(std::size_t before, const std::string& text, Location at = {}) {
    lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(before),
                  {text, before < lines_.size() ? lines_[before].depth : depth_,
                   at == Location{} ? at_ : at});
  }

  std::string text() const {
    std::string out;
    for (const Line& l : lines_)
      out += std::string(static_cast<std::size_t>(2 * l.depth), ' ') + l.text + "\n";
    return out;
  }
  std::vector<TextLine> lines() const {
    std::vector<TextLine> out;
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (lines_[i].at.line != 0) out.push_back({static_cast<int>(i) + 1, lines_[i].at});
    return out;
  }

 private:
  struct Line {
    std::string text;
    int depth;
    Location at;
  };
  std::vector<Line> lines_;
  Location at_;
  int depth_ = 0;
};

}  // namespace palladium::cuda
