// What a kernel is expected to become (CompilerParams::expect), held against what it has become.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/cuda/emit.hpp"

namespace palladium::cuda {

/// Whether a kernel says what it is to be on that architecture.
bool is_expected_on(const graph::Graph& g, const std::string& arch);

/// What is broken of that, a sentence each: by what ptxas made of it, and warns of its products ...
std::vector<std::string> broken_by(const graph::Graph& g, const Resources& resources,
                                   std::span<const std::string> of_products);
/// ... and by the program that it is lowered to, of which so many blocks fit a multiprocessor at
/// once; 0: that is not known.
std::vector<std::string> broken_by_program(const graph::Graph& g, const Options& options,
                                           int blocks);

/// What lowering remarks of the kernel, with the user's lines: what may be behind it.
std::vector<std::string> remarks_of(const graph::Graph& g, const Options& options);

}  // namespace palladium::cuda
