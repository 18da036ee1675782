// Names that the user chose, which may be any bytes, as part of a path or of emitted text.
#pragma once

#include <string>
#include <string_view>

namespace palladium {

/// As part of a file's name: ASCII letters, digits, '.', '_' and '-' stay, but not a dot in front;
/// others become '_'; at most 64 characters. Several names may share one.
std::string file_name_of(std::string_view name);

/// As part of an identifier: ASCII letters, digits and '_', at most 64 characters.
std::string identifier_of(std::string_view name);

}  // namespace palladium
