// How large a kernel may be: what the limits allow works on a small stack, what is beyond ends in
// one error that names the limit.
#include <pthread.h>

#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <deque>
#include <exception>
#include <functional>
#include <string>

#include "tests/errors/refused.hpp"

using Catch::Matchers::ContainsSubstring;
using pl::_;
using pl::test::line;

namespace {

// A body that records `n` operations which depend on each other.
using Chain = std::function<void(pl::Ref x, pl::Ref o, int n)>;

struct Named {
  const char* name;
  Chain record;
};

const Named chains[] = {
    {"sums",
     [](pl::Ref x, pl::Ref o, int n) {
       pl::Value v = x[_];
       for (int i = 0; i < n; ++i) v = v + static_cast<float>(i % 7);
       o[_] = v;
     }},
    {"reshapes",
     [](pl::Ref x, pl::Ref o, int n) {
       pl::Value v = x[_];
       for (int i = 0; i < n; i += 3) v = v.reshape({8, 16}).transpose().reshape({128});
       o[_] = v;
     }},
    {"views",
     [](pl::Ref x, pl::Ref o, int n) {
       std::deque<pl::Ref> views{x};  // a Ref cannot be assigned
       for (int i = 0; i < n; i += 3)
         views.push_back(views.back().reshape({8, 16}).transpose({1, 0}).reshape({128}));
       o[_] = pl::Value(views.back()[_]);
     }},
    {"masks",
     [](pl::Ref x, pl::Ref o, int n) {
       pl::Value v = x[_];
       for (int i = 0; i < n; i += 3)
         v = pl::load(x, {.mask = v > static_cast<float>(i), .other = v});
       o[_] = v;
     }},
};

pl::Kernel kernel_of(const Chain& record, int operations) {
  return pl::pallas_call([=](pl::Ref x, pl::Ref o) { record(x, o, operations); },
                         {.name = "chain", .out_type = {{128}, pl::f32}});
}

// On a thread with 256 KiB of stack; what it throws.
void on_a_small_stack(const std::function<void()>& run) {
  struct Work {
    const std::function<void()>* run;
    std::exception_ptr thrown;
  } work{&run, {}};
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, 256 * 1024) == 0);
  pthread_t thread;
  REQUIRE(pthread_create(
              &thread, &attributes,
              [](void* p) -> void* {
                Work& w = *static_cast<Work*>(p);
                try {
                  (*w.run)();
                } catch (...) {
                  w.thrown = std::current_exception();
                }
                return nullptr;
              },
              &work) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  if (work.thrown) std::rethrow_exception(work.thrown);
}

const pl::ShapeDtype row{{128}, pl::f32};

void nested(int depth, pl::Ref& o, const pl::Value& c) {
  if (depth == 0)
    o[_] = 1;
  else if (depth % 2 == 0)
    pl::when(c > depth, [&] { nested(depth - 1, o, c); });
  else
    pl::loop(0, c, [&](pl::Index) { nested(depth - 1, o, c); });
}

pl::Kernel nested_kernel(int depth) {
  return pl::pallas_call([=](pl::Ref o) { nested(depth, o, pl::program_id(0)); },
                         {.name = "nested", .out_type = row, .grid = {2}});
}

}  // namespace

TEST_CASE("expressions as deep as a compiler is given are emitted on a small stack") {
  for (const Named& chain : chains) {
    CAPTURE(chain.name);
    const pl::Lowered lowered = kernel_of(chain.record, 5'000).lower(row);
    std::string text;
    on_a_small_stack([&] { text = lowered.cuda_source({.arch = "sm_90a"}); });
    CHECK_THAT(text, ContainsSubstring("chain_kernel"));
  }
}

TEST_CASE("a chain of a hundred thousand operations runs in the interpreter") {
  const pl::Kernel kernel = kernel_of(chains[0].record, 100'000);
  const pl::Array x = pl::Array::zeros({128}, pl::f32);
  on_a_small_stack([&] {
    const pl::Array y = kernel.on(pl::Target::interpreter)(x);
    CHECK(y.values<float>()[127] > 290'000);
  });
}

TEST_CASE("a chain of a hundred thousand operations is not compiled, by limit and line [E25]") {
  for (const Named& chain : chains) {
    CAPTURE(chain.name);
    const pl::Lowered lowered = kernel_of(chain.record, 100'000).lower(row);
    on_a_small_stack([&] {
      CHECK_THROWS_MATCHES(
          lowered.cuda_source(), pl::CompileError,
          Catch::Matchers::MessageMatches(ContainsSubstring("more than 16384 operations") &&
                                          ContainsSubstring("pl::loop") &&
                                          ContainsSubstring("limits_test.cpp:")));
    });
  }
}

TEST_CASE("a graph of a hundred thousand operations is read, and not compiled either") {
  const std::string json = kernel_of(chains[0].record, 100'000).lower(row).json();
  on_a_small_stack([&] {
    const pl::graph::Graph g = pl::graph::from_json(json);
    CHECK(pl::graph::canonical_bytes(g).size() > 100'000);
    CHECK(pl::graph::to_text(g).size() > 100'000);
    CHECK(pl::graph::canonicalize(g).insts.size() == g.insts.size());
  });
}

TEST_CASE("parts that an expression shares are looked at once") {
  const pl::Kernel kernel = kernel_of(
      [](pl::Ref x, pl::Ref o, int n) {
        pl::Value v = x[_];
        for (int i = 0; i < n; ++i) v = v * (1 - v);
        o[_] = v;
      },
      1'000);
  CHECK(kernel.lower(row).cuda_source().size() < 100'000);
  const pl::Kernel masked = kernel_of(
      [](pl::Ref x, pl::Ref o, int n) {
        pl::Value v = x[_];
        for (int i = 0; i < n; ++i) v = pl::load(x, {.mask = v > 0.5f, .other = v});
        o[_] = v;
      },
      1'000);
  CHECK(masked.lower(row).cuda_source().size() < 1'000'000);
}

TEST_CASE("bodies stand inside each other up to a limit, which is named with the line") {
  const std::string text = nested_kernel(128).lower().cuda_source();
  CHECK_THAT(text, ContainsSubstring("nested_kernel"));
  for (const int depth : {129, 10'000})
    CHECK_THROWS_MATCHES(nested_kernel(depth).lower(), pl::CompileError,
                         Catch::Matchers::MessageMatches(
                             ContainsSubstring("more than 128 bodies inside each other") &&
                             ContainsSubstring("limits_test.cpp:")));
}

namespace {

// Kernels whose value, as large as x, must be whole.
pl::Kernel carrying(const pl::ShapeDtype& x) {
  return pl::pallas_call(
      [](pl::Ref a, pl::Ref o) {
        const pl::Value v = a[_];
        const auto add = [&](pl::Index, pl::Value acc) { return acc + v; };
        line = __LINE__ + 1;
        o[_] = pl::loop(0, 4, add, v);
      },
      {.name = "carrying", .out_type = x});
}

pl::Kernel multiplying(const pl::ShapeDtype& x) {
  return pl::pallas_call(
      [](pl::Ref a, pl::Ref b, pl::Ref o) {
        line = __LINE__ + 1;
        o[_] = pl::dot(a[_], b[_]);
      },
      {.name = "multiplying", .out_type = x});
}

// "f32[128,96] fits" as a type.
pl::ShapeDtype suggested(const std::string& message) {
  const std::size_t end = message.find(" fits"), begin = message.rfind("makes it ", end) + 9;
  const std::size_t open = message.find('[', begin);
  pl::ShapeDtype type{{}, pl::dtype_named(message.substr(begin, open - begin).c_str())};
  for (std::size_t at = open; message[at] != ']'; at = message.find_first_of(",]", at + 1))
    type.shape.push_back(std::stoll(message.substr(at + 1)));
  return type;
}

}  // namespace

TEST_CASE("a value that is too large is named as the user knows it, and a size that fits is told") {
  for (const pl::ShapeDtype& x :
       {pl::ShapeDtype{{512, 192}, pl::f32}, pl::ShapeDtype{{512, 256}, pl::f32},
        pl::ShapeDtype{{3, 400'000}, pl::f32}, pl::ShapeDtype{{400, 300}, pl::f64},
        pl::ShapeDtype{{200'000}, pl::f16}, pl::ShapeDtype{{5, 7, 4'000}, pl::f32}}) {
    CAPTURE(to_string(x));
    std::string said;
    try {
      carrying(x).lower(x).cuda_source();
    } catch (const pl::CompileError& e) {
      said = e.what();
      CHECK(e.at().line == line);
    }
    INFO(said);
    REQUIRE_THAT(said, ContainsSubstring("carry 0 of the loop, " + to_string(x)) &&
                           ContainsSubstring("must be held whole") &&
                           ContainsSubstring("at most 192 are possible"));
    const pl::ShapeDtype fits = suggested(said);
    CAPTURE(to_string(fits));
    CHECK_NOTHROW(carrying(fits).lower(fits).cuda_source());
  }
}

TEST_CASE("a product that is too large is told a size that fits") {
  for (const pl::Shape& shape : {pl::Shape{512, 384}, pl::Shape{384, 512}, pl::Shape{16, 20'000}}) {
    const auto lowered = [](const pl::Shape& s) {
      return multiplying({s, pl::f32})
          .lower(pl::ShapeDtype{{s[0], 16}, pl::f16}, pl::ShapeDtype{{16, s[1]}, pl::f16});
    };
    std::string said;
    try {
      lowered(shape).cuda_source();
    } catch (const pl::CompileError& e) {
      said = e.what();
    }
    INFO(said);
    REQUIRE_THAT(said, ContainsSubstring("the result of dot, f32" + to_string(shape)));
    CHECK_NOTHROW(lowered(suggested(said).shape).cuda_source());
  }
}

TEST_CASE("a trace that never ends is refused with the line that records") {
  using pl::test::refused;
  refused(
      [](pl::Ref x, pl::Ref) {
        pl::Value v = x[_];
        for (;;) {
          line = __LINE__ + 1;
          v = v + 1;
        }
      },
      "kernel 'k' records more than 1048576 operations; C++ loops run while tracing: write "
      "pl::loop");
}

TEST_CASE("a search for races in too many places is refused with the kernel's line") {
  line = __LINE__ + 1;
  const pl::Kernel kernel = pl::pallas_call(
      [](pl::Ref o) {
        for (int i = 0; i < 66'000; ++i) o[_] = static_cast<float>(i);
      },
      {.name = "places",
       .out_type = {{1}, pl::f32},
       .interpret = pl::InterpretParams{.detect_races = true}});
  try {
    kernel();
    FAIL("nothing was refused");
  } catch (const pl::CompileError& e) {
    CHECK_THAT(e.what(), ContainsSubstring("kernel 'places': race: more than 65536 places"));
    CHECK(e.at().line == line);
  }
}

TEST_CASE("a loop is not unrolled beyond what is compiled for a kernel") {
  using pl::test::refused;
  const auto unrolled = [](int trips, int unroll) {
    return [=](pl::Ref x, pl::Ref o) {
      pl::Value v = x[_];
      const auto twice = [](pl::Index, pl::Value a) { return a * 2; };
      line = __LINE__ + 1;
      o[_] = pl::loop(0, trips, {.unroll = unroll}, twice, v);
    };
  };
  constexpr const char* sentence =
      "loop: unrolled 1000000000 times, at most 16384 operations are compiled for a kernel";
  refused(unrolled(1'000'000'000, 1'000'000'000), sentence);
  refused(unrolled(1'000'000'000, 0), sentence);
  CHECK_NOTHROW(
      pl::test::traced(unrolled(4, 1'000'000'000), pl::test::one_output(), {pl::test::array({8})}));
}

TEST_CASE("unrolled loops count as often as they are unrolled") {
  const pl::Kernel kernel = pl::pallas_call(
      [](pl::Ref x, pl::Ref o) {
        const auto triple = [](pl::Index, pl::Value v) {
          line = __LINE__ + 1;
          return v * 3;
        };
        const auto inner = [&](pl::Index, pl::Value v) {
          return pl::loop(0, 200, {.unroll = 0}, triple, v);
        };
        o[_] = pl::loop(0, 200, {.unroll = 0}, inner, pl::Value(x[_]));
      },
      {.name = "unrolled", .out_type = row});
  const pl::Lowered lowered = kernel.lower(row);
  try {
    lowered.cuda_source();
    FAIL("nothing was refused");
  } catch (const pl::CompileError& e) {
    CHECK_THAT(e.what(), ContainsSubstring("kernel 'unrolled' has more than 16384 operations, "
                                           "those of unrolled loops counted each time"));
    CHECK(e.at().line == line);
  }
}
