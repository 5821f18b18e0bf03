"""Triton's microscaled GEMMs: MXFP4, MXFP8, mixed formats, and bf16 by MXFP4 or MXFP8.

Reference: float64 matmul of the dequantised values, element * 2^(scale - 127), one scale per 32 k. Products are exact
in fp32 and scales are powers of two, so the bound is that of a plain GEMM: one rounding to the output type plus
(K + 2) * 2^-24 * sum |a||b|.
"""
from __future__ import annotations

import torch

from families import Case, Result
from triton_gemm import PAD, check_output, operand, product, shape, wide
from triton_object import TritonObject, objects

E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)
BLOCK = 32


def packed(rows: int, columns: int) -> torch.Tensor:
    """Random e2m1 values, two in a byte."""
    return torch.randint(0, 256, (rows, columns // 2)).to(torch.uint8)


def unpacked(t: torch.Tensor) -> torch.Tensor:
    """Low nibble first along the last dimension."""
    return E2M1[torch.stack([t & 15, t >> 4], -1).flatten(-2).long()]


def scales(rows: int, k: int) -> torch.Tensor:
    return torch.randint(118, 137, (rows, k // BLOCK)).to(torch.uint8)


def scaled(values: torch.Tensor, exponents: torch.Tensor) -> torch.Tensor:
    return values * torch.exp2(exponents.to(torch.float64) - 127).repeat_interleave(BLOCK, 1)


def quantised(rows: int, k: int, form: str, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """What is stored, and its values without scales."""
    if form == "e2m1":
        stored = packed(rows, k)
        return stored, unpacked(stored)
    stored = operand(rows, k, dtype)
    return stored, wide(stored)


def launch(emulator, obj: TritonObject, a, b, sa, sb, m: int, n: int, k: int):
    c = emulator.filled(m * (n + PAD) * obj.dtype("c").itemsize)
    device = dict(zip(("a", "b", "sa", "sb"), map(emulator.buffer, (a, b, sa, sb))))
    obj.launch(emulator, dict(device, c=c, M=m, N=n, K=k, lda=a.shape[1], ldb=b.shape[1], ldc=n + PAD, lsa=sa.shape[1],
                              lsb=sb.shape[1]))
    return c


def run_mx(obj: TritonObject, m: int, n: int, k: int):
    def run(emulator) -> Result:
        a, a64 = quantised(m, k, obj["FA"], obj.dtype("a"))
        b, b64 = quantised(n, k, obj["FB"], obj.dtype("b"))
        sa, sb = scales(m, k), scales(n, k)
        c = launch(emulator, obj, a, b, sa, sb, m, n, k)
        a64 = scaled(a64, sa) if obj["A_SCALED"] else a64
        return check_output(c, obj, *product(a64, scaled(b64, sb).t(), torch.float32), n)
    return run


def mx(obj: TritonObject) -> list[Case]:
    m, n, k = shape(obj, tails=False)
    n = n // 16 * 16
    if not obj["HAS_TAIL"]:
        return [Case(obj.path, obj.name, run_mx(obj, m, n, k))]
    return [Case(obj.path, obj.name, run_mx(obj, m, n, k - obj["BK"] + BLOCK)),
            Case(obj.path, f"{obj.name} K=32", run_mx(obj, 5, 16, BLOCK))]


def packed_along_n(obj: TritonObject) -> list[Case]:
    """B is stored [K, N/2], two neighbouring n in a byte."""
    def run(emulator) -> Result:
        m, _, k = shape(obj, tails=False)
        n = 2 * obj["BN"]
        a, b, sa, sb = packed(m, k), packed(k, n), scales(m, k), scales(n, k)
        c = launch(emulator, obj, a, b, sa, sb, m, n, k)
        b64 = scaled(unpacked(b).t(), sb)
        return check_output(c, obj, *product(scaled(unpacked(a), sa), b64.t(), torch.float32), n)
    return [Case(obj.path, obj.name, run)]


KERNELS = {"gemm_mx_kernel": mx, "gemm_mxfp4_npack_kernel": packed_along_n}


def cases(folder) -> list[Case]:
    return [case for obj in objects(folder) if obj.symbol in KERNELS for case in KERNELS[obj.symbol](obj)]
