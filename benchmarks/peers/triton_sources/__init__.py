"""Triton kernels that exercise the compiler's whole gfx950 back end; importing this package fills table.CASES.

They are sources of ours, compiled by other people's compiler. They run in the environment of that Triton release,
so they need no torch.
"""
from triton_sources import atomics, attention, elementwise, gemm, gemm_mx, norms, rearrange  # noqa: F401
from triton_sources.table import CASES  # noqa: F401
