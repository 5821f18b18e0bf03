"""Every test leaves the process as it found it: a switch left off would turn later hits into unnoticed misses.
And check mode of the emulator, in which the kernel tests run."""
import ctypes
import json
import pathlib

import pytest

import torch_mi350


@pytest.fixture(autouse=True)
def switches_are_left_on():
    yield
    left_off = [op for op in torch_mi350._C.ops() if not torch_mi350._C.is_enabled(op)]
    torch_mi350.enable()
    assert left_off == [], f"the test left {left_off} disabled"


@pytest.fixture
def check_mode():
    """Launches of the test are checked by the emulator, and leave no finding: no error and no advisory."""
    library = ctypes.CDLL(str(pathlib.Path(torch_mi350._C.package_dir()) / "libmi350emu.so"))
    library.mi350emuFindings.restype = ctypes.c_char_p
    library.mi350emuClearFindings()
    assert library.mi350emuSetMode(b"check") == 0
    yield
    assert library.mi350emuSetMode(None) == 0
    assert json.loads(library.mi350emuFindings())["findings"] == []
