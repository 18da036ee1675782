// The graph as JSON: what manifests and other processes get. The only file that knows
// nlohmann_json.
//
// 64-bit integers are strings, numbers are the hex digits of their bits, ids are JSON integers.
// Reading trusts nothing: the text is limited in size and depth, every field is checked, and the
// graph is verified before anybody sees it.
#include <charconv>
#include <concepts>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "codegen/base/dim.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/graph/uses.hpp"
#include "palladium/error.hpp"

namespace palladium::graph {
namespace {

using Json = nlohmann::json;

constexpr int version = 3;
constexpr int oldest_version = 1;  // knew nothing of its symbols; 2 nothing of fill and bounds
constexpr std::size_t most_bytes = std::size_t(1) << 28;
constexpr int deepest = 256;

constexpr const char* space_names[] = {"automatic", "gmem",    "smem",       "regs",
                                       "semaphore", "barrier", "accumulator"};
constexpr const char* block_names[] = {"blocked",  "squeezed", "element", "bounded_slice",
                                       "indirect", "whole",    "bounded"};
constexpr const char* argument_names[] = {"input", "scalar"};
constexpr const char* semantics_names[] = {"parallel", "sequential"};
constexpr const char* type_names[] = {"none", "value", "ref"};
constexpr const char* dim_names[] = {"symbol", "constant", "add",  "sub", "mul",
                                     "div",    "mod",      "cdiv", "min", "max"};

[[noreturn]] void fail(const std::string& what) { throw CompileError("graph JSON: " + what); }

// ---- writing

template <class Enum, std::size_t n>
const char* name_of(const char* const (&names)[n], Enum value) {
  return names[static_cast<std::size_t>(value)];
}

template <class List, class Write>
Json list(const List& elements, const Write& write) {
  Json result = Json::array();
  for (const auto& e : elements) result.push_back(write(e));
  return result;
}

Json write(std::int64_t n) { return std::to_string(n); }
Json write(ValueId v) { return index(v); }
Json write(RegionId r) { return index(r); }
Json write_region(RegionIndex r) { return r == no_region ? Json() : Json(r); }

Json write(const Expectation& e) {
  Json j = {{"on", e.on}, {"tensor_cores", e.tensor_cores}, {"tma", e.tma}};
  if (e.spills) j["spills"] = *e.spills;
  if (e.registers > 0) j["registers"] = e.registers;
  if (e.of_limit > 0) j["of_limit"] = e.of_limit;
  return j;
}

Json write_bits(std::uint64_t bits) {
  char buffer[24];
  char* end = std::to_chars(buffer, buffer + sizeof buffer, bits, 16).ptr;
  return "0x" + std::string(buffer, end);
}

Json write(const Dim& d) {
  if (d.is_static()) return write(d.value());
  const DimNode n = dim_node(d);
  if (n.op == detail::DimOp::symbol) return {{"symbol", n.symbol}};
  return {{"op", name_of(dim_names, n.op)}, {"a", write(n.a)}, {"b", write(n.b)}};
}

Json write(const ShapeDtype& t) {
  return {{"dtype", t.dtype.name()},
          {"shape", list(t.shape, [](const Dim& d) { return write(d); })}};
}

Json write(const AbstractValue& v) {
  Json j = {{"type", write(v.type)},
            {"is_ref", v.is_ref},
            {"memory_space", name_of(space_names, v.memory_space)}};
  if (v.memory_space == Space::barrier) j["arrivals"] = v.arrivals;
  if (v.swizzle > 0) j["swizzle"] = v.swizzle;
  return j;
}

// What most kernels do not have is left out.
Json write(const BlockMapping& b) {
  Json j = {{"block_shape", list(b.block_shape,
                                 [](const BlockDim& d) -> Json {
                                   return {{"kind", name_of(block_names, d.kind)},
                                           {"size", write(d.size)},
                                           {"pad_lo", write(d.pad_lo)},
                                           {"pad_hi", write(d.pad_hi)}};
                                 })},
            {"index_map", write_region(b.index_map)},
            {"array_aval", write(b.array_aval)},
            {"origin", b.origin},
            {"memory_space", name_of(space_names, b.memory_space)},
            {"dense", b.dense},
            {"alignment", b.alignment}};
  if (b.fill) j["fill"] = write_bits(*b.fill);
  if (b.buffers != 0) j["buffers"] = b.buffers;
  return j;
}

Json write(const GridMapping& m) {
  const auto abstract = [](const AbstractValue& v) { return write(v); };
  Json j = {
      {"grid", list(m.grid, [](const Dim& d) { return write(d); })},
      {"grid_names", m.grid_names},
      {"block_mappings", list(m.block_mappings, [](const BlockMapping& b) { return write(b); })},
      {"index_map_tree",
       {{"num_program_ids", m.index_map_tree.num_program_ids},
        {"num_index_operands", m.index_map_tree.num_index_operands}}},
      {"index_map_avals", list(m.index_map_avals, abstract)},
      {"vmapped_dims", m.vmapped_dims},
      {"scratch_avals", list(m.scratch_avals, abstract)},
      {"num_index_operands", m.num_index_operands},
      {"num_inputs", m.num_inputs},
      {"num_outputs", m.num_outputs},
      {"get_grid_indices", write_region(m.get_grid_indices)},
      {"local_grid_env", write_region(m.local_grid_env)},
      {"debug", m.debug}};
  if (!m.bounds.empty()) j["bounds"] = m.bounds;
  return j;
}

// Paths of source files, each written once.
class Files {
 public:
  Json write(Location at) {
    const auto [it, fresh] = numbers_.try_emplace(at.file, names_.size());
    if (fresh) names_.push_back(at.file);
    return {it->second, at.line};
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<std::string, std::size_t, std::less<>> numbers_;
  std::vector<std::string> names_;
};

Json write(const Type& t) {
  if (t.kind == Type::Kind::none) return {};
  Json result = {{"kind", name_of(type_names, t.kind)},
                 {"dtype", t.dtype.name()},
                 {"shape", list(t.shape, [](std::int64_t n) { return write(n); })}};
  if (t.is_ref()) result["space"] = name_of(space_names, t.space);
  if (t.arrivals > 0) result["arrivals"] = t.arrivals;
  if (t.swizzle > 0) result["swizzle"] = t.swizzle;
  return result;
}

Json write_inst(const Graph& g, ValueId v, Files& files) {
  const Inst& in = g[v];
  const auto id = [](auto i) { return write(i); };
  Json result = {{"op", info(in.op).name}};
  if (in.type.kind != Type::Kind::none) result["type"] = write(in.type);
  if (!in.attr.ints.empty())
    result["ints"] = list(in.attr.ints, [](std::int64_t n) { return write(n); });
  if (in.op == Op::Constant) result["bits"] = write_bits(in.attr.bits);
  if (!in.attr.text.empty()) result["text"] = in.attr.text;
  if (!in.args.empty()) result["args"] = list(in.args, id);
  if (!in.regions.empty()) result["regions"] = list(in.regions, id);
  if (const Location at = g.location(v); at.line != 0 || *at.file != 0)
    result["at"] = files.write(at);
  if (index(v) < g.names.size() && !g.names[index(v)].empty()) result["name"] = g.names[index(v)];
  return result;
}

// ---- reading

const Json& member(const Json& object, const char* key) {
  if (!object.is_object()) fail(std::string("expected an object with '") + key + "'");
  const auto it = object.find(key);
  if (it == object.end()) fail(std::string("'") + key + "' is missing");
  return *it;
}

// A member that may be missing: then null.
const Json& optional(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) fail(std::string("expected an object with '") + key + "'");
  const auto it = object.find(key);
  return it == object.end() ? null : *it;
}

template <class Read>
auto read_list(const Json& array, const char* what, const Read& read) {
  std::vector<decltype(read(array))> result;
  if (array.is_null()) return result;
  if (!array.is_array()) fail(std::string("'") + what + "' is no array");
  result.reserve(array.size());
  for (const Json& e : array) result.push_back(read(e));
  return result;
}

std::string read_text(const Json& j, const char* what) {
  if (!j.is_string()) fail(std::string("'") + what + "' is no string");
  return j.get<std::string>();
}

bool read_bool(const Json& j, const char* what) {
  if (!j.is_boolean()) fail(std::string("'") + what + "' is no boolean");
  return j.get<bool>();
}

template <std::integral T>
T read_small(const Json& j, const char* what) {
  if (!j.is_number_integer()) fail(std::string("'") + what + "' is no integer");
  const bool large =
      j.is_number_unsigned() &&
      j.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  if (large || !std::in_range<T>(j.get<std::int64_t>()))
    fail(std::string("'") + what + "' is out of range");
  return j.get<T>();
}

std::int64_t read_wide(const Json& j, const char* what) {
  const std::string text = read_text(j, what);
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size())
    fail(std::string("'") + what + "' is no 64-bit integer");
  return n;
}

std::uint64_t read_bits(const Json& j) {
  const std::string text = read_text(j, "bits");
  std::uint64_t n = 0;
  const char* const end = text.data() + text.size();
  if (text.size() < 3 || text.compare(0, 2, "0x") != 0) fail("'bits' do not start with 0x");
  const auto [stop, error] = std::from_chars(text.data() + 2, end, n, 16);
  if (error != std::errc() || stop != end) fail("'bits' are no 64 bits in hex");
  return n;
}

template <class Enum, std::size_t n>
Enum read_name(const Json& j, const char* const (&names)[n], const char* what) {
  const std::string text = read_text(j, what);
  for (std::size_t i = 0; i < n; ++i)
    if (text == names[i]) return static_cast<Enum>(i);
  fail("unknown " + std::string(what) + " '" + text + "'");
}

DType read_dtype(const Json& j) {
  const std::string text = read_text(j, "dtype");
  const DType d = dtype_named(text.c_str());
  if (d == DType()) fail("unknown dtype '" + text + "'");
  return d;
}

double read_fraction(const Json& j, const char* what) {
  if (!j.is_number()) fail(std::string("'") + what + "' is no number");
  const double x = j.get<double>();
  if (!(x >= 0 && x <= 1)) fail(std::string("'") + what + "' is no fraction");
  return x;
}

Expectation read_expectation(const Json& j) {
  Expectation e{.on = read_text(member(j, "on"), "on"),
                .tensor_cores = read_bool(member(j, "tensor_cores"), "tensor_cores"),
                .tma = read_bool(member(j, "tma"), "tma")};
  if (const Json& spills = optional(j, "spills"); !spills.is_null())
    e.spills = read_small<std::uint16_t>(spills, "spills");
  if (const Json& registers = optional(j, "registers"); !registers.is_null())
    e.registers = read_small<std::uint16_t>(registers, "registers");
  if (const Json& of_limit = optional(j, "of_limit"); !of_limit.is_null())
    e.of_limit = read_fraction(of_limit, "of_limit");
  return e;
}

ValueId read_value(const Json& j) { return ValueId{read_small<std::uint32_t>(j, "value id")}; }
RegionId read_region(const Json& j) { return RegionId{read_small<std::uint32_t>(j, "region id")}; }
RegionIndex read_region_or_none(const Json& j) {
  return j.is_null() ? no_region : index(read_region(j));
}

Dim read_dim(const Json& j) {
  if (j.is_string()) return read_wide(j, "dim");
  if (j.is_object() && j.contains("symbol"))
    return dim_symbol(read_small<std::uint16_t>(j["symbol"], "symbol"));
  const auto op = read_name<detail::DimOp>(member(j, "op"), dim_names, "operation of a dim");
  const Dim a = read_dim(member(j, "a")), b = read_dim(member(j, "b"));
  if (op == detail::DimOp::symbol || op == detail::DimOp::constant ||
      (a.is_static() && b.is_static()))
    fail("a dim's expression is not in its simplest form");
  const Dim d = detail::dim_binary(op, a, b);
  if (d.is_static()) fail("a dim's expression is not in its simplest form");
  return d;
}

ShapeDtype read_array(const Json& j) {
  ShapeDtype t;
  t.dtype = read_dtype(member(j, "dtype"));
  for (const Dim& d : read_list(member(j, "shape"), "shape", read_dim)) t.shape.push_back(d);
  return t;
}

Space read_space(const Json& j) { return read_name<Space>(j, space_names, "memory space"); }

AbstractValue read_abstract(const Json& j) {
  AbstractValue v{read_array(member(j, "type")), read_bool(member(j, "is_ref"), "is_ref"),
                  read_space(member(j, "memory_space"))};
  if (v.memory_space == Space::barrier)
    v.arrivals = read_small<int>(member(j, "arrivals"), "arrivals");
  if (const Json& n = optional(j, "swizzle"); !n.is_null())
    v.swizzle = read_small<int>(n, "swizzle");
  return v;
}

BlockMapping read_mapping(const Json& j) {
  BlockMapping b;
  b.block_shape = read_list(member(j, "block_shape"), "block_shape", [](const Json& d) {
    return BlockDim(read_name<BlockDim::Kind>(member(d, "kind"), block_names, "block dimension"),
                    read_wide(member(d, "size"), "size"), read_wide(member(d, "pad_lo"), "pad_lo"),
                    read_wide(member(d, "pad_hi"), "pad_hi"));
  });
  b.index_map = read_region_or_none(member(j, "index_map"));
  b.array_aval = read_array(member(j, "array_aval"));
  b.origin = read_text(member(j, "origin"), "origin");
  b.memory_space = read_space(member(j, "memory_space"));
  b.dense = read_bool(member(j, "dense"), "dense");
  b.alignment = read_small<int>(member(j, "alignment"), "alignment");
  if (const Json& fill = optional(j, "fill"); !fill.is_null()) b.fill = read_bits(fill);
  if (const Json& n = optional(j, "buffers"); !n.is_null())
    b.buffers = read_small<int>(n, "buffers");
  return b;
}

std::vector<std::string> read_names(const Json& j, const char* what) {
  return read_list(j, what, [&](const Json& n) { return read_text(n, what); });
}

GridMapping read_grid(const Json& j) {
  const auto count = [&](const Json& object, const char* key) {
    return read_small<int>(member(object, key), key);
  };
  GridMapping m;
  m.grid = read_list(member(j, "grid"), "grid", read_dim);
  m.bounds = read_list(optional(j, "bounds"), "bounds",
                       [](const Json& n) { return read_small<int>(n, "bounds"); });
  m.grid_names = read_names(member(j, "grid_names"), "grid_names");
  m.block_mappings = read_list(member(j, "block_mappings"), "block_mappings", read_mapping);
  const Json& tree = member(j, "index_map_tree");
  m.index_map_tree = {count(tree, "num_program_ids"), count(tree, "num_index_operands")};
  m.index_map_avals = read_list(member(j, "index_map_avals"), "index_map_avals", read_abstract);
  m.vmapped_dims = read_list(member(j, "vmapped_dims"), "vmapped_dims",
                             [](const Json& d) { return read_small<int>(d, "vmapped_dims"); });
  m.scratch_avals = read_list(member(j, "scratch_avals"), "scratch_avals", read_abstract);
  m.num_index_operands = count(j, "num_index_operands");
  m.num_inputs = count(j, "num_inputs");
  m.num_outputs = count(j, "num_outputs");
  m.get_grid_indices = read_region_or_none(member(j, "get_grid_indices"));
  m.local_grid_env = read_region_or_none(member(j, "local_grid_env"));
  m.debug = read_bool(member(j, "debug"), "debug");
  return m;
}

Type read_type(const Json& j) {
  if (j.is_null()) return Type::none();
  Type t;
  t.kind = read_name<Type::Kind>(member(j, "kind"), type_names, "kind of type");
  if (t.kind == Type::Kind::none) fail("a type is none");
  t.dtype = read_dtype(member(j, "dtype"));
  t.shape =
      read_list(member(j, "shape"), "shape", [](const Json& n) { return read_wide(n, "shape"); });
  if (t.is_ref()) t.space = read_space(member(j, "space"));
  if (const Json& n = optional(j, "arrivals"); !n.is_null())
    t.arrivals = read_small<int>(n, "arrivals");
  if (const Json& n = optional(j, "swizzle"); !n.is_null())
    t.swizzle = read_small<int>(n, "swizzle");
  return t;
}

Location read_location(const Json& j, const std::deque<std::string>& files) {
  if (!j.is_array() || j.size() != 2) fail("'at' is no [file, line]");
  const auto file = read_small<std::uint32_t>(j[0], "file");
  if (file >= files.size()) fail("'at' names an unknown file");
  return {files[file].c_str(), read_small<int>(j[1], "line")};
}

void read_inst(Graph& g, const Json& j) {
  Inst in;
  const std::string op = read_text(member(j, "op"), "op");
  if (!op_named(op, in.op)) fail("unknown operation '" + op + "'");
  in.type = read_type(optional(j, "type"));
  in.attr.ints =
      read_list(optional(j, "ints"), "ints", [](const Json& n) { return read_wide(n, "ints"); });
  if (const Json& bits = optional(j, "bits"); !bits.is_null()) in.attr.bits = read_bits(bits);
  if (const Json& text = optional(j, "text"); !text.is_null())
    in.attr.text = read_text(text, "text");
  in.args = read_list(optional(j, "args"), "args", read_value);
  in.regions = read_list(optional(j, "regions"), "regions", read_region);
  const Json& at = optional(j, "at");
  const ValueId v = g.add(std::move(in), at.is_null() ? Location{} : read_location(at, *g.files));
  if (const Json& name = optional(j, "name"); !name.is_null()) {
    g.names.resize(index(v) + 1);
    g.names[index(v)] = read_text(name, "name");
  }
}

// The parser needs no stack for nested text, but what reads its result does.
void check_limits(std::string_view json) {
  if (json.size() > most_bytes) fail("larger than " + std::to_string(most_bytes) + " bytes");
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > deepest) fail("nested deeper than " + std::to_string(deepest));
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

Graph read_graph(const Json& j) {
  const Json& wanted = member(j, "palladium_graph");
  if (!wanted.is_number_integer()) fail("'palladium_graph' is no version");
  const auto given = read_small<int>(wanted, "palladium_graph");
  if (given < oldest_version || given > version)
    fail("version " + std::to_string(given) + ", but this Palladium reads versions " +
         std::to_string(oldest_version) + " to " + std::to_string(version));
  Graph g;
  const auto files = read_names(member(j, "files"), "files");
  g.files = std::make_shared<const std::deque<std::string>>(files.begin(), files.end());
  g.name = read_text(member(j, "name"), "name");
  g.at = read_location(member(j, "at"), *g.files);
  const Json& insts = member(j, "insts");
  if (!insts.is_array()) fail("'insts' is no array");
  for (const Json& in : insts) read_inst(g, in);
  if (!g.names.empty()) g.names.resize(g.insts.size());
  g.regions = read_list(member(j, "regions"), "regions", [](const Json& r) {
    return Region{read_list(member(r, "params"), "params", read_value),
                  read_list(member(r, "insts"), "insts", read_value),
                  read_list(member(r, "yields"), "yields", read_value)};
  });
  g.bodies = read_list(member(j, "bodies"), "bodies", [](const Json& b) {
    const auto given = [&](const char* name) {
      const Json& n = optional(b, name);
      return n.is_null() ? 0 : read_small<int>(n, name);
    };
    const auto chosen = [&](const char* name) -> std::optional<bool> {
      const Json& c = optional(b, name);
      if (c.is_null()) return {};
      return read_bool(c, name);
    };
    return Body{read_region(member(b, "region")),
                read_small<int>(member(b, "warpgroups"), "warpgroups"), given("num_warps"),
                given("num_stages"), chosen("warp_specialize")};
  });
  g.mapping = read_grid(member(j, "mapping"));
  g.semantics = read_list(member(j, "semantics"), "semantics", [](const Json& s) {
    return read_name<Semantics>(s, semantics_names, "semantics");
  });
  g.cluster = read_list(member(j, "cluster"), "cluster",
                        [](const Json& n) { return read_small<int>(n, "cluster"); });
  g.cluster_names = read_names(member(j, "cluster_names"), "cluster_names");
  g.thread_name = read_text(member(j, "thread_name"), "thread_name");
  g.arguments = read_list(member(j, "arguments"), "arguments", [](const Json& a) {
    const Json& symbol = optional(a, "symbol");
    return Argument{read_name<Argument::Kind>(member(a, "kind"), argument_names, "argument"),
                    read_small<int>(member(a, "index"), "index"), read_dtype(member(a, "dtype")),
                    symbol.is_null() ? -1 : read_small<int>(symbol, "symbol")};
  });
  g.aliases = read_list(member(j, "aliases"), "aliases", [](const Json& a) {
    return Alias{read_small<int>(member(a, "input"), "input"),
                 read_small<int>(member(a, "output"), "output")};
  });
  g.num_symbols = read_small<std::uint16_t>(member(j, "num_symbols"), "num_symbols");
  if (given > oldest_version) {
    g.facts.multiples = read_list(member(j, "symbol_multiples"), "symbol_multiples",
                                  [](const Json& n) { return read_wide(n, "symbol_multiples"); });
    g.short_offsets = read_bool(member(j, "short_offsets"), "short_offsets");
    if (const Json& fit = optional(j, "box_extents"); !fit.is_null())
      g.box_extents = read_bool(fit, "box_extents");
  }
  g.fma = read_bool(member(j, "fma"), "fma");
  g.approx_math = read_bool(member(j, "approx_math"), "approx_math");
  g.allow_revisit = read_bool(member(j, "allow_revisit"), "allow_revisit");
  g.lineinfo = read_bool(member(j, "lineinfo"), "lineinfo");
  if (const Json& cost = optional(j, "cost"); !cost.is_null())
    g.cost = {read_wide(member(cost, "flops"), "flops"),
              read_wide(member(cost, "transcendentals"), "transcendentals"),
              read_wide(member(cost, "bytes_accessed"), "bytes_accessed")};
  g.metadata = read_list(optional(j, "metadata"), "metadata", [](const Json& m) {
    if (!m.is_array() || m.size() != 2) fail("'metadata' is no [key, value]");
    return std::pair(read_text(m[0], "metadata"), read_text(m[1], "metadata"));
  });
  if (const Json& fast = optional(j, "fast_accumulation"); !fast.is_null())
    g.fast_accumulation = read_bool(fast, "fast_accumulation");
  if (const Json& none = optional(j, "no_auto_barriers"); !none.is_null())
    g.no_auto_barriers = read_bool(none, "no_auto_barriers");
  if (const Json& dir = optional(j, "profile_dir"); !dir.is_null())
    g.profile_dir = read_text(dir, "profile_dir");
  if (const Json& expect = optional(j, "expect"); !expect.is_null())
    g.expect = read_expectation(expect);
  if (const Json& whole = optional(j, "whole_arrays"); !whole.is_null())
    g.whole_arrays = read_bool(whole, "whole_arrays");
  if (const Json& globals = optional(j, "num_globals"); !globals.is_null())
    g.num_globals = read_small<std::uint16_t>(globals, "num_globals");
  if (const Json& split = optional(j, "split_k"); !split.is_null())
    g.split_k = read_small<int>(split, "split_k");
  if (const Json& rows = optional(j, "grid_rows"); !rows.is_null())
    g.grid_rows = read_small<int>(rows, "grid_rows");
  if (const Json& persistent = optional(j, "persistent"); !persistent.is_null())
    g.persistent = read_bool(persistent, "persistent");
  return g;
}

void check_no_dead(const Graph& g) {
  const Uses uses(g);
  for (std::uint32_t i = 0; i < g.insts.size(); ++i)
    if (uses.region(ValueId{i}) == Uses::no_region_id)
      fail("instruction " + std::to_string(i) + " stands in no region");
  std::vector<bool> owned(g.regions.size());
  for (const RegionId r : root_regions(g)) owned[index(r)] = true;
  for (std::uint32_t i = 0; i < g.regions.size(); ++i)
    if (!owned[i] && uses.owner(RegionId{i}) == no_value)
      fail("region " + std::to_string(i) + " belongs to nothing");
}

}  // namespace

std::string to_json(const Graph& g) {
  const auto id = [](auto i) { return write(i); };
  Files files;
  Json j = {
      {"palladium_graph", version},
      {"name", g.name},
      {"mapping", write(g.mapping)},
      {"semantics", list(g.semantics, [](Semantics s) { return name_of(semantics_names, s); })},
      {"cluster", g.cluster},
      {"cluster_names", g.cluster_names},
      {"thread_name", g.thread_name},
      {"num_symbols", g.num_symbols},
      {"symbol_multiples", list(g.facts.multiples, [](std::int64_t n) { return write(n); })},
      {"short_offsets", g.short_offsets},
      {"fma", g.fma},
      {"approx_math", g.approx_math},
      {"allow_revisit", g.allow_revisit},
      {"lineinfo", g.lineinfo},
      {"at", files.write(g.at)}};
  if (g.fast_accumulation) j["fast_accumulation"] = true;
  if (g.no_auto_barriers) j["no_auto_barriers"] = true;
  if (!g.profile_dir.empty()) j["profile_dir"] = g.profile_dir;
  if (g.expect != Expectation{}) j["expect"] = write(g.expect);
  if (g.whole_arrays) j["whole_arrays"] = true;
  if (g.num_globals > 0) j["num_globals"] = g.num_globals;
  if (g.split_k > 0) j["split_k"] = g.split_k;
  if (g.grid_rows > 0) j["grid_rows"] = g.grid_rows;
  if (g.persistent) j["persistent"] = true;
  if (g.box_extents) j["box_extents"] = true;
  Json& insts = j["insts"] = Json::array();
  for (std::uint32_t i = 0; i < g.insts.size(); ++i)
    insts.push_back(write_inst(g, ValueId{i}, files));
  j["regions"] = list(g.regions, [&](const Region& r) -> Json {
    return {{"params", list(r.params, id)},
            {"insts", list(r.insts, id)},
            {"yields", list(r.yields, id)}};
  });
  j["bodies"] = list(g.bodies, [](const Body& b) -> Json {
    Json body = {{"region", write(b.region)}, {"warpgroups", b.warpgroups}};
    if (b.num_warps != 0) body["num_warps"] = b.num_warps;
    if (b.num_stages != 0) body["num_stages"] = b.num_stages;
    if (b.warp_specialize) body["warp_specialize"] = *b.warp_specialize;
    return body;
  });
  j["arguments"] = list(g.arguments, [](const Argument& a) -> Json {
    Json j = {
        {"kind", name_of(argument_names, a.kind)}, {"index", a.index}, {"dtype", a.dtype.name()}};
    if (a.symbol >= 0) j["symbol"] = a.symbol;
    return j;
  });
  j["aliases"] = list(g.aliases, [](const Alias& a) -> Json {
    return {{"input", a.input}, {"output", a.output}};
  });
  if (g.cost != CostEstimate{})
    j["cost"] = {{"flops", write(g.cost.flops)},
                 {"transcendentals", write(g.cost.transcendentals)},
                 {"bytes_accessed", write(g.cost.bytes_accessed)}};
  for (const auto& [key, value] : g.metadata) j["metadata"].push_back({key, value});
  j["files"] = files.names();
  // A name that is no UTF-8 must not keep a kernel from being written.
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Graph from_json(std::string_view json) {
  check_limits(json);
  Json j;
  try {
    j = Json::parse(json);
  } catch (const Json::exception& e) {
    fail(e.what());
  }
  Graph g = read_graph(j);
  if (const std::string what = defect(g); !what.empty()) fail(what);
  check_no_dead(g);
  return g;
}

}  // namespace palladium::graph
