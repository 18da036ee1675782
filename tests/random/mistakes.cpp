// What a user can do wrong in a call, and which mistakes a seed makes.
#include "tests/random/mistakes.hpp"
#include "codegen/base/format.hpp"

namespace palladium::test::random_calls {
namespace {

void change_argument(Making& m, std::function<void(Given&, Random&)> change) {
  const int i = m.some_input();
  const std::size_t position = m.argument_of(i);
  m.say(fmt::format("args[{}]", position));
  for (const int line : {int(kernel_line), int(call_line), argument_line + int(position)})
    m.at(line);
  for (int spec = 0; spec < static_cast<int>(m.plan.inputs.size()); ++spec)
    m.at(in_spec_line, spec);
  const std::uint64_t seed = m.random.bits();
  m.call([=, change = std::move(change)](Givens& g) {
    Random random(seed);
    if (position < g.arguments.size()) change(g.arguments[position], random);
  });
}

void change_output(Making& m, std::function<void(Given&, Random&)> change) {
  const int i = m.some_output();
  m.say(fmt::format("outputs[{}]", i));
  m.at(call_line);
  m.at(output_line, i);
  if (m.plan.entry != Plan::Entry::into) m.free();
  const std::uint64_t seed = m.random.bits();
  m.call([=, change = std::move(change)](Givens& g) {
    Random random(seed);
    if (static_cast<std::size_t>(i) < g.outputs.size())
      change(g.outputs[static_cast<std::size_t>(i)], random);
  });
}

const Mistake call_mistakes[] = {
    // ---- operands of the body
    {"a body of more operands",
     [](Making& m) {
       m.at(body_line);
       m.plan.operands_more = m.random.pick({1, 2});
     }},
    {"a body of fewer operands",
     [](Making& m) {
       m.at(body_line);
       m.plan.operands_more = -1;
     }},
    // ---- arguments
    {"an argument missing",
     [](Making& m) {
       m.at(call_line);
       m.at(kernel_line);
       m.at(body_line);
       m.at(argument_line);
       m.call([](Givens& g) { g.arguments.pop_back(); });
     }},
    {"an argument too many",
     [](Making& m) {
       m.at(call_line);
       m.at(kernel_line);
       m.at(body_line);
       m.call([](Givens& g) { g.arguments.push_back(g.arguments.back()); });
     }},
    {"a number for an array",
     [](Making& m) {
       m.at(body_line);
       change_argument(m, [](Given& given, Random&) {
         given.kind = Given::Kind::scalar;
         given.scalar = scalar(1.5f);
       });
     }},
    {"nothing for an array",
     [](Making& m) {
       change_argument(m, [](Given& given, Random& random) {
         if (random.chance(50))
           given.kind = Given::Kind::nothing;
         else
           given.array = Array();
       });
       m.at(body_line);
     }},
    {"an array of another dtype",
     [](Making& m) {
       change_argument(m, [](Given& given, Random& random) {
         const DType d = random.pick({bool_, i8, i16, i32, i64, u8, f16, bf16, f32, f64});
         if (given.array) given.array = Array::zeros(given.array.shape(), d);
       });
       m.at(output_line);  // aliased to what it was
       m.free();
       m.blame.code = true;
     }},
    {"an array of another shape",
     [](Making& m) {
       change_argument(m, [](Given& given, Random& random) {
         const Shape shape =
             random.pick<Shape>({{}, {0}, {1}, {5, 0}, {3, 3}, {1, 1, 1, 1, 1, 1, 1, 1}, {31}});
         if (given.array) given.array = Array::zeros(shape, given.array.dtype());
       });
       for (int i = 0; i < 3; ++i)
         for (const int line :
              {in_map_line, out_map_line, in_spec_line, out_spec_line, output_line})
           m.at(line, i);
       m.free();
       m.blame.code = true;
     }},
    {"gaps inside the rows",
     [](Making& m) {
       change_argument(m, [](Given& given, Random& random) {
         static std::vector<double> memory(4096);
         if (!given.array || given.array.rank() == 0) return;
         std::vector<std::int64_t> strides(static_cast<std::size_t>(given.array.rank()), 0);
         strides.back() = random.pick<std::int64_t>({2, 3, -1, 0, std::int64_t(1) << 40, largest});
         given.array = Array::view(memory.data() + 100, given.array.shape(), given.array.dtype(),
                                   {.strides = strides}, user(argument_line));
       });
       m.at(argument_line);
       m.free();
     }},
    {"an array on a device that is not there",
     [](Making& m) {
       change_argument(m, [](Given& given, Random& random) {
         if (!given.array) return;
         const Device far = Device::cuda(random.pick({0, 7, -1}));
         given.array = Array::view(given.array.data(), given.array.shape(), given.array.dtype(),
                                   {.device = &far}, user(argument_line));
       });
       m.at(argument_line);
     }},
    // ---- given outputs
    {"an output of another type",
     [](Making& m) {
       change_output(m, [](Given& given, Random&) {
         if (given.array)
           given.array = Array::zeros({7, 7, 7}, given.array.dtype() == f64 ? f32 : f64);
       });
     }},
    {"an output that is an input",
     [](Making& m) {
       m.at(call_line);
       for (int i = 0; i < 3; ++i) m.at(output_line, i);
       m.free();
       m.call([](Givens& g) {
         for (const Given& a : g.arguments)
           if (a.array && !g.outputs.empty()) g.outputs[0].array = a.array;
       });
     }},
    {"an output twice",
     [](Making& m) {
       m.at(call_line);
       for (int i = 0; i < 3; ++i) m.at(output_line, i);
       m.free();
       m.call([](Givens& g) {
         if (g.outputs.size() > 1) g.outputs[1] = g.outputs[0];
       });
     }},
    {"an output too many",
     [](Making& m) {
       m.at(call_line);
       m.at(output_line);
       if (m.plan.entry != Plan::Entry::into) m.free();
       m.call([](Givens& g) { g.outputs.push_back({.array = Array::zeros({4}, f32)}); });
     }},
    {"no outputs given",
     [](Making& m) {
       m.at(call_line);
       if (m.plan.entry != Plan::Entry::into) m.free();
       m.call([](Givens& g) { g.outputs.clear(); });
     }},
    {"an output that is read-only",
     [](Making& m) {
       change_output(m, [](Given& given, Random&) {
         if (given.array)
           given.array = Array::view(given.array.data(), given.array.shape(), given.array.dtype(),
                                     {.read_only = true});
       });
     }},
    {"a number or nothing for an output",
     [](Making& m) {
       change_output(m, [](Given& given, Random& random) {
         given.kind = random.chance(50) ? Given::Kind::scalar : Given::Kind::nothing;
         given.scalar = scalar(std::int64_t{3}, i32);
       });
     }},
};

constexpr int percent_of_bodies = 40;

}  // namespace

int mistakes_of(std::uint64_t seed) {
  Random random(seed * 31 + 7);
  return random.pick({0, 0, 0, 0, 0, 1, 1, 1, 2, 3});
}

Blame spoil(Plan& plan, int number) {
  Making m{plan, Random(plan.seed * 7919 + static_cast<std::uint64_t>(number) * 104729 + 1), {}};
  if (m.random.chance(percent_of_bodies)) {
    BodyFault f;
    f.kind = m.random.below(body_faults());
    f.after = m.random.below(plan.statements + 1);
    f.seed = m.random.bits();
    plan.faults.push_back(f);
    m.blame = {
        body_fault_expectation(f.kind), {body_line}, true, std::string(body_fault_name(f.kind))};
    return m.blame;
  }
  const std::span<const Mistake> options = option_mistakes(), all_of_calls(call_mistakes);
  const int i = m.random.below(static_cast<int>(options.size() + all_of_calls.size()));
  const auto number_of_options = static_cast<int>(options.size());
  const Mistake& mistake = i < number_of_options
                               ? options[static_cast<std::size_t>(i)]
                               : all_of_calls[static_cast<std::size_t>(i - number_of_options)];
  m.say(mistake.name);
  mistake.make(m);
  return m.blame;
}

}  // namespace palladium::test::random_calls
