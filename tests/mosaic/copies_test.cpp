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

}  // namespace copies
