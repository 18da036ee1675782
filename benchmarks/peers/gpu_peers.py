#!/usr/bin/env python3
"""What PyTorch, Triton and JAX take for the cases of gpu_benchmark.cpp on the first GPU: a line
"CASE PEER MICROSECONDS" each, the least of several stretches of launches. Of what is missing there is
no line; why stands on stderr. Ends by itself within GPU_PEERS_SECONDS (90)."""
import os
import sys
import time

LIMIT = float(os.environ.get("GPU_PEERS_SECONDS", "90"))
BEGAN = time.monotonic()
ROWS, COLUMNS, FLAT, SQUARE = 32768, 1024, 1 << 26, 8192
BATCH, HEADS, LENGTH = 4, 16, 4096
# Of f16: rows, columns and depth; small ones, and few rows as when text is generated.
PRODUCTS = [(512,) * 3, (1024,) * 3, (2048,) * 3,
            (16, 4096, 4096), (16, 14336, 4096), (64, 4096, 14336), (16, 1024, 8192),
            (128, 128, 16384)]


def tell(case, peer, launch, measure):
    if time.monotonic() - BEGAN > LIMIT:
        print(f"gpu_peers.py: no time left for {peer} {case}", file=sys.stderr)
        return
    try:
        print(case, peer, round(measure(launch), 2), flush=True)
    except Exception as error:  # of a peer: the others go on
        print(f"gpu_peers.py: {peer} {case}: {str(error).splitlines()[:1]}", file=sys.stderr)


def name_of(m, n, k):
    return f"matmul_f16_{n}" if m == n == k else f"matmul_f16_{m}x{n}x{k}"


def with_torch():
    import torch
    import torch.nn.functional as F

    def measure(launch):
        for _ in range(3):
            launch()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

        def stretch(launches):
            begin.record()
            for _ in range(launches):
                launch()
            end.record()
            end.synchronize()
            return begin.elapsed_time(end)

        once = stretch(3) / 3
        launches = min(max(int(20 / max(once, 1e-3)), 3), 1000)
        return 1e3 * min(stretch(launches) for _ in range(5)) / launches

    def random(*shape, dtype=torch.float32):
        return torch.rand(*shape, device="cuda").mul_(2).sub_(1).to(dtype)

    def both(case, launch, triton_launch=None):
        tell(case, "torch", launch, measure)
        if triton_launch is not None:
            tell(case, "triton", triton_launch, measure)

    try:
        mine = triton_kernels(torch)
    except ImportError as missing:
        print(f"gpu_peers.py: {missing}", file=sys.stderr)
        mine = {}

    def of_triton(name, *arguments):
        return (lambda: mine[name](*arguments)) if name in mine else None

    for n, dtype, name in ((4096, torch.float16, "f16"), (8192, torch.float16, "f16"),
                           (4096, torch.bfloat16, "bf16")):
        a, b, o = random(n, n, dtype=dtype), random(n, n, dtype=dtype), random(n, n, dtype=dtype)
        both(f"matmul_{name}_{n}", lambda: torch.matmul(a, b, out=o), of_triton("matmul", a, b, o))
    for m, n, k in PRODUCTS:
        a, b, o = (random(*shape, dtype=torch.float16) for shape in ((m, k), (k, n), (m, n)))
        # Triton's here is for whole blocks.
        both(name_of(m, n, k), lambda: torch.matmul(a, b, out=o),
             of_triton("matmul", a, b, o) if m >= 128 else None)
    for d in (128, 64):
        q, k, v = (random(BATCH, HEADS, LENGTH, d, dtype=torch.float16) for _ in range(3))
        for causal in (True, False):
            tell(f"attention_{d}_{'causal' if causal else 'full'}", "torch",
                 lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal), measure)
    del q, k, v
    x, o, weight, bias = random(ROWS, COLUMNS), random(ROWS, COLUMNS), random(COLUMNS), random(COLUMNS)
    both("softmax_1024", lambda: torch.softmax(x, 1, out=o), of_triton("softmax", x, o))
    tell("layer_norm_1024", "torch", lambda: F.layer_norm(x, (COLUMNS,), weight, bias), measure)
    x, y, o = random(FLAT), random(FLAT), random(FLAT)
    both("add", lambda: torch.add(x, y, out=o), of_triton("add", x, y, o))
    x, o = random(SQUARE, SQUARE), random(SQUARE, SQUARE)
    tell("transpose_8192", "torch", lambda: o.copy_(x.t()), measure)


def triton_kernels(torch):
    import triton
    import triton.language as tl
    import triton_kernels

    # Programs of eight rows of blocks share their columns in the L2 cache.
    @triton.jit
    def matmul_kernel(a, b, o, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
        program = tl.program_id(0)
        first = program // (8 * columns) * 8
        height = tl.minimum(rows - first, 8)
        within = program % (8 * columns)
        i = (first + within % height) * BM + tl.arange(0, BM)
        j = within // height * BN + tl.arange(0, BN)
        k = tl.arange(0, BK)
        x = a + i[:, None] * K + k[None, :]
        y = b + k[:, None] * N + j[None, :]
        total = tl.zeros((BM, BN), tl.float32)
        for _ in range(0, tl.cdiv(K, BK)):
            total = tl.dot(tl.load(x), tl.load(y), total)
            x += BK
            y += BK * N
        tl.store(o + i[:, None] * N + j[None, :], total.to(o.dtype.element_ty))

    def add(x, y, o):
        triton_kernels.add[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)

    def softmax(x, o):
        triton_kernels.softmax[(x.shape[0],)](x, o, COLUMNS=x.shape[1],
                                             BLOCK=triton.next_power_of_2(x.shape[1]))

    def matmul(a, b, o):
        (m, k), n = a.shape, b.shape[1]
        matmul_kernel[(triton.cdiv(m, 128) * triton.cdiv(n, 256),)](
            a, b, o, m, n, k, BM=128, BN=256, BK=64, num_warps=8, num_stages=3)

    return {"add": add, "softmax": softmax, "matmul": matmul}


def with_jax():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp
    if jax.default_backend() != "gpu":
        raise ImportError("JAX sees no GPU")

    # JAX gives no events: launches one behind the other, as a user waits.
    def measure(launch):
        jax.block_until_ready([launch() for _ in range(3)])

        def stretch(launches):
            start = time.perf_counter()
            for _ in range(launches):
                last = launch()
            jax.block_until_ready(last)
            return 1e3 * (time.perf_counter() - start)

        once = stretch(3) / 3
        launches = min(max(int(20 / max(once, 1e-3)), 3), 1000)
        return 1e3 * min(stretch(launches) for _ in range(5)) / launches

    def random(shape, dtype=jnp.float32, seed=0):
        return jax.random.uniform(jax.random.key(seed), shape, jnp.float32, -1, 1).astype(dtype)

    def case(name, function, *arguments):
        compiled = jax.jit(function)
        tell(name, "jax", lambda: compiled(*arguments), measure)

    for n, dtype, name in ((4096, jnp.float16, "f16"), (8192, jnp.float16, "f16"),
                           (4096, jnp.bfloat16, "bf16")):
        a = random((n, n), dtype)
        case(f"matmul_{name}_{n}", jnp.matmul, a, a)
    for m, n, k in PRODUCTS:
        case(name_of(m, n, k), jnp.matmul, random((m, k), jnp.float16), random((k, n), jnp.float16))
    for d in (128, 64):
        q = random((BATCH, LENGTH, HEADS, d), jnp.float16)
        for causal in (True, False):
            case(f"attention_{d}_{'causal' if causal else 'full'}",
                 lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=causal,
                                                              implementation="cudnn"), q, q, q)
    x = random((ROWS, COLUMNS))
    case("softmax_1024", lambda x: jax.nn.softmax(x, axis=1), x)
    case("add", jnp.add, random((FLAT,)), random((FLAT,), seed=1))
    x = random((SQUARE, SQUARE))
    case("transpose_8192", lambda x: x.T + 0, x)


for peer in (with_torch, with_jax):
    try:
        peer()
    except Exception as missing:
        print(f"gpu_peers.py: {missing}", file=sys.stderr)
