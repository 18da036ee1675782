// Checks of mbarriers, clusters, fences and copies without tensor maps.
#include "tests/conformance/case.hpp"

namespace palladium::conformance {
namespace {

// What the kernels here begin with: 1 KiB of data at s, barriers at bar.
const std::string begin = R"(
  const u32 t = pl::thread(), s = pl::shared_base(), bar = s + 16384;
  const i32 b = pl::block_x();
)";

/// One warpgroup, 128 words of x per block, as many of o.
Case block(const std::string& name, const std::string& body, int blocks = 1, int cluster = 1) {
  Case c = kernel(name, "const u32* x, u32* o", begin + body);
  c.grid = {blocks, 1, 1};
  c.cluster = {cluster, 1, 1};
  c.shared_bytes = 16384 + 64;
  c.input("u32", random_words(static_cast<std::size_t>(512 * blocks), 11))
      .output("u32", static_cast<std::size_t>(512 * blocks));
  return c;
}

std::string init(int count) {
  return "  if (t == 0) {\n    pl::mbarrier_init(bar, " + std::to_string(count) +
         ");\n    pl::mbarrier_init(bar + 8, " + std::to_string(count) +
         ");\n    pl::fence_mbarrier_init();\n  }\n";
}

void add_mbarriers(std::vector<Case>& all) {
  Case c = block("mbarrier/arrive and wait over six phases", init(128) + R"(
  pl::block_sync();
  u32 v, w;
  pl::load_global(&v, x + t);
  PL_NOUNROLL for (u32 i = 0; i < 6; ++i) {
    pl::store_shared(s + 512 * (i & 1) + 4 * t, &v);
    pl::mbarrier_arrive(bar);
    pl::mbarrier_wait(bar, i & 1);
    pl::load_shared(&w, s + 512 * (i & 1) + 4 * ((t + 1 + i) % 128));
    v = v * 5 + w;
  }
  pl::store_global(o + t, &v);)");
  all.push_back(std::move(c));

  all.push_back(block("mbarrier/counts, test_wait, try_wait and inval", init(8) + R"(
  pl::block_sync();
  u32 v = 0;
  if (t == 0) {
    v |= u32(pl::mbarrier_test_wait(bar, 1)) << 0;
    v |= u32(pl::mbarrier_test_wait(bar, 0)) << 1;
    pl::mbarrier_arrive(bar, 3);
    v |= u32(pl::mbarrier_test_wait(bar, 0)) << 2;
    pl::mbarrier_arrive(bar, 4);
    v |= u32(pl::mbarrier_test_wait(bar, 0)) << 3;
    pl::mbarrier_arrive(bar);
    v |= u32(pl::mbarrier_test_wait(bar, 0)) << 4;
    v |= u32(pl::mbarrier_try_wait(bar, 0)) << 5;
    v |= u32(pl::mbarrier_test_wait(bar, 1)) << 6;
    pl::mbarrier_arrive(bar, 8);
    v |= u32(pl::mbarrier_test_wait(bar, 1)) << 7;
    v |= u32(pl::mbarrier_test_wait(bar, 0)) << 8;
    pl::mbarrier_inval(bar);
    pl::mbarrier_inval(bar + 8);
    const u32 word = 9;
    pl::store_shared(bar, &word);
    u32 again;
    pl::load_shared(&again, bar);
    v |= again << 16;
  }
  pl::store_global(o + t, &v);)"));

  all.push_back(block("mbarrier/expect_tx in parts", init(1) + R"(
  pl::block_sync();
  if (t == 0) {
    pl::mbarrier_expect_tx(bar, 256);
    pl::bulk_load(s, x, 256, bar);
    pl::mbarrier_expect_tx(bar, 256);
    pl::bulk_load(s + 256, x + 64, 256, bar);
    pl::mbarrier_arrive(bar);
  }
  pl::mbarrier_wait(bar, 0);
  u32 v;
  pl::load_shared(&v, s + 4 * t);
  pl::store_global(o + t, &v);)"));
}

void add_fences(std::vector<Case>& all) {
  // Each fence between what its thread wrote and a barrier, as kernels have them.
  std::string fences;
  for (const char* f : {"fence_async_shared", "fence_async_global", "fence_async", "fence_block",
                        "fence_cluster", "fence_gpu", "fence_system"})
    fences += "  v += 3;\n  pl::store_shared(s + 4 * t, &v);\n  pl::" + std::string(f) +
              "();\n  pl::warpgroup_sync();\n  pl::load_shared(&v, s + 4 * (t ^ 1));\n"
              "  pl::warpgroup_sync();\n";
  all.push_back(block("fence/each", "  u32 v;\n  pl::load_global(&v, x + t);\n" + fences +
                                        "  pl::store_global(o + t, &v);"));
  all.push_back(block("fence/fence_async before a store of what threads wrote", R"(
  u32 v[4];
  pl::load_global<4>(v, x + 4 * t);
  v[0] += t;
  pl::store_shared<4>(s + 16 * t, v);
  pl::fence_async();
  pl::warpgroup_sync();
  if (t == 0) {
    pl::bulk_store(o, s, 2048);
    pl::bulk_commit();
    pl::bulk_wait<0>();
  })"));
}

// Of an array that begins behind the first element of a piece, rows that begin anywhere.
void add_skewed(std::vector<Case>& all) {
  for (const auto& [type, count, step] :
       {std::tuple{"bf16", 8, 7}, {"f16", 8, 5}, {"u8", 16, 13}}) {
    std::string body = R"(
  typedef $ T;
  const T* const first = reinterpret_cast<const T*>(x) + 1;
  const T* const mine = first + # * t;
  const i32 left = i32(t * 5 % 29) - 4;
  pl::copy_async_around_zero<@>(s + 32 * t, mine, left, t % 5 != 2, first);
  if (t % 5 != 2 && left >= 2 * @)
    pl::copy_async_around<@>(s + 32 * t + 16, mine + @, left - @, true, first);
  else
    pl::copy_async_around_zero<@>(s + 32 * t + 16, mine + @, left - @, t % 5 != 2, first);
  pl::cp_async_commit();
  pl::cp_async_wait<0>();
  pl::warpgroup_sync();
  const u32 other = t ^ 17, skew = pl::skew(first + # * other);
  T v[@], w[@ / 2];
  pl::load_shared_skewed<@>(v, s + 32 * other, skew, t % 7 != 3);
  pl::load_shared_skewed<@ / 2>(w, s + 32 * (t ^ 9), pl::skew(first + # * (t ^ 9)));
  PL_UNROLL for (u32 i = 0; i < @ / 2; ++i) v[i] = t % 3 == 0 ? w[i] : v[i];
  pl::store_global<@>(reinterpret_cast<T*>(o) + @ * t, v);)";
    body = replaced(body, '$', type);
    body = replaced(body, '@', std::to_string(count));
    all.push_back(block("cp_async/pieces of " + std::string(type) + " around rows",
                        replaced(body, '#', std::to_string(step))));
  }
}

void add_cp_async(std::vector<Case>& all) {
  add_skewed(all);
  for (const int bytes : {4, 8, 16}) {
    const std::string n = std::to_string(bytes);
    all.push_back(
        block("cp_async/" + n + " bytes as elements, some of them zeros", replaced(R"(
  const u32 seven[4] = {7, 7, 7, 7};
  PL_UNROLL for (u32 i = 0; i < 4; ++i) pl::store_shared<4>(s + 16 * t + 2048 * i, seven);
  pl::warpgroup_sync();
  pl::copy_async<# / 4>(s + # * t, x + # / 4 * t, true, t % 5 != 2);
  pl::copy_async_zero<# / 4>(s + 2048 + # * t, x + # / 4 * (127 - t), t % 3 != 1, t % 7 != 3);
  pl::cp_async_commit();
  pl::cp_async_wait<0>();
  pl::warpgroup_sync();
  u32 v[# / 4], w;
  PL_UNROLL for (u32 i = 0; i < # / 4; ++i) {
    pl::load_shared(v + i, s + # * (t ^ 17) + 4 * i);
    pl::load_shared(&w, s + 2048 + # * (t ^ 9) + 4 * i);
    v[i] = v[i] * 3 + w;
  }
  pl::store_global<# / 4>(o + # / 4 * t, v);)",
                                                                                   '#', n)));
    all.push_back(block("cp_async/" + n + " bytes in two groups", replaced(R"(
  const u32 zero[4] = {7, 7, 7, 7};
  PL_UNROLL for (u32 i = 0; i < 4; ++i) pl::store_shared<4>(s + 16 * t + 2048 * i, zero);
  pl::warpgroup_sync();
  pl::cp_async<#>(s + # * t, x + # / 4 * t);
  pl::cp_async_commit();
  pl::cp_async<#>(s + 2048 + # * t, x + # / 4 * (127 - t), t % 3 != 1);
  pl::cp_async_commit();
  pl::cp_async_wait<1>();
  pl::warpgroup_sync();
  u32 v[# / 4];
  pl::load_shared<# / 4>(v, s + # * (t ^ 17));
  pl::store_global<# / 4>(o + # / 4 * t, v);
  pl::cp_async_wait<0>();
  pl::warpgroup_sync();
  u32 w;
  PL_UNROLL for (u32 i = 0; i < # / 4; ++i) {
    pl::load_shared(&w, s + 2048 + # * (t ^ 9) + 4 * i);
    pl::load_global(v + i, o + # / 4 * t + i);
    v[i] = v[i] * 3 + w;
  }
  pl::store_global<# / 4>(o + # / 4 * t, v);)",
                                                                           '#', n)));
  }
  all.push_back(block("cp_async/arrival on an mbarrier", init(128) + R"(
  pl::block_sync();
  pl::cp_async<16>(s + 16 * t, x + 4 * t);
  pl::cp_async_arrive(bar);
  pl::mbarrier_wait(bar, 0);
  u32 v[4];
  pl::load_shared<4>(v, s + 16 * (t ^ 63));
  pl::store_global<4>(o + 4 * t, v);)"));
}

void add_bulk(std::vector<Case>& all) {
  for (const char* cache : {"", "<pl::evict_first>", "<pl::evict_last>"}) {
    all.push_back(
        block("bulk/load and store" + std::string(cache), init(1) + replaced(R"(
  pl::block_sync();
  if (t == 0) {
    pl::bulk_prefetch(x, 2048);
    pl::mbarrier_arrive_expect_tx(bar, 2048);
    pl::bulk_load$(s, x, 1040, bar);
    pl::bulk_load$(s + 1040, x + 260, 1008, bar);
    pl::mbarrier_wait(bar, 0);
    pl::bulk_store$(o, s + 1024, 1024);
    pl::bulk_commit();
    pl::bulk_store$(o + 256, s, 1024);
    pl::bulk_commit();
    pl::bulk_wait_read<1>();
    pl::bulk_wait<1>();
    pl::bulk_wait_read<0>();
    pl::bulk_wait<0>();
  })",
                                                                             '$', cache)));
  }
  for (const char* type : {"i32", "u32", "u64", "f16", "bf16", "f32", "f64"}) {
    const auto count = 2048 / static_cast<std::size_t>(bytes_of_type(type));
    Case c = kernel("bulk/reduce_add of " + std::string(type),
                    replaced("const u32* x, $* o", '$', type), begin + R"(
  u32 v[4];
  pl::load_global<4>(v, x + 4 * t);
  pl::store_shared<4>(s + 16 * t, v);
  pl::fence_async_shared();
  pl::warpgroup_sync();
  if (t == 0) {
    pl::bulk_reduce_add(o, s, 2048);
    pl::bulk_reduce_add(o, s, 64);
    pl::bulk_commit();
    pl::bulk_wait<0>();
  })");
    c.grid = {3, 1, 1};
    c.shared_bytes = 16384 + 64;
    c.array({.type = type, .bytes = integers(type, count, 12)});
    c.array(
        {.type = type, .bytes = integers(type, count, 13), .output = true, .many_writers = true});
    all.push_back(std::move(c));
  }
}

void add_cluster_barriers(std::vector<Case>& all) {
  const std::string share = R"(
  u32 v;
  pl::load_global(&v, x + 128 * b + t);
  pl::store_shared(s + 4 * t, &v);
  const u32 next = (pl::cluster_rank() + 1) % pl::cluster_size();
)";
  all.push_back(block("cluster/sync and load_cluster", share + R"(
  pl::cluster_sync();
  u32 w[4];
  pl::load_cluster(&v, pl::mapa(s + 4 * (127 - t), next));
  pl::load_cluster<4>(w, pl::mapa(s + 16 * (t % 32), next));
  v += w[0] ^ w[1] ^ w[2] ^ w[3];
  pl::store_global(o + 128 * b + t, &v);
  pl::cluster_sync();)",
                      8, 4));
  all.push_back(block("cluster/arrive, wait and store_cluster", share + R"(
  const u32 at = s + 1024;
  pl::cluster_arrive_relaxed();
  pl::cluster_wait();
  u32 w[2] = {v, v + 1};
  pl::store_cluster<2>(pl::mapa(at + 8 * t, next), w);
  pl::cluster_arrive();
  pl::cluster_wait();
  pl::load_shared<2>(w, at + 8 * (t ^ 3));
  v = w[0] * 3 + w[1];
  pl::store_global(o + 128 * b + t, &v);)",
                      8, 4));
  std::string widths;
  int at = 0;
  for (const char* v : {"u8 1", "u16 1", "u32 1", "bf16 4", "f32 4", "u64 2"}) {
    const std::string type = std::string(v).substr(0, std::string(v).find(' ')),
                      n(1, v[std::strlen(v) - 1]);
    widths += replaced(
        replaced(
            "  { $ e[#]; pl::load_global<#>(e, reinterpret_cast<const $*>(x + 512 * b) + # * t);\n"
            "    pl::store_cluster<#>(pl::mapa(s + " +
                std::to_string(at) + " + # * u32(sizeof($)) * t, next), e); }\n",
            '$', type),
        '#', n);
    at += 2048;
  }
  std::string reads;
  at = 0;
  for (const char* v : {"u8 1", "u16 1", "u32 1", "bf16 4", "f32 4", "u64 2"}) {
    const std::string type = std::string(v).substr(0, std::string(v).find(' ')),
                      n(1, v[std::strlen(v) - 1]);
    reads +=
        replaced(replaced("  { $ e[#]; pl::load_cluster<#>(e, pl::mapa(s + " + std::to_string(at) +
                              " + # * u32(sizeof($)) * (127 - t), next));\n"
                              "    pl::store_global<#>(reinterpret_cast<$*>(o + 3072 * b + " +
                              std::to_string(at / 4) + ") + # * t, e); }\n",
                          '$', type),
                 '#', n);
    at += 2048;
  }
  Case c = kernel("cluster/load_cluster and store_cluster of all widths", "const u32* x, u32* o",
                  begin + "  const u32 next = pl::cluster_rank() ^ 1;\n  pl::cluster_sync();\n" +
                      widths + "  pl::cluster_sync();\n" + reads + "  pl::cluster_sync();");
  c.grid = c.cluster = {2, 1, 1};
  c.shared_bytes = 16384 + 64;
  c.input("u32", random_words(1024, 14)).output("u32", 6144);
  all.push_back(std::move(c));
}

void add_remote_barriers(std::vector<Case>& all) {
  all.push_back(block("cluster/arrival on a barrier of another block", init(128) + R"(
  pl::cluster_sync();
  const u32 next = (pl::cluster_rank() + 1) % pl::cluster_size();
  u32 v;
  pl::load_global(&v, x + 128 * b + t);
  pl::store_cluster(pl::mapa(s + 4 * t, next), &v);
  pl::mbarrier_arrive_cluster(pl::mapa(bar, next));
  pl::mbarrier_wait_cluster(bar, 0);
  pl::load_shared(&v, s + 4 * (127 - t));
  pl::store_global(o + 128 * b + t, &v);
  pl::cluster_sync();)",
                      8, 4));
  all.push_back(block("cluster/arrival of the block's scope on a barrier of another block",
                      init(128) + R"(
  pl::cluster_sync();
  const u32 next = (pl::cluster_rank() + 1) % pl::cluster_size();
  u32 v;
  pl::load_global(&v, x + 128 * b + t);
  if (t % 2 == 0) pl::mbarrier_arrive_remote(pl::mapa(bar, next), 2);
  pl::mbarrier_wait(bar, 0);
  v = 3 * v + pl::mbarrier_test_wait(bar, 1);
  pl::store_global(o + 128 * b + t, &v);
  pl::cluster_sync();)",
                      8, 4));
  all.push_back(block("cluster/store_async of all widths", init(1) + R"(
  pl::cluster_sync();
  const u32 next = pl::cluster_rank() ^ 1;
  if (t == 0) pl::mbarrier_arrive_expect_tx(bar, 128 * (4 + 8 + 16));
  pl::cluster_sync();
  u32 v[4];
  pl::load_global<4>(v, x + 512 * b + 4 * t);
  pl::store_async(pl::mapa(s + 4 * t, next), v, pl::mapa(bar, next));
  pl::store_async<2>(pl::mapa(s + 1024 + 8 * t, next), v, pl::mapa(bar, next));
  pl::store_async<4>(pl::mapa(s + 2048 + 16 * t, next), v, pl::mapa(bar, next));
  pl::mbarrier_wait_cluster(bar, 0);
  u32 w[4];
  pl::load_shared(v, s + 4 * (t ^ 5));
  pl::load_shared<2>(w, s + 1024 + 8 * (t ^ 6));
  v[0] += 3 * w[0] + 5 * w[1];
  pl::load_shared<4>(w, s + 2048 + 16 * (t ^ 7));
  v[0] += 7 * w[0] + 11 * w[1] + 13 * w[2] + 17 * w[3];
  pl::store_global(o + 128 * b + t, v);
  pl::cluster_sync();)",
                      2, 2));
  all.push_back(block("cluster/expect_tx of another block's barrier, bulk_copy_cluster",
                      init(2) + R"(
  pl::cluster_sync();
  const u32 next = pl::cluster_rank() ^ 1;
  u32 v;
  pl::load_global(&v, x + 128 * b + t);
  pl::store_shared(s + 4 * t, &v);
  pl::fence_async_shared();
  pl::warpgroup_sync();
  if (t == 0) {
    pl::mbarrier_arrive_expect_tx_cluster(pl::mapa(bar, next), 256);
    pl::bulk_copy_cluster(pl::mapa(s + 1024, next), s, 256, pl::mapa(bar, next));
    pl::mbarrier_expect_tx_cluster(pl::mapa(bar, next), 256);
    pl::bulk_copy_cluster(pl::mapa(s + 1280, next), s + 256, 256, pl::mapa(bar, next));
    pl::mbarrier_arrive_cluster(pl::mapa(bar, next));
  }
  pl::mbarrier_wait_cluster(bar, 0);
  pl::load_shared(&v, s + 1024 + 4 * (127 - t));
  pl::store_global(o + 128 * b + t, &v);
  pl::cluster_sync();)",
                      2, 2));
  for (const char* cache : {"", "<pl::evict_first>", "<pl::evict_last>"}) {
    all.push_back(block("bulk/load_multicast" + std::string(cache),
                        init(1) + replaced(R"(
  if (t == 0) pl::mbarrier_arrive_expect_tx(bar, 1024);
  pl::cluster_sync();
  const u32 rank = pl::cluster_rank();
  if (t == 0) pl::bulk_load_multicast$(s + 512 * (rank % 2), x + 128 * b, 512, bar, rank < 2 ? 5 : 10);
  pl::mbarrier_wait_cluster(bar, 0);
  u32 v[2];
  pl::load_shared<2>(v, s + 8 * t);
  pl::store_global<2>(o + 256 * b + 2 * t, v);
  pl::cluster_sync();)",
                                           '$', cache),
                        4, 4));
  }
}

}  // namespace

void add_clusters(std::vector<Case>& all) {
  add_mbarriers(all);
  add_fences(all);
  add_cp_async(all);
  add_bulk(all);
  add_cluster_barriers(all);
  add_remote_barriers(all);
}

}  // namespace palladium::conformance
