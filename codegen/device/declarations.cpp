#include "codegen/device/declarations.hpp"

#include <algorithm>
#include <string>

#include "palladium/error.hpp"

namespace palladium::device {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// An identifier, number, string or character literal, or one character of anything else.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {}

  /// The next one; empty at the end.
  std::string_view next() {
    skip_space();
    const std::size_t begin = at_;
    if (at_ >= text_.size()) return {};
    const char c = text_[at_];
    if (c == '"' || c == '\'') {
      skip_literal(c);
    } else if (is_name(c)) {
      // Digits may hold an apostrophe or a point.
      while (at_ < text_.size() &&
             (is_name(text_[at_]) || (is_digit(c) && (text_[at_] == '\'' || text_[at_] == '.'))))
        ++at_;
    } else {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  std::size_t position() const { return at_; }

 private:
  void skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\n' || c == '\\') {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  void skip_literal(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

bool is_identifier(std::string_view token) {
  return !token.empty() && is_name(token[0]) && !is_digit(token[0]);
}

std::string_view line_at(std::string_view text, std::size_t at) {
  return text.substr(at, std::min(text.find('\n', at), text.size()) - at);
}

/// Whether `line` calls a macro of the library: PL_HALF_UNARY(exp, f16).
bool calls_macro(std::string_view line) {
  if (!line.starts_with("PL_")) return false;
  const std::size_t end = line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
  return end != line.npos && line[end] == '(';
}

/// Past a pair of brackets of which `tokens` has returned the first.
void skip_group(Tokens& tokens, std::string_view open, std::string_view close) {
  for (int depth = 1; depth > 0;) {
    const std::string_view token = tokens.next();
    if (token.empty()) return;
    depth += (token == open) - (token == close);
  }
}

/// Where the declaration that starts `text` ends: behind its semicolon, or behind its body.
std::size_t end_of_declaration(std::string_view text) {
  Tokens tokens(text);
  for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
    if (token == ";") return tokens.position();
    if (token != "{") continue;
    skip_group(tokens, "{", "}");
    const std::size_t end = tokens.position();
    return tokens.next() == ";" ? tokens.position() : end;
  }
  throw InternalError("device library: no end of " + std::string(line_at(text, 0)));
}

/// A macro and the lines that it continues on.
std::size_t end_of_macro(std::string_view text) {
  std::size_t end = text.find('\n');
  while (end != text.npos && end > 0 && text[end - 1] == '\\') end = text.find('\n', end + 1);
  return std::min(end, text.size());
}

std::size_t end_of_call(std::string_view text) {
  Tokens tokens(text);
  tokens.next();
  tokens.next();
  skip_group(tokens, "(", ")");
  return tokens.position();
}

/// Takes the identifiers up to the body or initialiser; `depth` counts parentheses that are open.
void take_operands(Tokens& tokens, Declaration& d, int depth) {
  for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
    if (depth == 0 && (token == "{" || token == ";" || token == "=")) return;
    depth += (token == "(") - (token == ")");
    if (is_identifier(token)) d.operands.push_back(token);
  }
}

/// `tokens` stands behind "enum".
void take_enum(Tokens& tokens, Declaration& d) {
  std::string_view token = tokens.next();
  const bool scoped = token == "class";
  if (scoped) token = tokens.next();
  if (is_identifier(token)) d.names.push_back(token);
  while (!token.empty() && token != "{" && token != ";") token = tokens.next();
  for (bool at_name = true; !scoped && !token.empty() && token != "}"; token = tokens.next()) {
    if (at_name && is_identifier(token)) d.names.push_back(token);
    at_name = token == "{" || token == ",";
  }
}

/// The name of a function or variable: the last identifier before its parameters, array bounds,
/// template arguments, body or initialiser. `token` starts the declaration.
void take_object(Tokens& tokens, std::string_view token, Declaration& d) {
  std::string_view name;
  for (; !token.empty(); token = tokens.next()) {
    if (is_identifier(token)) {
      name = token;
      d.operands.clear();
    } else if (token == "(" && name.starts_with("__")) {
      skip_group(tokens, "(", ")");  // an attribute
    } else if (token == "(" || token == "[" || token == "=" || token == ";" || token == "{") {
      d.names.push_back(name);
      if (token == "(") take_operands(tokens, d, 1);
      return;
    } else if (token == "<") {
      for (token = tokens.next(); !token.empty() && token != ">"; token = tokens.next()) {
        if (is_identifier(token)) d.operands.push_back(token);
      }
    }
  }
}

Declaration described(std::string_view text, const std::vector<std::string_view>& scopes) {
  Declaration d;
  d.text = text;
  d.scopes = scopes;
  d.uses = identifiers(text);
  Tokens tokens(text);
  std::string_view token = tokens.next();
  while (token == "template") {
    tokens.next();
    skip_group(tokens, "<", ">");
    token = tokens.next();
  }
  d.is_type = token == "struct" || token == "enum" || token == "typedef" || token == "using";
  if (token == "#") {
    tokens.next();  // define
    d.names.push_back(tokens.next());
  } else if (calls_macro(text)) {
    tokens.next();
    d.names.push_back(tokens.next());
    take_operands(tokens, d, 1);
  } else if (token == "enum") {
    take_enum(tokens, d);
  } else if (token == "struct") {
    token = tokens.next();
    if (token == "alignas") {
      tokens.next();
      skip_group(tokens, "(", ")");
      token = tokens.next();
    }
    d.names.push_back(token);
    take_operands(tokens, d, 0);
  } else if (token == "using") {
    d.names.push_back(tokens.next());
  } else if (token == "typedef") {
    std::string_view name;
    for (token = tokens.next(); token != ";"; token = tokens.next()) name = token;
    d.names.push_back(name);
  } else {
    take_object(tokens, token, d);
  }
  if (d.names.empty() || !is_identifier(d.names[0]))
    throw InternalError("device library: no name in " + std::string(text));
  return d;
}

}  // namespace

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

std::vector<std::string_view> identifiers(std::string_view text) {
  std::vector<std::string_view> found;
  Tokens tokens(text);
  std::string_view before, last;
  for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
    const bool member = last == "." || (before == "-" && last == ">");
    if (is_identifier(token) && !member) found.push_back(token);
    before = last;
    last = token;
  }
  return found;
}

std::vector<Declaration> declarations(std::string_view text) {
  std::vector<Declaration> all;
  std::vector<std::string_view> scopes;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view line = line_at(text, at);
    const std::string_view rest = text.substr(at);
    std::size_t length = line.size();
    if (line.empty() || line.starts_with("//")) {
    } else if (line.ends_with("{") && (line.starts_with("namespace") || line == "extern \"C\" {")) {
      scopes.push_back(line);
    } else if (line[0] == '}') {
      if (scopes.empty()) throw InternalError("device library: a brace closes nothing");
      scopes.pop_back();
    } else {
      const bool macro = line.starts_with("#define");
      if (line[0] == '#' && !macro)
        throw InternalError("device library: outside of a function stands " + std::string(line));
      length = macro               ? end_of_macro(rest)
               : calls_macro(line) ? end_of_call(rest)
                                   : end_of_declaration(rest);
      length += line_at(rest, length).size();
      all.push_back(described(rest.substr(0, length + 1), scopes));
    }
    at += length + 1;
  }
  return all;
}

}  // namespace palladium::device
