"""The allocator of TORCH_MI350_FORCE=emulate: `cuda` tensors in pinned host memory that the emulator can read.

    TORCH_MI350_FORCE=emulate python -c '
    import torch, torch_mi350
    from torch_mi350.testing.pinned import use_pinned_allocator
    use_pinned_allocator()
    a = torch.ones(64, 64, device="cuda", dtype=torch.bfloat16)
    torch.mm(a, a); print(torch_mi350.report())'
"""

import torch

from .. import _C

# torch keeps no reference of its own to the functions' library.
_allocator = None


def use_pinned_allocator():
    """Makes every later `cuda` allocation of this process pinned. Call it before the first `cuda` tensor."""
    global _allocator
    if _allocator is not None:
        return
    if torch.version.cuda is None and torch.version.hip is None:
        raise RuntimeError(
            f"torch_mi350: use_pinned_allocator() needs a CUDA or ROCm build of torch, this is {torch.__version__}"
        )
    allocator = torch.cuda.memory.CUDAPluggableAllocator(
        _C.__file__, "mi350_pinned_alloc", "mi350_pinned_free"
    )
    try:
        torch.cuda.memory.change_current_allocator(allocator)
    except RuntimeError as error:
        raise RuntimeError(
            "torch_mi350: use_pinned_allocator() must run before the first cuda tensor of the process is made"
        ) from error
    _allocator = allocator
