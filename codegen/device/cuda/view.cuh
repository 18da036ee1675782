// An index of a view.

namespace pl {
namespace detail {

struct ViewIndex {
  i64 at;
  i32 line;
  PL_FN ViewIndex(i64 i) : at(i), line(0) {}
};

}  // namespace detail
}  // namespace pl
