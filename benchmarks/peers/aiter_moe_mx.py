"""AITER's fmoe objects with MXFP4 tokens, weights and inner activations.

Facts: as aiter_moe.py, and csrc/include/mx_quant_utils.h, aiter/ops/shuffle.py: scales (one E8M0 byte per 32 values) in
tiles of 32 rows by 8, the tokens' in the order of the sorted list, the weights' in that of their rows.
Limit, for the 512 outputs of a token together: h is rounded to e2m1 once more, by at most a quarter of itself or 1/16 of
its block's largest, so the error's norm is at most 1.25 sqrt(sum dh^2 |w2|^2) for each expert, and what the 16-bit sums
add (u (parts + 1) sum |parts|).
"""
from __future__ import annotations

import torch

import aiter_object
import mx_layouts as mx
from aiter_memory import with_slack
from aiter_moe import COMPUTE_UNITS, DIM, EXPERTS, TOKENS, TOPK, Routing, activate, shuffled
from families import Case, Result, UNIT_ROUNDOFF, compare

TABLES = [f"fmoe_{out}_pertokenMXfp4_g1u1_{act}.csv" for out in ("bf16", "fp16") for act in ("silu", "gelu")]


def quantise(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Packed bytes, E8M0 bytes, values; blocks along the last dimension."""
    code, scale, exact = mx.encode(x.unflatten(-1, (-1, 32)), mx.FP4_VALUES)
    return mx.pack4(code).flatten(-2), scale, exact.flatten(-2)


def tiled_scales(scale: torch.Tensor) -> torch.Tensor:
    rows, columns = scale.shape
    return scale.view(rows // 32, 2, 16, columns // 8, 2, 4).permute(0, 3, 5, 2, 4, 1).contiguous().view(rows, columns)


class Layer:
    def __init__(self, table: str, inner: int):
        self.inner, self.act = inner, "gelu" if "gelu" in table else "silu"
        self.out_dtype = torch.float16 if table.startswith("fmoe_fp16") else torch.bfloat16
        (self.x, self.x_scale, self.x_exact), (self.w1, self.w1_scale, self.w1_exact), (
            self.w2, self.w2_scale, self.w2_exact) = (quantise(t.double()) for t in (
                torch.randn(TOKENS, DIM), torch.randn(EXPERTS, 2 * inner, DIM) / 16, torch.randn(EXPERTS, DIM, inner) / 16))

    def reference(self, routing: Routing, tile: int) -> tuple[torch.Tensor, torch.Tensor]:
        out = torch.zeros(TOKENS, DIM, dtype=torch.float64)
        parts, bound = torch.zeros_like(out), torch.zeros(TOKENS, dtype=torch.float64)
        for e in range(EXPERTS):
            tokens, slots = (routing.experts == e).nonzero(as_tuple=True)
            weight = routing.weights[tokens, slots].double()[:, None]
            y = self.x_exact[tokens] @ self.w1_exact[e].T
            h = activate(y[:, :self.inner], self.act) * y[:, self.inner:]
            peak = h.unflatten(-1, (-1, 32)).abs().amax(-1, keepdim=True).expand(-1, -1, 32).flatten(-2)
            dh = torch.maximum(h.abs() / 4, peak / 16)
            bound.index_add_(0, tokens, 1.25 * weight[:, 0] * (dh.square() @ self.w2_exact[e].square().sum(0)).sqrt())
            for at in range(0, self.inner, tile):
                share = h[:, at:at + tile] @ self.w2_exact[e][:, at:at + tile].T * weight
                out.index_add_(0, tokens, share)
                parts.index_add_(0, tokens, share.abs())
        sums = UNIT_ROUNDOFF[self.out_dtype] * (TOPK * aiter_object.tiles(self.inner, tile) + 1) * parts
        return out, bound + sums.norm(dim=-1)


def run_one(emulator, row, table: str, inner: int) -> Result:
    layer, routing = Layer(table, inner), Routing(row.subGU_m)
    tokens_of = (routing.ids.long() & 0xFFFFFF).clamp_max(TOKENS - 1)
    x_scale = tiled_scales(layer.x_scale[tokens_of])
    w1_scale, w2_scale = (tiled_scales(s.flatten(0, 1)) for s in (layer.w1_scale, layer.w2_scale))
    x, w1, w2, xs, w1s, w2s, ids, weights, owners, valid = (with_slack(emulator, t) for t in (
        layer.x, shuffled(layer.w1), shuffled(layer.w2), x_scale, w1_scale, w2_scale, routing.ids, routing.sorted_weights,
        routing.owners, routing.valid))
    out = emulator.filled(TOKENS * DIM * 2, 0)
    persistent = row.tg_num_perCU * COMPUTE_UNITS if row.ps else 0
    columns = aiter_object.tiles(inner, row.subGU_n)
    arguments = aiter_object.kernarg(
        out, x, w1, valid, w2, xs, w1s, w2s, None, ids, weights, owners, DIM, inner, TOKENS, EXPERTS, DIM // 2, DIM // 2,
        inner // 2, DIM * 2, DIM // 2 * inner * 2, inner // 2 * DIM, w1_scale.numel() // EXPERTS,
        w2_scale.numel() // EXPERTS, inner * 4, TOPK, persistent // columns * columns, columns)
    grid = (persistent, 1, 1) if row.ps else (columns, len(routing.owners), 1)
    aiter_object.launch(emulator, row, grid, arguments)
    expected, bound = layer.reference(routing, row.subGU_n)
    error = (out.read(layer.out_dtype, TOKENS, DIM).double() - expected).norm(dim=-1)
    return compare(error, torch.zeros_like(error), bound, "token")


def runner(row, table, inner):
    return lambda emulator: run_one(emulator, row, table, inner)


def cases(folder) -> list[Case]:
    return [Case(row.path, f"{row.path.stem}[{row.subGU_n * 2}]", runner(row, table, row.subGU_n * 2))
            for table in TABLES for row in aiter_object.rows(folder, table) if row.get("flat", 0) == 0]
