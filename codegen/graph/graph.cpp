#include "codegen/graph/graph.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "palladium/error.hpp"

namespace palladium::graph {
namespace {

// The words of the column `spelling`.
constexpr const char* none = nullptr;
constexpr Spelling unspelled = {};
constexpr Spelling spelled(const char* general, const char* floats = none, const char* bools = none,
                           const char* approx = none) {
  return {general, floats, bools, approx};
}

// The words of the column `effects`.
constexpr Effects touches(std::size_t operand, Effect::Access access) {
  return {.list = {Effect{operand, access}}, .count = 1};
}
constexpr Effects reads(std::size_t operand) { return touches(operand, Effect::Access::read); }
constexpr Effects writes(std::size_t operand) { return touches(operand, Effect::Access::write); }
constexpr Effects updates(std::size_t operand) { return touches(operand, Effect::Access::update); }
// Of two operands.
constexpr Effects operator|(Effects a, const Effects& b) {
  for (std::size_t i = 0; i < b.count; ++i) a.list[a.count++] = b.list[i];
  return a;
}
constexpr Effects async(Effects e) {
  e.is_async = true;
  return e;
}
constexpr Effects completing(std::size_t operand, Effects e) {
  e.completes = operand;
  return async(e);
}
constexpr Effects syncing(Effects e) {
  e.syncs = true;
  return e;
}
constexpr Effects pure = {}, tells = {.tells = true}, regions = {.regions = true},
                  as_said = {.as_said = true};

constexpr OpInfo table[] = {
#define PL_OP(Name, text, op_class, literals, min_args, max_args, rule, effects, ulp, spelling, \
              meaning)                                                                          \
  {text,   OpClass::op_class, Literals::literals, min_args, max_args, effects, ulp, spelling,   \
   meaning},
#include "codegen/graph/ops.def"
#undef PL_OP
};

#define PL_OP(Name, text, op_class, ...)                                          \
  static_assert((OpClass::op_class == OpClass::elementwise) ==                    \
                    (table[static_cast<int>(Op::Name)].spelling.general != none), \
                "operation '" text "' is elementwise, or has a spelling in CUDA C++, not both");
#include "codegen/graph/ops.def"
#undef PL_OP

// Values are free to move, to be merged and to go: what is done to memory or the host has the class
// that says so.
constexpr bool fits_class(const OpInfo& row) {
  switch (row.op_class) {
  case OpClass::memory: return row.effects.count > 0 || row.effects.syncs || row.effects.as_said;
  case OpClass::host: return row.effects.tells;
  case OpClass::control: return row.effects.count == 0;
  default: return row.effects.none();
  }
}
constexpr bool has_its_operands(const OpInfo& row) {
  return std::ranges::all_of(row.effects.on_operands(), [&](const Effect& e) {
    return e.operand < static_cast<std::size_t>(row.min_args);
  });
}
static_assert(std::ranges::all_of(table, fits_class) &&
              std::ranges::all_of(table, has_its_operands));

std::uint64_t mask(DType dtype) {
  return dtype.bits() == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << dtype.bits()) - 1;
}

// A format of at most 16 bits: IEEE's, or one that has all of the greatest exponent but a NaN for
// numbers.
struct SmallFloat {
  int exponent_bits, fraction_bits;
  bool is_ieee = true;
};
constexpr SmallFloat small_float(DType dtype) {
  switch (dtype.kind()) {
  case DType::F8E4M3: return {4, 3, false};
  case DType::F8E5M2: return {5, 2};
  case DType::F16: return {5, 10};
  default: return {8, 7};
  }
}

// A double rounded to nearest even; without an infinity what is too large is NaN.
std::uint64_t narrow(double number, SmallFloat to) {
  const auto [exponent_bits, fraction_bits, is_ieee] = to;
  const auto bits = std::bit_cast<std::uint64_t>(number);
  const std::uint64_t sign = (bits >> 63) << (exponent_bits + fraction_bits);
  const std::uint64_t all_ones = (std::uint64_t(1) << (exponent_bits + fraction_bits)) - 1;
  const std::uint64_t infinity = is_ieee ? all_ones >> fraction_bits << fraction_bits : all_ones;
  if (std::isnan(number)) return sign | infinity | (std::uint64_t(1) << (fraction_bits - 1));
  if (std::isinf(number)) return sign | infinity;
  if ((bits << 1) == 0) return sign;

  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  // Doubles below their own normal range are far below half of the smallest target number.
  if (exponent == -1023) return sign;
  const std::uint64_t significand =
      (bits & ((std::uint64_t(1) << 52) - 1)) | (std::uint64_t(1) << 52);
  int drop = 52 - fraction_bits;
  std::int64_t biased = exponent + bias;
  if (biased < 1) {  // subnormal: fewer bits stay
    drop += static_cast<int>(1 - biased);
    biased = 1;
  }
  if (drop > 54) return sign;
  std::uint64_t kept = significand >> drop;
  const std::uint64_t rest = significand & ((std::uint64_t(1) << drop) - 1);
  const std::uint64_t half = std::uint64_t(1) << (drop - 1);
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  // The hidden bit adds 1 to the exponent field; a carry out of the fraction adds the next.
  const std::uint64_t magnitude = (static_cast<std::uint64_t>(biased - 1) << fraction_bits) + kept;
  return sign | std::min(magnitude, infinity);
}

double widen(std::uint64_t bits, SmallFloat from) {
  const auto [exponent_bits, fraction_bits, is_ieee] = from;
  const std::uint64_t fraction = bits & ((std::uint64_t(1) << fraction_bits) - 1);
  const int all_ones = (1 << exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & all_ones;
  const int bias = all_ones >> 1;
  const bool negative = (bits >> (exponent_bits + fraction_bits)) & 1;
  double magnitude;
  if (exponent == all_ones && (is_ieee || fraction + 1 == std::uint64_t(1) << fraction_bits))
    magnitude = fraction ? std::numeric_limits<double>::quiet_NaN()
                         : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    magnitude = std::ldexp(static_cast<double>(fraction), 1 - bias - fraction_bits);
  else
    magnitude = std::ldexp(static_cast<double>(fraction | (std::uint64_t(1) << fraction_bits)),
                           exponent - bias - fraction_bits);
  return negative ? -magnitude : magnitude;
}

// The integer as a double from which a format of at most 51 bits rounds as from the integer itself:
// bits that do not fit leave a trace in the last place (round to odd).
double sticky_double(std::int64_t number) {
  constexpr std::int64_t exact = std::int64_t(1) << 53;
  if (number > -exact && number < exact) return static_cast<double>(number);
  const std::uint64_t magnitude =
      number < 0 ? -static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  const std::uint64_t low = magnitude & 0x7ff;
  const std::uint64_t kept = (magnitude & ~std::uint64_t(0x7ff)) | (low ? 0x800 : 0);
  const double result = static_cast<double>(kept);
  return number < 0 ? -result : result;
}

}  // namespace

const OpInfo& info(Op op) { return table[static_cast<int>(op)]; }

bool op_named(std::string_view name, Op& op) {
  for (int i = 0; i < num_ops; ++i)
    if (name == table[i].name) {
      op = static_cast<Op>(i);
      return true;
    }
  return false;
}

std::int64_t element_count(const Extents& shape) {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  return n;
}

std::string to_string(const Type& type) {
  if (type.kind == Type::Kind::none) return "";
  std::string text;
  if (type.is_ref())
    text = std::string("ref ") +
           (type.space == Space::automatic ? "block" : to_string(type.space)) +
           (type.arrivals > 0  ? "(" + std::to_string(type.arrivals) + ")"
            : type.swizzle > 0 ? "(" + std::to_string(type.swizzle) + ")"
                               : "") +
           " ";
  text += type.dtype.name();
  text += '[';
  for (std::size_t i = 0; i < type.shape.size(); ++i) {
    const bool is_unknown = type.is_ref() && type.shape[i] == unknown_extent;
    text += (i ? "," : "") + (is_unknown ? "?" : std::to_string(type.shape[i]));
  }
  return text + "]";
}

ValueId Graph::add(Inst inst, Location location) {
  const auto id = static_cast<std::uint32_t>(insts.size());
  insts.push_back(std::move(inst));
  where.resize(id);
  where.push_back(location);
  return ValueId{id};
}

RegionId Graph::add_region() {
  regions.emplace_back();
  return RegionId{static_cast<std::uint32_t>(regions.size() - 1)};
}

ValueId Graph::root(ValueId ref) const {
  while ((*this)[ref].op != Op::Param) ref = (*this)[ref].args[0];
  return ref;
}

ValueId Graph::base(ValueId ref) const {
  while (!is_base(ref)) ref = (*this)[ref].args[0];
  return ref;
}

bool Graph::reads(const Inst& inst, ValueId root_ref) const {
  const Effects all = effects(inst);
  return std::ranges::any_of(all.on_memory(), [&](const Effect& e) {
    return e.reads() && root(inst.args[e.operand]) == root_ref;
  });
}

bool Graph::writes(const Inst& inst, ValueId root_ref) const {
  const Effects all = effects(inst);
  return std::ranges::any_of(all.on_memory(), [&](const Effect& e) {
    return e.writes() && root(inst.args[e.operand]) == root_ref;
  });
}

ValueId Graph::peer(ValueId ref) const {
  for (; (*this)[ref].op != Op::Param; ref = (*this)[ref].args[0])
    if ((*this)[ref].op == Op::RefPeer) return ref;
  return no_value;
}

bool Graph::chooses(ValueId ref) const {
  for (; (*this)[ref].op != Op::Param; ref = (*this)[ref].args[0]) {
    const Inst& view = (*this)[ref];
    if (view.op != Op::At) continue;
    for (std::size_t i = 1; i < view.args.size(); ++i)
      if (!(*this)[view.args[i]].type.is_scalar()) return true;
  }
  return false;
}

bool Graph::is_whole(ValueId ref, std::size_t dimension) const {
  for (; !is_base(ref); ref = (*this)[ref].args[0]) {
    const Inst& view = (*this)[ref];
    if (view.op != Op::At) return false;
    const Extents& from = (*this)[view.args[0]].type.shape;
    const std::vector<SubscriptDim> dims = Subscript::of(view).dims;
    std::size_t d = 0, left = dimension;
    while (d < dims.size() && (!dims[d].is_slice || left > 0)) left -= dims[d++].is_slice;
    if (d == dims.size() || dims[d].dynamic || dims[d].start != 0 || dims[d].stride != 1 ||
        dims[d].size != from[d])
      return false;
    dimension = d;
  }
  return true;
}

bool Graph::repeats(ValueId ref) const {
  for (; (*this)[ref].op != Op::Param; ref = (*this)[ref].args[0]) {
    if ((*this)[ref].op != Op::At) continue;
    const Subscript subscript = Subscript::of((*this)[ref]);
    if (std::ranges::find(subscript.dims, 0, &SubscriptDim::stride) != subscript.dims.end())
      return true;
  }
  return false;
}

int Graph::alias_class(ValueId root_ref) const {
  for (const Body& body : bodies) {
    const std::vector<ValueId>& params = (*this)[body.region].params;
    const auto it = std::find(params.begin(), params.end(), root_ref);
    if (it == params.end()) continue;
    const int position = static_cast<int>(it - params.begin());
    const int output = position - static_cast<int>(arguments.size());
    for (const Alias& alias : aliases)
      if (alias.output == output)
        for (std::size_t i = 0; i < arguments.size(); ++i)
          if (arguments[i].kind == Argument::Kind::input && arguments[i].index == alias.input)
            return static_cast<int>(i);
    return position;
  }
  constexpr std::uint32_t first_scoped = 1u << 24;  // above the positions of all parameters
  if ((*this)[root_ref].op == Op::Param && (*this)[root_ref].type.is_ref())
    return static_cast<int>(first_scoped + index(root_ref));
  throw InternalError("graph: alias class of a value that is no parameter");
}

int Graph::mapping_of(ValueId root_ref) const {
  for (const Body& body : bodies) {
    const std::vector<ValueId>& params = (*this)[body.region].params;
    const auto position = static_cast<std::size_t>(
        std::find(params.begin(), params.end(), root_ref) - params.begin());
    if (position < arguments.size()) return arguments[position].index;
    if (position < arguments.size() + static_cast<std::size_t>(mapping.num_outputs))
      return mapping.num_inputs + static_cast<int>(position - arguments.size());
  }
  return -1;
}

Counting counting(const Graph& g, const BlockMapping& semaphore) {
  // An axis of grid or cluster each, batches among those of the grid.
  const auto parts = static_cast<std::size_t>(
      std::ranges::count(semaphore.block_shape, BlockDim::Kind::squeezed, &BlockDim::kind));
  if (parts == g.mapping.grid.size() + g.cluster.size()) return Counting::block;
  return parts < g.mapping.grid.size() ? Counting::launch : Counting::cluster;
}

Counting counting(const Graph& g, const Inst& semaphore_op) {
  const int mapping = g.mapping_of(g.root(semaphore_op.args[0]));
  if (mapping < 0) throw InternalError("graph: a semaphore that no array counts");
  return counting(g, g.mapping.block_mappings[static_cast<std::size_t>(mapping)]);
}

bool blocks_may_wait(const Graph& g, Counting least) {
  return std::ranges::any_of(g.insts, [&](const Inst& inst) {
    return is_semaphore_op(inst.op) && counting(g, inst) >= least;
  });
}

bool waits_by_taking(const Inst& wait) { return wait.attr.ints[0] != 0; }

Hearing hearing(const Graph& g, const Inst& semaphore_op) {
  const std::vector<std::int64_t>& said = semaphore_op.attr.ints;
  const std::size_t at = semaphore_op.op == Op::SemaphoreWait ? 1 : 0;
  if (said.size() > at) return Hearing{static_cast<std::uint8_t>(said[at])};
  return counting(g, semaphore_op) == Counting::block ? Hearing::block : Hearing::gpu;
}

bool has_semaphores(const Graph& g) {
  return std::any_of(g.insts.begin(), g.insts.end(),
                     [](const Inst& inst) { return is_semaphore_op(inst.op); });
}

bool has_async_ops(const Graph& g) {
  return std::ranges::any_of(g.insts, [](const Inst& inst) { return is_async_op(inst.op); });
}

bool overlaps_previous(const Graph& g) {
  return std::ranges::any_of(g.insts,
                             [](const Inst& inst) { return inst.op == Op::GridDependencyWait; });
}

CopyView CopyView::of(const Inst& copy) {
  CopyView v{.global = copy.args[0]};
  if (copy.args.size() > 1) v.shared = copy.args[1];
  const std::vector<std::int64_t>& ints = copy.attr.ints;
  if (copy.op == Op::CopyToGlobal && !ints.empty())
    v.beyond = Beyond{static_cast<std::uint8_t>(ints[0])};
  if (copy.op != Op::CopyToShared) return v;
  v.barrier = copy.args[2], v.number = copy.args[3];
  if (!ints.empty()) v.axes = ints[0];
  if (ints.size() > 1) v.beyond = Beyond{static_cast<std::uint8_t>(ints[1])};
  if (copy.args.size() > 4) v.blocks = copy.args[4];
  return v;
}

bool is_empty(const BlockMapping& m) {
  return std::ranges::any_of(m.array_aval.shape, [](const Dim& d) { return d.same(0); });
}

bool is_used(const Graph& g, std::size_t mapping) {
  if (static_cast<int>(mapping) < g.mapping.num_index_operands) return true;
  return std::ranges::any_of(g.insts, [&](const Inst& inst) {
    return std::ranges::any_of(inst.args, [&](ValueId arg) {
      return g[arg].op == Op::Param && g[arg].type.is_ref() &&
             g.mapping_of(arg) == static_cast<int>(mapping);
    });
  });
}

bool writes_nothing(const Graph& g) {
  const auto outputs =
      std::span(g.mapping.block_mappings).subspan(static_cast<std::size_t>(g.mapping.num_inputs));
  return std::ranges::all_of(outputs, [](const BlockMapping& m) { return is_empty(m); }) &&
         std::ranges::none_of(g.insts, [](const Inst& inst) { return is_debug_op(inst.op); });
}

int Graph::num_scalars() const {
  return static_cast<int>(std::count_if(arguments.begin(), arguments.end(), [](const Argument& a) {
    return a.kind == Argument::Kind::scalar;
  }));
}

std::optional<std::uint64_t> fill_as(const BlockMapping& m, DType dtype) {
  const int bits = m.array_aval.dtype.bits();
  if (!m.fill || dtype.bits() == bits) return m.fill;
  constexpr std::uint64_t each_byte = 0x0101010101010101;
  const auto low_bits = [](std::uint64_t x, int n) { return n == 64 ? x : x & ((1ull << n) - 1); };
  const std::uint64_t repeated = (*m.fill & 0xff) * each_byte;
  if (low_bits(repeated, bits) != *m.fill) return {};
  return low_bits(repeated, dtype.bits());
}

Subscript Subscript::of(const Inst& at) {
  if (at.attr.ints.size() % 4 != 0)
    throw InternalError("graph: the subscript of an at is malformed");
  Subscript result;
  for (std::size_t i = 0; i < at.attr.ints.size(); i += 4) {
    const std::int64_t* dim = &at.attr.ints[i];
    result.dims.push_back({.is_slice = (dim[0] & 1) != 0,
                           .dynamic = (dim[0] & 2) != 0,
                           .start = dim[1],
                           .size = dim[2],
                           .stride = dim[3],
                           .array = (dim[0] & 4) != 0});
  }
  return result;
}

std::vector<std::int64_t> Subscript::encode() const {
  std::vector<std::int64_t> ints;
  ints.reserve(4 * dims.size());
  for (const SubscriptDim& d : dims)
    ints.insert(ints.end(), {(d.is_slice ? 1 : 0) + (d.dynamic ? 2 : 0) + (d.array ? 4 : 0),
                             d.start, d.size, d.stride});
  return ints;
}

Subscript::Chosen Subscript::chosen(std::size_t rank_of_view) const {
  std::size_t slices = 0, before = 0;
  bool found = false, together = true;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    slices += dims[d].is_slice;
    if (dims[d].is_slice) continue;
    if (!found) before = slices;
    together = together && (!found || !dims[d - 1].is_slice);
    found = true;
  }
  const std::size_t rank = rank_of_view - slices;
  return {rank > 0 && together ? before : 0, rank};
}

bool Subscript::leaves(const SubscriptDim& d, std::int64_t extent) {
  const std::int64_t reach = (d.size - 1) * d.stride;
  return reach >= extent || (!d.dynamic && (d.start < 0 || d.start + reach >= extent));
}

AxisView AxisView::of(const Inst& inst) {
  if (inst.op == Op::ProgramId || inst.op == Op::NumPrograms)
    return {AxisKind::grid, static_cast<int>(inst.attr.ints[0])};
  return {static_cast<AxisKind>(inst.attr.ints[0]), static_cast<int>(inst.attr.ints[1])};
}

int iota_dimension(const Inst& iota) { return static_cast<int>(iota.attr.ints[0]); }

std::span<const std::int64_t> dimensions(const Inst& inst) { return inst.attr.ints; }

bool is_hint(Op op) { return op == Op::MultipleOf || op == Op::MaxContiguous; }

std::span<const std::int64_t> hint(const Inst& inst) { return inst.attr.ints; }

std::string broken_hint(const Inst& inst, std::size_t d) {
  const std::string n = std::to_string(hint(inst)[d]);
  const std::string along = " along dimension " + std::to_string(d);
  if (inst.op == Op::MaxContiguous)
    return "max_contiguous: the value {} does not follow the one before it, in " + n + along;
  if (inst.type.shape.empty()) return "multiple_of: the value {} is no multiple of " + n;
  return "multiple_of: the value {}, with which a run" + along + " begins, is no multiple of " + n;
}

SliceView SliceView::of(const Inst& slice) {
  const auto middle =
      slice.attr.ints.begin() + static_cast<std::ptrdiff_t>(slice.attr.ints.size() / 2);
  return {{slice.attr.ints.begin(), middle}, {middle, slice.attr.ints.end()}};
}

std::vector<std::int64_t> SliceView::encode() const {
  std::vector<std::int64_t> ints = starts;
  ints.insert(ints.end(), strides.begin(), strides.end());
  return ints;
}

int concatenated(const Inst& concatenate) { return static_cast<int>(concatenate.attr.ints[0]); }
int taken(const Inst& take) { return static_cast<int>(take.attr.ints[0]); }

DotView DotView::of(const Inst& dot) {
  const std::vector<std::int64_t>& ints = dot.attr.ints;
  const std::size_t first = is_product_by_hand(dot.op) ? 1 : 0;  // behind the accumulator
  return {dot.args[first], dot.args[first + 1], ints[0] != 0, ints[1] != 0,
          static_cast<Precision>(ints[2])};
}

LoopView LoopView::of(const Inst& loop) {
  return {loop.args[0],      loop.args[1],    loop.attr.ints[0],
          loop.attr.ints[1], loop.regions[0], std::span(loop.args).subspan(2)};
}

WhileView WhileView::of(const Inst& loop) { return {loop.regions[0], loop.regions[1], loop.args}; }

Repeated Repeated::of(const Inst& loop) {
  if (loop.op == Op::Loop) return {LoopView::of(loop).body, 1};
  return {WhileView::of(loop).body, 0};
}

std::size_t result_of(const Inst& get) { return static_cast<std::size_t>(get.attr.ints[0]); }

Update update_of(const Inst& atomic) { return static_cast<Update>(atomic.attr.ints[2]); }

const char* name_of(Update update) {
  constexpr const char* names[num_updates] = {
      "atomic_add", "atomic_max",  "atomic_min", "atomic_and", "atomic_or",
      "atomic_xor", "atomic_xchg", "atomic_cas", "atomic_inc", "atomic_dec"};
  return names[static_cast<int>(update)];
}

bool updates(Update update, DType dtype) {
  if (update == Update::increment || update == Update::decrement)
    return dtype == u32 || dtype == i32;
  if (!dtype.is_float()) return dtype.is_integer() && !dtype.is_packed();
  switch (update) {
  case Update::add:
  case Update::max:
  case Update::min:
  case Update::exchange: return !is_byte_float(dtype);
  default: return false;
  }
}

std::string dtypes_of(Update update) {
  std::string list;
  for (const DType d : {i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64})
    if (updates(update, d)) list += (list.empty() ? "" : ", ") + std::string(d.name());
  return list;
}

ValueId first_scope(const Graph& g) {
  for (std::uint32_t v = 0; v < g.insts.size(); ++v)
    if (g.insts[v].op == Op::ScopeEvent) return ValueId{v};
  return no_value;
}

MemoryView MemoryView::of(const Inst& inst) {
  MemoryView view;
  std::size_t next = 0;
  const auto take = [&] { return next < inst.args.size() ? inst.args[next++] : no_value; };
  const auto has = [&](std::size_t i) {
    return i < inst.attr.ints.size() && inst.attr.ints[i] != 0;
  };
  view.ref = take();
  if (inst.op != Op::Load) view.value = take();
  if (has(0)) view.mask = take();
  if (has(1)) view.other = take();
  return view;
}

std::uint64_t to_bits(DType dtype, double number) {
  switch (dtype.kind()) {
  case DType::None: break;
  case DType::Bool: return number != 0;
  case DType::F8E4M3:
  case DType::F8E5M2:
  case DType::F16:
  case DType::BF16: return narrow(number, small_float(dtype));
  case DType::F32: return std::bit_cast<std::uint32_t>(static_cast<float>(number));
  case DType::F64: return std::bit_cast<std::uint64_t>(number);
  default: {
    if (std::isnan(number)) return 0;
    const int value_bits = dtype.bits() - (dtype.is_signed() ? 1 : 0);
    const double limit = std::ldexp(1.0, value_bits);
    if (number >= limit) return mask(dtype) >> (dtype.is_signed() ? 1 : 0);
    if (!dtype.is_signed())
      return number <= -1 ? 0 : static_cast<std::uint64_t>(std::trunc(number));
    if (number <= -limit) return std::uint64_t(1) << value_bits;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(number)) & mask(dtype);
  }
  }
  throw InternalError("graph: a number without a dtype");
}

std::uint64_t to_bits(DType dtype, std::int64_t number) {
  switch (dtype.kind()) {
  case DType::None: throw InternalError("graph: a number without a dtype");
  case DType::Bool: return number != 0;
  case DType::F8E4M3:
  case DType::F8E5M2:
  case DType::F16:
  case DType::BF16: return to_bits(dtype, sticky_double(number));
  case DType::F32: return std::bit_cast<std::uint32_t>(static_cast<float>(number));
  case DType::F64: return std::bit_cast<std::uint64_t>(static_cast<double>(number));
  default: return static_cast<std::uint64_t>(number) & mask(dtype);
  }
}

std::uint64_t natural_to_bits(DType dtype, std::uint64_t number) {
  if (number >> 63 == 0 || !dtype.is_float())
    return to_bits(dtype, static_cast<std::int64_t>(number));
  if (dtype == f32) return std::bit_cast<std::uint32_t>(static_cast<float>(number));
  if (dtype == f64) return std::bit_cast<std::uint64_t>(static_cast<double>(number));
  // Half of it, whose last place tells of what was cut off, rounds as the whole.
  return to_bits(dtype, 2 * sticky_double(static_cast<std::int64_t>(number >> 1 | (number & 1))));
}

double to_double(DType dtype, std::uint64_t bits) {
  switch (dtype.kind()) {
  case DType::F8E4M3:
  case DType::F8E5M2:
  case DType::F16:
  case DType::BF16: return widen(bits, small_float(dtype));
  case DType::F32: return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  case DType::F64: return std::bit_cast<double>(bits);
  case DType::U64: return static_cast<double>(bits);
  default: return static_cast<double>(to_int(dtype, bits));
  }
}

std::int64_t to_int(DType dtype, std::uint64_t bits) {
  if (dtype.is_float()) return static_cast<std::int64_t>(to_bits(i64, to_double(dtype, bits)));
  const std::uint64_t number = bits & mask(dtype);
  if (!dtype.is_signed() || dtype.bits() == 64) return static_cast<std::int64_t>(number);
  const std::uint64_t sign = std::uint64_t(1) << (dtype.bits() - 1);
  return static_cast<std::int64_t>((number ^ sign) - sign);
}

}  // namespace palladium::graph
