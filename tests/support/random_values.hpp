// Random operations on values and memory, each defined whatever its operands are.
//
// No call here has two arguments that draw: compilers evaluate them in different orders.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/random_operands.hpp"

namespace palladium::test::random_graph {

// The values that a scope may use.
struct Pool {
  std::vector<ValueId> values;
};

class RandomValues : protected RandomOperands {
 protected:
  using RandomOperands::RandomOperands;

  ValueId add(Builder& b, Op op, std::vector<ValueId> args, Attr attr = {}, Type given = {}) {
    const ValueId v = b.add(op, std::move(args), std::move(attr), std::move(given), here_());
    if (random_.chance(5)) {
      g_.names.resize(g_.insts.size());
      g_.names[index(v)] = "v" + std::to_string(index(v));
    }
    return v;
  }

  ValueId constant(Builder& b, DType dtype, const Extents& shape = {}) {
    return b.add(Op::Constant, {}, {{}, random_number(random_, dtype)}, Type::value(dtype, shape),
                 here_());
  }

  ValueId some_constant(Builder& b) {
    const DType d = dtype();
    return constant(b, d, some_shape());
  }

  ValueId some_value(Builder& b, Pool& pool) {
    if (pool.values.empty() || random_.chance(10)) {
      pool.values.push_back(random_.chance(50) ? leaf(b) : some_constant(b));
      return pool.values.back();
    }
    // Recent values more often, so that chains grow.
    const int n = static_cast<int>(pool.values.size());
    const int i = random_.chance(60) ? n - 1 - random_.below(std::min(n, 4)) : random_.below(n);
    return pool.values[static_cast<std::size_t>(i)];
  }

  ValueId leaf(Builder& b) {
    const int axes = static_cast<int>(axes_.size());
    if (axes > 0 && random_.chance(50)) {
      const std::int64_t axis = random_.below(axes);
      switch (random_.below(4)) {
      case 0: return add(b, Op::NumPrograms, {}, {{axis}, 0});
      case 1: return add(b, Op::AxisIndex, {}, {{0, axis}, 0});
      default: return add(b, Op::ProgramId, {}, {{axis}, 0});
      }
    }
    const Extents shape = some_shape();
    const auto number = dtype_where([](DType d) { return !d.is_bool(); });
    if (shape.empty() || !number) return constant(b, dtype());
    const std::int64_t d = random_.below(static_cast<int>(shape.size()));
    if (*number == i32 && random_.chance(50)) return consecutive(b, shape, d);
    return add(b, Op::Iota, {}, {{d}, 0}, Type::value(*number, shape));
  }

  // A value of that dtype and shape made of `v`.
  ValueId coerce(Builder& b, ValueId v, DType dtype, const Extents& shape) {
    const Extents& own = type(v).shape;
    bool broadcasts = own.size() <= shape.size();
    for (std::size_t i = 0; broadcasts && i < own.size(); ++i) {
      const std::int64_t to = shape[shape.size() - own.size() + i];
      broadcasts = own[i] == to || own[i] == 1;
    }
    if (!broadcasts && element_count(own) == element_count(shape)) {
      v = add(b, Op::Reshape, {v}, {}, Type::value({}, shape));
    } else if (!broadcasts) {
      if (o_.contractions && !own.empty()) {
        Attr all;
        for (std::size_t i = 0; i < own.size(); ++i)
          all.ints.push_back(static_cast<std::int64_t>(i));
        v = add(b, random_.chance(50) ? Op::ReduceMax : Op::ReduceMin, {v}, all);
      } else {
        v = constant(b, type(v).dtype);
      }
    }
    if (random_.chance(50)) return b.broadcast_to(b.cast(v, dtype, here_()), shape, here_());
    return b.cast(b.broadcast_to(v, shape, here_()), dtype, here_());
  }

  // Small whole numbers, so that their sums and products are exact in any order.
  ValueId small(Builder& b, ValueId v, DType dtype) {
    const ValueId whole = b.cast(v, i32, here_());
    const ValueId low = b.elementwise(Op::And, {whole, b.constant(i32, 7, {}, here_())}, here_());
    return b.cast(low, dtype, here_());
  }

  // 1 and 2, whose products are exact, or infinite, in any order.
  ValueId powers(Builder& b, ValueId v, DType dtype) {
    const ValueId bit =
        b.elementwise(Op::And, {b.cast(v, i32, here_()), b.constant(i32, 1, {}, here_())}, here_());
    return b.cast(b.elementwise(Op::Add, {bit, b.constant(i32, 1, {}, here_())}, here_()), dtype,
                  here_());
  }

  // 0 .. limit, whatever the scalar is.
  ValueId index_up_to(Builder& b, Pool& pool, std::int64_t limit) {
    const ValueId v = coerce(b, some_value(b, pool), i32, {});
    const ValueId low = add(b, Op::Max, {v, b.constant(i32, 0, {}, here_())});
    return add(b, Op::Min, {low, b.constant(i32, limit, {}, here_())});
  }

  // The same, and sometimes a multiple of something that it is said to be.
  ValueId start_up_to(Builder& b, Pool& pool, std::int64_t limit) {
    const std::int64_t n = random_.pick({1, 1, 2, 3, 4, 8, 16});
    if (n == 1) return index_up_to(b, pool, limit);
    const ValueId some = index_up_to(b, pool, limit / n);
    const ValueId start = add(b, Op::Mul, {some, b.constant(i32, n, {}, here_())});
    return add(b, Op::MultipleOf, {start}, {{n}, 0});
  }

  // Numbers that ascend by 1 along a dimension, from a multiple of something, as is said of them.
  ValueId consecutive(Builder& b, const Extents& shape, std::int64_t d) {
    const std::int64_t n = random_.pick({2, 4, 12});
    const ValueId along = add(b, Op::Iota, {}, {{d}, 0}, Type::value(i32, shape));
    const ValueId first = b.constant(i32, n * random_.below(5), shape, here_());
    std::vector<std::int64_t> numbers(shape.size(), 1);
    numbers[static_cast<std::size_t>(d)] = n;
    ValueId v = add(b, Op::Add, {along, first});
    if (random_.chance(70)) v = add(b, Op::MultipleOf, {v}, {numbers, 0});
    if (random_.chance(70)) v = add(b, Op::MaxContiguous, {v}, {numbers, 0});
    return v;
  }

  ValueId condition(Builder& b, Pool& pool) {
    const ValueId any = some_value(b, pool);
    const ValueId v = coerce(b, any, dtype(), {});
    if (type(v).dtype.is_bool()) return v;
    const ValueId other = constant(b, type(v).dtype);
    return add(b, random_.pick({Op::Eq, Op::Ne, Op::Lt, Op::Ge}), {v, other});
  }

  ValueId converted(Builder& b, ValueId v) { return b.cast(v, dtype(), here_()); }

  ValueId unary(Builder& b, ValueId v) {
    const DType d = type(v).dtype;
    if (d.is_bool()) return add(b, Op::Not, {v});
    if (!d.is_float())
      return add(b,
                 random_.pick({Op::Neg, Op::Abs, Op::Sign, Op::Not, Op::CountLeadingZeros,
                               Op::PopulationCount}),
                 {v});
    const Op op = random_.pick({Op::Neg, Op::Abs, Op::Sign, Op::Sqrt, Op::Floor, Op::Ceil,
                                Op::Round, Op::Trunc, Op::IsFinite});
    return add(b, op, {v});
  }

  ValueId binary(Builder& b, Pool& pool) {
    const ValueId x = some_value(b, pool);
    const ValueId other = some_value(b, pool);
    const DType d = type(x).dtype;
    // Either shape may be the larger one; else the other operand is made to fit.
    bool compatible = true;
    const Extents &p = type(x).shape, &q = type(other).shape;
    std::int64_t elements = 1;
    for (std::size_t i = 1; i <= std::max(p.size(), q.size()); ++i) {
      const std::int64_t m = i <= p.size() ? p[p.size() - i] : 1;
      const std::int64_t n = i <= q.size() ? q[q.size() - i] : 1;
      compatible = compatible && (m == n || m == 1 || n == 1);
      elements *= std::max(m, n);
    }
    const ValueId y = compatible && elements <= o_.max_elements ? b.cast(other, d, here_())
                                                                : coerce(b, other, d, Extents(p));
    const Location at = here_();
    if (random_.chance(20))
      return b.elementwise(random_.pick({Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge}), {x, y},
                           at);
    if (d.is_bool()) return b.elementwise(random_.pick({Op::And, Op::Or, Op::Xor}), {x, y}, at);
    if (!d.is_float())
      return b.elementwise(
          random_.pick({Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Rem, Op::Max, Op::Min, Op::And,
                        Op::Or, Op::Xor, Op::ShiftLeft, Op::ShiftRight}),
          {x, y}, at);
    const Op op =
        random_.pick({Op::Add, Op::Sub, Op::Mul, Op::Max, Op::Min, Op::Add, Op::Mul, Op::Div});
    if (op != Op::Div) return b.elementwise(op, {x, y}, at);
    const ValueId above =
        b.elementwise(Op::Add, {add(b, Op::Abs, {y}), b.constant(d, 1, {}, at)}, at);
    return b.elementwise(Op::Div, {x, above}, at);
  }

  ValueId select(Builder& b, Pool& pool) {
    const ValueId x = some_value(b, pool);
    const Type t = type(x);
    const ValueId y = coerce(b, some_value(b, pool), t.dtype, t.shape);
    return add(b, Op::Select, {coerce(b, some_value(b, pool), bool_, t.shape), x, y});
  }

  ValueId reshaped(Builder& b, ValueId v) {
    const Extents shape = type(v).shape;
    switch (random_.below(5)) {
    case 0: return add(b, Op::Transpose, {v}, {permutation(shape.size()), 0});
    case 1: return add(b, Op::Reshape, {v}, {}, Type::value({}, regrouped(shape)));
    case 2:
    case 3: return elsewhere(b, v);
    default: break;
    }
    Extents to = shape;
    Attr attr;
    const int at = random_.below(static_cast<int>(shape.size()) + 1);
    for (std::size_t i = 0; i < shape.size(); ++i)
      attr.ints.push_back(static_cast<std::int64_t>(i) + (static_cast<int>(i) >= at ? 1 : 0));
    to.insert(to.begin() + at, random_.pick({1, 2, 3, 4}));
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (shape[i] == 1 && random_.chance(50))
        to[static_cast<std::size_t>(attr.ints[i])] = random_.pick({2, 3, 5});
    if (to.size() > 4 || !is_small(to, o_.max_elements)) return v;
    return add(b, Op::Broadcast, {v}, attr, Type::value({}, to));
  }

  // Some of the elements along each dimension, in either direction.
  ValueId sliced(Builder& b, ValueId v) {
    const Extents shape = type(v).shape;
    Extents sizes;
    SliceView slice;
    for (const std::int64_t extent : shape) {
      const std::int64_t size =
          random_.chance(40) ? extent : random_.between(1, static_cast<int>(extent));
      std::int64_t stride = 1;
      if (size > 1 && random_.chance(40))
        stride = random_.between(1, static_cast<int>((extent - 1) / (size - 1)));
      const std::int64_t last = extent - 1 - (size - 1) * stride;
      std::int64_t start = random_.below(static_cast<int>(last) + 1);
      if (random_.chance(30)) {
        start += (size - 1) * stride;
        stride = -stride;
      }
      sizes.push_back(size);
      slice.starts.push_back(start);
      slice.strides.push_back(stride);
    }
    return add(b, Op::Slice, {v}, {slice.encode(), 0}, Type::value({}, sizes));
  }

  // A start for each dimension, in bounds or not.
  std::vector<ValueId> starts_of(Builder& b, const Extents& shape) {
    std::vector<ValueId> starts;
    for (const std::int64_t extent : shape)
      starts.push_back(b.constant(i32, random_.between(-2, static_cast<int>(extent)), {}, here_()));
    return starts;
  }

  ValueId elsewhere(Builder& b, ValueId v) {
    const Extents shape = type(v).shape;
    if (shape.empty()) return unary(b, v);
    const std::int64_t along = random_.below(static_cast<int>(shape.size()));
    switch (random_.below(5)) {
    case 0: {
      std::vector<ValueId> parts(static_cast<std::size_t>(random_.between(1, 3)), v);
      const ValueId first = unary(b, v);
      if (type(first) == type(v)) parts[0] = first;
      const auto n = static_cast<std::int64_t>(parts.size());
      if (n * element_count(shape) > o_.max_elements) return sliced(b, v);
      return add(b, Op::Concatenate, parts, {{along}, 0});
    }
    case 1: {
      std::vector<ValueId> args = starts_of(b, shape);
      args.insert(args.begin(), v);
      Extents sizes;
      for (const std::int64_t extent : shape)
        sizes.push_back(random_.between(1, static_cast<int>(extent)));
      return add(b, Op::DynamicSlice, args, {}, Type::value({}, sizes));
    }
    case 2: {
      const ValueId part = sliced(b, v);
      std::vector<ValueId> args = starts_of(b, shape);
      args.insert(args.begin(), {v, part});
      return add(b, Op::DynamicUpdateSlice, args);
    }
    case 3: {
      const ValueId number = b.cast(v, i32, here_());
      const ValueId low =
          b.elementwise(Op::And, {number, b.constant(i32, 15, {}, here_())}, here_());
      const ValueId index = b.elementwise(Op::Sub, {low, b.constant(i32, 2, {}, here_())}, here_());
      return add(b, Op::TakeAlong, {v, index}, {{along}, 0});
    }
    default: return sliced(b, v);
    }
  }

  std::vector<std::int64_t> permutation(std::size_t rank) {
    std::vector<std::int64_t> p;
    for (std::size_t i = 0; i < rank; ++i) p.push_back(static_cast<std::int64_t>(i));
    shuffle(p);
    return p;
  }

  // The same elements in another shape: two dimensions merged, or one split.
  Extents regrouped(Extents shape) {
    if (shape.size() >= 2 && random_.chance(50)) {
      const std::size_t i =
          static_cast<std::size_t>(random_.below(static_cast<int>(shape.size()) - 1));
      shape[i] *= shape[i + 1];
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return shape;
    }
    if (shape.empty() || shape.size() >= 4) return shape;
    const std::size_t i = static_cast<std::size_t>(random_.below(static_cast<int>(shape.size())));
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= shape[i]; ++d)
      if (shape[i] % d == 0) divisors.push_back(d);
    const std::int64_t d = random_.pick(divisors);
    shape[i] /= d;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(i) + 1, d);
    return shape;
  }

  ValueId reduced(Builder& b, ValueId v) {
    const std::size_t rank = type(v).shape.size();
    if (rank == 0) return unary(b, v);
    if (!type(v).dtype.is_bool() && random_.chance(30)) return scanned(b, v);
    Attr dims;
    for (std::size_t i = 0; i < rank; ++i)
      if (random_.chance(50)) dims.ints.push_back(static_cast<std::int64_t>(i));
    if (dims.ints.empty()) dims.ints.push_back(random_.below(static_cast<int>(rank)));
    const DType d = type(v).dtype;
    const Op op = random_.pick({Op::ReduceSum, Op::ReduceMax, Op::ReduceMin, Op::ReduceProd});
    if (op == Op::ReduceMax || op == Op::ReduceMin) return add(b, op, {v}, dims);
    if (d.is_integer()) return add(b, op, {v}, dims);
    if (op == Op::ReduceProd) return add(b, op, {powers(b, v, d.is_float() ? d : i32)}, dims);
    return add(b, op, {small(b, v, d.is_float() ? d : i32)}, dims);
  }

  ValueId scanned(Builder& b, ValueId v) {
    const DType d = type(v).dtype;
    const int rank = static_cast<int>(type(v).shape.size());
    const Attr along{{random_.below(rank), random_.below(2)}, 0};
    const Op op = random_.pick({Op::CumSum, Op::CumSum, Op::CumProd, Op::CumMax, Op::CumMin});
    if (!d.is_float() || op == Op::CumMax || op == Op::CumMin) return add(b, op, {v}, along);
    return add(b, op, {op == Op::CumSum ? small(b, v, d) : powers(b, v, d)}, along);
  }

  ValueId dot(Builder& b, Pool& pool) {
    const auto d = dtype_where([](DType t) {
      return t.is_float() || (t.is_integer() && t.is_signed() && t.bytes() <= 4);
    });
    if (!d) return binary(b, pool);
    const std::int64_t m = random_.pick({1, 3, 8, 16, 17, 64}),
                       n = random_.pick({1, 2, 8, 16, 24, 48}),
                       k = random_.pick({1, 4, 8, 16, 19, 32});
    const std::int64_t ta = random_.below(2), tb = random_.below(2);
    const auto operand = [&](Extents shape, bool transposed) {
      if (transposed) std::swap(shape[0], shape[1]);
      const ValueId v = coerce(b, some_value(b, pool), *d, shape);
      return d->is_float() ? small(b, v, *d) : v;
    };
    if (m * n > o_.max_elements || m * k > o_.max_elements || k * n > o_.max_elements)
      return binary(b, pool);
    const ValueId x = operand({m, k}, ta), y = operand({k, n}, tb);
    return add(b, Op::Dot, {x, y}, {{ta, tb, 0}, 0});
  }

  // ---- memory

  ValueId view(Builder& b, Pool& pool, ValueId ref) {
    for (int step = random_.below(3); o_.memory && step > 0; --step) {
      const Type t = type(ref);
      switch (random_.below(5)) {
      case 0: ref = add(b, Op::RefTranspose, {ref}, {permutation(t.shape.size()), 0}); break;
      case 1: ref = add(b, Op::RefReshape, {ref}, {}, Type::ref({}, regrouped(t.shape), {})); break;
      case 2:
        if (t.dtype.is_integer())
          ref = add(b, Op::RefBitcast, {ref}, {}, Type::ref(other_bits(t), {}, {}));
        break;
      default: ref = part(b, pool, ref);
      }
    }
    return ref;
  }

  // An integer of any width that divides the bytes of the last dimension.
  DType other_bits(const Type& t) {
    std::vector<DType> fitting;
    for (const DType d : {i8, i16, i32, i64, u8, u16, u32, u64}) {
      const std::int64_t bytes = t.shape.empty() ? 0 : t.shape.back() * t.dtype.bytes();
      const bool same = d.bytes() == t.dtype.bytes(),
                 divides = bytes != 0 && bytes % d.bytes() == 0;
      const std::int64_t count = element_count(t.shape) * t.dtype.bytes() / d.bytes();
      if (!(d == t.dtype) && (same || (divides && count <= o_.max_elements))) fitting.push_back(d);
    }
    return random_.pick(fitting);
  }

  ValueId part(Builder& b, Pool& pool, ValueId ref) {
    const Type t = type(ref);
    Subscript s;
    std::vector<ValueId> starts;
    bool everything = true;
    for (const std::int64_t extent : t.shape) {
      SubscriptDim d;
      d.is_slice = random_.chance(70);
      if (d.is_slice) {
        d.size = random_.chance(40) ? extent : random_.between(1, static_cast<int>(extent));
        if (d.size > 1)
          d.stride = random_.between(1, static_cast<int>((extent - 1) / (d.size - 1)));
        if (random_.chance(60)) d.stride = 1;
      }
      const std::int64_t last = extent - 1 - (d.size - 1) * d.stride;
      d.dynamic = random_.chance(40);
      if (d.dynamic)
        starts.push_back(start_up_to(b, pool, last));
      else
        d.start = random_.below(static_cast<int>(last) + 1);
      everything = everything && d.is_slice && !d.dynamic && d.size == extent;
      s.dims.push_back(d);
    }
    if (everything) return ref;
    return b.at(ref, s, starts, here_());
  }

  ValueId mask(Builder& b, Pool& pool, const Extents& shape) {
    if (!o_.memory || random_.chance(60)) return no_value;
    return coerce(b, some_value(b, pool), bool_, shape);
  }

  ValueId load(Builder& b, Pool& pool) {
    const ValueId v = view(b, pool, random_.pick(readable_));
    const Type t = type(v);
    const ValueId m = mask(b, pool, t.shape);
    if (m == no_value) return b.load(v, no_value, no_value, here_());
    return b.load(v, m, coerce(b, some_value(b, pool), t.dtype, t.shape), here_());
  }

  void store(Builder& b, Pool& pool) {
    if (writable_.empty()) return;
    const ValueId v = view(b, pool, random_.pick(writable_));
    const Type t = type(v);
    const ValueId x = coerce(b, some_value(b, pool), t.dtype, t.shape);
    b.store(v, x, mask(b, pool, t.shape), here_());
  }

  void swap(Builder& b, Pool& pool) {
    std::vector<ValueId> both;
    for (const ValueId r : writable_)
      if (std::find(readable_.begin(), readable_.end(), r) != readable_.end()) both.push_back(r);
    if (both.empty()) return;
    const ValueId v = view(b, pool, random_.pick(both));
    const Type t = type(v);
    const ValueId x = coerce(b, some_value(b, pool), t.dtype, t.shape);
    pool.values.push_back(b.swap(v, x, mask(b, pool, t.shape), here_()));
  }

  std::vector<ValueId> readable_, writable_;
};

}  // namespace palladium::test::random_graph
