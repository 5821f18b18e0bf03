"""Triton's dense GEMMs: bf16, f16, f32, f64, i8, fp8, bf8; NT, NN, TN; tails; split-K; bias + GELU; row and block scales.

Reference: torch float64 matmul of the same stored values. Bound of one element, with A = sum over k of |a||b|:
    one rounding to the output type + (K + 2) * u * A,     u = 2^-24, for f64 outputs 2^-53
the second term being the worst case of K products summed in that type in any order; integers are exact.
"""
from __future__ import annotations

import torch

from families import FP32_ROUNDOFF, UNIT_ROUNDOFF, Case, Result, compare, intact, rounding, worst
from triton_object import TritonObject, objects

PAD = 16        # extra columns of C: nothing may be written there
FILL = 0xFF


def operand(rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
    if not dtype.is_floating_point:
        return torch.randint(-128, 128, (rows, columns)).to(dtype)
    return torch.randn(rows, columns, dtype=torch.float64).to(torch.float32 if dtype.itemsize < 4 else dtype).to(dtype)


def wide(t: torch.Tensor) -> torch.Tensor:
    return t.to(torch.float32).to(torch.float64) if t.dtype.itemsize < 4 else t.to(torch.float64)


def product(a: torch.Tensor, b: torch.Tensor, accumulate: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """a[M,K] @ b[K,N] in float64, and the accumulation bound."""
    u = 0.0 if not accumulate.is_floating_point else max(UNIT_ROUNDOFF[accumulate], 2.0 ** -53)
    return a @ b, (a.shape[1] + 2) * u * (a.abs() @ b.abs())


def check_output(c, obj: TritonObject, reference, slack, columns: int) -> Result:
    """C [M, columns + PAD] against the reference, and its padding."""
    dtype = obj.dtype("c")
    got = c.read(dtype, reference.shape[0], columns + PAD)
    return worst(compare(wide(got[:, :columns]), reference, rounding(reference, dtype) + slack, "c"),
                 intact(got[:, columns:], FILL, "padding of c"))


def shape(obj: TritonObject, tails: bool) -> tuple[int, int, int]:
    """Two tiles each way, ragged where the kernel has masks for it; K: three steps of its loop."""
    m, n = obj["BM"] + obj["BM"] // 2 + 3, obj["BN"] + obj["BN"] // 2 + 8
    bk = obj.constants.get("BK", 128)
    return m, n, 3 * bk - (bk // 2 - 3 if tails else 0)


def run_dense(obj: TritonObject, m: int, n: int, k: int):
    def run(emulator) -> Result:
        transposed_a, transposed_b = obj["TA"], obj["TB"]
        a, b = operand(m, k, obj.dtype("a")), operand(k, n, obj.dtype("b"))
        ab, bb = (t.t() if flip else t for t, flip in ((a, transposed_a), (b, transposed_b)))
        c = emulator.filled(m * (n + PAD) * obj.dtype("c").itemsize)
        keep = emulator.buffer(ab), emulator.buffer(bb)
        obj.launch(emulator, dict(a=keep[0], b=keep[1], c=c, M=m, N=n, K=k, lda=ab.shape[1], ldb=bb.shape[1], ldc=n + PAD))
        accumulate = obj.dtype("c") if obj.dtype("c").itemsize > 4 or not obj.dtype("c").is_floating_point else torch.float32
        return check_output(c, obj, *product(wide(a), wide(b), accumulate), n)
    return run


def dense(obj: TritonObject) -> list[Case]:
    tails = not obj["EVEN_K"]
    m, n, k = shape(obj, tails)
    if not tails:
        m, n = m // 16 * 16, n // 16 * 16  # leading dimensions were compiled as multiples of 16
    cases = [Case(obj.path, obj.name, run_dense(obj, m, n, k))]
    if tails:
        cases.append(Case(obj.path, f"{obj.name} K=1", run_dense(obj, 5, 7, 1)))
    return cases


KERNELS = {"gemm_kernel": dense}


def cases(folder) -> list[Case]:
    return [case for obj in objects(folder) if obj.symbol in KERNELS for case in KERNELS[obj.symbol](obj)]
