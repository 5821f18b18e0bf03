"""Other projects' code objects in the emulator: the verify command, and a few of Triton's kernels where they are built.

Their objects are not in the repository: `benchmarks/peers/build_triton build/peers/triton-3.6.0` makes them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import torch_mi350

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "benchmarks/peers"
BUILT = sorted((ROOT / "build/peers").glob("triton-*/"))
QUICK = ["gemm_bf16_nt_16x64x128_w1", "gemm_mxfp4_tail_64x64x128", "flash_fwd_bf16_d64", "rmsnorm_fwd_bf16_rows4_512",
         "topk_f32_k8_1024", "atomics_global_i32_f32", "dropout_bf16", "cast_fp32_to_fp8e4nv"]
ENVIRONMENT = {**os.environ, "PYTHON": sys.executable, "MI350_EMU": str(Path(torch_mi350.__file__).parent / "libmi350emu.so")}


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(str(PEERS))


@pytest.fixture(scope="module", params=BUILT or [None], ids=lambda p: p.name if p else "not built")
def built(request):
    if request.param is None:
        pytest.skip("no build/peers/triton-*: run benchmarks/peers/build_triton build/peers/triton-3.6.0")
    return request.param


def object_of(built, name):
    if not (built / f"{name}.hsaco").exists():
        pytest.skip(f"{built.name} was built without {name}")
    return built / f"{name}.hsaco"


def verify(*arguments):
    return subprocess.run([PEERS / "verify", *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT)


@pytest.fixture(scope="module")
def quick_rows(built, tmp_path_factory):
    file = tmp_path_factory.mktemp("peers") / "rows.json"
    verify(built, "triton", "--only", *(f"{name}.hsaco" for name in QUICK), "--json", file)
    return json.loads(file.read_text()) if file.exists() else []


@pytest.mark.parametrize("name", QUICK)
def test_a_triton_kernel_agrees_with_its_reference(built, quick_rows, name):
    object_of(built, name)
    rows = [row for row in quick_rows if row["object"] == f"{name}.hsaco"]
    assert rows
    for row in rows:
        assert row["status"] == "pass", f"{row['case']}: {row['error']} of {row['limit']}, {row['detail']}"
        assert row["instructions"] > 50 and row["executed"] > 50


def test_one_wrong_constant_in_an_object_fails(built, tmp_path):
    """Philox's second multiplier off by one."""
    image = object_of(built, "dropout_bf16").read_bytes()
    right, wrong = (0xCD9E8D57).to_bytes(4, "little"), (0xCD9E8D56).to_bytes(4, "little")
    assert right in image
    (tmp_path / "dropout_bf16.hsaco").write_bytes(image.replace(right, wrong))
    (tmp_path / "dropout_bf16.json").write_bytes((built / "dropout_bf16.json").read_bytes())
    run = verify(tmp_path, "triton")
    assert run.returncode == 1 and "1 fail" in run.stdout, run.stdout + run.stderr


def test_objects_are_told_by_their_sidecars_and_not_by_their_file_names(built, tmp_path):
    image = object_of(built, "transpose_bf16_64").read_bytes()
    sidecar = json.loads((built / "transpose_bf16_64.json").read_text())
    (tmp_path / "other.hsaco").write_bytes(image)
    (tmp_path / "other.json").write_text(json.dumps(sidecar | {"code_object": "other.hsaco", "name": "other"}))
    run = verify(tmp_path, "triton-rearrange")
    assert run.returncode == 0 and "1 pass" in run.stdout, run.stdout + run.stderr


STUB = """
import os, pathlib, time
from families import Case, Result

def dies(emulator): os._exit(3)
def hangs(emulator): time.sleep(60)
def raises(emulator): raise LookupError("no such thing")
def right(emulator): return Result(1.0, 1.0)
def wrong(emulator): return Result(1.5, 1.0, "element 7")
def undefined(emulator): return Result(float("nan"), 1.0)

def cases(folder):
    return [Case(pathlib.Path(folder) / "none.hsaco", f.__name__, f) for f in (right, wrong, undefined, raises, dies, hangs)]
"""
STUB_MAIN = ("import sys; sys.path[:0] = sys.argv[1:3]; import families, verify; families.FAMILIES['stub'] = 'stub';"
             "sys.argv[:] = ['verify', sys.argv[2], 'stub', '--timeout', '5', '--json', sys.argv[3]]; sys.exit(verify.main())")


def test_a_case_that_dies_hangs_or_raises_costs_its_own_row_only(tmp_path):
    (tmp_path / "stub.py").write_text(STUB)
    run = subprocess.run([sys.executable, "-c", STUB_MAIN, PEERS, tmp_path, tmp_path / "rows.json"],
                         capture_output=True, text=True, env=ENVIRONMENT)
    assert run.returncode == 1, run.stderr
    rows = {row["case"]: row for row in json.loads((tmp_path / "rows.json").read_text())}
    assert {name for name, row in rows.items() if row["status"] == "pass"} == {"right"}
    assert "element 7" in rows["wrong"]["detail"] and "no such thing" in rows["raises"]["detail"]
    assert "exit code 3" in rows["dies"]["detail"] and "no result after 5 s" in rows["hangs"]["detail"]
    assert "6 cases" in run.stdout and "1 pass, 5 fail" in run.stdout


@pytest.mark.parametrize("arguments, status", [(["nowhere", "triton"], 2), ([".", "nothing"], 2), ([str(PEERS), "triton"], 1)])
def test_a_wrong_folder_or_family_is_refused(arguments, status):
    run = verify(*arguments)
    assert run.returncode == status and run.stderr and "Traceback" not in run.stderr


def test_the_worst_element_decides(peers):
    from families import compare, worst

    reference = torch.tensor([1.0, 100.0, float("inf"), float("nan")], dtype=torch.float64)
    bound = reference.abs() * 0.01
    good = compare(reference * torch.tensor([1.009, 1.001, 1, 1]), reference, bound)
    assert good.passed and good.limit == pytest.approx(0.01)
    bad = compare(reference + torch.tensor([0.011, 0.5, 0, 0]), reference, bound)
    assert not bad.passed and "1 of 4 wrong" in bad.detail
    assert worst(good, bad, good) is bad
    for wrong in (float("nan"), float("inf")):
        assert not compare(torch.tensor([wrong]), torch.tensor([1.0]), 1e30).passed
        assert not compare(torch.tensor([1.0]), torch.tensor([wrong]), 1e30).passed
    assert not compare(torch.tensor([2]), torch.tensor([3]), 0.0).passed
    with pytest.raises(ValueError, match="reference"):
        compare(torch.zeros(2), torch.zeros(3), 0.0)


def test_grid_formulas_are_arithmetic_and_nothing_else(peers):
    from triton_object import evaluate

    assert evaluate("[cdiv(M,64)*cdiv(N,32),min(M,7),S/2+1]", dict(M=65, N=33, S=9)) == [4, 7, 5]
    for formula in ("[__import__('os').getpid()]", "[M.real]", "[open('x')]", "[M**9]", "['a']"):
        with pytest.raises(ValueError, match="not understood"):
            evaluate(formula, dict(M=1))


def test_philox_gives_the_published_words(peers):
    """Random123's known answer for counter 0 and key 0."""
    from triton_elementwise import philox

    assert philox(0, np.array([0]))[0] == 0x6627E8D5
