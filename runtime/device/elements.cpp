// Elements of arrays one by one, on the CPU: made, drawn, converted, printed.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/base/storage.hpp"
#include "codegen/graph/graph.hpp"
#include "palladium/array.hpp"
#include "runtime/device/device_memory.hpp"

namespace palladium {
namespace {

using Index = std::vector<std::int64_t>;

/// Where an element lies: its first byte, and of packed ones which half of it.
struct Place {
  std::byte* byte;
  bool is_high;
};

Place place_at(const Array& a, std::int64_t offset) {
  const bool is_high = a.dtype().is_packed() && offset % 2 != 0;
  return {static_cast<std::byte*>(a.data()) + a.dtype().bytes_of(offset - is_high), is_high};
}

std::uint64_t bits_at(Place place, DType dtype) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, place.byte, static_cast<std::size_t>(dtype.bytes()));
  return !dtype.is_packed() ? bits : place.is_high ? bits >> 4 : bits & 15;
}

void put(Place place, DType dtype, std::uint64_t bits) {
  if (dtype.is_packed()) {
    const auto both = std::to_integer<std::uint64_t>(*place.byte);
    bits = place.is_high ? bits << 4 | (both & 15) : (both & 0xf0) | bits;
  }
  std::memcpy(place.byte, &bits, static_cast<std::size_t>(dtype.bytes()));
}

Place place_of(const Array& a, const Index& index) {
  std::int64_t offset = 0;
  for (int d = 0; d < a.rank(); ++d) offset += index[static_cast<std::size_t>(d)] * a.stride(d);
  return place_at(a, offset);
}

/// Calls f(place, index) for the elements, in row-major order.
template <class F>
void for_each_element(const Array& a, const F& f) {
  Index index(static_cast<std::size_t>(a.rank()));
  for (std::int64_t i = 0; i < a.size(); ++i) {
    f(place_of(a, index), index);
    for (int d = a.rank(); d-- > 0;) {
      if (++index[static_cast<std::size_t>(d)] < a.shape()[d].value()) break;
      index[static_cast<std::size_t>(d)] = 0;
    }
  }
}

// Every element of an array without gaps: what is there already is copied behind itself.
void repeat(const Array& a, std::uint64_t bits) {
  const auto all = static_cast<std::size_t>(a.dtype().bytes_of(a.size()));
  if (all == 0) return;
  auto* const data = static_cast<std::byte*>(a.data());
  if (a.dtype().is_packed()) bits |= bits << 4;
  auto done = static_cast<std::size_t>(a.dtype().bytes());
  std::memcpy(data, &bits, done);
  for (std::size_t more = 0; done < all; done += more) {
    more = std::min(done, all - done);
    std::memcpy(data + done, data, more);
  }
}

std::uint64_t to_bits(DType dtype, const detail::Number& x) {
  switch (x.kind) {
  case detail::Number::Kind::real: return graph::to_bits(dtype, x.real);
  case detail::Number::Kind::integer: return graph::to_bits(dtype, x.integer);
  case detail::Number::Kind::natural: break;
  }
  return graph::natural_to_bits(dtype, x.natural);
}

std::uint64_t converted(DType from, DType to, std::uint64_t bits) {
  if (from.is_float()) return graph::to_bits(to, graph::to_double(from, bits));
  if (from == u64) return graph::natural_to_bits(to, bits);
  return graph::to_bits(to, graph::to_int(from, bits));
}

// ---- random numbers

/// Philox4x32-10 (Salmon et al., 2011): 128 bits for each counter and key.
class Philox {
 public:
  explicit Philox(std::uint64_t key) : key_(key) {}

  /// The 64 bits at a place of the stream.
  std::uint64_t operator()(std::uint64_t place) {
    if (place / 2 != counter_ || !drawn_) draw(place / 2);
    return words_[place % 2];
  }

 private:
  void draw(std::uint64_t counter) {
    std::uint32_t x[4] = {low(counter), high(counter), 0, 0}, key[2] = {low(key_), high(key_)};
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * x[0],
                          b = std::uint64_t{0xCD9E8D57} * x[2];
      const std::uint32_t next[4] = {high(b) ^ x[1] ^ key[0], low(b), high(a) ^ x[3] ^ key[1],
                                     low(a)};
      std::ranges::copy(next, x);
      key[0] += 0x9E3779B9u;
      key[1] += 0xBB67AE85u;
    }
    for (const int i : {0, 1}) words_[i] = std::uint64_t{x[2 * i + 1]} << 32 | x[2 * i];
    counter_ = counter;
    drawn_ = true;
  }
  static std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
  static std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

  std::uint64_t key_, counter_ = 0, words_[2] = {};
  bool drawn_ = false;
};

/// Bits that a float has from the point on, so that what is below 1 stays there.
int digits_of(DType dtype) {
  switch (dtype.kind()) {
  case DType::F8E4M3: return 4;
  case DType::F8E5M2: return 3;
  case DType::F16: return 11;
  case DType::BF16: return 8;
  case DType::F32: return 24;
  default: return 53;
  }
}

std::uint64_t drawn(DType dtype, std::uint64_t random, const RandomOptions& o) {
  const bool unbounded = o.low == 0 && o.high == 0;
  if (unbounded && dtype.is_bool()) return random >> 63;
  if (unbounded && dtype.is_integer()) return random >> (64 - dtype.bits());
  const int digits = digits_of(dtype);
  const double unit = std::ldexp(static_cast<double>(random >> (64 - digits)), -digits);
  if (unbounded) return graph::to_bits(dtype, unit);
  const double x = o.low + unit * (o.high - o.low);
  return graph::to_bits(dtype, dtype.is_float() ? x : std::floor(x));
}

// ---- text

class Printer {
 public:
  Printer(const Array& a, const PrintOptions& options)
      : a_(a), o_(options), shortened_(a.size() > options.threshold), index_(a.rank()) {
    visit(0, [&](const std::string& element) { width_ = std::max(width_, element.size()); });
  }

  std::string text() {
    if (a_.rank() == 0) return element();
    text_.clear();
    write(0);
    return text_;
  }

 private:
  std::string element() const {
    const DType t = a_.dtype();
    const std::uint64_t bits = bits_at(place_of(a_, index_), t);
    if (t.is_bool()) return bits != 0 ? "true" : "false";
    if (t.is_float() && std::isnan(graph::to_double(t, bits))) return "nan";  // whatever its sign
    if (t.is_float()) return fmt::format("{:.{}g}", graph::to_double(t, bits), o_.precision);
    return t == u64 ? std::to_string(bits) : std::to_string(graph::to_int(t, bits));
  }

  /// Calls f(i) for the indices along d that are shown, f(-1) where some are left out.
  template <class F>
  void shown(int d, const F& f) {
    const std::int64_t n = a_.shape()[d].value();
    const bool all = !shortened_ || n <= 2 * o_.edge_items;
    for (std::int64_t i = 0; i < (all ? n : o_.edge_items); ++i) f(i);
    if (all) return;
    f(std::int64_t{-1});
    for (std::int64_t i = n - o_.edge_items; i < n; ++i) f(i);
  }

  template <class F>
  void visit(int d, const F& f) {
    if (d == a_.rank()) return f(element());
    shown(d, [&](std::int64_t i) {
      if (i < 0) return;
      index_[static_cast<std::size_t>(d)] = i;
      visit(d + 1, f);
    });
  }

  void write(int d) {
    const bool last = d + 1 == a_.rank();
    text_ += '[';
    bool first = true;
    shown(d, [&](std::int64_t i) {
      if (!first)
        text_ += last ? " "
                      : std::string(static_cast<std::size_t>(a_.rank() - d - 1), '\n') +
                            std::string(static_cast<std::size_t>(d + 1), ' ');
      first = false;
      if (i < 0) {
        text_ += "...";
        return;
      }
      index_[static_cast<std::size_t>(d)] = i;
      if (last)
        text_ += fmt::format("{:>{}}", element(), width_);
      else
        write(d + 1);
    });
    text_ += ']';
  }

  const Array& a_;
  const PrintOptions& o_;
  bool shortened_;
  Index index_;
  std::size_t width_ = 0;
  std::string text_;
};

void require_array(const Array& a, const char* operation, Location at) {
  if (!a) throw CompileError(at, std::string(operation) + ": there is no array");
}

}  // namespace

Array Array::full(const Shape& shape, DType dtype, detail::Number value, Device device,
                  Location at) {
  Array a = empty(shape, dtype, device, at);
  a.fill(value, at);
  return a;
}

detail::ElementIndex::operator std::int64_t() const {
  if (indices_.size() != 1)
    throw CompileError(
        at_, fmt::format("from_function: expected a function of {} indices, one for each dimension, "
                         "or one that takes its argument's elements, given one that takes it as a "
                         "number",
                         indices_.size()));
  return indices_[0];
}

Array Array::from_elements(const Shape& shape, DType dtype, Element element, void* f,
                           unsigned taken, Location at) {
  Array a = empty(shape, dtype, Device::cpu(), at);
  if (taken != 0 && (taken >> a.rank() & 1) == 0)
    throw CompileError(at,
                       fmt::format("from_function: expected a function of {} indices, one for each "
                                   "dimension of {}, given one of {}",
                                   a.rank(), to_string(a.type()), std::countr_zero(taken)));
  for_each_element(a, [&](Place place, const Index& index) {
    put(place, dtype, to_bits(dtype, element(f, index.data(), a.rank())));
  });
  return a;
}

Array Array::random(const Shape& shape, DType dtype, RandomOptions options, Device device,
                    Location at) {
  if (!std::isfinite(options.low) || !std::isfinite(options.high) || options.high < options.low)
    throw CompileError(at,
                       fmt::format("random: expected finite bounds, low <= high, given low = {} "
                                   "and high = {}",
                                   options.low, options.high));
  Array a = empty(shape, dtype, Device::cpu(), at);
  Philox stream(options.seed);
  for (std::int64_t i = 0; i < a.size(); ++i)
    put(place_at(a, i), dtype, drawn(dtype, stream(static_cast<std::uint64_t>(i)), options));
  return a.to(device, at);
}

Array Array::astype(DType dtype, Location at) const {
  require_array(*this, "astype", at);
  if (dtype == dtype_) return copy(at);
  const Array from = to(Device::cpu(), at);
  const Array result = empty(shape_, dtype, Device::cpu(), at);
  std::int64_t i = 0;
  for_each_element(from, [&](Place element, const Index&) {
    put(place_at(result, i++), dtype, converted(dtype_, dtype, bits_at(element, dtype_)));
  });
  return result.to(device_, at);
}

void Array::fill(detail::Number value, Location at) const {
  require_array(*this, "fill", at);
  if (read_only_) throw CompileError(at, "fill: the array is read-only");
  const std::uint64_t bits = to_bits(dtype_, value);
  if (device_.is_cpu() && dense_) return repeat(*this, bits);
  if (device_.is_cpu())
    return for_each_element(*this, [&](Place place, const Index&) { put(place, dtype_, bits); });
  if (!dense_)
    throw CompileError(
        at, "fill: expected a dense array on a GPU, given " + to_string(type()) + " with gaps");
  const Array host = full(shape_, dtype_, value, Device::cpu(), at);
  const auto bytes = static_cast<std::size_t>(dtype_.bytes_of(size_));
  if (bytes != 0)
    runtime::copy_bytes(data_, device_, host.data_, host.device_, bytes,
                        storage_ ? Stream(storage_->stream()) : Stream());
}

std::string to_string(const Array& array, PrintOptions options, Location at) {
  if (!array) return "no array";
  const Array host = array.to(Device::cpu(), at);
  return Printer(host, options).text();
}

void print(const Array& array, PrintOptions options, Location at) {
  std::puts(to_string(array, options, at).c_str());
}

}  // namespace palladium
