// Entries: what goes in comes out, and any other byte is found.
#include "cache/entry.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <string>

#include "palladium/error.hpp"

using namespace palladium;
using cache::decode;
using cache::encode;
using cache::Entry;
using cache::Parts;

namespace {

Entry softmax() {
  Entry entry;
  entry.key = cache::key_of({{"graph", "softmax"}});
  entry.toolchain = "0123456789abcdef";
  entry.metadata = {.kernel = "softmax",
                    .function = "softmax",
                    .arch = "sm_90a",
                    .nvrtc_major = 13,
                    .nvrtc_minor = 0,
                    .resources = {.registers = 38,
                                  .shared_bytes = 4224,
                                  .stack_bytes = 8,
                                  .spill_store_bytes = 1,
                                  .spill_load_bytes = 2,
                                  .barriers = 3,
                                  .warnings = {"(C7510) \"serialized\""}},
                    .built_at = 1'800'000'000,
                    .compile_ms = 61.25,
                    .location = "softmax.cpp:12",
                    .launch = R"({"threads": 128})",
                    .components = {{"arch", "sm_90a"}, {"body", "{ \"%0\"\n}\n"}, {"grid", ""}}};
  for (int i = 0; i < 97; ++i) entry.cubin.push_back(static_cast<std::byte>(i * 37));
  entry.ptx = ".version 9.0\n.target sm_90a\n";
  entry.source = "extern \"C\" __global__ void softmax() {}\n";
  return entry;
}

}  // namespace

TEST_CASE("an entry comes back as it was stored") {
  const Entry entry = softmax();
  std::string defect;
  const std::optional<Entry> back = decode(encode(entry), Parts::all, defect);
  REQUIRE(back);
  CHECK(back->key == entry.key);
  CHECK(back->toolchain == entry.toolchain);
  CHECK(back->metadata == entry.metadata);
  CHECK(back->cubin == entry.cubin);
  CHECK(back->ptx == entry.ptx);
  CHECK(back->source == entry.source);
}

TEST_CASE("the kernel alone is had without its texts") {
  std::string defect;
  const std::optional<Entry> back = decode(encode(softmax()), Parts::kernel, defect);
  REQUIRE(back);
  CHECK(back->cubin == softmax().cubin);
  CHECK(back->ptx.empty());
  CHECK(back->source.empty());
}

TEST_CASE("an entry without texts, launch attributes or a name is an entry") {
  Entry entry;
  entry.toolchain = "0000000000000000";
  std::string defect;
  const std::optional<Entry> back = decode(encode(entry), Parts::all, defect);
  REQUIRE(back);
  CHECK(back->metadata == entry.metadata);
  CHECK(back->cubin.empty());
}

TEST_CASE("every flipped bit and every other length of an entry is found") {
  const std::vector<std::byte> good = encode(softmax());
  std::string defect;
  for (std::size_t size = 0; size < good.size(); ++size) {
    defect.clear();
    CHECK_FALSE(decode(std::span(good).first(size), Parts::all, defect));
    CHECK_FALSE(defect.empty());
  }
  std::vector<std::byte> bad = good;
  bad.push_back({});
  CHECK_FALSE(decode(bad, Parts::all, defect));
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      bad = good;
      bad[at] ^= static_cast<std::byte>(1 << bit);
      defect.clear();
      CHECK_FALSE(decode(bad, Parts::kernel, defect));
      CHECK_FALSE(defect.empty());
    }
  }
}

TEST_CASE("what is wrong with an entry is said") {
  const std::vector<std::byte> good = encode(softmax());
  std::vector<std::byte> bad = good;
  std::string defect;
  SECTION("another file") {
    bad[1] = std::byte{'Q'};
    CHECK_FALSE(decode(bad, Parts::all, defect));
    CHECK(defect == "not a cache entry");
  }
  SECTION("a newer format") {
    bad[8] = std::byte{2};
    CHECK_FALSE(decode(bad, Parts::all, defect));
    CHECK(defect == "format 2, this library reads 1");
  }
  SECTION("a size that overflows when sizes are added") {
    std::memset(bad.data() + 64, 0xff, 16);
    CHECK_FALSE(decode(bad, Parts::all, defect));
    CHECK(defect.find("truncated or extended") == 0);
  }
  SECTION("content") {
    bad[bad.size() / 2] ^= std::byte{1};
    CHECK_FALSE(decode(bad, Parts::all, defect));
    CHECK(defect == "its digest does not match its content");
  }
}

TEST_CASE("a forged digest does not save malformed metadata or text") {
  const Entry entry = softmax();
  const std::vector<std::byte> good = encode(entry);
  const auto with_new_digest = [](std::vector<std::byte> bytes) {
    const cache::Digest check = cache::digest(std::span(bytes).first(bytes.size() - 32));
    std::memcpy(bytes.data() + bytes.size() - 32, check.bytes.data(), 32);
    return bytes;
  };
  std::string defect;
  std::vector<std::byte> bad = good;
  bad[112] = std::byte{'['};
  CHECK_FALSE(decode(with_new_digest(bad), Parts::all, defect));
  CHECK(defect == "unreadable metadata");
  // An announced text of 2^40 bytes must not be believed.
  bad = good;
  bad[88 + 5] = std::byte{1};
  CHECK_FALSE(decode(with_new_digest(bad), Parts::all, defect));
  CHECK(defect == "unreadable text");
  CHECK(decode(with_new_digest(bad), Parts::kernel, defect));
}

TEST_CASE("a path that is not UTF-8 does not keep a kernel from being stored") {
  Entry entry = softmax();
  entry.metadata.location = "caf\xe9.cpp:3";
  entry.metadata.components["lineinfo"] = "caf\xe9.cpp:3";
  std::string defect;
  const std::optional<Entry> back = decode(encode(entry), Parts::kernel, defect);
  REQUIRE(back);
  CHECK(back->metadata.location == "caf\xef\xbf\xbd.cpp:3");
  // What it was made of is then not told.
  CHECK(decode(encode(entry), Parts::all, defect)->metadata.components.empty());
}

TEST_CASE("an entry of no toolchain is our own mistake") {
  Entry entry = softmax();
  entry.toolchain = "13.0";
  CHECK_THROWS_AS(encode(entry), InternalError);
}
