// Keys: complete, injective, and the same everywhere.
#include "cache/key.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "palladium/error.hpp"

using namespace palladium;
using cache::Field;
using cache::Key;
using cache::key_of;

TEST_CASE("the digest is SHA-256") {
  CHECK(cache::digest("").hex() ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(cache::digest("abc").hex() ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(cache::Hasher().add("a").add("").add("bc").finish() == cache::digest("abc"));
}

TEST_CASE("a key is the same on every machine and in every build") {
  // From hashlib over the documented bytes: lengths and numbers as 8 little-endian bytes.
  CHECK(key_of({{"arch", "sm_90a"}, {"graph", "g"}}).hex() ==
        "96aa3b2a6ffe416f0f2f1dbf0c9bbdcf70515915ee862ce97e0e7f754c76f3d8");
}

TEST_CASE("the order in which fields are given does not matter, their content does") {
  std::vector<Field> fields;
  std::vector<std::string> names;
  for (int i = 0; i < 48; ++i) names.push_back("field" + std::to_string(i));
  for (const std::string& name : names) fields.push_back({name, name});
  const Key key = key_of(fields);
  std::vector<Field> shuffled = fields;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(7));
  CHECK(key_of(shuffled) == key);

  std::set<Key> keys = {key};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    std::vector<Field> changed = fields;
    changed[i].bytes = "other";
    CHECK(keys.insert(key_of(changed)).second);
    changed = fields;
    changed[i].name = "renamed";
    CHECK(keys.insert(key_of(changed)).second);
    changed = fields;
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
    CHECK(keys.insert(key_of(changed)).second);
    changed = fields;
    changed[i].bytes = "";
    CHECK(keys.insert(key_of(changed)).second);
  }
}

TEST_CASE("a million ways to cut texts into fields share no key but that of the same fields") {
  struct Cut {
    Key key;
    std::uint64_t identity;  // the text's letters, and where it is cut
  };
  static_assert(std::has_unique_object_representations_v<Cut>);
  std::vector<Cut> cuts;
  std::minstd_rand random(11);
  constexpr std::size_t length = 16;
  for (int round = 0; round < 1'000'000; ++round) {
    const std::uint64_t letters = random() >> 8 & 0xffff;
    char text[length];
    for (std::size_t i = 0; i < length; ++i) text[i] = letters >> i & 1 ? 'b' : 'a';
    std::size_t at[6] = {0, 0, 0, 0, 0, length};
    for (int i = 1; i < 5; ++i) at[i] = random() % (length + 1);
    std::sort(at, at + 6);
    std::uint64_t identity = letters;
    for (int i = 1; i < 5; ++i) identity = identity * 32 + at[i];
    const auto piece = [&](int i) { return std::string_view(text + at[i], at[i + 1] - at[i]); };
    cuts.push_back(
        {key_of(
             {{"1", piece(0)}, {"2", piece(1)}, {"3", piece(2)}, {"4", piece(3)}, {"5", piece(4)}}),
         identity});
  }
  std::qsort(cuts.data(), cuts.size(), sizeof(Cut),
             [](const void* a, const void* b) { return std::memcmp(a, b, sizeof(Cut)); });
  std::size_t distinct = 1, collisions = 0;
  for (std::size_t i = 1; i < cuts.size(); ++i) {
    if (cuts[i].identity == cuts[i - 1].identity) continue;
    ++distinct;
    collisions += cuts[i].key == cuts[i - 1].key;
  }
  CHECK(collisions == 0);
  CHECK(distinct > 900'000);
}

TEST_CASE("a field that is given twice is our own mistake") {
  CHECK_THROWS_AS(key_of({{"arch", "a"}, {"graph", "g"}, {"arch", "b"}}), InternalError);
}

TEST_CASE("a key is read back from its digits, and from nothing else") {
  const Key key = key_of({{"a", "b"}});
  CHECK(cache::parse_key(key.hex()) == key);
  CHECK_FALSE(cache::parse_key(key.hex().substr(1)));
  CHECK_FALSE(cache::parse_key(key.hex() + "0"));
  std::string upper = key.hex();
  upper[0] = 'A';
  CHECK_FALSE(cache::parse_key(upper));
  upper[0] = 'g';
  CHECK_FALSE(cache::parse_key(upper));
}
