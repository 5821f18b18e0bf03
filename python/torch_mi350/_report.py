"""report(): what every call to a routed op became, and what `cdna` left to the CPU."""

import json
import time

from . import _C, _install
from ._table import table

_COUNTERS = ("launches", "workgroups", "instructions", "mfma_instructions", "mfma_flops", "global_bytes", "lds_bytes", "kernel_ns")
_started = time.perf_counter_ns()


def _emulates():
    return _install.homes.get("cdna", (None,))[0] is not None or _install.force == "emulate"


def emulator_counters():
    """What the emulator executed since import or reset(): launches, workgroups, instructions, mfma_instructions,
    mfma_flops (2mnk of every MFMA), global_bytes, lds_bytes, kernel_ns (host time). Zeros where nothing is emulated."""
    if not _emulates():
        return dict.fromkeys(_COUNTERS, 0)
    return _C.emulator_counters()


class Report:
    """A snapshot of the ledger. str() is the table; .dict() and .json() are for programs."""

    def __init__(self, ops, cpu, cpu_ns, kernel_ns, elapsed_ns):
        self._ops, self._cpu = ops, cpu
        self.cpu_ns = cpu_ns  # {op: ns} of the ops that ran on the CPU
        self.kernel_ns = kernel_ns  # host time inside emulated kernels
        self.elapsed_ns = elapsed_ns  # since import or reset()

    def dict(self):
        """{op: {"hits": {kernel: calls}, "misses": {reason: calls}}, "cpu": {op: calls}}"""
        return {
            **{op: {kind: dict(calls) for kind, calls in one.items()} for op, one in self._ops.items()},
            "cpu": dict(self._cpu),
        }

    def json(self, **kwargs):
        return json.dumps(self.dict(), **kwargs)

    @property
    def hits(self):
        return sum(sum(one["hits"].values()) for one in self._ops.values())

    @property
    def misses(self):
        return sum(sum(one["misses"].values()) for one in self._ops.values())

    def _routed_rows(self):
        total = max(self.hits + self.misses, 1)
        rows = []
        for op, one in sorted(self._ops.items()):
            for kernel, calls in sorted(one["hits"].items(), key=lambda item: -item[1]):
                rows.append((op, kernel, calls, f"{100 * calls / total:.1f} %"))
            for reason, calls in sorted(one["misses"].items(), key=lambda item: -item[1]):
                rows.append((op, f"stock: {reason}", calls, f"{100 * calls / total:.1f} %"))
        return rows

    def _cpu_rows(self):
        total = max(sum(self.cpu_ns.values()) + self.kernel_ns, 1)
        ordered = sorted(self._cpu, key=lambda op: -self.cpu_ns.get(op, 0))
        return [
            (op, self._cpu[op], f"{self.cpu_ns[op] / 1e6:.2f}", f"{100 * self.cpu_ns[op] / total:.1f} %")
            for op in ordered
        ]

    def __str__(self):
        lines = [f"torch_mi350: {self.hits} hits, {self.misses} misses"]
        rows = self._routed_rows()
        if rows:
            lines += ["", *table(("op", "kernel or reason", "calls", "share"), rows, right=(2, 3))]
        if self._cpu:
            cpu_ms, kernel_ms = sum(self.cpu_ns.values()) / 1e6, self.kernel_ns / 1e6
            share = 100 * cpu_ms / max(cpu_ms + kernel_ms, 1e-9)
            lines += [
                "",
                f"on the CPU: {sum(self._cpu.values())} calls, {cpu_ms:.2f} ms = {share:.1f} % "
                f"of CPU ops and emulated kernels ({kernel_ms:.2f} ms) together",
                "",
            ]
            lines += table(("op", "calls", "ms", "share"), self._cpu_rows(), right=(1, 2, 3))
        return "\n".join(lines)

    __repr__ = __str__


def report():
    """Counts since import or reset(): hits by kernel, misses by reason, ops that ran on the CPU."""
    counts = _C.report()
    return Report(
        counts["ops"],
        counts["cpu"],
        counts["cpu_ns"],
        emulator_counters()["kernel_ns"],
        time.perf_counter_ns() - _started,
    )


def reset():
    """Sets all counts to zero."""
    global _started
    _C.reset()
    if _emulates():
        _C.reset_emulator_counters()
    _COUNTERS = ("launches", "workgroups", "instructions", "mfma_instructions", "mfma_flops", "global_bytes", "lds_bytes", "kernel_ns")
_started = time.perf_counter_ns()
