// Checks of atomic accesses. What several threads do to one element leaves a result that no order
// changes; what they get back is looked at only where each has an element of its own.
#include "tests/conformance/case.hpp"

namespace palladium::conformance {
namespace {

const std::vector<std::string> words = {"i32", "u32", "i64", "u64"};
const std::vector<std::string> terms = {"i32", "u32", "i64", "u64", "f32", "f64"};
// Few of the sums of 16-bit floats go to one element, so that they are exact.
std::string elements(const std::string& type) { return type.ends_with("f16") ? "128" : "8"; }
const std::vector<std::string> sums_of = {"i32",  "u32", "i64", "u64", "f16",
                                          "bf16", "f32", "f64", "i8"};
// Those that are loops of exchanges, some here and some there.
const std::vector<std::string> least_of = {"i32", "u32", "i64", "u64", "f64", "f16", "u8"};
const std::vector<std::string> greatest_of = {"i32", "u32", "i64", "u64", "f32", "bf16", "i16"};
const std::vector<std::string> exchanged = {"i32", "u32", "i64", "u64", "u16", "i8"};

/// Small integers of the type, each as one element.
Array data(const std::string& type, std::size_t count, std::uint64_t seed) {
  return {.type = type, .bytes = integers(type, count, seed)};
}

Array sums(const std::string& type, std::size_t count, std::uint64_t seed) {
  Array a = data(type, count, seed);
  a.output = a.many_writers = true;
  return a;
}

/// All threads of four blocks on o[0..8), and each thread on an element of its own behind them.
void add_global_atomics(std::vector<Case>& all) {
  struct Operation {
    const char* name;
    const std::vector<std::string>& types;
  };
  for (const Operation& op : {Operation{"add", sums_of},
                              {"min", least_of},
                              {"max", greatest_of},
                              {"and", words},
                              {"or", words},
                              {"xor", words}}) {
    for (const std::string& type : op.types) {
      Case c = kernel("atomic/atomic_" + std::string(op.name) + " of " + type,
                      replaced("const $* x, $* o, $* old", '$', type),
                      replaced(replaced(replaced(R"(
  const i32 t = 128 * pl::block_x() + i32(pl::thread());
  $ v, w;
  pl::load_global(&v, x + t);
  pl::atomic_@(o + t % #, v);
  w = pl::atomic_@<pl::acq_rel, pl::block>(o + # + t, v);
  w = w + pl::atomic_@<pl::relaxed, pl::system_scope>(o + # + t, v);
  pl::store_global(old + t, &w);)",
                                                 '$', type),
                                        '@', op.name),
                               '#', elements(type)));
      c.grid = {4, 1, 1};
      c.array(data(type, 512, 1)).array(sums(type, 640, 2)).output(type, 512);
      all.push_back(std::move(c));
    }
  }
  for (const std::string& type : exchanged) {
    Case c = kernel("atomic/atomic_exchange and compare_exchange of " + type,
                    replaced("const $* x, $* o, $* old", '$', type),
                    replaced(R"(
  const i32 t = 128 * pl::block_x() + i32(pl::thread());
  $ v, w[3];
  pl::load_global(&v, x + t);
  w[0] = pl::atomic_exchange(o + t, v);
  w[1] = pl::atomic_compare_exchange<pl::acquire>(o + t, v, $(v * 3));
  w[2] = pl::atomic_compare_exchange<pl::release, pl::gpu>(o + t, $(1), $(77));
  PL_UNROLL for (i32 i = 0; i < 3; ++i) pl::store_global(old + 3 * t + i, w + i);)",
                             '$', type));
    c.grid = {4, 1, 1};
    c.array(data(type, 512, 3)).array(sums(type, 512, 4)).output(type, 3 * 512);
    all.push_back(std::move(c));
  }
  for (const std::string& type : terms) {
    Case c = kernel("atomic/red_add of " + type, replaced("const $* x, $* o", '$', type),
                    replaced(R"(
  const i32 t = 128 * pl::block_x() + i32(pl::thread());
  $ v;
  pl::load_global(&v, x + t);
  pl::red_add(o + t % 4, v);
  pl::red_add<pl::release, pl::cluster>(o + 4 + pl::block_x() / 2, v);  // by two blocks each
  pl::red_add<pl::release, pl::system_scope>(o + 6 + t % 2, v);)",
                             '$', type));
    c.grid = {4, 1, 1};
    c.cluster = {2, 1, 1};
    c.array(data(type, 512, 5)).array(sums(type, 8, 6));
    all.push_back(std::move(c));
  }
}

/// Vectors of each length on places that all blocks add to, behind elements that keep what they
/// are.
void add_vectors(std::vector<Case>& all) {
  for (const std::string type : {"f16", "bf16", "f32"})
    for (const std::string n : {"1", "2", "4", "8"}) {
      if (type == "f32" && n == "8") continue;
      Case c = kernel("atomic/red_add_vector of " + n + " " + type,
                      replaced("const $* x, $* o", '$', type),
                      replaced(replaced(R"(
  const i32 t = 128 * pl::block_x() + i32(pl::thread());
  $ v[#];
  pl::load_global<#>(v, x + t * #);
  pl::red_add_vector<#>(o + 8 + (t % 128) * #, v);
  pl::red_add_vector<#>(o + 8 + (127 - t % 128) * #, v, t % 3 == 0);)",
                                        '$', type),
                               '#', n));
      c.grid = {4, 1, 1};
      const auto elements = static_cast<std::size_t>(std::stoi(n));
      c.array(data(type, 512 * elements, 7)).array(sums(type, 16 + 128 * elements, 8));
      all.push_back(std::move(c));
    }
}

void add_shared_atomics(std::vector<Case>& all) {
  struct Operation {
    const char* name;
    const std::vector<std::string>& types;
  };
  for (const Operation& op : {Operation{"add", sums_of},
                              {"min", least_of},
                              {"max", greatest_of},
                              {"and", words},
                              {"or", words},
                              {"xor", words}}) {
    for (const std::string& type : op.types) {
      Case c = kernel("atomic/atomic_" + std::string(op.name) + "_shared of " + type,
                      replaced("const $* x, $* o", '$', type),
                      replaced(replaced(replaced(R"(
  const u32 t = pl::thread(), s = pl::shared_base();
  $ v, w[3];
  pl::load_global(&v, x + t);
  pl::store_shared(s + u32(sizeof($)) * t, &v);
  pl::store_shared(s + 2048 + u32(sizeof($)) * t, &v);
  pl::warpgroup_sync();
  pl::atomic_@_shared(s + u32(sizeof($)) * (t % #), v);
  w[1] = pl::atomic_@_shared<pl::acq_rel>(s + 2048 + u32(sizeof($)) * t, v);
  pl::warpgroup_sync();
  pl::load_shared(w, s + u32(sizeof($)) * t);
  pl::load_shared(w + 2, s + 2048 + u32(sizeof($)) * t);
  PL_UNROLL for (u32 i = 0; i < 3; ++i) pl::store_global(o + 3 * t + i, w + i);)",
                                                 '$', type),
                                        '@', op.name),
                               '#', elements(type)));
      c.shared_bytes = 4096;
      c.sanitized = true;
      c.array(data(type, 128, 7)).output(type, 3 * 128);
      all.push_back(std::move(c));
    }
  }
  for (const std::string& type : exchanged) {
    Case c = kernel("atomic/atomic_exchange_shared and compare_exchange_shared of " + type,
                    replaced("const $* x, $* o", '$', type),
                    replaced(R"(
  const u32 t = pl::thread(), a = pl::shared_base() + u32(sizeof($)) * t;
  $ v, w[4];
  pl::load_global(&v, x + t);
  pl::store_shared(a, &v);
  pl::warpgroup_sync();
  w[0] = pl::atomic_exchange_shared(a, $(v + 1));
  w[1] = pl::atomic_compare_exchange_shared(a, $(2), $(55));
  w[2] = pl::atomic_compare_exchange_shared<pl::acq_rel>(a, $(v + 1), $(66));
  pl::load_shared(w + 3, a);
  PL_UNROLL for (u32 i = 0; i < 4; ++i) pl::store_global(o + 4 * t + i, w + i);)",
                             '$', type));
    c.shared_bytes = 1024;
    c.sanitized = true;
    c.array(data(type, 128, 8)).output(type, 4 * 128);
    all.push_back(std::move(c));
  }
}

/// All threads of four blocks count in o[0..8), and each thread in elements of its own.
void add_bounded_counts(std::vector<Case>& all) {
  for (const std::string type : {"u32", "i32"})
    for (const std::string op : {"inc", "dec"}) {
      Case c = kernel("atomic/atomic_" + op + " of " + type,
                      replaced("const $* x, $* o, $* old", '$', type),
                      replaced(replaced(R"(
  const i32 t = 128 * pl::block_x() + i32(pl::thread());
  $ v, w;
  pl::load_global(&v, x + t);
  pl::atomic_@(o + t % 8, $(100));
  w = pl::atomic_@<pl::acq_rel, pl::block>(o + 8 + t, v);
  w = w + pl::atomic_@<pl::relaxed, pl::system_scope>(o + 8 + t, v);
  pl::store_global(old + t, &w);)",
                                        '$', type),
                               '@', op));
      c.grid = {4, 1, 1};
      c.array(data(type, 512, 1)).array(sums(type, 520, 2)).output(type, 512);
      all.push_back(std::move(c));
    }
}

/// Two blocks update the memory of each other, and both the first one's: as any block's, and the
/// first one as its own.
void add_cluster_atomics(std::vector<Case>& all) {
  for (const std::string op : {"add", "min", "max", "and", "or", "xor"})
    for (const std::string& type : words) {
      Case c = kernel("atomic/atomic_" + op + "_cluster of " + type,
                      replaced("const $* x, $* o, $* old", '$', type),
                      replaced(replaced(R"(
  const u32 t = pl::thread(), s = pl::shared_base(), b = pl::cluster_rank();
  const i32 n = 128 * pl::block_x() + i32(t);
  $ v, w;
  pl::load_global(&v, x + n);
  pl::store_shared(s + u32(sizeof($)) * t, &v);
  pl::store_shared(s + 2048 + u32(sizeof($)) * t, &v);
  pl::store_shared(s + 4096 + u32(sizeof($)) * t, &v);
  pl::cluster_sync();
  w = pl::atomic_@_cluster(pl::mapa(s, 1 - b) + u32(sizeof($)) * t, $(v + 3));
  pl::atomic_@_cluster<pl::acq_rel>(pl::mapa(s + 2048, 0) + u32(sizeof($)) * (t % 4), v);
  PL_UNROLL for (u32 i = 0; i < 4; ++i) {
    const u32 to = s + 4096 + u32(sizeof($)) * ((t + i) % 4);
    if (b == 0)
      pl::atomic_@_shared(to, $(v + i));
    else
      pl::atomic_@_cluster(pl::mapa(to, 0), $(v + i));
  }
  pl::store_global(old + n, &w);
  pl::cluster_sync();
  pl::load_shared(&v, s + u32(sizeof($)) * t);
  pl::store_global(o + n, &v);
  pl::load_shared(&v, s + 2048 + u32(sizeof($)) * t);
  pl::store_global(o + 256 + n, &v);
  pl::load_shared(&v, s + 4096 + u32(sizeof($)) * t);
  pl::store_global(o + 512 + n, &v);)",
                                        '$', type),
                               '@', op));
      c.grid = {2, 1, 1};
      c.cluster = {2, 1, 1};
      c.shared_bytes = 6144;
      c.array(data(type, 256, 7)).output(type, 768).output(type, 256);
      all.push_back(std::move(c));
    }
}

/// Sums of f32 by atomics flush subnormals on global memory and keep them in shared memory; copies
/// that add keep them.
void add_subnormals(std::vector<Case>& all) {
  Case c = kernel("atomic/sums of subnormal f32",
                  "const f32* x, f32* atomic, f32* red, f32* bulk, f32* shared, "
                  "PL_TENSOR_MAP(tensor)",
                  R"(
  const u32 t = pl::thread(), s = pl::shared_base();
  f32 v[4];
  if (t < 4) {
    pl::load_global(v, x + t);
    pl::atomic_add(atomic + t, v[0]);
    pl::red_add(red + t, v[0]);
    pl::load_global(v + 1, shared + t);
    pl::store_shared(s + 128 + 4 * t, v + 1);
    pl::atomic_add_shared(s + 128 + 4 * t, v[0]);
    pl::load_shared(v + 1, s + 128 + 4 * t);
    pl::store_global(shared + t, v + 1);
  }
  if (t == 4) {
    pl::load_global<4>(v, x);
    pl::store_shared<4>(s, v);
    pl::fence_async_shared();
    pl::bulk_reduce_add(bulk, s, 16);
    pl::tma_reduce<pl::reduce_add>(tensor, s, {0});
    pl::bulk_commit();
    pl::bulk_wait<0>();
  })");
  // Subnormal terms and sums, and a sum of normal numbers that is subnormal.
  using Words = std::vector<std::uint32_t>;
  const Words old = {1, 0x80000001, 0x00800000, 0x3f800000}, terms = {1, 0x80000001, 0x80c00000, 1};
  TensorMapSpec spec;
  spec.type = TensorMapType::f32;
  spec.extents = {4};
  spec.box = {4};
  c.shared_bytes = 256;
  c.input("f32", terms).in_out("f32", old).in_out("f32", old).in_out("f32", old);
  c.in_out("f32", old);
  c.mapped({.type = "f32", .bytes = Case::bytes_of(old), .output = true}, spec);
  all.push_back(std::move(c));
}

/// Block 1 reads what block 0 wrote, after a flag.
void add_messages(std::vector<Case>& all) {
  for (const char* type : {"u32", "i32", "u64", "f32", "f64"}) {
    Case c = kernel("atomic/load_acquire and store_release of " + std::string(type),
                    replaced("const $* x, $* message, $* flag, $* o", '$', type),
                    replaced(R"(
  const u32 t = pl::thread();
  $ v;
  if (pl::block_x() == 0) {
    pl::load_global(&v, x + t);
    pl::store_global(message + t, &v);
    pl::fence_gpu();
    pl::warpgroup_sync();
    if (t == 0) pl::store_release(flag, $(1));
  } else {
    while (pl::load_acquire(flag) != $(1)) {
    }
    pl::load_global(&v, message + t);
    pl::store_global(o + t, &v);
  })",
                             '$', type));
    c.grid = {2, 1, 1};
    c.array(data(type, 128, 9)).output(type, 128).output(type, 1).output(type, 128);
    all.push_back(std::move(c));
  }
}

/// Block 1 takes what block 0 and its own second warpgroup signalled; the rest is read by all.
void add_semaphores(std::vector<Case>& all) {
  Case c = kernel("atomic/semaphores between blocks and warpgroups",
                  "const i32* x, i32* message, i32* counts, i32* o",
                  R"(
  const u32 t = pl::thread(), wg = pl::warpgroup(), s = pl::shared_base() + 4 * wg;
  i32 v;
  if (pl::block_x() == 0) {
    if (wg == 0) {
      pl::load_global(&v, x + t);
      pl::store_global(message + t, &v);
      pl::semaphore_signal<pl::gpu, 2>(counts, 3);
    }
  } else if (wg == 0) {
    pl::semaphore_wait<pl::gpu, true, 2>(counts, 2);
    pl::semaphore_wait<pl::block, false, 2>(counts + 1, 1);
    pl::load_global(&v, message + t);
    v += pl::semaphore_read<pl::gpu, 2>(counts, s);
    pl::store_global(o + t, &v);
  } else {
    pl::semaphore_signal<pl::block, 2>(counts + 1, 1);
  })",
                  2);
  c.grid = {2, 1, 1};
  c.shared_bytes = 64;
  c.array(data("i32", 128, 10)).output("i32", 128);
  c.in_out("i32", std::vector<std::uint32_t>{0, 0}).output("i32", 128);
  all.push_back(std::move(c));
}

/// The last warp has the first turn; each reads the count for itself.
void add_semaphores_of_warps(std::vector<Case>& all) {
  Case c = kernel("atomic/semaphores between warps", "i32* counts, i32* o", R"(
  const u32 t = pl::thread(), w = pl::warp(), s = pl::shared_base() + 4 * w;
  pl::semaphore_wait<pl::block, false, 1, 1>(counts, i32(3 - w));
  const i32 n = pl::semaphore_read<pl::block, 1, 1>(counts, s);
  pl::store_global(o + t, &n);
  pl::semaphore_signal<pl::block, 1, 1>(counts, 1);)");
  c.shared_bytes = 64;
  c.in_out("i32", std::vector<std::uint32_t>{0}).output("i32", 128);
  all.push_back(std::move(c));
}

/// Numbers 0 to 15 of the buffer are its head; two warpgroups tell of two records each, one of
/// which has no room, and their second checks fail: one of them first.
void add_debug(std::vector<Case>& all) {
  Case c = kernel("atomic/what is told to the host", "const u32* x, u64* buffer", R"(
  const u32 t = pl::thread(), wg = pl::warpgroup(), s = pl::shared_base() + 4 * wg;
  u32 v;
  pl::load_global(&v, x + t);
  const i32 all = wg == 1 ? pl::debug_record_all<2>(buffer, 4, 128, s) : -1;
  pl::debug_put(buffer, all, i32(t), u64(v));
  if (wg == 1) {
    const i32 one = pl::debug_record(buffer, 6, 2);
    pl::debug_put(buffer, one, 0, 10);
    pl::debug_put(buffer, one, 1, 11);
    pl::debug_put(buffer, pl::debug_record(buffer, 8, 1000), 0, 12);
    pl::debug_put(buffer, pl::debug_fail(buffer, 1, true), 0, 13);
    pl::debug_put(buffer, pl::debug_fail(buffer, 2, false), 0, 14);
    pl::debug_put(buffer, pl::debug_fail(buffer, 3, false), 0, 15);
    pl::debug_put(buffer, pl::debug_record(buffer, 9, 1), 0, 16);
  })",
                  2);
  c.shared_bytes = 64;
  std::vector<std::uint64_t> buffer(200);
  buffer[0] = 16;
  buffer[1] = buffer.size();
  c.array(data("u32", 128, 3)).in_out("u64", buffer);
  all.push_back(std::move(c));
}

/// Two warpgroups tell of one event each, and of one for which there is no room. What clocks said
/// is taken back.
void add_profile(std::vector<Case>& all) {
  Case c = kernel("atomic/events of a profile", "u64* buffer", R"(
  const i64 at = pl::profile_begin<2, 128>(buffer, 1);
  i32 count = pl::profile_event(buffer, at, 0, 1, 6 + pl::warpgroup());
  count = pl::profile_event(buffer, at, count, 1, 9);
  pl::profile_end(buffer, at, count);
  if (at >= 0) {
    const u64 zero = 0;
    for (i32 i = 0; i < 5; ++i) pl::store_global(buffer + at + i, &zero);
    pl::store_global(buffer + at + 9, &zero);
  })",
                  2);
  c.in_out("u64", std::vector<std::uint64_t>(20));
  all.push_back(std::move(c));
}

}  // namespace

void add_atomics(std::vector<Case>& all) {
  add_semaphores(all);
  add_semaphores_of_warps(all);
  add_debug(all);
  add_profile(all);
  add_global_atomics(all);
  add_shared_atomics(all);
  add_bounded_counts(all);
  add_cluster_atomics(all);
  add_subnormals(all);
  add_messages(all);
  add_vectors(all);
}

}  // namespace palladium::conformance
