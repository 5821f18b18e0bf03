"""Which path served the calls of a block: a test passes only if the path that it meant to test was taken."""
from __future__ import annotations

from contextlib import contextmanager


class Served:
    """Filled when the block ends: {kernel: calls} and {reason: calls} of the op, overloads together."""

    def __init__(self):
        self.hits: dict[str, int] = {}
        self.misses: dict[str, int] = {}


@contextmanager
def served(op):
    """Counts of `op` (an aten name such as mm) in the block."""
    import torch_mi350
    before, counts = _counts(torch_mi350.report().dict(), op), Served()
    yield counts
    after = _counts(torch_mi350.report().dict(), op)
    for name in ("hits", "misses"):
        difference = {key: calls - before[name].get(key, 0) for key, calls in after[name].items()}
        setattr(counts, name, {key: calls for key, calls in difference.items() if calls})


@contextmanager
def served_by_kernel(op, calls=1, containing="mi350_gemm"):
    """Every call of `op` in the block ran one of our kernels, and there were `calls` of them."""
    with served(op) as counts:
        yield counts
    hits = sum(calls for kernel, calls in counts.hits.items() if containing in kernel)
    assert hits == calls and not counts.misses, (
        f"{op}: {calls} calls must be served by kernels named *{containing}*, "
        f"got hits {counts.hits} and misses {counts.misses}")


def _counts(report, op):
    total = {"hits": {}, "misses": {}}
    for name, entry in report.items():
        if name.split(".")[0] == op:
            for kind, counts in total.items():
                for key, calls in entry.get(kind, {}).items():
                    counts[key] = counts.get(key, 0) + calls
    return total
