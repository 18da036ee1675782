// One line per event, through spdlog (log.cpp is the only file that sees it).
#pragma once

#include <string_view>

namespace palladium::log {

enum class Level { debug, info, warning, error, off };

/// Lowest level printed; set once from PALLADIUM_LOG (debug, info, warning, error, off; default
/// warning). Lines go to stderr.
bool enabled(Level level);
void write(Level level, std::string_view line);
/// What somebody asked for by name: printed at every level but off.
void show(std::string_view text);

/// What a kernel prints: to stdout as it is, in one piece.
void print(std::string_view text);

inline void debug(std::string_view line) { write(Level::debug, line); }
inline void info(std::string_view line) { write(Level::info, line); }
inline void warning(std::string_view line) { write(Level::warning, line); }
inline void error(std::string_view line) { write(Level::error, line); }

}  // namespace palladium::log
