"""GEMM through public calls equals the float64 reference by the numerics policy, and a kernel of ours served it.

Operands lie in NaN, outputs in sentinels. Edge cases are in test_gemm_edges.py. The full grid: -m nightly.
"""
from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F

import torch_mi350  # noqa: F401  registers the device
from torch_mi350.testing import cases, compare, guarded
from torch_mi350.testing.served import served, served_by_kernel

pytestmark = pytest.mark.usefixtures("check_mode")
DEVICE = "cdna"
BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32


def randn(*shape, dtype=BF16, seed=0):
    return cases.values("normal", dtype, seed)(torch.Size(shape).numel()).reshape(shape).to(DEVICE)


def check_mm(case, seed=0):
    a, b = cases.operands(case, device=DEVICE, seed=seed)
    out = guarded.guarded_output((case.m, case.n), case.dtype, strides=(case.n + 3, 1), offset=1, device=DEVICE)
    with nullcontext() if case.empty else served_by_kernel("mm", 2):
        functional = torch.mm(a.tensor, b.tensor)
        torch.mm(a.tensor, b.tensor, out=out.tensor)
    stock = a.tensor.cpu() @ b.tensor.cpu()
    compare.assert_gemm(functional, a.tensor, b.tensor, stock=stock, what=f"mm {case}")
    compare.assert_gemm(out.tensor, a.tensor, b.tensor, stock=stock, what=f"mm.out {case}")
    for name, operand in (("a", a), ("b", b), ("out", out)):
        operand.check(f"mm {case}: {name}")


@pytest.mark.parametrize("case", cases.gemm_grid(3), ids=str)
def test_mm_matches_reference(case):
    check_mm(case)


@pytest.mark.nightly
@pytest.mark.parametrize("case", cases.gemm_grid(40, seed=351), ids=str)
def test_mm_matches_reference_full_grid(case):
    check_mm(case, seed=1)


@pytest.mark.parametrize("dtype", cases.DTYPES, ids=str)
@pytest.mark.parametrize("layout", cases.LAYOUTS)
@pytest.mark.parametrize("form", [form for form in cases.FORMS if form != "plain"])
def test_mm_takes_any_view_of_either_operand(form, layout, dtype):
    check_mm(cases.Case(37, 50, 72, layout, dtype, a_form=form))
    check_mm(cases.Case(37, 50, 72, layout, dtype, b_form=form))


@pytest.mark.parametrize("strides", [(1, 67), (130, 2), (2, 130), (65, 1)], ids=str)
def test_mm_writes_any_layout_of_out_and_nothing_else(strides):
    a, b = randn(64, 96, seed=1), randn(96, 64, seed=2)
    out = guarded.guarded_output((64, 64), BF16, strides=strides, offset=3, device=DEVICE)
    with served("mm") as counts:
        result = torch.mm(a, b, out=out.tensor)
    assert sum(counts.hits.values()) + sum(counts.misses.values()) == 1
    assert result.data_ptr() == out.tensor.data_ptr() and result.stride() == strides
    compare.assert_gemm(out.tensor, a, b)
    out.check("mm.out")


@pytest.mark.parametrize("alpha, beta", cases.SCALARS)
@pytest.mark.parametrize("name", cases.ADDITIVE)
def test_addmm_broadcasts_every_additive_input(name, alpha, beta):
    m, n, k = 33, 48, 64
    dtype = cases.DTYPES[len(name) % 3]
    a, b = cases.operands(cases.Case(m, n, k, "nt", dtype), device=DEVICE)
    c = cases.additive(name, m, n, dtype, seed=7, device=DEVICE)
    out = guarded.guarded_output((m, n), dtype, device=DEVICE)
    with served_by_kernel("addmm", 2):
        functional = torch.addmm(c.tensor, a.tensor, b.tensor, alpha=alpha, beta=beta)
        torch.addmm(c.tensor, a.tensor, b.tensor, alpha=alpha, beta=beta, out=out.tensor)
    for result in (functional, out.tensor):
        compare.assert_gemm(result, a.tensor, b.tensor, c.tensor, alpha=alpha, beta=beta, what=f"addmm {name}")
    for operand in (a, b, c, out):
        operand.check(f"addmm {name}")


@pytest.mark.parametrize("case", [case for case in cases.gemm_grid(2, seed=352) if case.m * case.n * case.k < 2e7],
                         ids=str)
def test_addmm_matches_reference(case):
    a, b = cases.operands(case, device=DEVICE)
    bias = cases.additive("row", case.m, case.n, case.dtype, device=DEVICE)
    with nullcontext() if case.empty else served_by_kernel("addmm"):
        result = torch.addmm(bias.tensor, a.tensor, b.tensor)
    stock = torch.addmm(bias.tensor.cpu(), a.tensor.cpu(), b.tensor.cpu())
    compare.assert_gemm(result, a.tensor, b.tensor, bias.tensor, stock=stock, what=f"addmm {case}")


@pytest.mark.parametrize("dtype", cases.DTYPES, ids=str)
def test_in_place_forms_update_self(dtype):
    a, b = randn(3, 40, 24, dtype=dtype, seed=1), randn(3, 24, 56, dtype=dtype, seed=2)
    start = cases.values("normal", dtype, 3)(3 * 40 * 56).reshape(3, 40, 56)
    batched = guarded.guarded_output((3, 40, 56), dtype, offset=1, device=DEVICE, initial=start)
    single = guarded.guarded_output((40, 56), dtype, strides=(60, 1), device=DEVICE, initial=start[0])
    with served_by_kernel("baddbmm"), served_by_kernel("addmm"):
        assert batched.tensor.baddbmm_(a, b, alpha=0.5, beta=2.0) is batched.tensor
        assert single.tensor.addmm_(a[0], b[0], alpha=0.5, beta=2.0) is single.tensor
    compare.assert_gemm(batched.tensor, a, b, start, alpha=0.5, beta=2.0, what="baddbmm_")
    compare.assert_gemm(single.tensor, a[0], b[0], start[0], alpha=0.5, beta=2.0, what="addmm_")
    batched.check("baddbmm_")
    single.check("addmm_")


def batch_view(form, rows, cols, dtype, seed):
    """(5, rows, cols) operands of every batch form."""
    if form == "packed":
        return randn(5, rows, cols, dtype=dtype, seed=seed)
    if form == "expanded":
        return randn(rows, cols, dtype=dtype, seed=seed).expand(5, rows, cols)
    if form == "batch_inside":
        return randn(rows, 5, cols, dtype=dtype, seed=seed).transpose(0, 1)
    if form == "batch_last":
        return randn(rows, cols, 5, dtype=dtype, seed=seed).permute(2, 0, 1)
    if form == "transposed":
        return randn(5, cols, rows, dtype=dtype, seed=seed).transpose(1, 2)
    if form == "every_second":
        return randn(10, rows, cols, dtype=dtype, seed=seed)[1::2]
    assert form == "overlapping"
    return cases.operand(rows, cols, "n", dtype, batch=5, batch_stride=cols, seed=seed, device=DEVICE).tensor


BATCH_FORMS = ("packed", "expanded", "batch_inside", "batch_last", "transposed", "every_second", "overlapping")


@pytest.mark.parametrize("dtype", cases.DTYPES, ids=str)
@pytest.mark.parametrize("b_form", BATCH_FORMS)
@pytest.mark.parametrize("a_form", BATCH_FORMS)
def test_bmm_takes_any_batch_form(a_form, b_form, dtype):
    a, b = batch_view(a_form, 17, 40, dtype, 1), batch_view(b_form, 40, 24, dtype, 2)
    out = guarded.guarded_output((5, 17, 24), dtype, offset=1, device=DEVICE)
    with served_by_kernel("bmm", 2):
        functional = torch.bmm(a, b)
        torch.bmm(a, b, out=out.tensor)
    compare.assert_gemm(functional, a, b, what="bmm")
    compare.assert_gemm(out.tensor, a, b, what="bmm.out")
    out.check("bmm.out")


@pytest.mark.parametrize("shape", [(24,), (1, 24), (17, 1), (17, 24), (5, 1, 24), (1, 1, 1), (5, 17, 24), (5, 1, 1)],
                         ids=str)
@pytest.mark.parametrize("alpha, beta", [(1.0, 1.0), (0.7, -1.3), (0.088, 0.0)])
def test_baddbmm_broadcasts_every_additive_input(shape, alpha, beta):
    a, b, c = randn(5, 17, 40, seed=1), randn(5, 40, 24, seed=2), randn(*shape, seed=3)
    out = guarded.guarded_output((5, 17, 24), BF16, offset=1, device=DEVICE)
    with served_by_kernel("baddbmm", 2):
        functional = torch.baddbmm(c, a, b, alpha=alpha, beta=beta)
        torch.baddbmm(c, a, b, alpha=alpha, beta=beta, out=out.tensor)
    for result in (functional, out.tensor):
        compare.assert_gemm(result, a, b, c, alpha=alpha, beta=beta, what=f"baddbmm {shape}")
    out.check("baddbmm.out")


@pytest.mark.parametrize("dtype", [BF16, FP16], ids=str)
def test_dtype_overloads_keep_fp32_accuracy(dtype):
    a, b = randn(3, 65, 200, dtype=dtype, seed=1), randn(3, 200, 48, dtype=dtype, seed=2)
    c = randn(3, 65, 48, dtype=FP32, seed=3)
    with served_by_kernel("mm"), served_by_kernel("bmm"), served_by_kernel("addmm"), served_by_kernel("baddbmm"):
        products = (torch.mm(a[0], b[0], out_dtype=FP32), torch.bmm(a, b, out_dtype=FP32))
        sums = (torch.addmm(c[0], a[0], b[0], out_dtype=FP32, alpha=0.5),
                torch.baddbmm(c, a, b, out_dtype=FP32, alpha=0.5))
    assert {result.dtype for result in products + sums} == {FP32}
    compare.assert_gemm(products[0], a[0], b[0], what="mm.dtype")
    compare.assert_gemm(products[1], a, b, what="bmm.dtype")
    compare.assert_gemm(sums[0], a[0], b[0], c[0], alpha=0.5, what="addmm.dtype")
    compare.assert_gemm(sums[1], a, b, c, alpha=0.5, what="baddbmm.dtype")


def test_dtype_overloads_write_out():
    a, b = randn(2, 20, 30, seed=1), randn(2, 30, 40, seed=2)
    single = guarded.guarded_output((20, 40), FP32, offset=1, device=DEVICE)
    batched = guarded.guarded_output((2, 20, 40), FP32, offset=1, device=DEVICE)
    with served_by_kernel("mm"), served_by_kernel("bmm"):
        torch.mm(a[0], b[0], out_dtype=FP32, out=single.tensor)
        torch.bmm(a, b, out_dtype=FP32, out=batched.tensor)
    compare.assert_gemm(single.tensor, a[0], b[0], what="mm.dtype_out")
    compare.assert_gemm(batched.tensor, a, b, what="bmm.dtype_out")
    single.check()
    batched.check()


@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_fp32_is_true_fp32_at_every_precision_setting(precision):
    """B09: reduced precision is allowed at the lower settings, never required."""
    a, b = randn(130, 300, dtype=FP32, seed=1), randn(300, 70, dtype=FP32, seed=2)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        with served_by_kernel("mm", containing="mi350_gemm_f32"):
            result = a @ b
    finally:
        torch.set_float32_matmul_precision(before)
    compare.assert_gemm(result, a, b, what=f"fp32 mm, {precision}")


CALLS = {  # user call -> inner op, function of two operands, their shapes, what the reference multiplies
    "matmul 2d 2d": ("mm", torch.matmul, (20, 30), (30, 40)),
    "matmul 3d 2d": ("mm", torch.matmul, (4, 20, 30), (30, 40)),
    "matmul 1d 2d": ("mm", torch.matmul, (30,), (30, 40)),
    "matmul 3d 3d": ("bmm", torch.matmul, (4, 20, 30), (4, 30, 40)),
    "matmul 4d 4d": ("bmm", torch.matmul, (2, 3, 20, 30), (2, 3, 30, 40)),
    "matmul broadcast": ("bmm", torch.matmul, (2, 1, 20, 30), (3, 30, 40)),
    "linear": ("mm", lambda a, b: F.linear(a, b.T), (20, 30), (30, 40)),
    "linear 3d": ("mm", lambda a, b: F.linear(a, b.T), (4, 5, 30), (30, 40)),
    "einsum": ("bmm", lambda a, b: torch.einsum("ij,jk->ik", a, b), (20, 30), (30, 40)),
    "einsum batched": ("bmm", lambda a, b: torch.einsum("bij,bjk->bik", a, b), (4, 20, 30), (4, 30, 40)),
    "tensordot": ("mm", lambda a, b: torch.tensordot(a, b, 1), (20, 30), (30, 40)),
}


@pytest.mark.parametrize("dtype", cases.DTYPES, ids=str)
@pytest.mark.parametrize("call", CALLS)
def test_composite_calls_reach_the_kernel(call, dtype):
    op, function, a_shape, b_shape = CALLS[call]
    a, b = randn(*a_shape, dtype=dtype, seed=1), randn(*b_shape, dtype=dtype, seed=2)
    with served_by_kernel(op):
        result = function(a, b)
    expected = a.cpu().double() @ b.cpu().double()
    assert result.shape == expected.shape and result.dtype == dtype
    rows, cols = expected.shape[-2:] if expected.dim() > 1 else (1, expected.shape[-1])
    a2 = a.reshape(1, -1) if a.dim() == 1 else a
    compare.assert_gemm(result.reshape(*expected.shape[:-2], rows, cols), a2, b, what=call)


@pytest.mark.parametrize("shape", [(20, 30), (4, 5, 30), (30,)], ids=str)
def test_linear_with_bias_reaches_addmm(shape):
    x, weight, bias = randn(*shape, seed=1), randn(40, 30, seed=2), randn(40, seed=3)
    with served_by_kernel("addmm"):
        result = F.linear(x, weight, bias)
    assert result.shape == (*shape[:-1], 40)
    compare.assert_gemm(result.reshape(-1, 40), x.reshape(-1, 30), weight.T, bias, what="linear")


@pytest.mark.parametrize("dtype", cases.DTYPES, ids=str)
@pytest.mark.parametrize("rows", [1, 70, 256])
def test_linear_backward_matches_reference(rows, dtype):
    x = randn(rows, 48, dtype=dtype, seed=1).requires_grad_()
    weight, bias = (randn(*s, dtype=dtype, seed=2).requires_grad_() for s in ((33, 48), (33,)))
    grad = randn(rows, 33, dtype=dtype, seed=4)
    with served_by_kernel("addmm"), served_by_kernel("mm", 2):
        F.linear(x, weight, bias).backward(grad)
    compare.assert_gemm(x.grad, grad, weight, what="input gradient")
    compare.assert_gemm(weight.grad, grad.T, x, what="weight gradient")
    ones = torch.ones(1, rows, dtype=dtype)
    torch.testing.assert_close(bias.grad.cpu()[None].double(), ones.double() @ grad.cpu().double(), rtol=2e-2, atol=0.1)


@pytest.mark.parametrize("dtype", cases.DTYPES, ids=str)
def test_batched_backward_matches_reference(dtype):
    a = randn(3, 20, 40, dtype=dtype, seed=1).requires_grad_()
    b = randn(3, 40, 24, dtype=dtype, seed=2).requires_grad_()
    c = randn(3, 20, 24, dtype=dtype, seed=3).requires_grad_()
    grad = randn(3, 20, 24, dtype=dtype, seed=4)
    for call, scale in ((lambda: torch.bmm(a, b), 1.0), (lambda: torch.baddbmm(c, a, b, alpha=0.5, beta=2.0), 0.5)):
        a.grad = b.grad = None
        result = call()
        with served_by_kernel("bmm", 2):
            result.backward(grad)
        scaled = grad.cpu() * scale  # exact: a power of two
        compare.assert_gemm(a.grad, scaled, b.mT, what="gradient of a")
        compare.assert_gemm(b.grad, a.mT, scaled, what="gradient of b")
    compare.assert_bits_equal(c.grad, grad * 2)
