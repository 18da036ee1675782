// .npy files, read and written without Palladium's own reader and writer.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "tests/support/folder.hpp"

namespace palladium::test {

/// `type` as NumPy writes it: "<f4", "<f2", "|V2" (bf16), "<i4", "|u1", "|b1"; `shape` as in
/// "(3, 5)".
template <class T>
void write_npy(const std::string& path, const std::string& type, const std::string& shape,
               const std::vector<T>& elements) {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(117, ' ');
  std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
  bytes += header + "\n";
  bytes.append(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T));
  REQUIRE(files::publish(path, bytes));
}

/// The elements of a file that must be of this type and shape.
template <class T>
std::vector<T> read_npy(const std::string& path, const std::string& type,
                        const std::string& shape) {
  const std::string bytes = text_of(path);
  REQUIRE(bytes.size() > 10);
  REQUIRE(bytes.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t start = 10 + static_cast<std::uint8_t>(bytes[8]) +
                            256 * static_cast<std::size_t>(static_cast<std::uint8_t>(bytes[9]));
  REQUIRE(bytes.size() >= start);
  const std::string header = bytes.substr(10, start - 10);
  INFO(header);
  REQUIRE(header.find("'descr': '" + type + "'") != std::string::npos);
  REQUIRE(header.find("'shape': " + shape) != std::string::npos);
  REQUIRE((bytes.size() - start) % sizeof(T) == 0);
  std::vector<T> elements((bytes.size() - start) / sizeof(T));
  std::memcpy(elements.data(), bytes.data() + start, bytes.size() - start);
  return elements;
}

}  // namespace palladium::test
