// Mistakes that the compiler refuses, with a sentence that says what to write instead.
#include <sys/wait.h>

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

struct Compiled {
  bool accepted = false;
  std::string output;
};

// The snippet stands alone on its line, so that the compiler must name that line.
constexpr int snippet_line = 6;

constexpr std::string_view head =
    "using pl::_;\nusing pl::ds;\n"
    "[[maybe_unused]] static void kernel(pl::Ref x, pl::Ref o, pl::Value v, pl::Value w,\n"
    "    pl::Index i, int n, std::size_t z, bool b, double d) {\n"
    "  (void)x, (void)o, (void)v, (void)w, (void)i, (void)n, (void)z, (void)b, (void)d;\n";
constexpr std::string_view tail =
    "static void call(pl::Body, pl::PallasCallOptions) {}\n[[maybe_unused]] static auto* use = "
    "&call;\n";

Compiled compile_text(std::string_view text) {
  static std::atomic<int> count{0};
  const std::string path =
      TRAPS_FOLDER "/trap" + std::to_string(::getpid()) + "_" + std::to_string(count++) + ".cpp";
  std::ofstream(path) << text;
  std::FILE* pipe = ::popen((TRAPS_COMMAND " " + path + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Compiled result;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe))
    result.output.append(buffer, n);
  const int status = ::pclose(pipe);
  REQUIRE(WIFEXITED(status));
  result.accepted = WEXITSTATUS(status) == 0;
  std::remove(path.c_str());
  return result;
}

Compiled compile(std::string_view snippet) {
  return compile_text(std::string(head).append(snippet).append("\n}\n").append(tail));
}

Compiled refused(std::string_view snippet, std::string_view sentence) {
  CAPTURE(snippet, sentence);
  const Compiled compiled = compile(snippet);
  CAPTURE(compiled.output);
  CHECK_FALSE(compiled.accepted);
  CHECK(compiled.output.find(sentence) != std::string::npos);
  CHECK(compiled.output.find(".cpp:" + std::to_string(snippet_line) + ":") != std::string::npos);
  return compiled;
}

/// Lines of what a program would see that includes the umbrella header: without that by which the
/// trap includes it, and without clang's count of errors.
int lines_of(std::string_view output) {
  int lines = 0;
  for (std::size_t at = 0; at < output.size();) {
    const std::size_t end = std::min(output.find('\n', at), output.size());
    const std::string_view text = output.substr(at, end - at);
    const bool is_own = text.ends_with("language.hpp:1:");  // "In file included from", "from"
    lines += !is_own && !text.ends_with(" generated.");
    at = end + 1;
  }
  return lines;
}

void refused_shortly(std::string_view snippet, std::string_view sentence) {
  const Compiled compiled = refused(snippet, sentence);
  CAPTURE(snippet, compiled.output);
  CHECK(lines_of(compiled.output) <= 8);
}

struct Trap {
  std::string snippet, sentence;
};

/// Snippets of which each instantiates what no other does, in one run of the compiler: each of
/// their lines is named, each sentence is said, and there are 8 lines for each at most, together.
void all_refused_shortly(const std::vector<Trap>& traps) {
  const std::size_t kernel = head.find("kernel(");
  std::string text;
  std::vector<std::string> places;
  for (const Trap& trap : traps) {
    text += std::string(head).insert(kernel, "_" + std::to_string(places.size()) + "_");
    const auto line = std::ranges::count(text, '\n') + 1;
    places.push_back(".cpp:" + std::to_string(line) + ":");
    text += trap.snippet + "\n}\n";
  }
  const Compiled compiled = compile_text(text.append(tail));
  CAPTURE(compiled.output);
  CHECK_FALSE(compiled.accepted);
  for (std::size_t i = 0; i < traps.size(); ++i) {
    CAPTURE(traps[i].snippet, traps[i].sentence);
    CHECK(compiled.output.find(traps[i].sentence) != std::string::npos);
    CHECK(compiled.output.find(places[i]) != std::string::npos);
  }
  CHECK(lines_of(compiled.output) <= 8 * static_cast<int>(traps.size()));
}

// Mistakes for which the compilers' own words are short and clear.
void refused(std::string_view snippet) { refused(snippet, "error:"); }

constexpr std::string_view no_truth =
    "a traced value has no truth value while tracing; write pl::when(c, [&] {...}) or "
    "pl::where(c, a, b), and a loop that it ends as pl::loop(0, n, body) or "
    "pl::while_loop(condition, body, init)";
constexpr std::string_view list = "a subscript takes a list: write o[{i, j}], not o[i, j]";
constexpr std::string_view not_loaded =
    "this is a Ref, not a value; did you forget to load it: x[_] ?";

}  // namespace

TEST_CASE("the frame of the traps compiles, so that what is refused is the trap") {
  const Compiled compiled = compile("o[_] = x[_]; o[{i, ds(n, 4)}] = v + w * d; if (b) o[z] = 1;");
  CAPTURE(compiled.output);
  CHECK(compiled.accepted);
}

TEST_CASE("a traced value has no truth value") {
  refused_shortly("if (v > w) o[_] = 1;", no_truth);
  refused("if (!(v > w)) o[_] = 1;", no_truth);
  refused_shortly("while (v < 3) v += 1;", no_truth);
  refused_shortly("while (v) v -= 1;", no_truth);
  refused_shortly("for (int j = 0; j < v; ++j) o[j] = 1;", no_truth);
  refused("for (pl::Value q = 0; q < 10; q += 1) o[_] = q;", no_truth);
  refused("v = v > 1 ? v : w;", no_truth);
  refused("if (x[0]) o[_] = 1;", no_truth);
}

TEST_CASE("&& and || of traced values are refused") {
  constexpr std::string_view sentence = "&& and || cannot be recorded; write a & b (or a | b)";
  refused("v = v > 1 && w > 1;", sentence);
  refused("v = v || w;", sentence);
  refused("if (v > 1 && w > 1) o[_] = 1;", sentence);
  refused("v = x[_] && b;", sentence);
}

TEST_CASE("a traced value does not become a C++ number") {
  refused("bool c = v > 1; (void)c;");
  refused("int c = v; (void)c;");
  refused("v = x[ds(0, v)];");
  refused("++v;");
}

TEST_CASE("a subscript cannot be kept") {
  constexpr std::string_view copied =
      "a subscript cannot be kept or returned as it is; write pl::Value v = x[_]; return "
      "pl::Value(x[_]); or, for a view, pl::Ref r = x.at({...});";
  constexpr std::string_view named =
      "a subscript cannot be kept with auto; write pl::Value v = x[_];";
  refused("auto s = x[_]; (void)s;", copied);
  refused("auto&& s = x[_]; v = s + 1;", named);
  refused("const auto& s = x[_]; v = s + 1;", named);
  refused("auto f = [&] { return x[_]; }; v = f();", copied);
  refused("v = pl::loop(0, 4, [&](pl::Index, pl::Value) { return x[_]; }, v);", copied);
}

TEST_CASE("a kernel has no mesh of warps, which is that of a part of a body") {
  refused(
      "(void)pl::kernel([](pl::Ref) {}, {.mesh = pl::gpu::WarpMesh{\"w\"}});",
      "so it is the mesh of a part of a body: pl::core_map(plgpu::WarpMesh{...})([&] { ... });");
}

TEST_CASE("a subscript with a comma is refused") {
  refused("v = x[i, n];", list);
  refused("o[i, _] = v;", list);
  refused("o[0, _] = v;", list);
  refused("o[ds(0, 4), 1] = v;", list);
}

TEST_CASE("an index is an integer, a traced value, a slice or _") {
  refused("v = x[\"a\"];");
  refused("v = x[0.5];");
  refused("v = x[{0, 1.5}];");
}

TEST_CASE("a Ref is not a value") {
  refused("v = x + 1;", not_loaded);
  refused("v = v + x;", not_loaded);
  refused("v = pl::exp(x);", not_loaded);
  refused("o[_] = x;", not_loaded);
  refused("pl::store(o, x);", not_loaded);
  refused("pl::when(x, [&] { o[_] = 1; });", not_loaded);
  refused("v = pl::load(x, {.mask = x});", "this is a Ref, not a value");
  refused("pl::Value q = x; (void)q;", "this is a Ref, not a value; load it: pl::Value v = x[_];");
}

TEST_CASE("a Ref cannot be assigned") {
  constexpr std::string_view sentence =
      "a Ref cannot be assigned; to store write o[_] = v; to copy write o[_] = x[_];";
  refused("o = v;", sentence);
  refused("o = x[_];", sentence);
  refused("o = x;", "to copy the contents write o[_] = x[_];");
}

TEST_CASE("max and min of two values are maximum and minimum") {
  constexpr std::string_view maximum =
      "pl::max reduces; write pl::maximum(a, b), or the axis as an option: pl::max(x, {.axis = 0})";
  refused_shortly("v = pl::max(v, w);", maximum);
  refused_shortly("v = pl::max(x[_], 0);", maximum);
  refused_shortly("v = pl::max(x[_], o[_]);", maximum);
  refused("v = pl::min(0.5f, v);", "pl::min reduces; write pl::minimum(a, b)");
}

TEST_CASE("the axis of a fold is an option") {
  std::vector<Trap> traps;
  for (const std::string fold :
       {"sum", "prod", "any", "all", "argmax", "argmin", "mean", "var", "softmax", "logsumexp",
        "cumsum", "cumprod", "cummax", "cummin", "sort", "argsort"})
    traps.push_back({"v = pl::" + fold + "(x[_], 0);",
                     "the axis is an option: pl::" + fold + "(x, {.axis = 0})"});
  all_refused_shortly(traps);
  refused("v = pl::sum(v, -1);", "the axis is an option");
  refused("v = pl::sum(v, n);", "the axis is an option");
}

TEST_CASE("extents are whole numbers") {
  constexpr std::string_view block =
      "a block has a whole number of elements, given a float; divide integers, n / 2, or round up: "
      "pl::cdiv(n, 2)";
  refused_shortly("pl::BlockSpec s{{1.5f, 4}, [](pl::Index q) { return q; }}; (void)s;", block);
  refused_shortly("pl::BlockSpec s{{n / 2.0, 4}}; (void)s;", block);
  refused_shortly("auto s = pl::BlockSpec::of({4, d}); (void)s;", block);
  constexpr std::string_view extent =
      "an extent is a whole number, given a float; divide integers, n / 2, or round up: "
      "pl::cdiv(n, 2)";
  refused_shortly("pl::PallasCallOptions s{.grid = {n / 2.0}}; (void)s;", extent);
  refused_shortly("pl::ShapeDtype s{{4, n * 0.5f}, pl::f32}; (void)s;", extent);
  refused_shortly("v = x[ds(0, n / 2.0)];", extent);
}

TEST_CASE("the result of an effect is given a name first") {
  constexpr std::string_view sentence =
      "this operation also writes; give its result a name first: pl::Value old = pl::swap(...);";
  refused("v = pl::swap(x, v) + pl::swap(o, v);", sentence);
  refused("auto q = pl::swap(x, v); v = q + 1;", sentence);
}

TEST_CASE(
    "functions of cond, switch_, while_loop and scan have the parameters of their kind [E14]") {
  refused("v = pl::cond(v > 0, [&] { return v; }, [&] {});",
          "both functions of cond return the same");
  refused("v = pl::cond(v > 0, [&](pl::Value a) { return a; }, [&] { return v; });",
          "both functions of cond take the operands behind them");
  refused("v = pl::switch_(i, [&] { return v; }, [&] { return pl::carry(v, w); });",
          "all branches of switch_ return the same");
  refused("v = pl::while_loop([&](pl::Value a) { return a < 3; }, [&] { return v; }, v);",
          "the body of a while_loop takes one pl::Value per initial value");
  refused("v = pl::while_loop([&](pl::Value) {}, [&](pl::Value a) { return a; }, v);",
          "the condition of a while_loop takes one pl::Value per initial value, and returns one");
  refused("v = pl::while_loop([&](pl::Value a) { return a < 3; }, [&](pl::Value) {}, v);",
          "the body of a while_loop returns as many values as were given to start with");
  refused("v = pl::scan([&](pl::Value a) { return pl::carry(a, a); }, v, {.length = 2});",
          "the body of a scan returns what it was started with");
  refused(
      "struct S { pl::Value a; int n; } s{v, n}; "
      "pl::loop(0, 4, [&](pl::Index, S t) { return t; }, s);",
      "a loop starts with pl::Values, or with structs that hold nothing else");
}

TEST_CASE("bodies of when and loop have the parameters and results of their kind") {
  refused(
      "pl::when(v > 0, [&] { return v; });",
      "the body of when returns nothing; pl::cond(c, f, g) and pl::where(c, a, b) give a value");
  refused("v = pl::loop(0, 4, [&](pl::Index) { return v; }, v);",
          "the body of a loop takes the index and one pl::Value per initial value");
  refused("v = pl::loop(0, 4, [&](pl::Index, pl::Value a) { o[_] = a; }, v);",
          "the body of a loop returns as many values as were given to start with");
  refused("pl::loop(0, 4, [&](pl::Index) { return pl::carry(v, w); });",
          "the body of a loop returns as many values as were given to start with");
  refused(
      "auto [a, c] = pl::loop(0, 4, [&](pl::Index, pl::Value p, pl::Value q) { return {p, q}; }"
      ", v, w); o[_] = a + c;");
  refused("v = pl::loop(0, 4, [&](pl::Index, pl::Value) { return \"a\"; }, v);",
          "a body returns nothing, a pl::Value, or pl::carry(a, b, ...)");
}

TEST_CASE("a kernel function takes Refs and scalars, and returns nothing [E02]") {
  for (const std::string call :
       {"pl::Body(", "pl::pallas_call(", "pl::kernel(", "pl::gpu::kernel("}) {
    const std::string end = call == "pl::Body(" ? ");" : ", {});";
    constexpr std::string_view takes =
        "a kernel function takes pl::Ref, pl::Refs, pl::Scratch, structs of pl::Ref (nothing else "
        "in them), or pl::Value for a scalar argument; a generic lambda is not to take any number, "
        "so pl::Refs for auto...";
    refused_shortly(call + "[](pl::Ref r) { return pl::Value(r[_]); }" + end,
                    "the kernel function should return nothing; write results to the output Refs");
    refused_shortly(call + "[](auto... r) { ((r[_] = 0), ...); }" + end, takes);
    refused_shortly(call + "[](pl::Ref, int) {}" + end, takes);
    refused_shortly("struct In { pl::Ref r; pl::Value s; }; " + call + "[](In) {}" + end, takes);
    refused_shortly(call + "4" + end, takes);
  }
}

TEST_CASE("an index map takes program ids and returns indices") {
  refused("pl::IndexMap([](int j) { return j; });", "an index map takes a pl::Index per grid axis");
  refused("pl::IndexMap([](pl::Index, float) { return 0; });",
          "an index map takes a pl::Index per grid axis");
  refused("pl::IndexMap([](pl::Index) { return \"a\"; });",
          "an index map returns pl::Indices{i, j, ...}, or one index");
}

TEST_CASE("a kernel takes arrays and scalars") {
  constexpr std::string_view array =
      "a kernel takes pl::Array and pl::scalar(x); view memory of your own: "
      "pl::Array::view(std::span(vector), {rows, columns})";
  constexpr std::string_view kernel = "extern const pl::Kernel& k; ";
  const auto with = [&](std::string_view call) { return std::string(kernel).append(call); };
  refused(with("std::vector<float> f; k(f);"), array);
  refused(with("float f[4] = {}; k(f);"), array);
  refused(with("pl::Array a; k(a, std::vector<float>(4));"), array);
  refused(with("std::vector<float> f; k.call({f});"), array);
  refused(with("std::vector<float> f; k.into({f}, {f});"), array);
  refused(with("k(2.5f);"), "a number is passed to a kernel by value as pl::scalar(x)");
  refused(with("k(pl::ShapeDtype{{4}, pl::f32});"), "of types alone there is k.lower(type)");
  refused(with("std::vector<float> f; k.lower(f);"), "lower and prepare take pl::ShapeDtype{");
  refused(with("std::vector<float> f; k.prepare({f});"), "lower and prepare take pl::ShapeDtype{");
  const Compiled right =
      compile(with("pl::Array a; k(a, pl::scalar(2.5f)); k.lower(a, pl::ShapeDtype{{4}, pl::f32}); "
                   "k.lower(std::vector<pl::ArgType>{a}); k.prepare({a}); k.into({a}, {a, "
                   "pl::scalar(1)});"));
  CAPTURE(right.output);
  CHECK(right.accepted);
}

TEST_CASE("an unknown option in braces costs few lines, and names its struct") {
  const std::string body = "[](pl::Ref r) { r[_] = 1; }";
  const auto call = [&](std::string_view options) {
    return "pl::pallas_call(" + body + ", " + std::string(options) + ");";
  };
  constexpr std::string_view options = "PallasCallOptions";
  refused_shortly(call("{.gird = {4}}"), options);
  refused_shortly(call("{.name = 4}"), options);
  refused_shortly(call("{.out_type = 4}"), options);
  refused_shortly(call("{.compiler_params = {.num_warp = 4}}"), options);
  refused_shortly(call("{.grid = {4}, .name = \"k\"}"), "order");
  refused_shortly(call("pl::PallasCallOptions{.gird = {4}}"), "gird");
  refused_shortly("pl::gpu::kernel(" + body + ", {.gird = {4}});", "KernelOptions");
  refused_shortly("pl::gpu::kernel({.gird = {4}})(" + body + ");", "KernelOptions");
  refused_shortly("pl::core_map(pl::gpu::Mesh{}, {.nome = \"k\"})([] {});", "CoreMapOptions");
  refused_shortly("pl::run_scoped([](pl::Ref) {}, {}, {.colective = true});", "ScopedOptions");
  refused_shortly("v = pl::scan([](pl::Value a) { return a; }, v, {.lenth = 2});", "ScanOptions");
  refused_shortly("pl::loop(0, 4, {.unrol = 2}, [](pl::Index) {});", "LoopOptions");
  refused_shortly("v = pl::dot(v, w, {.transposed = true});", "DotOptions");
  for (const std::string fold : {"sum", "max", "min", "argmax"})
    refused_shortly("v = pl::" + fold + "(x[_], {.axes = 1});", "ReduceOptions");
  // A kernel over meshes has bodies and a list of them.
  refused("pl::kernel(" + body + ", {.mush = pl::gpu::Mesh{}});", "KernelOptions");
}

TEST_CASE("a mistake inside of a function is told alone") {
  const std::string call = "pl::pallas_call([](pl::Ref r) { r[_] = 1; }, [](pl::ShapeDtype t) { ";
  const std::string kernel = "pl::kernel([](pl::Ref r) { r[_] = 1; }, [](pl::ShapeDtype t) { ";
  for (const auto& [snippet, mistake] :
       {std::pair{call + "return pl::PallasCallOptions{.gird = {t.shape[0]}}; });", "gird"},
        {call + "const int q = t.nothing; return pl::PallasCallOptions{}; });", "nothing"},
        {kernel + "return pl::KernelOptions{.out_tipe = t}; });", "out_tipe"},
        {"pl::Body([](pl::Ref r) { return r.nothing; });", "nothing"}}) {
    const Compiled compiled = refused(snippet, mistake);
    CAPTURE(compiled.output);
    CHECK(compiled.output.find("palladium: ") == std::string::npos);
    CHECK(lines_of(compiled.output) <= 8);
  }
}

TEST_CASE("an options function takes types, and returns options") {
  const std::string body = "[](pl::Ref r) { r[_] = 1; }";
  const auto with = [&](std::string_view function) {
    return "pl::pallas_call(" + body + ", " + std::string(function) + ");";
  };
  constexpr std::string_view sentence =
      "behind a body stand pl::PallasCallOptions, or a function that takes a pl::ShapeDtype per "
      "argument, or one std::span<const pl::ShapeDtype>, and returns them";
  refused_shortly(with("[](int) { return pl::PallasCallOptions{}; }"), sentence);
  refused_shortly(with("[](auto...) { return pl::PallasCallOptions{}; }"), sentence);
  refused_shortly(with("[](pl::ShapeDtype) { return 4; }"), sentence);
  refused_shortly(with("[](auto) { return 4; }"), sentence);
  refused_shortly(with("[](pl::ShapeDtype) {}"), sentence);
  refused_shortly(with("[](std::span<const pl::ShapeDtype>) { return 4; }"), sentence);
  refused_shortly(with("4"), sentence);
  refused_shortly(with("[](pl::ShapeDtype t) { return pl::Call{[](pl::Ref r) { r[_] = 1; }, "
                       "{.out_type = t}}; }"),
                  "(one that returns a pl::Call stands alone)");
  refused_shortly("pl::pallas_call([](pl::ShapeDtype) { return pl::PallasCallOptions{}; });",
                  "what stands alone returns a pl::Call");
  for (const std::string space : {"pl", "plgpu"}) {
    const std::string call = "namespace plgpu = pl::gpu; " + space + "::kernel(" + body + ", ";
    const std::string behind = "behind a body stand " + space + "::KernelOptions, or a function";
    refused_shortly(call + "[](int) { return " + space + "::KernelOptions{}; });", behind);
    refused_shortly(call + "[](pl::ShapeDtype) { return 4; });", behind);
    refused_shortly(call + "[](pl::ShapeDtype) { return pl::CoreMapOptions{}; });", behind);
    refused_shortly(call + "4);", behind);
  }
  refused_shortly("pl::kernel({[](pl::Ref) {}, [](pl::Ref) {}}, 4);", "behind bodies stand");
  refused_shortly("pl::loop(0, 4, pl::LoopOptions{.unroll = 2});", "a loop has a body");
  const Compiled right = compile(
      with("[](const pl::ShapeDtype& t) { return pl::PallasCallOptions{.out_type = t}; }") +
      with("[](auto t) { return pl::PallasCallOptions{.grid = {int(sizeof t)}}; }") +
      with("[](std::span<const pl::ShapeDtype> t) { return pl::PallasCallOptions{.out_type "
           "= t[0]}; }") +
      "pl::pallas_call([](pl::ShapeDtype t) { return pl::Call{[](pl::Ref r) { r[_] = 1; }, "
      "{.out_type = t}}; }); "
      "const auto f = [](pl::ShapeDtype t) { return pl::KernelOptions{.out_type = t}; }; "
      "const auto g = [](pl::Ref) {}; pl::kernel(g, f); pl::kernel(f)(g); pl::kernel({g, g}, f); "
      "pl::kernel(g, [](pl::ShapeDtype, pl::ShapeDtype) { return pl::KernelOptions{}; }); "
      "pl::kernel(g, [](auto t) { return pl::KernelOptions{.out_type = t}; }); "
      "pl::kernel(pl::Body(g), f); pl::kernel([](auto r) { r[_] = 1; }, {.name = \"k\"}); "
      "pl::kernel(+g, {}); pl::kernel({.name = \"k\"}, pl::here())(g); "
      "pl::gpu::kernel(g, [](pl::ShapeDtype) { return pl::gpu::KernelOptions{}; });");
  CAPTURE(right.output);
  CHECK(right.accepted);
}

TEST_CASE("the result of a call is an array wherever one is asked for") {
  const Compiled compiled = compile(
      "extern const pl::Kernel& k; extern const pl::Array& a; auto y = k(a); auto after = k(y); "
      "k(k(y), after, pl::new_ref(y)); k.call({y, after}); k.into({y}, {after, k(a)}); "
      "k.prepare({y}); "
      "k.lower(y, after); pl::vmap(k)(y); pl::print(y); pl::save_npy(\"y.npy\", y); "
      "const pl::Array& whole = k(a); pl::Array c = y[0]; c = k(a)[\"o\"]; c = y; "
      "pl::run_state([](pl::ArrayRef) {})({y}); auto [p, q] = k(a); c = p; c = q; (void)whole;");
  CAPTURE(compiled.output);
  CHECK(compiled.accepted);
}

TEST_CASE("specifications of blocks are a list [E03]") {
  refused("pl::PallasCallOptions options{.in_specs = pl::BlockSpec()}; (void)options;");
}

TEST_CASE("an array of the host is no value of a kernel [E13]") {
  constexpr std::string_view sentence =
      "a body captures a pl::Array, whose elements are no constants of the kernel; pass it as an "
      "argument, of which the body gets a pl::Ref (and a body of pl::kernel may capture "
      "pl::new_ref(array))";
  refused_shortly("const pl::Array a; v = v + a;", sentence);
  refused_shortly("const pl::Array a; o[_] = a;", sentence);
  refused_shortly("extern const pl::Outputs& a; v = v * a;", sentence);
}

TEST_CASE("an unknown option or one out of order is refused") {
  refused("pl::PallasCallOptions options{.gird = {4}}; (void)options;", "gird");
  refused("pl::PallasCallOptions options{.interpret = {.detect_races = true}}; (void)options;");
  refused("pl::PallasCallOptions options{.grid = {4}, .name = \"late\"}; (void)options;");
}
