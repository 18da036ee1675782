// .npy files: what is written is read back, what is malformed is refused by name.
#include "palladium/npy.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/support/folder.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using palladium::test::Folder;

namespace {

Array parse(const std::string& bytes) {
  return parse_npy(std::as_bytes(std::span(bytes)), "file.npy");
}

std::string file(const std::string& header, const std::string& data, int major = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(major);
  bytes += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i)
    bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + header + data;
}

std::string dict(const std::string& descr, const std::string& shape,
                 const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

}  // namespace

TEST_CASE("arrays of every dtype and rank come back from a file as they were") {
  const Folder folder;
  std::mt19937 random(7);
  for (const DType dtype : {bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64})
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3}, Shape{0, 4}, Shape{2, 1, 3}}) {
      const Array a = Array::empty(shape, dtype);
      auto* bytes = static_cast<std::uint8_t*>(a.data());
      const std::size_t size = static_cast<std::size_t>(a.size() * dtype.bytes());
      for (std::size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<std::uint8_t>(dtype.is_bool() ? random() % 2 : random());
      save_npy(folder / "a.npy", a);
      const Array b = load_npy(folder / "a.npy");
      CHECK(b.type() == a.type());
      CHECK((size == 0 || std::memcmp(b.data(), a.data(), size) == 0));
    }
}

TEST_CASE("a file is what numpy would write") {
  const Folder folder;
  save_npy(folder / "a.npy", Array::of<float>({1.f, 2.f}));
  const std::string text = test::text_of(folder / "a.npy");
  CHECK(text.size() == 128 + 8);
  CHECK(text.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  CHECK_THAT(text, ContainsSubstring("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"));
  CHECK(text[127] == '\n');
  save_npy(folder / "b.npy", Array::zeros({3, 4}, bf16));
  CHECK_THAT(test::text_of(folder / "b.npy"),
             ContainsSubstring("'descr': '|V2'") && ContainsSubstring("(3, 4)"));
}

TEST_CASE("floats of 8 bits and integers of 4 have no name in a file, which is said") {
  const Folder folder;
  CHECK_THROWS_WITH(save_npy(folder / "a.npy", Array::zeros({3}, f8e4m3)),
                    ContainsSubstring("npy: f8e4m3[3] cannot be written to") &&
                        ContainsSubstring("write their bytes, as u8"));
  CHECK_THROWS_WITH(save_npy(folder / "a.npy", Array::zeros({4}, i4)),
                    ContainsSubstring("write numbers of a byte each, .astype(pl::i8)"));
  for (const char* type : {"<f1", "<V1"})  // what ml_dtypes writes for e5m2, and for all others
    CHECK_THROWS_WITH(parse(file(dict(type, "(3,)"), "abc")),
                      ContainsSubstring("does not tell which small type they have"));
}

TEST_CASE("an array with gaps is written without them") {
  const Folder folder;
  std::vector<float> memory{0, 1, 2, 3, 4, 5, 6, 7};
  const std::int64_t strides[] = {4, 1};
  save_npy(folder / "a.npy", Array::view(memory.data(), {2, 2}, f32, {.strides = strides}));
  const Array a = load_npy(folder / "a.npy");
  CHECK(a.values<float>()[2] == 4);
}

TEST_CASE("versions 2 and 3, other orders of keys and other spaces are read") {
  CHECK(parse(file(dict("<i4", "(1,)"), std::string(4, 'x'), 2)).dtype() == i32);
  CHECK(parse(file(dict("<i4", "(1,)"), std::string(4, 'x'), 3)).dtype() == i32);
  const Array a = parse(
      file("{ \"shape\":(2 , 1),'fortran_order':True, 'descr' : \"|u1\"}   ", std::string("ab")));
  CHECK(a.shape() == Shape{2, 1});
  CHECK(parse(file(dict("bfloat16", "()"), "ab")).dtype() == bf16);
  CHECK(parse(file(dict("<V2", "()"), "ab")).dtype() == bf16);
}

TEST_CASE("a bool that is neither 0 nor 1 is read as true") {
  const Array a = parse(file(dict("|b1", "(3,)"), std::string("\x00\x02\xff", 3)));
  CHECK(!a.data<bool>()[0]);
  CHECK(static_cast<const std::uint8_t*>(a.data())[1] == 1);
  CHECK(static_cast<const std::uint8_t*>(a.data())[2] == 1);
}

TEST_CASE("malformed files are refused by file and defect") {
  const auto refused = [](const std::string& bytes, const std::string& why) {
    CHECK_THROWS_WITH(parse(bytes), ContainsSubstring("file.npy") && ContainsSubstring(why) &&
                                        ContainsSubstring("\n  at npy_test.cpp:"));
  };
  const std::string four(4, '\0');
  refused("", "not a .npy file");
  refused("PK\x03\x04", "not a .npy file");
  refused("\x93NUMPY", "ends in its header");
  refused(std::string("\x93NUMPY\x01\x00\xff", 9), "ends in its header");
  refused(file(dict("<f4", "(1,)"), four).substr(0, 30), "ends in its header");
  refused(file(dict("<f4", "(1,)"), four, 4), "version 4.0");
  refused(file(dict("<f4", "(2,)"), four), "does not fit the 4 bytes");
  refused(file(dict("<f4", "(1,)"), four + "x"), "does not fit the 5 bytes");
  refused(file(dict("<f4", "(2, 2)", "True"), std::string(16, 'x')), "Fortran order");
  refused(file(dict(">f4", "(1,)"), four), "big endian");
  refused(file(dict("<c8", "(1,)"), four), "'<c8'");
  refused(file(dict("|O", "(1,)"), four), "'|O'");
  refused(file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", four),
          "records");
  refused(file("{'descr': '<f4', 'shape': (1,)}", four), "lacks 'fortran_order'");
  refused(file("{'descr': '<f4', 'descr': '<f4'}", four), "unexpected key 'descr'");
  refused(file("[]", four), "not a dictionary");
  refused(file("{'descr: 1", four), "does not end");
  refused(file(dict("<f4", "(1,)", "false"), four), "neither True nor False");
  refused(file(dict("<f4", "(-1,)"), four), "whole numbers");
  refused(file(dict("<f4", "(99999999999999999999,)"), four), "too large");
  refused(file(dict("<f4", "(4294967296, 4294967296)"), four), "too large");
  refused(file(dict("<f4", "(1,1,1,1,1,1,1,1,1)"), four), "more than 8");
  refused(file(dict("<f4", "(1,)") + "junk", four), "after its dictionary");
}

TEST_CASE("a file that is not there or cannot be written is named with the reason") {
  const Folder folder;
  CHECK_THROWS_WITH(load_npy(folder / "none.npy"), ContainsSubstring("none.npy") &&
                                                       ContainsSubstring("No such file") &&
                                                       ContainsSubstring("npy_test.cpp"));
  CHECK_THROWS_WITH(save_npy(folder / "no/where.npy", Array::zeros({1}, f32)),
                    ContainsSubstring("cannot be written"));
  CHECK_THROWS_AS(save_npy(folder / "a.npy", Array()), CompileError);
}

TEST_CASE("no damaged file does worse than being refused") {
  std::mt19937 random(11);
  const std::string good = file(dict("<f4", "(2, 3)"), std::string(24, 'x'));
  int read = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (unsigned i = 0, n = random() % 4 + 1; i < n; ++i) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 3) {
      case 0: bytes[at] = static_cast<char>(random()); break;
      case 1: bytes.erase(at, random() % 8 + 1); break;
      case 2: bytes.insert(at, 1, "{}()',:0123456789\n\xff"[random() % 18]); break;
      }
      if (bytes.empty()) break;
    }
    try {
      const Array a = parse(bytes);
      read += a.size() >= 0;
    } catch (const CompileError&) {
    }
  }
  CHECK(read > 0);
}
