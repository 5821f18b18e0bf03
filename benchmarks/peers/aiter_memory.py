"""Device memory as the hand-written kernels expect it: torch's allocator hands out whole blocks, so what they read
past the end of a tensor is mapped. Here that slack holds 0xFF bytes, NaN in every float type, so that it shows if
anything of it is used."""
from __future__ import annotations

import torch

SLACK = 1 << 17


def with_slack(emulator, tensor: torch.Tensor):
    data = tensor.contiguous().reshape(-1).view(torch.uint8)
    return emulator.buffer(torch.cat([data, torch.full((SLACK,), 0xFF, dtype=torch.uint8)]))
