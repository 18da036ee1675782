// Loops of which more is known in some of their iterations: these are a loop of their own, in which
// nobody asks what is known, between loops of those before and behind them. What is under way at
// the end of an iteration goes on in the next one, whichever of the loops that is in.
//
// Where they begin and end is computed in front of the loops, in 64 bits where 32 may not hold it.
#include <algorithm>
#include <bit>
#include <optional>

#include "codegen/expand/expander.hpp"

namespace palladium::expand {

using thread::Facts;

namespace {

std::int64_t floor_of(std::int64_t n, std::int64_t by) { return n / by - (n % by < 0 ? 1 : 0); }

bool fits_i32(const Facts& f) { return f.low >= INT32_MIN && f.high <= INT32_MAX; }

// Of sum / by, rounded down.
Facts facts_of_quotient(const Facts& f, std::int64_t by) {
  return {.low = f.low == INT64_MIN ? f.low : floor_of(f.low, by),
          .high = f.high == INT64_MAX ? f.high : floor_of(f.high, by)};
}

}  // namespace

/// Iterations from the largest of `first` to the one before the least of `end`, where all
/// `conditions` hold; of what the loop's own bounds do not imply.
struct Expander::Limits {
  std::vector<ExprId> first = {}, end = {}, conditions = {};
  bool fit = true;  // all of them are i32

  bool empty() const { return first.empty() && end.empty() && conditions.empty(); }
};

// The largest integer not above sum / by.
ExprId Expander::quotient_below(const Affine& sum, std::int64_t by) {
  const DType type = fits_i32(e_.facts(sum)) ? i32 : i64;
  if (sum.is_constant()) return e_.number(floor_of(sum.constant(), by), type);
  if (sum.divides(by)) return e_.sum(sum.quotient(by), type);
  const ExprId x = e_.sum(sum, type);
  if (std::has_single_bit(static_cast<std::uint64_t>(by))) {
    const auto bits = std::countr_zero(static_cast<std::uint64_t>(by));
    const Operator how = e_.facts(x).low >= 0 ? Operator::div : Operator::shift_right;
    return e_.plain(how, x, how == Operator::div ? e_.number(by, type) : number(bits), type);
  }
  const ExprId below = e_.sum(Affine::term(e_.as(i64, x)) + Affine(1 - by), i64);
  const ExprId is_natural = e_.plain(Operator::at_least, x, e_.number(0, type), bool_);
  return e_.plain(Operator::div, e_.choose(is_natural, e_.as(i64, x), below), e_.number(by, i64),
                  i64);
}

// Without what the number of the iteration adds.
Affine Expander::sum_of(const lowered::IterationSum& s) {
  Affine sum(s.constant);
  for (const auto& [v, times] : s.addends) {
    // What holds the program's number may be made in the loop.
    const bool leaf = graph::info(g_[v].op).op_class == graph::OpClass::leaf;
    sum = sum + Affine::term(scalar(v, leaf && g_[v].op != graph::Op::Param), times);
  }
  return sum;
}

ExprId Expander::is_natural(const Affine& sum) {
  const DType type = fits_i32(e_.facts(sum)) ? i32 : i64;
  return e_.plain(Operator::at_least, e_.sum(sum, type), e_.number(0, type), bool_);
}

Expander::Limits Expander::limits_of(const lowered::KnownIterations& known,
                                     const thread::For& iterations) {
  const ExprId counter = e_.variable(iterations.counter);
  const Facts low = e_.facts(iterations.low), high = e_.facts(iterations.high);
  Limits limits;
  const auto add = [&](std::vector<ExprId>& to, ExprId number) {
    to.push_back(number);
    limits.fit &= e_[number].type == i32;
  };
  for (const lowered::IterationSum& s : known.sums) {
    const Affine sum = sum_of(s);
    const std::int64_t times = s.per_iteration;
    if (e_.facts(sum + Affine::term(counter, times)).low >= 0) continue;
    if (times == 0) {
      limits.conditions.push_back(is_natural(sum));
    } else if (times > 0) {
      // From -sum / times on.
      const Affine above = sum * -1 + Affine(times - 1);
      if (facts_of_quotient(e_.facts(above), times).high > low.low)
        add(limits.first, quotient_below(above, times));
    } else {
      // Up to sum / -times: below the next.
      const Affine above = sum + Affine(-times);
      if (facts_of_quotient(e_.facts(above), -times).low < high.high)
        add(limits.end, quotient_below(above, -times));
    }
  }
  return limits;
}

// Of numbers of one type.
ExprId Expander::smaller_of(ExprId a, ExprId b) {
  const Facts x = e_.facts(a), y = e_.facts(b);
  if (x.high <= y.low) return a;
  if (y.high <= x.low) return b;
  return e_.call(Row::min, e_[a].type, {a, b}, e_[a].type == i64,
                 {.low = std::min(x.low, y.low), .high = std::min(x.high, y.high)});
}
ExprId Expander::larger_of(ExprId a, ExprId b) {
  const Facts x = e_.facts(a), y = e_.facts(b);
  if (x.low >= y.high) return a;
  if (y.low >= x.high) return b;
  return e_.call(Row::max, e_[a].type, {a, b}, e_[a].type == i64,
                 {.low = std::max(x.low, y.low), .high = std::max(x.high, y.high)});
}

// The first iteration that is not before the number, or the end of the loop.
ExprId Expander::in_step(ExprId number, const thread::For& iterations) {
  if (iterations.step == 1) return number;
  const Affine low = Affine::term(iterations.low);
  const ExprId steps = e_.plain(
      Operator::div, e_.sum(Affine::term(number) + low * -1 + Affine(iterations.step - 1), i64),
      e_.number(iterations.step, i64), i64);
  const ExprId at = e_.sum(low + Affine::term(steps, iterations.step), i64);
  const ExprId high = e_.as(i64, iterations.high);
  return e_.as(i32, e_.choose(e_.plain(Operator::less, at, high, bool_), at, high));
}

std::vector<Expander::Part> Expander::parts_of(const Limits& limits,
                                               const thread::For& iterations) {
  const ExprId low = iterations.low, high = iterations.high;
  const DType type = limits.fit ? i32 : i64;
  const auto named = [&](const char* name, ExprId number) {
    const ExprId value = in_step(e_.as(i32, number), iterations);
    if (e_[value].node == thread::Node::number) return value;
    Facts facts = e_.facts(value);
    facts.low = std::max(facts.low, std::min(e_.facts(low).low, e_.facts(high).low));
    facts.high = std::min(facts.high, e_.facts(high).high);
    return b_.let_here(name, value, facts);
  };
  const ExprId lowest = e_.as(type, low), highest = e_.as(type, high);
  const ExprId holds = e_.all(limits.conditions);
  const bool ends = !limits.end.empty() || (limits.first.empty() && holds != no_expr);

  ExprId first = low;
  if (!limits.first.empty()) {
    ExprId number = lowest;
    for (const ExprId x : limits.first) number = larger_of(number, e_.as(type, x));
    if (holds != no_expr && !ends) number = e_.choose(holds, number, highest);
    first = named("first_known", smaller_of(number, highest));
  }
  ExprId end = high;
  if (ends) {
    ExprId number = highest;
    for (const ExprId x : limits.end) number = smaller_of(number, e_.as(type, x));
    if (holds != no_expr) number = e_.choose(holds, number, lowest);
    end = named("end_known", smaller_of(larger_of(number, e_.as(type, first)), highest));
  }
  std::vector<Part> parts;
  const auto add = [&](ExprId from, ExprId to, bool is_known) {
    if (e_.facts(from).low < e_.facts(to).high) parts.push_back({from, to, is_known});
  };
  if (first != low) add(low, first, false);
  add(first, end, true);
  if (end != high) add(end, high, false);
  return parts;
}

void Expander::over_parts(const lowered::KnownIterations& known, thread::For iterations,
                          ValueId limit, const std::function<void(thread::For part)>& loop) {
  if (known.empty()) return loop(std::move(iterations));
  const Facts low = e_.facts(iterations.low), high = e_.facts(iterations.high);
  const bool is_static = low.low == low.high && high.low == high.high;
  const std::int64_t trips =
      is_static ? std::max<std::int64_t>(0, cdiv(high.low - low.low, iterations.step)) : -1;
  const Limits limits = limits_of(known, iterations);
  if (!limits.empty()) b_.open(thread::Block{});
  const std::vector<Part> parts = parts_of(limits, iterations);
  const bool any_known = std::ranges::any_of(parts, &Part::is_known);
  for (const Part& part : parts) {
    thread::For of_part = iterations;
    of_part.counter = e_.declare(e_[iterations.counter]);
    of_part.low = part.low;
    of_part.high = part.high;
    of_part.trips = part.is_known || !any_known ? trips : 0;
    if (limit != graph::no_value) of_part.next = advanced(of_part.counter, iterations.step, limit);
    if (part.is_known) {
      for (const ValueId v : known.holding) known_[v] = true;
      for (const ValueId v : known.failing) known_[v] = false;
    }
    apart([&] { loop(std::move(of_part)); });
    for (const auto* conditions : {&known.holding, &known.failing})
      for (const ValueId v : *conditions) known_.erase(v);
  }
  if (!limits.empty()) b_.close();
}

}  // namespace palladium::expand
