#include "codegen/base/format.hpp"

FMT_BEGIN_NAMESPACE
template void detail::vformat_to<char>(buffer<char>&, basic_string_view<char>,
                                       basic_format_args<buffer_context<char>>, locale_ref);
FMT_END_NAMESPACE
