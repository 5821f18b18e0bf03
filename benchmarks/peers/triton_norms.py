"""Triton's RMSNorm (forward, backward), LayerNorm, softmax and cross-entropy.

Reference: float64. A sum along a row is bounded by its depth, the additions that one element can go through:
4 * elements per thread + 12 (lanes and waves add in a tree; the 4 allows for layouts that use fewer threads). With
u = 2^-24 every bound is one rounding to the output type plus (depth + constant) u times the sum of magnitudes; the
constant counts the roundings of the formula, with 2 units for rsqrt, exp2, log2 and division. exp(x) multiplies x by
log2(e) first, which costs 2 |x| u.
"""
from __future__ import annotations

import torch

from families import FP32_ROUNDOFF, Case, Result, compare, rounding, worst
from triton_gemm import operand, wide
from triton_object import TritonObject, objects

U = FP32_ROUNDOFF
EPS = 1e-5


def row(n: int, dtype: torch.dtype) -> torch.Tensor:
    return operand(1, n, dtype)[0]


def ragged(obj: TritonObject) -> tuple[int, int]:
    """Rows and columns: a last workgroup that is not full, columns below BN (a multiple of 16 where promised)."""
    n = obj["BN"] - 48 if "N" in obj.facts.get("multiples_of_16", ["N"]) else obj["BN"] - 51
    return 2 * obj.constants.get("BR", 1) + 1, n


def depth(obj: TritonObject, n: int | None = None) -> int:
    elements = (n or obj["BN"]) * obj.constants.get("BR", 1)
    return 4 * -(-elements // obj.facts["block"][0]) + 12


def outputs(emulator, obj: TritonObject, **shapes) -> dict:
    """Poisoned buffers by name."""
    made = {}
    for name, shape in shapes.items():
        made[name] = emulator.filled(torch.Size(shape).numel() * obj.dtype(name).itemsize)
    return made


def judge(obj: TritonObject, buffers: dict, expected: dict) -> Result:
    """expected: name -> (reference, slack beside the rounding to the output type)"""
    results = []
    for name, (reference, slack) in expected.items():
        got = buffers[name].read(obj.dtype(name), *reference.shape)
        results.append(compare(wide(got), reference, rounding(reference, obj.dtype(name)) + slack, name))
    return worst(*results)


def rms_forward(obj: TritonObject, m: int, n: int) -> list[Case]:
    def run(emulator) -> Result:
        x, w = operand(m, n, obj.dtype("x")), row(n, obj.dtype("w"))
        out = outputs(emulator, obj, y=(m, n), rstd=(m,))
        keep = emulator.buffer(x), emulator.buffer(w)
        arguments = dict(x=keep[0], w=keep[1], N=n, eps=EPS, **out)
        if "M" in obj.types:
            arguments["M"] = m
        obj.launch(emulator, arguments, **({} if "M" in obj.types else {"M": m}))
        rstd = (wide(x).square().mean(-1) + EPS).rsqrt()
        y = wide(x) * rstd[:, None] * wide(w)
        relative = (depth(obj, n) / 2 + 8) * U
        return judge(obj, out, dict(y=(y, y.abs() * relative), rstd=(rstd, rstd * relative)))
    return [Case(obj.path, obj.name, run)]


def rms_backward(obj: TritonObject) -> list[Case]:
    def run(emulator) -> Result:
        (_, n), m, rows_per = ragged(obj), 7, 3
        programs = -(-m // rows_per)
        host = dict(dy=operand(m, n, obj.dtype("dy")), x=operand(m, n, obj.dtype("x")), w=row(n, obj.dtype("w")))
        host["rstd"] = (wide(host["x"]).square().mean(-1) + EPS).rsqrt().float()
        out = outputs(emulator, obj, dx=(m, n), dwp=(programs, n))
        keep = {name: emulator.buffer(t) for name, t in host.items()}
        obj.launch(emulator, dict(keep, M=m, N=n, rows_per=rows_per, **out))
        g, x, w, s = (wide(t) for t in host.values())
        s = s[:, None]
        hat, gw = x * s, g * w
        mean = (gw * hat).mean(-1, keepdim=True)
        slack = s * (4 * U * (gw.abs() + (hat * mean).abs()) +
                     hat.abs() * (depth(obj) + 6) * U * (gw * hat).abs().mean(-1, keepdim=True))
        pad = torch.zeros(programs * rows_per - m, n, dtype=torch.float64)
        partial = torch.cat([g * hat, pad]).view(programs, rows_per, n)
        return judge(obj, out, dict(dx=((gw - hat * mean) * s, slack),
                                    dwp=(partial.sum(1), (rows_per + 4) * U * partial.abs().sum(1))))
    return [Case(obj.path, obj.name, run)]


def layer_norm(obj: TritonObject) -> list[Case]:
    """The error of the mean enters d = x - mean and, by sum d * error, the variance."""
    def run(emulator) -> Result:
        m, n = 3, ragged(obj)[1]
        x, w, b = operand(m, n, obj.dtype("x")), row(n, obj.dtype("w")), row(n, obj.dtype("b"))
        out = outputs(emulator, obj, y=(m, n), mean=(m,), rstd=(m,))
        keep = [emulator.buffer(t) for t in (x, w, b)]
        obj.launch(emulator, dict(x=keep[0], w=keep[1], b=keep[2], N=n, eps=EPS, **out), M=m)
        x, w, b = wide(x), wide(w), wide(b)
        mean = x.mean(-1, keepdim=True)
        d = x - mean
        rstd = (d.square().mean(-1, keepdim=True) + EPS).rsqrt()
        mean_error = (depth(obj) + 2) * U * x.abs().mean(-1, keepdim=True)
        relative = (depth(obj) / 2 + 8) * U + rstd.square() * d.abs().mean(-1, keepdim=True) * mean_error
        normal = d * rstd * w
        slack = w.abs() * rstd * (mean_error + 2 * U * d.abs()) + normal.abs() * relative + 2 * U * (normal.abs() + b.abs())
        return judge(obj, out, dict(y=(normal + b, slack), mean=(mean[:, 0], mean_error[:, 0]),
                                    rstd=(rstd[:, 0], (rstd * relative)[:, 0])))
    return [Case(obj.path, obj.name, run)]


def softmax(obj: TritonObject, m: int) -> list[Case]:
    def run(emulator) -> Result:
        n = ragged(obj)[1]
        x = operand(m, n, obj.dtype("x"))
        out = outputs(emulator, obj, y=(m, n))
        keep = emulator.buffer(x)
        obj.launch(emulator, dict(x=keep, M=m, N=n, **out))
        y = wide(x).softmax(-1)
        below = wide(x).amax(-1, keepdim=True) - wide(x)
        relative = (3 * below + 3 * (y * below).sum(-1, keepdim=True) + depth(obj) + 12) * U
        return judge(obj, out, dict(y=(y, y * relative)))
    return [Case(obj.path, obj.name, run)]


def cross_entropy(obj: TritonObject) -> list[Case]:
    """Running maximum and sum over chunks of BN: each chunk costs one exp and three roundings more."""
    def run(emulator) -> Result:
        m, n = 3, 2 * obj["BN"] + 123
        x = operand(m, n, obj.dtype("x"))
        target = torch.randint(0, n, (m,), dtype=torch.int32)
        out = outputs(emulator, obj, loss=(m,), lse=(m,))
        keep = emulator.buffer(x), emulator.buffer(target)
        obj.launch(emulator, dict(x=keep[0], t=keep[1], N=n, **out), M=m)
        x = wide(x)
        lse = x.logsumexp(-1)
        below = (x.softmax(-1) * (x.amax(-1, keepdim=True) - x)).sum(-1)
        slack = (6 * below + depth(obj) + 3 * 8 + 8 + 4 * lse.abs()) * U
        loss = lse - x.gather(1, target.long()[:, None])[:, 0]
        return judge(obj, out, dict(loss=(loss, slack), lse=(lse, slack)))
    return [Case(obj.path, obj.name, run)]


KERNELS = {"rmsnorm_fwd_kernel": lambda obj: rms_forward(obj, *ragged(obj)),
           "rmsnorm_fwd_loop_kernel": lambda obj: rms_forward(obj, 2, obj["BN"] + 208),
           "rmsnorm_bwd_kernel": rms_backward, "layernorm_fwd_kernel": layer_norm,
           "softmax_kernel": lambda obj: softmax(obj, ragged(obj)[0]),
           "softmax_persistent_kernel": lambda obj: softmax(obj, 256 + 5), "cross_entropy_kernel": cross_entropy}


def cases(folder) -> list[Case]:
    return [case for obj in objects(folder) if obj.symbol in KERNELS for case in KERNELS[obj.symbol](obj)]
