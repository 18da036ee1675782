// Reads what lowered::to_full_text prints, so that a test of one pass can be text in, text out.
#pragma once

#include <string_view>

#include "codegen/lowered/program.hpp"

namespace palladium::test {

/// The lowered program that `text` shows, its graph in front of it: to_full_text gives it back.
/// Lines that begin with `;` are comments. Throws std::runtime_error that quotes the line which it
/// does not understand. Statements and remarks have no place in a file.
lowered::Program lowered_of(std::string_view text);

}  // namespace palladium::test
