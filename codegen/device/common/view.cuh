// What text of a user's is given: a view of memory, and registers.

// How many a thread has of a value.
#define PL_REGISTERS(x) i32(sizeof(x) / sizeof((x)[0]))

namespace pl {
namespace detail {

template <class T>
struct Unqualified {
  typedef T type;
};
template <class T>
struct Unqualified<const T> {
  typedef T type;
};
// A pointer, or an address in shared memory.
template <class T, bool shared>
struct ViewPlace {
  typedef T* type;
};
template <class T>
struct ViewPlace<T, true> {
  typedef u32 type;
};
template <class T, bool shared>
using view_place = typename ViewPlace<T, shared>::type;

// One element, read and written by the functions that all others use: reports see it.
template <class T, bool shared>
struct ViewElement {
  typedef typename Unqualified<T>::type value;
  view_place<T, shared> place;
  i32 line;

  PL_FN operator value() const {
    value x;
    read(&x, place PL_AND_PASS_LINE);
    return x;
  }
  PL_FN const ViewElement& operator=(value x) const {
    write(place, &x PL_AND_PASS_LINE);
    return *this;
  }
  PL_FN const ViewElement& operator=(const ViewElement& other) const {
    return *this = value(other);
  }
  PL_FN const ViewElement& operator+=(value x) const { return *this = value(value(*this) + x); }
  PL_FN const ViewElement& operator-=(value x) const { return *this = value(value(*this) - x); }
  PL_FN const ViewElement& operator*=(value x) const { return *this = value(value(*this) * x); }

 private:
  template <class A>
  static PL_FN void read(A* x, const A* p PL_AND_LINE) {
    pl::load_global<1>(x, p, true PL_AND_PASS_LINE);
  }
  template <class A>
  static PL_FN void read(A* x, u32 p PL_AND_LINE) {
    pl::load_shared<1>(x, p, true PL_AND_PASS_LINE);
  }
  template <class A>
  static PL_FN void write(A* p, const A* x PL_AND_LINE) {
    pl::store_global<1>(p, x, true PL_AND_PASS_LINE);
  }
  template <class A>
  static PL_FN void write(u32 p, const A* x PL_AND_LINE) {
    pl::store_shared<1>(p, x, true PL_AND_PASS_LINE);
  }
  template <class A>
  static PL_FN void write(const A*, const A* PL_AND_LINE) {
    static_assert(!same<A, A>, "inline_cuda: the text writes to a Ref that it said it reads");
  }
};

}  // namespace detail

// A Ref: elements of global memory, or of shared memory, that stand `strides` elements apart;
// `extents`: so many exist along each dimension, where the array of a block ends. Of memory in
// panels of `swizzle` bytes, which lie `panel` bytes apart, `first` is the row where it begins, and
// `column` the column.
template <class T, int rank, bool shared, int swizzle = 0>
struct View {
  detail::view_place<T, shared> first;
  i64 strides[rank];
  i32 extents[rank];
  u32 panel;
  i32 column;

  typedef detail::ViewElement<T, shared> Element;
  PL_FN Element operator()(detail::ViewIndex i) const { return {address(i), i.line}; }
  PL_FN Element operator()(detail::ViewIndex i, detail::ViewIndex j) const {
    return {address(i, j), i.line};
  }
  PL_FN Element operator()(detail::ViewIndex i, detail::ViewIndex j, detail::ViewIndex k) const {
    return {address(i, j, k), i.line};
  }
  PL_FN Element operator()(detail::ViewIndex i, detail::ViewIndex j, detail::ViewIndex k,
                           detail::ViewIndex l) const {
    return {address(i, j, k, l), i.line};
  }

  // Where it stands: a pointer, or in shared memory the number that functions of pl:: take.
  PL_FN detail::view_place<T, shared> address(detail::ViewIndex i) const {
    static_assert(rank == 1, "inline_cuda: a Ref of one dimension has one index");
    return at(0, i.at);
  }
  PL_FN detail::view_place<T, shared> address(detail::ViewIndex i, detail::ViewIndex j) const {
    static_assert(rank == 2, "inline_cuda: a Ref of two dimensions has two indices");
    return at(i.at * strides[0], j.at);
  }
  PL_FN detail::view_place<T, shared> address(detail::ViewIndex i, detail::ViewIndex j,
                                              detail::ViewIndex k) const {
    static_assert(rank == 3, "inline_cuda: a Ref of three dimensions has three indices");
    return at(i.at * strides[0] + j.at * strides[1], k.at);
  }
  PL_FN detail::view_place<T, shared> address(detail::ViewIndex i, detail::ViewIndex j,
                                              detail::ViewIndex k, detail::ViewIndex l) const {
    static_assert(rank == 4, "inline_cuda: a Ref of four dimensions has four indices");
    return at(i.at * strides[0] + j.at * strides[1] + k.at * strides[2], l.at);
  }
  PL_FN i32 extent(int d) const { return extents[d]; }

 private:
  // Of what stands so far behind the first along the other dimensions the element `last`.
  PL_FN detail::view_place<T, shared> at(i64 others, i32 last) const {
    if constexpr (swizzle > 0) {
      constexpr u32 width = swizzle / sizeof(T);
      const u32 c = u32(column + last);
      const u32 plain =
          first + u32(others) * u32(sizeof(T)) + c / width * panel + c % width * u32(sizeof(T));
      return plain ^ (plain >> 3 & (swizzle - 16));
    } else if constexpr (shared) {
      return first + u32(others + last * strides[rank - 1]) * u32(sizeof(T));
    } else {
      return first + (others + last * strides[rank - 1]);
    }
  }
};

}  // namespace pl
