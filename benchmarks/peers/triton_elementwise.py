"""Triton's elementwise arithmetic, mathematical functions, conversions, Philox and MX quantisation.

References: float64 (80-bit for the f64 functions), integers and torch's casts; conversions, integers and random bits
are exact. A function that is documented to n units in the last place may be 2 n u |reference| off, with u the
roundoff of its type: sin, cos 4, tanh 5, erf and pow 16 (OpenCL); sqrt, division by div_rn, floor and fmod are exactly
rounded. exp, log and sigmoid go through the hardware's exp2 and log2 (1 unit); the change of base adds 2 |x| u to exp.
pow keeps y log x in two floats, whose low part a compiler that fuses multiply and add counts twice (it writes
fma(y, l, e) where e already holds the rounding error of y l): that costs |y log x| units, unless fusion is off.
"""
from __future__ import annotations

import numpy as np
import torch

from families import FP32_ROUNDOFF, HALF_DENORMAL, UNIT_ROUNDOFF, Case, Result, compare, rounding, worst
from triton_gemm import operand, wide
from triton_object import TritonObject, objects

U = FP32_ROUNDOFF
EXPONENT = float(np.float32(1.7))  # math_kernel's pow
PHILOX = dict(a=0xD2511F53, b=0xCD9E8D57, key_a=0x9E3779B9, key_b=0xBB67AE85, rounds=10)


def element_count(obj: TritonObject) -> int:
    """Two workgroups and part of a third; a multiple of 16 where that was promised."""
    return 2 * obj["BLOCK"] + 80


def apply(emulator, obj: TritonObject, inputs: dict, outputs: dict, **scalars) -> dict:
    """One launch over N elements. outputs: name -> shape; returns what was written."""
    keep = {name: emulator.buffer(t) for name, t in inputs.items()}
    out = {name: emulator.filled(torch.Size(shape).numel() * obj.dtype(name).itemsize) for name, shape in outputs.items()}
    obj.launch(emulator, {**keep, **out, **scalars})
    return {name: out[name].read(obj.dtype(name), *shape) for name, shape in outputs.items()}


def grid_ids(obj: TritonObject) -> list[Case]:
    def run(emulator) -> Result:
        nx, ny, nz, block = 3, 4, 5, obj["BLOCK"]
        out = emulator.filled(nx * ny * nz * block * 4)
        obj.launch(emulator, dict(out=out), nx=nx, ny=ny, nz=nz)
        z, y, x, i = torch.meshgrid(*(torch.arange(n) for n in (nz, ny, nx, block)), indexing="ij")
        return compare(out.read(torch.int32, nz, ny, nx, block), x + 1000 * y + 1000000 * z + i, 0.0, "out")
    return [Case(obj.path, obj.name, run)]


def functions(x: np.ndarray, fused: bool) -> list[tuple[str, np.ndarray, float | np.ndarray]]:
    """Of math_kernel's rows: name, value, units in the last place (half ones are one rounding)."""
    erf = torch.erf(torch.from_numpy(x)).numpy()
    return [("sin", np.sin(x), 4), ("cos", np.cos(x), 4), ("log", np.log(x), 2 + 1 / np.maximum(np.abs(np.log(x)), 1e-30)),
            ("exp", np.exp(x), 2 + np.abs(x)), ("sqrt", np.sqrt(x), 0.5), ("tanh", np.tanh(x), 5), ("erf", erf, 16),
            ("pow", x ** EXPONENT, 16 + fused * EXPONENT * np.abs(np.log(x))), ("1/x", 1 / x, 0.5), ("floor", np.floor(x), 0),
            ("fmod", np.fmod(x, 3.0), 0)]


def overflowed(values: torch.Tensor, largest: float) -> torch.Tensor:
    """What lies beyond the type's range is its infinity."""
    return torch.where(values.abs() > largest, values.sign() * torch.inf, values)


def math32(obj: TritonObject, what: str, low: float, high: float) -> Case:
    """Arguments spread evenly over the exponents of [low, high]."""
    def run(emulator) -> Result:
        n = element_count(obj)
        x = torch.exp2(torch.rand(n) * (np.log2(high) - np.log2(low)) + np.log2(low))
        with np.errstate(over="ignore"):
            rows = functions(x.double().numpy(), obj.facts.get("options", {}).get("enable_fp_fusion", True))
        got = apply(emulator, obj, {"x": x}, {"y": (len(rows), n)}, N=n)["y"]
        results = []
        for values, (name, reference, units) in zip(got, rows):
            reference = overflowed(torch.from_numpy(reference), torch.finfo(torch.float32).max)
            bound = 2 * U * torch.as_tensor(units) * reference.abs() + HALF_DENORMAL[torch.float32]
            results.append(compare(values, reference, bound.nan_to_num(posinf=0.0), name))
        return worst(*results)
    return Case(obj.path, obj.name + what, run)


def math64(obj: TritonObject) -> list[Case]:
    def run(emulator) -> Result:
        n, u = element_count(obj), UNIT_ROUNDOFF[torch.float64]
        x = torch.exp2(torch.rand(n, dtype=torch.float64) * 19 - 10)
        e = x.numpy().astype(np.longdouble)
        rows = [("exp", np.exp(e), 3), ("log", np.log(e), 3), ("sqrt", np.sqrt(e), 0.5), ("1/x", 1 / e, 0.5),
                ("x*x+1", e * e + 1, 1), ("max", np.maximum(e, 2), 0), ("floor", np.floor(e), 0)]
        got = apply(emulator, obj, {"x": x}, {"y": (len(rows), n)}, N=n)["y"]
        results = []
        for values, (name, reference, units) in zip(got, rows):
            error = torch.from_numpy(np.abs(values.numpy() - reference).astype(np.float64))
            bound = torch.from_numpy(2 * u * units * np.abs(reference).astype(np.float64))
            results.append(compare(error, torch.zeros(n), bound, name))
        return worst(*results)
    return [Case(obj.path, obj.name, run)]


def wrapped(values: np.ndarray, dtype) -> torch.Tensor:
    return torch.from_numpy(values.astype(dtype))


def integers(obj: TritonObject) -> list[Case]:
    """Division truncates as in C; everything wraps."""
    def run(emulator) -> Result:
        n = element_count(obj)
        a = torch.randint(-2 ** 31 + 1, 2 ** 31, (n,)) >> torch.randint(0, 31, (n,))
        b = torch.randint(-2 ** 31 + 1, 2 ** 31, (n,)) >> torch.randint(0, 31, (n,))
        b = torch.where(b == 0, 7, b)
        inputs = dict(x=a.to(torch.int32), y=b.to(torch.int32))
        got = apply(emulator, obj, inputs, dict(o=(4, n), o64=(2, n)), N=n)
        x, y = a.numpy(), b.numpy()
        quotient = np.trunc(x / y).astype(np.int64)  # 32-bit values: exact in float64
        unsigned = [v & 0xFFFFFFFF for v in (x, y)]
        high = np.array([int(p) * int(q) >> 32 for p, q in zip(*unsigned)], dtype=np.int64)
        shift = y & 31
        rows = [quotient, x - quotient * y, high.astype(np.int32), (x << shift).astype(np.int32) ^ (x >> shift).astype(np.int32)]
        a6, b6 = [int(p) * 1000003 + int(q) for p, q in zip(x, y)], [int(q) | 1 for q in y]
        products = [(p * q + 2 ** 63) % 2 ** 64 - 2 ** 63 for p, q in zip(a6, b6)]
        quotients = [abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in zip(a6, b6)]
        expected = torch.tensor([products, quotients])
        wrong = int((got["o64"] != expected).sum())  # float64 cannot tell 64-bit integers apart
        return worst(compare(got["o"], torch.stack([wrapped(r, np.int32) for r in rows]), 0.0, "o"),
                     Result(float(wrong), 0.0, f"o64: {wrong} wrong"))
    return [Case(obj.path, obj.name, run)]


def multiply_add(obj: TritonObject) -> list[Case]:
    """max(a b + c, 0) - a in the storage type: three roundings, or wrapping integers."""
    def run(emulator) -> Result:
        n, dtype = element_count(obj), obj.dtype("y")
        if dtype.is_floating_point:
            host = {name: operand(1, n, dtype)[0] for name in "abc"}
        else:
            info = torch.iinfo(dtype)
            host = {name: torch.randint(info.min, info.max + 1, (n,)).to(dtype) for name in "abc"}
        y = apply(emulator, obj, host, {"y": (n,)}, N=n)["y"]
        if not dtype.is_floating_point:
            a, b, c = (t.long() for t in host.values())
            z = (a * b + c).to(dtype).long().clamp(min=0)
            return compare(y, (z - a).to(dtype), 0.0, "y")
        a, b, c = (wide(t).numpy().astype(np.longdouble) for t in host.values())
        z = np.maximum(a * b + c, 0)
        bound = sum(rounding(torch.from_numpy(t.astype(np.float64)), dtype) for t in (a * b, a * b + c, z - a))
        error = np.abs(wide(y).numpy() - (z - a)).astype(np.float64)
        return compare(torch.from_numpy(error), torch.zeros(n), 1.01 * bound, "error of y")
    return [Case(obj.path, obj.name, run)]


def philox(seed: int, counter: np.ndarray) -> np.ndarray:
    """First word of Philox 4x32-10 (Salmon et al., 2011) of the counter (n, 0, 0, 0)."""
    mask = np.uint64(0xFFFFFFFF)
    c = [counter.astype(np.uint64)] + [np.zeros_like(counter, dtype=np.uint64) for _ in range(3)]
    key_a, key_b = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    for _ in range(PHILOX["rounds"]):
        first, second = c[0] * np.uint64(PHILOX["a"]), c[2] * np.uint64(PHILOX["b"])
        c = [(second >> np.uint64(32)) ^ c[1] ^ np.uint64(key_a), second & mask,
             (first >> np.uint64(32)) ^ c[3] ^ np.uint64(key_b), first & mask]
        key_a, key_b = (key_a + PHILOX["key_a"]) & 0xFFFFFFFF, (key_b + PHILOX["key_b"]) & 0xFFFFFFFF
    return c[0].astype(np.uint32)


def uniform(words: np.ndarray) -> np.ndarray:
    """tl.rand's float32 of a word: signed, folded to [0, 2^31), times 4.6566127342e-10."""
    signed = words.view(np.int32)
    return np.where(signed < 0, -signed - 1, signed).astype(np.float32) * np.float32(4.6566127342e-10)


def dropout(obj: TritonObject) -> list[Case]:
    """The kept places must be the same; a kept value is divided by 1 - p, twice rounded in fp32."""
    def run(emulator) -> Result:
        n, p, seed = element_count(obj), 0.3, 123456789
        x = operand(1, n, obj.dtype("x"))[0]
        y = apply(emulator, obj, {"x": x}, {"y": (n,)}, N=n, p=p, seed=seed)["y"]
        kept = torch.from_numpy(uniform(philox(seed, np.arange(n))) > np.float32(p))
        reference = torch.where(kept, wide(x) / (1 - float(np.float32(p))), 0.0)
        return compare(wide(y), reference, rounding(reference, obj.dtype("y")) + 4 * U * reference.abs(), "y")
    return [Case(obj.path, obj.name, run)]


def cast_inputs(source: torch.dtype, target: torch.dtype, n: int) -> torch.Tensor:
    """Every bit pattern of a narrow type; random bits of a wide one, and values near the target's range and its
    denormals. Nothing beyond the range of an 8-bit target: there saturation is the compiler's choice."""
    if source.itemsize <= 2:
        x = torch.arange(2 ** (8 * source.itemsize)).to(torch.uint8 if source.itemsize == 1 else torch.int16).view(source)
    elif source == torch.int32:
        x = torch.cat([torch.arange(-70000, 70000, 17), torch.randint(-2 ** 31, 2 ** 31, (n,))]).to(source)
    else:
        bits = torch.int32 if source == torch.float32 else torch.int64
        x = torch.cat([torch.randint(torch.iinfo(bits).min, torch.iinfo(bits).max, (n,), dtype=bits).view(source),
                       torch.randn(n, dtype=source) * torch.exp2(torch.randint(-20, 20, (n,)).to(source)),
                       torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan], dtype=source)])
    if target.itemsize == 1:
        x = x[wide(x).abs() <= torch.finfo(target).max]
    return x[:len(x) // 16 * 16]


def cast(obj: TritonObject) -> list[Case]:
    def run(emulator) -> Result:
        target = obj.dtype("y")
        x = cast_inputs(obj.dtype("x"), target, element_count(obj))
        y = apply(emulator, obj, {"x": x}, {"y": (len(x),)}, N=len(x))["y"]
        reference = x.to(torch.float32).to(target) if obj.dtype("x").itemsize <= 4 else x.to(target)
        return compare(wide(y), wide(reference), 0.0, "y")
    return [Case(obj.path, obj.name, run)]


def quantise(obj: TritonObject) -> list[Case]:
    """Blocks of 32: e8m0 scale floor(log2(amax)) - 8, values scaled by a power of two and rounded once."""
    def run(emulator) -> Result:
        blocks = obj["BR"] + 9
        x = operand(blocks, 32, obj.dtype("x")) * torch.exp2(torch.randint(-30, 30, (blocks, 1))).to(obj.dtype("x"))
        x[0] = 0
        got = apply(emulator, obj, {"x": x}, dict(y=(blocks, 32), s=(blocks,)), N=x.numel())
        biased = torch.frexp(wide(x).abs().amax(1)).exponent + 126
        exponent = torch.where(wide(x).abs().amax(1) == 0, 0, (biased - 8).clamp(min=0))
        values = (wide(x) * torch.exp2(127.0 - exponent.double())[:, None]).clamp(-448, 448)
        return worst(compare(got["s"], exponent, 0.0, "s"),
                     compare(wide(got["y"]), wide(values.float().to(obj.dtype("y"))), 0.0, "y"))
    return [Case(obj.path, obj.name, run)]


def swiglu(obj: TritonObject) -> list[Case]:
    def run(emulator) -> Result:
        n = element_count(obj)
        g, u = operand(1, n, obj.dtype("g"))[0], operand(1, n, obj.dtype("u"))[0]
        y = apply(emulator, obj, {"g": g, "u": u}, {"y": (n,)}, N=n)["y"]
        reference = wide(g) * wide(g).sigmoid() * wide(u)
        bound = rounding(reference, obj.dtype("y")) + reference.abs() * (2 * wide(g).abs() + 10) * U
        return compare(wide(y), reference, bound, "y")
    return [Case(obj.path, obj.name, run)]


KERNELS = {"grid3d_kernel": grid_ids, "math64_kernel": math64, "int_kernel": integers, "addcmul_kernel": multiply_add,
           "math_kernel": lambda obj: [math32(obj, "", 2.0 ** -6, 64.0), math32(obj, " large", 64.0, 1e9)],
           "dropout_kernel": dropout, "cast_kernel": cast, "quant_mxfp8_kernel": quantise, "swiglu_kernel": swiglu}


def cases(folder) -> list[Case]:
    return [case for obj in objects(folder) if obj.symbol in KERNELS for case in KERNELS[obj.symbol](obj)]
