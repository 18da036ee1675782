// What the CMake files of the components say they use.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace palladium::test {

/// (folder, folders it names after USES), in the order in which they were added.
const std::vector<std::pair<std::string, std::vector<std::string>>>& declared_uses();

}  // namespace palladium::test
