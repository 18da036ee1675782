// What the user's functions that a kernel keeps have in common: a shared handle, and their
// parameters.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "palladium/error.hpp"

namespace palladium {

namespace detail {

/// Base of shared objects; the count is atomic.
struct Counted {
  Counted() = default;
  Counted(const Counted&) = delete;
  virtual ~Counted() = default;
  mutable int uses = 1;
};

/// A shared handle (<memory> alone would double what this header costs). Moving copies, so that a
/// handle which was moved from still is one.
template <class T>
class Shared {
 public:
  Shared() = default;
  explicit Shared(T* adopted) : object_(adopted) {}
  Shared(const Shared& o) : object_(o.object_) {
    if (object_) __atomic_add_fetch(&object_->uses, 1, __ATOMIC_RELAXED);
  }
  Shared& operator=(Shared o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  ~Shared() {
    if (object_ && __atomic_sub_fetch(&object_->uses, 1, __ATOMIC_ACQ_REL) == 0) delete object_;
  }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

/// Whether these bytes are nothing but addresses of this thread's stack, in frames that called.
PALLADIUM_API bool points_to_stack(const void* bytes, std::size_t count);
/// Whether all that a closure that is to be kept captured, it captured by reference, or as a pointer,
/// from the calling functions, which will take it with them. Closures that own something are not
/// looked at.
template <class F>
bool refers_to_stack(const F& f) {
  if constexpr (std::is_class_v<F> && !std::is_empty_v<F> && std::is_trivially_copyable_v<F>)
    return points_to_stack(&f, sizeof(F));
  else
    return false;
}

/// CompileError: a function pointer that `what` should call is null.
[[noreturn]] PALLADIUM_API void no_function(const char* what, Location at);
template <class F>
F given_function(F f, const char* what, Location at) {
  if constexpr (std::is_pointer_v<F>)
    if (!f) no_function(what, at);
  return f;
}

template <class... T>
struct List {};
template <class T, std::size_t>
using Repeat = T;

/// Parameters of a function whose call operator is no template.
template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using Parameters = List<std::remove_cvref_t<A>...>;
  using Result = std::remove_cvref_t<R>;
  static constexpr int arity = sizeof...(A);
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) noexcept> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const noexcept> : Signature<R (*)(A...)> {};
template <class R, class... A>
struct Signature<R (*)(A...) noexcept> : Signature<R (*)(A...)> {};
template <class F>
concept Plain = std::is_pointer_v<F> || requires {
  &F::operator();
};

}  // namespace detail

}  // namespace palladium
