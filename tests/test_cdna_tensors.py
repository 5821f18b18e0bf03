"""Tensors on cdna behave as on the CPU: creation, views, aliasing, out=, errors, limits."""
import copy

import pytest
import torch

import torch_mi350.cdna as cdna

cdna.register()
DEV = torch.device("cdna:0")


def both(f, *inputs):
    """f on the CPU and on cdna; the results must agree bit for bit."""
    want = f(*inputs)
    got = f(*[t.to(DEV) if isinstance(t, torch.Tensor) else t for t in inputs])
    for w, g in zip(want if isinstance(want, tuple) else (want,), got if isinstance(got, tuple) else (got,)):
        assert g.device == DEV
        torch.testing.assert_close(g.cpu(), w, rtol=0, atol=0, equal_nan=True)
        assert g.stride() == w.stride()
    return got


def test_values_survive_the_round_trip_in_every_dtype():
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.complex64,
                  torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.bool):
        x = torch.arange(12).reshape(3, 4).to(dtype)
        y = x.to(DEV)
        assert (y.device, y.dtype, y.shape) == (DEV, dtype, x.shape)
        assert torch.equal(y.cpu().view(torch.uint8), x.view(torch.uint8))


def test_strided_and_transposed_copies_between_devices():
    x = torch.randn(6, 8)
    assert torch.equal(x.t().to(DEV).cpu(), x.t())
    y = torch.zeros(8, 6, device=DEV)
    y.t()[::2].copy_(x[::2])
    assert torch.equal(y.cpu().t()[::2], x[::2]) and y.cpu().t()[1::2].abs().sum() == 0
    assert torch.equal(y.to(torch.float64).cpu(), y.cpu().double())


def test_channels_last_is_kept():
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert x.to(DEV).stride() == x.stride()
    assert torch.empty(2, 3, 4, 5, device=DEV, memory_format=torch.channels_last).stride() == x.stride()


def test_print_names_the_device_and_shows_the_values():
    assert str(torch.tensor([1.0, 2.5], device=DEV)) == "tensor([1.0000, 2.5000], device='cdna:0')"


def test_device_spellings():
    assert torch.zeros(1, device="cdna").device == DEV
    assert torch.zeros(1).cdna().is_cdna and not torch.zeros(1).is_cdna
    assert torch.zeros(2, device=DEV).new_ones(3).device == DEV


@pytest.mark.parametrize("f", [
    lambda x: x[1], lambda x: x[:, 2:5], lambda x: x[[3, 1, 1]], lambda x: x[x > 0], lambda x: x[..., None, 1],
    lambda x: x[torch.tensor([0, 2])], lambda x: x.index_select(1, torch.tensor([5, 0], device=x.device)),
    lambda x: x.gather(1, torch.tensor([[1], [0], [3], [2]], device=x.device)), lambda x: x.flip(0),
    lambda x: x.unfold(1, 3, 2), lambda x: x.as_strided((2, 3), (6, 2), 1), lambda x: x.diagonal(),
    lambda x: torch.stack(x.unbind(1)), lambda x: torch.cat(x.chunk(3, 1)), lambda x: x.expand(2, 4, 6).sum(0),
    lambda x: x.masked_fill(x > 0, 7.0), lambda x: torch.where(x > 0, x, 0.5), lambda x: x.roll(2, 1),
], ids=range(18))
def test_indexing_equals_cpu(f):
    both(f, torch.randn(4, 6))


@pytest.mark.parametrize("f", [
    lambda x: x.sort(1), lambda x: x.topk(2), lambda x: x.unique(), lambda x: (x > 0).nonzero(),
    lambda x: x.masked_select(x > 0), lambda x: torch.unique(x.round(), return_inverse=True, return_counts=True),
    lambda x: x.argsort(0), lambda x: x.kthvalue(2), lambda x: x.median(1), lambda x: x.mode(1),
    lambda x: torch.bincount(x.abs().long().flatten()), lambda x: torch.histc(x, 5), lambda x: x.cumsum(0),
], ids=range(13))
def test_sorting_and_dynamic_shapes_equal_cpu(f):
    both(f, torch.randn(5, 7))


@pytest.mark.parametrize("f", [
    torch.linalg.inv, torch.linalg.det, torch.linalg.qr, torch.linalg.svd, torch.linalg.eigh, torch.linalg.cholesky,
    lambda a: torch.linalg.solve(a, a[:, :2]), torch.linalg.eigvalsh, torch.linalg.matrix_norm, torch.linalg.slogdet,
    lambda a: torch.linalg.lu_factor(a), torch.matrix_exp,
], ids=range(12))
def test_linalg_equals_cpu(f):
    m = torch.randn(5, 5, dtype=torch.float64)
    both(f, m @ m.T + 5 * torch.eye(5, dtype=torch.float64))


def test_complex_and_lazy_conjugates():
    x = torch.randn(3, 4, dtype=torch.complex64)
    y = x.to(DEV).conj()
    assert y.is_conj() and torch.equal(y.cpu(), x.conj()) and torch.equal(y.resolve_conj().cpu(), x.conj().resolve_conj())
    assert torch.equal(y.imag.cpu(), x.conj().imag) and y.imag.is_neg()
    both(lambda t: t.conj() * 2, x)
    both(lambda t: torch.fft.fft(t), x)
    both(lambda t: torch.view_as_real(t), x)


def test_writes_through_views_reach_the_base():
    x = torch.zeros(4, 4, device=DEV)
    x[1] += 1
    x[:, 2].mul_(3).add_(2)
    x.t()[0].fill_(9)
    x.view(-1)[15:].neg_().sub_(1)
    torch.view_as_complex(x[3:4].view(1, 2, 2)).mul_(2)
    want = torch.zeros(4, 4)
    want[1] += 1
    want[:, 2].mul_(3).add_(2)
    want.t()[0].fill_(9)
    want.view(-1)[15:].neg_().sub_(1)
    torch.view_as_complex(want[3:4].view(1, 2, 2)).mul_(2)
    assert torch.equal(x.cpu(), want)


def test_views_returned_by_cpu_kernels_share_memory():
    x = torch.randn(4, 2, device=DEV)
    z = torch.view_as_complex(x)
    z.zero_()
    assert x.abs().sum().item() == 0 and z._is_view() and z.data_ptr() == x.data_ptr()


def test_out_is_resized_and_keeps_being_the_callers_tensor():
    x, y = torch.randn(3, 5), torch.randn(3, 5)
    out = torch.empty(0, device=DEV)
    got = torch.add(x.to(DEV), y.to(DEV), out=out)
    assert got is out and torch.equal(out.cpu(), x + y)
    indices = torch.empty(0, dtype=torch.long, device=DEV)
    assert torch.nonzero(x.to(DEV) > 0, out=indices) is indices and torch.equal(indices.cpu(), torch.nonzero(x > 0))
    values, order = torch.empty(0, device=DEV), torch.empty(0, dtype=torch.long, device=DEV)
    torch.sort(x.to(DEV), out=(values, order))
    assert torch.equal(values.cpu(), x.sort()[0]) and torch.equal(order.cpu(), x.sort()[1])


def test_out_that_is_a_view_is_written_in_place():
    base = torch.zeros(4, 6, device=DEV)
    torch.mul(torch.full((4,), 3.0, device=DEV), 2, out=base[:, 1])
    assert base.cpu()[:, 1].tolist() == [6.0] * 4 and base.sum().item() == 24


@pytest.mark.parametrize("call", [
    lambda x: torch.add(x[:5], 1, out=x[1:6]),
    lambda x: torch.cumsum(x[:5], 0, out=x[1:6]),
    lambda x: x[:1].expand(4).add_(1),
    lambda x: torch.cat([x[:3], x[3:5]], out=x[1:6]),
    lambda x: torch.exp(x[:5], out=x[1:6]),
    lambda x: x.view(2, 4).t().resize_(100).view(3, 3),
    lambda x: torch.mm(x.view(2, 4), x.view(2, 4)),
    lambda x: x.index_select(0, torch.tensor([99], device=x.device)),
    lambda x: torch.linalg.inv(torch.zeros(2, 2, device=x.device)),
    lambda x: x.view(3, 3),
], ids=range(10))
def test_errors_are_those_of_the_cpu(call):
    with pytest.raises(Exception) as want:
        call(torch.arange(8.0))
    with pytest.raises(type(want.value)) as got:
        call(torch.arange(8.0, device=DEV))
    assert str(got.value).split("\n")[0] == str(want.value).split("\n")[0]


@pytest.mark.parametrize("call", [
    lambda d, c: d + c, lambda d, c: torch.mm(c, d), lambda d, c: torch.mm(d, c), lambda d, c: torch.cat([d, c]),
    lambda d, c: torch.add(d, d, out=c), lambda d, c: torch.add(c, c, out=d), lambda d, c: torch.where(c > 0, d, d),
    lambda d, c: torch.nn.functional.layer_norm(d, (2,), c[0], c[0]), lambda d, c: c.add_(d),
], ids=range(9))
def test_mixed_devices_are_refused_as_by_stock(call):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but .*cpu"):
        call(torch.ones(2, 2, device=DEV), torch.ones(2, 2))


def test_numbers_on_the_cpu_mix_with_device_tensors():
    x = torch.ones(2, 2, device=DEV)
    assert (x * torch.tensor(3.0)).cpu().tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert (x + 2).dtype == torch.float32 and (x.half() * torch.tensor(2.0)).dtype == torch.float16
    assert x[torch.tensor([0])].shape == (1, 2)
    with pytest.raises(RuntimeError, match="same device"):
        torch.tensor(1.0).add_(torch.tensor(2.0, device=DEV))


def test_storage_operations():
    x = torch.arange(4.0, device=DEV)
    x.untyped_storage().resize_(32)
    x.resize_(8)[4:] = 5
    assert x.cpu().tolist() == [0, 1, 2, 3, 5, 5, 5, 5]
    y = torch.empty(0, device=DEV).set_(x.untyped_storage(), 2, (2, 2), (2, 1))
    assert y.cpu().tolist() == [[2, 3], [5, 5]] and y.data_ptr() == x.data_ptr() + 8
    z = torch.empty(0, device=DEV).set_(y)
    z.zero_()
    assert x.cpu().tolist() == [0, 1, 0, 0, 0, 0, 5, 5]
    assert torch.empty(3, device=DEV).set_().numel() == 0
    assert x.untyped_storage().device == DEV and torch.UntypedStorage(8, device="cdna").nbytes() == 8
    w = torch.zeros(2)
    x.data = torch.ones(3, device=DEV)
    assert x.sum().item() == 3 and w.sum() == 0


def test_empty_extents():
    both(lambda x: x @ x.t(), torch.empty(3, 0))
    both(lambda x: x.sum(0), torch.empty(0, 4))
    assert torch.empty(0, device=DEV).data_ptr() == 0 and torch.cat([torch.empty(0, device=DEV)]).numel() == 0


def test_deepcopy_keeps_sharing_and_device():
    x = torch.randn(3, device=DEV)
    a, b = copy.deepcopy((x, x.view(3, 1)))
    a.zero_()
    assert a.device == DEV and b.abs().sum().item() == 0 and x.abs().sum().item() > 0


def test_list_and_optional_arguments():
    both(lambda a, b: torch.broadcast_tensors(a, b), torch.randn(3, 1), torch.randn(4))
    both(lambda a, b: torch.block_diag(a, b), torch.randn(2, 2), torch.randn(3, 1))
    xs = [torch.randn(3), torch.randn(2, 2)]
    ds = [x.to(DEV) for x in xs]
    torch._foreach_add_(ds, 2.0)
    torch._foreach_mul_(ds, ds)
    assert all(torch.equal(d.cpu(), (x + 2) ** 2) for d, x in zip(ds, xs))
    y = torch.zeros(3, 3, device=DEV)
    y[:, [0, 2]] = torch.ones(2, device=DEV)
    y.index_put_((torch.tensor([0]), torch.tensor([1])), torch.tensor(4.0))
    assert y.cpu().tolist() == [[1, 4, 1], [1, 0, 1], [1, 0, 1]]


def test_vmap_and_jacobians():
    x = torch.randn(4, 3, device=DEV)
    assert torch.equal(torch.vmap(lambda r: (r * r).sum())(x).cpu(), (x * x).sum(1).cpu())
    jac = torch.func.jacrev(lambda r: r.sin())(x[0])
    torch.testing.assert_close(jac.cpu(), torch.diag(x[0].cpu().cos()))


def test_deterministic_mode_fills_new_memory():
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(5, device=DEV).isnan().all().item()
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("call, words", [
    (lambda x: x.to_sparse(), "cdna holds dense strided tensors only"),
    (lambda x: x.to_sparse_csr(), "cdna"),
    (lambda x: x.to_mkldnn(), "cdna|mkldnn"),
    (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "cdna holds dense strided tensors only"),
    (lambda x: torch.sparse_coo_tensor(torch.zeros(1, 1, dtype=torch.long), torch.ones(1), (2,), device=x.device), "cdna"),
    (lambda x: torch.nested.nested_tensor([x[0], x[1]], device=x.device).add(1), "cdna holds|device holds dense"),
    (lambda x: torch.empty(2, device=x.device, pin_memory=True), "Only dense CPU tensors can be pinned"),
    (lambda x: torch.ops.aten._cudnn_init_dropout_state(0.5, True, 1, device=x.device),
     "_cudnn_init_dropout_state is not available on cdna"),
], ids=["sparse", "csr", "mkldnn", "quantized", "coo", "nested", "pinned", "no_cpu_kernel"])
def test_limits_give_a_clear_error(call, words):
    with pytest.raises((NotImplementedError, RuntimeError), match=words):
        call(torch.randn(2, 2, device=DEV))


def test_out_of_memory_is_an_error_that_names_the_size():
    with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate 8796093022208 bytes on cdna:0"):
        torch.empty(2**43, dtype=torch.uint8, device=DEV)
    assert torch.ones(1, device=DEV).item() == 1


def test_custom_op_with_a_cpu_kernel_runs_through_the_fallback():
    library = torch.library.Library("cdna_test", "DEF")  # noqa: TOR901
    library.define("twice(Tensor(a!) x, Tensor? y) -> Tensor")
    library.impl("twice", lambda x, y: x.mul_(2) if y is None else x.mul_(2) + y, "CPU")
    library.define("second(Tensor x, Tensor y) -> Tensor")
    library.impl("second", lambda x, y: y, "CPU")
    number = torch.tensor(5.0)
    moved = torch.ops.cdna_test.second(torch.ones(2, device=DEV), number)
    assert moved.device == DEV and moved.item() == 5 and number.item() == 5 and number.device.type == "cpu"
    x = torch.ones(3, device=DEV)
    assert torch.ops.cdna_test.twice(x, None).cpu().tolist() == [2, 2, 2] and x.cpu().tolist() == [2, 2, 2]
    assert torch.ops.cdna_test.twice(x[:2], x[1:]).cpu().tolist() == [8, 6]


def test_a_redefined_custom_op_is_read_anew():
    for schema, call, want in (("f(Tensor x, Tensor y) -> Tensor", lambda f, x: f(x, x), 2), ("f(Tensor x, int n) -> Tensor",
                               lambda f, x: f(x, 5), 6), ("f(Tensor(a!) x, Tensor y) -> ()", lambda f, x: (f(x, x), x)[1], 1)):
        library = torch.library.Library("cdna_redefined", "DEF")  # noqa: TOR901
        library.define(schema)
        with pytest.raises(NotImplementedError, match="cdna_redefined::f is not available on cdna"):
            call(torch.ops.cdna_redefined.f.default, torch.ones(1, device=DEV))
        library.impl("f", lambda x, y: None if schema.endswith("()") else x + y, "CPU")
        assert call(torch.ops.cdna_redefined.f.default, torch.ones(1, device=DEV)).item() == want
        library._destroy()
