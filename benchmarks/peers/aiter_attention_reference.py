"""Attention in float64, and how far the formats of a kernel may move it.

A forward kernel computes p = softmax(scale * q k^T), rounds p to the format of its second matrix product, and rounds
o = p v. With unit roundoffs u_o of the output and u_p of p (and below p's normal range an absolute step, relative to
the row's largest p), every element of o may move by

    u_o |o|  +  4 sqrt(sum_j (dp_j v_j)^2)  +  2^-16 sum_j p_j |v_j|,     dp_j = max(u_p p_j, floor * max p)

The middle term is 4 units of the roundings' root sum of squares: each is uniform in +-dp, so its deviation is dp/sqrt 3
and the term is 6.9 deviations. The last one covers fp32 accumulation, exp2 and rcp.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

import torch

ACCUMULATION = 2.0 ** -16


@dataclass
class Attention:
    """One sequence: o [q, head, d], lse and p by [head, q(, k)], v repeated to the query heads."""
    o: torch.Tensor
    lse: torch.Tensor
    p: torch.Tensor
    v: torch.Tensor


def bottom_right(rows: int, columns: int) -> torch.Tensor:
    """True where a causal mask hides a key: the last query sees all keys."""
    return torch.arange(columns)[None] > torch.arange(rows)[:, None] + columns - rows


def top_left(rows: int, columns: int) -> torch.Tensor:
    return torch.arange(columns)[None] > torch.arange(rows)[:, None]


def attend(q, k, v, scale: float, hidden: torch.Tensor | None = None) -> Attention:
    """q [sq, h, d], k and v [sk, h_kv, d] in float64; rows without a key give 0."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = torch.einsum("ihd,jhd->hij", q, k) * scale
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    lse = torch.logsumexp(scores, -1)
    p = torch.exp(scores - lse[..., None]).nan_to_num(nan=0.0)
    return Attention(torch.einsum("hij,jhd->ihd", p, v), lse, p, v)


def forward_bound(a: Attention, u_o: float, u_p: float, floor: float) -> torch.Tensor:
    dp = torch.maximum(a.p * u_p, a.p.amax(-1, keepdim=True) * floor) * (a.p > 0)
    rounded_p = torch.einsum("hij,jhd->ihd", dp.square(), a.v.square()).sqrt()
    return a.o.abs() * u_o + 4 * rounded_p + ACCUMULATION * torch.einsum("hij,jhd->ihd", a.p, a.v.abs()) + 1e-30


def lse_bound(a: Attention, width: int, exp2: float = 0.0, exp2_mean: float = 0.0) -> torch.Tensor:
    """fp32 dot products of `width` terms, a log and a sum: 2^-24 of each, in absolute terms near 1. exp2: relative
    error of an approximate exponential and of its mean; they sum as p's roundings do."""
    return 2.0 ** -24 * (width + 64) * (1 + a.lse.abs() / 16) + exp2_mean + 4 * exp2 * a.p.square().sum(-1).sqrt()
