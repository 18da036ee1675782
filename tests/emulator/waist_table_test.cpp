#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/device/library.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "tests/emulator/waist_kernels.hpp"

using namespace palladium;

namespace {

// The text of a half without its namespace `detail` and without preprocessor lines.
std::string public_text(device::Half half) {
  std::string everything = "//";
  for (const device::Function& f : device::functions()) everything += " pl::" + std::string(f.name);
  const std::string text = device::prelude(half, everything);
  std::string result;
  int depth_of_detail = 0, depth = 0;
  bool in_macro = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at) + "\n";
    at = end + 1;
    if (line.find("namespace detail {") != line.npos && depth_of_detail == 0) {
      depth_of_detail = depth + 1;
    }
    for (char c : line) depth += (c == '{') - (c == '}');
    if (depth_of_detail == 0 && !in_macro && line[0] != '#') result += line;
    in_macro = (in_macro || line[0] == '#') && line.ends_with("\\\n");
    if (depth < depth_of_detail) depth_of_detail = 0;
  }
  return result;
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Names declared by "PL_FN <type> name(", and the first arguments of the macros that make more.
std::set<std::string> declared(const std::string& text) {
  std::set<std::string> names;
  const auto name_before = [&](std::size_t end) {
    std::size_t begin = end;
    while (begin > 0 && is_name(text[begin - 1])) --begin;
    return text.substr(begin, end - begin);
  };
  for (std::size_t at = text.find("PL_FN "); at != text.npos; at = text.find("PL_FN ", at + 1)) {
    const std::string name = name_before(text.find('(', at));
    if (!name.empty()) names.insert(name);
  }
  for (std::string macro :
       {"\nPL_UNARY(", "\nPL_HALF_UNARY(", "\nPL_HALF_BINARY(", "\nPL_LDMATRIX("}) {
    for (std::size_t at = text.find(macro); at != text.npos; at = text.find(macro, at + 1)) {
      std::size_t end = at + macro.size();
      while (is_name(text[end])) ++end;
      const std::string argument = text.substr(at + macro.size(), end - at - macro.size());
      // The GPU half makes ldmatrix_x1, x2 and x4 at once from a suffix.
      if (macro == "\nPL_LDMATRIX(" && !argument.starts_with("ldmatrix")) {
        for (const char* n : {"1", "2", "4"})
          names.insert("ldmatrix_x" + std::string(n) + argument);
      } else {
        names.insert(argument);
      }
    }
  }
  return names;
}

// One statement per function of the waist, on registers of every type.
struct Use {
  std::string name, statement;
};
std::vector<Use> uses() {
  std::vector<Use> all = {
      {"thread", "u += pl::thread();"},
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
      {"warpgroup_sync", "pl::warpgroup_sync(); pl::warpgroup_sync<1>();"},
      {"block_sync", "pl::block_sync();"},
      {"warp_sync", "pl::warp_sync();"},
      {"vote_any", "u += pl::vote_any(u > 3);"},
      {"vote_all", "u += pl::vote_all(u > 3);"},
      {"vote_ballot", "u += pl::vote_ballot(u > 3);"},
      {"check", "pl::check(true, \"fine\");"},
      {"pack", "u += pl::pack(h[0], h[1]) + pl::pack(b[0], b[1]) + pl::pack(u16(1), u16(2));"},
      {"unpack", "pl::unpack(h, u); pl::unpack(b + 2, u);"},
      {"bitcast", "u += pl::bitcast<u32>(f[0]); u += pl::bitcast<u16>(h[0]);"},
      {"mma_m16n8k16", "pl::mma_m16n8k16(f, h, h + 8); pl::mma_m16n8k16(f, b, b + 8);"},
      {"mma_m16n8k8", "pl::mma_m16n8k8(f, h, h + 8);"},
      {"mma_m16n8k8_tf32", "pl::mma_m16n8k8_tf32(f, f + 4, f + 8);"},
      {"mma_m16n8k32", "pl::mma_m16n8k32(i, c, c);"},
      {"fold",
       "f[0] = pl::fold(pl::Sum(), f[0], f[1]); h[0] = pl::fold(pl::Max(), h[0], h[1]);"
       "b[0] = pl::fold(pl::Min(), b[0], b[1]);"},
      {"reduce_lanes",
       "pl::reduce_lanes<4, 5>(f, pl::Sum()); pl::reduce_lanes<2, 31>(h, pl::Max());"},
      {"reduce_warps", "pl::reduce_warps<2, 3, 1, 1>(f, pl::shared_base(), pl::Sum());"},
      {"dot_fma", "pl::dot_fma<1, 1, 2, false, true, f16>(f, z, 32, z, 32, 4);"},
      {"dot_mma_16816",
       "pl::dot_mma_16816<1, 1, 2, false, false, bf16>(f, z, 32, z, 32, 16);"
       "pl::dot_mma_16816<1, 1, 4, true, true, f16>(f, z, 32, z, 32, 16);"},
      {"dot_mma_1688",
       "pl::dot_mma_1688<1, 1, 4, false, false>(f, z, 32, z, 32, 8);"
       "pl::dot_mma_1688<1, 1, 2, true, true>(f, z, 32, z, 32, 8);"},
      {"dot_mma_tf32",
       "pl::dot_mma_tf32<1, 1, 2, false, true>(f, z, 32, z, 32, 8);"
       "pl::dot_mma_tf32<1, 1, 2, true, false>(f, z, 32, z, 32, 8);"},
  };
  const std::vector<std::string> floats = {"f16", "bf16", "f32", "f64"};
  const std::vector<std::string> integers = {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"};
  std::vector<std::string> numbers = floats, types = {"bool"};
  numbers.insert(numbers.end(), integers.begin(), integers.end());
  types.insert(types.end(), numbers.begin(), numbers.end());
  // What moves bits only is tried with one type of each size: ptxas is slow on all of them.
  const std::vector<std::string> sizes = {"bool", "i8", "bf16", "f32", "u64"};
  const std::map<std::string, int> bytes = {
      {"bool", 1}, {"i8", 1},  {"u8", 1},  {"i16", 2}, {"u16", 2}, {"f16", 2}, {"bf16", 2},
      {"i32", 4},  {"u32", 4}, {"f32", 4}, {"i64", 8}, {"u64", 8}, {"f64", 8}};
  // For each type T: { T x, y from memory; x = call; back to memory }.
  const auto add = [&](const std::string& name, const std::vector<std::string>& over,
                       const std::string& call) {
    std::string statement;
    for (const std::string& t : over) {
      std::string text = call;
      for (std::size_t at; (at = text.find("$")) != text.npos;) text.replace(at, 1, t);
      statement += "{ " + t + " x, y; pl::load_global(&x, static_cast<const " + t +
                   "*>(m)); pl::load_global(&y, static_cast<const " + t + "*>(m) + 1); " + text +
                   " pl::store_global(static_cast<" + t + "*>(m) + 2, &x); }\n  ";
    }
    all.push_back({name, statement});
  };
  for (const char* n : {"shuffle_xor", "shuffle_idx", "shuffle_up", "shuffle_down"}) {
    add(n, sizes, "x = pl::" + std::string(n) + "(x, 3);");
  }
  for (const char* n : {"min_value", "max_value", "out_of_bounds"}) {
    add(n, types, "x = pl::" + std::string(n) + "<$>();");
  }
  for (const char* n : {"infinity", "nan"}) add(n, floats, "x = pl::" + std::string(n) + "<$>();");
  for (const char* n : {"add", "sub", "mul", "div", "rem", "min", "max"}) {
    add(n, numbers, "x = pl::" + std::string(n) + "(x, y);");
  }
  for (const char* n : {"neg", "abs", "sign"})
    add(n, numbers, "x = pl::" + std::string(n) + "(x);");
  for (const char* n : {"shift_left", "shift_right", "shift_right_logical"}) {
    add(n, integers, "x = pl::" + std::string(n) + "(x, y);");
  }
  for (const char* n : {"popcount", "clz"}) add(n, integers, "x = pl::" + std::string(n) + "(x);");
  for (const char* n : {"is_nan", "is_finite"})
    add(n, floats, "u += pl::" + std::string(n) + "(x);");
  std::string conversions;
  for (const std::string& t : types) conversions += "y = pl::to<$>(pl::to<" + t + ">(x)); x = y; ";
  add("to", types, conversions);
  for (const device::Function& f : device::functions()) {
    if (f.ulp_f32 < 0) continue;
    const std::string name(f.name);
    const std::string arguments = name == "fma"                      ? "(x, y, x)"
                                  : name == "pow" || name == "atan2" ? "(x, y)"
                                                                     : "(x)";
    add(name, f.ulp_f64 < 0 ? std::vector<std::string>{"f32"} : floats,
        "x = pl::" + name + arguments + ";");
  }
  const auto vectors = [&](const std::string& name, const std::string& call) {
    std::string statement;
    for (const std::string& t : sizes) {
      for (int n = 1; n * bytes.at(t) <= 16; n *= 2) {
        std::string text = call;
        for (std::size_t at; (at = text.find("$")) != text.npos;) text.replace(at, 1, t);
        for (std::size_t at; (at = text.find("#")) != text.npos;)
          text.replace(at, 1, std::to_string(n));
        statement += "{ " + t + " v[#]; for (auto& e : v) e = " + t + "(); " + text + " }\n  ";
        for (std::size_t at; (at = statement.find("#")) != text.npos;) {
          statement.replace(at, 1, std::to_string(n));
        }
      }
    }
    all.push_back({name, statement});
  };
  vectors("load_global",
          "pl::load_global<#>(v, static_cast<const $*>(m), u > 2); u += v[0] == v[#-1];");
  vectors("load_global_nc",
          "pl::load_global_nc<#>(v, static_cast<const $*>(m)); u += v[0] == v[#-1];");
  vectors("store_global", "pl::store_global<#>(static_cast<$*>(m), v, u > 2);");
  vectors("load_global_part",
          "pl::load_global_part<#>(v, static_cast<const $*>(m), i32(u) - 1, u > 2); "
          "u += v[0] == v[#-1];");
  vectors(
      "load_global_nc_part",
      "pl::load_global_nc_part<#>(v, static_cast<const $*>(m), i32(u) - 1); u += v[0] == v[#-1];");
  vectors("store_global_part",
          "pl::store_global_part<#>(static_cast<$*>(m), v, i32(u) - 1, u > 2);");
  vectors("store_shared", "pl::store_shared<#>(s, v);");
  vectors("load_shared", "pl::load_shared<#>(v, s); u += v[0] == v[#-1];");
  vectors("load_shared_padded", "pl::load_shared_padded<#>(v, s, u > 2); u += v[0] == v[#-1];");
  for (const char* n : {"x1", "x2", "x4"}) {
    for (const char* suffix : {"", "_trans"}) {
      const std::string name = std::string("ldmatrix_") + n + suffix;
      all.push_back({name, "pl::" + name + "(h, s); pl::" + name + "(b, s);"});
    }
  }
  return all;
}

// A kernel of the given statements, between what they need.
std::string kernel(const std::string& name, const std::string& statements) {
  return "PL_KERNEL(128) " + name +
         "(void* m) {\n"
         "  const u32 z = pl::shared_base(), s = z + 16 * pl::thread();\n"
         "  u32 u = 0;\n  f32 f[12] = {};\n  f16 h[12] = {};\n  bf16 b[12] = {};\n"
         "  i32 i[4] = {};\n  i8 c[16] = {};\n  " +
         statements +
         "\n  PL_UNROLL for (int k = 0; k < 12; ++k) u += u32(f[k]) + h[k].bits + b[k].bits;\n"
         "  u += i[0] + i[1] + i[2] + i[3] + c[0];\n"
         "  pl::store_global(static_cast<u32*>(m), &u);\n}\n";
}

// Every function that `arch` has: one kernel each, since one of all takes ptxas a minute.
std::string kernels(int arch) {
  std::map<std::string, int> first_arch;
  for (const device::Function& f : device::functions()) {
    first_arch[std::string(f.name)] = f.first_arch;
  }
  std::string text;
  for (const Use& use : uses()) {
    if (first_arch.at(use.name) <= arch) text += kernel("try_" + use.name, use.statement);
  }
  return text;
}

}  // namespace

TEST_CASE("both halves of the device library define exactly the functions of the table") {
  std::set<std::string> table;
  for (const device::Function& f : device::functions()) {
    CHECK(table.insert(std::string(f.name)).second);
  }
  CHECK(declared(public_text(device::Half::cuda)) == table);
  CHECK(declared(public_text(device::Half::cpu)) == table);
}

TEST_CASE("every function of the table is tried") {
  std::set<std::string> table, tried;
  for (const device::Function& f : device::functions()) table.insert(std::string(f.name));
  for (const Use& use : uses()) tried.insert(use.name);
  CHECK(tried == table);
}

TEST_CASE("the emulator runs every function of the table, compiled by g++ or clang++") {
  // Shared memory is written before it is read, here as in every kernel.
  std::string all =
      "{ u32 zero[4] = {}; pl::store_shared<4>(s, zero); }\n  pl::warpgroup_sync();\n  ";
  for (const Use& use : uses()) all += use.statement + "\n  ";
  REQUIRE_FALSE(test::host_compilers().empty());
  for (const std::string& compiler : test::host_compilers()) {
    const test::HostCompiler chosen(compiler.c_str());
    INFO(compiler);
    const std::string text = kernel("k", all) + "PL_EXPORT(k)\n// " + compiler + "\n";
    std::vector<std::uint8_t> memory(4096, 1);
    void* p = memory.data();
    void* parameters[] = {&p};
    const emulator::Buffer buffers[] = {test::buffer("memory", memory, true)};
    CHECK_NOTHROW(emulator::run({.kernel = "k",
                                 .text = text,
                                 .shared_bytes = 2048,
                                 .parameters = parameters,
                                 .buffers = buffers}));
  }
}

// An architecture each, so that they may run at the same time.
static void nvrtc_accepts_everything(const char* name, int arch) {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  const std::string text = kernels(arch);
  const nvrtc::Result result =
      nvrtc::compile({.source = device::prelude(device::Half::cuda, text) + text, .arch = name});
  INFO(result.log);
  REQUIRE(result.ok);
  CHECK(result.log.find("kernel.cu") == std::string::npos);  // no warning
}

TEST_CASE("NVRTC and ptxas accept every function that sm_75 has") {
  nvrtc_accepts_everything("sm_75", 75);
}
TEST_CASE("NVRTC and ptxas accept every function that sm_80 has") {
  nvrtc_accepts_everything("sm_80", 80);
}
TEST_CASE("NVRTC and ptxas accept every function that sm_90a has") {
  nvrtc_accepts_everything("sm_90a", 90);
}
TEST_CASE("NVRTC and ptxas accept every function that sm_100a has") {
  nvrtc_accepts_everything("sm_100a", 100);
}

TEST_CASE("a prelude holds what its kernel names and little else") {
  const std::string small =
      device::prelude(device::Half::cuda, "pl::thread(); pl::load_global(a, b);");
  CHECK(small.find("load_global(") != small.npos);
  CHECK(small.find("mma.sync") == small.npos);
  CHECK(small.find("cbrt") == small.npos);
  CHECK(small.find("\n//") == small.npos);
  CHECK(small.ends_with("#line 1 \"kernel.cu\"\n"));
  CHECK(device::prelude(device::Half::cuda, "pl::exp(x)").find("cbrt") != small.npos);
  CHECK(device::prelude(device::Half::cuda, "pl::expect(x)").find("cbrt") == small.npos);
}
