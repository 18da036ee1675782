#include "tests/random/run.hpp"

#include <cmath>
#include <cstring>
#include <deque>
#include <utility>

#include "codegen/base/format.hpp"
#include "codegen/graph/graph.hpp"

namespace palladium::test::random_calls {
namespace {

/// Memory of the caller's with an array in it, and what it held before the call.
struct Lent {
  std::vector<std::byte> memory, before;
  Array array;
  bool may_change = false;
};

class Memory {
 public:
  explicit Memory(const Plan& plan) : plan_(plan), random_(plan.seed + 99) {}

  Givens givens() {
    Givens g;
    std::vector<Given> inputs;
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i)
      inputs.push_back({.array = lend(plan_.inputs[i], i == 0 && plan_.aliased, true)});
    std::size_t input = 0, number = 0;
    for (const char c : plan_.pattern) {
      if (c == 'r') {
        g.arguments.push_back(inputs[input++]);
      } else {
        const Number& n = plan_.numbers[number++];
        g.arguments.push_back({.kind = Given::Kind::scalar, .scalar = {n.dtype, n.bits}});
      }
    }
    for (std::size_t o = 0; o < plan_.outputs.size(); ++o) {
      if (o == 0 && plan_.aliased)
        g.outputs.push_back({.array = inputs[0].array});
      else
        g.outputs.push_back({.array = lend(plan_.outputs[o], true, false)});
    }
    for (const auto& change : plan_.spoil_call) change(g);
    return g;
  }

  /// The first array whose surroundings, or whose elements, were written though they may not be.
  std::string trespass() {
    for (std::size_t i = 0; i < lent_.size(); ++i) {
      Lent& l = lent_[i];
      std::vector<std::byte> now = l.memory;
      if (l.may_change)
        for_each_element(l, [&](std::size_t at, std::size_t bytes) {
          std::memcpy(now.data() + at, l.before.data() + at, bytes);
        });
      if (now != l.before)
        return fmt::format("memory of array {} {} was written that is no output's", i,
                           palladium::to_string(l.array.type()));
    }
    return "";
  }

 private:
  template <class F>
  static void for_each_element(const Lent& l, F visit) {
    const Array& a = l.array;
    const auto first =
        static_cast<std::size_t>(static_cast<std::byte*>(a.data()) - l.memory.data());
    const auto bytes = static_cast<std::size_t>(a.dtype().bytes());
    for (std::int64_t i = 0; i < a.size(); ++i) {
      std::int64_t rest = i, offset = 0;
      for (int d = a.rank(); d-- > 0; rest /= a.shape()[d].value())
        offset += rest % a.shape()[d].value() * a.stride(d);
      visit(first + static_cast<std::size_t>(offset) * bytes, bytes);
    }
  }

  Array lend(const Operand& o, bool may_change, bool filled) {
    Lent& l = lent_.emplace_back();
    l.may_change = may_change;
    const Shape shape = o.shape();
    const int rank = shape.rank();
    const int gap = o.layout == Layout::gaps ? random_.between(1, 16) : 0;
    std::vector<std::int64_t> strides(static_cast<std::size_t>(rank));
    std::int64_t stride = 1;
    for (int d = rank; d-- > 0;) {
      strides[static_cast<std::size_t>(d)] = stride;
      stride = stride * shape[d].value() + (d == rank - 1 ? gap : 0);
    }
    if (o.layout == Layout::repeated) strides[0] = 0;
    const auto bytes = static_cast<std::size_t>(o.dtype.bytes());
    const std::size_t before = 64 + (o.layout == Layout::shifted ? bytes : 0);
    l.memory.resize(before + static_cast<std::size_t>(stride) * bytes + 128);
    for (std::byte& b : l.memory) b = std::byte{1};  // a true bool
    const auto base = reinterpret_cast<std::uintptr_t>(l.memory.data());
    std::byte* data = l.memory.data() + before + (64 - base % 64) % 64;
    l.array = Array::view(data, shape, o.dtype,
                          {.strides = strides, .read_only = o.layout == Layout::read_only},
                          user(argument_line));
    if (filled)
      for_each_element(l, [&](std::size_t at, std::size_t size) {
        const std::uint64_t bits = random_number(random_, o.dtype);
        std::memcpy(l.memory.data() + at, &bits, size);
      });
    l.before = l.memory;
    return l.array;
  }

  const Plan& plan_;
  Random random_;
  std::deque<Lent> lent_;
};

// Bit by bit, but NaNs are all alike. An elementary function of an exact number is within the op
// table's 4 ulp on either target, and one of 16 bits is rounded from there.
std::string number_difference(DType t, std::uint64_t x, std::uint64_t y, bool elementary) {
  if (x == y) return "";
  if (!t.is_float()) return fmt::format("{} and {}", graph::to_int(t, x), graph::to_int(t, y));
  const double p = graph::to_double(t, x), q = graph::to_double(t, y);
  if (std::isnan(p) && std::isnan(q)) return "";
  const int digits = t == f64 ? 52 : t == f32 ? 23 : t == f16 ? 10 : 7;
  const double unit = std::ldexp(std::max(std::fabs(p), std::fabs(q)), -digits);
  if (elementary && std::fabs(p - q) <= (t.bytes() == 2 ? 1 : 8) * unit) return "";
  return fmt::format("{} and {}", p, q);
}

std::uint64_t bits_of(const Array& a, std::int64_t i) {
  const auto bytes = static_cast<std::size_t>(a.dtype().bytes());
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<std::byte*>(a.data()) + static_cast<std::size_t>(i) * bytes,
              bytes);
  return bits;
}

std::vector<Arg> as_arguments(const std::vector<Given>& given, Line line) {
  std::vector<Arg> args;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Location at = user(line, static_cast<int>(i));
    switch (given[i].kind) {
    case Given::Kind::array: args.emplace_back(given[i].array, at); break;
    case Given::Kind::scalar: args.emplace_back(given[i].scalar, at); break;
    case Given::Kind::nothing: args.emplace_back(at); break;
    }
  }
  return args;
}

// `use` with as many arguments as `args` has.
template <std::size_t N = 0, class F>
auto with(const std::vector<Arg>& args, F use) {
  if constexpr (N == 8) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return use(args[I]...); }
    (std::make_index_sequence<N>());
  } else {
    if (args.size() > N) return with<N + 1>(args, use);
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return use(args[I]...); }
    (std::make_index_sequence<N>());
  }
}

std::vector<Array> call(const Plan& plan, const Kernel& k, const Givens& given) {
  const std::vector<Arg> args = as_arguments(given.arguments, argument_line);
  const Location at = user(call_line);
  std::vector<Array> outputs;
  const auto keep = [&](const Outputs& all) {
    for (const Array& a : all.all()) outputs.push_back(a.copy());
  };
  switch (plan.entry) {
  case Plan::Entry::parentheses:
    if (args.empty())
      keep(k(Arg(at)));
    else
      keep(with(args, [&](const auto&... a) { return k(a...); }));
    break;
  case Plan::Entry::call:
    keep(with(args, [&](const auto&... a) { return k.call({a...}, at); }));
    break;
  case Plan::Entry::into: {
    const std::vector<Arg> outs = as_arguments(given.outputs, output_line);
    with(outs, [&](const auto&... o) {
      with(args, [&](const auto&... a) { k.into({o...}, {a...}, at); });
    });
    for (const Given& o : given.outputs)
      if (o.kind == Given::Kind::array) outputs.push_back(o.array.copy());
  }
  }
  return outputs;
}

}  // namespace

const char* to_string(Outcome::Kind kind) {
  switch (kind) {
  case Outcome::Kind::result: return "result";
  case Outcome::Kind::compile_error: return "CompileError";
  case Outcome::Kind::cuda_error: return "CudaError";
  case Outcome::Kind::internal_error: return "InternalError";
  case Outcome::Kind::users_own: return "the user's own exception";
  case Outcome::Kind::other: return "another exception";
  }
  return "";
}

Outcome run(const Plan& plan, const Kernel& kernel, Target target) {
  Outcome outcome;
  const auto fail = [&](Outcome::Kind kind, const char* message) {
    outcome.kind = kind;
    outcome.message = message;
  };
  try {
    Memory memory(plan);
    const Givens givens = memory.givens();
    try {
      outcome.outputs = call(plan, kernel.on(target), givens);
    } catch (...) {
      outcome.trespass = memory.trespass();
      throw;
    }
    outcome.trespass = memory.trespass();
  } catch (const UsersOwn&) {
    fail(Outcome::Kind::users_own, "");
  } catch (const CompileError& e) {
    fail(Outcome::Kind::compile_error, e.what());
  } catch (const CudaError& e) {
    fail(Outcome::Kind::cuda_error, e.what());
  } catch (const InternalError& e) {
    fail(Outcome::Kind::internal_error, e.what());
  } catch (const std::exception& e) {
    fail(Outcome::Kind::other, e.what());
  } catch (...) {
    fail(Outcome::Kind::other, "");
  }
  return outcome;
}

std::string lowered_text(const Plan& plan) try {
  Memory memory(plan);
  const Givens givens = memory.givens();
  std::vector<ArgType> types;
  for (const Given& g : givens.arguments)
    types.push_back(g.kind == Given::Kind::array ? ArgType(g.array) : ArgType(g.scalar));
  const Lowered lowered = kernel_of(plan).lower(types);
  return lowered.graph() + "\n" + lowered.decisions() + "\n" + lowered.cuda_source();
} catch (const Error& e) {
  return e.what();
}

std::string difference(const Plan& plan, const Outcome& a, const Outcome& b) {
  if (a.kind != b.kind)
    return fmt::format("{}: {}\nbut {}: {}", to_string(a.kind), a.message, to_string(b.kind),
                       b.message);
  if (a.kind != Outcome::Kind::result) return "";
  if (a.outputs.size() != b.outputs.size())
    return fmt::format("{} and {} outputs", a.outputs.size(), b.outputs.size());
  for (std::size_t o = 0; o < a.outputs.size(); ++o) {
    const Array &x = a.outputs[o], &y = b.outputs[o];
    if (!(x.shape() == y.shape()) || x.dtype() != y.dtype())
      return fmt::format("outputs[{}] is {} and {}", o, palladium::to_string(x.type()),
                         palladium::to_string(y.type()));
    for (std::int64_t i = 0; i < x.size(); ++i)
      if (const std::string d =
              number_difference(x.dtype(), bits_of(x, i), bits_of(y, i), plan.elementary);
          !d.empty())
        return fmt::format("outputs[{}] element {} of {}: {}", o, i, palladium::to_string(x.type()),
                           d);
  }
  return "";
}

}  // namespace palladium::test::random_calls
