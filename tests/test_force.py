"""TORCH_MI350_FORCE, as far as a CPU build goes: its values, and both modes on the CPU key of a test installation.
The CUDA key itself is tested on a GPU by tests/cuda_key/transcript.py."""

import os
import subprocess
import sys

import pytest
import torch

from torch_mi350 import _C
from torch_mi350._install import forced


def run(code, *args, **env):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **env},
    )
    return done.returncode, done.stdout, done.stderr


def test_force_takes_two_values():
    assert [forced(value, True) for value in ("", "fallback", "emulate")] == ["", "fallback", "emulate"]
    with pytest.raises(RuntimeError, match="TORCH_MI350_FORCE must be fallback or emulate, got 'maybe'"):
        forced("maybe", True)


def test_force_on_a_cpu_build_is_a_sentence():
    assert forced("", False) == ""
    with pytest.raises(RuntimeError, match="FORCE=emulate is about cuda tensors and needs a CUDA or ROCm build"):
        forced("emulate", False)


@pytest.mark.skipif(torch.version.cuda is not None or torch.version.hip is not None, reason="a GPU build")
@pytest.mark.parametrize(
    "value, sentence",
    (("fallback", "needs a CUDA or ROCm build of torch"), ("on", "must be fallback or emulate, got 'on'")),
)
def test_import_says_so(value, sentence):
    status, _, err = run("import torch_mi350", TORCH_MI350_FORCE=value)
    assert status != 0 and sentence in err


@pytest.mark.skipif(torch.version.cuda is not None or torch.version.hip is not None, reason="a GPU build")
def test_the_helper_on_a_cpu_build_is_a_sentence():
    from torch_mi350.testing.pinned import use_pinned_allocator

    with pytest.raises(RuntimeError, match=r"use_pinned_allocator\(\) needs a CUDA or ROCm build"):
        use_pinned_allocator()


def test_fallback_refuses_every_row_with_its_reason_and_stock_answers():
    status, out, err = run("""
import torch, torch_mi350
from torch_mi350 import _C
rows = _C._install_for_test("CPU", "fallback")
torch_mi350.reset()
a, b = torch.randn(5, 7, requires_grad=True), torch.randn(7, 3)
out = torch.mm(a, b)
out.sum().backward()
assert torch.allclose(out, (a[:, :, None] * b).sum(1), atol=1e-5)
book = torch_mi350.report().dict()
assert book["mm"] == {"hits": {}, "misses": {"TORCH_MI350_FORCE=fallback": 2}}, book
with torch_mi350.disabled("mm"):
    torch.mm(a, b)
assert torch_mi350.report().dict()["mm"]["misses"]["disabled"] == 1
print(len(rows))
""")
    assert status == 0, err
    assert out == "18\n"


FAKE_CUDART = """
#include <stdlib.h>
int cudaHostAlloc(void** p, size_t n, unsigned f) { return (*p = aligned_alloc(4096, (n + 4095) / 4096 * 4096)) == 0; }
int cudaFreeHost(void* p) { free(p); return 0; }
int cudaDeviceSynchronize(void) { return 0; }
int cudaGetDevice(int* d) { *d = 0; return 0; }
int cudaSetDevice(int d) { return 0; }
int cudaStreamIsCapturing(void* s, int* status) { *status = 0; return 0; }
"""

EMULATE = """
import ctypes, sys, warnings, torch
ctypes.CDLL(sys.argv[1])
import torch_mi350
from torch_mi350 import _C
_C._install_for_test("CPU", "emulate")
lib = ctypes.CDLL(_C.__file__)
lib.mi350_pinned_alloc.restype = ctypes.c_void_p
lib.mi350_pinned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
lib.mi350_pinned_free.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]

def pinned(rows, cols):
    address = lib.mi350_pinned_alloc(rows * cols * 2, 0, None)
    memory = (ctypes.c_char * (rows * cols * 2)).from_address(address)
    return address, torch.frombuffer(memory, dtype=torch.bfloat16).view(rows, cols)

(pa, a), (pb, b), (pd, d) = pinned(16, 64), pinned(64, 32), pinned(16, 32)
a.fill_(1), b.fill_(2), d.zero_()
torch_mi350.reset()
"""


@pytest.fixture(scope="module")
def fake_cudart(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cuda")
    source = folder / "cudart.c"
    source.write_text(FAKE_CUDART)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", source, "-o", folder / "libcudart.so.13"], check=True)
    return folder / "libcudart.so.13"


def test_emulate_hits_in_pinned_memory(fake_cudart):
    code = """
torch.mm(a, b, out=d)
book = torch_mi350.report().dict()["mm"]
assert (d == 128).all() and sum(book["hits"].values()) == 1 and not book["misses"], book
lib.mi350_pinned_free(pd, 0, 0, None)
"""
    status, _, err = run(EMULATE + code, fake_cudart)
    assert status == 0, err


def test_emulate_refuses_other_memory_with_one_warning_that_names_the_helper(fake_cudart):
    code = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(3):
        assert (torch.mm(a, b.clone()) == 128).all()   # an input elsewhere
    assert (torch.mm(a, b) == 128).all()               # the result would lie elsewhere
book = torch_mi350.report().dict()["mm"]
assert not book["hits"] and list(book["misses"].values()) == [4], book
texts = [str(w.message) for w in caught]
assert len(texts) == 1 and "use_pinned_allocator() before the first cuda tensor" in texts[0], texts
"""
    status, _, err = run(EMULATE + code, fake_cudart)
    assert status == 0, err


def test_pinned_memory_without_a_runtime_is_a_sentence():
    status, _, err = run(EMULATE.replace("ctypes.CDLL(sys.argv[1])\n", ""))
    assert status != 0 and "neither libcudart nor libamdhip64 is mapped into this process" in err


def test_install_for_test_names_its_keys():
    with pytest.raises(ValueError, match="key must be CPU, got CUDA"):
        _C._install_for_test("CUDA")
