// What race detection costs: each step of the engine, and all that an emulated 512x512x512 bf16
// matrix product asks of it.
#include <array>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include "benchmarks/timing.hpp"
#include "runtime/race/shadow.hpp"

namespace {

using namespace palladium::race;
using palladium::benchmark::best_of;

constexpr auto generic = Proxy::generic, async = Proxy::async;

void report(const char* name, double ns, const char* peer = nullptr, double peer_ns = 0) {
  std::printf("%-52s %9.1f ns", name, ns);
  if (peer != nullptr) std::printf("   %s %.1f ns", peer, peer_ns);
  std::printf("\n");
  std::fflush(stdout);
}

long races = 0;

void count(const std::optional<Race>& race) { races += race.has_value(); }

/// The threads of one block and its shared memory.
struct Block {
  Block(std::uint32_t threads, std::size_t bytes) : threads(threads), shadow(engine, bytes) {
    start();
  }
  void start() {
    engine.reset();
    shadow.clear();
    for (std::uint32_t t = 0; t < threads; ++t) engine.add_agent();
  }
  Snapshot arrive(Agent first, std::uint32_t count) {
    Snapshot all;
    for (Agent a = first; a < first + count; ++a) all = engine.join(all, engine.release(a));
    return all;
  }
  void leave(Agent first, std::uint32_t count, Snapshot s) {
    for (Agent a = first; a < first + count; ++a) engine.acquire(a, s);
  }

  const std::uint32_t threads;
  Engine engine;
  Shadow shadow;
};

// ---- One step each

constexpr std::size_t shared_bytes = 128 * 1024;

void threads_and_cells() {
  Block b(256, shared_bytes);
  std::vector<char> from(shared_bytes), to(shared_bytes);
  constexpr std::uint32_t cells = shared_bytes / 16;
  const auto each = [&](Kind kind, std::size_t bytes) {
    return best_of(
               20,
               [&] {
                 for (std::uint32_t i = 0; i < cells; ++i)
                   count(b.shadow.access(16 * i, bytes, {i % 256, kind, generic, 10 + (i & 3)}));
               }) /
           cells * 1e9;
  };
  const double copied = best_of(20,
                                [&] {
                                  for (std::uint32_t i = 0; i < cells; ++i) {
                                    std::memcpy(&to[16 * i], &from[16 * i], 16);
                                    __asm__ volatile("" : : "r"(to.data()) : "memory");
                                  }
                                }) /
                        cells * 1e9;
  report("a thread writes 16 bytes", each(Kind::write, 16), "16 bytes copied:", copied);
  report("a thread reads 16 bytes", each(Kind::read, 16));
  b.shadow.clear();
  report("a thread writes 4 bytes", each(Kind::write, 4));
  b.shadow.clear();
  report("a thread writes 2 bytes", each(Kind::write, 2));
}

void broadcast() {
  Block b(256, shared_bytes);
  constexpr std::uint32_t cells = 64;
  const double ns = best_of(20,
                            [&] {
                              for (Agent a = 0; a < 128; ++a)
                                for (std::uint32_t i = 0; i < cells; ++i)
                                  count(b.shadow.access(16 * i, 16, {a, Kind::read, generic, 7}));
                            }) /
                    (128 * cells) * 1e9;
  report("a thread reads 16 bytes that 127 others read", ns);
  b.leave(0, 128, b.arrive(0, 128));
  const double overwritten =
      best_of(1,
              [&] {
                count(b.shadow.access(0, 16 * cells, {0, Kind::write, generic, 7}));
              }) /
      cells * 1e9;
  report("they are overwritten", overwritten);
}

void ranges() {
  Block b(128, shared_bytes);
  const Agent copy = b.engine.add_agent();
  std::vector<char> from(16384), to(16384);
  const double ns = best_of(50,
                            [&] {
                              b.engine.restart(copy, b.engine.release(0));
                              count(b.shadow.access(0, 16384, {copy, Kind::write, async, 3}));
                              b.engine.acquire(0, b.engine.release(copy));
                            }) *
                    1e9;
  const double copied = best_of(50,
                                [&] {
                                  std::memcpy(to.data(), from.data(), to.size());
                                  __asm__ volatile("" : : "r"(to.data()) : "memory");
                                }) *
                        1e9;
  report("a copy engine writes 16 KiB", ns, "16 KiB copied:", copied);
}

void barriers() {
  for (const std::uint32_t threads : {128u, 384u, 3072u}) {
    Block b(threads, 16 * 3072);
    std::uint32_t rounds = 0;
    const double ns =
        best_of(30,
                [&] {
                  for (int i = 0; i < 10; ++i, ++rounds) {
                    for (Agent a = 0; a < threads; ++a)
                      count(b.shadow.access(16 * a, 16, {a, Kind::write, generic, 1}));
                    b.leave(0, threads, b.arrive(0, threads));
                  }
                }) /
        (10 * threads) * 1e9;
    char name[80];
    std::snprintf(name, sizeof name, "a store and a barrier, per thread of %u", threads);
    report(name, ns);
  }
}

// ---- A 128x128 tile of a matrix product: a producer thread copies stages of A and B, two
// warpgroups multiply them and store the result through shared memory.

constexpr std::uint32_t stages = 4, stage_bytes = 2 * 128 * 64 * 2;

struct Product {
  Product() {
    for (std::uint32_t r = 0; r < 128; ++r) rows.push_back(128 * r);
  }

  void copy(std::uint32_t offset, std::uint32_t bytes, Kind kind, Agent issuer, Snapshot& done,
            std::uint32_t tag) {
    const Agent c = copies[next++ % copies.size()];
    b.engine.restart(c, b.engine.release(issuer));
    count(b.shadow.access(offset, bytes, {c, kind, async, tag}));
    done = b.engine.join(done, b.engine.release(c));
  }

  void operands(std::uint32_t base, std::uint32_t n, std::uint32_t k, Agent unit,
                std::span<const Snapshot> known, std::uint32_t tag) {
    std::vector<std::uint32_t>& at = places;
    at.clear();
    for (std::uint32_t r = 0; r < n; ++r) at.push_back(base + rows[r] + 32 * k);
    count(b.shadow.access(at, 32, {unit, Kind::read, async, tag}, known));
  }

  void block(std::uint32_t k_tiles) {
    b.start();
    for (Agent& c : copies) c = b.engine.add_agent();
    for (Agent& m : matrix) m = b.engine.add_agent();
    Snapshot full[stages], empty[stages];
    for (std::uint32_t k = 0; k < k_tiles; ++k) {
      const std::uint32_t s = k % stages, a = s * stage_bytes, bb = a + stage_bytes / 2;
      b.engine.acquire(0, empty[s]);
      full[s] = b.engine.release(0);
      copy(a, stage_bytes / 2, Kind::write, 0, full[s], 20);
      copy(bb, stage_bytes / 2, Kind::write, 0, full[s], 21);
      empty[s] = {};
      for (std::uint32_t wg = 0; wg < 2; ++wg) {
        const Agent first = 128 + 128 * wg;
        b.leave(first, 128, full[s]);
        for (std::uint32_t step = 0; step < 4; ++step) {
          std::vector<Snapshot> known;
          for (std::uint32_t w = 0; w < 4; ++w) known.push_back(b.engine.release(first + 32 * w));
          operands(a + 64 * 128 * wg, 64, step, matrix[wg], known, 30);
          operands(bb, 128, step, matrix[wg], known, 30);
        }
        b.leave(first, 128, b.engine.released(matrix[wg]));
        empty[s] = b.engine.join(empty[s], b.arrive(first, 128));
      }
    }
    for (std::uint32_t wg = 0; wg < 2; ++wg) {
      const Agent first = 128 + 128 * wg;
      const std::uint32_t base = stages * stage_bytes + 16384 * wg;
      for (Agent t = 0; t < 128; ++t)
        for (std::uint32_t i = 0; i < 8; ++i)
          count(b.shadow.access(base + (8 * t + (i ^ (t & 7))) * 16, 16,
                                {first + t, Kind::write, generic, 40}));
      for (Agent t = 0; t < 128; ++t) b.engine.fence_async(first + t);
      b.leave(first, 128, b.arrive(first, 128));
      Snapshot done;
      copy(base, 16384, Kind::read, first, done, 42);
      b.engine.acquire(first, done);
    }
  }

  Block b{384, stages* stage_bytes + 2 * 16384};
  std::array<Agent, 64> copies = {};
  std::array<Agent, 2> matrix = {};
  std::uint32_t next = 0;
  std::vector<std::uint32_t> rows, places;
};

}  // namespace

int main() {
  threads_and_cells();
  broadcast();
  ranges();
  barriers();
  Product product;
  const double all = best_of(10, [&] {
    for (int block = 0; block < 16; ++block) product.block(8);
  });
  std::printf("%-52s %9.2f ms   target %g ms\n", "a 512x512x512 product, 16 blocks of 384 threads",
              1e3 * all, 15.0);
  if (races != 0) std::printf("%ld races where there are none\n", races);
  return races != 0;
}
