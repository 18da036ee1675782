// Asynchronous products of a warpgroup. Threads only register and go on; a product exists once all
// 128 have, and while it is in flight its accumulator registers hold a pattern that nobody should
// see.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "codegen/base/format.hpp"
#include "runtime/emulator/descriptor.hpp"
#include "runtime/emulator/machine.hpp"
#include "runtime/emulator/numbers.hpp"
#include "runtime/emulator/product.hpp"

namespace palladium::emulator {
namespace {

using abi::Format;

constexpr int rows = 64, threads = 128;
constexpr std::uint32_t chunk = 16;

// Element i of thread t's accumulator.
int row_of(int t, int i) { return 16 * (t / 32) + t % 32 / 4 + 8 * (i / 2 & 1); }
int column_of(int t, int i) { return 8 * (i / 4) + 2 * (t % 4) + (i & 1); }

bool is_integer(Format f) { return f == Format::i8 || f == Format::u8; }

// 32-bit registers of an accumulator in one thread.
int registers_of(const abi::Wgmma& shape) {
  return shape.d == Format::f16 ? shape.n / 4 : shape.n / 2;
}

float as_float(Format format, std::uint32_t bits) {
  switch (format) {
  case Format::bf16: return widen_bf16(static_cast<std::uint16_t>(bits));
  case Format::f16: return widen_f16(static_cast<std::uint16_t>(bits));
  case Format::e4m3: return widen_e4m3(static_cast<std::uint8_t>(bits));
  case Format::e5m2: return widen_e5m2(static_cast<std::uint8_t>(bits));
  default: return std::bit_cast<float>(bits & ~0x1fffu);  // tf32: the low bits are not read
  }
}

std::int32_t as_integer(Format format, std::uint32_t bits) {
  return format == Format::i8 ? static_cast<std::int8_t>(bits) : static_cast<std::uint8_t>(bits);
}

template <class Number>
Number as(Format format, std::uint32_t bits) {
  if constexpr (std::is_same_v<Number, float>) {
    return as_float(format, bits);
  } else {
    return as_integer(format, bits);
  }
}

// Calls put(row, k, number) for each element of an operand whose chunks are listed: K-major by rows
// and then along k, transposed by chunks of 8 rows and then along k.
template <class Number, int Bytes, class Put>
void read_chunks(const std::byte* shared, const std::vector<std::uint32_t>& chunks, Format format,
                 bool transposed, int k, Put put) {
  constexpr int per = static_cast<int>(chunk) / Bytes;
  const int along = transposed ? k : k / per;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const int outer = static_cast<int>(c) / along, inner = static_cast<int>(c) % along;
    const std::byte* from = shared + chunks[c];
    for (int j = 0; j < per; ++j) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, from + j * Bytes, Bytes);
      const Number x = as<Number>(format, bits);
      transposed ? put(outer * per + j, inner, x) : put(outer, inner * per + j, x);
    }
  }
}

template <class Number, class Put>
void read_operand(const std::byte* shared, const std::vector<std::uint32_t>& chunks, Format format,
                  bool transposed, int k, Put put) {
  switch (bytes_of(format)) {
  case 1: return read_chunks<Number, 1>(shared, chunks, format, transposed, k, put);
  case 2: return read_chunks<Number, 2>(shared, chunks, format, transposed, k, put);
  default: return read_chunks<Number, 4>(shared, chunks, format, transposed, k, put);
  }
}

template <class Number>
void multiply_product(const std::byte* shared, const WgmmaProduct& p, Number* d) {
  const int n = p.shape.n, k = p.shape.k;
  static thread_local std::vector<Number> a, b;
  a.resize(static_cast<std::size_t>(rows * k));
  b.resize(static_cast<std::size_t>(k * n));
  if (p.a_in_registers) {
    for (int i = 0; i < rows * k; ++i) a[i] = as<Number>(p.shape.a, p.a_elements[i]);
  } else {
    read_operand<Number>(shared, p.a_chunks, p.shape.a, p.shape.transpose_a, k,
                         [&](int row, int along, Number x) { a[row * k + along] = x; });
  }
  read_operand<Number>(shared, p.b_chunks, p.shape.b, p.shape.transpose_b, k,
                       [&](int column, int along, Number x) { b[along * n + column] = x; });
  if (!p.accumulate) std::fill_n(d, rows * n, Number{0});
  multiply_add(d, a.data(), b.data(), rows, n, k);
}

void list_chunks(std::uint64_t descriptor, bool transposed, int extent, int k, Format format,
                 std::vector<std::uint32_t>& chunks) {
  const MatrixDescriptor d = MatrixDescriptor::decode(descriptor);
  chunks.clear();
  if (transposed) {
    for (int c = 0; c < extent / 8; ++c) {
      for (int i = 0; i < k; ++i) chunks.push_back(d.mn_major(c, i) - shared_base);
    }
    return;
  }
  const int along = k * static_cast<int>(bytes_of(format)) / static_cast<int>(chunk);
  for (int r = 0; r < extent; ++r) {
    for (int q = 0; q < along; ++q) chunks.push_back(d.k_major(r, q) - shared_base);
  }
}

}  // namespace

void Machine::wgmma(const abi::Wgmma& shape, void* d, const std::uint32_t* a_registers,
                    std::uint64_t a, std::uint64_t b, bool accumulate, int line) {
  Thread& me = self();
  Block& block = *me.block;
  WgmmaUnit& unit = block.wgmma[me.ids.warpgroup];
  WgmmaProduct& product = join_product(unit, {.shape = shape,
                                              .a = a_registers != nullptr ? 0 : a,
                                              .b = b,
                                              .accumulate = accumulate,
                                              .a_in_registers = a_registers != nullptr,
                                              .line = line});
  if (a_registers != nullptr) take_a(product, a_registers);
  lend(product, d, line);
  if (races() && me.ids.lane == 0) product.known[me.ids.warp] = engine_.release(me.agent);
  const std::uint32_t number = me.wgmma.issued++;
  if (++product.issued < threads) return;

  find_operands(block, product);
  if (races()) {
    for (const auto* chunks : {&product.a_chunks, &product.b_chunks}) {
      const race::Access access = {unit.agent, race::Kind::read, race::Proxy::async,
                                   static_cast<std::uint32_t>(line)};
      if (const auto race = block.shadow->access(*chunks, chunk, access, product.known)) {
        report_race(block, describe(block, static_cast<std::uint32_t>(race->offset)), *race);
      }
    }
    product.after = engine_.released(unit.agent);
  }
  const Asynchrony when = launch_.options.asynchrony;
  if (when == Asynchrony::eager || (when == Asynchrony::random && random() >> 63 == 0)) {
    execute(block, unit, number + 1);
  }
  progress();
  for (Thread* thread : std::exchange(unit.waiting, {})) unpark(*thread);
}

// The product that this thread's next wgmma is, the same for all threads of the warpgroup.
WgmmaProduct& Machine::join_product(WgmmaUnit& unit, const WgmmaCall& mine) {
  const std::uint32_t number = self().wgmma.issued;
  if (number - unit.first == unit.products.size()) {
    WgmmaProduct& product = unit.products.emplace_back();
    static_cast<WgmmaCall&>(product) = mine;
    if (mine.a_in_registers) {
      product.a_elements.resize(static_cast<std::size_t>(rows * mine.shape.k));
    }
  }
  WgmmaProduct& product = unit[number];
  if (!(product == mine)) {
    fail(mine.line, fmt::format("issues another wgmma than the other threads of its warpgroup: "
                                "descriptors {:#x} and {:#x}, theirs {:#x} and {:#x}{}",
                                mine.a, mine.b, product.a, product.b, where(product.line)));
  }
  return product;
}

// Takes the thread's part of the accumulator, unless an earlier product in flight has it.
void Machine::lend(WgmmaProduct& product, void* d, int line) {
  Thread& me = self();
  const int t = static_cast<int>(me.ids.thread);
  const abi::Wgmma& shape = product.shape;
  if (product.a_in_registers && !me.wgmma.fenced) {
    report(*me.block, {"wgmma fence", line},
           fmt::format("{} gives registers to a wgmma without wgmma_fence since they may have been "
                       "written{}",
                       describe(me), where(line)));
  }
  for (WgmmaThread::Lent& lent : me.wgmma.lent) {
    if (lent.registers != d) continue;
    if (product.accumulator != nullptr && product.accumulator != lent.accumulator) {
      fail(line, "accumulates in other registers than the other threads of its warpgroup");
    }
    product.accumulator = lent.accumulator;
    lent.last = me.wgmma.issued;
    return;
  }
  if (!me.wgmma.fenced) {
    report(
        *me.block, {"wgmma fence", line},
        fmt::format("{} gives accumulator registers to a wgmma without wgmma_fence since they may "
                    "have been written{}",
                    describe(me), where(line)));
  }
  if (product.accumulator == nullptr) {
    product.accumulator = std::make_shared<Accumulator>();
    const auto size = static_cast<std::size_t>(rows * shape.n);
    shape.d == Format::i32 ? product.accumulator->integers.resize(size)
                           : product.accumulator->floats.resize(size);
  }
  Accumulator& accumulator = *product.accumulator;
  accumulator.registers[t] = d;
  me.wgmma.lent.push_back({d, product.accumulator, me.wgmma.issued});
  const auto* words = static_cast<std::uint32_t*>(d);
  for (int i = 0; i < shape.n / 2; ++i) {
    const int at = row_of(t, i) * shape.n + column_of(t, i);
    switch (shape.d) {
    case Format::i32: accumulator.integers[at] = static_cast<std::int32_t>(words[i]); break;
    case Format::f16:
      accumulator.floats[at] = widen_f16(static_cast<std::uint16_t>(words[i / 2] >> 16 * (i % 2)));
      break;
    default: accumulator.floats[at] = std::bit_cast<float>(words[i]);
    }
  }
  std::fill_n(static_cast<std::uint32_t*>(d), registers_of(shape), std::uint32_t{abi::in_flight});
}

// The fragment of A: register j of thread t holds 4 bytes of row g + 8 (j % 2).
void Machine::take_a(WgmmaProduct& product, const std::uint32_t* registers) {
  const int t = static_cast<int>(self().ids.thread);
  const int bytes = static_cast<int>(bytes_of(product.shape.a)), per = 4 / bytes;
  const std::uint32_t mask = bytes == 4 ? ~0u : (1u << 8 * bytes) - 1;
  for (int j = 0; j < 4; ++j) {
    const int row = 16 * (t / 32) + t % 32 / 4 + 8 * (j & 1);
    for (int e = 0; e < per; ++e) {
      const int along = (j >> 1) * 4 * per + per * (t % 4) + e;
      product.a_elements[row * product.shape.k + along] = registers[j] >> 8 * bytes * e & mask;
    }
  }
}

// Lists the operands' chunks; they must lie in shared memory and hold what somebody wrote.
void Machine::find_operands(const Block& block, WgmmaProduct& product) {
  const abi::Wgmma& s = product.shape;
  if (!product.a_in_registers) {
    list_chunks(product.a, s.transpose_a, rows, s.k, s.a, product.a_chunks);
  }
  list_chunks(product.b, s.transpose_b, s.n, s.k, s.b, product.b_chunks);
  const std::size_t size = block.shared.size();
  for (const bool is_a : {true, false}) {
    const char* operand = is_a ? "A" : "B";
    if (is_a && product.a_in_registers) continue;
    if (MatrixDescriptor::decode(is_a ? product.a : product.b).base_offset != 0) {
      fail(
          product.line,
          fmt::format("uses a matrix descriptor of {} with a base offset, which the emulator lacks",
                      operand));
    }
    for (const std::uint32_t offset : is_a ? product.a_chunks : product.b_chunks) {
      if (offset > size || chunk > size - offset) {
        fail(product.line,
             fmt::format("multiplies by an operand {} at offset {} of {} bytes of shared memory",
                         operand, static_cast<std::int32_t>(offset), size));
      }
      require_written(
          block, offset, chunk,
          is_a ? "multiplies by an operand A:" : "multiplies by an operand B:", product.line);
    }
  }
}

void Machine::execute(Block& block, WgmmaUnit& unit, std::uint32_t until) {
  for (; unit.executed < until; ++unit.executed) {
    WgmmaProduct& product = unit[unit.executed];
    Accumulator& d = *product.accumulator;
    if (is_integer(product.shape.a)) {
      multiply_product<std::int32_t>(block.shared.data(), product, d.integers.data());
    } else {
      multiply_product<float>(block.shared.data(), product, d.floats.data());
    }
    if (product.shape.d == Format::f16) {
      for (float& x : d.floats) x = widen_f16(narrow_f16(x));
    }
  }
}

void Machine::wgmma_fence(int) { self().wgmma.fenced = true; }

void Machine::wgmma_commit(int) {
  WgmmaThread& mine = self().wgmma;
  mine.groups.push_back(mine.issued);
}

void Machine::wgmma_wait(int groups, int line) {
  Thread& me = self();
  WgmmaThread& mine = me.wgmma;
  WgmmaUnit& unit = me.block->wgmma[me.ids.warpgroup];
  const auto keep = static_cast<std::size_t>(groups);
  if (mine.groups.size() <= keep) return;
  const std::uint32_t until = mine.groups[mine.groups.size() - 1 - keep];
  mine.groups.erase(mine.groups.begin(), mine.groups.end() - groups);
  if (until == mine.retired) return;
  while (unit[until - 1].issued < threads) {
    unit.waiting.push_back(&me);
    park(Wait::wgmma_wait, line);
  }
  execute(*me.block, unit, until);
  retire(unit, until, line);
}

// The thread's products before `until` are over: it gets those registers back that no later product
// of it writes.
void Machine::retire(WgmmaUnit& unit, std::uint32_t until, int line) {
  Thread& me = self();
  WgmmaThread& mine = me.wgmma;
  if (races()) engine_.acquire(me.agent, unit[until - 1].after);
  std::erase_if(mine.lent, [&](const WgmmaThread::Lent& lent) {
    if (lent.last >= until) return false;
    give_back(lent, unit[lent.last].shape, line);
    return true;
  });
  for (std::uint32_t i = mine.retired; i < until; ++i) ++unit[i].retired;
  mine.retired = until;
  mine.fenced = false;
  while (!unit.products.empty() && unit.products.front().retired == threads) {
    unit.products.pop_front();
    ++unit.first;
  }
}

void Machine::give_back(const WgmmaThread::Lent& lent, const abi::Wgmma& shape, int line) {
  Thread& me = self();
  const int t = static_cast<int>(me.ids.thread);
  auto* words = static_cast<std::uint32_t*>(lent.registers);
  const int count = registers_of(shape);
  if (std::any_of(words, words + count, [](std::uint32_t w) { return w != abi::in_flight; })) {
    report(*me.block, {"wgmma write", line},
           fmt::format("{} has written accumulator registers while a wgmma was in flight, before{}",
                       describe(me), where(line)));
  }
  Accumulator& accumulator = *lent.accumulator;
  for (int i = 0; i < shape.n / 2; ++i) {
    const int at = row_of(t, i) * shape.n + column_of(t, i);
    switch (shape.d) {
    case Format::i32: words[i] = static_cast<std::uint32_t>(accumulator.integers[at]); break;
    case Format::f16: {
      const std::uint32_t half = narrow_f16(accumulator.floats[at]);
      words[i / 2] = i % 2 == 0 ? half : words[i / 2] | half << 16;
      break;
    }
    default: words[i] = std::bit_cast<std::uint32_t>(accumulator.floats[at]);
    }
  }
  accumulator.registers[t] = nullptr;
}

void Machine::saw_in_flight(int line) {
  report(*self().block, {"in flight", line},
         fmt::format("{} uses an accumulator register that a wgmma in flight still writes: "
                     "wgmma_wait must come before{}",
                     describe_self(), where(line)));
}

}  // namespace palladium::emulator
