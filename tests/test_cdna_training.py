"""Models on cdna: training steps, autocast, checkpointing, RNNs, attention fast paths. Results equal the CPU's."""
import copy
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import torch_mi350
import torch_mi350.cdna as cdna

cdna.register()
DEV = torch.device("cdna:0")


def pair(make):
    """The same module on the CPU and on cdna."""
    torch.manual_seed(0)
    model = make()
    return model, copy.deepcopy(model).to(DEV)


def close(device_tensor, cpu_tensor, tol=1e-5):
    assert device_tensor.device == DEV
    torch.testing.assert_close(device_tensor.detach().cpu(), cpu_tensor.detach(), rtol=tol, atol=tol)


def same_training(make, inputs, loss=lambda y: y.square().mean(), tol=1e-5):
    """Forward, input gradients and parameter gradients agree with the CPU."""
    on_cpu, on_device = pair(make)
    cpu_in = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    dev_in = [x.to(DEV).requires_grad_(x.is_floating_point()) for x in inputs]
    want, got = on_cpu(*cpu_in), on_device(*dev_in)
    first = (want[0], got[0]) if isinstance(want, tuple) else (want, got)
    close(first[1], first[0], tol)
    loss(first[0]).backward()
    loss(first[1]).backward()
    for c, d in zip(cpu_in, dev_in):
        if c.grad is not None:
            close(d.grad, c.grad, tol)
    compared = 0
    for (name, p), q in zip(on_cpu.named_parameters(), on_device.parameters()):
        assert (p.grad is None) == (q.grad is None), name
        if p.grad is not None:
            close(q.grad, p.grad, tol)
            compared += 1
    assert compared or not list(on_cpu.parameters())


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                                  nn.Conv2d(8, 8, 3, groups=2, bias=False), nn.GroupNorm(2, 8), nn.SiLU(),
                                  nn.ConvTranspose2d(8, 4, 2, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))

    def forward(self, x):
        return self.body(x)


@pytest.mark.parametrize("make, shapes", [
    (lambda: nn.Linear(6, 4), [(5, 6)]),
    (lambda: nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2)), [(3, 4, 6)]),
    (ConvNet, [(2, 3, 12, 12)]),
    (lambda: nn.Conv1d(4, 6, 3, stride=2), [(2, 4, 11)]),
    (lambda: nn.Conv3d(2, 3, 2), [(1, 2, 4, 4, 4)]),
    (lambda: nn.Conv2d(3, 6, 3, padding_mode="circular", padding=1), [(1, 3, 6, 6)]),
    (lambda: nn.Bilinear(3, 4, 5), [(2, 3), (2, 4)]),
    (lambda: nn.LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True), [(3, 7, 6)]),
    (lambda: nn.LSTM(6, 5, bias=False), [(4, 2, 6)]),
    (lambda: nn.GRU(6, 5, num_layers=2), [(4, 3, 6)]),
    (lambda: nn.GRU(6, 5, bias=False, bidirectional=True), [(4, 3, 6)]),
    (lambda: nn.RNN(6, 5), [(4, 3, 6)]),
    (lambda: nn.LSTMCell(6, 5), [(3, 6)]),
    (lambda: nn.GRUCell(6, 5), [(3, 6)]),
    (lambda: nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True), [(2, 5, 16)]),
    (lambda: nn.TransformerDecoderLayer(16, 4, 32, dropout=0.0), [(5, 2, 16), (6, 2, 16)]),
    (lambda: nn.MultiheadAttention(16, 4, batch_first=True), [(2, 5, 16)] * 3),
    (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), [(1, 2, 3, 3)]),
], ids=range(18))
def test_forward_and_gradients_equal_cpu(make, shapes):
    torch.manual_seed(1)
    same_training(make, [torch.randn(*s) for s in shapes])


def test_embedding_and_cross_entropy():
    tokens, labels = torch.randint(0, 20, (3, 6)), torch.randint(0, 9, (3, 6))
    labels[0, 0] = -100
    model = lambda: nn.Sequential(nn.Embedding(20, 8, padding_idx=0), nn.Linear(8, 9))  # noqa: E731
    same_training(model, [tokens], loss=lambda y: F.cross_entropy(y.flatten(0, 1), labels.flatten().to(y.device)))
    same_training(lambda: nn.EmbeddingBag(20, 8, mode="mean"), [tokens])


@pytest.mark.parametrize("loss", [
    lambda y, t: F.mse_loss(y, t), lambda y, t: F.smooth_l1_loss(y, t), lambda y, t: F.kl_div(y.log_softmax(1), t.softmax(1)),
    lambda y, t: F.binary_cross_entropy_with_logits(y, t.sigmoid()), lambda y, t: F.nll_loss(y.log_softmax(1), t.argmax(1)),
    lambda y, t: F.cosine_embedding_loss(y, t, torch.ones(4, device=y.device)), lambda y, t: F.triplet_margin_loss(y, t, -t),
    lambda y, t: F.ctc_loss(y.log_softmax(1)[:, None], torch.tensor([[1, 2]], device=y.device), torch.tensor([4]),
                            torch.tensor([2])),
], ids=range(8))
def test_losses_equal_cpu(loss):
    target = torch.randn(4, 6)
    same_training(lambda: nn.Linear(5, 6), [torch.randn(4, 5)], loss=lambda y: loss(y, target.to(y.device)))


def train(model, device, make_optimizer, steps=4):
    torch.manual_seed(7)
    optimizer = make_optimizer(model.parameters())
    for _ in range(steps):
        x = torch.randn(8, 6).to(device)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return optimizer


@pytest.mark.parametrize("make_optimizer", [
    lambda p: torch.optim.AdamW(p, 0.05, foreach=True), lambda p: torch.optim.AdamW(p, 0.05, fused=True),
    lambda p: torch.optim.AdamW(p, 0.05, foreach=False), lambda p: torch.optim.AdamW(p, 0.05, capturable=False, amsgrad=True),
    lambda p: torch.optim.Adam(p, 0.05), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
    lambda p: torch.optim.SGD(p, 0.1, fused=True), lambda p: torch.optim.RMSprop(p, 0.01),
    lambda p: torch.optim.Adagrad(p, 0.1), lambda p: torch.optim.Adafactor(p), lambda p: torch.optim.Adamax(p),
], ids=["adamw_foreach", "adamw_fused", "adamw_loop", "adamw_amsgrad", "adam", "sgd", "sgd_fused", "rmsprop", "adagrad",
        "adafactor", "adamax"])
def test_optimizers_take_the_cpus_steps(make_optimizer):
    on_cpu, on_device = pair(lambda: nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)))
    before = on_cpu[0].weight.detach().clone()
    train(on_cpu, "cpu", make_optimizer)
    optimizer = train(on_device, DEV, make_optimizer)
    assert not torch.equal(before, on_cpu[0].weight)
    for p, q in zip(on_cpu.parameters(), on_device.parameters()):
        close(q, p)
    assert optimizer.state_dict()["param_groups"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_chooses_the_dtype_per_op(dtype):
    x, w = torch.randn(4, 6, device=DEV), torch.randn(6, 3, device=DEV, requires_grad=True)
    with torch.autocast("cdna", dtype=dtype):
        assert torch.is_autocast_enabled("cdna") and not torch.is_autocast_enabled("cpu")
        y = x @ w
        assert y.dtype == dtype
        assert y.softmax(-1).dtype == torch.float32 and y.exp().dtype == torch.float32
        assert (y + y).dtype == dtype and F.linear(x, w.t()).dtype == dtype
        assert F.layer_norm(y, (3,)).dtype == torch.float32
        assert torch.addcmul(x[:, :3], y, y).dtype == torch.float32
        assert F.conv2d(torch.randn(1, 2, 4, 4, device=DEV), torch.randn(3, 2, 3, 3, device=DEV)).dtype == dtype
        with torch.autocast("cdna", enabled=False):
            assert (x @ w).dtype == torch.float32
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            F.binary_cross_entropy(y.sigmoid(), y.sigmoid())
        y.float().sum().backward()
    assert w.grad.dtype == torch.float32 and (x @ w).dtype == torch.float32


def test_autocast_default_and_supported_dtypes():
    assert torch.cdna.get_amp_supported_dtype() == [torch.float16, torch.bfloat16]
    assert torch.amp.is_autocast_available("cdna")
    with pytest.warns(UserWarning, match="not support"):
        with torch.autocast("cdna", dtype=torch.float64):
            assert not torch.is_autocast_enabled("cdna")


def test_grad_scaler_scales_steps_and_skips_overflow():
    model = nn.Linear(4, 2).to(DEV)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cdna", init_scale=1024.0)
    x = torch.randn(3, 4, device=DEV)
    with torch.autocast("cdna", dtype=torch.float16):
        loss = model(x).float().sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    close(model.bias.grad, torch.full((2,), 3.0))
    before = model.weight.detach().clone()
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(before, model.weight) and scaler.get_scale() == 1024.0
    optimizer.zero_grad()
    scaler.scale((model(x) * float("inf")).sum()).backward()
    before = model.weight.detach().clone()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(before, model.weight) and scaler.get_scale() == 512.0


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint_replays_dropout_and_autocast(reentrant):
    model = nn.Sequential(nn.Linear(6, 32), nn.Dropout(0.5), nn.Linear(32, 4)).to(DEV)
    x = torch.randn(5, 6, device=DEV, requires_grad=True)
    grads = []
    for f in (lambda: model(x), lambda: checkpoint(model, x, use_reentrant=reentrant)):
        model.zero_grad()
        x.grad = None
        torch.manual_seed(3)
        with torch.autocast("cdna", dtype=torch.bfloat16):
            y = f()
            assert y.dtype == torch.bfloat16
        y.float().square().sum().backward()
        grads.append([x.grad.clone(), *[p.grad.clone() for p in model.parameters()]])
    assert all(torch.equal(a, b) for a, b in zip(*grads)) and grads[0][0].abs().sum().item() > 0


@pytest.mark.parametrize("kwargs", [{}, {"norm_first": True}, {"activation": "gelu"}])
@pytest.mark.parametrize("mask", ["none", "padding", "attention"])
def test_encoder_layer_fast_path_equals_cpu(kwargs, mask):
    on_cpu, on_device = pair(lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **kwargs).eval())
    x = torch.randn(2, 6, 16)
    padding = torch.tensor([[False] * 6, [False] * 4 + [True] * 2]) if mask == "padding" else None
    attention = nn.Transformer.generate_square_subsequent_mask(6).isinf() if mask == "attention" else None
    move = lambda t: None if t is None else t.to(DEV)  # noqa: E731
    with torch.no_grad():
        want = on_cpu(x, src_mask=attention, src_key_padding_mask=padding)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
            got = on_device(x.to(DEV), src_mask=move(attention), src_key_padding_mask=move(padding))
    names = [e.key for e in prof.key_averages()]
    assert "aten::_transformer_encoder_layer_fwd" in names and "aten::addmm" in names and "aten::bmm" in names
    close(got, want)


@pytest.mark.parametrize("make, run", [
    (lambda: nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).eval(), lambda m, x: m(x)),
    (lambda: nn.MultiheadAttention(64, 4, batch_first=True).eval(), lambda m, x: m(x, x, x)[0]),
    (lambda: nn.LSTM(64, 64, batch_first=True), lambda m, x: m(x)[0]),
    (lambda: nn.GRU(64, 64, batch_first=True), lambda m, x: m(x)[0]),
], ids=["encoder", "mha", "lstm", "gru"])
def test_products_inside_composed_modules_are_routed(make, run):
    on_cpu, on_device = pair(make)
    x = torch.randn(2, 16, 64)
    torch_mi350.reset()
    with torch.no_grad():
        want, got = run(on_cpu, x), run(on_device.to(torch.bfloat16), x.to(DEV, torch.bfloat16))
    report = torch_mi350.report().dict()
    ops = {op: entry for op, entry in report.items() if op != "cpu" and entry.get("hits")}
    assert ops and not any(entry.get("misses") for entry in ops.values()), report
    assert not {"mm.out", "addmm.out", "bmm.out", "mm", "addmm", "bmm"} & set(report["cpu"])
    assert F.cosine_similarity(got.float().cpu().flatten(), want.flatten(), 0) > 0.999


def test_encoder_with_padding_keeps_the_padded_tensor():
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    on_cpu, on_device = pair(lambda: nn.TransformerEncoder(layer, 2).eval())
    x, padding = torch.randn(2, 6, 16), torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    with torch.no_grad():
        want = on_cpu(x, src_key_padding_mask=padding)
        got = on_device(x.to(DEV), src_key_padding_mask=padding.to(DEV))
    close(got[~padding.to(DEV)], want[~padding])


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_multihead_attention_fast_path_equals_cpu(average, masked):
    on_cpu, on_device = pair(lambda: nn.MultiheadAttention(16, 4, batch_first=True).eval())
    x = torch.randn(2, 5, 16)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2]) if masked else None
    kwargs = dict(need_weights=True, average_attn_weights=average)
    with torch.no_grad():
        want, weights = on_cpu(x, x, x, key_padding_mask=padding, **kwargs)
        d = x.to(DEV)
        got, got_weights = on_device(d, d, d, key_padding_mask=None if padding is None else padding.to(DEV), **kwargs)
    close(got, want)
    close(got_weights, weights)


def test_native_attention_with_separate_key_and_value():
    args = [torch.randn(2, 5, 16) for _ in range(3)]
    rest = [16, 4, torch.randn(48, 16), torch.randn(48), torch.randn(16, 16), torch.randn(16)]
    call = torch._native_multi_head_attention
    want = call(*args, *rest)
    got = call(*[t.to(DEV) for t in args], *[t.to(DEV) if isinstance(t, torch.Tensor) else t for t in rest])
    close(got[0], want[0], 1e-4)
    close(got[1], want[1], 1e-4)
    with pytest.raises(RuntimeError, match=r"qkv_weight` of shape \[48, 16\], got \[48, 15\]"):
        bad = [t.to(DEV) if isinstance(t, torch.Tensor) else t for t in rest]
        bad[2] = bad[2][:, :15]
        call(*[t.to(DEV) for t in args], *bad)


def test_packed_sequences():
    on_cpu, on_device = pair(lambda: nn.LSTM(4, 3, batch_first=True))
    x, lengths = torch.randn(3, 5, 4), torch.tensor([5, 3, 2])
    pack = lambda t: nn.utils.rnn.pack_padded_sequence(t, lengths, batch_first=True)  # noqa: E731
    want, (h, c) = on_cpu(pack(x))
    got, (dh, dc) = on_device(pack(x.to(DEV)))
    close(got.data, want.data)
    close(dh, h)
    close(dc, c)
    padded, _ = nn.utils.rnn.pad_packed_sequence(got, batch_first=True)
    assert padded.shape == (3, 5, 3) and got.is_cdna


def test_fused_cells_differentiate_twice_over_hidden_and_cell_state():
    on_cpu, on_device = pair(lambda: nn.LSTM(4, 3))
    x, h, c = torch.randn(2, 2, 4), torch.randn(1, 2, 3), torch.randn(1, 2, 3)
    results = []
    for model, device in ((on_cpu, "cpu"), (on_device, DEV)):
        leaves = [t.clone().to(device).requires_grad_() for t in (x, h, c)]
        _, (hn, cn) = model(leaves[0], (leaves[1], leaves[2]))
        cn.sum().backward(retain_graph=True)
        (hn * 2).sum().backward()
        results.append([t.grad for t in leaves])
    for want, got in zip(*results):
        close(got, want)


def test_module_moves():
    model = nn.Linear(3, 2).to("cdna")
    assert model.weight.is_cdna and model.cpu().weight.device.type == "cpu" and model.cdna().weight.device == DEV
    assert nn.Linear(3, 2, device="cdna").weight.device == DEV
    with torch.device("cdna"):
        assert nn.Linear(3, 2).bias.device == DEV
    assert nn.Linear(3, 2, device="meta").to_empty(device="cdna").weight.device == DEV


def test_sdpa_and_its_gradients_equal_cpu():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 6, 8) for _ in range(3))
    for kwargs in ({}, {"is_causal": True}, {"attn_mask": torch.randn(6, 6)}):
        cpu = [t.clone().requires_grad_() for t in (q, k, v)]
        dev = [t.to(DEV).requires_grad_() for t in (q, k, v)]
        moved = {n: t.to(DEV) if isinstance(t, torch.Tensor) else t for n, t in kwargs.items()}
        want, got = F.scaled_dot_product_attention(*cpu, **kwargs), F.scaled_dot_product_attention(*dev, **moved)
        close(got, want)
        want.square().sum().backward()
        got.square().sum().backward()
        for a, b in zip(dev, cpu):
            close(a.grad, b.grad)


def test_compile_with_aot_eager():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(DEV)
    x = torch.randn(3, 4, device=DEV)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), model(x))
    compiled(x).sum().backward()
    assert model[0].weight.grad.device == DEV


def test_save_on_cpu_hooks():
    x = torch.randn(4, 4, device=DEV, requires_grad=True)
    with torch.autograd.graph.save_on_cpu(pin_memory=True, device_type="cdna"):
        y = x.exp()
    y.sum().backward()
    assert torch.equal(x.grad, y)


def test_loss_falls_over_a_training_run():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)).to(DEV)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    data = torch.randn(64, 8)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data, data.sum(1, keepdim=True)), 16, pin_memory=True)
    losses = []
    for _ in range(15):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x.to(DEV, non_blocking=True)), y.to(DEV))
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.parametrize("loss", [F.mse_loss, F.smooth_l1_loss, F.l1_loss, F.huber_loss, F.binary_cross_entropy_with_logits])
def test_reduced_losses_warn_no_more_than_on_the_cpu(loss):
    y, t = torch.randn(4, 6, device="cdna"), torch.rand(4, 6, device="cdna")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loss(y, t).shape == ()
