// fmt for the components: header-only, so that the library brings no libfmt.so, but with its engine
// compiled once (format.cpp) instead of in every file that formats a message.
#pragma once

#include <fmt/format.h>

FMT_BEGIN_NAMESPACE
namespace detail {
extern template void vformat_to<char>(buffer<char>&, basic_string_view<char>,
                                      basic_format_args<buffer_context<char>>, locale_ref);
}
FMT_END_NAMESPACE
