// Prints what lowered::protocol_of says of each kernel that tests left where PALLADIUM_TEST_RECORD
// says, for each of some architectures: how many are of which verdict, what took
// longest, the fastest of three times, and each
// that is not good.
//
//   protocol_verdicts FOLDER [NAME...]    FOLDER/json-* and FOLDER/graph-*, or those of these
//   names,
//                                         with their lowered programs
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "codegen/cuda/lower.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/lowered/protocol.hpp"
#include "palladium/error.hpp"
#include "tests/support/graph_text.hpp"

namespace {

namespace fs = std::filesystem;
namespace lowered = palladium::lowered;
using Verdict = lowered::Protocol::Verdict;

constexpr int architectures[] = {80, 90, 100};

// Of a recorded graph the key follows in the last line.
palladium::graph::Graph graph_in(const fs::path& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (path.filename().string().starts_with("json-")) return palladium::graph::from_json(text);
  text.resize(text.find_last_of('\n', text.size() - 2) + 1);
  return palladium::test::graph_of(text);
}

class Verdicts {
 public:
  explicit Verdicts(bool shows) : shows_(shows) {}

  void add(const std::string& name, const palladium::graph::Graph& g) {
    for (const int cc : architectures) {
      lowered::Program l;
      try {
        l = palladium::cuda::lower(g, {.compute_capability = cc});
      } catch (const palladium::InternalError& e) {
        std::printf("%s for sm_%d: %s\n", name.c_str(), cc, e.what());
        ++refused_;
        continue;
      } catch (const palladium::Error&) {
        ++refused_;
        continue;
      }
      if (shows_) std::printf("%s", lowered::to_text(l).c_str());
      judge(name + " sm_" + std::to_string(cc), l);
    }
  }

  void print() const {
    std::printf("good %d, not explored %d, counterexample %d; not lowered %d\n", counts_[0],
                counts_[2], counts_[1], refused_);
    std::printf("with something asynchronous %d, mean %.3f ms; longest %.3f ms, %s\n",
                asynchronous_, asynchronous_ ? total_ / asynchronous_ : 0, longest_,
                slowest_.c_str());
  }

 private:
  void judge(const std::string& name, const lowered::Program& l) {
    lowered::Protocol p;
    std::chrono::duration<double, std::milli> ms{1e9};
    for (int n = 0; n < 3; ++n) {
      const auto begin = std::chrono::steady_clock::now();
      p = lowered::protocol_of(l);
      ms = std::min<std::chrono::duration<double, std::milli>>(
          ms, std::chrono::steady_clock::now() - begin);
    }
    ++counts_[static_cast<std::size_t>(p.verdict)];
    if (p.ways > 0) {
      ++asynchronous_;
      total_ += ms.count();
    }
    if (ms.count() > longest_) {
      longest_ = ms.count();
      slowest_ = name;
    }
    if (p.verdict == Verdict::good && !shows_) return;
    std::printf("%s: %s: %s (%lld ways, %lld happenings, %.3f ms)\n", name.c_str(),
                p.verdict == Verdict::counterexample ? "counterexample"
                : p.verdict == Verdict::good         ? "good"
                                                     : "not explored",
                p.why.c_str(), static_cast<long long>(p.ways), static_cast<long long>(p.happenings),
                ms.count());
    if (shows_) std::printf("%s", lowered::schedule(l).c_str());
  }

  bool shows_;
  std::array<int, 3> counts_ = {};
  int refused_ = 0, asynchronous_ = 0;
  double total_ = 0, longest_ = 0;
  std::string slowest_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) {
    std::fprintf(stderr, "usage: protocol_verdicts FOLDER [NAME...]\n");
    return 2;
  }
  const std::set<std::string> wanted(words.begin() + 1, words.end());
  std::vector<fs::path> paths;
  for (const fs::directory_entry& e : fs::directory_iterator(words[0])) {
    const std::string name = e.path().filename().string();
    const bool is_graph = name.starts_with("json-") || name.starts_with("graph-");
    if (is_graph && (wanted.empty() || wanted.contains(name))) paths.push_back(e.path());
  }
  std::sort(paths.begin(), paths.end());
  Verdicts verdicts(!wanted.empty());
  int unread = 0;
  for (const fs::path& path : paths) {
    try {
      verdicts.add(path.filename().string(), graph_in(path));
    } catch (const std::exception& error) {
      if (++unread <= 3) std::printf("%s: %s\n", path.filename().c_str(), error.what());
    }
  }
  if (unread > 0) std::printf("not read %d\n", unread);
  verdicts.print();
}
