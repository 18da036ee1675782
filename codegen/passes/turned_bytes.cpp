#include "codegen/passes/turned_bytes.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace palladium::passes {

namespace {

using graph::Inst;
using graph::Op;

bool is_transpose(const Inst& i) {
  return i.op == Op::Transpose && std::ranges::equal(graph::dimensions(i), std::array{1, 0});
}

bool has_squares(std::int64_t rows, std::int64_t columns) {
  return rows % turned_rows == 0 && columns % turned_columns == 0;
}

// Where the nest reads the value, as a whole.
StorageId read_from(const Program& l, const LoopNest& p, ValueId v) {
  const StorageId storage = l.storage_of[v];
  for (const auto& [from, copy] : p.redirects)
    if (from == storage) return copy.storage;
  return storage;
}

// Matrices whose rows of 16 bytes stand at multiples of that.
bool has_rows_of_16(const Storage& s, std::int64_t rows, std::int64_t columns) {
  if (!s.in_shared() || s.dtype.bytes() != 1 || s.shape != Extents{rows, columns}) return false;
  const Shared& in = s.shared();
  return !in.skewed && (in.swizzle > 0 || in.row_stride % 16 == 0);
}

}  // namespace

bool turns_bytes(const Program& l, ValueId v) {
  const Inst& i = l.graph[v];
  return l.machine.has_matrix_stores() && is_transpose(i) && i.type.dtype.bytes() == 1 &&
         has_squares(i.type.shape[1], i.type.shape[0]);
}

std::optional<TurnedBytes> turned_bytes(const Program& l, const LoopNest& p) {
  const Stage* const stage = std::get_if<Stage>(&p.sink);
  if (stage == nullptr || stage->by.asynchronous || p.value == graph::no_value) return {};
  if (l.storage_of[p.value] || !turns_bytes(l, p.value) || p.valid != p.domain) return {};
  const Extents& shape = l.graph[p.value].type.shape;
  const std::int64_t rows = shape[1], columns = shape[0];
  TurnedBytes t{.from = read_from(l, p, l.graph[p.value].args[0]),
                .to = stage->storage,
                .rows = rows / turned_rows,
                .columns = columns / turned_columns};
  if (!t.from || !has_rows_of_16(l.storages[t.from], rows, columns) ||
      !has_rows_of_16(l.storages[t.to], columns, rows))
    return {};
  const auto shared_by = [](std::int64_t squares, int warps) {
    return static_cast<int>(std::gcd(squares, warps));
  };
  t.warps_columns = shared_by(t.columns, l.num_warps);
  t.warps_rows = shared_by(t.rows, l.num_warps / t.warps_columns);
  return t;
}

}  // namespace palladium::passes
