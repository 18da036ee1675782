// Whom a cache may come from. A cubin is code that runs with the user's rights, so it must have
// been written by somebody who has them.
#pragma once

#include <string>

#include "codegen/base/files.hpp"

namespace palladium::cache {

enum class Sharing {
  own,    // folders 0700, entries 0600; both must be the user's, or root's, who has all rights
          // anyway (an image built by root and run by another), and writable by nobody else
  group,  // folders 02770, entries 0640: whoever is in the root's group is trusted with it
};

/// Why the folder or file is not to be used, and what to do about it; "" when it is.
std::string distrust_of_folder(const std::string& path, const files::Info& info, Sharing sharing);
std::string distrust_of_entry(const std::string& path, const files::Info& info, Sharing sharing);

constexpr mode_t folder_mode(Sharing sharing) { return sharing == Sharing::own ? 0700 : 02770; }
constexpr mode_t entry_mode(Sharing sharing) { return sharing == Sharing::own ? 0600 : 0640; }

}  // namespace palladium::cache
