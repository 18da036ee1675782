// Names of the user's in paths and in emitted text.
#include "codegen/base/names.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <string>

using palladium::file_name_of;
using palladium::identifier_of;

TEST_CASE("a name that a file can have stays in it") {
  for (const char* name : {"softmax", "soft-max_2.f32", "A"}) CHECK(file_name_of(name) == name);
}

TEST_CASE("no name leaves the folder it is written to") {
  using namespace std::string_literals;
  for (const std::string& name :
       {"../../x"s, "/etc/passwd"s, ".."s, "."s, ""s, "a\0/b"s, "two words"s, "\xc3\xa9t\xc3\xa9"s,
        "line\nend"s, "\xff\xfe"s, std::string(10'000, 'n'), "~"s, "$(x)"s}) {
    CAPTURE(name);
    const std::string file = file_name_of(name);
    CHECK_FALSE(file.empty());
    CHECK(file.size() <= 64);
    CHECK(file[0] != '.');
    CHECK(file.find_first_not_of(
              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == file.npos);
    const std::string identifier = identifier_of(name);
    CHECK_FALSE(identifier.empty());
    CHECK(identifier.size() <= 65);
    CHECK(identifier.find_first_not_of(
              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
          identifier.npos);
    CHECK_FALSE((identifier[0] >= '0' && identifier[0] <= '9'));
  }
  CHECK(identifier_of("2nd") == "k2nd");
}
