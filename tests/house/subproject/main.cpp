// A program of a project that has added Palladium's, and beside it one that knows nothing of it.
#include <cstdio>
#ifdef WITH_PALLADIUM
#include <palladium/palladium.hpp>
#endif

int own();

#ifndef OF_THE_PARENT
#error the parent's definitions are gone
#endif

int main() {
  int result = own();
#ifdef WITH_PALLADIUM
  using pl::_;
  auto add_two =
      pl::pallas_call([](pl::Ref x, pl::Ref o) { o[_] = x[_] + 2; },
                      [](pl::ShapeDtype x) { return pl::PallasCallOptions{.out_type = x}; });
  pl::Array y = add_two.on(pl::Target::interpreter)(pl::Array::of({result}));
  result = y.values<int>()[0];
#endif
  std::printf("%d\n", result);
}
