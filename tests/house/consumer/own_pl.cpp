// A program with a `pl` and a `plgpu` of its own, compiled against what is installed: with
// PALLADIUM_NO_ALIASES all is called by the name palladium.
#define PALLADIUM_NO_ALIASES
#include <palladium/palladium.hpp>

#include <cstdio>

namespace pl {
struct Array {
  int size = 3;
};
int exp(int x) { return 1 << x; }
}  // namespace pl
struct plgpu {
  int warps = 4;
};

using palladium::_;

int main() {
  auto scaled = palladium::pallas_call(
      [](palladium::Ref x, palladium::Ref scale, palladium::Ref o) {
        palladium::Value v = x[_];
        palladium::Value total = palladium::sum(v, {.axis = 1, .keepdims = true});
        palladium::when(palladium::program_id(0) >= 0, [&] { o[_] = v * scale[_] + total; });
      },
      [](palladium::ShapeDtype x, palladium::ShapeDtype) {
        auto row = palladium::BlockSpec{
            {1, 3}, [](palladium::Index i) { return palladium::Indices{i, 0}; }};
        return palladium::PallasCallOptions{.name = "scaled",
                                            .out_type = x,
                                            .grid = {x.shape[0]},
                                            .in_specs = {row, row},
                                            .out_specs = {row}};
      });
  const pl::Array ours;
  const auto x = palladium::Array::of({1.0f, 2.0f, 3.0f}).reshape({1, ours.size});
  const auto scale = palladium::Array::of({1.0f, 10.0f, 100.0f}).reshape({1, ours.size});
  palladium::Array y = scaled.on(palladium::Target::interpreter)(x, scale);
  for (float f : y.values<float>()) std::printf("%g ", f);

  auto staged = palladium::gpu::kernel(
      [](palladium::Ref in, palladium::Ref out) { out[_] = in[_] + 1.0f; },
      {.out_type = palladium::ShapeDtype{{1, 3}, palladium::f32}, .grid = {1}, .grid_names = {"i"}});
  palladium::Array z = staged.on(palladium::Target::interpreter)(x);
  std::printf("%g %d %d\n", z.values<float>()[0], pl::exp(3), plgpu().warps);
  if (palladium::version() != PALLADIUM_VERSION) return 1;
  std::printf("%s\n", palladium::version_string());
}
