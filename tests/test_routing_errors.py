"""Mistakes on the routed ops raise stock's own errors, word for word."""

import re

import pytest
import torch

import torch_mi350  # noqa: F401  (registers the device)

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32


def ones(*shape, device="cdna", dtype=BF16):
    return torch.ones(*shape, dtype=dtype, device="cpu").to(device)


WRONG = {
    "mixed dtypes": lambda d: torch.mm(ones(2, 3, device=d), ones(3, 4, device=d, dtype=F16)),
    "mixed with float": lambda d: torch.mm(ones(2, 3, device=d), ones(3, 4, device=d, dtype=F32)),
    "3-D into mm": lambda d: torch.mm(ones(2, 3, 4, device=d), ones(4, 2, device=d)),
    "1-D into mm": lambda d: torch.mm(ones(3, device=d), ones(3, 4, device=d)),
    "mismatched k": lambda d: torch.mm(ones(2, 3, device=d), ones(4, 5, device=d)),
    "mismatched k in matmul": lambda d: ones(2, 3, device=d) @ ones(4, 5, device=d),
    "out of wrong dtype": lambda d: torch.mm(
        ones(2, 3, device=d), ones(3, 4, device=d), out=ones(2, 4, device=d, dtype=F32)
    ),
    "out that overlaps itself": lambda d: torch.mm(
        ones(2, 3, device=d), ones(3, 4, device=d), out=ones(1, 4, device=d).expand(2, 4)
    ),
    "out that needs grad": lambda d: torch.mm(
        ones(2, 3, device=d).requires_grad_(), ones(3, 4, device=d), out=ones(2, 4, device=d)
    ),
    "bool": lambda d: torch.mm(
        ones(2, 3, device=d, dtype=torch.bool), ones(3, 4, device=d, dtype=torch.bool)
    ),
    "addend that does not broadcast": lambda d: torch.addmm(
        ones(7, device=d), ones(2, 3, device=d), ones(3, 4, device=d)
    ),
    "addend of wrong dtype": lambda d: torch.addmm(
        ones(4, device=d, dtype=F32), ones(2, 3, device=d), ones(3, 4, device=d)
    ),
    "mismatched k in addmm": lambda d: torch.addmm(
        ones(4, device=d), ones(2, 3, device=d), ones(4, 4, device=d)
    ),
    "3-D into addmm": lambda d: torch.addmm(ones(4, device=d), ones(2, 3, 1, device=d), ones(4, 4, device=d)),
    "in-place that would resize": lambda d: ones(4, device=d).addmm_(
        ones(2, 3, device=d), ones(3, 4, device=d)
    ),
    "complex alpha": lambda d: torch.addmm(
        ones(4, device=d), ones(2, 3, device=d), ones(3, 4, device=d), alpha=1j
    ),
    "alpha beyond float": lambda d: torch.addmm(
        ones(4, device=d), ones(2, 3, device=d), ones(3, 4, device=d), alpha=1e300
    ),
    "2-D into bmm": lambda d: torch.bmm(ones(2, 3, device=d), ones(3, 4, device=d)),
    "mismatched batch": lambda d: torch.bmm(ones(2, 3, 4, device=d), ones(3, 4, 5, device=d)),
    "mismatched k in bmm": lambda d: torch.bmm(ones(2, 3, 4, device=d), ones(2, 5, 5, device=d)),
    "mixed dtypes in bmm": lambda d: torch.bmm(ones(2, 3, 4, device=d), ones(2, 4, 5, device=d, dtype=F32)),
    "baddbmm addend that does not broadcast": lambda d: torch.baddbmm(
        ones(9, device=d), ones(2, 3, 4, device=d), ones(2, 4, 5, device=d)
    ),
    "baddbmm addend of wrong dtype": lambda d: torch.baddbmm(
        ones(5, device=d, dtype=F32), ones(2, 3, 4, device=d), ones(2, 4, 5, device=d)
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_error_is_stocks_word_for_word(mistake):
    with pytest.raises(Exception) as stock:
        WRONG[mistake]("cpu")
    with pytest.raises(type(stock.value)) as ours:
        WRONG[mistake]("cdna")
    assert str(ours.value) == str(stock.value)


DEVICES = (
    "Expected all tensors to be on the same device, but got {} is on {}, different from other tensors on {} "
    "(when checking argument in method wrapper_PrivateUse1_{})"
)
MIXED = {
    "mat2 on the CPU": (
        lambda: torch.mm(ones(2, 3), ones(3, 4, device="cpu")),
        ("mat2", "cpu", "cdna:0", "mm"),
    ),
    "self on the CPU": (
        lambda: torch.mm(ones(2, 3, device="cpu"), ones(3, 4)),
        ("mat2", "cdna:0", "cpu", "mm"),
    ),
    "out on the CPU": (
        lambda: torch.mm(ones(2, 3), ones(3, 4), out=ones(2, 4, device="cpu")),
        ("self", "cdna:0", "cpu", "mm_out_out"),
    ),
    "addend on the CPU": (
        lambda: torch.addmm(ones(4, device="cpu"), ones(2, 3), ones(3, 4)),
        ("mat1", "cdna:0", "cpu", "addmm"),
    ),
    "in-place": (
        lambda: ones(2, 4).addmm_(ones(2, 3), ones(3, 4, device="cpu")),
        ("mat2", "cpu", "cdna:0", "addmm_"),
    ),
    "batch2 on the CPU": (
        lambda: torch.baddbmm(ones(5), ones(2, 3, 4), ones(2, 4, 5, device="cpu")),
        ("batch2", "cpu", "cdna:0", "baddbmm"),
    ),
}


@pytest.mark.parametrize("mistake", MIXED)
def test_mixed_devices_raise_the_text_of_stocks_device_check(mistake):
    call, words = MIXED[mistake]
    with pytest.raises(RuntimeError) as error:
        call()
    assert str(error.value) == DEVICES.format(*words)


def test_dtype_forms_that_no_kernel_serves_name_op_problem_and_reason():
    with pytest.raises(
        NotImplementedError,
        match=re.escape(
            "mm: aten::mm.dtype has no other kernel for device type 'cdna', "
            "and ours does not serve bf16->f16 2x4x3 nn: out_dtype f16 for bf16"
        ),
    ):
        torch.mm(ones(2, 3), ones(3, 4), out_dtype=F16)
    with pytest.raises(
        NotImplementedError,
        match=re.escape("ours does not serve bf16 2x3 @ bf16 4x4: shapes that stock rejects"),
    ):
        torch.mm(ones(2, 3), ones(4, 4), out_dtype=F32)
