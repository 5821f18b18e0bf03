"""What the hand-written AITER families share: where an object's facts are, how arguments and weights are laid out.

Facts: the CSV beside the objects (file, symbol, tile, options), csrc/py_itfs_cu/asm_*.cu (arguments, grids) and
aiter/ops/shuffle.py (layouts) of the checkout that fetch_aiter makes.
"""
from __future__ import annotations

import csv
import pathlib
import struct

import torch


class Row(dict):
    """One line of a family's CSV; numbers are ints."""

    def __init__(self, path: pathlib.Path, fields: dict):
        super().__init__({key: int(value) if value.lstrip("-").isdigit() else value for key, value in fields.items()})
        self.path = path

    def __getattr__(self, name):
        return self[name]


def rows(folder, table: str) -> list[Row]:
    """The lines of the family whose CSV has this name, anywhere below the folder; each object must exist."""
    found = []
    for file in sorted(pathlib.Path(folder).rglob(table)):
        if "gfx942" in file.parts:
            continue
        with file.open(newline="") as text:
            found += [Row(file.parent / line["co_name"], line) for line in csv.DictReader(text)]
    missing = [row.path for row in found if not row.path.exists()]
    if missing:
        raise FileNotFoundError(f"{len(missing)} objects of {table} are missing, first: {missing[0]}")
    return sorted(found, key=lambda row: row.co_name)


def kernarg(*fields) -> bytes:
    """Every field at the next multiple of 16 bytes: ints are 32 bits, floats f32, buffers (None: null) pointers."""
    out = b""
    for value in fields:
        if isinstance(value, int):
            data = struct.pack("<I", value & 0xFFFFFFFF)
        elif isinstance(value, float):
            data = struct.pack("<f", value)
        else:
            data = struct.pack("<Q", value.pointer if value is not None else 0)
        out += data.ljust(16, b"\0")
    return out


def launch(emulator, row: Row, grid, kernarg_bytes: bytes, threads: int = 256) -> None:
    module = emulator.module(row.path)
    emulator.launch(module.function(row.knl_name), grid, (threads, 1, 1), 0, kernarg_bytes)


def shuffle_weight(weight: torch.Tensor) -> torch.Tensor:
    """N x K: for each 16 rows, pieces of 16 bytes of each row, all rows' first pieces, then all second ones ..."""
    n, k = weight.shape
    piece = 16 // weight.element_size()
    return weight.view(n // 16, 16, k // piece, piece).transpose(1, 2).contiguous().view(n, k)


def tiles(extent: int, tile: int) -> int:
    return -(-extent // tile)
