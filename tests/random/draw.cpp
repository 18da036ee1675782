// Valid calls.
#include <algorithm>

#include "tests/random/plan.hpp"

namespace palladium::test::random_calls {
namespace {

constexpr int most_in_block = 256;  // of a block
constexpr int most_programs = 24;

template <class T>
void shuffle(Random& random, std::vector<T>& list) {
  for (std::size_t i = list.size(); i > 1; --i)
    std::swap(list[i - 1], list[static_cast<std::size_t>(random.below(static_cast<int>(i)))]);
}

class Drawing {
 public:
  explicit Drawing(std::uint64_t seed) : random_(seed) { plan_.seed = seed; }

  Plan run() {
    plan_.options = random_.pick(
        {Plan::Options::plain, Plan::Options::plain, Plan::Options::function, Plan::Options::call});
    plan_.symbolic = plan_.options != Plan::Options::plain && random_.chance(60);
    plan_.entry = random_.pick({Plan::Entry::parentheses, Plan::Entry::call, Plan::Entry::into});
    axes();
    operands();
    numbers();
    scratch();
    rest();
    return plan_;
  }

 private:
  DType dtype() {
    return random_.pick({bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, f32, f32,
                         i32, f8e4m3, f8e5m2});
  }

  void axes() {
    const int count = random_.pick({0, 1, 1, 2, 2, 3, 4});
    std::int64_t programs = 1;
    for (int i = 0; i < count; ++i) {
      Axis a;
      a.block = random_.pick({1, 2, 3, 4, 5, 8, 16, 17});
      a.programs = random_.pick({1, 2, 2, 3, 4});
      if (programs * a.programs > most_programs) a.programs = 1;
      programs *= a.programs;
      a.extent = a.block * a.programs;
      if (random_.chance(50)) a.extent -= random_.below(static_cast<int>(a.block));
      plan_.axes.push_back(a);
    }
    if (count > 0 && random_.chance(35)) stays_ = random_.below(count);
  }

  Cut along(int axis, bool output) {
    const Axis& a = plan_.axes[static_cast<std::size_t>(axis)];
    Cut cut{BlockDim(a.block), a.extent, axis, 0, false};
    if (plan_.symbolic) return cut;
    if (random_.chance(20)) {
      cut.block = squeezed;
      cut.extent = a.programs + (output ? 0 : random_.below(3));
    } else if (!output && random_.chance(25)) {
      const std::int64_t size = random_.pick({2, 3, 4, 8});
      const std::int64_t lo = random_.below(static_cast<int>(size));
      const std::int64_t last = a.programs - 1 - lo;
      cut.extent = std::max<std::int64_t>(1, last + random_.between(1, static_cast<int>(size)));
      const std::int64_t hi = std::max<std::int64_t>(0, last + size - cut.extent);
      cut.block = Element(size, {lo, hi});
    }
    cut.reversed = random_.chance(15);
    return cut;
  }

  Cut apart(bool output) {
    const std::int64_t n = random_.pick({1, 1, 2, 3, 4, 5, 8, 16, 17, 31});
    Cut cut{BlockDim(n), n, -1, 0, false};
    if (output || !random_.chance(30)) {
      if (random_.chance(10)) cut.block.size += random_.below(3);
      return cut;
    }
    const int blocks = random_.between(1, 3);
    cut.extent = n * blocks - random_.below(static_cast<int>(n));
    cut.index = random_.below(blocks);
    return cut;
  }

  // An array that has the axes for which `has` holds.
  template <class Has>
  Operand operand(bool output, const Has& has) {
    Operand o;
    o.dtype = dtype();
    for (int attempt = 0;; ++attempt) {
      o.cuts.clear();
      for (int a = 0; a < static_cast<int>(plan_.axes.size()); ++a)
        if (has(a)) o.cuts.push_back(along(a, output));
      while (attempt < 20 && random_.chance(40)) o.cuts.push_back(apart(output));
      shuffle(random_, o.cuts);
      std::int64_t elements = 1;
      for (const Cut& c : o.cuts) elements *= c.block.size;
      if ((elements <= most_in_block && o.cuts.size() <= 4) || attempt == 40) break;
      // Axes that make too large a block are cut into single elements.
      if (attempt > 20)
        for (Axis& a : plan_.axes) a = {1, a.programs, a.programs};
    }
    const bool still = std::all_of(o.cuts.begin(), o.cuts.end(), [](const Cut& c) {
      return c.axis < 0 && c.index == 0 && c.block.kind == BlockDim::Kind::blocked &&
             c.block.size == c.extent;
    });
    o.whole = still && random_.chance(50);
    o.fixed_arity = random_.chance(50);
    if (!o.whole) o.space = random_.pick({Space::automatic, Space::automatic, Space::gmem});
    if (random_.chance(30)) o.fill = random_.below(2);
    return o;
  }

  void layout(Operand& o, bool output) {
    o.layout = random_.pick({Layout::owned, Layout::owned, Layout::shifted, Layout::gaps,
                             Layout::repeated, Layout::read_only});
    const bool rows = o.cuts.size() >= 2;
    if (!rows && (o.layout == Layout::gaps || o.layout == Layout::repeated))
      o.layout = Layout::owned;
    if (output && (o.layout == Layout::repeated || o.layout == Layout::read_only))
      o.layout = Layout::owned;
  }

  void operands() {
    const int inputs = random_.between(1, 3), outputs = random_.pick({1, 1, 2});
    for (int i = 0; i < inputs; ++i)
      plan_.inputs.push_back(
          operand(false, [&](int) { return (plan_.symbolic && i == 0) || random_.chance(60); }));
    for (int i = 0; i < outputs; ++i) {
      const bool stays = stays_ >= 0 && (i == 0 || random_.chance(50));
      plan_.outputs.push_back(operand(true, [&](int axis) { return axis != stays_ || !stays; }));
    }
    // Blocks that were too large have changed the axes meanwhile.
    for (std::vector<Operand>* list : {&plan_.inputs, &plan_.outputs})
      for (Operand& o : *list)
        for (Cut& c : o.cuts)
          if (c.axis >= 0 && plan_.axes[static_cast<std::size_t>(c.axis)].block == 1 &&
              c.block.kind == BlockDim::Kind::blocked) {
            c.block.size = 1;
            c.extent = plan_.axes[static_cast<std::size_t>(c.axis)].extent;
          }
    plan_.aliased = !plan_.symbolic && random_.chance(15);
    for (Operand& o : plan_.inputs) layout(o, false);
    for (Operand& o : plan_.outputs) layout(o, true);
    if (!plan_.aliased) return;
    plan_.inputs[0] = plan_.outputs[0];
    plan_.rest.input_output_aliases = {{0, 0}};
  }

  void numbers() {
    plan_.pattern.assign(plan_.inputs.size(), 'r');
    const int count = random_.pick({0, 0, 1, 2});
    for (int i = 0; i < count; ++i) {
      const DType d = dtype();
      plan_.numbers.push_back({d, random_number(random_, d)});
      const int most = std::min<int>(2, static_cast<int>(plan_.pattern.size()));
      plan_.pattern.insert(static_cast<std::size_t>(random_.below(most + 1)), 1, 'v');
    }
  }

  void scratch() {
    const int count = random_.pick({0, 0, 0, 1, 2});
    const bool named = random_.chance(50);
    for (int i = 0; i < count; ++i) {
      Scoped s{random_.pick({Space::smem, Space::regs}), {{}, dtype()}, user(scratch_line, i)};
      for (int rank = random_.below(3); rank > 0; --rank)
        s.type.shape.push_back(random_.pick({1, 2, 3, 8, 16}));
      plan_.scratch.push_back({named ? "scratch" + std::to_string(i) : "", s});
    }
  }

  void rest() {
    PallasCallOptions& o = plan_.rest;
    o.name = random_.pick<const char*>({"random", "", "k", "a_name", "x1"});
    plan_.as_grid_spec = random_.chance(15);
    const std::size_t rank = plan_.axes.size();
    for (std::size_t i = 0; random_.chance(30) && i < rank; ++i)
      o.grid_names.push_back("axis" + std::to_string(i));
    if (o.grid_names.size() != rank) o.grid_names.clear();
    o.compiler_params.fma = random_.chance(70);
    o.compiler_params.lineinfo = random_.chance(10);
    o.compiler_params.allow_revisit = random_.chance(5);
    o.compiler_params.num_warps = random_.pick({0, 0, 0, 4, 8, 16});
    o.debug = random_.chance(10);
    o.interpret.params.detect_races = random_.chance(20);
    if (random_.chance(10)) o.cost_estimate = {random_.between(-5, 1 << 30), 7, -1};
    if (random_.chance(10)) o.metadata = {{"key", "value \"\n\\"}, {"", ""}};
    plan_.statements = random_.between(1, 12);
    plan_.elementary = plan_.revisited() < 0 && random_.chance(20);
    o.compiler_params.num_stages = random_.pick({0, 0, 1, 2, 3, 4, 5});
    if (random_.chance(30)) o.compiler_params.warp_specialize = random_.chance(50);
    o.compiler_params.persistent = random_.chance(15);
    if (rank > (plan_.revisited() < 0 ? 1U : 2U) && random_.chance(30))
      o.compiler_params.grid_order = grouped(random_.pick({1, 2, 3, 8}));
  }

  Random random_;
  Plan plan_;
  int stays_ = -1;
};

}  // namespace

Shape Operand::shape() const {
  Shape shape;
  for (const Cut& c : cuts) shape.push_back(c.extent);
  return shape;
}

bool Operand::moves_along(int axis) const {
  return std::any_of(cuts.begin(), cuts.end(), [&](const Cut& c) { return c.axis == axis; });
}

bool Operand::is_ragged() const {
  return std::any_of(cuts.begin(), cuts.end(), [](const Cut& c) {
    return c.extent % c.block.size != 0 || c.block.kind == BlockDim::Kind::element;
  });
}

int Plan::revisited() const {
  for (int axis = 0; axis < static_cast<int>(axes.size()); ++axis)
    for (const Operand& o : outputs)
      if (!o.moves_along(axis)) return axis;
  return -1;
}

Plan draw(std::uint64_t seed) { return Drawing(seed).run(); }

}  // namespace palladium::test::random_calls
