"""Triton's flash attention, forward (causal, grouped heads, log-sum-exp, fp8) and backward.

Reference: float64 softmax attention and its gradients of the stored values. With u = 2^-24, u_P the roundoff of the
type that probabilities P (and dS) are rounded to before the second matrix product, and d the error of a logit s,
    d = (D + 2) u scale sum |q||k| + 8 u (|s| + |max s| + 1)       (product, scaling, subtraction, exp2 to 2 units)
one output element is bounded by
    o   one rounding + sum P|v| (u_P + d + (S + 16) u) + |o| (sum P d + (S + 16) u) + max P sum |v| half a denormal
    lse sum P d + (S + 16) u + 4 u |lse|
    dv  one rounding + sum P|do| (u_P + d + (S + 16) u)
    dk, dq  one rounding + sum |x| (e + u_P |dS|) + (S + 16) u sum |dS||x|,  x = q or k,
        e = scale (P d |dP - delta| + P (D + 2) u sum |do||v|) + 4 u |dS|, the error of dS before it is rounded
"""
from __future__ import annotations

import math

import torch

from families import FP32_ROUNDOFF, HALF_DENORMAL, UNIT_ROUNDOFF, Case, Result, compare, intact, rounding, worst
from triton_gemm import FILL, operand, wide
from triton_object import TritonObject, objects

U = FP32_ROUNDOFF
ROWS_AFTER = 3  # of every head of o: must stay as they were


def planes(heads: int, rows: int, depth: int, dtype: torch.dtype) -> torch.Tensor:
    return operand(heads * rows, depth, dtype).view(heads, rows, depth)


class Softmax:
    """P and the bound of its logits' errors, for q, k [heads, rows, D] in float64."""

    def __init__(self, q, k, scale: float, causal: bool):
        depth = q.shape[-1]
        self.s = scale * q @ k.transpose(1, 2)
        if causal:
            rows, columns = self.s.shape[1:]
            hidden = torch.arange(columns) > torch.arange(rows)[:, None] + columns - rows
            self.s = self.s.masked_fill(hidden, -math.inf)
        self.lse = self.s.logsumexp(-1)
        self.p = (self.s - self.lse[..., None]).exp()
        size = self.s.masked_fill(self.s.isinf(), 0).abs()
        self.d = (depth + 2) * U * scale * q.abs() @ k.abs().transpose(1, 2)
        self.d += 8 * U * (size + size.amax(-1, keepdim=True) + 1)


def forward_bounds(soft: Softmax, v, o, p_type: torch.dtype, out: torch.dtype):
    summing = (v.shape[1] + 16) * U
    mean_d = (soft.p * soft.d).sum(-1, keepdim=True)
    bound = rounding(o, out) + (soft.p * (UNIT_ROUNDOFF[p_type] + soft.d + summing)) @ v.abs() + o.abs() * (mean_d + summing)
    bound += HALF_DENORMAL[p_type] * soft.p.amax(-1, keepdim=True) * v.abs().sum(1, keepdim=True)
    return bound, mean_d[..., 0] + summing + 4 * U * soft.lse.abs()


def forward(obj: TritonObject) -> list[Case]:
    def run(emulator) -> Result:
        batch, heads, kv_heads, depth, dtype = 2, 4, 2, obj["D"], obj.dtype("q")
        sq, sk = obj["BM"] + 37, obj["BM"] + 77
        q, k, v = (planes(batch * h, s, depth, dtype) for h, s in ((heads, sq), (kv_heads, sk), (kv_heads, sk)))
        plane = (sq + ROWS_AFTER) * depth
        o, lse = emulator.filled(batch * heads * plane * dtype.itemsize), emulator.filled(batch * heads * sq * 4)
        scale = depth ** -0.5
        strides = dict(sqb=heads * sq * depth, sqh=sq * depth, skb=kv_heads * sk * depth, skh=sk * depth,
                       svb=kv_heads * sk * depth, svh=sk * depth, sob=heads * plane, soh=plane, sqs=depth, sks=depth,
                       svs=depth, sos=depth)
        device = dict(zip("qkv", map(emulator.buffer, (q, k, v))))
        obj.launch(emulator, dict(device, o=o, lse=lse, Sq=sq, Sk=sk, H=heads, HKV=kv_heads,
                                  scale_log2=scale * math.log2(math.e), **strides), B=batch)
        k64, v64 = (wide(t).repeat_interleave(heads // kv_heads, 0) for t in (k, v))
        soft = Softmax(wide(q), k64, scale, obj["CAUSAL"])
        reference = soft.p @ v64
        bound, lse_bound = forward_bounds(soft, v64, reference, dtype, dtype)
        got = o.read(dtype, batch * heads, sq + ROWS_AFTER, depth)
        return worst(compare(wide(got[:, :sq]), reference, bound, "o"), intact(got[:, sq:], FILL, "rows after o"),
                     compare(lse.read(torch.float32, batch * heads, sq), soft.lse, lse_bound, "lse"))
    return [Case(obj.path, obj.name, run)]


def forward_fp8(obj: TritonObject) -> list[Case]:
    def run(emulator) -> Result:
        heads, s, depth = 2, 2 * obj["BM"], obj["D"]
        q, k, v = (planes(heads, s, depth, obj.dtype("q")) for _ in range(3))
        o = emulator.filled(heads * s * depth * obj.dtype("o").itemsize)
        scale = depth ** -0.5
        device = dict(zip("qkv", map(emulator.buffer, (q, k, v))))
        obj.launch(emulator, dict(device, o=o, S=s, scale_log2=scale * math.log2(math.e)), B=1, H=heads)
        soft = Softmax(wide(q), wide(k), scale, causal=False)
        reference = soft.p @ wide(v)
        bound, _ = forward_bounds(soft, wide(v), reference, obj.dtype("q"), obj.dtype("o"))
        return compare(wide(o.read(obj.dtype("o"), heads, s, depth)), reference, bound, "o")
    return [Case(obj.path, obj.name, run)]


def gradients(q, k, v, do, lse, delta, scale: float, causal: bool, rounded: torch.dtype, outputs: dict) -> dict:
    """name -> (reference, bound); lse and delta are what the kernel is given."""
    soft = Softmax(q, k, scale, causal)
    p = (soft.s - lse[..., None]).exp()
    d = soft.d + 8 * U * lse.abs()[..., None]
    dp = do @ v.transpose(1, 2)
    ds = scale * p * (dp - delta[..., None])
    e = scale * p * (d * (dp - delta[..., None]).abs() + (q.shape[-1] + 2) * U * do.abs() @ v.abs().transpose(1, 2))
    e += 4 * U * ds.abs()
    summing = (k.shape[1] + 16) * U
    p_error = p * (UNIT_ROUNDOFF[rounded] + d + summing)
    ds_error = e + (UNIT_ROUNDOFF[rounded] + summing) * ds.abs()
    found = dict(dv=(p.transpose(1, 2) @ do, p_error.transpose(1, 2) @ do.abs()),
                 dk=(ds.transpose(1, 2) @ q, ds_error.transpose(1, 2) @ q.abs()), dq=(ds @ k, ds_error @ k.abs()))
    return {name: (ref, bound + rounding(ref, outputs[name])) for name, (ref, bound) in found.items()}


def backward(obj: TritonObject) -> list[Case]:
    def run(emulator) -> Result:
        heads, s, depth, dtype = 2, obj["BN"] + 36, obj["D"], obj.dtype("q")
        scale = depth ** -0.5
        host = {name: planes(heads, s, depth, dtype) for name in ("q", "k", "v", "do")}
        q, k, v, do = (wide(t) for t in host.values())
        soft = Softmax(q, k, scale, obj["CAUSAL"])
        host |= dict(lse=soft.lse.float(), delta=(do * (soft.p @ v)).sum(-1).float(),
                     dq=torch.zeros(heads, s, depth, dtype=obj.dtype("dq")))
        device = {name: emulator.buffer(t) for name, t in host.items()}
        for name in ("dk", "dv"):
            device[name] = emulator.filled(heads * s * depth * obj.dtype(name).itemsize)
        obj.launch(emulator, dict(device, S=s, scale=scale, ss=depth), B=1, H=heads)
        outputs = {name: obj.dtype(name) for name in ("dq", "dk", "dv")}
        expected = gradients(q, k, v, do, wide(host["lse"]), wide(host["delta"]), scale, obj["CAUSAL"], dtype, outputs)
        return worst(*(compare(wide(device[name].read(outputs[name], heads, s, depth)), *expected[name], name)
                       for name in outputs))
    return [Case(obj.path, obj.name, run)]


KERNELS = {"flash_fwd_kernel": forward, "flash_fp8_kernel": forward_fp8, "flash_bwd_kernel": backward}


def cases(folder) -> list[Case]:
    return [case for obj in objects(folder) if obj.symbol in KERNELS for case in KERNELS[obj.symbol](obj)]
