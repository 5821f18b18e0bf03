"""AITER's fmha_v3_bwd objects: dq, dk and dv of attention, three launches each: the row sums of o * do (odo objects),
dq/dk/dv, and dq from its accumulator (dq_convert from f32, dq_shuffle from 16 bits; none for head size 64 with 16 bits).

Facts: csrc/cpp_itfs/mha_bwd.cu and csrc/include/mha_bwd.h (44, 16 and 12 arguments of 16 bytes, grids, which objects
belong together, layout of the accumulator) and the CSV columns: mask 1 top left, 2 bottom right; atomic32: dq summed
in f32 or in 16 bits; pssk: lengths may be unequal or ragged; pddv: head size may be smaller than the tile's; mode 1:
packed sequences; bf16_cvt 0 to nearest even, 1 to nearest away, 2 to zero. Objects without a row are not driven by
the host (the swa ones). The kernel's dk and dv are per query head; the host sums the heads of a group.

Limits, u the unit roundoff of the 16-bit type (p and ds are rounded to it before they are multiplied), dS = p (dP - D):
    dv   u |dv| + 4 sqrt(sum (u p do)^2) + 2^-16 sum p |do|
    dk   u |dk| + 4 s sqrt(sum (u dS q)^2) + 2^-16 s sum p (|dP| + |D|) |q|        dq the same with k
dq with 16-bit accumulation adds u (n + 1) sum |parts|, a part being one of the n key tiles; rounding to zero doubles u
and shifts every sum by up to u of it.
"""
from __future__ import annotations

import torch

import aiter_attention_reference as reference
import aiter_object
from aiter_attention import cumulative
from aiter_memory import with_slack
from families import Case, Result, UNIT_ROUNDOFF, compare, rounding, worst

LOG2E = 1.4426950408889634
TO_ZERO = 2
BATCH = [((192, 192), (192, 192)), 2, 1]
BATCH_RAGGED = [((150, 333), (150, 333)), 2, 1]
# bwd_hd128_*_causal_br_a32 moves its dk and dv descriptors to the second key tile and leaves num_records, so it
# stores a ragged second tile past the tensor's end (or into the next sequence): whole tiles of 256 keys for them.
BATCH_WHOLE_TILES = [((150, 512), (150, 512)), 2, 1]
GROUP = [((150, 333), (64, 70), (1, 1)), 2, 1]


class Problem:
    def __init__(self, row, lengths, heads: int, kv_heads: int, narrower: int = 0):
        self.row, self.lengths, self.heads, self.kv_heads = row, lengths, heads, kv_heads
        self.group, self.wide = row.mode == 1, row.atomic32 == 1
        self.dtype = torch.bfloat16 if row.dtype == "bf16" else torch.float16
        self.d, self.d_v = row.hdim_q - narrower, row.hdim_v - narrower
        self.sq, self.sk = max(q for q, _ in lengths), max(k for _, k in lengths)
        self.total_q, self.total_k = sum(q for q, _ in lengths), sum(k for _, k in lengths)
        self.scale = self.d ** -0.5
        self.q, self.k, self.v, self.do = (torch.randn(n, h, d).to(self.dtype) for n, h, d in (
            (self.total_q, heads, self.d), (self.total_k, kv_heads, self.d), (self.total_k, kv_heads, self.d_v),
            (self.total_q, heads, self.d_v)))
        self.forward()

    def spans(self):
        q_at = k_at = 0
        for sq, sk in self.lengths:
            yield slice(q_at, q_at + sq), slice(k_at, k_at + sk)
            q_at, k_at = q_at + sq, k_at + sk

    def hidden(self, sq: int, sk: int):
        return {0: None, 1: reference.top_left(sq, sk), 2: reference.bottom_right(sq, sk)}[self.row.mask]

    def forward(self) -> None:
        self.o = torch.empty(self.total_q, self.heads, self.d_v, dtype=self.dtype)
        self.lse = torch.empty(self.heads, self.total_q)
        self.p = []
        for q_span, k_span in self.spans():
            q, k, v = self.q[q_span].double(), self.k[k_span].double(), self.v[k_span].double()
            a = reference.attend(q, k, v, self.scale, self.hidden(len(q), len(k)))
            self.o[q_span], self.lse[:, q_span] = a.o.to(self.dtype), a.lse.float()
            self.p.append(a.p)

    def strides(self, tensor, length: int, head_first: bool = True) -> tuple[int, int, int]:
        """Of a head, a sequence, a token, in bytes."""
        token = tensor.shape[1] * tensor.shape[2] * 2
        return tensor.shape[2] * 2, 0 if self.group else length * token, token

    def accumulator(self) -> tuple[int, int, int, int]:
        """Bytes of a head, a sequence, a token, and of all."""
        padded = -(-self.sq // 16) * 16
        width, element = (self.d, 4) if self.wide else (192 if self.d == 192 else 128, 2)
        tokens = (self.total_q if self.group else self.sq) if self.wide else padded
        batches = 1 if self.group and self.wide else len(self.lengths)
        head = tokens * width * element
        return head, 0 if batches == 1 else self.heads * head, width * element, batches * self.heads * head

    def rows_of_lse(self) -> tuple[torch.Tensor, int, int]:
        """The lse as the host lays it out, and its strides of a head and a sequence in bytes."""
        if self.group:
            return self.lse, self.total_q * 4, 0
        batched = self.lse.view(self.heads, len(self.lengths), self.sq).transpose(0, 1).contiguous()
        return batched, self.sq * 4, self.heads * self.sq * 4

    def truncates(self) -> bool:
        """The f16 kernels of sizes 64 and 192 (called recompile) convert with v_cvt_pkrtz_f16_f32."""
        return "recompile" in self.row.knl_name if self.dtype == torch.float16 else self.row.bf16_cvt == TO_ZERO

    def launch(self, emulator, objects):
        batch = len(self.lengths)
        q, k, v, o, do = (with_slack(emulator, t) for t in (self.q, self.k, self.v, self.o, self.do))
        lse_host, lse_head, lse_batch = self.rows_of_lse()
        lse, delta = with_slack(emulator, lse_host), emulator.filled(self.lse.numel() * 4)
        starts = [emulator.buffer(cumulative(side)) for side in zip(*self.lengths)] if self.group else [None, None]
        seqlen_q, seqlen_k = (self.total_q, self.total_k) if self.group else (self.sq, self.sk)
        strides = {name: self.strides(t, n) for name, t, n in (
            ("q", self.q, self.sq), ("k", self.k, self.sk), ("v", self.v, self.sk), ("do", self.do, self.sq),
            ("o", self.o, self.sq))}
        dk_host = torch.empty(self.total_k, self.heads, self.d)
        dv_host = torch.empty(self.total_k, self.heads, self.d_v)
        dk_strides, dv_strides = self.strides(dk_host, self.sk), self.strides(dv_host, self.sk)
        dk, dv = emulator.filled(dk_host.numel() * 2), emulator.filled(dv_host.numel() * 2)
        dq = emulator.filled(self.q.numel() * 2, 0 if objects["post"] is None else 0xFF)

        odo = objects["odo"]
        grid = (aiter_object.tiles(self.sq, odo.ts), self.heads, batch)
        aiter_object.launch(emulator, odo, grid, aiter_object.kernarg(
            o, do, delta, *strides["o"], *strides["do"], lse_head, lse_batch, 4, seqlen_q, self.d, starts[0],
            starts[0]))

        acc_head, acc_batch, acc_token, acc_bytes = self.accumulator()
        acc = emulator.filled(acc_bytes, 0) if objects["post"] else dq
        row = self.row
        grid_x = aiter_object.tiles(self.sk, row.ts)
        grid_x = aiter_object.tiles(grid_x, 2) if row.mask in (1, 2) else grid_x
        (q_h, q_b, q_s), (k_h, k_b, k_s), (v_h, v_b, v_s), (do_h, do_b, do_s) = (
            strides[n] for n in ("q", "k", "v", "do"))
        max_dq = self.sq if self.wide else -(-self.sq // 16) * 16
        aiter_object.launch(emulator, row, (grid_x, self.heads, batch), aiter_object.kernarg(
            acc, dk, dv, q, k, v, do, lse, delta, self.scale, LOG2E, seqlen_q, row.ts * k_s, q_h, q_b, q_s,
            self.heads // self.kv_heads, k_h, k_b, k_s, dk_strides[2], seqlen_k, self.d, self.d_v, self.heads,
            v_h, v_b, v_s, do_h, do_b, do_s, dk_strides[0], dk_strides[1], dv_strides[0], dv_strides[1], dv_strides[2],
            lse_head, starts[0], starts[1], starts[0], starts[1], max_dq, 0, 0))

        if post := objects["post"]:
            dq_h, dq_b, dq_s = strides["q"]
            grid = (aiter_object.tiles(self.sq, post.ts), self.heads, batch)
            aiter_object.launch(emulator, post, grid, aiter_object.kernarg(
                acc, dq, acc_head, acc_batch, acc_token, dq_h, dq_b, dq_s, seqlen_q, self.d, starts[0], starts[0]))
        return (delta.read(torch.float32, *lse_host.shape), dq.read(self.dtype, *self.q.shape),
                dk.read(self.dtype, *dk_host.shape), dv.read(self.dtype, *dv_host.shape))

    def judge(self, delta, dq, dk, dv) -> Result:
        results = []
        for n, (q_span, k_span) in enumerate(self.spans()):
            got_delta = delta[:, q_span] if self.group else delta[n]
            results += self.judge_one(n, q_span, k_span, got_delta, dq[q_span], dk[k_span], dv[k_span])
        return worst(*results)

    def judge_one(self, n, q_span, k_span, delta, dq, dk, dv) -> list[Result]:
        group = self.heads // self.kv_heads
        q, do, o = self.q[q_span].double(), self.do[q_span].double(), self.o[q_span].double()
        k, v = (t[k_span].double().repeat_interleave(group, 1) for t in (self.k, self.v))
        p, u = self.p[n], UNIT_ROUNDOFF[self.dtype]
        truncates = self.truncates()
        u *= 2 if truncates else 1
        row_sums = (o * do).sum(-1).T
        dp = torch.einsum("ihd,jhd->hij", do, v)
        ds = p * (dp - row_sums[..., None])
        size = p * (dp.abs() + row_sums.abs()[..., None])

        def judge(what, got, left, magnitude, right, extra=0.0):
            subscripts = "hij,jhd->ihd" if what == "dq" else "hij,ihd->jhd"
            exact = torch.einsum(subscripts, left, right)
            roundings = torch.einsum(subscripts, (u * left).square(), right.square()).sqrt()
            sums = torch.einsum(subscripts, magnitude, right.abs())
            bound = rounding(exact, self.dtype) * (u / UNIT_ROUNDOFF[self.dtype]) + 4 * roundings
            bound += reference.ACCUMULATION * sums + extra + (u * exact.abs() if truncates else 0) + 1e-30
            return compare(got, exact, bound, f"{what}{n}")

        s = self.scale
        extra = 0.0
        if not self.wide:
            tiles = range(0, len(k), self.row.ts)
            width = self.row.ts
            parts = sum(torch.einsum("hij,jhd->ihd", ds[..., t:t + width] * s, k[t:t + width]).abs() for t in tiles)
            extra = u * (len(tiles) + 1) * parts
        delta_bound = 2.0 ** -24 * self.d_v * (o * do).abs().sum(-1).T + 1e-30
        return [compare(delta, row_sums, delta_bound, f"delta{n}"), judge("dv", dv, p, p, do),
                judge("dk", dk, ds * s, size * s, q), judge("dq", dq, ds * s, size * s, k, extra)]


def partners(folder, row) -> dict:
    """The odo object of this element type and size, and what brings dq from its accumulator."""
    def pick(table, fits):
        return next(r for r in aiter_object.rows(folder, table) if r.mode == row.mode and fits(r))

    odo = pick("fmha_bwd_odo.csv", lambda r: r.dtype == row.dtype and r.hdim_v == row.hdim_v)
    post = None
    if row.atomic32:
        post = pick("fmha_bwd_dq_convert.csv", lambda r: r.hdim_q == row.hdim_q and r.dtype == row.dtype)
    elif row.hdim_q != 64:
        post = pick("fmha_bwd_dq_shuffle.csv", lambda r: r.hdim_q == row.hdim_q)
    return {"odo": odo, "post": post}


def problems(row) -> dict:
    if row.mode == 1:
        return {"group": GROUP}
    found = {"even": BATCH}
    stores_past_end = row.hdim_q == 128 and row.mask == 2 and row.atomic32
    uneven = BATCH_WHOLE_TILES if stores_past_end else BATCH_RAGGED
    if row.pssk:
        found["uneven"] = uneven
    if row.pddv and row.hdim_q == row.hdim_v:
        found["narrow"] = uneven + [16]
    return found


def runner(folder, row, problem):
    def run(emulator) -> Result:
        p = Problem(row, *problem)
        return p.judge(*p.launch(emulator, partners(folder, row)))
    return run


def cases(folder) -> list[Case]:
    return [Case(row.path, f"{row.path.stem}[{name}]", runner(folder, row, problem))
            for row in aiter_object.rows(folder, "fmha_bwd_dqdkdv.csv") for name, problem in problems(row).items()]
