// The rows of waist.def by name, with what each does to memory, to its group of threads and to
// time: the instruction set of the thread program.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string_view>

namespace palladium::device {

enum class Row : std::uint16_t {
#define PALLADIUM_WAIST(file, name, first_arch, effects, declaration, meaning) name,
#define PALLADIUM_WAIST_HOPPER(file, name, effects, declaration, meaning) name,
#define PALLADIUM_WAIST_MATH(file, name, ulp_f32, ulp_f64, declaration, meaning) name,
#include "codegen/device/waist.def"
};

/// What an argument points to.
enum class Memory : std::uint8_t {
  registers,       // an array of the thread
  shared,          // of the block
  shared_cluster,  // of any block of the cluster
  global,
  tensor_map,  // a box of global memory
  barrier,     // an mbarrier in shared memory, the block's own or another's
};

/// The way to memory: a barrier alone does not order what goes through one with the other.
enum class Proxy : std::uint8_t { generic, async };

/// Who executes a call together, at one line of the text. A program has 4, 8 or 16 warps.
enum class Group : std::uint8_t { thread, warp, warpgroup, program, block, cluster };

/// What says that something asynchronous is over.
enum class Completion : std::uint8_t { none, mbarrier, cp_async_group, bulk_group, wgmma_group };

struct Access {
  int argument = -1;
  Memory memory = Memory::registers;
  Proxy proxy = Proxy::generic;
  bool reads = false, writes = false;
  bool atomic = false;
};

struct Effects {
  /// A value of the arguments, of all threads of `by`: may be computed again, later or not at all,
  /// as long as they do so together.
  bool pure = false;
  Group by = Group::thread;
  bool releases = false;     // what was done before it, to whoever acquires
  bool acquires = false;     // what others released
  bool waits = false;        // for other threads, or for what is asynchronous
  std::uint8_t ordered = 0;  // bits of Memory: its accesses, with those of the async proxy behind
  Completion on = Completion::none;
  enum class Role : std::uint8_t { none, completes, closes, awaits } role = Role::none;
  int on_argument = -1;  // the mbarrier
  std::array<Access, 3> all = {};
  int count = 0;

  constexpr std::span<const Access> accesses() const {
    return {all.data(), static_cast<std::size_t>(count)};
  }
  /// Whether its accesses may go on when the call has returned.
  constexpr bool is_asynchronous() const { return role == Role::completes; }
  constexpr bool orders(Memory m) const { return (ordered >> static_cast<int>(m) & 1) != 0; }
  /// Whether it touches memory that other threads see.
  constexpr bool touches_memory() const {
    for (const Access& a : accesses())
      if (a.memory != Memory::registers) return true;
    return false;
  }
};

struct RowInfo {
  Row row;
  std::string_view file;  // "memory"
  std::string_view name;  // "load_global"
  int first_arch;         // 75
  int last_arch;          // 90 for what Hopper alone has
  int ulp_f32, ulp_f64;   // -1: not an elementary function of that type
  Effects effects;
  std::string_view declaration, meaning;
};

/// All rows, in the order of the enumerators.
std::span<const RowInfo> rows();
const RowInfo& info(Row row);
std::optional<Row> row_named(std::string_view name);
/// The rows that a text calls as pl::name.
std::set<Row> rows_in(std::string_view text);

/// Of the functions for single products of wgmma, which have no rows; `rs`: A is in registers.
Effects product_effects(bool rs);

}  // namespace palladium::device
