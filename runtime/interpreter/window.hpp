// The contents of a block or scratch Ref, private to one block of one program.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "runtime/interpreter/races.hpp"
#include "runtime/interpreter/view.hpp"
#include "runtime/race/reader_map.hpp"
#include "runtime/race/writer_map.hpp"

namespace palladium::interpreter {

/// An array of the call.
struct Operand {
  const BlockMapping* mapping = nullptr;
  const graph::Graph* graph = nullptr;
  std::byte* data = nullptr;
  graph::Extents shape;
  std::vector<std::int64_t> strides;   // in elements
  race::WriterMap* writers = nullptr;  // of the memory; null if no window of it is stored
  bool keeps_contents = true;          // false for an output that no input is aliased to
  bool written = true;                 // some body may store to it
  bool aliased = false;
  race::ReaderMap* readers =
      nullptr;                // of the memory, where one program may read what another writes
  bool many_writers = false;  // Graph::allow_revisit
  bool is_whole = false;      // Graph::whole_arrays: a window is the array, and everybody's
  bool is_dense = true;       // no gaps between its rows
  bool is_absent = false;     // no elements, and nobody who asks for one
};

/// Two programs that the grid does not order access an element.
struct Clash {
  race::Conflict accesses;
  bool first_reads = false, second_reads = false;
};

/// A window is read from the array at its first use and stored at its last: only what the program
/// wrote. Elements out of bounds read as poison, after a bitcast as the poison of the view's dtype,
/// and what is written there is dropped. Of scratch, and of an output that no input is aliased to,
/// nothing is known before somebody writes it.
class Window {
 public:
  /// A block of `operand`, which must outlive the window.
  Window(const Operand& operand, std::uint64_t poison);
  /// Scratch.
  Window(const graph::Type& type, std::string name, std::uint64_t poison);
  Window(Window&&) = default;

  /// Places the window for a program of the grid; the first dimension in which it lies wholly out
  /// of bounds, if there is one. Call `close` before.
  std::optional<int> open(std::span<const std::int64_t> indices, std::uint32_t program);
  /// Stores what was written; two programs that clash over an element, if there are any.
  std::optional<Clash> close();
  /// Forgets the contents: scratch at the start of a program.
  void poison();

  /// Makes `root` the view of the whole window.
  void bind(View& root);

  const Operand* operand() const { return operand_; }
  /// "outputs[0]", "scratch[1]"
  const std::string& name() const { return operand_ ? operand_->mapping->origin : name_; }
  DType dtype() const { return dtype_; }
  /// Squeezed dimensions are left out.
  const graph::Extents& ref_shape() const { return ref_shape_; }
  std::span<const std::int64_t> indices() const { return indices_; }
  /// Where the block starts in the array.
  std::span<const std::int64_t> starts() const { return starts_; }

  // Used by load, store and swap on a bound view.
  /// What a bound view's offsets count from.
  const std::byte* readable() {
    if (in_array_) return operand_->data;
    if (!loaded_) load();
    return contents_.get();
  }
  /// `whole`: every element is about to be set. `elements`: in units of the window's own elements.
  std::byte* writable(bool whole, bool elements) {
    if (is_array()) return operand_->data;
    if (!contents_) allocate();
    if (!whole && (known_ == Known::nothing || !loaded_ || stamps_.empty())) prepare(elements);
    return contents_.get();
  }
  void wrote_whole(graph::ValueId store);
  /// Whether somebody wants to know what is written: `wrote` is needed for each element.
  bool notes_writes() const { return stored_ && (is_array() || written_ != Written::whole); }
  /// Bytes at an offset were set: a part of an element, or several after a bitcast. `wrote_end`
  /// follows once per store.
  void wrote(std::int64_t offset, int bytes, graph::ValueId store) {
    if (!notes_writes()) return;
    if (is_array()) return wrote_array(offset, bytes, store);
    const std::int64_t first = offset / dtype_.bytes();
    const std::int64_t last = (offset + bytes - 1) / dtype_.bytes();
    // What was stored before it is updated stays a store: others must not see it.
    const bool stays = operand_->graph != nullptr && is_update(graph::index(store));
    for (std::int64_t element = first; element <= last; ++element)
      if (!stays || !is_stamped(element)) stamps_[static_cast<std::size_t>(element)] = stamp(store);
    first_written_ = std::min(first_written_, first);
    last_written_ = std::max(last_written_, last);
  }
  void wrote_end() {
    if (is_array()) return;
    if (written_ == Written::nothing) written_ = Written::some;
    if (!inside_) poison_outside();
  }
  /// Bytes of a run were set, as above.
  void knows(const Run& run, int bytes) {
    // Of whole arrays the map of writers knows.
    if (learns()) learn(run, bytes);
  }
  bool learns() const { return known_ == Known::some && !is_array(); }
  /// Whether there may be elements that nobody has written.
  bool has_unknown() const { return known_ != Known::all; }
  /// The first byte of a run in bounds that nobody has written.
  std::optional<std::int64_t> find_unknown(const Run& run, int bytes);
  /// Whether somebody has written all of these places; of a window that is not the array itself.
  bool knows_all(std::span<const std::int64_t> offsets, int bytes);
  /// Whether reads are of interest to other programs.
  bool tells_reads() const { return operand_ != nullptr && operand_->readers != nullptr; }
  /// Bytes of a run were read.
  void read(const Run& run, int bytes, graph::ValueId load);
  /// Does the whole window lie in its array?
  bool is_inside() const { return inside_; }
  /// Is there something given that elements hold which do not?
  bool is_filled() const { return operand_ != nullptr && operand_->mapping->fill; }
  /// Do the bytes at an offset?
  bool is_inside(std::int64_t offset, int bytes) const;
  std::size_t bytes() const { return static_cast<std::size_t>(count_) * dtype_.bytes(); }
  /// Whether the contents are the array itself, in the strides of the array.
  bool is_array() const { return operand_ != nullptr && operand_->is_whole; }
  /// Of a byte, as if the array's rows had no gaps.
  std::size_t dense_offset(std::int64_t offset) const {
    const int size = dtype_.bytes();
    return static_cast<std::size_t>(is_array() ? element_at(offset) * size + offset % size
                                               : offset);
  }
  bool has_clash() const { return clash_.has_value(); }
  /// A clash over the array itself since the last call.
  std::optional<Clash> take_clash() { return std::exchange(clash_, std::nullopt); }

  /// Told of every access of a thread; null if nobody is.
  Races::Memory* races = nullptr;

 private:
  enum class Written : std::uint8_t { nothing, some, whole };
  enum class Known : std::uint8_t { nothing, some, all };

  std::uint64_t stamp(graph::ValueId store) const {
    return std::uint64_t(epoch_) << 32 | graph::index(store);
  }
  bool is_stamped(std::int64_t element) const {
    return stamps_[static_cast<std::size_t>(element)] >> 32 == epoch_;
  }
  bool is_squeezed(std::size_t dimension) const;
  bool stays_in_array() const;
  graph::Extents without_squeezed() const;
  void allocate();
  void prepare(bool elements);
  void learn(const Run& run, int bytes);
  void load();
  void poison_outside();
  bool is_fresh() const { return operand_ == nullptr || !operand_->keeps_contents; }
  void know_some();
  template <class F>
  void for_each_row(F&& f) const;
  template <class F>
  void for_each_outside(F&& f) const;
  bool is_update(std::uint32_t tag) const;
  std::optional<Clash> record(std::int64_t first, std::int64_t n, graph::ValueId by) const;
  std::optional<Clash> close_reads();
  /// The number, among those of the array, of the element at an offset.
  std::int64_t element_at(std::int64_t offset) const {
    return operand_->is_dense ? offset / dtype_.bytes() : element_between_gaps(offset);
  }
  std::int64_t element_between_gaps(std::int64_t offset) const;
  void wrote_array(std::int64_t offset, int bytes, graph::ValueId store);
  void read_array(const Run& run, int bytes, graph::ValueId load);
  std::optional<Clash> find_readers(std::int64_t first, std::int64_t count,
                                    graph::ValueId store) const;

  const Operand* operand_ = nullptr;
  std::string name_;
  DType dtype_;
  std::uint64_t poison_;
  graph::Extents shape_;  // squeezed dimensions included
  graph::Extents ref_shape_;
  std::vector<std::int64_t> strides_;  // of the private contents, bytes
  std::int64_t count_;
  bool stored_ = false;  // close() stores

  std::vector<std::int64_t> indices_, starts_;
  std::vector<std::int64_t> low_, high_;  // the part in bounds, per dimension
  bool inside_ = true;                    // all of it
  bool in_array_ = false;                 // what is read is the array itself
  std::uint32_t program_ = 0;
  std::uint32_t stored_by_ = ~0u;  // the last program that stored through this window

  std::unique_ptr<std::byte[]> contents_;
  bool loaded_ = false;
  Written written_ = Written::nothing;
  graph::ValueId whole_store_ = graph::no_value;
  // Per element: (epoch, store) of its last write; older epochs are earlier blocks.
  std::vector<std::uint64_t> stamps_;
  std::uint32_t epoch_ = 0;
  std::int64_t first_written_ = 0, last_written_ = -1;

  Known known_ = Known::all;
  std::vector<std::uint8_t> known_bytes_;  // of each byte, where only some are known
  // Per element, as stamps_: (epoch, load) of a read of what the array held.
  std::vector<std::uint64_t> reads_;
  bool was_read_ = false;
  std::optional<Clash> clash_;
};

}  // namespace palladium::interpreter
