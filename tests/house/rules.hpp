// The rules of the house as functions over sources: which folder may include what, what a public
// header may need, and which words belong to one file alone. Each returns its violations, one
// sentence each.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace palladium::house {

/// Path from the repository root -> text.
using Sources = std::map<std::string, std::string>;
using Violations = std::vector<std::string>;

/// The folders that a folder may include from: those its row names and whatever those use.
std::vector<std::string> may_use(const std::string& folder);

/// Includes that the table of folders does not allow, headers of no owner, relative includes.
Violations arrows(const Sources& sources);
/// Public headers that include other than public headers and the permitted standard ones.
Violations public_headers(const Sources& sources);
/// Searches in text from the passes to the printer, which decide by what they hold.
Violations searches(const Sources& sources);
/// Statements by which threads wait, or say that others need not, made elsewhere than where order
/// is derived from effects.
Violations waits(const Sources& sources);
/// Comparisons of architectures' numbers behind the graph, elsewhere than where Machine answers.
Violations architectures(const Sources& sources);

/// Reads of the op table's order or of attributes by position, outside of the graph's own files.
Violations positions(const Sources& sources);
/// Words that one file alone may say (the log library, the file system), said elsewhere.
Violations doors(const Sources& sources);
/// Calls, in any folder, of what takes the number of a process or gives one: a number of -1 or 0
/// that reaches them is everybody.
Violations processes(const Sources& sources);

/// Members of `class Array` in array.hpp, those that are no constructors and not static, which
/// `class Outputs` in outputs.hpp lacks.
Violations array_members(const Sources& sources);

}  // namespace palladium::house
