// Where a block stands in its cluster, what it brings of a copy that blocks share, and which blocks
// it tells that slots are free.
#include <span>
#include <utility>

#include "codegen/base/format.hpp"
#include "codegen/expand/expander.hpp"

namespace palladium::expand {

using lowered::Storage;

void Expander::name_cluster(ExprId block) {
  std::int64_t below = 1;
  cluster_ids_.resize(g_.cluster.size(), no_expr);
  for (std::size_t c = g_.cluster.size(); c-- > 0;) {
    ExprId rank = e_.plain(Operator::rem, e_.cast(i32, block), number(p_.cluster_blocks));
    if (below > 1) rank = e_.plain(Operator::div, rank, number(below));
    cluster_ids_[c] =
        b_.let_here(fmt::format("c{}", c), e_.plain(Operator::rem, rank, number(g_.cluster[c])));
    below *= g_.cluster[c];
  }
}

// Of the block among those that differ along these axes alone, row-major.
ExprId Expander::number_in_share(std::int64_t axes) {
  Affine own;
  std::int64_t factor = 1;
  for (std::size_t c = g_.cluster.size(); c-- > 0;) {
    if ((axes >> c & 1) == 0) continue;
    own = own + Affine::term(cluster_ids_[c], factor);
    factor *= g_.cluster[c];
  }
  return e_.sum(own);
}

// Of the first of these blocks the rank; none where that is 0 in every block.
ExprId Expander::first_of_share(std::int64_t axes) {
  Affine rank;
  std::int64_t below = 1;
  bool varies = false;
  for (std::size_t c = g_.cluster.size(); c-- > 0; below *= g_.cluster[c]) {
    if ((axes >> c & 1) != 0 || g_.cluster[c] == 1) continue;
    rank = rank + Affine::term(cluster_ids_[c], below);
    varies = true;
  }
  return varies ? e_.sum(rank) : no_expr;
}

// A bit for each of these blocks, by its rank.
ExprId Expander::blocks_of_share(std::int64_t axes) {
  const ExprId of_first =
      number(static_cast<std::int64_t>(lowered::blocks_beside(g_, 0, std::span(&axes, 1))));
  const ExprId first = first_of_share(axes);
  return first == no_expr ? of_first : e_.plain(Operator::shift_left, of_first, first);
}

// ---- copies that blocks share

// Whether parts are panels, one beside the other, and not rows.
bool Expander::is_of_panels(const lowered::Copy& c) const {
  if (c.share.axes == 0 || l_.storages[c.to.storage].shared().swizzle == 0) return false;
  const lowered::TensorBox& box = l_.tensor_boxes[c.box];
  return c.share.dimension + 1 == static_cast<int>(box.box.size());
}

std::vector<ExprId> Expander::part_origin(const lowered::Copy& c, std::vector<ExprId> origin) {
  if (c.share.axes == 0) return origin;
  const Storage& s = l_.storages[c.to.storage];
  const std::vector<std::int32_t>& box = l_.tensor_boxes[c.box].box;
  const auto dimension = static_cast<std::size_t>(c.share.dimension);
  const std::int64_t parts = graph::blocks_along(g_, c.share.axes);
  std::int64_t extent = s.shape.back() / parts;
  if (!is_of_panels(c)) {
    // Boxes follow each other along the dimension, in each of several panels.
    std::int64_t of_boxes = s.shared().swizzle > 0 ? s.shape.back() / box.back() : 1;
    for (const std::int32_t n : box) of_boxes *= n;
    extent = box[dimension] * (graph::element_count(s.shape) / parts / of_boxes);
  }
  ExprId& at = origin[box.size() - 1 - dimension];
  at = e_.sum(e_.affine(at) + Affine::term(number_in_share(c.share.axes), extent));
  return origin;
}

Affine Expander::part_bytes(const lowered::Copy& c) {
  if (c.share.axes == 0) return {};
  const Storage& s = l_.storages[c.to.storage];
  const std::int64_t parts = graph::blocks_along(g_, c.share.axes);
  std::int64_t bytes = graph::element_count(s.shape) * s.dtype.bytes() / parts;
  // Rows of each panel stand behind all rows of the panel before it.
  if (s.shared().swizzle > 0 && !is_of_panels(c)) bytes = s.shape[0] / parts * s.shared().swizzle;
  return Affine::term(e_.as(u32, number_in_share(c.share.axes)), bytes);
}

// ---- who is told

// A thread for each block, by its number among those that tell for the same.
void Expander::arrive_along(const lowered::Arrive& a, ExprId slot, ExprId thread) {
  const lowered::Barriers& barriers = l_.barriers[a.barrier];
  const ExprId block = b_.let_once("told", false, e_.cast(i32, thread));
  std::vector<ExprId> conditions{e_.plain(Operator::less, block, number(p_.cluster_blocks), bool_)};
  if (lowered::blocks_told(l_, a.barrier) < p_.cluster_blocks) {
    ExprId all = blocks_of_share(barriers.along[0]);
    for (std::size_t i = 1; i < barriers.along.size(); ++i)
      all = e_.plain(Operator::bit_or, all, blocks_of_share(barriers.along[i]));
    const ExprId from_own = e_.plain(Operator::shift_right, all, block);
    conditions.push_back(
        e_.plain(Operator::equal, e_.plain(Operator::rem, from_own, number(2)), number(1), bool_));
  }
  const ExprId tells = b_.let_once("tells", false, e_.all(std::move(conditions)));
  const ExprId begins = a.back > 0 && a.back > slots_[barriers.ring].first_steps
                            ? slots_[barriers.ring].begins
                            : no_expr;
  b_.open(thread::If{
      begins == no_expr ? tells : e_.all({tells, e_.op(graph::Op::Not, bool_, {begins})}), {}});
  b_.add(thread::Call{
      .function = cluster_scopes_.contains(a.barrier) ? Row::mbarrier_arrive_cluster
                                                      : Row::mbarrier_arrive_remote,
      .args = {e_.call(Row::mapa, u32, {barrier_address(a.barrier, slot), e_.as(u32, block)}),
               number(1)}});
  b_.close();
}

}  // namespace palladium::expand
