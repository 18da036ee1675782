// What always holds of the statements of a lowered program.
#pragma once

#include <string>

#include "codegen/lowered/program.hpp"

namespace palladium::lowered {

/// What is wrong, with the rule and the statement; "" if nothing is. The rules:
///
///   ids     what a statement names is in its table
///   filled  a value is filled on every way to who reads it, where it is read: what windows,
///           slots of rings and barriers hold is known by other rules
///   bytes   storages that hold something at once do not share bytes; `placed`: once they have
///           their offsets
std::string defect(const Program& l, bool placed);

}  // namespace palladium::lowered
