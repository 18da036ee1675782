#include "codegen/device/wgmma.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "codegen/base/format.hpp"
#include "codegen/device/declarations.hpp"
#include "codegen/device/waist.hpp"
#include "palladium/error.hpp"

namespace palladium::device {
namespace {

struct Types {
  std::string_view d, a, b;
  int k;
};
constexpr Types all_types[] = {
    {"f32", "bf16", "bf16", 16}, {"f32", "f16", "f16", 16},   {"f16", "f16", "f16", 16},
    {"f32", "tf32", "tf32", 8},  {"f32", "e4m3", "e4m3", 32}, {"f32", "e4m3", "e5m2", 32},
    {"f32", "e5m2", "e4m3", 32}, {"f32", "e5m2", "e5m2", 32}, {"f16", "e4m3", "e4m3", 32},
    {"f16", "e4m3", "e5m2", 32}, {"f16", "e5m2", "e4m3", 32}, {"f16", "e5m2", "e5m2", 32},
    {"s32", "s8", "s8", 32},     {"s32", "s8", "u8", 32},     {"s32", "u8", "s8", 32},
    {"s32", "u8", "u8", 32},
};

bool is_legal_n(const Types& types, int n) {
  if (n < 8 || n > 256 || n % 8 != 0) return false;
  return types.d != "s32" || n % 16 == 0 || n == 8 || n == 24;
}

// ---- names

/// What stands between the underscores of "wgmma_m64n128k16_f32_bf16_bf16_rs_x4".
struct Parsed {
  int m = 0, n = 0, k = 0;
  std::string_view d, a, b;
  bool rs = false;
  int steps = 1;
};

/// Takes `prefix` and the number behind it off the front.
bool take(std::string_view& text, char prefix, int& value) {
  if (text.empty() || text[0] != prefix) return false;
  const auto [rest, error] = std::from_chars(text.data() + 1, text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return true;
}

std::optional<Parsed> parse(std::string_view name) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('_', at), name.size());
    words.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  if (words.size() < 5) return {};
  Parsed parsed = {.d = words[2], .a = words[3], .b = words[4]};
  std::size_t next = 5;
  if (next < words.size() && words[next] == "rs") parsed.rs = true, ++next;
  if (next < words.size()) {
    std::string_view steps = words[next++];
    if (!take(steps, 'x', parsed.steps) || !steps.empty() || parsed.steps < 2) return {};
  }
  if (next < words.size()) return {};
  std::string_view shape = words[1];
  if (!take(shape, 'm', parsed.m) || !take(shape, 'n', parsed.n) || !take(shape, 'k', parsed.k))
    return {};
  return shape.empty() ? std::optional(parsed) : std::nullopt;
}

[[noreturn]] void refuse(std::string_view name, std::string_view why) {
  throw InternalError(fmt::format("device library: there is no pl::{}: {}", name, why));
}

Wgmma product_of(std::string_view name) {
  const std::optional<Parsed> parsed = parse(name);
  if (!parsed || parsed->m != 64)
    refuse(name,
           "products are called wgmma_m64n<N>k<K>_<D>_<A>_<B>, _rs behind that where A is in "
           "registers, and _x<steps> where there are several");
  for (const Types& types : all_types) {
    if (types.d != parsed->d || types.a != parsed->a || types.b != parsed->b) continue;
    if (parsed->k != types.k)
      refuse(name, fmt::format("k is {} for operands of {} and {}", types.k, types.a, types.b));
    if (!is_legal_n(types, parsed->n))
      refuse(name, types.d == "s32" ? "n is 8, 24 or a multiple of 16 up to 256 for integers"
                                    : "n is a multiple of 8 up to 256");
    return {parsed->n, types.k, types.d, types.a, types.b, parsed->rs, parsed->steps};
  }
  std::string legal;
  for (const Types& types : all_types)
    legal += fmt::format("{}{}_{}_{}", legal.empty() ? "" : ", ", types.d, types.a, types.b);
  refuse(name, "types go together as " + legal);
}

// ---- texts

/// `count` times `item` with its index for every #, from `first`.
std::string list(int count, std::string_view item, int first = 0) {
  std::string text;
  for (int i = first; i < first + count; ++i) {
    if (i > first) text += ", ";
    for (const char c : item) text += c == '#' ? std::to_string(i) : std::string(1, c);
  }
  return text;
}

std::string_view register_type(const Wgmma& op) {
  return op.d == "f32" ? "f32" : op.d == "f16" ? "u32" : "i32";
}

/// Whether registers of A hold four elements each.
bool is_of_bytes(const Wgmma& op) { return op.k == 32; }

/// Of what holds elements that share registers these are seen: arrays of the elements, too.
std::string_view array_of(bool shares, std::string_view type, std::string_view own) {
  return shares ? own : type;
}

/// Matrix descriptors of each step: "a0, b0, a1, b1" with `a` and `b` for these, or, of one step,
/// "a, b"; no `a` where A is in registers.
std::string descriptors(const Wgmma& op, std::string_view a, std::string_view b,
                        std::string_view behind = "") {
  std::string text;
  const auto add = [&](std::string_view name, int step) {
    text += fmt::format("{}{}{}{}", text.empty() ? "" : ", ", name,
                        op.steps == 1 ? "" : std::to_string(step), behind);
  };
  for (int step = 0; step < op.steps; ++step) {
    if (!op.rs) add(a, step);
    add(b, step);
  }
  return text;
}

/// From its template parameters to the last parameter that both halves have.
std::string head(const Wgmma& op) {
  std::string_view transposes;
  if (op.has_transposes())
    transposes =
        op.rs ? "bool TransposeB = false, " : "bool TransposeA = false, bool TransposeB = false, ";
  const bool shares_d = op.d == "f16", shares_a = op.rs && is_of_bytes(op);
  const std::string a =
      op.rs ? fmt::format("const {} (&a)[SizeA], ", array_of(shares_a, "u32", "A")) : "";
  return fmt::format(
      "template <{}int First = 0{}, {}int Size{}{}>\n"
      "PL_FN void {}({} (&d)[Size], {}{}, bool accumulate",
      transposes, op.rs ? ", int FirstA = 0" : "", shares_d ? "class D, " : "",
      shares_a ? ", class A" : "", op.rs ? ", int SizeA" : "", op.name(),
      array_of(shares_d, register_type(op), "D"), a, descriptors(op, "u64 a", "u64 b"));
}

/// What both halves check.
std::string check(const Wgmma& op) {
  const std::string left =
      op.rs ? fmt::format(" && FirstA + {} <= int(sizeof a / 4)", 4 * op.steps) : "";
  return fmt::format("  static_assert(First + {} <= int(sizeof d / 4){});\n{}{}", op.registers(),
                     left, op.d == "f16" ? "  u32* const sums = reinterpret_cast<u32*>(d);\n" : "",
                     op.rs && is_of_bytes(op)
                         ? "  const u32* const left = reinterpret_cast<const u32*>(a);\n"
                         : "");
}

/// What registers are called behind that.
std::string_view sums_of(const Wgmma& op) { return op.d == "f16" ? "sums" : "d"; }
std::string_view left_of(const Wgmma& op) { return is_of_bytes(op) ? "left" : "a"; }

// Operands are the registers of D, those of A, the descriptors of each step, whether the first is
// added to what D holds, and the transposes.
std::string cuda_text(const Wgmma& op) {
  const int r = op.registers(), in_registers = op.rs ? 4 * op.steps : 0;
  const int of_step = op.rs ? 1 : 2, accumulate = r + in_registers + of_step * op.steps;
  // Only floats may be negated, only 16-bit operands transposed.
  std::string tail = op.d == "s32" ? "" : ", 1, 1", transposes;
  if (op.has_transposes()) {
    tail += op.rs ? fmt::format(", %{}", accumulate + 1)
                  : fmt::format(", %{}, %{}", accumulate + 1, accumulate + 2);
    transposes = op.rs ? ", \"n\"(TransposeB)" : ", \"n\"(TransposeA), \"n\"(TransposeB)";
  }
  std::string products;
  for (int step = 0; step < op.steps; ++step) {
    const int at = r + in_registers + of_step * step;
    products += fmt::format(
        R"(      "wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{}\n"
      "{{{}}},\n"
      "{}, %{}, {}{};{}"
)",
        op.n, op.k, op.d, op.a, op.b, list(r, "%#"),
        op.rs ? "{" + list(4, "%#", r + 4 * step) + "}" : fmt::format("%{}", at), at + of_step - 1,
        step == 0 ? "p" : "q", tail, step + 1 == op.steps ? "}" : "\\n");
  }
  return fmt::format(
      R"({}) {{
{}  asm volatile(
      "{{.reg .pred p{}; setp.ne.u32 p, %{}, 0;{}\n"
{}      : {}
      : {}{}, "r"(u32(accumulate)){});
}}
)",
      head(op), check(op), op.steps > 1 ? ", q" : "", accumulate,
      op.steps > 1 ? " setp.eq.u32 q, 0, 0;" : "", products,
      list(r, fmt::format("\"+{}\"({}[First + #])", op.d == "f32" ? "f" : "r", sums_of(op))),
      op.rs ? list(in_registers, fmt::format("\"r\"({}[FirstA + #])", left_of(op))) + ", " : "",
      descriptors(op, "\"l\"(a", "\"l\"(b", ")"), transposes);
}

std::string cpu_text(const Wgmma& op) {
  const auto format = [](std::string_view type) {
    const std::string_view name = type == "s8"    ? "i8"
                                  : type == "s32" ? "i32"
                                                  : type;  // the emulator's words
    return fmt::format("detail::Format::{}", name);
  };
  std::string products;
  for (int step = 0; step < op.steps; ++step) {
    const std::string number = op.steps == 1 ? "" : std::to_string(step);
    products +=
        fmt::format("  detail::host.wgmma(&op, {} + First, {}, b{}, {}, line);\n", sums_of(op),
                    op.rs ? fmt::format("{} + FirstA{}, 0", left_of(op),
                                        step == 0 ? "" : fmt::format(" + {}", 4 * step))
                          : "nullptr, a" + number,
                    number, step == 0 ? "accumulate" : "true");
  }
  return fmt::format(
      R"({}, PL_LINE) {{
{}  static constexpr detail::Wgmma op = {{{}, {}, {}, {}, {}, {}, {}}};
{}}}
)",
      head(op), check(op), op.n, op.k, format(op.d), format(op.a), format(op.b),
      op.has_transposes() && !op.rs ? "TransposeA" : "false",
      op.has_transposes() ? "TransposeB" : "false", products);
}

/// pl::wgmma_... in `kernel`, without the rows of the table.
std::set<std::string_view> named_products(std::string_view kernel) {
  constexpr std::string_view prefix = "pl::wgmma_";
  std::set<std::string_view> names;
  for (std::size_t at = kernel.find(prefix); at != kernel.npos; at = kernel.find(prefix, at)) {
    at += 4;
    std::size_t end = at;
    while (end < kernel.size() && is_name(kernel[end])) ++end;
    const std::string_view name = kernel.substr(at, end - at);
    if (!row_named(name)) names.insert(name);
  }
  return names;
}

}  // namespace

std::string Wgmma::name() const {
  return fmt::format("wgmma_m64n{}k{}_{}_{}_{}{}{}", n, k, d, a, b, rs ? "_rs" : "",
                     steps > 1 ? fmt::format("_x{}", steps) : "");
}

std::vector<Wgmma> wgmma_variants() {
  std::vector<Wgmma> all;
  for (const Types& types : all_types) {
    for (int n = 8; n <= 256; n += 8) {
      if (!is_legal_n(types, n)) continue;
      for (const bool rs : {false, true})
        all.push_back({n, types.k, types.d, types.a, types.b, rs});
    }
  }
  return all;
}

std::string wgmma_functions(Half half, std::string_view kernel) {
  std::string text;
  for (const std::string_view name : named_products(kernel)) {
    const Wgmma op = product_of(name);
    text += half == Half::cuda ? cuda_text(op) : cpu_text(op);
  }
  return text.empty() ? text : "namespace pl {\n" + text + "}\n";
}

}  // namespace palladium::device
