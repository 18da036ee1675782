#!/usr/bin/env python3
"""What JAX's interpret mode takes for kernels of the interpreter's benchmark, under jax.jit on the
CPU: a line "name first_ms steady_ms" for each, the first call with trace and compilation, the least
of several afterwards. Prints nothing on stdout where there is no JAX."""
import os
import sys
import time

os.environ["JAX_PLATFORMS"] = "cpu"

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import pallas as pl
except ImportError as missing:
    sys.exit(f"jax_interpret.py: {missing}")

RUNS = 20
F32 = jnp.float32


def call(body, out, grid, in_specs, out_specs, **options):
    return jax.jit(pl.pallas_call(body, out_shape=out, grid=grid, in_specs=in_specs,
                                  out_specs=out_specs, interpret=True, **options))


def softmax():
    def body(x, o):
        e = jnp.exp(x[...] - jnp.max(x[...], axis=1, keepdims=True))
        o[...] = e / jnp.sum(e, axis=1, keepdims=True)

    row = pl.BlockSpec((1, 1024), lambda i: (i, 0))
    x = jnp.asarray(np.arange(1 << 20, dtype=np.float32).reshape(1024, 1024) % 17)
    return call(body, jax.ShapeDtypeStruct((1024, 1024), F32), (1024,), [row], row), (x,)


def matmul():
    def body(x, y, o):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o[...] = jnp.zeros((64, 64), F32)

        o[...] += jnp.dot(x[...], y[...])

    a = jnp.asarray(np.arange(512 * 512, dtype=np.float32).reshape(512, 512) % 17)
    return call(body, jax.ShapeDtypeStruct((512, 512), F32), (8, 8, 16),
                [pl.BlockSpec((64, 32), lambda i, j, k: (i, k)),
                 pl.BlockSpec((32, 64), lambda i, j, k: (k, j))],
                pl.BlockSpec((64, 64), lambda i, j, k: (i, j))), (a, a)


def add():
    def body(x, y, o):
        o[...] = x[...] + y[...]

    block = pl.BlockSpec((1024,), lambda i: (i,))
    x = jnp.arange(1 << 20, dtype=F32)
    return call(body, jax.ShapeDtypeStruct((1 << 20,), F32), (1024,), [block, block], block), (x, x)


def histogram_by(count, blocks, block):
    def body(x, o):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o[...] = jnp.zeros((256,), jnp.int32)

        count(x, o)

    x = jnp.arange(blocks * block, dtype=jnp.int32) * 37 % 17
    return call(body, jax.ShapeDtypeStruct((256,), jnp.int32), (blocks,),
                [pl.BlockSpec((block,), lambda i: (i,))], pl.BlockSpec((256,), lambda i: (0,))), (x,)


def histogram():
    def count(x, o):
        def one(i, _):
            o[x[i]] += 1

        jax.lax.fori_loop(0, 1024, one, None)

    return histogram_by(count, 16, 1024)


def histogram_at_once():
    # Not by plgpu.atomic_add, which here adds once where an index stands several times.
    def count(x, o):
        o[...] = o[...].at[x[...]].add(1)

    return histogram_by(count, 64, 1 << 14)


def cumsum():
    def body(x, o):
        o[...] = jnp.cumsum(x[...], axis=1)

    row = pl.BlockSpec((8, 1024), lambda i: (i, 0))
    x = jnp.ones((1024, 1024), F32)
    return call(body, jax.ShapeDtypeStruct((1024, 1024), F32), (128,), [row], row), (x,)


def milliseconds(kernel, arguments):
    begin = time.perf_counter()
    kernel(*arguments).block_until_ready()
    return 1e3 * (time.perf_counter() - begin)


for case in (softmax, matmul, add, histogram, histogram_at_once, cumsum):
    kernel, arguments = case()
    first = milliseconds(kernel, arguments)
    steady = min(milliseconds(kernel, arguments) for _ in range(RUNS))
    print(case.__name__, first, steady, flush=True)
