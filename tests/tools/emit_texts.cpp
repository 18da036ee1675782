// Prints the digest of the CUDA C++ that is emitted for each kernel that we ship, for random ones
// and for those that tests left where PALLADIUM_TEST_RECORD says, a line each and for each of some
// architectures; or the text of one of these lines. scripts/compare_texts compares two builds so.
//
//   emit_texts RANDOM [FOLDER]          so many random kernels; FOLDER/json-*
//   emit_texts RANDOM FOLDER|- NAME     the text of a line that begins with NAME
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/cuda/emit.hpp"
#include "codegen/graph/transform.hpp"
#include "palladium/ops/registry.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/random_graph.hpp"

namespace {

constexpr int architectures[] = {75, 80, 90, 100, 120};

std::string emitted(const pl::graph::Graph& g, int compute_capability) {
  try {
    const auto e = pl::cuda::emit(g, {.compute_capability = compute_capability});
    return pl::cuda::compiled_text(g, e);
  } catch (const pl::Error& e) {
    return std::string(e.what()) + '\n';
  }
}

std::uint64_t digest(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

class Texts {
 public:
  explicit Texts(std::string wanted) : wanted_(std::move(wanted)) {}

  void add(const std::string& name, const pl::graph::Graph& g) const {
    for (const int cc : architectures) {
      const std::string line = name + " sm_" + std::to_string(cc);
      if (wanted_.empty())
        std::printf("%s %016llx\n", line.c_str(),
                    static_cast<unsigned long long>(digest(emitted(g, cc))));
      else if (line == wanted_)
        std::printf("%s%s", pl::graph::to_text(g).c_str(), emitted(g, cc).c_str());
    }
  }

  /// Whether kernels of that name are printed at all.
  bool wants(const std::string& name) const { return wanted_.empty() || wanted_.starts_with(name); }

 private:
  std::string wanted_;
};

void add_shipped(const Texts& texts) {
  for (const pl::ops::Entry& entry : pl::ops::registry()) {
    if (!texts.wants(entry.name)) continue;
    const std::vector<pl::ArgType> types(entry.inputs.begin(), entry.inputs.end());
    texts.add(entry.name, pl::graph::from_json(entry.factory().lower(types).json()));
  }
}

// Each in one of the ways in which random kernels differ.
void add_random(const Texts& texts, int count) {
  for (int seed = 0; seed < count; ++seed) {
    const std::string name = "random-" + std::to_string(seed);
    if (!texts.wants(name + ' ')) continue;
    pl::test::RandomOptions options;
    options.max_elements = seed % 4 == 1 ? 8192 : 512;
    options.symbolic = seed % 4 != 2;
    options.elementary = options.aliases = seed % 4 == 3;
    texts.add(name, pl::test::random_kernel(static_cast<std::uint64_t>(seed), options).graph);
  }
}

void add_recorded(const Texts& texts, const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().filename().string().starts_with("json-")) files.push_back(file.path());
  std::ranges::sort(files);
  for (const std::filesystem::path& path : files) {
    const std::string name = path.filename().string();
    if (!texts.wants(name)) continue;
    std::ifstream file(path);
    const std::string json(std::istreambuf_iterator<char>(file), {});
    try {
      texts.add(name, pl::graph::from_json(json));
    } catch (const pl::Error&) {  // as of a grid that waits for its environment: no user has those
    }
  }
}

std::optional<int> number(std::string_view text) {
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 0) return {};
  return n;
}

}  // namespace

int main(int count, char** arguments) {
  const std::optional<int> random = count >= 2 && count <= 4 ? number(arguments[1]) : std::nullopt;
  if (!random) {
    std::fprintf(stderr, "usage: emit_texts RANDOM [FOLDER|- [NAME]]\n");
    return 2;
  }
  try {
    const Texts texts(count == 4 ? arguments[3] : "");
    add_shipped(texts);
    add_random(texts, *random);
    if (count > 2 && std::string_view(arguments[2]) != "-") add_recorded(texts, arguments[2]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "emit_texts: %s\n", e.what());
    return 1;
  }
}
