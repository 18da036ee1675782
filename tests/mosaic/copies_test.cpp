// Copies between global and shared memory, and their groups.
#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace copies {

/// x + 1 by way of two rooms of shared memory.
Body add_one(std::function<Ref(const Ref&)> part) {
  return [part](Ref x, Ref o, Ref in, Ref out, Ref b) {
    gpu::copy_gmem_to_smem(part(x), in, b);
    gpu::barrier_wait(b);
    out[_] = in[_] + 1;
    gpu::commit_smem();
    gpu::copy_smem_to_gmem(out, o);
    gpu::wait_smem_to_gmem(0);
  };
}

gpu::KernelOptions through_shared(const Shape& shape, DType t) {
  return {.name = "add_one",
          .out_type = {shape, t},
          .scratch_types = {gpu::SMEM(shape, t), gpu::SMEM(shape, t), gpu::Barrier()}};
}

struct Case {
  const char* name;
  Shape array;
  std::function<Ref(const Ref&)> part;
  Shape shape;
  std::int64_t first = 0;
};

const Case cases[] = {
    {"whole", {256}, [](const Ref& x) { return x; }, {256}},
    {"rows", {64, 128}, [](const Ref& x) { return x; }, {64, 128}},
    {"a row",
     {64, 128},
     [](const Ref& x) {
       return x.at({ds(2, 1), _});
     },
     {1, 128},
     256},
    {"indices",
     {3, 64, 1, 128},
     [](const Ref& x) {
       return x.at({0, ds(0, 32), 0, _});
     },
     {32, 128}},
    {"a plane",
     {5, 5, 512},
     [](const Ref& x) {
       return x.at({4, 4});
     },
     {512},
     24 * 512},
    {"long rows", {5, 1024}, [](const Ref& x) { return x.at(4); }, {1024}, 4096},
    {"long", {8192}, [](const Ref& x) { return x; }, {8192}},
    {"a long part", {8192}, [](const Ref& x) { return x.at(ds(4096, 4096)); }, {4096}, 4096},
};

TEST_CASE("what is copied to shared memory and back is what was there [M23]") {
  for (const Case& c : cases)
    for_each_target(c.name, [&](Target target) {
      const Kernel k = gpu::kernel(add_one(c.part), through_shared(c.shape, f32));
      const std::vector<float> o = elements<float>(k.on(target)(on(target, counted(c.array))));
      bool right = true;
      for (std::size_t i = 0; i < o.size(); ++i)
        right = right && o[i] == static_cast<float>(c.first + static_cast<std::int64_t>(i) + 1);
      CHECK(right);
    });
}

TEST_CASE("copies of rows of whole 16 bytes are TMA's, others are threads', which is a remark") {
  const auto source = [](const Shape& shape) {
    const Lowered k =
        gpu::kernel(add_one([](const Ref& x) { return x; }), through_shared(shape, f32))
            .lower(ShapeDtype{shape, f32});
    return std::pair(k.cuda_source({.arch = "sm_90a"}), k.report({.arch = "sm_90a"}));
  };
  const auto [by_tma, silent] = source({32, 64});
  CHECK_THAT(by_tma, ContainsSubstring("pl::tma_load(") && ContainsSubstring("pl::tma_store("));
  CHECK_THAT(by_tma, ContainsSubstring("mbarrier_arrive_expect_tx(") &&
                         ContainsSubstring("pl::bulk_wait<0>()"));
  const auto [by_threads, report] = source({5, 23});
  CHECK_THAT(by_threads, !ContainsSubstring("tma_load"));
  bool told = false;
  for (const Remark& r : report.remarks)
    told =
        told || r.text.find("copy_gmem_to_smem: copied by threads, not by TMA, because its rows") !=
                    std::string::npos;
  CHECK(told);
}

TEST_CASE("copies of any size and alignment are made [M40]") {
  for (const Shape& shape :
       {Shape{23}, Shape{1}, Shape{5, 23}, Shape{1, 1, 1, 1, 1, 6}, Shape{300}})
    for_each_target("odd", [&](Target target) {
      const Kernel k =
          gpu::kernel(add_one([](const Ref& x) { return x; }), through_shared(shape, f32));
      const std::vector<float> o = elements<float>(k.on(target)(on(target, counted(shape))));
      bool right = true;
      for (std::size_t i = 0; i < o.size(); ++i) right = right && o[i] == static_cast<float>(i + 1);
      CHECK(right);
    });
}

TEST_CASE("where a predicate does not hold a copy arrives and brings nothing [M26]") {
  for_each_target("predicate", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref s, Ref b) {
          const Value block = axis_index("i");
          s[_] = zeros({128}, f32);
          gpu::commit_smem();
          gpu::copy_gmem_to_smem(x.at(ds(block * 128, 128)), s, b, {.predicate = block == 0});
          gpu::barrier_wait(b);
          o[ds(block * 128, 128)] = s[_];
        },
        {.name = "predicate",
         .out_type = {{256}, f32},
         .grid = {2},
         .grid_names = {"i"},
         .scratch_types = {gpu::SMEM({128}, f32), gpu::Barrier()}});
    const std::vector<float> o = elements<float>(k.on(target)(on(target, counted({256}))));
    for (std::size_t i = 0; i < o.size(); ++i) CHECK(o[i] == static_cast<float>(i < 128 ? i : 0));
  });
}

TEST_CASE("where a predicate does not hold nothing is copied to global memory [M27]") {
  for_each_target("sent", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref s) {
          const Value block = axis_index("i");
          s[_] = full({128}, 7, f32);
          gpu::commit_smem();
          gpu::copy_smem_to_gmem(s, x.at(block), {.predicate = block == 1});
          gpu::wait_smem_to_gmem(0);
        },
        {.name = "sent",
         .grid = {2},
         .grid_names = {"i"},
         .scratch_types = {gpu::SMEM({128}, f32)}});
    const Array x = on(target, counted({2, 128}));
    k.on(target)(new_ref(x));
    const std::vector<float> now = elements<float>(x);
    for (std::size_t i = 0; i < now.size(); ++i) CHECK(now[i] == (i < 128 ? float(i) : 7.0f));
  });
}

TEST_CASE("a group of several copies is closed and awaited by hand [M28]") {
  for_each_target("group", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref s, Ref b) {
          gpu::copy_gmem_to_smem(x, s, b);
          gpu::barrier_wait(b);
          s[_] = s[_] + 1.0f;
          gpu::commit_smem();
          for (int i = 0; i < 4; ++i)
            gpu::copy_smem_to_gmem(s.at(i), o.at(i), {.commit_group = false});
          gpu::commit_smem_to_gmem_group();
          gpu::wait_smem_to_gmem(0);
        },
        {.name = "group",
         .out_type = {{4, 64}, f32},
         .scratch_types = {gpu::SMEM({4, 64}, f32), gpu::Barrier()}});
    const std::vector<float> o = elements<float>(k.on(target)(on(target, counted({4, 64}))));
    for (std::size_t i = 0; i < o.size(); ++i) CHECK(o[i] == static_cast<float>(i + 1));
  });
}

TEST_CASE("a pipeline by hand of two slots and four steps [M73]") {
  for_each_target("manual", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref in, Ref out, Ref b) {
          const auto fetch = [&](const Value& step) {
            gpu::copy_gmem_to_smem(x.at({_, ds(step * 64, 64)}), in.at(step % 2), b.at(step % 2));
          };
          fetch(i32(0));
          fetch(i32(1));
          pl::loop(0, 4, [&](Index step) {
            const Value slot = step % 2;
            gpu::barrier_wait(b.at(slot));
            gpu::wait_smem_to_gmem(1, {.wait_read_only = true});
            out[slot] = in[slot] + 1.0f;
            gpu::commit_smem();
            gpu::copy_smem_to_gmem(out.at(slot), o.at({_, ds(step * 64, 64)}));
            pl::when(step < 2, [&] { fetch(step + 2); });
          });
          gpu::wait_smem_to_gmem(0);
        },
        {.name = "manual",
         .out_type = {{64, 256}, f32},
         .scratch_types = {gpu::SMEM({2, 64, 64}, f32), gpu::SMEM({2, 64, 64}, f32),
                           gpu::Barrier({.num_barriers = 2})},
         .interpret = InterpretParams{.detect_races = true}});
    const std::vector<float> o = elements<float>(k.on(target)(on(target, counted({64, 256}))));
    bool right = true;
    for (std::size_t i = 0; i < o.size(); ++i) right = right && o[i] == static_cast<float>(i + 1);
    CHECK(right);
  });
}

TEST_CASE("a memory warpgroup fills slots that another frees") {
  for_each_target("specialised", [](Target target) {
    constexpr int steps = 7, slots = 3;
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref s, Ref full, Ref empty) {
          const Value wg = axis_index("wg");
          pl::when(wg == 0, [&] {
            pl::loop(0, steps, [&](Index i) {
              pl::when(i >= slots, [&] { gpu::barrier_wait(empty.at(i % slots)); });
              gpu::copy_gmem_to_smem(x.at(i), s.at(i % slots), full.at(i % slots));
            });
          });
          pl::when(wg == 1, [&] {
            pl::loop(0, steps, [&](Index i) {
              gpu::barrier_wait(full.at(i % slots));
              o[i] = s[i % slots] * 2.0f;
              pl::when(i + slots < steps, [&] { gpu::barrier_arrive(empty.at(i % slots)); });
            });
          });
        },
        {.name = "specialised",
         .out_type = {{steps, 16, 64}, f32},
         .num_threads = 2,
         .thread_name = "wg",
         .scratch_types = {gpu::SMEM({slots, 16, 64}, f32), gpu::Barrier({.num_barriers = slots}),
                           gpu::Barrier({.num_barriers = slots})},
         .interpret = InterpretParams{.detect_races = true}});
    const std::vector<float> o =
        elements<float>(k.on(target)(on(target, counted({steps, 16, 64}))));
    bool right = true;
    for (std::size_t i = 0; i < o.size(); ++i) right = right && o[i] == 2.0f * float(i);
    CHECK(right);
  });
}

TEST_CASE("a Pallas thread of several warpgroups arrives once, and copies once") {
  for_each_target("wide", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref a, Ref b, Ref o, Ref left, Ref right, Ref full, Ref read) {
          gpu::copy_gmem_to_smem(a, left, full);
          gpu::copy_gmem_to_smem(b, right, full);
          gpu::barrier_wait(full);
          const Value product = pl::dot(left[_], right[_]);
          gpu::barrier_arrive(read);
          gpu::barrier_wait(read);
          o[_] = product;
        },
        {.name = "wide",
         .out_type = {{128, 256}, f32},
         .scratch_types = {gpu::SMEM({128, 16}, f16), gpu::SMEM({16, 256}, f16),
                           gpu::Barrier({.num_arrivals = 2}), gpu::Barrier()}});
    const Array a = Array::full({128, 16}, f16, 0.5f), b = Array::full({16, 256}, f16, 2.0f);
    const std::vector<float> o = elements<float>(k.on(target)(on(target, a), on(target, b)));
    bool right = true;
    for (const float x : o) right = right && x == 16.0f;
    CHECK(right);
    CHECK_THAT(k.lower(a.type(), b.type()).cuda_source({.arch = "sm_90a"}),
               ContainsSubstring("PL_KERNEL(256)"));
  });
}

std::string traced(const Body& body, const ScratchTypes& scratch) {
  return refused([&] {
    gpu::kernel(body, {.name = "refused", .out_type = {{128}, f32}, .scratch_types = scratch})
        .lower(ShapeDtype{{256}, f32});
  });
}

TEST_CASE("copies between Refs of other shapes or dtypes are refused [M30]") {
  const auto in = [](Ref x, Ref, Ref s, Ref b) { gpu::copy_gmem_to_smem(x, s, b); };
  CHECK_THAT(traced(in, {gpu::SMEM({128}, f32), gpu::Barrier()}),
             ContainsSubstring("copy_gmem_to_smem: expected source shape to be [128]") &&
                 ContainsSubstring("given [256]"));
  CHECK_THAT(
      traced(in, {gpu::SMEM({256}, f16), gpu::Barrier()}),
      ContainsSubstring("copy_gmem_to_smem: expected dtypes to match, given a source ref gmem "
                        "f32[256] and a destination ref smem f16[256]"));
  const auto out = [](Ref, Ref o, Ref s, Ref) { gpu::copy_smem_to_gmem(s, o); };
  CHECK_THAT(traced(out, {gpu::SMEM({64}, f32), gpu::Barrier()}),
             ContainsSubstring("copy_smem_to_gmem: expected source shape to be [128]"));
  const auto back = [](Ref x, Ref o, Ref, Ref b) {
    gpu::copy_gmem_to_smem(x.at(ds(0, 128)), o, b);
  };
  CHECK_THAT(
      traced(back, {gpu::SMEM({64}, f32), gpu::Barrier()}),
      ContainsSubstring("copy_gmem_to_smem: expected a Ref in SMEM, given ref gmem f32[128]"));
  const auto into_argument = [](Ref x, Ref, Ref s, Ref) { gpu::copy_smem_to_gmem(s, x); };
  CHECK_THAT(traced(into_argument, {gpu::SMEM({256}, f32), gpu::Barrier()}),
             ContainsSubstring("copy_smem_to_gmem: args[0] is an array, which a kernel over a mesh "
                               "only reads"));
  CHECK_THAT(traced([](Ref, Ref, Ref, Ref) { gpu::wait_smem_to_gmem(-1); },
                    {gpu::SMEM({64}, f32), gpu::Barrier()}),
             ContainsSubstring("wait_smem_to_gmem: expected 0 or more groups"));
}

TEST_CASE("copies are of a pl::kernel alone") {
  const auto call = [] {
    pl::pallas_call([](Ref, Ref) { gpu::commit_smem(); }, {.out_type = {{4}, i32}})
        .lower(ShapeDtype{{4}, i32});
  };
  CHECK_THAT(refused(call),
             ContainsSubstring("commit_smem: kernel") && ContainsSubstring("is no pl::kernel"));
}

TEST_CASE("bytes that follow one another are copied in bulk where they are no box [M23]") {
  struct Part {
    Shape all, of_it;
    std::vector<Idx> chosen;
    bool is_bulk = false;
  };
  const auto from = [](const Part& p, const Ref& x) {
    switch (p.chosen.size()) {
    case 0: return x;
    case 1: return x.at({p.chosen[0]});
    case 2: return x.at({p.chosen[0], p.chosen[1]});
    default: return x.at({p.chosen[0], p.chosen[1], p.chosen[2], p.chosen[3]});
    }
  };
  const std::vector<Part> parts = {{{256}, {256}, {}},
                                   {{64, 128}, {64, 128}, {}},
                                   {{64, 128}, {1, 128}, {ds(2, 1), _}},
                                   {{3, 64, 1, 128}, {32, 128}, {0, ds(0, 32), 0, _}},
                                   {{5, 1000}, {1000}, {4}, true},
                                   {{8200}, {8200}, {}, true},
                                   {{8192}, {4088}, {ds(4096, 4088)}, true},
                                   {{2, 1, 3, 1, 2, 1, 24}, {2, 1, 3, 1, 2, 1, 24}, {}, true}};
  for (const Part& p : parts)
    for (const DType t : {f32, bf16})
      for_each_target(to_string(p.of_it) + " " + t.name(), [&](Target target) {
        const Kernel k = gpu::kernel(
            [=](Ref x, Ref o, Ref in, Ref out, Ref done) {
              gpu::copy_gmem_to_smem(from(p, x), in, done);
              gpu::barrier_wait(done);
              out[_] = in[_] + 1;
              gpu::commit_smem();
              gpu::copy_smem_to_gmem(out, o);
              gpu::wait_smem_to_gmem(0);
            },
            {.name = "run",
             .out_type = {p.of_it, t},
             .scratch_types = {gpu::SMEM(p.of_it, t), gpu::SMEM(p.of_it, t), gpu::Barrier()}});
        const Array x = make_array<float>(p.all, [](std::int64_t i) { return i % 97; }).astype(t);
        const auto o = elements<float>(k.on(target)(on(target, x)).to(Device::cpu()).astype(f32));
        std::int64_t begin = 0;
        if (p.chosen.size() == 1) begin = p.all.rank() == 1 ? 4096 : 4000;
        if (p.chosen.size() == 2) begin = 256;
        bool right = true;
        for (std::size_t i = 0; i < o.size(); ++i)
          right =
              right && o[i] == static_cast<float>((begin + static_cast<std::int64_t>(i)) % 97 + 1);
        CHECK(right);
        const std::string text = k.lower(ShapeDtype{p.all, t}).cuda_source({.arch = "sm_90a"});
        CHECK((text.find("pl::bulk_load(") != text.npos) == p.is_bulk);
        CHECK((text.find("pl::bulk_store(") != text.npos) == p.is_bulk);
        CHECK((text.find("pl::tma_load(") != text.npos) == !p.is_bulk);
      });
}

// Rows of i8 from `start` on, which may leave its 208 elements; what is brought of them.
std::vector<int> brought(Target target, gpu::OOBFillMode mode, int start, int size) {
  const Kernel k = gpu::kernel(
      [=](Ref x, Ref from, Ref o, Ref room, Ref done) {
        const Value begin = from[0];
        gpu::copy_gmem_to_smem(x.at(ds(begin, size)), room, done, {.oob_mode = mode});
        gpu::barrier_wait(done);
        o[_] = room[_];
      },
      {.name = "brought",
       .out_type = {{size}, i8},
       .scratch_types = {gpu::SMEM({size}, i8), gpu::Barrier()}});
  const Array x = make_array<std::int8_t>({208}, [](std::int64_t i) { return i % 100 + 1; });
  const Array from = make_array<std::int32_t>({1}, [=](std::int64_t) { return start; });
  std::vector<int> all;
  for (const std::int8_t e : elements<std::int8_t>(k.on(target)(on(target, x), on(target, from))))
    all.push_back(e);
  return all;
}

TEST_CASE("what lies beyond an array is brought as zeros, by TMA and by threads [M25]") {
  const auto expected = [](int start, int size) {
    std::vector<int> all;
    for (int i = start; i < start + size; ++i) all.push_back(i >= 0 && i < 208 ? i % 100 + 1 : 0);
    return all;
  };
  for_each_target("zeros", [&](Target target) {
    // Whole 16 bytes, and others, which threads copy.
    for (const int start : {0, 112, 192, 208, -16, 101})
      CHECK(brought(target, gpu::OOBFillMode::ZEROS, start, 128) == expected(start, 128));
    for (const int start : {0, 80})
      CHECK(brought(target, gpu::OOBFillMode::PROMISE_IN_BOUNDS, start, 128) ==
            expected(start, 128));
    const std::vector<int> some = brought(target, gpu::OOBFillMode::UNDEFINED, 112, 128);
    const std::vector<int> known = expected(112, 128);
    CHECK(std::equal(known.begin(), known.begin() + 96, some.begin()));
  });
  for (const Target target : {Target::interpreter, Target::emulator})
    CHECK_THAT(refused([&] { brought(target, gpu::OOBFillMode::PROMISE_IN_BOUNDS, 112, 128); }),
               ContainsSubstring("out of bounds"));
}

TEST_CASE("a copy that leaves its array completes its barrier all the same [M24]") {
  for (const gpu::OOBFillMode mode : {gpu::OOBFillMode::ZEROS, gpu::OOBFillMode::UNDEFINED})
    for_each_target(mode == gpu::OOBFillMode::ZEROS ? "zeros" : "undefined", [&](Target target) {
      const Kernel k = gpu::kernel(
          [=](Ref x, Ref o, Ref room, Ref done) {
            gpu::copy_gmem_to_smem(x.at(ds(6000, 4096)), room, done, {.oob_mode = mode});
            gpu::barrier_wait(done);
            gpu::copy_smem_to_gmem(room.at(ds(0, 2048)), o);
            gpu::wait_smem_to_gmem(0);
          },
          {.name = "clamped",
           .out_type = {{2048}, f32},
           .scratch_types = {gpu::SMEM({4096}, f32), gpu::Barrier()}});
      const std::vector<float> o = elements<float>(k.on(target)(on(target, counted({8192}))));
      CHECK((o[0] == 6000 && o[2047] == 8047));
    });
}

TEST_CASE("tiles of matrices that they do not divide are brought with zeros, and clipped [M38]") {
  for (const int columns : {64, 128, 36, 30})  // of 30 threads copy
    for_each_target(std::to_string(columns), [&](Target target) {
      constexpr int rows = 100, tile = 64;
      const int across = (columns + tile - 1) / tile;
      const Kernel k = gpu::kernel(
          [=](Ref x, Ref o, Ref room, Ref done) {
            const Value i = axis_index("i"), j = axis_index("j");
            const auto block = [&](const Ref& all) {
              return all.at({ds(i * tile, tile), ds(j * tile, tile)});
            };
            gpu::copy_gmem_to_smem(block(x), room, done, {.oob_mode = gpu::OOBFillMode::ZEROS});
            gpu::barrier_wait(done);
            room[_] = room[_] + 1.0f;
            gpu::commit_smem();
            gpu::copy_smem_to_gmem(room, block(o), {.clipped = true});
            gpu::wait_smem_to_gmem(0);
          },
          {.name = "tiles",
           .out_type = {{rows, columns}, f32},
           .grid = {2, across},
           .grid_names = {"i", "j"},
           .scratch_types = {gpu::SMEM({tile, tile}, f32), gpu::Barrier()}});
      const std::vector<float> o =
          elements<float>(k.on(target)(on(target, counted({rows, columns}))));
      bool right = true;
      for (std::size_t i = 0; i < o.size(); ++i) right = right && o[i] == static_cast<float>(i + 1);
      CHECK(right);
    });
}

TEST_CASE("a plane behind the last one is zeros [M39]") {
  for_each_target("planes", [](Target target) {
    const Kernel k = gpu::kernel(
        [](Ref x, Ref o, Ref room, Ref done) {
          gpu::copy_gmem_to_smem(x.at({_, ds(0, 2), _}), room, done,
                                 {.oob_mode = gpu::OOBFillMode::ZEROS});
          gpu::barrier_wait(done);
          o[_] = room[_];
        },
        {.name = "planes",
         .out_type = {{64, 2, 64}, f32},
         .scratch_types = {gpu::SMEM({64, 2, 64}, f32), gpu::Barrier()}});
    const std::vector<float> o = elements<float>(k.on(target)(on(target, counted({64, 1, 64}))));
    bool right = true;
    for (std::size_t i = 0; i < o.size(); ++i)
      right = right && o[i] == (i / 64 % 2 == 0 ? static_cast<float>(i / 128 * 64 + i % 64) : 0);
    CHECK(right);
  });
}

TEST_CASE("what leaves a part of an array, or a reshaped one, is refused") {
  const auto problem = [](auto view) {
    return refused([&] {
      gpu::kernel(
          [=](Ref x, Ref, Ref room, Ref done) {
            gpu::copy_gmem_to_smem(view(x), room, done, {.oob_mode = gpu::OOBFillMode::ZEROS});
          },
          {.name = "bad",
           .out_type = {{1}, f32},
           .scratch_types = {gpu::SMEM({64}, f32), gpu::Barrier()}})
          .lower(ShapeDtype{{128}, f32});
    });
  };
  CHECK_THAT(
      problem([](const Ref& x) { return x.at(ds(0, 32)).at(ds(16, 64)); }),
      ContainsSubstring("which is a part of the array") && ContainsSubstring("copies_test.cpp"));
  CHECK_THAT(problem([](const Ref& x) {
               return x.reshape({2, 64}).at(1);
             }),
             ContainsSubstring("expected indices and slices alone, given ref_reshape"));
  CHECK_THAT(problem([](const Ref& x) { return x.at(ds(0, 64, 2)); }),
             ContainsSubstring("expected slices of stride 1, given 2"));
}

}  // namespace copies
