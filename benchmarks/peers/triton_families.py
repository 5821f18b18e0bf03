"""All families of Triton objects in one table."""
from __future__ import annotations

import triton_atomics
import triton_attention
import triton_elementwise
import triton_gemm
import triton_gemm_mx
import triton_norms
import triton_rearrange
from families import Case, Result
from triton_object import TritonObject, objects

MODULES = [triton_gemm, triton_gemm_mx, triton_attention, triton_norms, triton_rearrange, triton_atomics, triton_elementwise]
KERNELS = {symbol: make for module in MODULES for symbol, make in module.KERNELS.items()}


def unknown(obj: TritonObject) -> list[Case]:
    def run(emulator) -> Result:
        raise LookupError(f"no family knows the kernel {obj.symbol}")
    return [Case(obj.path, obj.name, run)]


def cases(folder) -> list[Case]:
    return [case for obj in objects(folder) for case in KERNELS.get(obj.symbol, unknown)(obj)]
