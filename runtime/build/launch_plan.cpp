#include "runtime/build/launch_plan.hpp"

#include <bit>
#include <nlohmann/json.hpp>

#include "codegen/base/dim.hpp"
#include "codegen/base/reciprocal.hpp"

namespace palladium::runtime {
namespace {

using Json = nlohmann::json;
using detail::DimOp;

constexpr const char* op_names[] = {"symbol", "constant", "add",  "sub", "mul",
                                    "div",    "mod",      "cdiv", "min", "max"};
constexpr int max_depth = 32;

Json dim_to_json(const Dim& dim) {
  if (dim.is_static()) return dim.value();
  const DimNode node = dim_node(dim);
  const char* name = op_names[static_cast<int>(node.op)];
  if (node.op == DimOp::symbol) return {name, node.symbol};
  return {name, dim_to_json(node.a), dim_to_json(node.b)};
}

Dim dim_from_json(const Json& json, int depth) {
  if (depth > max_depth) throw CompileError("launch plan: nested too deeply");
  if (json.is_number_integer()) return json.get<std::int64_t>();
  const auto name = json.at(0).get<std::string>();
  if (name == op_names[0]) return dim_symbol(json.at(1).get<std::uint32_t>());
  for (const DimOp op : {DimOp::add, DimOp::sub, DimOp::mul, DimOp::div, DimOp::mod, DimOp::cdiv,
                         DimOp::min, DimOp::max})
    if (name == op_names[static_cast<int>(op)])
      return detail::dim_binary(op, dim_from_json(json.at(1), depth + 1),
                                dim_from_json(json.at(2), depth + 1));
  throw CompileError("launch plan: unknown operation '" + name + "'");
}

}  // namespace

LaunchPlan plan_of(const cuda::Emitted& e) {
  return {.entry = e.entry,
          .parameters = e.parameters,
          .blocks = e.blocks,
          .persistent = e.persistent,
          .threads = e.threads,
          .cluster_blocks = e.cluster_blocks,
          .shared_bytes = e.shared_bytes};
}

void renumber_symbols(LaunchPlan& plan, std::span<const std::uint32_t> numbers) {
  std::vector<std::uint32_t> from;
  std::vector<Dim> to;
  for (const std::uint32_t n : numbers) {
    from.push_back(static_cast<std::uint32_t>(from.size()));
    to.push_back(dim_symbol(n));
  }
  plan.blocks = substitute(plan.blocks, from, to);
  for (cuda::Parameter& p : plan.parameters)
    if (p.kind == cuda::Parameter::Kind::symbol || p.kind == cuda::Parameter::Kind::reciprocal)
      p.index = static_cast<int>(numbers[static_cast<std::size_t>(p.index)]);
}

std::uint64_t reciprocal_of(std::int64_t symbol) {
  return std::bit_cast<std::uint64_t>(above_reciprocal(static_cast<float>(symbol)));
}

namespace {

TensorMapType map_type_of(DType dtype, bool tf32) {
  switch (dtype.kind()) {
  case DType::F16: return TensorMapType::f16;
  case DType::BF16: return TensorMapType::bf16;
  case DType::F32: return tf32 ? TensorMapType::tf32 : TensorMapType::f32;
  case DType::F64: return TensorMapType::f64;
  case DType::I16:
  case DType::U16: return TensorMapType::u16;
  case DType::I32: return TensorMapType::i32;
  case DType::U32: return TensorMapType::u32;
  case DType::I64: return TensorMapType::i64;
  case DType::U64: return TensorMapType::u64;
  default: return TensorMapType::u8;  // of 1 byte
  }
}

}  // namespace

TensorMapSpec tensor_map_of(const cuda::Parameter& p, DType dtype, void* data,
                            std::span<const std::int64_t> shape,
                            std::span<const std::int64_t> strides) {
  constexpr std::uint64_t chunk = 16;
  TensorMapSpec spec{.type = map_type_of(dtype, p.tf32),
                     .rank = static_cast<int>(shape.size()),
                     .base = data,
                     .swizzle = p.swizzle,
                     .l2_promotion = 256};
  const auto bytes = static_cast<std::uint64_t>(dtype.bytes());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t d = shape.size() - 1 - i;
    spec.extents[i] = static_cast<std::uint64_t>(shape[d]);
    spec.box[i] = static_cast<std::uint32_t>(p.box[d]);
    if (i == 0) continue;
    // Of one row nobody asks where the next would be.
    const std::uint64_t stride = static_cast<std::uint64_t>(strides[d]) * bytes;
    spec.strides[i - 1] = shape[d] > 1 ? stride : (stride + chunk - 1) / chunk * chunk;
  }
  return spec;
}

std::string to_json(const LaunchPlan& plan) {
  Json parameters = Json::array();
  for (const cuda::Parameter& p : plan.parameters)
    parameters.push_back(
        {static_cast<int>(p.kind), p.index, p.dimension, p.bytes, p.box, p.swizzle, p.tf32});
  return Json{{"entry", plan.entry},
              {"parameters", parameters},
              {"blocks", dim_to_json(plan.blocks)},
              {"persistent", plan.persistent},
              {"threads", plan.threads},
              {"cluster_blocks", plan.cluster_blocks},
              {"shared_bytes", plan.shared_bytes}}
      .dump();
}

bool from_json(const std::string& text, LaunchPlan& plan) {
  try {
    const Json json = Json::parse(text);
    LaunchPlan read{.entry = json.at("entry"),
                    .blocks = dim_from_json(json.at("blocks"), 0),
                    .persistent = json.at("persistent"),
                    .threads = json.at("threads"),
                    .cluster_blocks = json.at("cluster_blocks"),
                    .shared_bytes = json.at("shared_bytes")};
    for (const Json& p : json.at("parameters")) {
      const int kind = p.at(0);
      if (kind < 0 || kind > static_cast<int>(cuda::Parameter::Kind::profile)) return false;
      read.parameters.push_back({.kind = static_cast<cuda::Parameter::Kind>(kind),
                                 .index = p.at(1),
                                 .dimension = p.at(2),
                                 .bytes = p.at(3),
                                 .box = p.at(4),
                                 .swizzle = p.at(5),
                                 .tf32 = p.at(6)});
    }
    plan = std::move(read);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace palladium::runtime
