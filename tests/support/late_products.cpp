#include "tests/support/late_products.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace palladium::test {

namespace {

using Tree = LateProducts::Tree;
using Scale = LateProducts::Scale;
using Extra = LateProducts::Extra;
using Matrix = std::vector<float>;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Own arrays: queries, and what Extra::sums_own multiplies. Walked ones: keys, values, W.
int own_of_sum(const LateProducts& p) { return p.queries; }
int first_value(const LateProducts& p) { return p.keys; }
int middle(const LateProducts& p) { return p.keys + p.values; }

bool needs_top(const LateProducts& p) {
  return std::ranges::any_of(p.lates, [](const LateProducts::Late& l) {
    return l.tree == Tree::of_carry || l.scale == Scale::by_carry;
  });
}

// ---- as a kernel

class LateBody {
 public:
  LateBody(const LateProducts& p, BlockStep& step)
      : p_(p), s_(step), firsts_(p.firsts.size()), a_(p.lates.size()), blocks_(p.loop.walked.size()), before_(step.sums) {}

  void run() {
    Random random(p_.order);
    std::vector<std::function<bool()>> open;
    for (std::size_t f = 0; f < p_.firsts.size(); ++f)
      open.emplace_back([this, f] { return first(f), true; });
    for (std::size_t l = 0; l < p_.lates.size(); ++l) {
      open.emplace_back([this, l] { return make_a(l); });
      open.emplace_back([this, l] { return late(l); });
    }
    if (p_.carries_top) open.emplace_back([this] { return top(); });
    if (p_.extra != Extra::none) open.emplace_back([this] { return extra(); });
    while (!open.empty()) {
      const std::size_t i = at(random.below(static_cast<int>(open.size())));
      if (open[i]()) open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

 private:
  DType dtype() const { return p_.loop.dtype; }
  // Loaded once, or by each that asks.
  Value block(int i) {
    if (p_.loads_again) return s_.blocks[at(i)]();
    std::optional<Value>& loaded = blocks_[at(i)];
    if (!loaded) loaded = s_.blocks[at(i)]();
    return *loaded;
  }
  bool is_turned(int i) const { return p_.loop.walked[at(i)].is_turned; }
  Value by_block(const Value& a, int i) {
    return dot(a, block(i), {.trans_b = is_turned(i)});
  }

  void first(std::size_t f) {
    const LateProducts::First& first = p_.firsts[f];
    const Value q = s_.own[f % at(p_.queries)];
    Value s = dot(q, block(first.key), {.trans_b = true});
    if (first.second >= 0) s = s + dot(q, block(first.second), {.trans_b = true});
    firsts_[f] = s;
  }

  static Value clamped(const Value& s) { return minimum(maximum(s, -2.0f), 2.0f); }
  static Value top_of(const Value& s) { return max(s, {.axis = {1}, .keepdims = true}); }

  Value tree(Tree tree, const Value& s, const Value& t) const {
    switch (tree) {
    case Tree::bare: return s;
    case Tree::clamped: return clamped(s);
    case Tree::stepped: return where(s > 1.0f, 1.0f, 0.0f) - where(s < -1.0f, 1.0f, 0.0f);
    case Tree::gated: return clamped(s) * clamped(t);
    case Tree::divided: return clamped(floor(s / 2.0f));
    case Tree::seen: {
      const Value row = iota(i32, {p_.loop.rows, 1}, 0),
                  column = iota(i32, {1, p_.loop.columns}, 1);
      return where(column + s_.i * static_cast<int>(p_.loop.columns) <= row * 3, clamped(s), 0.0f);
    }
    case Tree::of_row: return clamped(s - top_of(s) + 2.0f);
    case Tree::of_carry: return where(s < before_.back(), clamped(s), 0.0f);
    }
    return s;
  }

  bool make_a(std::size_t l) {
    const LateProducts::Late& late = p_.lates[l];
    if (!firsts_[at(late.of)] || !firsts_[at(late.beside)]) return false;
    const Value s = *firsts_[at(late.of)], t = *firsts_[at(late.beside)];
    if (late.by_middle)
      a_[l] = clamped(by_block(tree(late.tree, s, t).astype(dtype()), middle(p_))).astype(dtype());
    else
      a_[l] = tree(late.tree, s, t).astype(dtype());
    return true;
  }

  std::optional<Value> scale(const LateProducts::Late& late) const {
    switch (late.scale) {
    case Scale::none: return std::nullopt;
    case Scale::negated: return full({}, -1.0f, f32);
    case Scale::halved: return full({}, 0.5f, f32);
    case Scale::by_row: return where(top_of(*firsts_[at(late.of)]) > 2.0f, -1.0f, 1.0f);
    case Scale::by_carry: return where(next_top() > before_.back(), -1.0f, 1.0f);
    case Scale::by_iteration: return where(s_.i % 2 == 0, 1.0f, -1.0f);
    }
    return std::nullopt;
  }

  Value next_top() const { return maximum(before_.back(), top_of(*firsts_[0])); }

  bool late(std::size_t l) {
    const LateProducts::Late& late = p_.lates[l];
    if (!a_[l] || (late.scale == Scale::by_carry && !firsts_[0])) return false;
    const Value product = by_block(*a_[l], late.by_key ? late.block : first_value(p_) + late.block);
    const std::optional<Value> c = scale(late);
    const Value sum = before_[l];
    s_.sums[l] = !c ? sum + product : late.behind ? (sum + product) * *c : sum * *c + product;
    return true;
  }

  bool top() {
    if (!firsts_[0]) return false;
    s_.sums.back() = next_top();
    return true;
  }

  bool extra() {
    if (p_.extra == Extra::sums_own) {
      s_.sums[p_.lates.size()] =
          before_[p_.lates.size()] + by_block(s_.own[at(own_of_sum(p_))], first_value(p_));
      return true;
    }
    if (p_.extra == Extra::stores_first) {
      if (!firsts_.back()) return false;
      s_.keep(*firsts_.back());
      return true;
    }
    if (!a_.back()) return false;
    const Value product = by_block(*a_.back(), first_value(p_));
    if (p_.extra == Extra::stores_product) {
      s_.keep(product);
    } else {
      s_.sums[p_.lates.size()] = before_[p_.lates.size()] + product;
      s_.keep(s_.sums[p_.lates.size()]);
    }
    return true;
  }

  const LateProducts& p_;
  BlockStep& s_;
  std::vector<std::optional<Value>> firsts_, a_, blocks_;
  std::vector<Value> before_;
};

// ---- as plain loops

class Plain {
 public:
  Plain(const LateProducts& p, const std::vector<Matrix>& arrays) : p_(p), l_(p.loop), in_(arrays) {
    for (const BlockLoop::Sum& s : l_.sums)
      out_.emplace_back(at(l_.programs) * rows() * static_cast<std::size_t>(s.width), s.first);
    if (l_.kept > 0)
      out_.emplace_back(at(l_.programs) * at(std::max(l_.iterations, 1)) * rows() *
                            static_cast<std::size_t>(l_.kept),
                        NAN);
  }

  std::vector<Matrix> run() {
    for (program_ = 0; program_ < l_.programs; ++program_)
      for (i_ = 0; i_ < l_.trips(program_); ++i_) iteration();
    return out_;
  }

 private:
  std::size_t rows() const { return static_cast<std::size_t>(l_.rows); }
  std::size_t columns() const { return static_cast<std::size_t>(l_.columns); }
  std::size_t width(int walked) const {
    return static_cast<std::size_t>(l_.walked[at(walked)].width);
  }

  float walked(int a, std::size_t row, std::size_t column) const {
    const std::size_t all = static_cast<std::size_t>(l_.keys());
    const std::size_t key = at(i_) * columns() + row;
    if (key >= all - at(l_.masked)) return 0;
    const Matrix& m = in_[l_.own.size() + at(a)];
    return l_.walked[at(a)].is_turned ? m[column * all + key] : m[key * width(a) + column];
  }
  float own(int a, std::size_t row, std::size_t column) const {
    return in_[at(a)]
              [(at(program_) * rows() + row) * static_cast<std::size_t>(l_.own[at(a)]) + column];
  }
  float& sum(std::size_t s, std::size_t row, std::size_t column) {
    return out_[s][(at(program_) * rows() + row) * static_cast<std::size_t>(l_.sums[s].width) +
                   column];
  }
  float& kept(std::size_t row, std::size_t column) {
    const std::size_t of = at(program_) * at(std::max(l_.iterations, 1)) + at(i_);
    return out_.back()[(of * rows() + row) * static_cast<std::size_t>(l_.kept) + column];
  }

  Matrix by_keys(int q, int key) const {
    Matrix s(rows() * columns());
    for (std::size_t r = 0; r < rows(); ++r)
      for (std::size_t c = 0; c < columns(); ++c)
        for (std::size_t k = 0; k < width(key); ++k)
          s[r * columns() + c] += own(q, r, k) * walked(key, c, k);
    return s;
  }
  Matrix by_block(const Matrix& a, int block) const {
    Matrix o(rows() * width(block));
    for (std::size_t r = 0; r < rows(); ++r)
      for (std::size_t k = 0; k < columns(); ++k)
        for (std::size_t c = 0; c < width(block); ++c)
          o[r * width(block) + c] += a[r * columns() + k] * walked(block, k, c);
    return o;
  }

  static float clamped(float x) { return std::min(std::max(x, -2.0f), 2.0f); }
  float top_of(const Matrix& s, std::size_t row) const {
    return *std::max_element(&s[row * columns()], &s[row * columns()] + columns());
  }

  float tree(Tree tree, const Matrix& s, const Matrix& t, std::size_t r, std::size_t c) {
    const float x = s[r * columns() + c];
    switch (tree) {
    case Tree::bare: return x;
    case Tree::clamped: return clamped(x);
    case Tree::stepped: return static_cast<float>((x > 1) - (x < -1));
    case Tree::gated: return clamped(x) * clamped(t[r * columns() + c]);
    case Tree::divided: return clamped(std::floor(x / 2));
    case Tree::seen: return c + at(i_) * columns() <= r * 3 ? clamped(x) : 0;
    case Tree::of_row: return clamped(x - top_of(s, r) + 2);
    case Tree::of_carry: return x < sum(l_.sums.size() - 1, r, 0) ? clamped(x) : 0;
    }
    return x;
  }

  Matrix a_of(const LateProducts::Late& late, const std::vector<Matrix>& firsts) {
    Matrix a(rows() * columns());
    for (std::size_t r = 0; r < rows(); ++r)
      for (std::size_t c = 0; c < columns(); ++c)
        a[r * columns() + c] = tree(late.tree, firsts[at(late.of)], firsts[at(late.beside)], r, c);
    if (!late.by_middle) return a;
    a = by_block(a, middle(p_));
    std::ranges::transform(a, a.begin(), clamped);
    return a;
  }

  float scale(const LateProducts::Late& late, const std::vector<Matrix>& firsts, std::size_t r) {
    switch (late.scale) {
    case Scale::none: return 1;
    case Scale::negated: return -1;
    case Scale::halved: return 0.5f;
    case Scale::by_row: return top_of(firsts[at(late.of)], r) > 2 ? -1.0f : 1.0f;
    case Scale::by_carry:
      return top_of(firsts[0], r) > sum(l_.sums.size() - 1, r, 0) ? -1.0f : 1.0f;
    case Scale::by_iteration: return i_ % 2 == 0 ? 1.0f : -1.0f;
    }
    return 1;
  }

  void iteration() {
    std::vector<Matrix> firsts;
    for (std::size_t f = 0; f < p_.firsts.size(); ++f) {
      const int q = static_cast<int>(f) % p_.queries;
      firsts.push_back(by_keys(q, p_.firsts[f].key));
      if (p_.firsts[f].second < 0) continue;
      const Matrix more = by_keys(q, p_.firsts[f].second);
      std::ranges::transform(firsts.back(), more, firsts.back().begin(), std::plus());
    }
    Matrix a;
    for (std::size_t l = 0; l < p_.lates.size(); ++l) {
      const LateProducts::Late& late = p_.lates[l];
      const int block = late.by_key ? late.block : first_value(p_) + late.block;
      a = a_of(late, firsts);
      const Matrix o = by_block(a, block);
      for (std::size_t r = 0; r < rows(); ++r) {
        const float by = scale(late, firsts, r);
        for (std::size_t c = 0; c < width(block); ++c) {
          float& s = sum(l, r, c);
          s = late.behind ? (s + o[r * width(block) + c]) * by : s * by + o[r * width(block) + c];
        }
      }
    }
    extra(firsts.back(), a);
    if (p_.carries_top)
      for (std::size_t r = 0; r < rows(); ++r)
        sum(l_.sums.size() - 1, r, 0) =
            std::max(sum(l_.sums.size() - 1, r, 0), top_of(firsts[0], r));
  }

  void extra(const Matrix& first, const Matrix& a) {
    if (p_.extra == Extra::none) return;
    Matrix own_a(rows() * columns());
    for (std::size_t e = 0; p_.extra == Extra::sums_own && e < own_a.size(); ++e)
      own_a[e] = own(own_of_sum(p_), e / columns(), e % columns());
    const bool is_sum = p_.extra == Extra::sums_own || p_.extra == Extra::reads_sum;
    const Matrix o = p_.extra == Extra::stores_first
                         ? first
                         : by_block(p_.extra == Extra::sums_own ? own_a : a, first_value(p_));
    const std::size_t n = o.size() / rows();
    for (std::size_t r = 0; r < rows(); ++r)
      for (std::size_t c = 0; c < n; ++c) {
        float x = o[r * n + c];
        if (is_sum) x = sum(p_.lates.size(), r, c) += x;
        if (p_.extra != Extra::sums_own) kept(r, c) = x;
      }
  }

  const LateProducts& p_;
  const BlockLoop& l_;
  const std::vector<Matrix>& in_;
  std::vector<Matrix> out_;
  int program_ = 0, i_ = 0;
};

// What a product is made of takes no more numbers than a type has exactly.
Tree drawn_tree(Random& random, DType t) {
  const Tree tree = random.pick({Tree::bare, Tree::clamped, Tree::stepped, Tree::gated,
                                 Tree::divided, Tree::seen, Tree::of_row, Tree::of_carry});
  return tree == Tree::bare && t.bytes() == 1 ? Tree::clamped : tree;
}

LateProducts::Late drawn_late(Random& random, const LateProducts& p) {
  LateProducts::Late l;
  const int firsts = static_cast<int>(p.firsts.size());
  l.tree = drawn_tree(random, p.loop.dtype);
  l.of = random.below(firsts);
  l.beside = random.below(firsts);
  l.by_middle = random.chance(8);
  l.by_key = p.loop.dtype.bytes() > 1 && random.chance(35);
  l.block = random.below(l.by_key ? p.keys : p.values);
  l.scale = random.pick(
      {Scale::none, Scale::none, Scale::negated, Scale::halved, Scale::by_row, Scale::by_carry});
  if (random.chance(3)) l.scale = Scale::by_iteration;
  l.behind = random.chance(10);
  return l;
}

BlockLoop drawn_loop(Random& random) {
  BlockLoop l;
  l.dtype = random.pick({f16, f16, f16, f16, bf16, bf16, bf16, f8e4m3});
  l.num_warps = random.pick({0, 4, 4, 8});
  l.rows = l.num_warps == 8 ? random.pick({64, 128, 128}) : 64;
  l.columns = random.pick({32, 32, 64});
  l.num_stages = random.pick({2, 2, 3, 3, 4});
  l.iterations = random.between(0, l.num_stages + 2);
  if (l.iterations < 2 && random.chance(70)) l.iterations += 3;
  l.spelling = random.pick({BlockLoop::Spelling::carried, BlockLoop::Spelling::carried,
                            BlockLoop::Spelling::held, BlockLoop::Spelling::axis_registers,
                            BlockLoop::Spelling::axis_shared});
  if (l.by_axis()) l.iterations = std::max(l.iterations, 1);
  l.persistent = random.chance(35);
  if (!l.persistent && random.chance(20)) l.cluster = 2;
  l.programs = l.by_axis() ? random.between(1, 3) * 2 : (l.iterations + 2) / 2 * 2 * l.cluster;
  if (l.persistent && l.by_axis()) l.programs *= 2;
  l.all_alike = random.chance(15);
  if (random.chance(15)) l.masked = random.between(1, static_cast<int>(l.columns) + 3);
  if (l.masked >= l.keys()) l.masked = 5;
  if (random.chance(8)) l.specialize = random.chance(30) ? std::optional(false) : std::nullopt;
  return l;
}

}  // namespace

bool LateProducts::has_middle() const { return std::ranges::any_of(lates, &Late::by_middle); }

LateProducts LateProducts::drawn(Random& random) {
  LateProducts p;
  p.loop = drawn_loop(random);
  p.d = random.pick({32, 32, 64});
  p.d_values = random.pick({32, 64, 128});
  const int firsts = random.between(1, 3);
  p.queries = random.between(1, firsts);
  p.keys = random.between(1, firsts);
  p.values = random.between(1, 2);
  p.firsts.clear();
  for (int f = 0; f < firsts; ++f)
    p.firsts.push_back(
        {.key = random.below(p.keys), .second = random.chance(15) ? random.below(p.keys) : -1});
  p.lates.clear();
  for (int l = random.pick({1, 1, 2}); l > 0; --l) p.lates.push_back(drawn_late(random, p));
  if (random.chance(25))
    p.extra = random.pick(
        {Extra::stores_first, Extra::stores_product, Extra::reads_sum, Extra::sums_own});
  p.carries_top = needs_top(p) || random.chance(10);
  p.order = random.bits();
  p.loads_again = random.chance(10);
  p.set_arrays();
  return p;
}

void LateProducts::set_arrays() {
  const bool turns = loop.dtype.bytes() == 1;
  loop.own.assign(at(queries), d);
  if (extra == Extra::sums_own) loop.own.push_back(loop.columns);
  loop.walked.assign(at(keys), {.width = d});
  loop.walked.insert(loop.walked.end(), at(values), {.width = d_values, .is_turned = turns});
  if (has_middle()) loop.walked.push_back({.width = loop.columns, .is_turned = turns});
  loop.sums.clear();
  for (const Late& l : lates) loop.sums.push_back({.width = l.by_key ? d : d_values});
  if (extra == Extra::sums_own || extra == Extra::reads_sum)
    loop.sums.push_back({.width = d_values});
  if (carries_top) loop.sums.push_back({.width = 1, .first = -100});
  loop.kept = extra == Extra::stores_first                                  ? loop.columns
              : extra == Extra::stores_product || extra == Extra::reads_sum ? d_values
                                                                            : 0;
}

std::string LateProducts::text() const {
  static const char* const spellings[] = {"carried", "held", "by axis", "by axis in smem"};
  std::string all = std::string(spellings[static_cast<int>(loop.spelling)]) + ", " +
                    std::string(loop.dtype.name()) + " " + std::to_string(loop.rows) + "x" +
                    std::to_string(loop.columns) + ", d " + std::to_string(d) + " and " +
                    std::to_string(d_values) + ", " + std::to_string(loop.programs) +
                    " programs of " + std::to_string(loop.iterations) + ", " +
                    std::to_string(loop.num_warps) + " warps, " + std::to_string(loop.num_stages) +
                    " stages";
  if (loop.persistent) all += ", persistent";
  if (loop.all_alike) all += ", all alike";
  if (loop.cluster > 1) all += ", clusters";
  if (loop.masked > 0) all += ", masked " + std::to_string(loop.masked);
  if (loop.specialize != std::optional(true)) all += ", maybe no producer";
  all += "; " + std::to_string(queries) + " queries";
  for (const First& f : firsts) {
    all += ", k" + std::to_string(f.key);
    if (f.second >= 0) all += "+k" + std::to_string(f.second);
  }
  for (const Late& l : lates) {
    all += "; tree " + std::to_string(static_cast<int>(l.tree)) + " of " + std::to_string(l.of) +
           "," + std::to_string(l.beside) + (l.by_middle ? " by w" : "") +
           (l.by_key ? " by k" : " by v") + std::to_string(l.block) + ", scale " +
           std::to_string(static_cast<int>(l.scale)) + (l.behind ? " behind" : "");
  }
  if (loads_again) all += "; loads again";
  if (extra != Extra::none) all += "; extra " + std::to_string(static_cast<int>(extra));
  return all + (carries_top ? "; carries a top" : "");
}

graph::Graph LateProducts::graph() const {
  BlockLoop l = loop;
  l.body = [p = *this](BlockStep& step) { LateBody(p, step).run(); };
  return l.graph();
}

std::vector<std::vector<float>> LateProducts::expected(
    const std::vector<std::vector<float>>& arrays) const {
  return Plain(*this, arrays).run();
}

}  // namespace palladium::test
