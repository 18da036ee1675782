#include "palladium/outputs.hpp"

#include <string>

#include "palladium/error.hpp"

namespace palladium {
namespace {

std::string quoted(const std::string& name) { return "\"" + name + "\""; }

}  // namespace

// "; one of them is y["o"] or y[0], all of them auto [o, lse] = y.unpack<2>()".
std::string Outputs::how_to_take() const {
  const std::string count = std::to_string(arrays_.size());
  std::string names;
  for (std::size_t i = 0; i < arrays_.size() && i < names_.size(); ++i)
    names += (i > 0 ? ", " : "") + names_[i];
  if (names.empty()) names = arrays_.size() == 2 ? "a, b" : "a, b, ...";
  return "; one of them is " + (names_.empty() ? "" : "y[" + quoted(names_[0]) + "] or ") +
         "y[0], all of them auto [" + names + "] = y.unpack<" + count + ">()";
}

void Outputs::check(const std::string& what, std::size_t expected, Location at) const {
  if (arrays_.size() != count_)
    throw CompileError(at, what + "the outputs of the call are not here: they were moved away");
  if (arrays_.size() == expected) return;
  const std::string given =
      arrays_.empty() ? "no array: it has no out_type" : std::to_string(arrays_.size()) +
                           (arrays_.size() == 1 ? " array" : " arrays");
  throw CompileError(at, what + "the kernel gives " + given + ", not " + std::to_string(expected) +
                             (arrays_.size() > 1 ? how_to_take() : ""));
}

const Array& Outputs::only(const char* what, Location at) const {
  check(std::string(what) + ": ", 1, at);
  return arrays_[0];
}

const Array& Outputs::named(const char* name) const {
  std::string list;
  for (std::size_t i = 0; i < names_.size() && name; ++i) {
    if (names_[i] == name && i < arrays_.size()) return arrays_[i];
    list += (list.empty() ? "'" : ", '") + names_[i] + "'";
  }
  throw CompileError(at_, std::string("no output is named '") + (name ? name : "") + "'; " +
                              (list.empty() ? "none has a name: .out_type = {{\"o\", type}, ...}"
                                            : "there are: " + list));
}

const Array& Outputs::numbered(std::int64_t number) const {
  const auto count = static_cast<std::int64_t>(arrays_.size());
  if (arrays_.size() == count_ && number >= -count && number < count)
    return arrays_[static_cast<std::size_t>(number < 0 ? number + count : number)];
  if (arrays_.size() != count_) check("", count_, at_);
  throw CompileError(at_, "there is no output " + std::to_string(number) + ": the kernel gives " +
                              std::to_string(count) + (count == 1 ? " array" : " arrays"));
}

}  // namespace palladium
