// The shared object's two symbols: bind takes the emulator's functions, run starts one thread.

namespace pl {
namespace detail {

static Host host;

template <int... I>
struct Indices {};
template <int N, int... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <int... I>
struct MakeIndices<0, I...> {
  typedef Indices<I...> type;
};

// A tensor map is taken by reference: the kernel sees it where the caller has it.
template <class P>
struct Parameter {
  typedef P type;
};
template <class P>
struct Parameter<const P&> {
  typedef const P type;
};

template <class... P, int... I>
PL_FN void run(void (*kernel)(P...), void** p, Indices<I...>) {
  kernel(*static_cast<typename Parameter<P>::type*>(p[I])...);
}

// Reads the parameters as cuLaunchKernel reads kernelParams.
template <class... P>
PL_FN void run(void (*kernel)(P...), void** p) {
  run(kernel, p, typename MakeIndices<sizeof...(P)>::type());
}

}  // namespace detail
}  // namespace pl

// Whether this object was built for an emulator like the caller.
extern "C" __attribute__((visibility("default"))) bool palladium_emulator_bind(
    const pl::detail::Host* host) {
  if (host->version != pl::detail::host_version || host->bytes != sizeof *host) return false;
  pl::detail::host = *host;
  return true;
}
