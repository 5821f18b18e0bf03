"""f4gemm: D = A x B^T in bf16; A is M x K and B is N x K in FP4 E2M1, one E8M0 scale per 32 values of a row.

Facts: csrc/py_itfs_cu/asm_gemm_a4w4.cu. K is a multiple of 256, N of 32, M is free; D has M rounded up to 32 rows.
Scales are padded to 256 rows and shuffled; B's bytes are shuffled unless the table says no. Seen in the objects: those
of WHOLE_N store whole tiles without a look at N, so that columns past it land in the next row; the one without
shuffled B stores whole tiles both ways (num_records -16: here D gets the rows) and prefetches 512 columns of K.
Objects with splitK in the table add ceil(K / 2^s / 256) * 256 columns a slice to what the host zeroed.

Bound of an element, u = unit roundoff of f32, v = of bf16, S slices with the exact values P_s:
  K u sum|a b|, and v |D| for one rounding, or with S > 1 v S sum|P_s|: every slice is rounded and added by an atomic
"""
from __future__ import annotations

import torch

import aiter_object
from aiter_object import Row, kernarg, shuffle_weight, tiles
from families import FP32_ROUNDOFF, UNIT_ROUNDOFF, Case, Result, compare, rounding

TABLE = "f4gemm_bf16_per1x32Fp4.csv"
BLOCK, STEP = 32, 256
WHOLE_N = {(128, 512), (192, 256), (224, 256), (256, 256)}
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)
NAN_SCALE = 0xFF  # in the padding: it must not reach D


class Operand:
    """Random codes and scales of one matrix: packed, shuffled and as float64."""

    def __init__(self, rows: int, k: int):
        codes = torch.randint(0, 16, (rows, k), dtype=torch.uint8)
        scales = torch.randint(124, 131, (rows, k // BLOCK), dtype=torch.uint8)
        self.packed = codes[:, 0::2] | codes[:, 1::2] << 4
        self.scales = shuffle_scale(scales)
        self.scale_stride = self.scales.shape[1]
        self.values = E2M1[codes.long()] * torch.exp2(scales.double() - 127).repeat_interleave(BLOCK, 1)


def shuffle_scale(scales: torch.Tensor) -> torch.Tensor:
    """32 rows by 8 columns form a tile; in it: column mod 4, row mod 16, column / 4, row / 16."""
    rows, columns = scales.shape
    padded = torch.full((tiles(rows, 256) * 256, tiles(columns, 8) * 8), NAN_SCALE, dtype=torch.uint8)
    padded[:rows, :columns] = scales
    tile = padded.view(padded.shape[0] // 32, 2, 16, padded.shape[1] // 8, 2, 4)
    return tile.permute(0, 3, 5, 2, 4, 1).contiguous().view(padded.shape)


def slices(k: int, log2_split: int) -> list[tuple[int, int]]:
    each = tiles(k >> log2_split, STEP) * STEP
    return [(lo, min(lo + each, k)) for lo in range(0, k, each)]


def run(emulator, row: Row, m: int, n: int, k: int, log2_split: int = 0) -> Result:
    a, b = Operand(m, k), Operand(n, k)
    parts = slices(k, log2_split)
    rows = 32 if row.bpreshuffle else row.tile_M
    padded_m = tiles(m, rows) * rows
    d = emulator.filled(padded_m * n * 2, 0 if log2_split else 0xFF)
    buffers = [emulator.buffer(t) for t in (a.packed, shuffle_weight(b.packed) if row.bpreshuffle else b.packed,
                                            a.scales, b.scales)]
    arguments = kernarg(d, None, buffers[0], buffers[1], 1.0, 0.0, 0, 0, n, 0, k, 0, k, 0, m, n, k,
                        buffers[2], buffers[3], a.scale_stride, 0, b.scale_stride, 0, log2_split)
    aiter_object.launch(emulator, row, (tiles(n, row.tile_N), tiles(m, row.tile_M), len(parts)), arguments)

    partial = [a.values[:, lo:hi] @ b.values[:, lo:hi].T for lo, hi in parts]
    reference = sum(partial)
    bound = k * FP32_ROUNDOFF * (a.values.abs() @ b.values.abs().T)
    if len(parts) == 1:
        bound += rounding(reference, torch.bfloat16)
    else:
        bound += len(parts) * UNIT_ROUNDOFF[torch.bfloat16] * sum(p.abs() for p in partial)
    return compare(d.read(torch.bfloat16, padded_m, n)[:m], reference, bound, "D")


def shapes(row: Row):
    ragged_n = 2 * row.tile_N if (row.tile_M, row.tile_N) in WHOLE_N else row.tile_N + 32
    yield "tiles", dict(m=row.tile_M, n=row.tile_N, k=5 * STEP)
    yield "ragged", dict(m=row.tile_M + row.tile_M // 2 + 3, n=ragged_n, k=3 * STEP)
    yield "row", dict(m=1, n=row.tile_N, k=2 * STEP)
    if row.splitK:
        yield "split2", dict(m=row.tile_M + 5, n=row.tile_N, k=4 * STEP, log2_split=1)
        yield "split3", dict(m=row.tile_M, n=row.tile_N, k=5 * STEP, log2_split=2)


def cases(folder) -> list[Case]:
    return [Case(row.path, f"{row.path.stem} {name}", lambda emulator, row=row, shape=shape: run(emulator, row, **shape))
            for row in aiter_object.rows(folder, TABLE) for name, shape in shapes(row)]
