#!/usr/bin/env python3
"""The kernels of benchmarks/user_kernels in Triton, as its users write them: the same blocks, 8 warps,
3 stages. Compiles them, for which it needs no GPU, or runs those of static sizes on the first GPU.

    triton_user_kernels.py FOLDER [NAME...]      FOLDER/NAME.cubin; a line "NAME shared-bytes warps" for each
    triton_user_kernels.py --run [NAME...]       a line "NAME triton MICROSECONDS" for each, the least of several

Prints nothing on stdout where there is no Triton."""
import os
import sys
import tempfile

os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="palladium-benchmark-"))

try:
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
except ImportError as missing:
    sys.exit(f"triton_user_kernels.py: {missing}")

SIZE = 4096  # of static m, n and k, as in cases.cpp


@triton.jit
def silu(x):
    return x / (1 + tl.exp(-x))


@triton.jit
def gelu(x):
    return x * tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


@triton.jit
def block_ids(m, n, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    program = tl.program_id(0)
    columns = tl.cdiv(n, BN)
    group = program // (GROUP * columns)
    rows = tl.minimum(tl.cdiv(m, BM) - group * GROUP, GROUP)
    i = group * GROUP + (program % (GROUP * columns)) % rows
    j = (program % (GROUP * columns)) // rows
    return i, j


@triton.jit
def matmul(a, b, more, o, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr,
           BN: tl.constexpr, BK: tl.constexpr, TRANS_A: tl.constexpr, TRANS_B: tl.constexpr,
           END: tl.constexpr):
    i, j = block_ids(M, N, BM, BN, 8)
    rows = i * BM + tl.arange(0, BM)
    columns = j * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    if TRANS_A:
        left = a + inner[:, None] * M + rows[None, :]
    else:
        left = a + rows[:, None] * K + inner[None, :]
    if TRANS_B:
        right = b + columns[:, None] * K + inner[None, :]
    else:
        right = b + inner[:, None] * N + columns[None, :]
    integers: tl.constexpr = a.dtype.element_ty == tl.int8
    total = tl.zeros((BM, BN), tl.int32 if integers else tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(left)
        y = tl.load(right)
        if TRANS_A:
            x = x.T
        if TRANS_B:
            y = y.T
        total = tl.dot(x, y, total, out_dtype=tl.int32 if integers else tl.float32)
        left += BK * M if TRANS_A else BK
        right += BK if TRANS_B else BK * N
    at = rows[:, None] * N + columns[None, :]
    if END == "bias_gelu":
        total = gelu(total + tl.load(more + columns)[None, :].to(tl.float32))
    if END == "residual":
        total += tl.load(more + at).to(tl.float32)
    tl.store(o + at, total.to(o.dtype.element_ty))


@triton.jit
def matmul_by_descriptor(a, b, o, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr,
                         BN: tl.constexpr, BK: tl.constexpr):
    i, j = block_ids(M, N, BM, BN, 8)
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    to = tl.make_tensor_descriptor(o, [M, N], [N, 1], [BM, BN])
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(left.load([i * BM, k]), right.load([k, j * BN]), total)
    to.store([i * BM, j * BN], total.to(tl.bfloat16))


@triton.jit
def matmul_any(a, b, o, m, n, k, a_row, b_row, o_row, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j = block_ids(m, n, BM, BN, 8)
    rows = i * BM + tl.arange(0, BM)
    columns = j * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    left = a + (rows % m)[:, None] * a_row + inner[None, :]
    right = b + inner[:, None] * b_row + (columns % n)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for l in range(0, tl.cdiv(k, BK)):
        x = tl.load(left, inner[None, :] < k - l * BK, other=0.0)
        y = tl.load(right, inner[:, None] < k - l * BK, other=0.0)
        total = tl.dot(x, y, total)
        left += BK
        right += BK * b_row
    tl.store(o + rows[:, None] * o_row + columns[None, :], total.to(tl.bfloat16),
             (rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def grouped(ids, a, b, o, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
            BK: tl.constexpr):
    i = tl.program_id(0)
    rows = i * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    b += tl.load(ids + i).to(tl.int64) * K * N
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        y = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(o + rows[:, None] * N + columns[None, :], total.to(tl.bfloat16))


@triton.jit
def swiglu(x, gate, up, o, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
           BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    g = tl.zeros((BM, BN), tl.float32)
    u = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(x + rows[:, None] * K + (k + inner)[None, :])
        at = (k + inner)[:, None] * N + columns[None, :]
        g = tl.dot(left, tl.load(gate + at), g)
        u = tl.dot(left, tl.load(up + at), u)
    tl.store(o + rows[:, None] * N + columns[None, :], (silu(g) * u).to(tl.bfloat16))


@triton.jit
def converted(a, b, scale, o, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
              BK: tl.constexpr, KIND: tl.constexpr):
    """An operand that is computed: weights of 8 or 4 bits, or silu of the left one."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        if KIND == "i4":
            packed = tl.program_id(1) * (BN // 2) + tl.arange(0, BN // 2)
            bits = tl.load(b + (k + inner)[:, None] * (N // 2) + packed[None, :])
            low = ((bits << 4).to(tl.int8) >> 4).to(tl.bfloat16)
            high = (bits >> 4).to(tl.bfloat16)
            y = tl.join(low, high).reshape(BK, BN)
        elif KIND == "quantised":
            y = tl.load(b + columns[None, :] * K + (k + inner)[:, None])
        else:
            y = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        if KIND == "i8" or KIND == "f8":
            y = y.to(tl.bfloat16)
        if KIND == "silu":
            x = silu(x.to(tl.float32)).to(tl.bfloat16)
        if KIND == "rows" or KIND == "quantised":
            x = (x.to(tl.float32) * tl.load(scale + rows)[:, None]).to(b.dtype.element_ty)
        total = tl.dot(x, y, total)
    if KIND == "i8" or KIND == "i4" or KIND == "f8":
        total *= tl.load(scale + columns)[None, :]
    tl.store(o + rows[:, None] * N + columns[None, :], total.to(tl.bfloat16))


@triton.jit
def beside(x, w, down, up, o, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
           BK: tl.constexpr, RANK: tl.constexpr, KIND: tl.constexpr):
    """What else a loop over k adds up: a low-rank product, squares of rows."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    ranks = tl.arange(0, RANK)
    total = tl.zeros((BM, BN), tl.float32)
    low = tl.zeros((BM, RANK), tl.float32)
    squares = tl.zeros((BM,), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(x + rows[:, None] * K + (k + inner)[None, :])
        total = tl.dot(left, tl.load(w + (k + inner)[:, None] * N + columns[None, :]), total)
        if KIND == "low_rank":
            low = tl.dot(left, tl.load(down + (k + inner)[:, None] * RANK + ranks[None, :]), low)
        if KIND == "norm":
            wide = left.to(tl.float32)
            squares += tl.sum(wide * wide, 1)
    if KIND == "low_rank":
        last = tl.load(up + ranks[:, None] * N + columns[None, :])
        total = tl.dot(low.to(tl.bfloat16), last, total)
    if KIND == "norm":
        total *= tl.rsqrt(squares / K + 1e-6)[:, None]
    tl.store(o + rows[:, None] * N + columns[None, :], total.to(tl.bfloat16))


@triton.jit
def scaled(a, b, of_rows, of_columns, o, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr,
           BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for l in range(0, K // BK):
        x = tl.load(a + rows[:, None] * K + (l * BK + inner)[None, :])
        y = tl.load(b + columns[:, None] * K + (l * BK + inner)[None, :])
        r = tl.load(of_rows + rows * (K // BK) + l)
        c = tl.load(of_columns + tl.program_id(1) * (K // BK) + l)
        total += tl.dot(x, y.T) * (r * c)[:, None]
    tl.store(o + rows[:, None] * N + columns[None, :], total.to(tl.bfloat16))


@triton.jit
def gathered(ids, a, b, o, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
             BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    of = tl.load(ids + rows)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + of[:, None] * K + (k + inner)[None, :])
        y = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(o + rows[:, None] * N + columns[None, :], total.to(tl.bfloat16))


@triton.jit
def mlp(x, up, down, o, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    inner = tl.arange(0, BK)
    left = tl.load(x + rows[:, None] * BN + columns[None, :])
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        hidden = tl.dot(left, tl.load(up + columns[:, None] * K + (k + inner)[None, :]))
        hidden = tl.maximum(hidden, 0.0).to(tl.bfloat16)
        total = tl.dot(hidden, tl.load(down + (k + inner)[:, None] * BN + columns[None, :]), total)
    tl.store(o + rows[:, None] * BN + columns[None, :], total.to(tl.bfloat16))


@triton.jit
def gated_mlp(x, up, down, gate, o, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    inner = tl.arange(0, BK)
    left = tl.load(x + rows[:, None] * BN + columns[None, :])
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        here = columns[:, None] * K + (k + inner)[None, :]
        opened = tl.dot(left, tl.load(gate + here))
        hidden = (opened * tl.sigmoid(opened) * tl.dot(left, tl.load(up + here))).to(tl.bfloat16)
        total = tl.dot(hidden, tl.load(down + (k + inner)[:, None] * BN + columns[None, :]), total)
    tl.store(o + rows[:, None] * BN + columns[None, :], total.to(tl.bfloat16))


@triton.jit
def weight_gradient(x, dy, dw, db, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr,
                    BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    sums = tl.zeros((BN,), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(x + (k + inner)[:, None] * M + rows[None, :])
        right = tl.load(dy + (k + inner)[:, None] * N + columns[None, :])
        total = tl.dot(left.T, right, total)
        sums += tl.sum(right.to(tl.float32), 0)
    tl.store(dw + rows[:, None] * N + columns[None, :], total)
    tl.store(db + tl.program_id(0) * N + columns, sums)


@triton.jit
def complex_matmul(ar, ai, br, bi, re, im, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr,
                   BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    r = tl.zeros((BM, BN), tl.float32)
    i = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        left = rows[:, None] * K + (k + inner)[None, :]
        right = (k + inner)[:, None] * N + columns[None, :]
        x, y = tl.load(ar + left), tl.load(ai + left)
        u, v = tl.load(br + right), tl.load(bi + right)
        r = tl.dot(x, u, r) - tl.dot(y, v)
        i = tl.dot(y, u, tl.dot(x, v, i))
    at = rows[:, None] * N + columns[None, :]
    tl.store(re + at, r)
    tl.store(im + at, i)


@triton.jit
def block_sparse(counts, of_columns, a, b, o, N: tl.constexpr, MOST: tl.constexpr, BM: tl.constexpr,
                 BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0)
    rows = tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for s in range(0, tl.load(counts + i)):
        x = tl.load(a + (i * MOST + s) * BM * BK + rows[:, None] * BK + inner[None, :])
        k = tl.load(of_columns + i * MOST + s) * BK
        y = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(o + (i * BM + rows)[:, None] * N + columns[None, :], total)


@triton.jit
def small_matmuls(a, b, o, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, l = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    p = tl.program_id(0)
    x = tl.load(a + p * M * K + i[:, None] * K + l[None, :])
    y = tl.load(b + p * K * N + l[:, None] * N + j[None, :])
    tl.store(o + p * M * N + i[:, None] * N + j[None, :], tl.dot(x, y).to(tl.bfloat16))


@triton.jit
def split_k(a, b, o, N: tl.constexpr, K: tl.constexpr, PARTS: tl.constexpr, BM: tl.constexpr,
            BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.program_id(2) * (K // PARTS) + tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K // PARTS, BK):
        x = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        y = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        total = tl.dot(x, y, total)
    tl.atomic_add(o + rows[:, None] * N + columns[None, :], total)


@triton.jit
def nearest_centres(x, centres, lengths, o, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                    BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    inner = tl.arange(0, BK)
    left = tl.load(x + rows[:, None] * BK + inner[None, :])
    best = tl.full((BM,), float("inf"), tl.float32)
    which = tl.zeros((BM,), tl.int32)
    for j in range(0, N, BN):
        columns = j + tl.arange(0, BN)
        right = tl.load(centres + columns[:, None] * BK + inner[None, :])
        distance = tl.load(lengths + columns)[None, :] - 2 * tl.dot(left, right.T)
        least, at = tl.min(distance, 1, return_indices=True)
        which = tl.where(least < best, at + j, which)
        best = tl.minimum(best, least)
    tl.store(o + rows, which)


@triton.jit
def cross_entropy(x, w, labels, o, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                  BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    inner = tl.arange(0, BK)
    label = tl.load(labels + rows)
    top = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    chosen = tl.zeros((BM,), tl.float32)
    for j in range(0, N, BN):
        columns = j + tl.arange(0, BN)
        logits = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            left = tl.load(x + rows[:, None] * K + (k + inner)[None, :])
            right = tl.load(w + (k + inner)[:, None] * N + columns[None, :])
            logits = tl.dot(left, right, logits)
        now = tl.maximum(top, tl.max(logits, 1))
        total = total * tl.exp(top - now) + tl.sum(tl.exp(logits - now[:, None]), 1)
        chosen += tl.sum(tl.where(columns[None, :] == label[:, None], logits, 0.0), 1)
        top = now
    tl.store(o + rows, top + tl.log(total) - chosen)


@triton.jit
def convolution(x, w, o, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, C: tl.constexpr, F: tl.constexpr,
                ROWS: tl.constexpr, BF: tl.constexpr, BC: tl.constexpr):
    image, i = tl.program_id(0), tl.program_id(1)
    pixel = tl.arange(0, ROWS * WIDTH)
    filters = tl.program_id(2) * BF + tl.arange(0, BF)
    channels = tl.arange(0, BC)
    total = tl.zeros((ROWS * WIDTH, BF), tl.float32)
    for l in range(0, 9 * (C // BC)):
        row = i * ROWS + pixel // WIDTH + l // 3 % 3 - 1
        column = pixel % WIDTH + l % 3 - 1
        inside = (row >= 0) & (row < HEIGHT) & (column >= 0) & (column < WIDTH)
        channel = l // 9 * BC + channels
        at = ((image * HEIGHT + row) * WIDTH + column)[:, None] * C + channel[None, :]
        window = tl.load(x + at, inside[:, None], other=0.0)
        weights = tl.load(w + ((l % 9) * C + channel)[:, None] * F + filters[None, :])
        total = tl.dot(window, weights, total)
    at = ((image * HEIGHT + i * ROWS) * WIDTH + pixel)[:, None] * F + filters[None, :]
    tl.store(o + at, total.to(tl.bfloat16))


@triton.jit
def attention(q, k, v, more, o, LENGTH: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
              CAUSAL: tl.constexpr, WINDOW: tl.constexpr, BIAS: tl.constexpr, CAP: tl.constexpr,
              SPLIT: tl.constexpr):
    first = tl.program_id(0) * M
    head = tl.program_id(1) * LENGTH * D
    i = first + tl.arange(0, M)
    d = tl.arange(0, D)
    x = tl.load(q + head + i[:, None] * D + d[None, :])
    most = tl.full((M,), -1e30, tl.float32)
    total = tl.zeros((M,), tl.float32)
    out = tl.zeros((M, D), tl.float32)
    begin = tl.maximum(first - WINDOW, 0) // N * N if WINDOW > 0 else 0
    end = first + M if CAUSAL or WINDOW > 0 else LENGTH
    # Blocks that every query sees, then those at the diagonal, as in Triton's tutorial.
    middle = first // N * N if SPLIT else begin
    for part in tl.static_range(2):
        if SPLIT or part == 1:
            low = begin if part == 0 else middle
            high = middle if part == 0 else end
            for at in range(low, high, N):
                j = at + tl.arange(0, N)
                y = tl.load(k + head + j[None, :] * D + d[:, None])
                s = tl.dot(x, y) * (1.0 / D ** 0.5)
                if BIAS:
                    s += tl.load(more + tl.program_id(1) * LENGTH * LENGTH + i[:, None] * LENGTH
                                 + j[None, :]).to(tl.float32)
                if CAP > 0:
                    s = CAP * (2 * tl.sigmoid(2 * s / CAP) - 1)
                s *= 1.4426950408889634
                if (CAUSAL or WINDOW > 0) and part == 1:
                    seen = j[None, :] <= i[:, None]
                    if WINDOW > 0:
                        seen &= i[:, None] - j[None, :] < WINDOW
                    s = tl.where(seen, s, -1e30)
                now = tl.maximum(most, tl.max(s, 1))
                p = tl.exp2(s - now[:, None])
                shrink = tl.exp2(most - now)
                total = total * shrink + tl.sum(p, 1)
                z = tl.load(v + head + j[:, None] * D + d[None, :])
                out = tl.dot(p.to(z.dtype), z, out * shrink[:, None])
                most = now
    tl.store(o + head + i[:, None] * D + d[None, :], (out / total[:, None]).to(o.dtype.element_ty))


@triton.jit
def attention_of_parts(q, q_turned, k, k_turned, v, o, LENGTH: tl.constexpr, D: tl.constexpr,
                       TURNED: tl.constexpr, HEADS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    head = tl.program_id(1) * LENGTH * D
    shared = tl.program_id(1) // HEADS * LENGTH * TURNED
    d = tl.arange(0, D)
    t = tl.arange(0, TURNED)
    x = tl.load(q + head + i[:, None] * D + d[None, :])
    y = tl.load(q_turned + tl.program_id(1) * LENGTH * TURNED + i[:, None] * TURNED + t[None, :])
    most = tl.full((M,), -1e30, tl.float32)
    total = tl.zeros((M,), tl.float32)
    out = tl.zeros((M, D), tl.float32)
    for at in range(0, LENGTH, N):
        j = at + tl.arange(0, N)
        s = tl.dot(x, tl.load(k + head + j[None, :] * D + d[:, None]))
        s = tl.dot(y, tl.load(k_turned + shared + j[None, :] * TURNED + t[:, None]), s)
        s *= 1.4426950408889634 / (D + TURNED) ** 0.5
        now = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - now[:, None])
        shrink = tl.exp2(most - now)
        total = total * shrink + tl.sum(p, 1)
        z = tl.load(v + head + j[:, None] * D + d[None, :])
        out = tl.dot(p.to(z.dtype), z, out * shrink[:, None])
        most = now
    tl.store(o + head + i[:, None] * D + d[None, :], (out / total[:, None]).to(tl.bfloat16))


@triton.jit
def attention_dkv(q, k, v, do, lse, delta, dk, dv, LENGTH: tl.constexpr, D: tl.constexpr,
                  M: tl.constexpr, N: tl.constexpr):
    """As in Triton's tutorial: scores have a row for each key."""
    head = tl.program_id(1) * LENGTH * D
    j = tl.program_id(0) * N + tl.arange(0, N)
    d = tl.arange(0, D)
    here = j[:, None] * D + d[None, :]
    keys = tl.load(k + head + here)
    values = tl.load(v + head + here)
    sum_k = tl.zeros((N, D), tl.float32)
    sum_v = tl.zeros((N, D), tl.float32)
    for at in range(0, LENGTH, M):
        i = at + tl.arange(0, M)
        xt = tl.load(q + head + i[None, :] * D + d[:, None])
        l = tl.load(lse + tl.program_id(1) * LENGTH + i)
        p = tl.exp2(tl.dot(keys, xt) * (1.4426950408889634 / D ** 0.5) - l[None, :])
        g = tl.load(do + head + i[:, None] * D + d[None, :])
        sum_v = tl.dot(p.to(tl.bfloat16), g, sum_v)
        t = tl.load(delta + tl.program_id(1) * LENGTH + i)
        ds = p * (tl.dot(values, tl.trans(g)) - t[None, :])
        sum_k = tl.dot(ds.to(tl.bfloat16), tl.trans(xt), sum_k)
    tl.store(dv + head + here, sum_v.to(tl.bfloat16))
    tl.store(dk + head + here, (sum_k / D ** 0.5).to(tl.bfloat16))


@triton.jit
def attention_dq(q, k, v, do, lse, delta, dq, LENGTH: tl.constexpr, D: tl.constexpr, M: tl.constexpr,
                 N: tl.constexpr):
    head = tl.program_id(1) * LENGTH * D
    i = tl.program_id(0) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    here = i[:, None] * D + d[None, :]
    x = tl.load(q + head + here)
    g = tl.load(do + head + here)
    l = tl.load(lse + tl.program_id(1) * LENGTH + i)[:, None]
    t = tl.load(delta + tl.program_id(1) * LENGTH + i)[:, None]
    total = tl.zeros((M, D), tl.float32)
    for at in range(0, LENGTH, N):
        j = at + tl.arange(0, N)
        kt = tl.load(k + head + j[None, :] * D + d[:, None])
        vt = tl.load(v + head + j[None, :] * D + d[:, None])
        p = tl.exp2(tl.dot(x, kt) * (1.4426950408889634 / D ** 0.5) - l)
        ds = p * (tl.dot(g, vt) - t)
        total = tl.dot(ds.to(tl.bfloat16), tl.trans(kt), total)
    tl.store(dq + head + here, (total / D ** 0.5).to(tl.bfloat16))


@triton.jit
def attention_of_lengths(starts, q, k, v, o, ALL: tl.constexpr, D: tl.constexpr, M: tl.constexpr,
                         N: tl.constexpr):
    start = tl.load(starts + tl.program_id(0))
    stop = tl.load(starts + tl.program_id(0) + 1)
    first = start + tl.program_id(2) * M
    if first >= stop:
        return
    head = tl.program_id(1) * ALL * D
    i = first + tl.arange(0, M)
    d = tl.arange(0, D)
    x = tl.load(q + head + i[:, None] * D + d[None, :], i[:, None] < stop, other=0.0)
    most = tl.full((M,), -1e30, tl.float32)
    total = tl.zeros((M,), tl.float32)
    out = tl.zeros((M, D), tl.float32)
    for at in range(start, tl.minimum(first + M, stop), N):
        j = at + tl.arange(0, N)
        y = tl.load(k + head + j[None, :] * D + d[:, None], j[None, :] < stop, other=0.0)
        s = tl.dot(x, y) * (1.4426950408889634 / D ** 0.5)
        s = tl.where((j[None, :] <= i[:, None]) & (j[None, :] < stop), s, -1e30)
        now = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - now[:, None])
        shrink = tl.exp2(most - now)
        total = total * shrink + tl.sum(p, 1)
        z = tl.load(v + head + j[:, None] * D + d[None, :], j[:, None] < stop, other=0.0)
        out = tl.dot(p.to(tl.bfloat16), z, out * shrink[:, None])
        most = now
    tl.store(o + head + i[:, None] * D + d[None, :], (out / total[:, None]).to(tl.bfloat16),
             i[:, None] < stop)


@triton.jit
def paged_attention(table, lengths, q, k, v, o, PARTS: tl.constexpr, HEADS: tl.constexpr,
                    D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    b, h = tl.program_id(0), tl.program_id(1)
    length = tl.load(lengths + b)
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    d = tl.arange(0, D)
    here = (b * HEADS + h) * M * D + i[:, None] * D + d[None, :]
    x = tl.load(q + here)
    most = tl.full((M,), -1e30, tl.float32)
    total = tl.zeros((M,), tl.float32)
    out = tl.zeros((M, D), tl.float32)
    for part in range(0, tl.cdiv(length, N)):
        page = (tl.load(table + b * PARTS + part).to(tl.int64) * HEADS + h) * N * D
        s = tl.dot(x, tl.load(k + page + j[None, :] * D + d[:, None])) * (1.4426950408889634 / D ** 0.5)
        s = tl.where((part * N + j)[None, :] < length, s, -1e30)
        now = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - now[:, None])
        shrink = tl.exp2(most - now)
        total = total * shrink + tl.sum(p, 1)
        z = tl.load(v + page + j[:, None] * D + d[None, :])
        out = tl.dot(p.to(tl.bfloat16), z, out * shrink[:, None])
        most = now
    tl.store(o + here, (out / total[:, None]).to(tl.bfloat16))


@triton.jit
def decode_attention(table, lengths, q, k, v, k_scales, v_scales, o, PARTS: tl.constexpr,
                     HEADS: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
                     SCALED: tl.constexpr):
    b, h = tl.program_id(0), tl.program_id(1)
    length = tl.load(lengths + b)
    j = tl.arange(0, N)
    d = tl.arange(0, D)
    here = (b * HEADS + h) * M * D + tl.arange(0, M)[:, None] * D + d[None, :]
    x = tl.load(q + here)
    most = tl.full((M,), -1e30, tl.float32)
    total = tl.zeros((M,), tl.float32)
    out = tl.zeros((M, D), tl.float32)
    for part in range(0, tl.cdiv(length, N)):
        row = (tl.load(table + b * PARTS + part).to(tl.int64) * HEADS + h) * N + j
        y = tl.load(k + row[None, :] * D + d[:, None]).to(tl.bfloat16)
        s = tl.dot(x, y) * (1.4426950408889634 / D ** 0.5)
        if SCALED:
            s *= tl.load(k_scales + row)[None, :]
        s = tl.where((part * N + j)[None, :] < length, s, -1e30)
        now = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - now[:, None])
        shrink = tl.exp2(most - now)
        total = total * shrink + tl.sum(p, 1)
        if SCALED:
            p *= tl.load(v_scales + row)[None, :]
        z = tl.load(v + row[:, None] * D + d[None, :]).to(tl.bfloat16)
        out = tl.dot(p.to(tl.bfloat16), z, out * shrink[:, None])
        most = now
    tl.store(o + here, (out / total[:, None]).to(tl.bfloat16))


@triton.jit
def linear_attention(q, k, v, o, LENGTH: tl.constexpr, D: tl.constexpr, M: tl.constexpr):
    head = tl.program_id(0) * LENGTH * D
    r = tl.arange(0, M)
    d = tl.arange(0, D)
    state = tl.zeros((D, D), tl.float32)
    for at in range(0, LENGTH, M):
        here = (at + r)[:, None] * D + d[None, :]
        x = tl.load(q + head + here)
        keys = tl.load(k + head + here)
        values = tl.load(v + head + here)
        s = tl.where(r[None, :] <= r[:, None], tl.dot(x, tl.trans(keys)), 0.0)
        out = tl.dot(x, state.to(tl.bfloat16), tl.dot(s.to(tl.bfloat16), values))
        tl.store(o + head + here, out.to(tl.bfloat16))
        state = tl.dot(tl.trans(keys), values, state)


@triton.jit
def layer_norm_backward(x, dy, gamma, mean, rstd, dx, dgamma, dbeta, N: tl.constexpr,
                        STEPS: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, N)
    weight = tl.load(gamma + columns)[None, :]
    g = tl.zeros((N,), tl.float32)
    b = tl.zeros((N,), tl.float32)
    for step in range(0, STEPS):
        rows = (tl.program_id(0) * STEPS + step) * BLOCK + tl.arange(0, BLOCK)
        at = rows[:, None] * N + columns[None, :]
        of = tl.load(dy + at).to(tl.float32)
        scale = tl.load(rstd + rows)[:, None]
        hat = (tl.load(x + at).to(tl.float32) - tl.load(mean + rows)[:, None]) * scale
        weighted = of * weight
        c1 = tl.sum(weighted * hat, 1)[:, None] / N
        c2 = tl.sum(weighted, 1)[:, None] / N
        tl.store(dx + at, ((weighted - hat * c1 - c2) * scale).to(tl.bfloat16))
        g += tl.sum(of * hat, 0)
        b += tl.sum(of, 0)
    tl.store(dgamma + tl.program_id(0) * N + columns, g)
    tl.store(dbeta + tl.program_id(0) * N + columns, b)


BF, F32, I32 = "*bf16", "*fp32", "*i32"


class Peer:
    def __init__(self, function, types, constants, arch=90, hints=(), elements={}, numbers={}, **options):
        self.function, self.types, self.constants, self.arch = function, types, constants, arch
        self.hints, self.options = hints, dict(dict(num_warps=8, num_stages=3), **options)
        self.elements = elements  # of arguments that have more than others
        self.numbers = numbers    # what arguments of i32 hold: first, step, below, together, as in kernels.hpp

    def compile(self):
        names = list(self.function.arg_names)
        signature = {n: self.types.get(n, "constexpr") for n in names}
        known = [n for n, t in self.types.items() if t[0] == "*" or n in self.hints]
        aligned = {(names.index(n),): [["tt.divisibility", 16]] for n in known}
        source = ASTSource(self.function, signature, self.constants, aligned)
        return triton.compile(source, target=GPUTarget("cuda", self.arch, 32), options=self.options)


def product(bm=128, bn=128, bk=64, a=BF, o=BF, end="", trans_a=False, trans_b=False, **more):
    return Peer(matmul, dict(a=a, b=a, more=BF, o=o),
                dict(M=SIZE, N=SIZE, K=SIZE, BM=bm, BN=bn, BK=bk, TRANS_A=trans_a, TRANS_B=trans_b, END=end),
                **more)


def tiled(function, types, bk=64, bn=128, elements={}, numbers={}, **constants):
    sizes = dict(M=SIZE, N=SIZE, K=SIZE, BM=128, BN=bn, BK=bk) | constants
    return Peer(function, types, {n: v for n, v in sizes.items() if n in function.arg_names},
                elements=elements, numbers=numbers)


def symbolic(bn, hints):
    types = dict(a=BF, b=BF, o=BF, m="i32", n="i32", k="i32", a_row="i32", b_row="i32", o_row="i32")
    return Peer(matmul_any, types, dict(BM=128, BN=bn, BK=64), hints=hints)


def descriptor(bn):
    return Peer(matmul_by_descriptor, dict(a=BF, b=BF, o=BF),
                dict(M=SIZE, N=SIZE, K=SIZE, BM=128, BN=bn, BK=64))


def flash(d=128, n=128, dtype=BF, causal=False, window=0, bias=False, cap=0.0, split=False, **options):
    return Peer(attention, dict(q=dtype, k=dtype, v=dtype, more=BF, o=dtype),
                dict(LENGTH=SIZE, D=d, M=128, N=n, CAUSAL=causal, WINDOW=window, BIAS=bias, CAP=cap,
                     SPLIT=split),
                elements=dict(more=64 * SIZE * SIZE) if bias else {}, **options)


def backward(function, d, m, n):
    types = {x: F32 if x in ("lse", "delta") else BF for x in function.arg_names if not x.isupper()}
    return Peer(function, types, dict(LENGTH=SIZE, D=d, M=m, N=n))


def decode(stored, scaled=False):
    scales = dict(k_scales=F32, v_scales=F32) if scaled else {}
    constants = dict(PARTS=64, HEADS=8, D=128, M=16, N=64, SCALED=scaled)
    return Peer(decode_attention,
                dict(table=I32, lengths=I32, q=BF, k=stored, v=stored) | scales | dict(o=BF),
                constants if scaled else constants | dict(k_scales=None, v_scales=None),
                elements=dict(k=2**28, v=2**28), num_warps=4,
                numbers=dict(table=(0, 7, 4096), lengths=(SIZE, 1, 1)))


EIGHTS = ("m", "n", "k", "a_row", "b_row", "o_row")
PEERS = {
    "matmul_256": product(bn=256),
    "matmul_128": product(),
    "matmul_256_descriptor": descriptor(256),
    "matmul_128_descriptor": descriptor(128),
    "matmul_256_symbolic": symbolic(256, EIGHTS),
    "matmul_128_symbolic": symbolic(128, EIGHTS),
    "matmul_128_unknown": symbolic(128, ()),
    "matmul_256_unknown": symbolic(256, ()),
    "matmul_128_bias_gelu": product(end="bias_gelu"),
    "matmul_128_residual": product(end="residual"),
    "matmul_128_trans_a": product(trans_a=True),
    "matmul_128_trans_b": product(trans_b=True),
    "matmul_fp8": product(bn=256, bk=128, a="*fp8e4nv", trans_b=True),
    "matmul_i8": product(bn=256, bk=128, a="*i8", o=I32, trans_b=True),
    "matmul_tf32": product(bk=32, a=F32, o=F32, trans_b=True),
    "matmul_fp8_rows": product(bn=256, bk=128, a="*fp8e4nv"),
    "matmul_i8_rows": product(bn=256, bk=128, a="*i8", o=I32),
    "matmul_tf32_rows": product(bk=32, a=F32, o=F32),
    "sm80_matmul": product(bk=32, a="*fp16", arch=80),
    "grouped": tiled(grouped, dict(ids=I32, a=BF, b=BF, o=BF), elements=dict(b=8 * SIZE * SIZE),
                     numbers=dict(ids=(0, 1, 8, 4))),
    "swiglu": tiled(swiglu, dict(x=BF, gate=BF, up=BF, o=BF)),
    "i8_weights": tiled(converted, dict(a=BF, b="*i8", scale=F32, o=BF), KIND="i8"),
    "f8_weights": tiled(converted, dict(a=BF, b="*fp8e4nv", scale=F32, o=BF), KIND="f8"),
    "i4_weights": tiled(converted, dict(a=BF, b="*i8", scale=F32, o=BF), KIND="i4"),
    "activated_matmul": tiled(converted, dict(a=BF, b=BF, scale=F32, o=BF), KIND="silu"),
    "row_scaled_matmul": tiled(converted, dict(a=BF, b=BF, scale=F32, o=BF), KIND="rows"),
    "quantised_matmul": tiled(converted, dict(a=BF, b="*fp8e4nv", scale=F32, o=BF), 128, KIND="quantised"),
    "low_rank_adapter": tiled(beside, dict(x=BF, w=BF, down=BF, up=BF, o=BF), RANK=64, KIND="low_rank"),
    "norm_matmul": tiled(beside, dict(x=BF, w=BF, down=BF, up=BF, o=BF), RANK=64, KIND="norm"),
    "scaled_matmul": tiled(scaled, dict(a="*fp8e4nv", b="*fp8e4nv", of_rows=F32, of_columns=F32, o=BF), 128),
    "gathered_matmul": tiled(gathered, dict(ids=I32, a=BF, b=BF, o=BF), numbers=dict(ids=(0, 17, SIZE))),
    "mlp": tiled(mlp, dict(x=BF, up=BF, down=BF, o=BF)),
    "gated_mlp": tiled(gated_mlp, dict(x=BF, up=BF, down=BF, gate=BF, o=BF)),
    "weight_gradient": tiled(weight_gradient, dict(x=BF, dy=BF, dw=F32, db=F32)),
    "complex_matmul": tiled(complex_matmul, dict(ar=BF, ai=BF, br=BF, bi=BF, re=F32, im=F32)),
    "block_sparse": tiled(block_sparse, dict(counts=I32, of_columns=I32, a=BF, b=BF, o=F32), MOST=16,
                          numbers=dict(counts=(16, 1, 1), of_columns=(0, 3, 64))),
    "small_matmuls": Peer(small_matmuls, dict(a=BF, b=BF, o=BF), dict(M=64, N=64, K=64), num_warps=4),
    "split_k": tiled(split_k, dict(a=BF, b=BF, o=F32), PARTS=8),
    "nearest_centres": tiled(nearest_centres, dict(x=BF, centres=BF, lengths=F32, o=I32)),
    "cross_entropy": tiled(cross_entropy, dict(x=BF, w=BF, labels=I32, o=F32), N=8 * SIZE,
                           elements=dict(w=8 * SIZE * SIZE), numbers=dict(labels=(0, 7, SIZE))),
    "convolution": Peer(convolution, dict(x=BF, w=BF, o=BF),
                        dict(HEIGHT=56, WIDTH=64, C=256, F=256, ROWS=2, BF=128, BC=64)),
    "attention_64_full": flash(64),
    "attention_64_causal": flash(64, causal=True, split=True),
    "attention_128_full": flash(),
    "attention_128_causal": flash(causal=True, split=True),
    "attention_128_window": flash(window=1024),
    "attention_128_bias": flash(bias=True, num_stages=2),  # with three it does not fit
    "attention_128_soft_cap": flash(cap=30.0),
    "attention_64_dkv": backward(attention_dkv, 64, 64, 128),
    "attention_128_dkv": backward(attention_dkv, 128, 64, 128),
    "attention_128_of_parts": Peer(
        attention_of_parts, dict(q=BF, q_turned=BF, k=BF, k_turned=BF, v=BF, o=BF),
        dict(LENGTH=SIZE, D=128, TURNED=64, HEADS=16, M=128, N=128), num_stages=2),  # with three it does not fit
    "attention_128_dq": backward(attention_dq, 128, 128, 64),
    "attention_128_lengths": Peer(attention_of_lengths, dict(starts=I32, q=BF, k=BF, v=BF, o=BF),
                                  dict(ALL=4 * SIZE, D=128, M=128, N=128),
                                  numbers=dict(starts=(0, SIZE, 4 * SIZE + 1))),
    "attention_128_paged": Peer(paged_attention, dict(table=I32, lengths=I32, q=BF, k=BF, v=BF, o=BF),
                                dict(PARTS=32, HEADS=16, D=128, M=64, N=128),
                                elements=dict(k=2**30, v=2**30),
                                numbers=dict(table=(0, 7, 4096), lengths=(SIZE, 1, 1))),
    "decode_attention": decode(BF),
    "decode_attention_i8": decode("*i8", scaled=True),
    "decode_attention_f8": decode("*fp8e4nv"),
    "linear_attention_64": Peer(linear_attention, dict(q=BF, k=BF, v=BF, o=BF),
                                dict(LENGTH=SIZE, D=64, M=64), num_warps=4),
    "layer_norm_backward": Peer(
        layer_norm_backward,
        dict(x=BF, dy=BF, gamma=F32, mean=F32, rstd=F32, dx=BF, dgamma=F32, dbeta=F32),
        dict(N=4096, STEPS=16, BLOCK=4), num_warps=16),
}


# Of attention there are 4 x 16 heads.
HEADS = 64
BLOCKS = lambda c: (SIZE // c["BM"], c["N"] // c["BN"])
QUERIES = lambda c: (SIZE // c["M"], HEADS)
GRIDS = {
    "matmul": lambda c: (SIZE // c["BM"] * (SIZE // c["BN"]),),
    "mlp": lambda c: (SIZE // c["BM"],),
    "gated_mlp": lambda c: (SIZE // c["BM"],),
    "nearest_centres": lambda c: (SIZE // c["BM"],),
    "cross_entropy": lambda c: (SIZE // c["BM"],),
    "small_matmuls": lambda c: (4096,),
    "split_k": lambda c: BLOCKS(c) + (c["PARTS"],),
    "convolution": lambda c: (32, c["HEIGHT"] // c["ROWS"], c["F"] // c["BF"]),
    "attention": QUERIES,
    "attention_dkv": lambda c: (SIZE // c["N"], HEADS),
    "attention_dq": QUERIES,
    "attention_of_parts": QUERIES,
    "attention_of_lengths": lambda c: (4, HEADS // 4, SIZE // c["M"]),
    "paged_attention": lambda c: (4, c["HEADS"]),
    "linear_attention": lambda c: (HEADS,),
    "layer_norm_backward": lambda c: (128,),
} | {name: BLOCKS for name in ("grouped", "swiglu", "converted", "beside", "scaled", "gathered", "weight_gradient", "complex_matmul", "block_sparse")}
ELEMENTS = HEADS * SIZE * 128  # of an argument of which nothing else is said


def arguments(torch, peer):
    dtypes = {BF: torch.bfloat16, F32: torch.float32, "*fp16": torch.float16, "*i8": torch.int8,
              "*fp8e4nv": torch.float8_e4m3fn}
    for name in peer.function.arg_names:
        if name not in peer.types:
            continue
        n = peer.elements.get(name, ELEMENTS)
        if peer.types[name] == I32:
            first, step, below, together = (*peer.numbers.get(name, (0, 1, 1)), 1)[:4]
            yield (first + torch.arange(SIZE * SIZE, device="cuda") // together * step % below).to(torch.int32)
        elif peer.types[name] == "*i8":
            yield torch.randint(-128, 128, (n,), device="cuda", dtype=torch.int8)
        else:
            yield torch.rand(n, device="cuda", dtype=torch.bfloat16).mul_(2).sub_(1).to(dtypes[peer.types[name]])


def microseconds(torch, launch):
    def stretch(launches):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(launches):
            launch()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / launches

    for _ in range(3):
        stretch(1)
    launches = min(max(int(5 / max(stretch(3), 1e-3)), 3), 1000)
    return 1e3 * min(stretch(launches) for _ in range(5))


def share(lock):
    global gpu
    gpu = lock


def measure(name):
    """Compiled beside others, alone on the GPU."""
    import torch
    peer = PEERS[name]
    try:
        with gpu:
            given = list(arguments(torch, peer))
            torch.cuda.synchronize()
        more = dict(peer.constants, **peer.options)
        grid = GRIDS[peer.function.__name__](peer.constants)
        peer.function.warmup(*given, grid=grid, **more)
        with gpu:
            return name, microseconds(torch, lambda: peer.function[grid](*given, **more))
    except Exception as error:
        print(f"triton_user_kernels.py: {name}: {str(error).splitlines()[:1]}", file=sys.stderr)
        return name, None


def run(names):
    import multiprocessing
    spawn = multiprocessing.get_context("spawn")
    wanted = [n for n in names or PEERS
              if n in PEERS and PEERS[n].function.__name__ in GRIDS and PEERS[n].arch == 90]
    workers = max(1, min(len(wanted), (os.cpu_count() or 1) - 2, 12))
    with spawn.Pool(workers, share, (spawn.Lock(),), maxtasksperchild=6) as pool:
        for name, us in pool.imap_unordered(measure, wanted):
            if us is not None:
                print(name, "triton", round(us, 2), flush=True)


def main():
    if sys.argv[1] == "--run":
        return run(sys.argv[2:])
    folder, names = sys.argv[1], sys.argv[2:]
    for name in names or PEERS:
        if name not in PEERS:
            continue
        try:
            compiled = PEERS[name].compile()
        except Exception as error:  # a kernel that Triton refuses is a result, too
            print(f"triton_user_kernels.py: {name}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        with open(f"{folder}/{name}.cubin", "wb") as file:
            file.write(compiled.asm["cubin"])
        print(name, compiled.metadata.shared, compiled.metadata.num_warps, flush=True)


if __name__ == "__main__":
    main()
