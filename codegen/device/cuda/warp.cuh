// Shuffles and votes.

namespace pl {

// NVRTC takes longer for __shfl_xor_sync and its like than for the instructions.
#define PL_SHUFFLE(name, instruction, clamp)                                               \
  PL_FN u32 name(u32 v, u32 from) {                                                        \
    u32 r;                                                                                 \
    asm volatile(instruction " %0, %1, %2, " clamp ", -1;" : "=r"(r) : "r"(v), "r"(from)); \
    return r;                                                                              \
  }                                                                                        \
  PL_FN f32 name(f32 v, u32 from) {                                                        \
    f32 r;                                                                                 \
    asm volatile(instruction " %0, %1, %2, " clamp ", -1;" : "=f"(r) : "f"(v), "r"(from)); \
    return r;                                                                              \
  }                                                                                        \
  template <class T>                                                                       \
  PL_FN T name(T v, u32 from) {                                                            \
    if constexpr (sizeof(T) == 8) {                                                        \
      const u64 bits = bitcast<u64>(v);                                                    \
      const u32 low = name(u32(bits), from), high = name(u32(bits >> 32), from);           \
      return bitcast<T>(u64(high) << 32 | low);                                            \
    } else {                                                                               \
      const u32 word = name(u32(bitcast<detail::bits_of<T>>(v)), from);                    \
      return bitcast<T>(static_cast<detail::bits_of<T>>(word));                            \
    }                                                                                      \
  }
PL_SHUFFLE(shuffle_xor, "shfl.sync.bfly.b32", "31")
PL_SHUFFLE(shuffle_idx, "shfl.sync.idx.b32", "31")
PL_SHUFFLE(shuffle_up, "shfl.sync.up.b32", "0")
PL_SHUFFLE(shuffle_down, "shfl.sync.down.b32", "31")

PL_FN bool vote_any(bool p) { return __any_sync(0xffffffffu, p); }
PL_FN bool vote_all(bool p) { return __all_sync(0xffffffffu, p); }
PL_FN u32 vote_ballot(bool p) { return __ballot_sync(0xffffffffu, p); }

}  // namespace pl
