"""The walls between the rooms, as the design states them. A broken wall names file and line."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = (".h", ".cpp", ".hip", ".def")
OPS = ("gemm", "scaled_gemm", "grouped_gemm", "attention", "rmsnorm", "topk", "quantize")


def files(*rooms, suffixes=SOURCES):
    found = [p for room in rooms for p in sorted((ROOT / room).rglob("*")) if p.suffix in suffixes]
    assert found, f"no files under {rooms}: the wall would hold by emptiness"
    return found


def lines_matching(paths, pattern):
    compiled = re.compile(pattern)
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if compiled.search(line)
    ]


@pytest.mark.parametrize("room", ["kernels", "csrc/emu"])
def test_no_torch_header_behind_the_wall(room):
    assert lines_matching(files(room), r'#include\s*[<"](torch|ATen|c10|caffe2)/') == []


def test_no_device_code_under_csrc():
    assert list((ROOT / "csrc").rglob("*.hip")) == []
    assert lines_matching(files("csrc"), r"__global__|__device__|__shared__|__builtin_amdgcn_") == []


def test_emulator_depends_on_no_other_room():
    includes = lines_matching(files("csrc/emu"), r'#include\s*"')
    outside = [x for x in includes if re.search(r'"(\.\./|route/|runtime/|ops/|cdna/|gemm/|plan\.h|mainloop/|tile/|isa/)', x)]
    assert outside == []


@pytest.mark.parametrize(
    "room, forbidden",
    [
        ("kernels/isa", r'"(tile|mainloop|%s)/' % "|".join(OPS)),
        ("kernels/tile", r'"(mainloop|%s)/' % "|".join(OPS)),
        ("kernels/mainloop", r'"(%s)/' % "|".join(OPS)),
    ],
)
def test_lower_rooms_include_nothing_above(room, forbidden):
    assert lines_matching(files(room), r"#include\s*" + forbidden) == []


def test_an_op_includes_no_other_op():
    for op in OPS:
        if (ROOT / "kernels" / op).is_dir():
            others = "|".join(o for o in OPS if o != op)
            assert lines_matching(files(f"kernels/{op}"), rf'#include\s*"({others})/') == []


def test_op_files_do_not_know_their_home():
    home = r'"cdna/|PrivateUse1|kCUDA|mi350emu|emulator\(|mapped_runtime'
    assert lines_matching(files("csrc/ops"), home) == []


def test_op_files_hold_no_guard_counter_or_fallback():
    assert lines_matching(files("csrc/ops"), r"DeviceGuard|ledger|previous|callBoxed") == []


def test_only_the_registers_hold_registration():
    paths = [p for p in files("csrc") if p.name != "register.cpp"]
    assert lines_matching(paths, r"\bTORCH_LIBRARY(_IMPL|_FRAGMENT)?\s*\(") == []


def test_files_stay_below_the_ceiling():
    paths = files("csrc", "kernels", "python", "tests", suffixes=(".h", ".cpp", ".hip", ".py"))
    too_long = {str(p.relative_to(ROOT)): n for p in paths if (n := len(p.read_text().splitlines())) > 600}
    assert too_long == {}


def test_readme_stays_a_door():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_the_list_of_environment_variables_is_what_the_sources_name():
    """A name that nobody reads would pass doctor's check; one that is missing would fail it."""
    rooms = files("csrc", "python", "kernels", suffixes=(*SOURCES, ".py", ".txt")) + [ROOT / ".ci" / "environment.sh"]
    named = {name for path in rooms for name in re.findall(r"\bTORCH_MI350_([A-Z][A-Z_]*[A-Z])\b", path.read_text())}
    from torch_mi350 import _variables

    assert named == set(_variables.NAMES)
