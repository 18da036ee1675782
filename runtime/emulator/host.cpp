#include "runtime/emulator/host.hpp"

#include <cmath>

#include "codegen/base/special.hpp"
#include "runtime/emulator/machine.hpp"

namespace palladium::emulator {
using namespace abi;

namespace {
Machine& machine() {
  Machine& m = Machine::current();
  ++m.calls;
  return m;
}

template <class T>
using Unary = T (*)(T);
template <class T>
using Binary = T (*)(T, T);

// The elementary functions, in the order of their table.
#define PALLADIUM_MATH(Op, name, ulp, ulp_f32, ulp_f64, cuda_f32, cuda_f64, emulated, cpu, ...) \
  [](T x) -> T { return cpu; },
template <class T>
constexpr Unary<T> unary[] = {
#include "palladium/math.def"
};
#define PALLADIUM_MATH2(Op, name, a, b, ulp, ulp_f32, ulp_f64, cuda_f32, cuda_f64, emulated, cpu, \
                        ...)                                                                      \
  [](T a, T b) -> T { return cpu; },
template <class T>
constexpr Binary<T> binary[] = {
#include "palladium/math.def"
};

}  // namespace

const Host& host_table() {
  static const Host table = {
      .version = host_version,
      .bytes = sizeof(Host),
      .ids = [] { return Machine::current().ids(); },
      .warpgroup_sync = [](i32 n, i32 line) { machine().warpgroup_sync(n, line); },
      .block_sync = [](i32 line) { machine().block_sync(line); },
      .warp_sync = [](i32 line) { machine().warp_sync(line); },
      .shuffle = [](u64 value, Shuffle kind, u32 operand, i32 line) -> u64 {
        return machine().shuffle(value, kind, operand, line);
      },
      .ballot = [](bool p, i32 line) -> u32 { return machine().ballot(p, line); },
      .load_global = [](void* dst, const void* p, u32 bytes,
                        i32 line) { machine().load_global(dst, p, bytes, line); },
      .load_global_nc = [](void* dst, const void* p, u32 bytes,
                           i32 line) { machine().load_global_nc(dst, p, bytes, line); },
      .store_global = [](void* p, const void* src, u32 bytes,
                         i32 line) { machine().store_global(p, src, bytes, line); },
      .load_shared = [](void* dst, u32 address, u32 bytes, Unwritten unwritten,
                        i32 line) { machine().load_shared(dst, address, bytes, unwritten, line); },
      .store_shared = [](u32 address, const void* src, u32 bytes,
                         i32 line) { machine().store_shared(address, src, bytes, line); },
      .flush_resident =
          [](void* p, u32 address, u32 element_bytes, i32 elements, i32 line) {
            machine().flush_resident(p, address, element_bytes, elements, line);
          },
      .check = [](const char* what, i32 line) { machine().check(what, line); },
      .check_value = [](i64 value, const char* what,
                        i32 line) { machine().check_value(value, what, line); },
      .check_range = [](i64 first, i64 last, i64 extent, const char* what,
                        i32 line) { machine().check_range(first, last, extent, what, line); },
      .mma = [](void* d, const void* a, const void* b, i32 k, Product product,
                i32 line) { machine().mma(d, a, b, k, product, line); },
      .ldmatrix = [](void* dst, u32 row, i32 matrices, bool transposed,
                     i32 line) { machine().ldmatrix(dst, row, matrices, transposed, line); },
      .stmatrix = [](u32 row, const void* src, i32 matrices, bool transposed,
                     i32 line) { machine().stmatrix(row, src, matrices, transposed, line); },
      .warp_uniform = [](u32 x, Uniform what, i32 line) -> u32 {
        return machine().warp_uniform(x, what, line);
      },
      .elect_one = [](i32 line) { return machine().elect_one(line); },
      .barrier = [](u32 id, u32 threads, bool wait,
                    i32 line) { machine().barrier(id, threads, wait, line); },
      .cluster_arrive = [](bool release, i32 line) { machine().cluster_arrive(release, line); },
      .cluster_wait = [](i32 line) { machine().cluster_wait(line); },
      .mapa = [](u32 address, u32 rank, i32 line) -> u32 {
        return machine().mapa(address, rank, line);
      },
      .load_cluster = [](void* dst, u32 remote, u32 bytes,
                         i32 line) { machine().load_cluster(dst, remote, bytes, line); },
      .store_cluster = [](u32 remote, const void* src, u32 bytes,
                          i32 line) { machine().store_cluster(remote, src, bytes, line); },
      .store_async = [](u32 remote, const void* src, u32 bytes, u32 bar,
                        i32 line) { machine().store_async(remote, src, bytes, bar, line); },
      .mbarrier_init = [](u32 bar, u32 count,
                          i32 line) { machine().mbarrier_init(bar, count, line); },
      .mbarrier_inval = [](u32 bar, i32 line) { machine().mbarrier_inval(bar, line); },
      .mbarrier_expect_tx =
          [](u32 bar, u32 bytes, bool remote, i32 line) {
            machine().mbarrier_expect_tx(bar, bytes, remote, line);
          },
      .mbarrier_arrive = [](u32 bar, u32 count, Arrival how,
                            i32 line) { machine().mbarrier_arrive(bar, count, how, line); },
      .mbarrier_wait =
          [](u32 bar, u32 parity, Waiting how, bool cluster_scope, i32 line) {
            return machine().mbarrier_wait(bar, parity, how, cluster_scope, line);
          },
      .fence = [](Fence kind, i32 line) { machine().fence(kind, line); },
      .tma_load = [](u32 dst, const void* map, u32 bar, u32 blocks, i32 rank, const i32* at,
                     i32 line) { machine().tma_load(dst, map, bar, blocks, rank, at, line); },
      .tma_store = [](const void* map, u32 src, Reduction how, i32 rank, const i32* at,
                      i32 line) { machine().tma_store(map, src, how, rank, at, line); },
      .tma_prefetch = [](const void* map, i32 rank, const i32* at,
                         i32 line) { machine().tma_prefetch(map, rank, at, line); },
      .bulk_load = [](u32 dst, const void* src, u32 bytes, u32 bar, u32 blocks,
                      i32 line) { machine().bulk_load(dst, src, bytes, bar, blocks, line); },
      .bulk_store = [](void* dst, u32 src, u32 bytes, Reduction how, Format format,
                       i32 line) { machine().bulk_store(dst, src, bytes, how, format, line); },
      .bulk_copy_cluster =
          [](u32 dst, u32 src, u32 bytes, u32 bar, i32 line) {
            machine().bulk_copy_cluster(dst, src, bytes, bar, line);
          },
      .bulk_prefetch = [](const void* src, u32 bytes,
                          i32 line) { machine().bulk_prefetch(src, bytes, line); },
      .bulk_commit = [](i32 line) { machine().bulk_commit(line); },
      .bulk_wait = [](i32 groups, bool read, i32 line) { machine().bulk_wait(groups, read, line); },
      .cp_async = [](u32 dst, const void* src, u32 bytes, bool in_bounds, const void* otherwise,
                     i32 line) { machine().cp_async(dst, src, bytes, in_bounds, otherwise, line); },
      .cp_async_commit = [](i32 line) { machine().cp_async_commit(line); },
      .cp_async_wait = [](i32 groups, i32 line) { machine().cp_async_wait(groups, line); },
      .cp_async_arrive = [](u32 bar, i32 line) { machine().cp_async_arrive(bar, line); },
      .wgmma = [](const Wgmma* shape, void* d, const u32* a_registers, u64 a, u64 b,
                  bool accumulate,
                  i32 line) { machine().wgmma(*shape, d, a_registers, a, b, accumulate, line); },
      .wgmma_registers = [](const void* registers,
                            u32 words) { machine().wgmma_registers(registers, words); },
      .wgmma_fence = [](i32 line) { machine().wgmma_fence(line); },
      .wgmma_commit = [](i32 line) { machine().wgmma_commit(line); },
      .wgmma_wait = [](i32 groups, i32 line) { machine().wgmma_wait(groups, line); },
      .saw_in_flight = [](i32 line) { machine().saw_in_flight(line); },
      .setmaxnreg = [](i32 registers, bool increase,
                       i32 line) { machine().setmaxnreg(registers, increase, line); },
      .clock = []() -> u64 { return Machine::current().calls; },
      .griddepcontrol = [](bool wait, i32) { machine().griddepcontrol(wait); },
      .name_shared = [](u32 address, u32 bytes, const char* name,
                        i32 index) { machine().name_shared(address, bytes, name, index); },
      .atomic_global = [](void* p, Atomic what, Format format, u32 bytes, u64 value, u64 expected,
                          Order order, Scope scope, i32 line) -> u64 {
        return machine().atomic_global(p, what, format, bytes, value, expected, order, scope, line);
      },
      .atomic_cluster = [](u32 remote, Atomic what, Format format, u32 bytes, u64 value,
                           Order order, i32 line) -> u64 {
        return machine().atomic_cluster(remote, what, format, bytes, value, order, line);
      },
      .atomic_shared = [](u32 address, Atomic what, Format format, u32 bytes, u64 value,
                          u64 expected, Order order, i32 line) -> u64 {
        return machine().atomic_shared(address, what, format, bytes, value, expected, order, line);
      },
      .unary_f32 = unary<f32>,
      .unary_f64 = unary<f64>,
      .binary_f32 = binary<f32>,
      .binary_f64 = binary<f64>,
      .remainder_f32 = [](float a, float b) -> float { return std::fmod(a, b); },
      .remainder_f64 = [](double a, double b) -> double { return std::fmod(a, b); },
      .fma_f32 = [](float a, float b, float c) -> float { return std::fma(a, b, c); },
      .fma_f64 = [](double a, double b, double c) -> double { return std::fma(a, b, c); },
  };
  return table;
}

}  // namespace palladium::emulator
