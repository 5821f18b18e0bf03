"""Triton's own launcher runs its kernels on cdna tensors: right results, both devices, streams, times, errors.

In processes of their own: activating makes cdna the device of Triton for the whole process. Needs triton (any of
3.6 and later, installed beside torch or named by MI350_TRITON=FOLDER) and a C compiler, which Triton's driver uses.
"""
import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import torch_mi350  # noqa: F401  fails here, with its sentence, rather than in every script

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
FOLDER = os.environ.get("MI350_TRITON")
if FOLDER is None and importlib.util.find_spec("triton") is None:
    pytest.skip("needs triton: pip install triton, or MI350_TRITON=FOLDER that holds it", allow_module_level=True)
if not (os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")):
    pytest.skip("Triton's driver needs a C compiler", allow_module_level=True)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("triton")


def run(cache, *command, **environment):
    path = [str(EXAMPLES), *filter(None, [FOLDER, os.environ.get("PYTHONPATH")])]
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "TRITON_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(path), **environment})


def run_script(cache, script, **environment):
    start = ("import torch, triton, triton_on_cdna as example\nfrom torch_mi350 import triton_driver\n"
             "def check(result, want, limit, launch):\n"
             "    assert (result.double() - want.double()).abs().max() <= limit\n")
    file = cache / "script.py"
    file.write_text(start + textwrap.dedent(script))  # Triton reads the source of its kernels
    return run(cache, str(file), **environment)


def test_the_example_prints_right_results_and_times(cache):
    done = run(cache, str(EXAMPLES / "triton_on_cdna.py"))
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert "arch='gfx950'" in done.stdout
    for name in ["vector add", "softmax", "matmul bf16"]:
        line = next(line for line in done.stdout.splitlines() if line.startswith(name))
        assert "ms of emulation" in line


def test_tails_dtypes_devices_and_streams(cache):
    done = run_script(cache, """
        driver = triton_driver.activate()
        assert triton_driver.activate() is driver and triton.runtime.driver.active is driver
        target = driver.get_current_target()
        assert (target.backend, target.arch, target.warp_size) == ("hip", "gfx950", 64)
        check(*example.add(n=1))
        check(*example.softmax(rows=3, columns=100, dtype=torch.bfloat16))
        with torch.cdna.device(1):
            assert driver.get_active_torch_device() == torch.device("cdna:1")
            check(*example.add(device="cdna:1"))
            with torch.cdna.stream(torch.cdna.Stream()):
                check(*example.add(device="cdna:1"))
        check(*example.add(n=77))
        begin, end = torch.cdna.Event(enable_timing=True), torch.cdna.Event(enable_timing=True)
        begin.record(); check(*example.matmul(64, 64, 32)); end.record()
        assert begin.elapsed_time(end) > 0
    """, TORCH_MI350_EMU_DEVICES="2")
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]


def test_the_emulator_executed_the_kernels(cache):
    done = run_script(cache, """
        import torch_mi350
        triton_driver.activate()
        before = torch_mi350.emulator_counters()
        check(*example.matmul())
        after = torch_mi350.emulator_counters()
        assert after["launches"] == before["launches"] + 1
        assert after["mfma_flops"] - before["mfma_flops"] >= 2 * 200 * 120 * 96, (before, after)
    """)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]


def test_errors_are_tritons_own(cache):
    done = run_script(cache, """
        triton_driver.activate()
        x = torch.ones(1024)
        try: example.add_kernel[(1,)](x, x, x, 1024, BLOCK=1024)
        except ValueError as e: assert "cannot be accessed from Triton (cpu tensor?)" in str(e), e
        else: raise SystemExit("a CPU tensor was accepted")
        y = torch.ones(1024, device="cdna:1")
        try: example.add_kernel[(1,)](y, y, y, 1024, BLOCK=1024)
        except (RuntimeError, SystemError) as e:  # 3.6 goes on after the error, and Python complains of that
            e = e.__cause__ or e
            assert "Triton Error [HIP]" in str(e) and "illegal memory access" in str(e), e
        else: raise SystemExit("memory of the other device was read")
    """, TORCH_MI350_EMU_DEVICES="2")
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
