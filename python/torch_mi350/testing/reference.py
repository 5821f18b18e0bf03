"""References in float64 on the CPU, and the rounding model that the numerics policy compares with.

    exact   d = alpha * a @ b + beta * c        float64 throughout, inputs exact
    model   the same, products accumulated in fp32 in steps along k as an MFMA adds them, alpha and beta applied
            in fp32, one rounding to the output type

beta = 0 ignores c, alpha = 0 and k = 0 ignore the product: no NaN of the ignored operand gets through.
"""
from __future__ import annotations

from typing import NamedTuple

import torch

# Products summed between two roundings of the accumulator. fp32: one, confirmed bit for bit against the kernels
# on constant operands. 16-bit: the device's order is unpublished; 8 is stricter than one by one.
STEP = {torch.bfloat16: 8, torch.float16: 8, torch.float32: 1}


class Gemm(NamedTuple):
    exact: torch.Tensor      # float64
    model: torch.Tensor      # output type
    magnitude: torch.Tensor  # float64, |alpha| |a| @ |b| + |beta| |c|: what rounding errors are relative to


def gemm(a, b, c=None, *, alpha=1.0, beta=1.0, out_dtype=None) -> Gemm:
    """a (m, k) @ b (k, n), or batches of them: (..., m, k) @ (..., k, n). c: broadcast to the product, or None."""
    out_dtype = out_dtype or a.dtype
    a, b = a.detach().cpu(), b.detach().cpu()
    shape = (*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    use_product = alpha != 0 and a.shape[-1] > 0
    exact = torch.zeros(shape, dtype=torch.float64)
    magnitude, model = exact.clone(), exact.float()
    if use_product:
        exact = alpha * (a.double() @ b.double())
        magnitude = abs(alpha) * (a.double().abs() @ b.double().abs())
        model = _accumulate(a.float(), b.float(), STEP[a.dtype]).reshape(shape) * alpha
    if c is not None and beta != 0:
        c = c.detach().cpu().expand(shape)
        exact = exact + beta * c.double()
        magnitude = magnitude + abs(beta) * c.double().abs()
        model = model + beta * c.float()
    return Gemm(exact, model.to(out_dtype), magnitude)


def _accumulate(a, b, step):
    if a.dim() > 2 or b.dim() > 2:
        batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = (t.expand(*batch, *t.shape[-2:]).flatten(0, -3) for t in (a, b))
    total = torch.zeros(*a.shape[:-1], b.shape[-1], dtype=torch.float32)
    add = total.addmm_ if a.dim() == 2 else total.baddbmm_
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # each product is too small to pay for a barrier
    try:
        for start in range(0, a.shape[-1], step):
            add(a[..., start:start + step], b[..., start:start + step, :])
    finally:
        torch.set_num_threads(threads)
    return total
