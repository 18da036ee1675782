// Checks of ids, barriers, memory accesses and control.
#include "tests/conformance/case.hpp"

namespace palladium::conformance {
namespace {

/// A type and how many elements of it one access moves.
struct Vector {
  const char* type;
  int n;
};
constexpr Vector vectors[] = {{"u8", 1},   {"u8", 2},   {"u8", 4},  {"u8", 8},  {"u8", 16},
                              {"bool", 1}, {"bf16", 1}, {"f16", 2}, {"i16", 4}, {"bf16", 8},
                              {"f32", 1},  {"i32", 2},  {"f32", 4}, {"u64", 1}, {"f64", 2}};

std::string over_vectors(const std::string& text) {
  std::string all;
  for (const Vector& v : vectors)
    all += replaced(replaced(text, '$', v.type), '#', std::to_string(v.n));
  return all;
}

void add_ids(std::vector<Case>& all) {
  const std::string body = R"(
  const u32 t = pl::thread() + 128 * pl::warpgroup();
  const i32 b = pl::block_x() + pl::grid_x() * (pl::block_y() + pl::grid_y() * pl::block_z());
  const u32 elected = pl::vote_ballot(pl::elect_one());
  const u32 seen[16] = {pl::thread(), pl::warpgroup(), pl::warp(), pl::lane(),
                        u32(pl::block_x()), u32(pl::block_y()), u32(pl::block_z()),
                        u32(pl::grid_x()), u32(pl::grid_y()), u32(pl::grid_z()),
                        pl::cluster_rank(), pl::cluster_size(), pl::warp_uniform(t + 7),
                        pl::shared_base() % 1024, u32(pl::popcount(elected)), 1};
  PL_UNROLL for (i32 i = 0; i < 16; i += 4) pl::store_global<4>(o + 16 * (256 * b + t) + i, seen + i);
)";
  for (const bool clusters : {false, true}) {
    Case c =
        kernel(clusters ? "ids/in clusters of 2x1x2" : "ids/without clusters", "u32* o", body, 2);
    c.grid = {4, 3, 2};
    if (clusters) c.cluster = {2, 1, 2};
    c.shared_bytes = 2048;
    c.output("u32", 16 * 256 * 24);
    all.push_back(std::move(c));
  }
}

void add_barriers(std::vector<Case>& all) {
  const auto add = [&](const std::string& name, const std::string& body) {
    Case c =
        kernel("barrier/" + name, "const u32* x, u32* o",
               "  const u32 g = pl::warpgroup(), t = pl::thread(), a = 128 * g + t;\n"
               "  const u32 s = pl::shared_base();\n  u32 v;\n  pl::load_global(&v, x + a);\n" +
                   body + "  pl::store_global(o + a, &v);",
               2);
    c.shared_bytes = 4096;
    c.sanitized = true;
    c.input("u32", random_words(256, 1)).output("u32", 256);
    all.push_back(std::move(c));
  };
  add("warpgroup_sync",
      "  pl::store_shared(s + 4 * a, &v);\n  pl::warpgroup_sync<2>();\n"
      "  pl::load_shared(&v, s + 4 * (128 * g + (t + 37) % 128));\n");
  add("warpgroup_sync_in",
      "  pl::store_shared(s + 4 * a, &v);\n  pl::warpgroup_sync_in<8>();\n"
      "  pl::load_shared(&v, s + 4 * (128 * g + (t + 37) % 128));\n  pl::program_sync<8>();\n");
  add("program_sync",
      "  pl::store_shared(s + 4 * pl::program_thread(), &v);\n  pl::program_sync<8>();\n"
      "  pl::load_shared(&v, s + 4 * ((a + 133) % 256));\n");
  add("block_sync",
      "  pl::store_shared(s + 4 * a, &v);\n  pl::block_sync();\n"
      "  pl::load_shared(&v, s + 4 * ((a + 133) % 256));\n");
  add("warp_sync",
      "  pl::store_shared(s + 4 * a, &v);\n  pl::warp_sync();\n"
      "  pl::load_shared(&v, s + 4 * (a / 32 * 32 + (a + 5) % 32));\n");
  add("barrier_sync and barrier_arrive",
      "  if (g == 0) {\n    pl::store_shared(s + 4 * t, &v);\n    pl::barrier_arrive<8>(256);\n"
      "    pl::barrier_sync<9>(256);\n    pl::load_shared(&v, s + 512 + 4 * (127 - t));\n"
      "  } else {\n    pl::barrier_sync<8>(256);\n    u32 w;\n    pl::load_shared(&w, s + 4 * (127 "
      "- t));\n"
      "    v += w;\n    pl::store_shared(s + 512 + 4 * t, &v);\n    pl::barrier_arrive<9>(256);\n  "
      "}\n");
  all.back().sanitized = false;  // compute-sanitizer's racecheck sees no order behind an arrival
  add("barrier_sync of half the warps",
      "  if (t < 64) {\n    pl::store_shared(s + 512 * g + 4 * t, &v);\n"
      "    pl::barrier_sync<10>(128);\n"
      "    pl::load_shared(&v, s + 512 * (1 - g) + 4 * (63 - t));\n  }\n");
}

void add_global(std::vector<Case>& all) {
  const auto add = [&](const std::string& name, const std::string& statement) {
    // A buffer of 4 KiB for each vector type, in and out.
    Case c = kernel("memory/" + name, "const u8* x, u8* o",
                    "  const u32 t = pl::thread();\n" + over_vectors(statement));
    const auto words = random_words(15 * 1024, 2);
    std::vector<std::byte> bytes = Case::bytes_of(words);
    for (std::size_t i = 5 * 4096; i < 6 * 4096; ++i) bytes[i] &= std::byte{1};  // bools
    c.array({.type = "u8", .bytes = bytes}).output("u8", 15 * 4096);
    c.sanitized = true;
    all.push_back(std::move(c));
  };
  const std::string next = " x += 4096; o += 4096; }\n";
  const std::string in = "reinterpret_cast<const $*>(x)", out = "reinterpret_cast<$*>(o)";
  for (const char* n : {"load_global", "load_global_nc", "load_global_nc_zero"}) {
    add(n, "  { $ v[#]; pl::" + std::string(n) + "<#>(v, " + in +
               " + # * t, t % 5 != 3); pl::store_global<#>(" + out + " + # * (127 - t), v);" +
               next);
  }
  add("store_global", "  { $ v[#]; pl::load_global<#>(v, " + in +
                          " + # * t); pl::store_global<#>(" + out +
                          " + # * (t ^ 5), v, t % 7 != 2);" + next);
  for (const char* n : {"load_global_part", "load_global_nc_part"}) {
    add(n, "  { $ v[#]; pl::" + std::string(n) + "<#>(v, " + in +
               " + # * t, i32(t % 18) - 1, t % 5 != 3); pl::store_global<#>(" + out +
               " + # * t, v);" + next);
  }
  const std::string some = "  { $ v[#], y; pl::load_global<1>(&y, " + in + " + 127 - t);";
  for (const char* n : {"load_global_filled", "load_global_nc_filled"})
    add(n, some + " pl::" + n + "<#>(v, " + in + " + # * t, t % 5 != 3, y); pl::store_global<#>(" +
               out + " + # * t, v);" + next);
  for (const char* n : {"load_global_part_filled", "load_global_nc_part_filled"})
    add(n, some + " pl::" + n + "<#>(v, " + in +
               " + # * t, i32(t % 18) - 1, t % 5 != 3, y); pl::store_global<#>(" + out +
               " + # * t, v);" + next);
  add("store_global_part", "  { $ v[#]; pl::load_global<#>(v, " + in +
                               " + # * t); pl::store_global_part<#>(" + out +
                               " + # * t, v, i32(t % 18) - 1, t % 5 != 3);" + next);
}

// Parts of blocks in shared memory, to registers and to arrays.
void add_resident(std::vector<Case>& all) {
  const std::string at = "s + # * u32(sizeof($)) * ", out = "reinterpret_cast<$*>(o) + # * t";
  const auto add = [&](const std::string& name, const std::string& statement) {
    Case c =
        kernel("memory/" + name, "const u8* x, u8* o",
               "  const u32 t = pl::thread(), s = pl::shared_base();\n" +
                   over_vectors(
                       "  { $ v[#]; pl::load_global<#>(v, reinterpret_cast<const $*>(x) + # * t);\n"
                       "    pl::store_shared<#>(" +
                       at + "t, v);\n    pl::warpgroup_sync();\n    " + statement +
                       "\n    pl::warpgroup_sync(); x += 4096; o += 4096; }\n"));
    std::vector<std::byte> bytes = Case::bytes_of(random_words(15 * 1024, 7));
    for (std::size_t i = 5 * 4096; i < 6 * 4096; ++i) bytes[i] &= std::byte{1};
    c.array({.type = "u8", .bytes = bytes}).output("u8", 15 * 4096);
    c.shared_bytes = 2048;
    c.sanitized = true;
    all.push_back(std::move(c));
  };
  add("load_resident_part", "pl::load_resident_part<#>(v, " + at +
                                "(t ^ 9), i32(t % 18) - 1, t % 5 != 3);\n    pl::store_global<#>(" +
                                out + ", v);");
  add("flush_resident", "pl::flush_resident<#>(" + out + ", " + at + "(t ^ 9), t % 5 != 3);");
  add("flush_resident_part",
      "pl::flush_resident_part<#>(" + out + ", " + at + "(t ^ 9), i32(t % 18) - 1, t % 5 != 3);");
}

void add_shared(std::vector<Case>& all) {
  for (const char* n : {"load_shared", "load_shared_padded", "load_resident"}) {
    Case c =
        kernel("memory/" + std::string(n) + " and store_shared", "const u8* x, u8* o",
               "  const u32 t = pl::thread(), s = pl::shared_base();\n" +
                   over_vectors(
                       "  { $ v[#]; pl::load_global<#>(v, reinterpret_cast<const $*>(x) + # * t);\n"
                       "    pl::store_shared<#>(s + # * u32(sizeof($)) * t, v);\n"
                       "    pl::warpgroup_sync();\n"
                       "    pl::" +
                       std::string(n) +
                       "<#>(v, s + # * u32(sizeof($)) * (t ^ 9), t % 5 != 3);\n"
                       "    pl::warpgroup_sync();\n"
                       "    pl::store_shared<#>(s + # * u32(sizeof($)) * t, v, t % 3 == 0);\n"
                       "    pl::warpgroup_sync();\n"
                       "    pl::load_shared<#>(v, s + # * u32(sizeof($)) * (127 - t));\n"
                       "    pl::warpgroup_sync();\n"
                       "    pl::store_global<#>(reinterpret_cast<$*>(o) + # * t, v);"
                       " x += 4096; o += 4096; }\n"));
    std::vector<std::byte> bytes = Case::bytes_of(random_words(15 * 1024, 3));
    for (std::size_t i = 5 * 4096; i < 6 * 4096; ++i) bytes[i] &= std::byte{1};
    c.array({.type = "u8", .bytes = bytes}).output("u8", 15 * 4096);
    c.shared_bytes = 2048;
    c.sanitized = true;
    all.push_back(std::move(c));
  }
  add_resident(all);
  // More shared memory than a kernel gets without asking.
  Case c = kernel("memory/200 KiB of shared memory", "const u32* x, u32* o", R"(
  const u32 t = pl::thread(), s = pl::shared_base();
  u32 v;
  pl::load_global(&v, x + t);
  PL_NOUNROLL for (u32 i = 0; i < 400; ++i) {
    const u32 w = v + i;
    pl::store_shared(s + 512 * i + 4 * t, &w);
  }
  pl::warpgroup_sync();
  u32 sum = 0;
  PL_NOUNROLL for (u32 i = 0; i < 400; ++i) {
    u32 w;
    pl::load_shared(&w, s + 512 * i + 4 * ((t + i) % 128));
    sum = sum * 31 + w;
  }
  pl::store_global(o + t, &sum);)");
  c.shared_bytes = 400 * 512;
  c.input("u32", random_words(128, 4)).output("u32", 128);
  all.push_back(std::move(c));
}

void add_control(std::vector<Case>& all) {
  Case c = kernel("control/setmaxnreg", "const u32* x, u32* o", R"(
  const u32 g = pl::warpgroup(), t = pl::thread();
  u32 v;
  pl::load_global(&v, x + 128 * g + t);
  if (g == 0) {
    pl::setmaxnreg_dec<40>();
    v *= 3;
  } else {
    pl::setmaxnreg_inc<232>();
    v += 5;
  }
  pl::store_global(o + 128 * g + t, &v);)",
                  3);
  c.input("u32", random_words(384, 5)).output("u32", 384);
  all.push_back(std::move(c));

  c = kernel("control/griddepcontrol, checks, delays and name_shared", "const u32* x, u32* o", R"(
  const u32 t = pl::thread(), s = pl::shared_base();
  pl::name_shared(s, 512, "words");
  pl::griddepcontrol_launch_dependents();
  u32 v;
  pl::load_global(&v, x + t);
  pl::check(v == v, "never said");
  pl::check_value(v == v, i64(v), "never said");
  pl::check_range(0, i64(v % 128), 128, "never said");
  if (!pl::was_stored(v == v)) v = 0;
  pl::store_shared(s + 4 * t, &v);
  pl::delay(200);
  pl::griddepcontrol_wait();
  pl::load_shared(&v, s + 4 * t);
  pl::store_global(o + t, &v);)");
  c.shared_bytes = 512;
  c.input("u32", random_words(128, 6)).output("u32", 128);
  all.push_back(std::move(c));
}

}  // namespace

void add_basics(std::vector<Case>& all) {
  add_ids(all);
  add_barriers(all);
  add_global(all);
  add_shared(all);
  add_control(all);
}

}  // namespace palladium::conformance
