#include "codegen/thread/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "codegen/base/overloaded.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/thread/evaluate.hpp"

namespace palladium::thread {
namespace {

using device::Row;
using Number = std::optional<std::int64_t>;

constexpr std::int64_t lanes = 32, sector = 32, wavefront = 128, bank = 4;
constexpr std::int64_t least_unknown = 4096;
constexpr double bytes_of_mma = 32;  // of a row that one mma.sync multiplies

class Reader {
 public:
  explicit Reader(const Program& p, const std::set<int>& around = {})
      : p_(p), e_(p.exprs), around_(around) {}

  /// Of the lanes; nothing of those that access nothing.
  using Addresses = std::array<Number, lanes>;

  Report run(int compute_capability, std::int64_t array_bytes) {
    visit(p_.body, 1);
    report_.prediction = predict(report_, tensor_, compute_capability, computing_);
    if (p_.blocks.is_static() && array_bytes > 0 && !report_.depends_on_call)
      predict_call(report_.prediction, compute_capability, p_.blocks.value(), array_bytes);
    return std::move(report_);
  }

  std::map<int, Work> works() {
    visit(p_.body, 1);
    return std::move(works_);
  }

 private:
  // Behind who goes through others, their work is counted for each time that they run.
  void visit(const Statements& list, double times) {
    const double outer = once_;
    if (around_.contains(statement_)) once_ = times;
    for (const Statement& s : list) {
      at_ = s.at;
      statement_ = s.at.statement;
      std::visit(Overloaded{[&](const Let& x) { let(x, times); },
                            [&](const Declare& x) { declare(x, times); },
                            [&](const Assign& x) { count(x.value, times); },
                            [&](const Block& x) { visit(x.body, times); },
                            [&](const If& x) {
                              count(x.condition, times);
                              report_.depends_on_call |= x.uniform && !x.both && !x.longest;
                              if (x.both) computing_ -= graph::warpgroup_threads;
                              visit(x.body, times * x.share);
                              uniform_ = x.uniform && !x.longest;
                            },
                            // Most blocks are whole; of branches any may be taken.
                            [&](const Else& x) {
                              if (!uniform_) return;
                              if (x.condition != no_expr) count(x.condition, times);
                              visit(x.body, times);
                              uniform_ = true;
                            },
                            [&](const For& x) { loop(x, times); },
                            [&](const While& x) {
                              report_.depends_on_call = true;
                              visit(x.body, times);
                            },
                            [&](const BreakUnless& x) {
                              count(x.condition, times);
                              times *= x.share;
                              if (around_.contains(statement_)) once_ = times;
                            },
                            [&](const Load& x) { access(x.access, x.access.place, false, times); },
                            [&](const Store& x) { access(x.access, x.access.place, true, times); },
                            [&](const Flush& x) {
                              access(x.access, x.from, false, times);
                              access(x.access, x.access.place, true, times);
                            },
                            [&](const Update& x) { access(x.access, x.access.place, true, times); },
                            [&](const Copy& x) {
                              count(std::vector{x.exists, x.begin}, times);
                              access(x.access, x.from, false, times);
                              access(x.access, x.access.place, true, times);
                            },
                            [&](const Call& x) { call(x, times); },
                            [&](const Wgmma& x) { wgmma(x, times); },
                            // What the user's text takes nobody knows.
                            [](const Inline&) {},
                            // Nothing of these is in a cubin.
                            [](const Check&) {}, [](const CheckRange&) {}, [](const Comment&) {},
                            [&](const Sync&) { add(&InstructionMix::barriers, times); }},
                 s.what);
    }
    once_ = outer;
  }

  // ---- what is counted: of all, and of the statement of the lowered program

  // Approximations are one instruction, to another base than 2 one more; else a chain of nine, as
  // libdevice's exponential.
  double steps_of(graph::Op op) const {
    constexpr double chain = 9;
    if (!p_.approx_math) return chain;
    return op == graph::Op::Exp2 ? 1 : 2;
  }

  static bool is_half(DType t) { return t == f16 || t == bf16; }

  // All but additions and products of floats.
  bool is_of_integer_units(const Expr& e) const {
    using graph::Op;
    const bool adds = e.op == Op::Add || e.op == Op::Sub || e.op == Op::Mul || e.op == Op::Fma;
    return e.op != Op::Cast && !(adds && e.type.is_float());
  }

  // Of 16 bits: widened each by itself, rounded two at a time.
  void convert(DType from, DType to, double times) {
    if (is_half(from) == is_half(to)) return;
    const double instructions = is_half(to) ? 0.5 : 1;
    work().conversions += each(times) * instructions;
    work().integer += each(times) * instructions;
  }

  // What 16-bit floats are computed of one by one is computed in f32.
  void convert_around(const Expr& e, double times) {
    for (const ExprId arg : e.args)
      if (is_half(e_[arg].type) && !is_constant(arg)) convert(e_[arg].type, f32, times);
    convert(f32, e.type, times);
  }

  // An exponential and a reciprocal.
  static double specials_of(graph::Op op) { return op == graph::Op::Logistic ? 2 : 1; }

  Work& work() { return works_[statement_]; }
  double each(double times) const { return once_ > 0 && beside_ == 0 ? times / once_ : 0; }
  void add(double InstructionMix::*part, double times) {
    report_.mix.*part += times;
    work().mix.*part += each(times);
  }

  // Once for each lane: later names are made of it.
  void let(const Let& x, double times) {
    const Variable& v = e_[x.variable];
    if (v.form == Form::value && !v.type.is_float()) {
      std::vector<Number>& values = values_[index(x.variable)];
      for (std::int64_t lane = 0; lane < lanes; ++lane) values.push_back(bound(x.value, lane));
    }
    count(x.value, times);
  }

  // What is assigned to later is what it begins with, in the first iterations of loops.
  void declare(const Declare& x, double times) {
    if (x.start == Declare::Start::values && e_[x.variable].form == Form::value)
      let({x.variable, x.values[0]}, times);
    else
      count(x.values, times);
  }

  void loop(const For& x, double times) {
    const Number low = number(x.low, 0), high = number(x.high, 0);
    const bool known = is_static(x.low) && is_static(x.high) && low && high;
    report_.depends_on_call |= !known && x.trips < 0;
    counters_[index(x.counter)] = low.value_or(0);
    const std::int64_t trips = known
                                   ? std::max<std::int64_t>(0, (*high - *low + x.step - 1) / x.step)
                                   : (x.trips < 0 ? 1 : x.trips);
    const bool unrolled = known && (x.unroll == 0 || x.unroll == trips);
    if (unrolled) unrolled_.insert(index(x.counter));
    loops_.push_back({index(x.counter), unrolled ? trips : 1, x.step});
    // What an iteration of several loops over the same statements takes is that of one of them.
    beside_ += x.trips == 0;
    visit(x.body, times * static_cast<double>(trips));
    beside_ -= x.trips == 0;
    loops_.pop_back();
  }

  bool is_static(ExprId e) const { return e_.facts(e).low == e_.facts(e).high; }

  void call(const Call& x, double times) {
    const device::RowInfo& row = device::info(x.function);
    const bool product = row.file == "dot";
    if (x.function == Row::mbarrier_arrive_expect_tx)
      copied_by_tma(static_cast<double>(number(x.args[1], 0).value_or(0)) * times);
    if (x.function == Row::tma_store) sent(x, times);
    if (product) {
      add(&InstructionMix::products, times);
      multiply(x, times);
    } else if (x.function == Row::promote)
      add(&InstructionMix::operations,
          times * static_cast<double>(std::get<std::int64_t>(x.templates[2])));
    else if (is_of_vector(x.function))
      vector_call(x, times);
    else if (row.effects.by != device::Group::thread) {
      add(&InstructionMix::exchanges, times);
      work().wavefronts += each(times) * (wavefronts_of(x.function) - 1);
    }
    if (x.function == Row::transpose_bytes) {
      constexpr double permutations = 6;
      work().conversions += each(times) * permutations;
      work().integer += each(times) * permutations;
    }
    for (const device::Access& a : row.effects.accesses())
      if (!product && a.memory == device::Memory::shared && a.reads)
        add(&InstructionMix::shared_loads, times);
    count(x.args, times);
  }

  // A matrix of 8 rows of 16 bytes is one.
  static double wavefronts_of(Row function) {
    switch (function) {
    case Row::ldmatrix_x2:
    case Row::ldmatrix_x2_trans:
    case Row::ldmatrix_words_x2:
    case Row::ldmatrix_words_x2_trans:
    case Row::stmatrix_x2:
    case Row::stmatrix_x2_trans: return 2;
    case Row::ldmatrix_x4:
    case Row::ldmatrix_x4_trans:
    case Row::ldmatrix_words_x4:
    case Row::ldmatrix_words_x4_trans:
    case Row::stmatrix_x4:
    case Row::stmatrix_x4_trans: return 4;
    case Row::transpose_bytes: return 8;
    default: return 1;
    }
  }

  static bool combines_pairs(Row function) {
    return function == Row::add_all || function == Row::sub_all || function == Row::mul_all ||
           function == Row::max_all || function == Row::min_all;
  }
  static bool is_of_vector(Row function) {
    return function == Row::div_all || function == Row::to_all || combines_pairs(function);
  }

  // Conversions are permutations of bytes for the most part.
  void vector_call(const Call& x, double times) {
    times *= static_cast<double>(std::get<std::int64_t>(x.templates[0]));
    if (combines_pairs(x.function)) times /= 2;
    add(&InstructionMix::operations, times);
    if (x.function == Row::to_all || x.function == Row::max_all || x.function == Row::min_all)
      work().integer += each(times);
  }

  // Each warpgroup multiplies 64 rows.
  void wgmma(const Wgmma& x, double times) {
    times *= x.op.steps;
    add(&InstructionMix::products, times);
    const double step = 32.0 / x.op.k;  // bytes of an element
    const double warpgroups = 1.0 * computing_ / graph::warpgroup_threads;
    constexpr double rows = 64, bytes_of_step = 32;
    tensor_.by_wgmma += times * warpgroups * rows * x.op.n * x.op.k * step / 2;
    tensor_.shared_bytes += times * warpgroups * bytes_of_step * (x.op.n + (x.op.rs ? 0 : rows));
    Work& w = work();
    w.wgmma += each(times);
    w.wgmma_from_registers += x.op.rs ? each(times) : 0;
    w.wgmma_columns += each(times) * x.op.n;
    w.tensor_bytes += each(times) * bytes_of_step * (x.op.n + (x.op.rs ? 0 : rows));
  }

  // Fragments of 16 rows by 8 columns of each warp, along all of K.
  void multiply(const Call& x, double times) {
    const auto at = [&](std::size_t i) {
      return static_cast<double>(std::get<std::int64_t>(x.templates[i]));
    };
    const double warps = 1.0 * computing_ / lanes;
    const auto by_mma = [&](double depth, double bytes, bool held = false) {
      const double rows = 16 * at(0), columns = 8 * at(1);
      const double read = (held ? columns : rows + columns) * depth * bytes;
      tensor_.by_mma += times * warps * rows * columns * depth * bytes / 2;
      tensor_.shared_bytes += times * warps * read;
      work().by_mma += each(times) * rows * columns * depth * bytes / 2;
      work().mma += each(times) * at(0) * at(1) * depth * bytes / bytes_of_mma;
      work().tensor_bytes += each(times) * read;
    };
    switch (x.function) {
    case Row::dot_mma_16816_from_registers:
    case Row::dot_mma_1688_from_registers: return by_mma(at(4), 2, true);
    case Row::dot_mma_16816:
    case Row::dot_mma_1688: return by_mma(at(6), 2);
    case Row::dot_mma_16832: return by_mma(at(5), 1);
    default: break;
    }
    const auto depth = static_cast<double>(number(x.args[5], 0).value_or(0));
    if (x.function == Row::dot_mma_tf32) return by_mma(depth, 4);
    add(&InstructionMix::multiply_adds, times * at(0) * at(1) * at(2) * depth);
  }

  // What one thread asks TMA for counts for all: a part for each warp.
  void copied_by_tma(double bytes) {
    const double part = bytes * lanes / computing_;
    report_.global_bytes += part / lanes;
    report_.useful_bytes += part;
    report_.moved_bytes += part;
  }

  // A box whose rows are as long as the swizzle is wide.
  void sent(const Call& x, double times) {
    const auto name = std::ranges::find(p_.names, e_[x.args[0]].variable);
    const KernelParameter& map = p_.parameters[static_cast<std::size_t>(name - p_.names.begin())];
    double rows = times;
    for (std::size_t d = 0; d + 1 < x.at.size(); ++d) rows *= map.box[d];
    copied_by_tma(rows * map.swizzle);
    report_.stored_elements += rows * map.box[x.at.size() - 1] * lanes / computing_;
  }

  // ---- instructions

  void count(const std::vector<ExprId>& roots, double times) {
    for (const ExprId e : roots)
      if (e != no_expr) count(e, times);
  }

  // In the text of an iteration.
  bool is_constant(ExprId root) const {
    const Expr& e = e_[root];
    switch (e.node) {
    case Node::number: return true;
    case Node::variable: return unrolled_.contains(index(e.variable));
    case Node::plain:
      return std::ranges::all_of(e.args, [&](ExprId arg) { return is_constant(arg); });
    default: return false;
    }
  }

  void count(ExprId root, double times) {
    const Expr& e = e_[root];
    if (is_constant(root)) return;
    switch (e.node) {
    case Node::op: {
      const bool special = graph::info(e.op).ulp > 0 && e.type.is_float();
      add(special ? &InstructionMix::special : &InstructionMix::operations,
          special ? times * specials_of(e.op) : times);
      if (special) work().special_steps += each(times) * steps_of(e.op);
      if (!special && is_of_integer_units(e)) work().integer += each(times);
      if (e.op == graph::Op::Cast)
        convert(e_[e.args[0]].type, e.type, times);
      else if (is_half(e.type))
        convert_around(e, times);
      break;
    }
    case Node::cast: convert(e_[e.args[0]].type, e.type, times); break;
    case Node::plain:
    case Node::choose:
    case Node::all:
      add(&InstructionMix::operations, times);
      work().integer += each(times);
      break;
    case Node::call: {
      const device::RowInfo& row = device::info(e.function);
      if (row.effects.by == device::Group::warp && row.file == "warp")
        add(&InstructionMix::exchanges, times);
      else if (e.function == Row::fold || e.function == Row::div_by ||
               e.function == Row::div_by_count || e.function == Row::mul_wide) {
        add(&InstructionMix::operations, times);
        const bool is_folded = e.function == Row::fold && e.type.is_float();
        const Fold how = is_folded ? e_[e.args[0]].how : Fold::max;
        if (how == Fold::max || how == Fold::min) work().integer += each(times);
      } else if (e.function == Row::logistic_approx || e.function == Row::exp2_approx)
        add(&InstructionMix::special,
            times * (e.function == Row::logistic_approx ? specials_of(graph::Op::Logistic) : 1)),
            work().special_steps += each(times);
      else if (e.function == Row::exp_nonpositive)
        add(&InstructionMix::special, times),
            work().special_steps += each(times) * steps_of(graph::Op::Exp);
      break;
    }
    // Constants after unrolling, or part of an address.
    case Node::element: return;
    default: break;
    }
    count(e.args, times);
  }

  // ---- accesses

  void access(const Access& a, const Place& place, bool store, double times) {
    AccessReport r{.at = at_,
                   .function = std::string(device::info(a.function).name),
                   .shared = place.shared,
                   .store = store,
                   .bytes = a.width * place.type.bytes(),
                   .element_bytes = place.type.bytes(),
                   .times = times};
    count({a.test, a.valid}, times);
    if (const auto addresses = addresses_of(a, place)) {
      fall(r, *addresses);
      if (!store && !r.shared) share_sectors(r, a, place, *addresses);
    }
    add(store ? (r.shared ? &InstructionMix::shared_stores : &InstructionMix::global_stores)
              : (r.shared ? &InstructionMix::shared_loads : &InstructionMix::global_loads),
        times);
    note_moved(r, times);
    if (!r.shared) {
      report_.global_bytes += times * r.bytes;
      report_.useful_bytes += times * r.useful_bytes;
      report_.moved_bytes += times * r.moved_bytes;
      if (store) report_.stored_elements += times * r.useful_bytes / r.element_bytes;
    }
    report_.accesses.push_back(std::move(r));
  }

  // Of the lanes that access it; none where one of these is not known, or no lane does.
  std::optional<Addresses> addresses_of(const Access& a, const Place& place) {
    Addresses addresses;
    bool any = false;
    for (std::size_t lane = 0; lane < addresses.size(); ++lane) {
      const auto l = static_cast<std::int64_t>(lane);
      if (a.test != no_expr && number(a.test, l).value_or(1) == 0) continue;
      addresses[lane] = address(place, l);
      if (!addresses[lane]) return {};
      any = true;
    }
    return any ? std::optional(addresses) : std::nullopt;
  }

  // What loads one behind the other take of a sector the first of them brings.
  void share_sectors(AccessReport& r, const Access& a, const Place& place, const Addresses& first) {
    for (const Unrolled& loop : loops_) {
      const std::int64_t begin = counters_[loop.counter];
      std::set<std::int64_t> touched;
      bool shares = loop.trips > 1;
      for (std::int64_t k = 0; shares && k < loop.trips; ++k) {
        counters_[loop.counter] = begin + k * loop.step;
        const auto now = addresses_of(a, place);
        shares = now.has_value();
        for (std::size_t lane = 0; shares && lane < first.size(); ++lane) {
          if (!(*now)[lane] || !first[lane]) continue;
          const std::int64_t at = *(*now)[lane];
          if (k == 1) shares = std::abs(at - *first[lane]) < sector && at != *first[lane];
          for (std::int64_t b = at / sector; b <= (at + r.bytes - 1) / sector; ++b)
            touched.insert(b);
        }
      }
      counters_[loop.counter] = begin;
      if (shares) r.moved_bytes = static_cast<int>(sector * std::ssize(touched) / loop.trips);
    }
  }

  // Where nobody knows the addresses, what is moved is what is taken.
  void note_moved(const AccessReport& r, double times) {
    const double taken = 1.0 * r.bytes * lanes;
    if (r.shared)
      work().wavefronts += each(times) * std::max(1.0 * r.touched, std::ceil(taken / wavefront));
    else
      (r.store ? work().stored_bytes : work().loaded_bytes) +=
          each(times) * (r.moved_bytes > 0 ? r.moved_bytes : taken);
  }

  // In bytes, from where the block's memory begins.
  Number address(const Place& place, std::int64_t lane) {
    const Number base = place.shared ? number(place.base, lane) : Number(0);
    const Number offset = place.offset == no_expr ? Number(0) : number(place.offset, lane);
    if (!base || !offset) return {};
    return *base + *offset * place.type.bytes();
  }

  static void fall(AccessReport& r, const Addresses& addresses) {
    std::set<std::int64_t> bytes;
    for (const Number& at : addresses)
      for (std::int64_t b = 0; at && b < r.bytes; ++b) bytes.insert(*at + b);
    r.useful_bytes = static_cast<int>(bytes.size());
    if (r.shared) {
      on_banks(r, addresses);
    } else {
      std::set<std::int64_t> touched;
      for (const std::int64_t b : bytes) touched.insert(b / sector);
      r.touched = static_cast<int>(touched.size());
      r.needed = static_cast<int>((r.useful_bytes + sector - 1) / sector);
    }
    r.moved_bytes = r.touched * static_cast<int>(r.shared ? wavefront : sector);
  }

  // Lanes are served in groups whose bytes fill a wavefront; each bank gives one word to a group.
  static void on_banks(AccessReport& r, const Addresses& addresses) {
    const std::int64_t width = std::max<std::int64_t>(r.bytes, bank);
    const auto group = static_cast<std::size_t>(wavefront / width);
    for (std::size_t first = 0; first < addresses.size(); first += group) {
      std::map<std::int64_t, std::set<std::int64_t>> words;  // by bank
      for (std::size_t i = first; i < std::min(first + group, addresses.size()); ++i)
        for (std::int64_t b = 0; addresses[i] && b < r.bytes; b += bank) {
          const std::int64_t word = (*addresses[i] + b) / bank;
          words[word % lanes].insert(word);
        }
      if (words.empty()) continue;
      std::size_t most = 0;
      for (const auto& [_, in_bank] : words) most = std::max(most, in_bank.size());
      r.touched += static_cast<int>(most);
      ++r.needed;
    }
  }

  // ---- numbers

  Number number(ExprId e, std::int64_t lane) {
    return evaluate(e_, e, [&](VariableId v) { return value(v, lane); });
  }

  Number value(VariableId id, std::int64_t lane) {
    if (const auto it = counters_.find(index(id)); it != counters_.end()) return it->second;
    const auto it = values_.find(index(id));
    return it == values_.end() ? unknown(e_[id]) : it->second[static_cast<std::size_t>(lane)];
  }

  // What a name stands for: a number, or who the thread is.
  Number bound(ExprId value, std::int64_t lane) {
    const Expr& e = e_[value];
    if (e.node != Node::call) return number(value, lane);
    switch (e.function) {
    case Row::thread:
    case Row::program_thread:
    case Row::lane: return lane;
    case Row::block_x:
    case Row::warpgroup:
    case Row::shared_base: return 0;
    default: return {};
    }
  }

  // A parameter: the least number from which on it may be large.
  static Number unknown(const Variable& v) {
    if (v.type != i64 || v.form != Form::value) return {};
    const std::int64_t by = std::max<std::int64_t>(1, v.facts.multiple);
    return (least_unknown + by - 1) / by * by;
  }

  const Program& p_;
  const Exprs& e_;
  Report report_;
  TensorWork tensor_;
  int computing_ = p_.threads;  // threads: the last warpgroup may do other things
  bool uniform_ = false;        // the If before
  Location at_;
  const std::set<int> around_;  // statements that others stand in
  int statement_ = -1;          // of the lowered program
  double once_ = 1;             // how often what stands in the innermost of those runs
  int beside_ = 0;              // loops around of which another one is counted
  std::map<int, Work> works_;
  std::map<std::uint32_t, std::vector<Number>> values_;  // of names, by lane
  std::map<std::uint32_t, std::int64_t> counters_;       // of loops, in their first iterations
  std::set<std::uint32_t> unrolled_;                     // of those whose iterations are all text
  struct Unrolled {
    std::uint32_t counter = 0;
    std::int64_t trips = 1, step = 1;
  };
  std::vector<Unrolled> loops_;  // around, of which those have trips whose iterations are all text
};

}  // namespace

Report report(const Program& program, int compute_capability, std::int64_t array_bytes) {
  return Reader(program).run(compute_capability, array_bytes);
}

std::map<int, Work> works(const Program& program, const std::set<int>& around) {
  return Reader(program, around).works();
}

}  // namespace palladium::thread
