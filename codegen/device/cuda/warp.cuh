// Shuffles and votes.

namespace pl {
namespace detail {

// Applies a shuffle of 32-bit words to a T.
template <class T, class Shuffle>
PL_FN T by_words(T v, Shuffle shuffle) {
  if constexpr (sizeof(T) == 8) {
    const u64 bits = bitcast<u64>(v);
    const u32 lo = shuffle(static_cast<u32>(bits)), hi = shuffle(static_cast<u32>(bits >> 32));
    return bitcast<T>(u64(hi) << 32 | lo);
  } else {
    return bitcast<T>(static_cast<bits_of<T>>(shuffle(u32(bitcast<bits_of<T>>(v)))));
  }
}

}  // namespace detail

template <class T>
PL_FN T shuffle_xor(T v, u32 mask) {
  return detail::by_words(v, [=](u32 w) { return __shfl_xor_sync(0xffffffffu, w, mask); });
}

template <class T>
PL_FN T shuffle_idx(T v, u32 lane) {
  return detail::by_words(v, [=](u32 w) { return __shfl_sync(0xffffffffu, w, lane); });
}

template <class T>
PL_FN T shuffle_up(T v, u32 delta) {
  return detail::by_words(v, [=](u32 w) { return __shfl_up_sync(0xffffffffu, w, delta); });
}

template <class T>
PL_FN T shuffle_down(T v, u32 delta) {
  return detail::by_words(v, [=](u32 w) { return __shfl_down_sync(0xffffffffu, w, delta); });
}

PL_FN bool vote_any(bool p) { return __any_sync(0xffffffffu, p); }
PL_FN bool vote_all(bool p) { return __all_sync(0xffffffffu, p); }
PL_FN u32 vote_ballot(bool p) { return __ballot_sync(0xffffffffu, p); }

}  // namespace pl
