// `palladium run` against plain C++ on .npy files, and on files that are none.
#include <sys/stat.h>

#include <cmath>

#include "tests/cli/npy_file.hpp"
#include "tests/cli/tool.hpp"

using namespace palladium::test;

namespace {

/// Small numbers of both signs, the same on every machine.
struct Numbers {
  std::uint32_t state = 1;
  std::uint32_t bits() { return (state = state * 1664525u + 1013904223u) >> 8; }
  float number() { return static_cast<float>(static_cast<int>(bits() % 2001) - 1000) / 250; }
  std::vector<float> vector(std::size_t count) {
    std::vector<float> result(count);
    for (float& each : result) each = number();
    return result;
  }
};

void check_close(const std::vector<float>& got, const std::vector<double>& expected,
                 double tolerance) {
  REQUIRE(got.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    worst = std::max(worst, std::isnan(got[i]) ? 1e30 : std::abs(got[i] - expected[i]));
  CHECK(worst <= tolerance);
}

/// One run on each target that needs no GPU; what the tool prints names output, type and target.
template <class Body>
void on_both_targets(const Body& body) {
  for (const char* target : {"interpreter", "emulator"}) DYNAMIC_SECTION("on " << target) {
      body(std::string(target));
    }
}

void check_ran(const Finished& finished, const std::string& target, const std::string& type) {
  CHECK(finished.status == 0);
  CHECK(finished.err.empty());
  CHECK_THAT(finished.out, ContainsSubstring(type));
  CHECK_THAT(finished.out, ContainsSubstring(target));
}

}  // namespace

TEST_CASE("run adds vectors that no block divides") {
  const Tool palladium;
  const std::string a = palladium.folder / "a.npy", b = palladium.folder / "b.npy",
                    o = palladium.folder / "o.npy";
  Numbers numbers;
  const std::vector<float> x = numbers.vector(2500), y = numbers.vector(2500);
  write_npy(a, "<f4", "(2500,)", x);
  write_npy(b, "<f4", "(2500,)", y);
  on_both_targets([&](const std::string& target) {
    check_ran(palladium({"run", "add", "--in", a, "--in", b, "--out", o, "--target", target}),
              target, "f32[2500]");
    const std::vector<float> sum = read_npy<float>(o, "<f4", "(2500,)");
    REQUIRE(sum.size() == x.size());
    for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(sum[i] == x[i] + y[i]);
  });
}

TEST_CASE("run takes a softmax along rows of odd length") {
  const Tool palladium;
  const std::string in = palladium.folder / "x.npy", out = palladium.folder / "o.npy";
  constexpr std::size_t rows = 7, columns = 333;
  Numbers numbers;
  const std::vector<float> x = numbers.vector(rows * columns);
  std::vector<double> expected(x.size());
  for (std::size_t r = 0; r < rows; ++r) {
    double total = 0;
    for (std::size_t c = 0; c < columns; ++c) total += std::exp(double{x[r * columns + c]});
    for (std::size_t c = 0; c < columns; ++c)
      expected[r * columns + c] = std::exp(double{x[r * columns + c]}) / total;
  }
  write_npy(in, "<f4", "(7, 333)", x);
  on_both_targets([&](const std::string& target) {
    check_ran(palladium({"run", "softmax", "--in", in, "--out", out, "--target", target}), target,
              "f32[7,333]");
    check_close(read_npy<float>(out, "<f4", "(7, 333)"), expected, 1e-6);
  });
}

TEST_CASE("run multiplies matrices of odd sizes") {
  const Tool palladium;
  const std::string a = palladium.folder / "a.npy", b = palladium.folder / "b.npy",
                    o = palladium.folder / "o.npy";
  constexpr std::size_t m = 70, k = 45, n = 67;
  Numbers numbers;
  const std::vector<float> x = numbers.vector(m * k), y = numbers.vector(k * n);
  std::vector<double> expected(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t l = 0; l < k; ++l)
        expected[i * n + j] += double{x[i * k + l]} * y[l * n + j];
  write_npy(a, "<f4", "(70, 45)", x);
  write_npy(b, "<f4", "(45, 67)", y);
  on_both_targets([&](const std::string& target) {
    check_ran(palladium({"run", "matmul", "--in", a, "--in", b, "--out", o, "--target", target}),
              target, "f32[70,67]");
    check_close(read_npy<float>(o, "<f4", "(70, 67)"), expected, 1e-3);
  });
}

TEST_CASE("run blurs an image up to its border") {
  const Tool palladium;
  const std::string in = palladium.folder / "x.npy", out = palladium.folder / "o.npy";
  constexpr int height = 37, width = 85;
  Numbers numbers;
  std::vector<std::uint8_t> x(height * width), expected(x.size());
  for (std::uint8_t& each : x) each = static_cast<std::uint8_t>(numbers.bits());
  for (int i = 0; i < height; ++i)
    for (int j = 0; j < width; ++j) {
      int total = 0, count = 0;
      for (int r = std::max(i - 2, 0); r <= std::min(i + 2, height - 1); ++r)
        for (int c = std::max(j - 2, 0); c <= std::min(j + 2, width - 1); ++c)
          total += x[r * width + c], ++count;
      expected[i * width + j] = static_cast<std::uint8_t>((total + count / 2) / count);
    }
  write_npy(in, "|u1", "(37, 85)", x);
  on_both_targets([&](const std::string& target) {
    check_ran(palladium({"run", "blur", "--in", in, "--out", out, "--target", target}), target,
              "u8[37,85]");
    CHECK(read_npy<std::uint8_t>(out, "|u1", "(37, 85)") == expected);
  });
}

TEST_CASE("run takes 16-bit floats, integers and bytes") {
  const Tool palladium;
  const std::string a = palladium.folder / "a.npy", o = palladium.folder / "o.npy";
  const auto doubled = [&]<class T>(const std::string& type, std::vector<T> elements) {
    write_npy(a, type, "(3,)", elements);
    const Finished finished = palladium({"run", "add", "--in", a, "--in", a, "--out", o});
    CHECK(finished.status == 0);
    return read_npy<T>(o, type, "(3,)");
  };
  using Bits = std::vector<std::uint16_t>;
  CHECK(doubled("<f2", Bits{0x3c00, 0xc100, 0x0001}) == Bits{0x4000, 0xc500, 0x0002});
  CHECK(doubled("|V2", Bits{0x3f80, 0xc040, 0x0001}) == Bits{0x4000, 0xc0c0, 0x0002});
  CHECK(doubled("<i4", std::vector<std::int32_t>{1, -7, 1 << 30}) ==
        std::vector<std::int32_t>{2, -14, INT32_MIN});
  CHECK(doubled("|u1", std::vector<std::uint8_t>{1, 100, 200}) ==
        std::vector<std::uint8_t>{2, 200, 144});
}

TEST_CASE("run goes where PALLADIUM_TARGET says, and where it may choose says what it chose") {
  const Tool palladium;
  const std::string a = palladium.folder / "a.npy", o = palladium.folder / "o.npy";
  write_npy(a, "<f4", "(4,)", std::vector<float>{1, 2, 3, 4});
  const std::vector<std::string> call = {"run", "add", "--in", a, "--in", a, "--out", o};
  check_ran(palladium(call, {{"PALLADIUM_TARGET", "emulator"}}), "emulator", "f32[4]");
  const Finished chosen = palladium(call);
  CHECK(chosen.status == 0);
  CHECK_THAT(chosen.out, ContainsSubstring("interpreter"));
  CHECK_THAT(chosen.err, ContainsSubstring("kernels run in the interpreter: no CUDA driver"));
}

TEST_CASE("run launches on the GPU that there is") {
  const Tool palladium;
  const std::string a = palladium.folder / "a.npy", o = palladium.folder / "o.npy",
                    log = palladium.folder / "log";
  write_npy(a, "<f4", "(2500,)", std::vector<float>(2500));
  const Finished finished = palladium({"run", "add", "--in", a, "--in", a, "--out", o},
                                      {fake_gpu(), {"FAKE_CUDA_LOG", log}});
  check_ran(finished, "cuda", "f32[2500]");
  CHECK_THAT(text_of(log), StartsWith("add_kernel grid 3x1x1 block 128x1x1"));
}

TEST_CASE("run names the kernels that there are, the targets, and the arrays that are missing") {
  const Tool palladium;
  const std::string a = palladium.folder / "a.npy", o = palladium.folder / "o.npy";
  write_npy(a, "<f4", "(4,)", std::vector<float>{1, 2, 3, 4});
  check_error(palladium({"run", "sofmax", "--in", a, "--out", o}), 1,
              "no shipped kernel is named 'sofmax'; there are add, softmax, layer_norm, "
              "rms_norm, cross_entropy, matmul, attention, transpose, blur");
  check_error(palladium({"run", "add", "--in", a, "--in", a, "--out", o, "--target", "gpu"}), 1,
              "no target is named 'gpu'; there are cuda, interpreter and emulator");
  check_error(palladium({"run", "add", "--in", a, "--out", o}), 1,
              "add takes 2 arrays like f32[n], f32[n]; --in names 1");
  check_error(palladium({"run", "add", "--in", a, "--in", a, "--out", o, "--out", o, "--target",
                         "interpreter"}),
              1, "add gives 1 array; --out names 2");
  check_error(palladium({"run", "add", "--in", a, "--in", a, "--out", o, "--target", "cuda"}), 1,
              "no CUDA driver");
}

TEST_CASE("run says why arrays do not fit a kernel") {
  const Tool palladium;
  const std::string f23 = palladium.folder / "f23.npy", f24 = palladium.folder / "f24.npy",
                    i32 = palladium.folder / "i32.npy", f3 = palladium.folder / "f3.npy",
                    f4 = palladium.folder / "f4.npy", b3 = palladium.folder / "b3.npy",
                    o = palladium.folder / "o.npy";
  write_npy(f23, "<f4", "(2, 3)", std::vector<float>(6));
  write_npy(f24, "<f4", "(2, 4)", std::vector<float>(8));
  write_npy(i32, "<i4", "(3, 2)", std::vector<std::int32_t>(6));
  write_npy(f3, "<f4", "(3,)", std::vector<float>(3));
  write_npy(f4, "<f4", "(4,)", std::vector<float>(4));
  write_npy(b3, "|b1", "(3,)", std::vector<char>(3));
  struct Case {
    std::string kernel;
    std::vector<std::string> inputs;
    std::string words;
  };
  const std::vector<Case> cases = {
      {"add",
       {f3, f4},
       "add takes arrays like f32[n], f32[n]; " + f3 + " is f32[3], " + f4 + " is f32[4]"},
      {"add", {f23, f23}, "add takes arrays like f32[n], f32[n]; "},
      {"add", {b3, b3}, "add: expected numbers, given bool"},
      {"softmax", {f3}, "softmax takes arrays like f32[m,1000]; "},
      {"softmax", {i32}, "softmax: x is of i32; floats are needed"},
      {"matmul", {f23, f24}, "matmul: a has 3 columns and b has 2 rows"},
      {"matmul", {f23, i32}, "dot: "},
      {"blur", {f23}, "blur: the image is of f32; u8 is needed"},
  };
  for (const Case& each : cases) {
    std::vector<std::string> call = {"run", each.kernel, "--out", o};
    for (const std::string& input : each.inputs) call.insert(call.end(), {"--in", input});
    const Finished finished = palladium(call, {{"PALLADIUM_TARGET", "interpreter"}});
    check_error(finished, 1, each.words);
    CHECK_THAT(finished.err, StartsWith("palladium: ") && !ContainsSubstring("run.cpp"));
  }
}

TEST_CASE("an unreadable or malformed .npy file is named, with what is wrong") {
  const Tool palladium;
  const std::string bad = palladium.folder / "bad.npy", o = palladium.folder / "o.npy";
  const auto check = [&](const std::string& words) {
    check_error(palladium({"run", "softmax", "--in", bad, "--out", o, "--target", "interpreter"}),
                1, "npy: " + bad + words);
    struct stat ignored;
    CHECK(::stat(o.c_str(), &ignored) != 0);
  };
  check(" cannot be read: open: No such file");
  REQUIRE(palladium::files::publish(bad, std::string_view("PK\x03\x04 an archive")));
  check(": this is not a .npy file");
  write_npy(bad, "<f4", "(3, 4)", std::vector<float>(11));
  check(": f32[3,4] does not fit the 44 bytes of data");
  write_npy(bad, "<c8", "(1, 1)", std::vector<double>(1));
  check(": elements of type '<c8' cannot be read");
  write_npy(bad, ">f4", "(1, 1)", std::vector<float>(1));
  check(": its elements '>f4' are big endian");
  REQUIRE(palladium::files::remove(bad));
  REQUIRE(::mkdir(bad.c_str(), 0700) == 0);
  check(" cannot be read: ");
}

TEST_CASE("an output that cannot be written is an error, and no device is replaced") {
  const Tool palladium;
  const std::string a = palladium.folder / "a.npy";
  write_npy(a, "<f4", "(1, 4)", std::vector<float>{1, 2, 3, 4});
  const auto to = [&](const std::string& path) {
    return palladium({"run", "softmax", "--in", a, "--out", path, "--target", "interpreter"});
  };
  check_error(to("/nonexistent/o.npy"), 1, "npy: /nonexistent/o.npy cannot be written: ");
  check_error(to("/dev/null"), 1, "npy: /dev/null cannot be written: it is not a plain file");
  check_error(to(palladium.folder.path()), 1, "it is not a plain file");
}
