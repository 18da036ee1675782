#include "runtime/race/unwritten.hpp"

#include "codegen/base/format.hpp"
#include "codegen/base/log.hpp"

namespace palladium::race {

std::string Unwritten::text(std::string_view kernel, std::string_view output) const {
  std::string index;
  for (const std::int64_t i : first) index += (index.empty() ? "" : ",") + std::to_string(i);
  return fmt::format(
      "kernel '{}': nobody wrote {} of the {} elements of {}, the first of them [{}]", kernel,
      count, of, output, index);
}

Unwritten find_unwritten(const WriterMap& writers, std::span<const std::int64_t> shape,
                         std::span<const std::int64_t> strides) {
  Unwritten found{.of = 1};
  for (const std::int64_t extent : shape) found.of *= extent;
  if (found.of == 0) return found;
  // Elements without gaps between them are a row; `rows` dimensions stand around it.
  std::size_t rows = shape.size();
  std::int64_t row = 1;
  while (rows > 0 && strides[rows - 1] == row) row *= shape[--rows];
  std::vector<std::int64_t> index(shape.size());
  for (std::int64_t begin = 0;;) {
    const auto last = static_cast<std::size_t>(begin + row);
    for (auto at = static_cast<std::size_t>(begin); (at = writers.next_unwritten(at, last)) < last;
         ++at) {
      if (found.count++ > 0) continue;
      found.first = index;
      auto rest = static_cast<std::int64_t>(at) - begin;
      for (std::size_t d = shape.size(); d > rows; --d) {
        found.first[d - 1] = rest % shape[d - 1];
        rest /= shape[d - 1];
      }
    }
    std::size_t d = rows;
    for (; d > 0; --d) {
      begin += strides[d - 1];
      if (++index[d - 1] < shape[d - 1]) break;
      begin -= strides[d - 1] * shape[d - 1];
      index[d - 1] = 0;
    }
    if (d == 0) return found;
  }
}

void tell(const Unwritten& unwritten, std::string_view kernel, std::string_view output,
          bool is_error, Location at) {
  if (unwritten.count == 0) return;
  const std::string text = unwritten.text(kernel, output);
  if (is_error) throw CompileError(at, text);
  std::string line = text + "; they hold what the memory held";
  if (const std::string place = to_string(at); !place.empty()) line += " (" + place + ")";
  log::warning(line);
}

}  // namespace palladium::race
