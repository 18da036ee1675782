// Accumulators, and who may touch what until a product by hand is known to be over: programs that
// do not wait are refused by the interpreter, with both lines.
#include <algorithm>

#include "tests/mosaic/mosaic.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace waits {

std::string line(int number) { return "wgmma_waits_test.cpp:" + std::to_string(number); }

Array filled(const Shape& shape, DType dtype, float factor = 1) {
  return Array::full(shape, f32, factor).astype(dtype);
}

/// A and B, 64 x 64 each, in shared memory behind a barrier, and what is done with them.
template <class F>
Body with_operands(F use) {
  return [use](Ref x, Ref y, Ref o, Ref a, Ref b, Ref done) {
    gpu::copy_gmem_to_smem(x, a, done);
    gpu::copy_gmem_to_smem(y, b, done);
    gpu::barrier_wait(done);
    use(a, b, o);
  };
}
const gpu::KernelOptions options{
    .name = "product",
    .out_type = {{64, 64}, f32},
    .scratch_types = {gpu::SMEM({64, 64}, f16), gpu::SMEM({64, 64}, f16),
                      gpu::Barrier({.num_arrivals = 2})}};

template <class F>
std::string refused_of(F use) {
  return races_of(with_operands(use), options, {filled({64, 64}, f16), filled({64, 64}, f16)});
}

bool are_all(const Array& o, float expected) {
  const std::vector<float> all = elements<float>(o);
  return std::ranges::all_of(all, [&](float x) { return x == expected; });
}

TEST_CASE("an accumulator begins with a value, and is changed as a whole [M64]") {
  for_each_target("init", [](Target target) {
    const Kernel k = gpu::kernel(with_operands([](Ref a, Ref b, Ref o) {
                                   const Value sum = gpu::run_state([&](Ref acc) {
                                     gpu::wgmma(acc, a, b);
                                   })(gpu::ACC.init(full({64, 64}, 10.0f, f32)));
                                   o[_] = sum;
                                 }),
                                 options);
    CHECK(are_all(k.on(target)(on(target, filled({64, 64}, f16)), on(target, filled({64, 64}, f16, 2))),
                  138));
  });
  for_each_target("update", [](Target target) {
    const Kernel k = gpu::kernel(with_operands([](Ref a, Ref b, Ref o) {
                                   run_scoped(
                                       [&](Ref acc) {
                                         gpu::wgmma(acc, a, b);
                                         acc[_] *= 2.0f;
                                         gpu::wgmma(acc, a, b);
                                         o[_] = acc[_];
                                       },
                                       {gpu::ACC({64, 64})});
                                 }),
                                 options);
    CHECK(are_all(k.on(target)(on(target, filled({64, 64}, f16)), on(target, filled({64, 64}, f16))),
                  192));
  });
}

TEST_CASE("products by hand are fenced once each, and awaited as often as is said [M65]") {
  const auto count = [](const std::string& text, const std::string& word) {
    int n = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
      ++n;
    return n;
  };
  const ShapeDtype matrix{{64, 64}, f16};
  const std::string one = gpu::kernel(with_operands([](Ref a, Ref b, Ref o) {
                                        run_scoped(
                                            [&](Ref acc) {
                                              gpu::wgmma(acc, a, b);
                                              o[_] = acc[_];
                                            },
                                            {gpu::ACC({64, 64})});
                                      }),
                                      options)
                              .lower(matrix, matrix)
                              .compile({.arch = "sm_90a"})
                              .ptx();
  CHECK(count(one, "wgmma.fence.sync.aligned") == 1);
  CHECK(count(one, "wgmma.wait_group.sync.aligned 0") == 1);

  const auto two = with_operands([](Ref a, Ref b, Ref o) {
    run_scoped(
        [&](Ref acc0, Ref acc1) {
          gpu::wgmma(acc0, a, b);
          gpu::wgmma(acc1, a, b);
          const Value first = gpu::wgmma_accumulator_load(acc0, {.wait_n = 1});
          const Value second = gpu::wgmma_accumulator_load(acc1);
          o[_] = first - second;
        },
        {gpu::ACC({64, 64}), gpu::ACC({64, 64})});
  });
  const std::string both =
      gpu::kernel(two, options).lower(matrix, matrix).compile({.arch = "sm_90a"}).ptx();
  CHECK(count(both, "wgmma.wait_group.sync.aligned 1") == 1);
  CHECK(count(both, "wgmma.wait_group.sync.aligned 0") == 1);
  for_each_target("two", [&](Target target) {
    const Kernel k = gpu::kernel(two, options);
    CHECK(are_all(k.on(target)(on(target, filled({64, 64}, f16)), on(target, filled({64, 64}, f16, 3))),
                  0));
  });
}

TEST_CASE("an accumulator of a scope is added to in another's [M66]") {
  for_each_target("outer", [](Target target) {
    const Kernel k = gpu::kernel(with_operands([](Ref a, Ref b, Ref o) {
                                   run_scoped(
                                       [&](Ref acc) {
                                         const Value unused = gpu::run_state([&](Ref) {
                                           gpu::wgmma(acc, a, b);
                                         })(gpu::ACC.init(full({64, 64}, 1.0f, f32)));
                                         o[_] = acc[_] + unused;
                                       },
                                       {gpu::ACC({64, 64})});
                                 }),
                                 options);
    CHECK(are_all(k.on(target)(on(target, filled({64, 64}, f16)), on(target, filled({64, 64}, f16))),
                  65));
  });
}

TEST_CASE("a product adds to a slice of an accumulator, and slices are read") {
  for_each_target("slices", [](Target target) {
    const Kernel k = gpu::kernel(with_operands([](Ref a, Ref b, Ref o) {
                                   run_scoped(
                                       [&](Ref acc) {
                                         gpu::wgmma(acc.at({_, ds(64, 64)}), a, b);
                                         gpu::wgmma(acc.at({_, ds(0, 64)}), a, b);
                                         gpu::wgmma(acc.at({_, ds(64, 64)}), a, b);
                                         const Value right = acc[{_, ds(64, 64)}];
                                         const Value left = acc[{_, ds(0, 64)}];
                                         o[_] = left + right * 10.0f;
                                       },
                                       {gpu::ACC({64, 128})});
                                 }),
                                 options);
    CHECK(are_all(k.on(target)(on(target, filled({64, 64}, f16)), on(target, filled({64, 64}, f16))),
                  64 + 1280));
  });
}

// ---- wrong programs

TEST_CASE("an accumulator that is read while a product adds to it is refused, with both lines") {
  const std::string found = refused_of([](Ref a, Ref b, Ref o) {
    run_scoped(
        [&](Ref acc) {
          gpu::wgmma(acc, a, b);
          const Value v = gpu::wgmma_accumulator_load(acc, {.wait_n = 1});
          o[_] = v;
        },
        {gpu::ACC({64, 64})});
  });
  CHECK_THAT(found,
             ContainsSubstring("load: scratch[0] of run_scoped is read while the product of ") &&
                 ContainsSubstring("may still add to it: plgpu::wgmma_wait(0)") &&
                 ContainsSubstring("wgmma_waits_test.cpp"));
}

TEST_CASE("an accumulator that is stored to while a product adds to it is refused") {
  const std::string found = refused_of([](Ref a, Ref b, Ref o) {
    run_scoped(
        [&](Ref acc, Ref other) {
          gpu::wgmma(acc, a, b);
          gpu::wgmma(other, a, b);
          acc[_] = zeros({64, 64}, f32);
          o[_] = other[_];
        },
        {gpu::ACC({64, 64}), gpu::ACC({64, 64})});
  });
  CHECK_THAT(found, ContainsSubstring("is stored to while the product of") &&
                        ContainsSubstring("plgpu::wgmma_wait(1)"));
}

TEST_CASE("an operand that is written while a product may read it is a race") {
  for (const bool waits : {false, true}) {
    const std::string found = refused_of([=](Ref a, Ref b, Ref o) {
      run_scoped(
          [&](Ref acc) {
            gpu::wgmma(acc, a, b);
            if (waits) gpu::wgmma_wait(0);
            a[_] = zeros({64, 64}, f16);
            o[_] = acc[_];
          },
          {gpu::ACC({64, 64})});
    });
    CAPTURE(waits);
    if (waits)
      CHECK(found == "");
    else
      CHECK_THAT(found, ContainsSubstring("race on scratch[0]") &&
                            ContainsSubstring("which a product of thread 0 read at") &&
                            ContainsSubstring("nothing orders the two"));
  }
}

TEST_CASE("a product of what threads stored needs a commit between the two") {
  for (const bool commits : {false, true}) {
    const std::string found = refused_of([=](Ref a, Ref b, Ref o) {
      a[_] = a[_] + 1.0f;
      if (commits) gpu::commit_smem();
      run_scoped(
          [&](Ref acc) {
            gpu::wgmma(acc, a, b);
            o[_] = acc[_];
          },
          {gpu::ACC({64, 64})});
    });
    CAPTURE(commits);
    if (commits)
      CHECK(found == "");
    else
      CHECK_THAT(found, ContainsSubstring("a product of thread 0 reads") &&
                            ContainsSubstring("no plgpu::commit_smem() stands between the two"));
  }
}

TEST_CASE("a product of what is still copied is a race") {
  const std::string found = races_of(
      [](Ref x, Ref y, Ref o, Ref a, Ref b, Ref done) {
        gpu::copy_gmem_to_smem(x, a, done);
        gpu::copy_gmem_to_smem(y, b, done);
        run_scoped(
            [&](Ref acc) {
              gpu::wgmma(acc, a, b);
              gpu::barrier_wait(done);
              o[_] = acc[_];
            },
            {gpu::ACC({64, 64})});
      },
      options, {filled({64, 64}, f16), filled({64, 64}, f16)});
  CHECK_THAT(found, ContainsSubstring("race on scratch[0]") &&
                        ContainsSubstring("which a copy of thread 0 wrote at"));
}

/// A ring of two slots, whose reader frees one before or behind its wait for the product.
Body ring(bool early) {
  constexpr int steps = 4, slots = 2;
  return [=](Ref x, Ref y, Ref o, Ref a, Ref b, Ref full, Ref empty) {
    const Value wg = axis_index("wg");
    pl::when(wg == 0, [&] {
      pl::loop(0, steps, [&](Index i) {
        pl::when(i >= slots, [&] { gpu::barrier_wait(empty.at(i % slots)); });
        gpu::copy_gmem_to_smem(x.at({_, ds(i * 64, 64)}), a.at(i % slots), full.at(i % slots));
        gpu::copy_gmem_to_smem(y.at({ds(i * 64, 64), _}), b.at(i % slots), full.at(i % slots));
      });
    });
    pl::when(wg == 1, [&] {
      run_scoped(
          [&](Ref acc) {
            pl::loop(0, steps, [&](Index i) {
              gpu::barrier_wait(full.at(i % slots));
              gpu::wgmma(acc, a.at(i % slots), b.at(i % slots));
              if (!early) gpu::wgmma_wait(0);
              pl::when(i + slots < steps, [&] { gpu::barrier_arrive(empty.at(i % slots)); });
            });
            o[_] = acc[_];
          },
          {gpu::ACC({64, 64})});
    });
  };
}
const gpu::KernelOptions ring_options{
    .name = "ring",
    .out_type = {{64, 64}, f32},
    .num_threads = 2,
    .thread_name = "wg",
    .scratch_types = {gpu::SMEM({2, 64, 64}, f16), gpu::SMEM({2, 64, 64}, f16),
                      gpu::Barrier({.num_arrivals = 2, .num_barriers = 2}),
                      gpu::Barrier({.num_barriers = 2})}};

TEST_CASE("a slot that is freed before its product is over is a race") {
  const std::vector<Array> arrays{filled({64, 256}, f16), filled({256, 64}, f16)};
  CHECK(races_of(ring(false), ring_options, arrays) == "");
  CHECK_THAT(races_of(ring(true), ring_options, arrays),
             ContainsSubstring("race on scratch[0]") && ContainsSubstring("a copy of thread 0") &&
                 ContainsSubstring("a product of thread 1"));
  for_each_target("ring", [&](Target target) {
    const Kernel k = gpu::kernel(ring(false), ring_options);
    CHECK(are_all(k.on(target)(on(target, arrays[0]), on(target, arrays[1])), 256));
  });
}

// ---- what is refused when it is traced or compiled

TEST_CASE("products by hand that cannot be are refused with what was expected and given") {
  const auto traced = [](Scoped sum, Scoped a, Scoped b, auto use) {
    return refused([&] {
      gpu::kernel(
          [use](Ref o, Ref acc, Ref a, Ref b) {
            use(acc, a, b);
            o[0] = 0.0f;
          },
          {.name = "bad", .out_type = {{1}, f32}, .scratch_types = {sum, a, b}})
          .lower()
          .cuda_source({.arch = "sm_90a"});
    });
  };
  const auto multiply = [](Ref acc, Ref a, Ref b) { gpu::wgmma(acc, a, b); };
  const auto turned = [](Ref acc, Ref a, Ref b) {
    gpu::wgmma(acc, a, gpu::transpose_ref(b, {1, 0}));
  };
  const auto smem = [](const Shape& shape, DType t) { return gpu::SMEM(shape, t); };
  const Scoped acc = gpu::ACC({64, 64});
  CHECK_THAT(traced(smem({64, 64}, f32), smem({64, 64}, f16), smem({64, 64}, f16), multiply),
             ContainsSubstring("wgmma: expected an accumulator as operand 0, given ref smem"));
  CHECK_THAT(
      traced(acc, smem({64, 64}, f16), smem({64, 64}, bf16), multiply),
      ContainsSubstring("mixed input dtypes for matrix multiplication unsupported, given f16 "
                        "and bf16"));
  CHECK_THAT(traced(acc, smem({64, 64}, f16), smem({32, 64}, f16), multiply),
             ContainsSubstring("incompatible shapes for matrix multiplication: A is [64,64], B is "
                               "[32,64], the accumulator [64,64]"));
  CHECK_THAT(traced(acc, smem({64, 32}, f8e4m3), smem({32, 64}, f8e4m3), multiply),
             ContainsSubstring("only operands of 16 bits are taken transposed"));
  CHECK_THAT(
      traced(gpu::ACC({64, 64}, f32), smem({64, 32}, i8), smem({64, 32}, i8), turned),
      ContainsSubstring("expected an accumulator of i32 for operands of i8 and i8, given f32"));
  CHECK_THAT(traced(gpu::ACC({32, 64}), smem({64, 64}, f16), smem({64, 64}, f16), multiply),
             ContainsSubstring("an accumulator has a multiple of 64 rows and of 8 columns"));
  CHECK_THAT(traced(gpu::ACC({64, 64}, u32), smem({64, 64}, f16), smem({64, 64}, f16), multiply),
             ContainsSubstring("accumulators are of f32 or f16, or of i32 for integers"));
  CHECK_THAT(traced(acc, smem({64, 64}, f16), smem({64, 64}, f16),
                    [](Ref sum, Ref, Ref) { gpu::wgmma_accumulator_load(sum, {.wait_n = -1}); }),
             ContainsSubstring("expected 0 or more products that may be under way, given -1"));
}

TEST_CASE("products by hand are for sm_90a, and say so elsewhere") {
  const Lowered k = gpu::kernel(with_operands([](Ref a, Ref b, Ref o) {
                                  run_scoped(
                                      [&](Ref acc) {
                                        gpu::wgmma(acc, a, b);
                                        o[_] = acc[_];
                                      },
                                      {gpu::ACC({64, 64})});
                                }),
                                options)
                        .lower(ShapeDtype{{64, 64}, f16}, ShapeDtype{{64, 64}, f16});
  for (const char* arch : {"sm_90", "sm_100a"})
    CHECK_THAT(refused([&] { k.cuda_source({.arch = arch}); }),
               ContainsSubstring("products of a warpgroup need sm_90a"));
}

}  // namespace waits
