// Loops of machine code: of its control flow graph, an instruction to a node.
#include <algorithm>
#include <map>

#include "codegen/nvrtc/sass.hpp"

namespace palladium::nvrtc {
namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Whether a branch asks a predicate or a uniform register that stands among its operands.
bool asks(std::string_view operands) {
  const auto take = [](std::string_view& text, char c) {
    if (text.starts_with(c)) text.remove_prefix(1);
  };
  std::string_view rest = operands;
  take(rest, '!');
  if (rest.starts_with("UP")) return true;
  rest = operands;
  take(rest, '~');
  if (rest.starts_with("UR")) return true;
  rest = operands;
  for (const char c : {'U', '!', 'U'}) take(rest, c);
  return rest.size() > 1 && rest[0] == 'P' && rest[1] >= '0' && rest[1] <= '9';
}

class Flow {
 public:
  explicit Flow(const std::vector<Instruction>& code)
      : code_(code),
        successors_(code.size()),
        predecessors_(code.size()),
        number_(code.size(), none) {
    for (std::size_t i = 0; i < code.size(); ++i) connect(i);
    if (!code.empty()) order();
    for (const std::size_t v : order_)
      for (const std::size_t w : successors_[v]) predecessors_[w].push_back(v);
    find_dominators();
    number_dominators();
  }

  std::vector<NaturalLoop> loops() const {
    std::map<std::size_t, Body> bodies;
    for (const std::size_t v : order_)
      for (const std::size_t w : successors_[v])
        // Lanes that take turns are no loop of the program.
        if (w <= v && dominates(w, v) && code_[v].name.find(".ANY") == std::string_view::npos)
          add(bodies[w], w, v);
    std::vector<NaturalLoop> result;
    for (auto& [first, body] : bodies) result.push_back(loop_of(first, body));
    return result;
  }

 private:
  struct Body {
    std::vector<bool> has;
    std::vector<std::size_t> members;
    std::size_t last = 0;
  };

  void connect(std::size_t i) {
    const std::string_view name = code_[i].name, word = name.substr(0, name.find('.'));
    std::vector<std::size_t>& to = successors_[i];
    if (is_one_of(word, {"BRA", "BRX", "JMP", "JMX", "WARPSYNC"})) to = code_[i].targets;
    const bool always = is_one_of(word, {"BRA", "JMP"}) && !asks(code_[i].operands) &&
                        name.find(".DIV") == name.npos && name.find(".CONV") == name.npos;
    const bool ends = is_one_of(word, {"BRX", "JMX", "EXIT", "RET", "KILL"}) || always;
    if ((!ends || code_[i].is_predicated) && i + 1 < code_.size()) to.push_back(i + 1);
    std::sort(to.begin(), to.end());
    to.erase(std::unique(to.begin(), to.end()), to.end());
  }

  /// Reverse postorder of what can be reached.
  void order() {
    std::vector<bool> seen(code_.size());
    std::vector<std::pair<std::size_t, std::size_t>> stack = {{0, 0}};
    seen[0] = true;
    while (!stack.empty()) {
      auto& [v, next] = stack.back();
      if (next == successors_[v].size()) {
        order_.push_back(v);
        stack.pop_back();
      } else if (const std::size_t w = successors_[v][next++]; !seen[w]) {
        seen[w] = true;
        stack.emplace_back(w, 0);
      }
    }
    std::reverse(order_.begin(), order_.end());
    for (std::size_t i = 0; i < order_.size(); ++i) number_[order_[i]] = i;
  }

  /// Immediate dominators, by place in the order: 0 is the entry.
  void find_dominators() {
    dominator_.assign(order_.size(), none);
    if (order_.empty()) return;
    dominator_[0] = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t n = 1; n < order_.size(); ++n) {
        std::size_t common = none;
        for (const std::size_t p : predecessors_[order_[n]])
          if (const std::size_t m = number_[p]; dominator_[m] != none)
            common = common == none ? m : meet(common, m);
        changed |= dominator_[n] != common;
        dominator_[n] = common;
      }
    }
  }
  std::size_t meet(std::size_t a, std::size_t b) const {
    while (a != b) (a > b ? a : b) = dominator_[a > b ? a : b];
    return a;
  }

  /// When a walk of the dominator tree enters and leaves each.
  void number_dominators() {
    std::vector<std::vector<std::size_t>> children(order_.size());
    for (std::size_t n = 1; n < order_.size(); ++n) children[dominator_[n]].push_back(n);
    entered_.assign(order_.size(), 0);
    left_.assign(order_.size(), 0);
    std::size_t clock = 0;
    std::vector<std::pair<std::size_t, std::size_t>> stack;
    if (!order_.empty()) stack.emplace_back(0, 0);
    while (!stack.empty()) {
      auto& [n, next] = stack.back();
      if (next == 0) entered_[n] = clock++;
      if (next == children[n].size()) {
        left_[n] = clock;
        stack.pop_back();
      } else {
        stack.emplace_back(children[n][next++], 0);
      }
    }
  }

  bool dominates(std::size_t v, std::size_t w) const {
    const std::size_t a = number_[v], b = number_[w];
    return a != none && b != none && entered_[a] <= entered_[b] && entered_[b] < left_[a];
  }

  /// What reaches the branch back without passing the header.
  void add(Body& body, std::size_t header, std::size_t branch) const {
    body.has.resize(code_.size());
    const auto take = [&](std::size_t v) {
      if (body.has[v]) return false;
      body.has[v] = true;
      body.members.push_back(v);
      return true;
    };
    take(header);
    body.last = std::max(body.last, branch);
    std::vector<std::size_t> stack = {branch};
    while (!stack.empty()) {
      const std::size_t v = stack.back();
      stack.pop_back();
      if (take(v)) stack.insert(stack.end(), predecessors_[v].begin(), predecessors_[v].end());
    }
  }

  NaturalLoop loop_of(std::size_t first, Body& body) const {
    std::sort(body.members.begin(), body.members.end());
    NaturalLoop loop{.first = first, .last = body.last};
    for (const std::size_t v : body.members) {
      (first <= v && v <= loop.last ? loop.hot : loop.cold).push_back(v);
      if (dominates(v, loop.last)) loop.every_trip.push_back(v);
    }
    return loop;
  }

  const std::vector<Instruction>& code_;
  std::vector<std::vector<std::size_t>> successors_, predecessors_;
  std::vector<std::size_t> order_, number_;              // number_[order_[n]] == n
  std::vector<std::size_t> dominator_, entered_, left_;  // by number
};

}  // namespace

std::vector<NaturalLoop> loops_of(const std::vector<Instruction>& instructions) {
  return Flow(instructions).loops();
}

}  // namespace palladium::nvrtc
