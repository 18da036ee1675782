// Views, load, store, swap and atomic updates.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"
#include "runtime/interpreter/eval.hpp"
#include "runtime/interpreter/launch.hpp"
#include "runtime/interpreter/number.hpp"
#include "runtime/interpreter/window.hpp"

namespace palladium::interpreter {
namespace {

using graph::MemoryView;

[[noreturn]] void refuse(Frame& f, ValueId access, const View::Misfit& m) {
  const std::string ref = graph::to_string(f.type(f.inst(m.at).args[0]));
  const bool is_slice =
      graph::Subscript::of(f.inst(m.at)).dims[static_cast<std::size_t>(m.dimension)].is_slice;
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

template <class T>
std::uint64_t bits_of(T x) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}

template <class T>
std::uint64_t updated_integer(graph::Update how, std::uint64_t old, std::uint64_t value) {
  const T a = static_cast<T>(old), b = static_cast<T>(value);
  switch (how) {
  case graph::Update::max: return bits_of(std::max(a, b));
  case graph::Update::min: return bits_of(std::min(a, b));
  default: return bits_of(static_cast<T>(old + value));
  }
}

// As the operations add, maximum and minimum.
template <class T>
T updated_float(graph::Update how, T a, T b) {
  switch (how) {
  case graph::Update::max: return Max()(a, b);
  case graph::Update::min: return Min()(a, b);
  default: return a + b;
  }
}

// What an element becomes.
std::uint64_t updated(graph::Update how, DType dtype, std::uint64_t old, std::uint64_t value) {
  switch (how) {
  case graph::Update::exchange: return value;
  case graph::Update::bit_and: return old & value;
  case graph::Update::bit_or: return old | value;
  case graph::Update::bit_xor: return old ^ value;
  default: break;
  }
  std::uint64_t result = 0;
  with_type_if<IsNumber>(dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      result = updated_integer<T>(how, old, value);
    } else {
      T a, b;
      std::memcpy(&a, &old, sizeof a);
      std::memcpy(&b, &value, sizeof b);
      result = bits_of(narrow<T>(updated_float(how, widen(a), widen(b))));
    }
  });
  return result;
}

// A reader or writer of a view: the mask, and the refusal of elements that do not exist.
class Access {
 public:
  Access(Frame& f, ValueId v, const Inst& inst)
      : f_(f), v_(v), memory_(MemoryView::of(inst)), view_(f.view(memory_.ref)) {
    if (memory_.mask != graph::no_value) mask_ = f.data<bool>(memory_.mask);
    bytes_ = view_.dtype.bytes();
  }

  const MemoryView& memory() const { return memory_; }
  View& view() const { return view_; }
  Window& window() const { return *view_.window; }
  bool masked() const { return mask_ != nullptr; }
  bool on(std::int64_t element) const { return mask_ == nullptr || mask_[element]; }

  /// Copies elements from the window to `to`; masked-off elements are left alone.
  void read(std::byte* to) {
    copy_in(to);
    if (window().has_unknown())
      for_each_piece([&](const Run& run, int bytes) {
        if (const auto at = window().find_unknown(run, bytes))
          refuse_unknown(f_, v_, window(), *at);
      });
    if (window().tells_reads())
      for_each_piece([&](const Run& run, int bytes) { window().read(run, bytes, v_); });
    refuse_clash();
    // The window's poison is that of its own dtype; what fills it is bytes.
    if (view_.dtype != window().dtype() && !window().is_inside() && !window().is_filled())
      for_each([&](std::int64_t element, std::int64_t offset, std::int64_t, int bytes) {
        if (!window().is_inside(offset, bytes)) f_.poison(v_, element);
      });
    record(race::Kind::read);
  }

  /// Copies elements from `from` to the window; masked-off elements are left alone.
  void write(const std::byte* from) {
    if (view_.chosen) refuse_repeated();
    put(from);
    refuse_clash();
    record(race::Kind::write);
  }

  /// Each element that is on becomes change(element, bits of it), one after the other.
  template <class F>
  void update(F&& change) {
    if (window().has_unknown())
      for_each_piece([&](const Run& run, int bytes) {
        if (const auto at = window().find_unknown(run, bytes))
          refuse_unknown(f_, v_, window(), *at);
      });
    (void)window().readable();  // which brings them
    std::byte* contents = window().writable(false, true);
    for_each([&](std::int64_t element, std::int64_t offset, std::int64_t, int bytes) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, contents + offset, static_cast<std::size_t>(bytes));
      bits = change(element, bits);
      std::memcpy(contents + offset, &bits, static_cast<std::size_t>(bytes));
      window().wrote(offset, bytes, v_);
    });
    window().wrote_end();
    record(race::Kind::atomic);
  }

 private:
  // Which of several elements that go to one place would stay is not said.
  void refuse_repeated() {
    std::unordered_map<std::int64_t, std::int64_t> stored;  // element by offset
    for_each([&](std::int64_t element, std::int64_t offset, std::int64_t, int) {
      const auto [it, is_new] = stored.try_emplace(offset, element);
      if (is_new) return;
      throw CompileError(
          f_.graph().location(v_),
          fmt::format("{}: elements {} and {} of the value go to one element of {}, and which of "
                      "them stays is not defined: mask all but one, or update it atomically",
                      graph::info(f_.inst(v_).op).name, it->second, element, window().name()));
    });
  }

  void copy_in(std::byte* to) {
    const std::byte* from = window().readable();
    if (!masked() && !view_.listed) {
      gather(to, from, view_.shape, view_.strides, view_.offset, bytes_);
      return;
    }
    for_each([&](std::int64_t element, std::int64_t offset, std::int64_t at, int bytes) {
      std::memcpy(to + element * bytes_ + at, from + offset, static_cast<std::size_t>(bytes));
    });
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
      for_each_run(view_.shape, view_.strides, view_.offset, [&](const Run& run) {
        window().knows(run, bytes_);
        for (std::int64_t k = 0; k < run.count; ++k)
          window().wrote(run.offset + k * run.stride, bytes_, v_);
      });
    } else {
      for_each([&](std::int64_t element, std::int64_t offset, std::int64_t at, int bytes) {
        std::memcpy(to + offset, from + element * bytes_ + at, static_cast<std::size_t>(bytes));
        window().knows({element, offset, bytes, 1}, bytes);
        window().wrote(offset, bytes, v_);
      });
    }
    window().wrote_end();
  }

  void refuse_clash() {
    const auto clash = window().take_clash();
    // Where programs wait for each other, what they do to arrays is told to their races.
    if (clash && !f_.graph().allow_revisit && !f_.launch->is_concurrent)
      f_.launch->refuse_clash(*window().operand(), *clash);
  }

  void record(race::Kind kind) {
    if (window().races == nullptr) return;
    const auto note = [&](std::int64_t offset, std::int64_t bytes) {
      f_.races->record(*window().races, window().dense_offset(offset),
                       static_cast<std::size_t>(bytes), f_.agent, kind, v_);
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
    std::size_t next = 0;
    for (std::int64_t element = 0; element < count; ++element)
      for (int p = 0; p < n; ++p, ++next) {
        if (!on(element)) continue;
        if (View::is_missing(view_.pieces[next]))
          refuse(f_, v_, view_.misfit_of(view_.pieces[next]));
        f(element, view_.pieces[next], p * bytes, bytes);
      }
  }

  Frame& f_;
  ValueId v_;
  MemoryView memory_;
  View& view_;
  const bool* mask_ = nullptr;
  int bytes_ = 0;
};

}  // namespace

void eval_At(Frame& f, ValueId v, const Inst& inst) {
  Start starts[Shape::max_rank] = {};
  for (std::size_t i = 1; i < inst.args.size(); ++i)
    if (f.type(inst.args[i]).is_scalar())
      starts[i - 1].number = f.number(inst.args[i]);
    else
      starts[i - 1].array = f.data<std::int32_t>(inst.args[i]);
  subscript(f.view(v), f.view(inst.args[0]), v, inst.type, graph::Subscript::of(inst),
            {starts, inst.args.size() - 1});
}

void eval_RefReshape(Frame& f, ValueId v, const Inst& inst) {
  reshape(f.view(v), f.view(inst.args[0]), inst.type.shape);
}

void eval_RefTranspose(Frame& f, ValueId v, const Inst& inst) {
  transpose(f.view(v), f.view(inst.args[0]), graph::dimensions(inst));
}

void eval_RefBitcast(Frame& f, ValueId v, const Inst& inst) {
  bitcast(f.view(v), f.view(inst.args[0]), inst.type);
}

void eval_Load(Frame& f, ValueId v, const Inst& inst) {
  Access access(f, v, inst);
  if (access.masked()) {
    const ValueId other = access.memory().other;
    if (other != graph::no_value) {
      std::memcpy(f.bytes(v), f.bytes(other), f.plan().bytes(v));
    } else {
      f.poison(v);
    }
  }
  access.read(f.bytes(v));
}

void eval_Store(Frame& f, ValueId v, const Inst& inst) {
  Access access(f, v, inst);
  access.write(f.bytes(access.memory().value));
}

// Where the mask is off the result is the value.
void eval_Atomic(Frame& f, ValueId v, const Inst& inst) {
  Access access(f, v, inst);
  const graph::MemoryView& m = access.memory();
  const graph::Update how = graph::update_of(inst);
  const DType dtype = f.dtype(v);
  const auto bytes = static_cast<std::size_t>(dtype.bytes());
  const auto bits = [&](ValueId of, std::int64_t element) {
    std::uint64_t x = 0;
    std::memcpy(&x, f.bytes(of) + static_cast<std::size_t>(element) * bytes, bytes);
    return x;
  };
  std::memcpy(f.bytes(v), f.bytes(m.value), f.plan().bytes(v));
  access.update([&](std::int64_t element, std::uint64_t old) {
    const std::uint64_t value = bits(m.value, element);
    std::memcpy(f.bytes(v) + static_cast<std::size_t>(element) * bytes, &old, bytes);
    if (how == graph::Update::compare) return old == bits(m.other, element) ? value : old;
    return updated(how, dtype, old, value);
  });
}

// Where the mask is off the result is the new value.
void eval_Swap(Frame& f, ValueId v, const Inst& inst) {
  Access access(f, v, inst);
  const std::byte* value = f.bytes(access.memory().value);
  if (access.masked()) std::memcpy(f.bytes(v), value, f.plan().bytes(v));
  access.read(f.bytes(v));
  access.write(value);
}

}  // namespace palladium::interpreter
