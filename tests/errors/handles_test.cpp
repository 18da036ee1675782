// Handles that were moved from, names and functions that are null, kernels that ask for themselves.
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <string>
#include <utility>

#include "tests/errors/refused.hpp"
#include "tests/support/folder.hpp"

using Catch::Matchers::ContainsSubstring;
using pl::_;
using pl::test::array;
using pl::test::line;
using pl::test::one_output;
using pl::test::refused;

namespace {

// A CompileError that says `sentence` and names `line` of this file.
template <class F>
void throws(const F& call, const std::string& sentence) {
  CAPTURE(sentence);
  try {
    call();
  } catch (const pl::CompileError& e) {
    CHECK_THAT(e.what(), ContainsSubstring(sentence));
    CHECK(e.at().line == line);
    return;
  }
  FAIL_CHECK("nothing was thrown");
}

pl::Kernel doubling() {
  return pl::pallas_call([](pl::Ref x, pl::Ref o) { o[_] = x[_] * 2; },
                         {.name = "doubling", .out_type = {{8}, pl::f32}})
      .on(pl::Target::interpreter);
}

const pl::ShapeDtype row{{8}, pl::f32};

}  // namespace

TEST_CASE("handles of kernels stay what they were when they are moved from") {
  pl::Kernel kernel = doubling();
  const pl::Kernel other = std::move(kernel);
  const pl::Array x = pl::Array::of({1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f});
  const pl::Array y = kernel(x), z = other(x);
  CHECK(y.values<float>()[7] == 16);
  CHECK(z.values<float>()[7] == 16);
  pl::Lowered lowered = kernel.lower(row);
  const pl::Lowered moved = std::move(lowered);
  CHECK(lowered.graph() == moved.graph());
  pl::Body body([](pl::Ref a, pl::Ref o) { o[_] = a[_] + 1; });
  const pl::Body taken = std::move(body);
  CHECK(pl::test::text_of(body, one_output(), {array({8})}) ==
        pl::test::text_of(taken, one_output(), {array({8})}));
  pl::BlockSpec spec{{8}, [](pl::Index i) { return i; }};
  const pl::IndexMap map = std::move(spec.index_map);
  CHECK(spec.index_map);
}

TEST_CASE("an array that was moved from is no array") {
  pl::Array x = pl::Array::zeros({8}, pl::f32);
  const pl::Array taken = std::move(x);
  line = __LINE__ + 1;
  throws([&] { doubling()(x); }, "args[0] is an empty pl::Array");
  line = __LINE__ + 1;
  throws([&] { (void)x.values<float>(); }, "data: there is no array");
  line = __LINE__ + 1;
  throws([&] { x.reshape({2, 4}); }, "reshape: there is no array");
  line = __LINE__ + 1;
  throws([&] { x.copy(); }, "copy: there is no array");
  line = __LINE__ + 1;
  throws([&] { x.to_dlpack(); }, "to_dlpack: there is no array");
  line = __LINE__ + 1;
  pl::Outputs outputs = doubling()(taken);
  const pl::Outputs moved = std::move(outputs);
  throws([&] { pl::Array y = outputs; }, "the outputs of the call are not here");
}

TEST_CASE("a scalar without a dtype is refused where it is made") {
  line = __LINE__ + 1;
  throws([] { pl::scalar(1.0, pl::DType()); }, "scalar: a dtype is needed");
  line = __LINE__ + 1;
  throws([] { pl::scalar(std::int64_t{1}, pl::DType()); }, "scalar: a dtype is needed");
  line = __LINE__ + 1;
  throws([] { pl::scalar(1.0L); }, "scalar: a dtype is needed");
}

TEST_CASE("a value is not cast to no dtype") {
  line = __LINE__ + 1;
  refused([](pl::Ref x, pl::Ref o) { o[_] = pl::Value(x[_]).astype(pl::DType()); }, "dtype");
  line = __LINE__ + 1;
  refused([](pl::Ref x, pl::Ref o) { o[_] = pl::DType()(x[_]); }, "dtype");
  line = __LINE__ + 1;
  refused([](pl::Ref x, pl::Ref o) { o[_] = x.bitcast(pl::DType())[_]; }, "dtype");
}

TEST_CASE("names that are null pointers are refused") {
  const char* const null = nullptr;
  line = __LINE__ + 1;
  refused([=](pl::Ref x, pl::Ref o) { o[_] = pl::Value(x[_]).named(null); }, "a null pointer");
  line = __LINE__ + 1;
  refused([=](pl::Ref, pl::Ref o) { o[_] = pl::axis_index(null); }, "a null pointer");
  line = __LINE__ + 1;
  refused([=](pl::Ref, pl::Ref o) { o[_] = pl::axis_size(null); }, "a null pointer");
  line = __LINE__ + 1;
  refused([=](pl::Ref, pl::Ref, pl::Scratch s) { s[null][_] = 1; }, "a null pointer");
  line = __LINE__ + 1;
  throws([=] { pl::dim(null); }, "dim: a symbol needs a name");
  line = __LINE__ + 1;
  throws([] { pl::dim(""); }, "dim: a symbol needs a name");
  CHECK(pl::dtype_named(null) == pl::DType());
  pl::PallasCallOptions options = one_output();
  options.grid = {{null, 1}};
  CHECK_NOTHROW(pl::test::traced([](pl::Ref x, pl::Ref o) { o[_] = x[_]; }, options, {array({8})}));
}

TEST_CASE("functions that are null pointers are refused") {
  void (*const body)(pl::Ref, pl::Ref) = nullptr;
  line = __LINE__ + 1;
  throws([=] { pl::pallas_call(body, one_output()); }, "kernel function: the pointer is null");
  pl::Indices (*const map)(pl::Index) = nullptr;
  line = __LINE__ + 1;
  throws([=] { pl::IndexMap m(map); }, "index map function: the pointer is null");
}

TEST_CASE("a kernel that its options function calls or lowers is refused") {
  const pl::Kernel* self = nullptr;
  bool lowers = false;
  const pl::Kernel kernel =
      pl::pallas_call([](pl::Ref x, pl::Ref o) { o[_] = x[_]; },
                      [&](pl::ShapeDtype x) {
                        const pl::Array a = pl::Array::zeros({8}, pl::f32);
                        line = __LINE__ + 1;
                        if (lowers) self->lower(row);
                        line = __LINE__ + 1;
                        if (!lowers) (*self)(a);
                        return pl::PallasCallOptions{.name = "self", .out_type = x};
                      })
          .on(pl::Target::interpreter);
  self = &kernel;
  for (const bool l : {false, true}) {
    lowers = l;
    throws([&] { kernel(pl::Array::zeros({8}, pl::f32)); },
           "a kernel's options function calls or lowers the kernel itself");
    throws([&] { kernel.lower(row); },
           "a kernel's options function calls or lowers the kernel itself");
  }
}

TEST_CASE("options functions that make and call kernels without end are refused") {
  struct Endless {
    static pl::Kernel make() {
      return pl::pallas_call([](pl::Ref o) { o[_] = 1; },
                             [](std::span<const pl::ShapeDtype>) {
                               line = __LINE__ + 1;
                               make().lower();
                               return one_output();
                             });
    }
  };
  throws([] { Endless::make().lower(); },
         "more than 64 options functions call kernels inside each other");
}

TEST_CASE("scratch of more elements than a value can have is refused by name") {
  for (const pl::Shape& shape : {pl::Shape{std::int64_t{1} << 46},
                                 pl::Shape{std::int64_t{1} << 31, std::int64_t{1} << 31}}) {
    pl::PallasCallOptions options = one_output();
    line = __LINE__ + 1;
    options.scratch_types = {{"acc", plgpu::SMEM(shape, pl::f32)}};
    refused([](pl::Ref, pl::Ref, pl::Ref) {}, options, {array({8})},
            "kernel 'k': scratch 'acc' is f32" + to_string(shape) +
                "; at most 2147483647 elements are possible");
  }
}

TEST_CASE("an array for which there is no memory is refused with its line") {
  line = __LINE__ + 1;
  throws([] { pl::Array::empty({std::int64_t{1} << 46}, pl::f32); }, "there is no memory for the");
}

TEST_CASE("a call under a variable with a value that it cannot have is refused") {
  const pl::test::Environment wrong("PALLADIUM_JIT", "of");
  CHECK_THROWS_MATCHES(doubling().lower(row), pl::CompileError,
                       Catch::Matchers::Message("PALLADIUM_JIT is 'of'; it can be on or off"));
}
