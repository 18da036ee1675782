// Types as the emulator's functions take them.

namespace pl {
namespace detail {

template <class T>
constexpr Format format_of = Format::f32;
template <>
constexpr Format format_of<f16> = Format::f16;
template <>
constexpr Format format_of<bf16> = Format::bf16;
template <>
constexpr Format format_of<f64> = Format::f64;
template <>
constexpr Format format_of<i8> = Format::i8;
template <>
constexpr Format format_of<u8> = Format::u8;
template <>
constexpr Format format_of<i16> = Format::i16;
template <>
constexpr Format format_of<u16> = Format::u16;
template <>
constexpr Format format_of<i32> = Format::i32;
template <>
constexpr Format format_of<u32> = Format::u32;
template <>
constexpr Format format_of<i64> = Format::i64;
template <>
constexpr Format format_of<u64> = Format::u64;

}  // namespace detail
}  // namespace pl
