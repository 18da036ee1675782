// What the trace refuses of values: use beyond their trace, body or thread, and unordered effects.
#include <string>
#include <thread>

#include "tests/errors/refused.hpp"

using Catch::Matchers::ContainsSubstring;
using pl::_;
using pl::test::array;
using pl::test::line;
using pl::test::one_output;
using pl::test::refused;

namespace {

void keep(const pl::Value&) {}

/// Behind an input that the bodies below do not look at.
pl::PallasCallOptions two_outputs() {
  return {.name = "k", .out_type = {{{8}, pl::f32}, {{8}, pl::f32}}};
}

pl::Value twice(const pl::Value& a, const pl::Value& b) { return a + b; }

}  // namespace

TEST_CASE("values are good only in the trace that recorded them") {
  pl::Value leaked;
  pl::test::traced([&](pl::Ref x, pl::Ref) { leaked = x[_]; },
                   {.name = "first", .out_type = {{8}, pl::f32}}, {array({8})});
  refused(
      [&](pl::Ref, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = leaked;
      },
      "store in kernel 'k' uses a value of kernel 'first', whose trace is over or runs on another "
      "thread");
  CHECK_THROWS_WITH(leaked + 1, ContainsSubstring("add: used outside a kernel body"));
  CHECK_THROWS_WITH(pl::zeros({8}), ContainsSubstring("zeros: used outside a kernel body"));
}

TEST_CASE("a kernel traced inside another cannot use its values") {
  refused(
      [](pl::Ref x, pl::Ref) {
        const pl::Value v = x[_];
        const pl::Body inner([=](pl::Ref, pl::Ref q) {
          line = __LINE__ + 1;
          q[_] = v;
        });
        CHECK(pl::trace::tracing());
        CHECK(pl::trace::traced_kernel() == "k");
        pl::trace::trace({&inner, 1}, {.name = "inner", .out_type = {{8}, pl::f32}},
                         pl::test::Arguments{array({8})}, pl::here());
      },
      "store in kernel 'inner' uses a value of kernel 'k', which encloses it; pass it as an "
      "argument");
}

TEST_CASE("a value cannot be used on another thread") {
  std::string message;
  pl::test::traced(
      [&](pl::Ref x, pl::Ref) {
        pl::Value v = x[_];
        std::thread([&] {
          try {
            v = v + 1;
          } catch (const pl::CompileError& e) {
            message = e.what();
          }
        }).join();
      },
      one_output(), {array({8})});
  CHECK_THAT(message, ContainsSubstring("add: used outside a kernel body"));
}

TEST_CASE("a value of a body that has ended must be carried out") {
  refused(
      [](pl::Ref x, pl::Ref o) {
        pl::Value acc = 0.f;
        pl::loop(0, 8, [&](pl::Index i) { acc += x[i]; });
        line = __LINE__ + 1;
        o[0] = acc;
      },
      "inside a body that has ended; carry it out: acc = pl::loop(lo, hi, body, init)");
  refused(
      [](pl::Ref x, pl::Ref) {
        pl::Value inside;
        pl::when(x[0] > 0, [&] { inside = x[1]; });
        line = __LINE__ + 1;
        keep(inside * 2);
      },
      "mul uses a value recorded at values_test.cpp:");
}

TEST_CASE("two effects in one expression are refused") {
  refused(
      [](pl::Ref, pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = twice(pl::swap(x, pl::zeros({8})), pl::swap(o, pl::zeros({8})));
      },
      two_outputs(), {array({8})},
      "two effects in one expression: swap after swap at values_test.cpp:");
  refused(
      [](pl::Ref, pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = twice(x[_], pl::swap(x, pl::zeros({8})));
      },
      two_outputs(), {array({8})}, "a read and a write of one Ref in one expression");
  refused(
      [](pl::Ref, pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = twice(pl::exp(x[_]), pl::swap(x, pl::zeros({8})));
      },
      two_outputs(), {array({8})}, "a read and a write of one Ref in one expression");
  refused(
      [](pl::Ref, pl::Ref x, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = twice(pl::load(x), pl::swap(x, pl::zeros({8})));
      },
      two_outputs(), {array({8})}, "a read and a write of one Ref in one expression");
  refused(
      [](pl::Ref, pl::Ref x, pl::Ref o) {
        const auto fill = [](pl::Ref r) {
          return [=](pl::Index i, pl::Value c) {
            r[i] = c;
            return c + 1;
          };
        };
        line = __LINE__ + 1;
        keep(twice(pl::loop(0, 4, fill(x), 0.f), pl::loop(0, 4, fill(o), 0.f)));
      },
      two_outputs(), {array({8})}, "two effects in one expression: loop after loop");
}

TEST_CASE("effects whose order the language fixes are allowed") {
  const auto allowed = [](const pl::Body& body) {
    CHECK_NOTHROW(pl::test::traced(body, two_outputs(), {array({8})}));
  };
  allowed([](pl::Ref, pl::Ref x, pl::Ref o) { o[_] = pl::swap(x, pl::zeros({8})); });
  allowed([](pl::Ref, pl::Ref x, pl::Ref o) { o[_] = pl::swap(x, pl::exp(x[_])); });
  allowed([](pl::Ref, pl::Ref x, pl::Ref o) { o[_] = twice(pl::swap(x, twice(x[_], 1)), 2); });
  allowed([](pl::Ref, pl::Ref x, pl::Ref o) {
    const pl::Value a = pl::swap(x, o[_]);
    const pl::Value b = pl::swap(x, a);
    pl::swap(o, b);
    pl::swap(o, a);
  });
  allowed([](pl::Ref, pl::Ref x, pl::Ref o) { x[_] += twice(pl::swap(o, x[_]), 1); });
  allowed([](pl::Ref, pl::Ref x, pl::Ref o) { o[_] = twice(o[_], pl::swap(x, pl::zeros({8}))); });
}

TEST_CASE("a store to an input that no output is aliased to is refused, by whatever operation") {
  const auto check = [](const char* what, const pl::Body& body, pl::Location at = pl::here()) {
    line = at.line;
    refused(body, one_output(), {array({8})},
            "kernel 'k': " + std::string(what) +
                ": args[0] is an input to which no output is aliased, so that nobody would see it "
                "change: store to outputs[0], or let the two share memory: .input_output_aliases = "
                "{{0, 0}}",
            at);
  };
  const auto turned = [](pl::Ref x) { return x.reshape({2, 4}).transpose({1, 0}); };
  check("store", [](pl::Ref x, pl::Ref) { x[_] = pl::zeros({8}); });
  check("store", [](pl::Ref x, pl::Ref) { x[3] = 1.f; });
  check("store", [](pl::Ref x, pl::Ref) { x[_] += 1.f; });
  check("store", [](pl::Ref x, pl::Ref) { pl::store(x, x[_], {.mask = x[_] > 0}); });
  check("store", [](pl::Ref x, pl::Ref) { x.at({pl::ds(2, 4)})[_] = pl::zeros({4}); });
  check("store", [](pl::Ref x, pl::Ref) { x.reshape({2, 4})[0] = pl::zeros({4}); });
  check("store", [=](pl::Ref x, pl::Ref) { turned(x)[0] = pl::zeros({2}); });
  check("store", [](pl::Ref x, pl::Ref) { x.bitcast(pl::i32)[0] = 1; });
  check("swap", [](pl::Ref x, pl::Ref o) { o[_] = pl::swap(x, pl::zeros({8})); });
  check("addupdate", [](pl::Ref x, pl::Ref) { pl::addupdate(x, pl::zeros({8})); });
  check("atomic_add", [](pl::Ref x, pl::Ref) { pl::atomic_add(x.at({0}), 1.f); });
  check("atomic_max", [](pl::Ref x, pl::Ref) { pl::atomic_max(x.at({0}).bitcast(pl::i32), 1); });
  check("atomic_cas", [](pl::Ref x, pl::Ref) { pl::atomic_cas(x.bitcast(pl::i32).at({0}), 0, 1); });
  check("store", [](pl::Ref x, pl::Ref) { pl::loop(0, 8, [&](pl::Index i) { x[i] = 0.f; }); });
}

TEST_CASE("of an input that no output can be aliased to, scratch and an output are the advice") {
  refused(
      [](pl::Ref x, pl::Ref) {
        line = __LINE__ + 1;
        x[_] = pl::zeros({4});
      },
      one_output(), {array({4})},
      "store to scratch (.scratch_types), or to an output of its type, which "
      ".input_output_aliases = {{0, number of the output}} lets share its memory");
}

TEST_CASE("outputs, aliased inputs, scratch and memory of a scope may be stored to") {
  pl::PallasCallOptions in_place = one_output();
  in_place.input_output_aliases = {{0, 0}};
  CHECK_NOTHROW(pl::test::traced([](pl::Ref x, pl::Ref) { x[_] += 1.f; }, in_place, {array({8})}));
  pl::PallasCallOptions with_scratch = one_output();
  with_scratch.scratch_types = {pl::gpu::SMEM({8}, pl::f32)};
  CHECK_NOTHROW(pl::test::traced(
      [](pl::Ref x, pl::Ref o, pl::Ref s) {
        s[_] = x[_];
        pl::run_scoped(
            [&](pl::Ref t) {
              t[_] = s[_];
              o[_] = t[_];
            },
            {pl::gpu::SMEM({8}, pl::f32)});
      },
      with_scratch, {array({8})}));
}
