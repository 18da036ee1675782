#!/usr/bin/env python3
"""What Triton takes from a Python function to a cubin for sm_90, with no cache: a line "name ms" for
each kernel, the least of several. Prints nothing on stdout where there is no Triton; needs no GPU."""
import os
import sys
import tempfile
import time

os.environ["TRITON_ALWAYS_COMPILE"] = "1"
os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="palladium-benchmark-")

try:
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton_kernels import add, softmax
except ImportError as missing:
    sys.exit(f"triton_compile.py: {missing}")

RUNS = 5


@triton.jit
def softmax_rows(x, o, m, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * 4 + tl.arange(0, 4)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    mask = (i < m) & (j < COLUMNS)
    v = tl.load(x + i * COLUMNS + j, mask, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 1)[:, None])
    tl.store(o + i * COLUMNS + j, e / tl.sum(e, 1)[:, None], mask)


@triton.jit
def layer_norm(x, weight, o, m, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * 4 + tl.arange(0, 4)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    mask = (i < m) & (j < COLUMNS)
    v = tl.load(x + i * COLUMNS + j, mask, other=0.0)
    centred = tl.where(j < COLUMNS, v - tl.sum(v, 1)[:, None] / COLUMNS, 0.0)
    variance = tl.sum(centred * centred, 1)[:, None] / COLUMNS
    w = tl.load(weight + j, j < COLUMNS, other=0.0)
    tl.store(o + i * COLUMNS + j, centred * tl.rsqrt(variance + 1e-5) * w, mask)


@triton.jit
def matmul(a, b, o, N: tl.constexpr, K: tl.constexpr):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)[:, None]
    j = tl.program_id(1) * 64 + tl.arange(0, 64)[None, :]
    total = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 32):
        x = tl.load(a + i * K + (k + tl.arange(0, 32)[None, :]))
        y = tl.load(b + (k + tl.arange(0, 32)[:, None]) * N + j)
        total = tl.dot(x, y, total)
    tl.store(o + i * N + j, total.to(tl.float16))


@triton.jit
def attention(q, k, v, o, scale, length, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    first = tl.program_id(0) * M
    q += tl.program_id(1) * length * D
    k += tl.program_id(1) * length * D
    v += tl.program_id(1) * length * D
    i = first + tl.arange(0, M)
    d = tl.arange(0, D)
    x = tl.load(q + i[:, None] * D + d[None, :], i[:, None] < length, other=0.0)
    most = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    out = tl.zeros((M, D), tl.float32)
    for begin in range(0, tl.minimum(first + M, length), N):
        j = begin + tl.arange(0, N)
        y = tl.load(k + j[None, :] * D + d[:, None], j[None, :] < length, other=0.0)
        s = tl.dot(x, y) * (scale * 1.4426950408889634)
        s = tl.where((j[None, :] <= i[:, None]) & (j[None, :] < length), s, -float("inf"))
        now = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - now[:, None])
        shrink = tl.exp2(most - now)
        total = total * shrink + tl.sum(p, 1)
        z = tl.load(v + j[:, None] * D + d[None, :], j[:, None] < length, other=0.0)
        out = tl.dot(p.to(tl.float16), z, out * shrink[:, None])
        most = now
    tl.store(o + tl.program_id(1) * length * D + i[:, None] * D + d[None, :],
             (out / total[:, None]).to(tl.float16), i[:, None] < length)


def source(function, types, constants):
    names = list(function.arg_names)
    signature = {n: types.get(n, "constexpr") for n in names}
    aligned = {(names.index(n),): [["tt.divisibility", 16]] for n, t in types.items() if t[0] == "*"}
    return ASTSource(function, signature, constants, aligned)


KERNELS = {
    "add": lambda: source(add, dict(x="*fp32", y="*fp32", o="*fp32", n="i32"), dict(BLOCK=1024)),
    "softmax": lambda: source(softmax, dict(x="*fp32", o="*fp32"), dict(COLUMNS=1000, BLOCK=1024)),
    "softmax_rows": lambda: source(softmax_rows, dict(x="*fp32", o="*fp32", m="i32"),
                                   dict(COLUMNS=1000, BLOCK=1024)),
    "layer_norm": lambda: source(layer_norm, dict(x="*fp32", weight="*fp32", o="*fp32", m="i32"),
                                 dict(COLUMNS=768, BLOCK=1024)),
    "matmul": lambda: source(matmul, dict(a="*fp16", b="*fp16", o="*fp16"), dict(N=1024, K=1024)),
    "attention": lambda: source(
        attention, dict(q="*fp16", k="*fp16", v="*fp16", o="*fp16", scale="fp32", length="i32"),
        dict(D=128, M=128, N=128)),
}
OPTIONS = {"attention": dict(num_warps=8, num_stages=2)}

for name, make in KERNELS.items():
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        triton.compile(make(), target=GPUTarget("cuda", 90, 32), options=OPTIONS.get(name))
        best = min(best, time.perf_counter() - start)
    print(name, round(1e3 * best, 1), flush=True)
