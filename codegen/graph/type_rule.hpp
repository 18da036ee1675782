// One use of an op, for the functions of its type rule, and what they ask of its operands.
#pragma once

#include <string>

#include "codegen/graph/builder.hpp"
#include "palladium/error.hpp"

namespace palladium::graph::typing {

struct Context {
  const Graph& graph;
  Op op;
  const Attr& attr;
  std::span<const ValueId> args;
  const Type& given;
  Location at;

  const Type& type(std::size_t i) const { return graph[args[i]].type; }
  std::span<const std::int64_t> ints() const { return attr.ints; }

  [[noreturn]] void fail(const std::string& what) const {
    throw CompileError(at, std::string(info(op).name) + ": " + what);
  }
};

std::string text(const Type& type);
std::string text(std::span<const std::int64_t> ints);
std::string operands(const Context& c);
std::string operand_name(const Context& c, std::size_t i);

// CompileError where the operand is none of these, or the attributes are no n integers.
const Type& value(const Context& c, std::size_t i);
const Type& reference(const Context& c, std::size_t i);
void expect_scalar(const Context& c, std::size_t i, DType dtype, const char* role);
void expect_ints(const Context& c, std::size_t n);

// Elements elsewhere: type_rules_moves.cpp.
Type rule_slice(const Context& c);
Type rule_concatenate(const Context& c);
Type rule_dynamic_slice(const Context& c);
Type rule_dynamic_update(const Context& c);
Type rule_take_along(const Context& c);

// Memory: type_rules_memory.cpp.
Type rule_at(const Context& c);
Type rule_ref_bitcast(const Context& c);
Type rule_ref_part(const Context& c);
Type rule_ref_peer(const Context& c);
Type rule_load(const Context& c);
Type rule_store(const Context& c);
Type rule_swap(const Context& c);
Type rule_atomic(const Context& c);
/// Fails where it views the memory of another block of the cluster.
void expect_own_block(const Context& c, ValueId view);
/// Fails where a slice leaves what it is of, wherever it starts.
void expect_inside(const Context& c, ValueId view);

// Barriers and asynchronous copies: type_rules_async.cpp.
Type rule_barrier(const Context& c);
Type rule_copy_to_shared(const Context& c);
Type rule_copy_to_global(const Context& c);
Type rule_reduce_to_global(const Context& c);
Type rule_fetch_to_shared(const Context& c);
Type rule_await_fetches(const Context& c);
Type rule_prefetch(const Context& c);
Type rule_commit_shared(const Context& c);
Type rule_close_copies(const Context& c);
Type rule_await_copies(const Context& c);
Type rule_set_max_registers(const Context& c);
Type rule_grid_dependency(const Context& c);

// Products by hand: type_rules_products.cpp.
Type rule_wgmma(const Context& c);
Type rule_await_products(const Context& c);

// Text of the user's own: inline.cpp.
Type rule_inline_cuda(const Context& c);
Type result_of_text(const Context& get);

// Layouts of registers: register_layout.cpp.
Type rule_layout_cast(const Context& c);
Type rule_print_layout(const Context& c);

}  // namespace palladium::graph::typing
