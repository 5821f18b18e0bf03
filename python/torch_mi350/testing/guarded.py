"""Operands inside larger buffers, so that a read or write beside them shows.

    inputs    NaN before, after and between the elements; afterwards the whole buffer is unchanged, byte for byte
    outputs   a byte pattern before, after and between; the elements themselves start as NaN, so that one that
              is never written shows, and afterwards the pattern is unchanged, byte for byte

Any strides are possible: 0 (expanded), overlapping, padded. `offset` shifts the first element away from the
alignment that an allocation has.
"""
from __future__ import annotations

import torch

MARGIN = 512          # elements on each side; a multiple of every vector load's width
SENTINEL = 0xA5       # a byte that is no part of a NaN of these types


class Guarded:
    """`tensor` is the operand on its device, `check()` looks at everything around it."""

    def __init__(self, buffer, shape, strides, offset, is_output, device):
        self._before = buffer.clone()
        self._inside = _positions(shape, strides, offset)
        self._is_output = is_output
        self._buffer = buffer.to(device)
        self.tensor = self._buffer.as_strided(shape, strides, MARGIN + offset)

    def check(self, what="operand"):
        before, after = _bytes(self._before), _bytes(self._buffer.cpu())
        changed = (before != after).any(dim=1)
        if self._is_output:
            changed[self._inside] = False
        if changed.any():
            at = int(changed.nonzero()[0])
            kind = "written outside of the output" if self._is_output else "input was written"
            raise AssertionError(f"{what}: {kind}: {int(changed.sum())} elements, the first at "
                                 f"{at - MARGIN} elements from its buffer's start of {len(changed) - 2 * MARGIN}")


def guarded_input(values, shape=None, *, strides=None, offset=0, device="cpu") -> Guarded:
    """An input. `values`: a CPU tensor of `shape`, or a function n -> n values for the distinct elements
    (needed where strides are 0 or overlap)."""
    distinct = callable(values)
    shape = tuple(shape if distinct else values.shape)
    strides = tuple(strides or contiguous_strides(shape))
    positions = _positions(shape, strides, offset)
    where = positions.unique() if distinct else positions.flatten()
    content = values(where.numel()) if distinct else values.flatten()
    buffer = torch.full((_extent(shape, strides) + offset + 2 * MARGIN,), float("nan"), dtype=content.dtype)
    buffer[where] = content
    return Guarded(buffer, shape, strides, offset, False, device)


def guarded_output(shape, dtype, *, strides=None, offset=0, device="cpu", initial=None) -> Guarded:
    """An output, NaN or `initial` (a CPU tensor of `shape`) before the call."""
    shape = tuple(shape)
    strides = tuple(strides or contiguous_strides(shape))
    size = _extent(shape, strides) + offset + 2 * MARGIN
    element_bytes = torch.empty((), dtype=dtype).element_size()
    buffer = torch.full((size * element_bytes,), SENTINEL, dtype=torch.uint8).view(dtype)
    content = torch.full(shape, float("nan"), dtype=dtype) if initial is None else initial.to(dtype)
    buffer[_positions(shape, strides, offset).flatten()] = content.flatten()
    return Guarded(buffer, shape, strides, offset, True, device)


def poison_allocator(device, sizes=(1 << 10, 1 << 16, 1 << 20)):
    """Leaves freed blocks full of NaN behind, for kernels that read what they never wrote."""
    blocks = [torch.full((size,), float("nan"), device=device) for size in sizes for _ in range(4)]
    del blocks


def contiguous_strides(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _extent(shape, strides):
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))


def _positions(shape, strides, offset):
    at = torch.tensor(MARGIN + offset)
    for size, stride in zip(shape, strides):
        at = at.unsqueeze(-1) + torch.arange(size) * stride
    return at.reshape(shape)


def _bytes(buffer):
    return buffer.view(torch.uint8).reshape(buffer.numel(), -1)
