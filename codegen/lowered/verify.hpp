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
///           they have been looked through (`offsets`), all
///   awaited what a barrier counts comes, and is waited for: bytes that a copy completes are
///           expected, what is expected is copied, and arrivals are one thread's for all; `waits`
///   signalled  on every way who touches what copies bring has waited for them, and slots of rings
///           are filled, awaited, freed and left in turn (signals.hpp); `waits`
///   over    nobody touches what something asynchronous fills, nor fills or frees what it reads,
///           before a wait says that it is over; `waits`
///   fenced  a fence stands where something asynchronous reads what threads store
///   bytes   storages that hold something at once do not share bytes; `offsets`
///   ordered between a thread that writes memory and another that reads or writes it stands a
///           barrier, and a fence in front of it where one of them is asynchronous; `order`
///
/// Some hold from a pass on: `waits` of complete_async, `offsets` of place_shared_memory, `order`
/// of order_accesses.
struct Behind {
  bool waits = false, offsets = false, order = false;
};
std::string defect(const Program& l, Behind passes);

/// A statement in such a sentence: "wait of line 7".
std::string where(const Statement& s);

}  // namespace palladium::lowered
