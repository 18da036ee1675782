#include "runtime/launch/run_interpreter.hpp"

#include <new>
#include <optional>

#include "codegen/base/packed.hpp"
#include "codegen/base/profile.hpp"

namespace palladium::runtime {
namespace {

interpreter::Buffer buffer(const Array& elements) {
  const Array array = in_bytes(elements);
  interpreter::Buffer b{.data = array.data()};
  for (int d = 0; d < array.rank(); ++d) {
    b.shape.push_back(array.shape()[d].value());
    b.strides.push_back(array.stride(d));
  }
  return b;
}

}  // namespace

interpreter::Invocation invocation(const Specialization& s, std::span<const Arg> arguments,
                                   std::span<const Arg> outputs,
                                   const Signature::Symbols& symbols) {
  interpreter::Invocation call;
  for (const Arg& a : arguments) {
    if (a.array())
      call.arrays.push_back(buffer(*a.array()));
    else
      call.scalars.push_back(a.scalar().bits);
  }
  for (const Arg& o : outputs) call.arrays.push_back(buffer(*o.array()));
  call.symbols.assign(symbols, symbols + s.signature.num_symbols());
  return call;
}

void run_interpreter(const Specialization& s, std::span<const Arg> arguments,
                     std::span<const Arg> outputs, const Signature::Symbols& symbols, bool fresh) {
  const profile::Range range("launch", s.graph.name);
  const interpreter::Invocation call = invocation(s, arguments, outputs, symbols);
  const InterpretParams& params = s.interpret.params;
  std::optional<std::uint64_t> seed;
  if (params.random_seed >= 0) seed = static_cast<std::uint64_t>(params.random_seed);
  try {
    interpreter::run(s.graph, call,
                     {.poison = params.out_of_bounds == InterpretParams::poison,
                      .detect_races = params.detect_races,
                      .poison_unwritten = fresh,
                      .unwritten_is_error = params.uninitialised == InterpretParams::error,
                      .cores = params.num_cores_per_device,
                      .seed = seed});
  } catch (const CompileError& e) {
    if (e.at().line != 0) throw;
    throw CompileError(s.graph.at, "kernel '" + s.graph.name + "': " + e.what());
  } catch (const std::bad_alloc& error) {
    throw CudaError("interpreter: kernel '" + s.graph.name + "': out of memory (" + error.what() +
                    "); smaller blocks need less of it");
  }
}

}  // namespace palladium::runtime
