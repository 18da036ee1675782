// Statements that cannot be, or that are odd: what a body does wrong.
#include <limits>
#include <string>
#include <utility>

#include "tests/random/plan.hpp"

namespace palladium::test::random_calls {
namespace {

struct Scene {
  Random& random;
  const Plan& plan;
  const Parts& parts;

  const Ref& input() const { return parts.inputs[0]; }
  const Ref& output() const { return parts.outputs[0]; }
  // A value of a dtype, made of the first input.
  Value value(DType d, const Shape& shape = {4}) const {
    Value v = input()[_];
    return broadcast_to(pl::max(v).astype(d), shape);
  }
  int rank() const { return input().shape().rank(); }
  std::int64_t big() const {
    return random.pick<std::int64_t>({1, 7, 1000, std::int64_t(1) << 31, std::int64_t(1) << 40,
                                      std::numeric_limits<std::int64_t>::max() / 2});
  }
};

void keep(const Value&) {}
Value first_of(const Value& a, const Value&) { return a; }

// All starts of `ref`, the first of them `first`.
Ref element(const Ref& ref, const Idx& first) { return ref.at({first, ellipsis}); }

struct Fault {
  const char* name;
  Expect expect;
  void (*record)(const Scene&);
};

constexpr Expect refused = Expect::refused, free_ = Expect::free;

const Fault faults[] = {
    {"a store of another shape", refused,
     [](const Scene& s) {
       s.output()[_] = s.value(s.output().dtype(), {3, 5, 7});
     }},
    {"a store of another dtype", refused,
     [](const Scene& s) {
       s.output()[_] = s.value(s.output().dtype().is_float() ? bool_ : f64, s.output().shape());
     }},
    {"a reduction over an axis that is not there", refused,
     [](const Scene& s) {
       keep(pl::sum(s.value(f32), {.axis = s.random.pick({1, -2, 7, 1 << 30})}));
     }},
    {"a reduction over an axis twice", refused,
     [](const Scene& s) {
       keep(pl::max(s.value(f32, {2, 2}), {.axis = {0, -2}}));
     }},
    {"an index too large", refused,
     [](const Scene& s) {
       element(s.input().reshape({-1}), s.input().shape().size() + s.big() - 1);
     }},
    {"a negative index", free_,
     [](const Scene& s) { keep(element(s.input().reshape({-1}), -s.big())[_]); }},
    {"an index found too large by the program", free_,
     [](const Scene& s) {
       const Value far = s.value(i32, {}) * 0 + (1 << 20);
       keep(element(s.input().reshape({-1}), far)[_]);
     }},
    {"an index found negative by the program", free_,
     [](const Scene& s) {
       const Value far = s.value(i32, {}) * 0 - (1 << 20);
       s.output()[_] = s.output().dtype()(element(s.input().reshape({-1}), far)[_]);
     }},
    {"a store found to be outside by the program", free_,
     [](const Scene& s) {
       const Value far = s.value(i32, {}) * 0 + (1 << 20);
       element(s.output().reshape({-1}), far)[_] = s.output().dtype()(1);
     }},
    {"a start that is no multiple of what is said", refused,
     [](const Scene& s) {
       const Value start = pl::multiple_of(s.value(i32, {}) * 0 + 6, 4);
       element(s.output().reshape({-1}), pl::minimum(start, 0))[_] = s.output().dtype()(1);
     }},
    {"a hint for each of more dimensions than there are", refused,
     [](const Scene& s) {
       keep(pl::multiple_of(s.value(i32), {2, 2}));
     }},
    {"a hint about floats", refused,
     [](const Scene& s) { keep(pl::max_contiguous(s.value(f32), 2)); }},
    {"a slice that leaves", refused,
     [](const Scene& s) {
       const Ref flat = s.input().reshape({-1});
       keep(flat[ds(1, flat.shape()[0])]);
     }},
    {"a slice that leaves by its stride", refused,
     [](const Scene& s) {
       const Ref flat = s.input().reshape({-1});
       keep(flat[ds(0, 2, flat.shape()[0] + s.big() - 1)]);
     }},
    {"a slice of a size that cannot be", refused,
     [](const Scene& s) {
       const std::int64_t size = s.random.pick<std::int64_t>({0, -1, -s.big()});
       keep(s.input().reshape({-1})[ds(0, size)]);
     }},
    {"a slice of a stride that cannot be", refused,
     [](const Scene& s) {
       keep(s.input().reshape({-1})[ds(0, 1, s.random.pick({-1, -2}))]);
     }},
    {"too many indices", refused,
     [](const Scene& s) {
       keep(s.input().reshape({-1})[{0, 0}]);
     }},
    {"two ellipses", refused,
     [](const Scene& s) {
       keep(s.input()[{ellipsis, ellipsis}]);
     }},
    {"an index that is a float", refused,
     [](const Scene& s) { keep(s.input().reshape({-1})[s.value(f32, {})]); }},
    {"an index of truths", refused,
     [](const Scene& s) { keep(s.input().reshape({-1})[s.value(bool_)]); }},
    {"an axis of the grid that is not there", refused,
     [](const Scene& s) {
       keep(program_id(static_cast<int>(s.plan.axes.size()) + s.random.below(9)));
     }},
    {"an axis name that is not there", refused, [](const Scene&) { keep(axis_index("nowhere")); }},
    {"the size of an axis that is not there", refused, [](const Scene&) { keep(axis_size("")); }},
    {"a loop step that cannot be", refused,
     [](const Scene& s) {
       pl::loop(0, 4, {.step = s.random.pick<std::int64_t>({0, -1, -s.big()})}, [](Index) {});
     }},
    {"a huge loop step", free_,
     [](const Scene& s) { pl::loop(0, 4, {.step = s.big()}, [](Index) {}); }},
    {"a negative unroll", refused,
     [](const Scene&) { pl::loop(0, 4, {.unroll = -1}, [](Index) {}); }},
    {"an unroll of unknown bounds", refused,
     [](const Scene& s) { pl::loop(0, s.value(i32, {}) & 3, {.unroll = 4}, [](Index) {}); }},
    {"a loop at the end of the integers", free_,
     [](const Scene& s) {
       const int last = std::numeric_limits<int>::max();
       const int first = last - s.random.below(5), step = s.random.pick({1, 2, 3, 1 << 30});
       const auto count = [](Index, Value a) { return a + 1; };
       const Value sum = pl::loop(first, last, {.step = step}, count, i32(0));
       s.output()[_] = broadcast_to(sum.astype(s.output().dtype()), s.output().shape());
     }},
    {"a loop bound that is a float", refused,
     [](const Scene& s) { pl::loop(0, s.value(f32, {}), [](Index) {}); }},
    {"a loop bound beyond the integers", refused,
     [](const Scene&) { pl::loop(0, std::int64_t(1) << 40, [](Index) {}); }},
    {"a carry that changes its dtype", refused,
     [](const Scene& s) {
       pl::loop(
           0, 4, [](Index, Value v) { return v.astype(v.dtype() == f32 ? f64 : f32); },
           s.value(i32));
     }},
    {"a carry that changes its shape", refused,
     [](const Scene& s) {
       pl::loop(
           0, 4,
           [](Index, Value v) {
             return broadcast_to(v, {2, 4});
           },
           s.value(i32));
     }},
    {"a product of matrices that do not chain", refused,
     [](const Scene& s) {
       keep(pl::dot(s.value(f32, {4, 8}), s.value(f32, {4, 8})));
     }},
    {"a product of vectors", refused,
     [](const Scene& s) { keep(pl::dot(s.value(f32), s.value(f32))); }},
    {"a product of two dtypes", refused,
     [](const Scene& s) {
       keep(pl::dot(s.value(f32, {4, 4}), s.value(f16, {4, 4})));
     }},
    {"a product of dtypes without one", free_,
     [](const Scene& s) {
       const DType d = s.random.pick({bool_, u8, i64, u64, f64, u16});
       keep(pl::dot(s.value(d, {4, 4}), s.value(d, {4, 4})));
     }},
    {"a sum of two dtypes", refused,
     [](const Scene& s) {
       const auto [a, b] = s.random.pick<std::pair<DType, DType>>(
           {{f32, i32}, {i32, i64}, {f16, bf16}, {bool_, i8}, {u32, i32}});
       keep(s.value(a) + s.value(b));
     }},
    {"shapes that do not broadcast", refused,
     [](const Scene& s) { keep(s.value(f32, {3}) * s.value(f32, {4})); }},
    {"an operation that the dtype has not", refused,
     [](const Scene& s) {
       switch (s.random.below(6)) {
       case 0: keep(pl::exp(s.value(i32))); break;
       case 1: keep(s.value(f32) & s.value(f32)); break;
       case 2: keep(s.value(f64) << 1); break;
       case 3: keep(~s.value(f16)); break;
       case 4: keep(pl::floor(s.value(bool_))); break;
       default: keep(is_finite(s.value(u8)));
       }
     }},
    {"arithmetic with bools", free_,
     [](const Scene& s) {
       switch (s.random.below(5)) {
       case 0: keep(s.value(bool_) + s.value(bool_)); break;
       case 1: keep(-s.value(bool_)); break;
       case 2: keep(pl::sum(s.value(bool_))); break;
       case 3: keep(pl::max(s.value(bool_))); break;
       default: keep(s.value(bool_) < s.value(bool_));
       }
     }},
    {"a literal that does not fit", refused,
     [](const Scene& s) {
       switch (s.random.below(4)) {
       case 0: keep(s.value(i8) + 1000); break;
       case 1: keep(s.value(i32) + 0.5); break;
       case 2: keep(s.value(u16) * (std::int64_t(1) << 40)); break;
       default: keep(full({4}, 70000, u16));
       }
     }},
    {"a value that was given none", refused, [](const Scene& s) { keep(s.value(f32) + Value()); }},
    {"a value of a body that has ended", refused,
     [](const Scene& s) {
       Value inside = 0;
       pl::when(s.value(bool_, {}), [&] { inside = s.value(f32) + 1; });
       keep(inside + 1);
     }},
    {"a reshape to another number of elements", refused,
     [](const Scene& s) {
       keep(
           pl::reshape(s.value(f32), s.random.pick<Shape>({{5}, {-1, -1}, {3, -1}, {-2, 2}, {0}})));
     }},
    {"a permutation that is none", refused,
     [](const Scene& s) {
       keep(pl::transpose(s.value(f32, {2, 2}),
                          s.random.pick<Axes>({{0}, {0, 0}, {0, 2}, {1, 0, 2}})));
     }},
    {"a view's reshape to another number of elements", refused,
     [](const Scene& s) { s.input().reshape({s.input().shape().size() + 1}); }},
    {"a view's permutation that is none", refused,
     [](const Scene& s) { s.input().reshape({-1}).transpose({1}); }},
    {"a bitcast that does not divide", refused,
     [](const Scene& s) {
       s.input()
           .reshape({-1})
           .at({ds(0, 1)})
           .bitcast(s.input().dtype().bytes() == 8 ? bool_ : i64)[_] = 0;
     }},
    {"a broadcast that cannot be", refused,
     [](const Scene& s) {
       keep(broadcast_to(s.value(f32), s.random.pick<Shape>({{5}, {4, 5}, {}, {-1}})));
     }},
    {"a condition that is no truth", free_,
     [](const Scene& s) { keep(where(s.value(i32), s.value(f32), s.value(f32))); }},
    {"a condition that is no scalar", refused,
     [](const Scene& s) { pl::when(s.value(bool_), [] {}); }},
    {"a mask of another shape", refused,
     [](const Scene& s) {
       keep(pl::load(s.input(), {.mask = s.value(bool_, {3, 5, 7, 2}), .other = 0}));
     }},
    {"a mask that is no truth", refused,
     [](const Scene& s) { keep(pl::load(s.input(), {.mask = s.value(i32, s.input().shape())})); }},
    {"another dtype where masked", refused,
     [](const Scene& s) {
       const Shape shape = s.input().shape();
       const DType other = s.input().dtype() == f64 ? f32 : f64;
       keep(pl::load(s.input(), {.mask = s.value(bool_, shape), .other = s.value(other, shape)}));
     }},
    {"an iota that cannot be", refused,
     [](const Scene& s) {
       switch (s.random.below(4)) {
       case 0: keep(iota(i32, {4}, 1)); break;
       case 1: keep(iota(bool_, {4})); break;
       case 2: keep(iota(i32, {-4})); break;
       default: keep(iota(i32, {}));
       }
     }},
    {"values of negative or no size", refused,
     [](const Scene& s) {
       keep(zeros(s.random.pick<Shape>({{-1}, {4, -5}, {0}, {4, 0}})));
     }},
    {"two effects in one expression", refused,
     [](const Scene& s) {
       const DType d = s.output().dtype();
       const Value z = zeros(s.output().shape(), d);
       keep(first_of(pl::swap(s.output(), z), pl::swap(s.output(), z)));
     }},
    {"a shape of too many dimensions", refused,
     [](const Scene&) {
       keep(zeros({1, 1, 1, 1, 1, 1, 1, 1, 1}));
     }},
    {"an exception of the user's own", free_, [](const Scene&) { throw UsersOwn(); }},
};

}  // namespace

int body_faults() { return static_cast<int>(std::size(faults)); }
const char* body_fault_name(int kind) { return faults[kind].name; }
Expect body_fault_expectation(int kind) { return faults[kind].expect; }

void record_fault(int kind, Random& random, const Plan& plan, const Parts& parts) {
  faults[kind].record({random, plan, parts});
}

}  // namespace palladium::test::random_calls
