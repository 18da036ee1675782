// Operands that several products read, and others besides: interpreter and emulator agree.
#include <catch2/catch_test_macros.hpp>

#include "codegen/base/format.hpp"
#include "tests/user_kernels/along_k.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

struct Case {
  const char* name;
  std::function<Value(const Value& x, const Value& y, const Value& sum)> next;
};

Value turned(const Value& a, const Value& b) { return dot(a, b, {.trans_b = true}); }
Value from_above(const Value& a, const Value& b) { return dot(a, b, {.trans_a = true}); }
Value row(const Value& x) { return pl::sum(x.astype(f32), {.axis = {1}, .keepdims = true}); }

// Of blocks of 64 x 64 each.
const Case cases[] = {
    {"x x", [](const Value& x, const Value&, const Value& s) { return s + dot(x, x); }},
    {"x x^T", [](const Value& x, const Value&, const Value& s) { return s + turned(x, x); }},
    {"x^T x", [](const Value& x, const Value&, const Value& s) { return s + from_above(x, x); }},
    {"x^T x^T", [](const Value& x, const Value&,
                   const Value& s) { return s + dot(x, x, {.trans_a = true, .trans_b = true}); }},
    {"x y + y x",
     [](const Value& x, const Value& y, const Value& s) { return s + dot(x, y) + dot(y, x); }},
    {"x y + x y^T",
     [](const Value& x, const Value& y, const Value& s) { return s + dot(x, y) + turned(x, y); }},
    {"x y + x^T y", [](const Value& x, const Value& y,
                       const Value& s) { return s + dot(x, y) + from_above(x, y); }},
    {"x y, and x besides",
     [](const Value& x, const Value& y, const Value& s) { return s + dot(x, y) + row(x); }},
    {"x y + x y^T, and both besides",
     [](const Value& x, const Value& y, const Value& s) {
       return s + dot(x, y) + row(y) + turned(x, y) + row(x) + x.astype(f32);
     }},
    {"x y twice",
     [](const Value& x, const Value& y, const Value& s) { return s + dot(x, y) + dot(x, y); }},
    {"(x y) y", [](const Value& x, const Value& y,
                   const Value& s) { return s + dot((dot(x, y) * 0.125f).astype(x.dtype()), y); }},
    {"(x y) x + x",
     [](const Value& x, const Value& y, const Value& s) {
       return s + dot((dot(x, y) * 0.125f).astype(x.dtype()), x) + x.astype(f32);
     }},
    {"(x x^T) x",
     [](const Value& x, const Value&, const Value& s) {
       return s + dot((turned(x, x) * 0.125f).astype(x.dtype()), x);
     }},
    {"relu(x) y + x relu(y)", [](const Value& x, const Value& y,
                                 const Value& s) { return s + dot(relu(x), y) + dot(x, relu(y)); }},
    {"relu(x) y + relu(x) x",
     [](const Value& x, const Value& y, const Value& s) {
       const Value r = relu(x);
       return s + dot(r, y) + dot(r, x);
     }},
    {"x y scaled by x", [](const Value& x, const Value& y,
                           const Value& s) { return s * row(x) * 0.0625f + dot(x, y); }},
    {"x y if a condition says so",
     [](const Value& x, const Value& y, const Value& s) {
       return cond(
           pl::sum(x.astype(f32)) > 0, [&] { return s + dot(x, y); },
           [&] { return s - dot(y, x); });
     }},
    {"x y, and x x if a condition says so",
     [](const Value& x, const Value& y, const Value& s) {
       const Value sum = s + dot(x, y);
       return cond(
           pl::sum(y.astype(f32)) > 0, [&] { return sum + dot(x, x); }, [&] { return sum; });
     }},
    {"x y in a loop of two",
     [](const Value& x, const Value& y, const Value& s) {
       return loop(
           0, 2, [&](Index, Value sum) { return sum + dot(x, y); }, s + dot(y, x));
     }},
};

enum class Style { loop, grid, once };

graph::Graph kernel(const Case& c, Style style, DType type, int stages) {
  const int steps = 3;
  PallasCallOptions options{.name = "operands",
                            .out_type = ShapeDtype{{128, 64}, f32},
                            .compiler_params = {.num_stages = stages}};
  const std::vector<trace::ArgumentType> types{array({128, 64 * steps}, type),
                                               array({64 * steps, 64}, type)};
  if (style == Style::grid) {
    options.grid = {2, steps};
    options.in_specs = {{{64, 64},
                         [](Index i, Index k) {
                           return Indices{i, k};
                         }},
                        {{64, 64}, [](Index, Index k) {
                           return Indices{k, 0};
                         }}};
    options.out_specs = {{{64, 64}, [](Index i, Index) { return Indices{i, 0}; }}};
    options.scratch_types = {gpu::REGS({64, 64}, f32)};
    options.compiler_params.dimension_semantics = {parallel, sequential};
    return traced(
        [=](Ref a, Ref b, Ref o, Ref s) {
          const Value k = program_id(1);
          when(k == 0, [&] { s[_] = zeros({64, 64}, f32); });
          s[_] = c.next(a[_], b[_], s[_]);
          when(k == steps - 1, [&] { o[_] = s[_]; });
        },
        options, types);
  }
  options.grid = {2};
  options.in_specs = {{{64, 64 * steps},
                       [](Index i) {
                         return Indices{i, 0};
                       }},
                      {{64 * steps, 64}, [](Index) {
                         return Indices{0, 0};
                       }}};
  options.out_specs = {{{64, 64}, [](Index i) { return Indices{i, 0}; }}};
  return traced(
      [=](Ref a, Ref b, Ref o) {
        const auto add = [&](Value k, Value sum) {
          const Slice now = ds(k * 64, 64);
          return c.next(a[{_, now}], b[{now, _}], sum);
        };
        const Value zero = zeros({64, 64}, f32);
        o[_] = style == Style::once ? add(Value(1), zero) : loop(0, steps, add, zero);
      },
      options, types);
}

}  // namespace

TEST_CASE("products of shared operands agree, in every style") {
  std::size_t number = 0;
  for (const Case& c : cases)
    for (const Style style : {Style::loop, Style::grid, Style::once})
      for (const int cc : {90, 80})
        for (const DType type : {f16, bf16}) {
          // Two of the twelve, of each case others.
          const std::size_t turn = (number + number / 12 * 5) % 12;
          ++number;
          if (!is_full() && turn != 0 && turn != 5) continue;
          const int stages = number % 2 == 0 ? 0 : 2;
          INFO(c.name << ", style " << static_cast<int>(style) << ", of " << type.name() << " on "
                      << cc);
          try {
            CHECK(problem_of(kernel(c, style, type, stages), {}, cc) == "");
          } catch (const std::exception& e) {
            FAIL_CHECK(e.what());
          }
        }
}
