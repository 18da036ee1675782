// Elements of an output that no program wrote: counted, and told.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "palladium/error.hpp"
#include "runtime/race/writer_map.hpp"

namespace palladium::race {

struct Unwritten {
  std::int64_t count = 0, of = 0;
  std::vector<std::int64_t> first = {};  // its index

  /// "kernel 'k': nobody wrote 3 of the 12 elements of outputs[0], the first of them [0,9]"
  std::string text(std::string_view kernel, std::string_view output) const;
};

/// Looks for them in an array of this shape, whose element [i, j] is number i * strides[0] + j *
/// strides[1] of `writers`.
Unwritten find_unwritten(const WriterMap& writers, std::span<const std::int64_t> shape,
                         std::span<const std::int64_t> strides);

/// Says it, if there are any: CompileError at `at`, or a warning in the log.
void tell(const Unwritten& unwritten, std::string_view kernel, std::string_view output,
          bool is_error, Location at);

}  // namespace palladium::race
