// Valid bodies.
#include <algorithm>
#include <utility>

#include "tests/random/plain.hpp"
#include "tests/support/random_graph.hpp"

namespace palladium::test::plain {
namespace {

class Drawing {
 public:
  explicit Drawing(std::uint64_t seed) : random_(seed * 7919 + 3) { plan_.seed = seed; }

  Plan run() {
    for (int i = random_.between(1, 2); i > 0; --i) {
      Axis a{random_.pick({1, 2, 3, 4, 8, 13}), random_.between(1, 3)};
      a.extent = a.block * a.programs -
                 (random_.chance(40) ? random_.below(static_cast<int>(a.block)) : 0);
      plan_.axes.push_back(a);
    }
    for (int i = random_.between(1, 2); i > 0; --i) plan_.inputs.push_back(dtype());
    plan_.accumulates = plan_.axes.size() == 2 && random_.chance(30);
    plan_.output = plan_.accumulates ? i32 : dtype();
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i)
      add({.kind = Kind::loaded,
           .dtype = plan_.inputs[i],
           .shape = plan_.block(),
           .n = static_cast<std::int64_t>(i)});
    statements(random_.between(2, 12), 2);
    Sizes shape = plan_.block();
    shape.resize(plan_.output_axes());
    const int all = mixed(shape);
    plan_.body.result = cast(plan_.output.is_bool() ? times(all, 1, 5) : all, plan_.output);
    plan_.body.steps = std::move(steps_);
    return std::move(plan_);
  }

 private:
  struct Type {
    DType dtype;
    Sizes shape;
  };

  DType dtype() { return random_.pick({i32, f32, i32, f32, i16, u8, bool_}); }
  DType number() { return random_.pick({i32, f32, i16, u8}); }
  int some() {
    const int n = static_cast<int>(values_.size());
    return random_.chance(60) ? n - 1 - random_.below(std::min(n, 4)) : random_.below(n);
  }
  const Type& type(int v) const { return values_[static_cast<std::size_t>(v)]; }
  int add(Step s) {
    values_.push_back({s.dtype, s.shape});
    steps_.push_back(std::move(s));
    return static_cast<int>(values_.size()) - 1;
  }
  int cast(int v, DType d) {
    return type(v).dtype == d
               ? v
               : add({.kind = Kind::cast, .dtype = d, .shape = type(v).shape, .a = v});
  }
  // Of a value with other elements it is their sum, so that each of them is seen in the result.
  int coerced(int v, DType d, const Sizes& shape) {
    if (type(v).shape == shape) return cast(v, d);
    if (count(type(v).shape) != count(shape) && !type(v).shape.empty()) v = cast(v, i32);
    v = add({.kind = Kind::coerced, .dtype = type(v).dtype, .shape = shape, .a = v});
    return d.is_bool() && type(v).dtype == i32 ? cast(times(v, 1, 5), d) : cast(v, d);
  }
  // The i32 value v, and a number of its shape, by binary operation n.
  int times(int v, int number, std::int64_t n) {
    const int by = add({.kind = Kind::number, .dtype = i32, .n = number});
    const int all = coerced(by, i32, type(v).shape);
    return add(
        {.kind = Kind::binary, .dtype = i32, .shape = type(v).shape, .a = v, .b = all, .n = n});
  }
  // A number that every recent value changes.
  int mixed(const Sizes& shape) {
    const int n = static_cast<int>(values_.size());
    int all = coerced(0, i32, shape);
    for (int v = std::max(1, n - 10); v < n; ++v) {
      const int next = coerced(v, i32, shape), before = times(all, 5, 2);
      all =
          add({.kind = Kind::binary, .dtype = i32, .shape = shape, .a = before, .b = next, .n = 0});
    }
    return all;
  }
  // Whole numbers from 0 to 7, whose sums and products are exact in any order.
  int small(int v, DType d, const Sizes& shape) {
    return cast(times(coerced(v, i32, shape), 7, 5), d);
  }

  void statements(int n, int depth) {
    for (; n > 0; --n) statement(depth);
  }

  void statement(int depth) {
    const int v = some();
    const Type t = type(v);
    const auto rank = static_cast<int>(t.shape.size());
    Step s{.dtype = t.dtype, .shape = t.shape, .a = v};
    if (rank > 0) s.n = random_.below(rank);
    const auto without = [&](std::int64_t d) { s.shape.erase(s.shape.begin() + d); };
    switch (random_.below(depth > 0 ? 25 : 22)) {
    case 0:
      return void(add({.kind = Kind::number, .dtype = number(), .n = random_.between(-3, 40)}));
    case 1:
      return void(add({.kind = Kind::counted,
                       .dtype = number(),
                       .shape = {random_.between(1, 9), 3},
                       .n = random_.below(2)}));
    case 2:
      return void(add({.kind = Kind::program,
                       .dtype = i32,
                       .n = random_.below(static_cast<int>(plan_.axes.size()))}));
    case 3: return row(v);
    case 4: return void(cast(v, dtype()));
    case 5: s.kind = Kind::unary, s.n = random_.below(t.dtype.is_float() ? 4 : 2); break;
    case 6:
    case 7:
    case 8: return pair(v, Kind::binary);
    case 9: return pair(v, Kind::compared);
    case 10: {
      const int b = some(), condition = coerced(some(), bool_, t.shape),
                other = coerced(b, t.dtype, t.shape);
      s.kind = Kind::chosen, s.a = condition, s.b = v, s.c = other;
      break;
    }
    case 11: s.kind = Kind::transposed, std::ranges::reverse(s.shape); break;
    case 12:
      if (rank > 2 || 3 * count(t.shape) > most_elements) return;
      s.kind = Kind::leading, s.n = random_.between(1, 3), s.shape.insert(s.shape.begin(), s.n);
      break;
    case 13:
      if (rank == 0) return;
      s.a = small(v, t.dtype.is_bool() ? i32 : t.dtype, t.shape), s.dtype = type(s.a).dtype,
      s.kind = Kind::summed, without(s.n);
      break;
    case 14:
    case 15:
      if (rank == 0) return;
      s.kind = random_.chance(50) ? Kind::largest : Kind::smallest, without(s.n);
      break;
    case 16:
      if (rank == 0) return;
      s.kind = Kind::place_of_largest, s.dtype = i32, without(s.n);
      break;
    case 17:
      if (rank == 0) return;
      s.a = small(v, t.dtype.is_bool() ? i32 : t.dtype, t.shape), s.dtype = type(s.a).dtype,
      s.kind = Kind::accumulated, s.m = random_.below(2);
      break;
    case 18: {
      const DType d = random_.pick({f32, i32});
      const std::int64_t m = random_.pick({1, 3, 8, 16}), k = random_.pick({1, 4, 15}),
                         n = random_.pick({1, 2, 8});
      const int x = small(v, d, {m, k}), y = some(), other = small(y, d, {k, n});
      return void(add({.kind = Kind::product, .dtype = d, .shape = {m, n}, .a = x, .b = other}));
    }
    case 19: return parts(s, rank);
    case 20:
      if (rank == 0) return;
      s.kind = Kind::flipped;
      break;
    case 21:
      if (rank == 0 || 2 * count(t.shape) > most_elements) return;
      s.kind = Kind::doubled, s.shape[0] *= 2;
      break;
    case 22: return loop(v, depth);
    case 23: return branches(v, depth);
    default: return loop(v, depth);
    }
    add(std::move(s));
  }

  void pair(int v, Kind kind) {
    const Type t = type(v);
    const int other = coerced(some(), t.dtype, t.shape);
    const int kinds = kind == Kind::compared ? 4
                      : t.dtype.is_bool()    ? 3
                      : t.dtype.is_float()   ? 6
                                             : 10;
    const int which = random_.below(kinds);
    add({.kind = kind,
         .dtype = kind == Kind::compared ? bool_ : t.dtype,
         .shape = t.shape,
         .a = v,
         .b = other,
         .n = which});
  }

  void row(int v) {
    const auto input =
        static_cast<std::int64_t>(random_.below(static_cast<int>(plan_.inputs.size())));
    Step s{
        .dtype = plan_.inputs[static_cast<std::size_t>(input)], .shape = plan_.block(), .n = input};
    const std::int64_t rows = s.shape[0];
    const bool one = random_.chance(50);
    const Sizes indices = one ? Sizes{} : Sizes{random_.between(1, 5)};
    const int last = add({.kind = Kind::number, .dtype = i32, .n = rows}),
              lasts = coerced(last, i32, indices);
    const int any = coerced(v, i32, indices);
    const int rest =
        add({.kind = Kind::binary, .dtype = i32, .shape = indices, .a = any, .b = lasts, .n = 9});
    s.a = add(
        {.kind = Kind::unary, .dtype = i32, .shape = indices, .a = rest, .n = 1});  // 0 .. rows - 1
    s.kind = one ? Kind::loaded_row : Kind::loaded_at;
    if (one)
      s.shape.erase(s.shape.begin());
    else
      s.shape[0] = indices[0];
    add(std::move(s));
  }

  void parts(Step s, int rank) {
    if (rank == 0) return;
    const auto extent = static_cast<int>(s.shape[0]);
    s.m = random_.between(1, extent);
    switch (random_.below(3)) {
    case 0: s.kind = Kind::part, s.n = random_.below(extent - static_cast<int>(s.m) + 1); break;
    case 1: s.kind = Kind::part_at, s.b = coerced(some(), i32, {}); break;
    default:
      s.kind = Kind::taken, s.m = random_.between(1, 5);
      if (s.m * count(s.shape) > most_elements) return;
      s.b = coerced(some(), i32, {s.m});
    }
    s.shape[0] = s.m;
    add(std::move(s));
  }

  // Statements that start from what is there, and end in a value of v's type.
  Program region(const Type& result, int parameters, const std::vector<Type>& types, int depth) {
    const std::size_t outside = values_.size();
    std::vector<Step> before = std::exchange(steps_, {});
    for (int i = 0; i < parameters; ++i) values_.push_back(types[static_cast<std::size_t>(i)]);
    statements(random_.between(1, 4), depth - 1);
    Program p;
    p.result = coerced(some(), result.dtype, result.shape);
    p.steps = std::exchange(steps_, std::move(before));
    values_.resize(outside);
    return p;
  }

  void loop(int v, int depth) {
    const Type t = type(v);
    Step s{.kind = Kind::looped, .dtype = t.dtype, .shape = t.shape, .a = v, .m = random_.below(5)};
    s.inside = {region(t, 2, {{i32, {}}, t}, depth)};
    add(std::move(s));
  }

  void branches(int v, int depth) {
    const Type t = type(v);
    const int which = coerced(some(), i32, {});
    Step s{.kind = Kind::branched, .dtype = t.dtype, .shape = t.shape, .a = which};
    for (int i = 0; i < 2; ++i) s.inside.push_back(region(t, 0, {}, depth));
    add(std::move(s));
  }

  Random random_;
  Plan plan_;
  std::vector<Type> values_;
  std::vector<Step> steps_;
};

}  // namespace

Plan draw(std::uint64_t seed) { return Drawing(seed).run(); }

}  // namespace palladium::test::plain
