// Arrays as numbers, and kernel functions run on them by the interpreter alone.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "runtime/interpreter/interpreter.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/tracing.hpp"

namespace palladium::test {

/// A dense array whose elements are read and written as numbers.
class Tensor {
 public:
  /// Fresh memory: what nobody writes is poison.
  Tensor(DType dtype, std::vector<std::int64_t> shape)
      : dtype_(dtype),
        shape_(std::move(shape)),
        bytes_(static_cast<std::size_t>(size()) * dtype.bytes()) {
    for (std::int64_t i = 0; i < size(); ++i) set_bits(i, interpreter::poison_bits(dtype));
  }
  Tensor(DType dtype, std::vector<std::int64_t> shape, std::initializer_list<double> elements)
      : Tensor(dtype, std::move(shape)) {
    REQUIRE(static_cast<std::int64_t>(elements.size()) == size());
    std::int64_t i = 0;
    for (const double x : elements) set(i++, x);
  }
  template <class F>
  requires std::is_invocable_r_v<double, F, std::int64_t> Tensor(DType dtype,
                                                                 std::vector<std::int64_t> shape,
                                                                 F element)
      : Tensor(dtype, std::move(shape)) {
    for (std::int64_t i = 0; i < size(); ++i) set(i, element(i));
  }

  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t size() const { return graph::element_count(shape_); }
  std::byte* data() { return bytes_.data(); }

  std::uint64_t bits(std::int64_t i) const {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes_.data() + i * dtype_.bytes(), dtype_.bytes());
    return bits;
  }
  void set_bits(std::int64_t i, std::uint64_t bits) {
    std::memcpy(bytes_.data() + i * dtype_.bytes(), &bits, dtype_.bytes());
  }
  double operator[](std::int64_t i) const { return graph::to_double(dtype_, bits(i)); }
  void set(std::int64_t i, double x) { set_bits(i, graph::to_bits(dtype_, x)); }
  std::vector<double> numbers() const {
    std::vector<double> result;
    for (std::int64_t i = 0; i < size(); ++i) result.push_back((*this)[i]);
    return result;
  }
  bool is_poison(std::int64_t i) const { return bits(i) == interpreter::poison_bits(dtype_); }

  interpreter::Buffer buffer() { return {bytes_.data(), shape_, {}}; }

 private:
  DType dtype_;
  std::vector<std::int64_t> shape_;
  std::vector<std::byte> bytes_;
};

inline Tensor arange(DType dtype, std::vector<std::int64_t> shape) {
  return Tensor(dtype, std::move(shape), [](std::int64_t i) { return static_cast<double>(i); });
}
inline Tensor full(DType dtype, std::vector<std::int64_t> shape, double x) {
  return Tensor(dtype, std::move(shape), [=](std::int64_t) { return x; });
}

inline Shape shape_of(const Tensor& t) {
  Shape shape;
  for (const std::int64_t n : t.shape()) shape.push_back(n);
  return shape;
}

/// The arrays as they are now.
inline Call call_of(const std::vector<Tensor*>& inputs, const std::vector<Tensor*>& outputs) {
  Call call;
  for (const auto* list : {&inputs, &outputs})
    for (Tensor* t : *list) {
      call.shapes.push_back(t->shape());
      call.arrays.emplace_back(t->data(), t->data() + t->size() * t->dtype().bytes());
    }
  return call;
}

enum class On { interpreter, both };

/// Traces `body` for static shapes and runs it, looking for races: inputs, then outputs, which are
/// written. The options' out_type is that of the outputs. The emitted text, in the emulator, must
/// give the same, as far as its graph makes it exact.
inline void run(const Body& body, PallasCallOptions options, std::vector<Tensor*> inputs,
                std::vector<Tensor*> outputs,
                const interpreter::Options& how = {.detect_races = true}, On on = On::both,
                Location at = here()) {
  std::vector<trace::ArgumentType> arguments;
  interpreter::Invocation call;
  for (Tensor* t : inputs) {
    arguments.push_back(array(shape_of(*t), t->dtype()));
    call.arrays.push_back(t->buffer());
  }
  std::vector<ShapeDtype> results;
  for (Tensor* t : outputs) {
    results.push_back({shape_of(*t), t->dtype()});
    call.arrays.push_back(t->buffer());
  }
  options.out_type = OutType(results);
  const graph::Graph g = traced(body, options, arguments, at);
  Call emulated = call_of(inputs, outputs);
  const Tolerance tolerance =
      on == On::interpreter ? Tolerance() : tolerance_of(g, emulated, how.poison);
  interpreter::run(g, call, how);
  if (on == On::interpreter) return;
  INFO("run at " << to_string(at));
  run_emulator(g, {.compute_capability = 90}, emulated, how.poison);
  CHECK(difference(g, call_of(inputs, outputs), emulated, tolerance) == "");
}

/// One kernel in which outputs[k] = f(k, inputs[k]) for each k: several cases for one compile.
template <class F>
void run_each(std::vector<Tensor>& inputs, std::vector<Tensor>& outputs, PallasCallOptions options,
              const F& f, Location at = here()) {
  std::vector<Tensor*> in, out;
  for (Tensor& t : inputs) in.push_back(&t);
  for (Tensor& t : outputs) out.push_back(&t);
  const auto body = [&](Refs refs) {
    for (std::size_t k = 0; k < in.size(); ++k) refs[in.size() + k][_] = f(k, refs[k][_]);
  };
  run(body, std::move(options), in, out, {.detect_races = true}, On::both, at);
}

/// As above; the message of the CompileError, "" if there is none.
inline std::string failure_of(const Body& body, PallasCallOptions options,
                              std::vector<Tensor*> inputs, std::vector<Tensor*> outputs,
                              Location at = here()) {
  try {
    run(body, std::move(options), std::move(inputs), std::move(outputs), {.detect_races = true},
        On::interpreter, at);
  } catch (const CompileError& e) {
    return e.what();
  }
  return "";
}

}  // namespace palladium::test
