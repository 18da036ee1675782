// `palladium cache`: what is in it, and one entry of it.
#include "tests/cli/tool.hpp"

using namespace palladium::test;

TEST_CASE("an empty cache is listed as such") {
  const Tool palladium;
  const Finished text = palladium({"cache", "list"});
  CHECK(text.status == 0);
  CHECK(text.out.empty());
  CHECK_THAT(text.err, ContainsSubstring("0 kernels in " + palladium.cache()));
  const Json list = palladium.json({"cache", "list"});
  CHECK(list.at("root") == palladium.cache());
  CHECK(list.at("entries").empty());
}

TEST_CASE("the cache lists and shows what was compiled") {
  const Tool palladium;
  const Json warmed = palladium.json({"warm", "matmul", "softmax", "--arch", "sm_90a,sm_75"});
  const std::string key = warmed.at("kernels")[4].at("key");  // softmax for sm_90a

  const Json list = palladium.json({"cache", "list"});
  REQUIRE(list.at("entries").size() == 8);
  const Finished text = palladium({"cache", "list"});
  for (const Json& entry : list.at("entries")) {
    CHECK(entry.at("usable") == true);
    CHECK_THAT(text.out, ContainsSubstring(entry.at("key").get<std::string>().substr(0, 12)));
    CHECK_THAT(entry.at("path").get<std::string>(), StartsWith(palladium.cache()));
  }

  const Json entry = palladium.json({"cache", "show", key.substr(0, 12)});
  CHECK(entry.at("key") == key);
  CHECK(entry.at("kernel") == "softmax");
  CHECK(entry.at("arch") == "sm_90a");
  CHECK(entry.at("toolchain").get<std::string>().size() == 16);
  CHECK(entry.at("bytes") > 1000);
  CHECK_THAT(entry.at("location").get<std::string>(), StartsWith("softmax.cpp:"));
  CHECK_THAT(entry.at("built_at").get<std::string>(), StartsWith("20"));
  CHECK(entry.at("resources") ==
        palladium.json({"show", "softmax", "--resources"}).at("resources"));
  CHECK(!entry.contains("ptx"));

  const Finished described = palladium({"cache", "show", key});
  CHECK(described.status == 0);
  for (const std::string& part : {key, std::string("softmax"), std::string("registers")})
    CHECK_THAT(described.out, ContainsSubstring(part));
}

TEST_CASE("the cache shows source and PTX of an entry, without an NVRTC") {
  const Tool palladium;
  const std::string ptx = palladium({"show", "matmul", "--ptx"}).out;
  const std::string cuda = palladium({"show", "matmul", "--cuda"}).out;
  const std::string key = palladium.json({"cache", "list"}).at("entries")[0].at("key");
  CHECK(palladium({"cache", "show", key, "--ptx"}, {no_nvrtc}).out == ptx);
  CHECK(palladium({"cache", "show", key, "--cuda"}, {no_nvrtc}).out == cuda);
  const Json both = palladium.json({"cache", "show", key, "--cuda", "--ptx"}, {no_nvrtc});
  CHECK(both.at("cuda") == cuda);
  CHECK(both.at("ptx") == ptx);
}

TEST_CASE("a key must be known and tell entries apart") {
  const Tool palladium;
  palladium.json({"warm", "matmul", "--arch", "sm_90a,sm_80"});
  check_error(palladium({"cache", "show", "zz"}), 1, "has a key that begins with 'zz'");
  const Finished several = palladium({"cache", "show", ""});
  check_error(several, 1, "several kernels in the cache begin with ''");
  for (const Json& entry : palladium.json({"cache", "list"}).at("entries"))
    CHECK_THAT(several.err, ContainsSubstring(entry.at("key").get<std::string>()));
}

TEST_CASE("a damaged entry is listed as unusable, and not shown") {
  const Tool palladium;
  palladium.json({"warm", "blur"});
  const Json entry = palladium.json({"cache", "list"}).at("entries")[0];
  const std::string path = entry.at("path"), key = entry.at("key");
  std::string bytes = text_of(path);
  bytes[bytes.size() / 2] ^= 1;
  REQUIRE(palladium::files::publish(path, bytes));

  CHECK(palladium.json({"cache", "list"}).at("entries")[0].at("usable") == false);
  const Finished listed = palladium({"cache", "list"});
  CHECK(listed.status == 0);
  CHECK(listed.out == key.substr(0, 12) + "  unusable\n");
  CHECK_THAT(listed.err, ContainsSubstring(path));
  check_error(palladium({"cache", "show", key}), 1, path + " cannot be used");
}

TEST_CASE("a cache without a place is empty") {
  const Tool palladium;
  const std::vector<Variable> nowhere = {
      {"PALLADIUM_CACHE_DIR", ""}, {"XDG_CACHE_HOME", ""}, {"HOME", ""}};
  CHECK(palladium.json({"cache", "list"}, nowhere).at("entries").empty());
  CHECK_THAT(palladium({"cache", "list"}, nowhere).err, ContainsSubstring("no place for a cache"));
}
