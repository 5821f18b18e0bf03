"""mi350-emu run and check: launches described in JSON, their outputs, and complaints about bad descriptions."""
import copy
import json
import os
import struct
import subprocess
from pathlib import Path

import pytest

import torch_mi350

PACKAGE = Path(torch_mi350.__file__).parent
OBJECTS = PACKAGE.parent / "test_code_objects"
N = 100


@pytest.fixture(scope="module")
def objects():
    if not (OBJECTS / "basic.hsaco").exists():
        pytest.skip("needs the test kernels of a build tree (-DMI350_TESTS=ON)")
    return OBJECTS


def tool(*arguments, **environment):
    return subprocess.run([str(PACKAGE / "mi350-emu"), *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})


@pytest.fixture
def copy_launch(objects, tmp_path):
    (tmp_path / "in.bin").write_bytes(struct.pack(f"<{N}I", *range(N)))
    return {
        "object": str(objects / "basic.hsaco"), "kernel": "copy_dwords", "grid": [2], "block": [64],
        "arguments": [
            {"buffer": "out", "dtype": "u32", "shape": [10, 10], "fill": 7, "save": "out.bin", "print": 3,
             "compare": {"file": "in.bin"}},
            {"buffer": "in", "dtype": "u32", "shape": [10, 10], "file": "in.bin"},
            {"scalar": N, "dtype": "u32"}],
    }


def run(description, tmp_path, command="run", *options, **environment):
    path = tmp_path / "launch.json"
    path.write_text(description if isinstance(description, str) else json.dumps(description))
    return tool(command, path, *options, **environment)


def test_a_launch_is_run_compared_saved_and_printed(copy_launch, tmp_path):
    done = run(copy_launch, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "copy_dwords: 2 workgroups" in done.stdout
    assert "out [0, 0]: 0 1 2\n" in done.stdout
    assert "out: 0 of 100 elements differ" in done.stdout
    assert (tmp_path / "out.bin").read_bytes() == (tmp_path / "in.bin").read_bytes()


def test_a_difference_is_counted_located_and_fails(copy_launch, tmp_path):
    wrong = list(range(N))
    wrong[37] = 40
    copy_launch["arguments"][0]["compare"] = {"values": wrong, "atol": 2}
    done = run(copy_launch, tmp_path)
    assert done.returncode == 1
    assert "1 of 100 elements differ by more than atol 2" in done.stdout
    assert "largest difference 3 at [3, 7]: 37, expected 40" in done.stdout
    copy_launch["arguments"][0]["compare"]["atol"] = 3
    assert run(copy_launch, tmp_path).returncode == 0


def test_arguments_as_one_buffer_give_the_same(copy_launch, tmp_path):
    copy_launch["pass"] = "buffer"
    assert run(copy_launch, tmp_path).returncode == 0
    # The same count as raw bytes at its place, by hand.
    copy_launch["arguments"][2] = {"bytes": struct.pack("<I", N).hex(), "offset": 16}
    assert run(copy_launch, tmp_path).returncode == 0
    copy_launch["arguments"].pop()
    done = run(copy_launch, tmp_path)
    assert done.returncode == 1 and "the argument buffer must have 20 bytes, got 16" in done.stderr


def test_a_buffer_named_again_is_the_same_memory(copy_launch, tmp_path):
    copy_launch["arguments"] = [
        {"buffer": "x", "dtype": "f32", "shape": [128], "values": [1.5] * 64 + [0] * 64, "print": 128},
        {"buffer": "x", "byte_offset": 0}, {"scalar": 64, "dtype": "u32"}]
    copy_launch["arguments"][0]["compare"] = {"values": [1.5] * 128}
    copy_launch["arguments"][0]["byte_offset"] = 256
    done = run(copy_launch, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_random_contents_follow_the_seed_and_the_name(copy_launch, tmp_path):
    def contents(seed, name="in"):
        launch = copy.deepcopy(copy_launch)
        launch["seed"] = seed
        launch["arguments"][1] = {"buffer": name, "dtype": "bf16", "shape": [200], "random": [-1, 1]}
        del launch["arguments"][0]["compare"]
        assert run(launch, tmp_path).returncode == 0
        return (tmp_path / "out.bin").read_bytes()

    first = contents(1)
    assert contents(1) == first and contents(2) != first and contents(1, "other") != first
    values = [struct.unpack("<f", b"\0\0" + first[i:i + 2])[0] for i in range(0, 400, 2)]
    assert all(-1 <= v <= 1 for v in values) and min(values) < -0.8 and max(values) > 0.8


def test_a_failed_launch_prints_the_report(copy_launch, tmp_path):
    copy_launch["arguments"][2]["scalar"] = N + 1
    done = run(copy_launch, tmp_path)
    assert done.returncode == 1
    assert "hipErrorIllegalAddress" in done.stderr and "global_load_dword" in done.stderr
    copy_launch["kernel"] = "no_such"
    done = run(copy_launch, tmp_path)
    assert done.returncode == 1 and "has no kernel no_such" in done.stderr


BAD = {
    "grid": ({"grid": [1, 2, 3, 4]}, "grid: expected a list of one to three whole numbers, got [1,2,3,4]"),
    "block": ({"block": ["64"]}, 'block[0]: expected a whole number from 0 to 4294967295, got "64"'),
    "lds": ({"lds": -1}, "lds: expected a whole number from 0 to 4294967295, got -1"),
    "pass": ({"pass": "both"}, 'pass: expected "pointers" or "buffer", got "both"'),
    "unknown": ({"grids": [1]}, "grids: unknown field, expected object, kernel, grid,"),
    "kernel": ({"kernel": 3}, "kernel: expected the name of a kernel, got 3"),
    "arguments": ({"arguments": {}}, "arguments: expected a list of arguments, got {}"),
    "argument": ({"arguments": [5]}, "arguments[0]: expected an object with one of buffer, scalar, bytes, got 5"),
    "dtype": ({"arguments": [{"buffer": "x", "dtype": "float", "shape": [1]}]},
              "arguments[0].dtype: expected one of f64 f32 f16 bf16 fp8 bf8 i8 u8 i16 u16 i32 u32 i64 u64, got \"float\""),
    "shape": ({"arguments": [{"buffer": "x", "dtype": "f32", "shape": [4, 0]}]},
              "arguments[0].shape[1]: expected a whole number from 1 to"),
    "size": ({"arguments": [{"buffer": "x", "dtype": "f32", "shape": [1 << 30, 1 << 30]}]},
             "arguments[0].shape: expected at most 2^40 bytes"),
    "missing": ({"arguments": [{"buffer": "x", "dtype": "f32"}]}, "arguments[0].shape: missing"),
    "values": ({"arguments": [{"buffer": "x", "dtype": "f32", "shape": [3], "values": [1, 2]}]},
               "arguments[0].values: expected 3 numbers, as the shape says, got [1,2]"),
    "range": ({"arguments": [{"buffer": "x", "dtype": "u8", "shape": [1], "fill": 256}]},
              "arguments[0].fill: expected a whole number that u8 holds, got 256"),
    "two": ({"arguments": [{"buffer": "x", "dtype": "u8", "shape": [1], "fill": 1, "random": [0, 1]}]},
            "arguments[0]: expected one of fill, values, random, file"),
    "again": ({"arguments": [{"buffer": "x", "dtype": "u8", "shape": [1]}, {"buffer": "x", "dtype": "u8", "shape": [1]}]},
              "arguments[1].buffer: expected a new name"),
    "scalar": ({"arguments": [{"scalar": 1.5, "dtype": "i32"}]},
               "arguments[0].scalar: expected a whole number that i32 holds, got 1.5"),
    "bytes": ({"arguments": [{"bytes": "0g"}]}, 'arguments[0].bytes: expected pairs of hexadecimal digits, got "0g"'),
    "offset": ({"arguments": [{"scalar": 1, "dtype": "i32", "offset": 8}]},
               'arguments[0].offset: expected no offset unless "pass" is "buffer", got 8'),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_descriptions_name_field_expected_and_got(case, copy_launch, tmp_path):
    change, complaint = BAD[case]
    done = run({**copy_launch, **change}, tmp_path)
    assert done.returncode == 2
    assert complaint in done.stderr, done.stderr


def test_files_that_are_missing_or_wrong_are_named(copy_launch, tmp_path):
    done = run("{ not json", tmp_path)
    assert done.returncode == 2 and "not JSON" in done.stderr and "line 1" in done.stderr
    done = tool("run", tmp_path / "absent.json")
    assert done.returncode == 2 and "cannot open" in done.stderr
    copy_launch["arguments"][1]["shape"] = [99]
    done = run(copy_launch, tmp_path)
    assert done.returncode == 1 and "must have 396 bytes (99 of u32), has 400" in done.stderr
    copy_launch["object"] = "absent.hsaco"
    done = run(copy_launch, tmp_path)
    assert done.returncode == 1 and "hipErrorFileNotFound" in done.stderr and "absent.hsaco" in done.stderr


def test_check_reports_a_clean_kernel(copy_launch, tmp_path):
    done = run(copy_launch, tmp_path, "check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 errors, 0 advisories" in done.stdout and "out: 0 of 100 elements differ" in done.stdout


def test_check_reports_an_access_outside_with_pc_lane_and_address(copy_launch, tmp_path):
    copy_launch["arguments"][2]["scalar"] = N + 1
    done = run(copy_launch, tmp_path, "check")
    assert done.returncode == 1
    assert "error    global-bounds" in done.stdout and "1 errors" in done.stdout, done.stdout
    assert "global_load_dword" in done.stdout and "lane 36" in done.stdout and "address 0x" in done.stdout
    found = json.loads(run(copy_launch, tmp_path, "check", "--json").stdout)["findings"]
    assert [f["checker"] for f in found] == ["global-bounds"] and found[0]["lane"] == 36


def test_machine_variables_are_checked(copy_launch, tmp_path):
    done = run(copy_launch, tmp_path, TORCH_MI350_EMU_CUS="33")
    assert done.returncode == 1 and "TORCH_MI350_EMU_CUS must be a multiple" in done.stderr
    assert run(copy_launch, tmp_path, TORCH_MI350_EMU_CUS="32", TORCH_MI350_EMU_XCDS="1",
               TORCH_MI350_EMU_ORDER="reverse").returncode == 0


def test_help_shows_examples_for_every_command():
    done = tool("--help")
    assert done.returncode == 0 and "examples" in done.stdout
    for command in ["run", "check", "dis"]:
        assert f"mi350-emu {command} " in done.stdout
        help_text = tool(command, "--help")
        assert help_text.returncode == 0 and "usage" in help_text.stdout and "example" in help_text.stdout
    assert tool("nonsense").returncode == 2 and tool("run").returncode == 2
    assert tool("run", "a", "b").returncode == 2 and tool("run", "--json").returncode == 2
