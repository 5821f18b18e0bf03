"""AITER's fmoe objects (one launch: gate and up, activation, requantisation, down, weighted sum over experts) and
fmoe_2stages (gate and up only): fp8 and int8 per token, fp8 by 128 x 128 blocks, silu and gelu.

Facts: csrc/py_itfs_cu/asm_fmoe.cu and asm_moe_2stage.cu (28 and 22 arguments of 16 bytes, grids, persistent
workgroups), aiter/fused_moe.py (scales, which rows are the gate), aiter/ops/shuffle.py, and the CSV columns: subGU_m
tokens by subGU_n inner columns are one workgroup's tile, ps 1 a persistent grid over 256 compute units.

Tokens are sorted by expert; every expert's list is padded to whole tiles of subGU_m with the token number M (none).
Objects that the host never selects, and so are not run: int8 with the weight first, int8 without a gate (g1u0) whose
smf is not 1, bf16 without quantisation.

ONE_BLOCK names four objects that are right only for an output of one block of 256 columns, and run with that width:
their loop over blocks reads each result from LDS but, unlike that of every sibling, never writes it there. With an even
number of blocks all but the last stay 0. The host does not choose them (asm_fmoe.cu, get_heuristic_kernel: at equal
rounds ps 1 wins, and the `_ps` twin has the same tile), and no tuned table names them.

The reference is float64 on the dequantised weights and tokens. A kernel rounds the activations h of a token to 8 bits
with a scale of their own, and adds its tile's share to the output with 16-bit atomics:

    4 sqrt(sum (dh w2)^2) * weight + u (parts + 1) sum |parts| + 2^-14 sum |h w2| weight

dh is u_h |h| for e4m3 (u_h = 2^-4), max |h| of the tile / 254 for int8; u the output type's unit roundoff, a part what
one expert and one tile add. The last term is for the approximate exponential and reciprocal and fp32 sums.
"""
from __future__ import annotations

import torch

import aiter_object
from aiter_memory import with_slack
from families import Case, Result, UNIT_ROUNDOFF, compare, rounding

COMPUTE_UNITS = 256
BLOCK = 256
ONE_BLOCK = {f"fmoe_{out}_pertokenFp8_g1u1_vs_{act}_1tg_32x128.co"
             for out in ("bf16", "fp16") for act in ("silu", "gelu")}
TOKENS, DIM, EXPERTS, TOPK = 45, 512, 5, 2
ACTIVATION = 2.0 ** -14
TABLES = [f"fmoe_{out}_{kind}_{act}{extra}.csv" for out in ("bf16", "fp16") for act in ("silu", "gelu")
          for kind, extra in (("pertokenFp8_g1u1", ""), ("pertokenInt8_g1u1", ""), ("pertokenFp8_g1u1", "_tkw1"),
                              ("blockscaleFp8_g1u1", ""), ("blockscaleBf16_g1u1", ""))
          if (out, kind) != ("fp16", "blockscaleBf16_g1u1")]
STAGE1_TABLES = [f"fmoe_stage1_bf16_pertoken{kind}.csv" for kind in ("Fp8_g1u1", "Int8_g1u1", "Fp8_doweight_g1u1")]
LARGEST = {torch.float8_e4m3fn: 448.0, torch.int8: 127.0}


def quantise(x: torch.Tensor, dtype, dims) -> tuple[torch.Tensor, torch.Tensor]:
    """Values of the 8-bit type and the f32 scale of each group that `dims` spans (kept as 1)."""
    scale = (x.abs().amax(dims, keepdim=True) / LARGEST[dtype]).float()
    y = x / scale.double()
    return (y.round() if dtype == torch.int8 else y.float()).to(dtype), scale


def shuffled(weights: torch.Tensor) -> torch.Tensor:
    return torch.stack([aiter_object.shuffle_weight(w) for w in weights])


def activate(gate: torch.Tensor, name: str) -> torch.Tensor:
    return torch.nn.functional.silu(gate) if name == "silu" else torch.nn.functional.gelu(gate)


def width(row) -> int:
    return BLOCK if row.co_name in ONE_BLOCK else DIM


class Routing:
    """Which experts each token goes to, and the lists that the sorting kernel makes of it."""

    def __init__(self, tile: int, tokens: int = TOKENS):
        self.experts = torch.stack([torch.randperm(EXPERTS - 1)[:TOPK] for _ in range(tokens)])  # the last gets none
        self.weights = torch.rand(tokens, TOPK) + 0.1
        ids, weights, owners = [], [], []
        for e in range(EXPERTS):
            tokens_of, slots = (self.experts == e).nonzero(as_tuple=True)
            pad = -len(tokens_of) % tile
            ids.append(torch.cat([slots << 24 | tokens_of, torch.full((pad,), TOPK << 24 | tokens)]))
            weights.append(torch.cat([self.weights[tokens_of, slots], torch.zeros(pad)]))
            owners += [e] * (len(ids[-1]) // tile)
        self.ids, self.sorted_weights = torch.cat(ids).to(torch.int32), torch.cat(weights)
        self.owners = torch.tensor(owners, dtype=torch.int32)
        self.valid = torch.tensor([len(self.ids), tokens], dtype=torch.int32)


class Layer:
    """Weights and tokens of one row's formats, dequantised beside the bytes that the kernel gets."""

    def __init__(self, row, table: str, inner: int):
        self.row, self.inner, self.gated = row, inner, "g1u1" in table
        self.dim = width(row)
        self.act = "gelu" if "gelu" in table else "silu"
        self.out_dtype = torch.float16 if table.startswith("fmoe_fp16") else torch.bfloat16
        self.dtype = torch.int8 if "Int8" in table else torch.float8_e4m3fn
        self.blocks, self.weight_first = "blockscale" in table, "tkw1" in table or "doweight" in table
        wide = inner * 2 if self.gated else inner
        x = torch.randn(TOKENS, self.dim).bfloat16()
        w1, w2 = torch.randn(EXPERTS, wide, self.dim) / 16, torch.randn(EXPERTS, self.dim, inner) / 16
        if self.blocks:
            (self.x, x_scale), (self.w1, w1_scale), (self.w2, w2_scale) = (
                self.by_block(x.double(), False), self.by_block(w1.double(), True), self.by_block(w2.double(), True))
            self.scales = x_scale.t().contiguous(), w1_scale, w2_scale
            if "blockscaleBf16" in table:  # the kernel quantises the tokens itself, by blocks of 128
                self.x = x
        else:
            (self.x, x_scale), (self.w1, w1_scale), (self.w2, w2_scale) = (
                quantise(t.double(), self.dtype, -1) for t in (x, w1, w2))
            self.exact = [q.double() * s.double() for q, s in
                          ((self.x, x_scale), (self.w1, w1_scale), (self.w2, w2_scale))]
            self.scales = x_scale, w1_scale, w2_scale

    def by_block(self, t: torch.Tensor, square: bool):
        rows = 128 if square else 1
        tiled = t.view(*t.shape[:-2], t.shape[-2] // rows, rows, t.shape[-1] // 128, 128)
        q, scale = quantise(tiled, self.dtype, (-3, -1))
        exact = (q.double() * scale.double()).view(t.shape)
        self.exact = getattr(self, "exact", []) + [exact]
        return q.view(t.shape), scale.squeeze(-1).squeeze(-2)

    def inner_of(self, expert: int, tokens: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        x, w1, _ = self.exact
        y = x[tokens] @ w1[expert].T
        if self.weight_first:
            y = y * weight
        if not self.gated:
            return activate(y, self.act)
        return activate(y[:, :self.inner], self.act) * y[:, self.inner:]

    def reference(self, routing: Routing) -> tuple[torch.Tensor, torch.Tensor]:
        out, bound, parts_sum = (torch.zeros(TOKENS, self.dim, dtype=torch.float64) for _ in range(3))
        tile, parts_of = self.row.subGU_n, 0
        for e in range(EXPERTS):
            tokens, slots = (routing.experts == e).nonzero(as_tuple=True)
            weight = routing.weights[tokens, slots].double()[:, None]
            h = self.inner_of(e, tokens, weight)
            if self.weight_first:
                weight = torch.ones_like(weight)
            w2 = self.exact[2][e]
            for at in range(0, self.inner, tile):
                part, w = h[:, at:at + tile], w2[:, at:at + tile]
                dh = part.abs() * 2.0 ** -4 if self.dtype != torch.int8 else (
                    part.abs().amax(-1, keepdim=True) / 254).expand_as(part)
                share = part @ w.T * weight
                out.index_add_(0, tokens, share)
                parts_sum.index_add_(0, tokens, share.abs())
                quantised = 4 * (dh.square() @ w.square().T).sqrt() * weight
                bound.index_add_(0, tokens, quantised + ACTIVATION * (part.abs() @ w.abs().T) * weight)
        parts_of = TOPK * aiter_object.tiles(self.inner, tile)
        return out, bound + UNIT_ROUNDOFF[self.out_dtype] * (parts_of + 1) * parts_sum


def kernarg(layer: Layer, routing: Routing, buffers, persistent: int) -> bytes:
    row, element = layer.row, layer.w1.element_size()
    columns = aiter_object.tiles(layer.inner, row.subGU_n)
    stride_w1, stride_w2 = layer.dim * element, layer.inner * element
    strides = [s.stride(0) * 4 for s in layer.scales[1:]]
    # The block-scale objects' metadata have two more arguments than the host passes: 0.
    return aiter_object.kernarg(
        *buffers, layer.dim, layer.inner, TOKENS, EXPERTS, layer.dim * layer.x.element_size(), stride_w1, stride_w2,
        layer.dim * 2, stride_w1 * layer.w1.shape[1], stride_w2 * layer.dim, *strides, layer.inner * 4, TOPK,
        persistent // columns * columns, columns, *[0] * (2 if layer.blocks else 0))


def run_one_stage(emulator, row, table: str, inner: int) -> Result:
    layer = Layer(row, table, inner)
    routing = Routing(row.subGU_m)
    x, w1, w2, ids, weights, owners, valid = (with_slack(emulator, t) for t in (
        layer.x, shuffled(layer.w1), shuffled(layer.w2), routing.ids, routing.sorted_weights, routing.owners,
        routing.valid))
    scales = [with_slack(emulator, s) for s in layer.scales]
    out = emulator.filled(TOKENS * layer.dim * 2, 0)
    persistent = row.tg_num_perCU * COMPUTE_UNITS if row.ps else 0
    columns = aiter_object.tiles(inner, row.subGU_n)
    grid = (persistent, 1, 1) if row.ps else (columns, len(routing.owners), 1)
    arguments = kernarg(layer, routing, [out, x, w1, valid, w2, *scales, None, ids, weights, owners], persistent)
    aiter_object.launch(emulator, row, grid, arguments)
    expected, bound = layer.reference(routing)
    return compare(out.read(layer.out_dtype, TOKENS, layer.dim), expected, bound)


def runner(row, table, inner):
    return lambda emulator: run_one_stage(emulator, row, table, inner)


def run_first_stage(emulator, row, table: str, inner: int) -> Result:
    """Every token's activations for each of its experts: out [token, slot, inner], bound by one rounding to bf16."""
    layer, routing = Layer(row, table, inner), Routing(row.tile_m)
    x, w1, ids, weights, owners, valid = (with_slack(emulator, t) for t in (
        layer.x, shuffled(layer.w1), routing.ids, routing.sorted_weights, routing.owners, routing.valid))
    x_scale, w1_scale = (with_slack(emulator, s) for s in layer.scales[:2])
    out = emulator.filled(TOKENS * TOPK * inner * 2)
    stride = DIM * layer.x.element_size()
    arguments = aiter_object.kernarg(
        out, x, w1, valid, x_scale, w1_scale, None, ids, owners, DIM, inner, TOKENS, EXPERTS, stride, stride,
        TOPK * inner * 2, stride * layer.w1.shape[1], layer.scales[1].stride(0) * 4, inner * 4, TOPK, 0,
        0 if layer.act == "silu" else 1, weights if layer.weight_first else None)
    aiter_object.launch(emulator, row, (aiter_object.tiles(inner, row.tile_n), len(routing.owners), 1), arguments)
    expected = torch.empty(TOKENS, TOPK, inner, dtype=torch.float64)
    size = torch.empty_like(expected)
    exact, w1_exact = layer.exact[0], layer.exact[1]
    for e in range(EXPERTS):
        tokens, slots = (routing.experts == e).nonzero(as_tuple=True)
        expected[tokens, slots] = layer.inner_of(e, tokens, routing.weights[tokens, slots].double()[:, None])
        sums = exact[tokens].abs() @ w1_exact[e].abs().T
        size[tokens, slots] = sums[:, :inner] * sums[:, inner:]
    bound = rounding(expected, torch.bfloat16) + ACTIVATION * expected.abs() + 2.0 ** -20 * size
    return compare(out.read(torch.bfloat16, *expected.shape), expected, bound)


def stage1_runner(row, table, inner):
    return lambda emulator: run_first_stage(emulator, row, table, inner)


def case_name(row) -> str:
    restriction = f",width={BLOCK}" if row.co_name in ONE_BLOCK else ""
    return f"{row.path.stem}[{row.subGU_n * 2}{restriction}]"


def cases(folder) -> list[Case]:
    whole = [Case(row.path, case_name(row), runner(row, table, row.subGU_n * 2))
             for table in TABLES for row in aiter_object.rows(folder, table)
             if row.smf == 0 and row.get("flat", 0) == 0]
    return whole + [Case(row.path, f"{row.path.stem}[{row.tile_n * 2}]", stage1_runner(row, table, row.tile_n * 2))
                    for table in STAGE1_TABLES for row in aiter_object.rows(folder, table)]
