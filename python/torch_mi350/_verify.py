"""TORCH_MI350_VERIFY: judges a call that ran both our kernel and the previous one, and writes repro files.

csrc/route/verify.cpp calls `_check` with the inputs as they were before the call. Our result must be inside the
numerics policy (testing/compare.py), and stock's must be as near to it as the policy lets both err. A mismatch
warns once per problem and writes `mi350-repro-<op>-<hash>.pt` for `python -m torch_mi350.replay`.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import threading
import warnings
from typing import NamedTuple

import torch

from . import _C
from .testing import compare, reference

FORMAT = 1
ALIGNMENT = 256  # bytes: repro files keep addresses modulo this

_lock = threading.Lock()
_settled = set()  # (op, problem, kernel) that warned: one file each is enough
_counts = {"checked": 0, "mismatched": 0, "failed": 0}


# ---- the variable -----------------------------------------------------------------------------------------


def parse(text, known):
    """{op: every_n} of `op[:every_n][,op...]`; `all` stands for every op."""
    chosen = {}
    for part in text.split(","):
        op, colon, every = (piece.strip() for piece in part.partition(":"))
        where = f"torch_mi350: TORCH_MI350_VERIFY is a list of op[:every_n], got {part.strip()!r}"
        if op != "all" and op not in known:
            raise ValueError(f"{where}: no op is called {op!r}, known ops are all, {', '.join(known)}")
        if colon and not (every.isascii() and every.isdecimal() and 0 < int(every) < 2**32):
            raise ValueError(f"{where}: every_n must be a number from 1 to {2**32 - 1}, got {every!r}")
        for name in known if op == "all" else (op,):
            if name in chosen:
                raise ValueError(f"{where}: {name} is named twice")
            chosen[name] = int(every) if colon else 1
    return chosen


def install(text):
    """Verifies the ops that `text` names from now on."""
    known = [op for op in _C.ops() if op in _OPERANDS]
    chosen = parse(text, known)
    _C.set_verify_callback(_check)
    for op in known:
        _C.set_verify(op, chosen.get(op, 0))


def clear():
    """Verifies nothing from now on."""
    for op in _C.ops():
        _C.set_verify(op, 0)


def counts():
    """{"checked", "mismatched", "failed"}: verifications of this process by outcome."""
    with _lock:
        return dict(_counts)


def _count(outcome):
    with _lock:
        _counts[outcome] += 1


# ---- judging ----------------------------------------------------------------------------------------------

# Which arguments of the overload are a, b and c of d = alpha * a @ b + beta * c.
_OPERANDS = {
    "mm": ("self", "mat2", None),
    "bmm": ("self", "mat2", None),
    "addmm": ("mat1", "mat2", "self"),
    "baddbmm": ("batch1", "batch2", "self"),
}


class Bad(NamedTuple):
    at: tuple  # the first bad element; if only a block's error is too large, the worst element; () if none
    limit: float  # what its distance may be
    elements: int  # elements beyond their limit
    text: str  # what the policy says
    rule: str = "outside the numerics policy"


class Judge:
    """The float64 result of one call and what it allows."""

    def __init__(self, op, named, dtype):
        a, b, c = (None if name is None else named[name].cpu() for name in _OPERANDS[op])
        self.op, self.k = op, a.shape[-1]
        self.expected = reference.gemm(
            a, b, c, alpha=named.get("alpha", 1), beta=named.get("beta", 1), out_dtype=dtype
        )
        exact, magnitude = self.expected.exact, self.expected.magnitude
        model_error = (self.expected.model.double() - exact).abs().nan_to_num(0.0, 0.0, 0.0)
        accumulation = compare.FP32_ROUNDING * (1 + self.k**0.5) * magnitude
        # The policy's bound of an element, as compare.assert_policy has it.
        self.bound = compare.SLACK * torch.maximum(compare.ulp(exact, dtype) / 2 + accumulation, model_error)
        # Stock may also round the product and the addend to the output type before it adds them.
        self.stock_bound = 2 * self.bound + 2 * compare.ulp(magnitude, dtype)

    def outside(self, result):
        """None if `result` is inside the policy, else a Bad."""
        try:
            compare.assert_policy(result, self.expected, k=self.k, what=self.op)
        except AssertionError as error:
            if result.shape != self.expected.exact.shape:
                return Bad((), 0.0, result.numel(), str(error))
            return _bad(_ratio(result, self.expected.exact, self.bound), self.bound, str(error))
        return None

    def differs(self, ours, stock):
        """None if two results are as near to each other as two right ones must be, else a Bad."""
        if ours.shape != stock.shape or ours.dtype != stock.dtype:
            return Bad((), 0.0, ours.numel(), f"stock's result is {stock.dtype} {tuple(stock.shape)}")
        ratio = _ratio(ours, stock, self.stock_bound)
        # Near the largest number one result may be Inf and the other not: `outside` judges that alone.
        ratio = torch.where(torch.isfinite(self.expected.exact.to(ours.dtype)), ratio, 0.0)
        if not (ratio > 1).any():
            return None
        return _bad(
            ratio,
            self.stock_bound,
            "stock's result differs",
            "inside the numerics policy, but not near stock's",
        )

    def worst(self, result):
        """(coordinate, error / bound) of the element that is furthest out."""
        ratio = _ratio(result, self.expected.exact, self.bound)
        at = _coordinate(ratio, int(ratio.argmax()))
        return at, float(ratio[at])


def _ratio(x, y, limit):
    """|x - y| / limit in float64; 0 where both are the same Inf or both NaN, Inf where only one is not finite."""
    x, y = x.detach().cpu().double(), y.detach().cpu().double()
    same = (x == y) | (torch.isnan(x) & torch.isnan(y))
    distance = (x - y).abs()
    ratio = torch.where(torch.isfinite(distance), distance / limit, float("inf"))
    return torch.where(same | torch.isnan(ratio), 0.0, ratio)


def _bad(ratio, limit, text, *rule):
    bad = ratio > 1
    at = tuple(bad.nonzero()[0].tolist()) if bad.any() else _coordinate(ratio, int(ratio.argmax()))
    return Bad(at, float(limit[at]), int(bad.sum()), text, *rule)


def _coordinate(t, flat):
    at = []
    for size in reversed(t.shape):
        flat, index = divmod(flat, size)
        at.append(index)
    return tuple(reversed(at))


# ---- one verification -------------------------------------------------------------------------------------


def argument_names(name, overload):
    return [argument.name for argument in torch._C._get_schema(name, overload).arguments]


def _check(*, op, problem, kernel, **call):
    """Called by C++ with both results. Raises nothing: the caller's result is not our business."""
    key = (op, problem, kernel)
    with _lock:
        if key in _settled:
            return
    try:
        with torch._C.DisableTorchFunction():
            message = _compare(op, problem, kernel, call)
        _count("checked")
    except Exception as error:  # noqa: BLE001  (whatever it is, it must not reach the caller)
        _count("failed")
        message = f"TORCH_MI350_VERIFY could not check {op} {problem}: {type(error).__name__}: {error}"
    if message is None:
        return
    with _lock:
        if key in _settled:
            return
        _settled.add(key)
    warnings.warn(f"torch_mi350: {message}", stacklevel=2)


def _compare(op, problem, kernel, call):
    """None, or what to warn about; the repro file is written."""
    ours, stock = call["ours"], call["stock"]
    named = dict(zip(argument_names(call["name"], call["overload"]), call["args"]))
    judge = Judge(op, named, ours.dtype)
    bad = judge.outside(ours) or (judge.differs(ours, stock) if stock is not None else None)
    if bad is None:
        return None
    _count("mismatched")
    try:
        path = _write(op, problem, kernel, call)
        written = (
            f"Written to {path}; python -m torch_mi350.replay {path} tells hardware, kernel and tolerance apart"
        )
    except OSError as error:
        written = f"The repro file could not be written: {error}"
    details = _describe(bad, judge, ours, stock, call["why_no_stock"])
    return f"{op} {problem} by {kernel} is {bad.rule}: {details}. {written}"


def _describe(bad, judge, ours, stock, why_no_stock):
    at = bad.at
    if not at:
        return bad.text
    stock_text = f"{stock[at].item():.9g}" if stock is not None else f"none ({why_no_stock})"
    values = (
        f"element {at}: ours {ours[at].item():.9g}, stock {stock_text}, "
        f"float64 {judge.expected.exact[at].item():.9g}, limit {bad.limit:.3g}"
    )
    if bad.elements == 0:
        return f"{bad.text}; the worst {values}"
    return f"first bad {values}; {bad.elements} of {ours.numel()} elements are bad"


# ---- repro files ------------------------------------------------------------------------------------------


def object_hash(name):
    """sha256 of a shipped code object."""
    return hashlib.sha256((pathlib.Path(_C.package_dir()) / "code_objects" / name).read_bytes()).hexdigest()


def versions(object_name):
    from . import _install

    compiler = pathlib.Path(_C.package_dir()) / "code_objects" / "compiler.txt"
    return {
        "torch": str(torch.__version__),
        "torch_mi350": _install.package_version(),
        "hip": str(torch.version.hip),
        "compiler": compiler.read_text().strip() if compiler.exists() else "unknown (no compiler.txt)",
        "object": object_name,
        "object_sha256": object_hash(object_name),
    }


def _flags():
    matmul = torch.backends.cuda.matmul
    return {
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "allow_fp16_reduced_precision_reduction": bool(matmul.allow_fp16_reduced_precision_reduction),
        "allow_bf16_reduced_precision_reduction": bool(matmul.allow_bf16_reduced_precision_reduction),
        "environment": {k: v for k, v in os.environ.items() if k.startswith("TORCH_MI350_")},
    }


def encode(t, layout):
    """The elements of `t` with the sizes, strides, storage offset and alignment of `layout`.

    Elements between the strided ones travel along unless they outnumber them by far.
    """
    extent = 1 + sum((size - 1) * stride for size, stride in zip(t.shape, t.stride())) if t.numel() else 0
    packed = extent > 4 * t.numel() + 4096
    values = t.contiguous().flatten() if packed else t.as_strided((extent,), (1,), t.storage_offset())
    return {
        "sizes": list(layout.shape),
        "strides": list(layout.stride()),
        "storage_offset": layout.storage_offset(),
        "address": layout.data_ptr() % ALIGNMENT,
        "packed": packed,
        "values": values.detach().cpu().clone(),
    }


def _encode_arguments(call):
    names, encoded, written = argument_names(call["name"], call["overload"]), [], None
    for i, (name, value) in enumerate(zip(names, call["args"])):
        if i in call["written"] and written is not None:
            encoded.append({"name": name, "same_as": written})
        elif isinstance(value, torch.Tensor):
            if i in call["written"]:
                written = name
            layout = call["ours"] if i in call["written"] else value
            encoded.append({"name": name, "tensor": encode(value, layout)})
        elif name == "out_dtype":
            encoded.append({"name": name, "dtype": str(call["ours"].dtype).removeprefix("torch.")})
        else:
            encoded.append({"name": name, "value": value})
    return encoded


def _write(op, problem, kernel, call):
    ours = call["ours"].detach().cpu().contiguous().clone()
    facts = versions(call["object"])
    identity = hashlib.sha256(repr((op, call["name"], call["overload"], problem, kernel, facts)).encode())
    identity.update(ours.flatten().view(torch.uint8).numpy().tobytes())
    device = call["ours"].device
    repro = {
        "format": FORMAT,
        "op": op,
        "name": call["name"],
        "overload": call["overload"],
        "problem": problem,
        "kernel": kernel,
        "launch": {**call["launch"], "grid": list(call["launch"]["grid"])},
        "device": str(device),
        "board": str(torch.get_device_module(device).get_device_name(device)),
        "arguments": _encode_arguments(call),
        "ours": ours,
        "stock": None if call["stock"] is None else call["stock"].detach().cpu().contiguous().clone(),
        "versions": facts,
        "flags": _flags(),
    }
    path = (
        pathlib.Path(os.environ.get("TORCH_MI350_REPRO_DIR") or ".")
        / f"mi350-repro-{op}-{identity.hexdigest()[:12]}.pt"
    )
    partial = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        with open(partial, "wb") as file:
            torch.save(repro, file)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return path
