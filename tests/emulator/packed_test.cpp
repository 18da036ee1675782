// Numbers of 4 bits, of which threads read both halves of bytes where these lie together: in drawn
// kernels, whatever is computed of them, all targets give what the interpreter does.
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "palladium/palladium.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

void compare(const Kernel& k, const std::vector<Array>& arguments) {
  std::vector<float> expected;
  for_each_target("packed", [&](Target target) {
    std::vector<Array> given;
    for (const Array& a : arguments) given.push_back(on(target, a));
    const Array o = on_cpu(given.size() == 2 ? k.on(target)(given[0], given[1])
                                             : k.on(target)(given[0], given[1], given[2]));
    if (expected.empty()) expected.assign(o.data<float>(), o.data<float>() + o.size());
    for (std::int64_t i = 0; i < o.size(); ++i) {
      INFO("element " << i);
      REQUIRE(o.data<float>()[i] == expected[static_cast<std::size_t>(i)]);
    }
  });
}

Array drawn(Random& random, const Shape& shape, DType t) {
  const bool natural = t == u4;
  return make_array<std::int8_t>(
             shape, [&](auto) { return natural ? random.between(0, 15) : random.between(-8, 7); })
      .astype(t);
}

// ---- rows

enum class What {
  sums,
  products,
  less_groups,
  turned_groups,
  running,
  joined,
  rolled,
  padded,
  put
};

struct Rows {
  What what = What::sums;
  DType packed = i4, dtype = f32;
  std::int64_t block = 4, part = 128, steps = 2, group = 32, missing = 0;
  bool masked = false;

  static Rows drawn(Random& random) {
    Rows r{.what = static_cast<What>(random.below(9)),
           .packed = random.chance(50) ? i4 : u4,
           .dtype = random.chance(50) ? f32 : bf16,
           .block = random.pick({1, 2, 4, 8, 16}),
           .part = random.pick({64, 96, 128, 256, 512}),
           .steps = random.between(1, 3),
           .group = random.pick({16, 32}),
           .masked = random.chance(25)};
    if (r.block > 1) r.missing = random.below(2);
    return r;
  }

  std::int64_t rows() const { return 2 * block - missing; }
  std::int64_t columns() const { return part * steps; }
  std::string text() const {
    return std::to_string(static_cast<int>(what)) + " of " + std::string(packed.name()) + " [" +
           std::to_string(block) + "," + std::to_string(part) + "] x " + std::to_string(steps) +
           " less " + std::to_string(missing) + (masked ? ", masked" : "");
  }

  Value loaded(const Ref& a, const Value& l) const {
    const Slice now = ds(l * part, part);
    if (!masked) return Value(a[{_, now}]).astype(f32);
    const Value seen = iota(i32, {block, part}, 1) + l * part < static_cast<int>(columns() - 7);
    return load(a.at({_, now}), {.mask = seen, .other = 0}).astype(f32);
  }

  Value made(const Value& q, const Value& x) const {
    const Value groups = q.reshape({block, part / group, group});
    switch (what) {
    case What::products: return q * x;
    case What::less_groups:
      return (groups - max(groups, {.axis = 2, .keepdims = true})).reshape({block, part});
    case What::turned_groups: return flip(groups, 1).reshape({block, part});
    case What::running: return cumsum(q, {.axis = 1}) + q;
    case What::joined: {
      const std::vector<Value> halves = split(q, 2, 1);
      return concatenate({halves[1] * x[{_, ds(0, part / 2)}], halves[0]}, 1);
    }
    case What::rolled: return roll(q, part / 4, 1) + x;
    case What::padded: return pad(split(q, 2, 1)[1], {{0, 0}, {part / 4, part / 4}});
    default: return dynamic_update_slice(q + x, split(q, 4, 1)[0], {Value(0), Value(part / 2)});
    }
  }

  Kernel kernel() const {
    const Rows r = *this;
    const bool sums = what == What::sums;
    const auto body = [r, sums](Ref a, Ref x, Ref o) {
      const auto row = [&](const Value& l) {
        return Value(x[{_, ds(l * r.part, r.part)}]).astype(f32);
      };
      const auto add = [&](Index l, Value all) {
        return all + sum(r.loaded(a, l) * row(l), {.axis = 1, .keepdims = true});
      };
      const auto make = [&](Index l) {
        o[{_, ds(l * r.part, r.part)}] = r.made(r.loaded(a, l), row(l));
      };
      if (sums)
        o[_] = loop(0, r.steps, add, zeros({r.block, 1}, f32));
      else
        loop(0, r.steps, make);
    };
    const auto rows_of = [](Index i) { return Indices{i, 0}; };
    const std::int64_t wide = sums ? 1 : columns();
    return pallas_call(body, {.name = "packed",
                              .out_type = {{rows(), wide}, f32},
                              .grid = {2},
                              .in_specs = {{{block, columns()}, rows_of, {.fill = 0}}, {}},
                              .out_specs = {{{block, wide}, rows_of, {.fill = 0}}}});
  }
};

void check(const Rows& r, std::uint64_t seed) {
  CAPTURE(r.text());
  Random random(seed);
  const Array a = drawn(random, {r.rows(), r.columns()}, r.packed);
  const Array x = make_array<float>({1, r.columns()}, [&](auto) { return random.between(-4, 4); });
  compare(r.kernel(), {a, x.astype(r.dtype)});
}

}  // namespace

TEST_CASE("whatever is computed of numbers of 4 bits, nothing beside them is read") {
  for (int what = 0; what < 9; ++what)
    for (const DType packed : {i4, u4})
      check(
          {.what = static_cast<What>(what), .packed = packed, .block = 2, .part = 256, .steps = 1},
          7);
}

TEST_CASE("drawn kernels of numbers of 4 bits agree") {
  for_seeds(1, 120, [](std::uint64_t seed) {
    Random random(seed);
    check(Rows::drawn(random), seed);
  });
}

TEST_CASE("drawn products of numbers of 4 bits, with zeros of groups, agree at any width") {
  for_seeds(1, 40, [](std::uint64_t seed) {
    Random random(seed);
    const DType packed = random.chance(50) ? i4 : u4, wide = random.chance(50) ? bf16 : f16;
    const std::int64_t bm = random.pick({16, 64, 128}), bn = random.pick({32, 64, 128}),
                       bk = random.pick({32, 64}), steps = random.pick({1, 2, 4}),
                       m = 2 * bm - random.pick({0, 3}), n = bn + random.pick({0, 2, 16, -6});
    const std::int64_t groups = random.pick({1, 2, 4});  // of an iteration
    const int kind = random.below(3);
    CAPTURE(packed.name(), bm, bn, bk, steps, m, n, kind, groups);
    const auto body = [=](Ref a, Ref b, Ref zeros_of, Ref o) {
      const auto add = [&](Index l, Value all) {
        const Slice now = ds(l * bk, bk);
        const Value numbers =
            zeros_of[{ds(l * groups, groups), _}].astype(wide).reshape({groups, 1, bn});
        Value x = b[{now, _}].astype(wide).reshape({groups, bk / groups, bn});
        if (kind == 1) x = x - numbers;
        if (kind == 2) x = x * (numbers + 1.0f);
        return all + dot(a[{_, now}], x.reshape({bk, bn}));
      };
      o[_] = loop(0, steps, add, zeros({bm, bn}, f32));
    };
    const auto columns_of = [](Index, Index j) { return Indices{0, j}; };
    const BlockSpecOptions filled{.fill = 0};
    const Kernel k = pallas_call(body, {.name = "packed_product",
                                        .out_type = {{m, n}, f32},
                                        .grid = {cdiv(m, bm), cdiv(n, bn)},
                                        .in_specs = {{{bm, bk * steps},
                                                      [](Index i, Index) {
                                                        return Indices{i, 0};
                                                      },
                                                      filled},
                                                     {{bk * steps, bn}, columns_of, filled},
                                                     {{steps * groups, bn}, columns_of, filled}},
                                        .out_specs = {{{bm, bn}, [](Index i, Index j) {
                                                         return Indices{i, j};
                                                       }}}});
    const Array a = make_array<float>({m, bk * steps}, [&](auto) { return random.between(-2, 2); });
    compare(k, {a.astype(wide), drawn(random, {bk * steps, n}, packed),
                drawn(random, {steps * groups, n}, packed)});
  });
}
