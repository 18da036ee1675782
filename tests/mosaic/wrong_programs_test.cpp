// Small programs in which two warpgroups, barriers or copies do not go together: each is refused by
// the interpreter and, but for what lowering puts right, by the emulator, with a line of the user.
#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace wrong {

/// What the body of a program has: rows of 128 in arrays and rooms, barriers of one arrival and of
/// two.
struct All {
  Ref x, o, rooms, others, one, both;
};
Value wg() { return axis_index("wg"); }

template <class F>
void as(int number, F f) {
  pl::when(wg() == number, f);
}
void meet(const All& a, int number) {
  gpu::barrier_arrive(a.both.at(number));
  gpu::barrier_wait(a.both.at(number));
}
void fetch(const All& a, const Value& row, int room, int barrier) {
  gpu::copy_gmem_to_smem(a.x.at(row), a.rooms.at(room), a.one.at(barrier));
}

/// Of the first warpgroup, what each warp does.
template <class F>
void by_warps(F f) {
  as(0, [&] { gpu::warp_map(f); });
}
template <class F>
void when_is(const Value& warp, int number, F f) {
  pl::when(warp == number, f);
}

struct Program {
  const char* name;
  void (*body)(const All&);
  const char* words;          // of the interpreter; "": it is right
  bool is_put_right = false;  // by lowering
};

const Program programs[] = {
    // ---- right ones beside them
    {"an exchange",
     [](const All& a) {
       a.rooms[wg()] = a.x[wg()];
       meet(a, 0);
       a.o[wg()] = a.rooms[1 - wg()];
     },
     ""},
    {"a copy that both read",
     [](const All& a) {
       as(0, [&] { fetch(a, i32(0), 0, 0); });
       gpu::barrier_wait(a.one.at(0));
       a.o[wg()] = a.rooms[0];
     },
     ""},
    // ---- between warpgroups
    {"no barrier in an exchange",
     [](const All& a) {
       a.rooms[wg()] = a.x[wg()];
       a.o[wg()] = a.rooms[1 - wg()];
     },
     "is read before anything was stored there"},
    {"arrives before it stores",
     [](const All& a) {
       gpu::barrier_arrive(a.both.at(0));
       a.rooms[wg()] = a.x[wg()];
       gpu::barrier_wait(a.both.at(0));
       a.o[wg()] = a.rooms[1 - wg()];
     },
     "race on scratch[0]"},
    {"waits before it arrives",
     [](const All& a) {
       a.rooms[wg()] = a.x[wg()];
       gpu::barrier_wait(a.both.at(0));
       gpu::barrier_arrive(a.both.at(0));
       a.o[wg()] = a.rooms[1 - wg()];
     },
     "deadlock"},
    {"one of two does not arrive",
     [](const All& a) {
       as(0, [&] { gpu::barrier_arrive(a.both.at(0)); });
       gpu::barrier_wait(a.both.at(0));
       a.o[wg()] = a.x[wg()];
     },
     "deadlock"},
    {"one arrives for both",
     [](const All& a) {
       a.rooms[wg()] = a.x[wg()];
       as(0, [&] {
         gpu::barrier_arrive(a.both.at(0));
         gpu::barrier_arrive(a.both.at(0));
       });
       gpu::barrier_wait(a.both.at(0));
       a.o[wg()] = a.rooms[1 - wg()];
     },
     "is read before anything was stored there"},
    {"stores again what the other may read still",
     [](const All& a) {
       a.rooms[wg()] = a.x[wg()];
       meet(a, 0);
       a.o[wg()] = a.rooms[1 - wg()];
       a.rooms[wg()] = a.x[wg() + 2];
       meet(a, 0);
       a.o[wg() + 2] = a.rooms[1 - wg()];
     },
     "race on scratch[0]"},
    {"waits at another barrier than the one where it arrives",
     [](const All& a) {
       a.rooms[wg()] = a.x[wg()];
       gpu::barrier_arrive(a.both.at(0));
       gpu::barrier_wait(a.both.at(1));
       a.o[wg()] = a.rooms[1 - wg()];
     },
     "deadlock"},
    {"leaves out a completion",
     [](const All& a) {
       for (int i = 0; i < 3; ++i) {
         as(0, [&] {
           gpu::barrier_arrive(a.one.at(0));
           gpu::barrier_wait(a.one.at(0));
         });
         meet(a, 0);
         if (i != 1) as(1, [&] { gpu::barrier_wait(a.one.at(0)); });
         meet(a, 0);
       }
       a.o[wg()] = a.x[wg()];
     },
     "a thread that waits for a barrier waits for every completion of it"},
    {"waits once more than it completes",
     [](const All& a) {
       meet(a, 0);
       as(1, [&] { gpu::barrier_wait(a.both.at(0)); });
       a.o[wg()] = a.x[wg()];
     },
     "deadlock"},
    {"a barrier that there is not",
     [](const All& a) {
       a.o[wg()] = a.x[wg()];
       gpu::barrier_arrive(a.one.at(wg() + 4));
       gpu::barrier_wait(a.one.at(wg() + 4));
     },
     "barrier 4 is out of bounds of scratch[2], which are 4"},
    // ---- copies to shared memory
    {"one of two readers does not wait for a copy",
     [](const All& a) {
       as(0, [&] {
         fetch(a, i32(0), 0, 0);
         gpu::barrier_wait(a.one.at(0));
       });
       a.o[wg()] = a.rooms[0];
     },
     "race on scratch[0]"},
    {"reads one copy behind the wait for another",
     [](const All& a) {
       as(0, [&] {
         fetch(a, i32(0), 0, 0);
         fetch(a, i32(1), 1, 1);
         gpu::barrier_wait(a.one.at(0));
         a.o[0] = a.rooms[1];
         gpu::barrier_wait(a.one.at(1));
       });
     },
     "race on scratch[0]"},
    {"two copies at a barrier of one arrival",
     [](const All& a) {
       as(0, [&] {
         fetch(a, i32(0), 0, 0);
         fetch(a, i32(1), 1, 0);
         gpu::barrier_wait(a.one.at(0));
         a.o[0] = a.rooms[0] + a.rooms[1];
         gpu::barrier_wait(a.one.at(0));
       });
     },
     "no threads observed phase 0"},
    {"one copy at a barrier of two arrivals",
     [](const All& a) {
       as(0, [&] {
         gpu::copy_gmem_to_smem(a.x.at(0), a.rooms.at(0), a.both.at(0));
         gpu::barrier_wait(a.both.at(0));
         a.o[0] = a.rooms[0];
       });
     },
     "deadlock"},
    {"stores where a copy is on its way",
     [](const All& a) {
       as(0, [&] {
         fetch(a, i32(0), 0, 0);
         a.rooms[0] = a.x[1];
         gpu::barrier_wait(a.one.at(0));
         a.o[0] = a.rooms[0];
       });
     },
     "race on scratch[0]"},
    {"two copies to one room",
     [](const All& a) {
       as(0, [&] {
         fetch(a, i32(0), 0, 0);
         fetch(a, i32(1), 0, 1);
         gpu::barrier_wait(a.one.at(0));
         gpu::barrier_wait(a.one.at(1));
         a.o[0] = a.rooms[0];
       });
     },
     "race on scratch[0]"},
    {"fills a slot before the other has read it",
     [](const All& a) {
       pl::loop(0, 4, [&](Index i) {
         as(0, [&] { fetch(a, i, 0, 0); });
         gpu::barrier_wait(a.one.at(0));
         as(1, [&] { a.o[i] = a.rooms[0]; });
       });
     },
     "a thread that waits for a barrier waits for every completion of it"},
    {"reads a room that nobody has filled",
     [](const All& a) {
       as(0, [&] {
         fetch(a, i32(0), 0, 0);
         gpu::barrier_wait(a.one.at(0));
         a.o[0] = a.rooms[1];
       });
     },
     "is read before anything was stored there"},
    {"nobody waits for a copy",
     [](const All& a) {
       as(0, [&] { fetch(a, i32(0), 0, 0); });
       a.o[wg()] = a.x[wg()];
     },
     "no threads observed it"},
    // ---- copies to global memory
    {"stores to what a copy reads",
     [](const All& a) {
       as(0, [&] {
         a.rooms[0] = a.x[0];
         gpu::commit_smem();
         gpu::copy_smem_to_gmem(a.rooms.at(0), a.o.at(0));
         a.rooms[0] = a.x[1];
         gpu::wait_smem_to_gmem(0);
       });
     },
     "race on scratch[0]"},
    {"waits for a group too few",
     [](const All& a) {
       as(0, [&] {
         a.rooms[0] = a.x[0];
         a.rooms[1] = a.x[1];
         gpu::commit_smem();
         for (int i = 0; i < 2; ++i) gpu::copy_smem_to_gmem(a.rooms.at(i), a.o.at(i));
         gpu::wait_smem_to_gmem(1, {.wait_read_only = true});
         a.rooms[1] = a.x[2];
         gpu::wait_smem_to_gmem(0);
       });
     },
     "race on scratch[0]"},
    {"a group that nobody closes",
     [](const All& a) {
       as(0, [&] {
         a.rooms[0] = a.x[0];
         gpu::commit_smem();
         gpu::copy_smem_to_gmem(a.rooms.at(0), a.o.at(0), {.commit_group = false});
         gpu::wait_smem_to_gmem(0);
       });
     },
     "ends before the copy has read what it copies"},
    {"reads what a copy has not written yet",
     [](const All& a) {
       as(0, [&] {
         a.rooms[0] = a.x[0];
         gpu::commit_smem();
         gpu::copy_smem_to_gmem(a.rooms.at(0), a.o.at(0));
         gpu::wait_smem_to_gmem(0, {.wait_read_only = true});
         a.others[0] = a.o[0];
         gpu::wait_smem_to_gmem(0);
       });
     },
     "race on outputs[0]"},
    {"copies from where a copy goes",
     [](const All& a) {
       as(0, [&] {
         a.rooms[0] = a.x[0];
         gpu::commit_smem();
         gpu::copy_smem_to_gmem(a.rooms.at(0), a.o.at(0));
         gpu::copy_gmem_to_smem(a.o.at(0), a.others.at(0), a.one.at(0));
         gpu::barrier_wait(a.one.at(0));
         gpu::wait_smem_to_gmem(0);
       });
     },
     "race on outputs[0]"},
    {"another warpgroup waits for the copies",
     [](const All& a) {
       as(0, [&] {
         a.rooms[0] = a.x[0];
         gpu::commit_smem();
         gpu::copy_smem_to_gmem(a.rooms.at(0), a.o.at(0));
       });
       meet(a, 0);
       as(1, [&] {
         gpu::wait_smem_to_gmem(0);
         a.rooms[0] = a.x[1];
       });
       meet(a, 0);
       as(0, [&] { gpu::wait_smem_to_gmem(0); });
     },
     "race on scratch[0]"},
    {"who copies commits what the other has stored",
     [](const All& a) {
       as(0, [&] { a.rooms[0] = a.x[0]; });
       meet(a, 0);
       as(1, [&] {
         gpu::commit_smem();
         gpu::copy_smem_to_gmem(a.rooms.at(0), a.o.at(0));
         gpu::wait_smem_to_gmem(0);
       });
     },
     "no plgpu::commit_smem() stands between the two"},
    {"commits before it stores",
     [](const All& a) {
       as(0, [&] {
         gpu::commit_smem();
         a.rooms[0] = a.x[0];
         gpu::copy_smem_to_gmem(a.rooms.at(0), a.o.at(0));
         gpu::wait_smem_to_gmem(0);
       });
     },
     "no plgpu::commit_smem() stands between the two", true},
    {"two warpgroups copy to one row",
     [](const All& a) {
       a.rooms[wg()] = a.x[wg()];
       gpu::commit_smem();
       gpu::copy_smem_to_gmem(a.rooms.at(wg()), a.o.at(0));
       gpu::wait_smem_to_gmem(0);
     },
     "race on outputs[0]"},
    // ---- of tilelang's issues
    {"2613: a room that both read is filled for the next step while one reads it still",
     [](const All& a) {
       pl::loop(0, 2, [&](Index i) {
         as(0, [&] { a.rooms[0] = a.x[i]; });
         meet(a, 0);
         a.o[2 * i + wg()] = a.rooms[0] + 1.0f;
       });
     },
     "race on scratch[0]"},
    {"2443: a copy in front of the loop that nobody waits for behind it",
     [](const All& a) {
       as(1, [&] { fetch(a, i32(3), 1, 3); });
       pl::loop(0, 2, [&](Index i) {
         as(1, [&] { fetch(a, i, 0, 0); });
         gpu::barrier_wait(a.one.at(0));
         as(0, [&] { a.o[i] = a.rooms[0]; });
         meet(a, 0);
       });
       as(0, [&] { a.o[2] = a.rooms[1]; });
     },
     "race on scratch[0]"},
    {"2566: of one step somebody waits for a room that nobody frees",
     [](const All& a) {
       as(1, [&] {
         pl::loop(0, 1, [&](Index i) {
           gpu::barrier_wait(a.one.at(2));
           fetch(a, i, 0, 0);
         });
       });
       as(0, [&] {
         gpu::barrier_wait(a.one.at(0));
         a.o[0] = a.rooms[0];
         gpu::barrier_arrive(a.one.at(2));
       });
     },
     "deadlock"},
    // ---- of warps
    {"a warp that hands on to another, and the thread to all",
     [](const All& a) {
       a.rooms[wg()] = a.x[wg()];
       by_warps([&](Value w) {
         when_is(w, 0, [&] {
           a.others[{0, 3}] = a.rooms[{0, 3}];
           gpu::barrier_arrive(a.one.at(0));
         });
         when_is(w, 1, [&] {
           gpu::barrier_wait(a.one.at(0));
           a.o[{2, 3}] = a.others[{0, 3}];
         });
       });
       as(0, [&] { a.o[3] = a.rooms[0]; });
     },
     ""},
    {"a warp that reads what another has stored, without a barrier",
     [](const All& a) {
       by_warps([&](Value w) {
         when_is(w, 0, [&] { a.rooms[{0, 3}] = a.x[{0, 3}]; });
         when_is(w, 1, [&] { a.o[{0, 3}] = a.rooms[{0, 3}]; });
       });
     },
     "race on scratch[0]"},
    {"warps that store to one place",
     [](const All& a) { by_warps([&](Value w) {
                          a.rooms[{0, 3}] = w.astype(f32);
                        }); },
     "race on scratch[0]"},
    {"a warp that stores what the thread of another warpgroup reads",
     [](const All& a) {
       by_warps([&](Value w) { a.rooms[{0, w}] = a.x[{0, w}]; });
       as(1, [&] { a.o[{0, 0}] = a.rooms[{0, 0}]; });
     },
     "is read before anything was stored there"},
    {"a warp that waits for what nobody says",
     [](const All& a) {
       by_warps([&](Value w) { when_is(w, 2, [&] { gpu::barrier_wait(a.one.at(1)); }); });
     },
     "deadlock"},
    {"one warp arrives where two are waited for",
     [](const All& a) {
       by_warps([&](Value w) {
         when_is(w, 3, [&] { gpu::barrier_arrive(a.both.at(1)); });
         when_is(w, 2, [&] { gpu::barrier_wait(a.both.at(1)); });
       });
     },
     "deadlock"},
    {"a thread waits for what two of its warps have waited for",
     [](const All& a) {
       by_warps([&](Value w) {
         when_is(w, 0, [&] { gpu::barrier_arrive(a.one.at(0)); });
         pl::when(w < 2, [&] { gpu::barrier_wait(a.one.at(0)); });
       });
       as(0, [&] {
         gpu::barrier_arrive(a.one.at(0));
         gpu::barrier_wait(a.one.at(0));
       });
     },
     "its warps have waited 1, 1, 0, 0 times"},
    {"a warp leaves out a completion",
     [](const All& a) {
       by_warps([&](Value w) {
         when_is(w, 0, [&] {
           gpu::barrier_arrive(a.one.at(0));
           gpu::barrier_wait(a.one.at(0));
           gpu::barrier_arrive(a.one.at(0));
           gpu::barrier_wait(a.one.at(0));
           gpu::barrier_arrive(a.one.at(1));
         });
         when_is(w, 1, [&] {
           gpu::barrier_wait(a.one.at(1));
           gpu::barrier_wait(a.one.at(0));
         });
       });
     },
     "waits for every completion of it"},
    {"a warp reads what another's copy brings, without a wait",
     [](const All& a) {
       by_warps([&](Value w) {
         when_is(w, 0, [&] {
           fetch(a, i32(0), 0, 0);
           gpu::barrier_wait(a.one.at(0));
         });
         when_is(w, 1, [&] { a.o[{0, 3}] = a.rooms[{0, 3}]; });
       });
     },
     "race on scratch[0]"},
    {"a warp frees a room that it reads still",
     [](const All& a) {
       by_warps([&](Value w) {
         when_is(w, 0, [&] {
           pl::loop(0, 2, [&](Index i) {
             pl::when(i > 0, [&] { gpu::barrier_wait(a.one.at(1)); });
             fetch(a, i, 0, 0);
           });
         });
         when_is(w, 1, [&] {
           pl::loop(0, 2, [&](Index i) {
             gpu::barrier_wait(a.one.at(0));
             pl::when(i < 1, [&] { gpu::barrier_arrive(a.one.at(1)); });
             a.o[{i, 3}] = a.rooms[{0, 3}];
           });
         });
       });
     },
     "race on scratch[0]"},
    {"a warp sends what is not committed",
     [](const All& a) {
       by_warps([&](Value w) {
         when_is(w, 0, [&] {
           gpu::copy_gmem_to_smem(a.x.at(ds(0, 2)), a.rooms, a.one.at(0));
           gpu::barrier_wait(a.one.at(0));
           a.rooms[{0, 3}] = 1.0f;
           gpu::copy_smem_to_gmem(a.rooms, a.o.at(ds(0, 2)));
           gpu::wait_smem_to_gmem(0);
         });
       });
     },
     "commit_smem", true},
    {"a warp ends before what it sends was read",
     [](const All& a) {
       as(0, [&] {
         a.rooms[0] = a.x[0];
         gpu::commit_smem();
       });
       by_warps([&](Value w) {
         when_is(w, 2, [&] { gpu::copy_smem_to_gmem(a.rooms.at(0), a.o.at(0)); });
       });
       as(0, [&] { gpu::wait_smem_to_gmem(0); });
     },
     "warp 2 of thread 0 ends before"},
};

Kernel kernel_of(const Program& p) {
  return gpu::kernel(
      [body = p.body](Ref x, Ref o, Ref rooms, Ref others, Ref one, Ref both) {
        body({x, o, rooms, others, one, both});
      },
      {.name = "wrong",
       .out_type = {{4, 128}, f32},
       .num_threads = 2,
       .thread_name = "wg",
       .scratch_types = {gpu::SMEM({2, 128}, f32), gpu::SMEM({2, 128}, f32),
                         gpu::Barrier({.num_barriers = 4}),
                         gpu::Barrier({.num_arrivals = 2, .num_barriers = 2})},
       .interpret = InterpretParams{.detect_races = true}});
}

std::string result_of(const Program& p, Target target) {
  const Kernel k = kernel_of(p).on(target);
  return refused([&] { k(counted({4, 128})); });
}

TEST_CASE(
    "programs whose warpgroups, barriers and copies do not go together are refused, by line") {
  for (const Program& p : programs) {
    CAPTURE(p.name);
    const std::string found = result_of(p, Target::interpreter);
    CHECK((found == "") == (std::string(p.words) == ""));
    CHECK_THAT(found, ContainsSubstring(p.words));
    if (found != "") CHECK_THAT(found, ContainsSubstring("wrong_programs_test.cpp:"));
  }
}

TEST_CASE("the verdict at compile time has a counterexample of each, and of no right one") {
  for (const Program& p : programs) {
    CAPTURE(p.name);
    const std::string verdict = verdict_of(kernel_of(p), {ShapeDtype{{4, 128}, f32}});
    CAPTURE(verdict);
    CHECK(verdict.starts_with(std::string(p.words) == "" ? "good" : "counterexample"));
    CHECK((verdict.find("wrong_programs_test.cpp:") != std::string::npos) ==
          (std::string(p.words) != ""));
  }
}

TEST_CASE("the emulator refuses what is emitted of them, but for what lowering puts right") {
  const Environment off("PALLADIUM_VERIFY", "0");
  for (const Program& p : programs) {
    CAPTURE(p.name);
    const std::string found = result_of(p, Target::emulator);
    CAPTURE(found);
    CHECK((found == "") == (std::string(p.words) == "" || p.is_put_right));
  }
}

}  // namespace wrong
