"""GEMM where it hurts: empty extents, ignored operands, NaN and Inf, subnormals, overflow, 64-bit offsets,
repeatability, wrong input, and every row of the config table. B-numbers: the project's log of known bugs."""
import pytest
import torch

import torch_mi350  # noqa: F401  registers the device
from torch_mi350.testing import cases, compare, guarded
from torch_mi350.testing.served import served, served_by_kernel

pytestmark = pytest.mark.usefixtures("check_mode")
DEVICE = "cdna"
BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
NAN, INF = float("nan"), float("inf")
each_dtype = pytest.mark.parametrize("dtype", cases.DTYPES, ids=str)


def randn(*shape, dtype=BF16, seed=0):
    return cases.values("normal", dtype, seed)(torch.Size(shape).numel()).reshape(shape).to(DEVICE)


def full(shape, value, dtype=BF16):
    return torch.full(shape, value, dtype=dtype, device=DEVICE)


# Ignored operands (B04)

@each_dtype
def test_beta_zero_ignores_nan_and_inf_in_the_additive_input(dtype):
    a, b = randn(33, 64, dtype=dtype, seed=1), randn(64, 40, dtype=dtype, seed=2)
    for bad in (NAN, INF):
        out = guarded.guarded_output((33, 40), dtype, device=DEVICE)
        with served_by_kernel("addmm", 3):
            results = (torch.addmm(full((40,), bad, dtype), a, b, beta=0),
                       torch.addmm(full((33, 40), bad, dtype), a, b, beta=0, out=out.tensor),
                       full((33, 40), bad, dtype).addmm_(a, b, beta=0))
        for result in results:
            compare.assert_gemm(result, a, b, what="addmm beta=0")
        out.check("addmm.out")


def test_beta_zero_ignores_a_broadcast_nan_in_baddbmm():
    a, b = randn(1, 64, 128, seed=1), randn(1, 128, 352, seed=2)
    with served_by_kernel("baddbmm"):
        result = torch.baddbmm(full((1, 1, 1), NAN), a, b, beta=0, alpha=0.088)
    compare.assert_gemm(result, a, b, alpha=0.088, what="baddbmm")


@each_dtype
def test_alpha_zero_ignores_nan_in_the_product(dtype):
    a, b, c = full((33, 64), NAN, dtype), randn(64, 40, dtype=dtype), randn(40, dtype=dtype, seed=3)
    compare.assert_bits_equal(torch.addmm(c, a, b, alpha=0, beta=2), (c * 2).expand(33, 40))
    compare.assert_bits_equal(torch.addmm(c, a * 0 + INF, b * NAN, alpha=0), c.expand(33, 40))
    batched = torch.baddbmm(c, a.expand(2, 33, 64), b.expand(2, 64, 40), alpha=0)
    compare.assert_bits_equal(batched, c.expand(2, 33, 40))


def test_alpha_and_beta_zero_give_zeros():
    nan = full((16, 16), NAN)
    compare.assert_bits_equal(torch.addmm(nan, nan, nan, alpha=0, beta=0), torch.zeros(16, 16, dtype=BF16))


# Empty extents (B05)

@each_dtype
@pytest.mark.parametrize("m, n, k", [(0, 5, 3), (5, 0, 3), (5, 3, 0), (0, 0, 0), (0, 5, 0)])
def test_empty_extents_give_zeros_or_empties(m, n, k, dtype):
    guarded.poison_allocator(DEVICE)
    a, b, c = full((m, k), 1.0, dtype), full((k, n), 1.0, dtype), randn(m, n, dtype=dtype)
    compare.assert_bits_equal(a @ b, torch.zeros(m, n, dtype=dtype) if k == 0 else (a.cpu() @ b.cpu()))
    compare.assert_bits_equal(torch.addmm(c, a, b, beta=2), c * 2)
    compare.assert_bits_equal(torch.addmm(c * NAN, a, b, beta=0), torch.zeros(m, n, dtype=dtype))
    out = guarded.guarded_output((m, n), dtype, offset=1, device=DEVICE)
    torch.mm(a, b, out=out.tensor)
    compare.assert_bits_equal(out.tensor, torch.zeros(m, n, dtype=dtype))
    out.check("mm.out")


def test_empty_inner_dimension_of_a_batch_gives_zeros():
    guarded.poison_allocator(DEVICE)
    a, b = full((3, 2, 0), 1.0), full((3, 0, 3), 1.0)
    compare.assert_bits_equal(torch.bmm(a, b), torch.zeros(3, 2, 3, dtype=BF16))
    compare.assert_bits_equal(torch.baddbmm(full((3, 2, 3), 1.5), a, b, beta=2), torch.full((3, 2, 3), 3.0, dtype=BF16))
    assert torch.bmm(full((0, 2, 4), 1.0), full((0, 4, 3), 1.0)).shape == (0, 2, 3)


def test_empty_linear_has_gradients():
    layer = torch.nn.Linear(8, 4, device=DEVICE, dtype=BF16)
    layer(full((0, 8), 1.0)).sum().backward()
    compare.assert_bits_equal(layer.weight.grad, torch.zeros(4, 8, dtype=BF16))


# Short and skinny (B03): operands end where their buffer's NaN begins

@pytest.mark.parametrize("n", [1, 16, 100])
@pytest.mark.parametrize("k", [8, 16, 32, 64, 96, 128, 160, 256])
def test_skinny_shapes_read_nothing_beside_their_operands(k, n):
    for m in (1, 3, 8):
        a, b = cases.operands(cases.Case(m, n, k, "nt", BF16), device=DEVICE)
        with served_by_kernel("mm"):
            result = a.tensor @ b.tensor
        compare.assert_gemm(result, a.tensor, b.tensor, what=f"mm {m}x{n}x{k}")


# Values

@each_dtype
@pytest.mark.parametrize("layout", cases.LAYOUTS)
@pytest.mark.parametrize("shape", [(129, 65, 100), (257, 256, 128), (7, 300, 33)], ids=str)
def test_small_integers_are_exact(shape, layout, dtype):
    """Sums stay below 2^11 or are rounded once: every addition is exact, so the bits are those of float64."""
    a, b = cases.operands(cases.Case(*shape, layout, dtype), kind="integers", device=DEVICE)
    with served_by_kernel("mm"):
        result = a.tensor @ b.tensor
    compare.assert_bits_equal(result + 0.0, (a.tensor.cpu().double() @ b.tensor.cpu().double()).to(dtype) + 0.0)


@each_dtype
def test_nan_and_inf_reach_exactly_the_outputs_that_they_should(dtype):
    a, b = randn(70, 96, dtype=dtype, seed=1), randn(96, 130, dtype=dtype, seed=2)
    a[3, 95], a[40, 0], a[41, 7], b[5, 129], b[95, 0] = NAN, INF, -INF, NAN, INF
    b[0, 64] = 0.0  # inf * 0
    b[7, 1:3] = torch.tensor([0.0, -1.0], dtype=dtype)
    with served_by_kernel("mm"):
        result = a @ b
    compare.assert_gemm(result, a, b, what="mm")
    assert result[40, 64].isnan() and result[41, 1].isnan()


@each_dtype
def test_opposite_infinities_make_nan(dtype):
    a = full((16, 64), 1.0, dtype)
    b = full((64, 16), 0.0, dtype)
    b[0], b[63] = INF, -INF
    with served_by_kernel("mm"):
        assert (a @ b).isnan().all()


@pytest.mark.parametrize("dtype", [BF16, FP16], ids=str)
def test_subnormals_survive(dtype):
    """B10: no flush to zero, forward or backward."""
    powers = [2.0 ** -e for e in range(15, 25)] if dtype == FP16 else [2.0 ** -e for e in range(126, 134)]
    a = torch.tensor(powers, dtype=torch.float64).to(dtype).repeat(64)[: 8 * 64].reshape(8, 64)
    assert (a != 0).all()
    a, eye = a.to(DEVICE), torch.eye(64, dtype=dtype).to(DEVICE)
    with served_by_kernel("mm", 2):
        compare.assert_bits_equal(torch.mm(a, eye), a)
        compare.assert_bits_equal(torch.mm(eye[:8, :8], a), a)
    x = torch.zeros(8, 64, dtype=dtype, device=DEVICE, requires_grad=True)
    with served_by_kernel("mm", 2):
        (x @ eye).backward(a)
    compare.assert_bits_equal(x.grad, a)


def test_fp16_sums_do_not_overflow_on_the_way():
    """B11: products are accumulated in fp32; only the result is rounded to fp16."""
    row = torch.cat([torch.full((2048,), 60000.0), torch.full((2048,), -60000.0)]).to(FP16).expand(16, 4096)
    ones = torch.ones(4096, 16, dtype=FP16)
    with served_by_kernel("mm", 2):
        zero = row.contiguous().to(DEVICE) @ ones.to(DEVICE)
        overflow = full((16, 2), 35008.0, FP16) @ full((2, 16), 1.0, FP16)
    compare.assert_bits_equal(zero + 0.0, torch.zeros(16, 16, dtype=FP16))
    compare.assert_bits_equal(overflow, torch.full((16, 16), INF, dtype=FP16))


@each_dtype
def test_results_are_bitwise_repeatable(dtype):
    a, b = randn(300, 520, dtype=dtype, seed=1), randn(520, 280, dtype=dtype, seed=2)
    with served_by_kernel("mm", 3):
        first = a @ b
        for _ in range(2):
            compare.assert_bits_equal(a @ b, first)


def test_out_that_overlaps_itself_is_refused_as_by_stock():
    a = randn(4, 4)
    with pytest.raises(RuntimeError) as stock:
        torch.mm(a.cpu(), a.cpu(), out=torch.empty(1, 4, dtype=BF16).expand(4, 4))
    with pytest.raises(RuntimeError) as ours:
        torch.mm(a, a, out=full((1, 4), 0.0).expand(4, 4))
    assert str(ours.value) == str(stock.value)


def test_out_of_another_size_is_resized_as_by_stock():
    a, b = randn(9, 12, seed=1), randn(12, 7, seed=2)
    out = torch.empty(0, dtype=BF16, device=DEVICE)
    torch.mm(a, b, out=out)
    assert out.shape == (9, 7)
    compare.assert_gemm(out, a, b)


# 64-bit offsets (B01, B02): strides beyond 2^31 elements over memory that is never touched

def sparse(count, dtype):
    try:
        return torch.empty(count, dtype=dtype, device=DEVICE)
    except (RuntimeError, MemoryError) as error:
        pytest.skip(f"needs {count * 2 >> 30} GiB of address space: {str(error).splitlines()[0]}")


def wide_operands(where, rows, wide):
    """a (rows, 32) times b (32, rows) into out, with `wide` elements from one row to the next in one of them."""
    a, b, out = randn(rows, 32, seed=1), randn(rows, 32, seed=2).mT, full((rows, rows), NAN)
    big = sparse((rows - 1) * wide + 64, BF16)
    if where == "a":
        a = big.as_strided(a.shape, (wide, 1)).copy_(a)
    elif where == "b":
        b = big.as_strided(b.shape, (1, wide)).copy_(b)
    else:
        out = big.as_strided(out.shape, (wide, 1)).fill_(NAN)
    return a, b, out


@pytest.mark.parametrize("where", ["a", "b", "out"])
def test_offsets_beyond_32_bits_are_served(where):
    a, b, out = wide_operands(where, 40, (1 << 26) + 64)  # the last row lies beyond 2^31 elements
    with served_by_kernel("mm"):
        torch.mm(a, b, out=out)
    compare.assert_gemm(out, a, b, what=f"mm with {where} wider than 2^31 elements")


@pytest.mark.parametrize("where", ["a", "b", "out"])
def test_strides_beyond_32_bits_are_right(where):
    """No tile can span such rows: stock serves them, or a kernel that can."""
    a, b, out = wide_operands(where, 3, (1 << 31) + 64)
    with served("mm") as counts:
        torch.mm(a, b, out=out)
    compare.assert_gemm(out, a, b, what=f"mm with {where} wider than 2^31 elements")
    assert counts.hits or all("spans" in reason for reason in counts.misses), counts.misses


@pytest.mark.parametrize("where", ["a", "out"])
def test_batch_strides_beyond_32_bits(where):
    wide = (1 << 31) + 64
    a, b, out = randn(3, 16, 32, seed=1), randn(3, 32, 8, seed=2), full((3, 16, 8), NAN)
    big = sparse(3 * wide, BF16)
    if where == "a":
        a = big.as_strided(a.shape, (wide, 32, 1)).copy_(a)
    else:
        out = big.as_strided(out.shape, (wide, 8, 1)).fill_(NAN)
    with served_by_kernel("bmm"):
        torch.bmm(a, b, out=out)
    compare.assert_gemm(out, a, b, what="bmm with batches 4 GiB apart")


@pytest.mark.nightly
def test_many_batches_of_outer_products():
    """B02: the batch offset of the last entries passes 2^31 elements."""
    batch = 8209
    a, b = randn(batch, 512, 1, seed=1), randn(batch, 1, 512, seed=2)
    with served_by_kernel("bmm"):
        result = torch.bmm(a, b)
    for i in (0, 8191, 8192, batch - 1):
        compare.assert_gemm(result[i], a[i], b[i], what=f"batch {i}")


# Wrong input: stock's own error, word for word

WRONG = {
    "mixed dtypes": lambda d: torch.mm(torch.ones(2, 3, dtype=BF16, device=d), torch.ones(3, 2, device=d)),
    "3-D into mm": lambda d: torch.mm(torch.ones(1, 2, 3, dtype=BF16, device=d), torch.ones(3, 2, dtype=BF16, device=d)),
    "inner dimension": lambda d: torch.mm(torch.ones(2, 3, dtype=BF16, device=d), torch.ones(4, 2, dtype=BF16, device=d)),
    "addmm bias": lambda d: torch.addmm(torch.ones(5, dtype=BF16, device=d), torch.ones(2, 3, dtype=BF16, device=d),
                                        torch.ones(3, 4, dtype=BF16, device=d)),
    "bmm batch": lambda d: torch.bmm(torch.ones(2, 2, 3, dtype=BF16, device=d), torch.ones(3, 3, 2, dtype=BF16, device=d)),
    "baddbmm inner": lambda d: torch.baddbmm(torch.ones(2, 2, 2, dtype=BF16, device=d),
                                             torch.ones(2, 2, 3, dtype=BF16, device=d),
                                             torch.ones(2, 4, 2, dtype=BF16, device=d)),
    "out dtype": lambda d: torch.mm(torch.ones(2, 3, dtype=BF16, device=d), torch.ones(3, 2, dtype=BF16, device=d),
                                    out=torch.ones(2, 2, device=d)),
    "bool": lambda d: torch.mm(torch.ones(2, 3, dtype=torch.bool, device=d), torch.ones(3, 2, dtype=torch.bool, device=d)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_gives_stocks_error(name):
    outcome = {}
    for device in ("cpu", DEVICE):
        try:
            outcome[device] = WRONG[name](device).cpu()
        except Exception as error:
            outcome[device] = (type(error), str(error).replace(f"{DEVICE}:0", "cpu").replace(DEVICE, "cpu"))
    if isinstance(outcome["cpu"], torch.Tensor):
        compare.assert_bits_equal(outcome[DEVICE].to(torch.uint8), outcome["cpu"].to(torch.uint8))
    else:
        assert outcome[DEVICE] == outcome["cpu"]


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.int8, torch.complex64], ids=str)
def test_other_dtypes_are_stocks(dtype):
    """B08."""
    a, b = torch.arange(12).reshape(3, 4).to(dtype), torch.arange(20).reshape(4, 5).to(dtype)
    with served("mm") as counts:
        result = a.to(DEVICE) @ b.to(DEVICE)
    assert not counts.hits and sum(counts.misses.values()) == 1
    assert torch.equal(result.cpu(), a @ b)
