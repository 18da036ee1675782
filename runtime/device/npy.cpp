#include "palladium/npy.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "codegen/base/checked.hpp"
#include "codegen/base/files.hpp"

namespace palladium {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
/// Data starts at a multiple of this.
constexpr std::size_t alignment = 64;

struct TypeRow {
  DType dtype;
  const char* written;  // without the mark of the byte order
};
constexpr TypeRow types[] = {{bool_, "b1"}, {i8, "i1"},  {i16, "i2"}, {i32, "i4"}, {i64, "i8"},
                             {u8, "u1"},    {u16, "u2"}, {u32, "u4"}, {u64, "u8"}, {f16, "f2"},
                             {f32, "f4"},   {f64, "f8"}, {bf16, "V2"}};

[[noreturn]] void malformed(const std::string& name, const std::string& what, Location at) {
  throw CompileError(at, "npy: " + name + ": " + what);
}

/// The header: a Python dictionary with three known keys.
class Header {
 public:
  Header(std::string_view text, const std::string& name, Location at)
      : text_(text), name_(name), at_(at) {
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !has_descr) {
        has_descr = true;
        skip_space();
        if (position_ < text_.size() && text_[position_] == '[')
          fail("its elements are records; only plain numbers can be read");
        descr_ = string();
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        fortran_order = boolean();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        tuple();
      } else {
        fail("the header has an unexpected key '" + key + "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (position_ != text_.size()) fail("the header has text after its dictionary");
    if (!has_descr || !has_order || !has_shape)
      fail(std::string("the header lacks '") +
           (!has_descr   ? "descr"
            : !has_order ? "fortran_order"
                         : "shape") +
           "'");
    dtype = find_type();
  }

  DType dtype;
  bool fortran_order = false;
  Shape shape;

 private:
  [[noreturn]] void fail(const std::string& what) const { malformed(name_, what, at_); }

  void skip_space() {
    while (position_ < text_.size() && std::strchr(" \t\n\r", text_[position_])) ++position_;
  }
  bool accept(char c) {
    skip_space();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      fail(std::string("the header is not a dictionary: '") + c + "' expected at character " +
           std::to_string(position_));
  }
  std::string string() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const std::size_t end = text_.find(quote, position_);
    if (end == std::string_view::npos) fail("a string of the header does not end");
    std::string result(text_.substr(position_, end - position_));
    position_ = end + 1;
    return result;
  }
  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"})
      if (text_.substr(position_, word.size()) == word) {
        position_ += word.size();
        return word == "True";
      }
    fail("'fortran_order' is neither True nor False");
  }
  std::int64_t number() {
    skip_space();
    Checked value = 0;
    const std::size_t start = position_;
    while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9')
      value = value * 10 + (text_[position_++] - '0');
    if (position_ == start) fail("'shape' is not a tuple of whole numbers");
    if (!value.fits()) fail("an extent of 'shape' is too large");
    return value.value();
  }
  void tuple() {
    expect('(');
    while (!accept(')')) {
      if (shape.rank() == Shape::max_rank)
        fail("'shape' has more than " + std::to_string(Shape::max_rank) + " dimensions");
      shape.push_back(number());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }
  DType find_type() const {
    const std::string_view d = descr_;
    if (d == "bfloat16") return bf16;
    if (d.size() > 1) {
      for (const TypeRow& row : types) {
        if (d.substr(1) != row.written) continue;
        if (d[0] == '>' && row.dtype.bytes() > 1)
          fail("its elements '" + descr_ + "' are big endian; save them with .astype('<" +
               row.written + "')");
        if (std::strchr("<|=", d[0]) || row.dtype.bytes() == 1) return row.dtype;
      }
    }
    if (d.ends_with("f1") || d.ends_with("V1"))
      fail("elements of type '" + descr_ + "' cannot be read: that does not tell which small type " +
           "they have; save x.view(numpy.uint8), and view what is loaded as f8e4m3 or f8e5m2");
    fail("elements of type '" + descr_ + "' cannot be read");
  }

  std::string_view text_;
  const std::string& name_;
  Location at_;
  std::size_t position_ = 0;
  std::string descr_;
};

}  // namespace

Array parse_npy(std::span<const std::byte> bytes, const std::string& name, Location at) {
  const auto little_endian = [&](std::size_t offset, std::size_t count) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < count; ++i)
      value |= std::to_integer<std::size_t>(bytes[offset + i]) << (8 * i);
    return value;
  };
  if (bytes.size() < magic.size() || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    malformed(name, "this is not a .npy file", at);
  if (bytes.size() < magic.size() + 2) malformed(name, "the file ends in its header", at);
  const int major = std::to_integer<int>(bytes[6]), minor = std::to_integer<int>(bytes[7]);
  if (major < 1 || major > 3 || minor != 0)
    malformed(name,
              "version " + std::to_string(major) + "." + std::to_string(minor) +
                  " of the format is unknown; 1.0, 2.0 and 3.0 can be read",
              at);
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  std::size_t start = magic.size() + 2 + length_bytes;
  if (bytes.size() < start) malformed(name, "the file ends in its header", at);
  const std::size_t length = little_endian(start - length_bytes, length_bytes);
  if (bytes.size() - start < length) malformed(name, "the file ends in its header", at);
  const Header header({reinterpret_cast<const char*>(bytes.data()) + start, length}, name, at);
  start += length;

  int larger_than_one = 0;
  for (const Dim& d : header.shape) larger_than_one += d.value() > 1;
  const Checked size = checked_product(header.shape) * header.dtype.bytes();
  if (!size.fits()) malformed(name, "'shape' is too large", at);
  if (header.fortran_order && larger_than_one > 1)
    malformed(name, "it is in Fortran order; save it with numpy.ascontiguousarray(x)", at);
  if (static_cast<std::uint64_t>(size.value()) != bytes.size() - start)
    malformed(name,
              to_string(ShapeDtype{header.shape, header.dtype}) + " does not fit the " +
                  std::to_string(bytes.size() - start) + " bytes of data",
              at);
  Array array = Array::empty(header.shape, header.dtype, Device::cpu(), at);
  if (size.value() != 0)
    std::memcpy(array.data(), bytes.data() + start, static_cast<std::size_t>(size.value()));
  if (header.dtype.is_bool())  // a bool that is neither 0 nor 1 would be undefined behaviour later
    for (std::uint8_t& b : std::span(static_cast<std::uint8_t*>(array.data()),
                                     static_cast<std::size_t>(array.size())))
      b = b != 0;
  return array;
}

Array load_npy(const std::string& path, Location at) {
  std::vector<std::byte> bytes;
  if (const auto outcome = files::read(path, std::numeric_limits<std::size_t>::max() / 2, bytes);
      !outcome)
    throw CompileError(at, "npy: " + path + " cannot be read: " + outcome.message());
  return parse_npy(bytes, path, at);
}

void save_npy(const std::string& path, const Array& array, Location at) {
  if (!array) throw CompileError(at, "npy: there is no array to write to " + path);
  const auto* row = std::ranges::find(types, array.dtype(), &TypeRow::dtype);
  if (row == std::end(types))
    throw CompileError(at, "npy: " + to_string(array.type()) + " cannot be written to " + path +
                               ": a file has no name for its elements; " +
                               (array.dtype().is_packed()
                                    ? "write numbers of a byte each, .astype(pl::i8)"
                                    : "write their bytes, as u8"));
  Array dense = array.to(Device::cpu(), at);
  if (!dense.is_dense()) dense = dense.copy(at);

  std::string shape;
  for (const Dim& d : dense.shape()) shape += std::to_string(d.value()) + ", ";
  if (dense.rank() > 1) shape.resize(shape.size() - 2);
  if (dense.rank() == 1) shape.pop_back();
  const bool has_order = dense.dtype().bytes() > 1 && dense.dtype() != bf16;
  std::string header = std::string("{'descr': '") + (has_order ? "<" : "|") + row->written +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  const std::size_t prefix = magic.size() + 4;
  header.resize((prefix + header.size() + alignment) / alignment * alignment - prefix, ' ');
  header.back() = '\n';

  std::string text(magic);
  text += {'\x01', '\x00', static_cast<char>(header.size() & 0xff),
           static_cast<char>(header.size() >> 8)};
  text += header;
  const Array::Bytes data = dense.bytes();
  if (data.begin) text.append(reinterpret_cast<const char*>(data.begin), data.end - data.begin);
  if (const auto outcome = files::publish(path, text, files::Durability::fast, 0666); !outcome)
    throw CompileError(at, "npy: " + path + " cannot be written: " + outcome.message());
}

}  // namespace palladium
