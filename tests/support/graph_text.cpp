#include "tests/support/graph_text.hpp"

#include <charconv>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "codegen/base/dim.hpp"
#include "codegen/graph/transform.hpp"

namespace palladium::test {
namespace {

using namespace graph;

/// The words of one line.
class Line {
 public:
  Line(std::string_view text, int number) : all_(text), rest_(text), number_(number) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw std::runtime_error("line " + std::to_string(number_) + ": " + what + " at '" +
                             std::string(rest_) + "' in '" + std::string(all_) + "'");
  }
  bool is_indented() const { return all_.starts_with(' '); }
  bool at_end() {
    skip();
    return rest_.empty();
  }
  bool next_is(std::string_view token) {
    skip();
    return rest_.starts_with(token);
  }
  bool next_is_letter() {
    skip();
    return !rest_.empty() && std::isalpha(static_cast<unsigned char>(rest_[0])) != 0;
  }
  bool take(std::string_view token) {
    if (!next_is(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) refuse("expected '" + std::string(token) + "'");
  }
  /// Letters, digits and underscores.
  std::string word() {
    skip();
    std::size_t n = 0;
    while (n < rest_.size() &&
           (std::isalnum(static_cast<unsigned char>(rest_[n])) != 0 || rest_[n] == '_'))
      ++n;
    if (n == 0) refuse("expected a word");
    const std::string taken(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return taken;
  }
  template <class T>
  T number(int base = 10) {
    skip();
    T result{};
    std::from_chars_result got{};
    if constexpr (std::is_floating_point_v<T>)
      got = std::from_chars(rest_.data(), rest_.data() + rest_.size(), result);
    else
      got = std::from_chars(rest_.data(), rest_.data() + rest_.size(), result, base);
    if (got.ec != std::errc()) refuse("expected a number");
    rest_.remove_prefix(static_cast<std::size_t>(got.ptr - rest_.data()));
    return result;
  }
  std::string remainder() {
    skip();
    return std::string(std::exchange(rest_, {}));
  }
  /// What stands before `end`, which is taken too.
  std::string until(std::string_view end) {
    skip();
    const std::size_t n = rest_.find(end);
    if (n == std::string_view::npos) refuse("expected '" + std::string(end) + "'");
    const std::string taken(rest_.substr(0, n));
    rest_.remove_prefix(n + end.size());
    return taken;
  }

 private:
  void skip() {
    while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
  }
  std::string_view all_, rest_;
  int number_;
};

class Reader {
 public:
  explicit Reader(std::string_view text) {
    int number = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      line = line.substr(0, line.find(';'));
      const std::size_t last = line.find_last_not_of(' ');
      ++number;
      if (last != std::string_view::npos) lines_.emplace_back(line.substr(0, last + 1), number);
    }
  }

  Graph run() {
    line().expect("kernel ");
    g_.name = line().remainder();
    ++next_;
    while (!at_body()) header();
    while (next_ < lines_.size()) body();
    finish();
    return std::move(g_);
  }

 private:
  Line& line() {
    if (next_ == lines_.size()) throw std::runtime_error("the graph ends too early");
    return lines_[next_];
  }
  bool at_body() { return !line().is_indented(); }

  // ---- what stands before the bodies

  void header() {
    Line& l = line();
    ++next_;
    GridMapping& m = g_.mapping;
    if (l.take("grid")) return grid(l);
    if (l.take("cluster")) {
      do {
        if (const std::string name = name_before(l); !name.empty())
          g_.cluster_names.push_back(name);
        g_.cluster.push_back(l.number<int>());
      } while (l.take(","));
    } else if (l.take("thread axis ")) {
      g_.thread_name = l.remainder();
    } else if (l.take("vmapped")) {
      while (!l.at_end()) m.vmapped_dims.push_back(l.number<int>());
    } else if (l.take("symbol ")) {
      const auto symbol = l.number<std::size_t>();
      l.expect(": multiple of ");
      std::vector<std::int64_t>& multiples = g_.facts.multiples;
      multiples.resize(std::max(multiples.size(), symbol + 1), 1);
      multiples[symbol] = l.number<std::int64_t>();
    } else if (l.take("offsets below 2^31")) {
      g_.short_offsets = true;
    } else if (l.take("extents below 2^31")) {
      g_.box_extents = true;
    } else if (l.take("without fma")) {
      g_.fma = false;
    } else if (l.take("approximate maths")) {
      g_.approx_math = true;
    } else if (l.take("fast accumulation")) {
      g_.fast_accumulation = true;
    } else if (l.take("revisits allowed")) {
      g_.allow_revisit = true;
    } else if (l.take("persistent")) {
      g_.persistent = true;
    } else if (l.take("sums split among ")) {
      g_.split_k = l.number<int>();
    } else if (l.take("rows of the grid at once: ")) {
      g_.grid_rows = l.number<int>();
    } else if (l.take("line info")) {
      g_.lineinfo = true;
    } else if (l.take("whole arrays")) {
      g_.whole_arrays = true;
    } else if (l.take("globals ")) {
      g_.num_globals = l.number<int>();
    } else if (l.take("scalar ")) {
      const int number = l.number<int>();
      l.expect(":");
      scalars_[number] = dtype(l);
      if (l.take("is symbol ")) symbols_[number] = l.number<int>();
    } else if (l.take("alias: input ")) {
      const int input = l.number<int>();
      l.expect("is output ");
      g_.aliases.push_back({input, l.number<int>()});
    } else if (l.take("get_grid_indices")) {
      m.get_grid_indices = index(region());
    } else if (l.take("local_grid_env")) {
      m.local_grid_env = index(region());
    } else {
      mapping(l);
    }
  }

  /// What stands before `=`, if that is a name; else nothing is taken.
  static std::string name_before(Line& l) {
    Line ahead = l;
    if (ahead.at_end() || !ahead.next_is_letter()) return "";
    const std::string name = ahead.word();
    if (!ahead.take("=")) return "";
    l = ahead;
    return name;
  }

  void grid(Line& l) {
    if (!g_.mapping.grid.empty()) l.refuse("a second grid");
    while (!l.at_end()) {
      if (const std::string name = name_before(l); !name.empty())
        g_.mapping.grid_names.push_back(name);
      g_.mapping.grid.push_back(dim(l));
      if (l.take("bounded by input ")) {
        g_.mapping.bounds.resize(g_.mapping.grid.size(), -1);
        g_.mapping.bounds.back() = l.number<int>();
      }
      g_.semantics.push_back(l.take("sequential") ? Semantics::sequential : Semantics::parallel);
      if (!l.take(",")) break;
    }
  }

  Dim dim(Line& l) {
    std::string function;
    for (const char* name : {"cdiv", "min", "max"})
      if (function.empty() && l.take(name)) function = name;
    if (!function.empty() || l.next_is("(")) {
      l.expect("(");
      const Dim a = dim(l);
      using detail::DimOp;
      const DimOp op = !function.empty() ? (l.expect(","), function == "cdiv"  ? DimOp::cdiv
                                                           : function == "min" ? DimOp::min
                                                                               : DimOp::max)
                       : l.take("+")     ? DimOp::add
                       : l.take("-")     ? DimOp::sub
                       : l.take("*")     ? DimOp::mul
                       : l.take("/")     ? DimOp::div
                                         : (l.expect("%"), DimOp::mod);
      const Dim b = dim(l);
      l.expect(")");
      return detail::dim_binary(op, a, b);
    }
    if (!l.take("s")) return l.number<std::int64_t>();
    const auto symbol = l.number<std::uint32_t>();
    g_.num_symbols = std::max(g_.num_symbols, static_cast<int>(symbol) + 1);
    return dim_symbol(symbol);
  }

  void mapping(Line& l) {
    BlockMapping m;
    m.origin = l.until(": ");
    m.array_aval.dtype = dtype(l);
    l.expect("[");
    while (!l.take("]")) {
      m.array_aval.shape.push_back(dim(l));
      (void)l.take(",");
    }
    l.expect("in blocks [");
    while (!l.take("]")) {
      m.block_shape.push_back(block_dim(l));
      (void)l.take(",");
    }
    m.dense = !l.take("strided");
    if (l.take("aligned ")) m.alignment = l.number<int>();
    if (l.take("filled with ")) m.fill = bits(l, m.array_aval.dtype);
    if (l.take("buffers ")) m.buffers = l.number<int>();
    g_.mapping.num_index_operands += l.take("index operand");
    // Memory of the launch alone comes last, as outputs.
    const bool is_output = m.origin.starts_with("outputs") || m.origin.starts_with("scratch") ||
                           m.origin.starts_with("global");
    ++(is_output ? g_.mapping.num_outputs : g_.mapping.num_inputs);
    if (line().next_is("{") && line().is_indented()) m.index_map = index(region());
    g_.mapping.block_mappings.push_back(std::move(m));
  }
  static BlockDim block_dim(Line& l) {
    if (l.take("squeezed")) return {BlockDim::Kind::squeezed, 1};
    if (l.take("whole")) return {BlockDim::Kind::whole, unknown_extent};
    for (const auto& [name, kind] : {std::pair("bounded_slice(", BlockDim::Kind::bounded_slice),
                                     std::pair("bounded(", BlockDim::Kind::bounded),
                                     std::pair("indirect(", BlockDim::Kind::indirect)})
      if (l.take(name)) {
        const auto size = l.number<std::int64_t>();
        l.expect(")");
        return {kind, size};
      }
    if (!l.take("element(")) return l.number<std::int64_t>();
    const auto size = l.number<std::int64_t>();
    l.expect(",");
    const auto low = l.number<std::int64_t>();
    l.expect(",");
    const auto high = l.number<std::int64_t>();
    l.expect(")");
    return {BlockDim::Kind::element, size, low, high};
  }

  // ---- types and numbers

  static DType dtype(Line& l) {
    const std::string name = l.word();
    const DType t = dtype_named(name.c_str());
    if (t == DType()) l.refuse("'" + name + "' is no type");
    return t;
  }

  static Type type(Line& l) {
    Type t{.kind = Type::Kind::value};
    if (l.take("ref ")) {
      t.kind = Type::Kind::ref;
      for (const Space s :
           {Space::gmem, Space::smem, Space::regs, Space::semaphore, Space::accumulator})
        if (l.take(std::string(to_string(s)) + " ")) t.space = s;
      if (l.take("smem(")) {
        t.space = Space::smem;
        t.swizzle = l.number<int>();
        l.expect(") ");
      }
      if (l.take("barrier(")) {
        t.space = Space::barrier;
        t.arrivals = l.number<int>();
        l.expect(")");
      }
      if (t.space == Space::automatic) l.expect("block ");
    }
    t.dtype = dtype(l);
    l.expect("[");
    while (!l.take("]")) {
      t.shape.push_back(l.take("?") ? unknown_extent : l.number<std::int64_t>());
      (void)l.take(",");
    }
    return t;
  }

  static std::uint64_t bits(Line& l, DType t) {
    if (l.take("nan 0x") || l.take("0x")) return l.number<std::uint64_t>(16);
    switch (t.kind()) {
    case DType::Bool: return l.take("true") ? 1 : (l.expect("false"), 0);
    case DType::U64: return l.number<std::uint64_t>();
    case DType::F64: return to_bits(t, l.number<double>());
    case DType::F8E4M3:
    case DType::F8E5M2:
    case DType::F16:
    case DType::BF16:
    case DType::F32: return to_bits(t, static_cast<double>(l.number<float>()));
    default: return to_bits(t, l.number<std::int64_t>());
    }
  }

  // ---- regions

  ValueId value(Line& l) {
    l.expect("%");
    const auto number = l.number<std::uint32_t>();
    const auto it = values_.find(number);
    if (it == values_.end()) l.refuse("%" + std::to_string(number) + " is not defined");
    return it->second;
  }
  std::vector<ValueId> values(Line& l) {
    std::vector<ValueId> list;
    if (l.next_is("%")) do {
        list.push_back(value(l));
      } while (l.take(","));
    return list;
  }
  void define(Line& l, std::uint32_t number, ValueId v) {
    if (!values_.emplace(number, v).second)
      l.refuse("%" + std::to_string(number) + " stands twice");
  }

  /// A region of its own: an index map or a body.
  RegionId region() {
    values_.clear();
    return nested();
  }

  RegionId nested() {
    Line& l = line();
    ++next_;
    l.expect("{");
    const RegionId r = g_.add_region();
    while (l.take("%")) {
      const auto number = l.number<std::uint32_t>();
      l.expect(":");
      const ValueId v = g_.add({.op = Op::Param, .type = type(l)});
      define(l, number, v);
      g_[r].params.push_back(v);
    }
    if (!l.at_end()) l.refuse("expected a parameter");
    while (!line().take("}")) {
      if (line().take("yield")) {
        g_[r].yields = values(lines_[next_++]);
      } else {
        const ValueId v = instruction();  // which may add regions
        g_[r].insts.push_back(v);
      }
    }
    ++next_;
    return r;
  }

  ValueId instruction() {
    Line& l = line();
    ++next_;
    Inst in;
    std::uint32_t number = ~0u;
    if (l.take("%")) {
      number = l.number<std::uint32_t>();
      if (l.take(":")) in.type = type(l);
      l.expect("=");
    }
    const std::string name = l.word();
    if (!op_named(name, in.op)) l.refuse("'" + name + "' is no operation");
    operands(l, in);
    if (!l.at_end()) l.refuse("did not expect more");
    const ValueId v = g_.add(in);
    if (number != ~0u) define(l, number, v);
    while (line().next_is("{")) {
      const RegionId r = nested();
      g_[v].regions.push_back(r);
    }
    return v;
  }

  // With \n for the end of a line.
  static std::string quoted(Line& l) {
    l.expect("\"");
    std::string text;
    for (;;) {
      text += l.until("\"");
      if (!text.ends_with('\\')) break;
      text.back() = '"';
    }
    for (std::size_t at = 0; (at = text.find('\\', at)) != std::string::npos; ++at)
      text.replace(at, 2, text[at + 1] == 'n' ? "\n" : text.substr(at + 1, 1));
    return text;
  }

  void operands(Line& l, Inst& in) {
    std::vector<std::int64_t>& ints = in.attr.ints;
    switch (in.op) {
    case Op::Constant: in.attr.bits = bits(l, in.type.dtype); return;
    case Op::At: return subscript(l, in);
    case Op::AxisIndex:
    case Op::AxisSize:
      ints = {l.take("grid") ? 0 : l.take("cluster") ? 1 : (l.expect("thread"), 2)};
      ints.push_back(l.number<std::int64_t>());
      return;
    case Op::Atomic: update(l, in); break;
    case Op::DebugPrint:
    case Op::DebugCheck:
      ints = {l.number<std::int64_t>()};
      l.expect("\"");
      in.attr.text = l.until("\"");
      in.args = values(l);
      return;
    default: in.args = values(l);
    }
    const auto option = [&](const char* word) {
      if (!l.take(word)) return 0;
      in.args.push_back(value(l));
      return 1;
    };
    switch (in.op) {
    case Op::Atomic: {
      const std::int64_t mask = option("mask"), expected = option("expected");
      ints.insert(ints.begin(), {mask, expected});
      return;
    }
    case Op::Load:
    case Op::Store:
    case Op::Swap: {
      const std::int64_t mask = option("mask"), other = option("other");
      ints = {mask, other};
      return;
    }
    case Op::Dot:
    case Op::Wgmma:
    case Op::WgmmaHeld: {
      const std::int64_t a = l.take("trans_a"), b = l.take("trans_b"), tf32 = l.take("tf32");
      ints = {a, b, tf32};
      return;
    }
    case Op::InlineCuda: in.attr.text = quoted(l); break;
    case Op::Loop:
      if (l.take("carry"))
        for (const ValueId v : values(l)) in.args.push_back(v);
      ints = {1, 1};
      if (l.take("step")) ints[0] = l.number<std::int64_t>();
      if (l.take("unroll")) ints[1] = l.number<std::int64_t>();
      return;
    default: break;
    }
    if (!l.take("[")) return;
    while (!l.take("]")) {
      ints.push_back(l.number<std::int64_t>());
      (void)l.take(",");
    }
  }

  void update(Line& l, Inst& in) {
    const std::string name = l.word();
    std::int64_t how = 0;
    while (how < num_updates && name != name_of(Update{how})) ++how;
    if (how == num_updates) l.refuse("'" + name + "' is no update");
    in.attr.ints = {how};
    in.args = values(l);
  }

  void subscript(Line& l, Inst& in) {
    in.args = {value(l)};
    const Extents shape = g_[in.args[0]].type.shape;
    Subscript s;
    l.expect("[");
    while (!l.take("]")) {
      SubscriptDim d;
      if (l.take(":")) {
        d.size = shape.at(s.dims.size());
      } else {
        d.is_slice = l.take("ds(");
        d.dynamic = l.next_is("%");
        if (d.dynamic) {
          in.args.push_back(value(l));
          d.array = !g_[in.args.back()].type.is_scalar();
        } else {
          d.start = l.number<std::int64_t>();
        }
        if (d.is_slice) {
          l.expect(",");
          d.size = l.number<std::int64_t>();
          if (l.take(",")) d.stride = l.number<std::int64_t>();
          l.expect(")");
        }
      }
      s.dims.push_back(d);
      (void)l.take(",");
    }
    in.attr.ints = s.encode();
  }

  void body() {
    Body b;
    if (line().take("warpgroups ")) b.warpgroups = lines_[next_++].number<int>();
    if (line().take("num_warps ")) b.num_warps = lines_[next_++].number<int>();
    if (line().take("num_stages ")) b.num_stages = lines_[next_++].number<int>();
    if (line().take("warp_specialize ")) b.warp_specialize = lines_[next_++].number<int>() != 0;
    b.region = region();
    g_.bodies.push_back(b);
  }

  /// What the text leaves to the parameters of the bodies and of the index maps.
  void finish() {
    GridMapping& m = g_.mapping;
    m.index_map_tree = {static_cast<int>(m.grid.size()), m.num_index_operands};
    m.index_map_avals.assign(m.grid.size(), {{{}, i32}, false, Space::automatic});
    for (int i = 0; i < m.num_index_operands; ++i) {
      const BlockMapping& b = m.block_mappings[static_cast<std::size_t>(i)];
      ShapeDtype shown{{}, b.array_aval.dtype};
      for (const std::int64_t extent : b.ref_shape()) shown.shape.push_back(extent);
      m.index_map_avals.push_back({shown, true, Space::gmem});
    }
    if (!m.bounds.empty()) m.bounds.resize(m.grid.size(), -1);
    if (std::vector<std::int64_t>& known = g_.facts.multiples; !known.empty())
      known.resize(static_cast<std::size_t>(g_.num_symbols), 1);
    int inputs = 0, numbers = 0, outputs = 0;
    for (const ValueId p : g_[g_.bodies.at(0).region].params) {
      const Type& t = g_[p].type;
      if (t.is_value()) {
        if (!scalars_.contains(numbers))
          throw std::runtime_error("no line says what scalar " + std::to_string(numbers) + " is");
        const auto symbol = symbols_.find(numbers);
        g_.arguments.push_back({Argument::Kind::scalar, numbers, scalars_[numbers],
                                symbol == symbols_.end() ? -1 : symbol->second});
        ++numbers;
      } else if (inputs < m.num_inputs) {
        const DType dtype = m.block_mappings[static_cast<std::size_t>(inputs)].array_aval.dtype;
        m.block_mappings[static_cast<std::size_t>(inputs)].memory_space = t.space;
        g_.arguments.push_back({Argument::Kind::input, inputs++, dtype});
      } else if (outputs < m.num_outputs) {
        m.block_mappings[static_cast<std::size_t>(inputs + outputs++)].memory_space = t.space;
      } else {
        Shape shape;
        for (const std::int64_t n : t.shape) shape.push_back(n);
        m.scratch_avals.push_back({{shape, t.dtype}, true, t.space, {}, t.arrivals, t.swizzle});
      }
    }
  }

  std::vector<Line> lines_;
  std::size_t next_ = 0;
  Graph g_;
  std::map<std::uint32_t, ValueId> values_;
  std::map<int, DType> scalars_;
  std::map<int, int> symbols_;
};

}  // namespace

graph::Graph graph_of(std::string_view text) {
  graph::Graph g = changed_graph_of(text);
  graph::verify(g, "test");
  return g;
}

graph::Graph changed_graph_of(std::string_view text) { return Reader(text).run(); }

}  // namespace palladium::test
