// Products by hand. One is made when it begins; who relies on its sum before it is known to be over
// is refused, and who touches its operands is found by the search for races.
#include <bit>
#include <cstring>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/graph/products.hpp"
#include "palladium/error.hpp"
#include "runtime/interpreter/eval.hpp"
#include "runtime/interpreter/number.hpp"

namespace palladium::interpreter {
namespace {

// Of an f32 tensor cores read the first 10 bits of its fraction.
float read_by_tensor_cores(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & ~0x1fffu);
}
template <class T>
auto read_by_tensor_cores(T x) {
  return widen(x);
}

template <class T>
struct IsOperand : std::bool_constant<IsNumber<T>::value || is_byte_float<T>> {};

// rows x columns, whatever way it lies.
template <class Sum>
std::vector<Sum> matrix(const std::byte* elements, DType dtype, std::int64_t rows,
                        std::int64_t columns, bool transposed) {
  std::vector<Sum> to(static_cast<std::size_t>(rows * columns));
  with_type_if<IsOperand>(dtype, [&]<class T>() {
    const T* const from = reinterpret_cast<const T*>(elements);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        to[static_cast<std::size_t>(r * columns + c)] = static_cast<Sum>(
            read_by_tensor_cores(from[transposed ? c * rows + r : r * columns + c]));
  });
  return to;
}

class Product {
 public:
  Product(Frame& f, ValueId v, const Inst& inst)
      : f_(f), v_(v), inst_(inst), view_(graph::DotView::of(inst)) {}

  void run() {
    const graph::Extents& sum = f_.type(inst_.args[0]).shape;
    const std::int64_t k = f_.type(view_.a).shape[view_.trans_a ? 0 : 1];
    if (f_.dtype(inst_.args[0]) == i32)
      add<std::uint32_t, std::uint32_t>(sum[0], sum[1], k);
    else if (f_.dtype(inst_.args[0]) == f16)
      add<float, F16>(sum[0], sum[1], k);
    else
      add<float, float>(sum[0], sum[1], k);
    f_.products.push_back({f_.view(inst_.args[0]).window, done_, f_.graph().location(v_)});
  }

 private:
  std::vector<std::byte> elements(ValueId operand) {
    const std::size_t bytes = static_cast<std::size_t>(f_.count(operand)) *
                              static_cast<std::size_t>(f_.dtype(operand).bytes());
    if (f_.type(operand).is_value()) return {f_.bytes(operand), f_.bytes(operand) + bytes};
    std::vector<std::byte> read(bytes);
    read_elements(f_, v_, operand, read.data(), f_.copy_agents.multiplying);
    return read;
  }

  // Of 16 bits a sum is rounded once.
  template <class Sum, class Held>
  void add(std::int64_t m, std::int64_t n, std::int64_t k) {
    if (f_.races)
      f_.races->engine().restart(f_.copy_agents.multiplying, f_.races->engine().release(f_.agent));
    const auto a = matrix<Sum>(elements(view_.a).data(), f_.dtype(view_.a), m, k, view_.trans_a);
    const auto b = matrix<Sum>(elements(view_.b).data(), f_.dtype(view_.b), k, n, view_.trans_b);
    if (f_.races) done_ = f_.races->engine().released(f_.copy_agents.multiplying);
    View& sum = f_.view(inst_.args[0]);
    std::byte* const window = sum.window->writable(false, true);
    std::vector<Sum> row(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < m; ++i) {
      Held* const held = reinterpret_cast<Held*>(window + sum.offset + i * sum.strides[0]);
      for (std::size_t j = 0; j < row.size(); ++j) row[j] = widen(held[j]);
      for (std::int64_t p = 0; p < k; ++p) {
        const Sum x = a[static_cast<std::size_t>(i * k + p)];
        const Sum* const y = b.data() + p * n;
        for (std::size_t j = 0; j < row.size(); ++j) row[j] += x * y[j];
      }
      for (std::size_t j = 0; j < row.size(); ++j) held[j] = narrow<Held>(row[j]);
    }
  }

  Frame& f_;
  const ValueId v_;
  const Inst& inst_;
  const graph::DotView view_;
  race::Snapshot done_;
};

}  // namespace

void eval_Wgmma(Frame& f, ValueId v, const Inst& inst) { Product(f, v, inst).run(); }
void eval_WgmmaHeld(Frame& f, ValueId v, const Inst& inst) { Product(f, v, inst).run(); }

// How threads hold elements is nothing to it.
void eval_LayoutCast(Frame& f, ValueId v, const Inst& inst) {
  std::memcpy(f.bytes(v), f.bytes(inst.args[0]), f.plan().bytes(v));
}
void eval_PrintLayout(Frame&, ValueId, const Inst&) {}

void eval_AwaitProducts(Frame& f, ValueId, const Inst& inst) {
  const auto pending = static_cast<std::size_t>(graph::products_left(inst));
  if (f.products.size() <= pending) return;
  const auto end = f.products.end() - static_cast<std::ptrdiff_t>(pending);
  for (auto p = f.products.begin(); p != end; ++p)
    if (f.races) f.races->engine().acquire(f.agent, p->done);
  f.products.erase(f.products.begin(), end);
}

void refuse_under_way(Frame& f, ValueId access) {
  const Inst& inst = f.inst(access);
  const Window* const window = f.view(inst.args[0]).window;
  std::size_t behind = 0;  // products after the last that adds to it
  for (auto p = f.products.rbegin(); p != f.products.rend(); ++p, ++behind) {
    if (p->accumulator != window) continue;
    const bool reads = inst.op == graph::Op::Load;
    throw CompileError(f.graph().location(access),
                       fmt::format("{}: {} is {} while the product of {} may still add to it: "
                                   "plgpu::wgmma_wait({})",
                                   reads ? "load" : "store", window->name(),
                                   reads ? "read" : "stored to", to_string(p->at), behind));
  }
}

}  // namespace palladium::interpreter
