// Entries of every format that ever was: read, or missed without harm; those of later formats are
// somebody else's.
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "cache/store.hpp"
#include "cache/store_names.hpp"
#include "tests/support/captured_stderr.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/paths.hpp"

using namespace palladium;
using cache::Entry;
using cache::Store;
using test::Folder;

namespace {

/// What tests/cache/entries holds, in each format as the library of its time wrote it.
Entry golden() {
  Entry entry;
  entry.key = cache::key_of({{"graph", "golden"}});
  entry.toolchain = "0123456789abcdef";
  entry.metadata = {.kernel = "golden",
                    .function = "golden_kernel",
                    .arch = "sm_90a",
                    .nvrtc_major = 13,
                    .nvrtc_minor = 0,
                    .resources = {.registers = 38,
                                  .shared_bytes = 4196,
                                  .stack_bytes = 8,
                                  .spill_store_bytes = 12,
                                  .spill_load_bytes = 16,
                                  .barriers = 1,
                                  .warnings = {"12 bytes of registers are spilled"}},
                    .built_at = 1'700'000'000,
                    .compile_ms = 61.5,
                    .location = "golden.cpp:12",
                    .launch = R"({"threads":128})",
                    .components = {{"arch", "sm_90a"}, {"body", "{\n}\n"}}};
  for (int i = 0; i < 500; ++i) entry.cubin.push_back(static_cast<std::byte>(i * 7));
  for (int i = 0; i < 20; ++i) entry.ptx += "add.f32 %f" + std::to_string(i) + ", %f1, %f2;\n";
  entry.source = "extern \"C\" __global__ void golden_kernel() {}\n";
  return entry;
}

std::string golden_path(std::uint32_t format) {
  return test::source_dir() + "/tests/cache/entries/format_" + std::to_string(format) + ".k";
}

std::string place_of(const Entry& entry, const std::string& base) {
  return base + "/" + entry.key.hex().substr(0, 2) + "/" +
         cache::names::entry_name(entry.key, entry.toolchain);
}

}  // namespace

TEST_CASE("an entry of each format that ever was is read, or missed and left to be replaced") {
  const Entry expected = golden();
  for (std::uint32_t format = 1; format <= cache::entry_format; ++format) {
    INFO("format " << format);
    const Folder folder;
    const Store store(folder.path());
    // Makes the folders.
    REQUIRE(store.publish(expected));
    const std::string bytes = test::text_of(golden_path(format));
    REQUIRE(files::publish(place_of(expected, folder / "v1"), bytes));
    const test::CapturedStderr log;
    const auto found = store.find(expected.key, expected.toolchain, cache::Parts::all);
    CHECK(found.has_value() == (format == cache::entry_format));
    if (!found) continue;
    CHECK(found->metadata == expected.metadata);
    CHECK(found->cubin == expected.cubin);
    CHECK(found->ptx == expected.ptx);
    CHECK(found->source == expected.source);
    CHECK(log.text().empty());
  }
}

TEST_CASE("what a later format keeps is not touched, whatever an older library does") {
  const Folder folder;
  const Store store(folder.path(), {.most_files = 1});
  const Entry entry = golden();
  REQUIRE(store.publish(entry));
  // A format of its own means a folder of its own.
  CHECK(cache::names::layout_folder == "/v" + std::to_string(cache::entry_format));
  const std::string later = folder / ("v" + std::to_string(cache::entry_format + 1));
  const std::string path = place_of(entry, later);
  REQUIRE(files::make_directories(files::directory_of(path)));
  REQUIRE(files::publish(path, "an entry of the next format"));
  REQUIRE(files::publish(later + "/.left.1.2.3.tmp", "its temporary file"));

  const test::CapturedStderr log;
  CHECK(store.find(entry.key, entry.toolchain));
  CHECK(store.list().size() == 1);
  store.sweep();
  CHECK(store.clear().entries == 1);
  CHECK(store.publish(entry));
  CHECK(test::text_of(path) == "an entry of the next format");
  CHECK(files::exists(later + "/.left.1.2.3.tmp"));
  CHECK(log.text().empty());
}

TEST_CASE(
    "a later format under a name of ours is missed, and its file stays until it is replaced") {
  const Folder folder;
  const Store store(folder.path());
  const Entry entry = golden();
  REQUIRE(store.publish(entry));
  const std::string path = place_of(entry, folder / "v1");
  std::string bytes = test::text_of(path);
  bytes[8] = static_cast<char>(cache::entry_format + 1);
  REQUIRE(files::publish(path, bytes));
  const test::CapturedStderr log;
  CHECK_FALSE(store.find(entry.key, entry.toolchain));
  CHECK_FALSE(store.find_any(entry.key, 20));
  store.sweep();
  CHECK(test::text_of(path) == bytes);
  CHECK(log.text().find("format 2, this library reads 1") != std::string::npos);
}
