// Asynchronous products of a warpgroup. Threads only register and go on; a product exists once all
// 128 have, and while it is in flight its accumulator registers hold a pattern that nobody should
// see.
#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
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

// Calls f(i, at): elements i and i + 1 of thread t's accumulator are at, at + 1 in 64 x n numbers.
template <class F>
void for_each_pair(int t, int n, F f) {
  const int first = (16 * (t / 32) + t % 32 / 4) * n + 2 * (t % 4);
  for (int i = 0; i < n / 2; i += 4) {
    f(i, first + 2 * i);
    f(i + 2, first + 2 * i + 8 * n);
  }
}

bool is_integer(Format f) { return f == Format::i8 || f == Format::u8; }

// 32-bit registers of an accumulator in one thread.
int registers_of(const abi::Wgmma& shape) {
  return shape.d == Format::f16 ? shape.n / 4 : shape.n / 2;
}

// How elements of a format lie in memory, and what number they are.
template <Format F>
struct Element {};
template <>
struct Element<Format::bf16> {
  using Bits = std::uint16_t;
  static float number(Bits x) { return std::bit_cast<float>(std::uint32_t{x} << 16); }
};
template <>
struct Element<Format::f16> {
  using Bits = std::uint16_t;
  static float number(Bits x) { return widen_f16(x); }
};
template <>
struct Element<Format::e4m3> {
  using Bits = std::uint8_t;
  static float number(Bits x) { return widen_e4m3(x); }
};
template <>
struct Element<Format::e5m2> {
  using Bits = std::uint8_t;
  static float number(Bits x) { return widen_e5m2(x); }
};
template <>
struct Element<Format::tf32> {
  using Bits = std::uint32_t;
  static float number(Bits x) {
    return std::bit_cast<float>(x & ~0x1fffu);
  }  // the rest is not read
};
template <>
struct Element<Format::i8> {
  using Bits = std::uint8_t;
  static std::int32_t number(Bits x) { return static_cast<std::int8_t>(x); }
};
template <>
struct Element<Format::u8> {
  using Bits = std::uint8_t;
  static std::int32_t number(Bits x) { return x; }
};

// Calls f(Element<format>()) for the formats whose numbers are of type Number.
template <class Number, class F>
void with_element(Format format, F f) {
  if constexpr (std::is_same_v<Number, float>) {
    switch (format) {
    case Format::bf16: return f(Element<Format::bf16>());
    case Format::f16: return f(Element<Format::f16>());
    case Format::e4m3: return f(Element<Format::e4m3>());
    case Format::e5m2: return f(Element<Format::e5m2>());
    default: return f(Element<Format::tf32>());
    }
  } else {
    return format == Format::i8 ? f(Element<Format::i8>()) : f(Element<Format::u8>());
  }
}

typedef std::uint32_t Word4 __attribute__((vector_size(16)));

// to[column * step + row] = from[row * stride + column] for four rows and columns.
template <class Number>
void transpose_4x4(const Number* from, int stride, Number* to, int step) {
  static_assert(sizeof(Number) == 4);
  Word4 r[4];
  for (int i = 0; i < 4; ++i) std::memcpy(&r[i], from + i * stride, sizeof r[i]);
  const Word4 low01 = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
  const Word4 low23 = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
  const Word4 high01 = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
  const Word4 high23 = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  const Word4 columns[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                            __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                            __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                            __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
  for (int i = 0; i < 4; ++i) std::memcpy(to + i * step, &columns[i], sizeof r[i]);
}

// Reads an operand whose chunks are listed (K-major: by rows and then along k; transposed: by
// chunks of 8 rows and then along k) into to[row * row_step + k * k_step], one step of which is 1.
template <class Number, class E>
void read_chunks(const std::byte* shared, const MatrixChunks& chunks, bool transposed, int k,
                 Number* to, int row_step, int k_step, E) {
  using Bits = typename E::Bits;
  constexpr int per = static_cast<int>(chunk / sizeof(Bits));
  const auto read = [&](std::size_t c, Number* numbers, int step) {
    Bits bits[per];
    std::memcpy(bits, shared + chunks[c], chunk);
    for (int j = 0; j < per; ++j) numbers[j * step] = E::number(bits[j]);
  };
  if (transposed) {
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      const int i = static_cast<int>(c);
      read(c, to + i / k * per * row_step + i % k * k_step, row_step);
    }
    return;
  }
  const int along = k / per, extent = static_cast<int>(chunks.size()) / along;
  for (int row = 0; row < extent; row += 4) {
    for (int q = 0; q < along; ++q) {
      Number* const at = to + row * row_step + q * per * k_step;
      const auto chunk_of = [&](int r) { return static_cast<std::size_t>((row + r) * along + q); };
      if (k_step == 1) {
        for (int r = 0; r < 4; ++r) read(chunk_of(r), at + r * row_step, 1);
        continue;
      }
      Number rows_of[4][per];
      for (int r = 0; r < 4; ++r) read(chunk_of(r), rows_of[r], 1);
      for (int j = 0; j < per; j += 4) transpose_4x4(&rows_of[0][j], per, at + j * k_step, k_step);
    }
  }
}

// Sums of 8-bit floats keep so many bits behind the leading one of their greatest term, the
// accumulator among them: an H200 says so (question/how small terms of e4m3 count in f32). That the
// rest of each term is dropped, not rounded, is assumed: no GPU was asked.
constexpr int narrow_sum_bits = 13;

bool sums_narrowly(const abi::Wgmma& shape) {
  return shape.a == Format::e4m3 || shape.a == Format::e5m2;
}

// Products with one accumulator, one after the other along k: as one product of all their k.
template <class Number>
void multiply_products(const std::byte* shared, std::span<const WgmmaProduct* const> products,
                       Number* d) {
  const abi::Wgmma& shape = *products[0]->shape;
  const int n = shape.n, k = shape.k, all = k * static_cast<int>(products.size());
  static thread_local std::vector<Number> a, b;
  a.resize(static_cast<std::size_t>(rows * all));
  b.resize(static_cast<std::size_t>(all * n));
  for (std::size_t i = 0; i < products.size(); ++i) {
    const WgmmaProduct& p = *products[i];
    Number* const a_at = a.data() + static_cast<int>(i) * k;
    with_element<Number>(shape.a, [&](auto element) {
      if (!p.a_in_registers) {
        return read_chunks(shared, *p.a_chunks, shape.transpose_a, k, a_at, all, 1, element);
      }
      using Bits = typename decltype(element)::Bits;
      for (int j = 0; j < rows * k; ++j) {
        a_at[j / k * all + j % k] = element.number(static_cast<Bits>(p.a_elements[j]));
      }
    });
    with_element<Number>(shape.b, [&](auto element) {
      read_chunks(shared, *p.b_chunks, shape.transpose_b, k, b.data() + static_cast<int>(i) * k * n,
                  1, n, element);
    });
  }
  if (!products[0]->accumulate) std::fill_n(d, rows * n, Number{0});
  if constexpr (std::is_same_v<Number, float>)
    if (sums_narrowly(shape)) {
      for (int i = 0; i < static_cast<int>(products.size()); ++i)
        multiply_add_aligned(d, a.data() + i * k, all, b.data() + i * k * n, rows, n, k,
                             narrow_sum_bits);
      return;
    }
  multiply_add(d, a.data(), b.data(), rows, n, all);
}

MatrixChunks list_chunks(std::uint64_t descriptor, bool transposed, int extent, int k,
                         Format format) {
  const MatrixDescriptor d = MatrixDescriptor::decode(descriptor);
  MatrixChunks chunks;
  if (transposed) {
    for (int c = 0; c < extent / 8; ++c) {
      for (int i = 0; i < k; ++i) chunks.push_back(d.mn_major(c, i) - shared_base);
    }
    return chunks;
  }
  const int along = k * static_cast<int>(bytes_of(format)) / static_cast<int>(chunk);
  for (int r = 0; r < extent; ++r) {
    for (int q = 0; q < along; ++q) chunks.push_back(d.k_major(r, q) - shared_base);
  }
  return chunks;
}

// Of a product, as the rule on fences has it: products of one shape may follow each other.
bool is_same_shape(const abi::Wgmma& a, const abi::Wgmma& b) {
  return a.n == b.n && a.k == b.k && a.d == b.d;
}

std::uint64_t hash(const std::uint32_t* words, std::uint32_t count) {
  std::uint64_t h = count;
  for (std::uint32_t i = 0; i < count; ++i) h = (h ^ words[i]) * 0x9e3779b97f4a7c15u + (h >> 29);
  return h;
}

// Whether one of a chunk's bytes is 0, which is Block::unwritten.
bool has_unwritten(const std::uint8_t* state) {
  static_assert(Block::unwritten == 0);
  std::uint64_t words[2];
  std::memcpy(words, state, sizeof words);
  constexpr std::uint64_t ones = 0x0101010101010101, tops = ones << 7;
  return (((words[0] - ones) & ~words[0]) | ((words[1] - ones) & ~words[1])) & tops;
}

}  // namespace

void Machine::wgmma(const abi::Wgmma& shape, void* d, const std::uint32_t* a_registers,
                    std::uint64_t a, std::uint64_t b, bool accumulate, int line) {
  Thread& me = self();
  Block& block = *me.block;
  WgmmaUnit& unit = block.wgmma[me.ids.warpgroup];
  const auto mine = [&] {
    return WgmmaCall{.shape = &shape,
                     .a = a_registers != nullptr ? 0 : a,
                     .b = b,
                     .accumulate = accumulate,
                     .a_in_registers = a_registers != nullptr,
                     .line = line};
  };
  WgmmaThread::Lent* lent = me.wgmma.find(d);
  if (lent != nullptr && !is_same_shape(*unit[lent->last].shape, shape)) {
    settle(unit, d, line);
    lent = nullptr;
  }
  const std::uint32_t number = me.wgmma.issued;
  // The same for all threads of the warpgroup.
  WgmmaProduct& product = unit.has(number) ? unit[number] : unit.add(mine());
  if (!(product == mine())) fail_divergent(mine(), product);
  if (a_registers != nullptr) take_a(product, a_registers, line);
  if (lent == nullptr) {
    lend(product, d, line);
  } else if (product.accumulator == nullptr || product.accumulator == lent->accumulator) {
    product.accumulator = lent->accumulator;
    lent->last = number;
    lent->fences = me.wgmma.fences;
  } else {
    fail(line, "accumulates in other registers than the other threads of its warpgroup");
  }
  if (races() && me.ids.lane == 0) product.known[me.ids.warp] = engine_.release(me.agent);
  ++me.wgmma.issued;
  if (++product.issued < threads) return;

  find_operands(block, product);
  if (races()) {
    for (const MatrixChunks* chunks : {product.a_chunks, product.b_chunks}) {
      if (chunks == nullptr) continue;
      const race::Access access = {unit.agent, race::Kind::read, race::Proxy::async,
                                   static_cast<std::uint32_t>(line)};
      if (launch_.watch)
        for (const std::uint32_t at : *chunks)
          tell_watcher(device::Memory::shared, access, at, chunk);
      if (const auto race = block.shadow->access(*chunks, chunk, access, product.known)) {
        report_race(block, describe(block, static_cast<std::uint32_t>(race->offset)), *race);
      }
    }
    product.after = engine_.released(unit.agent);
  }
  progress();
  wake_all(unit.waiting, {});
}

void Machine::fail_divergent(const WgmmaCall& mine, const WgmmaCall& theirs) {
  fail(mine.line,
       fmt::format("issues another wgmma than the other threads of its warpgroup: descriptors "
                   "{:#x} and {:#x}, theirs {:#x} and {:#x}",
                   mine.a, mine.b, theirs.a, theirs.b),
       "theirs is", theirs.line);
}

// A product of another shape comes to an accumulator in flight: the registers have their numbers
// again when those before it are made.
void Machine::settle(WgmmaUnit& unit, void* d, int line) {
  Thread& me = self();
  const WgmmaThread::Lent lent = *me.wgmma.find(d);
  if (lent.fences == me.wgmma.fences) {
    report(*me.block, {"wgmma shape", line},
           fmt::format("{} gives accumulator registers to a wgmma of another shape than the one "
                       "before without wgmma_fence between them{}",
                       describe(me), where(line)));
  }
  while (unit[lent.last].issued < threads) {
    unit.waiting.push_back(&me);
    park(Wait::wgmma_wait, line);
  }
  execute(*me.block, unit, lent.last + 1);
  give_back(lent, *unit[lent.last].shape, line);
  std::erase_if(me.wgmma.lent, [&](const WgmmaThread::Lent& l) { return l.registers == d; });
}

// wgmma_fence must come after the last write of the registers.
void Machine::require_fence(const void* registers, const char* what, int line) {
  Thread& me = self();
  if (!me.wgmma.fenced) {
    report(*me.block, {"wgmma fence", line},
           fmt::format("{} gives {} to a wgmma without wgmma_fence since they may have been "
                       "written{}",
                       describe(me), what, where(line)));
    return;
  }
  const WgmmaThread::Operand* known = me.wgmma.operand(registers);
  if (known == nullptr || known->fence != me.wgmma.fences) return;
  if (hash(known->registers, known->words) == known->hash) return;
  report(*me.block, {"wgmma late write", line},
         fmt::format("{} gives {} to a wgmma that were written after the last wgmma_fence{}",
                     describe(me), what, where(line)));
}

void Machine::wgmma_registers(const void* registers, std::uint32_t words) {
  if (!races()) return;
  WgmmaThread& mine = self().wgmma;
  if (WgmmaThread::Operand* known = mine.operand(registers)) {
    if (known->words != words) *known = {known->registers, words, 0, 0};
    return;
  }
  if (mine.operands.size() == WgmmaThread::most_operands) {
    mine.operands.erase(mine.operands.begin());
  }
  mine.operands.push_back({static_cast<const std::uint32_t*>(registers), words, 0, 0});
}

// Takes the thread's part of the accumulator, which no earlier product in flight has.
void Machine::lend(WgmmaProduct& product, void* d, int line) {
  Thread& me = self();
  const int t = static_cast<int>(me.ids.thread);
  const abi::Wgmma& shape = *product.shape;
  require_fence(d, "accumulator registers", line);
  if (product.accumulator == nullptr) {
    product.accumulator = std::make_shared<Accumulator>();
    const auto size = static_cast<std::size_t>(rows * shape.n);
    shape.d == Format::i32 ? product.accumulator->integers.resize(size)
                           : product.accumulator->floats.resize(size);
  }
  Accumulator& accumulator = *product.accumulator;
  me.wgmma.lent.push_back({d, product.accumulator, me.wgmma.issued, me.wgmma.fences});
  wgmma_registers(d, static_cast<std::uint32_t>(registers_of(shape)));
  const auto* words = static_cast<std::uint32_t*>(d);
  for_each_pair(t, shape.n, [&](int i, int at) {
    switch (shape.d) {
    case Format::i32: std::memcpy(&accumulator.integers[at], &words[i], 8); break;
    case Format::f16:
      accumulator.floats[at] = widen_f16(static_cast<std::uint16_t>(words[i / 2]));
      accumulator.floats[at + 1] = widen_f16(static_cast<std::uint16_t>(words[i / 2] >> 16));
      break;
    default: std::memcpy(&accumulator.floats[at], &words[i], 8);
    }
  });
  std::fill_n(static_cast<std::uint32_t*>(d), registers_of(shape), std::uint32_t{abi::in_flight});
}

// The fragment of A: register j of thread t holds 4 bytes of row g + 8 (j % 2).
void Machine::take_a(WgmmaProduct& product, const std::uint32_t* registers, int line) {
  Thread& me = self();
  require_fence(registers, "registers", line);
  wgmma_registers(registers, 4);
  me.wgmma.reading.push_back({registers, {}, me.wgmma.issued});
  std::copy_n(registers, 4, me.wgmma.reading.back().words.begin());
  product.a_elements.resize(static_cast<std::size_t>(rows * product.shape->k));
  const int t = static_cast<int>(me.ids.thread);
  const int bytes = static_cast<int>(bytes_of(product.shape->a)), per = 4 / bytes;
  const std::uint32_t mask = bytes == 4 ? ~0u : (1u << 8 * bytes) - 1;
  for (int j = 0; j < 4; ++j) {
    const int row = 16 * (t / 32) + t % 32 / 4 + 8 * (j & 1);
    for (int e = 0; e < per; ++e) {
      const int along = (j >> 1) * 4 * per + per * (t % 4) + e;
      product.a_elements[row * product.shape->k + along] = registers[j] >> 8 * bytes * e & mask;
    }
  }
}

// A function of its arguments alone: descriptors come again and again.
const MatrixChunks& Machine::chunks_of(std::uint64_t descriptor, bool transposed, int extent, int k,
                                       Format format) {
  const std::uint64_t rest = static_cast<std::uint64_t>(extent) << 16 |
                             static_cast<std::uint64_t>(k) << 8 | bytes_of(format) << 1 |
                             std::uint64_t{transposed};
  const auto [found, inserted] = operands_.try_emplace({descriptor, rest});
  if (inserted) found->second = list_chunks(descriptor, transposed, extent, k, format);
  return found->second;
}

void Machine::find_operands(Block& block, WgmmaProduct& product) {
  const abi::Wgmma& s = *product.shape;
  if (!product.a_in_registers) {
    product.a_chunks = &chunks_of(product.a, s.transpose_a, rows, s.k, s.a);
    require_operand(block, *product.a_chunks, "A", product.line);
  }
  product.b_chunks = &chunks_of(product.b, s.transpose_b, s.n, s.k, s.b);
  require_operand(block, *product.b_chunks, "B", product.line);
  for (const std::uint64_t descriptor : {product.a, product.b}) {
    const MatrixDescriptor d = MatrixDescriptor::decode(descriptor);
    if (d.base_offset != 0) {
      fail(product.line, "uses a matrix descriptor with a base offset, which the emulator lacks");
    }
    const std::uint32_t within = d.swizzle == 0 ? 0 : d.start & (8 * d.width() * chunk - 1);
    if (within == 0 || within < d.width() * chunk) continue;
    fail(product.line,
         fmt::format("uses a matrix descriptor that starts {} bytes behind the beginning of its "
                     "{}-byte swizzle's pattern: less than {}, in its first row",
                     within, d.swizzle, d.swizzle));
  }
}

// An operand must lie in shared memory and hold what somebody wrote.
void Machine::require_operand(Block& block, const MatrixChunks& chunks, const char* operand,
                              int line) {
  if (block.written_operands.contains(&chunks)) return;
  const std::size_t size = block.shared.size();
  const std::string what = fmt::format("multiplies by an operand {}:", operand);
  for (const std::uint32_t offset : chunks) {
    if (offset > size || chunk > size - offset) {
      fail(line, fmt::format("{} it reaches offset {} of {} bytes of shared memory", what,
                             static_cast<std::int32_t>(offset), size));
    }
    if (has_unwritten(&block.state[offset])) {
      fail_unwritten(block, offset, chunk, what.c_str(), line);
    }
  }
  block.written_operands.insert(&chunks);
}

void Machine::execute(Block& block, WgmmaUnit& unit, std::uint32_t until) {
  std::vector<const WgmmaProduct*> together;
  while (unit.executed < until) {
    const WgmmaProduct& first = unit[unit.executed];
    const abi::Wgmma& shape = *first.shape;
    Accumulator& d = *first.accumulator;
    together.clear();
    do {
      together.push_back(&unit[unit.executed++]);
    } while (unit.executed < until && shape.d != Format::f16 &&
             unit[unit.executed].accumulator == first.accumulator &&
             unit[unit.executed].shape == first.shape && unit[unit.executed].accumulate);
    if (is_integer(shape.a)) {
      multiply_products<std::int32_t>(block.shared.data(), together, d.integers.data());
    } else {
      multiply_products<float>(block.shared.data(), together, d.floats.data());
    }
    if (shape.d == Format::f16) {
      for (float& x : d.floats) x = widen_f16(narrow_f16(x));
    }
  }
}

void Machine::wgmma_fence(int line) {
  warpgroup_in_step(Wait::wgmma_fence, line);
  WgmmaThread& mine = self().wgmma;
  mine.fenced = true;
  ++mine.fences;
  for (WgmmaThread::Operand& o : mine.operands) {
    const bool in_flight = mine.find(o.registers) != nullptr;
    o.fence = in_flight ? 0 : mine.fences;
    if (!in_flight) o.hash = hash(o.registers, o.words);
  }
}

// Eager products are made when somebody commits them: nobody can see them before.
void Machine::wgmma_commit(int line) {
  warpgroup_in_step(Wait::wgmma_commit, line);
  Thread& me = self();
  WgmmaUnit& unit = me.block->wgmma[me.ids.warpgroup];
  me.wgmma.groups.push_back(me.wgmma.issued);
  const Asynchrony when = launch_.options.asynchrony;
  if (when == Asynchrony::lazy || (when == Asynchrony::random && random() >> 63 == 0)) return;
  std::uint32_t until = unit.executed;
  while (until < me.wgmma.issued && unit[until].issued == threads) ++until;
  execute(*me.block, unit, until);
}

void Machine::wgmma_wait(int groups, int line) {
  warpgroup_in_step(Wait::wgmma_wait, line);
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
    give_back(lent, *unit[lent.last].shape, line);
    return true;
  });
  std::erase_if(mine.reading, [&](const WgmmaThread::Reading& r) {
    if (r.product >= until) return false;
    if (!std::equal(r.words.begin(), r.words.end(), r.registers)) {
      report(*me.block, {"wgmma A write", unit[r.product].line, line},
             fmt::format("{} has written registers of A while a wgmma in flight read them{}\n"
                         "before{}",
                         describe(me), where(unit[r.product].line), where(line)));
    }
    return true;
  });
  for (std::uint32_t i = mine.retired; i < until; ++i) ++unit[i].retired;
  mine.retired = until;
  mine.fenced = false;
  unit.drop_retired(threads);
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
  if (WgmmaThread::Operand* known = me.wgmma.operand(words)) known->fence = 0;
  const Accumulator& accumulator = *lent.accumulator;
  for_each_pair(t, shape.n, [&](int i, int at) {
    switch (shape.d) {
    case Format::i32: std::memcpy(&words[i], &accumulator.integers[at], 8); break;
    case Format::f16:
      words[i / 2] = narrow_f16(accumulator.floats[at]) |
                     std::uint32_t{narrow_f16(accumulator.floats[at + 1])} << 16;
      break;
    default: std::memcpy(&words[i], &accumulator.floats[at], 8);
    }
  });
}

void Machine::saw_in_flight(int line) {
  report(*self().block, {"in flight", line},
         fmt::format("{} uses an accumulator register that a wgmma in flight still writes: "
                     "wgmma_wait must come before{}",
                     describe_self(), where(line)));
}

}  // namespace palladium::emulator
