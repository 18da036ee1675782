// Calls on a GPU that only records: what reaches the driver, and what a call costs.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cache/store.hpp"
#include "codegen/base/tensor_map.hpp"
#include "palladium/ops/matmul.hpp"
#include "palladium/ops/softmax.hpp"
#include "palladium/palladium.hpp"
#include "runtime/build/program.hpp"
#include "runtime/driver/device.hpp"
#include "runtime/driver/memory.hpp"
#include "runtime/driver/tensor_map.hpp"
#include "runtime/launch/packer.hpp"
#include "tests/fake_cuda/in_test.hpp"
#include "tests/support/allocations.hpp"
#include "tests/support/captured_stderr.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/hidden.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using pl::_;
using test::Environment;
using test::Folder;

namespace {

Kernel vector_add(const char* name = "vector_add") {
  return pallas_call([](Ref x, Ref y, Ref o) { o[_] = x[_] + y[_]; },
                     [=](ShapeDtype x, ShapeDtype) {
                       const BlockSpec piece{{256}, [](Index i) { return i; }};
                       return PallasCallOptions{.name = name,
                                                .out_type = x,
                                                .grid = {cdiv(x.shape[0], 256)},
                                                .in_specs = {piece, piece},
                                                .out_specs = {piece}};
                     })
      .on(Target::cuda);
}

Array on_gpu(std::int64_t n, float value = 1, int device = 0) {
  return test::make_array<float>({n}, [=](auto) { return value; }).to(Device::cuda(device));
}

/// The fake driver, and a cache of the test's own.
struct Fixture {
  fake_cuda::State& fake = test::fake_driver();
  Folder folder;
  Environment cache{"PALLADIUM_CACHE_DIR", folder.path()};
};

/// Plays vector_add on the fake's memory.
void play_vector_add(const fake_cuda::Launch& launch) {
  const auto x = launch.argument<const float*>(0), y = launch.argument<const float*>(1);
  auto* o = launch.argument<float*>(2);
  const auto n = launch.argument<std::int64_t>(3);
  for (std::int64_t i = 0; i < n; ++i) o[i] = x[i] + y[i];
}

}  // namespace

TEST_CASE_METHOD(Fixture,
                 "a call launches the grid with the arrays and the values of the symbols") {
  fake.on_launch = play_vector_add;
  const Kernel add = vector_add();
  const Array x = on_gpu(1003, 1), y = on_gpu(1003, 2);
  const Array z = add(x, y);
  REQUIRE(fake.launches.size() == 1);
  const fake_cuda::Launch& launch = fake.launches[0];
  CHECK(launch.kernel == "vector_add_kernel");
  CHECK(launch.grid[0] == 4);
  CHECK(launch.grid[1] == 1);
  CHECK(launch.block[0] == 128);
  CHECK(launch.device == 0);
  CHECK(launch.stream == nullptr);
  CHECK(launch.argument<void*>(0) == x.data());
  CHECK(launch.argument<void*>(1) == y.data());
  CHECK(launch.argument<void*>(2) == z.data());
  CHECK(launch.argument<std::int64_t>(3) == 1003);
  CHECK(z.device() == Device::cuda(0));
  CHECK(z.to(Device::cpu()).values<float>()[1002] == 3.f);
}

TEST_CASE_METHOD(Fixture, "one cubin is loaded once and serves all lengths of its class") {
  const Kernel add = vector_add();
  for (const std::int64_t n : {5, 255, 257, 100001}) add(on_gpu(n), on_gpu(n));
  CHECK(fake.count("cuLibraryLoadData") <= 1);  // 0 where an earlier test has loaded it
  CHECK(fake.launches.size() == 4);
  CHECK(fake.launches[3].grid[0] == 391);
}

TEST_CASE_METHOD(Fixture, "a kernel that waits for the one before it may begin beside it") {
  const auto kernel = [](bool waits) {
    return gpu::kernel(
               [=](Ref x, Ref o) {
                 if (waits) gpu::griddepcontrol_wait();
                 o[_] = x[_];
                 gpu::griddepcontrol_launch_dependents();
               },
               {.name = waits ? "waits" : "does_not", .out_type = {{128}, f32}})
        .on(Target::cuda);
  };
  for (const bool waits : {true, false}) {
    kernel(waits)(on_gpu(128));
    CHECK(fake.launches.back().overlaps_previous == waits);
  }
}

TEST_CASE_METHOD(Fixture, "vectors on both sides of 2^31 elements have kernels of their own") {
  const Kernel add = vector_add("far_add");
  const Device gpu = Device::cuda(0);
  const auto call = [&](std::int64_t n) {
    std::vector<Array> a;  // looked at only
    for (std::uintptr_t i = 1; i <= 3; ++i)
      a.push_back(Array::view(reinterpret_cast<void*>(i << 44), {n}, f32, {.device = &gpu}));
    add.into({a[2]}, {a[0], a[1]});
  };
  const std::int64_t most = (std::int64_t{1} << 31) - 255;  // in blocks of 256
  call(0);
  CHECK(fake.launches.empty());
  call(1);
  call(most);
  CHECK(fake.count("cuLibraryLoadData") == 1);
  CHECK(fake.launches.back().grid[0] == 8388608);
  for (int i = 0; i < 2; ++i) {
    for (const std::int64_t n : {most + 1, most + 256, (std::int64_t{1} << 38) + 1}) call(n);
    CHECK(fake.launches.back().grid[0] == (1 << 30) + 1);
    CHECK(fake.launches.back().argument<std::int64_t>(3) == (std::int64_t{1} << 38) + 1);
    call(1001);
    CHECK(fake.launches.back().grid[0] == 4);
  }
  CHECK(fake.count("cuLibraryLoadData") == 2);
}

TEST_CASE_METHOD(Fixture, "matrices on both sides of 2^31 elements have kernels of their own") {
  const Kernel copy =
      pallas_call([](Ref x, Ref o) { o[_] = x[_]; },
                  [](ShapeDtype x) {
                    const auto [m, n] = x.shape.unpack<2>();
                    const BlockSpec tile{{8, 64}, [](Index i, Index j) { return Indices{i, j}; }};
                    return PallasCallOptions{.name = "far_copy",
                                             .out_type = x,
                                             .grid = {cdiv(m, 8), cdiv(n, 64)},
                                             .in_specs = {tile},
                                             .out_specs = {tile}};
                  })
          .on(Target::cuda);
  const Device gpu = Device::cuda(0);
  const auto call = [&](std::int64_t m, std::int64_t n) {
    const auto array = [&](std::uintptr_t at) {
      return Array::view(reinterpret_cast<void*>(at << 44), {m, n}, f32, {.device = &gpu});
    };
    const Array x = array(1), o = array(2);
    copy.into({o}, {x});
  };
  for (int i = 0; i < 2; ++i) {
    // Both, that few of them follow from their number alone, and that more do not reach far.
    for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                               {100, 1001},
                               {(1 << 15) - 9, (1 << 16) + 1},
                               {1, (1 << 28) - 9}})
      call(m, n);
    CHECK(fake.count("cuLibraryLoadData") == (i == 0 ? 1u : 2u));
    for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{(1 << 15) - 7, (1 << 16) + 1},
                               {1, (1 << 28) - 7},
                               {1 << 19, (1 << 20) + 1}})
      call(m, n);
    CHECK(fake.count("cuLibraryLoadData") == 2);
  }
  const std::size_t launched = fake.launches.size();
  call(0, 9);
  call(9, 0);
  CHECK(fake.launches.size() == launched);
}

TEST_CASE_METHOD(Fixture, "into with arrays as at the last call allocates nothing") {
  const Kernel add = vector_add();
  const Array x = on_gpu(5000), y = on_gpu(5000), z = on_gpu(5000);
  const driver::ContextScope context(0);  // the fake remembers, and allocates for, each switch
  add.into({z}, {x, y});
  fake.recording = false;
  const std::size_t launched = fake.launch_count;
  {
    const test::CountedAllocations allocations;
    for (int i = 0; i < 100; ++i) add.into({z}, {x, y});
    CHECK(allocations.count() == 0);
  }
  CHECK(fake.launch_count == launched + 100);
}

TEST_CASE_METHOD(Fixture,
                 "a grid that no launch can have is refused at the call, the first and later") {
  const Kernel k = pallas_call([](Ref, Ref o) { o[_] = zeros({1}, f32); },
                               [](ShapeDtype x) {
                                 return PallasCallOptions{
                                     .name = "sized",
                                     .out_type = {{64}, f32},
                                     .grid = {x.shape[0] * 1000000000},
                                     .in_specs = {BlockSpec{{1}, [](Index) { return 0; }}},
                                     .out_specs = {BlockSpec{{1}, [](Index i) { return i; }}}};
                               })
                       .on(Target::cuda);
  const Array none = on_gpu(0), two = on_gpu(2), three = on_gpu(3), o = on_gpu(64);
  k.into({o}, {two});
  REQUIRE(fake.launches.size() == 1);
  CHECK(fake.launches[0].grid[0] == 2000000000);
  for (int i = 0; i < 2; ++i) {
    const int line = __LINE__ + 1;
    const auto call = [&] { k.into({o}, {three}); };
    CHECK_THROWS_WITH(call(),
                      ContainsSubstring("3000000000 programs; an axis can have 0 to 2147483647") &&
                          ContainsSubstring("launch_test.cpp:" + std::to_string(line)));
  }
  k.into({o}, {none});
  CHECK(fake.launches.size() == 1);
}

TEST_CASE_METHOD(Fixture, "the caller's stream gets the launch, and fresh outputs come from it") {
  const Kernel add = vector_add();
  const Array x = on_gpu(8), y = on_gpu(8);
  add(x, y);
  const driver::ContextScope context(0);
  const driver::Stream own;
  auto* stream = reinterpret_cast<CUstream_st*>(own.handle());
  const std::size_t before = fake.allocations;
  {
    const Array z = add.on(Stream(stream))(x, y);
    CHECK(fake.launches.back().stream == own.handle());
    CHECK(fake.allocations == before + 1);
  }
  CHECK(fake.allocations == before);
  const Array z = on_gpu(8);
  add.on(Stream(stream)).into({z}, {x, y});
  CHECK(fake.launches.back().stream == own.handle());
}

TEST_CASE_METHOD(Fixture, "every device gets its own launch in its own context") {
  const Kernel add = vector_add();
  const Array x0 = on_gpu(8, 1, 0), x1 = on_gpu(8, 1, 1);
  const Array z0 = add(x0, x0), z1 = add(x1, x1);
  CHECK(z1.device() == Device::cuda(1));
  REQUIRE(fake.launches.size() == 2);
  CHECK(fake.launches[0].device == 0);
  CHECK(fake.launches[1].device == 1);
  CHECK_THROWS_WITH(add(x0, x1),
                    ContainsSubstring("args[1]") && ContainsSubstring(".to(pl::Device::cuda(0))"));
}

TEST_CASE_METHOD(Fixture, "strides of rows with gaps are kernel arguments") {
  const Kernel twice =
      pallas_call([](Ref x, Ref o) { o[_] = x[_] + x[_]; },
                  [](ShapeDtype x) {
                    const BlockSpec row{{1, 64}, [](Index i) { return Indices{i, 0}; }};
                    return PallasCallOptions{.name = "twice",
                                             .out_type = x,
                                             .grid = {x.shape[0]},
                                             .in_specs = {row},
                                             .out_specs = {row}};
                  })
          .on(Target::cuda);
  const Array memory = on_gpu(3 * 100);
  const std::int64_t strides[] = {100, 1};
  const Device device = Device::cuda(0);
  const Array x = Array::view(memory.data(), {3, 64}, f32, {.strides = strides, .device = &device});
  const Array o = twice(x);
  const fake_cuda::Launch& launch = fake.launches.back();
  CHECK(launch.grid[0] == 3);
  bool has_stride = false;
  for (std::size_t i = 0; i < launch.arguments.size(); ++i)
    has_stride |= launch.arguments[i].size() == 8 && launch.argument<std::int64_t>(i) == 100;
  CHECK(has_stride);
  CHECK(o.is_dense());
}

namespace {

/// What a launch was given that has the size of a pointer, a stride or a symbol.
bool has_number(const fake_cuda::Launch& launch, std::int64_t number) {
  for (std::size_t i = 0; i < launch.arguments.size(); ++i)
    if (launch.arguments[i].size() == 8 && launch.argument<std::int64_t>(i) == number) return true;
  return false;
}

/// Rows with gaps, on the GPU.
Array with_gaps(const Array& memory, const Shape& shape, const std::vector<std::int64_t>& strides,
                DType dtype) {
  const Device device = Device::cuda(0);
  return Array::view(memory.data(), shape, dtype, {.strides = strides, .device = &device});
}

}  // namespace

TEST_CASE_METHOD(Fixture, "strides of elements that share bytes are kernel arguments in bytes") {
  const auto body = [](Ref x, Ref o) { o[_] = x[_]; };
  const auto options = [](ShapeDtype x) {
    const BlockSpec row{{1, 64}, [](Index i) { return Indices{i, 0}; }};
    return PallasCallOptions{.name = "pairs",
                             .out_type = x,
                             .grid = {x.shape[0]},
                             .in_specs = {row},
                             .out_specs = {row}};
  };
  const Array from = on_gpu(1000), to = on_gpu(1000);
  for (const DType dtype : {i4, u4}) {
    CAPTURE(dtype.name());
    // Of three rows; of any number.
    const Kernel kernels[] = {pallas_call(body, options({{3, 64}, dtype})).on(Target::cuda),
                              pallas_call(body, options).on(Target::cuda)};
    for (const Kernel& k : kernels) {
      const Array dense = Array::empty({3, 64}, dtype, Device::cuda(0));
      k.into({dense}, {with_gaps(from, {3, 64}, {104, 1}, dtype)});
      CHECK(has_number(fake.launches.back(), 52));
      CHECK_FALSE(has_number(fake.launches.back(), 104));
      k.into({with_gaps(to, {3, 64}, {72, 1}, dtype)}, {with_gaps(from, {3, 64}, {104, 1}, dtype)});
      CHECK(has_number(fake.launches.back(), 52));
      CHECK(has_number(fake.launches.back(), 36));
      CHECK_FALSE(has_number(fake.launches.back(), 72));
      // Of an array without gaps nothing is told that the kernel knows: its own, which is there.
      const Array next = Array::empty({3, 64}, dtype, Device::cuda(0));
      k.prepare({next});
      k.into({dense}, {next});
      for (const std::int64_t n : {32, 64, 128}) CHECK_FALSE(has_number(fake.launches.back(), n));
    }
    kernels[1].into({with_gaps(to, {7, 64}, {72, 1}, dtype)},
                    {with_gaps(from, {7, 64}, {104, 1}, dtype)});
    CHECK(fake.launches.back().grid[0] == 7);
    CHECK(has_number(fake.launches.back(), 52));
    CHECK(has_number(fake.launches.back(), 36));
  }
}

TEST_CASE_METHOD(Fixture,
                 "each stride of packed elements is one in bytes, those of others are not") {
  const Kernel k = pallas_call([](Ref x, Ref y, Ref o) { o[_] = x[_].astype(f32) * y[_]; },
                               [](ShapeDtype x, ShapeDtype) {
                                 const BlockSpec row{{squeezed, 1, 64}, [](Index i, Index j) {
                                                       return Indices{i, j, 0};
                                                     }};
                                 return PallasCallOptions{.name = "scaled_pairs",
                                                          .out_type = {x.shape, f32},
                                                          .grid = {x.shape[0], x.shape[1]},
                                                          .in_specs = {row, row},
                                                          .out_specs = {row}};
                               })
                       .on(Target::cuda);
  const Array x = on_gpu(1000), y = on_gpu(1000);
  (void)k(with_gaps(x, {2, 3, 64}, {444, 106, 1}, u4),
          with_gaps(y, {2, 3, 64}, {386, 102, 1}, f32));
  const fake_cuda::Launch& launch = fake.launches.back();
  for (const std::int64_t n : {222, 53, 386, 102}) CHECK(has_number(launch, n));
  for (const std::int64_t n : {444, 106, 193, 51}) CHECK_FALSE(has_number(launch, n));
}

TEST_CASE_METHOD(Fixture, "tensor maps of elements that share bytes are maps of bytes") {
  graph::Graph g;
  g.name = "maps";
  g.mapping.num_inputs = 2;
  g.mapping.num_outputs = 1;
  using Kind = cuda::Parameter::Kind;
  for (int i = 0; i < 2; ++i)
    g.arguments.push_back({.kind = graph::Argument::Kind::input, .index = i});
  runtime::LaunchPlan plan;
  plan.parameters = {{.kind = Kind::tensor_map, .index = 0, .box = {64, 32}},
                     {.kind = Kind::tensor_map, .index = 1, .box = {1, 8, 64}},
                     {.kind = Kind::tensor_map, .index = 2, .box = {64, 32}}};
  const runtime::Packer packer(g, plan, driver::encode);
  // Maps of the same memory and shape are known.
  const Array of_i4 = on_gpu(100'000), of_u4 = on_gpu(100'000);
  const driver::ContextScope context(0);
  for (const DType dtype : {i4, u4}) {
    CAPTURE(dtype.name());
    const Array& memory = dtype == i4 ? of_i4 : of_u4;
    fake.tensor_maps.clear();
    const std::vector<Arg> arguments = {
        Arg(with_gaps(memory, {100, 128}, {192, 1}, dtype)),
        Arg(with_gaps(memory, {3, 20, 256}, {8192, 320, 1}, dtype))};
    const std::vector<Arg> outputs = {Arg(with_gaps(memory, {100, 64}, {64, 1}, dtype))};
    const auto block = std::make_unique<runtime::ArgumentBlock>();
    const runtime::Signature::Symbols symbols = {};
    packer.pack(arguments, outputs, symbols, *block);
    const std::vector<fake_cuda::TensorMap>& maps = fake.tensor_maps;
    REQUIRE(maps.size() == 3);
    constexpr int of_bytes = 0;  // CU_TENSOR_MAP_DATA_TYPE_UINT8
    for (const fake_cuda::TensorMap& map : maps) CHECK(map.type == of_bytes);
    CHECK(maps[0].extents == std::vector<std::uint64_t>{64, 100});
    CHECK(maps[0].strides == std::vector<std::uint64_t>{96});
    CHECK(maps[0].box == std::vector<std::uint32_t>{32, 64});
    CHECK(maps[1].extents == std::vector<std::uint64_t>{128, 20, 3});
    CHECK(maps[1].strides == std::vector<std::uint64_t>{160, 4096});
    CHECK(maps[2].extents == std::vector<std::uint64_t>{32, 100});
    CHECK(maps[2].strides == std::vector<std::uint64_t>{32});
  }
}

namespace {

Array nothing(const Shape& shape, DType dtype = f32) {
  return Array::empty(shape, dtype, Device::cuda(0));
}

Kernel rows_plus_one(bool is_static, const Shape& shape) {
  const auto options = [](const ShapeDtype& x) {
    const BlockSpec row{{1, 64}, [](Index i) { return Indices{i, 0}; }};
    return PallasCallOptions{.name = "rows_plus_one",
                             .out_type = x,
                             .grid = {x.shape[0]},
                             .in_specs = {row},
                             .out_specs = {row}};
  };
  const auto body = [](Ref x, Ref o) { o[_] = x[_] + 1; };
  return (is_static ? pallas_call(body, options({shape, f32})) : pallas_call(body, options))
      .on(Target::cuda);
}

}  // namespace

TEST_CASE_METHOD(Fixture,
                 "calls without programs, or without an element to write, launch nothing") {
  for (const bool is_static : {false, true}) {
    CAPTURE(is_static);
    for (const Shape& s : {Shape{0, 64}, Shape{0, 0}}) {
      const Array o = rows_plus_one(is_static, s)(nothing(s));
      CHECK(o.size() == 0);
      const Kernel k = rows_plus_one(is_static, s);
      k.into({nothing(s)}, {nothing(s)});
    }
    // Columns without elements, and batches of nothing.
    CHECK(rows_plus_one(is_static, {5, 0})(nothing({5, 0})).size() == 0);
    CHECK(vmap(rows_plus_one(is_static, {5, 64}))(nothing({0, 5, 64})).size() == 0);
    CHECK(vmap(rows_plus_one(is_static, {0, 64}))(nothing({3, 0, 64})).size() == 0);
  }
  CHECK(vector_add()(nothing({0}), nothing({0})).size() == 0);
  const Kernel none = pallas_call([](Ref x, Ref o) { o[_] = x[_]; },
                                  {.name = "none", .out_type = {{8}, f32}, .grid = {0}})
                          .on(Target::cuda);
  CHECK(none(nothing({8})).size() == 8);
  CHECK(ops::softmax().on(Target::cuda)(nothing({0, 100})).size() == 0);
  CHECK(ops::softmax().on(Target::cuda)(nothing({100, 0})).size() == 0);
  CHECK(ops::matmul().on(Target::cuda)(nothing({0, 4}), nothing({4, 3})).size() == 0);
  CHECK(fake.launches.empty());
  CHECK(fake.tensor_maps.empty());
}

TEST_CASE_METHOD(Fixture,
                 "what is computed of arrays without elements needs no tensor map of one") {
  const auto options = [](const ShapeDtype& x, const ShapeDtype& y) {
    const BlockSpec rows{{64, 64}, [](Index i, Index) { return Indices{i, 0}; }, {.fill = 0}};
    const BlockSpec columns{{64, 64}, [](Index, Index j) { return Indices{j, 0}; }, {.fill = 0}};
    const BlockSpec tile{{64, 64}, [](Index i, Index j) { return Indices{i, j}; }};
    return PallasCallOptions{.name = "filled_product",
                             .out_type = ShapeDtype{{x.shape[0], y.shape[0]}, f32},
                             .grid = {cdiv(x.shape[0], 64), cdiv(y.shape[0], 64)},
                             .in_specs = {rows, columns},
                             .out_specs = {tile}};
  };
  const auto body = [](Ref x, Ref y, Ref o) { o[_] = dot(x[_], y[_], {.trans_b = true}); };
  const Kernel by_size = pallas_call(body, options).on(Target::cuda);
  const Kernel of_size =
      pallas_call(body, options({{100, 0}, f16}, {{72, 0}, f16})).on(Target::cuda);
  (void)by_size(nothing({100, 64}, f16), nothing({72, 64}, f16));
  CHECK_FALSE(fake.tensor_maps.empty());
  const Array wide = nothing({72, 0}, f16), high = nothing({0, 72}, f16);
  const std::pair<Kernel, Array> calls[] = {
      {by_size, wide}, {of_size, wide}, {ops::matmul().on(Target::cuda), high}};
  for (const auto& [k, y] : calls) {
    fake.launches.clear();
    fake.tensor_maps.clear();
    CHECK(k(nothing({100, 0}, f16), y).size() == 7200);
    REQUIRE(fake.launches.size() == 1);
    for (const unsigned extent : fake.launches[0].grid) CHECK(extent > 0);
    CHECK(fake.tensor_maps.empty());
  }
}

TEST_CASE_METHOD(Fixture,
                 "arrays without elements are copied without an error, or a call of CUDA") {
  const Array there = nothing({3, 0}, f16);
  fake.calls.clear();
  const Array back = there.to(Device::cpu()), again = back.to(Device::cuda(0));
  CHECK(again.shape() == Shape{3, 0});
  CHECK(back.size() == 0);
  CHECK(there.to(Device::cuda(1)).device() == Device::cuda(1));
  for (const auto& call : fake.calls) CHECK_FALSE(std::string_view(call).starts_with("cuMemcpy"));
}

TEST_CASE_METHOD(Fixture, "a raw pointer is found on the device that it leads to") {
  const Array memory = on_gpu(16, 3, 1);
  const Array v = Array::view(memory.data(), {16}, f32);
  CHECK(v.device() == Device::cuda(1));
  std::vector<float> host(4);
  CHECK(Array::view(host.data(), {4}, f32).device() == Device::cpu());
  CHECK(v.to(Device::cpu()).values<float>()[15] == 3.f);
  CHECK(v.to(Device::cuda(0)).to(Device::cpu()).values<float>()[0] == 3.f);
}

TEST_CASE_METHOD(Fixture, "an array of the CPU is refused with the way out") {
  const Kernel add = vector_add();
  const Array x = Array::zeros({8}, f32);
  CHECK_THROWS_WITH(add(x, x), ContainsSubstring("args[0] is on cpu") &&
                                   ContainsSubstring(".to(pl::Device::cuda(0))") &&
                                   ContainsSubstring("launch_test.cpp"));
}

TEST_CASE_METHOD(Fixture, "overlapping arrays are refused on the hot path too") {
  const Kernel add = vector_add();
  const Array x = on_gpu(100), y = on_gpu(100), z = on_gpu(100);
  add.into({z}, {x, y});
  const std::size_t launched = fake.launch_count;
  CHECK_THROWS_WITH(add.into({x}, {x, y}), ContainsSubstring("outputs[0] overlaps args[0]"));
  CHECK_THROWS_WITH(add.into({y}, {x, y}), ContainsSubstring("outputs[0] overlaps args[1]"));
  CHECK(fake.launch_count == launched);
}

TEST_CASE_METHOD(Fixture, "a cached cubin that the driver rejects is compiled anew and replaced") {
  const Kernel add = vector_add("healing_add");
  const Array x = on_gpu(8);
  const Lowered lowered = add.lower(x, x);
  const Compiled good = lowered.compile({.arch = "sm_90a"});
  const cache::Store store = runtime::store();
  auto entry = store.list();
  REQUIRE(entry.size() == 1);
  auto damaged = *store.load(entry[0]);
  damaged.cubin.assign(64, std::byte{1});
  REQUIRE(store.publish(damaged));
  add(x, x);
  CHECK(fake.launches.size() == 1);
  const auto healed = store.load(store.list().at(0));
  REQUIRE(healed);
  CHECK(healed->cubin.size() == good.cubin().size());
}

TEST_CASE_METHOD(Fixture,
                 "each way to reject a cubin has it compiled anew once, and then is an error") {
  for (const int result : {200, 209, 218, 222}) {
    const std::string name = "rejected_" + std::to_string(result);
    const Kernel add = vector_add(name.c_str());
    const Array x = on_gpu(8);
    add.lower(x, x).compile({.arch = "sm_90a"});
    fake.results["cuLibraryLoadData"] = result;
    const std::size_t loads = fake.count("cuLibraryLoadData");
    const std::int64_t misses = cache_stats().misses;
    const test::CapturedStderr log;
    CHECK_THROWS_WITH(add(x, x), ContainsSubstring("the driver rejects the cubin of '" + name) &&
                                     ContainsSubstring("sm_90a") &&
                                     ContainsSubstring("cuLibraryLoadData"));
    CHECK(fake.count("cuLibraryLoadData") == loads + 2);
    CHECK(cache_stats().misses == misses + 1);
    CHECK_THAT(log.text(), ContainsSubstring("the driver rejects the cached cubin"));
    fake.results.clear();
    add(x, x);
    CHECK(fake.launches.back().kernel == name + "_kernel");
  }
}

TEST_CASE_METHOD(Fixture, "HIDDEN rejection", "[.]") {
  const Kernel add = vector_add("rejected_once");
  const Array x = on_gpu(8);
  add.lower(x, x).compile({.arch = "sm_90a"});
  fake.results["cuLibraryLoadData"] = 209;
  CHECK_THROWS_AS(add(x, x), CudaError);
}

TEST_CASE("a rejection is an event with kernel, key and reason") {
  const test::Finished child =
      test::run_hidden("HIDDEN rejection", {{"PALLADIUM_LOG_FORMAT", "json"}});
  INFO(child.out);
  CHECK(child.status == 0);
  for (const char* part :
       {R"("event":"reject")", R"("kernel":"rejected_once")", R"("arch":"sm_90a")", R"("key":")",
        R"("reason":"cuLibraryLoadData: no kernel image)"})
    CHECK_THAT(child.err, ContainsSubstring(part));
}

TEST_CASE_METHOD(Fixture, "a failed launch names kernel and shape") {
  const Kernel add = vector_add();
  const Array x = on_gpu(1000), z = on_gpu(1000);
  add.into({z}, {x, x});
  fake.results["cuLaunchKernelEx"] = 1;
  CHECK_THROWS_WITH(add.into({z}, {x, x}), ContainsSubstring("cuLaunchKernelEx") &&
                                               ContainsSubstring("vector_add_kernel") &&
                                               ContainsSubstring("4x1x1"));
}

TEST_CASE_METHOD(Fixture, "threads may call one kernel at once") {
  const Kernel add = vector_add("shared_add");
  const std::size_t before = fake.launch_count;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const Array x = on_gpu(100 + t), z = on_gpu(100 + t);
      for (int i = 0; i < 50; ++i) add.into({z}, {x, x});
    });
  for (std::thread& t : threads) t.join();
  CHECK(fake.launch_count == before + 200);
}

TEST_CASE_METHOD(Fixture, "scalars travel in the argument block with their own size") {
  const Kernel scale = pallas_call([](Value a, Ref x, Ref o) { o[_] = a * x[_]; },
                                   [](ShapeDtype, ShapeDtype x) {
                                     const BlockSpec piece{{256}, [](Index i) { return i; }};
                                     return PallasCallOptions{.name = "scale",
                                                              .out_type = x,
                                                              .grid = {cdiv(x.shape[0], 256)},
                                                              .in_specs = {piece},
                                                              .out_specs = {piece}};
                                   })
                           .on(Target::cuda);
  scale(scalar(2.5f), on_gpu(10));
  const fake_cuda::Launch& launch = fake.launches.back();
  bool found = false;
  for (std::size_t i = 0; i < launch.arguments.size(); ++i)
    found |= launch.arguments[i].size() == 4 && launch.argument<float>(i) == 2.5f;
  CHECK(found);
}

TEST_CASE_METHOD(Fixture, "one softmax cubin serves a hundred row counts") {
  const Kernel softmax = ops::softmax().on(Target::cuda);
  const std::size_t loaded = fake.count("cuLibraryLoadData");
  for (std::int64_t m = 1; m <= 100; ++m) softmax(Array::empty({m, 1000}, f32, Device::cuda(0)));
  CHECK(fake.count("cuLibraryLoadData") == loaded + 1);
  REQUIRE(fake.launches.size() == 100);
  for (unsigned m = 1; m <= 100; ++m) CHECK(fake.launches[m - 1].grid[0] == (m + 3) / 4);
  CHECK(runtime::store().list().size() == 1);
}

TEST_CASE_METHOD(Fixture, "arrays that TMA reads reach the kernel as tensor maps, made once") {
  const Kernel product =
      pallas_call([](Ref x, Ref y, Ref o) { o[_] = dot(x[_], y[_], {.trans_b = true}); },
                  [](ShapeDtype x, ShapeDtype y) {
                    const BlockSpec rows{{64, 64}, [](Index i, Index) { return Indices{i, 0}; }};
                    const BlockSpec columns{{64, 64}, [](Index, Index j) { return Indices{j, 0}; }};
                    const BlockSpec tile{{64, 64}, [](Index i, Index j) { return Indices{i, j}; }};
                    return PallasCallOptions{.name = "fetched_product",
                                             .out_type = ShapeDtype{{x.shape[0], y.shape[0]}, f32},
                                             .grid = {cdiv(x.shape[0], 64), cdiv(y.shape[0], 64)},
                                             .in_specs = {rows, columns},
                                             .out_specs = {tile}};
                  })
          .on(Target::cuda);
  const auto halves = [](std::int64_t rows) {
    return Array::empty({rows, 64}, f16, Device::cuda(0));
  };
  const Array x = halves(108), y = halves(84);
  const Array z = product(x, y);
  REQUIRE(fake.launches.size() == 1);
  REQUIRE(fake.tensor_maps.size() == 2);
  const fake_cuda::TensorMap& map = fake.tensor_maps[0];
  CHECK(map.base == x.data());
  CHECK(map.extents == std::vector<std::uint64_t>{64, 108});
  CHECK(map.strides == std::vector<std::uint64_t>{128});
  CHECK(map.box == std::vector<std::uint32_t>{64, 64});
  CHECK(map.swizzle == 3);
  CHECK(fake.launches[0].arguments[3].size() == sizeof(TensorMap));
  product.into({z}, {x, y});
  product.into({z}, {x, y});
  CHECK(fake.launches.size() == 3);
  CHECK(fake.tensor_maps.size() == 2);
  product.into({z}, {halves(108), y});
  CHECK(fake.tensor_maps.size() == 3);
}
