"""AITER's fmha_v3_fwd objects: bf16 and fp8 attention forward, head sizes 128, 192/128 and 256, causal and not,
batches and packed sequences (group mode), grouped query heads, log-sum-exp.

Facts: csrc/cpp_itfs/mha_fwd.cu and csrc/include/mha_fwd.h (41 arguments of 16 bytes; grid; 512 threads, 256 for head
size 192), asm_mha_fwd.cu and asm_mha_varlen_fwd.cu (strides, lse layout). Causal means bottom right, and a workgroup
takes two query tiles. The fp8 objects read one f32 scale per tensor: no instruction loads the strides of the scales.
Limits: aiter_attention_reference.py with u_o = 2^-8 (bf16) and p in bf16 (u_p = 2^-8) or e4m3 (2^-4, step 2^-10).
The hd256 objects take most exponentials as float bits, v_cvt_u32_f32(2^23 x + 0x4e7de250): linear between powers of
two and centred by 0.058, so off by -3.94 to +1.97 %, -0.03 % in the mean.
"""
from __future__ import annotations

import math

import torch

import aiter_attention_reference as reference
import aiter_object
from families import Case, Result, compare, worst

LINEAR_EXP2, LINEAR_EXP2_MEAN = 0.0394, 0.0004
FP8_SCALES = (0.75, 1.25, 2.0)  # of q, k and v
# Rows with no key at all are left out: the bottom-right mask needs sk >= sq.
PROBLEMS = {
    False: {"gqa": ([(300, 333)] * 2, 2, 1), "one_tile": ([(64, 100)], 1, 1), "heads8": ([(513, 640)], 8, 4)},
    True: {"ragged": ([(300, 333), (100, 200), (1, 65)], 2, 1), "heads8": ([(256, 256), (257, 511)], 8, 8)},
}


def cumulative(lengths) -> torch.Tensor:
    return torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)


class Problem:
    """Sequences of (queries, keys), packed one after the other; without group mode all have one length."""

    def __init__(self, row: aiter_object.Row, lengths, heads: int, kv_heads: int):
        self.row, self.lengths, self.heads, self.kv_heads = row, lengths, heads, kv_heads
        self.group, self.causal = row.mode == 1, row.mask != 0
        self.fp8 = row.dtype == "fp8bf16"
        dtype = torch.float8_e4m3fn if self.fp8 else torch.bfloat16
        self.sq, self.sk = max(q for q, _ in lengths), max(k for _, k in lengths)
        self.total_q, self.total_k = sum(q for q, _ in lengths), sum(k for _, k in lengths)
        self.q = torch.randn(self.total_q, heads, row.hdim_q).to(dtype)
        self.k = torch.randn(self.total_k, kv_heads, row.hdim_q).to(dtype)
        self.v = torch.randn(self.total_k, kv_heads, row.hdim_v).to(dtype)
        self.scale = row.hdim_q ** -0.5
        self.scales = FP8_SCALES if self.fp8 else (1.0, 1.0, 1.0)

    def strides(self, tensor: torch.Tensor, length: int, bytes_: int) -> tuple[int, int, int]:
        """Of a token, a head, a sequence, in bytes."""
        token = tensor.shape[1] * tensor.shape[2] * bytes_
        return token, tensor.shape[2] * bytes_, 0 if self.group else length * token

    def grid(self) -> tuple[int, int, int]:
        tiles = aiter_object.tiles(self.sq, self.row.ts_qo)
        tiles = aiter_object.tiles(tiles, 2) if self.causal else tiles
        batch = len(self.lengths)
        return (self.heads, batch, tiles) if self.group else (tiles, self.heads, batch)

    def launch(self, emulator):
        row, bytes_ = self.row, self.q.element_size()
        inputs = [emulator.buffer(t) for t in (self.q, self.k, self.v)]
        out = torch.empty(self.total_q, self.heads, row.hdim_v)
        o = emulator.filled(out.numel() * 2)
        lse = emulator.filled(self.heads * self.total_q * 4)
        token, head, sequence = self.strides(self.q, self.sq, bytes_)
        k_strides, v_strides = (self.strides(t, self.sk, bytes_) for t in (self.k, self.v))
        order = 3 if self.causal and self.heads % 8 else 5  # how workgroups walk the tiles
        starts = [emulator.buffer(cumulative(side)) for side in zip(*self.lengths)] if self.group else [None, None]
        scales = [emulator.buffer(torch.tensor([s])) if self.fp8 else None for s in self.scales]
        arguments = aiter_object.kernarg(
            o, *inputs, lse, self.scale, self.sq, token, row.ts_qo * token, head, sequence, self.heads // self.kv_heads,
            *k_strides, order, 1, self.sk, row.hdim_q, row.hdim_v, self.heads, *v_strides,
            *self.strides(out, self.sq, 2), *starts, 4 * (self.total_q if self.group else self.sq), *starts, *scales,
            *[0] * 6)
        aiter_object.launch(emulator, row, self.grid(), arguments, 256 if row.hdim_q == 192 else 512)
        lse_shape = (1, self.heads, self.total_q) if self.group else (len(self.lengths), self.heads, self.sq)
        return o.read(torch.bfloat16, *out.shape), lse.read(torch.float32, *lse_shape)

    def judge(self, o: torch.Tensor, lse: torch.Tensor) -> Result:
        exp2 = (LINEAR_EXP2, LINEAR_EXP2_MEAN) if self.row.hdim_q == 256 else (0.0, 0.0)
        u_p, floor = (2.0 ** -4 + exp2[0], 2.0 ** -10) if self.fp8 else (2.0 ** -8, 0.0)
        results, q_at, k_at = [], 0, 0
        for n, (sq, sk) in enumerate(self.lengths):
            q, k, v = (t[at:at + length].double() * scale for t, at, length, scale in zip(
                (self.q, self.k, self.v), (q_at, k_at, k_at), (sq, sk, sk), self.scales))
            hidden = reference.bottom_right(sq, sk) if self.causal else None
            a = reference.attend(q, k, v, self.scale, hidden)
            results.append(compare(o[q_at:q_at + sq], a.o, reference.forward_bound(a, 2.0 ** -8, u_p, floor), f"o{n}"))
            got = lse[0, :, q_at:q_at + sq] if self.group else lse[n]
            results.append(compare(got, a.lse, reference.lse_bound(a, self.row.hdim_q, *exp2), f"lse{n}"))
            q_at, k_at = q_at + sq, k_at + sk
        return worst(*results)


def runner(row, problem):
    def run(emulator) -> Result:
        p = Problem(row, *problem)
        return p.judge(*p.launch(emulator))
    return run


def cases(folder) -> list[Case]:
    return [Case(row.path, f"{row.path.stem}[{name}]", runner(row, problem))
            for row in aiter_object.rows(folder, "fmha_fwd.csv")
            for name, problem in PROBLEMS[row.mode == 1].items()]
