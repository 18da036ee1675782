#include "tests/conformance/case.hpp"

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <map>
#include <random>
#include <tuple>
#include <utility>

#include "codegen/device/waist.hpp"
#include "palladium/error.hpp"

namespace palladium::conformance {
namespace {

struct Float {
  const char* name;
  int mantissa_bits, bias, bytes;
};
constexpr Float floats[] = {{"f16", 10, 15, 2},   {"bf16", 7, 127, 2},  {"f32", 23, 127, 4},
                            {"tf32", 23, 127, 4}, {"f64", 52, 1023, 8}, {"e4m3", 3, 7, 1},
                            {"e5m2", 2, 15, 1},   {"f8e4m3", 3, 7, 1},  {"f8e5m2", 2, 15, 1}};

const Float* float_of(const std::string& type) {
  for (const Float& f : floats) {
    if (type == f.name) return &f;
  }
  return nullptr;
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

Case& Case::output(const std::string& type, std::size_t count) {
  const auto bytes = static_cast<std::size_t>(bytes_of_type(type));
  return array({.type = type,
                .bytes = std::vector<std::byte>(count * bytes, std::byte{0x5a}),
                .output = true});
}

Case& Case::array(Array a) {
  parameters.push_back({.kind = Parameter::Kind::array, .index = arrays.size()});
  arrays.push_back(std::move(a));
  return *this;
}

Case& Case::word(std::int64_t value, std::int64_t on_the_emulator) {
  parameters.push_back({.kind = Parameter::Kind::word,
                        .word = static_cast<std::uint64_t>(value),
                        .emulated = static_cast<std::uint64_t>(on_the_emulator)});
  return *this;
}

Case& Case::map(std::size_t of, TensorMapSpec spec) {
  parameters.push_back({.kind = Parameter::Kind::map, .index = maps.size()});
  maps.push_back({of, spec});
  return *this;
}

Case& Case::mapped(Array a, TensorMapSpec spec) {
  arrays.push_back(std::move(a));
  return map(arrays.size() - 1, spec);
}

Case kernel(const std::string& name, const std::string& parameters, const std::string& body,
            int warpgroups) {
  Case c;
  c.name = name;
  c.warpgroups = warpgroups;
  c.text = "PL_KERNEL(" + std::to_string(128 * warpgroups) + ") KERNEL(" + parameters + ") {\n" +
           body + "\n}\nPL_EXPORT(KERNEL)\n";
  return c;
}

ArchRange archs_of(const Case& c) {
  ArchRange range = {c.cluster == std::array{1, 1, 1} ? 75 : 90, INT_MAX};
  for (std::size_t at = c.text.find("pl::"); at != c.text.npos; at = c.text.find("pl::", at)) {
    at += 4;
    std::size_t end = at;
    while (end < c.text.size() && is_name(c.text[end])) ++end;
    const std::string_view name = std::string_view(c.text).substr(at, end - at);
    if (name.starts_with("wgmma_m")) range = {std::max(range.first, 90), std::min(range.last, 90)};
    for (const device::RowInfo& f : device::rows()) {
      if (f.name != name) continue;
      range = {std::max(range.first, f.first_arch), std::min(range.last, f.last_arch)};
    }
  }
  return range;
}

std::string replaced(std::string text, char what, const std::string& by) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, 1, by);
  return text;
}

int bytes_of_type(const std::string& type) {
  if (type == "bool") return 1;
  if (const Float* f = float_of(type)) return f->bytes;
  if (type.size() > 1 && (type[0] == 'i' || type[0] == 'u' || type[0] == 's'))
    return std::stoi(type.substr(1)) / 8;
  throw InternalError("conformance: unknown type " + type);
}

std::uint64_t encode(const std::string& type, double value) {
  const Float* f = float_of(type);
  if (f == nullptr) return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  const int width = 8 * f->bytes;
  const std::uint64_t sign = std::signbit(value) ? 1ull << (width - 1) : 0;
  if (value == 0) return sign;
  const int exponent = std::max(std::ilogb(value), 1 - f->bias);
  const auto steps = static_cast<std::uint64_t>(
      std::nearbyint(std::ldexp(std::fabs(value), f->mantissa_bits - exponent)));
  // A mantissa that rounds up to 2 carries into the exponent by itself, a subnormal has none.
  const std::uint64_t one = 1ull << f->mantissa_bits;
  const auto biased = static_cast<std::uint64_t>(exponent + f->bias);
  return sign | (steps < one ? steps : (biased << f->mantissa_bits) + (steps - one));
}

std::uint64_t element(const std::vector<std::byte>& bytes, std::size_t i, std::size_t size) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &bytes[i * size], size);
  return bits;
}

namespace {

using Elements = std::vector<std::byte>;

/// The first `count` elements that `make` draws for a type from a seed. Of most there are hundreds
/// of cases, which are made in every process that runs one.
Elements drawn(Elements (*make)(const std::string&, std::size_t, std::uint64_t),
               const std::string& type, std::size_t count, std::uint64_t seed) {
  static std::map<std::tuple<decltype(make), std::string, std::uint64_t>, Elements> made;
  Elements& all = made[{make, type, seed}];
  const auto size = static_cast<std::size_t>(bytes_of_type(type));
  if (all.size() < count * size) all = make(type, std::max(count, 2 * all.size() / size), seed);
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count * size)};
}

Elements make_integers(const std::string& type, std::size_t count, std::uint64_t seed) {
  const auto size = static_cast<std::size_t>(bytes_of_type(type));
  std::vector<std::byte> bytes(count * size);
  std::mt19937_64 random(seed);
  const int low = type[0] == 'u' ? 0 : -2;
  std::uint64_t encoded[5];
  for (int i = 0; i < 5; ++i) encoded[i] = encode(type, low + i);
  const std::uint64_t unread = type == "tf32" ? 0x1fff : 0;  // bits that change nothing
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t r = random(), bits = encoded[r % 5] | (r >> 32 & unread);
    std::memcpy(&bytes[i * size], &bits, size);
  }
  return bytes;
}

Elements make_fractions(const std::string& type, std::size_t count, std::uint64_t seed) {
  const auto size = static_cast<std::size_t>(bytes_of_type(type));
  std::vector<std::byte> bytes(count * size);
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < count; ++i) {
    const double x = std::ldexp(static_cast<double>(random() >> 11), -52) - 1;
    const std::uint64_t bits = encode(type, x);
    std::memcpy(&bytes[i * size], &bits, size);
  }
  return bytes;
}

}  // namespace

std::vector<std::byte> integers(const std::string& type, std::size_t count, std::uint64_t seed) {
  return drawn(make_integers, type, count, seed);
}

std::vector<std::byte> fractions(const std::string& type, std::size_t count, std::uint64_t seed) {
  return drawn(make_fractions, type, count, seed);
}

std::vector<std::uint32_t> random_words(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> words(count);
  for (std::uint32_t& w : words) w = static_cast<std::uint32_t>(random());
  return words;
}

Case complete(Case c) {
  if (const auto make = std::exchange(c.make_arrays, nullptr)) make(c);
  return c;
}

const std::vector<Case>& all_cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> cases;
    add_basics(cases);
    add_numbers(cases);
    add_matrices(cases);
    add_atomics(cases);
    add_clusters(cases);
    add_tensor_maps(cases);
    add_wgmma(cases);
    add_kernels(cases);
    add_sweeps(cases);
    add_questions(cases);
    add_latencies(cases);
    int number = 0;
    for (Case& c : cases) {
      const std::string entry = c.alone ? c.entry : "check_" + std::to_string(number++);
      for (std::size_t at; (at = c.text.find(" KERNEL(")) != c.text.npos;)
        c.text.replace(at, 8, " " + entry + "(");
      for (std::size_t at; (at = c.text.find("(KERNEL)")) != c.text.npos;)
        c.text.replace(at, 8, "(" + entry + ")");
      c.entry = entry;
      if (!c.slow) c = complete(std::move(c));
    }
    return cases;
  }();
  return all;
}

}  // namespace palladium::conformance
