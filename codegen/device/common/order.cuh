// The lesser and the greater of two floats: NaN if either is, and -0 is less than 0.

namespace pl {
namespace detail {

// Equal floats differ in the sign of zero at most: `or` of the bits is -0, `and` is +0.
template <class T>
PL_FN T lesser_float(T a, T b) {
  if (a == b) return bitcast<T>(bitcast<bits_of<T>>(a) | bitcast<bits_of<T>>(b));
  return a < b || a != a ? a : b;
}

template <class T>
PL_FN T greater_float(T a, T b) {
  if (a == b) return bitcast<T>(bitcast<bits_of<T>>(a) & bitcast<bits_of<T>>(b));
  return a > b || a != a ? a : b;
}

}  // namespace detail
}  // namespace pl
