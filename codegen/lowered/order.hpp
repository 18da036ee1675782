// What has to stand between statements: threads that share memory wait for those who touched it
// before, and whoever touches what something asynchronous fills or reads until that is done.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "codegen/device/waist.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/lowered/program.hpp"

namespace palladium::lowered {

/// What has to stand in a place where it does not.
struct Need {
  /// Groups, but for the `pending` last ones, are to be over, and with them what fills or reads
  /// these storages, those of sums first.
  struct Group {
    int pending = 0;
    std::vector<StorageId> storages = {};
  };
  std::map<device::Completion, Group> groups = {};
  bool fence = false;             // what threads stored is there for the asynchronous proxy, ...
  bool sync = false;              // ... and all threads have come here
  bool meets_warpgroups = false;  // or those of each warpgroup, as far as they share it

  explicit operator bool() const { return sync || meets_warpgroups || fence || !groups.empty(); }
};

/// In front of statements, and behind the last one of lists.
struct Needed {
  std::map<const Statement*, Need> before = {};
  std::map<const Statements*, Need> behind = {};
  /// What is over behind waits for products that name nothing.
  std::map<const Statement*, Need::Group> named = {};
};

/// Goes through the statements of an agent in the order in which they run, whatever way that takes:
/// through branches, and iterations of loops that follow each other. What it remembers of the way
/// are *accesses* to memory that threads share, until all threads wait for each other, and
/// *flights*, which are accesses by something asynchronous, until that is known to be over.
///
/// Registers that hold something only within a statement are done with at the end of its body.
/// Slots of a ring are told apart by how many iterations they are ahead of the one around; arrays
/// that may be the same (Graph::alias_class) are one. A copy that completes an mbarrier is awaited
/// where that is: only who still reads what it overwrites concerns it. Likewise copies by hand.
class Order {
 public:
  /// What is asked for: waits for groups of what is asynchronous, or barriers and fences, which
  /// takes offsets in shared memory, and the waits.
  enum class Ask : std::uint8_t { groups, threads };

  /// `complete`: no waits are to be added to those that stand there.
  Order(const Program& l, Ask asked, bool complete = false);

  /// What is missing; nothing of a program that has it all.
  Needed missing(const Statements& agent);

 private:
  /// Memory: a storage, of one that lies in a ring with its slot, or an array.
  struct Room {
    StorageId storage = {};
    int array = -1;
    int slot = 0;  // iterations ahead, modulo slots; any_slot
    auto operator<=>(const Room&) const = default;
  };
  static constexpr int any_slot = -1;
  static constexpr int oldest = 64;      // of groups to wait for: as good as any before
  static constexpr int oldest_over = 8;  // of those that are over: no wait leaves so many
  static constexpr std::size_t most_looked_at_again = 16;

  struct Touch {
    Room room = {};
    bool writes = false;
    bool async = false;         // by the asynchronous proxy
    bool by_warp = false;       // what no other statement touches, nor another warp
    bool is_told = true;        // who comes next has to know of it
    bool is_sum = false;        // of products, which add to it in their order
    bool is_exchanged = false;  // all have stored it, and read it last
    int elements = -1;          // of an array: which of them each thread touches, by number
    device::Completion on = device::Completion::none;  // it goes on behind the statement
  };
  struct Facts {
    std::vector<Touch> touches = {};
    bool syncs = false, meets_warpgroups = false, fences = false;
  };
  struct Access {
    Room room = {};
    bool writes = false;
    const Statement* by_warp = nullptr;  // the one that alone touches it
    int elements = -1;
    bool is_met = false;  // of what warpgroups have parts of: those of each have met since
    auto operator<=>(const Access&) const = default;
  };
  struct Flight {
    Room room = {};
    bool writes = false, is_sum = false;
    device::Completion on = device::Completion::none;
    int age = 0;  // groups of its kind that have been closed since it began
    /// A sum that is known to be done, while products after it were not: who waits for all of them
    /// names it once more.
    bool is_over = false;
    auto operator<=>(const Flight&) const = default;
  };
  struct State {
    std::set<Access> accesses = {};
    std::set<Room> unfenced = {}, fenced = {};  // stored by threads; fenced, and no barrier since
    std::set<Flight> flights = {};

    bool add(const State& other);  // whether anything of it is new
    auto operator<=>(const State&) const = default;
  };
  /// A loop, and what stands before it.
  struct Way {
    const Statement* loop = nullptr;
    int ahead = 0;
    State before = {};
    auto operator<=>(const Way&) const = default;
  };
  struct Passed {
    State behind = {};
    bool lacks = false;
  };
  struct Span {
    std::int64_t begin = 0, end = 0;
  };
  using Home = std::vector<const Statement*>;

  /// What becomes of a need: it is noted, or taken for met (lacks_).
  enum class Mode : std::uint8_t { note, assume };

  void find_oldest(const Statements& list);
  void find_async(const Statements& list);
  void find_read_by_threads(const Statements& list);
  bool shares_any() const;
  void leave_out_vain(const Statements& agent);
  bool lacks_any(const Statements& agent);
  void number(const Statement& before);
  void find_homes(const Statements& list, Home& around);
  void walk(const Statements& list, State& state, Mode mode, const Statement* of);
  void step(const Statements& list, std::size_t first, std::size_t end, State& state, Mode mode);
  void inside(const Statement& s, State& state, Mode mode);
  void lead(const Lead& lead, const Statement& s, State& state, Mode mode);
  void warps(const Statement& s, State& state, Mode mode);
  void elected(const Elected& elected, const Statement& s, State& state, Mode mode);
  void loop(const Statement& s, State& state, Mode mode);
  void through(const Statement& s, State& state, Mode mode);
  void iteration(const Statement& s, State& state, Mode mode);
  const State& left_by_iterations(const Statement& s);
  bool lacks(const Statement& loop, State& state);

  Need need_of(const std::vector<Touch>& touches, const Statement* s, const State& state) const;
  Need need_of_copies(const Statement& s, const State& state);
  void need_groups(const Touch& t, const State& state, Need& need) const;
  static void need_flight(const Flight& f, Need& need);
  void need_threads(const Touch& t, const Statement* s, const State& state, Need& need) const;
  bool is_home(StorageId storage, const Statement* of) const;
  void name_storages(device::Completion kind, Need::Group& group, const State& state) const;
  void name_awaited(const WaitGroup& wait, const Statement& s, const State& state);
  bool conflicts(const Access& a, const Touch& t, const Room& room, const Statement* s) const;
  Need need_at_end(const State& state, const Statement* of) const;
  Need need_of_few(const State& state) const;
  void provide(Need& noted, const Need& need, State& state, Mode mode);
  void provide(const Statement& before, const Need& need, State& state, Mode mode);
  void meet(const Need& need, State& state) const;

  void apply(const Statement& s, State& state);
  void record(const Touch& t, const Statement& s, State& state) const;
  void store(const Room& room, State& state) const;
  void end_groups(device::Completion kind, int pending, State& state) const;
  void advance(RingId ring, State& state) const;
  void forget_slots(const Statement& s, State& state) const;
  void close(device::Completion kind, State& state) const;
  static void fence(State& state);
  static void sync(State& state);
  void meet_warpgroups(State& state) const;
  template <class Change>
  static void change_rooms(State& state, const Change& change);

  const Facts& facts(const Statement& s);
  Facts facts_of(const Statement& s);
  void add_barrier(const Statement& s, const Effect& e, std::vector<Touch>& touches) const;
  void add_storage(const Effect& e, bool syncs, std::vector<Touch>& touches) const;
  void add_array(const Statement& s, const Effect& e, std::vector<Touch>& touches);
  int elements_of(const LoopNest& p, const Effect& e);
  void add_touches(const Statement& s, int by, std::vector<Touch>& all);

  static std::set<RingId> rings_advanced(const Statement& s);
  RingId ring_of(const Room& room) const;
  Room moved(Room room, int by) const;
  Room ahead(const Room& room) const { return moved(room, ahead_); }
  bool overlaps(const Room& a, const Room& b) const;
  bool are_apart(const Room& a, const Room& b) const;
  Span span(StorageId storage) const;
  Span span_in_slot(StorageId storage) const;
  static bool meet(Span a, Span b) { return a.begin < b.end && b.begin < a.end; }

  const Program& l_;
  const Ask asked_;
  int oldest_ = oldest;  // ... where some wait ends all of these, one more than any wait leaves
  Table<StorageId, RingId> rings_;         // of storages, and of barriers
  std::set<int> synchronised_, refilled_;  // arrays
  /// Which elements of an array each thread has that accesses a block of it, along those dimensions
  /// that it has whole: of others it has one element, wherever.
  struct Elements {
    int mapping = -1;
    std::vector<bool> whole = {};
    Extents shape = {};
    layout::Layout layout = {};
  };
  std::vector<Elements> elements_;
  std::set<Room> async_ = {};              // what somebody touches by the asynchronous proxy
  std::set<RingId> read_by_threads_ = {};  // not by products of wgmma alone
  int ahead_ = 0;                          // iterations, of what is looked at
  bool lacks_ = false;                     // something has been taken for met
  std::map<Way, Passed> passed_ = {};      // since the last need was noted
  /// In front of which statement threads need something, within how many loops whose iterations
  /// are looked at for themselves, and which of all needs it was.
  struct Noted {
    const Statement* before = nullptr;
    int level = 0, number = 0;
  };
  std::vector<Noted> noted_ = {};
  std::vector<int> last_noted_ = {};  // by level
  int level_ = 0, number_ = 0;
  bool is_settled_ = false;
  /// Of what products fill and read in registers: the statements in which all stand that touch it,
  /// outer ones first, where it is declared.
  std::map<StorageId, Home> homes_ = {};
  Needed needed_ = {};
  Need unnoted_ = {};
  std::unordered_map<const Statement*, Facts> facts_ = {};
  std::unordered_map<const Statement*, State> left_ = {};
};

}  // namespace palladium::lowered
