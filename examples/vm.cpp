// A little machine that runs a program on 256 numbers at once, compared with plain loops. The
// program is data: one compiled kernel runs all programs.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "palladium/palladium.hpp"

using pl::_;

namespace {

enum Op : int { add, multiply, limit, save, add_saved, repeat_below };
struct Instruction {
  int op, number;
};
constexpr std::int64_t block = 256;

/// What an instruction finds and leaves: where the next one stands, and two registers.
struct Machine {
  pl::Value next, x, saved;
};

pl::Kernel vm() {
  return pl::pallas_call(
      [](pl::Ref code, pl::Ref x, pl::Ref o) {
        const pl::Value end = pl::i32(code.shape()[0]);
        const Machine start{pl::i32(0), x[_], pl::zeros({block}, pl::i32)};
        const Machine last =
            pl::while_loop([&](Machine m) { return m.next < end; },
                           [&](Machine m) {
                             const pl::Value n = code[{m.next, 1}], next = m.next + 1;
                             return pl::switch_(
                                 code[{m.next, 0}],  //
                                 [&] {
                                   return Machine{next, m.x + n, m.saved};
                                 },
                                 [&] {
                                   return Machine{next, m.x * n, m.saved};
                                 },
                                 [&] {
                                   return Machine{next, pl::minimum(m.x, n), m.saved};
                                 },
                                 [&] {
                                   return Machine{next, m.x, m.x};
                                 },
                                 [&] {
                                   return Machine{next, m.x + m.saved, m.saved};
                                 },
                                 [&] {
                                   const pl::Value again = pl::min(m.x) < n;
                                   return Machine{pl::where(again, 0, next), m.x, m.saved};
                                 });
                           },
                           start);
        o[_] = last.x;
      },
      [](pl::ShapeDtype code, pl::ShapeDtype x) {
        (void)code;
        const pl::BlockSpec part{{block}, [](pl::Index i) { return i; }};
        return pl::PallasCallOptions{.name = "vm",
                                     .out_type = x,
                                     .grid = {pl::cdiv(x.shape[0], block)},
                                     .in_specs = {pl::BlockSpec(), part},
                                     .out_specs = {part}};
      });
}

/// The same for the numbers of one block.
void interpret(const std::vector<Instruction>& code, int* x, std::int64_t count) {
  std::vector<int> saved(static_cast<std::size_t>(count));
  for (std::size_t at = 0; at < code.size(); ++at) {
    const auto [op, n] = code[at];
    for (std::int64_t i = 0; i < count; ++i) {
      int& kept = saved[static_cast<std::size_t>(i)];
      if (op == add) x[i] += n;
      if (op == multiply) x[i] *= n;
      if (op == limit) x[i] = std::min(x[i], n);
      if (op == save) kept = x[i];
      if (op == add_saved) x[i] += kept;
    }
    if (op == repeat_below && *std::min_element(x, x + count) < n) at = std::size_t(-1);
  }
}

}  // namespace

int main() try {
  constexpr std::int64_t size = 4 * block;
  const pl::Kernel run = vm();
  int wrong = 0, programs = 0;
  for (const std::vector<Instruction>& code : std::vector<std::vector<Instruction>>{
           {{add, 3}, {multiply, 2}, {repeat_below, 1000}},
           {{save, 0}, {add_saved, 0}, {add_saved, 0}, {limit, 500}, {add, 1}, {repeat_below, 400}},
           {{multiply, -1}, {limit, 0}}}) {
    const pl::Array instructions =
        pl::Array::empty({static_cast<std::int64_t>(code.size()), 2}, pl::i32);
    const pl::Array x = pl::Array::empty({size}, pl::i32);
    for (std::size_t i = 0; i < code.size(); ++i) {
      instructions.data<std::int32_t>()[2 * i] = code[i].op;
      instructions.data<std::int32_t>()[2 * i + 1] = code[i].number;
    }
    for (int i = 0; i < size; ++i) x.data<std::int32_t>()[i] = i % 97;
    const pl::Array result = run(instructions.to(pl::default_device()), x.to(pl::default_device()));
    const pl::Array o = result.to(pl::Device::cpu());
    for (std::int64_t first = 0; first < size; first += block)
      interpret(code, x.data<std::int32_t>() + first, block);
    for (std::int64_t i = 0; i < size; ++i)
      wrong += o.data<std::int32_t>()[i] != x.data<std::int32_t>()[i];
    ++programs;
  }
  std::printf("vm: %d programs on %s, %d numbers wrong\n", programs,
              pl::to_string(pl::default_target()), wrong);
  return wrong == 0 ? 0 : 1;
} catch (const pl::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
