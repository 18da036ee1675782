#include "codegen/expand/expander.hpp"

#include <algorithm>

#include "codegen/base/format.hpp"
#include "codegen/base/names.hpp"
#include "codegen/expand/nest.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/lowered/effects.hpp"

namespace palladium::expand {

using graph::Inst;
using graph::Op;
using lowered::Window;
using Parameter = KernelParameter;

thread::Program expand(const lowered::Program& l) { return Expander(l).run(); }

Expander::Expander(const lowered::Program& l)
    : l_(l),
      g_(l.graph),
      e_(p_.exprs),
      b_(p_),
      storages_(l.storages.size(), thread::no_variable),
      rests_(l.storages.size()),
      declared_(l.storages.size()),
      mutable_(l.storages.size()),
      literal_(l.storages.size(), no_expr),
      begun_by_product_(l.storages.size()),
      windows_(l.windows.size()),
      slots_(l.rings.size()),
      turns_with_(l.rings.size()) {}

thread::Program Expander::run() {
  p_.entry = identifier_of(g_.name) + "_kernel";
  p_.at = g_.at;
  p_.approx_math = g_.approx_math;
  launch_shape();
  declare_parameters();
  find_mutable_storages();
  find_unstored();
  b_.at(g_.at);
  if (l_.shared_bytes > 0) smem_ = b_.let_here("smem", e_.call(Row::shared_base, u32, {}));
  // A shuffle, for which whole warps must come: here they do.
  warpgroup_ = b_.let_here("warpgroup", e_.call(Row::warpgroup, u32, {}));
  const Row thread = is_wide() ? Row::program_thread : Row::thread;
  thread_ =
      b_.let_here("t", e_.call(thread, i32, {}, false,
                               {.low = 0, .high = l_.threads() - 1, .depends = thread::on_thread}));
  begin_fetches();
  begin_rings();
  for (const lowered::Body& b : l_.bodies)
    for (const lowered::Agent& a : b.agents) {
      find_beside_threads(a.statements, false);
      find_added(a.statements);
    }
  program_ids_.resize(g_.mapping.grid.size(), no_expr);
  const ExprId block = e_.call(Row::block_x, i32, {});
  const std::int64_t cluster = p_.cluster_blocks;
  if (!g_.persistent)
    name_programs(cluster > 1 ? e_.plain(Operator::div, block, number(cluster)) : block);
  name_cluster(block);
  for (const WindowId w : l_.windows.ids())
    if (l_.windows[w].mapping >= 0 && l_.windows[w].mapping < g_.mapping.num_index_operands)
      enter_window(w);
  const bool bounded = !g_.persistent && open_bounds();
  begin_profile();
  int first = 0;
  for (const lowered::Body& body : l_.bodies) {
    agent_.first = first;
    const bool several = l_.bodies.size() > 1;
    if (several) b_.open(thread::If{is_among(first, body.warpgroups()), {}});
    expand_body(body);
    if (several) b_.close();
    first += body.warpgroups();
  }
  end_profile();
  if (bounded) b_.close();
  p_.body = b_.finish();
  return std::move(p_);
}

// ---- the frame

void Expander::launch_shape() {
  int warpgroups = 0;
  for (const lowered::Body& b : l_.bodies) warpgroups += b.warpgroups();
  p_.threads = warpgroups * graph::warpgroup_threads;
  agent_ = {.count = warpgroups, .is_known = true};
  p_.shared_bytes = l_.shared_bytes;
  p_.min_blocks = l_.min_blocks;
  for (const int c : g_.cluster) p_.cluster_blocks *= c;
  const std::vector<Dim>& grid = g_.mapping.grid;
  const bool is_empty = std::ranges::any_of(grid, [](const Dim& d) { return d.same(0); });
  p_.blocks = is_empty ? 0 : p_.cluster_blocks;
  for (const int a : l_.parallel_axes) p_.blocks = p_.blocks * grid[a];
  // A sequential axis without programs leaves nothing to do, not even for its windows.
  for (const int a : l_.sequential_axes)
    if (a != lowered::programs_axis) p_.blocks = p_.blocks * cdiv(grid[a], INT32_MAX);
  p_.persistent = g_.persistent;
}

void Expander::declare_parameters() {
  const auto& mappings = g_.mapping.block_mappings;
  arrays_.resize(mappings.size());
  const auto declare = [&](Parameter p, thread::Variable v) {
    p_.parameters.push_back(p);
    p_.names.push_back(e_.declare(std::move(v)));
    return p_.names.back();
  };
  const auto array = [&](int m) {
    const bool input = m < g_.mapping.num_inputs;
    const std::string name =
        input ? fmt::format("in{}", m) : fmt::format("out{}", m - g_.mapping.num_inputs);
    const bool stored = std::ranges::any_of(
        l_.windows, [&](const Window& w) { return w.mapping == m && w.stored; });
    arrays_[m] =
        declare({.kind = Parameter::Kind::array, .index = m}, {.name = name,
                                                               .form = thread::Form::pointer,
                                                               .type = mappings[m].array_aval.dtype,
                                                               .writable = stored});
    if (mappings[m].dense) return;
    for (int d = 0; d + 1 < mappings[m].array_aval.shape.rank(); ++d)
      strides_[{m, d}] = declare({.kind = Parameter::Kind::stride, .index = m, .dimension = d},
                                 {.name = fmt::format("{}_stride{}", name, d),
                                  .type = i64,
                                  .facts = passes::facts_of_stride(mappings[m])});
  };
  for (std::size_t i = 0; i < g_.arguments.size(); ++i) {
    const graph::Argument& a = g_.arguments[i];
    if (a.kind == graph::Argument::Kind::input) {
      array(a.index);
      continue;
    }
    const VariableId v =
        declare({.kind = Parameter::Kind::scalar, .index = a.index, .bytes = a.dtype.bytes()},
                {.name = fmt::format("scalar{}", a.index), .type = a.dtype});
    for (const graph::Body& b : g_.bodies) values_[index(g_[b.region].params[i])] = e_.variable(v);
  }
  for (int o = 0; o < g_.mapping.num_outputs; ++o) array(g_.mapping.num_inputs + o);
  declare_tensor_maps();
  if (std::ranges::any_of(g_.insts, [](const Inst& i) { return graph::is_debug_op(i.op); }))
    debug_ = declare({.kind = Parameter::Kind::debug},
                     {.name = "debug", .form = thread::Form::pointer, .type = u64});
  if (graph::first_scope(g_) != graph::no_value)
    profile_ = declare({.kind = Parameter::Kind::profile},
                       {.name = "profile", .form = thread::Form::pointer, .type = u64});
  for (int s = 0; s < g_.num_symbols; ++s)
    symbols_.push_back(e_.variable(
        declare({.kind = Parameter::Kind::symbol, .index = s},
                {.name = symbol_name(s), .type = i64, .facts = passes::facts_of_symbol(g_, s)})));
  for (const Inst& i : g_.insts) {
    if (!passes::divides_by_count(g_, i)) continue;
    const auto by = passes::symbol_counted(g_, i.args[1]);
    if (by && !reciprocals_.contains(*by))
      reciprocals_[*by] = e_.variable(
          declare({.kind = Parameter::Kind::reciprocal, .index = static_cast<int>(*by)},
                  {.name = "reciprocal_of_" + symbol_name(static_cast<int>(*by)), .type = f64}));
  }
}

// ---- statements

namespace {

// What one thread does for all, who elect it; waits do not stand with others.
bool is_elected(const lowered::Statement& s) {
  const auto* const arrive = std::get_if<lowered::Arrive>(&s.what);
  const auto* const close = std::get_if<lowered::Close>(&s.what);
  return (arrive != nullptr && arrive->bytes > 0) ||
         (close != nullptr && close->kind == device::Completion::bulk_group) ||
         std::holds_alternative<lowered::Copy>(s.what);
}

// Of these, what ends in a group of what is sent.
bool is_sent(const lowered::Statement& s) {
  const auto* const copy = std::get_if<lowered::Copy>(&s.what);
  return std::holds_alternative<lowered::Close>(s.what) || (copy != nullptr && !copy->completes);
}

// Where it ends what one thread does together.
std::size_t end_of_elected(std::span<const lowered::Statement> list, std::size_t at,
                           bool sends_apart) {
  std::size_t end = at;
  while (end < list.size() && is_elected(list[end]) &&
         (end == at || !std::holds_alternative<lowered::Arrive>(list[end].what)) &&
         (!sends_apart || is_sent(list[end]) == is_sent(list[at])))
    ++end;
  return end;
}

// Of an iteration, under whatever conditions; loops within it have their own.
void add_sums_of_products(const lowered::Statements& list, std::vector<StorageId>& sums) {
  for (const lowered::Statement& s : list) {
    if (const auto* const d = std::get_if<lowered::Dot>(&s.what);
        d != nullptr && d->accumulates && lowered::is_of_wgmma(d->unit) &&
        std::ranges::find(sums, d->result) == sums.end())
      sums.push_back(d->result);
    if (lowered::repeats(s)) continue;
    lowered::for_each_body(
        s, [&](const lowered::Statements& body) { add_sums_of_products(body, sums); });
  }
}

std::vector<StorageId> sums_of_products(const lowered::Statements& list) {
  std::vector<StorageId> sums;
  add_sums_of_products(list, sums);
  return sums;
}

const lowered::WaitGroup* wait_behind(std::span<const lowered::Statement> list,
                                      std::size_t product) {
  const auto* const wait = product + 1 < list.size()
                               ? std::get_if<lowered::WaitGroup>(&list[product + 1].what)
                               : nullptr;
  return wait != nullptr && wait->kind == device::Completion::wgmma_group ? wait : nullptr;
}

}  // namespace

void Expander::expand_list(std::span<const lowered::Statement> list) {
  const int around = b_.at().statement;
  for (std::size_t i = 0; i < list.size();) {
    b_.at(list[i].at);
    b_.statement(list[i].id.number());
    if (const auto* const d = std::get_if<lowered::Dot>(&list[i].what)) {
      const lowered::WaitGroup* const done = wait_behind(list, i);
      expand_product(*d, done);
      i += done != nullptr ? 2 : 1;
      continue;
    }
    const std::size_t end = end_of_elected(list, i, sends_by_warpgroups_);
    const bool elects = end > i && !is_one_thread_;
    const bool of_each = sends_by_warpgroups_ && end > i && is_sent(list[i]);
    if (elects) b_.open(thread::If{of_each ? elected_of_warpgroup() : elected(), {}});
    for (const std::size_t last = std::max(end, i + 1); i < last; ++i) {
      b_.statement(list[i].id.number());
      std::visit([this](const auto& what) { expand_one(what); }, list[i].what);
    }
    if (elects) b_.close();
  }
  b_.statement(around);
}

void Expander::expand_one(const lowered::Sync& s) {
  switch (s.of) {
  case lowered::Sync::Of::program: return sync();
  case lowered::Sync::Of::block: return b_.add(thread::Call{.function = Row::block_sync});
  case lowered::Sync::Of::cluster: return b_.add(thread::Call{.function = Row::cluster_sync});
  case lowered::Sync::Of::warpgroup:
    return b_.add(thread::Call{.function = Row::warpgroup_sync_in,
                               .templates = {std::int64_t{l_.num_warps}}});
  }
}
void Expander::expand_one(const lowered::EnterWindow& w) { enter_window(w.window); }

ExprId Expander::open_registers(const char* counter, std::int64_t count, bool short_form) {
  const VariableId k =
      e_.declare({.name = counter,
                  .type = i32,
                  .facts = {.low = 0, .high = count - 1, .depends = thread::on_register}});
  b_.open(thread::For{.counter = k,
                      .low = number(0),
                      .high = number(count),
                      .body = {},
                      .short_form = short_form},
          thread::on_register);
  return e_.variable(k);
}

void Expander::expand_one(const lowered::CopyStorage& c) {
  if (l_.storages[c.to].is_scalar()) {
    if (l_.storages[c.from].in_shared()) {
      const lowered::Redirects none;
      return set_scalar(c.to, Nest(*this, none).held(c.from));
    }
    b_.add(thread::Assign{scalar_storage(c.to), scalar_storage(c.from)});
    return;
  }
  const lowered::Storage& filled = l_.storages[c.to];
  const std::int64_t registers =
      filled.is_packed() ? filled.words() : filled.registers().layout.registers();
  const ExprId k = open_registers("k", registers, true);
  b_.add(thread::Assign{e_.element(storage(c.to), k), e_.element(storage(c.from), k)});
  b_.close();
}

void Expander::expand_one(const lowered::When& w) {
  b_.open(thread::If{scalar(w.condition), {}});
  expand_list(w.body);
  b_.close();
}

ExprId Expander::scalar(ValueId v, bool enter) {
  const lowered::Redirects none;
  return Nest(*this, none).scalar(v, enter);
}

void Expander::expand_one(const lowered::GridLoop& loop) {
  if (loop.axis == lowered::programs_axis) return over_programs(loop);
  if (!loop.prologue.empty()) {
    pin_declared(sums_of_products(loop.body));
    return expand_rotated(loop);
  }
  for (const StorageId shared : loop.shared) declare_storage(shared);
  const Dim& d = g_.mapping.grid[loop.axis];
  const VariableId p =
      e_.declare({.name = fmt::format("p{}", loop.axis),
                  .type = i32,
                  .facts = {.low = 0, .high = d.is_static() ? d.value() - 1 : INT32_MAX - 1}});
  ExprId& id = program_ids_[static_cast<std::size_t>(loop.axis)];
  thread::For iterations{
      .counter = p, .low = number(0), .high = loop_end(loop.axis), .unroll = 1, .body = {}};
  if (!loop.ring) {
    pin_declared(sums_of_products(loop.body));
    over_parts(loop.known, std::move(iterations), graph::no_value, [&](thread::For part) {
      id = e_.variable(part.counter);
      b_.open_loop(std::move(part));
      begins_with(e_.plain(Operator::equal, id, number(0), bool_), [&] { expand_list(loop.body); });
      b_.close();
    });
    return;
  }
  const ExprId high = iterations.high;
  iterations.step = l_.rings[loop.ring].slots;
  over_slots({.ring = loop.ring,
              .low = number(0),
              .high = high,
              .least = 0,
              .sums = sums_of_products(loop.body),
              .body =
                  [&](ExprId iteration) {
                    id = iteration;
                    expand_list(loop.body);
                  }},
             std::move(iterations));
}

// The counter's next value, which is not below `limit` after the last iteration: it overflows
// nowhere. no_expr: a plain step.
ExprId Expander::advanced(VariableId counter, std::int64_t step, ValueId limit) {
  const Inst& i = g_[limit];
  const std::int64_t most =
      i.op == Op::Constant ? graph::to_int(i32, i.attr.bits) : std::int64_t{INT32_MAX};
  const std::int64_t last = INT32_MAX - step;  // from which a step can be made
  return most - 1 <= last ? no_expr : behind(e_.variable(counter), step);
}

ExprId Expander::behind(ExprId number, std::int64_t step) {
  const std::int64_t last = INT32_MAX - step;
  if (e_.facts(number).high <= last) return e_.sum(e_.affine(number) + Affine(step));
  const ExprId at_most = e_.call(Row::min, i32, {number, this->number(last)});
  return e_.sum(Affine::term(at_most) + Affine(step));
}

void Expander::expand_one(const lowered::Loop& l) {
  if (!l.prologue.empty()) {
    pin_declared(sums_of_products(l.body));
    return expand_rotated(l);
  }
  for (const StorageId shared : l.shared) declare_storage(shared);
  const graph::LoopView loop = graph::LoopView::of(g_[l.inst]);
  const StorageId s = l_.storage_of[g_[loop.body].params[0]];
  const ExprId low = scalar(loop.low), high = scalar(loop.high);
  const VariableId counter = storage(s);
  e_[counter].facts = thread::facts_of_counter(e_.facts(low), e_.facts(high), loop.step);
  thread::For iterations{.counter = counter,
                         .low = low,
                         .high = high,
                         .step = loop.step,
                         .next = advanced(counter, loop.step, loop.high),
                         .unroll = std::max<std::int64_t>(1, loop.unroll),
                         .body = {}};
  if (!l.ring) {
    pin_declared(sums_of_products(l.body));
    over_parts(l.known, std::move(iterations), loop.high, [&](thread::For part) {
      storages_[s] = part.counter;
      const ExprId begins = e_.plain(Operator::equal, e_.variable(part.counter), low, bool_);
      b_.open_loop(std::move(part));
      begins_with(begins, [&] { expand_list(l.body); });
      b_.close();
    });
    return;
  }
  iterations.step = loop.step * l_.rings[l.ring].slots;
  iterations.next = advanced(counter, iterations.step, loop.high);
  over_slots({.ring = l.ring,
              .low = low,
              .high = high,
              .step = loop.step,
              .sums = sums_of_products(l.body),
              .body =
                  [&](ExprId iteration) {
                    storages_[s] = e_[iteration].variable;
                    expand_list(l.body);
                    storages_[s] = counter;
                  }},
             std::move(iterations));
}

void Expander::expand_one(const lowered::While& w) {
  b_.open_loop(thread::While{});
  expand_list(w.test);
  const graph::WhileView loop = graph::WhileView::of(g_[w.inst]);
  b_.add(thread::BreakUnless{scalar(g_[loop.condition].yields[0])});
  expand_list(w.body);
  b_.close();
}

// One after the other stands behind them all: what is known outside is named before.
void Expander::expand_one(const lowered::Switch& s) {
  for (const StorageId r : s.results) declare_storage(r);
  const ExprId which = scalar(g_[s.inst].args[0]);
  const bool chooses = g_[g_[s.inst].args[0]].type.dtype.is_bool();
  const std::size_t count = s.bodies.size();
  std::vector<std::pair<ExprId, thread::Statements>> branches;
  for (std::size_t n = 0; n < count; ++n) {
    // Of a bool the second comes first, where it holds.
    const std::size_t taken = chooses ? count - 1 - n : n;
    ExprId condition = no_expr;
    if (n + 1 < count)
      condition = chooses ? which
                          : e_.plain(n == 0 ? Operator::less : Operator::equal, which,
                                     number(n == 0 ? 1 : static_cast<std::int64_t>(n)), bool_);
    b_.open(thread::Block{});
    expand_list(s.bodies[taken]);
    branches.emplace_back(condition, b_.take());
  }
  while (!branches.empty() && branches.back().second.empty()) branches.pop_back();
  for (std::size_t n = 0; n < branches.size(); ++n) {
    auto& [condition, body] = branches[n];
    if (n > 0)
      b_.add(thread::Else{condition, std::move(body)});
    else if (condition != no_expr)
      b_.add(thread::If{.condition = condition, .body = std::move(body), .uniform = true});
    else
      b_.add(thread::Block{.body = std::move(body)});
  }
}

// Memory in registers is declared with that of the body: nothing is known of it here.
void Expander::expand_one(const lowered::Scope& s) {
  for (const WindowId w : s.windows)
    if (const auto it = unstored_.find(l_.windows[w].storage()); it != unstored_.end())
      b_.add(thread::Assign{e_.variable(it->second.flag), e_.literal(bool_, 0)});
  expand_list(s.body);
}

void Expander::expand_one(const lowered::Warps& w) {
  // Of what semaphores there say one warp tells all others, as it knows of what they did.
  const bool meet = lowered::effects(l_, {w}).syncs;
  if (meet) sync();
  in_warps_ = true;
  b_.open(thread::Block{});
  expand_list(w.body);
  b_.close();
  in_warps_ = false;
  if (meet) sync();
}

ExprId Expander::warp_number() {
  return e_.plain(Operator::div, thread_, number(graph::warp_threads));
}

void Expander::expand_one(const lowered::Scalar& s) {
  const StorageId own = l_.storage_of[s.value];
  const Op op = g_[s.value].op;
  const bool enter = own == s.storage && op != Op::Param && op != Op::Get;
  set_scalar(s.storage, Nest(*this, s.redirects).scalar(s.value, enter));
}

void Expander::set_scalar(StorageId to, ExprId value) {
  literal_[to] = no_expr;
  if (declared_[to]) {
    b_.add(thread::Assign{scalar_storage(to), value});
  } else if (mutable_[to]) {
    b_.add(thread::Declare{
        .start = thread::Declare::Start::values, .variable = storage(to), .values = {value}});
  } else {
    const VariableId v = storage(to);
    e_[v].facts = e_.facts(value);
    if (e_[value].node == thread::Node::literal) literal_[to] = value;
    b_.add(thread::Let{v, value});
  }
  declared_[to] = true;
  mark_stored(to);
}

// ---- numbers

ExprId Expander::image(ExprId x, const layout::Bits& columns) {
  const layout::Terms terms = layout::terms_of(columns);
  ExprId out = no_expr;
  for (const layout::Term& t : terms.terms) {
    ExprId part = e_.bits(x, t.mask, t.shift < 0 ? -t.shift : 0);
    if (t.shift > 0) part = e_.plain(Operator::shift_left, part, number(t.shift), e_[x].type);
    out = out == no_expr ? part
                         : e_.plain(terms.disjoint ? Operator::bit_or : Operator::bit_xor, out,
                                    part, e_[x].type);
  }
  return out == no_expr ? e_.number(0, e_[x].type) : out;
}

}  // namespace palladium::expand
