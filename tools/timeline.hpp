// A timeline on a terminal, as JSON and as a picture.
#pragma once

#include <string>

#include "palladium/report.hpp"
#include "tools/output.hpp"

namespace palladium::tools {

/// Of each loop two iterations, a letter for what is done in each of so many columns, then what the
/// letters mean, who waits for what, and how busy the parts are.
std::string text_of(const Timeline& timeline);
Json json_of(const Timeline& timeline);
/// The same as one SVG picture.
std::string svg_of(const Timeline& timeline);

}  // namespace palladium::tools
