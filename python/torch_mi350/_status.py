"""status(): what is installed, for which devices, and if nothing is, why."""

import pathlib

import torch

from . import _C, _install
from ._table import table


class Status:
    """.dict() for programs, str() for people. `active` is false if no device of this process is served."""

    def __init__(self, facts):
        self._facts = facts

    def dict(self):
        return dict(self._facts)

    @property
    def active(self):
        return bool(self._facts["devices"])

    def __str__(self):
        facts = self._facts
        lines = [
            f"torch_mi350 {facts['version']}, built for {facts['built_for_torch']}, on torch {facts['torch']}"
        ]
        if not self.active:
            lines.append("inactive: " + facts["why_inactive"])
        if facts["devices"]:
            rows = [(d["device"], d["arch"], d["served"]) for d in facts["devices"]]
            lines += ["", *table(("device", "arch", "served"), rows), ""]
        lines.append(f"HIP runtime: {facts['hip_runtime'] or facts['why_no_hip']}")
        lines.append(f"code objects: {facts['code_objects']} files, compiler {facts['compiler']}")
        for key, rows in facts["installed"].items():
            lines.append(f"installed at {key}: {', '.join(rows) or 'nothing'}")
        for name, reason in facts["skipped"].items():
            lines.append(f"not installed: {name}: {reason}")
        off = [op for op, on in facts["enabled"].items() if not on]
        if off:
            lines.append(f"disabled: {', '.join(off)}")
        return "\n".join(lines)

    __repr__ = __str__


def _compiler(folder):
    path = folder / "compiler.txt"
    return path.read_text().strip() if path.exists() else "unknown (no compiler.txt)"


_FORCED = {
    "fallback": ("not asked", "no: TORCH_MI350_FORCE=fallback"),
    "emulate": ("gfx950", "yes, emulated in pinned memory (TORCH_MI350_FORCE=emulate)"),
}


def _devices():
    devices = []
    if _install.homes["cdna"][0] is not None:
        count = torch.get_device_module("cdna").device_count()
        devices += [
            {"device": f"cdna:{i}", "arch": "gfx950", "served": "yes, emulated"} for i in range(count)
        ]
    if _install.force:
        arch, served = _FORCED[_install.force]
        devices += [
            {"device": f"cuda:{i}", "arch": arch, "served": served} for i in range(torch.cuda.device_count())
        ]
    elif _install.homes["cuda"][0] is not None:
        for i, gpu in enumerate(_C.gpus()):
            served = "yes" if gpu["arch"] == "gfx950" else f"no: arch {gpu['arch']}"
            devices.append({"device": f"cuda:{i}", "arch": gpu["arch"], "served": served})
    return devices


def status():
    """Arch per device, HIP runtime, versions, installed ops, compiler of the code objects, why inactive."""
    folder = pathlib.Path(_C.package_dir()) / "code_objects"
    rows = [row for home, _ in _install.homes.values() for row in home or ()]
    installed = {}
    for row in rows:
        if not row["skipped"]:
            installed.setdefault(row["key"], []).append(row["name"])
    return Status(
        {
            "version": _install.package_version(),
            "built_for_torch": _C.built_for_torch,
            "torch": torch.__version__,
            "devices": _devices(),
            "why_inactive": _install.homes["cuda"][1],
            "hip_runtime": _C.mapped_runtime(),
            "why_no_hip": _C.why_no_runtime(),
            "gpus": _C.gpus(),
            "installed": installed,
            "skipped": {f"{row['name']} at {row['key']}": row["skipped"] for row in rows if row["skipped"]},
            "enabled": {op: _C.is_enabled(op) for op in _C.ops()},
            "code_objects": len(list(folder.glob("*.hsaco"))),
            "compiler": _compiler(folder),
        }
    )
