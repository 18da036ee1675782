// Blocks of a length that only a call knows: what is beyond it is of no reduction and no product,
// and is not stored.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tests/support/targets.hpp"
#include "tests/support/worst.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

constexpr std::int64_t most = 256;
// None, one, odd ones, whole vectors, all.
constexpr std::int64_t lengths[] = {0, 1, 7, 64, 133, 252, most};

Array numbers(const Shape& shape) {
  return make_array<float>(shape, [](std::int64_t i) { return (i * 7 + i / 5) % 13 - 6; });
}

BlockSpec rows_of(const Dim& n, std::int64_t rows = 1) {
  return {{rows, bounded(n, most)}, [](Index i) { return Indices{i, 0}; }};
}

/// One row to one number, or to as many as it has.
Kernel of_rows(std::function<Value(Ref)> f, bool keeps = false) {
  return pallas_call([=](Ref x, Ref o) { o[_] = f(x); },
                     [=](ShapeDtype x) {
                       const auto [m, n] = x.shape.unpack<2>();
                       const BlockSpec one{{1, 1}, [](Index i) { return Indices{i, 0}; }};
                       return PallasCallOptions{.name = "of_rows",
                                                .out_type = {{m, keeps ? n : Dim(1)}, f32},
                                                .grid = {m},
                                                .in_specs = {rows_of(n)},
                                                .out_specs = {keeps ? rows_of(n) : one}};
                     });
}

/// What a row gives, by a plain loop.
using Expected = std::function<std::vector<double>(const std::vector<double>&)>;

void check_rows(Kernel kernel, const Expected& expected) {
  for_each_target("bounded", [&](Target target) {
    std::set<std::string> keys;
    for (const std::int64_t n : lengths) {
      const Array x = numbers({3, n});
      keys.insert(kernel.lower(x).key());
      const Array o = on_cpu(kernel.on(target)(on(target, x)));
      for (std::int64_t r = 0; r < 3; ++r) {
        const std::vector<double> row(x.data<float>() + r * n, x.data<float>() + (r + 1) * n);
        const std::vector<double> e = expected(row);
        REQUIRE(o.size() == 3 * static_cast<std::int64_t>(e.size()));
        for (std::size_t i = 0; i < e.size(); ++i) {
          const float got = o.data<float>()[static_cast<std::size_t>(r) * e.size() + i];
          INFO("n = " << n << ", row " << r << ", element " << i << ": " << got << ", expected "
                      << e[i]);
          if (std::isnan(e[i]))
            REQUIRE(std::isnan(got));
          else
            REQUIRE((got == e[i] || std::abs(got - e[i]) <= 1e-5 * std::max(1.0, std::abs(e[i]))));
        }
      }
    }
    CHECK(keys.size() <= 2);  // rows that begin at 16 bytes, and others
  });
}

double sum_of(const std::vector<double>& row) {
  double sum = 0;
  for (const double x : row) sum += x;
  return sum;
}

std::vector<double> one(double x) { return {x}; }

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const CompileError& e) {
    return e.what();
  }
  return "";
}

const ReduceOptions along{.axis = 1, .keepdims = true};

}  // namespace

TEST_CASE("reductions of a bounded block take what the array has") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  check_rows(of_rows([](Ref x) { return sum(x[_], along); }),
             [](const auto& row) { return one(sum_of(row)); });
  check_rows(of_rows([](Ref x) { return max(x[_], along); }), [&](const auto& row) {
    return one(row.empty() ? -infinity : *std::ranges::max_element(row));
  });
  check_rows(of_rows([](Ref x) { return min(x[_] * 2, along); }), [&](const auto& row) {
    return one(row.empty() ? infinity : 2 * *std::ranges::min_element(row));
  });
  check_rows(
      of_rows([](Ref x) { return prod(where(x[_] > 5, 2.0f, 1.0f), along); }), [](const auto& row) {
        return one(std::pow(2.0, std::ranges::count_if(row, [](double v) { return v > 5; })));
      });
  check_rows(of_rows([](Ref x) { return f32(any(x[_] > 5, along)); }), [](const auto& row) {
    return one(std::ranges::any_of(row, [](double v) { return v > 5; }));
  });
  check_rows(of_rows([](Ref x) { return f32(all(x[_] > -6, along)); }), [](const auto& row) {
    return one(std::ranges::all_of(row, [](double v) { return v > -6; }));
  });
}

TEST_CASE("means and variances of a bounded block count what the array has") {
  const auto variance = [](const std::vector<double>& row, double less) {
    const auto n = static_cast<double>(row.size());
    double squares = 0;
    for (const double x : row) squares += (x - sum_of(row) / n) * (x - sum_of(row) / n);
    return squares / std::max(n - less, 0.0);
  };
  check_rows(of_rows([](Ref x) { return mean(x[_], along); }),
             [](const auto& row) { return one(sum_of(row) / static_cast<double>(row.size())); });
  check_rows(of_rows([](Ref x) { return var(x[_], {.axis = 1, .keepdims = true}); }),
             [&](const auto& row) { return one(variance(row, 0)); });
  check_rows(of_rows([](Ref x) { return var(x[_], {.axis = 1, .keepdims = true, .ddof = 3}); }),
             [&](const auto& row) { return one(variance(row, 3)); });
  check_rows(of_rows([](Ref x) {
               return full({1, 1}, f32(length(x, 1) * 2 + length(x[_])));
             }),
             [](const auto& row) { return one(3.0 * static_cast<double>(row.size())); });
}

TEST_CASE("a softmax, sorted rows, sums from behind and places of the largest end with the row") {
  check_rows(of_rows([](Ref x) { return pl::softmax(x[_], {.axis = 1}); }, true),
             [](const auto& row) {
               std::vector<double> e;
               for (const double x : row) e.push_back(std::exp(x));
               const double all = sum_of(e);
               for (double& x : e) x /= all;
               return e;
             });
  check_rows(of_rows([](Ref x) { return sort(x[_], {.axis = 1}); }, true), [](const auto& row) {
    std::vector<double> sorted = row;
    std::ranges::sort(sorted);
    return sorted;
  });
  check_rows(of_rows([](Ref x) { return cumsum(x[_], {.axis = 1, .reverse = true}); }, true),
             [](const auto& row) {
               std::vector<double> sums = row;
               for (std::size_t i = sums.size(); i-- > 1;) sums[i - 1] += sums[i];
               return sums;
             });
  check_rows(
      of_rows([](Ref x) { return where(length(x, 1) > 0, f32(argmax(x[_], along)), -1.0f); }),
      [](const auto& row) {
        return one(row.empty() ? -1.0
                               : static_cast<double>(std::ranges::max_element(row) - row.begin()));
      });
}

TEST_CASE("rows that are only moved, or computed of, end where they do, however long") {
  constexpr std::int64_t longest = 4096;
  const auto rows = [](std::function<Value(Value)> f) {
    return pallas_call([=](Ref x, Ref o) { o[_] = f(x[_]); },
                       [](ShapeDtype x) {
                         const BlockSpec row{{1, bounded(x.shape[1], longest)}, [](Index i) {
                                               return Indices{i, 0};
                                             }};
                         return PallasCallOptions{.name = "moved",
                                                  .out_type = x,
                                                  .grid = {x.shape[0]},
                                                  .in_specs = {row},
                                                  .out_specs = {row}};
                       });
  };
  const Kernel moved = rows([](Value v) { return v; }),
               doubled = rows([](Value v) { return v * 2; }),
               centred = rows([](Value v) { return v - pl::max(v, along); });
  for_each_target("moved", [&](Target target) {
    for (const std::int64_t n :
         {0, 4, 511, 512, 516, 1000, 1536, 2047, 2048, 2052, 3584, 3588, 4095, 4096}) {
      const Array x = numbers({2, n});
      const Array given[] = {on_cpu(moved.on(target)(on(target, x))),
                             on_cpu(doubled.on(target)(on(target, x))),
                             on_cpu(centred.on(target)(on(target, x)))};
      for (std::int64_t i = 0; i < 2 * n; ++i) {
        const float* const row = x.data<float>() + i / n * n;
        const float v = x.data<float>()[i], top = *std::max_element(row, row + n);
        REQUIRE(given[0].data<float>()[i] == v);
        REQUIRE(given[1].data<float>()[i] == 2 * v);
        REQUIRE(given[2].data<float>()[i] == v - top);
      }
    }
  });
}

TEST_CASE("rows that are masked by hand end where their masks do, of vectors of any length") {
  constexpr std::int64_t block = 4096;
  const auto normed = [](const Dim& n, DType t) {
    return pallas_call(
        [=](Ref x, Ref o, Ref largest) {
          const Value inside = iota(i32, {1, block}, 1) < dim_as_value(n);
          const Value count = dim_as_value(n).astype(f32);
          const Value v = where(inside, x[_].astype(f32), 0.0f);
          const Value centred = where(inside, v - sum(v, along) / count, 0.0f);
          largest[_] = max(where(inside, v, -std::numeric_limits<float>::infinity()), along);
          o[_] = (centred * rsqrt(sum(centred * centred, along) / count + 1e-5f)).astype(t);
        },
        PallasCallOptions{.name = "masked",
                          .out_type = {{{2, n}, t}, {{2, 1}, f32}},
                          .grid = {2},
                          .in_specs = {{{1, block},
                                        [](Index i) {
                                          return Indices{i, 0};
                                        }}},
                          .out_specs = {{{1, block},
                                         [](Index i) {
                                           return Indices{i, 0};
                                         }},
                                        {{1, 1}, [](Index i) {
                                           return Indices{i, 0};
                                         }}}});
  };
  for_each_target("masked", [&](Target target) {
    for (const DType t : {f32, bf16})
      for (const std::int64_t of : {1, 4, 8})
        for (const std::int64_t about :
             {1, 8, 133, 1000, 1024, 1025, 2047, 3080, 4095, 4096, 4200}) {
          const std::int64_t n = about / of * of;
          if (n == 0) continue;
          const Kernel k = normed(dim("n", {.multiple_of = of}), t);
          const Array x = numbers({2, n}).astype(t), v = x.astype(f32);
          const Array given = on(target, Array::empty({2, n}, t)),
                      largest = on(target, Array::empty({2, 1}, f32));
          k.on(target).into({given, largest}, {on(target, x)});
          const Array o = on_cpu(given).astype(f32), tops = on_cpu(largest);
          for (std::int64_t r = 0; r < 2; ++r) {
            const float* const row = v.data<float>() + r * n;
            const std::int64_t seen = std::min(n, block);
            CAPTURE(t, of, n, r);
            REQUIRE(tops.data<float>()[r] == *std::max_element(row, row + seen));
            double sum = 0, squares = 0;
            for (std::int64_t i = 0; i < seen; ++i) sum += row[i];
            const double mean = sum / static_cast<double>(n);
            for (std::int64_t i = 0; i < seen; ++i) squares += (row[i] - mean) * (row[i] - mean);
            const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
            double worst = 0;
            for (std::int64_t i = 0; i < seen; ++i) {
              const double off = o.data<float>()[r * n + i] - (row[i] - mean) * scale;
              worst = test::worst_of(worst, std::abs(off));
            }
            REQUIRE(worst <= (t == f32 ? 1e-4 : 2e-2));
          }
        }
  });
}

TEST_CASE("parts of a bounded block, loops over them and what they carry end with the row") {
  // Of slices from a number on, and by a stride.
  check_rows(of_rows([](Ref x) {
               return sum(x[{_, ds(3, 100, 2)}], along);
             }),
             [](const auto& row) {
               double sum = 0;
               for (std::size_t i = 3; i < std::min<std::size_t>(row.size(), 203); i += 2)
                 sum += row[i];
               return one(sum);
             });
  check_rows(of_rows([](Ref x) {
               return loop(
                   0, most / 32,
                   [&](Index i, Value s) {
                     return carry(s + sum(x[{_, ds(i * 32, 32)}], along));
                   },
                   zeros({1, 1}, f32));
             }),
             [](const auto& row) { return one(sum_of(row)); });
  // What a carry began with stays where no row is.
  check_rows(of_rows([](Ref x) {
               const Value sums = loop(
                   0, most / 32,
                   [&](Index i, Value s) {
                     return carry(s + x[{_, ds(i * 32, 32)}]);
                   },
                   zeros({1, 32}, f32));
               return sum(sums, along);
             }),
             [](const auto& row) { return one(sum_of(row)); });
  check_rows(of_rows([](Ref x) {
               const Value v = x[_];
               return sum(cond(
                              program_id(0) >= 0, [&] { return v * 2; }, [&] { return v; }),
                          along);
             }),
             [](const auto& row) { return one(2 * sum_of(row)); });
  check_rows(
      of_rows([](Ref x) {
        const Value v = x[_];
        return sum(flip(v, 1)[{_, ds(0, most / 2)}], along) + sum(v[{_, ds(0, most / 2)}], along);
      }),
      [](const auto& row) { return one(sum_of(row)); });
  check_rows(of_rows([](Ref x) {
               return full({1, 1}, sum(x[_].reshape({most, 1}).transpose({1, 0})));
             }),
             [](const auto& row) { return one(sum_of(row)); });
}

TEST_CASE("products over a bounded dimension multiply zeros beyond it") {
  for_each_target("bounded_product", [](Target target) {
    for (const bool is_filled : {false, true}) {
      const Kernel product =
          pallas_call([](Ref a, Ref b, Ref o) { o[_] = dot(a[_], b[_]); },
                      [=](ShapeDtype a, ShapeDtype b) {
                        require_equal(a.shape[1], b.shape[0]);
                        const auto fill = is_filled ? std::optional(0.0) : std::nullopt;
                        return PallasCallOptions{
                            .name = "bounded_product",
                            .out_type = {{a.shape[0], b.shape[1]}, f32},
                            .grid = {cdiv(a.shape[0], 16)},
                            .in_specs = {{{16, bounded(a.shape[1], 64)},
                                          [](Index i) {
                                            return Indices{i, 0};
                                          },
                                          {.fill = fill}},
                                         {{bounded(b.shape[0], 64), bounded(b.shape[1], 32)},
                                          [](Index) {
                                            return Indices{0, 0};
                                          },
                                          {.fill = fill}}},
                            .out_specs = {{{16, bounded(b.shape[1], 32)}, [](Index i) {
                                             return Indices{i, 0};
                                           }}}};
                      });
      for (const auto& [m, k, n] : std::vector<std::array<std::int64_t, 3>>{
               {16, 64, 32}, {5, 1, 1}, {40, 33, 7}, {16, 16, 16}, {3, 0, 4}}) {
        const Array a = numbers({m, k}), b = numbers({k, n});
        const Array o = on_cpu(product.on(target)(on(target, a), on(target, b)));
        for (std::int64_t e = 0; e < m * n; ++e) {
          float sum = 0;
          for (std::int64_t j = 0; j < k; ++j)
            sum += a.data<float>()[e / n * k + j] * b.data<float>()[j * n + e % n];
          REQUIRE(o.data<float>()[e] == sum);
        }
      }
    }
  });
}

TEST_CASE("a store of a bounded value writes as much as the row has") {
  for_each_target("bounded_store", [](Target target) {
    const Kernel k = pallas_call(
        [](Ref x, Ref o, Ref kept) {
          kept[_] = full({1, most}, 2.0f);
          kept[_] = x[_];
          kept[_] += x[_];
          o[_] = sum(kept[_], along);
        },
        [](ShapeDtype x) {
          return PallasCallOptions{.name = "bounded_store",
                                   .out_type = {{x.shape[0], 1}, f32},
                                   .grid = {x.shape[0]},
                                   .in_specs = {rows_of(x.shape[1])},
                                   .out_specs = {{{1, 1},
                                                  [](Index i) {
                                                    return Indices{i, 0};
                                                  }}},
                                   .scratch_types = {gpu::SMEM({1, most}, f32)}};
        });
    for (const std::int64_t n : lengths) {
      const Array x = numbers({2, n});
      const Array o = on_cpu(k.on(target)(on(target, x)));
      for (std::int64_t r = 0; r < 2; ++r) {
        double sum = 2.0 * static_cast<double>(most - n);
        for (std::int64_t i = 0; i < n; ++i) sum += 2.0 * x.data<float>()[r * n + i];
        REQUIRE(o.data<float>()[r] == sum);
      }
    }
  });
}

TEST_CASE("rows of two lengths together have the shorter one") {
  for_each_target("two_lengths", [](Target target) {
    const Kernel k =
        pallas_call([](Ref x, Ref y, Ref o) { o[_] = sum(x[_] * y[_]).reshape({1}); },
                    [](ShapeDtype x, ShapeDtype y) {
                      return PallasCallOptions{
                          .name = "two_lengths",
                          .out_type = {{1}, f32},
                          .grid = {1},
                          .in_specs = {{{bounded(x.shape[0], most)}, [](Index i) { return i; }},
                                       {{bounded(y.shape[0], most)}, [](Index i) { return i; }}},
                          .out_specs = {BlockSpec{{1}}}};
                    });
    for (const auto& [m, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {most, most}, {3, 200}, {200, 3}, {0, 9}, {64, 64}, {17, 18}}) {
      const Array x = numbers({m}), y = numbers({n});
      const Array o = on_cpu(k.on(target)(on(target, x), on(target, y)));
      float sum = 0;
      for (std::int64_t i = 0; i < std::min(m, n); ++i)
        sum += x.data<float>()[i] * y.data<float>()[i];
      REQUIRE(*o.data<float>() == sum);
    }
  });
}

TEST_CASE("a size class is a power of two that the size does not exceed") {
  std::vector<std::int64_t> classes;
  const Kernel k =
      pallas_call([](Ref x, Ref o) { o[_] = sum(x[_], along); },
                  [&](ShapeDtype x) {
                    const std::int64_t bound = size_class(x.shape[1], 20);
                    classes.push_back(bound);
                    return PallasCallOptions{
                        .name = "classes",
                        .out_type = {{x.shape[0], 1}, f32},
                        .grid = {x.shape[0]},
                        .in_specs = {{{1, bounded(x.shape[1], std::max<std::int64_t>(bound, 1))},
                                      [](Index i) {
                                        return Indices{i, 0};
                                      }}},
                        .out_specs = {{{1, 1}, [](Index i) {
                                         return Indices{i, 0};
                                       }}}};
                  });
  for (const std::int64_t n : {4, 32, 8, 28, 64, 36, 16, 40, 0, 12, 64})
    (void)k.on(Target::interpreter)(numbers({2, n}));
  CHECK(classes == std::vector<std::int64_t>{32, 64, 0});
  CHECK(size_class(100) == 128);
  CHECK(size_class(128) == 128);
  CHECK(size_class(1, 64) == 64);
  CHECK(size_class(0, 64) == 0);
  CHECK_THROWS_WITH(size_class(dim("n")), ContainsSubstring("nothing is said of its size"));
  CHECK(size_class(dim("n", {.at_most = 1000})) == 1024);
  CHECK_THROWS_WITH(size_class(3, 0), ContainsSubstring("from 1 to 2^62"));
}

TEST_CASE("what a bounded block cannot be is told with argument, bound and line") {
  const Location at{__FILE__, 7};
  const auto sums = [&](
                        std::function<BlockDim(ShapeDtype)> block,
                        std::function<Value(Value)> f = [](Value v) { return v; }) {
    return pallas_call([=](Ref x, Ref o) { o[_] = full({1}, sum(f(x[_]))); },
                       [=](ShapeDtype x) {
                         return PallasCallOptions{.name = "sums",
                                                  .out_type = {{1}, f32},
                                                  .grid = {1},
                                                  .in_specs = {BlockSpec{{2, block(x)},
                                                                         [](Index) {
                                                                           return Indices{0, 0};
                                                                         },
                                                                         {},
                                                                         at}},
                                                  .out_specs = {BlockSpec{{1}}}};
                       });
  };
  const auto own = [](ShapeDtype x) { return bounded(x.shape[1], 32); };
  const Kernel k = sums(own);
  const auto call = [](const Kernel& kernel, std::int64_t n) {
    return message_of([&] { (void)kernel.on(Target::interpreter)(numbers({2, n})); });
  };
  CHECK(call(k, 32).empty());
  // A call that comes later, too.
  const std::string beyond = call(k, 33);
  CHECK_THAT(beyond, ContainsSubstring("args[0]") && ContainsSubstring("bounded(") &&
                         ContainsSubstring("at most 32") && ContainsSubstring("33 here") &&
                         ContainsSubstring("bounded_test.cpp:7"));
  CHECK(call(k, 5).empty());
  CHECK_THAT(call(sums([](ShapeDtype x) { return bounded(x.shape[0], 32); }), 16),
             ContainsSubstring("pl::bounded(args[0].shape[0], 32) is along dimension 1"));
  CHECK_THAT(call(sums(own,
                       [](Value v) {
                         return v.reshape({4, 16});
                       }),
                  32),
             ContainsSubstring("reshape") && ContainsSubstring("pl::bounded stays as it is"));
  CHECK_THAT(call(sums(own,
                       [](Value v) {
                         return concatenate({v, v}, 1);
                       }),
                  32),
             ContainsSubstring("concatenate") && ContainsSubstring("pl::bounded"));
}
