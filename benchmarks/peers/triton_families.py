"""All families of Triton objects in one table."""
from __future__ import annotations

import triton_gemm
from families import Case
from triton_object import objects

MODULES = [triton_gemm]


def cases(folder) -> list[Case]:
    kernels = {symbol: make for module in MODULES for symbol, make in module.KERNELS.items()}
    return [case for obj in objects(folder) for case in kernels.get(obj.symbol, unknown)(obj)]


def unknown(obj) -> list[Case]:
    def run(emulator):
        raise LookupError(f"no family knows the kernel {obj.symbol}")
    return [Case(obj.path, obj.name, run)]
