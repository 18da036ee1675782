// What a lowered program is made of: numbers that do not mix, and alternatives that say what they
// have.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <type_traits>
#include <vector>

#include "codegen/lowered/program.hpp"
#include "palladium/error.hpp"

using namespace palladium;
using namespace palladium::lowered;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

template <class A, class B>
concept Adds = requires(A a, B b) { a + b; };
template <class A, class B>
concept Compares = requires(A a, B b) { a == b; };
template <class Rows, class Key>
concept AskedBy = requires(Rows rows, Key key) { rows[key]; };

}  // namespace

TEST_CASE("numbers of one kind are none of another, and nobody counts with them") {
  static_assert(!std::is_convertible_v<StorageId, WindowId>);
  static_assert(!std::is_constructible_v<StorageId, RingId>);
  static_assert(!std::is_convertible_v<int, StorageId> && !std::is_convertible_v<StorageId, int>);
  static_assert(!std::is_convertible_v<StorageId, bool>);
  static_assert(!Adds<StorageId, int> && !Adds<StorageId, StorageId>);
  static_assert(Compares<StorageId, StorageId> && !Compares<StorageId, WindowId>);
  using Storages = decltype(lowered::Program::storages);
  static_assert(AskedBy<Storages, StorageId> && !AskedBy<Storages, WindowId> &&
                !AskedBy<Storages, int>);
  CHECK_FALSE(StorageId());
  CHECK(StorageId(0));
  Table<StorageId, int> table;
  CHECK(table.ids().empty());
  const StorageId first = table.add(7), second = table.add(8);
  CHECK(table[first] == 7);
  CHECK(table[second] == 8);
  CHECK(table.ids() == std::vector{first, second});
}

TEST_CASE("who asks a storage or a window for what it does not have gets an InternalError") {
  const Storage inlined{.in = Inlined{}}, scalar{.in = OneElement{}}, held,
      shared{.in = Shared{.fetched = true, .ring = RingId(3)}};
  for (const Storage& s : {inlined, scalar, held})
    CHECK_THROWS_MATCHES(s.shared(), InternalError,
                         MessageMatches(ContainsSubstring("how it lies in shared memory")));
  for (const Storage& s : {inlined, scalar, shared})
    CHECK_THROWS_MATCHES(s.registers(), InternalError,
                         MessageMatches(ContainsSubstring("how it lies in registers")));
  CHECK(held.registers().layout == layout::Layout{});
  CHECK(shared.shared().ring == RingId(3));
  // What may be asked of any.
  CHECK_FALSE((scalar.is_packed() || scalar.is_fetched() || scalar.is_sent() || scalar.ring()));
  CHECK((shared.is_fetched() && shared.ring()));

  const Window direct{.in = Direct{.synchronised = true}},
      filled{.in = InRegisters{{.storage = StorageId(1), .fill = true}}},
      kept{.in = InShared{{.storage = StorageId(2), .flush = true}}},
      staged{.in = Staged{.storage = StorageId(4), .lead = 5}};
  for (const Window& w : {direct, filled, kept})
    CHECK_THROWS_MATCHES(w.staged(), InternalError,
                         MessageMatches(ContainsSubstring("how it is staged is not")));
  CHECK(staged.staged().lead == 5);
  CHECK((direct.is_direct() && direct.is_synchronised() && !direct.storage()));
  CHECK((direct.resident() == nullptr && staged.resident() == nullptr));
  CHECK((filled.fills() && !filled.flushes() && filled.storage() == StorageId(1)));
  CHECK((!kept.fills() && kept.flushes() && kept.residency() == Residency::shared));
  CHECK((staged.fills() && !staged.flushes() && staged.storage() == StorageId(4)));
}
