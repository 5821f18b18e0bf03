"""A Triton code object and its JSON sidecar: launch facts, argument packing, grid.

The sidecar is what build_triton writes beside each object; another build's folder works as long as it has the keys
used here: symbol, code_object, constexprs, kernarg (name, offset, size, type or hidden), grid, block, shared_bytes,
kernarg_bytes. The symbol names the source kernel and so tells the family; everything else comes from the sidecar.
"""
from __future__ import annotations

import ast
import json
import operator
import pathlib
import struct

import torch

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp64": torch.float64, "i8": torch.int8,
          "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
          "fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}
SCALARS = {"i32": "<i", "i64": "<q", "u32": "<I", "fp32": "<f", "fp64": "<d"}
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
             ast.FloorDiv: operator.floordiv}


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


FUNCTIONS = {"cdiv": cdiv, "min": min, "max": max}


def evaluate(formula: str, names: dict) -> list[int]:
    """A grid formula: integers, names, + - * /, cdiv, min, max and one list. Nothing else is run."""
    def value(node):
        if isinstance(node, ast.List):
            return [value(item) for item in node.elts]
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name):
            return names[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
            return FUNCTIONS[node.func.id](*map(value, node.args))
        raise ValueError(f"grid formula {formula!r}: {ast.dump(node)} is not understood")
    return value(ast.parse(formula, mode="eval").body)


class TritonObject:
    def __init__(self, sidecar: pathlib.Path):
        self.facts = json.loads(sidecar.read_text())
        self.path = sidecar.with_name(self.facts["code_object"])
        self.name, self.symbol = self.path.stem, self.facts["symbol"]
        self.constants = self.facts["constexprs"]
        self.types = {a["name"]: a["type"] for a in self.facts["kernarg"] if "type" in a}

    def __getitem__(self, constant: str):
        """A compile-time constant of the kernel, such as BM."""
        return self.constants[constant]

    def dtype(self, argument: str) -> torch.dtype:
        """Element type of a pointer argument."""
        return DTYPES[self.types[argument].lstrip("*")]

    def kernarg(self, values: dict) -> bytes:
        """Pointers and scalars by name; hidden arguments are left 0: the runtime fills block counts and sizes in,
        and null scratch pointers are right for objects that ask for no scratch."""
        out = bytearray(self.facts["kernarg_bytes"])
        missing = [name for name in self.types if name not in values]
        if missing:
            raise ValueError(f"{self.name}: no value for {', '.join(missing)}")
        for argument in self.facts["kernarg"]:
            if "type" not in argument:
                continue
            value = values[argument["name"]]
            if argument["type"].startswith("*"):
                data = struct.pack("<Q", getattr(value, "pointer", value))
            else:
                data = struct.pack(SCALARS[argument["type"]], value)
            if len(data) != argument["size"]:
                raise ValueError(f"{self.name}: {argument['name']} has {argument['size']} bytes, packed {len(data)}")
            out[argument["offset"]:argument["offset"] + len(data)] = data
        return bytes(out)

    def grid(self, names: dict) -> list[int]:
        return evaluate(self.facts["grid"], {**self.constants, **names})

    def launch(self, emulator, values: dict, **grid_names: int) -> None:
        """One launch. `values`: the arguments; `grid_names`: what the grid formula needs beside them."""
        scalars = {name: v for name, v in values.items() if isinstance(v, int)}
        module = emulator.module(self.path)
        emulator.launch(module.function(self.symbol), self.grid({**scalars, **grid_names}), self.facts["block"],
                        self.facts["shared_bytes"], self.kernarg(values))


def objects(folder: pathlib.Path) -> list[TritonObject]:
    """Every object of a folder with a Triton sidecar, by name."""
    found = []
    for sidecar in sorted(pathlib.Path(folder).glob("*.json")):
        facts = json.loads(sidecar.read_text())
        if isinstance(facts, dict) and {"symbol", "code_object", "kernarg", "triton"} <= facts.keys():
            found.append(TritonObject(sidecar))
    return found
