"""Kernels of Triton that several benchmarks time. Needs triton."""
import triton
import triton.language as tl


@triton.jit
def add(x, y, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)


@triton.jit
def softmax(x, o, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    j = tl.arange(0, BLOCK)
    at = tl.program_id(0) * COLUMNS + j
    v = tl.load(x + at, j < COLUMNS, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(o + at, e / tl.sum(e, 0), j < COLUMNS)
