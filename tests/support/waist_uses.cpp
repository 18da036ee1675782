// A use of every function that emitted text may call.
#include "tests/support/waist_uses.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "palladium/error.hpp"

namespace palladium::test {
namespace {

const std::vector<std::string> floats = {"f16", "bf16", "f32", "f64"};
const std::vector<std::string> integers = {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"};
// What moves bits only is tried with one type of each size: ptxas is slow on all of them.
const std::vector<std::string> sizes = {"bool", "i8", "bf16", "f32", "u64"};

int bytes_of(const std::string& type) {
  if (type == "bool") return 1;
  if (type == "bf16") return 2;
  return std::stoi(type.substr(1)) / 8;
}

std::string replaced(std::string text, char what, const std::string& by) {
  for (std::size_t at; (at = text.find(what)) != text.npos;) text.replace(at, 1, by);
  return text;
}

/// For each type $: { $ x, y from memory; call; x to memory }.
WaistUse over_types(const std::string& name, const std::vector<std::string>& types,
                    const std::string& call) {
  std::string statement;
  for (const std::string& t : types) {
    statement += replaced(
        "{ $ x, y; pl::load_global(&x, static_cast<const $*>(m)); "
        "pl::load_global(&y, static_cast<const $*>(m) + 1); " +
            call + " pl::store_global(static_cast<$*>(m) + 2, &x); }\n  ",
        '$', t);
  }
  return {name, statement};
}

/// For each type $ and length # of at least `least` bytes: { $ v[#]; call }.
WaistUse over_vectors(const std::string& name, const std::string& call, int least = 1,
                      const std::vector<std::string>& types = sizes) {
  std::string statement;
  for (const std::string& t : types) {
    for (int n = 1; n * bytes_of(t) <= 16; n *= 2) {
      if (n * bytes_of(t) < least) continue;
      statement +=
          replaced(replaced("{ $ v[#]; for (auto& e : v) e = $(); " + call + " }\n  ", '$', t), '#',
                   std::to_string(n));
    }
  }
  return {name, statement};
}

void add_simple(std::vector<WaistUse>& all) {
  const std::vector<WaistUse> uses = {
      {"thread", "u += pl::thread();"},
      {"program_thread", "u += pl::program_thread();"},
      {"warpgroup", "u += pl::warpgroup();"},
      {"warp", "u += pl::warp();"},
      {"lane", "u += pl::lane();"},
      {"block_x", "u += pl::block_x();"},
      {"block_y", "u += pl::block_y();"},
      {"block_z", "u += pl::block_z();"},
      {"grid_x", "u += pl::grid_x();"},
      {"grid_y", "u += pl::grid_y();"},
      {"grid_z", "u += pl::grid_z();"},
      {"cluster_rank", "u += pl::cluster_rank();"},
      {"cluster_size", "u += pl::cluster_size();"},
      {"shared_base", "u += pl::shared_base();"},
      {"elect_one", "u += pl::elect_one();"},
      {"warp_uniform", "u += pl::warp_uniform(u);"},
      {"warpgroup_sync", "pl::warpgroup_sync(); pl::warpgroup_sync<1>();"},
      {"warpgroup_sync_in",
       "if (u > 512) { pl::warpgroup_sync_in<8>(); pl::warpgroup_sync_in<16>(); }"},
      {"program_sync", "if (u > 512) { pl::program_sync<8>(); pl::program_sync<16>(); }"},
      {"block_sync", "pl::block_sync();"},
      {"warp_sync", "pl::warp_sync();"},
      {"barrier_sync", "pl::barrier_sync<9>(128); pl::barrier_sync<15>(u);"},
      {"barrier_arrive", "pl::barrier_arrive<8>(256); pl::barrier_arrive<7>(u);"},
      {"vote_any", "u += pl::vote_any(u > 3);"},
      {"vote_all", "u += pl::vote_all(u > 3);"},
      {"vote_ballot", "u += pl::vote_ballot(u > 3);"},
      {"check", "pl::check(true, \"fine\");"},
      {"check_value", "pl::check_value(true, i64(u), \"fine {}\");"},
      {"check_range", "pl::check_range(0, i64(u & 7), 8, \"fine\");"},
      {"was_stored", "u += pl::was_stored(true);"},
      {"div_all", "pl::div_all<5>(f + 1, f + 6, f[0]); pl::div_all<12, true>(f, f, f[11]);"},
      {"to_all", "{ const i8 c[4] = {i8(u), 1, 2, 3}; pl::to_all<4>(h, c); pl::to_all<4>(b, c); "
                 "u8 d[2]; pl::to_all<2>(d, f); u += d[0] + d[1]; }"},
      {"add_all", "pl::add_all<2>(h, h + 2, h + 4); pl::add_all<8, 1, 0>(b, b, b + 8); "
                  "pl::add_all<3, 0, 1>(h, h, h + 4); pl::add_all<4>(f, f + 4, f + 8);"},
      {"sub_all", "pl::sub_all<2>(h, h + 2, h + 4); pl::sub_all<8, 1, 0>(b, b, b + 8); "
                  "pl::sub_all<3, 0, 1>(h, h, h + 4); pl::sub_all<4>(f, f + 4, f + 8);"},
      {"mul_all", "pl::mul_all<2>(h, h + 2, h + 4); pl::mul_all<8, 1, 0>(b, b, b + 8); "
                  "pl::mul_all<3, 0, 1>(h, h, h + 4); pl::mul_all<4>(f, f + 4, f + 8);"},
      {"max_all", "pl::max_all<2>(h, h + 2, h + 4); pl::max_all<8, 1, 0>(b, b, b + 8); "
                  "pl::max_all<3, 0, 1>(h, h, h + 4); pl::max_all<4>(f, f + 4, f + 8);"},
      {"min_all", "pl::min_all<2>(h, h + 2, h + 4); pl::min_all<8, 1, 0>(b, b, b + 8); "
                  "pl::min_all<3, 0, 1>(h, h, h + 4); pl::min_all<4>(f, f + 4, f + 8);"},
      {"div_by", "f[0] = pl::div_by(f[1], 3.0f, 0x1.5555555555558p-2);"},
      {"div_by_count", "f[0] = pl::div_by_count(f[1], f32(u >> 1));"},
      {"mul_wide", "u += u32(pl::mul_wide(i32(u), i32(u)) >> 32);"},
      {"pack_bytes", "{ const i8 c[4] = {i8(u), 1, 2, 3}; u += pl::pack_bytes(c); }"},
      {"pack", "u += pl::pack(h[0], h[1]) + pl::pack(b[0], b[1]) + pl::pack(u16(1), u16(2));"},
      {"unpack", "pl::unpack(h, u); pl::unpack(b + 2, u);"},
      {"bitcast", "u += pl::bitcast<u32>(f[0]); u += pl::bitcast<u16>(h[0]);"},
      {"mma_m16n8k16", "pl::mma_m16n8k16(f, h, h + 8); pl::mma_m16n8k16(f, b, b + 8);"},
      {"mma_m16n8k8", "pl::mma_m16n8k8(f, h, h + 8);"},
      {"mma_m16n8k8_tf32", "pl::mma_m16n8k8_tf32(f, f + 4, f + 8);"},
      {"mma_m16n8k16_f16", "{ u32 w[6] = {u, z}; pl::mma_m16n8k16_f16(f, w, w + 4); }"},
      {"mma_m16n8k16_bf16", "{ u32 w[6] = {u, z}; pl::mma_m16n8k16_bf16(f, w, w + 4); }"},
      {"mma_m16n8k8_f16", "{ u32 w[3] = {u, z}; pl::mma_m16n8k8_f16(f, w, w + 2); }"},
      {"mma_m16n8k32", "pl::mma_m16n8k32(i, c, c);"},
      {"round_to_tf32", "f[0] = pl::round_to_tf32(f[1]);"},
      {"mma_m16n8k32_integers",
       "{ u32 w[6] = {u, z}; pl::mma_m16n8k32_integers<i8, i8>(i, w, w + 4); "
       "pl::mma_m16n8k32_integers<i8, u8>(i, w, w + 4); "
       "pl::mma_m16n8k32_integers<u8, i8>(i, w, w + 4); "
       "pl::mma_m16n8k32_integers<u8, u8>(i, w, w + 4); }"},
      {"mma_m16n8k32_floats",
       "{ u32 w[6] = {u, z}; pl::mma_m16n8k32_floats<f8e4m3, f8e4m3>(f, w, w + 4); "
       "pl::mma_m16n8k32_floats<f8e4m3, f8e5m2>(f, w, w + 4); "
       "pl::mma_m16n8k32_floats<f8e5m2, f8e4m3>(f, w, w + 4); "
       "pl::mma_m16n8k32_floats<f8e5m2, f8e5m2>(f, w, w + 4); }"},
      {"fold",
       "f[0] = pl::fold(pl::Sum(), f[0], f[1]); h[0] = pl::fold(pl::Max(), h[0], h[1]);"
       "b[0] = pl::fold(pl::Min(), b[0], b[1]); i[0] = pl::fold(pl::Prod(), i[0], i[1]);"},
      {"reduce_lanes",
       "pl::reduce_lanes<5>(f, pl::Sum()); h[0] = pl::reduce_lanes<31>(h[0], pl::Max());"},
      {"reduce_warps",
       "pl::reduce_warps<3, 1, 1>(f, pl::shared_base(), pl::Sum()); "
       "h[0] = pl::reduce_warps<1, 0, 1>(h[0], pl::shared_base(), pl::Max());"},
      {"scan_registers",
       "{ f32 s[4]; pl::scan_registers<4, false>(f, s, pl::Sum()); f[0] += s[1]; }"
       "{ f16 s[8]; pl::scan_registers<2, true>(h, s, pl::Max()); h[0] = s[1]; }"},
      {"scan_lanes",
       "{ f32 s[4] = {f[0]}; pl::scan_lanes<4, 2, false, 21>(f, s, pl::Sum()); f[0] += s[0]; }"
       "{ f32 s[4] = {f[0]}; pl::scan_lanes<4, 1, true, 3>(f, s, pl::Prod()); f[0] += s[0]; }"
       "{ bf16 s[8] = {}; pl::scan_lanes<2, 1, true, 31>(b, s, pl::Min()); b[0] = s[3]; }"},
      {"scan_warps",
       "{ f32 s[4] = {f[0]}; "
       "pl::scan_warps<4, 1, false, 31, 3, 0, 1>(f, s, pl::shared_base(), pl::Sum()); "
       "f[0] += s[0]; }"
       "{ f16 s[8] = {}; "
       "pl::scan_warps<2, 4, true, 6, 2, 25, 1>(h, s, pl::shared_base(), pl::Max()); "
       "h[0] = s[0]; }"},
      {"dot_fma", "pl::dot_fma<1, 1, 4, 8, 16, false, true, f16>(f, z, 32, z, 32, 4);"},
      {"dot_mma_16816",
       "pl::dot_mma_16816<1, 2, 2, false, false, bf16, 16, 32, 1, 64, 2>(f, z, 0, z, 0);"
       "pl::dot_mma_16816<1, 1, 4, true, true, f16, 16, 128, 3, 32, 1>(f, z, 0, z, 0);"},
      {"dot_mma_16816_from_registers",
       "{ u32 w[8] = {u, z}; "
       "pl::dot_mma_16816_from_registers<1, 2, false, bf16, 32, 64, 2>(f, w, z, 0); "
       "pl::dot_mma_16816_from_registers<2, 1, true, f16, 16, 32, 1>(f, w, z, 0); }"},
      {"dot_mma_1688_from_registers",
       "{ u32 w[4] = {u, z}; "
       "pl::dot_mma_1688_from_registers<1, 2, false, f16, 16, 16, 0>(f, w, z, 0); }"},
      {"dot_mma_1688",
       "pl::dot_mma_1688<1, 1, 4, false, false, f16, 16, 32, 1, 16, 0>(f, z, 0, z, 0);"
       "pl::dot_mma_1688<1, 2, 2, true, true, f16, 16, 64, 2, 32, 1>(f, z, 0, z, 0);"},
      {"dot_mma_16832", "pl::dot_mma_16832<1, 1, 4, i8, u8, 32, 32, 1, 32, 1>(i, z, 0, z, 0);"},
      {"dot_mma_tf32",
       "pl::dot_mma_tf32<1, 1, 2, false, true>(f, z, 32, z, 32, 8);"
       "pl::dot_mma_tf32<1, 1, 2, true, false>(f, z, 32, z, 32, 8);"},
  };
  all.insert(all.end(), uses.begin(), uses.end());
}

void add_values(std::vector<WaistUse>& all) {
  std::vector<std::string> numbers = floats, types = {"bool"};
  numbers.insert(numbers.end(), integers.begin(), integers.end());
  types.insert(types.end(), numbers.begin(), numbers.end());
  const auto call = [](const std::string& name, const std::string& arguments) {
    return "x = pl::" + name + arguments + ";";
  };
  for (const char* n : {"shuffle_xor", "shuffle_idx", "shuffle_up", "shuffle_down"})
    all.push_back(over_types(n, sizes, call(n, "(x, 3)")));
  for (const char* n : {"min_value", "max_value", "out_of_bounds"})
    all.push_back(over_types(n, types, call(n, "<$>()")));
  for (const char* n : {"infinity", "nan"}) all.push_back(over_types(n, floats, call(n, "<$>()")));
  for (const char* n : {"add", "sub", "mul", "div", "rem", "min", "max"})
    all.push_back(over_types(n, numbers, call(n, "(x, y)")));
  for (const char* n : {"neg", "abs", "sign"})
    all.push_back(over_types(n, numbers, call(n, "(x)")));
  for (const char* n : {"shift_left", "shift_right", "shift_right_logical"})
    all.push_back(over_types(n, integers, call(n, "(x, y)")));
  for (const char* n : {"popcount", "clz"}) all.push_back(over_types(n, integers, call(n, "(x)")));
  for (const char* n : {"is_nan", "is_finite"})
    all.push_back(over_types(n, floats, "u += pl::" + std::string(n) + "(x);"));
  all.push_back(over_types("exp_nonpositive", floats, call("exp_nonpositive", "(x)")));
  std::string conversions;
  for (const std::string& t : types) conversions += "y = pl::to<$>(pl::to<" + t + ">(x)); x = y; ";
  all.push_back(over_types("to", types, conversions));
  all.back().statement +=
      over_types("to", {"f8e4m3", "f8e5m2"},
                 "y = pl::to<$>(pl::to<f32>(x)); x = pl::to<$>(pl::to<f64>(y)); "
                 "y = pl::to<$>(pl::to<i32>(x)); x = pl::to<$>(pl::to<bf16>(y));")
          .statement;
  for (const device::RowInfo& f : device::rows()) {
    if (f.ulp_f32 < 0) continue;
    const std::string name(f.name);
    const std::string arguments = name == "fma"                      ? "(x, y, x)"
                                  : name == "pow" || name == "atan2" ? "(x, y)"
                                                                     : "(x)";
    all.push_back(over_types(name, f.ulp_f64 < 0 ? std::vector<std::string>{"f32"} : floats,
                             call(name, arguments)));
  }
}

void add_memory(std::vector<WaistUse>& all) {
  const std::string seen = " u += v[0] == v[#-1];", p = "static_cast<const $*>(m)";
  const std::string again = " pl::store_shared<#>(s, v);";
  const std::vector<WaistUse> uses = {
      over_vectors("load_global", "pl::load_global<#>(v, " + p + ", u > 2);" + seen),
      over_vectors("load_global_nc", "pl::load_global_nc<#>(v, " + p + ");" + seen),
      over_vectors("load_global_nc_zero",
                   "pl::load_global_nc_zero<#>(v, " + p + ", u > 2);" + seen),
      over_vectors("load_global_filled",
                   "pl::load_global_filled<#>(v, " + p + ", u > 2, v[0]);" + seen),
      over_vectors("load_global_nc_filled",
                   "pl::load_global_nc_filled<#>(v, " + p + ", u > 2, v[0]);" + seen),
      over_vectors("load_global_part_filled",
                   "pl::load_global_part_filled<#>(v, " + p + ", i32(u) - 1, u > 2, v[0]);" + seen),
      over_vectors("load_global_nc_part_filled", "pl::load_global_nc_part_filled<#>(v, " + p +
                                                     ", i32(u) - 1, u > 2, v[0]);" + seen),
      over_vectors("store_global", "pl::store_global<#>(static_cast<$*>(m), v, u > 2);"),
      over_vectors("load_global_part",
                   "pl::load_global_part<#>(v, " + p + ", i32(u) - 1, u > 2);" + seen),
      over_vectors("load_global_nc_part",
                   "pl::load_global_nc_part<#>(v, " + p + ", i32(u) - 1);" + seen),
      over_vectors("store_global_part",
                   "pl::store_global_part<#>(static_cast<$*>(m), v, i32(u) - 1, u > 2);"),
      over_vectors("store_shared", "pl::store_shared<#>(s, v);"),
      over_vectors("load_shared", "pl::load_shared<#>(v, s);" + seen),
      over_vectors("load_shared_padded", "pl::load_shared_padded<#>(v, s, u > 2);" + seen),
      over_vectors("load_shared_skewed", "pl::load_shared_skewed<#>(v, s, 0u, u > 2);" + seen),
      over_vectors("load_resident", "pl::load_resident<#>(v, s, u > 2);" + seen),
      over_vectors("load_resident_part",
                   "pl::load_resident_part<#>(v, s, i32(u) - 1, u > 2);" + seen),
      // Others read what these leave unwritten.
      over_vectors("flush_resident",
                   "pl::flush_resident<#>(static_cast<$*>(m), s, u > 2);" + again),
      over_vectors("flush_resident_part",
                   "pl::flush_resident_part<#>(static_cast<$*>(m), s, i32(u) - 1, u > 2);" + again),
      over_vectors("load_cluster", "pl::load_cluster<#>(v, s);" + seen),
      over_vectors("store_cluster", "pl::store_cluster<#>(s, v);"),
      over_vectors("store_async", "pl::store_async<#>(s, v, z);", 4),
  };
  all.insert(all.end(), uses.begin(), uses.end());
  for (const char* n : {"x1", "x2", "x4"}) {
    for (const char* suffix : {"", "_trans"}) {
      const std::string load = std::string("ldmatrix_") + n + suffix;
      const std::string store = std::string("stmatrix_") + n + suffix;
      all.push_back({load, "pl::" + load + "(h, s); pl::" + load + "(b, s);"});
      const std::string words = std::string("ldmatrix_words_") + n + suffix;
      if (n != std::string("x1"))
        all.push_back({words, "{ u32 w[4]; pl::" + words + "(w, s); u += w[1]; }"});
      all.push_back({store, "pl::" + store + "(s, h); pl::" + store + "(s, b);"});
    }
  }
  all.push_back({"transpose_bytes", "pl::transpose_bytes(s, s);"});
}

void add_synchronization(std::vector<WaistUse>& all) {
  for (const char* n : {"cluster_sync", "cluster_arrive", "cluster_arrive_relaxed", "cluster_wait",
                        "fence_mbarrier_init", "fence_async_shared", "fence_async_global",
                        "fence_async", "fence_block", "fence_cluster", "fence_gpu", "fence_system",
                        "bulk_commit", "cp_async_commit", "wgmma_fence", "griddepcontrol_wait",
                        "griddepcontrol_launch_dependents"})
    all.push_back({n, "pl::" + std::string(n) + "();"});
  for (const char* n : {"bulk_wait", "bulk_wait_read", "cp_async_wait", "wgmma_wait"})
    all.push_back({n, "pl::" + std::string(n) + "<0>(); pl::" + n + "<3>();"});
  for (const char* n : {"mbarrier_arrive", "mbarrier_arrive_cluster", "mbarrier_arrive_remote"})
    all.push_back({n, "pl::" + std::string(n) + "(s); pl::" + n + "(s, u);"});
  for (const char* n : {"mbarrier_init", "mbarrier_expect_tx", "mbarrier_expect_tx_cluster",
                        "mbarrier_arrive_expect_tx", "mbarrier_arrive_expect_tx_cluster"})
    all.push_back({n, "pl::" + std::string(n) + "(s, 1024); pl::" + n + "(s, u);"});
  for (const char* n : {"mbarrier_wait", "mbarrier_wait_cluster"})
    all.push_back({n, "pl::" + std::string(n) + "(s, 1); pl::" + n + "(s, u);"});
  for (const char* n : {"mbarrier_test_wait", "mbarrier_try_wait"})
    all.push_back({n, "u += pl::" + std::string(n) + "(s, u); while (!pl::" + n + "(s, 0)) {}"});
  // Alone, ptxas completes the sequence and says so.
  all.push_back({"wgmma_commit", "pl::wgmma_fence(); pl::wgmma_commit(); pl::wgmma_wait<0>();"});
  all.push_back({"mbarrier_inval", "pl::mbarrier_inval(s);"});
  all.push_back({"mapa", "u += pl::mapa(s, 1) + pl::mapa(z, u);"});
  all.push_back({"setmaxnreg_inc", "pl::setmaxnreg_inc<240>();"});
  all.push_back({"setmaxnreg_dec", "pl::setmaxnreg_dec<40>();"});
  all.push_back({"delay", "pl::delay(1); pl::delay(i32(u));"});
  all.push_back({"name_shared",
                 "pl::name_shared(s, 16, \"tile\"); pl::name_shared(s, 16, \"stage\", i32(u));"});
  all.push_back({"matrix_descriptor", "u += u32(pl::matrix_descriptor(s, 16, 1024, 128) >> 30);"});
  all.push_back({"zero_of_iteration", "u += u32(pl::zero_of_iteration(i32(u)));"});
  all.push_back({"promote",
                 "f32 d[4] = {}; pl::promote<2, 0, 2, 0>(d, f, false); "
                 "pl::promote<2, 0, 2, 1>(d, f, true); pl::promote<2, 0, 2, 2>(d, f, true); "
                 "pl::promote<2, 0, 2, 3>(d, f, true); f[0] = d[2];"});
  all.push_back({"wgmma_apart", "pl::wgmma_apart();"});
  all.push_back({"wgmma_registers",
                 "pl::wgmma_registers(f); pl::wgmma_registers(i); u32 w[2] = {u, z}; "
                 "pl::wgmma_registers(w); u += w[0];"});
}

void add_copies(std::vector<WaistUse>& all) {
  std::string loads, multicasts, stores, reductions, prefetches;
  std::string at;
  for (int rank = 1; rank <= 5; ++rank) {
    at += rank == 1 ? "i32(u)" : ", " + std::to_string(8 * rank);
    for (const char* cache : {"", "<pl::evict_first>", "<pl::evict_last>"}) {
      loads += "pl::tma_load" + std::string(cache) + "(z, map, s, {" + at + "}); ";
      multicasts +=
          "pl::tma_load_multicast" + std::string(cache) + "(z, map, s, 3, {" + at + "}); ";
      stores += "pl::tma_store" + std::string(cache) + "(map, z, {" + at + "}); ";
    }
    for (const char* how : {"add", "min", "max", "and", "or", "xor", "inc", "dec"})
      reductions += "pl::tma_reduce<pl::reduce_" + std::string(how) + ">(map, z, {" + at + "}); ";
    prefetches += "pl::tma_prefetch(map, {" + at + "}); ";
  }
  std::string bulk_loads, bulk_multicasts, bulk_stores, sums;
  for (const char* cache : {"", "<pl::evict_first>", "<pl::evict_last>"}) {
    bulk_loads += "pl::bulk_load" + std::string(cache) + "(z, m, 16 * u, s); ";
    bulk_multicasts += "pl::bulk_load_multicast" + std::string(cache) + "(z, m, 16, s, u16(u)); ";
    bulk_stores += "pl::bulk_store" + std::string(cache) + "(m, z, 16 * u); ";
  }
  for (const char* t : {"i32", "u32", "u64", "f16", "bf16", "f32", "f64"})
    sums += "pl::bulk_reduce_add(static_cast<" + std::string(t) + "*>(m), z, 16); ";
  const std::vector<WaistUse> uses = {
      {"tma_load", loads},
      {"tma_load_multicast", multicasts},
      {"tma_store", stores},
      {"tma_reduce", reductions},
      {"tma_prefetch", prefetches},
      {"tma_prefetch_map", "pl::tma_prefetch_map(map);"},
      {"bulk_load", bulk_loads},
      {"bulk_load_multicast", bulk_multicasts},
      {"bulk_store", bulk_stores},
      {"bulk_reduce_add", sums},
      {"bulk_copy_cluster", "pl::bulk_copy_cluster(s, z, 16 * u, z + 8);"},
      {"bulk_prefetch", "pl::bulk_prefetch(m, 16 * u);"},
      {"cp_async",
       "pl::cp_async<4>(s, m); pl::cp_async<8>(s, m, u > 1); pl::cp_async<16>(s, m, u > 2);"},
      {"copy_async",
       "pl::copy_async<1>(s, static_cast<const f32*>(m)); "
       "pl::copy_async<4>(s, static_cast<const f16*>(m), u > 1); "
       "pl::copy_async<4>(s, static_cast<const u32*>(m), u > 1, u > 2);"},
      {"copy_async_zero",
       "pl::copy_async_zero<2>(s, static_cast<const f32*>(m)); "
       "pl::copy_async_zero<8>(s, static_cast<const bf16*>(m), u > 1, u > 2);"},
      {"copy_async_around",
       "pl::copy_async_around<8>(s, static_cast<const bf16*>(m), i32(u), u > 1, "
       "static_cast<const bf16*>(m));"},
      {"copy_async_around_zero",
       "pl::copy_async_around_zero<16>(s, static_cast<const i8*>(m), 16, true, "
       "static_cast<const i8*>(m));"},
      {"skew", "u += pl::skew(static_cast<const f16*>(m));"},
      {"cp_async_arrive", "pl::cp_async_arrive(z);"},
  };
  all.insert(all.end(), uses.begin(), uses.end());
}

void add_atomics(std::vector<WaistUse>& all, int arch) {
  const std::vector<std::string> terms = {"i32", "u32", "i64", "u64", "f32", "f64"};
  const std::vector<std::string> integers = {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"};
  std::vector<std::string> numbers = integers;
  numbers.insert(numbers.end(), {"f16", "bf16", "f32", "f64"});
  const std::string p = "static_cast<$*>(m)";
  // Every type relaxed, and all orders and scopes on one of them; the instructions that are put
  // together in one place need that once.
  const auto add = [&](const std::string& name, const std::vector<std::string>& types,
                       const std::string& result, const std::string& arguments,
                       const std::vector<std::string>& variants) {
    WaistUse use = over_types(name, types, result + "pl::" + name + arguments + ";");
    for (const std::string& v : variants)
      use.statement +=
          over_types(name, {"u32"}, result + "pl::" + name + v + arguments + ";").statement;
    all.push_back(use);
  };
  std::vector<const char*> all_scopes = {"block", "gpu", "system_scope"};
  if (arch >= 90) all_scopes.push_back("cluster");
  std::vector<std::string> orders, scopes, both, releases;
  for (const char* o : {"relaxed", "acquire", "release", "acq_rel"}) {
    orders.push_back(std::string("<pl::") + o + ">");
    for (const char* s : all_scopes) both.push_back(std::string("<pl::") + o + ", pl::" + s + ">");
  }
  for (const char* s : all_scopes) {
    scopes.push_back(std::string("<pl::") + s + ">");
    releases.push_back(std::string("<pl::release, pl::") + s + ">");
  }
  add("atomic_add", numbers, "x = ", "(" + p + ", y)", both);
  add("atomic_add_shared", numbers, "x = ", "(s, y)", orders);
  for (const char* n : {"min", "max", "and", "or", "xor", "exchange"}) {
    const bool compares = std::string_view(n).starts_with('m');
    const std::vector<std::string>& types = compares ? numbers : integers;
    add("atomic_" + std::string(n), types, "x = ", "(" + p + ", y)", {});
    add("atomic_" + std::string(n) + "_shared", types, "x = ", "(s, y)", {});
  }
  for (const char* n : {"inc", "dec"})
    add("atomic_" + std::string(n), {"u32", "i32"}, "x = ", "(" + p + ", y)", {});
  for (const char* n : {"add", "min", "max", "and", "or", "xor"})
    if (arch >= 90)
      add("atomic_" + std::string(n) + "_cluster", {"i32", "u32", "i64", "u64"},
          "x = ", "(pl::mapa(s, 0), y)", {});
  add("atomic_compare_exchange", integers, "x = ", "(" + p + ", x, y)", both);
  add("atomic_compare_exchange_shared", integers, "x = ", "(s, x, y)", orders);
  add("red_add", terms, "", "(" + p + ", y)", releases);
  all.push_back(over_vectors("red_add_vector",
                             "pl::red_add_vector<#>(static_cast<$*>(m), v, u > 2);", 1,
                             {"f16", "bf16", "f32"}));
  add("load_acquire", terms, "x = ", "(" + p + ")", scopes);
  add("store_release", terms, "", "(" + p + ", y)", scopes);
  const std::string q = "static_cast<i32*>(m)";
  all.push_back({"semaphore_signal", "pl::semaphore_signal<pl::gpu, 1>(" + q +
                                         ", 1);"
                                         "pl::semaphore_signal<pl::block, 1>(" +
                                         q + ", 2);" + "pl::semaphore_signal<pl::gpu, 1, 1>(" + q +
                                         ", 1);"});
  all.push_back({"semaphore_wait", "pl::semaphore_wait<pl::gpu, false, 1>(" + q +
                                       ", 1);"
                                       "pl::semaphore_wait<pl::block, true, 1>(" +
                                       q + ", 1);" + "pl::semaphore_wait<pl::block, false, 1, 1>(" +
                                       q + ", 1);"});
  const std::string d = "static_cast<u64*>(m)";
  all.push_back({"debug_record", "i[0] = pl::debug_record(" + d + ", 0u, 3);" +
                                     "i[1] = pl::debug_record<1>(" + d + ", 0u, 3);"});
  all.push_back(
      {"debug_record_all", "i[0] = pl::debug_record_all<1>(" + d + ", 0u, 3, pl::shared_base());"});
  all.push_back({"debug_fail", "i[0] = pl::debug_fail(" + d + ", 0u, u > 3);"});
  const std::string begun = "{ const i64 at = pl::profile_begin<1, 128>(" + d + ", 8); ";
  all.push_back({"profile_begin", begun + "i[0] = i32(at); }"});
  all.push_back(
      {"profile_event", begun + "i[0] = pl::profile_event(" + d + ", at, i[0], 8, 3u); }"});
  all.push_back({"profile_end", begun + "pl::profile_end(" + d + ", at, i[0]); }"});
  all.push_back({"debug_put", "pl::debug_put(" + d + ", i[0], 0, u64(u), u > 3);"});
  all.push_back({"semaphore_read",
                 "i[0] = pl::semaphore_read<pl::block, 1>(" + q + ", pl::shared_base());" +
                     "i[1] = pl::semaphore_read<pl::block, 1, 1>(" + q + ", pl::shared_base());"});
}

}  // namespace

std::vector<WaistUse> waist_uses(int arch) {
  std::vector<WaistUse> all;
  add_simple(all);
  add_values(all);
  add_memory(all);
  add_synchronization(all);
  add_copies(all);
  add_atomics(all, arch);
  return all;
}

const device::RowInfo& waist_function(std::string_view name) {
  if (const auto row = device::row_named(name)) return device::info(*row);
  throw InternalError("the waist has no function " + std::string(name));
}

bool needs_no_partner(const device::RowInfo& f) {
  const std::set<std::string_view> files = {"ids",  "warp",       "memory",  "types", "convert",
                                            "mma",  "arithmetic", "math",    "fence", "atomic",
                                            "part", "reduce",     "control", "dot"};
  return files.contains(f.file) && !f.name.starts_with("setmaxnreg");
}

std::string waist_kernel(const std::string& name, const std::string& statements) {
  return "PL_KERNEL(128) " + name +
         "(void* m, PL_TENSOR_MAP(map)) {\n"
         "  const u32 z = pl::shared_base(), s = z + 16 * pl::thread();\n"
         "  u32 u = pl::lane();\n  f32 f[12] = {};\n  f16 h[12] = {};\n  bf16 b[12] = {};\n"
         "  i32 i[4] = {};\n  i8 c[16] = {};\n  " +
         statements +
         "\n  PL_UNROLL for (int k = 0; k < 12; ++k) u += u32(f[k]) + h[k].bits + b[k].bits;\n"
         "  u += i[0] + i[1] + i[2] + i[3] + c[0];\n"
         "  pl::store_global(static_cast<u32*>(m), &u);\n}\n";
}

}  // namespace palladium::test
