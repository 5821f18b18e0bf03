"""Every test leaves the process as it found it: a switch left off would turn later hits into unnoticed misses."""
import pytest

import torch_mi350


@pytest.fixture(autouse=True)
def switches_are_left_on():
    yield
    left_off = [op for op in torch_mi350._C.ops() if not torch_mi350._C.is_enabled(op)]
    torch_mi350.enable()
    assert left_off == [], f"the test left {left_off} disabled"
