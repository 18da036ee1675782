// Pipelines of clusters of 1 to 4 blocks, drawn at random: what comes of them on the interpreter,
// on the emulator and by plain C++ is the same. Then broken in a place or two, in one block or in
// all: the verdict at compile time and the interpreter say the same of them.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tests/mosaic/mosaic.hpp"
#include "tests/support/full.hpp"
#include "tests/support/random_graph.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace random_clusters {

constexpr int rows = 5, columns = 384, most_slots = 3;  // whose parts are TMA's

/// What a thread of a block does, to numbers of slots, rows and barriers.
struct Step {
  enum class Kind { fetch, load, peek, store, arrive, wait } kind;
  int slot = 0, row = 0, barrier = 0;
};
using Kind = Step::Kind;
/// By thread; of each block of the cluster its own.
using Block = std::vector<std::vector<Step>>;

struct Drawn {
  int blocks = 1, slots = 1, readers = 1;
  bool peeks = false;  // of the next block, too
  std::vector<Block> programs = {};
};

// One thread fetches rows for all blocks, each block a part, to slots that all readers of all
// blocks free; readers add up what they find there, or in the slot of the next block.
Block ring(const Drawn& d) {
  Block all(static_cast<std::size_t>(1 + d.readers));
  for (int i = 0; i < rows; ++i) {
    const int slot = i % d.slots;
    if (i >= d.slots) all[0].push_back({Kind::wait, 0, 0, most_slots + slot});
    all[0].push_back({Kind::fetch, slot, i, slot});
    for (int r = 1; r <= d.readers; ++r) {
      std::vector<Step>& reader = all[static_cast<std::size_t>(r)];
      reader.push_back({Kind::wait, 0, 0, slot});
      reader.push_back({Kind::load, slot, (r - 1) * rows + i, 0});
      if (i + d.slots < rows) reader.push_back({Kind::arrive, 0, 0, most_slots + slot});
    }
  }
  if (!d.peeks) return all;
  for (int r = 1; r <= d.readers; ++r) {
    std::vector<Step>& reader = all[static_cast<std::size_t>(r)];
    for (const Step& s :
         std::vector<Step>{{Kind::store, most_slots + r - 1, r, 0},
                           {Kind::arrive, 0, 0, 2 * most_slots},
                           {Kind::wait, 0, 0, 2 * most_slots},
                           {Kind::peek, most_slots + r - 1, d.readers * rows + r - 1, 0}})
      reader.push_back(s);
  }
  return all;
}

Drawn drawn(Random& random) {
  Drawn d{.blocks = random.between(1, 4),
          .slots = random.between(1, most_slots),
          .readers = random.between(1, 2),
          .peeks = random.chance(50)};
  d.programs.assign(static_cast<std::size_t>(d.blocks), ring(d));
  return d;
}

// In one block, or in all alike.
void mutate(Drawn& d, Random& random) {
  const int only = random.chance(50) ? random.below(d.blocks) : -1;
  const auto thread = static_cast<std::size_t>(random.below(1 + d.readers));
  const int count = static_cast<int>(d.programs[0][thread].size());
  const auto at = static_cast<std::ptrdiff_t>(random.below(count - 1));
  const int how = random.below(4), slot = random.below(most_slots + 2);
  for (int b = 0; b < d.blocks; ++b) {
    if (only >= 0 && b != only) continue;
    std::vector<Step>& steps = d.programs[static_cast<std::size_t>(b)][thread];
    if (std::ssize(steps) < at + 2) continue;
    switch (how) {
    case 0: steps.erase(steps.begin() + at); break;
    case 1:
      std::swap(steps[static_cast<std::size_t>(at)], steps[static_cast<std::size_t>(at) + 1]);
      break;
    case 2: steps.insert(steps.begin() + at, Step(steps[static_cast<std::size_t>(at)])); break;
    default: steps[static_cast<std::size_t>(at)].slot = slot;
    }
  }
}

int rows_stored(const Drawn& d) { return d.readers * rows + (d.peeks ? d.readers : 0); }

struct Refs {
  Ref x, o, rooms, full, empty, met;
};

void run(const Refs& r, const Step& s, int blocks) {
  const Value block = axis_index("x");
  const Ref barrier = s.barrier < most_slots       ? r.full.at(s.barrier)
                      : s.barrier < 2 * most_slots ? r.empty.at(s.barrier - most_slots)
                                                   : r.met;
  const Ref room = r.rooms.at(s.slot);
  switch (s.kind) {
  case Kind::fetch:
    return gpu::copy_gmem_to_smem(r.x.at(s.row), room, barrier, {.collective_axes = {"x"}});
  case Kind::load: r.o[{block, s.row, _}] = room[_] * 2.0f; return;
  case Kind::peek:
    r.o[{block, s.row, _}] = gpu::cluster_ref(room, {{"x", (block + 1) % blocks}})[_];
    return;
  case Kind::store: r.rooms[s.slot] = r.x[s.row] + block.astype(f32); return;
  case Kind::arrive: return gpu::barrier_arrive(barrier);
  case Kind::wait: return gpu::barrier_wait(barrier);
  }
}

Kernel kernel_of(const Drawn& d) {
  return gpu::kernel(
      [d](Ref x, Ref o, Ref rooms, Ref full, Ref empty, Ref met) {
        const Value wg = axis_index("wg"), block = axis_index("x");
        const auto perform = [&](const Block& program) {
          for (std::size_t t = 0; t < program.size(); ++t)
            pl::when(wg == static_cast<int>(t), [&] {
              for (const Step& s : program[t]) run({x, o, rooms, full, empty, met}, s, d.blocks);
            });
        };
        for (std::size_t b = 0; b < d.programs.size(); ++b)
          pl::when(block == static_cast<int>(b), [&] { perform(d.programs[b]); });
      },
      {.name = "drawn",
       .out_type = {{d.blocks, rows_stored(d), columns}, f32},
       .cluster = {d.blocks},
       .cluster_names = {"x"},
       .num_threads = 1 + d.readers,
       .thread_name = "wg",
       .scratch_types =
           {gpu::SMEM({most_slots + 2, columns}, f32), gpu::Barrier({.num_barriers = most_slots}),
            gpu::ClusterBarrier(
                {.collective_axes = {"x"}, .num_arrivals = d.readers, .num_barriers = most_slots}),
            gpu::ClusterBarrier({.collective_axes = {"x"}, .num_arrivals = d.readers})},
       .interpret = InterpretParams{.detect_races = true}});
}

std::string text_of(const Drawn& d) {
  const char* const names[] = {"fetch", "load", "peek", "store", "arrive", "wait"};
  std::string text = std::to_string(d.blocks) + " blocks\n";
  for (const Block& block : d.programs)
    for (const std::vector<Step>& steps : block) {
      for (const Step& s : steps)
        text += std::string(names[static_cast<int>(s.kind)]) + " " + std::to_string(s.slot) + " " +
                std::to_string(s.row) + " " + std::to_string(s.barrier) + "; ";
      text += "\n";
    }
  return text;
}

// What plain C++ says of an element of the output.
float expected(const Drawn& d, int block, int row, int column) {
  const auto x = [&](int r, int c) { return static_cast<float>(r * columns + c); };
  if (row < d.readers * rows) return 2.0f * x(row % rows, column);
  return x(row - d.readers * rows + 1, column) + static_cast<float>((block + 1) % d.blocks);
}

TEST_CASE("pipelines of clusters give the same everywhere") {
  for (int seed = 0; seed < (is_full() ? 1000 : 12); ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const Drawn d = drawn(random);
    INFO("seed " << seed << "\n" << text_of(d));
    const Kernel k = kernel_of(d);
    CHECK_THAT(verdict_of(k, {ShapeDtype{{rows, columns}, f32}}),
               Catch::Matchers::StartsWith("good"));
    for_each_target("drawn", [&](Target target) {
      const std::vector<float> o =
          elements<float>(k.on(target)(on(target, counted({rows, columns}))));
      bool right = true;
      for (std::size_t i = 0; i < o.size(); ++i) {
        const int row = static_cast<int>(i) / columns, all = rows_stored(d);
        right = right && o[i] == expected(d, row / all, row % all, static_cast<int>(i) % columns);
      }
      CHECK(right);
    });
  }
}

TEST_CASE("verdict and interpreter agree on pipelines of clusters that are broken at random") {
  int right = 0, wrong = 0;
  std::vector<int> seeds{191, 265, 568};  // a block's part of a copy goes to another slot
  for (int seed = 0; seed < (is_full() ? 1000 : 100); ++seed) seeds.push_back(seed);
  for (const int seed : seeds) {
    Random random(static_cast<std::uint64_t>(seed) + 100000);
    Drawn d = drawn(random);
    for (int n = random.between(0, 2); n > 0; --n) mutate(d, random);
    const Kernel k = kernel_of(d);
    const std::string found = refused([&] { k.on(Target::interpreter)(counted({rows, columns})); });
    const std::string verdict = verdict_of(k, {ShapeDtype{{rows, columns}, f32}});
    INFO("seed " << seed << "\n" << text_of(d) << found << "\n" << verdict);
    const bool is_good = verdict.starts_with("good");
    CHECK(is_good == (found == ""));
    CHECK((is_good || verdict.starts_with("counterexample")));
    right += is_good;
    wrong += found != "";
  }
  CHECK(right > 20);
  CHECK(wrong > 40);
}

}  // namespace random_clusters
