"""Every row of the GEMM config table computes right results when it is pinned: ragged tiles, short and long k,
additive inputs, batches, element and vector stores. The table is read from explain(), so a new row is tested
as soon as it exists."""
import contextlib
import itertools
import os
import re
import subprocess
import sys

import pytest
import torch

import torch_mi350
from torch_mi350.testing import cases, compare, guarded
from torch_mi350.testing.served import served_by_kernel

pytestmark = pytest.mark.usefixtures("check_mode")
DEVICE = "cdna"
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
SYMBOL = re.compile(r"mi350_gemm_(bf16|f16|f32)_([nts]{2})_(\d+)x(\d+)x(\d+)_s\d+")


@contextlib.contextmanager
def decided():
    """The decisions of the calls in the block, which run no kernel."""
    calls = []
    torch_mi350._C.begin_explaining()
    try:
        yield calls
    finally:
        calls += torch_mi350._C.end_explaining()


def table():
    with decided() as calls:
        for dtype in DTYPES.values():
            x = torch.empty(16, 16, dtype=dtype, device=DEVICE)
            torch.mm(x, x)
    return [symbol for call in calls for symbol, _, _ in call["candidates"]]


ROWS = table()


@contextlib.contextmanager
def pinned(symbol, *ops):
    for op in ops:
        torch_mi350._C.pin(op, symbol)
    try:
        yield
    finally:
        for op in ops:
            torch_mi350._C.pin(op, "")


def problem(symbol, k_steps):
    """A case that overhangs the row's tile on every side, as far as its 16-byte loads allow."""
    dtype, layout, block_m, block_n, block_k = SYMBOL.fullmatch(symbol).groups()
    m, n, k = int(block_m) + 9, int(block_n) + 21, max(int(int(block_k) * k_steps), 8) + 3
    if layout == "ss":
        return cases.Case(m, n, k, "nn", DTYPES[dtype], "every_second", "odd_pitch")
    eights = {"nn": "nk", "nt": "k", "tn": "mn", "tt": "mk"}[layout]
    m, n, k = (size // 8 * 8 if letter in eights else size for letter, size in zip("mnk", (m, n, k)))
    return cases.Case(m, n, k, layout, DTYPES[dtype], "aligned_pitch", "aligned_pitch")


def test_the_table_is_read_whole():
    assert len(ROWS) >= 40 and all(SYMBOL.fullmatch(symbol) for symbol in ROWS)
    tiles = {SYMBOL.fullmatch(symbol).groups()[2:4] for symbol in ROWS}
    assert {("256", "256"), ("128", "128")} <= tiles and any(int(m) <= 32 for m, _ in tiles)


@pytest.mark.parametrize("symbol", ROWS)
@pytest.mark.parametrize("k_steps", [0, 1, 4.5])
def test_pinned_row_matches_reference(symbol, k_steps):
    case = problem(symbol, k_steps)
    a, b = cases.operands(case, device=DEVICE)
    out = guarded.guarded_output((case.m, case.n), case.dtype, strides=(case.n + 3, 1), offset=1, device=DEVICE)
    with pinned(symbol, "mm"), served_by_kernel("mm", 2, containing=symbol):
        functional = torch.mm(a.tensor, b.tensor)
        torch.mm(a.tensor, b.tensor, out=out.tensor)
    compare.assert_gemm(functional, a.tensor, b.tensor, what=f"{symbol} {case}")
    compare.assert_bits_equal(out.tensor, functional, f"{symbol}: element stores and vector stores")
    for operand in (a, b, out):
        operand.check(f"{symbol} {case}")


@pytest.mark.parametrize("symbol", ROWS)
def test_pinned_row_scales_and_adds(symbol):
    case = problem(symbol, 1)
    a, b = cases.operands(case, batch=2, device=DEVICE)
    with pinned(symbol, "baddbmm"), served_by_kernel("baddbmm", 2, containing=symbol):
        for name in ("row", "column"):
            c = cases.additive(name, case.m, case.n, case.dtype, device=DEVICE).tensor
            result = torch.baddbmm(c, a.tensor, b.tensor, alpha=0.7, beta=-1.3)
            compare.assert_gemm(result, a.tensor, b.tensor, c, alpha=0.7, beta=-1.3, what=f"{symbol} {name}")


@pytest.mark.parametrize("symbol", ROWS)
def test_pinned_row_is_exact_on_small_integers(symbol):
    case = problem(symbol, 2)
    a, b = cases.operands(case, kind="integers", device=DEVICE)
    with pinned(symbol, "mm"), served_by_kernel("mm", containing=symbol):
        result = torch.mm(a.tensor, b.tensor)
    expected = (a.tensor.cpu().double() @ b.tensor.cpu().double()).to(case.dtype)
    compare.assert_bits_equal(result + 0.0, expected + 0.0, symbol)


@pytest.mark.parametrize("symbol", ROWS)
def test_results_depend_neither_on_wave_order_nor_on_when_loads_to_lds_land(symbol, monkeypatch):
    case = problem(symbol, 4.5)
    a, b = cases.operands(case, device=DEVICE)
    with pinned(symbol, "mm"), served_by_kernel("mm", 4, containing=symbol):
        expected = torch.mm(a.tensor, b.tensor)
        for dma, seed in (("early", "1"), ("late", "2"), ("late", "3")):
            monkeypatch.setenv("TORCH_MI350_EMU_DMA", dma)
            monkeypatch.setenv("TORCH_MI350_EMU_SEED", seed)
            compare.assert_bits_equal(torch.mm(a.tensor, b.tensor), expected, f"{symbol} DMA {dma}, seed {seed}")


EXACT_ALLOCATIONS = """
import torch, torch_mi350
from torch_mi350.testing import cases, compare
from torch_mi350.testing.served import served_by_kernel
for m, n, k in ((1, 1536, 128), (8, 100, 16), (129, 65, 40), (257, 256, 72), (300, 7, 33)):
    for layout in cases.LAYOUTS:
        a = cases.values("normal", torch.bfloat16, 0)(m * k)
        b = cases.values("normal", torch.bfloat16, 1)(k * n)
        a = (a.view(m, k) if layout[0] == "n" else a.view(k, m)).to("cdna")
        b = (b.view(k, n) if layout[1] == "n" else b.view(n, k)).to("cdna")
        a, b = a if layout[0] == "n" else a.T, b if layout[1] == "n" else b.T
        with served_by_kernel("mm"):
            result = a @ b
        compare.assert_gemm(result, a, b, what=f"{m}x{n}x{k} {layout}")
"""


def test_operands_that_end_with_their_allocation_are_never_overrun():
    """B03. Without the caching allocator the emulator's bounds are those of the tensors."""
    environment = dict(os.environ, TORCH_MI350_NO_CACHING="1", TORCH_MI350_EMU="check")
    done = subprocess.run([sys.executable, "-c", EXACT_ALLOCATIONS], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def test_default_choice_uses_several_tiles():
    shapes = itertools.product((1, 16, 64, 128, 256, 1000, 4096), (64, 1024, 4096), (64, 1024))
    with decided() as calls:
        for m, n, k in shapes:
            torch.mm(torch.empty(m, k, dtype=torch.bfloat16, device=DEVICE),
                     torch.empty(k, n, dtype=torch.bfloat16, device=DEVICE))
    tiles = {SYMBOL.fullmatch(call["kernel"]).groups()[2:4] for call in calls}
    assert len(tiles) >= 3, tiles
