#include "codegen/nvrtc/sass.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

namespace palladium::nvrtc {
namespace {

/// Kinds of instructions by their names up to the first dot: the first row that has one of these
/// patterns, in which ? is a character and * any number of them.
struct Class {
  const char* name;
  std::string_view patterns;
};
constexpr Class classes[] = {
    {"HGMMA", "HGMMA IGMMA QGMMA BGMMA"},
    {"HMMA", "HMMA IMMA QMMA DMMA BMMA"},
    {"TMA", "UTMALDG UTMASTG UBLKCP UTMAPF UBLKPF UTMARED UBLKRED UTMACMDFLUSH UTMACCTL"},
    {"LDGSTS", "LDGSTS"},
    {"LDG", "LDG"},
    {"STG", "STG"},
    {"LDSM", "LDSM"},
    {"STSM", "STSM MOVM"},
    {"LDS", "LDS"},
    {"STS", "STS"},
    {"LDL/STL", "LDL STL"},
    {"ATOM/RED", "ATOM* RED RED?"},
    {"BAR/SYNCS",
     "BAR SYNCS UCGABAR* DEPBAR LDGDEPBAR ARRIVES MEMBAR FENCE UTMAWAIT ERRBAR CCTL NANOSLEEP "
     "ACQBULK"},
    {"WARPGROUP", "WARPGROUP WARPGROUPSET USETMAXREG"},
    {"SHFL/VOTE", "SHFL VOTE VOTEU ELECT MATCH REDUX CREDUX"},
    {"MUFU", "MUFU"},
    {"FP32", "FFMA FADD FMUL FMNMX FSEL FSETP FSET FCHK FSWZADD FFMA2"},
    {"FP16", "H?*2 H?*2_MMA HMNMX2"},
    {"CVT", "F2F* F2I I2F* F2FP I2FP FRND I2I*"},
    {"INT",
     "IMAD IADD IADD3 IADD3X LEA LOP LOP3 VIADD* SHF SHL SHR IABS IMNMX VIMNMX* SEL PRMT FLO POPC "
     "SGXT BMSK BREV IDP VABSDIFF*"},
    {"MOV", "MOV CS2R S2R LDC S2UR R2UR P2R R2P S2?*"},
    {"ISETP/BRA",
     "ISETP PLOP3 BRA BRX JMP JMX BSSY BSYNC EXIT CALL RET WARPSYNC BREAK YIELD NOP BPT PREEXIT "
     "UPLOP3 USETP UISETP BMOV KILL RPCMOV"},
    {"UNIFORM", "U?*"},
    {"other", "*"},
};

bool matches(std::string_view pattern, std::string_view word) {
  std::size_t p = 0, w = 0, star = pattern.npos, again = 0;
  while (w < word.size()) {
    if (p < pattern.size() && pattern[p] == '*')
      star = p++, again = w;
    else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == word[w]))
      ++p, ++w;
    else if (star != pattern.npos)
      p = star + 1, w = ++again;
    else
      return false;
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

/// Calls `f` for each part of the text until it returns true; whether it did.
bool any_part(std::string_view text, char separator, const auto& f) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    if (f(text.substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

std::size_t class_of(std::string_view name) {
  const std::string_view word = name.substr(0, name.find('.'));
  return static_cast<std::size_t>(
      std::find_if(std::begin(classes), std::end(classes),
                   [&](const Class& c) {
                     return any_part(c.patterns, ' ',
                                     [&](std::string_view p) { return matches(p, word); });
                   }) -
      std::begin(classes));
}

bool is_one_of(std::string_view word, std::string_view words) {
  return any_part(words, ' ', [&](std::string_view w) { return w == word; });
}

std::string_view first_parts(std::string_view name, int parts) {
  std::size_t end = 0;
  for (; parts > 0 && end != name.npos; --parts) end = name.find('.', end == 0 ? 0 : end + 1);
  return name.substr(0, end);
}

/// The name with what matters of it: width, shape.
std::string opcode_of(std::string_view name, std::string_view kind) {
  const std::string_view word = name.substr(0, name.find('.'));
  if (kind == "HGMMA" || kind == "HMMA") return std::string(first_parts(name, 2));
  if (is_one_of(word, "LDG STG LDS STS LDGSTS LDL STL LD ST")) {
    std::string_view width = "32";
    any_part(name.substr(word.size()), '.', [&](std::string_view part) {
      const bool is_width = is_one_of(part, "128 64 U8 S8 U16 S16 256");
      if (is_width) width = part;
      return is_width;
    });
    return std::string(word) + "." + std::string(width);
  }
  if (is_one_of(word, "LDSM STSM UTMALDG UTMASTG UBLKCP")) return std::string(first_parts(name, 4));
  if (is_one_of(word, "WARPGROUP MUFU SYNCS BAR")) return std::string(first_parts(name, 3));
  return std::string(word);
}

// ---- text

constexpr std::string_view blanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool is_name(char c) { return is_word(c) || c == '$' || c == '.'; }

std::string_view name_at(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && is_name(text[end])) ++end;
  return text.substr(begin, end - begin);
}

/// "@!UP0 ": takes it off the text.
bool take_predicate(std::string_view& text) {
  if (!text.starts_with('@')) return false;
  const std::size_t end = std::min(text.find_first_of(blanks), text.size());
  text = trimmed(text.substr(end));
  return true;
}

/// "/*01a0*/ @!P0 LDG.E R2, desc[UR4][R2.64] ;", or the halves of a pair in braces.
bool read_instruction(std::string_view line, Instruction& i) {
  if (!line.starts_with("/*")) return false;
  const char* const end = line.data() + line.size();
  const auto [rest, error] = std::from_chars(line.data() + 2, end, i.address, 16);
  if (error != std::errc() || !std::string_view(rest, end).starts_with("*/")) return false;
  std::string_view text = trimmed({rest + 2, end});
  if (text.starts_with('{')) text = trimmed(text.substr(1));
  i.is_predicated = take_predicate(text);
  if (text.empty() || text[0] < 'A' || text[0] > 'Z') return false;
  std::size_t length = 0;
  while (length < text.size() && (is_word(text[length]) || text[length] == '.')) ++length;
  i.name = text.substr(0, length);
  i.operands = trimmed(text.substr(length));
  return true;
}

bool read_label(std::string_view line, std::string_view& label) {
  if (!line.ends_with(':')) return false;
  label = name_at(line, 0);
  return !label.empty() && label.size() + 1 == line.size();
}

/// The function whose section the line begins; "" for another section, none for no section.
bool read_section(std::string_view line, std::string_view& function) {
  constexpr std::string_view word = ".section", code = ".text.";
  const std::size_t end = std::min(line.find_first_of(blanks), line.size());
  if (line.substr(0, end) != word) return false;
  const std::string_view name = trimmed(line.substr(end));
  function = {};
  if (name.starts_with(code))
    function = name.substr(code.size(), name.find_first_of(", \t") - code.size());
  return true;
}

using Labels = std::map<std::string_view, std::size_t>;

/// `(.L_x_3), as nvdisasm writes the place that an operand names.
void read_targets(Instruction& i, const Labels& labels, std::size_t count) {
  for (std::size_t at = 0; at < i.operands.size(); ++at) {
    const bool is_quoted = i.operands.substr(at).starts_with("`(");
    if (!is_quoted && !i.operands.substr(at).starts_with(".L_x_")) continue;
    const std::string_view name = name_at(i.operands, is_quoted ? at + 2 : at);
    const auto found = labels.find(name);
    if (found != labels.end() && found->second < count) i.targets.push_back(found->second);
    at += name.size();
  }
}

}  // namespace

std::vector<Instruction> instructions_of(std::string_view text, std::string_view function) {
  std::vector<Instruction> result;
  Labels labels;
  bool is_inside = false;
  any_part(text, '\n', [&](std::string_view raw) {
    const std::string_view line = trimmed(raw);
    std::string_view name;
    Instruction instruction;
    if (read_section(line, name))
      is_inside = name == function && !function.empty();
    else if (is_inside && read_label(line, name))
      labels[name] = result.size();
    else if (is_inside && read_instruction(line, instruction))
      result.push_back(instruction);
    return false;
  });
  // What pads the end: a branch to itself, and nothing.
  while (!result.empty() && result.back().name == "NOP") result.pop_back();
  if (!result.empty() && result.back().name == "BRA") result.pop_back();
  for (Instruction& i : result) read_targets(i, labels, result.size());
  return result;
}

SassMix mix_of(const std::vector<Instruction>& instructions) {
  std::array<int, std::size(classes)> counts = {};
  std::map<std::string, int> opcodes;
  for (const Instruction& i : instructions) {
    const std::size_t kind = class_of(i.name);
    ++counts[kind];
    ++opcodes[opcode_of(i.name, classes[kind].name)];
  }
  SassMix mix{.instructions = static_cast<int>(instructions.size()),
              .opcodes = {opcodes.begin(), opcodes.end()}};
  for (std::size_t c = 0; c < counts.size(); ++c)
    if (counts[c] > 0) mix.classes.emplace_back(classes[c].name, counts[c]);
  return mix;
}

Sass read_sass(std::string text, std::string_view function) {
  Sass sass;
  const std::vector<Instruction> instructions = instructions_of(text, function);
  sass.all = mix_of(instructions);
  const std::vector<NaturalLoop> loops = loops_of(instructions);
  for (const NaturalLoop& l : loops) {
    std::vector<Instruction> hot;
    for (const std::size_t i : l.hot) hot.push_back(instructions[i]);
    const auto contains = [&](const NaturalLoop& o) {
      return std::binary_search(o.hot.begin(), o.hot.end(), l.first);
    };
    sass.loops.push_back({.from = instructions[l.first].address,
                          .to = instructions[l.last].address,
                          .depth = static_cast<int>(std::ranges::count_if(loops, contains)),
                          .mix = mix_of(hot),
                          .every_trip = static_cast<int>(l.every_trip.size()),
                          .cold = static_cast<int>(l.cold.size())});
  }
  sass.text = std::move(text);
  return sass;
}

}  // namespace palladium::nvrtc
