#include "runtime/call/check.hpp"

#include "runtime/call/signature.hpp"
#include "runtime/driver/driver.hpp"

namespace palladium::runtime {
namespace {

std::string origin(bool is_output, std::size_t i) {
  return (is_output ? "outputs[" : "args[") + std::to_string(i) + "]";
}

[[noreturn]] void fail(const std::string& kernel, const std::string& what, const Arg& arg) {
  throw CompileError(arg.at(), "'" + kernel + "': " + what);
}

void check_array(const std::string& kernel, const Arg& arg, bool is_output, std::size_t i) {
  const std::string name = origin(is_output, i);
  if (is_output && !arg.array()) fail(kernel, name + " must be an array", arg);
  if (!arg.array()) {
    if (arg.is_none()) fail(kernel, name + " is no array", arg);
    return;
  }
  const Array& a = *arg.array();
  if (!a) fail(kernel, name + " is an empty pl::Array", arg);
  if (!is_inner_contiguous(a)) {
    const int last = a.rank() - 1;
    fail(kernel,
         name + " " + to_string(a.type()) + " has stride " + std::to_string(a.stride(last)) +
             " along its last dimension, which must be 1; copy it with .copy()",
         arg);
  }
  if (is_output && !is_writable(a))
    fail(kernel,
         name + (a.is_read_only() ? " is read-only"
                                  : " has stride 0: several of its elements share one place"),
         arg);
}

/// As bytes(), which of most arrays is known without a look at their dimensions.
[[gnu::always_inline]] inline Array::Bytes range_of(const Array& array) {
  if (!array.is_dense() || array.size() == 0) return array.bytes();
  const auto* first = static_cast<const std::byte*>(array.data());
  return {first, first + array.dtype().bytes_of(array.size())};
}

bool overlap(const Array::Bytes& x, const Array::Bytes& y) {
  return x.begin < y.end && y.begin < x.end;
}

bool same_memory(const Array& a, const Array& b) {
  if (a.data() != b.data()) return false;
  for (int d = 0; d < a.rank(); ++d)
    if (a.shape()[d].value() > 1 && a.stride(d) != b.stride(d)) return false;
  return true;
}

/// The two arrays that may not be what they are to each other.
struct Conflict {
  bool exists = false;
  std::size_t output = 0, other = 0;
  bool other_is_output = false;
  bool aliased = false;  // they should be the same memory
};

Conflict find_conflict(const graph::Graph& g, std::span<const Arg> arguments,
                       std::span<const Arg> outputs) {
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const Array& output = *outputs[o].array();
    const Array::Bytes written = range_of(output);
    int input = -1;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const Array* argument = arguments[i].array();
      if (!argument) continue;
      ++input;
      bool aliased = false;
      for (const graph::Alias& a : g.aliases)
        aliased |= a.input == input && a.output == static_cast<int>(o);
      if (aliased ? !same_memory(output, *argument) : overlap(written, range_of(*argument)))
        return {true, o, i, false, aliased};
    }
    for (std::size_t other = 0; other < o; ++other)
      if (overlap(written, range_of(*outputs[other].array()))) return {true, o, other, true, false};
  }
  return {};
}

}  // namespace

bool is_writable(const Array& array) {
  if (array.is_read_only()) return false;
  if (array.is_dense()) return true;
  for (int d = 0; d < array.rank(); ++d)
    if (array.stride(d) == 0 && array.shape()[d].value() > 1) return false;
  return true;
}

void check_arrays(const std::string& kernel, std::span<const Arg> arguments,
                  std::span<const Arg> outputs) {
  for (std::size_t i = 0; i < arguments.size(); ++i) check_array(kernel, arguments[i], false, i);
  for (std::size_t i = 0; i < outputs.size(); ++i) check_array(kernel, outputs[i], true, i);
}

void check_devices(const std::string& kernel, Target target, Device device,
                   std::span<const Arg> arguments, std::span<const Arg> outputs) {
  const auto check = [&](const Arg& arg, bool is_output, std::size_t i) {
    if (!arg.array() || arg.array()->device() == device) return;
    const driver::Status& driver = driver::status();
    if (target == Target::cuda && driver.state != driver::State::ready)
      throw CudaError("'" + kernel + "': the target is cuda, but kernels cannot run there: " +
                      driver.reason + "\n  at " + to_string(arg.at()));
    fail(kernel,
         origin(is_output, i) + " is on " + to_string(arg.array()->device()) + " but the target " +
             to_string(target) + " works on " + to_string(device) + "; write .to(pl::Device::" +
             (device.is_cpu() ? "cpu()" : "cuda(" + std::to_string(device.index) + ")") + ")",
         arg);
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) check(arguments[i], false, i);
  for (std::size_t i = 0; i < outputs.size(); ++i) check(outputs[i], true, i);
}

void check_refs(const std::string& kernel, std::span<const Arg> arguments, std::size_t captured) {
  const auto name = [&](std::size_t i) {
    return i < captured ? origin(false, i) : "captured[" + std::to_string(i - captured) + "]";
  };
  for (std::size_t i = 0; i < arguments.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const Arg &a = arguments[j], &b = arguments[i];
      if ((!a.is_ref() && !b.is_ref()) || !a.array() || !b.array() ||
          !overlap(range_of(*a.array()), range_of(*b.array())))
        continue;
      const std::string both = name(j) + " and " + name(i);
      const Arg& where = i < captured ? b : a;
      if (!a.is_ref() || !b.is_ref())
        fail(kernel, both + " share memory, of which one is an ArrayRef, which is written", where);
      fail(kernel,
           i < captured
               ? "cannot pass the same ref into a kernel multiple times: " + both + " share memory"
           : j < captured ? "a closed-over ref that aliases a passed-in ref is not supported: " +
                                both + " share memory"
                          : both + " are closed-over refs that share memory",
           where);
    }
}

bool aliases_hold(const graph::Graph& g, std::span<const Arg> arguments,
                  std::span<const Arg> outputs) {
  return !find_conflict(g, arguments, outputs).exists;
}

void check_aliases(const graph::Graph& g, std::span<const Arg> arguments,
                   std::span<const Arg> outputs) {
  const Conflict c = find_conflict(g, arguments, outputs);
  if (!c.exists) return;
  const std::string first = origin(true, c.output), second = origin(c.other_is_output, c.other);
  if (c.aliased)
    fail(g.name, first + " is aliased to " + second + ", so both must be the same array",
         outputs[c.output]);
  fail(g.name,
       first + " overlaps " + second +
           "; give it memory of its own, or say so with .input_output_aliases",
       outputs[c.output]);
}

namespace {

std::size_t position_of(const graph::Graph& g, graph::Argument::Kind kind, int number) {
  for (std::size_t i = 0; i < g.arguments.size(); ++i)
    if (g.arguments[i].kind == kind && g.arguments[i].index == number) return i;
  throw InternalError("'" + g.name + "': no argument has number " + std::to_string(number));
}

}  // namespace

std::size_t position_of_input(const graph::Graph& g, int number) {
  return position_of(g, graph::Argument::Kind::input, number);
}

std::size_t position_of_scalar(const graph::Graph& g, int number) {
  return position_of(g, graph::Argument::Kind::scalar, number);
}

}  // namespace palladium::runtime
