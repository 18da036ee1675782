// Shuffles and votes.

namespace pl {
namespace detail {

template <class T>
PL_FN T shuffle(T v, Shuffle kind, u32 operand, i32 line) {
  const u64 bits = host.shuffle(bitcast<bits_of<T>>(v), kind, operand, line);
  return bitcast<T>(static_cast<bits_of<T>>(bits));
}

}  // namespace detail

template <class T>
PL_FN T shuffle_xor(T v, u32 mask, PL_LINE) {
  return detail::shuffle(v, detail::Shuffle::by_xor, mask, line);
}

template <class T>
PL_FN T shuffle_idx(T v, u32 lane, PL_LINE) {
  return detail::shuffle(v, detail::Shuffle::by_index, lane, line);
}

template <class T>
PL_FN T shuffle_up(T v, u32 delta, PL_LINE) {
  return detail::shuffle(v, detail::Shuffle::up, delta, line);
}

template <class T>
PL_FN T shuffle_down(T v, u32 delta, PL_LINE) {
  return detail::shuffle(v, detail::Shuffle::down, delta, line);
}

PL_FN bool vote_any(bool p, PL_LINE) { return detail::host.ballot(p, line) != 0; }
PL_FN bool vote_all(bool p, PL_LINE) { return detail::host.ballot(p, line) == 0xffffffffu; }
PL_FN u32 vote_ballot(bool p, PL_LINE) { return detail::host.ballot(p, line); }

}  // namespace pl
