// The commands that look after the cache as a whole, and the one that says why a kernel is missed.
#include <set>

#include "tests/cli/npy_file.hpp"
#include "tests/cli/tool.hpp"

using namespace palladium::test;

namespace {

struct Warmed {
  Warmed() {
    REQUIRE(palladium({"warm", "matmul", "softmax", "blur", "--arch", "sm_90a"}).status == 0);
  }
  std::string path_of(int entry) const {
    return palladium.json({"cache", "list"}).at("entries")[entry].at("path");
  }
  void damage(int entry) const {
    const std::string path = path_of(entry);
    std::string bytes = text_of(path);
    bytes[bytes.size() / 2] ^= 1;
    REQUIRE(palladium::files::publish(path, bytes));
  }

  const Tool palladium;
};

}  // namespace

TEST_CASE_METHOD(Warmed, "stats count the entries, their bytes, and what is allowed") {
  damage(0);
  const Json stats = palladium.json(
      {"cache", "stats"}, {{"PALLADIUM_CACHE_SIZE", "3"}, {"PALLADIUM_CACHE_FILES", "9"}});
  CHECK(stats.at("root") == palladium.cache());
  CHECK(stats.at("entries") == 5);
  CHECK(stats.at("unusable") == 1);
  CHECK(stats.at("most_bytes") == 3 << 20);
  CHECK(stats.at("most_entries") == 9);
  CHECK(stats.at("bytes") > 1000);
  CHECK_THAT(palladium({"cache", "stats"}).out,
             ContainsSubstring("5 of at most 200000 kernels, 1 of"));
}

TEST_CASE_METHOD(Warmed, "verify finds each defect, and its exit status tells") {
  const Json good = palladium.json({"cache", "verify"});
  CHECK(good.at("entries") == 5);
  CHECK(good.at("recompiled") == 0);
  CHECK(good.at("defects").empty());
  const std::string damaged = path_of(1);
  damage(1);
  const Json bad = palladium.json({"cache", "verify"}, {}, 1);
  REQUIRE(bad.at("defects").size() == 1);
  CHECK(bad.at("defects")[0].at("path") == damaged);
  CHECK_THAT(bad.at("defects")[0].at("defect").get<std::string>(), ContainsSubstring("digest"));
}

TEST_CASE_METHOD(Warmed, "verify compiles a share of the entries again and compares the bytes") {
  CHECK(palladium.json({"cache", "verify", "--recompile", "100%"}).at("recompiled") == 5);
  CHECK(palladium.json({"cache", "verify", "--recompile", "5%"}).at("recompiled") == 1);
  CHECK(palladium.json({"cache", "verify", "--recompile", "0"}).at("recompiled") == 0);
  for (const char* wrong : {"101%", "-1", "many", "5%%"})
    check_error(palladium({"cache", "verify", std::string("--recompile=") + wrong}), 1,
                "takes a share such as 5%");
}

TEST_CASE_METHOD(Warmed, "prune brings the cache within its bounds, clear empties it") {
  CHECK(palladium.json({"cache", "prune"}).at("entries") == 0);
  CHECK(palladium.json({"cache", "prune"}, {{"PALLADIUM_CACHE_FILES", "2"}}).at("entries") == 3);
  CHECK(palladium.json({"cache", "list"}).at("entries").size() == 2);
  CHECK_THAT(palladium({"cache", "clear"}).out, StartsWith("2 kernels, "));
  CHECK(palladium.json({"cache", "list"}).at("entries").empty());
  CHECK(palladium.json({"cache", "clear"}).at("entries") == 0);
}

TEST_CASE_METHOD(Warmed, "explain names exactly the parts of the key that differ") {
  const Json other_arch = palladium.json({"cache", "explain", "softmax", "--arch", "sm_80"});
  REQUIRE(other_arch.at("differences").size() == 1);
  CHECK(other_arch.at("differences")[0].at("component") == "arch");
  CHECK(other_arch.at("differences")[0].at("first") == "sm_80");
  CHECK(other_arch.at("differences")[0].at("second") == "sm_90a");
  CHECK(palladium.json({"cache", "explain", "softmax", "--arch", "sm_90a"})
            .at("differences")
            .empty());

  const Json list = palladium.json({"cache", "list"}).at("entries");
  const std::string first = list[0].at("key"), second = list[2].at("key");
  const Json both = palladium.json({"cache", "explain", first.substr(0, 12), second});
  CHECK(both.at("first") == first);
  CHECK(both.at("second") == second);
  std::set<std::string> components;
  for (const Json& d : both.at("differences")) components.insert(d.at("component"));
  CHECK(components.contains("name"));
  CHECK(components.contains("body"));
  CHECK_FALSE(components.contains("arch"));
  CHECK_FALSE(components.contains("text"));
  CHECK_FALSE(components.contains("graph"));
  CHECK_THAT(palladium({"cache", "explain", "softmax", "--arch", "sm_80"}).out,
             ContainsSubstring("arch\n  first   sm_80\n  second  sm_90a\n"));
  check_error(palladium({"cache", "explain", "sofmax"}), 1, "no shipped kernel is named 'sofmax'");
}

TEST_CASE("processes that need one kernel at once compile it once") {
  const Tool palladium;
  std::string script;
  for (int i = 0; i < 6; ++i)
    script += "'" + binary_dir() + "/palladium' warm blur --arch sm_90a & ";
  const Finished all = run_program(
      {"/bin/sh", "-c", script + "wait"},
      {{"PALLADIUM_CACHE_DIR", palladium.cache()}, {"PALLADIUM_LIBCUDA", "no-such-libcuda.so.1"}});
  INFO(all.out << all.err);
  CHECK(all.status == 0);
  const auto count = [&](const std::string& words) {
    int found = 0;
    for (std::size_t at = 0; (at = all.out.find(words, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  CHECK(count("1 compiled, 0 hits") == 1);
  CHECK(count("0 compiled, 1 hits") == 5);
}

TEST_CASE("events are JSON lines where that is asked for") {
  const Tool palladium;
  const std::vector<Variable> json = {{"PALLADIUM_LOG", "info"}, {"PALLADIUM_LOG_FORMAT", "json"}};
  const auto events = [&] {
    std::vector<Json> found;
    const std::string said = palladium({"warm", "blur", "--arch", "sm_90a"}, json).err;
    for (std::size_t at = 0; at < said.size();) {
      const std::size_t end = std::min(said.find('\n', at), said.size());
      if (said[at] == '{') found.push_back(Json::parse(said.substr(at, end - at)));
      at = end + 1;
    }
    return found;
  };
  const std::vector<Json> first = events(), second = events();
  REQUIRE(first.size() == 1);
  CHECK(first[0].at("event") == "miss");
  CHECK(first[0].at("kernel") == "blur");
  CHECK(first[0].at("level") == "info");
  CHECK(first[0].at("nvrtc_ms") > 0);
  REQUIRE(second.size() == 1);
  CHECK(second[0].at("event") == "hit");
  CHECK(second[0].at("key") == first[0].at("key"));
  CHECK(second[0].at("nvrtc_ms") == 0);
  const std::string path = palladium.json({"cache", "list"}).at("entries")[0].at("path");
  REQUIRE(palladium::files::publish(path, "\"?"));
  const std::vector<Json> third = events();
  REQUIRE(third.size() == 2);
  CHECK(third[0].at("event") == "refuse");
  CHECK(third[0].at("path") == path);
  CHECK(third[1].at("event") == "miss");
  for (const Json& each : {first[0], second[0], third[1]})
    for (const char* time : {"trace_ms", "find_ms", "lower_ms", "nvrtc_ms"})
      CHECK(each.at(time).is_number());

  // Room for one: whoever stores another may evict, and prune does.
  std::vector<Variable> small = json;
  small.emplace_back("PALLADIUM_CACHE_FILES", "1");
  REQUIRE(palladium({"warm", "blur", "--arch", "sm_90a,sm_80"}).status == 0);
  const std::string pruned = palladium({"cache", "prune"}, small).err;
  const Json evict = Json::parse(pruned.substr(0, pruned.find('\n')));
  CHECK(evict.at("event") == "evict");
  CHECK(evict.at("entries") == 1);
  CHECK(evict.at("bytes") > 0);
}
