// Products named by letters, and elements named by arrays of numbers, against loops over all
// numbers, on interpreter and emulator.
#include "tests/interpreter/tensors.hpp"

using namespace palladium;
using namespace palladium::test;
using palladium::_;

namespace {

using Numbers = std::vector<std::int64_t>;

Tensor small_numbers(DType t, const Numbers& shape, int seed) {
  return Tensor(t, shape, [=](std::int64_t i) { return double((i * 7 + seed) % 5 - 2); });
}

// What the letters of `subscripts` ("ik,kj->ij") say, of extents by letter.
struct Letters {
  std::string a, b, result;
  Numbers shape(const std::string& letters) const {
    Numbers to;
    for (const char c : letters) to.push_back(c - 'a' + 2);  // a 2, b 3, ...
    return to;
  }
};

void check_einsum(const Letters& l, DType t, DType wide, bool implicit = false) {
  const std::string subscripts = l.a + "," + l.b + (implicit ? "" : " -> " + l.result);
  CAPTURE(subscripts, t.name());
  Tensor x = small_numbers(t, l.shape(l.a), 1), y = small_numbers(t, l.shape(l.b), 3);
  Tensor o(wide, l.shape(l.result));
  run([&](Ref x, Ref y, Ref o) { o[_] = einsum(subscripts.c_str(), x[_], y[_]); }, {}, {&x, &y},
      {&o});
  std::string all = l.a;
  for (const char c : l.b)
    if (all.find(c) == all.npos) all += c;
  std::vector<double> sums(static_cast<std::size_t>(o.size()));
  const Numbers extents = l.shape(all);
  const auto place = [&](const std::string& letters, std::int64_t i) {
    std::int64_t at = 0;
    for (const char c : letters) {
      std::int64_t inner = 1;
      for (std::size_t d = all.find(c) + 1; d < all.size(); ++d) inner *= extents[d];
      at = at * (c - 'a' + 2) + i / inner % (c - 'a' + 2);
    }
    return at;
  };
  for (std::int64_t i = 0; i < graph::element_count(extents); ++i)
    sums[static_cast<std::size_t>(place(l.result, i))] += x[place(l.a, i)] * y[place(l.b, i)];
  CHECK(o.numbers() == sums);
}

}  // namespace

TEST_CASE(
    "products are named by letters: matrices in any order, batches, vectors, outer ones [C73]") {
  check_einsum({"ik", "kj", "ij"}, f32, f32);
  check_einsum({"ki", "jk", "ji"}, f16, f32);
  check_einsum({"gbi", "igc", "cb"}, f32, f32);  // two letters are summed
  check_einsum({"bij", "bjk", "bik"}, bf16, f32);
  check_einsum({"i", "i", ""}, f8e4m3, f32);
  check_einsum({"d", "c", "dc"}, i8, i32);
  check_einsum({"cdi", "db", "bc"}, i16, i32);  // i is summed before
  check_einsum({"db", "cd", "bc"}, f64, f64, true);
}

TEST_CASE("elements are gathered by several arrays of numbers, which broadcast") {
  for (const DType t : {f32, i8}) {
    Tensor x(t, {4, 5, 3}, [](std::int64_t i) { return double(i); });
    Tensor i(i32, {2, 1}, {3, -7}), j(i16, {3}, {0, 4, 9}), k(u8, {}, {2});
    Tensor o(t, {2, 3, 3}), p(t, {2, 3, 5}), q(t, {4, 3, 2}), r(t, {5, 3});
    run(
        [](Ref x, Ref i, Ref j, Ref k, Ref o, Ref p, Ref q, Ref r) {
          o[_] = gather(x[_], {i[_], j[_]});
          p[_] = gather(x[_], {i[_], j[_]}, {0, 2});  // not neighbours: in front
          q[_] = gather(x[_], {i[_], j[_]}, {2, 1}).transpose({0, 2, 1});
          r[_] = gather(x[_], {k[_]});
        },
        {}, {&x, &i, &j, &k}, {&o, &p, &q, &r});
    const auto near = [](double n, std::int64_t extent) {
      return std::clamp<std::int64_t>(static_cast<std::int64_t>(n), 0, extent - 1);
    };
    const auto at = [&](std::int64_t a, std::int64_t b, std::int64_t c) {
      return x[(a * 5 + b) * 3 + c];
    };
    for (std::int64_t u = 0; u < 2; ++u)
      for (std::int64_t v = 0; v < 3; ++v) {
        for (std::int64_t c = 0; c < 3; ++c)
          CHECK(o[(u * 3 + v) * 3 + c] == at(near(i[u], 4), near(j[v], 5), c));
        for (std::int64_t b = 0; b < 5; ++b)
          CHECK(p[(u * 3 + v) * 5 + b] == at(near(i[u], 4), b, near(j[v], 3)));
        for (std::int64_t a = 0; a < 4; ++a)
          CHECK(q[(a * 3 + v) * 2 + u] == at(a, near(j[v], 5), near(i[u], 3)));
      }
    for (std::int64_t e = 0; e < 15; ++e) CHECK(r[e] == x[30 + e]);
  }
}

TEST_CASE(
    "elements are scattered: set, added, the greatest and the least, out of bounds left out") {
  for (const DType t : {f32, f16, i8, f8e5m2}) {
    CAPTURE(t.name());
    Tensor x(t, {4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3}), i(i32, {5}, {2, 0, 2, 4, -1});
    Tensor u(t, {5, 3}, [](std::int64_t i) { return double(i % 8); });
    Tensor set(t, {4, 3}), sum(t, {4, 3}), most(t, {4, 3}), least(t, {4, 3}), one(t, {4, 3});
    run(
        [](Ref x, Ref i, Ref u, Ref set, Ref sum, Ref most, Ref least, Ref one) {
          const Value v = x[_];
          set[_] = scatter(v, {iota(i32, {3}), iota(i32, {3})}, 12);
          sum[_] = scatter(v, {i[_]}, u[_], {.mode = ScatterMode::add});
          most[_] = scatter(v, {i[_]}, u[_], {.mode = ScatterMode::max});
          least[_] = scatter(v, {i[_]}, u[_], {.mode = ScatterMode::min});
          one[_] = scatter(v, {1}, u[{0, _}], {.mode = ScatterMode::add});
        },
        {}, {&x, &i, &u}, {&set, &sum, &most, &least, &one});
    for (std::int64_t e = 0; e < 12; ++e) {
      const std::int64_t row = e / 3, column = e % 3;
      CHECK(one[e] == x[e] + (row == 1 ? u[column] : 0));
      CHECK(set[e] == (row == column ? 12 : x[e]));
      double added = x[e], greatest = x[e], smallest = x[e];
      for (std::int64_t n = 0; n < 5; ++n) {
        if (i[n] != double(row)) continue;
        added += u[n * 3 + column];
        greatest = std::max(greatest, u[n * 3 + column]);
        smallest = std::min(smallest, u[n * 3 + column]);
      }
      CHECK(sum[e] == Tensor(t, {1}, {added})[0]);
      CHECK(most[e] == greatest);
      CHECK(least[e] == smallest);
    }
  }
}
