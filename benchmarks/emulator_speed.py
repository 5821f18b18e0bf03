"""Speed of the emulator itself, as rows of bench.py: MFMA against stock, VALU instructions, the cost of check mode.

Both modes of a row run in turn in one process; what a mode computes is compared bit by bit before it is timed.
"""
import contextlib
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import torch

import torch_mi350
from torch_mi350.testing import compare

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))
from emulator import Emulator  # noqa: E402  the ctypes view that peers use

BF16, CONFIG = torch.bfloat16, "mi350_gemm_bf16_nn_256x256x64_s2"
CLANG = os.environ.get("MI350_CLANG", "clang-22")
FLAGS = ("-x hip --offload-arch=gfx950 --offload-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -O3").split()
GROUPS, ROUNDS = 16, 2000  # long enough that starting threads and waves does not count


@contextlib.contextmanager
def pinned(op, config):
    torch_mi350._C.pin(op, config)
    try:
        yield
    finally:
        torch_mi350._C.pin(op, "")


def emulator():
    """The library that the package runs on, not another copy."""
    os.environ["MI350_EMU"] = str(pathlib.Path(torch_mi350._C.package_dir()) / "libmi350emu.so")
    return Emulator()


def gemm_operands(n):
    torch.manual_seed(0)
    a, b = torch.randn(n, n), torch.randn(n, n)
    return a, b, a.to(BF16).to("cdna"), b.to(BF16).to("cdna")


def gemm_rate(interleaved, cores):
    """Emulated bf16 GEMM 2048^3 by the 256x256 config against torch's fp32 CPU mm."""
    n = 2048
    torch.set_num_threads(cores)
    host_a, host_b, a, b = gemm_operands(n)
    with pinned("mm", CONFIG):
        compare.assert_gemm(a @ b, a, b, what="mm 2048")
        ours, stock = interleaved([lambda: a @ b, lambda: host_a @ host_b], 5)
    rates = [2 * n**3 / t * 1e-9 for t in (ours, stock)]
    return {"value": rates[0] / rates[1], "detail": f"{rates[0]:.2f} against {rates[1]:.1f} GFLOP/s, {cores} threads"}


class Valu:
    """The VALU loop, compiled here and launched through HIP's C functions."""

    def __init__(self):
        self.emulator = emulator()
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder) / "valu_rate.hsaco"
            subprocess.run([CLANG, *FLAGS, str(HERE / "valu_rate.hip"), "-o", str(made)], check=True)
            self.module = self.emulator.module(made)
        self.function = self.module.function("valu_rate")
        self.out = self.emulator.filled(4 * 256 * GROUPS)

    def run(self):
        arguments = struct.pack("<QIff", self.out.pointer, ROUNDS, 0.5, 1.25)
        self.emulator.launch(self.function, (GROUPS, 1, 1), (256, 1, 1), 0, arguments)

    def result(self):
        return self.out.read(torch.int32, 256 * GROUPS)

    def instructions(self):
        self.emulator.library.mi350emuResetCounters()
        self.run()
        return self.emulator.counters()["instructions"]


def valu_rate(interleaved, cores):
    """Wave-instructions per second of the VALU loop."""
    valu = Valu()
    count = valu.instructions()
    (elapsed,) = interleaved([valu.run], 7)
    return {"value": count / elapsed * 1e-6, "detail": f"{count} wave-instructions, {cores} threads"}


def in_mode(library, mode, run):
    def checked():
        library.set_mode(mode)
        run()

    return checked


def mode_cost(interleaved, run, result, rounds):
    """Seconds in check mode over seconds in fast mode; both give the same bits and check mode finds nothing."""
    library = emulator()
    library.library.mi350emuClearFindings()
    bits = []
    for mode in ("fast", "check"):
        in_mode(library, mode, run)()
        bits.append(result())
    compare.assert_bits_equal(bits[1], bits[0], "check mode and fast mode")
    check, fast = interleaved([in_mode(library, mode, run) for mode in ("check", "fast")], rounds)
    library.set_mode("fast")
    if found := library.findings():
        raise RuntimeError(f"check mode finds {found[0]}")
    return {"value": check / fast, "detail": f"{check * 1e3:.0f} against {fast * 1e3:.0f} ms"}


def check_gemm(interleaved, cores):
    """bf16 GEMM 1024^3 by the 256x256 config, check mode over fast mode."""
    _, _, a, b = gemm_operands(1024)
    out = torch.empty(1024, 1024, dtype=BF16, device="cdna")
    with pinned("mm", CONFIG):
        return mode_cost(interleaved, lambda: torch.mm(a, b, out=out), lambda: out.cpu(), 5)


def check_valu(interleaved, cores):
    """The VALU loop, check mode over fast mode."""
    valu = Valu()
    return mode_cost(interleaved, valu.run, valu.result, 7)
