// The statements of a lowered graph, one function per kind. Internal to codegen/expand.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "codegen/expand/expand.hpp"
#include "codegen/layout/terms.hpp"
#include "codegen/passes/addresses.hpp"
#include "codegen/thread/builder.hpp"

namespace palladium::expand {

using device::Row;
using graph::Extents;
using graph::ValueId;
using lowered::BarrierId;
using lowered::BoxId;
using lowered::DimMap;
using lowered::RingId;
using lowered::StorageId;
using lowered::Table;
using lowered::WindowId;
using passes::affine_of;
using passes::fields_of;
using thread::Affine;
using thread::Builder;
using thread::ExprId;
using thread::Exprs;
using thread::no_expr;
using thread::Operator;
using thread::VariableId;

class Nest;

inline constexpr std::int64_t barrier_bytes = 8;

class Expander {
 public:
  explicit Expander(const lowered::Program& l);
  thread::Program run();

 private:
  friend class Nest;

  // expander.cpp: the frame and the plain statements
  void declare_parameters();
  void find_mutable_storages();
  void find_begun(const lowered::Statements& list);
  void make_mutable(ValueId v);
  void find_unstored();
  void launch_shape();
  void expand_body(const lowered::Body& body);
  void expand_agent(const lowered::Agent& agent, int body);
  bool has_one_agent() const;
  ExprId is_among(int first, int count);
  bool touches(const lowered::Agent& agent, WindowId window) const;
  void declare_storages(const lowered::Agent& agent, int body);
  void expand_list(std::span<const lowered::Statement> list);
  void expand_one(const lowered::LoopNest& p);
  void expand_one(const lowered::Dot& d) { expand_product(d, nullptr); }
  void expand_product(const lowered::Dot& d, const lowered::WaitGroup* done);
  void expand_one(const lowered::Relayout& r);
  void expand_one(const lowered::Sync& s);
  void expand_one(const lowered::SetRegisters& s);
  void expand_one(const lowered::Elected& e);
  void expand_one(const lowered::Semaphore& s);
  void expand_one(const lowered::HostCall& t);
  void expand_one(const lowered::Inline& t);
  void expand_one(const lowered::Scalar& s);
  void expand_one(const lowered::CopyStorage& c);
  void expand_one(const lowered::When& w);
  void expand_one(const lowered::IfWhole& w);
  void expand_one(const lowered::IfMasked& m);
  bool is_known(const lowered::IfMasked& m) const;
  void expand_one(const lowered::Loop& l);
  void expand_one(const lowered::While& w);
  void expand_one(const lowered::Switch& s);
  void expand_one(const lowered::Scope& s);
  void expand_one(const lowered::Warps& w);
  void expand_one(const lowered::GridLoop& loop);
  void expand_one(const lowered::EnterWindow& w);

  // lengths.cpp: what is written for several lengths of arrays
  void expand_by_length(std::span<const lowered::Statement> list);
  void expand_cases(std::span<const lowered::Statement> list, std::int64_t least,
                    std::int64_t most);

  // programs.cpp: which program of the grid a block runs
  void name_programs(ExprId number_of_program);
  void name_program(int axis, ExprId id);
  ExprId name_rows(ExprId block, int rows, int columns);
  void name_cluster(ExprId block);
  ExprId number_in_share(std::int64_t axes);
  ExprId blocks_of_share(std::int64_t axes);
  ExprId first_of_share(std::int64_t axes);
  std::vector<ExprId> part_origin(const lowered::Copy& c, std::vector<ExprId> origin);
  thread::Affine part_bytes(const lowered::Copy& c);
  bool is_of_panels(const lowered::Copy& c) const;
  void arrive_along(const lowered::Arrive& a, ExprId slot, ExprId thread);
  void forget_scratch();
  void over_programs(const lowered::GridLoop& loop);
  bool open_bounds();

  // whole.cpp: blocks that are wholly inside of their arrays
  ExprId are_whole(const std::vector<WindowId>& windows);
  void declare_filled(const lowered::LoopNest& p);
  void mark_filled(const lowered::LoopNest& p);

  // rings.cpp: copies for iterations of loops that are to come
  void expand_one(const lowered::Lead& e);
  void lead_alone(const lowered::Lead& e);
  void expand_one(const lowered::Ahead& e);
  void expand_one(const lowered::Advance& a);
  void begin_rings_filled(const lowered::Statement& s);
  ExprId slot_before(RingId ring, int back);
  /// Runs f, behind which all is known again that is known now.
  template <class F>
  void apart(F&& f);
  /// A ring's slots: as bytes from where it begins, of a fetched one as numbers.
  struct Slots {
    ExprId from = no_expr, to = no_expr;  // that is read, that is filled
    ExprId now = no_expr;                 // that of the storages in it
    ExprId before = no_expr;              // smem and the barriers in front of the slot read last
    ExprId late = no_expr;                // that of the iteration before, which is read, too
    ExprId phase = no_expr;               // of a fetched ring: the parity of its barriers
    bool fills = false;                   // the agent fills slots that others free
    // Where products of the iteration before are in flight: whether there is none; no_expr: there
    // is.
    ExprId begins = no_expr;
    int first_steps = 0;     // that a rotated loop's first iteration has made
    ExprId lead = no_expr;   // in a Lead: the iteration
    int leads = 0;           // iterations that one has begun
    ExprId group = no_expr;  // in a group of iterations: the first
  };
  void begin_rings();
  void find_turns();
  void find_last_turns(const lowered::Statements& agent);
  void find_lags(const lowered::Statements& agent);
  void declare_slots_before(const lowered::Statements& agent);
  /// Runs f, in which this says whether the iteration is the first.
  template <class F>
  void begins_with(ExprId first, F&& f) {
    const auto outside = slots_;
    for (Slots& slots : slots_) slots.begins = first;
    f();
    for (std::size_t r = 0; r < slots_.size(); ++r)
      slots_[RingId(static_cast<int>(r))].begins = outside[RingId(static_cast<int>(r))].begins;
  }
  void expand_rotated(const lowered::Loop& l);
  void expand_rotated(const lowered::GridLoop& l);
  /// The iterations behind the first, of which `low` is the number.
  struct Rotated {
    lowered::Rotation parts;
    const lowered::KnownIterations& known;
    ExprId low;
    thread::For others;
    ValueId limit = graph::no_value;  // as of over_parts
  };
  void expand_rotated(Rotated loop, VariableId first,
                      const std::function<void(VariableId number)>& enter);

  // slots.cpp: loops in whose text slots are constants
  /// A loop whose text goes over the slots of a ring: `body` for each iteration. It ends at `least`
  /// or more.
  struct OverSlots {
    RingId ring;
    ExprId low, high;
    std::int64_t step = 1, least = INT32_MIN;
    std::vector<StorageId> sums;  // of products that may be in flight from iteration to iteration
    std::function<void(ExprId iteration)> body;
  };
  void over_slots(const OverSlots& o, thread::For groups);
  void over_slots_from_any(const OverSlots& o, thread::For groups);
  void over_groups_and_rest(const OverSlots& o, thread::For groups);
  /// `left`, if any, is assigned the iteration behind each group.
  void over_groups(const OverSlots& o, thread::For groups, ExprId left);
  void over_left(const OverSlots& o, ExprId first, std::int64_t most, bool beside);
  void one_by_one(const OverSlots& o, const thread::For& like, ExprId low, ExprId high);
  void begins_unless_run(const OverSlots& o);
  ExprId declare_iteration(const char* name, const OverSlots& o, ExprId first);
  ExprId end_of_groups(const OverSlots& o);
  VariableId variable_of_slot(RingId ring, std::int64_t count);
  void follow(RingId ring);

  // iterations.cpp: loops of which more is known in some of their iterations
  struct Part {
    ExprId low, high;
    bool is_known = false;
  };
  struct Limits;
  /// A loop for each part of the iterations: those of which nothing is known, those that follow of
  /// which something is, and the others. `limit`: the value that ends a loop over indices.
  void over_parts(const lowered::KnownIterations& known, thread::For iterations, ValueId limit,
                  const std::function<void(thread::For part)>& loop);
  std::vector<Part> parts_of(const Limits& limits, const thread::For& iterations);
  Limits limits_of(const lowered::KnownIterations& known, const thread::For& iterations);
  Affine sum_of(const lowered::IterationSum& s);
  ExprId is_natural(const Affine& sum);
  ExprId quotient_below(const Affine& sum, std::int64_t by);
  ExprId in_step(ExprId number, const thread::For& iterations);
  ExprId smaller_of(ExprId a, ExprId b);
  ExprId larger_of(ExprId a, ExprId b);

  ExprId next_slot(RingId ring, ExprId slot);
  ExprId declare_number(const std::string& name, RingId ring);
  void expand_iteration(const lowered::Ahead& e, ExprId iteration);
  /// Where the slot of a ring begins that a storage is a part of, in units of so many bytes; 0 of
  /// no ring.
  Affine slot(StorageId storage, std::int64_t unit = 1, int back = 0);
  /// That which is chosen; else of a ring's that of the iteration, of another none.
  ExprId slot_of(BarrierId barrier, ValueId chosen);
  /// Of barriers that of the slot.
  ExprId barrier_address(BarrierId barrier, ExprId slot);
  ExprId place_address(const lowered::Place& p);
  /// Bytes from the begin of a storage to what the view of it shows; `access`, for messages.
  std::vector<Affine> origin_in_root(ValueId view, ValueId access);
  Affine view_bytes(ValueId view, ValueId access);
  ExprId in_block(ExprId address, ValueId block);

  ExprId scalar(ValueId v, bool enter = false);
  std::vector<ExprId> scalars(const std::vector<ValueId>& values);
  void put(ExprId record, ExprId slot, ExprId value, ExprId test);
  // debug.cpp: scopes in the profile of the launch
  void begin_profile();
  void tell_scope(ValueId event);
  void end_profile();
  void set_scalar(StorageId storage, ExprId value);
  ExprId advanced(VariableId counter, std::int64_t step, ValueId limit);
  /// number + step, or INT32_MAX where that is less: no limit of a loop is above.
  ExprId behind(ExprId number, std::int64_t step);
  /// The warps that meet, of which functions of the device library are told where they are not the
  /// four of a warpgroup.
  void add_warps(thread::Call& call) const {
    if (const int warps = in_warps_ ? 1 : l_.num_warps; warps != 4)
      call.templates.emplace_back(std::int64_t{warps});
  }
  /// The number of the thread's warp in the Pallas thread.
  ExprId warp_number();
  /// The program is of several warpgroups, which know each other's threads by other functions.
  bool is_wide() const { return l_.num_warps > 4; }
  /// That stand beside each other in a block; of a wide program itself.
  int warpgroups() const {
    return is_wide() ? l_.warpgroups : p_.threads / graph::warpgroup_threads;
  }
  void sync() {
    b_.add(
        thread::Sync{.whole_warps = in_warps_, .warps = l_.num_warps, .warpgroups = warpgroups()});
  }
  void mark_stored(StorageId storage);
  /// Whether the user has stored the block so far; no_expr where that is known.
  ExprId is_stored(StorageId storage);
  std::string unstored_message(StorageId storage) const;
  void check_accumulator(const lowered::Dot& d);
  void expand_held_product(const lowered::Dot& d);
  ExprId slot_in_ring(StorageId s);

  // inline.cpp: text of the user's
  /// Of the text of an instruction, which is given parameters of these types.
  std::size_t function_of(ValueId text, std::string parameters);

  // fetch.cpp
  void declare_tensor_maps();
  void begin_fetches();
  ExprId elected();
  /// One thread of each warpgroup of a wide program.
  ExprId elected_of_warpgroup();
  ExprId elected_of_block();
  void test(const lowered::Wait& w, ExprId address, ExprId phase, ExprId slot);
  void expand_one(const lowered::Copy& c);
  void bring_near(const lowered::Copy& c);
  void copy_window(const lowered::Copy& c);
  void copy_bytes(const lowered::Copy& c);
  void copy_run(const lowered::Copy& c);
  void load_box(const lowered::Copy& c, ExprId to, std::vector<ExprId> at);
  void begin_phases();
  void expand_one(const lowered::Arrive& a);
  void expand_one(const lowered::Wait& w);
  void expand_one(const lowered::Close& c);
  void expand_one(const lowered::WaitGroup& w);
  void expand_one(const lowered::Fence&);
  void pin(const std::vector<StorageId>& storages);
  void pin_declared(const std::vector<StorageId>& sums);
  std::vector<ExprId> box_origin(ValueId access);
  std::size_t dimension_in_array(ValueId access, const lowered::TensorBox& box, int of) const;
  template <class F>
  void for_each_matrix(const lowered::Copy& c, const lowered::Storage& s,
                       const std::vector<ExprId>& origin, std::int64_t rows, F&& copy);
  template <class F>
  void for_each_box(const lowered::Copy& c, StorageId storage, F&& copy);
  template <class F>
  void for_each_run(const graph::Inst& access, const std::vector<ExprId>& origin,
                    const lowered::TensorBox& box, std::int64_t parts, F&& copy);
  void check_view(ValueId access, ExprId test);
  void check_box(ValueId load, const graph::SubscriptDim& d, std::int64_t extent, ExprId start,
                 ValueId view, int dimension, ExprId test);

  // wgmma.cpp
  void expand_wgmma(const lowered::Dot& d);
  struct WgmmaOperands;
  struct Range {
    std::int64_t begin = 0, end = 0;
  };
  /// Of a view in panels: what stands before it, in 16 bytes, and where in a panel it begins.
  struct InPanels {
    Affine behind = {};
    std::int64_t mn = 0, k = 0;
  };
  WgmmaOperands operands_of_wgmma(const lowered::Dot& d);
  InPanels in_panels(ValueId view, ValueId product, bool transposed);
  void find_parts(WgmmaOperands& o);
  Affine beside_others(const WgmmaOperands& o, StorageId storage);
  void multiply(const WgmmaOperands& o, Range k_part, Range n_part, ExprId registers,
                ExprId begins);
  void find_added(const lowered::Statements& list);
  void find_beside_threads(const lowered::Statements& list, bool reach);
  /// Sums that tensor cores keep in few bits: of some columns at once, beside the sum in f32.
  struct Promoted {
    std::int64_t rows = 0, columns = 0, width = 0;
    std::int64_t last() const { return (columns - 1) / width * width; }
  };
  Promoted promoted(const lowered::Dot& d) const;
  std::int64_t count_of_part(const lowered::Dot& d) const;
  VariableId declare_part(const std::string& name, const lowered::Dot& d,
                          thread::Declare::Start start);
  void declare_parts(const lowered::Statements& list);
  void promote(const WgmmaOperands& o, ExprId begins);
  void add_part(StorageId sum, const Promoted& p, VariableId part, std::int64_t column,
                ExprId keep);
  bool has_rest(StorageId sum) const { return rests_[sum].part != thread::no_variable; }
  void add_rest(StorageId sum);
  void clear_rest(StorageId sum);
  ExprId matrix_descriptor(const lowered::Storage& s, ExprId address, bool transposed,
                           int every = 1);
  Affine of_warpgroup(const lowered::Dot& d, std::int64_t row_bytes, std::int64_t column_bytes);

  // windows.cpp
  void enter_window(WindowId window);
  /// What is known of a dimension of a window before its start is.
  struct Along {
    int d = 0;
    bool begins_inside = false;  // every block begins in its array
    DType type = i64;            // of the start
    passes::Loaded loaded = {};
  };
  Along along(WindowId window, int d) const;
  bool is_short(const BlockMapping& m) const;
  ExprId window_start(const BlockDim& b, ExprId at, const Along& along);
  void size_of_window(WindowId window, ExprId start, const Along& along, ExprId slice);
  ExprId of_programs(ExprId check);
  void check_slice(WindowId window, ExprId start, ExprId extent, ExprId slice, const Along& along);
  ExprId exists_along(const passes::BlockNames& names, ExprId start, ExprId extent,
                      std::int64_t size, const Along& along);
  ExprId window_offset(WindowId window, const std::vector<ExprId>& starts);
  void place_window(WindowId window, ExprId offset);

  // relayout.cpp
  void expand_rename(const lowered::Relayout& r);
  void expand_shuffles(const lowered::Relayout& r);
  void select(const layout::Select& x, VariableId words, std::int64_t count, int pack, ExprId lane);
  void expand_shared_moves(const lowered::Relayout& r);
  void move_through_shared(const lowered::Relayout& r, const layout::SharedAccess& a, bool store,
                           ExprId offset, ExprId test);
  void expand_memory_move(const lowered::Relayout& r);
  void expand_memory_side(const layout::MemoryMove& m, const layout::MemorySide& side,
                          const layout::Layout& layout, StorageId storage, ExprId scratch,
                          bool store, ExprId window);

  // names and numbers
  VariableId storage(StorageId s);
  VariableId declare_storage(StorageId s, bool zeros = false);
  std::string storage_name(StorageId s) const;
  ExprId scalar_storage(StorageId s) { return e_.variable(storage(s)); }
  Affine shared_place(StorageId s);
  ExprId shared_address(StorageId s);
  /// The same where nothing is added that changes from iteration to iteration of a loop.
  ExprId shared_base(StorageId s);
  ExprId number(std::int64_t n) { return e_.number(n); }
  /// A dimension over the kernel's symbols, as i64.
  ExprId dim(const Dim& d) { return passes::expr_of_dim(e_, d, symbols_); }
  /// The size of a symbol, as i32.
  ExprId symbol(int number) { return e_.cast(i32, symbols_[static_cast<std::size_t>(number)]); }
  ExprId grid_size(int axis);
  ExprId loop_end(int axis);
  /// What a launch counts with, where only an array knows the size.
  ExprId launched_size(int axis, DType type = i32);
  ExprId program_id(int axis) const { return program_ids_[static_cast<std::size_t>(axis)]; }
  /// Sum (without carries: some of the bits may meet in exclusive-or) of the images of x's bits.
  ExprId image(ExprId x, const layout::Bits& columns);
  /// `for (counter < count)` over registers, unrolled wholly.
  ExprId open_registers(const char* counter, std::int64_t count, bool short_form);
  /// ptxas computes again in each iteration what a thread's number gives by a few operations; what
  /// a lane is told by itself it keeps.
  ExprId kept(ExprId x) { return e_.call(Row::shuffle_idx, e_[x].type, {x, lane()}); }
  ExprId lane() { return b_.let_once("lane", false, e_.call(Row::lane, u32, {})); }

  const lowered::Program& l_;
  const bool sends_by_warpgroups_ = lowered::sends_by_warpgroups(l_);
  const graph::Graph& g_;
  thread::Program p_;
  Exprs& e_;
  Builder b_;

  std::vector<VariableId> arrays_;                     // per block mapping: parameter
  std::map<std::pair<int, int>, VariableId> strides_;  // of block mapping, dimension
  std::vector<ExprId> symbols_;
  std::map<std::uint32_t, ExprId> reciprocals_;    // of symbols that something is divided by
  std::map<std::uint32_t, ExprId> values_;         // of parameters of regions
  std::vector<ExprId> program_ids_, cluster_ids_;  // per axis
  std::vector<ExprId> bounds_;                     // per axis: a size that an array holds
  ExprId is_program_ = no_expr;  // where blocks may be launched that are none; no_expr: all are
  ExprId smem_ = no_expr, warpgroup_ = no_expr, warp_ = no_expr;
  ExprId thread_ = no_expr;                // index among the threads of a program
  Table<StorageId, VariableId> storages_;  // no_variable: not asked for yet
  /// What a product leaves for who asks for its sum, or the next one; zeros where nothing is left.
  struct Rest {
    const lowered::Dot* of = nullptr;
    VariableId part = thread::no_variable;
  };
  Table<StorageId, Rest> rests_;                                    // by the sum
  std::map<const lowered::Dot*, const lowered::WaitGroup*> added_;  // by who begins anew
  std::map<std::int64_t, VariableId> parts_;  // of sums that leave nothing, by their registers
  std::set<StorageId> in_flight_;             // results that the text so far does not wait for
  std::set<ValueId> beside_threads_;          // products
  Table<StorageId, bool> declared_;           // by a statement so far
  Table<StorageId, bool> mutable_;            // those that are assigned several times
  Table<StorageId, ExprId> literal_;          // scalars that are one; no_expr: others
  Table<StorageId, bool> begun_by_product_;   // those that a product begins, where its `anew` holds

  Table<WindowId, passes::BlockNames> windows_;
  Table<RingId, Slots> slots_;
  Slots slots_alone_;                      // of no ring
  Table<RingId, RingId> turns_with_;       // whose numbers say its slots, too
  std::map<RingId, RingId> last_to_turn_;  // of those that turn with it, in the agent's text
  std::map<RingId, RingId> lags_;          // a step behind which one, in the agent's text
  int leading_ = 1;                        // iterations of the Lead around
  std::map<ValueId, bool> known_;          // conditions, in the iterations that are expanded
  /// In a case of an extent: it is more than `above`, and at most `most`.
  struct Length {
    Dim extent = {};
    std::int64_t above = -1, most = INT64_MAX;
  };
  std::optional<Length> length_;
  bool is_one_thread_ = false;  // what follows runs in one alone
  bool in_warps_ = false;       // what follows each warp runs for itself
  /// The warpgroups of the agent whose statements follow; of the block in front of all.
  struct Warpgroups {
    int first = 0, count = 1;
    bool is_known = false;  // nobody else comes where these statements stand
  } agent_;

  VariableId debug_ = thread::no_variable;    // parameter: where the host is told something
  VariableId profile_ = thread::no_variable;  // ... and of scopes, by who stands where in it, and
  ExprId profile_at_ = no_expr, profile_count_ = no_expr;  // has told of so many
  std::map<std::uint32_t, ExprId> records_;  // of arrays that are printed: where their elements go
  Table<BoxId, VariableId> tensor_maps_;     // parameters
  std::set<BarrierId> cluster_scopes_;       // at which other blocks tell of what threads did
  std::map<BarrierId, VariableId> phases_;   // of those that are tracked: a bit for each
  std::map<std::pair<ValueId, std::string>, std::size_t> functions_;  // of texts, by parameters

  // Windows in registers of which nothing is known before the user stores it, by storage: the flag
  // that says whether that has happened.
  struct Unstored {
    WindowId window = {};
    VariableId flag = thread::no_variable;
  };
  std::map<StorageId, Unstored> unstored_;
  std::set<StorageId> own_;  // of those, the ones that the agent declares
};

template <class F>
void Expander::apart(F&& f) {
  const auto storages = storages_;
  const auto declared = declared_, changing = mutable_;
  const auto windows = windows_;
  const auto programs = program_ids_;
  const auto literals = literal_;
  f();
  storages_ = storages;
  declared_ = declared;
  mutable_ = changing;
  windows_ = windows;
  program_ids_ = programs;
  literal_ = literals;
}

}  // namespace palladium::expand
