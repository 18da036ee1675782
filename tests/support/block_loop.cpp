#include "tests/support/block_loop.hpp"

#include <utility>

#include "palladium/gpu.hpp"
#include "tests/support/tracing.hpp"

namespace palladium::test {

using pl::_;

namespace {

template <std::size_t>
using Same = Value;

template <std::size_t... I>
std::vector<Value> carried(const Value& end, const std::vector<Value>& init, const auto& next,
                           std::index_sequence<I...>) {
  const auto iteration = [&](Index i, Same<I>... sums) {
    const std::vector<Value> left = next(i, std::vector<Value>{sums...});
    if constexpr (sizeof...(I) == 1)
      return left[0];
    else
      return carry(left[I]...);
  };
  const auto last = loop(0, end, iteration, init[I]...);
  if constexpr (sizeof...(I) == 1)
    return {last};
  else
    return {last[I]...};
}

std::vector<Value> carried(const Value& end, const std::vector<Value>& init, const auto& next) {
  switch (init.size()) {
  case 1: return carried(end, init, next, std::make_index_sequence<1>());
  case 2: return carried(end, init, next, std::make_index_sequence<2>());
  case 3: return carried(end, init, next, std::make_index_sequence<3>());
  case 4: return carried(end, init, next, std::make_index_sequence<4>());
  case 5: return carried(end, init, next, std::make_index_sequence<5>());
  default: return carried(end, init, next, std::make_index_sequence<6>());
  }
}

}  // namespace

Value BlockLoop::block(const Walked& w, const Ref& of, const Value& i) const {
  const Slice now = ds(i * static_cast<int>(columns), columns);
  const Ref part = by_axis() ? of : w.is_turned ? of.at({_, now}) : of.at({now, _});
  if (masked == 0) return part[_];
  const Shape along = w.is_turned ? Shape{1, columns} : Shape{columns, 1};
  const Value row = iota(i32, along, w.is_turned ? 1 : 0) + i * static_cast<int>(columns);
  return load(part, {.mask = row < static_cast<int>(keys() - masked), .other = 0});
}

std::vector<Value> BlockLoop::at_first() const {
  std::vector<Value> all;
  for (const Sum& s : sums) all.push_back(full({rows, s.width}, s.first, f32));
  return all;
}

void BlockLoop::store(const Refs& refs, const std::vector<Value>& all) const {
  for (std::size_t i = 0; i < sums.size(); ++i)
    refs[static_cast<int>(own.size() + walked.size() + i)][_] = all[i];
}

void BlockLoop::loop_over(const BlockStep& step, const Refs& refs, int scratch) const {
  const auto next = [&](const Value& i, const std::vector<Value>& before) {
    BlockStep now = step;
    now.i = i;
    now.sums = before;
    for (std::size_t w = 0; w < walked.size(); ++w)
      now.blocks.emplace_back(
          [=, this] { return block(walked[w], refs[static_cast<int>(own.size() + w)], i); });
    now.keep = [=](const Value& v) { refs[scratch - 1][{0, i, _, _}] = v; };
    body(now);
    return now.sums;
  };
  const Value end = all_alike ? full({}, iterations, i32) : program_id(0) % (iterations + 1);
  if (spelling == Spelling::carried) return store(refs, carried(end, at_first(), next));
  const auto held = [&](std::size_t i) { return refs[scratch + static_cast<int>(i)]; };
  const auto hold = [&](const std::vector<Value>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) held(i)[_] = all[i];
  };
  const auto read = [&] {
    std::vector<Value> all;
    for (std::size_t i = 0; i < sums.size(); ++i) all.push_back(held(i)[_]);
    return all;
  };
  hold(at_first());
  loop(0, end, [&](Index i) { hold(next(i, read())); });
  store(refs, read());
}

void BlockLoop::along_axis(BlockStep step, const Refs& refs, int scratch) const {
  step.i = program_id(1);
  for (std::size_t w = 0; w < walked.size(); ++w)
    step.blocks.emplace_back([=, this, i = step.i] {
      return block(walked[w], refs[static_cast<int>(own.size() + w)], i);
    });
  const auto held = [&](std::size_t i) { return refs[scratch + static_cast<int>(i)]; };
  when(step.i == 0, [&] {
    const std::vector<Value> first = at_first();
    for (std::size_t i = 0; i < first.size(); ++i) held(i)[_] = first[i];
  });
  for (std::size_t i = 0; i < sums.size(); ++i) step.sums.push_back(held(i)[_]);
  step.keep = [=](const Value& v) { refs[scratch - 1][{0, 0, _, _}] = v; };
  body(step);
  for (std::size_t i = 0; i < sums.size(); ++i) held(i)[_] = step.sums[i];
  when(step.i == iterations - 1, [&] {
    std::vector<Value> last;
    for (std::size_t i = 0; i < sums.size(); ++i) last.push_back(held(i)[_]);
    store(refs, last);
  });
}

void BlockLoop::run(const Refs& refs) const {
  BlockStep step;
  for (std::size_t i = 0; i < own.size(); ++i) step.own.push_back(refs[static_cast<int>(i)][_]);
  const int scratch = static_cast<int>(own.size() + walked.size() + sums.size()) + (kept > 0);
  if (by_axis())
    along_axis(step, refs, scratch);
  else
    loop_over(step, refs, scratch);
}

PallasCallOptions BlockLoop::options() const {
  const bool axis = by_axis();
  const int c = cluster;
  const auto program = [=](Index i) { return c > 1 ? Index(i * c + axis_index("c")) : i; };
  const auto spec = [=](const BlockDim& first, std::int64_t width) {
    const auto of = [=](Index i) { return Indices{program(i), 0}; };
    const auto along = [=](Index i, Index) { return Indices{program(i), 0}; };
    return axis ? BlockSpec{{first, width}, along} : BlockSpec{{first, width}, of};
  };
  PallasCallOptions o{.name = "block_loop",
                      .grid = {programs / c},
                      .compiler_params = {.dimension_semantics = {parallel},
                                          .num_warps = num_warps,
                                          .num_stages = num_stages,
                                          .warp_specialize = specialize,
                                          .persistent = persistent}};
  if (axis) {
    o.grid = {programs / c, iterations};
    o.compiler_params.dimension_semantics = {parallel, sequential};
  }
  if (c > 1) o.cluster = {c}, o.cluster_names = {"c"};
  for (const std::int64_t w : own) o.in_specs.push_back(spec(rows, w));
  for (const Walked& w : walked) {
    const auto block = [=](Index, Index j) { return w.is_turned ? Indices{0, j} : Indices{j, 0}; };
    o.in_specs.push_back(!axis         ? BlockSpec()
                         : w.is_turned ? BlockSpec{{w.width, columns}, block}
                                       : BlockSpec{{columns, w.width}, block});
  }
  std::vector<ShapeDtype> out;
  for (const Sum& s : sums) {
    out.push_back({{programs * rows, s.width}, f32});
    o.out_specs.push_back(spec(rows, s.width));
    if (spelling != Spelling::carried)
      o.scratch_types.list.push_back(
          {"", (spelling == Spelling::axis_shared ? gpu::SMEM : gpu::REGS)({rows, s.width}, f32)});
  }
  if (kept > 0) {
    const std::int64_t most = std::max(iterations, 1);
    out.push_back({{programs, most, rows, kept}, f32});
    const auto of = [=](Index i) { return Indices{program(i), 0, 0, 0}; };
    const auto each = [=](Index i, Index j) { return Indices{program(i), j, 0, 0}; };
    o.out_specs.push_back(axis ? BlockSpec{{1, 1, rows, kept}, each}
                               : BlockSpec{{1, most, rows, kept}, of});
  }
  o.out_type = out;
  return o;
}

graph::Graph BlockLoop::graph() const {
  std::vector<trace::ArgumentType> types;
  for (const std::int64_t w : own) types.push_back(array({programs * rows, w}, dtype));
  for (const Walked& w : walked)
    types.push_back(array(w.is_turned ? Shape{w.width, keys()} : Shape{keys(), w.width}, dtype));
  return traced([self = *this](Refs refs) { self.run(refs); }, options(), types);
}

}  // namespace palladium::test
