"""The numerics policy as assertions that name the first bad coordinate.

For every element: |actual - exact| is at most twice what the rounding model allows, the larger of

    half an ulp of the output type + 2^-24 (1 + sqrt(k)) magnitude        (independent roundings)
    the model's own error there                                           (equal products: roundings add up)

and for every 64x64 block the root mean square error is at most twice that of the rounding model's own
result and, where there is one, of stock's; a bad tile cannot hide in a good matrix. NaN and Inf must be
where the exact result, rounded to the output type, has them.
"""
from __future__ import annotations

import torch

from . import reference

BLOCK = 64
FP32_ROUNDING = 2.0 ** -24
SLACK = 2.0  # the policy's factor

# Significand bits, exponent of the smallest subnormal.
_FORMATS = {torch.bfloat16: (8, -133), torch.float16: (11, -24), torch.float32: (24, -149),
            torch.float64: (53, -1074)}


def ulp(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Distance of neighbours in `dtype` at the float64 `values`; subnormals included."""
    bits, smallest = _FORMATS[dtype]
    _, exponent = torch.frexp(torch.where(torch.isfinite(values), values, 1.0))
    step = torch.where(values == 0, smallest, (exponent - bits).clamp(min=smallest))
    return torch.ldexp(torch.ones_like(values), step)


def assert_gemm(actual, a, b, c=None, *, alpha=1.0, beta=1.0, stock=None, what="gemm"):
    """`actual` is alpha * a @ b + beta * c by the policy. `stock`: stock's result for the same inputs."""
    expected = reference.gemm(a, b, c, alpha=alpha, beta=beta, out_dtype=actual.dtype)
    assert_policy(actual, expected, k=a.shape[-1], stock=stock, what=what)


def assert_policy(actual, expected: reference.Gemm, *, k, stock=None, what="gemm"):
    dtype = actual.dtype
    got = actual.detach().cpu().double()
    assert tuple(got.shape) == tuple(expected.exact.shape), (
        f"{what}: shape must be {tuple(expected.exact.shape)}, got {tuple(got.shape)}")
    if got.numel() == 0:
        return
    exact = expected.exact
    accumulation = FP32_ROUNDING * (1 + k ** 0.5) * expected.magnitude
    model_error = (expected.model.double() - exact).abs().nan_to_num(0.0, 0.0, 0.0)
    bound = SLACK * torch.maximum(ulp(exact, dtype) / 2 + accumulation, model_error)
    _assert_nonfinite(got, exact, bound, dtype, what)
    finite = torch.isfinite(got) & torch.isfinite(exact)
    error = torch.where(finite, (got - exact).abs(), torch.zeros_like(exact))
    _fail_where(error > bound, got, exact, what, lambda at: f"error {error[at]:.3g} > bound {bound[at]:.3g}")

    floor = FP32_ROUNDING * _block_rms(torch.where(finite, expected.magnitude, 0.0))
    rms = _block_rms(error)
    for name, other in (("rounding model", expected.model), ("stock", stock)):
        if other is None:
            continue
        other_error = torch.where(finite, (other.detach().cpu().double() - exact).abs(), 0.0)
        other_error = torch.where(torch.isfinite(other_error), other_error, 0.0)
        limit = SLACK * _block_rms(other_error) + floor
        bad = rms > limit
        if bad.any():
            at = tuple(bad.nonzero()[0].tolist())
            raise AssertionError(
                f"{what}: 64x64 block {at} has rms error {rms[at]:.3g}, more than {SLACK:g} x the {name}'s "
                f"{_block_rms(other_error)[at]:.3g}; {int(bad.sum())} of {bad.numel()} blocks are bad")


def assert_bits_equal(actual, expected, what="result"):
    """Same type, shape and bytes; NaNs with different payloads differ."""
    actual, expected = actual.detach().cpu().contiguous(), expected.detach().cpu().contiguous()
    assert actual.dtype == expected.dtype, f"{what}: dtype must be {expected.dtype}, got {actual.dtype}"
    assert actual.shape == expected.shape, (
        f"{what}: shape must be {tuple(expected.shape)}, got {tuple(actual.shape)}")
    if actual.numel() == 0:
        return
    integer = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[actual.element_size()]
    different = actual.view(integer) != expected.view(integer)
    _fail_where(different, actual.double(), expected.double(), what, lambda at: "bits differ")


def _assert_nonfinite(got, exact, bound, dtype, what):
    rounded = exact.to(dtype).double()
    largest = torch.finfo(dtype).max
    # Within the bound of the overflow threshold both the largest number and Inf are right.
    near_overflow = (exact.abs() - largest).abs() <= bound + largest * 2.0 ** -_FORMATS[dtype][0]
    wrong = torch.isnan(got) != torch.isnan(rounded)
    infinite = torch.isinf(got) | torch.isinf(rounded)
    wrong |= infinite & ~torch.isnan(got) & ~torch.isnan(rounded) & (got != rounded) & ~near_overflow
    _fail_where(wrong, got, rounded, what, lambda at: "NaN or Inf out of place")


def _fail_where(bad, got, expected, what, why):
    if bad.any():
        at = tuple(bad.nonzero()[0].tolist())
        raise AssertionError(f"{what}: first bad element {at}: expected {expected[at].item():.9g}, "
                             f"got {got[at].item():.9g} ({why(at)}); {int(bad.sum())} of {bad.numel()} are bad")


def _block_rms(error):
    """(..., m, n) -> (batch, blocks_m, blocks_n), the last blocks over what they hold."""
    error = error.reshape(-1, *error.shape[-2:]) if error.dim() >= 2 else error.reshape(1, 1, -1)
    sums = _pool(error * error)
    return (sums / _pool(torch.ones_like(error))).sqrt()


def _pool(x):
    rows, cols = -x.shape[-2] % BLOCK, -x.shape[-1] % BLOCK
    x = torch.nn.functional.pad(x, (0, cols, 0, rows))
    return x.unflatten(-1, (-1, BLOCK)).unflatten(-3, (-1, BLOCK)).sum(dim=(-3, -1))
