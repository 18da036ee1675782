// The example programs on files that the user names.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "palladium/palladium.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/process.hpp"
#include "tests/support/targets.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using test::Finished;
using test::Folder;
using test::Variable;

namespace {

struct Files {
  Folder folder;

  std::string operator()(const char* name, const Shape& shape, DType dtype = f32) const {
    const Array a = Array::empty(shape, dtype);
    for (std::int64_t i = 0; i < a.size(); ++i) {
      if (dtype == f32) a.data<float>()[i] = static_cast<float>(i % 13) - 6;
      if (dtype == f64) a.data<double>()[i] = 0;
      if (dtype == u8) a.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(7 * i);
    }
    save_npy(folder / name, a);
    return folder / name;
  }

  Finished run(const std::string& program, std::vector<std::string> arguments,
               std::vector<Variable> more = {}) const {
    arguments.insert(arguments.begin(), test::binary_dir() + "/" + program);
    more.insert(more.end(), {{"PALLADIUM_CACHE_DIR", folder / "cache"},
                             {"PALLADIUM_LIBCUDA", "no-such-libcuda.so.1"},
                             {"PALLADIUM_TARGET", "interpreter"}});
    const Finished finished = test::run_program(arguments, more);
    UNSCOPED_INFO("stdout: " << finished.out << "stderr: " << finished.err);
    return finished;
  }
};

}  // namespace

TEST_CASE_METHOD(Files, "the examples take .npy files") {
  const struct {
    const char* program;
    std::vector<std::string> files;
    const char* expected;
  } cases[] = {
      {"vector_add",
       {(*this)("x", {1025}), (*this)("y", {1025})},
       "vector_add: f32[1025] on interpreter, largest error 0\n"},
      {"softmax", {(*this)("z", {3, 70})}, "softmax: f32[3,70] on interpreter, largest error "},
      {"matmul",
       {(*this)("a", {5, 33}), (*this)("b", {33, 70})},
       "matmul: f32[5,70] on interpreter, largest error 0\n"},
      {"blur", {(*this)("i", {17, 65}, u8)}, "blur: u8[17,65] on interpreter, largest error 0\n"},
  };
  for (const auto& c : cases) {
    const Finished finished = run("examples/" + std::string(c.program), c.files);
    CHECK(finished.status == 0);
    CHECK_THAT(finished.out, ContainsSubstring(c.expected));
  }
}

TEST_CASE_METHOD(Files, "an example says what is wrong with its files") {
  const Finished missing = run("examples/softmax", {folder / "none.npy"});
  CHECK(missing.status == 1);
  CHECK_THAT(missing.err, ContainsSubstring("none.npy"));
  const Finished other = run("examples/vector_add", {(*this)("x", {5}), (*this)("y", {6})});
  CHECK(other.status == 1);
  CHECK_THAT(other.err, ContainsSubstring("expected arrays of one shape and dtype"));
  CHECK(run("examples/blur", {"one", "two"}).status == 2);
}

TEST_CASE_METHOD(Files, "the demo gives each file to the kernel of its kind") {
  const Finished finished =
      run("palladium_demo", {(*this)("i", {17, 65}, u8), (*this)("x", {100}), (*this)("z", {3, 70}),
                             (*this)("y", {100}), (*this)("a", {5, 33}), (*this)("b", {33, 70})});
  CHECK(finished.status == 0);
  for (const char* types : {" f32[100], f32[100] in ", " f32[3,70] in ",
                            " f32[5,33], f32[33,70] in ", " u8[17,65] in "})
    CHECK_THAT(finished.out, ContainsSubstring(types));
  CHECK_THAT(finished.out, EndsWith("demo: 4 kernels on interpreter, 0 failed\n"));

  const Finished refused = run("palladium_demo", {(*this)("d", {4}, f64)});
  CHECK(refused.status == 1);
  CHECK_THAT(refused.err, ContainsSubstring("f64[4]"));
}

TEST_CASE_METHOD(Files, "with NVRTC hidden the cache serves the demo, and without one it fails") {
  const std::vector<std::string> small = {(*this)("x", {100}),    (*this)("y", {100}),
                                          (*this)("z", {3, 70}),  (*this)("a", {5, 33}),
                                          (*this)("b", {33, 70}), (*this)("i", {17, 65}, u8)};
  const Variable hidden = {"PALLADIUM_NVRTC", "/nonexistent"};
  const Finished cold = run("palladium_demo", small, {hidden});
  CHECK(cold.status == 1);
  CHECK_THAT(cold.out, EndsWith("demo: 4 kernels on interpreter, 4 failed\n"));
  CHECK(run("palladium_demo", small).status == 0);
  const Finished warm = run("palladium_demo", small, {hidden});
  CHECK(warm.status == 0);
  CHECK_THAT(warm.out, EndsWith("demo: 4 kernels on interpreter, 0 failed\n"));
}
