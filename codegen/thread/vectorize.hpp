// Which elements one access moves: the one answer on widths, for layouts that are being chosen and
// for accesses that are being made.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/thread/expr.hpp"

namespace palladium::thread {

/// at < limit, or at >= limit.
struct Bound {
  Affine at;
  ExprId limit = no_expr;
  bool lower = false;
};
using Bounds = std::vector<Bound>;

/// Where an element of a view stands: base + first + offset (in elements), valid under the bounds.
struct Address {
  ExprId base = no_expr;       // a pointer, or for shared memory a u32 address
  ExprId first = no_expr;      // i32, of a block of an array; no_expr: 0
  Affine offset = {};          // in elements
  bool wide = false;           // offset needs 64 bits
  std::int64_t alignment = 1;  // of base + first, in elements
  std::int64_t together =
      1;  // so many, from a multiple of them behind base + first, exist together
  Bounds bounds = {};
  bool shared = false;
  bool resident = false;  // shared, and what the user's stores put there
  bool peer = false;      // shared, of another block of the cluster
  bool staged = false;    // shared, a copy of global memory: bytes around what is read may be read
  ExprId skew = no_expr;  // of shared memory: bytes behind there, u32, not more than 15
  bool zeros = false;     // what lies out of bounds is 0
  ExprId outside = no_expr;  // what lies out of bounds is this; no_expr: undefined
  bool read_only = false;    // nobody writes it while the kernel runs
  bool apart = false;        // shared: the nest that reads it writes elsewhere
  bool writable = false;
  DType dtype = {};
  std::int64_t reach = 0;           // elements that the offset spans, if known
  std::vector<Address> parts = {};  // low bits first, where the element is not in one piece
};

struct Width {
  int width = 1;      // elements of one access
  bool part = false;  // the bounds may end it between its elements
};

/// Of the access of `vector` elements, which the counter `element` numbers: at most 16 bytes,
/// aligned, neighbours, and in or out of bounds together, or a part of the first of them where the
/// device library can do that.
Width width_of(const Exprs& exprs, const Address& a, const Bounds& bounds, ExprId element,
               int vector);

/// Elements that one access of staged memory reads, if it may begin before the first that is wanted
/// and end behind the last; 0 where they are not neighbours.
int width_around(const Exprs& exprs, const Address& a, ExprId element, int vector);

/// Elements that follow one another in memory, among which those of a vector are, in any order.
struct Span {
  Affine first = {};  // where the first of them stands: the same for all of the vector
  Affine at = {};     // an element of the vector, among them
  std::int64_t count = 0;
  int width = 1;  // elements of one access, of which the vector wants some of each
};

/// None where no accesses of several elements are fewer than the elements of the vector.
std::optional<Span> span_of(const Exprs& exprs, const Address& a, ExprId element, int vector);

}  // namespace palladium::thread
