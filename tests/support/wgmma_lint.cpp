#include "tests/support/wgmma_lint.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace palladium::test {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The same text with blanks for comments.
std::string without_comments(std::string_view text) {
  std::string code(text);
  for (std::size_t at = code.find("//"); at != code.npos; at = code.find("//", at)) {
    for (; at < code.size() && code[at] != '\n'; ++at) code[at] = ' ';
  }
  return code;
}

class Lint {
 public:
  explicit Lint(std::string_view text) : code_(without_comments(text)) {}

  std::vector<std::string> run() {
    scan(0, code_.size());
    return {found_.begin(), found_.end()};
  }

 private:
  struct Registers {
    int group = -1;        // of the product that may be in flight
    bool awaited = false;  // it is over, and they are not pinned since
  };

  void scan(std::size_t at, std::size_t end) {
    while (at < end) {
      if (!is_word(code_[at])) {
        ++at;
        continue;
      }
      const std::size_t begin = at;
      while (at < end && is_word(code_[at])) ++at;
      const std::string word = code_.substr(begin, at - begin);
      if (word == "for" || word == "while") {
        at = loop(at, end);
      } else if (word == "wgmma_registers") {
        pin(at);
      } else if (word == "wgmma_wait") {
        wait(code_[at + 1] - '0');
      } else if (word == "wgmma_commit") {
        ++groups_;
      } else if (word.starts_with("wgmma_m64")) {
        at = product(word, at);
      } else {
        mention(word, begin);
      }
    }
  }

  // The header once, the body twice: what the end of one turn leaves, the next one meets.
  std::size_t loop(std::size_t at, std::size_t end) {
    const std::size_t header = code_.find('(', at);
    if (header >= end) return at;
    const std::size_t body = code_.find_first_not_of(" \n", closing(header) + 1);
    scan(header + 1, closing(header));
    if (body >= end || code_[body] != '{') return closing(header) + 1;
    scan(body + 1, closing(body));
    scan(body + 1, closing(body));
    return closing(body) + 1;
  }

  std::size_t closing(std::size_t at) const {
    int depth = 0;
    for (; at < code_.size(); ++at) {
      if (code_[at] == '(' || code_[at] == '{') ++depth;
      if ((code_[at] == ')' || code_[at] == '}') && --depth == 0) return at;
    }
    return code_.size();
  }

  // The array at the beginning of an argument: "a" of "a[kk], ...".
  std::string name_at(std::size_t at) const {
    at = std::min(code_.find_first_not_of(" \n", at), code_.size());
    std::size_t last = at;
    while (last < code_.size() && is_word(code_[last])) ++last;
    return code_.substr(at, last - at);
  }

  void pin(std::size_t at) { registers_[name_at(code_.find('(', at) + 1)].awaited = false; }

  void wait(int pending) {
    for (auto& [name, r] : registers_)
      if (r.group >= 0 && (pending == 0 || r.group < groups_ - pending)) r = {.awaited = true};
  }

  // Behind its arguments: they do not count as mentions.
  std::size_t product(const std::string& function, std::size_t at) {
    const std::size_t open = code_.find('(', at);
    registers_[name_at(open + 1)] = {.group = groups_};
    if (function.find("_rs") != function.npos) {
      registers_[name_at(code_.find(',', open) + 1)] = {.group = groups_};
    }
    return closing(open);
  }

  void mention(const std::string& word, std::size_t at) {
    const auto found = registers_.find(word);
    if (found == registers_.end()) return;
    const std::size_t before = code_.find_last_not_of(" \n", at == 0 ? 0 : at - 1);
    const std::string_view so_far = std::string_view(code_).substr(0, before + 1);
    for (const char* type : {"f32", "i32", "u32"}) {
      if (so_far.ends_with(type)) {  // another array of this name
        registers_.erase(found);
        return;
      }
    }
    if (!found->second.awaited) return;
    found->second.awaited = false;
    const auto line =
        1 + std::count(code_.begin(), code_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    found_.insert("line " + std::to_string(line) + " uses " + word +
                  " after wgmma_wait without wgmma_registers between");
  }

  const std::string code_;
  int groups_ = 0;  // that were closed
  std::map<std::string, Registers> registers_;
  std::set<std::string> found_;
};

}  // namespace

std::vector<std::string> unpinned_registers(std::string_view text) { return Lint(text).run(); }

}  // namespace palladium::test
