// The programs in pages of the documentation (pages.cmake makes functions of them).
#pragma once

#include <span>
#include <string>
#include <vector>

namespace palladium::test {

/// A page that is run: compares what its programs print with what stands behind them.
class Page {
 public:
  explicit Page(const std::string& file);
  ~Page();
  /// The program whose first line is this has run, and printed what is on stdout since the last
  /// one. Runs the commands that follow it on the page; of line 0, those that stand before all.
  void ran(int line);
  /// What does not fit, as sentences.
  std::vector<std::string> finish();

 private:
  struct State;
  State* state_;
};

/// What stands on a page where nothing would check it.
std::vector<std::string> misplaced(const std::string& file);

struct PageProgram {
  const char* file;
  void (*run)(Page&);
};
std::span<const PageProgram> page_programs();

}  // namespace palladium::test
