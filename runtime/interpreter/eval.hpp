// One evaluation function per operation, and the frame they work on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "runtime/interpreter/plan.hpp"
#include "runtime/interpreter/races.hpp"
#include "runtime/interpreter/view.hpp"
#include "runtime/interpreter/window.hpp"

namespace palladium::fiber {
class Scheduler;
}

namespace palladium::interpreter {

using graph::Inst;
using graph::RegionId;
using graph::ValueId;

class Launch;
class Semaphores;
struct Barrier;
struct SemaphoreUser;

/// Copies to global memory that a Pallas thread has begun: of each what is known when it has read,
/// and when it is there.
struct Sent {
  race::Snapshot read, written;
  Location at;
};
/// ... in groups.
struct CopyGroups {
  std::vector<Sent> open;
  std::vector<std::vector<Sent>> closed;
  std::size_t read = 0, written = 0;  // so many of the first have been awaited
};
/// Who a thread's copies are to the search for races: one that brings, and of one that sends who
/// reads and who writes.
struct CopyAgents {
  race::Agent bringing = 0, reading = 0, writing = 0, multiplying = 0;
};
/// A product of a Pallas thread that may be under way, the accumulator to which it adds, and what
/// is known when it is over.
struct ProductUnderWay {
  const Window* accumulator = nullptr;
  race::Snapshot done;
  Location at;
};

/// Where a Pallas thread stands, or one of its warps.
struct Position {
  std::vector<std::int64_t> grid, grid_sizes;
  std::vector<std::int64_t> cluster, cluster_sizes;
  std::int64_t thread = 0, threads = 1;
  int warp = -1;  // -1: all of them
};

/// The values and views of one Pallas thread. Values are packed, in row-major order.
class Frame {
 public:
  Frame(const Plan& plan, bool poison);
  ~Frame();

  /// Runs a region's instructions in order.
  void run(RegionId region);

  const Plan& plan() const { return plan_; }
  const graph::Graph& graph() const { return plan_.graph(); }
  const Inst& inst(ValueId v) const { return graph()[v]; }
  const graph::Type& type(ValueId v) const { return inst(v).type; }
  DType dtype(ValueId v) const { return type(v).dtype; }
  std::int64_t count(ValueId v) const { return plan_.count(v); }

  std::byte* bytes(ValueId v) { return memory_.get() + plan_.place(v); }
  std::byte* staged(std::size_t place) { return memory_.get() + place; }
  template <class T>
  T* data(ValueId v) {
    return reinterpret_cast<T*>(bytes(v));
  }
  template <class T>
  const T* operand(const Inst& inst, std::size_t i) {
    return data<T>(inst.args[i]);
  }
  /// The value of an i32[].
  std::int32_t number(ValueId v) { return *data<std::int32_t>(v); }
  void set_number(ValueId v, std::int64_t n) {
    *data<std::int32_t>(v) = static_cast<std::int32_t>(n);
  }
  /// Sets every element of v to the bits that nobody wrote.
  void poison(ValueId v);
  /// The same for one.
  void poison(ValueId v, std::int64_t element);

  View& view(ValueId ref) { return views_[graph::index(ref)]; }
  /// Makes a parameter of a scope the view of memory that holds nothing.
  void open_scoped(ValueId param, std::string name);
  /// A frame that one of the thread's warps goes on with from here, and its end.
  Frame& split(int warp);
  void join(const Frame& warp);

  Position position;
  Races* races = nullptr;  // told of what the thread does, if there is one
  race::Agent agent = 0;
  const Launch* launch = nullptr;  // null: index maps
  Semaphores* semaphores = nullptr;
  fiber::Scheduler* scheduler = nullptr;
  std::vector<race::Agent> warp_agents = {};
  std::map<std::pair<const Window*, std::int64_t>, Barrier>* barriers = nullptr;
  CopyAgents copy_agents = {};
  CopyGroups copies = {};
  std::vector<Sent> fetches = {};              // to shared memory, without a barrier
  std::size_t fetched = 0;                     // so many of the first have been awaited
  std::vector<ProductUnderWay> products = {};  // in order
  /// The same thread in each block of the cluster, by rank; none: of index maps.
  std::vector<Frame*> cluster = {};

 private:
  const Plan& plan_;
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::vector<View> views_;
  std::map<ValueId, Window> scoped_;  // of parameters
  std::vector<std::unique_ptr<Frame>> warps_ = {};
  bool poison_;
};

Eval* evaluation(graph::Op op);

/// The Pallas thread, and what it uses there, for messages and the search for races.
SemaphoreUser user_of(Frame& f, ValueId v, std::string semaphore);

/// The elements of the Ref `to` become those of `from`, by instruction `by`; the search for races
/// is told that these agents did it, asynchronously.
void copy_elements(Frame& f, ValueId by, View& from, View& to, race::Agent reading,
                   race::Agent writing, race::Proxy through = race::Proxy::async);
/// The same where elements of `from` may be out of bounds of their array, and are these bytes then;
/// or elements of `to`, to which nothing is written.
void fill_elements(Frame& f, ValueId by, View& from, View& to, race::Agent copy, std::byte beyond);
void clip_elements(Frame& f, ValueId by, View& from, View& to, race::Agent reading,
                   race::Agent writing);
/// The same where the elements of `to` are updated, as the instruction says.
void reduce_elements(Frame& f, ValueId by, View& from, View& to, race::Agent reading,
                     race::Agent writing);
/// The frame of this thread in the block of that rank; of no_value in its own. CompileError, at
/// `by`, where there is none.
Frame& in_block(Frame& f, ValueId by, ValueId rank);

/// The elements of a Ref, which this agent reads asynchronously.
void read_elements(Frame& f, ValueId by, ValueId from, std::byte* to, race::Agent reading);
/// The results of an operation become what its region has yielded.
void hand_on(Frame& f, ValueId v, std::size_t region);
/// CompileError where the access is of an accumulator to which a product may still add.
void refuse_under_way(Frame& f, ValueId access);

// One for each operation: without it nothing links.
#define PL_OP(Name, ...) Eval eval_##Name;
#include "codegen/graph/ops.def"
#undef PL_OP

}  // namespace palladium::interpreter
