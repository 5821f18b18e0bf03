"""Triton's atomics: 32 and 64 bits, packed 16 bits, compare-and-swap as a lock between workgroups.

References are exact: sums are of numbers whose sums the type holds exactly, so the order does not matter. An exchange
leaves one of the values that were written to its place.
"""
from __future__ import annotations

import torch

from families import Case, Result, compare, worst
from triton_gemm import wide
from triton_object import TritonObject, objects

BINS = 37


def keys(n: int) -> torch.Tensor:
    """Many equal keys in one wave; the last bin stays empty."""
    return torch.randint(0, BINS - 1, (n,), dtype=torch.int32)


def reduced(key: torch.Tensor, source: torch.Tensor, initial: torch.Tensor, how: str) -> torch.Tensor:
    return initial.clone().scatter_reduce(0, key.long(), source.to(initial.dtype), how, include_self=True)


def bitwise(key: torch.Tensor, source: torch.Tensor, initial: torch.Tensor, operation) -> torch.Tensor:
    out = initial.clone()
    for k, value in zip(key.tolist(), source):
        out[k] = operation(out[k], value)
    return out


def last_positions(got: torch.Tensor, key: torch.Tensor) -> Result:
    """Every bin holds the index of one of its keys; the empty ones hold what was there before."""
    index = got.long()
    wrong = sum(int(i) != -1 if not (key == b).any() else not (0 <= i < len(key)) or int(key[i]) != b
                for b, i in enumerate(index))
    return Result(float(wrong), 0.0, "lastpos: indices that are not one of the bin's keys")


def atomics(obj: TritonObject) -> list[Case]:
    def run(emulator) -> Result:
        n = 2 * obj["BLOCK"] + 100
        key, index = keys(n), torch.arange(n, dtype=torch.int32)
        start = dict(cnt=torch.full((BINS,), 5, dtype=torch.int32), fsum=torch.zeros(BINS), fmax=torch.full((BINS,), -1.0),
                     imax=torch.full((BINS,), -1, dtype=torch.int32), imin=torch.full((BINS,), n, dtype=torch.int32),
                     ior=torch.full((BINS,), 64, dtype=torch.int32), lastpos=torch.full((BINS,), -1, dtype=torch.int32),
                     lock=torch.zeros(1, dtype=torch.int32), total=torch.zeros(1, dtype=torch.int32))
        device = {name: emulator.buffer(t) for name, t in start.items()}
        device["keys"] = emulator.buffer(key)
        obj.launch(emulator, dict(device, N=n))
        expected = dict(cnt=reduced(key, torch.ones(n), start["cnt"], "sum"), fsum=reduced(key, key * 0.5, start["fsum"], "sum"),
                        fmax=reduced(key, index, start["fmax"], "amax"), imax=reduced(key, index, start["imax"], "amax"),
                        imin=reduced(key, index, start["imin"], "amin"),
                        ior=bitwise(key, key, start["ior"], torch.bitwise_or), lock=start["lock"], total=torch.tensor([n]))
        got = {name: device[name].read(t.dtype, *t.shape) for name, t in start.items()}
        return worst(last_positions(got["lastpos"], key),
                     *(compare(got[name], reference, 0.0, name) for name, reference in expected.items()))
    return [Case(obj.path, obj.name, run)]


def atomics64(obj: TritonObject) -> list[Case]:
    def run(emulator) -> Result:
        n = 2 * obj["BLOCK"] + 100
        key, index = keys(n), torch.arange(n, dtype=torch.int32)
        start = dict(c64=torch.full((BINS,), 2 ** 32 - 1, dtype=torch.int64), f64=torch.zeros(BINS, dtype=torch.float64),
                     a32=torch.full((BINS,), -1, dtype=torch.int32), x32=torch.zeros(BINS, dtype=torch.int32))
        device = {name: emulator.buffer(t) for name, t in start.items()}
        device["keys"] = emulator.buffer(key)
        obj.launch(emulator, dict(device, N=n))
        bits = (1 << (index.long() & 31)).to(torch.int32)
        expected = dict(c64=reduced(key, index, start["c64"], "sum"), f64=reduced(key, index * 0.25, start["f64"], "sum"),
                        a32=bitwise(key, ~bits, start["a32"], torch.bitwise_and),
                        x32=bitwise(key, index, start["x32"], torch.bitwise_xor))
        return worst(*(compare(device[name].read(start[name].dtype, BINS), reference, 0.0, name)
                       for name, reference in expected.items()))
    return [Case(obj.path, obj.name, run)]


def index_add(obj: TritonObject) -> list[Case]:
    """Small integers: their sums are exact in 16 bits."""
    def run(emulator) -> Result:
        n, rows, d, dtype = 12, 4, obj["BLOCK"] + 48, obj.dtype("src")
        index = torch.randint(0, rows, (n,), dtype=torch.int32)
        source, start = torch.randint(-8, 9, (n, d)).to(dtype), torch.randint(-8, 9, (rows, d)).to(dtype)
        device = [emulator.buffer(t) for t in (index, source, start)]
        obj.launch(emulator, dict(idx=device[0], src=device[1], dst=device[2], N=n, D=d))
        expected = wide(start).index_add(0, index.long(), wide(source))
        return compare(wide(device[2].read(dtype, rows, d)), expected, 0.0, "dst")
    return [Case(obj.path, obj.name, run)]


KERNELS = {"atomics_kernel": atomics, "atomics64_kernel": atomics64, "atomic_pk_kernel": index_add}


def cases(folder) -> list[Case]:
    return [case for obj in objects(folder) if obj.symbol in KERNELS for case in KERNELS[obj.symbol](obj)]
