// Softmax of every row, however many there are.
#include <cstdio>
#include <palladium/palladium.hpp>

using pl::_;

int main() {
  auto softmax = pl::pallas_call(
      [](pl::Ref x, pl::Ref o) {  // block references: one row in, one row out
        pl::Value v = x[_];
        pl::Value e = pl::exp(v - pl::max(v, {.axis = 1, .keepdims = true}));
        o[_] = e / pl::sum(e, {.axis = 1, .keepdims = true});
      },
      [](pl::ShapeDtype x) {  // options as a function of the inputs' types
        auto row = pl::BlockSpec{{1, x.shape[1]}, [](pl::Index i) { return pl::Indices{i, 0}; }};
        return pl::PallasCallOptions{.name = "softmax",
                                     .out_type = x,
                                     .grid = {x.shape[0]},
                                     .in_specs = {row},
                                     .out_specs = {row}};
      });

  pl::Array x = pl::Array::of({1.0f, 2.0f, 3.0f}).reshape({1, 3}).to(pl::default_device());
  auto y = softmax(x);  // traces, compiles or loads, launches
  for (float p : y.to(pl::Device::cpu()).values<float>()) std::printf("%.4f\n", p);

  // What a GPU runs, for m rows of 512.
  auto lowered = softmax.lower(pl::ShapeDtype{{pl::dim("m"), 512}, pl::f32});
  std::printf("%s", lowered.cuda_source({.arch = "sm_90a"}).c_str());
}
