"""The known families of code objects, and what a family module offers.

A module of this folder has `cases(folder) -> list[Case]`: one case per thing to run, for every object in the folder
that belongs to the family, told by what the object and its sidecar say and not by its file name. A case's
run(emulator) launches the object, compares it with an independent reference and returns a Result.
"""
from __future__ import annotations

import importlib
import math
import pathlib
from dataclasses import dataclass
from typing import Callable

import torch

# name on the command line -> module of this folder
FAMILIES = {
    "triton": "triton_families",
    "triton-gemm": "triton_gemm",
    "triton-gemm-mx": "triton_gemm_mx",
    "triton-attention": "triton_attention",
    "triton-norms": "triton_norms",
    "triton-rearrange": "triton_rearrange",
    "triton-atomics": "triton_atomics",
    "triton-elementwise": "triton_elementwise",
    "aiter-bf16gemm": "aiter_gemm_bf16",
    "aiter-f4gemm": "aiter_gemm_f4",
    "aiter-a8w8": "aiter_gemm_a8w8",
    "aiter-topksoftmax": "aiter_topksoftmax",
    "aiter-attention": "aiter_attention",
    "aiter-attention-mx": "aiter_attention_mx",
    "aiter-attention-bwd": "aiter_attention_bwd",
    "aiter-moe": "aiter_moe",
    "aiter-moe-mx": "aiter_moe_mx",
}


@dataclass(frozen=True)
class Result:
    """error: the worst element's distance from the reference; limit: the bound of that same element."""
    error: float
    limit: float
    detail: str = ""

    @property
    def passed(self) -> bool:
        return math.isfinite(self.error) and self.error <= self.limit


@dataclass(frozen=True)
class Case:
    object_path: pathlib.Path
    name: str
    run: Callable[..., Result]


def load(name: str):
    if name not in FAMILIES:
        raise KeyError(f"no family {name}; known: {', '.join(FAMILIES)}")
    return importlib.import_module(FAMILIES[name])


# Rounding to nearest of a value in the normal range: at most this fraction of it (half a unit in the last place).
UNIT_ROUNDOFF = {torch.float64: 2.0 ** -53, torch.float32: 2.0 ** -24, torch.float16: 2.0 ** -11, torch.bfloat16: 2.0 ** -8,
                 torch.float8_e4m3fn: 2.0 ** -4, torch.float8_e5m2: 2.0 ** -3}
# Half of the smallest denormal: the rounding of values below the normal range.
HALF_DENORMAL = {torch.float64: 2.0 ** -1075, torch.float32: 2.0 ** -150, torch.float16: 2.0 ** -25,
                 torch.bfloat16: 2.0 ** -134, torch.float8_e4m3fn: 2.0 ** -10, torch.float8_e5m2: 2.0 ** -17}
FP32_ROUNDOFF = UNIT_ROUNDOFF[torch.float32]


def rounding(reference: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Largest error of one rounding of `reference` (float64) to `dtype`; 0 for integers."""
    if not dtype.is_floating_point:
        return torch.zeros_like(reference)
    return reference.abs() * UNIT_ROUNDOFF[dtype] + HALF_DENORMAL[dtype]


def compare(got: torch.Tensor, reference: torch.Tensor, bound: torch.Tensor | float, what: str = "") -> Result:
    """The element that comes nearest to its bound, or exceeds it most. bound 0: bits must be equal in value.
    An infinity or NaN must be met by the same."""
    got, reference = got.to(torch.float64), reference.to(torch.float64)
    if got.shape != reference.shape:
        raise ValueError(f"{what}: got {tuple(got.shape)}, the reference is {tuple(reference.shape)}")
    bound = torch.as_tensor(bound, dtype=torch.float64).expand_as(reference)
    same = (got == reference) | (got.isnan() & reference.isnan())
    error = torch.where(same, 0.0, (got - reference).abs()).nan_to_num(nan=math.inf, posinf=math.inf)
    ratio = torch.where(error == 0, 0.0, error / bound)
    worst = int(ratio.flatten().argmax())
    wrong = int((ratio > 1).sum())
    index = tuple(int(n) for n in torch.unravel_index(torch.tensor(worst), ratio.shape))
    detail = f"{what} {list(index)}" if what else f"{list(index)}"
    if wrong:
        detail += f": got {float(got[index])!r}, reference {float(reference[index])!r}; {wrong} of {ratio.numel()} wrong"
    return Result(float(error[index]), float(bound[index]), detail)


def worst(*results: Result) -> Result:
    """Of several outputs of one launch: a failed one first, else the one nearest to its limit."""
    def key(r: Result) -> tuple:
        ratio = 0.0 if r.error == 0 else r.error / r.limit if r.limit else math.inf
        return (not r.passed, ratio if ratio == ratio else math.inf, r.limit)
    return max(results, key=key)


def intact(got: torch.Tensor, byte: int, what: str) -> Result:
    """Memory that the kernel must not have written still holds the fill pattern."""
    wrong = int((got.contiguous().view(torch.uint8) != byte).sum())
    return Result(float(wrong), 0.0, f"{what}: {wrong} bytes overwritten")
