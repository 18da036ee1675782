// Bytes that are transposed from shared memory to shared memory: a warp loads matrices of two rows
// of pairs each, and stores what was a column as a row.
#include <bit>

#include "codegen/expand/nest.hpp"

namespace palladium::expand {

namespace {

layout::Bits behind(layout::Bits of_lane, int none, int warps, std::uint32_t step) {
  of_lane.resize(of_lane.size() + static_cast<std::size_t>(std::countr_zero(unsigned(none))));
  for (int w = 1; w < warps; w *= 2, step *= 2) of_lane.push_back(step);
  return of_lane;
}

}  // namespace

// The rows whose addresses lanes give are those that transpose_bytes wants.
void Nest::turn_bytes(const passes::TurnedBytes& t) {
  constexpr std::uint32_t rows = passes::turned_rows, columns = passes::turned_columns;
  const int warps = t.warps_columns * t.warps_rows;
  const auto image = [&](layout::Bits of_lane, int none, int along, std::uint32_t step) {
    return Affine::term(x_.image(thread_, behind(std::move(of_lane), none, along, step)));
  };
  if (warps < l_.num_warps)
    b_.open(thread::If{e_.plain(Operator::less, e_.as(i32, thread_),
                                e_.number(std::int64_t{warps} * graph::warp_threads), bool_),
                       {}});
  const auto counted = [&](int d, std::int64_t count, std::int64_t step) {
    return count == 1 ? Affine() : open_counted(d, count) * step;
  };
  const Affine k = counted(1, t.rows / t.warps_rows, rows * t.warps_rows);
  const Affine n = counted(0, t.columns / t.warps_columns, columns * t.warps_columns);
  const Coordinates from{k + image({1, 4, 10, 2, 16}, t.warps_columns, t.warps_rows, rows),
                         n + image({0, 0, 0, 0, 0}, 1, t.warps_columns, columns)};
  const Coordinates to{n + image({2, 4, 9, 1, 0}, 1, t.warps_columns, columns),
                       k + image({0, 0, 0, 0, 16}, t.warps_columns, t.warps_rows, rows)};
  const auto address = [&](StorageId storage, const Coordinates& c) {
    const thread::Place place = place_of(storage_address(storage, c));
    return e_.sum(Affine::term(place.base) + Affine::term(e_.as(u32, place.offset)), u32);
  };
  b_.add(thread::Call{.function = Row::transpose_bytes,
                      .args = {address(t.to, to), address(t.from, from)}});
  b_.close_nest_loops();
}

}  // namespace palladium::expand
