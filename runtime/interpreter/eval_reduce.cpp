// Reductions and scans: sums and products of 16-bit floats accumulate in f32, each result rounds
// once.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "runtime/interpreter/eval.hpp"
#include "runtime/interpreter/number.hpp"

namespace palladium::interpreter {
namespace {

struct Sum {
  template <class T>
  static T identity() {
    return 0;
  }
  template <class T>
  T operator()(T x, T y) const {
    return x + y;
  }
};
struct Product {
  template <class T>
  static T identity() {
    return 1;
  }
  template <class T>
  T operator()(T x, T y) const {
    return x * y;
  }
};
struct Maximum : Max {
  template <class T>
  static T identity() {
    if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
    return std::numeric_limits<T>::lowest();
  }
};
struct Minimum : Min {
  template <class T>
  static T identity() {
    if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
    return std::numeric_limits<T>::max();
  }
};

template <class T, class A>
T rounded(A fold) {
  if constexpr (is_half<T>) {
    return narrow<T>(fold);
  } else {
    return static_cast<T>(fold);
  }
}

// Stretches of dimensions that are all kept or all reduced.
struct Stretch {
  std::int64_t extent;
  bool reduced;
};

// A stands for the accumulator, T for the element.
template <class T, class A, class Op>
class Reduction {
 public:
  Reduction(const T* in, A* out, const std::vector<Stretch>& stretches)
      : in_(in), out_(out), stretches_(stretches) {}

  void run() { walk(0, 0, out_count()); }

 private:
  std::int64_t out_count() const {
    std::int64_t n = 1;
    for (const Stretch& s : stretches_)
      if (!s.reduced) n *= s.extent;
    return n;
  }

  // `out`: first result that this part of the operand contributes to, of `width` results.
  [[gnu::noinline]] void walk(std::size_t depth, std::int64_t out, std::int64_t width) {
    const Stretch s = stretches_[depth];
    if (depth + 1 < stretches_.size()) {
      if (!s.reduced) width /= s.extent;
      for (std::int64_t i = 0; i < s.extent; ++i)
        walk(depth + 1, s.reduced ? out : out + i * width, width);
    } else if (s.reduced) {
      out_[out] = op_(out_[out], run_of(s.extent));
    } else {
      A* __restrict to = out_ + out;
      for (std::int64_t i = 0; i < s.extent; ++i) to[i] = op_(to[i], static_cast<A>(widen(in_[i])));
      in_ += s.extent;
    }
  }

  // Several accumulators: shorter sums, and lanes for the compiler.
  [[gnu::noinline]] A run_of(std::int64_t n) {
    constexpr int lanes = 16;
    A part[lanes];
    std::fill_n(part, lanes, Op::template identity<A>());
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
      for (int k = 0; k < lanes; ++k) part[k] = op_(part[k], static_cast<A>(widen(in_[i + k])));
    for (int k = 0; i < n; ++i, ++k) part[k] = op_(part[k], static_cast<A>(widen(in_[i])));
    for (int half = lanes / 2; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) part[k] = op_(part[k], part[k + half]);
    in_ += n;
    return part[0];
  }

  const T* in_;
  A* out_;
  const std::vector<Stretch>& stretches_;
  Op op_;
};

// Sums and products of integers wrap: they are computed without sign.
template <class T, class Op>
struct AccumulatorOf {
  using type = Compute<T>;
};
template <class T, class Op>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool> &&
         (std::is_same_v<Op, Sum> || std::is_same_v<Op, Product>)) struct AccumulatorOf<T, Op> {
  using type = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
};

template <template <class> class Accept, class Op>
void reduce(Frame& f, ValueId v, const Inst& inst) {
  std::vector<Stretch> stretches;
  const graph::Extents& shape = f.type(inst.args[0]).shape;
  const std::span<const std::int64_t> vanishing = graph::dimensions(inst);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const bool reduced =
        std::ranges::find(vanishing, static_cast<std::int64_t>(d)) != vanishing.end();
    if (shape[d] == 1) continue;
    if (!stretches.empty() && stretches.back().reduced == reduced) {
      stretches.back().extent *= shape[d];
    } else {
      stretches.push_back({shape[d], reduced});
    }
  }
  if (stretches.empty()) stretches.push_back({1, true});
  with_type_if<Accept>(inst.type.dtype, [&]<class T>() {
    using A = typename AccumulatorOf<T, Op>::type;
    const auto n = static_cast<std::size_t>(f.count(v));
    const auto accumulators = std::make_unique<A[]>(n);
    std::fill_n(accumulators.get(), n, Op::template identity<A>());
    Reduction<T, A, Op>(f.operand<T>(inst, 0), accumulators.get(), stretches).run();
    T* out = f.data<T>(v);
    for (std::size_t i = 0; i < n; ++i) out[i] = rounded<T>(accumulators[i]);
  });
}

// What a scan goes along: `extent` elements, with `inner` lines next to each other.
struct Lines {
  std::int64_t extent, inner;
  bool reverse;
  std::int64_t offset(std::int64_t k) const { return (reverse ? extent - 1 - k : k) * inner; }
};

template <class T, class A, class Op>
void scan_neighbours(const T* __restrict in, T* __restrict out, Lines d, A* __restrict folds) {
  std::fill_n(folds, d.inner, Op::template identity<A>());
  for (std::int64_t k = 0; k < d.extent; ++k) {
    const std::int64_t at = d.offset(k);
    for (std::int64_t i = 0; i < d.inner; ++i) {
      folds[i] = Op()(folds[i], static_cast<A>(widen(in[at + i])));
      out[at + i] = rounded<T>(folds[i]);
    }
  }
}

// Several rows at once, as each fold of a row waits for the one before.
template <class T, class A, class Op, int rows>
void scan_rows(const T* __restrict in, T* __restrict out, Lines d) {
  A folds[rows];
  std::fill_n(folds, rows, Op::template identity<A>());
  for (std::int64_t k = 0; k < d.extent; ++k)
    for (int r = 0; r < rows; ++r) {
      const std::int64_t at = r * d.extent + d.offset(k);
      folds[r] = Op()(folds[r], static_cast<A>(widen(in[at])));
      out[at] = rounded<T>(folds[r]);
    }
}

template <class T, class A, class Op>
void scan_along(const T* in, T* out, std::int64_t count, Lines d) {
  std::int64_t first = 0;
  if (count > 0 && d.inner == 1) {
    constexpr int rows = 4;
    for (; first + rows * d.extent <= count; first += rows * d.extent)
      scan_rows<T, A, Op, rows>(in + first, out + first, d);
    for (; first < count; first += d.extent)
      scan_rows<T, A, Op, 1>(in + first, out + first, d);
    return;
  }
  const auto folds = std::make_unique<A[]>(static_cast<std::size_t>(d.inner));
  for (; first < count; first += d.extent * d.inner)
    scan_neighbours<T, A, Op>(in + first, out + first, d, folds.get());
}

template <template <class> class Accept, class Op>
void scan(Frame& f, ValueId v, const Inst& inst) {
  const graph::ScanView view = graph::ScanView::of(inst);
  const graph::Extents& shape = inst.type.shape;
  std::int64_t inner = 1;
  for (std::size_t d = shape.size() - 1; d > static_cast<std::size_t>(view.dimension); --d)
    inner *= shape[d];
  with_type_if<Accept>(inst.type.dtype, [&]<class T>() {
    using A = typename AccumulatorOf<T, Op>::type;
    scan_along<T, A, Op>(f.operand<T>(inst, 0), f.data<T>(v), f.count(v),
                         {shape[static_cast<std::size_t>(view.dimension)], inner, view.reverse});
  });
}

}  // namespace

void eval_CumSum(Frame& f, ValueId v, const Inst& i) { scan<IsNumber, Sum>(f, v, i); }
void eval_CumProd(Frame& f, ValueId v, const Inst& i) { scan<IsNumber, Product>(f, v, i); }
void eval_CumMax(Frame& f, ValueId v, const Inst& i) { scan<IsNumber, Maximum>(f, v, i); }
void eval_CumMin(Frame& f, ValueId v, const Inst& i) { scan<IsNumber, Minimum>(f, v, i); }

void eval_ReduceSum(Frame& f, ValueId v, const Inst& i) { reduce<IsNumber, Sum>(f, v, i); }
void eval_ReduceProd(Frame& f, ValueId v, const Inst& i) { reduce<IsNumber, Product>(f, v, i); }
void eval_ReduceMax(Frame& f, ValueId v, const Inst& i) { reduce<IsComputed, Maximum>(f, v, i); }
void eval_ReduceMin(Frame& f, ValueId v, const Inst& i) { reduce<IsComputed, Minimum>(f, v, i); }

}  // namespace palladium::interpreter
