"""torch's own op samples (OpInfo) give on cdna what they give on the CPU: values bit for bit, dtype, shape, strides.

Routed ops are switched off here: this is about the CPU kernels behind the device, not about ours.
"""
import pytest
import torch
from torch.utils._pytree import tree_flatten, tree_map

import torch_mi350
import torch_mi350.cdna as cdna

cdna.register()
pytest.importorskip("expecttest", reason="torch.testing._internal needs the package expecttest")
from torch.testing._internal.common_methods_invocations import (  # noqa: E402
    foreach_binary_op_db, foreach_pointwise_op_db, foreach_unary_op_db, op_db)

DEV = "cdna:0"
SAMPLES = 4
DTYPES = (torch.float32, torch.complex64, torch.int64)

UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
# Samples that say something about the device themselves, or look beyond the tensor that they hand over.
DEVICE_IN_SAMPLE = {"to", "tensor_split"}
BEYOND_THE_TENSOR = {"as_strided.partial_views"}
SPARSE = {"to_sparse", "sparse.mm.reduce", "sparse.sampled_addmm"}
# LAPACK's blocking follows the alignment of its scratch memory.
ROUNDING = {"linalg.lstsq": 1e-4, "linalg.lstsq.grad_oriented": 1e-4}


def full_name(op):
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def move(tree, device):
    def one(x):
        if isinstance(x, torch.Tensor):
            return x.detach().clone().to(device)
        return torch.device(device) if isinstance(x, torch.device) else x

    return tree_map(one, tree)


def compare(want, got, tolerance):
    want, got = tree_flatten(want)[0], tree_flatten(got)[0]
    assert len(want) == len(got)
    for w, g in zip(want, got):
        if isinstance(w, torch.Tensor):
            assert g.device == torch.device(DEV) and (g.dtype, g.shape, g.stride()) == (w.dtype, w.shape, w.stride())
            torch.testing.assert_close(g.cpu(), w, rtol=tolerance, atol=tolerance, equal_nan=True)
        else:
            assert w == g or (w != w and g != g)


@pytest.fixture(autouse=True)
def only_cpu_kernels():
    with torch_mi350.disabled():
        yield


def outcome(f, args, kwargs):
    torch.manual_seed(1)
    try:
        return f(*args, **kwargs), None
    except Exception as e:
        return None, e


def check(f, sample, tolerance):
    """1 if compared; 0 if the CPU refuses the sample, and then cdna refuses it too."""
    args = (sample.input, *sample.args)
    (cpu_args, cpu_kwargs), (dev_args, dev_kwargs) = move((args, sample.kwargs), "cpu"), move((args, sample.kwargs), DEV)
    for kwargs, device in ((cpu_kwargs, "cpu"), (dev_kwargs, DEV)):
        if "device" in kwargs:
            kwargs["device"] = device
    want, refused = outcome(f, cpu_args, cpu_kwargs)
    got, error = outcome(f, dev_args, dev_kwargs)
    if refused is not None:
        assert error is not None, f"cdna accepts what the CPU refuses: {refused}"
        return 0
    if error is not None:
        raise error
    compare(want, got, tolerance)
    compare(cpu_args, dev_args, tolerance)
    return 1


def cases():
    skip = UNINITIALISED | DEVICE_IN_SAMPLE | BEYOND_THE_TENSOR | SPARSE
    for op in op_db:
        if full_name(op) in skip or op.name.startswith("jiterator"):  # CUDA source in strings
            continue
        for dtype in DTYPES:
            if dtype in op.supported_dtypes("cpu"):
                marks = () if dtype == torch.float32 else pytest.mark.nightly
                yield pytest.param(op, dtype, id=f"{full_name(op)}-{str(dtype)[6:]}", marks=marks)


@pytest.mark.parametrize("op, dtype", cases())
def test_op_equals_cpu(op, dtype):
    torch.manual_seed(0)
    compared = 0
    for _, sample in zip(range(SAMPLES), op.sample_inputs("cpu", dtype, requires_grad=False)):
        for f in (op.op, op.inplace_variant):
            if f is not None:
                compared += check(f, sample, ROUNDING.get(full_name(op), 0))
    assert compared


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in
                                (*foreach_unary_op_db, *foreach_binary_op_db, *foreach_pointwise_op_db)])
def test_foreach_op_equals_cpu(op):
    torch.manual_seed(0)
    compared = 0
    for _, sample in zip(range(SAMPLES), op.sample_inputs("cpu", torch.float32, noncontiguous=False,
                                                          allow_higher_dtype_scalars=True)):
        for f in (op.method_variant, op.inplace_variant):
            if f is not None:
                compared += check(f, sample, 0)
    assert compared


@pytest.mark.parametrize("name", sorted(SPARSE))
def test_sparse_ops_are_refused_by_name(name):
    op = next(op for op in op_db if full_name(op) == name)
    sample = next(iter(op.sample_inputs("cpu", torch.float32)))
    with pytest.raises(NotImplementedError, match="dense strided tensors only"):
        op.op(*move((sample.input, *sample.args), DEV), **move(sample.kwargs, DEV))
