"""fp8gemm_blockscale and i8gemm: D = A x B^T + bias in bf16 with 8-bit A (M x K) and B (N x K, shuffled).

Facts: csrc/py_itfs_cu/asm_a8w8_blockscale_bpreshuffle.cu and asm_gemm_a8w8.cu. K and N are multiples of 128, M is
free. fp8 (E4M3): a f32 scale per row and 128 columns of A, stored column by column, and per 128 x 128 of B. i8: a
f32 scale per row of A and per row of B. The bias is N f32. S slices of K, whole steps of 128, add to what the host
zeroed; the workgroups of a slice are neighbours in x.

Bound of an element, u = unit roundoff of f32, v = of bf16, T_s = sum|a b| of slice s, P_s = its exact value:
  fp8: (K + 4) u (sum T_s + |bias|) for products, scales and sums in f32
  i8:  4 u (sum|P_s| + |bias|); the integer sums are exact and rounded once
  plus 2 v |D|: the kernels cut D's mantissa off instead of rounding it (v_perm_b32 of the high halves); with S > 1
  2 v (|bias| + sum|P_s|) for the slices so cut, and v of that for each of the S - 1 atomic additions
"""
from __future__ import annotations

import torch

import aiter_object
from aiter_object import Row, kernarg, shuffle_weight, tiles
from families import FP32_ROUNDOFF, UNIT_ROUNDOFF, Case, Result, compare, rounding

FP8_TABLE, I8_TABLE = "fp8gemm_bf16_blockscale.csv", "i8gemm_bf16_perTokenI8.csv"
STEP = 128


def slices(k: int, split: int) -> list[tuple[int, int]]:
    each = tiles(tiles(k, split), STEP) * STEP
    return [(lo, min(lo + each, k)) for lo in range(0, k, each)]


def check(got: torch.Tensor, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor, split: int, fp8: bool) -> Result:
    k, bias = a.shape[1], bias.double()
    parts = slices(k, split)
    assert len(parts) == split
    partial = [a[:, lo:hi] @ b[:, lo:hi].T for lo, hi in parts]
    spread = sum(p.abs() for p in partial)
    reference = sum(partial) + bias
    if fp8:
        bound = (k + 4) * FP32_ROUNDOFF * (a.abs() @ b.abs().T + bias.abs())
    else:
        bound = 4 * FP32_ROUNDOFF * (spread + bias.abs())
    if split == 1:
        bound += 2 * rounding(reference, torch.bfloat16)
    else:
        bound += (split + 1) * UNIT_ROUNDOFF[torch.bfloat16] * (bias.abs() + spread)
    return compare(got, reference, bound, "D")


def launch(emulator, row: Row, m: int, n: int, k: int, split: int, operands, scale_shape=()) -> torch.Tensor:
    d = emulator.filled(m * n * 2, 0 if split > 1 else 0xFF)
    buffers = [emulator.buffer(t) for t in operands]
    arguments = kernarg(d, *buffers, m, n, k, k, k, 2 * n, split, *scale_shape)
    aiter_object.launch(emulator, row, (n // row.tile_n * split, tiles(m, row.tile_m), 1), arguments)
    return d.read(torch.bfloat16, m, n)


def run_fp8(emulator, row: Row, m: int, n: int, k: int, split: int = 1, bias: bool = False) -> Result:
    a, b = (torch.randn(rows, k).to(torch.float8_e4m3fn) for rows in (m, n))
    scale_a, scale_b = torch.rand(m, k // STEP) + 0.5, torch.rand(n // STEP, k // STEP) + 0.5
    added = torch.randn(n) if bias else torch.zeros(n)
    got = launch(emulator, row, m, n, k, split,
                 (a, shuffle_weight(b.view(torch.uint8)), scale_a.T.contiguous(), scale_b, added),
                 (m, n // STEP, k // STEP))
    a = a.double() * scale_a.double().repeat_interleave(STEP, 1)
    b = b.double() * scale_b.double().repeat_interleave(STEP, 0).repeat_interleave(STEP, 1)
    return check(got, a, b, added, split, True)


def run_i8(emulator, row: Row, m: int, n: int, k: int, split: int = 1, bias: bool = False) -> Result:
    a, b = (torch.randint(-128, 128, (rows, k), dtype=torch.int8) for rows in (m, n))
    scale_a, scale_b = torch.rand(m, 1) * 0.02, torch.rand(n, 1) * 0.02
    added = torch.randn(n) * 10 if bias else torch.zeros(n)
    got = launch(emulator, row, m, n, k, split, (a, shuffle_weight(b), scale_a, scale_b, added))
    return check(got, a.double() * scale_a.double(), b.double() * scale_b.double(), added, split, False)


def shapes(row: Row):
    ragged = row.tile_m + row.tile_m // 2 + 3
    yield "tiles", dict(m=2 * row.tile_m, n=2 * row.tile_n, k=4 * STEP)
    yield "ragged-bias", dict(m=ragged, n=3 * row.tile_n, k=3 * STEP, bias=True)
    yield "row", dict(m=1, n=row.tile_n, k=2 * STEP)
    yield "split2", dict(m=row.tile_m + 1, n=row.tile_n, k=5 * STEP, split=2)
    yield "split3-bias", dict(m=ragged, n=2 * row.tile_n, k=6 * STEP, split=3, bias=True)


def cases_of(folder, table: str, run) -> list[Case]:
    return [Case(row.path, f"{row.path.stem} {name}", lambda emulator, row=row, shape=shape: run(emulator, row, **shape))
            for row in aiter_object.rows(folder, table) for name, shape in shapes(row)]


def cases(folder) -> list[Case]:
    return cases_of(folder, FP8_TABLE, run_fp8) + cases_of(folder, I8_TABLE, run_i8)
