"""The checks of the doctor that use the device, in a process of their own: each prints a line before it starts
and one with its result, so that a crash is known by what was running."""

import ctypes
import json
import pathlib
import re
import sys

import torch

from . import _C, _install
from ._status import status
from .doctor import PREFIX, REINSTALL

_SYMBOL = re.compile(r"mi350_gemm_(bf16|f16|f32)_([nts]{2})_(\d+)x(\d+)x(\d+)_s\d+")
_DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
_REGISTERED = "torch_mi350/register.cpp"
_KEYS = {"cdna": "PrivateUse1", "cuda": "CUDA"}
_ATTACH = "Attach the JSON of --json to an issue."


def _say(**message):
    sys.stdout.flush()
    print(PREFIX + json.dumps(message), flush=True)


def _check(name, function, *args):
    """Runs one check: `function` returns (status, detail, todo)."""
    _say(running=name)
    try:
        state, detail, todo = function(*args)
    except Exception as error:  # noqa: BLE001  (whatever it is, it is what the user must read)
        text = str(error).strip().splitlines() or [""]
        state, detail, todo = "FAIL", f"{type(error).__name__}: {text[0]}", _ATTACH
    _say(name=name, status=state, detail=detail, todo=todo)
    return state


# ---- code objects -----------------------------------------------------------------------------------------


def _decided(calls):
    """What the planner says about `calls`, which run no kernel."""
    _C.begin_explaining()
    try:
        calls()
    finally:
        decisions = _C.end_explaining()
    return decisions


def kernels():
    """{code object file: [symbols]} of the whole config table."""

    def every_dtype():
        for dtype in _DTYPES.values():
            x = torch.empty(16, 16, dtype=dtype, device="cdna")
            torch.mm(x, x)

    table = {}
    for call in _decided(every_dtype):
        for symbol, _, _ in call["candidates"]:
            dtype, _, m, n, k = _SYMBOL.fullmatch(symbol).groups()
            table.setdefault(f"gemm_{dtype}_{m}x{n}x{k}.hsaco", []).append(symbol)
    return table


class Emulator:
    """The emulator's HIP functions, beside those that the extension uses."""

    def __init__(self):
        self._lib = ctypes.CDLL(str(pathlib.Path(_C.package_dir()) / "libmi350emu.so"))
        self._lib.mi350emuLastReport.restype = ctypes.c_char_p
        self._lib.hipGetErrorString.restype = ctypes.c_char_p

    def why_not(self, path, symbols):
        """None if the object loads and has every symbol, else why not."""
        image, module = path.read_bytes(), ctypes.c_void_p()
        error = self._lib.hipModuleLoadData(ctypes.byref(module), image)
        if error:
            report = (self._lib.mi350emuLastReport() or b"").decode(errors="replace").strip().splitlines()
            return (report or [self._lib.hipGetErrorString(error).decode()])[0]
        try:
            missing = [s for s in symbols if not self._has(module, s)]
        finally:
            self._lib.hipModuleUnload(module)
        return f"it has no kernel {', '.join(missing)}" if missing else None

    def _has(self, module, symbol):
        function = ctypes.c_void_p()
        return self._lib.hipModuleGetFunction(ctypes.byref(function), module, symbol.encode()) == 0


def check_object(emulator, name, symbols):
    path = pathlib.Path(_C.package_dir()) / "code_objects" / name
    if not path.is_file():
        return "FAIL", f"{path} is missing", REINSTALL
    why = emulator.why_not(path, symbols)
    if why is not None:
        return "FAIL", f"{path} is damaged: {why}", REINSTALL
    return "PASS", f"{len(symbols)} kernels resolve, {path.stat().st_size >> 10} KiB", ""


def check_compiler(compiler):
    if compiler.startswith("unknown"):
        return (
            "FAIL",
            "code_objects/compiler.txt is missing: who compiled the code objects is not known",
            REINSTALL,
        )
    return "PASS", compiler, ""


# ---- kernels ----------------------------------------------------------------------------------------------


def _case(symbol):
    """Overhangs the tile of the row as far as its 16-byte loads allow; k fills its pipeline."""
    from .testing import cases

    dtype, layout, block_m, block_n, block_k = _SYMBOL.fullmatch(symbol).groups()
    m, n, k = int(block_m) + 9, int(block_n) + 21, 9 * int(block_k) // 2 + 3
    if layout == "ss":
        return cases.Case(m, n, k, "nn", _DTYPES[dtype], "every_second", "odd_pitch")
    eights = {"nn": "nk", "nt": "k", "tn": "mn", "tt": "mk"}[layout]
    m, n, k = (size // 8 * 8 if letter in eights else size for letter, size in zip("mnk", (m, n, k)))
    return cases.Case(m, n, k, layout, _DTYPES[dtype], "aligned_pitch", "aligned_pitch")


def _run_row(symbol, device):
    """Raises AssertionError if the row's result is outside the numerics policy."""
    from .testing import cases, compare, served

    case = _case(symbol)
    a, b = cases.operands(case, device=device)
    _C.pin("mm", symbol)
    try:
        with served.served_by_kernel("mm", containing=symbol):
            product = torch.mm(a.tensor, b.tensor)
    finally:
        _C.pin("mm", "")
    compare.assert_gemm(product, a.tensor, b.tensor, what=f"{symbol} {case}")


def check_rows(symbols, device):
    """One GEMM per config row, against float64 by the numerics policy."""
    for symbol in symbols:
        try:
            _run_row(symbol, device)
        except (AssertionError, RuntimeError) as error:
            text = str(error).strip().splitlines()[0]
            todo = f"The kernel is damaged or wrong: set TORCH_MI350_DISABLE=all meanwhile. {REINSTALL} {_ATTACH}"
            return "FAIL", f"{symbol}: {text}", todo
    layouts = ", ".join(_SYMBOL.fullmatch(symbol)[2] for symbol in symbols)
    return "PASS", f"{len(symbols)} rows ({layouts}) agree with float64 on {device}", ""


# ---- installation -----------------------------------------------------------------------------------------


def check_hip(facts):
    if facts["hip_runtime"]:
        return "PASS", pathlib.Path(facts["hip_runtime"]).name, ""
    if torch.version.hip is not None:
        return "FAIL", facts["why_no_hip"], "Import torch before anything else that loads a HIP runtime."
    return "skip", facts["why_no_hip"], ""


def check_devices(facts):
    seen = [f"{d['device']} {d['arch']} ({d['served']})" for d in facts["devices"]]
    found = "; ".join(seen) or "none"
    if not seen:
        return "FAIL", f"no device is served: {facts['why_inactive']}", _ATTACH
    if facts["why_inactive"] and torch.version.hip is not None:
        return (
            "FAIL",
            f"{found}; cuda: {facts['why_inactive']}",
            "Check that the GPU is an MI350X or MI355X and visible.",
        )
    return "PASS", found, ""


def check_overloads(home):
    """Each row of csrc/register.cpp is what the dispatcher calls."""
    rows, key = _install.homes[home][0], _KEYS[home]
    skipped = [f"{row['name']} ({row['skipped']})" for row in rows if row["skipped"]]
    installed = [row["name"] for row in rows if not row["skipped"]]
    other = []
    for name in installed:
        found = re.search(rf"^{key}: registered at (\S+)", torch._C._dispatch_dump(f"aten::{name}"), re.M)
        if found is None or not found[1].startswith(_REGISTERED):
            other.append(f"{name} ({found[1] if found else 'nothing registered'})")
    if other:
        todo = "Another package has taken these ops after torch_mi350: import torch_mi350 last."
        return "FAIL", f"at {key} others serve {', '.join(other)}", todo
    text = f"{len(installed)} overloads read back at {key}"
    return "PASS", text + (f"; not installed: {', '.join(skipped)}" if skipped else ""), ""


def check_profiler():
    """The kernel appears in the profiler under the aten op that launched it."""
    if not _C.has_kineto_registry:
        return "skip", f"torch {torch.__version__} takes no profiler for the device", ""
    x = torch.ones(64, 64, dtype=torch.bfloat16, device="cdna")
    torch.mm(x, x)
    with torch.profiler.profile() as profile:
        torch.mm(x, x)
    rows = {row.key: row for row in profile.key_averages()}
    kernel = next((key for key in rows if key.startswith("mi350_gemm_")), None)
    if kernel is None:
        return "FAIL", "torch.profiler shows no kernel of mm", _ATTACH
    if not rows["aten::mm"].self_device_time_total > 0:
        return "FAIL", f"{kernel} is not attributed to aten::mm", _ATTACH
    return "PASS", f"{kernel} under aten::mm", ""


def main():
    facts = status().dict()
    _say(
        facts={
            k: facts[k]
            for k in ("version", "built_for_torch", "compiler", "devices", "gpus", "installed", "skipped")
        }
    )
    _check("HIP runtime", check_hip, facts)
    _check("devices", check_devices, facts)
    homes = [home for home in _KEYS if _install.homes[home][0] is not None]
    for home in homes:
        _check(f"aten overloads, {home}", check_overloads, home)
    _check("compiler", check_compiler, facts["compiler"])
    emulator, table = Emulator(), kernels()
    loads = {n: _check(n, check_object, emulator, n, symbols) == "PASS" for n, symbols in table.items()}
    for home in homes:
        for name, symbols in table.items():
            what = f"{name.removesuffix('.hsaco')}, {home}"
            if loads[name]:
                _check(what, check_rows, symbols, home)
            else:
                _say(name=what, status="skip", detail=f"needs {name}", todo="")
    _check("profiler", check_profiler)
