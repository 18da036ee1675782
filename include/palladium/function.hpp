// What the user's functions that a kernel keeps have in common: a shared handle, and their
// parameters.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace palladium {

namespace detail {

/// Base of shared objects; the count is atomic.
struct Counted {
  Counted() = default;
  Counted(const Counted&) = delete;
  virtual ~Counted() = default;
  mutable int uses = 1;
};

/// A shared handle (<memory> alone would double what this header costs).
template <class T>
class Shared {
 public:
  Shared() = default;
  explicit Shared(T* adopted) : object_(adopted) {}
  Shared(const Shared& o) : object_(o.object_) {
    if (object_) __atomic_add_fetch(&object_->uses, 1, __ATOMIC_RELAXED);
  }
  Shared(Shared&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
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
