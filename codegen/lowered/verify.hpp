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
///   does    a statement fills, begins, closes, awaits, orders or tells something, or decides what
///           stands inside of it
///   used    somebody reads what is to be sent, and what is held of an output; of scalars, once
///           they have been looked through (`placed`), all
///   awaited what a barrier counts comes, and is waited for: bytes that a copy completes are
///           expected, what is expected is copied, and arrivals are one thread's for all
///   fenced  a fence stands where something asynchronous reads what threads store
///   bytes   storages that hold something at once do not share bytes; `placed`: once they have
///           their offsets
std::string defect(const Program& l, bool placed);

}  // namespace palladium::lowered
