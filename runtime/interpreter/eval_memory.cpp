// Views, load, store, swap and atomic updates.
#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <optional>
#include <type_traits>
#include <vector>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"
#include "runtime/interpreter/eval.hpp"
#include "runtime/interpreter/launch.hpp"
#include "runtime/interpreter/number.hpp"
#include "runtime/interpreter/window.hpp"

namespace palladium::interpreter {
namespace {

[[noreturn]] void refuse(Frame& f, ValueId access, const View::Misfit& m) {
  const std::string ref = graph::to_string(f.type(f.inst(m.at).args[0]));
  const bool is_slice =
      f.plan().subscript(m.at).dims[static_cast<std::size_t>(m.dimension)].is_slice;
  const std::string what =
      is_slice ? fmt::format("slice of {} elements{} from {}", m.size,
                             m.stride == 1 ? "" : fmt::format(" with stride {}", m.stride), m.start)
               : fmt::format("index {}", m.start);
  Location where = f.graph().location(m.at);
  if (where == Location{}) where = f.graph().location(access);
  throw CompileError(
      where, fmt::format("{}: {} is out of bounds for dimension {} of {}, whose extent is {}",
                         graph::info(f.inst(access).op).name, what, m.dimension, ref, m.extent));
}

[[noreturn]] void refuse_unknown(Frame& f, ValueId access, const Window& window,
                                 std::int64_t offset) {
  const graph::Extents shape = window.ref_shape();
  std::string index;
  std::int64_t rest = offset / window.dtype().bytes();
  for (std::size_t d = shape.size(); d > 0; --d) {
    index = std::to_string(rest % shape[d - 1]) + (index.empty() ? "" : ",") + index;
    rest /= shape[d - 1];
  }
  throw CompileError(
      f.graph().location(access),
      fmt::format("{}: element [{}] of {} is read before anything was stored there; {} nothing: "
                  "store first (pl::zeros), or read what was stored with a mask",
                  graph::info(f.inst(access).op).name, index, window.name(),
                  window.operand() == nullptr
                      ? "scratch starts with"
                      : "an output to which no input is aliased starts with"));
}

struct AddTo {
  template <class T>
  T operator()(T old, T value) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(old) + static_cast<std::uint64_t>(value));
    } else {
      return old + value;
    }
  }
};

// Which element of a value goes to which offset.
class Places {
 public:
  explicit Places(std::size_t count)
      : table_(std::bit_ceil(2 * count)), shift_(64 - std::countr_zero(table_.size())) {}

  // The element that has gone there before, if there is one.
  std::optional<std::int64_t> put(std::int64_t offset, std::int64_t element) {
    auto at =
        static_cast<std::size_t>(static_cast<std::uint64_t>(offset) * 0x9e3779b97f4a7c15) >> shift_;
    for (;; at = (at + 1) % table_.size()) {
      Place& place = table_[at];
      if (place.offset == offset) return place.element;
      if (place.offset >= 0) continue;
      place = {offset, element};
      return std::nullopt;
    }
  }

 private:
  struct Place {
    std::int64_t offset = -1, element = 0;
  };
  std::vector<Place> table_;
  int shift_;
};

// A reader or writer of a view: the mask, and the refusal of elements that do not exist.
class Access {
 public:
  Access(Frame& f, ValueId v) : Access(f, v, f.plan().memory(v)) {}
  Access(Frame& f, ValueId v, const graph::MemoryView& memory)
      : Access(f, v, memory, f.view(memory.ref)) {}
  Access(Frame& f, ValueId v, const graph::MemoryView& memory, View& view)
      : f_(f), v_(v), memory_(memory), view_(view) {
    if (memory_.mask != graph::no_value) mask_ = f.data<bool>(memory_.mask);
    bytes_ = view_.bytes;
  }

  const graph::MemoryView& memory() const { return memory_; }
  View& view() const { return view_; }
  Window& window() const { return *view_.window; }
  bool masked() const { return mask_ != nullptr; }
  /// Of each element whether it is on; null: all are.
  void mask(const bool* on) { mask_ = on; }
  bool on(std::int64_t element) const { return mask_ == nullptr || mask_[element]; }

  /// Copies elements from the window to `to`; masked-off elements are left alone.
  void read(std::byte* to) {
    if (is_element())
      copy_element(to, window().readable() + view_.offset, bytes_);
    else
      copy_in(to);
    if (window().has_unknown()) check_known();
    if (window().tells_reads())
      for_each_piece([&](const Run& run, int bytes) { window().read(run, bytes, v_); });
    if (window().has_clash()) refuse_clash();
    // The window's poison is that of its own dtype; what fills it is bytes.
    if (view_.dtype != window().dtype() && !window().is_inside() && !window().is_filled())
      for_each([&](std::int64_t element, std::int64_t offset, std::int64_t, int bytes) {
        if (!window().is_inside(offset, bytes)) f_.poison(v_, element);
      });
  }

  /// Copies elements from `from` to the window; masked-off elements are left alone.
  void write(const std::byte* from) {
    if (view_.chosen) refuse_repeated();
    if (is_element() && static_cast<std::size_t>(bytes_) != window().bytes())
      put_element(from);
    else
      put(from);
    if (window().has_clash()) refuse_clash();
  }

  /// Each element that is on becomes change(element, what it is), one after the other.
  template <class T, class F>
  void update(F&& change) {
    if (window().has_unknown()) check_known();
    (void)window().readable();  // which brings them
    std::byte* const contents = window().writable(false, true);
    for_each([&](std::int64_t element, std::int64_t offset, std::int64_t, int) {
      T x;
      std::memcpy(&x, contents + offset, sizeof x);
      x = change(element, x);
      std::memcpy(contents + offset, &x, sizeof x);
    });
    tell_written();
  }

  /// Tells the search for races what was done, as the table of operations has it.
  void record() {
    if (window().races == nullptr) return;
    const graph::Op op = f_.inst(v_).op;
    if (op == graph::Op::Atomic) return record(race::Kind::atomic);
    if (graph::reads_memory(op)) record(race::Kind::read);
    if (graph::writes_memory(op)) record(race::Kind::write);
  }
  /// The same of an asynchronous operation.
  void record(race::Agent agent, race::Kind kind, race::Proxy through = race::Proxy::async) {
    if (window().races == nullptr) return;
    agent_ = agent;
    proxy_ = through;
    record(kind);
  }

 private:
  bool is_element() const { return view_.shape.empty() && !view_.listed && !masked(); }

  // One offset for each element.
  bool is_list() const { return view_.listed && view_.pieces_per_element == 1; }

  void check_known() {
    if (is_list() && !masked() && view_.misfits.empty() && !window().is_array() &&
        window().knows_all(view_.pieces(), bytes_))
      return;
    for_each_piece([&](const Run& run, int bytes) {
      if (const auto at = window().find_unknown(run, bytes)) refuse_unknown(f_, v_, window(), *at);
    });
  }

  // Which of several elements that go to one place would stay is not said.
  void refuse_repeated() {
    Places stored(static_cast<std::size_t>(view_.count()) * view_.pieces_per_element);
    for_each([&](std::int64_t element, std::int64_t offset, std::int64_t, int) {
      const std::optional<std::int64_t> before = stored.put(offset, element);
      if (!before) return;
      throw CompileError(
          f_.graph().location(v_),
          fmt::format("{}: elements {} and {} of the value go to one element of {}, and which of "
                      "them stays is not defined: mask all but one, or update it atomically",
                      graph::info(f_.inst(v_).op).name, *before, element, window().name()));
    });
  }

  void copy_in(std::byte* to) {
    const std::byte* from = window().readable();
    if (!masked() && !view_.listed) {
      gather(to, from, view_.shape, view_.strides, view_.offset, bytes_);
      return;
    }
    if (is_list()) {
      with_size(bytes_, [&]<class T>() {
        for_each([&](std::int64_t element, std::int64_t offset, std::int64_t, int) {
          std::memcpy(to + element * static_cast<std::int64_t>(sizeof(T)), from + offset,
                      sizeof(T));
        });
      });
      return;
    }
    for_each([&](std::int64_t element, std::int64_t offset, std::int64_t at, int bytes) {
      std::memcpy(to + element * bytes_ + at, from + offset, static_cast<std::size_t>(bytes));
    });
  }

  // As `put`, a part of the window.
  void put_element(const std::byte* from) {
    std::byte* to = window().writable(false, bytes_ == window().dtype().bytes());
    copy_element(to + view_.offset, from, bytes_);
    window().knows({0, view_.offset, bytes_, 1}, bytes_);
    window().wrote(view_.offset, bytes_, v_);
    window().wrote_end();
  }

  void put(const std::byte* from) {
    const bool own_elements =
        bytes_ == window().dtype().bytes() && (!view_.listed || view_.pieces_per_element == 1);
    if (!masked() && !view_.listed && !window().is_array() &&
        static_cast<std::size_t>(view_.count() * bytes_) == window().bytes()) {
      std::byte* to = window().writable(true, true);
      copy_out(to, from);
      window().wrote_whole(v_);
      return;
    }
    std::byte* to = window().writable(false, own_elements);
    if (!masked() && !view_.listed) {
      copy_out(to, from);
    } else if (is_list()) {
      with_size(bytes_, [&]<class T>() {
        for_each([&](std::int64_t element, std::int64_t offset, std::int64_t, int) {
          std::memcpy(to + offset, from + element * static_cast<std::int64_t>(sizeof(T)),
                      sizeof(T));
        });
      });
    } else {
      for_each([&](std::int64_t element, std::int64_t offset, std::int64_t at, int bytes) {
        std::memcpy(to + offset, from + element * bytes_ + at, static_cast<std::size_t>(bytes));
      });
    }
    if (window().learns())
      for_each_piece([&](const Run& run, int bytes) { window().knows(run, bytes); });
    tell_written();
  }

  void tell_written() {
    if (window().notes_writes())
      for_each([&](std::int64_t, std::int64_t offset, std::int64_t, int bytes) {
        window().wrote(offset, bytes, v_);
      });
    window().wrote_end();
  }

  void refuse_clash() {
    const auto clash = window().take_clash();
    // Where programs wait for each other, what they do to arrays is told to their races.
    if (clash && !f_.graph().allow_revisit && !f_.launch->is_concurrent)
      f_.launch->refuse_clash(*window().operand(), *clash);
  }

  void record(race::Kind kind) {
    const auto note = [&](std::int64_t offset, std::int64_t bytes) {
      f_.races->record(*window().races, window().dense_offset(offset),
                       static_cast<std::size_t>(bytes), agent_, kind, v_, proxy_);
    };
    if (masked() || view_.listed) {
      for_each(
          [&](std::int64_t, std::int64_t offset, std::int64_t, int bytes) { note(offset, bytes); });
      return;
    }
    for_each_run(view_.shape, view_.strides, view_.offset, [&](const Run& run) {
      if (run.stride == bytes_) return note(run.offset, run.count * bytes_);
      for (std::int64_t k = 0; k < run.count; ++k) note(run.offset + k * run.stride, bytes_);
    });
  }

  // f(Run in the window, bytes of its elements) for all that is on.
  template <class F>
  void for_each_piece(F&& f) {
    if (!masked() && !view_.listed) {
      for_each_run(view_.shape, view_.strides, view_.offset,
                   [&](const Run& run) { f(run, bytes_); });
      return;
    }
    for_each([&](std::int64_t element, std::int64_t offset, std::int64_t, int bytes) {
      f(Run{element, offset, bytes, 1}, bytes);
    });
  }

  void copy_out(std::byte* to, const std::byte* from) {
    for_each_run(view_.shape, view_.strides, view_.offset, [&](const Run& run) {
      copy_run(to + run.offset, run.stride, from + run.first * bytes_, bytes_, run.count, bytes_);
    });
  }

  // f(element, offset in the window, offset in the element, bytes) for each piece that is on.
  template <class F>
  void for_each(F&& f) {
    if (!view_.listed) {
      for_each_run(view_.shape, view_.strides, view_.offset, [&](const Run& run) {
        for (std::int64_t k = 0; k < run.count; ++k)
          if (on(run.first + k)) f(run.first + k, run.offset + k * run.stride, 0, bytes_);
      });
      return;
    }
    const int n = view_.pieces_per_element, bytes = bytes_ / n;
    const std::int64_t count = view_.count();
    if (view_.index != nullptr) {
      const std::int32_t* const index = view_.index;
      const std::int64_t stride = view_.index_stride, offset = view_.offset;
      for (std::int64_t element = 0; element < count; ++element)
        if (on(element)) f(element, offset + index[element] * stride, 0, bytes);
      return;
    }
    const std::int64_t* piece = view_.pieces().data();
    if (n == 1 && !masked() && view_.misfits.empty()) {
      for (std::int64_t element = 0; element < count; ++element)
        f(element, piece[element], 0, bytes);
      return;
    }
    for (std::int64_t element = 0; element < count; ++element)
      for (int p = 0; p < n; ++p, ++piece) {
        if (!on(element)) continue;
        if (View::is_missing(*piece)) refuse(f_, v_, view_.misfit_of(*piece));
        f(element, *piece, p * bytes, bytes);
      }
  }

  Frame& f_;
  ValueId v_;
  const graph::MemoryView& memory_;
  View& view_;
  const bool* mask_ = nullptr;
  int bytes_ = 0;
  race::Agent agent_ = f_.agent;
  race::Proxy proxy_ = race::Proxy::generic;
};

}  // namespace

namespace {

[[gnu::noinline]] void list_subscript(Frame& f, ValueId v, const Inst& inst) {
  Start starts[Shape::max_rank] = {};
  for (std::size_t i = 1; i < inst.args.size(); ++i)
    if (f.type(inst.args[i]).is_scalar())
      starts[i - 1].number = f.number(inst.args[i]);
    else
      starts[i - 1].array = f.data<std::int32_t>(inst.args[i]);
  subscript(f.view(v), f.view(inst.args[0]), v, inst.type, f.plan().subscript(v),
            {starts, inst.args.size() - 1});
}

}  // namespace

void eval_At(Frame& f, ValueId v, const Inst& inst) {
  const ValueId* const args = inst.args.data();
  const auto start_of = [&](std::size_t i) -> std::int64_t { return f.number(args[1 + i]); };
  if (!step(f.view(v), f.view(args[0]), inst.type, f.plan().subscript(v), start_of))
    list_subscript(f, v, inst);
}

void eval_RefReshape(Frame& f, ValueId v, const Inst& inst) {
  reshape(f.view(v), f.view(inst.args[0]), inst.type);
}

void eval_RefTranspose(Frame& f, ValueId v, const Inst& inst) {
  transpose(f.view(v), f.view(inst.args[0]), inst.type, graph::dimensions(inst));
}

void eval_RefBitcast(Frame& f, ValueId v, const Inst& inst) {
  bitcast(f.view(v), f.view(inst.args[0]), inst.type);
}

void eval_Load(Frame& f, ValueId v, const Inst&) {
  if (!f.products.empty()) refuse_under_way(f, v);
  Access access(f, v);
  if (access.masked()) {
    const ValueId other = access.memory().other;
    if (other != graph::no_value) {
      std::memcpy(f.bytes(v), f.bytes(other), f.plan().bytes(v));
    } else {
      f.poison(v);
    }
  }
  access.read(f.bytes(v));
  access.record();
}

void copy_elements(Frame& f, ValueId by, View& from, View& to, race::Agent reading,
                   race::Agent writing, race::Proxy through) {
  const graph::MemoryView unmasked;
  Access read(f, by, unmasked, from), write(f, by, unmasked, to);
  std::vector<std::byte> elements(static_cast<std::size_t>(read.view().count()) *
                                  static_cast<std::size_t>(read.view().bytes));
  read.read(elements.data());
  write.write(elements.data());
  read.record(reading, race::Kind::read, through);
  write.record(writing, race::Kind::write, through);
}

namespace {

// Of each element whether its array has it; empty: all are there. What leaves a part of the array
// is no end of it.
std::unique_ptr<bool[]> existing(Frame& f, const View& view) {
  if (!view.listed || view.misfits.empty()) return {};
  const std::vector<std::int64_t>& pieces = view.pieces();
  auto there = std::make_unique<bool[]>(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    there[i] = true;
    if (!View::is_missing(pieces[i])) continue;
    const View::Misfit& misfit = view.misfit_of(pieces[i]);
    there[i] =
        !f.graph().is_whole(f.inst(misfit.at).args[0], static_cast<std::size_t>(misfit.dimension));
  }
  return there;
}

}  // namespace

void fill_elements(Frame& f, ValueId by, View& from, View& to, race::Agent copy, std::byte beyond) {
  const graph::MemoryView unmasked;
  const auto there = existing(f, from);
  Access read(f, by, unmasked, from), write(f, by, unmasked, to);
  read.mask(there.get());
  std::vector<std::byte> elements(
      static_cast<std::size_t>(from.count()) * static_cast<std::size_t>(from.bytes), beyond);
  read.read(elements.data());
  write.write(elements.data());
  read.record(copy, race::Kind::read);
  write.record(copy, race::Kind::write);
}

void clip_elements(Frame& f, ValueId by, View& from, View& to, race::Agent reading,
                   race::Agent writing) {
  const graph::MemoryView unmasked;
  const auto there = existing(f, to);
  Access read(f, by, unmasked, from), write(f, by, unmasked, to);
  read.mask(there.get());
  write.mask(there.get());
  std::vector<std::byte> elements(static_cast<std::size_t>(from.count()) *
                                  static_cast<std::size_t>(from.bytes));
  read.read(elements.data());
  write.write(elements.data());
  read.record(reading, race::Kind::read, race::Proxy::async);
  write.record(writing, race::Kind::write, race::Proxy::async);
}

void read_elements(Frame& f, ValueId by, ValueId from, std::byte* to, race::Agent reading) {
  const graph::MemoryView source{.ref = from};
  Access read(f, by, source);
  read.read(to);
  read.record(reading, race::Kind::read);
}

void eval_Store(Frame& f, ValueId v, const Inst&) {
  if (!f.products.empty()) refuse_under_way(f, v);
  Access access(f, v);
  access.write(f.bytes(access.memory().value));
  access.record();
}

namespace {

// Elements become change(element, what it is, operand). Where the mask is off the result is the
// operand.
template <class T, class F>
void update(Frame& f, ValueId v, F change) {
  Access access(f, v);
  const T* values = f.data<T>(access.memory().value);
  if (!f.plan().is_used(v)) {
    access.update<T>(
        [&](std::int64_t element, T old) { return change(element, old, values[element]); });
    return access.record();
  }
  T* olds = f.data<T>(v);
  if (access.masked()) std::memcpy(olds, values, f.plan().bytes(v));
  access.update<T>([&](std::int64_t element, T old) {
    olds[element] = old;
    return change(element, old, values[element]);
  });
  access.record();
}

template <class F>
void update_number(Frame& f, ValueId v, F op) {
  with_type_if<IsNumber>(f.dtype(v), [&]<class T>() {
    update<T>(f, v, [&](std::int64_t, T old, T value) {
      return narrow<T>(op(widen(old), widen(value)));
    });
  });
}

template <class F>
void update_bits(Frame& f, ValueId v, F op) {
  with_size(f.dtype(v).bytes(), [&]<class T>() {
    update<T>(f, v, [&](std::int64_t, T old, T value) { return static_cast<T>(op(old, value)); });
  });
}

// As natural numbers.
struct Increment {
  std::uint32_t operator()(std::uint32_t old, std::uint32_t bound) const {
    return old >= bound ? 0 : old + 1;
  }
};
struct Decrement {
  std::uint32_t operator()(std::uint32_t old, std::uint32_t bound) const {
    return old == 0 || old > bound ? bound : old - 1;
  }
};

void compare_and_swap(Frame& f, ValueId v) {
  with_size(f.dtype(v).bytes(), [&]<class T>() {
    const T* expected = f.data<T>(f.plan().memory(v).other);
    update<T>(f, v, [&](std::int64_t element, T old, T value) {
      return old == expected[element] ? value : old;
    });
  });
}

}  // namespace

void eval_Atomic(Frame& f, ValueId v, const Inst& inst) {
  switch (graph::update_of(inst)) {
  case graph::Update::add: return update_number(f, v, AddTo());
  case graph::Update::max: return update_number(f, v, Max());
  case graph::Update::min: return update_number(f, v, Min());
  case graph::Update::bit_and: return update_bits(f, v, std::bit_and());
  case graph::Update::bit_or: return update_bits(f, v, std::bit_or());
  case graph::Update::bit_xor: return update_bits(f, v, std::bit_xor());
  case graph::Update::exchange: return update_bits(f, v, [](auto, auto value) { return value; });
  case graph::Update::compare: return compare_and_swap(f, v);
  case graph::Update::increment: return update_bits(f, v, Increment());
  case graph::Update::decrement: return update_bits(f, v, Decrement());
  }
}

namespace {

// Elements of a view become op(what they are, the elements of another one).
template <class F>
void reduce_numbers(Access& to, DType dtype, const std::byte* others, F op) {
  with_type_if<IsNumber>(dtype, [&]<class T>() {
    const T* const values = reinterpret_cast<const T*>(others);
    to.update<T>([&](std::int64_t element, T old) {
      return narrow<T>(op(widen(old), widen(values[element])));
    });
  });
}
template <class F>
void reduce_bits(Access& to, DType dtype, const std::byte* others, F op) {
  with_size(dtype.bytes(), [&]<class T>() {
    const T* const values = reinterpret_cast<const T*>(others);
    to.update<T>(
        [&](std::int64_t element, T old) { return static_cast<T>(op(old, values[element])); });
  });
}

}  // namespace

void reduce_elements(Frame& f, ValueId by, View& from, View& to, race::Agent reading,
                     race::Agent writing) {
  const graph::MemoryView unmasked;
  Access read(f, by, unmasked, from), write(f, by, unmasked, to);
  std::vector<std::byte> elements(static_cast<std::size_t>(from.count()) *
                                  static_cast<std::size_t>(from.bytes));
  read.read(elements.data());
  const auto numbers = [&](auto op) { reduce_numbers(write, to.dtype, elements.data(), op); };
  const auto bits = [&](auto op) { reduce_bits(write, to.dtype, elements.data(), op); };
  switch (graph::update_of(f.inst(by))) {
  case graph::Update::add: numbers(AddTo()); break;
  case graph::Update::max: numbers(Max()); break;
  case graph::Update::min: numbers(Min()); break;
  case graph::Update::bit_and: bits(std::bit_and()); break;
  case graph::Update::bit_or: bits(std::bit_or()); break;
  case graph::Update::increment: bits(Increment()); break;
  case graph::Update::decrement: bits(Decrement()); break;
  default: bits(std::bit_xor());
  }
  read.record(reading, race::Kind::read);
  write.record(writing, race::Kind::atomic);
}

// Where the mask is off the result is the new value.
void eval_Swap(Frame& f, ValueId v, const Inst&) {
  Access access(f, v);
  const std::byte* value = f.bytes(access.memory().value);
  if (access.masked()) std::memcpy(f.bytes(v), value, f.plan().bytes(v));
  access.read(f.bytes(v));
  access.write(value);
  access.record();
}

}  // namespace palladium::interpreter
