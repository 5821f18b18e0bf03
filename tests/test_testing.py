"""The harness finds the faults that it is there to find: each test seeds one."""
import pytest
import torch

from torch_mi350.testing import cases, compare, guarded, reference

M, N, K = 130, 70, 257


@pytest.fixture
def product():
    a, b = cases.operands(cases.Case(M, N, K, "nn", torch.bfloat16))
    return a.tensor, b.tensor, reference.gemm(a.tensor, b.tensor).model


def test_rounding_model_passes_its_own_policy(product):
    a, b, d = product
    compare.assert_gemm(d, a, b, stock=a @ b)


def test_one_wrong_element_is_named_by_its_coordinate(product):
    a, b, d = product
    d[129, 69] += 1.0
    with pytest.raises(AssertionError, match=r"first bad element \(129, 69\).*1 of 9100 are bad"):
        compare.assert_gemm(d, a, b)


def test_one_lost_product_is_found_in_fp32():
    a, b = torch.ones(4, K), torch.ones(K, 4)
    with pytest.raises(AssertionError, match=r"\(0, 0\)"):
        compare.assert_gemm(a[:, 1:] @ b[1:], a, b)


def test_low_precision_accumulation_is_found():
    a, b = cases.operands(cases.Case(M, N, 1000, "nn", torch.bfloat16))
    total = torch.zeros(M, N, dtype=torch.bfloat16)
    for i in range(0, 1000, 32):
        total = total + a.tensor[:, i:i + 32] @ b.tensor[i:i + 32]
    with pytest.raises(AssertionError, match="bad"):
        compare.assert_gemm(total, a.tensor, b.tensor)


def test_a_block_that_is_everywhere_off_by_one_rounding_is_found(product):
    a, b, d = product
    exact = reference.gemm(a, b).exact
    shifted = d.clone()
    away = torch.where(d.double() >= exact, 1.0, -1.0) * compare.ulp(exact, d.dtype) * 0.49
    shifted[64:128, :64] = (d.double() + away * 2)[64:128, :64].to(d.dtype)
    with pytest.raises(AssertionError, match="bad"):
        compare.assert_gemm(shifted, a, b)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_or_inf_out_of_place_is_found(product, value):
    a, b, d = product
    d[0, 3] = value
    with pytest.raises(AssertionError, match="NaN or Inf out of place"):
        compare.assert_gemm(d, a, b)


def test_a_finite_number_where_nan_belongs_is_found(product):
    a, b, d = product
    a = a.clone()
    a[7, 1] = float("nan")
    with pytest.raises(AssertionError, match=r"\(7, 0\).*NaN or Inf"):
        compare.assert_gemm(d, a, b)


def test_sign_of_zero_is_a_bit_difference():
    with pytest.raises(AssertionError, match=r"\(0,\)"):
        compare.assert_bits_equal(torch.tensor([-0.0]), torch.tensor([0.0]))


def test_ulp_knows_subnormals_and_binades():
    x = torch.tensor([1.0, 1.999, 2.0, 0.0, 2.0 ** -24], dtype=torch.float64)
    expected = [2.0 ** -10, 2.0 ** -10, 2.0 ** -9, 2.0 ** -24, 2.0 ** -24]
    assert compare.ulp(x, torch.float16).tolist() == expected


@pytest.mark.parametrize("strides, beside", [((5, 1), -1), ((5, 1), 5 * 4), ((7, 1), 6)])
def test_a_write_beside_an_output_is_found(strides, beside):
    out = guarded.guarded_output((4, 5), torch.float16, strides=strides, offset=1)
    out.tensor.fill_(1.0)
    out.check()
    out.tensor.as_strided((1,), (1,), out.tensor.storage_offset() + beside).fill_(0.0)
    with pytest.raises(AssertionError, match="written outside of the output: 1 elements"):
        out.check()


def test_an_input_that_was_written_is_found():
    operand = guarded.guarded_input(torch.ones(3, 3))
    operand.check()
    operand.tensor[1, 1] = 2.0
    with pytest.raises(AssertionError, match="input was written: 1 elements"):
        operand.check()


def test_everything_around_an_input_is_nan():
    operand = cases.operand(3, 4, "n", torch.float16, form="sub_view").tensor
    whole = operand.as_strided((operand.untyped_storage().nbytes() // 2,), (1,), 0)
    assert torch.isfinite(operand).all() and int(torch.isfinite(whole).sum()) == 12


def test_every_round_of_the_grid_uses_every_size_in_every_place():
    for axis in "mnk":
        assert sorted(getattr(case, axis) for case in cases.gemm_grid(1)) == list(cases.SIZES)
    assert cases.gemm_grid(3) == cases.gemm_grid(4)[:42]
    seen = {(case.layout, case.dtype) for case in cases.gemm_grid(12)}
    assert len(seen) == len(cases.LAYOUTS) * len(cases.DTYPES)
    forms = {case.a_form for case in cases.gemm_grid(8)} | {case.b_form for case in cases.gemm_grid(8)}
    assert forms == set(cases.FORMS)
