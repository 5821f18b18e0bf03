"""explain(): which kernel and config each call would run and why, or why not.

Runs no kernel and allocates nothing: the function is traced on fake tensors, and every routed op is decided
by the wrapper that serves real calls.
"""

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

from . import _C, _install
from ._table import table

_KEYS = {"cdna": "PrivateUse1", "cuda": "CUDA"}


class Explanation:
    """.calls is a list of dicts, one per routed call; str() is the text."""

    def __init__(self, calls):
        self.calls = calls

    def __str__(self):
        if not self.calls:
            return "no call to an op that torch_mi350 routes"
        return "\n\n".join("\n".join(_lines(call)) for call in self.calls)

    __repr__ = __str__


def _lines(call):
    answer = call["kernel"] if call["kernel"] else f"stock: {call['refused']}"
    lines = [
        f"{call['op']} {call['problem']} -> {answer}"
        + (f"  ({call['times']} times)" if call["times"] > 1 else "")
    ]
    if not call["candidates"]:
        return lines
    rows = []
    for config, refused, cost in sorted(call["candidates"], key=lambda c: (bool(c[1]), c[2])):
        verdict = (
            f"no: {refused}"
            if refused
            else f"cost {cost:.6g}" + (", chosen" if config == call["kernel"] else "")
        )
        rows.append((config, verdict))
    return lines + ["  " + line for line in table(("config", "verdict"), rows)]


def _installed_overloads():
    rows = [row for home, _ in _install.homes.values() for row in home or () if not row["skipped"]]
    return {(row["name"], row["key"]) for row in rows}


class _Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []
        self._installed = _installed_overloads()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        namespace, _, name = func.name().partition("::")
        if namespace == "aten":
            self._decide(func, name, args, kwargs)
        return func(*args, **kwargs)

    def _decide(self, func, name, args, kwargs):
        tensors = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, torch.Tensor)]
        homes = {_KEYS.get(t.device.type) for t in tensors}
        for key in ("PrivateUse1", "CUDA"):  # the order of the dispatcher
            if key in homes and (name, key) in self._installed:
                self._record(func, key, args, kwargs)
                return

    def _record(self, func, key, args, kwargs):
        _C.begin_explaining()
        try:
            with torch._C._DisableTorchDispatch():
                func.redispatch(torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key)), *args, **kwargs)
        finally:
            self._merge(_C.end_explaining())

    def _merge(self, calls):
        for call in calls:
            same = next(
                (
                    c
                    for c in self.calls
                    if (c["op"], c["problem"], c["kernel"], c["refused"])
                    == (call["op"], call["problem"], call["kernel"], call["refused"])
                ),
                None,
            )
            if same is None:
                self.calls.append({**call, "times": 1})
            else:
                same["times"] += 1


def _fake_module(module, mode):
    """Parameters and buffers of `module` as fake tensors, by name."""
    tensors = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    return {name: mode.from_tensor(t) for name, t in tensors.items()}


def explain(fn, *args, **kwargs):
    """Decides every routed call that fn(*args, **kwargs) would make; fn is a function or a module."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    recorder = _Recorder()
    fake_args, fake_kwargs = tree_map_only(torch.Tensor, mode.from_tensor, (args, kwargs))
    try:
        with mode, recorder:
            if isinstance(fn, torch.nn.Module):
                torch.func.functional_call(fn, _fake_module(fn, mode), fake_args, fake_kwargs)
            else:
                fn(*fake_args, **fake_kwargs)
    except torch._subclasses.fake_tensor.DataDependentOutputException as error:
        raise RuntimeError(
            f"explain: the function reads the values of a tensor ({error.func}), which are not computed "
            "here; explain a part of it that does not"
        ) from None
    return Explanation(recorder.calls)
