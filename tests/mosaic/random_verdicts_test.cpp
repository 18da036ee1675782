// Pipelines by hand, drawn at random and then broken in up to two places: the verdict at compile
// time and the interpreter, which looks at one run, say the same.
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

namespace random_verdicts {

/// What a thread does, to numbers of rooms, rows and barriers.
struct Step {
  enum class Kind { fetch, store, load, send, commit, close, await, arrive, wait } kind;
  int room = 0, row = 0, barrier = 0;
};
using Program = std::vector<std::vector<Step>>;  // by thread
using Kind = Step::Kind;

constexpr int rows = 6, columns = 32, most_slots = 3;

/// Rows come to slots of a ring, from where one or two readers take them; of one reader they go on
/// by way of a room of its own.
Program ring(int slots, int readers, bool sends) {
  Program all(static_cast<std::size_t>(1 + readers));
  for (int i = 0; i < rows; ++i) {
    const int slot = i % slots;
    if (i >= slots) all[0].push_back({Kind::wait, 0, 0, most_slots + slot});
    all[0].push_back({Kind::fetch, slot, i, slot});
    for (int r = 1; r <= readers; ++r) {
      std::vector<Step>& reader = all[static_cast<std::size_t>(r)];
      reader.push_back({Kind::wait, 0, 0, slot});
      reader.push_back({Kind::load, slot, (r - 1) * rows + i, 0});
      if (i + slots < rows) reader.push_back({Kind::arrive, 0, 0, most_slots + slot});
    }
    if (!sends) continue;
    const int room = most_slots + i % 2;
    for (const Step& s : std::vector<Step>{{Kind::await, 0, 1, 1},
                                           {Kind::store, room, i, 0},
                                           {Kind::commit, 0, 0, 0},
                                           {Kind::send, room, rows + i, 0},
                                           {Kind::close, 0, 0, 0}})
      all[1].push_back(s);
  }
  if (sends) all[1].push_back({Kind::await, 0, 0, 0});
  return all;
}

void mutate(Program& all, Random& random) {
  std::vector<Step>& steps =
      all[static_cast<std::size_t>(random.below(static_cast<int>(all.size())))];
  if (steps.size() < 2) return;
  const auto at = static_cast<std::ptrdiff_t>(random.below(static_cast<int>(steps.size()) - 1));
  switch (random.below(5)) {
  case 0: steps.erase(steps.begin() + at); break;
  case 1:
    std::swap(steps[static_cast<std::size_t>(at)], steps[static_cast<std::size_t>(at) + 1]);
    break;
  case 2: steps.insert(steps.begin() + at, Step(steps[static_cast<std::size_t>(at)])); break;
  case 3: steps[static_cast<std::size_t>(at)].room = random.below(most_slots + 2); break;
  case 4: steps[static_cast<std::size_t>(at)].barrier ^= 1; break;
  }
}

struct Refs {
  Ref x, o, rooms, full, empty;
  bool by_warps = false;  // which take scalars
};

void move(const Refs& r, const Ref& from, const Ref& to) {
  if (!r.by_warps) {
    to[_] = from[_];
    return;
  }
  pl::loop(0, columns, [&](Index i) { to[i] = from[i]; });
}

void run(const Refs& r, const Step& s) {
  const Ref barrier =
      s.barrier < most_slots ? r.full.at(s.barrier) : r.empty.at(s.barrier - most_slots);
  const Ref room = r.rooms.at(s.room);
  switch (s.kind) {
  case Kind::fetch: return gpu::copy_gmem_to_smem(r.x.at(s.row), room, barrier);
  case Kind::store: return move(r, r.x.at(s.row), room);
  case Kind::load: return move(r, room, r.o.at(s.row));
  case Kind::send: return gpu::copy_smem_to_gmem(room, r.o.at(s.row), {.commit_group = false});
  case Kind::commit: return gpu::commit_smem();
  case Kind::close: return gpu::commit_smem_to_gmem_group();
  case Kind::await: return gpu::wait_smem_to_gmem(s.row, {.wait_read_only = s.barrier == 1});
  case Kind::arrive: return gpu::barrier_arrive(barrier);
  case Kind::wait: return gpu::barrier_wait(barrier);
  }
}

// By warpgroups, or by warps of one.
Kernel kernel_of(const Program& all, int readers, bool by_warps) {
  return gpu::kernel(
      [=](Ref x, Ref o, Ref rooms, Ref full, Ref empty) {
        const auto each = [&](Value number) {
          for (std::size_t t = 0; t < all.size(); ++t)
            pl::when(number == static_cast<int>(t), [&] {
              for (const Step& s : all[t]) run({x, o, rooms, full, empty, by_warps}, s);
            });
        };
        if (by_warps)
          gpu::warp_map(each);
        else
          each(axis_index("wg"));
      },
      {.name = "drawn",
       .out_type = {{3 * rows, columns}, f32},
       .num_threads = by_warps ? 1 : static_cast<int>(all.size()),
       .thread_name = "wg",
       .scratch_types = {gpu::SMEM({most_slots + 2, columns}, f32),
                         gpu::Barrier({.num_barriers = most_slots}),
                         gpu::Barrier({.num_arrivals = readers, .num_barriers = most_slots})},
       .interpret = InterpretParams{.detect_races = true}});
}

std::string text_of(const Program& all) {
  const char* const names[] = {"fetch", "store", "load",   "send", "commit",
                               "close", "await", "arrive", "wait"};
  std::string text;
  for (const std::vector<Step>& steps : all) {
    for (const Step& s : steps)
      text += std::string(names[static_cast<int>(s.kind)]) + " " + std::to_string(s.room) + " " +
              std::to_string(s.row) + " " + std::to_string(s.barrier) + "; ";
    text += "\n";
  }
  return text;
}

TEST_CASE("verdict and interpreter agree on pipelines that are drawn, and broken, at random") {
  int right[2] = {}, wrong[2] = {};  // by warpgroups, by warps
  for (int seed = 0; seed < (is_full() ? 2000 : 150); ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const int slots = random.between(1, most_slots), readers = random.between(1, 2);
    Program all = ring(slots, readers, readers == 1 && random.chance(50));
    for (int n = random.between(0, 2); n > 0; --n) mutate(all, random);
    const bool by_warps = random.chance(40);
    const Kernel k = kernel_of(all, readers, by_warps);
    const std::string found = refused([&] { k.on(Target::interpreter)(counted({rows, columns})); });
    const std::string verdict = verdict_of(k, {ShapeDtype{{rows, columns}, f32}});
    INFO("seed " << seed << (by_warps ? " by warps\n" : "\n") << text_of(all) << found << "\n"
                 << verdict);
    const bool is_good = verdict.starts_with("good");
    CHECK(is_good == (found == ""));
    CHECK((is_good || verdict.starts_with("counterexample")));
    right[by_warps] += is_good;
    wrong[by_warps] += found != "";
  }
  CHECK((right[0] > 25 && right[1] > 12));
  CHECK((wrong[0] > 35 && wrong[1] > 20));
}

}  // namespace random_verdicts
