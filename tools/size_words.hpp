// What two kernels know of the sizes of their arrays, where they differ in it.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace palladium::tools {

/// A sentence for each size, of the components of both keys: "args[0].shape[1] is 100 in the first,
/// 200 in the second". Empty where they know the same.
std::vector<std::string> size_words(const std::map<std::string, std::string>& first,
                                    const std::map<std::string, std::string>& second);

}  // namespace palladium::tools
