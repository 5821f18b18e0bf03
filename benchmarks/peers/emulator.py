"""The emulator from Python: ctypes on the HIP functions that libmi350emu.so exports.

No torch_mi350 is imported, so a peer's code object runs without our kernels and without our dispatch. The library is
MI350_EMU=FILE, else the one of this checkout's build/cmake, else the one of the installed package; mi350-emu lies
beside it. Numbers of the HIP ABI: csrc/emu/hip_types.h; of the findings: csrc/emu/emu_api.h.
"""
from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import pathlib

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
EXTRA_POINTER, EXTRA_SIZE, EXTRA_END = 1, 2, 3


class EmulatorError(RuntimeError):
    """A HIP function failed; the text is the emulator's own sentence or report."""


def library_path() -> pathlib.Path:
    if named := os.environ.get("MI350_EMU"):
        return pathlib.Path(named)
    candidates = [ROOT / "build/cmake/torch_mi350/libmi350emu.so"]
    if spec := importlib.util.find_spec("torch_mi350"):
        candidates.append(pathlib.Path(spec.origin).parent / "libmi350emu.so")
    for path in candidates:
        if path.exists():
            return path
    raise EmulatorError("libmi350emu.so was not found: build this checkout, install torch_mi350 or set MI350_EMU")


def command_path() -> pathlib.Path:
    return library_path().with_name("mi350-emu")


class Counters(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in
                ("launches", "workgroups", "instructions", "mfma_instructions", "mfma_flops", "global_bytes",
                 "lds_bytes", "kernel_ns")]


class Buffer:
    """Device memory of exactly the bytes of one tensor: an access past its end is a fault."""

    def __init__(self, emulator: "Emulator", bytes_: int):
        self.emulator, self.bytes, self.pointer = emulator, bytes_, 0
        out = ctypes.c_void_p()
        emulator.call("hipMalloc", ctypes.byref(out), ctypes.c_size_t(bytes_))
        self.pointer = out.value or 0

    def __del__(self):
        if self.pointer:
            self.emulator.library.hipFree(ctypes.c_void_p(self.pointer))

    def write(self, tensor: torch.Tensor) -> "Buffer":
        tensor = tensor.contiguous()
        self._copy(self.pointer, tensor.data_ptr(), tensor.nbytes, HOST_TO_DEVICE)
        return self

    def read(self, dtype: torch.dtype, *shape: int) -> torch.Tensor:
        out = torch.empty(shape, dtype=dtype)
        self._copy(out.data_ptr(), self.pointer, out.nbytes, DEVICE_TO_HOST)
        return out

    def _copy(self, to: int, source: int, bytes_: int, kind: int) -> None:
        if bytes_ > self.bytes:
            raise ValueError(f"a copy of {bytes_} bytes, the buffer has {self.bytes}")
        if bytes_:
            self.emulator.call("hipMemcpy", ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(bytes_), kind)


class Module:
    """A loaded code object. Keep it alive while its functions are used."""

    def __init__(self, emulator: "Emulator", image: bytes):
        self.emulator, self.image = emulator, ctypes.create_string_buffer(image, len(image))
        self.handle = ctypes.c_void_p()
        emulator.call("hipModuleLoadData", ctypes.byref(self.handle), self.image)

    def __del__(self):
        if self.handle:
            self.emulator.library.hipModuleUnload(self.handle)

    def function(self, symbol: str) -> ctypes.c_void_p:
        out = ctypes.c_void_p()
        self.emulator.call("hipModuleGetFunction", ctypes.byref(out), self.handle, symbol.encode())
        return out


class Emulator:
    """One process has one: mode, findings and counters are the library's, not this object's."""

    def __init__(self):
        self.path = library_path()
        self.library = ctypes.CDLL(str(self.path))
        self.library.hipGetErrorString.restype = ctypes.c_char_p
        self.library.mi350emuLastReport.restype = ctypes.c_char_p

    def call(self, function: str, *arguments) -> None:
        if status := getattr(self.library, function)(*arguments):
            name = self.library.hipGetErrorString(status).decode()
            report = (self.library.mi350emuLastReport() or b"").decode(errors="replace").strip()
            raise EmulatorError(f"{function}: {name} ({status})" + (f"\n{report}" if report else ""))

    def buffer(self, tensor: torch.Tensor) -> Buffer:
        """Device copy of a tensor's elements in row-major order."""
        return Buffer(self, tensor.nbytes).write(tensor)

    def filled(self, bytes_: int, byte: int = 0xFF) -> Buffer:
        """Output memory with a pattern (0xFF: NaN in every float type), so that a missing store shows."""
        return Buffer(self, bytes_).write(torch.full((bytes_,), byte, dtype=torch.uint8))

    def module(self, path) -> Module:
        return Module(self, pathlib.Path(path).read_bytes())

    def launch(self, function, grid, block, lds: int, kernarg: bytes) -> None:
        """Arguments go through `extra`, whose size is trusted; grid in workgroups, lds = dynamic bytes."""
        data = ctypes.create_string_buffer(kernarg, max(len(kernarg), 1))
        size = ctypes.c_size_t(len(kernarg))
        extra = (ctypes.c_void_p * 5)(EXTRA_POINTER, ctypes.addressof(data), EXTRA_SIZE, ctypes.addressof(size), EXTRA_END)
        self.call("hipModuleLaunchKernel", function, *(ctypes.c_uint(n) for n in (*grid, *block, lds)), None, None, extra)

    def counters(self) -> dict:
        out = Counters()
        self.library.mi350emuCounters(ctypes.byref(out))
        return {name: getattr(out, name) for name, _ in Counters._fields_}

    def set_mode(self, mode: str) -> None:
        """fast or check; a library without checkers knows only fast."""
        if hasattr(self.library, "mi350emuSetMode"):
            self.call("mi350emuSetMode", mode.encode())
        elif mode != "fast":
            raise EmulatorError(f"{self.path} has no check mode")

    def findings(self) -> list[dict]:
        """What check mode found so far; empty for a library without checkers."""
        if not hasattr(self.library, "mi350emuFindings"):
            return []
        self.library.mi350emuFindings.restype = ctypes.c_char_p
        return json.loads(self.library.mi350emuFindings())["findings"]
