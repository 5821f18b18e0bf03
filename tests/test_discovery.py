"""The HIP runtime and the GPUs of a process: which copy is used, what the driver's topology says, what import
leaves untouched. (Two runtimes, none, and the other topologies: test_routing_environment.py.)"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from torch_mi350 import _C

HIP_H = pathlib.Path(__file__).parents[1] / "csrc" / "runtime" / "hip.h"
NODE = "simd_count {simds}\nsimd_per_cu 4\nnum_xcc {xcds}\ngfx_target_version {version}\nunique_id 0\n"


def topology(folder, *gpus):
    """Node 0 is the CPU; each GPU is (gfx_target_version, CUs, XCDs)."""
    for i, (version, cus, xcds) in enumerate([(0, 0, 0), *gpus]):
        node = folder / str(i)
        node.mkdir(parents=True)
        node.joinpath("properties").write_text(NODE.format(simds=cus * 4, xcds=xcds, version=version))
    return str(folder)


@pytest.fixture(scope="module")
def fake_runtime(tmp_path_factory):
    """A library with all of HIP's functions that we use; each call writes a line to stderr."""

    def build(name):
        folder = tmp_path_factory.mktemp("elsewhere")
        source = folder / "hip.c"
        names = re.findall(r"F\((hip\w+),", HIP_H.read_text())
        body = "\n".join(f'int {n}() {{ return write(2, "called {n}\\n", {len(n) + 8}), 0; }}' for n in names)
        source.write_text("long write(int, const void*, unsigned long);\n" + body)
        subprocess.run(["cc", "-shared", "-fPIC", "-w", source, "-o", folder / name], check=True)
        return folder / name

    return build


def run(code, *args, **env):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **env},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_the_mapped_copy_is_used_and_no_second_one_is_loaded(fake_runtime, tmp_path):
    mapped, decoy = fake_runtime("libamdhip64.so.7"), fake_runtime("libamdhip64.so")
    code = """
import ctypes, sys, torch
ctypes.CDLL(sys.argv[1])
import torch_mi350
print(torch_mi350.status().dict()["hip_runtime"])
print(sorted({l.split()[-1] for l in open("/proc/self/maps") if "libamdhip64" in l}))
"""
    root = topology(tmp_path / "nodes", (90500, 256, 8))
    search = {"LD_LIBRARY_PATH": str(decoy.parent), "TORCH_MI350_TOPOLOGY": root, "TORCH_MI350_DEVICE": "0"}
    out, _ = run(code, mapped, **search)
    assert out.splitlines() == [str(mapped), str([str(mapped)])]


def test_import_calls_no_hip_function_and_survives_a_fork(fake_runtime, tmp_path):
    code = """
import ctypes, os, sys, torch
ctypes.CDLL(sys.argv[1])
import torch_mi350
pid = os.fork()
if pid == 0:
    ok = torch.mm(torch.ones(2, 2), torch.ones(2, 2)).sum().item() == 8 and torch_mi350.status().active
    os._exit(0 if ok else 1)
print(os.waitpid(pid, 0)[1])
"""
    root = topology(tmp_path / "nodes", (90500, 256, 8))
    out, err = run(
        code, fake_runtime("libamdhip64.so.7"), TORCH_MI350_TOPOLOGY=root, TORCH_MI350_DEVICE="0"
    )
    assert out == "0\n" and "called hip" not in err


def test_partitions_have_their_own_size(tmp_path):
    root = topology(tmp_path / "nodes", *[(90500, 32, 1)] * 8)
    gpus = _C._read_topology(root)
    assert [(g["arch"], g["cus"], g["xcds"]) for g in gpus] == [("gfx950", 32, 1)] * 8
    assert _C._why_none(root) == ""


def test_a_mixed_host_is_served_on_its_gfx950(tmp_path):
    root = topology(tmp_path / "nodes", (90402, 304, 8), (90500, 256, 8))
    assert [g["arch"] for g in _C._read_topology(root)] == ["gfx942", "gfx950"] and _C._why_none(root) == ""


def test_the_emulator_is_never_linked_and_its_names_stay_local():
    needed = subprocess.run(["readelf", "-d", _C.__file__], capture_output=True, text=True, check=True).stdout
    assert "NEEDED" in needed and "mi350emu" not in needed and "amdhip64" not in needed
    code = """
import ctypes, torch, torch_mi350
torch_mi350._C.emulator_counters()
assert any("libmi350emu" in line for line in open("/proc/self/maps"))
print(hasattr(ctypes.CDLL(None), "hipMalloc"))
"""
    assert run(code)[0] == "False\n"
