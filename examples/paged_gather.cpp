// Sequences whose keys stand in pages of one pool, as those of a language model's cache do: a table
// says which page is which part of which sequence. Index maps read the table before each program
// (scalar prefetch), so that gathering is a copy of blocks.
#include <cstdio>
#include <vector>

#include "palladium/palladium.hpp"

using pl::_;

namespace {

/// pages: [pages of the pool, page, width], table: [sequences, parts], result:
/// [sequences, parts * page, width].
pl::Kernel paged_gather() {
  return pl::pallas_call(
      [](pl::Ref, pl::Ref page, pl::Ref o) { o[_] = page[_]; },
      [](pl::ShapeDtype table, pl::ShapeDtype pages) {
        const auto [sequences, parts] = table.shape.unpack<2>();
        const pl::Dim page = pages.shape[1], width = pages.shape[2];
        const pl::BlockSpec from{{pl::squeezed, page, width},
                                 [](pl::Index sequence, pl::Index part, pl::Ref table) {
                                   return pl::Indices{table[{sequence, part}], 0, 0};
                                 }};
        const pl::BlockSpec to{{pl::squeezed, page, width},
                               [](pl::Index sequence, pl::Index part, pl::Ref) {
                                 return pl::Indices{sequence, part, 0};
                               }};
        return pl::PallasCallOptions{.name = "paged_gather",
                                     .out_type = {{sequences, parts * page, width}, pages.dtype},
                                     .num_scalar_prefetch = 1,
                                     .grid = {sequences, parts},
                                     .in_specs = {from},
                                     .out_specs = {to}};
      });
}

}  // namespace

int main() try {
  constexpr std::int64_t sequences = 3, parts = 4, pool = 16, page = 8, width = 64;
  std::vector<std::int32_t> table(sequences * parts);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int32_t>(7 * i % pool);
  const pl::Array pages = pl::Array::empty({pool, page, width}, pl::f32);
  for (std::int64_t i = 0; i < pages.size(); ++i) pages.data<float>()[i] = static_cast<float>(i);

  const pl::Device device = pl::default_device();
  const pl::Array where = pl::Array::view(std::span(table), {sequences, parts}).to(device);
  const pl::Array result = paged_gather()(where, pages.to(device));
  const pl::Array gathered = result.to(pl::Device::cpu());

  int wrong = 0;
  constexpr std::int64_t size = page * width;
  for (std::int64_t i = 0; i < gathered.size(); ++i) {
    const std::int64_t from = table[static_cast<std::size_t>(i / size)] * size + i % size;
    wrong += gathered.data<float>()[i] != pages.data<float>()[from];
  }
  std::printf("paged_gather: %s on %s, %d wrong\n", pl::to_string(gathered.type()).c_str(),
              pl::to_string(pl::default_target()), wrong);
  return wrong == 0 ? 0 : 1;
} catch (const pl::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
