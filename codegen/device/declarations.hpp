// Cuts a .cuh of the device library into its declarations, so that a kernel gets only what it
// needs.
#pragma once

#include <string_view>
#include <vector>

namespace palladium::device {

/// A function, type, variable or macro at namespace scope. All views point into the file's text.
struct Declaration {
  std::string_view text;                   // whole lines
  std::vector<std::string_view> scopes;    // around it, outermost first: "namespace pl {"
  std::vector<std::string_view> names;     // what it declares; an enum also its enumerators
  std::vector<std::string_view> operands;  // identifiers from its name to its body or initialiser
  std::vector<std::string_view> uses;      // all identifiers of its text
  bool is_type = false;                    // a struct, enum, typedef or alias
};

/// The declarations of a file in their order. Files are written so that no compiler is needed for
/// this: namespaces and declarations start at the beginning of a line, outside of functions there
/// is no preprocessor line but #define, and a macro that declares something is called on lines of
/// its own with the name first: PL_HALF_UNARY(exp, f16), or with the type whose operators it makes.
/// InternalError for what is not.
std::vector<Declaration> declarations(std::string_view text);

/// Whether identifiers may hold it.
bool is_name(char c);

/// The identifiers of C++ text in their order, without members (x.name, p->name) and without what
/// stands in comments and literals.
std::vector<std::string_view> identifiers(std::string_view text);

}  // namespace palladium::device
