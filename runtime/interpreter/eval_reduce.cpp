// Reductions and scans: sums and products of 16-bit floats accumulate in f32, each result rounds
// once.
#include <algorithm>
#include <cmath>
#include <limits>
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
    for (std::size_t i = 0; i < n; ++i) {
      if constexpr (is_half<T>) {
        out[i] = narrow<T>(accumulators[i]);
      } else {
        out[i] = static_cast<T>(accumulators[i]);
      }
    }
  });
}

// In order, along the dimension that lies between `inner` elements and the others.
template <class T, class A, class Op>
void scan_along(const T* in, T* out, std::int64_t count, std::int64_t extent, std::int64_t inner,
                bool reverse) {
  std::vector<A> folds(static_cast<std::size_t>(inner));
  for (std::int64_t first = 0; first < count; first += extent * inner) {
    std::ranges::fill(folds, Op::template identity<A>());
    for (std::int64_t k = 0; k < extent; ++k) {
      const std::int64_t at = first + (reverse ? extent - 1 - k : k) * inner;
      for (std::int64_t i = 0; i < inner; ++i) {
        A& fold = folds[static_cast<std::size_t>(i)];
        fold = Op()(fold, static_cast<A>(widen(in[at + i])));
        if constexpr (is_half<T>) {
          out[at + i] = narrow<T>(fold);
        } else {
          out[at + i] = static_cast<T>(fold);
        }
      }
    }
  }
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
                         shape[static_cast<std::size_t>(view.dimension)], inner, view.reverse);
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
