// The text form of layouts: to_string and parse.
#include <charconv>
#include <string>

#include "codegen/layout/layout.hpp"
#include "palladium/error.hpp"

namespace palladium::layout {
namespace {

constexpr char first_letter = 'i';  // of dimension 0; shapes have at most 8
constexpr int max_rank = 8;

std::string extents_text(const char* name, const Extents& extents) {
  std::string s = name;
  s += '(';
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (d != 0) s += ',';
    s += std::to_string(extents[d]);
  }
  return s + ')';
}

std::string image_text(const Layout& l, std::uint32_t image) {
  if (image == 0) return "*";
  std::string s;
  for (int d = 0; d < l.rank(); ++d) {
    const std::uint32_t field = l.field(d, image);
    if (field == 0) continue;
    if (!s.empty()) s += '^';
    s += static_cast<char>(first_letter + d);
    s += std::to_string(field);
  }
  return s;
}

std::string images_text(const char* name, const Layout& l, const Bits& images) {
  std::string s = name;
  s += '[';
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (i != 0) s += ' ';
    s += image_text(l, images[i]);
  }
  return s + ']';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Layout read() {
    Layout l;
    word("dom");
    l.domain = extents();
    word(" tile");
    for (const std::int64_t extent : extents()) l.tile_bits.push_back(log2_of(extent));
    if (l.tile_bits.size() != l.domain.size()) fail("as many tile extents as domain extents");
    word(" reg");
    l.reg = images(l);
    word(" lane");
    l.lane = images(l);
    word(" warp");
    l.warp = images(l);
    if (at_ != text_.size()) fail("the end");
    return l;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw CompileError("layout text: expected " + expected + " at column " +
                       std::to_string(at_ + 1) + " of \"" + std::string(text_) + "\"");
  }

  bool accept(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("'") + c + "'");
  }
  void word(std::string_view w) {
    if (text_.substr(at_, w.size()) != w) fail("\"" + std::string(w) + "\"");
    at_ += w.size();
  }

  std::int64_t number() {
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{} || value < 0) fail("a number");
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  Extents extents() {
    Extents list;
    expect('(');
    if (accept(')')) return list;
    do {
      list.push_back(number());
    } while (accept(','));
    expect(')');
    if (list.size() > max_rank) fail("at most 8 dimensions before");
    return list;
  }

  int log2_of(std::int64_t extent) const {
    for (int b = 0; b <= 24; ++b) {
      if (extent == std::int64_t{1} << b) return b;
    }
    fail("tile extents that are powers of two before");
  }

  std::uint32_t image(const Layout& l) {
    if (accept('*')) return 0;
    std::uint32_t sum = 0;
    do {
      const int d = at_ < text_.size() ? text_[at_] - first_letter : -1;
      if (d < 0 || d >= l.rank()) fail("'*' or the letter of a dimension");
      ++at_;
      const std::int64_t field = number();
      if (field <= 0 || field >= l.tile(d)) fail("an index inside the tile before");
      sum ^= static_cast<std::uint32_t>(field) << l.field_shift(d);
    } while (accept('^'));
    return sum;
  }

  Bits images(const Layout& l) {
    Bits list;
    expect('[');
    if (accept(']')) return list;
    do {
      list.push_back(image(l));
    } while (accept(' '));
    expect(']');
    return list;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string to_string(const Layout& l) {
  Extents tile;
  for (int d = 0; d < l.rank(); ++d) tile.push_back(l.tile(d));
  return extents_text("dom", l.domain) + extents_text(" tile", tile) +
         images_text(" reg", l, l.reg) + images_text(" lane", l, l.lane) +
         images_text(" warp", l, l.warp);
}

Layout parse(std::string_view text) {
  Layout l = Parser(text).read();
  try {
    check(l);
  } catch (const InternalError& e) {
    throw CompileError("layout text: " + std::string(e.what()));
  }
  return l;
}

}  // namespace palladium::layout
