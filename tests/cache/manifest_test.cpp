// Manifests: what is written is read, by whoever and however many wrote it, and damage is reported.
#include "cache/manifest.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <set>
#include <thread>

#include "tests/support/captured_stderr.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/process.hpp"

using namespace palladium;
using cache::Manifest;
using cache::ManifestWriter;
using cache::Record;
using test::CapturedStderr;
using test::fail_with;
using test::Folder;
using test::ReplacedFiles;

namespace {

Record record_of(const std::string& kernel, const std::string& arch = "sm_90a",
                 std::size_t graph_bytes = 20) {
  return {.id = cache::digest(kernel),
          .arch = arch,
          .kernel = kernel,
          .arguments = {"f32[m,1000]", "i32"},
          .location = "soft\"max.cpp:12",
          .graph = "{\"insts\":[\"" + std::string(graph_bytes, 'x') + "\"]}"};
}

Manifest read(const std::string& path) {
  Manifest manifest;
  REQUIRE(cache::read_manifest(path, manifest));
  return manifest;
}

std::set<std::string> kernels_in(const Manifest& manifest) {
  std::set<std::string> names;
  for (const Record& r : manifest.records) names.insert(r.kernel + " " + r.arch);
  return names;
}

}  // namespace

TEST_CASE("a record survives its line, which is one line of JSON") {
  const Record record = record_of("softmax\n\"quoted\"");
  const std::string line = cache::to_line(record);
  CHECK(line.starts_with("{\"palladium_manifest\":1,\"id\":\""));
  CHECK(line.find('\n') == line.size() - 1);
  std::string defect;
  CHECK(cache::from_line(line, defect) == record);
}

TEST_CASE("a line that is not exactly what was written is a defect with its reason") {
  const std::string good = cache::to_line(record_of("softmax"));
  const auto defect_of = [](const std::string& line) {
    std::string defect;
    CHECK_FALSE(cache::from_line(line, defect));
    return defect;
  };
  for (std::size_t size = 0; size + 2 < good.size(); ++size) {
    const std::string why = defect_of(good.substr(0, size));
    if (why != "it is cut short or no JSON object") FAIL(size << ": " << why);
  }
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string line = good;
    return line.replace(line.find(from), from.size(), to);
  };
  CHECK(defect_of(with("xx", "xy")) == "its digest does not match its graph");
  CHECK(defect_of(with("manifest\":1", "manifest\":2")) == "version 2, this library reads 1");
  CHECK(defect_of(with("manifest\":1", "manifest\":\"1\"")) == "it is no line of a manifest");
  CHECK_FALSE(defect_of(with("\"arch\":\"sm_90a\"", "\"arch\":7")).empty());
  CHECK_FALSE(defect_of(with("\"arch\"", "\"ark\"")).empty());
  CHECK(defect_of("[]") == "it is cut short or no JSON object");
  CHECK(defect_of(std::string(100'000, '[')) == "it is cut short or no JSON object");
}

TEST_CASE("a kernel stands in a manifest once for each architecture, whoever adds it") {
  const Folder folder;
  const std::string path = folder / "kernels.json";
  ManifestWriter first(path), second(path);
  for (int i = 0; i < 2; ++i) {
    first.add(record_of("softmax"));
    second.add(record_of("softmax"));
    second.add(record_of("softmax", "sm_80"));
    first.add(record_of("blur"));
  }
  ManifestWriter(path).add(record_of("softmax"));
  CHECK(first.has(cache::digest("blur"), "sm_90a", true));
  CHECK_FALSE(first.has(cache::digest("blur"), "sm_80", false));
  const Manifest manifest = read(path);
  CHECK(manifest.damages.empty());
  REQUIRE(manifest.records.size() == 3);
  CHECK(manifest.records[1].line == 2);
  const std::string text = test::text_of(path);
  CHECK(std::ranges::count(text, '\n') == 3);
}

TEST_CASE("a kernel that could be called stands in a manifest again once it is, and is one then") {
  const Folder folder;
  const std::string path = folder / "kernels.json";
  Record reachable = record_of("softmax");
  reachable.reached = false;
  std::string defect;
  CHECK(cache::from_line(cache::to_line(reachable), defect) == reachable);
  ManifestWriter writer(path);
  for (int i = 0; i < 2; ++i) writer.add(reachable);
  CHECK(writer.has(reachable.id, "sm_90a", false));
  CHECK_FALSE(writer.has(reachable.id, "sm_90a", true));
  REQUIRE(read(path).records.size() == 1);
  CHECK_FALSE(read(path).records[0].reached);
  ManifestWriter(path).add(record_of("softmax"));
  for (int i = 0; i < 2; ++i) writer.add(reachable);
  REQUIRE(read(path).records.size() == 1);
  CHECK(read(path).records[0].reached);
  CHECK(std::ranges::count(test::text_of(path), '\n') == 2);
}

TEST_CASE("a line that a crash cut short costs that line, and the next is whole") {
  const Folder folder;
  const std::string path = folder / "kernels.json";
  const std::string torn = cache::to_line(record_of("torn"));
  ManifestWriter writer(path);
  writer.add(record_of("softmax"));
  REQUIRE(files::append(path, torn.substr(0, torn.size() / 2)));
  writer.add(record_of("blur"));
  ManifestWriter(path).add(record_of("add"));
  const Manifest manifest = read(path);
  CHECK(kernels_in(manifest) ==
        std::set<std::string>{"softmax sm_90a", "blur sm_90a", "add sm_90a"});
  REQUIRE(manifest.damages.size() == 1);
  CHECK(manifest.damages[0].line == 2);
  CHECK(manifest.damages[0].defect == "it is cut short or no JSON object");
}

TEST_CASE("many processes and threads add to one manifest and nothing is lost or mixed") {
  const Folder folder;
  const std::string path = folder / "kernels.json";
  constexpr int processes = 4, threads = 3, each = 12;
  std::vector<process::Child> children;
  for (int p = 0; p < processes; ++p) {
    children.push_back(test::forked([&, p] {
      ManifestWriter writer(path);
      std::vector<std::thread> running;
      for (int t = 0; t < threads; ++t)
        running.emplace_back([&, t] {
          // A third is everybody's, the rest its own; lines are larger than a page.
          for (int i = 0; i < each; ++i)
            writer.add(record_of(
                i % 3 == 0 ? "all" + std::to_string(i)
                           : std::to_string(p) + "." + std::to_string(t) + "." + std::to_string(i),
                "sm_90a", 9000));
        });
      for (std::thread& thread : running) thread.join();
      return 0;
    }));
  }
  for (process::Child& child : children) CHECK(child.wait().is_good());
  const Manifest manifest = read(path);
  CHECK(manifest.damages.empty());
  CHECK(kernels_in(manifest).size() == processes * threads * each * 2 / 3 + each / 3);
}

TEST_CASE("a manifest that cannot be written is one log line and no error") {
  const Folder folder;
  const std::string path = folder / "kernels.json";
  static int countdown, error;
  for (const int failure : {ENOSPC, EIO, EROFS, EACCES, EDQUOT, EMFILE}) {
    for (int k = 0;; ++k) {
      (void)files::remove(path);
      ManifestWriter(path).add(record_of("before"));
      const CapturedStderr log;
      ManifestWriter writer(path);
      bool undisturbed;
      {
        ReplacedFiles calls;
        calls->open = [](const char* name, int flags, mode_t mode) {
          return countdown-- == 0 ? fail_with(error) : ::open(name, flags, mode);
        };
        calls->pread = [](int d, void* bytes, std::size_t count, off_t offset) -> ssize_t {
          return countdown-- == 0 ? fail_with(error) : ::pread(d, bytes, count, offset);
        };
        calls->write = [](int d, const void* bytes, std::size_t count) -> ssize_t {
          return countdown-- == 0 ? ::write(d, bytes, count / 2) : ::write(d, bytes, count);
        };
        calls->close = [](int d) {
          const int result = ::close(d);
          return countdown-- == 0 ? fail_with(error) : result;
        };
        calls->stat = [](const char* name, struct stat* status) {
          return countdown-- == 0 ? fail_with(error) : ::stat(name, status);
        };
        countdown = k;
        error = failure;
        writer.add(record_of("softmax"));
        undisturbed = countdown >= 0;
      }
      writer.add(record_of("blur"));
      const std::string said = log.text();
      const auto names = kernels_in(read(path));
      CHECK(names.contains("before sm_90a"));
      CHECK(names.contains("blur sm_90a"));
      if (!undisturbed)
        CHECK(said.find("kernels.json' does not get all kernels: ") ==
              said.rfind("kernels.json' does not get all kernels: "));
      if (undisturbed) {
        CHECK(names.contains("softmax sm_90a"));
        CHECK(said.empty());
        CHECK(k > 5);
        break;
      }
    }
  }
}
