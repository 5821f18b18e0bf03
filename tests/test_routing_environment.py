"""Environment variables, import and fork, damaged packages, another torch, GPU topologies, status."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import torch

import torch_mi350
from torch_mi350 import _C, _load


def run(code, *, timeout=120, **env):
    """A fresh process; returns (exit status, stdout, stderr)."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **env},
    )
    return done.returncode, done.stdout, done.stderr


# ---- log and environment --------------------------------------------------------------------------------

MATMULS = """
import torch, torch_mi350
a, b = torch.ones(32, 64).bfloat16().to("cdna"), torch.ones(48, 64).bfloat16().to("cdna")
for _ in range(3): torch.mm(a, b.t())
torch.mm(a.double(), b.t().double())
torch.bmm(a[None], b.t()[None])
print(torch_mi350.report().json())
"""
HIT = r"mm bf16 32x48x64 nt -> mi350_gemm_bf16_nt_\S+\n"
MISS = r"mm Double 32x48x64 nt -> stock: dtype Double, served are bf16, f16 and f32\n"
BMM = r"bmm bf16 1x32x48x64 nt -> mi350_gemm_bf16_nt_\S+\n"


@pytest.mark.parametrize(
    "mode, lines", (("hits", HIT + BMM), ("misses", MISS), ("all", HIT + MISS + BMM), ("", ""))
)
def test_log_prints_one_line_per_distinct_decision(mode, lines):
    status, _, err = run(MATMULS, TORCH_MI350_LOG=mode)
    assert status == 0, err
    assert re.fullmatch(lines, err), err


def test_disable_variable_leaves_ops_alone():
    _, out, err = run(MATMULS, TORCH_MI350_DISABLE="mm")
    ledger = json.loads(out)
    assert ledger["mm"] == {"hits": {}, "misses": {"disabled": 4}} and ledger["bmm"]["hits"], err
    _, out, _ = run(MATMULS, TORCH_MI350_DISABLE="all")
    ledger = json.loads(out)
    assert not ledger["mm"]["hits"] and not ledger["bmm"]["hits"]


def test_config_variable_pins_a_kernel_or_refuses_with_its_reason():
    _, out, err = run(MATMULS, TORCH_MI350_CONFIG="mm:mi350_gemm_bf16_nt_128x128x64_s2")
    ledger = json.loads(out)
    assert ledger["mm"]["hits"] == {"mi350_gemm_bf16_nt_128x128x64_s2": 3}, err
    assert set(ledger["bmm"]["hits"]) != {"mi350_gemm_bf16_nt_128x128x64_s2"}
    _, out, _ = run(MATMULS, TORCH_MI350_CONFIG="mm:128x128x64_s2")
    assert json.loads(out)["mm"]["hits"] == {"mi350_gemm_bf16_nt_128x128x64_s2": 3}
    _, out, _ = run(MATMULS, TORCH_MI350_CONFIG="mm:mi350_gemm_f16_nt_128x128x64_s2")
    ledger = json.loads(out)
    assert not ledger["mm"]["hits"]
    assert any(
        r.startswith("pinned config mi350_gemm_f16_nt_128x128x64_s2: ") for r in ledger["mm"]["misses"]
    )


@pytest.mark.parametrize(
    "env, sentence",
    (
        ({"TORCH_MI350_LOG": "loud"}, "TORCH_MI350_LOG must be hits, misses or all, got 'loud'"),
        ({"TORCH_MI350_DISABLE": "mmm"}, "no op is called 'mmm', known ops are mm, addmm, bmm, baddbmm"),
        ({"TORCH_MI350_CONFIG": "mm=5"}, "TORCH_MI350_CONFIG is a list of op:config, got 'mm=5'"),
        ({"TORCH_MI350_CONFIG": "mm:9x9"}, "TORCH_MI350_CONFIG pins mm to '9x9', known configs are"),
        ({"TORCH_MI350_DEVICE": "yes"}, "TORCH_MI350_DEVICE must be 0 or 1, got 'yes'"),
    ),
)
def test_wrong_variables_say_what_they_take(env, sentence):
    status, _, err = run("import torch_mi350", **env)
    assert status != 0 and sentence in err


def test_device_variable_keeps_the_device_away():
    code = """
import torch, torch_mi350
print(torch_mi350.status())
print(torch._C._get_privateuse1_backend_name(), torch.accelerator.is_available())
"""
    status, out, err = run(code, TORCH_MI350_DEVICE="0")
    assert status == 0, err
    assert "inactive: no HIP runtime is mapped into this process (torch is not a ROCm build)" in out
    assert out.endswith("privateuseone False\n")


def test_gpu_builds_register_the_device_only_when_asked():
    from torch_mi350._install import wants_cdna

    assert [wants_cdna(asked, False) for asked in ("", "0", "1")] == [True, False, True]
    assert [wants_cdna(asked, True) for asked in ("", "0", "1")] == [False, False, True]


# ---- import, fork, errors of launches -------------------------------------------------------------------


def test_import_then_fork_then_use_works():
    status, out, err = run("""
import os, torch, torch_mi350
children = []
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        a = torch.ones(4, 8).bfloat16().to("cdna")
        ok = bool((torch.mm(a, a.t()).cpu() == 8).all())
        os._exit(0 if ok and torch_mi350.report().hits == 1 else 1)
    children.append(pid)
print([os.waitpid(pid, 0)[1] for pid in children])
""")
    assert status == 0, err
    assert out == "[0, 0]\n"


def test_import_starts_no_thread_and_runs_no_kernel():
    _, out, err = run("""
import torch, os
before = len(os.listdir("/proc/self/task"))
import torch_mi350
print(len(os.listdir("/proc/self/task")) - before, torch_mi350._C.emulator_counters()["launches"])
""")
    assert out == "0 0\n", err


def package_copy(tmp_path):
    """The installed package with files of its own."""
    source = pathlib.Path(_C.package_dir())
    shutil.copytree(source, tmp_path / "torch_mi350", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "torch_mi350"


def run_copy(tmp_path, code, **env):
    return run(code, PYTHONPATH=str(tmp_path), PYTHONSAFEPATH="1", **env)


MM = """
import torch, torch_mi350
a = torch.ones(4, 8).bfloat16().to("cdna")
try: torch.mm(a, a.t())
except Exception as e: print(type(e).__name__, e)
"""


def test_missing_code_object_is_named(tmp_path):
    for path in (package_copy(tmp_path) / "code_objects").glob("*.hsaco"):
        path.unlink()
    _, out, err = run_copy(tmp_path, MM)
    assert re.match(
        r"RuntimeError torch_mi350: code object \S+\.hsaco is missing: reinstall the package", out
    ), out + err


def test_corrupt_code_object_is_an_error_that_names_the_file(tmp_path):
    for path in (package_copy(tmp_path) / "code_objects").glob("*.hsaco"):
        path.write_bytes(path.read_bytes()[:100])
    _, out, err = run_copy(tmp_path, MM)
    assert re.match(r"RuntimeError torch_mi350: \S+\.hsaco cannot be loaded on device 0: ", out), out + err


ENDPGM, ILLEGAL = (0xBF810000).to_bytes(4, "little"), (0xBFFF0000).to_bytes(4, "little")


def test_failed_launch_names_op_kernel_problem_and_the_emulators_report(tmp_path):
    for path in (package_copy(tmp_path) / "code_objects").glob("*.hsaco"):
        path.write_bytes(path.read_bytes().replace(ENDPGM, ILLEGAL))
    status, out, err = run_copy(tmp_path, MM + "print(torch.ones(2, device='cdna').sum().item())")
    assert status == 0, err
    assert re.match(
        r"RuntimeError mm: kernel mi350_gemm_bf16_\S+ failed on device 0 with HIP error \d+ \(.+\); "
        r"problem: bf16 4x4x8 nt\n",
        out,
    ), out
    assert "bfff0000" in out.lower() and out.endswith("2.0\n")


# ---- another torch --------------------------------------------------------------------------------------


def test_build_for_another_torch_minor_is_refused_by_a_sentence_with_both():
    sentence = f"torch_mi350 was built for torch {_C.built_for_torch} and cannot be used with torch 2.99.0"
    status, _, err = run("import torch; torch.__version__ = '2.99.0'; import torch_mi350")
    assert status != 0 and f"ImportError: {sentence}" in err


def test_extension_itself_refuses_another_torch():
    code = f"""
import importlib.util, torch
torch.__version__ = "2.99.0"
spec = importlib.util.spec_from_file_location("_C", {_C.__file__!r})
spec.loader.exec_module(importlib.util.module_from_spec(spec))
"""
    status, _, err = run(code)
    sentence = f"was built for torch {_C.built_for_torch} and cannot be used with torch 2.99.0"
    assert status != 0 and sentence in err


def test_built_minor_is_read_without_loading_the_extension():
    assert _load.built_for(_C.__file__) == _C.built_for_torch
    assert _load.mismatch("2.13", "2.13.1+rocm7") is None
    assert "built for torch 2.13 and cannot be used with torch 2.1.3" in _load.mismatch("2.13", "2.1.3")


# ---- topology and the HIP runtime of the process --------------------------------------------------------

NODE = """cpu_cores_count {cores}
simd_count {simds}
simd_per_cu 4
num_xcc {xcds}
gfx_target_version {version}
unique_id {uid}
"""
VERSIONS = {"cpu": 0, "gfx950": 90500, "gfx942": 90402, "gfx90a": 90010, "gfx1100": 110000}


@pytest.fixture
def topology(tmp_path):
    def make(*nodes):
        for i, arch in enumerate(nodes):
            folder = tmp_path / "nodes" / str(i)
            folder.mkdir(parents=True)
            gpu = arch != "cpu"
            folder.joinpath("properties").write_text(
                NODE.format(
                    cores=0 if gpu else 64,
                    simds=1024 if gpu else 0,
                    xcds=8 if gpu else 0,
                    version=VERSIONS[arch],
                    uid=0xABC0 + i if gpu else 0,
                )
            )
        return str(tmp_path / "nodes")

    return make


def test_topology_lists_gpus_in_node_order_with_their_size(topology):
    gpus = _C._read_topology(topology("cpu", "gfx942", "gfx950", "gfx90a", "gfx1100"))
    assert [g["arch"] for g in gpus] == ["gfx942", "gfx950", "gfx90a", "gfx1100"]
    assert gpus[1] == {"arch": "gfx950", "cus": 256, "xcds": 8, "unique_id": "abc2"}


@pytest.mark.parametrize(
    "nodes, why",
    (
        (("cpu", "gfx950"), ""),
        (("cpu", "gfx942", "gfx950"), ""),
        (("cpu", "gfx942"), "found gfx942, needs gfx950 (MI350X/MI355X)"),
        (("cpu", "gfx942", "gfx90a", "gfx942"), "found gfx90a, gfx942, needs gfx950 (MI350X/MI355X)"),
        (("cpu",), "no AMD GPU is visible to the driver"),
    ),
)
def test_a_host_is_served_if_one_gpu_is_gfx950(topology, nodes, why):
    assert _C._why_none(topology(*nodes)) == why


def test_a_host_without_the_driver_has_no_gpu(tmp_path):
    assert _C._read_topology(str(tmp_path / "nothing")) == []


def test_visible_devices_choose_and_reorder(topology):
    root = topology("gfx942", "gfx950", "gfx90a")

    def seen(text):
        return [gpu["arch"] for gpu in _C._visible_gpus(root, text)]

    assert seen("1, 0") == ["gfx950", "gfx942"]
    assert seen("GPU-abc2,1") == ["gfx90a", "gfx950"]
    assert seen("0,-1,1") == ["gfx942"] and seen("7") == [] and seen("") == []


@pytest.fixture(scope="module")
def fake_runtime(tmp_path_factory):
    """Builds libamdhip64 look-alikes: every function of the table, all of them returning 0."""
    header = pathlib.Path(__file__).parents[1] / "csrc" / "runtime" / "hip.h"
    names = re.findall(r"F\((hip\w+),", header.read_text())
    assert "hipModuleLaunchKernel" in names

    def build(file, lacks=()):
        folder = tmp_path_factory.mktemp("hip")
        source = folder / "hip.c"
        source.write_text("\n".join(f"int {name}() {{ return 0; }}" for name in names if name not in lacks))
        subprocess.run(["cc", "-shared", "-fPIC", "-w", str(source), "-o", str(folder / file)], check=True)
        return str(folder / file)

    return build


STATUS = """
import ctypes, sys, torch
for path in sys.argv[1:]: ctypes.CDLL(path)
import torch_mi350
print(torch_mi350.status())
"""


def status_with(libraries, root):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", STATUS, *libraries],
        capture_output=True,
        text=True,
        env={**os.environ, "TORCH_MI350_TOPOLOGY": root, "TORCH_MI350_DEVICE": "0"},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_mapped_runtime_on_a_gfx950_host_gets_the_cuda_key(fake_runtime, topology):
    library = fake_runtime("libamdhip64.so.7")
    out = status_with([library], topology("cpu", "gfx942", "gfx950"))
    assert f"HIP runtime: {library}" in out
    assert re.search(r"cuda:0 +gfx942 +no: arch gfx942\ncuda:1 +gfx950 +yes\n", out)
    assert re.search(r"installed at CUDA: .*\bmm\b", out) and "inactive" not in out


def test_mapped_runtime_on_another_host_installs_nothing(fake_runtime, topology):
    out = status_with([fake_runtime("libamdhip64.so.7")], topology("cpu", "gfx942"))
    assert "inactive: found gfx942, needs gfx950 (MI350X/MI355X)" in out and "installed at" not in out


def test_two_mapped_runtimes_are_refused_with_both_names(fake_runtime, topology):
    first, second = fake_runtime("libamdhip64.so.6"), fake_runtime("libamdhip64.so.7")
    out = status_with([first, second], topology("gfx950"))
    assert (
        "inactive: two HIP runtimes are mapped into this process (" in out and first in out and second in out
    )


def test_runtime_that_lacks_a_function_is_refused_by_its_name(fake_runtime, topology):
    out = status_with(
        [fake_runtime("libamdhip64.so.7", lacks=("hipModuleLaunchKernel",))], topology("gfx950")
    )
    assert "libamdhip64.so.7 lacks hipModuleLaunchKernel" in out


# ---- status ---------------------------------------------------------------------------------------------


def test_status_names_versions_devices_and_the_compiler():
    status = torch_mi350.status()
    text = str(status)
    assert status.active
    assert torch.__version__ in text and "cdna:0" in text and "yes, emulated" in text
    assert "installed at PrivateUse1: mm, mm.out" in text
    compiler = (pathlib.Path(_C.package_dir()) / "code_objects" / "compiler.txt").read_text().strip()
    assert compiler and compiler in text
    with torch_mi350.disabled("bmm"):
        assert "disabled: bmm" in str(torch_mi350.status())
    assert "disabled" not in str(torch_mi350.status())
