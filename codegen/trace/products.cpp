// Products of two values, named by letters.
#include <algorithm>
#include <cctype>
#include <numeric>
#include <string>

#include "codegen/trace/recorder.hpp"
#include "palladium/error.hpp"
#include "palladium/ops.hpp"

namespace palladium::trace {
namespace {

bool has(const std::string& letters, char c) { return letters.find(c) != std::string::npos; }
std::string quoted(char c) { return std::string("letter '") + c + "'"; }

// A value and the letters of its dimensions.
struct Lettered {
  std::string letters;
  Value value;
};

// What all products of two values ask of their dtypes, and what their results are of.
class Dtypes {
 public:
  Dtypes(const char* who, const Type& a, const Type& b, DType preferred, Location at)
      : who_(who), at_(at), operand_(a.dtype) {
    const auto is_byte = [](DType t) { return t == i8 || t == u8; };
    const bool of_bytes = (graph::is_byte_float(a.dtype) && graph::is_byte_float(b.dtype)) ||
                          (is_byte(a.dtype) && is_byte(b.dtype));
    const std::string given = to_string(a) + " and " + to_string(b);
    if (a.dtype != b.dtype && !of_bytes) fail("expected operands of one dtype, given " + given);
    if (!operand_.is_float() && !is_byte(operand_) && operand_ != i16 && operand_ != i32)
      fail("expected floats, i8, u8, i16 or i32, given " + given);
    wide_ = operand_.is_float() ? (operand_ == f64 ? f64 : f32) : i32;
    result_ = preferred == DType() ? wide_ : preferred;
    if (preferred != DType()) check(preferred);
    if (operand_.is_float() && result_ == f64) wide_ = f64;
  }

  /// In which sums are made.
  DType wide() const { return wide_; }
  /// An operand whose elements are as wide as it takes.
  Value widened(const Value& x) const { return wide_ == f64 ? x.astype(f64, at_) : x; }
  Value result(const Value& sum) const { return sum.astype(result_, at_); }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw CompileError(at_, std::string(who_) + ": " + text);
  }

  void check(DType preferred) const {
    const bool of_kind = preferred.is_float() || (preferred.is_signed() && !operand_.is_float());
    if (!of_kind ||
        (preferred.is_float() == operand_.is_float() && preferred.bits() < operand_.bits()))
      fail(std::string("expected a preferred_element_type ") +
           (operand_.is_float() ? "that is a float" : "that is a signed integer or a float") +
           " and no narrower than " + operand_.name() + ", given " + preferred.name());
  }

  const char* const who_;
  const Location at_;
  const DType operand_;
  DType wide_, result_;
};

// The letters of the dimensions of two operands and of their product.
struct Letters {
  std::string operands[2], result;
};

class Subscripts {
 public:
  Subscripts(const char* text, Location at) : given_(text), at_(at) {}

  Letters read() {
    std::string parts[3];
    std::size_t part = 0;
    bool is_bad = false, has_result = false;
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (given_[i] == ' ') continue;
      if (given_[i] == ',' && part == 0) {
        part = 1;
      } else if (given_.compare(i, 2, "->") == 0 && part == 1) {
        part = 2;
        has_result = true;
        ++i;
      } else if (std::isalpha(static_cast<unsigned char>(given_[i]))) {
        parts[part] += given_[i];
      } else {
        is_bad = true;
      }
    }
    if (is_bad || part == 0)
      fail("expected letters for the dimensions of two operands, as in \"ik,kj->ij\", given \"" +
           given_ + "\"");
    for (int i : {0, 1})
      expect_once(parts[i], "operand " + std::to_string(i) + "; its diagonal: pl::diagonal");
    if (!has_result) parts[2] = letters_that_stand_once(parts[0], parts[1]);
    expect_once(parts[2], "the result");
    for (const char c : parts[2])
      if (!has(parts[0], c) && !has(parts[1], c))
        fail(quoted(c) + " of the result stands in no operand of \"" + given_ + "\"");
    return {{parts[0], parts[1]}, parts[2]};
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw CompileError(at_, "einsum: " + text);
  }

  void expect_once(const std::string& letters, const std::string& where) const {
    for (const char c : letters)
      if (std::ranges::count(letters, c) > 1) fail(quoted(c) + " stands twice in " + where);
  }

  static std::string letters_that_stand_once(const std::string& a, const std::string& b) {
    std::string once;
    for (const char c : a)
      if (!has(b, c)) once += c;
    for (const char c : b)
      if (!has(a, c)) once += c;
    std::ranges::sort(once);
    return once;
  }

  const std::string given_;
  const Location at_;
};

class Product {
 public:
  Product(const char* who, const Value& a, const Value& b, Letters letters, Precision precision,
          DType preferred, Location at)
      : who_(who),
        recorder_(Recorder::current(who, at)),
        operands_{{letters.operands[0], recorder_.value(recorder_.typed(a, who, at))},
                  {letters.operands[1], recorder_.value(recorder_.typed(b, who, at))}},
        result_(std::move(letters.result)),
        precision_(precision),
        at_(at),
        dtypes_(who, type(0), type(1), preferred, at) {
    check_shapes();
    for (Lettered& x : operands_) x.value = dtypes_.widened(x.value);
  }

  Value run() {
    for (int i : {0, 1}) sum_own_letters(i);
    const std::string& a = operands_[0].letters;
    const std::string& b = operands_[1].letters;
    std::string both, summed, left, right;
    for (const char c : a) (!has(b, c) ? left : has(result_, c) ? both : summed) += c;
    for (const char c : b)
      if (!has(a, c)) right += c;
    const bool is_matrix_product = !left.empty() && !right.empty() && !summed.empty() &&
                                   count(operands_[0], both) <= most_products;
    return dtypes_.result(arranged(!is_matrix_product ? sum_of_products(summed)
                                   : both.empty()     ? matrix_product(left, summed, right)
                                                  : matrix_products(both, left, summed, right)));
  }

 private:
  static constexpr std::int64_t most_products = 32;  // one behind the other

  [[noreturn]] void fail(const std::string& text) const {
    throw CompileError(at_, std::string(who_) + ": " + text);
  }

  Extents shape(const Value& v) const { return extents(v.shape(at_)); }
  Type type(int i) const {
    const Value& v = operands_[i].value;
    return Type::value(v.dtype(at_), shape(v));
  }
  std::int64_t extent(const Lettered& x, char c) const { return shape(x.value)[x.letters.find(c)]; }

  void check_shapes() const {
    for (int i : {0, 1})
      if (shape(operands_[i].value).size() != operands_[i].letters.size())
        fail("expected a value of " + std::to_string(operands_[i].letters.size()) +
             " dimensions for \"" + operands_[i].letters + "\" as operand " + std::to_string(i) +
             ", given " + to_string(type(i)));
    for (const char c : operands_[1].letters)
      if (has(operands_[0].letters, c) && extent(operands_[0], c) != extent(operands_[1], c))
        fail(quoted(c) + " has extent " + std::to_string(extent(operands_[0], c)) + " in " +
             to_string(type(0)) + " and " + std::to_string(extent(operands_[1], c)) + " in " +
             to_string(type(1)));
  }

  // ---- what is made of it

  // Of this operand alone, and not of the result.
  void sum_own_letters(int i) {
    Lettered& x = operands_[i];
    Attr own;
    std::string kept;
    for (std::size_t d = 0; d < x.letters.size(); ++d) {
      const char c = x.letters[d];
      if (has(result_, c) || has(operands_[1 - i].letters, c))
        kept += c;
      else
        own.ints.push_back(static_cast<std::int64_t>(d));
    }
    if (own.ints.empty()) return;
    for (Lettered& o : operands_) o.value = o.value.astype(dtypes_.wide(), at_);
    x = {kept, summed_over(x.value, std::move(own))};
  }

  Value summed_over(const Value& x, Attr dimensions) const {
    return recorder_.value(
        summed(recorder_, Op::ReduceSum, recorder_.id(x, who_, at_), std::move(dimensions), at_));
  }

  Value recorded(Op op, const Value& x, Attr attr) const {
    return recorder_.value(
        recorder_.builder().add(op, {recorder_.id(x, who_, at_)}, std::move(attr), {}, at_));
  }

  // Its dimensions in this order.
  Value ordered(const Lettered& x, const std::string& letters) const {
    if (x.letters == letters) return x.value;
    Attr order;
    for (const char c : letters) order.ints.push_back(static_cast<std::int64_t>(x.letters.find(c)));
    return recorded(Op::Transpose, x.value, std::move(order));
  }

  std::int64_t count(const Lettered& x, const std::string& letters) const {
    std::int64_t n = 1;
    for (const char c : letters) n *= extent(x, c);
    return n;
  }

  // As a matrix; `transposed` where its columns come first, as they stand.
  Value matrix(const Lettered& x, const std::string& rows, const std::string& columns,
               bool& transposed) const {
    transposed = x.letters == columns + rows;
    const std::int64_t m = count(x, rows), n = count(x, columns);
    if (transposed) return reshaped(x.value, {n, m}, at_);
    return reshaped(ordered(x, rows + columns), {m, n}, at_);
  }

  Lettered matrix_product(const std::string& left, const std::string& summed,
                          const std::string& right) const {
    return {left + right, multiplied(operands_[0], operands_[1], left, summed, right)};
  }

  Value multiplied(const Lettered& x, const Lettered& y, const std::string& left,
                   const std::string& summed, const std::string& right) const {
    DotOptions options{.precision = precision_};
    const Value a = matrix(x, left, summed, options.trans_a);
    const Value b = matrix(y, summed, right, options.trans_b);
    Shape shape;
    for (const char c : left) shape.push_back(extent(x, c));
    for (const char c : right) shape.push_back(extent(y, c));
    return reshaped(dot(Operand(a, at_), Operand(b, at_), options), shape, at_);
  }

  // One for each element of the batch, one behind the other.
  Lettered matrix_products(const std::string& batch, const std::string& left,
                           const std::string& summed, const std::string& right) const {
    const std::int64_t n = count(operands_[0], batch);
    std::vector<Value> products;
    for (std::int64_t i = 0; i < n; ++i)
      products.push_back(
          multiplied(element(0, batch, i), element(1, batch, i), left, summed, right));
    Shape shape;
    for (const char c : batch) shape.push_back(extent(operands_[0], c));
    for (const char c : left) shape.push_back(extent(operands_[0], c));
    for (const char c : right) shape.push_back(extent(operands_[1], c));
    return {batch + left + right, reshaped(stack(products, 0, at_), shape, at_)};
  }

  // What an operand has of the batch's element i.
  Lettered element(int operand, const std::string& batch, std::int64_t i) const {
    const Lettered& x = operands_[operand];
    Extents to = shape(x.value);
    graph::SliceView view{Extents(to.size(), 0), Extents(to.size(), 1)};
    std::string letters;
    Shape kept;
    for (std::size_t d = batch.size(); d-- > 0; i /= extent(x, batch[d])) {
      const std::size_t at = x.letters.find(batch[d]);
      view.starts[at] = i % extent(x, batch[d]);
      to[at] = 1;
    }
    for (const char c : x.letters)
      if (!has(batch, c)) {
        letters += c;
        kept.push_back(extent(x, c));
      }
    const Value part = recorder_.value(recorder_.builder().add(
        Op::Slice, {recorder_.id(x.value, who_, at_)}, Attr{view.encode(), 0},
        Type::value(x.value.dtype(at_), std::move(to)), at_));
    return {letters, reshaped(part, kept, at_)};
  }

  // With an extent of 1 for each letter that it lacks.
  Value spread(const Lettered& x, const std::string& letters) const {
    std::string own;
    Shape shape;
    for (const char c : letters) {
      shape.push_back(has(x.letters, c) ? extent(x, c) : 1);
      if (has(x.letters, c)) own += c;
    }
    return reshaped(ordered(x, own), shape, at_).astype(dtypes_.wide(), at_);
  }

  Lettered sum_of_products(const std::string& summed) const {
    const std::string all = result_ + summed;
    const Value product =
        elementwise(Op::Mul, {spread(operands_[0], all), spread(operands_[1], all)}, at_);
    if (summed.empty()) return {result_, product};
    Attr last;
    for (std::size_t d = result_.size(); d < all.size(); ++d)
      last.ints.push_back(static_cast<std::int64_t>(d));
    return {result_, summed_over(product, std::move(last))};
  }

  Value arranged(const Lettered& x) const { return ordered(x, result_); }

  const char* const who_;
  Recorder& recorder_;
  Lettered operands_[2];
  const std::string result_;
  const Precision precision_;
  const Location at_;
  const Dtypes dtypes_;
};

// The letters of lax.dot_general's dimensions: 'a' and on of lhs, 'A' and on of what is left of
// rhs.
class Numbered {
 public:
  Numbered(const Value& a, const Value& b, const DotDimensionNumbers& numbers, Location at)
      : shapes_{extents(a.shape(at)), extents(b.shape(at))}, at_(at) {
    for (int i : {0, 1})
      for (int d = 0; d < rank(i); ++d)
        letters_.operands[i] += static_cast<char>((i == 0 ? 'a' : 'A') + d);
    pair(numbers.batch, "batch", true);
    pair(numbers.contracting, "contracting", false);
    for (int i : {0, 1})
      for (int d = 0; d < rank(i); ++d)
        if (!taken_[i][d]) letters_.result += letters_.operands[i][d];
  }
  const Letters& letters() const { return letters_; }

 private:
  int rank(int operand) const { return static_cast<int>(shapes_[operand].size()); }

  [[noreturn]] void fail(const std::string& text) const {
    throw CompileError(at_, "dot_general: " + text);
  }

  void pair(const DotDimensions& d, const char* what, bool is_kept) {
    if (d.lhs.size() != d.rhs.size())
      fail(std::string("expected as many ") + what + " dimensions of lhs as of rhs, given " +
           std::to_string(d.lhs.size()) + " and " + std::to_string(d.rhs.size()));
    for (int n = 0; n < d.lhs.size(); ++n) {
      const int l = take(0, d.lhs[n], what), r = take(1, d.rhs[n], what);
      const std::int64_t of_lhs = shapes_[0][static_cast<std::size_t>(l)],
                         of_rhs = shapes_[1][static_cast<std::size_t>(r)];
      if (of_lhs != of_rhs)
        fail(std::string(what) + " dimension " + std::to_string(l) + " of lhs has " +
             std::to_string(of_lhs) + " elements and " + std::to_string(r) + " of rhs has " +
             std::to_string(of_rhs));
      const char c = letters_.operands[0][static_cast<std::size_t>(l)];
      letters_.operands[1][static_cast<std::size_t>(r)] = c;
      if (is_kept) letters_.result += c;
    }
  }

  int take(int operand, int given, const char* what) {
    const int rank = this->rank(operand), d = given < 0 ? given + rank : given;
    const std::string side = operand == 0 ? "lhs" : "rhs";
    if (d < 0 || d >= rank)
      fail(std::string("expected a ") + what + " dimension of " + side + " below " +
           std::to_string(rank) + ", given " + std::to_string(given));
    if (taken_[operand][d])
      fail("dimension " + std::to_string(d) + " of " + side + " stands twice among those given");
    taken_[operand][d] = true;
    return d;
  }

  const Extents shapes_[2];
  const Location at_;
  bool taken_[2][Shape::max_rank] = {};
  Letters letters_;
};

}  // namespace
}  // namespace palladium::trace

namespace palladium {

using trace::Op;
using trace::Recorder;

Value dot(const Operand& a, const Operand& b, DotOptions options) {
  const Location at = trace::location(a);
  Recorder& recorder = Recorder::current("dot", at);
  const auto typed = [&](const Value& x) { return recorder.value(recorder.typed(x, "dot", at)); };
  const Value x = typed(trace::resolve(a)), y = typed(trace::resolve(b));
  const auto type = [&](const Value& v) { return recorder.graph[recorder.id(v, "dot", at)].type; };
  const trace::Dtypes dtypes("dot", type(x), type(y), options.preferred_element_type, at);
  graph::ValueId p = recorder.id(dtypes.widened(x), "dot", at),
                 q = recorder.id(dtypes.widened(y), "dot", at);
  if (graph::is_byte_float(type(x).dtype)) {  // f16 holds them, and tensor cores multiply it
    p = recorder.builder().cast(p, f16, at);
    q = recorder.builder().cast(q, f16, at);
  }
  // Along the dimension that is summed; f16 of them has the length that they have.
  const std::int64_t along_a = options.trans_a ? 0 : 1, along_b = options.trans_b ? 1 : 0;
  if (type(x).shape.size() == 2) p = recorder.filled_beyond(p, {&along_a, 1}, 0, at);
  if (type(y).shape.size() == 2) q = recorder.filled_beyond(q, {&along_b, 1}, 0, at);
  const auto precision =
      options.precision == tf32 ? graph::Precision::tf32 : graph::Precision::ieee;
  trace::Attr attr{{options.trans_a, options.trans_b, static_cast<std::int64_t>(precision)}, 0};
  return dtypes.result(
      recorder.value(recorder.builder().add(Op::Dot, {p, q}, std::move(attr), {}, at)));
}

Value dot_general(const Operand& lhs, const Operand& rhs,
                  const DotDimensionNumbers& dimension_numbers, DotGeneralOptions options) {
  const Location at = trace::location(lhs);
  const Value x = trace::resolve(lhs), y = trace::resolve(rhs);
  const trace::Numbered numbered(x, y, dimension_numbers, at);
  return trace::Product("dot_general", x, y, numbered.letters(), options.precision,
                        options.preferred_element_type, at)
      .run();
}

Value einsum(const char* subscripts, const Operand& a, const Operand& b, EinsumOptions options) {
  const Location at = trace::location(a);
  const Value x = trace::resolve(a), y = trace::resolve(b);
  return trace::Product("einsum", x, y, trace::Subscripts(subscripts, at).read(), options.precision,
                        options.preferred_element_type, at)
      .run();
}

}  // namespace palladium
