// run_scoped and with_scoped: on the interpreter, and their text in the emulator.
#include "codegen/cuda/emit.hpp"
#include "tests/interpreter/tensors.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

std::int64_t shared_bytes_of(const graph::Graph& g) {
  return cuda::emit(g, {.compute_capability = 90}).shared_bytes;
}

graph::Graph traced_copy(const Body& body) {
  return traced(body, {.out_type = ShapeDtype{{8, 128}, f32}}, {array({8, 128})});
}

}  // namespace

TEST_CASE("a scope gives what its function returns [C54]") {
  for (const MemorySpace& space : {gpu::SMEM, gpu::REGS}) {
    Tensor x = arange(f32, {8, 128}), o(f32, {8, 128});
    run(
        [=](Ref x, Ref o) {
          o[_] = run_scoped(
              [&](Ref tmp) {
                tmp[_] = x[_] + 1;
                return tmp[_] + 0;
              },
              {space({8, 128}, f32)});
        },
        {}, {&x}, {&o});
    for (int k = 0; k < 1024; ++k) CHECK(o[k] == k + 1);
  }
}

TEST_CASE("scopes stand in each other [C53]") {
  Tensor x(f32, {1}, {1}), y(f32, {1});
  run(
      [](Ref x, Ref y) {
        run_scoped(
            [&](Ref x_copy) {
              x_copy[_] = x[_];
              run_scoped(
                  [&](Ref four) {
                    four[_] = x_copy[_] * 4;
                    y[_] = four[_];
                  },
                  {gpu::SMEM({1}, f32)});
            },
            {gpu::REGS({1}, f32)});
      },
      {}, {&x}, {&y});
  CHECK(y[0] == 4);
}

TEST_CASE("scopes in loops and branches begin with nothing and see what is around them") {
  Tensor x = arange(i32, {4, 16}), o(i32, {16}), s(i32, {1});
  run(
      [](Ref x, Ref o, Ref s) {
        o[_] = zeros({16}, i32);
        s[0] = pl::loop(
            0, 4,
            [&](Index i, Value total) {
              return cond(
                  i % 2 == 0,
                  [&] {
                    const auto [row, sum] = run_scoped(
                        [&](Ref row, Ref last) {
                          row[_] = x[{i, _}] * 2;
                          last[0] = row[15];
                          o[_] += row[_];
                          return carry(row[0] + 0, total + last[0]);
                        },
                        {gpu::SMEM({16}, i32), gpu::REGS({1}, i32)});
                    return sum + row;
                  },
                  [&] { return total; });
            },
            i32(0));
      },
      {}, {&x}, {&o, &s});
  for (int k = 0; k < 16; ++k) CHECK(o[k] == 2 * k + 2 * (32 + k));
  CHECK(s[0] == 30 + 0 + 94 + 64);
}

TEST_CASE("a scope's memory is read across threads and reversed") {
  Tensor x = arange(f32, {256}), o(f32, {256});
  run(
      [](Ref x, Ref o) {
        o[_] = run_scoped(
            [&](Ref tmp) {
              tmp.at({0, _})[_] = x[ds(0, 128)];
              tmp.at({1, _})[_] = x[ds(128, 128)];
              const Value turned = pl::transpose(tmp[_]);
              tmp[_] = zeros({2, 128});
              return pl::reshape(turned, {256});
            },
            {gpu::SMEM({2, 128}, f32)});
      },
      {}, {&x}, {&o});
  for (int k = 0; k < 256; ++k) CHECK(o[k] == k % 2 * 128 + k / 2);
}

TEST_CASE("scopes one after the other share memory, scopes in each other do not") {
  const auto use = [](Ref x, Ref o, auto inner) {
    run_scoped(
        [&](Ref tmp) {
          tmp[_] = x[_];
          inner();
          o[_] = tmp[_] + 1;
        },
        {gpu::SMEM({8, 128}, f32)});
  };
  const auto bytes = [&](const Body& body) { return shared_bytes_of(traced_copy(body)); };
  const std::int64_t once = bytes([=](Ref x, Ref o) { use(x, o, [] {}); });
  CHECK(once == 4096);
  CHECK(bytes([=](Ref x, Ref o) {
          use(x, o, [] {});
          when(x[{0, 0}] > 3, [&] { use(x, o, [] {}); });
          use(x, o, [] {});
        }) == once);
  CHECK(bytes([=](Ref x, Ref o) { use(x, o, [&] { use(x, o, [] {}); }); }) == 2 * once);
}

TEST_CASE("what scopes that share memory left there is nobody's") {
  Tensor x = arange(f32, {8, 128}), o(f32, {8, 128});
  run(
      [](Ref x, Ref o) {
        const auto shifted = [](const Value& v, int by) {
          return run_scoped(
              [&](Ref tmp) {
                tmp[_] = v;
                return pl::reshape(tmp[{_, ds(by, 64)}], {8, 64}) + 0;
              },
              {gpu::SMEM({8, 128}, f32)});
        };
        const Value a = shifted(x[_], 64);
        const Value b = shifted(x[_] * 2, 32);
        o[{_, ds(0, 64)}] = a;
        o[{_, ds(64, 64)}] = b;
      },
      {}, {&x}, {&o});
  for (int r = 0; r < 8; ++r)
    for (int c = 0; c < 64; ++c) {
      CHECK(o[r * 128 + c] == r * 128 + c + 64);
      CHECK(o[r * 128 + c + 64] == 2 * (r * 128 + c + 32));
    }
}

TEST_CASE("with_scoped is a function of what stands before its Refs") {
  struct Both {
    Ref a, b;
  };
  Tensor x(f32, {16}, [](std::int64_t k) { return double(k); }), o(f32, {16});
  run(
      [](Ref x, Ref o) {
        const auto scaled = with_scoped({{"a", gpu::REGS({16}, f32)}, {"b", gpu::SMEM({16}, f32)}})(
            [](Value v, Value by, Both tmp) {
              tmp.a[_] = v * by;
              tmp.b[_] = tmp.a[_] + 1;
              return tmp.b[_] + 0;
            });
        o[_] = scaled(x[_], f32(3)) + scaled(x[_], 1);
      },
      {}, {&x}, {&o});
  for (int k = 0; k < 16; ++k) CHECK(o[k] == 4 * k + 2);
}

TEST_CASE("scratch of a scope is found by its name, or taken as a list") {
  Tensor o(i32, {3});
  run(
      [](Ref o) {
        run_scoped(
            [&](Scratch s) {
              s["n"][_] = zeros({1}, i32);
              o[0] = s["n"][0] + 1;
            },
            {{"m", gpu::REGS({1}, i32)}, {"n", gpu::SMEM({1}, i32)}});
        run_scoped(
            [&](Refs all) {
              all[1][_] = zeros({1}, i32) + 5;
              o[1] = all[1][0];
            },
            {gpu::REGS({1}, i32), gpu::REGS({1}, i32)});
        o[2] = run_scoped([] { return i32(7); }, {});
      },
      {}, {}, {&o});
  CHECK(o.numbers() == std::vector<double>{1, 5, 7});
}

TEST_CASE("a scope that nobody reads and that writes nothing outside is not there") {
  const std::string text = graph::to_text(traced_copy([](Ref x, Ref o) {
    const Value unused = run_scoped(
        [&](Ref tmp) {
          tmp[_] = x[_];
          return tmp[_] + 1;
        },
        {gpu::SMEM({8, 128}, f32)});
    (void)unused;
    o[_] = x[_];
  }));
  CHECK(text.find("run_scoped") == std::string::npos);
}

TEST_CASE("what nobody stored in a scope's memory is not read, in any iteration") {
  Tensor x = arange(f32, {8}), o(f32, {8});
  const std::string failure = failure_of(
      [](Ref x, Ref o) {
        o[_] = x[_];
        pl::loop(0, 2, [&](Index i) {
          run_scoped(
              [&](Ref tmp) {
                when(i == 0, [&] { tmp[_] = x[_]; });
                o[_] = tmp[_] + 1;
              },
              {gpu::SMEM({8}, f32)});
        });
      },
      {}, {&x}, {&o});
  CHECK_THAT(failure, Catch::Matchers::ContainsSubstring("scratch[0] of run_scoped"));
}

TEST_CASE("empty and empty_like have a shape and a dtype") {
  Tensor x = arange(i32, {3}), o(i32, {3}), p(f16, {2, 2});
  run(
      [](Ref x, Ref o, Ref p) {
        CHECK(pl::empty({4, 2}, f16).dtype() == f16);
        CHECK(pl::empty_like(x[_]).shape()[0].same(3));
        o[_] = x[_] + pl::empty_like(x[_]) * 0;
        p[_] = pl::empty({2, 2}, f16) * 0;
      },
      {}, {&x}, {&o, &p});
  CHECK(o.numbers() == std::vector<double>{0, 1, 2});
  CHECK(p.numbers() == std::vector<double>(4, 0));
}
