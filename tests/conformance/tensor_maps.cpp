// Checks of TMA: boxes of every rank and swizzle in and out of shared memory.
#include <cmath>
#include <set>

#include "codegen/base/format.hpp"
#include "tests/conformance/case.hpp"
#include "tests/emulator/waist_numbers.hpp"

namespace palladium::conformance {
namespace {

struct Element {
  const char* name;
  TensorMapType type;
};
constexpr Element elements[] = {{"u8", TensorMapType::u8},   {"u16", TensorMapType::u16},
                                {"u32", TensorMapType::u32}, {"i32", TensorMapType::i32},
                                {"u64", TensorMapType::u64}, {"i64", TensorMapType::i64},
                                {"f16", TensorMapType::f16}, {"f32", TensorMapType::f32},
                                {"f64", TensorMapType::f64}, {"bf16", TensorMapType::bf16}};

const Element& element_of(const std::string& name) {
  for (const Element& e : elements) {
    if (name == e.name) return e;
  }
  return elements[0];
}

constexpr int boxes = 3;

/// An array whose sizes fit no box, and boxes within it, from before its start and over its end. Inner
/// coordinates are multiples of 16 bytes, as the chip wants them, the array's end is not.
struct Tensor {
  TensorMapSpec spec;
  std::string type;
  std::size_t array_bytes = 0;
  std::uint32_t box_bytes = 0, region = 0;  // of one box; rounded up to a swizzle's pattern
  std::array<std::array<int, 5>, boxes> at = {};

  Tensor(const std::string& element, int rank, int swizzle) : type(element) {
    constexpr std::uint32_t box[] = {0, 8, 3, 2, 2}, extents[] = {0, 11, 5, 3, 3};
    const auto bytes = static_cast<std::uint32_t>(bytes_of_type(element));
    spec.type = element_of(element).type;
    spec.rank = rank;
    spec.swizzle = swizzle;
    spec.l2_promotion = std::array{0, 64, 128, 256}[rank % 4];
    spec.box[0] = static_cast<std::uint32_t>(swizzle == 0 ? 48 : swizzle) / bytes;
    spec.extents[0] = 2 * spec.box[0] + 3;
    std::uint64_t stride = (spec.extents[0] * bytes + 31) / 16 * 16;
    box_bytes = spec.box[0] * bytes;
    for (int d = 1; d < rank; ++d) {
      spec.box[d] = box[d];
      spec.extents[d] = extents[d];
      spec.strides[d - 1] = stride;
      stride *= extents[d];
      box_bytes *= box[d];
    }
    array_bytes = stride;
    region = (box_bytes + 1023) / 1024 * 1024;
    for (int d = 0; d < rank; ++d) {
      const int extent = static_cast<int>(spec.extents[d]), step = d == 0 ? this->step() : 1;
      const int half = (static_cast<int>(spec.box[d]) / step + 1) / 2 * step;
      at[0][d] = step;
      at[1][d] = d == 3 ? 0 : -half;
      at[2][d] = d == 4 ? 0 : (extent - half) / step * step;
    }
  }

  int step() const { return 16 / bytes_of_type(type); }
  /// Stores may reach over the end of the array, not before its start; where boxes overlapped their
  /// order would decide.
  void keep_inside_and_apart() {
    const int inner = static_cast<int>(spec.box[0]);
    at[1] = {};
    at[0][0] = inner;
    at[2][0] = 2 * inner;
  }
  std::string coordinates(int box) const {
    std::string text = "{";
    for (int d = 0; d < spec.rank; ++d)
      text += (d ? ", " : "") +
              std::to_string(at[static_cast<std::size_t>(box)][static_cast<std::size_t>(d)]);
    return text + "}";
  }
  std::vector<std::byte> random(std::uint64_t seed) const {
    return Case::bytes_of(random_words(array_bytes / 4, seed));
  }
};

const std::string barrier = R"(
  if (t == 0) {
    pl::mbarrier_init(bar, 1);
    pl::fence_mbarrier_init();
  }
)";

/// Kernel text that has the box of x number `i` in shared memory at s + i * region, or back in o.
std::string move_words(const Tensor& tensor, bool in) {
  return fmt::format(
      R"(  PL_NOUNROLL for (u32 i = t; i < {}; i += 128) {{
    PL_UNROLL for (u32 k = 0; k < 3; ++k) {{
      u32 v[4];
      {}
      {}
    }}
  }}
)",
      tensor.box_bytes / 16,
      in ? fmt::format("pl::load_global<4>(v, x + {} * k + 4 * i);", tensor.box_bytes / 4)
         : fmt::format("pl::load_shared<4>(v, s + {} * k + 16 * i);", tensor.region),
      in ? fmt::format("pl::store_shared<4>(s + {} * k + 16 * i, v);", tensor.region)
         : fmt::format("pl::store_global<4>(o + {} * k + 4 * i, v);", tensor.box_bytes / 4));
}

const std::string begin = "  const u32 t = pl::thread(), s = pl::shared_base(), bar = s + 65536;";
constexpr std::uint32_t shared = 65536 + 64;

Case load(const std::string& name, const Tensor& tensor, const std::string& cache,
          bool nan_fill = false) {
  std::string body =
      begin + barrier + "  pl::block_sync();\n  if (t == 0) {\n" +
      "    pl::tma_prefetch_map(map);\n    pl::tma_prefetch(map, " + tensor.coordinates(0) +
      ");\n" + fmt::format("    pl::mbarrier_arrive_expect_tx(bar, {});\n", 3 * tensor.box_bytes);
  for (int i = 0; i < boxes; ++i)
    body += fmt::format("    pl::tma_load{}(s + {}, map, bar, {});\n", cache, i * tensor.region,
                        tensor.coordinates(i));
  body += "  }\n  pl::mbarrier_wait(bar, 0);\n" + move_words(tensor, false);
  Case c = kernel(name, "PL_TENSOR_MAP(map), u32* o", body);
  c.shared_bytes = shared;
  TensorMapSpec spec = tensor.spec;
  spec.nan_fill = nan_fill;
  const auto count = tensor.array_bytes / static_cast<std::size_t>(bytes_of_type(tensor.type));
  c.mapped({.type = tensor.type,
            .bytes = nan_fill ? fractions(tensor.type, count, 21) : tensor.random(21)},
           spec);
  // The NaN that fills is nobody's promise, so it is compared as one.
  const std::string type = nan_fill ? tensor.type : "u32";
  c.output(type, 3 * tensor.box_bytes / static_cast<std::size_t>(bytes_of_type(type)));
  return c;
}

Case store(const std::string& name, const Tensor& tensor, const std::string& call,
           std::vector<std::byte> from, std::vector<std::byte> to, int blocks = 1) {
  std::string body = begin + "\n" + move_words(tensor, true) +
                     "  pl::fence_async_shared();\n  pl::warpgroup_sync();\n  if (t == 0) {\n";
  for (int i = 0; i < boxes; ++i)
    body += fmt::format("    pl::{}(map, s + {}, {});\n", call, i * tensor.region,
                        tensor.coordinates(i));
  body += "    pl::bulk_commit();\n    pl::bulk_wait<0>();\n  }";
  Case c = kernel(name, "const u32* x, PL_TENSOR_MAP(map)", body);
  c.grid = {blocks, 1, 1};
  c.shared_bytes = shared;
  c.array({.type = "u32", .bytes = std::move(from)});
  c.mapped(
      {.type = tensor.type, .bytes = std::move(to), .output = true, .many_writers = blocks > 1},
      tensor.spec);
  return c;
}

void add_boxes(std::vector<Case>& all) {
  int i = 0;
  for (int rank = 1; rank <= 5; ++rank) {
    for (const int swizzle : {0, 32, 64, 128}) {
      const std::string type = elements[i++ % 10].name;
      const Tensor tensor(type, rank, swizzle);
      const std::string what = fmt::format("rank {} swizzle {} of {}", rank, swizzle, type);
      all.push_back(load("tma/load " + what, tensor, ""));
      Tensor apart = tensor;
      apart.keep_inside_and_apart();
      all.push_back(store("tma/store " + what, apart, "tma_store",
                          Case::bytes_of(random_words(3 * tensor.box_bytes / 4, 22)),
                          tensor.random(23)));
    }
  }
  for (const char* cache : {"<pl::evict_first>", "<pl::evict_last>"}) {
    for (int rank = 1; rank <= 5; ++rank) {
      const Tensor tensor("bf16", rank, 128);
      all.push_back(load(fmt::format("tma/load{} rank {}", cache, rank), tensor, cache));
    }
    Tensor tensor("f32", 2, 64);
    tensor.keep_inside_and_apart();
    all.push_back(store("tma/store" + std::string(cache), tensor, "tma_store" + std::string(cache),
                        Case::bytes_of(random_words(3 * tensor.box_bytes / 4, 24)),
                        tensor.random(25)));
  }
  for (const char* type : {"f16", "bf16", "f32", "f64"}) {
    Case c = load("tma/load that fills with NaN, of " + std::string(type), Tensor(type, 3, 64), "",
                  true);
    c.answer = [t = test::number_type(type)](const auto& arrays) {
      std::set<std::string> fills;
      const auto size = static_cast<std::size_t>(t.bytes);
      for (std::size_t i = 0; i < arrays.back().size() / size; ++i) {
        const std::uint64_t bits = element(arrays.back(), i, size);
        if (std::isnan(test::value_of(t, bits))) fills.insert(fmt::format("{:#x}", bits));
      }
      return fmt::format("{}", fmt::join(fills, " "));
    };
    all.push_back(std::move(c));
  }
}

/// Two blocks load a half each for both.
void add_multicasts(std::vector<Case>& all) {
  for (int rank = 1; rank <= 5; ++rank) {
    for (const char* cache : {"", "<pl::evict_first>", "<pl::evict_last>"}) {
      if (rank != 2 && cache[0] != 0) continue;
      const Tensor tensor("bf16", rank, 128);
      std::string body = begin + barrier +
                         fmt::format(R"(
  if (t == 0) pl::mbarrier_arrive_expect_tx(bar, {});
  pl::cluster_sync();
  if (t == 0 && pl::cluster_rank() == 0) pl::tma_load_multicast{}(s, map, bar, 3, {});
  if (t == 0 && pl::cluster_rank() == 1) {{
    pl::tma_load_multicast{}(s + {}, map, bar, 3, {});
    pl::tma_load_multicast{}(s + {}, map, bar, 3, {});
  }}
  pl::mbarrier_wait_cluster(bar, 0);
  o += {} * pl::block_x();
)",
                                     3 * tensor.box_bytes, cache, tensor.coordinates(0), cache,
                                     tensor.region, tensor.coordinates(1), cache, 2 * tensor.region,
                                     tensor.coordinates(2), 3 * tensor.box_bytes / 4) +
                         move_words(tensor, false) + "  pl::cluster_sync();";
      Case c = kernel(fmt::format("tma/load_multicast{} rank {}", cache, rank),
                      "PL_TENSOR_MAP(map), u32* o", body);
      c.grid = c.cluster = {2, 1, 1};
      c.shared_bytes = shared;
      c.mapped({.type = "u16", .bytes = tensor.random(26)}, tensor.spec);
      c.output("u32", 2 * 3 * tensor.box_bytes / 4);
      all.push_back(std::move(c));
    }
  }
}

void add_reductions(std::vector<Case>& all) {
  struct Reduction {
    const char* name;
    std::vector<const char*> types;
  };
  const Reduction reductions[] = {
      {"add", {"u32", "i32", "u64", "f32", "f16", "bf16"}},
      {"min", {"u32", "i32", "u64", "i64", "f16", "bf16"}},
      {"max", {"u32", "i32", "u64", "i64", "f16", "bf16"}},
      {"and", {"u32", "u64"}},
      {"or", {"u32", "u64"}},
      {"xor", {"u32", "u64"}},
      {"inc", {"u32"}},
      {"dec", {"u32"}},
  };
  for (const Reduction& r : reductions) {
    for (const char* type : r.types) {
      Tensor tensor(type, 2, 64);
      const auto size = static_cast<std::size_t>(bytes_of_type(type));
      // The order of two inc or dec of one element changes the result: one block.
      const bool counts = r.name[0] == 'i' || r.name[0] == 'd';
      tensor.keep_inside_and_apart();
      all.push_back(store(fmt::format("tma/reduce {} of {}", r.name, type), tensor,
                          fmt::format("tma_reduce<pl::reduce_{}>", r.name),
                          integers(type, 3 * tensor.box_bytes / size, 27),
                          integers(type, tensor.array_bytes / size, 28), counts ? 1 : 3));
    }
  }
  for (int rank = 1; rank <= 5; ++rank) {
    Tensor tensor("i32", rank, 0);
    tensor.keep_inside_and_apart();
    all.push_back(store(fmt::format("tma/reduce add rank {}", rank), tensor,
                        "tma_reduce<pl::reduce_add>", integers("i32", 3 * tensor.box_bytes / 4, 29),
                        integers("i32", tensor.array_bytes / 4, 30), 3));
  }
}

}  // namespace

void add_tensor_maps(std::vector<Case>& all) {
  add_boxes(all);
  add_multicasts(all);
  add_reductions(all);
}

}  // namespace palladium::conformance
