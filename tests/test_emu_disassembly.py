"""The emulator's disassembler prints what llvm-objdump prints, for every instruction."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import torch_mi350

PACKAGE = Path(torch_mi350.__file__).parent
OBJECTS = sorted((PACKAGE / "code_objects").glob("*.hsaco"))
SAMPLES = sorted((Path(__file__).parent / "emu_samples").glob("*.hip"))
LINE = re.compile(r"^\t(?P<text>.*?)\s*// (?P<address>[0-9A-F]+): (?P<words>(?:[0-9A-F]{8} ?)+)")


def tool(*names):
    for name in names:
        if found := shutil.which(name) or shutil.which(f"/opt/rocm/llvm/bin/{name}"):
            return found
    pytest.skip(f"needs one of {', '.join(names)}")


def disassembly(*command):
    """address -> (text, words)"""
    out = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout
    found = {}
    for match in filter(None, map(LINE.match, out.splitlines())):
        text = re.sub(r"\s+", " ", match["text"]).strip()
        found[int(match["address"], 16)] = (text, match["words"].split())
    return found


def compare(code_object):
    expected = disassembly(tool("llvm-objdump-22", "llvm-objdump"), "-d", code_object)
    got = disassembly(PACKAGE / "mi350-emu", "dis", code_object)
    assert len(expected) > 20
    # Padding that LLVM itself does not decode is not an instruction.
    instructions = {a: line for a, line in expected.items() if not line[0].startswith((".long", "s_code_end"))}
    differences = [(hex(a), line, got.get(a)) for a, line in instructions.items() if got.get(a) != line]
    assert not differences, f"{len(differences)} of {len(instructions)}, first: {differences[:5]}"


@pytest.mark.parametrize("code_object", OBJECTS, ids=lambda p: p.stem)
def test_shipped_object_prints_as_objdump_does(code_object):
    compare(code_object)


def test_there_are_shipped_objects():
    assert OBJECTS


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O3"])
@pytest.mark.parametrize("source", SAMPLES, ids=lambda p: p.stem)
def test_compiled_sample_prints_as_objdump_does(source, level, tmp_path):
    code_object = tmp_path / "sample.hsaco"
    subprocess.run([tool("clang-22", "clang"), level, "-nogpulib", "-nogpuinc", "-x", "hip", "--cuda-device-only",
                    "--no-gpu-bundle-output", "--offload-arch=gfx950", "-o", str(code_object), str(source)], check=True)
    compare(code_object)


def test_a_file_that_is_no_code_object_is_refused_in_one_sentence(tmp_path):
    file = tmp_path / "text.hsaco"
    file.write_text("not an object\n" * 20)
    run = subprocess.run([PACKAGE / "mi350-emu", "dis", file], capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1 and "not an ELF file" in run.stderr


@pytest.mark.parametrize("arguments", [[], ["dis"], ["dis", "--nonsense"], ["isa", "what"], ["unknown"]])
def test_wrong_usage_prints_help_and_exits_with_2(arguments):
    run = subprocess.run([PACKAGE / "mi350-emu", *arguments], capture_output=True, text=True)
    assert run.returncode == 2 and run.stdout == ""
    assert "mi350-emu dis" in run.stderr or "mi350-emu isa" in run.stderr


def test_help_shows_examples():
    run = subprocess.run([PACKAGE / "mi350-emu", "--help"], capture_output=True, text=True)
    assert run.returncode == 0 and "examples" in run.stdout
