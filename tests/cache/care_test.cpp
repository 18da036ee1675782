// What a program can ask of the cache: what it has done, what keys are made of, and whether an
// entry is what its source compiles to.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <set>
#include <string>

#include "cache/store.hpp"
#include "palladium/palladium.hpp"
#include "runtime/build/program.hpp"
#include "tests/support/captured_stderr.hpp"
#include "tests/support/folder.hpp"

using namespace palladium;
using pl::_;
using test::Environment;
using test::Folder;

namespace {

struct Fixture {
  Folder folder;
  Environment root{"PALLADIUM_CACHE_DIR", folder.path()};
};

const ShapeDtype operand{{128}, f32};

Lowered scaled(const PallasCallOptions& options, float factor = 2,
               const ShapeDtype& type = operand) {
  return pallas_call([=](Ref x, Ref o) { o[_] = x[_] * factor; }, options).lower(type);
}

/// The names of the parts in which the keys of two kernels differ.
std::set<std::string> differing(const Lowered& a, const Lowered& b,
                                const std::string& arch = "sm_90a") {
  const auto first = a.key_components({.arch = "sm_90a"}),
             second = b.key_components({.arch = arch});
  std::set<std::string> names;
  for (const auto& part : first)
    if (std::ranges::count(second, part) == 0) names.insert(part.first);
  for (const auto& part : second)
    if (std::ranges::count(first, part) == 0) names.insert(part.first);
  return names;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "the cache counts what it does for a process") {
  const CacheStats before = cache_stats();
  const Lowered kernel = scaled({.name = "k", .out_type = operand});
  (void)kernel.compile({.arch = "sm_90a"});
  (void)kernel.compile({.arch = "sm_90a"});
  {
    const test::CapturedStderr quiet;
    REQUIRE(files::publish(cache_entries().at(0).path, "damaged"));
    (void)kernel.compile({.arch = "sm_90a"});
  }
  const CacheStats after = cache_stats();
  CHECK(after.hits - before.hits == 1);
  CHECK(after.misses - before.misses == 2);
  CHECK(after.refused - before.refused == 1);
  CHECK(after.stored - before.stored == 2);
  CHECK(after.not_stored == before.not_stored);
}

TEST_CASE("each input of a key shows in the part that is named like it, and in no other") {
  const Lowered base = scaled({.name = "k", .out_type = operand});
  CHECK(differing(base, scaled({.name = "k", .out_type = operand})).empty());
  CHECK(differing(base, base, "sm_80") == std::set<std::string>{"arch"});
  CHECK(differing(base, scaled({.name = "l", .out_type = operand})) ==
        std::set<std::string>{"name", "graph"});
  CHECK(differing(base, scaled({.name = "k", .out_type = operand}, 3)) ==
        std::set<std::string>{"body", "graph"});
  const auto grid = differing(base, scaled({.name = "k", .out_type = operand, .grid = {2}}));
  CHECK(grid.contains("grid"));
  CHECK_FALSE(grid.contains("name"));
  const ShapeDtype longer{{256}, f32};
  const auto type = differing(base, scaled({.name = "k", .out_type = longer}, 2, longer));
  CHECK(type.contains("args[0].shape"));
  CHECK(type.contains("outputs[0].shape"));
  CHECK_FALSE(type.contains("args[0].dtype"));
  CHECK_FALSE(type.contains("arch"));
  CHECK(differing(
            base,
            scaled({.name = "k", .out_type = operand, .compiler_params = {.approx_math = true}})) ==
        std::set<std::string>{"approx_math", "graph"});
}

TEST_CASE_METHOD(Fixture, "an entry keeps what its key was made of") {
  const Lowered kernel = scaled({.name = "k", .out_type = operand});
  (void)kernel.compile({.arch = "sm_90a"});
  const auto entries = cache_entries();
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].components == kernel.key_components({.arch = "sm_90a"}));
}

TEST_CASE_METHOD(Fixture, "an entry whose source compiles to other bytes is found by compiling") {
  (void)scaled({.name = "k", .out_type = operand}).compile({.arch = "sm_90a"});
  const CacheEntry listed = cache_entries().at(0);
  CHECK(verify_cache_entry(listed, true).empty());
  const cache::Store store = runtime::store();
  auto entry = *store.load(store.list().at(0));
  const auto publish_with = [&](const auto& change) {
    auto changed = entry;
    change(changed);
    REQUIRE(store.publish(changed));
  };
  publish_with([](cache::Entry& e) { e.cubin[e.cubin.size() / 2] ^= std::byte{1}; });
  CHECK(verify_cache_entry(listed).empty());  // whole, and what somebody stored
  CHECK(verify_cache_entry(listed, true) == "its source compiles to other bytes now");
  publish_with([](cache::Entry& e) { e.source = "nonsense"; });
  CHECK(verify_cache_entry(listed, true) == "its source does not compile any more");
  // What another Palladium stored cannot be compared.
  publish_with([](cache::Entry& e) {
    e.source = "nonsense";
    e.metadata.components["text"] = "sha256:0123456789abcdef";
  });
  CHECK(verify_cache_entry(listed, true).empty());
  REQUIRE(store.remove(entry.key, entry.toolchain));
  CHECK(verify_cache_entry(listed) == "it is gone");
}
