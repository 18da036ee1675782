#!/usr/bin/env python3
"""The kernels of benchmarks/user_kernels in NVIDIA's cuTile, as its users write them, in the same
blocks. Compiles them, never runs them, and needs no GPU. Needs cuda-tile and nvidia-cuda-tileiras.

    cutile_user_kernels.py FOLDER [NAME...]      FOLDER/NAME.cubin; a line "NAME" for each

Prints nothing on stdout where there is no cuTile."""
import sys

try:
    import cuda.tile as ct
    from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel
except ImportError as missing:
    sys.exit(f"cutile_user_kernels.py: {missing}")

Const = ct.Constant[int]
LOG2E = 1.4426950408889634


def silu(x):
    return x / (1 + ct.exp(-x))


def gelu(x):
    return x / (1 + ct.exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)))


@ct.kernel
def matmul(a, b, o, BM: Const, BN: Const, BK: Const, TRANS_A: Const, TRANS_B: Const):
    i, j = ct.bid(0), ct.bid(1)
    total = ct.zeros((BM, BN), o.dtype if o.dtype == ct.int32 else ct.float32)
    for k in range(ct.num_tiles(a, 0 if TRANS_A else 1, (BK, BM) if TRANS_A else (BM, BK))):
        if TRANS_A:
            x = ct.transpose(ct.load(a, (k, i), (BK, BM)))
        else:
            x = ct.load(a, (i, k), (BM, BK), padding_mode=ct.PaddingMode.ZERO)
        if TRANS_B:
            y = ct.transpose(ct.load(b, (j, k), (BN, BK)))
        else:
            y = ct.load(b, (k, j), (BK, BN), padding_mode=ct.PaddingMode.ZERO)
        total = ct.mma(x, y, total)
    ct.store(o, (i, j), total.astype(o.dtype))


@ct.kernel
def matmul_bias_gelu(a, b, bias, o, BM: Const, BN: Const, BK: Const):
    i, j = ct.bid(0), ct.bid(1)
    total = ct.zeros((BM, BN), ct.float32)
    for k in range(ct.num_tiles(a, 1, (BM, BK))):
        total = ct.mma(ct.load(a, (i, k), (BM, BK)), ct.load(b, (k, j), (BK, BN)), total)
    end = gelu(total + ct.load(bias, (j,), (BN,)).astype(ct.float32))
    ct.store(o, (i, j), end.astype(o.dtype))


@ct.kernel
def matmul_residual(a, b, c, o, BM: Const, BN: Const, BK: Const):
    i, j = ct.bid(0), ct.bid(1)
    total = ct.zeros((BM, BN), ct.float32)
    for k in range(ct.num_tiles(a, 1, (BM, BK))):
        total = ct.mma(ct.load(a, (i, k), (BM, BK)), ct.load(b, (k, j), (BK, BN)), total)
    ct.store(o, (i, j), (total + ct.load(c, (i, j), (BM, BN)).astype(ct.float32)).astype(o.dtype))


@ct.kernel
def grouped(ids, a, b, o, BM: Const, BN: Const, BK: Const):
    i, j = ct.bid(0), ct.bid(1)
    expert = ct.load(ids, (i,), (1,)).item()
    total = ct.zeros((BM, BN), ct.float32)
    for k in range(ct.num_tiles(a, 1, (BM, BK))):
        y = ct.load(b, (expert, k, j), (1, BK, BN)).reshape((BK, BN))
        total = ct.mma(ct.load(a, (i, k), (BM, BK)), y, total)
    ct.store(o, (i, j), total.astype(o.dtype))


@ct.kernel
def swiglu(x, gate, up, o, BM: Const, BN: Const, BK: Const):
    i, j = ct.bid(0), ct.bid(1)
    g = ct.zeros((BM, BN), ct.float32)
    u = ct.zeros((BM, BN), ct.float32)
    for k in range(ct.num_tiles(x, 1, (BM, BK))):
        left = ct.load(x, (i, k), (BM, BK))
        g = ct.mma(left, ct.load(gate, (k, j), (BK, BN)), g)
        u = ct.mma(left, ct.load(up, (k, j), (BK, BN)), u)
    ct.store(o, (i, j), (silu(g) * u).astype(o.dtype))


@ct.kernel
def converted(a, b, scale, o, BM: Const, BN: Const, BK: Const, WEIGHTS: Const):
    i, j = ct.bid(0), ct.bid(1)
    total = ct.zeros((BM, BN), ct.float32)
    for k in range(ct.num_tiles(a, 1, (BM, BK))):
        x = ct.load(a, (i, k), (BM, BK))
        y = ct.load(b, (k, j), (BK, BN))
        if WEIGHTS:
            y = y.astype(ct.bfloat16)
        else:
            x = silu(x.astype(ct.float32)).astype(ct.bfloat16)
        total = ct.mma(x, y, total)
    if WEIGHTS:
        total = total * ct.load(scale, (j,), (BN,))
    ct.store(o, (i, j), total.astype(o.dtype))


@ct.kernel
def low_rank_adapter(x, w, down, up, o, BM: Const, BN: Const, BK: Const, RANK: Const):
    i, j = ct.bid(0), ct.bid(1)
    total = ct.zeros((BM, BN), ct.float32)
    low = ct.zeros((BM, RANK), ct.float32)
    for k in range(ct.num_tiles(x, 1, (BM, BK))):
        left = ct.load(x, (i, k), (BM, BK))
        total = ct.mma(left, ct.load(w, (k, j), (BK, BN)), total)
        low = ct.mma(left, ct.load(down, (k, 0), (BK, RANK)), low)
    total = ct.mma(low.astype(ct.bfloat16), ct.load(up, (0, j), (RANK, BN)), total)
    ct.store(o, (i, j), total.astype(o.dtype))


@ct.kernel
def norm_matmul(x, w, o, BM: Const, BN: Const, BK: Const, K: Const):
    i, j = ct.bid(0), ct.bid(1)
    total = ct.zeros((BM, BN), ct.float32)
    squares = ct.zeros((BM, 1), ct.float32)
    for k in range(ct.num_tiles(x, 1, (BM, BK))):
        left = ct.load(x, (i, k), (BM, BK))
        wide = left.astype(ct.float32)
        total = ct.mma(left, ct.load(w, (k, j), (BK, BN)), total)
        squares = squares + ct.sum(wide * wide, 1, keepdims=True)
    ct.store(o, (i, j), (total * ct.rsqrt(squares / K + 1e-6)).astype(o.dtype))


@ct.kernel
def weight_gradient(x, dy, dw, db, BM: Const, BN: Const, BK: Const):
    i, j = ct.bid(0), ct.bid(1)
    total = ct.zeros((BM, BN), ct.float32)
    sums = ct.zeros((1, BN), ct.float32)
    for k in range(ct.num_tiles(x, 0, (BK, BM))):
        right = ct.load(dy, (k, j), (BK, BN))
        total = ct.mma(ct.transpose(ct.load(x, (k, i), (BK, BM))), right, total)
        sums = sums + ct.sum(right.astype(ct.float32), 0, keepdims=True)
    ct.store(dw, (i, j), total)
    ct.store(db, (i, j), sums)


@ct.kernel
def mlp(x, up, down, o, BM: Const, BN: Const, BK: Const):
    i = ct.bid(0)
    left = ct.load(x, (i, 0), (BM, BN))
    total = ct.zeros((BM, BN), ct.float32)
    for k in range(ct.num_tiles(up, 1, (BN, BK))):
        hidden = ct.mma(left, ct.load(up, (0, k), (BN, BK)), ct.zeros((BM, BK), ct.float32))
        hidden = ct.maximum(hidden, 0.0).astype(ct.bfloat16)
        total = ct.mma(hidden, ct.load(down, (k, 0), (BK, BN)), total)
    ct.store(o, (i, 0), total.astype(o.dtype))


@ct.kernel
def small_matmuls(a, b, o, M: Const, N: Const, K: Const):
    p = ct.bid(0)
    x = ct.load(a, (p, 0, 0), (1, M, K)).reshape((M, K))
    y = ct.load(b, (p, 0, 0), (1, K, N)).reshape((K, N))
    total = ct.mma(x, y, ct.zeros((M, N), ct.float32))
    ct.store(o, (p, 0, 0), total.astype(o.dtype).reshape((1, M, N)))


@ct.kernel
def attention(q, k, v, o, D: Const, M: Const, N: Const, CAUSAL: Const, WINDOW: Const, CAP: Const):
    i, h = ct.bid(0), ct.bid(1)
    x = ct.load(q, (h, i, 0), (1, M, D)).reshape((M, D))
    row = i * M + ct.arange(M, dtype=ct.int32)[:, None]
    column = ct.arange(N, dtype=ct.int32)[None, :]
    most = ct.full((M, 1), -1e30, ct.float32)
    total = ct.zeros((M, 1), ct.float32)
    out = ct.zeros((M, D), ct.float32)
    begin = ct.maximum(i * M - WINDOW, 0) // N if WINDOW > 0 else 0
    end = ct.cdiv((i + 1) * M, N) if CAUSAL else ct.num_tiles(k, 1, (1, N, D))
    # Only blocks from the diagonal on are masked.
    mask_from = begin if WINDOW > 0 else i * M // N
    for j in range(begin, end):
        y = ct.load(k, (h, 0, j), (1, D, N), order=(0, 2, 1), latency=2).reshape((D, N))
        s = ct.mma(x, y, ct.zeros((M, N), ct.float32)) * (LOG2E / D ** 0.5)
        if CAP > 0:
            s = CAP * ct.tanh(s / CAP)
        if CAUSAL and j >= mask_from:
            seen = row >= column + j * N
            if WINDOW > 0:
                seen = seen & (row - column - j * N < WINDOW)
            s = s + ct.where(seen, 0.0, -1e30)
        now = ct.maximum(most, ct.max(s, 1, keepdims=True))
        p = ct.exp2(s - now, flush_to_zero=True)
        shrink = ct.exp2(most - now, flush_to_zero=True)
        total = total * shrink + ct.sum(p, 1, keepdims=True)
        z = ct.load(v, (h, j, 0), (1, N, D), latency=4).reshape((N, D))
        out = ct.mma(p.astype(z.dtype), z, out * shrink)
        most = now
    ct.store(o, (h, i, 0), (out / total).astype(o.dtype).reshape((1, M, D)))


@ct.kernel
def attention_dkv(q, k, v, do, lse, delta, dk, dv, D: Const, M: Const, N: Const):
    j, h = ct.bid(0), ct.bid(1)
    keys = ct.load(k, (h, j, 0), (1, N, D)).reshape((N, D))
    values = ct.load(v, (h, j, 0), (1, N, D)).reshape((N, D))
    sum_k = ct.zeros((N, D), ct.float32)
    sum_v = ct.zeros((N, D), ct.float32)
    for i in range(ct.num_tiles(q, 1, (1, M, D))):
        x = ct.load(q, (h, i, 0), (1, M, D)).reshape((M, D))
        g = ct.load(do, (h, i, 0), (1, M, D)).reshape((M, D))
        l = ct.load(lse, (h, i), (1, M))
        t = ct.load(delta, (h, i), (1, M))
        s = ct.mma(keys, ct.transpose(x), ct.zeros((N, M), ct.float32))
        p = ct.exp2(s * (LOG2E / D ** 0.5) - l)
        sum_v = ct.mma(p.astype(ct.bfloat16), g, sum_v)
        dp = ct.mma(values, ct.transpose(g), ct.zeros((N, M), ct.float32))
        sum_k = ct.mma((p * (dp - t)).astype(ct.bfloat16), x, sum_k)
    ct.store(dv, (h, j, 0), sum_v.astype(ct.bfloat16).reshape((1, N, D)))
    ct.store(dk, (h, j, 0), (sum_k / D ** 0.5).astype(ct.bfloat16).reshape((1, N, D)))


@ct.kernel
def attention_dq(q, k, v, do, lse, delta, dq, D: Const, M: Const, N: Const):
    i, h = ct.bid(0), ct.bid(1)
    x = ct.load(q, (h, i, 0), (1, M, D)).reshape((M, D))
    g = ct.load(do, (h, i, 0), (1, M, D)).reshape((M, D))
    l = ct.load(lse, (h, i), (1, M)).reshape((M, 1))
    t = ct.load(delta, (h, i), (1, M)).reshape((M, 1))
    total = ct.zeros((M, D), ct.float32)
    for j in range(ct.num_tiles(k, 1, (1, N, D))):
        keys = ct.load(k, (h, j, 0), (1, N, D)).reshape((N, D))
        values = ct.load(v, (h, j, 0), (1, N, D)).reshape((N, D))
        s = ct.mma(x, ct.transpose(keys), ct.zeros((M, N), ct.float32))
        dp = ct.mma(g, ct.transpose(values), ct.zeros((M, N), ct.float32))
        ds = ct.exp2(s * (LOG2E / D ** 0.5) - l) * (dp - t)
        total = ct.mma(ds.astype(ct.bfloat16), keys, total)
    ct.store(dq, (h, i, 0), (total / D ** 0.5).astype(ct.bfloat16).reshape((1, M, D)))


@ct.kernel
def linear_attention(q, k, v, o, D: Const, M: Const):
    h = ct.bid(0)
    row = ct.arange(M, dtype=ct.int32)[:, None]
    column = ct.arange(M, dtype=ct.int32)[None, :]
    state = ct.zeros((D, D), ct.float32)
    for i in range(ct.num_tiles(q, 1, (1, M, D))):
        x = ct.load(q, (h, i, 0), (1, M, D)).reshape((M, D))
        keys = ct.load(k, (h, i, 0), (1, M, D)).reshape((M, D))
        values = ct.load(v, (h, i, 0), (1, M, D)).reshape((M, D))
        s = ct.mma(x, ct.transpose(keys), ct.zeros((M, M), ct.float32))
        s = ct.where(row >= column, s, 0.0).astype(ct.bfloat16)
        out = ct.mma(s, values, ct.mma(x, state.astype(ct.bfloat16), ct.zeros((M, D), ct.float32)))
        ct.store(o, (h, i, 0), out.astype(ct.bfloat16).reshape((1, M, D)))
        state = ct.mma(ct.transpose(keys), values, state)


def array(dtype, rank):
    eights = (8,) * (rank - 1)
    return ArrayConstraint(dtype, rank, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(),
                           may_alias_internally=False, stride_constant=(None,) * (rank - 1) + (1,),
                           stride_divisible_by=eights + (1,), shape_divisible_by=(8,) * rank,
                           base_addr_divisible_by=16)


B, F, I = ct.bfloat16, ct.float32, ct.int32
TWO, THREE = array(B, 2), array(B, 3)


def tiled(kernel, arrays, bn=128, bk=64, *more):
    return kernel, arrays + [128, bn, bk, *more]


def product(bn=128, bk=64, a=B, o=B, trans_a=0, trans_b=0):
    return tiled(matmul, [array(a, 2), array(a, 2), array(o, 2)], bn, bk, trans_a, trans_b)


def flash(d=128, causal=0, window=0, cap=0):
    return attention, [THREE] * 4 + [d, 128, 128, causal, window, cap]


def backward(kernel, outputs, d, m, n):
    return kernel, [THREE] * 4 + [array(F, 2)] * 2 + [THREE] * outputs + [d, m, n]


PEERS = {
    "matmul_256": product(256),
    "matmul_128": product(),
    "matmul_256_symbolic": product(256),
    "matmul_128_symbolic": product(),
    "matmul_128_bias_gelu": tiled(matmul_bias_gelu, [TWO, TWO, array(B, 1), TWO]),
    "matmul_128_residual": tiled(matmul_residual, [TWO] * 4),
    "matmul_128_trans_a": product(trans_a=1),
    "matmul_128_trans_b": product(trans_b=1),
    "matmul_fp8": product(256, 128, ct.float8_e4m3fn, trans_b=1),
    "matmul_i8": product(256, 128, ct.int8, I, trans_b=1),
    "grouped": tiled(grouped, [array(I, 1), TWO, THREE, TWO]),
    "swiglu": tiled(swiglu, [TWO] * 4),
    "i8_weights": tiled(converted, [TWO, array(ct.int8, 2), array(F, 1), TWO], 128, 64, 1),
    "f8_weights": tiled(converted, [TWO, array(ct.float8_e4m3fn, 2), array(F, 1), TWO], 128, 64, 1),
    "activated_matmul": tiled(converted, [TWO, TWO, array(F, 1), TWO], 128, 64, 0),
    "low_rank_adapter": tiled(low_rank_adapter, [TWO] * 5, 128, 64, 64),
    "norm_matmul": tiled(norm_matmul, [TWO] * 3, 128, 64, 4096),
    "weight_gradient": tiled(weight_gradient, [TWO, TWO, array(F, 2), array(F, 2)]),
    "mlp": tiled(mlp, [TWO] * 4),
    "small_matmuls": (small_matmuls, [THREE] * 3 + [64, 64, 64]),
    "attention_64_full": flash(64),
    "attention_64_causal": flash(64, 1),
    "attention_128_full": flash(),
    "attention_128_causal": flash(causal=1),
    "attention_128_window": flash(causal=1, window=1024),
    "attention_128_soft_cap": flash(cap=30),
    "attention_64_dkv": backward(attention_dkv, 2, 64, 64, 128),
    "attention_128_dkv": backward(attention_dkv, 2, 128, 64, 128),
    "attention_128_dq": backward(attention_dq, 1, 128, 128, 64),
    "linear_attention_64": (linear_attention, [THREE] * 4 + [64, 64]),
}


def main():
    folder, names = sys.argv[1], sys.argv[2:]
    for name in names or PEERS:
        if name not in PEERS:
            continue
        kernel, parameters = PEERS[name]
        signature = KernelSignature(parameters, CallingConvention.cutile_python_v1())
        try:
            export_kernel(kernel, [signature], f"{folder}/{name}.cubin", gpu_code="sm_90",
                          output_format="cubin")
        except Exception as error:  # a kernel that cuTile refuses is a result, too
            first = next((l for l in str(error).splitlines() if l.strip()), type(error).__name__)
            print(f"cutile_user_kernels.py: {name}: {first}", file=sys.stderr)
            continue
        print(name, flush=True)


if __name__ == "__main__":
    main()
