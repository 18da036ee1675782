// Whom a cache may come from: every owner and mode, and a real second user where there is one.
#include "cache/trust.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <string>
#include <vector>

#include "cache/store.hpp"
#include "tests/support/captured_stderr.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/process.hpp"

using namespace palladium;
using cache::distrust_of_entry;
using cache::distrust_of_folder;
using cache::Entry;
using cache::Sharing;
using cache::Store;
using test::Folder;

namespace {

/// Users that own nothing and run nothing else: above what is given to people, below `nobody`.
uid_t unused_user(int number) {
  for (uid_t user = 60100;; ++user)
    if (::getpwuid(user) == nullptr && number-- == 0) return user;
}
const uid_t nobody = unused_user(0), somebody = unused_user(1);
const gid_t nobodys_group = nobody, somebodys_group = somebody;
const std::string ours = "0123456789abcdef";

files::Info info_of(std::uint32_t owner, std::uint32_t group, std::uint32_t mode) {
  return {.owner = owner, .group = group, .mode = mode, .is_directory = true};
}

Entry entry_of(const std::string& name) {
  Entry entry;
  entry.key = cache::key_of({{"graph", name}});
  entry.toolchain = ours;
  entry.metadata.kernel = name;
  entry.cubin.assign(100, std::byte{7});
  return entry;
}

/// What `body` returns, in a process of that user without root's rights.
int as_user(uid_t user, gid_t group, const std::function<int()>& body) {
  return test::status_of_fork([&] {
    if (::setgroups(0, nullptr) != 0 || ::setresgid(group, group, group) != 0 ||
        ::setresuid(user, user, user) != 0)
      return 99;
    ::umask(022);
    return body();
  });
}

/// Runs a hidden test case of this file as root, who alone can become two other users.
void as_root(const std::string& name) {
  std::vector<std::string> command(1), sudo = {"/usr/bin/env", "sudo", "-n"};
  REQUIRE(files::resolve("/proc/self/exe", command[0]));
  command.push_back("HIDDEN " + name);
  if (::geteuid() != 0) {
    sudo.push_back("true");
    if (test::run_program(sudo).status != 0) SKIP("needs root, or sudo without a password");
    command.insert(command.begin(), sudo.begin(), sudo.end() - 1);
  }
  const test::Finished done = test::run_program(command);
  INFO(done.out << done.err);
  CHECK(done.status == 0);
}

}  // namespace

TEST_CASE("a cache of one's own is trusted exactly when nobody else could have written it") {
  const std::uint32_t me = ::geteuid(), group = ::getegid();
  for (const std::uint32_t owner : {me, me + 1, 0u})
    for (std::uint32_t mode = 0; mode < 0100; ++mode) {
      const files::Info info = info_of(owner, group, 0700 | mode);
      const bool trusted = (owner == me || owner == 0) && (mode & 022) == 0;
      CHECK(distrust_of_folder("/c", info, Sharing::own).empty() == trusted);
      CHECK(distrust_of_entry("/c", info, Sharing::own).empty() == trusted);
    }
}

TEST_CASE("a cache of a group is trusted exactly when nobody outside of the group could write it") {
  const std::uint32_t me = ::geteuid(), mine = ::getegid(), foreign = 54321;
  for (const std::uint32_t owner : {me, me + 1})
    for (const std::uint32_t group : {mine, foreign})
      for (std::uint32_t mode = 0; mode < 0100; ++mode) {
        const files::Info info = info_of(owner, group, 02700 | mode);
        const bool is_member = owner == me || owner == 0 || group == mine;
        CHECK(distrust_of_folder("/c", info, Sharing::group).empty() ==
              (is_member && (mode & 002) == 0));
        CHECK(distrust_of_entry("/c", info, Sharing::group).empty() ==
              (is_member && (mode & 022) == 0));
      }
}

TEST_CASE("a refusal says owner, user and remedies") {
  const std::uint32_t me = ::geteuid();
  const std::string foreign = distrust_of_folder("/c", info_of(me + 7, 0, 0700), Sharing::own);
  CHECK(foreign == "belongs to uid " + std::to_string(me + 7) + ", not to uid " +
                       std::to_string(me) +
                       " who runs this: use another PALLADIUM_CACHE_DIR or "
                       "`chown -R " +
                       std::to_string(me) + " '/c'`");
  CHECK(distrust_of_folder("/c", info_of(me, 0, 0770), Sharing::own) ==
        "is writable by others (mode 770): `chmod go-w '/c'`; for a cache that a group shares, "
        "PALLADIUM_CACHE_SHARING=group");
}

TEST_CASE("HIDDEN another user's cache", "[.]") {
  const Folder folder;
  REQUIRE(::chmod(folder.path().c_str(), 01777) == 0);  // like /tmp
  const std::string planted = folder / "planted";
  REQUIRE(as_user(somebody, somebodys_group, [&] {
            ::umask(0);
            if (::mkdir(planted.c_str(), 0755) != 0) return 1;
            if (!Store(planted).publish(entry_of("softmax"))) return 2;
            return ::symlink(planted.c_str(), (folder / "link").c_str()) == 0 ? 0 : 3;
          }) == 0);
  REQUIRE(::chmod((planted + "/v1").c_str(), 0755) == 0);
  for (const char* name : {"planted", "link"}) {
    const test::CapturedStderr log;
    CHECK(as_user(nobody, nobodys_group, [&] {
            const Store store(folder / name);
            if (store.find(entry_of("softmax").key, ours)) return 1;
            if (store.publish(entry_of("blur"))) return 2;
            return store.problem().empty() ? 3 : 0;
          }) == 0);
    CHECK(log.text().find("belongs to uid " + std::to_string(somebody) + ", not to uid " +
                          std::to_string(nobody)) != std::string::npos);
  }
}
TEST_CASE("another user's cache is refused, by whichever path it is reached") {
  as_root("another user's cache");
}

TEST_CASE("HIDDEN a cache of root's", "[.]") {
  const Folder folder;
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  const Store store(folder / "image");
  const Entry entry = entry_of("softmax");
  REQUIRE(store.publish(entry));
  const std::string inside = "/v1/" + entry.key.hex().substr(0, 2);
  for (const std::string& part : {std::string(), std::string("/v1"), inside})
    REQUIRE(::chmod((store.root() + part).c_str(), 0755) == 0);
  REQUIRE(::chmod(store.list().at(0).path.c_str(), 0644) == 0);
  const test::CapturedStderr log;
  CHECK(as_user(nobody, nobodys_group, [&] {
          const Store theirs(folder / "image", {.note_use_after_ns = 0});
          if (!theirs.find(entry.key, ours)) return 1;
          if (theirs.publish(entry_of("blur"))) return 2;
          if (theirs.remove(entry.key, ours)) return 3;
          return theirs.clear().entries == 0 && theirs.find(entry.key, ours) ? 0 : 4;
        }) == 0);
}
TEST_CASE("a cache of root's serves other users, who cannot change it") {
  as_root("a cache of root's");
}

TEST_CASE("HIDDEN a group's cache", "[.]") {
  const Folder folder;
  constexpr gid_t group = 60001;
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  const std::string root = folder / "shared";
  REQUIRE(::mkdir(root.c_str(), 0700) == 0);
  REQUIRE(::chown(root.c_str(), somebody, group) == 0);
  REQUIRE(::chmod(root.c_str(), 02770) == 0);
  const cache::StoreOptions shared = {.sharing = Sharing::group};
  const Entry first = entry_of("softmax"), second = entry_of("blur");

  CHECK(as_user(somebody, group, [&] { return Store(root, shared).publish(first) ? 0 : 1; }) == 0);
  CHECK(as_user(nobody, group, [&] {
          const Store store(root, shared);
          if (!store.find(first.key, ours)) return 1;
          if (!store.publish(second) || !store.publish(first)) return 2;
          return 0;
        }) == 0);
  CHECK(as_user(somebody, group,
                [&] { return Store(root, shared).find(second.key, ours) ? 0 : 1; }) == 0);
  files::Info info;
  REQUIRE(files::info(root + "/v1", info));
  CHECK(info.mode == 02770);
  CHECK(info.group == group);
  for (const Store::Listed& listed : Store(root, shared).list()) {
    REQUIRE(files::info(listed.path, info));
    CHECK(info.mode == 0640);
    CHECK(info.group == group);
  }
  const test::CapturedStderr log;
  // Without the option it is a folder that others can write; outside of the group it is foreign.
  CHECK(as_user(somebody, group, [&] { return Store(root).find(first.key, ours) ? 1 : 0; }) == 0);
  CHECK(as_user(nobody, nobodys_group,
                [&] { return Store(root, shared).publish(first) ? 1 : 0; }) == 0);
  CHECK(log.text().find("PALLADIUM_CACHE_SHARING=group") != std::string::npos);
  CHECK(log.text().find("nor in the group") != std::string::npos);
}
TEST_CASE("a group shares a cache when its members say so, and nobody else gets in") {
  as_root("a group's cache");
}
