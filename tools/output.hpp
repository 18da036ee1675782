// What the commands print with: results on stdout, everything else on stderr.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "palladium/report.hpp"
#include "palladium/resources.hpp"
#include "palladium/sass.hpp"

namespace palladium::tools {

/// Keeps the order in which fields are added.
using Json = nlohmann::ordered_json;

/// A line, or text of several lines, on stdout.
void print(const std::string& text);
/// The one object that a command with --json prints.
void print(const Json& object);
/// What a user asked for by name: the text alone, or several under a heading each.
struct Part {
  std::string name;
  std::string text;
};
void print(const std::vector<Part>& parts);
/// A line on stderr.
void note(const std::string& line);
/// "palladium: <what>" on stderr.
void complain(const std::string& what);

/// Whether all that was printed has been taken; complains if not.
bool finish();

Json json_of(const Resources& resources);
/// One line each.
std::string text_of(const Resources& resources);

Json json_of(const Occupancy& occupancy);
/// One line.
std::string text_of(const Occupancy& occupancy);

Json json_of(const Sass& sass);
/// The text, then the instructions of all of it and of each loop.
std::string text_of(const Sass& sass);

/// The program behind each pass, under a heading.
Json json_of(const std::vector<PassDump>& passes);
std::string text_of(const std::vector<PassDump>& passes);
/// A line per pass: the attempt, what the pass took, and all of them.
Json times_json(const std::vector<PassDump>& passes);
std::string times_text(const std::vector<PassDump>& passes);

Json json_of(const Report& report);
/// A line per access, then the instructions, then registers and occupancy.
std::string text_of(const Report& report);

}  // namespace palladium::tools
