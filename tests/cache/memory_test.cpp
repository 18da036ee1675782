// What a process has loaded: shared while it is used, kept for a while, and taken out when unused.
#include "cache/memory.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace palladium;
using cache::Key;
using cache::key_of;
using Memory = cache::Memory<int>;

namespace {

Key key_named(const std::string& name) { return key_of({{"name", name}}); }

}  // namespace

TEST_CASE("the table in memory keeps contexts and kernels apart, and the first that is inserted") {
  Memory memory;
  const Key a = key_named("a"), b = key_named("b");
  const int contexts[2] = {};
  CHECK_FALSE(memory.find(&contexts[0], a));
  const auto first = memory.insert(&contexts[0], a, 1);
  CHECK(*first == 1);
  CHECK(memory.insert(&contexts[0], a, 2) == first);
  const auto second = memory.insert(&contexts[1], a, 3), third = memory.insert(&contexts[0], b, 4);
  CHECK(*second == 3);
  CHECK(*third == 4);
  CHECK(memory.find(&contexts[0], a) == first);
  CHECK(memory.find(&contexts[1], a) == second);
  CHECK(memory.find(&contexts[0], b) == third);
  CHECK_FALSE(memory.find(&contexts[1], b));
  CHECK(memory.size() == 3);
}

TEST_CASE("what nobody holds stays until it is taken, what was wanted longest ago first") {
  Memory memory;
  std::vector<Memory::Handle> handles;
  for (int i = 0; i < 5; ++i)
    handles.push_back(memory.insert(nullptr, key_named(std::to_string(i)), i));
  CHECK(memory.take_unused(0).empty());
  for (const std::size_t i : {3, 1, 0, 4}) handles[i].reset();
  CHECK(memory.size() == 5);
  CHECK(memory.take_unused(4).empty());
  // Wanted again, and so last.
  CHECK(*memory.find(nullptr, key_named("3")) == 3);
  CHECK(memory.take_unused(2) == std::vector{0, 1});
  CHECK_FALSE(memory.find(nullptr, key_named("1")));
  CHECK(memory.take_unused(0) == std::vector{4, 3});
  CHECK(memory.size() == 1);
  CHECK(*handles[2] == 2);
  CHECK(*memory.insert(nullptr, key_named("1"), 11) == 11);
}

TEST_CASE("threads that insert one kernel at once go on with the same one") {
  Memory memory;
  const Key key = key_named("k");
  std::vector<Memory::Handle> got(8);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back(
        [&, i] { got[static_cast<std::size_t>(i)] = memory.insert(nullptr, key, i); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& handle : got) CHECK(handle == got[0]);
}

TEST_CASE("threads that find, drop and take out never meet what is not there") {
  cache::Memory<std::string> memory;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      for (int i = 0; i < 5000; ++i) {
        const std::string name = std::to_string(random() % 8);
        auto handle = memory.find(nullptr, key_named(name));
        if (!handle) handle = memory.insert(nullptr, key_named(name), name);
        if (*handle != name) std::abort();
        if (random() % 4 == 0)
          for (const std::string& taken : memory.take_unused(2))
            if (taken.size() != 1) std::abort();
        if (*handle != name) std::abort();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(memory.take_unused(0).size() <= 8);
  CHECK(memory.size() == 0);
}
