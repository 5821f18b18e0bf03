"""Triton's sort, top-k, argmax, scans, gather, histogram, transpose.

References: torch and numpy on the same values; all exact, except the scans. There a sum of t terms is bounded by
(t + 2 log2 N + 4) u times the same sum of magnitudes for the linear recurrence, whose products have t factors, and by
its depth (elements per thread plus the tree) for the plain ones.
"""
from __future__ import annotations

import math

import numpy as np
import torch

from families import FP32_ROUNDOFF, Case, Result, compare, worst
from triton_gemm import operand, wide
from triton_object import TritonObject, objects

U = FP32_ROUNDOFF
ROWS = 3


def with_ties(n: int, dtype: torch.dtype) -> torch.Tensor:
    """Random rows with equal elements, extremes and a row that is one value."""
    if dtype.is_floating_point:
        x = torch.randn(ROWS, n).round(decimals=1).to(dtype)
        x[0, :3] = torch.tensor([math.inf, -math.inf, 0.0])
    else:
        x = torch.randint(-50, 50, (ROWS, n)).to(dtype)
        x[0, :2] = torch.tensor([torch.iinfo(dtype).min, torch.iinfo(dtype).max])
    x[-1] = 7
    return x


def exact(emulator, obj: TritonObject, inputs: dict, expected: dict, scalars: dict | None = None, **grid) -> Result:
    """One launch whose outputs must equal the references."""
    keep = {name: emulator.buffer(t) for name, t in inputs.items()}
    out = {name: emulator.filled(t.numel() * obj.dtype(name).itemsize) for name, t in expected.items()}
    obj.launch(emulator, {**keep, **out, **(scalars or {})}, **grid)
    return worst(*(compare(wide(out[name].read(obj.dtype(name), *t.shape)), wide(t), 0.0, name) for name, t in expected.items()))


def sort(obj: TritonObject) -> list[Case]:
    def run(emulator) -> Result:
        x = with_ties(obj["N"], obj.dtype("x"))
        return exact(emulator, obj, {"x": x}, {"y": x.sort(-1, descending=obj["DESC"]).values}, M=ROWS)
    return [Case(obj.path, obj.name, run)]


def top_k(obj: TritonObject) -> list[Case]:
    """Of equal values the smaller index comes first."""
    def run(emulator) -> Result:
        x = with_ties(obj["BN"] - 100, obj.dtype("x"))
        values, indices = torch.sort(x, dim=-1, descending=True, stable=True)
        expected = {"vals": values[:, :obj["K"]], "idx": indices[:, :obj["K"]]}
        return exact(emulator, obj, {"x": x}, expected, {"N": x.shape[1]}, M=ROWS)
    return [Case(obj.path, obj.name, run)]


def argmax(obj: TritonObject) -> list[Case]:
    def run(emulator) -> Result:
        x = with_ties(obj["BN"] - 100, obj.dtype("x"))
        first = torch.from_numpy(np.argmax(x.numpy(), axis=1))
        return exact(emulator, obj, {"x": x}, {"out": first}, {"N": x.shape[1]}, M=ROWS)
    return [Case(obj.path, obj.name, run)]


def recurrence(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """h[t] = a[t] h[t-1] + b[t]"""
    h, out = torch.zeros_like(a[:, 0]), []
    for t in range(a.shape[1]):
        h = a[:, t] * h + b[:, t]
        out.append(h)
    return torch.stack(out, 1)


def tree_depth(obj: TritonObject, n: int) -> int:
    return 4 * -(-n // obj.facts["block"][0]) + 16


def scan(obj: TritonObject) -> list[Case]:
    def run(emulator) -> Result:
        n = obj["N"]
        a, b = torch.rand(ROWS, n) * 1.9 - 0.95, torch.randn(ROWS, n)
        keep = emulator.buffer(a), emulator.buffer(b)
        out = {name: emulator.filled(ROWS * n * 4) for name in "yz"}
        obj.launch(emulator, dict(a=keep[0], b=keep[1], **out), M=ROWS)
        a, b = wide(a), wide(b)
        terms = torch.arange(1, n + 1) + 2 * math.log2(n) + 4
        y, z = (wide(out[name].read(torch.float32, ROWS, n)) for name in "yz")
        return worst(compare(y, recurrence(a, b), terms * U * recurrence(a.abs(), b.abs()), "y"),
                     compare(z, b.cumsum(1), tree_depth(obj, n) * U * b.abs().cumsum(1), "z"))
    return [Case(obj.path, obj.name, run)]


def reverse_cumsum(t: torch.Tensor) -> torch.Tensor:
    return t.flip(1).cumsum(1).flip(1)


def shapes(obj: TritonObject) -> list[Case]:
    """Reversal by gather, interleave(x, -x), reverse cumsum along the first axis of a [32, N/32] view."""
    def run(emulator) -> Result:
        n = obj["N"]
        x = torch.randn(ROWS, n)
        keep = emulator.buffer(x)
        out = {name: emulator.filled(ROWS * n * 4 * (2 if name == "z" else 1)) for name in "yzw"}
        obj.launch(emulator, dict(x=keep, **out), M=ROWS)
        view = wide(x).view(ROWS, 32, n // 32)
        w = wide(out["w"].read(torch.float32, ROWS, 32, n // 32))
        return worst(compare(wide(out["y"].read(torch.float32, ROWS, n)), wide(x).flip(1), 0.0, "y"),
                     compare(wide(out["z"].read(torch.float32, ROWS, 2 * n)), wide(torch.stack([x, -x], -1).flatten(1)), 0.0, "z"),
                     compare(w, reverse_cumsum(view), 32 * U * reverse_cumsum(view.abs()), "w"))
    return [Case(obj.path, obj.name, run)]


def gather(obj: TritonObject) -> list[Case]:
    def run(emulator) -> Result:
        x, idx = torch.randn(ROWS, obj["N"]), torch.randint(0, obj["N"], (ROWS, obj["N"]))
        return exact(emulator, obj, {"x": x, "idx": idx.to(torch.int32)}, {"y": x.gather(1, idx)}, M=ROWS)
    return [Case(obj.path, obj.name, run)]


def transpose(obj: TritonObject) -> list[Case]:
    def run(emulator) -> Result:
        m, n = obj["B"] + 16, 2 * obj["B"] + 48
        x = operand(m, n, obj.dtype("x"))
        return exact(emulator, obj, {"x": x}, {"y": x.t().contiguous()}, {"M": m, "N": n})
    return [Case(obj.path, obj.name, run)]


def histogram(obj: TritonObject) -> list[Case]:
    def run(emulator) -> Result:
        n, bins = 2 * obj["BLOCK"] + 77, obj["BINS"]
        x = (torch.randn(n).abs() * bins / 4).clamp(max=bins - 1).to(torch.int32)
        keep, h = emulator.buffer(x), emulator.buffer(torch.full((bins,), 3, dtype=torch.int32))
        obj.launch(emulator, dict(x=keep, h=h, N=n))
        return compare(h.read(torch.int32, bins), x.bincount(minlength=bins) + 3, 0.0, "h")
    return [Case(obj.path, obj.name, run)]


KERNELS = {"sort_kernel": sort, "topk_kernel": top_k, "argmax_kernel": argmax, "scan_kernel": scan, "shape_kernel": shapes,
           "gather_kernel": gather, "transpose_kernel": transpose, "histogram_kernel": histogram}


def cases(folder) -> list[Case]:
    return [case for obj in objects(folder) if obj.symbol in KERNELS for case in KERNELS[obj.symbol](obj)]
