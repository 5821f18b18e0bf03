"""topksoftmax: the k largest of the softmax of each token's logits, sorted, with their experts.

Facts: csrc/py_itfs_cu/asm_topksoftmax.cu; one workgroup takes the table's subm tokens. Logits of a token are distinct
in their type, so that the experts are determined.

Bound of a weight w: the exponent's argument (x - max) log2 e is rounded in f32, which moves its exp2 by the
argument's rounding; the sum over E experts adds log2 E roundings of a tree, and exp2, reciprocal and products a few
units: (2 |x - max| log2 e + log2 E + 8) u w, and twice that when the weights are divided by their sum.
"""
from __future__ import annotations

import math

import torch

import aiter_object
from aiter_object import Row, kernarg, tiles
from families import FP32_ROUNDOFF, Case, Result, compare, intact, worst

TABLE = "topksoftmax.csv"
PAD = 10   # the outputs' rows are longer than k, as in AITER's own test
FILL = 0xFF


def logits(tokens: int, experts: int, dtype: torch.dtype) -> torch.Tensor:
    """Some of the bf16 values with 1/8 <= |x| < 8, each at most once in a row; in f32 a little larger."""
    codes = torch.arange(0x3E00, 0x4100, dtype=torch.int16)
    grid = torch.cat((codes, codes | -0x8000)).view(torch.bfloat16)
    x = torch.stack([grid[torch.randperm(len(grid))[:experts]] for _ in range(tokens)])
    return x if dtype == torch.bfloat16 else x.float() * (1 + torch.rand(tokens, experts) / 512)


def run(emulator, row: Row, tokens: int, renormalize: bool) -> Result:
    x = logits(tokens, row.num_experts, torch.bfloat16 if row.dtype == "bf16" else torch.float32)
    stride = row.topk + PAD
    indices, weights = (emulator.filled(tokens * stride * 4, FILL) for _ in range(2))
    source = emulator.buffer(x)
    arguments = kernarg(indices, weights, source, tokens, row.num_experts, row.topk, int(renormalize), stride * 4)
    aiter_object.launch(emulator, row, (tiles(tokens, row.subm), 1, 1), arguments)

    x = x.double()
    value, index = x.softmax(1).topk(row.topk, 1)
    distance = x.amax(1, keepdim=True) - x.gather(1, index)
    units = 2 * distance * math.log2(math.e) + math.log2(row.num_experts) + 8
    if renormalize:
        value, units = value / value.sum(1, keepdim=True), 2 * units
    got_index, got_value = indices.read(torch.int32, tokens, stride), weights.read(torch.float32, tokens, stride)
    return worst(compare(got_index[:, :row.topk], index, 0.0, "experts"),
                 compare(got_value[:, :row.topk], value, units * FP32_ROUNDOFF * value, "weights"),
                 intact(got_index[:, row.topk:], FILL, "behind the experts"),
                 intact(got_value[:, row.topk:], FILL, "behind the weights"))


def cases(folder) -> list[Case]:
    found = []
    for row in aiter_object.rows(folder, TABLE):
        for name, tokens, renormalize in (("tokens", 3 * row.subm, False), ("ragged", 2 * row.subm + 1, True)):
            found.append(Case(row.path, f"{row.path.stem} {name}",
                              lambda emulator, row=row, tokens=tokens, renormalize=renormalize:
                              run(emulator, row, tokens, renormalize)))
    return found
