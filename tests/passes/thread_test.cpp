// The program of a thread: facts of expressions, placement, and the passes over it.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <functional>
#include <random>

#include "codegen/cuda/printer.hpp"
#include "codegen/graph/fold.hpp"
#include "codegen/thread/builder.hpp"
#include "codegen/thread/evaluate.hpp"
#include "codegen/thread/vectorize.hpp"
#include "palladium/error.hpp"

namespace {

using namespace palladium;
using namespace palladium::thread;
using Catch::Matchers::ContainsSubstring;

ExprId declared(Exprs& e, const char* name, Facts facts = {}) {
  return e.variable(e.declare({.name = name, .type = i32, .facts = facts}));
}

// The text between the kernel's first line and its last two.
std::string printed(Program& p) {
  const std::string text = cuda::print(p).text;
  const std::size_t first = text.find('\n') + 1;
  return text.substr(first, text.find("}\nPL_EXPORT") - first);
}

For loop_over(Exprs& e, ExprId counter, std::int64_t count) {
  return {.counter = e[counter].variable, .low = e.number(0), .high = e.number(count), .body = {}};
}

TEST_CASE("equal expressions are one") {
  Exprs e;
  const ExprId t = declared(e, "t"), j = declared(e, "j");
  CHECK(e.sum(Affine::term(t, 4) + Affine(1)) == e.sum(Affine::term(t, 4) + Affine(1)));
  CHECK(e.sum(Affine::term(t, 4) + Affine(1)) != e.sum(Affine::term(t, 4) + Affine(2)));
  CHECK(e.sum(Affine::term(t)) == t);
  CHECK(e.sum(Affine::term(t) + Affine::term(j) + Affine::term(t, -1)) == j);
  CHECK(e.sum(Affine(3)) == e.number(3));
  CHECK(e.call(device::Row::thread, i32, {}) != e.call(device::Row::thread, u32, {}));
}

TEST_CASE("a sum of a sum is flat, and its terms keep their order") {
  Exprs e;
  const ExprId t = declared(e, "t"), j = declared(e, "j");
  const ExprId inner = e.sum(Affine::term(j) + Affine::term(t, 4) + Affine(1));
  const Affine outer = e.affine(inner) * 2 + Affine::term(t, -8);
  CHECK(outer.terms().size() == 1);
  CHECK(outer.coefficient(j) == 2);
  CHECK(outer.constant() == 2);
}

TEST_CASE("an access is as wide as its address, its bounds and its alignment allow") {
  Exprs e;
  const ExprId k = declared(e, "k", {.multiple = 4, .low = 0, .high = 400});
  const ExprId element = declared(e, "e", {.low = 0, .high = 3, .depends = on_element});
  const auto size = [&](std::int64_t multiple) {
    return declared(e, "size", {.multiple = multiple});
  };
  const Affine at = Affine::term(k) + Affine::term(element);
  const auto width = [&](const Affine& offset, std::int64_t alignment, const Bounds& bounds) {
    const Address a{.offset = offset, .alignment = alignment, .dtype = f32};
    const Width w = width_of(e, a, bounds, element, 4);
    return std::pair(w.width, w.part);
  };
  const std::pair whole(4, false), part(4, true), one(1, false);
  CHECK(width(at, 4, {}) == whole);
  CHECK(width(at, 2, {}) == std::pair(2, false));
  CHECK(width(at + Affine(2), 4, {}) == std::pair(2, false));
  CHECK(width(at * 2, 4, {}) == one);
  CHECK(width(at, 4, {{at, size(8)}}) == whole);
  CHECK(width(at, 4, {{at, size(1)}}) == part);
  CHECK(width(at, 4, {{Affine::term(k), size(1)}}) == whole);
  CHECK(width(at, 4, {{at, size(1), true}}) == one);
  // Half of the elements are tested by the one of twice the size.
  const ExprId half = declared(e, "half", {.depends = on_element});
  CHECK(width(at, 4, {{Affine::term(half), size(1)}}) == one);
  CHECK(width(at + Affine::term(half, 4), 4, {}) == one);
}

TEST_CASE("what a value is a multiple of follows from what it is made of") {
  Exprs e;
  const ExprId i = declared(e, "i", {.multiple = 6, .low = 0, .high = 600});
  CHECK(e.multiple(Affine::term(i, 8)) == 48);
  CHECK(e.multiple(Affine::term(i, 8) + Affine(32)) == 16);
  CHECK(e.multiple(Affine()) == 0);
  CHECK(e.facts(e.bits(i, 0b11000, 2)).multiple == 2);
  CHECK(e.facts(e.plain(Operator::div, i, e.number(3))).multiple == 2);
  CHECK(e.facts(e.plain(Operator::div, i, e.number(4))).multiple == 1);
}

TEST_CASE("arithmetic that may wrap keeps only the powers of two of a multiple") {
  Exprs e;
  const ExprId small = declared(e, "i", {.multiple = 1, .low = 0, .high = 100});
  const ExprId any = declared(e, "n");
  const ExprId by = e.literal(i32, graph::to_bits(i32, std::int64_t{24}));
  CHECK(e.facts(e.op(graph::Op::Mul, i32, {small, by})).multiple == 24);
  CHECK(e.facts(e.op(graph::Op::Mul, i32, {any, by})).multiple == 8);
}

TEST_CASE("nothing is said of a multiple or an interval that 64 bits do not hold") {
  Exprs e;
  const ExprId i = declared(
      e, "i", {.multiple = std::int64_t{1} << 40, .low = 0, .high = std::int64_t{1} << 60});
  const Facts facts = e.facts(Affine::term(i, std::int64_t{1} << 40));
  CHECK(facts.multiple == 1);
  CHECK(facts.high == INT64_MAX);
  CHECK(e.facts(Affine::term(i, INT64_MIN)).multiple == 1);
  CHECK_FALSE(evaluate(e, e.sum(Affine::term(i, 8), i64),
                       [](VariableId) { return std::int64_t{1} << 62; }));
}

TEST_CASE("an expression may double its size as often as it likes") {
  Exprs e;
  ExprId x = declared(e, "x");
  for (int i = 0; i < 200; ++i) x = e.op(graph::Op::Add, i32, {x, x});
  CHECK(e.size(x) == 1 << 20);
}

// A random integer expression over `variables`.
ExprId draw(Exprs& e, const std::vector<ExprId>& variables, std::mt19937& random, int depth) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto inner = [&] { return draw(e, variables, random, depth - 1); };
  const auto constant = [&] { return std::int64_t{below(97)} - 24; };
  if (depth == 0)
    return below(3) == 0
               ? e.number(constant())
               : variables[static_cast<std::size_t>(below(static_cast<int>(variables.size())))];
  switch (below(9)) {
  case 0:
  case 1:
    return e.sum(Affine::term(inner(), constant()) + Affine::term(inner()) + Affine(constant()));
  case 2: return e.bits(inner(), 0b1111 << below(4), below(4));
  case 3: return e.plain(Operator::div, inner(), e.number(1 + below(12)));
  case 4: return e.plain(Operator::rem, inner(), e.number(1 + below(12)));
  case 5: return e.plain(Operator::sub, inner(), inner());
  case 6: return e.plain(below(2) == 0 ? Operator::bit_or : Operator::bit_xor, inner(), inner());
  case 7: {
    constexpr graph::Op ops[] = {graph::Op::Add, graph::Op::Sub, graph::Op::Mul, graph::Op::Min,
                                 graph::Op::Max, graph::Op::Div, graph::Op::Rem};
    return e.op(ops[below(7)], i32, {inner(), inner()});
  }
  default: return e.choose(e.plain(Operator::less, inner(), inner(), bool_), inner(), inner());
  }
}

TEST_CASE("an operation on numbers that are known is what it is of constants") {
  constexpr graph::Op ops[] = {graph::Op::Add, graph::Op::Sub,       graph::Op::Mul,
                               graph::Op::Min, graph::Op::Max,       graph::Op::Div,
                               graph::Op::Rem, graph::Op::ShiftLeft, graph::Op::ShiftRight,
                               graph::Op::And, graph::Op::Or,        graph::Op::Xor};
  constexpr std::int64_t numbers[] = {0, 1, -1, 2, 7, -7, 31, 32, 100, INT32_MAX, INT32_MIN};
  for (const graph::Op op : ops)
    for (const DType t : {i32, u32, i8})
      for (const std::int64_t a : numbers)
        for (const std::int64_t b : numbers) {
          const std::uint64_t bits[] = {graph::to_bits(t, a), graph::to_bits(t, b)};
          Exprs e;
          const auto n = evaluate(e, e.op(op, t, {e.literal(t, bits[0]), e.literal(t, bits[1])}),
                                  [](VariableId) { return std::optional<std::int64_t>(); });
          const auto folded = graph::fold(op, t, t, bits);
          INFO(graph::info(op).name << " of " << t.name() << " " << a << " and " << b);
          REQUIRE(folded.has_value());
          REQUIRE(n == graph::to_int(t, *folded));
        }
}

TEST_CASE("every value of a random expression agrees with the facts about it") {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    Exprs e;
    std::vector<ExprId> variables;
    std::vector<std::int64_t> multiples;
    for (const std::int64_t multiple : {1, 4, 24}) {
      variables.push_back(
          declared(e, "v", {.multiple = multiple, .low = -multiple * 8, .high = multiple * 40}));
      multiples.push_back(multiple);
    }
    const ExprId root = draw(e, variables, random, 4);
    const Facts& facts = e.facts(root);
    for (int sample = 0; sample < 20; ++sample) {
      std::vector<std::int64_t> drawn;
      for (const std::int64_t m : multiples)
        drawn.push_back(m * (static_cast<std::int64_t>(random() % 49) - 8));
      const auto n = evaluate(e, root, [&](VariableId v) { return drawn[index(v)]; });
      REQUIRE(n.has_value());
      INFO("round " << round << ": " << *n << " in [" << facts.low << ", " << facts.high
                    << "], multiple of " << facts.multiple);
      REQUIRE(*n >= facts.low);
      REQUIRE(*n <= facts.high);
      REQUIRE((facts.multiple == 0 ? *n == 0 : *n % facts.multiple == 0));
    }
  }
}

TEST_CASE("a value is named in the outermost block in which all that it depends on is known") {
  Program p;
  Exprs& e = p.exprs;
  Builder b(p);
  const ExprId r = declared(e, "r", {.depends = on_repetition(0)});
  const ExprId k = declared(e, "k", {.depends = on_element});
  b.open_nest();
  b.open_loop(loop_over(e, r, 4), on_repetition(0));
  b.open_loop(loop_over(e, k, 8), on_element | in_element);
  const auto let = [&](ExprId x) {
    return b.let({.name = "x", .temporary = true, .type = i32}, x);
  };
  const ExprId inner = let(e.plain(Operator::mul, k, r));
  const ExprId middle = let(e.plain(Operator::mul, r, r));
  const ExprId outer = let(e.plain(Operator::mul, e.number(3), e.number(5)));
  b.add(Assign{k, e.sum(Affine::term(inner) + Affine::term(middle) + Affine::term(outer))});
  CHECK((e.depends(inner) & in_element) != 0);
  CHECK((e.depends(middle) & in_element) == 0);
  b.close_nest_loops();
  b.close();
  p.body = b.finish();
  number_temporaries(p);
  CHECK(printed(p) == R"(  {
    const i32 x0 = 3 * 5;
    PL_UNROLL for (i32 r = 0; r < 4; ++r) {
      const i32 x1 = r * r;
      PL_UNROLL for (i32 k = 0; k < 8; ++k) {
        const i32 x2 = k * r;
        k = x2 + x1 + x0;
      }
    }
  }
)");
}

TEST_CASE("a value that is asked for again has its name, before the loops that do not change it") {
  Program p;
  Builder b(p);
  Exprs& e = p.exprs;
  const ExprId t = b.let_here("t", e.call(device::Row::thread, i32, {}));
  const ExprId r = declared(e, "r", {.low = 0, .high = 3});
  const ExprId four = e.sum(Affine::term(t, 4)), both = e.sum(Affine::term(t) + Affine::term(r));
  b.open_loop(loop_over(e, r, 4));
  const ExprId i = b.let_once("i", false, four);
  CHECK(b.let_once("i", false, four) == i);
  CHECK(b.let_once("j", false, t) == t);
  const ExprId inside = b.let_once("i", false, both);
  b.close();
  CHECK(b.let_once("start", true, four) == i);
  const ExprId s = declared(e, "s", {.low = 0, .high = 3});
  b.open_loop(loop_over(e, s, 4));
  CHECK(b.let_once("i", false, both) != inside);
  b.close();
  p.body = b.finish();
  CHECK_THAT(printed(p), ContainsSubstring("const i32 i = t * 4;\n  PL_UNROLL for (i32 r") &&
                             ContainsSubstring("  const i32 i_b = t + r;"));
}

TEST_CASE("loads stand before the values of their block, but for those that wait for one") {
  Program p;
  Exprs& e = p.exprs;
  Builder b(p);
  const VariableId memory =
      e.declare({.name = "m", .form = Form::pointer, .type = i32, .writable = false});
  b.open_nest();
  const auto load = [&](ExprId at) {
    const VariableId a = e.declare({.name = "a", .temporary = true, .type = i32});
    b.place(0, a,
            {Load{{.function = device::Row::load_global,
                   .registers = e.address(a),
                   .place = {.base = e.variable(memory), .offset = at, .type = i32}}},
             {}});
    return e.variable(a);
  };
  const auto let = [&](ExprId x) {
    return b.let({.name = "x", .temporary = true, .type = i32}, x);
  };
  const ExprId value = let(e.plain(Operator::mul, e.number(2), e.number(3)));
  const ExprId early = load(e.number(7)), late = load(value);
  let(e.sum(Affine::term(early) + Affine::term(late)));
  b.close();
  p.body = b.finish();
  number_temporaries(p);
  CHECK(printed(p) == R"(  {
    i32 a0;
    pl::load_global<1>(&a0, m + 7);
    const i32 x1 = 2 * 3;
    i32 a2;
    pl::load_global<1>(&a2, m + x1);
    const i32 x3 = a0 + a2;
  }
)");
}

// A program of statements that are appended by `fill`.
template <class F>
Program program(F&& fill) {
  Program p;
  Builder b(p);
  fill(p.exprs, b);
  p.body = b.finish();
  return p;
}

TEST_CASE("a name that nobody uses goes, and with it what it alone used") {
  Program p = program([](Exprs& e, Builder& b) {
    const ExprId t = b.let_here("t", e.call(device::Row::thread, i32, {}));
    const ExprId i = b.let_here("i", e.sum(Affine::term(t, 4)));
    b.let_here("n", e.sum(Affine::term(i) + Affine(1)));
    const ExprId kept = b.let_here("kept", e.call(device::Row::lane, i32, {}));
    b.open(If{e.plain(Operator::less, kept, e.number(3), bool_), {}});
    b.close();
  });
  drop_unused(p);
  CHECK(printed(p) == "  const i32 kept = pl::lane();\n  if (kept < 3) {\n  }\n");
}

TEST_CASE("a program in which a variable is used out of its scope is an InternalError") {
  Program p = program([](Exprs& e, Builder& b) {
    b.open(Block{});
    const ExprId t = b.let_here("t", e.call(device::Row::thread, i32, {}));
    b.close();
    b.add(Check{e.plain(Operator::less, t, e.number(3), bool_), "m"});
  });
  CHECK_THROWS_WITH(verify(p), ContainsSubstring("'t' is used out of its scope"));
}

TEST_CASE(
    "a program that declares a variable twice, or assigns another type, is an InternalError") {
  Program twice = program([](Exprs& e, Builder& b) {
    const VariableId v = e.declare({.name = "v", .type = i32});
    b.add(Declare{.variable = v});
    b.add(Declare{.variable = v});
  });
  CHECK_THROWS_WITH(verify(twice), ContainsSubstring("'v' is declared twice"));
  Program other = program([](Exprs& e, Builder& b) {
    const VariableId v = e.declare({.name = "v", .type = i32});
    b.add(Declare{.variable = v});
    b.add(Assign{e.variable(v), e.literal(f32, 0)});
  });
  CHECK_THROWS_WITH(verify(other), ContainsSubstring("'v'") && ContainsSubstring("type"));
}

TEST_CASE("two names of one scope, and a use of what another hides, are an InternalError") {
  const Program beside = program([](Exprs& e, Builder& b) {
    for (int i = 0; i < 2; ++i)
      b.add(Declare{.variable = e.declare({.name = "rest", .type = i32})});
  });
  CHECK_THROWS_WITH(verify(beside),
                    ContainsSubstring("two variables of one scope are called 'rest'"));
  const auto nested = [](bool uses_outer) {
    return program([=](Exprs& e, Builder& b) {
      const VariableId outer = e.declare({.name = "rest", .type = i32}),
                       inner = e.declare({.name = "rest", .type = i32});
      b.add(Declare{.variable = outer});
      b.open(Block{});
      b.add(Declare{.variable = inner});
      b.add(Assign{e.variable(uses_outer ? outer : inner), e.number(1)});
      b.close();
      b.add(Assign{e.variable(outer), e.number(2)});
    });
  };
  CHECK_NOTHROW(verify(nested(false)));
  CHECK_THROWS_WITH(verify(nested(true)),
                    ContainsSubstring("'rest' is hidden by another of its name"));
}

TEST_CASE("what stands behind loads that come first names what they load, checks too") {
  VariableId pointer = no_variable;
  Program p = program([&](Exprs& e, Builder& b) {
    pointer = e.declare({.name = "from", .form = Form::pointer, .type = i32});
    const ExprId from = e.variable(pointer);
    const ExprId r = declared(e, "r", {.low = 0, .high = 1});
    b.open(loop_over(e, r, 2));
    const VariableId a = e.declare({.name = "a", .type = i32});
    const Place place{.base = from, .offset = r, .type = i32, .unwritten = true};
    b.add(Declare{.variable = a});
    b.add(
        Load{{.function = device::Row::load_global_nc, .registers = e.address(a), .place = place}});
    const ExprId small = e.plain(Operator::less, e.variable(a), e.number(3), bool_);
    b.add(Check{.condition = small, .message = "{}", .value = e.variable(a), .test = small});
    b.add(
        Store{{.function = device::Row::store_global, .registers = e.address(a), .place = place}});
    b.close();
  });
  p.names = {pointer};
  load_first(p);
  CHECK_NOTHROW(verify(p));
  CHECK_THAT(printed(p),
             ContainsSubstring("if (a[r] < 3) pl::check_value(a[r] < 3, a[r], \"{}\")"));
}

TEST_CASE("of shared memory a loop loads before it stores, unless it writes there") {
  for (const bool unwritten : {true, false}) {
    VariableId base = no_variable;
    Program p = program([&](Exprs& e, Builder& b) {
      base = e.declare({.name = "smem", .type = u32});
      const ExprId r = declared(e, "r", {.low = 0, .high = 3});
      const Place from{.base = e.variable(base),
                       .offset = r,
                       .type = i32,
                       .shared = true,
                       .unwritten = unwritten};
      Place to = from;
      to.unwritten = false;
      b.open(loop_over(e, r, 4));
      const VariableId a = e.declare({.name = "a", .type = i32});
      b.add(Declare{.variable = a});
      b.add(Load{{.function = device::Row::load_shared, .registers = e.address(a), .place = from}});
      b.add(Store{{.function = device::Row::store_shared, .registers = e.address(a), .place = to}});
      b.close();
    });
    p.names = {base};
    load_first(p);
    CHECK_NOTHROW(verify(p));
    std::size_t loops = 0;
    for (const Statement& s : p.body) loops += std::holds_alternative<For>(s.what);
    CHECK(loops == (unwritten ? 2 : 1));
    CHECK((printed(p).find("i32 a[4];") != std::string::npos) == unwritten);
  }
}

TEST_CASE("a function that acts is a statement, never a part of an expression") {
  Program p = program(
      [](Exprs& e, Builder& b) { b.let_here("x", e.call(device::Row::atomic_add, i32, {})); });
  CHECK_THROWS_WITH(verify(p), ContainsSubstring("'atomic_add' acts"));
}

TEST_CASE("a program that assigns to a constant is an InternalError") {
  Program p = program([](Exprs& e, Builder& b) {
    const ExprId t = b.let_here("t", e.call(device::Row::thread, i32, {}));
    b.add(Assign{t, e.number(3)});
  });
  CHECK_THROWS_WITH(verify(p), ContainsSubstring("'t' is a constant"));
}

TEST_CASE("operators are spelled with the parentheses that C++ needs, and no others") {
  Program p = program([](Exprs& e, Builder& b) {
    const ExprId x = declared(e, "x"), y = declared(e, "y"), s = e.sum(Affine::term(x) + Affine(1));
    b.let_here("a", e.plain(Operator::mul, s, y));
    b.let_here("b", e.plain(Operator::sub, y, s));
    b.let_here("c", e.plain(Operator::sub, s, y));
    b.let_here("d", e.plain(Operator::div, e.plain(Operator::div, x, y), s));
    b.let_here("e", e.plain(Operator::div, x, e.plain(Operator::mul, x, y)));
    b.let_here("f", e.sum(Affine::term(x, -1) + Affine::term(y, -2) + Affine(-3)));
    b.let_here("g", e.plain(Operator::bit_xor, e.bits(x, 12, 2), e.plain(Operator::bit_or, x, y)));
    b.let_here("h", e.choose(e.plain(Operator::less, s, y, bool_), s, e.number(-1)));
  });
  CHECK(printed(p) == R"(  const i32 a = (x + 1) * y;
  const i32 b = y - (x + 1);
  const i32 c = x + 1 - y;
  const i32 d = x / y / (x + 1);
  const i32 e = x / (x * y);
  const i32 f = -x + y * -2 - 3;
  const i32 g = (x >> 2 & 3) ^ (x | y);
  const i32 h = x + 1 < y ? (x + 1) : (-1);
)");
}

// Products into one array, each behind a fence; `look` computes something of it.
class Products {
 public:
  Products(Exprs& e, Builder& b)
      : e_(e),
        b_(b),
        sums_(e.declare({.name = "d", .form = Form::array, .type = f32, .count = 4})) {
    b_.add(Declare{.variable = sums_});
  }
  void multiply() {
    b_.add(thread::Call{.function = device::Row::wgmma_registers, .args = {e_.address(sums_)}});
    b_.add(thread::Call{.function = device::Row::wgmma_fence});
    const ExprId operand = e_.literal(u64, 0);
    b_.add(Wgmma{.op = {.n = 8, .d = "f32", .a = "f16", .b = "f16"},
                 .registers = e_.address(sums_),
                 .a = {operand},
                 .b = {operand},
                 .accumulate = e_.literal(bool_, 1)});
  }
  void look() { b_.add(Assign{e_.element(sums_, e_.number(0)), e_.literal(f32, 0)}); }

 private:
  Exprs& e_;
  Builder& b_;
  VariableId sums_;
};

// How many times such a program is parted, and whether that is in front of a fence, or of a loop.
int parts(const std::function<void(Products&, Exprs&, Builder&)>& fill) {
  Program p = program([&](Exprs& e, Builder& b) {
    Products products(e, b);
    fill(products, e, b);
  });
  part_products(p);
  const std::string text = printed(p), apart = "pl::wgmma_apart();\n";
  int n = 0;
  for (std::size_t at = text.find(apart); at != text.npos; at = text.find(apart, at + 1), ++n) {
    const std::string next = text.substr(text.find_first_not_of(' ', at + apart.size()), 20);
    CHECK((next.starts_with("pl::wgmma_fence") || next.find("for (") != next.npos));
  }
  return n;
}

TEST_CASE("products into registers that threads have looked at since the last one are parted") {
  using Do = const std::function<void(Products&)>;
  const auto in_loop = [](ExprId high, std::int64_t unroll, Do& body) {
    return [=](Products& p, Exprs& e, Builder& b) {
      p.multiply(), p.look();
      For loop = loop_over(e, declared(e, "k"), 1);
      loop.high = high == no_expr ? e.number(unroll == 1 ? 1 : 2) : high;
      loop.unroll = unroll;
      b.open(loop);
      body(p);
      b.close();
    };
  };
  CHECK(parts([](Products& p, Exprs&, Builder&) { p.multiply(), p.multiply(), p.look(); }) == 0);
  CHECK(parts([](Products& p, Exprs&, Builder&) {
          for (int i = 0; i < 3; ++i) p.multiply(), p.look();
        }) == 2);
  CHECK(parts([](Products& p, Exprs&, Builder& b) {
          p.multiply(), p.look();
          b.add(thread::Call{.function = device::Row::mbarrier_wait, .args = {}});
          p.multiply();
        }) == 0);
  CHECK(parts([](Products& p, Exprs&, Builder& b) {
          p.multiply();
          b.open(Block{});
          p.look(), p.multiply(), p.look();
          b.close();
          p.multiply();
        }) == 2);
  // A loop of one iteration, one that goes on over its end, and one that is unrolled.
  CHECK(parts(in_loop(no_expr, 1, [](Products& p) { p.multiply(), p.look(); })) == 1);
  CHECK(parts([](Products& p, Exprs& e, Builder& b) {
          For loop = loop_over(e, declared(e, "k"), 100);
          loop.unroll = 1;
          b.open(loop);
          p.multiply(), p.look();
          b.close();
        }) == 0);
  CHECK(parts(in_loop(no_expr, 0, [](Products& p) { p.multiply(), p.look(); })) == 2);
}

TEST_CASE("few last iterations of an unrolled loop ask each for itself") {
  const auto text = [](std::int64_t asked, std::int64_t unroll) {
    Program p = program([&](Exprs& e, Builder& b) {
      const ExprId left = b.let_here("left", e.call(device::Row::thread, i32, {}));
      const ExprId k = declared(e, "k"), x = declared(e, "x");
      b.add(Declare{.variable = e[x].variable});
      For loop = loop_over(e, k, 32);
      loop.unroll = unroll;
      b.open(loop);
      b.break_unless(
          {.condition = e.plain(Operator::less, k, left, bool_), .share = 0.5, .asked = asked});
      b.add(Assign{x, k});
      b.close();
    });
    guard_last(p);
    CHECK_NOTHROW(verify(p));
    return printed(p);
  };
  CHECK_THAT(text(4, 0), ContainsSubstring("if (k < left) {"));
  // Of many, and of those that run one by one, the loop ends.
  for (const std::string& ends : {text(5, 0), text(0, 0), text(4, 1)})
    CHECK_THAT(ends, ContainsSubstring("if (!(k < left)) break;"));
}

}  // namespace
