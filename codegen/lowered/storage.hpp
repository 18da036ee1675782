// Room for whole values.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "codegen/base/checked.hpp"
#include "codegen/graph/graph.hpp"
#include "codegen/layout/layout.hpp"
#include "codegen/lowered/ids.hpp"

namespace palladium::lowered {

using graph::Extents;

/// A value is recomputed at each use, and has no room.
struct Inlined {};
/// One element: a variable that all threads compute alike.
struct OneElement {};
/// An array per thread.
struct Registers {
  layout::Layout layout = {};  // set by assign_layouts
  bool packed = false;         // as many elements in each as have 32 bits, as A of wgmma
};

/// A part of another storage, one of those that lie over one another there: a union.
struct Within {
  StorageId storage = {};  // that is part of nothing
  std::int64_t offset = 0;
  bool operator==(const Within&) const = default;
};

/// Shared memory: row-major, or in panels.
///
/// Panels are what wgmma reads and TMA writes: columns of rows of 32, 64 or 128 bytes, one panel
/// behind the other; in each row the chunks of 16 bytes stand in an order that changes from row to
/// row, so that neither rows nor columns of chunks collide in the banks.
struct Shared {
  std::int64_t offset = 0;      // bytes, in the block's dynamic shared memory
  std::int64_t row_stride = 0;  // elements from row to row of the last dimension
  int swizzle = 0;              // bytes of a row of its panels; 0: it has none
  bool per_warpgroup = true;    // one copy per Pallas thread
  bool per_warp = false;        // ... and of each of its warps
  bool fetched = false;         // filled by TMA, or a barrier of such copies
  bool sent = false;            // read by TMA
  /// Each warpgroup of the program stores and sends rows of its own: 64 of it, 64 of the next one,
  /// and so on.
  bool by_warpgroups = false;
  /// Without panels: 16 bytes c of row r stand where c ^ (r / rows_alike % 8 >> (3 - row_swizzle))
  /// of it would, so that 8 rows are read from all banks. 0 to 3.
  int row_swizzle = 0;
  int rows_alike = 1;  // ldmatrix reads rows that follow one another
  /// Each row begins as far behind a multiple of 16 bytes as the row of global memory does of which
  /// it is a copy, and has 16 bytes more for that: what lies there is a Load of such rows.
  bool skewed = false;
  bool tf32 = false;            // elements of f32 are rounded to tf32 on their way there
  std::int64_t alignment = 16;  // what its address is a multiple of, at least
  RingId ring = {};    // it lies in each slot of this ring, `offset` behind where that begins
  Within within = {};  // it has no place of its own, and no `offset`
  bool operator==(const Shared&) const = default;
};

/// Room for a whole value, a resident window or a scratch Ref.
struct Storage {
  using In = std::variant<Inlined, OneElement, Registers, Shared>;
  In in = Registers{};
  DType dtype = {};
  Extents shape = {};
  ValueId of = graph::no_value;    // for names and messages
  LayoutVariableId variable = {};  // of the nest that fills it ...
  std::vector<int> dropped = {};   // ... whose dimensions that were reduced away are these

  bool is_scalar() const { return std::holds_alternative<OneElement>(in); }
  bool in_registers() const { return std::holds_alternative<Registers>(in); }
  bool in_shared() const { return std::holds_alternative<Shared>(in); }
  /// For what lives there: InternalError of others.
  Registers& registers();
  const Registers& registers() const;
  Shared& shared();
  const Shared& shared() const;
  /// For what lives anywhere.
  bool is_packed() const { return in_registers() && registers().packed; }
  /// Of a thread, where it is packed.
  std::int64_t words() const { return registers().layout.registers() * dtype.bytes() / 4; }
  bool is_fetched() const { return in_shared() && shared().fetched; }
  bool is_sent() const { return in_shared() && shared().sent; }
  bool is_by_warpgroups() const { return in_shared() && shared().by_warpgroups; }
  RingId ring() const { return in_shared() ? shared().ring : RingId(); }
};

/// Shared memory for what several iterations of a loop fill and read, a slot for each.
struct Ring {
  StorageId storage = {};  // all slots, one behind the other
  int slots = 1;
  std::int64_t slot_bytes = 0;
  std::int64_t trips = INT64_MAX;  // of its loop, where that is known
  bool copied = false;             // threads fill a part of it, in groups of copies
  bool fetched = false;            // TMA does, and says so by barriers of each slot
  /// The empty barriers, by which a slot's readers tell the producer, or none.
  BarrierId empty_barriers = {};
  /// Its loop, which stands in no other, goes over all slots in each iteration of its text: what
  /// says where a slot stands is constant there.
  bool unrolled = false;
  /// Each iteration has the slot of that number in this one, which has a multiple of slots: their
  /// loop goes over all slots of that in each iteration of its text.
  RingId follows = {};
};

/// Barriers in shared memory that know when copies are done, or what they filled has been read:
/// one, for each slot of a ring one, or an array that expressions choose of. Each is made, in front
/// of all statements, for so many arrivals: those of all who arrive there once.
struct Barriers {
  StorageId storage = {};
  RingId ring = {};
  int arrivals = 1;
  /// Each warp of who arrives tells for itself: it has read what it reads, whatever others have.
  bool by_warps = false;
  bool by_hand = false;  // a user says who arrives and waits, and made it for so many
  /// Sets of cluster axes, a bit for each: who arrives does so in its own block and in those that
  /// differ from it along the axes of one set alone.
  std::vector<std::int64_t> along = {};
};

/// Of such an array, so many at most: a thread has a bit for each.
inline constexpr std::int64_t most_tracked = 32;

inline std::int64_t round_up(std::int64_t n, std::int64_t to) { return cdiv(n, to) * to; }

/// What a storage takes of shared memory, once or per warpgroup: with the gaps between its rows, a
/// multiple of what its address is a multiple of.
Checked shared_bytes(const Storage& storage);
/// What the address of a storage in shared memory is a multiple of.
std::int64_t shared_alignment(const Storage& storage);
/// The widest rows of panels into which rows of so many bytes can be cut; 0 if there are none.
int swizzle_of(std::int64_t row_bytes);

}  // namespace palladium::lowered
