"""The doctor: a healthy installation passes, each kind of damage is named with what to do about it."""

import getpass
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys

import pytest
import torch
import torch_mi350
from torch_mi350 import doctor

PACKAGE = pathlib.Path(torch_mi350.__file__).absolute().parent
VOP3P_MAI = 0b110100111  # the top bits of an MFMA's first dword
OBJECTS = sorted(path.name for path in (PACKAGE / "code_objects").glob("*.hsaco"))
MISSING, TRUNCATED, FLIPPED = "gemm_f32_64x64x32.hsaco", "gemm_f16_64x64x64.hsaco", "gemm_bf16_64x64x64.hsaco"


def run_doctor(*args, package=PACKAGE, **env):
    """(exit status, stdout, stderr) of the command on the package in `package`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TORCH_MI350_")}
    done = subprocess.run(
        [sys.executable, "-m", "torch_mi350.doctor", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=package.parent,
        env={**clean, "PYTHONPATH": str(package.parent), **env},
    )
    return done.returncode, done.stdout, done.stderr


def copy_of_package(folder):
    return pathlib.Path(
        shutil.copytree(PACKAGE, folder / "torch_mi350", ignore=shutil.ignore_patterns("__pycache__"))
    )


def flip_an_mfma_bit(path):
    image = bytearray(path.read_bytes())
    for at in range(0, len(image) - 4, 4):
        if int.from_bytes(image[at : at + 4], "little") >> 23 == VOP3P_MAI:
            image[at + 2] ^= 1  # the lowest bit of the opcode
            path.write_bytes(image)
            return
    pytest.fail(f"{path} holds no MFMA instruction")


class Result:
    def __init__(self, returned, path):
        self.status, self.text, self.stderr = returned
        self.json_text = path.read_text()
        self.report = json.loads(self.json_text)
        self.checks = {check["name"]: check for check in self.report["checks"]}

    def failed(self):
        return {name for name, check in self.checks.items() if check["status"] == "FAIL"}


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    path = tmp_path_factory.mktemp("healthy") / "doctor.json"
    return Result(run_doctor("--json", path), path)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """One object missing, one truncated, one with a wrong bit, no compiler.txt, and a wrong variable."""
    folder = tmp_path_factory.mktemp("damaged")
    package = copy_of_package(folder)
    objects = package / "code_objects"
    (objects / MISSING).unlink()
    (objects / "compiler.txt").unlink()
    image = (objects / TRUNCATED).read_bytes()
    (objects / TRUNCATED).write_bytes(image[: len(image) // 3])
    flip_an_mfma_bit(objects / FLIPPED)
    path = folder / "doctor.json"
    return Result(run_doctor("--json", path, package=package, TORCH_MI350_DISABLE="mmm"), path)


# ---- healthy ----------------------------------------------------------------------------------------------


def test_healthy_installation_passes_every_check(healthy):
    assert healthy.status == 0 and healthy.failed() == set(), healthy.text + healthy.stderr
    assert "0 FAIL" in healthy.text
    passed = {name for name, check in healthy.checks.items() if check["status"] == "PASS"}
    assert {
        "torch",
        "built for this torch",
        "import",
        "environment variables",
        "devices",
        "compiler",
    } <= passed
    assert {"aten overloads, cdna", "profiler"} <= passed


def test_every_object_is_loaded_and_every_row_is_run(healthy):
    assert len(OBJECTS) >= 11
    rows = 0
    for name in OBJECTS:
        kernels = int(healthy.checks[name]["detail"].split()[0])
        assert healthy.checks[f"{name.removesuffix('.hsaco')}, cdna"]["detail"].startswith(f"{kernels} rows")
        rows += kernels
    assert rows >= 40


def test_json_has_versions_and_hardware_and_nothing_about_the_machine(healthy):
    facts = healthy.report["environment"]
    assert facts["torch"] == torch.__version__ and facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert {"numpy", "os", "kernel", "cpu", "cpus"} <= set(facts)
    assert healthy.report["package"]["version"] and healthy.report["package"]["devices"]
    for private in (str(PACKAGE.parent), os.path.expanduser("~") + "/"):
        assert private not in healthy.json_text
    if len(socket.gethostname()) > 4:  # a shorter one may be a part of any word
        assert socket.gethostname() not in healthy.json_text
    if getpass.getuser() != "root":
        assert getpass.getuser() not in healthy.json_text


# ---- damaged ----------------------------------------------------------------------------------------------


def test_damage_fails_exactly_the_checks_that_it_touches(damaged):
    assert damaged.status == 1
    wrong_row = f"{FLIPPED.removesuffix('.hsaco')}, cdna"
    assert damaged.failed() == {MISSING, TRUNCATED, wrong_row, "compiler", "environment variables"}, (
        damaged.text
    )


def test_missing_object_is_named_and_its_rows_are_not_run(damaged):
    check = damaged.checks[MISSING]
    assert check["detail"] == f"<package>/code_objects/{MISSING} is missing" and "einstall" in check["todo"]
    assert (
        damaged.checks["gemm_f32_64x64x32, cdna"] | {"status": "skip"}
        == damaged.checks["gemm_f32_64x64x32, cdna"]
    )
    assert damaged.checks["gemm_f32_128x128x32, cdna"]["status"] == "PASS"


def test_truncated_object_is_refused_by_the_emulator_with_a_reason(damaged):
    check = damaged.checks[TRUNCATED]
    assert f"{TRUNCATED} is damaged: " in check["detail"] and len(check["detail"].split("damaged: ")[1]) > 10
    assert "einstall" in check["todo"]


def test_object_with_one_wrong_bit_loads_and_is_caught_by_its_result(damaged):
    assert damaged.checks[FLIPPED]["status"] == "PASS"
    check = damaged.checks[f"{FLIPPED.removesuffix('.hsaco')}, cdna"]
    assert check["detail"].startswith("mi350_gemm_bf16_") and "TORCH_MI350_DISABLE" in check["todo"]


def test_wrong_variable_is_reported_although_the_import_fails_with_it(damaged):
    check = damaged.checks["environment variables"]
    assert "TORCH_MI350_DISABLE=mmm" in check["detail"] and "no op is called 'mmm'" in check["detail"]
    assert damaged.checks["import"]["status"] == "PASS"


def test_each_failure_has_its_sentence_below_the_table(damaged):
    for name in damaged.failed():
        assert f"{name}: {damaged.checks[name]['todo']}" in damaged.text
        assert damaged.checks[name]["todo"].endswith(".")


# ---- what cannot be loaded --------------------------------------------------------------------------------


def test_extension_for_another_torch_is_named_without_loading_it(tmp_path):
    package = copy_of_package(tmp_path)
    extension = next(package.glob("_C*.so"))
    image = extension.read_bytes()
    built = f"mi350-built-for-torch={torch_mi350._C.built_for_torch};".encode()
    assert built in image
    extension.write_bytes(image.replace(built, built[:-3] + b"99;"))
    returned = run_doctor("--json", tmp_path / "d.json", package=package)
    result = Result(returned, tmp_path / "d.json")
    assert result.status == 1 and result.failed() == {"built for this torch"}
    assert "--no-build-isolation" in result.checks["built for this torch"]["todo"]


def test_missing_extension_and_missing_emulator_are_failures_with_a_sentence(tmp_path):
    package = copy_of_package(tmp_path)
    (package / "libmi350emu.so").unlink()
    status, text, _ = run_doctor(package=package)
    assert status == 1 and "libmi350emu.so" in text and "einstall" in text
    next(package.glob("_C*.so")).unlink()
    status, text, _ = run_doctor(package=package)
    assert status == 1 and "no _C*.so for this Python in <package>" in text


def test_crash_of_a_check_is_reported_with_the_check_that_was_running(tmp_path):
    package = copy_of_package(tmp_path)
    (package / "testing" / "compare.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    status, text, _ = run_doctor(package=package)
    assert status == 1
    assert "gemm_bf16_256x256x64, cdna: died of SIGSEGV" in text and "31 PASS" not in text


# ---- variables and arguments ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "variable, value, sentence",
    (
        ("TORCH_MI350_DISABLED", "mm", "TORCH_MI350_DISABLED: no such variable"),
        ("TORCH_MI350_CONFIG", "mm:9x9", "known configs are"),
        ("TORCH_MI350_LOG", "loud", "TORCH_MI350_LOG must be hits, misses or all, got 'loud'"),
        ("TORCH_MI350_DEVICE", "yes", "TORCH_MI350_DEVICE must be 0 or 1, got 'yes'"),
    ),
)
def test_wrong_variables_are_failures(monkeypatch, variable, value, sentence):
    monkeypatch.setenv(variable, value)
    check = doctor.check_variables()
    assert check["status"] == "FAIL" and sentence in check["detail"] and check["todo"]


@pytest.mark.parametrize(
    "variable, value",
    (("TORCH_MI350_DISABLE", "mm,bmm"), ("TORCH_MI350_DEVICE", "0"), ("TORCH_MI350_LOG", "all")),
)
def test_right_variables_pass(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    assert doctor.check_variables()["status"] == "PASS"


def test_wrong_arguments_exit_with_status_two(tmp_path):
    status, _, stderr = run_doctor("--json", tmp_path / "nowhere" / "d.json")
    assert status == 2 and "there is no folder" in stderr
    assert run_doctor("--loud")[0] == 2
