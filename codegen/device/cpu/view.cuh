// An index of a view, and the line at which it stands, for reports.

namespace pl {
namespace detail {

struct ViewIndex {
  i64 at;
  i32 line;
  PL_FN ViewIndex(i64 i, PL_LINE) : at(i), line(line) {}
};

}  // namespace detail
}  // namespace pl
