"""bf16gemm: D = A x B^T (+ bias), A is M x K and B is N x K in bf16, D in f32 or bf16, with and without split K.

Facts: csrc/py_itfs_cu/asm_gemm_a16w16.cu. K is a multiple of 64, N of the tile, M is free. Objects named `clean`
zero D themselves and order their slices with a semaphore of 16 x 64 words that they leave at 0; the other split
objects add to what the host zeroed.

Bound of an element, u = unit roundoff of f32, v = of D's type, S slices with the exact values P_s:
  K u sum|a b|  for the accumulation of exact products, in any order
  v |D|         for one rounding, or with S > 1 v (|bias| + S sum|P_s|): every slice is rounded and added by an atomic
"""
from __future__ import annotations

import torch

import aiter_object
from aiter_object import Row, kernarg, shuffle_weight, tiles
from families import FP32_ROUNDOFF, UNIT_ROUNDOFF, Case, Result, compare, intact, rounding, worst

TABLE = "bf16gemm_fp32bf16.csv"
SEMAPHORE = (16, 64)
STEP = 64


def slices(k: int, split: int) -> list[tuple[int, int]]:
    """Bounds of the slices of K: equal numbers of steps, the last slice takes the rest."""
    each = k // STEP // split * STEP
    return [(s * each, k if s == split - 1 else (s + 1) * each) for s in range(split)]


def run(emulator, row: Row, m: int, n: int, k: int, out: torch.dtype, bias: bool, split: int) -> Result:
    a, b = torch.randn(m, k).bfloat16(), torch.randn(n, k).bfloat16()
    c = torch.randn(n).bfloat16() if bias else None
    clean = row.splitK == 1
    d = emulator.filled(m * n * out.itemsize, 0xFF if clean or split == 1 else 0)
    semaphore = torch.zeros(SEMAPHORE, dtype=torch.int32)
    buffers = {"a": emulator.buffer(a), "b": emulator.buffer(shuffle_weight(b) if row.bPreshuffle else b),
               "bias": emulator.buffer(c) if bias else None, "semaphore": emulator.buffer(semaphore)}
    arguments = kernarg(
        d, None, buffers["a"], buffers["b"], 1.0, 0.0, n * out.itemsize, 0, n * out.itemsize, 0, 2 * k, 0, 2 * k, 0,
        m, n, k, split, int(out == torch.bfloat16), buffers["bias"], int(bias),
        buffers["semaphore"] if split > 1 else None)
    aiter_object.launch(emulator, row, (tiles(n, row.tileN), tiles(m, row.tileM), split), arguments)

    a, b = a.double(), b.double()
    parts = [a[:, lo:hi] @ b[:, lo:hi].T for lo, hi in slices(k, split)]
    added = c.double() if bias else torch.zeros(n, dtype=torch.float64)
    reference = sum(parts) + added
    bound = (k + 1) * FP32_ROUNDOFF * (a.abs() @ b.abs().T + added.abs())
    if split == 1:
        bound += rounding(reference, out)
    else:
        bound += UNIT_ROUNDOFF[out] * (added.abs() + split * sum(p.abs() for p in parts))
    return worst(compare(d.read(out, m, n), reference, bound, "D"),
                 intact(buffers["semaphore"].read(torch.int32, *SEMAPHORE), 0, "semaphore"))


def shapes(row: Row):
    """Two or three tiles each way, M ragged; the shortest K, then several steps."""
    ragged, n = row.tileM + row.tileM // 2 + 3, 2 * row.tileN
    options = dict(out=torch.float32, bias=False, split=1) if row.bias else dict(out=torch.bfloat16, bias=False, split=1)
    if "256x256" not in row.co_name:
        yield "tiles-f32", dict(m=2 * row.tileM, n=n, k=3 * STEP) | options
    yield "ragged-bf16", dict(m=ragged, n=n, k=5 * STEP) | options | dict(out=torch.bfloat16)
    if not row.bias:
        return
    yield "ragged-f32-bias", dict(m=ragged, n=3 * row.tileN, k=4 * STEP) | options | dict(bias=True)
    yield "one-row", dict(m=1, n=row.tileN, k=2 * STEP) | options | dict(out=torch.bfloat16, bias=True)
    yield "split2-f32", dict(m=row.tileM + 1, n=n, k=7 * STEP) | options | dict(split=2, bias=True)
    yield "split3-bf16", dict(m=ragged, n=n, k=8 * STEP) | options | dict(split=3, bias=True, out=torch.bfloat16)


def cases(folder) -> list[Case]:
    return [Case(row.path, f"{row.path.stem} {name}", lambda emulator, row=row, shape=shape: run(emulator, row, **shape))
            for row in aiter_object.rows(folder, TABLE) for name, shape in shapes(row)]
