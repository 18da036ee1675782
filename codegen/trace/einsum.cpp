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

// A value and the letters of its dimensions.
struct Lettered {
  std::string letters;
  Value value;
};

class Einsum {
 public:
  Einsum(const char* subscripts, const Value& a, const Value& b, Precision precision, Location at)
      : recorder_(Recorder::current("einsum", at)),
        given_(subscripts),
        precision_(precision),
        at_(at) {
    read(subscripts);
    operands_[0].value = recorder_.value(recorder_.typed(a, "einsum", at));
    operands_[1].value = recorder_.value(recorder_.typed(b, "einsum", at));
    for (int i : {0, 1}) check_shape(i);
    check_dtypes();
  }

  Value run() {
    for (int i : {0, 1}) sum_own_letters(i);
    const std::string& a = operands_[0].letters;
    const std::string& b = operands_[1].letters;
    std::string both, summed, left, right;
    for (const char c : a) (!has(b, c) ? left : has(result_, c) ? both : summed) += c;
    for (const char c : b)
      if (!has(a, c)) right += c;
    const bool is_matrix_product =
        both.empty() && !left.empty() && !right.empty() && !summed.empty();
    return arranged(is_matrix_product ? matrix_product(left, summed, right)
                                      : sum_of_products(summed));
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw CompileError(at_, "einsum: " + text);
  }
  std::string quoted(char c) const { return std::string("letter '") + c + "'"; }

  // ---- what is given

  void read(const std::string& text) {
    std::string parts[3];
    std::size_t part = 0;
    bool is_bad = false, has_result = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == ' ') continue;
      if (text[i] == ',' && part == 0) {
        part = 1;
      } else if (text.compare(i, 2, "->") == 0 && part == 1) {
        part = 2;
        has_result = true;
        ++i;
      } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
        parts[part] += text[i];
      } else {
        is_bad = true;
      }
    }
    if (is_bad || part == 0)
      fail("expected letters for the dimensions of two operands, as in \"ik,kj->ij\", given \"" +
           given_ + "\"");
    for (int i : {0, 1}) {
      operands_[i].letters = parts[i];
      expect_once(parts[i], "operand " + std::to_string(i) + "; its diagonal: pl::diagonal");
    }
    result_ = has_result ? parts[2] : letters_that_stand_once();
    expect_once(result_, "the result");
    for (const char c : result_)
      if (!has(parts[0], c) && !has(parts[1], c))
        fail(quoted(c) + " of the result stands in no operand of \"" + given_ + "\"");
  }

  void expect_once(const std::string& letters, const std::string& where) const {
    for (const char c : letters)
      if (std::ranges::count(letters, c) > 1) fail(quoted(c) + " stands twice in " + where);
  }

  std::string letters_that_stand_once() const {
    std::string once;
    for (int i : {0, 1})
      for (const char c : operands_[i].letters)
        if (!has(operands_[1 - i].letters, c)) once += c;
    std::ranges::sort(once);
    return once;
  }

  Extents shape(const Value& v) const { return extents(v.shape(at_)); }
  std::string type(int i) const {
    const Value& v = operands_[i].value;
    return to_string(Type::value(v.dtype(at_), shape(v)));
  }
  std::int64_t extent(const Lettered& x, char c) const { return shape(x.value)[x.letters.find(c)]; }

  void check_shape(int i) const {
    const Lettered& x = operands_[i];
    if (shape(x.value).size() != x.letters.size())
      fail("expected a value of " + std::to_string(x.letters.size()) + " dimensions for \"" +
           x.letters + "\" as operand " + std::to_string(i) + ", given " + type(i));
    if (i == 0) return;
    for (const char c : x.letters)
      if (has(operands_[0].letters, c) && extent(operands_[0], c) != extent(x, c))
        fail(quoted(c) + " has extent " + std::to_string(extent(operands_[0], c)) + " in " +
             type(0) + " and " + std::to_string(extent(x, c)) + " in " + type(1));
  }

  // Those of `dot`.
  void check_dtypes() {
    const DType a = operands_[0].value.dtype(at_), b = operands_[1].value.dtype(at_);
    const bool of_bytes = graph::is_byte_float(a) && graph::is_byte_float(b);
    if (a != b && !of_bytes)
      fail("expected operands of one dtype, given " + type(0) + " and " + type(1));
    if (a.is_float()) {
      wide_ = a == f64 ? f64 : f32;
    } else {
      if (a != i8 && a != i16 && a != i32)
        fail("expected floats, i8, i16 or i32, given " + type(0) + " and " + type(1));
      wide_ = i32;
    }
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
    for (Lettered& o : operands_) o.value = o.value.astype(wide_, at_);
    x = {kept, recorded(Op::ReduceSum, x.value, std::move(own))};
  }

  Value recorded(Op op, const Value& x, Attr attr) const {
    return recorder_.value(
        recorder_.builder().add(op, {recorder_.id(x, "einsum", at_)}, std::move(attr), {}, at_));
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
    DotOptions options{.precision = precision_};
    const Value a = matrix(operands_[0], left, summed, options.trans_a);
    const Value b = matrix(operands_[1], summed, right, options.trans_b);
    Shape shape;
    for (const char c : left) shape.push_back(extent(operands_[0], c));
    for (const char c : right) shape.push_back(extent(operands_[1], c));
    return {left + right, reshaped(dot(Operand(a, at_), Operand(b, at_), options), shape, at_)};
  }

  // With an extent of 1 for each letter that it lacks.
  Value spread(const Lettered& x, const std::string& letters) const {
    std::string own;
    Shape shape;
    for (const char c : letters) {
      shape.push_back(has(x.letters, c) ? extent(x, c) : 1);
      if (has(x.letters, c)) own += c;
    }
    return reshaped(ordered(x, own), shape, at_).astype(wide_, at_);
  }

  Lettered sum_of_products(const std::string& summed) const {
    const std::string all = result_ + summed;
    const Value product =
        elementwise(Op::Mul, {spread(operands_[0], all), spread(operands_[1], all)}, at_);
    if (summed.empty()) return {result_, product};
    Attr last;
    for (std::size_t d = result_.size(); d < all.size(); ++d)
      last.ints.push_back(static_cast<std::int64_t>(d));
    return {result_, recorded(Op::ReduceSum, product, std::move(last))};
  }

  Value arranged(const Lettered& x) const { return ordered(x, result_); }

  Recorder& recorder_;
  const std::string given_;
  Lettered operands_[2];
  std::string result_;
  const Precision precision_;
  const Location at_;
  DType wide_;  // the result's, in which sums are made
};

}  // namespace
}  // namespace palladium::trace

namespace palladium {

Value einsum(const char* subscripts, const Operand& a, const Operand& b, EinsumOptions options) {
  const Location at = trace::location(a);
  const Value x = trace::resolve(a), y = trace::resolve(b);
  return trace::Einsum(subscripts, x, y, options.precision, at).run();
}

}  // namespace palladium
