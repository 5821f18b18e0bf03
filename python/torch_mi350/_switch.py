"""enable(), disable() and disabled(): flags that every thread sees.

Disabled ops run as if we were not there.
"""

import contextlib

from . import _C


def _chosen(ops):
    known = _C.ops()
    for op in ops:
        if op not in known:
            raise ValueError(
                f"torch_mi350: no op is called {op!r}, known ops are {', '.join(known) or 'none'}"
            )
    return list(ops) or known


def enable(*ops):
    """Routes these ops (all without arguments) to our kernels."""
    for op in _chosen(ops):
        _C.set_enabled(op, True)


def disable(*ops):
    """Leaves these ops (all without arguments) to the kernels that were there before."""
    for op in _chosen(ops):
        _C.set_enabled(op, False)


@contextlib.contextmanager
def disabled(*ops):
    """disable() for a block, in the whole process: backward runs on other threads. Blocks nest."""
    chosen = _chosen(ops)
    for op in chosen:
        _C.push_disabled(op)
    try:
        yield
    finally:
        for op in chosen:
            _C.pop_disabled(op)
