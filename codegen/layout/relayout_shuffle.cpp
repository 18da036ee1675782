// Relayouts within warps. Let the images of a result's register r and lane l in the source be
// register Crr r + Crl l and lane Clr r + Cll l. In round p, lane l fills its register p + F l, for
// a map F to be found, from lane Clr p + M l where M = Cll + Clr F. If M is invertible, the sender
// knows which register is wanted of it: Crr p + S (own lane) + S Clr p, S = (Crr F + Crl) M^-1.
// So: senders exchange registers by S, rounds send the same register number everywhere, receivers
// exchange registers by F.
#include <algorithm>
#include <bit>

#include "codegen/layout/relayout_parts.hpp"

namespace palladium::layout {
namespace {

// The maps above, on the register bits that number words.
struct Maps {
  Bits crr, clr;  // by register bit of the result
  Bits crl, cll;  // by lane bit
};

// The bits of `value` at `positions`, gathered.
std::uint32_t gather(std::uint32_t value, const std::vector<std::uint32_t>& positions) {
  std::uint32_t packed = 0;
  for (std::size_t i = 0; i < positions.size(); ++i) packed |= (value >> positions[i] & 1) << i;
  return packed;
}

std::uint32_t scatter(std::uint32_t packed, const std::vector<std::uint32_t>& positions) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < positions.size(); ++i) value |= (packed >> i & 1) << positions[i];
  return value;
}

// Register bits that are the same in source and result and in no other map number the elements of
// a word: as many as fit 32 bits.
void choose_packing(const Pair& pair, ShuffleChoice& choice) {
  const auto touched = [&](std::uint32_t source, std::size_t except) {
    for (std::size_t i = 0; i < pair.reg.size(); ++i) {
      if (i != except && (pair.reg[i] & source) != 0) return true;
    }
    return std::any_of(pair.lane.begin(), pair.lane.end(),
                       [&](std::uint32_t image) { return (image & source) != 0; });
  };
  std::uint32_t packed_from = 0;
  for (std::uint32_t i = 0; i < pair.reg.size(); ++i) {
    const std::uint32_t image = pair.reg[i];
    const bool pure = std::has_single_bit(image) && pair.register_part(image) == image;
    const bool fits = choice.program.pack * pair.element_bytes < 4;
    if (fits && pure && !touched(image, i)) {
      choice.pack_from.push_back(static_cast<std::uint32_t>(std::countr_zero(image)));
      choice.pack_to.push_back(i);
      choice.program.pack *= 2;
      packed_from |= image;
    } else {
      choice.words_to.push_back(i);
    }
  }
  for (std::uint32_t i = 0; i < pair.a.reg().size(); ++i) {
    if ((packed_from >> i & 1) == 0) choice.words_from.push_back(i);
  }
  choice.program.words_in = 1 << choice.words_from.size();
  choice.program.words_out = 1 << choice.words_to.size();
}

Maps word_maps(const Pair& pair, const ShuffleChoice& choice) {
  Maps maps;
  for (const std::uint32_t i : choice.words_to) {
    maps.crr.push_back(gather(pair.reg[i], choice.words_from));
    maps.clr.push_back(pair.lane_part(pair.reg[i]));
  }
  for (const std::uint32_t image : pair.lane) {
    maps.crl.push_back(gather(image, choice.words_from));
    maps.cll.push_back(pair.lane_part(image));
  }
  return maps;
}

// F with M = 1: every round is an exchange between lanes that differ in constant bits, and those
// that differ in none cost nothing.
std::optional<Bits> exchange(const Maps& maps) {
  const Solver lanes(maps.clr);
  Bits f;
  for (int j = 0; j < lane_bits; ++j) {
    const auto solution = lanes.solve(1u << j ^ maps.cll[j]);
    if (!solution) return std::nullopt;
    f.push_back(*solution);
  }
  return f;
}

struct Candidate {
  Bits f, m, s;
  int stages() const {
    const auto count = [](const Bits& v) { return v.size() - std::count(v.begin(), v.end(), 0u); };
    return static_cast<int>(count(f) + count(s));
  }
};

std::optional<Candidate> with_f(const Maps& maps, Bits f) {
  Candidate c;
  Bits sent;  // Crr F + Crl
  for (int j = 0; j < lane_bits; ++j) {
    c.m.push_back(maps.cll[j] ^ image_of(maps.clr, f[j]));
    sent.push_back(maps.crl[j] ^ image_of(maps.crr, f[j]));
  }
  const auto m_inverse = inverse(c.m);
  if (!m_inverse) return std::nullopt;
  c.s = compose(sent, *m_inverse);
  c.f = std::move(f);
  return c;
}

// F among maps of single bits, for those lanes whose source register depends on the lane. Programs
// with more than two such lanes lose against shared memory anyway.
std::optional<Candidate> search(const Maps& maps) {
  std::vector<int> lanes;
  for (int j = 0; j < lane_bits; ++j) {
    if (maps.crl[j] != 0) lanes.push_back(j);
  }
  if (lanes.size() > 2) return std::nullopt;
  const std::size_t choices = maps.crr.size() + 1;
  std::optional<Candidate> best;
  for (std::size_t n = 0; n < (lanes.size() == 2 ? choices * choices : choices); ++n) {
    Bits f(lane_bits, 0);
    std::size_t rest = n;
    for (const int j : lanes) {
      f[j] = rest % choices == 0 ? 0 : 1u << (rest % choices - 1);
      rest /= choices;
    }
    auto candidate = with_f(maps, std::move(f));
    if (candidate && (!best || candidate->stages() < best->stages())) best = candidate;
  }
  return best;
}

void add_selects(const Bits& flips, std::vector<Select>& selects) {
  for (int j = 0; j < lane_bits; ++j) {
    if (flips[j] != 0) selects.push_back({j, static_cast<int>(flips[j])});
  }
}

// Chooses F and fills in all of the program but its passes.
bool choose_rounds(const Maps& maps, ShuffleChoice& choice) {
  Candidate c;
  Shuffles& p = choice.program;
  if (auto f = exchange(maps)) {
    c = *with_f(maps, std::move(*f));
  } else if (std::all_of(maps.crl.begin(), maps.crl.end(), [](auto x) { return x == 0; })) {
    // The source register is the same in all lanes; M may be singular, for copies.
    c = {Bits(lane_bits, 0), maps.cll, Bits(lane_bits, 0)};
    p.by_xor = false;
  } else if (auto found = search(maps)) {
    c = std::move(*found);
    p.by_xor = false;
  } else {
    return false;
  }
  if (!p.by_xor) p.source_lane = c.m;
  add_selects(c.s, p.before);
  add_selects(c.f, p.after);
  for (std::size_t i = 0; i < maps.crr.size(); ++i) {
    choice.round_lane.push_back(maps.clr[i]);
    choice.round_from.push_back(maps.crr[i] ^ image_of(c.s, maps.clr[i]));
  }
  return true;
}

// Words that selects may bring to each of the marked ones.
std::vector<bool> closure(std::vector<bool> marked, const std::vector<Select>& selects) {
  for (const Select& s : selects) {
    std::vector<bool> more = marked;
    for (std::size_t w = 0; w < marked.size(); ++w) {
      if (marked[w]) more[w ^ static_cast<std::size_t>(s.flip)] = true;
    }
    marked = std::move(more);
  }
  return marked;
}

std::vector<int> word_registers(const OnCommonTile& side, const Extents& repetition, int words,
                                int pack, const std::vector<std::uint32_t>& word_bits,
                                const std::vector<std::uint32_t>& pack_bits) {
  std::vector<int> list;
  for (int w = 0; w < words; ++w) {
    for (int e = 0; e < pack; ++e) {
      list.push_back(side.physical(scatter(static_cast<std::uint32_t>(w), word_bits) |
                                       scatter(static_cast<std::uint32_t>(e), pack_bits),
                                   repetition));
    }
  }
  return list;
}

std::vector<bool> words_with_registers(const std::vector<int>& registers, int pack) {
  std::vector<bool> words(registers.size() / pack);
  for (std::size_t i = 0; i < registers.size(); ++i) {
    if (registers[i] >= 0) words[i / pack] = true;
  }
  return words;
}

int free_rounds(const Bits& round_lane) { return static_cast<int>(rank(round_lane)); }

}  // namespace

std::optional<ShuffleChoice> choose_shuffles(const Pair& pair) {
  ShuffleChoice choice;
  choose_packing(pair, choice);
  if (!choose_rounds(word_maps(pair, choice), choice)) return std::nullopt;
  Shuffles& p = choice.program;
  // Of 2^n rounds, 2^(n - rank) stay in their lane.
  const double stay = p.by_xor ? 1.0 / (1 << free_rounds(choice.round_lane)) : 0.0;
  const double halves = pair.element_bytes == 8 ? 2 : 1;  // 32-bit shuffles per word
  const auto part = [&](const OnCommonTile& side) {       // of the tile registers that exist
    return static_cast<double>(side.base().registers()) /
           (static_cast<double>(pair.repetition_count) * side.registers());
  };
  const double passes = static_cast<double>(pair.repetition_count) * halves;
  const double shuffles = passes * p.words_out * (1 - stay) * part(pair.b);
  const double selects = passes * (static_cast<double>(p.before.size()) * p.words_in +
                                   static_cast<double>(p.after.size()) * p.words_out);
  choice.cost = pair.a.base().warpgroups() * (shuffle_cost * shuffles + select_cost * selects) +
                shuffle_latency + (p.by_xor ? 0 : index_cost);
  return choice;
}

Shuffles build_shuffles(const Pair& pair, ShuffleChoice choice) {
  Shuffles p = std::move(choice.program);
  const int halves = pair.element_bytes == 8 ? 2 : 1;
  for (std::int64_t n = 0; n < pair.repetition_count; ++n) {
    const Extents repetition = pair.repetition(n);
    ShufflePass pass;
    pass.in =
        word_registers(pair.a, repetition, p.words_in, p.pack, choice.words_from, choice.pack_from);
    pass.out =
        word_registers(pair.b, repetition, p.words_out, p.pack, choice.words_to, choice.pack_to);
    const auto filled = closure(words_with_registers(pass.in, p.pack), p.before);
    const auto wanted = closure(words_with_registers(pass.out, p.pack), p.after);
    for (int w = 0; w < p.words_out; ++w) {
      const auto bits = static_cast<std::uint32_t>(w);
      const Round round{w, static_cast<int>(image_of(choice.round_from, bits)),
                        static_cast<int>(image_of(choice.round_lane, bits))};
      if (!wanted[w] || !filled[round.from]) continue;
      pass.rounds.push_back(round);
      if (!p.by_xor || round.lane_flip != 0) p.shuffles += halves;
    }
    p.selects +=
        halves * static_cast<int>(p.before.size() * p.words_in + p.after.size() * p.words_out);
    p.passes.push_back(std::move(pass));
  }
  return p;
}

}  // namespace palladium::layout
