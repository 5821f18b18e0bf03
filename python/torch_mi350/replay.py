"""python -m torch_mi350.replay FILE: whose fault is the mismatch that TORCH_MI350_VERIFY recorded?

Reruns the recorded call on the emulated device with the recorded config pinned, and stock on the CPU, and judges
all results against float64 by the numerics policy. Exit status and verdict:

  0  tolerance              the recorded result is inside the policy; stock's differs from it
  2  -                      the file cannot be replayed: damaged, of another version, config unknown here
  3  kernel                 the emulated result is outside the policy: the machine code of this package is wrong
  4  hardware               the recorded one is outside, the emulated one inside, and it is the same code object
  5  another code object    as 4, but this package's code object is not the one that was recorded
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
from typing import NamedTuple

import torch

from . import _C, _install, _verify
from ._table import table

EXIT = {"tolerance": 0, "kernel": 3, "hardware": 4, "another code object": 5}
UNUSABLE = 2

_KEYS = {
    "format": int,
    "op": str,
    "name": str,
    "overload": str,
    "problem": str,
    "kernel": str,
    "launch": dict,
    "device": str,
    "board": str,
    "arguments": list,
    "ours": torch.Tensor,
    "versions": dict,
    "flags": dict,
}
_VERSIONS = ("torch", "torch_mi350", "compiler", "object", "object_sha256")


class Unusable(Exception):
    """The file cannot be replayed; the text is the sentence for the user."""


# ---- the file ---------------------------------------------------------------------------------------------


def load(path, any_version=False):
    """The checked content of a repro file. Raises Unusable."""
    if not pathlib.Path(path).is_file():
        raise Unusable(f"{path}: no such file")
    try:
        repro = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # noqa: BLE001  (torch raises many types for files that it cannot read)
        raise Unusable(f"{path} is damaged or no file of TORCH_MI350_VERIFY: {_first_line(error)}") from None
    if not isinstance(repro, dict) or "format" not in repro:
        raise Unusable(f"{path} is no file of TORCH_MI350_VERIFY")
    if repro["format"] != _verify.FORMAT:
        raise Unusable(
            f"{path} has format {repro['format']}, this torch_mi350 reads format {_verify.FORMAT}: "
            "replay it with the version that wrote it"
        )
    _check_content(path, repro)
    wrote, here = repro["versions"]["torch_mi350"], _install.package_version()
    if wrote != here and not any_version:
        raise Unusable(
            f"{path} was written by torch_mi350 {wrote}, this is {here}: replay it with that version, or "
            "pass --any-version to judge this version's kernels on it"
        )
    return repro


def _check_content(path, repro):
    wrong = [key for key, kind in _KEYS.items() if not isinstance(repro.get(key), kind)]
    wrong += [
        f"versions.{key}" for key in _VERSIONS if not isinstance(repro.get("versions", {}).get(key), str)
    ]
    if wrong:
        raise Unusable(f"{path} is damaged: {', '.join(wrong)} missing or of another type")
    if repro["op"] not in _verify._OPERANDS:
        raise Unusable(f"{path} records the op {repro['op']!r}, known are {', '.join(_verify._OPERANDS)}")
    try:
        names = _verify.argument_names(repro["name"], repro["overload"])
    except RuntimeError:
        raise Unusable(
            f"{path} records {repro['name']} {repro['overload']}, which torch {torch.__version__} does not "
            "have"
        ) from None
    if [argument.get("name") for argument in repro["arguments"]] != names:
        raise Unusable(f"{path} is damaged: the arguments of {repro['name']} must be {', '.join(names)}")


def decode(spec, device):
    """The tensor that _verify.encode saw: same strides, same address modulo 256; NaN between what was saved."""
    values, sizes, strides = spec["values"], spec["sizes"], spec["strides"]
    extent = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides)) if 0 not in sizes else 0
    slack = _verify.ALIGNMENT // values.element_size()
    buffer = torch.full((extent + slack,), float("nan"), dtype=values.dtype, device=device)
    shift = (spec["address"] - buffer.data_ptr()) % _verify.ALIGNMENT // values.element_size()
    t = buffer.as_strided(sizes, strides, shift)
    if spec["packed"]:
        t.copy_(values.reshape(sizes))
    else:
        buffer[shift : shift + extent].copy_(values)
    return t


def arguments(repro, device):
    """{name: value} of the recorded call on `device`. Raises Unusable."""
    named = {}
    for argument in repro["arguments"]:
        if "tensor" in argument:
            try:
                value = decode(argument["tensor"], device)
            except RuntimeError as error:
                raise Unusable(
                    f"the recorded tensor {argument['name']} cannot be made: {_first_line(error)}"
                ) from None
        elif "same_as" in argument:
            value = named[argument["same_as"]]
        elif "dtype" in argument:
            value = getattr(torch, argument["dtype"])
        else:
            value = argument["value"]
        named[argument["name"]] = value
    return named


# ---- running it -------------------------------------------------------------------------------------------


def _call(repro, named):
    function = getattr(
        getattr(torch.ops.aten, repro["name"].partition("::")[2]), repro["overload"] or "default"
    )
    positional, keywords = [], {}
    for argument in function._schema.arguments:
        if argument.kwarg_only:
            keywords[argument.name] = named[argument.name]
        else:
            positional.append(named[argument.name])
    with torch.no_grad():
        return function(*positional, **keywords)


def _prepare_device():
    if _install.homes["cdna"][0] is None:  # a GPU build of torch
        from . import cdna

        cdna.register()
        _install.homes["cdna"] = (_C.install_cdna(), "")
    for op in _C.ops():
        _C.set_enabled(op, True)
    _verify.clear()


def emulate(repro):
    """(result, None), or (None, why) if the emulator stopped the kernel. Raises Unusable if it was not run."""
    op, kernel = repro["op"], repro["kernel"]
    try:
        _C.pin(op, kernel)
    except (ValueError, RuntimeError):
        raise Unusable(f"this torch_mi350 has no kernel {kernel} for {op}") from None
    named = arguments(repro, "cdna")
    flags = repro["flags"]
    torch.use_deterministic_algorithms(bool(flags.get("deterministic")))
    for name in ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"):
        setattr(torch.backends.cuda.matmul, name, bool(flags.get(name, True)))
    _C.reset()
    try:
        result = _call(repro, named).cpu()
    except RuntimeError as error:
        if kernel in str(error):
            return None, str(error)
        raise
    served = _C.report()["ops"].get(op, {"hits": {}, "misses": {}})
    if served["hits"] != {kernel: 1}:
        reason = ", ".join(served["misses"]) or f"served by {', '.join(served['hits']) or 'nothing'}"
        raise Unusable(f"{kernel} does not serve {op} {repro['problem']} here: {reason}")
    return result, None


def _run_stock(repro):
    try:
        return _call(repro, arguments(repro, "cpu"))
    except (RuntimeError, NotImplementedError):
        return None


# ---- the verdict ------------------------------------------------------------------------------------------


class Replay(NamedTuple):
    verdict: str
    lines: list


def _row(name, judge, result):
    if result is None:
        return (name, "-", "-", "-", "-", "no result")
    at, ratio = judge.worst(result)
    inside = "inside" if judge.outside(result) is None else "OUTSIDE"
    return (
        name,
        at,
        f"{result[at].item():.9g}",
        f"{judge.expected.exact[at].item():.9g}",
        f"{ratio:.3g}",
        inside,
    )


def _decide(repro, judge, emulated, stopped, here):
    recorded_bad = judge.outside(repro["ours"])
    same = here == repro["versions"]["object_sha256"]
    if stopped is not None:
        return "kernel", f"the emulator stopped it: {stopped}"
    emulated_bad = judge.outside(emulated)
    if emulated_bad is not None:
        code = (
            "the recorded code object"
            if same
            else "this package's code object, which is another than the recorded one,"
        )
        return "kernel", f"{code} gives a wrong result in the emulator: {emulated_bad.text}"
    if recorded_bad is None:
        return (
            "tolerance",
            "the recorded result is inside the policy of the float64 result; stock's differs from it",
        )
    if same:
        where = (
            f"{repro['board']} did not compute what the same machine code computes in the emulator: the device, its "
            "driver, or a race that the emulator does not show"
        )
        if repro["device"].startswith("cdna"):
            where += " (it was recorded on the emulated device: suspect this host's memory or threads)"
        return "hardware", f"{where}. Recorded: {recorded_bad.text}"
    return "another code object", (
        "the recorded result is wrong and this package's is right, but it runs another code object "
        f"(sha256 {here[:12]}, recorded {repro['versions']['object_sha256'][:12]}): the recorded code object or the "
        "hardware is at fault; "
        f"replay with the package that recorded it to tell which. Recorded: {recorded_bad.text}"
    )


def replay(repro):
    """Reruns a loaded repro. Raises Unusable."""
    os.environ["TORCH_MI350_EMU"] = "check"
    _prepare_device()
    emulated, stopped = emulate(repro)
    judge = _verify.Judge(repro["op"], arguments(repro, "cpu"), repro["ours"].dtype)
    if repro["ours"].shape != judge.expected.exact.shape:
        raise Unusable(
            f"the recorded result has shape {tuple(repro['ours'].shape)}, "
            f"its inputs give {tuple(judge.expected.exact.shape)}"
        )
    here = _verify.object_hash(repro["versions"]["object"])
    verdict, why = _decide(repro, judge, emulated, stopped, here)
    facts = repro["versions"]
    rows = [
        _row("recorded", judge, repro["ours"]),
        _row("emulated, check mode", judge, emulated),
        _row("stock, recorded", judge, repro.get("stock")),
        _row("stock, CPU", judge, _run_stock(repro)),
    ]
    lines = [
        f"{repro['op']} {repro['problem']} -> {repro['kernel']}, grid {repro['launch'].get('grid')}",
        f"recorded on {repro['device']} ({repro['board']}), torch {facts['torch']}, torch_mi350 {facts['torch_mi350']}",
        f"code object {facts['object']} {facts['object_sha256'][:12]}, here {here[:12]}; compiler {facts['compiler']}",
        "",
        *table(("result", "worst at", "value", "float64", "error/bound", "policy"), rows, right=(2, 3, 4)),
        "",
    ]
    if emulated is not None:
        different = int(
            (emulated.view(torch.uint8) != repro["ours"].view(torch.uint8))
            .reshape(*emulated.shape, -1)
            .any(-1)
            .sum()
        )
        lines.append(f"recorded and emulated result differ in {different} of {emulated.numel()} elements")
    return Replay(verdict, [*lines, f"verdict: {verdict}", f"  {why}"])


def _first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m torch_mi350.replay",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file")
    parser.add_argument("--any-version", action="store_true", help="replay a file of another torch_mi350")
    asked = parser.parse_args(argv)
    try:
        repro = load(asked.file, asked.any_version)
        try:
            result = replay(repro)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            raise Unusable(f"{asked.file} is damaged: {type(error).__name__}: {_first_line(error)}") from None
    except Unusable as sentence:
        print(f"replay: {sentence}", file=sys.stderr)
        return UNUSABLE
    print("\n".join(result.lines))
    return EXIT[result.verdict]


if __name__ == "__main__":
    sys.exit(main())
