// From where to where in a program storages hold something.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "codegen/lowered/program.hpp"

namespace palladium::lowered {

/// Positions number the statements in order: one in each, those of the statements inside of it, and
/// one behind it. A storage lives from the statement that fills it to the last that reads it; as
/// long as a loop that it enters or outlives; of a window as long as its scope, or
/// the program, in registers as long as all loops of the program in which it is touched; an
/// operand of wgmma, and what TMA sends or brings, until that is awaited, where waits are known. A
/// ring lives for its slots, a union for its members.
///
/// That is the order of a body's first agent. What others touch may hold something at any time, but
/// for the slots that they only fill: from the begin until the first has read the last.
class Lives {
 public:
  /// Of each statement, with its position.
  using Visit = std::function<void(const Statement&, int)>;
  /// What is asked of the first iterations of rotated loops: `none`, which have registers of their
  /// own and do less than the others.
  enum class First : std::uint8_t { all, none };
  explicit Lives(const Program& l, const Visit& visit = {}, First first = First::all);

  struct Span {
    int first = -1, last = -1;  // -1: never
    bool meets(const Span& other) const { return first <= other.last && other.first <= last; }
  };
  Span of(StorageId storage) const { return spans_[storage]; }
  /// Whether a statement touches it at all.
  bool has(StorageId storage) const { return of(storage).first >= 0; }
  bool meet(StorageId a, StorageId b) const { return of(a).meets(of(b)); }
  /// The last position.
  int end() const { return position_; }

 private:
  void walk(const Statements& list, const Visit& visit);
  void meanwhile(const Statements& list);
  void touch(const Statement& s, int in, int behind);
  void touch(StorageId storage, int position);
  void begin(const Dot& d, int in);
  void begin(const Copy& c, int in);
  void await(const WaitGroup& wait, int in);
  struct Flight;
  void leave(const Statement& s, int in, const std::vector<Flight>& before);

  /// A product of wgmma that may be under way, or what is sent.
  struct Flight {
    device::Completion kind = device::Completion::wgmma_group;
    StorageId a = {}, b = {};
    int begun = 0;
    bool is_certain = true;  // that it was begun
  };

  const Program& l_;
  const First first_;
  Table<StorageId, Span> spans_;
  std::vector<Span> loops_;             // inner ones first
  std::vector<Span> loops_of_program_;  // of these, but for the one over programs
  std::vector<Flight> flights_;
  std::map<BarrierId, std::set<StorageId>> filled_;  // by what completes it
  std::set<StorageId> filled_by_others_;             // blocks of the cluster
  bool awaits_ = false;                              // complete_async has been here
  int position_ = 0;
};

/// Whether a statement fills such a storage in shared memory, itself.
bool fills_shared(const Program& l, const Statement& s,
                  const std::function<bool(StorageId)>& is_meant);

}  // namespace palladium::lowered
