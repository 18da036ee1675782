// What agents do, in words.
#pragma once

#include <string>
#include <vector>

#include "codegen/lowered/protocol.hpp"
#include "codegen/lowered/protocol_run.hpp"

namespace palladium::lowered::protocol {

/// "begins to fetch s5 (the result of load) in slot 1"; of a slot, whichever it is: without it.
std::string words_of(const Model& m, const Event& e, bool names_slot = true);

/// "s5 (the result of load) in slot 1", "m0 of slot 1".
std::string name_of(const Model& m, const Cell& cell, bool names_slot = true);
std::string name_of(const Model& m, const Event& e, bool names_slot = true);

/// What happened, row by row: what several threads of an agent do is one.
std::vector<Protocol::Step> rows_of(const Model& m, const std::vector<std::vector<Event>>& events,
                                    const std::vector<Happening>& happened);

/// A column for each who does something.
std::string table_of(const std::vector<Protocol::Step>& rows);

}  // namespace palladium::lowered::protocol
