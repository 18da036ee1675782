// Products of windows of images, which are rows of several dimensions.
#include <catch2/catch_test_macros.hpp>

#include "tests/user_kernels/along_k.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

struct Images {
  std::int64_t count = 1, height = 5, width = 32, channels = 32, rows = 2;
  int window = 3, before = 1,
      after = 1;  // of rows and columns; padding in front of and behind them
  std::optional<double> fill = 0;
  DType dtype = f16;
  bool keeps_image = false;  // the first dimension stays, of one image
  bool masks = false;        // what is read is masked, too, along the rows of the window
};

// Of each window a product, added up over its places; the last block of rows may end outside.
graph::Graph summed(const Images& p) {
  const std::int64_t across = p.window - 1, pixels = p.rows * p.width, filters = 32;
  const auto body = [=](Ref x, Ref w, Ref o) {
    const auto place = [&](Index l, Value sum) {
      const Value i = l / p.window, j = pl::remainder(l, p.window);
      const auto rows = ds(i, p.rows), columns = ds(j, p.width);
      Value read = p.keeps_image ? x[{ds(0, 1), rows, columns, _}] : x[{rows, columns, _}];
      if (p.masks) read = where(i < 2, read, Value(0));
      const Value left = read.reshape({pixels, p.channels});
      return sum + dot(left, w[{i, j, _, _}], {.precision = p.dtype == f32 ? tf32 : ieee});
    };
    const Value sum = loop(0, p.window * p.window, place, pl::zeros({pixels, filters}, f32));
    o[_] = sum.reshape({p.rows, p.width, filters});
  };
  const auto blocks = [=](Index n, Index i) { return Indices{n, i * p.rows, 0, 0}; };
  const BlockDim rows = Element(p.rows + across, {p.before, p.after}),
                 columns = Element(p.width + across, {p.before, p.after});
  const BlockSpecOptions options{.fill = p.fill};
  const BlockSpec x = p.keeps_image
                          ? BlockSpec{{1, rows, columns, p.channels}, blocks, options}
                          : BlockSpec{{squeezed, rows, columns, p.channels}, blocks, options};
  const BlockSpec w{{p.window, p.window, p.channels, filters},
                    [](Index, Index) {
                      return Indices{0, 0, 0, 0};
                    }},
      o{{squeezed, p.rows, p.width, filters}, [](Index n, Index i) {
          return Indices{n, i, 0, 0};
        }};
  const std::int64_t high = p.height + p.before + p.after - across, wide = p.width;
  return traced(
      body,
      {.name = "summed",
       .out_type = ShapeDtype{{p.count, high, wide, filters}, f32},
       .grid = {p.count, cdiv(high, p.rows)},
       .in_specs = {x, w},
       .out_specs = {o}},
      {array({p.count, p.height, p.width + across - p.before - p.after, p.channels}, p.dtype),
       array({p.window, p.window, p.channels, filters}, p.dtype)});
}

std::string remarks_of(const graph::Graph& g) {
  std::string all;
  for (const Remark& r : cuda::lower(g, {.compute_capability = 90}).remarks) all += r.text + "\n";
  return all;
}

}  // namespace

TEST_CASE("products of windows of images agree, whatever is around these") {
  for (const int compute_capability : {80, 90}) {
    CAPTURE(compute_capability);
    const auto check = [&](const Images& p) {
      CAPTURE(p.height, p.rows, p.window, p.before, p.after, p.channels);
      CHECK(problem_of(summed(p), {}, compute_capability) == "");
    };
    check({});
    check({.count = 2, .height = 7, .rows = 4, .before = 2, .after = 0});
    check({.height = 4, .width = 16, .rows = 4, .window = 5, .before = 3, .after = 4});
    check({.height = 3, .width = 64, .rows = 1, .window = 2, .before = 0, .after = 1});
    check({.dtype = bf16, .keeps_image = true});
    check({.channels = 64, .dtype = f32});
    check({.channels = 40});
    check({.fill = 2});
    check({.before = 0, .after = 0, .fill = {}});
    check({.masks = true});
  }
}

TEST_CASE("windows of images are fetched by TMA where zeros surround them") {
  const auto by_threads = [](const Images& p) {
    return remarks_of(summed(p)).find("args[0]: copied by threads") != std::string::npos;
  };
  CHECK_FALSE(by_threads({}));
  CHECK_FALSE(by_threads({.keeps_image = true}));
  CHECK(by_threads({.fill = 2}));
}
