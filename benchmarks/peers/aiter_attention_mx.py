"""AITER's fmha_v4_fwd objects: attention with int8, fp8, MXFP8, MXFP6 or MXFP4 q and k and fp8, MXFP6 or MXFP4 v,
head size 128, no mask. The FP8 x FP6, FP8 x FP4 and FP6 layouts of the scaled MFMAs are checked by it.

Facts: csrc/py_itfs_cu/asm_mha_v4_fwd.cu (arguments, grid), csrc/kernels/mha_v4_quant.cu, mxfp6_fmha_pack.py and
sage_attention_quant_wrappers.py (layouts); here they are written as permutations of bytes in mx_layouts.py. The q of
MX formats carries scale * log2 e.

What these kernels do to p (read from their code), and the limits that follow:
  - e4m3 rounding, 2^-4; the exponential as float bits (linear between powers of two), 0.0394.
  - MXFP6 and MXFP4 q and k: p's e4m3 code is round(8 log2 p + c), which is linear between powers of two: 2^-4 + 0.031.
    The first tile starts its sums at 1.0, one code up. f4f4 never takes that back: its first 128 keys weigh 2^(1/8)
    more; the others do, so that a ragged last tile, which starts at 1.0 again, weighs 2^(1/8) more. The reference
    has both.
  - p below 2^-6 of the largest is denormal: up to 2^-7 of the largest, and always too little.
  - fp8 q and k: q is multiplied by the scale and rounded to e4m3 again.
A row's error is a sum of independent errors of p over 128 channels: its norm is at most
    (2^-8 + 2^-12 + sum of the losses of denormal p) |o| + 1.25 sqrt(sum_j dp_j^2 |v_j - o|^2).
Not run, because the objects cannot: fewer than 128 keys (the masked loop uses k registers that only a full tile loads),
and a ragged last key tile for f8f6, f6f4 (the v descriptor ends at keys * stride, inside the last tile) and f4f4 (k's).
"""
from __future__ import annotations

import math

import torch

import aiter_object
import mx_layouts as mx
from aiter_attention import LINEAR_EXP2
from aiter_memory import with_slack
from families import Case, Result, compare

LOG2E = 1.4426950408889634
E4M3, ONE_CODE = 2.0 ** -4, math.log(2.0) / 8
INT8, FP8, FP6, FP4 = 10, 3, 7, 9
PER_TENSOR, PER_CHANNEL, PER_32 = 1, 4, 5
PROBLEMS = {"even": (1, 300, 384, 2), "one_tile": (1, 64, 128, 1), "batch": (2, 513, 640, 3)}
RAGGED = {"ragged": (1, 300, 333, 2), "ragged_batch": (2, 257, 130, 3)}


class Problem:
    def __init__(self, row, batch: int, sq: int, sk: int, heads: int):
        self.row, self.batch, self.sq, self.sk, self.heads = row, batch, sq, sk, heads
        self.mx_scores = row.q_scale_mode == PER_32
        self.scale = 128 ** -0.5
        raw = [torch.randn(batch, n, heads, 128).bfloat16().double() for n in (sq, sk, sk)]
        self.q = mx.queries(raw[0] * (self.scale * LOG2E if self.mx_scores else 1), row.q_format, row.q_scale_mode)
        self.k = mx.keys(raw[1], row.k_format, row.k_scale_mode)
        self.v = mx.values(raw[2], row.v_format, row.v_scale_mode)

    def launch(self, emulator) -> torch.Tensor:
        row, operands = self.row, (self.q, self.k, self.v)
        data = [with_slack(emulator, t.data) for t in operands]
        scales = [with_slack(emulator, t.scale) for t in operands]
        out = emulator.filled(self.batch * self.sq * self.heads * 256)
        (q_b, q_s, q_h), (k_b, k_s, k_h), (v_b, v_s, v_h) = (t.strides for t in operands)
        token = self.heads * 256
        arguments = aiter_object.kernarg(
            out, *data, None, self.scale, self.sq, q_s, row.ts_qo * q_s, q_h, q_b, 1, k_s, k_h, k_b, 5, 0, self.sk, 128,
            128, self.heads, v_s, v_h, v_b, token, 256, self.sq * token, None, None, 0, None, None, *scales,
            *(n for t in operands for n in t.scale_strides))
        grid = (aiter_object.tiles(self.sq, row.ts_qo), self.heads, self.batch)
        aiter_object.launch(emulator, row, grid, arguments, 512)
        return out.read(torch.bfloat16, self.batch, self.sq, self.heads, 128)

    def scores(self) -> tuple[torch.Tensor, torch.Tensor | float]:
        """Natural-log scores [batch, head, query, key], and the extra relative error of p per score."""
        q, k = self.q.exact, self.k.exact
        if self.mx_scores:
            return torch.einsum("bihd,bjhd->bhij", q, k) * math.log(2.0), 0.0
        extra = 0.0
        if self.row.q_format == FP8:
            terms = torch.einsum("bihd,bjhd->bhij", q.square(), k.square()).sqrt()
            extra = 4 * E4M3 / math.sqrt(3.0) * self.scale * terms
        return torch.einsum("bihd,bjhd->bhij", q, k) * self.scale, extra

    def judge(self, got: torch.Tensor) -> Result:
        scores, extra = self.scores()
        relative = E4M3 + LINEAR_EXP2 + extra
        if self.row.q_format in (FP6, FP4):
            relative = E4M3 + 0.031
            if self.row.v_format == self.row.q_format == FP4:
                scores[..., :128] += ONE_CODE
            elif self.sk % 128:
                scores[..., self.sk // 128 * 128:] += ONE_CODE
        p, v = scores.softmax(-1), self.v.exact
        o = torch.einsum("bhij,bjhd->bihd", p, v)
        largest = p.amax(-1, keepdim=True)
        small = torch.minimum(p, largest * 2.0 ** -7)
        lost = (small * (p < largest * 2.0 ** -6)).sum(-1)
        dp = torch.maximum(p * relative, small)
        # |v_j - o|^2 = |v_j|^2 - 2 v_j o + |o|^2
        size = o.square().sum(-1).transpose(1, 2)[..., None]
        spread = (v.square().sum(-1).transpose(1, 2)[:, :, None] - 2 * torch.einsum("bjhd,bihd->bhij", v, o) + size)
        norm = o.norm(dim=-1).transpose(1, 2)
        bound = (2.0 ** -8 + 2.0 ** -12 + lost) * norm + 1.25 * (dp.square() * spread.clamp_min(0)).sum(-1).sqrt()
        error = (got.double() - o).norm(dim=-1).transpose(1, 2)
        return compare(error, torch.zeros_like(error), bound, "row")


def runner(row, problem):
    def run(emulator) -> Result:
        p = Problem(row, *problem)
        return p.judge(p.launch(emulator))
    return run


def problems(row) -> dict:
    whole_tiles_only = row.v_format in (FP6, FP4)
    return PROBLEMS if whole_tiles_only else PROBLEMS | RAGGED


def cases(folder) -> list[Case]:
    return [Case(row.path, f"{row.path.stem}[{name}]", runner(row, problem))
            for row in aiter_object.rows(folder, "fmha_v4_fwd.csv") for name, problem in problems(row).items()]
