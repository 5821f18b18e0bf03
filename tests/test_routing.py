"""Routing as a script sees it: report, switches, explain, overlapping and unusual tensors, threads."""

import json
import threading

import pytest
import torch

import torch_mi350
from torch_mi350 import _C

BF16 = torch.bfloat16


def ones(*shape, device="cdna", dtype=BF16):
    return torch.ones(*shape, dtype=dtype, device="cpu").to(device)


@pytest.fixture(autouse=True)
def clean_ledger():
    torch_mi350.enable()
    torch_mi350.reset()
    yield
    torch_mi350.enable()


# ---- report ---------------------------------------------------------------------------------------------


def test_report_counts_hits_by_kernel_misses_by_reason_and_cpu_ops():
    a, b = ones(4, 8), ones(8, 4)
    torch_mi350.reset()
    torch.mm(a, b), torch.mm(a, b), torch.mm(a.double(), b.double()), torch.sin(a)
    ledger = torch_mi350.report().dict()
    assert list(ledger["mm"]["hits"].values()) == [2]
    assert next(iter(ledger["mm"]["hits"])).startswith("mi350_gemm_bf16_")
    assert ledger["mm"]["misses"] == {"dtype Double, served are bf16, f16 and f32": 1}
    assert any(op.startswith("sin") for op in ledger["cpu"])


def test_report_json_is_the_dict_and_text_has_every_line():
    torch.mm(ones(4, 8), ones(8, 4))
    report = torch_mi350.report()
    assert json.loads(report.json()) == report.dict()
    text = str(report)
    for kernel in report.dict()["mm"]["hits"]:
        assert kernel in text
    assert text.startswith("torch_mi350: 1 hits, 0 misses")


def test_reset_empties_the_ledger():
    torch.mm(ones(4, 8), ones(8, 4))
    torch_mi350.reset()
    assert torch_mi350.report().dict() == {"cpu": {}}


def test_backward_is_counted_from_the_autograd_thread():
    layer = torch.nn.Linear(8, 4, dtype=BF16).to("cdna")
    x = ones(3, 8).requires_grad_()
    torch_mi350.reset()
    layer(x).sum().backward()
    ledger = torch_mi350.report().dict()
    assert sum(ledger["addmm"]["hits"].values()) == 1
    assert sum(ledger["mm"]["hits"].values()) == 2
    assert not ledger["mm"]["misses"] and not ledger["addmm"]["misses"]


def test_empty_results_are_hits_that_say_no_kernel_ran():
    got = torch.mm(ones(0, 8), ones(8, 4))
    assert got.shape == (0, 4)
    assert torch_mi350.report().dict()["mm"] == {"hits": {"no kernel (empty output)": 1}, "misses": {}}


def test_same_problem_at_other_addresses_uses_its_own_operands():
    """The plan of the first call is cached; addresses, and operands that the planner swapped, must not be."""
    generator = torch.Generator().manual_seed(1)
    for shape in ((64, 8, 16), (8, 64, 16), (33, 5, 7)):
        m, n, k = shape
        for _ in range(3):
            a = torch.randint(-3, 4, (m, k), generator=generator).to(BF16)
            b = torch.randint(-3, 4, (k, n), generator=generator).to(BF16)
            assert torch.equal(torch.mm(a.to("cdna"), b.to("cdna")).cpu(), torch.mm(a, b))
        square = a if m == k else a[:, :k]
        assert torch.equal(
            torch.mm(square.to("cdna"), square.to("cdna").t()).cpu(), torch.mm(square, square.t())
        )


# ---- switches -------------------------------------------------------------------------------------------


def test_disable_and_enable_flip_one_op_or_all():
    torch_mi350.disable("mm")
    torch.mm(ones(4, 8), ones(8, 4)), torch.bmm(ones(2, 4, 8), ones(2, 8, 4))
    ledger = torch_mi350.report().dict()
    assert ledger["mm"] == {"hits": {}, "misses": {"disabled": 1}} and ledger["bmm"]["hits"]
    torch_mi350.disable()
    assert not any(_C.is_enabled(op) for op in _C.ops())
    torch_mi350.enable()
    assert all(_C.is_enabled(op) for op in _C.ops())


def test_disabled_nests_and_survives_an_exception():
    with torch_mi350.disabled("mm"):
        with pytest.raises(KeyError), torch_mi350.disabled():
            raise KeyError
        assert not _C.is_enabled("mm") and _C.is_enabled("bmm")
    assert _C.is_enabled("mm")


def test_disabled_is_process_wide_and_covers_backward():
    x = ones(3, 8).requires_grad_()
    w = ones(8, 4).requires_grad_()
    y = torch.mm(x, w)
    torch_mi350.reset()
    with torch_mi350.disabled("mm"):
        y.sum().backward()
    assert torch_mi350.report().dict()["mm"] == {"hits": {}, "misses": {"disabled": 2}}


def test_unknown_op_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match="no op is called 'topkk', known ops are mm, addmm, bmm, baddbmm"):
        torch_mi350.disable("topkk")


# ---- explain --------------------------------------------------------------------------------------------


def test_explain_names_the_kernel_that_the_call_then_runs_and_runs_none():
    a, b = ones(40, 64), ones(64, 48)
    before = _C.emulator_counters()["launches"]
    torch_mi350.reset()
    explanation = torch_mi350.explain(torch.matmul, a, b)
    assert _C.emulator_counters()["launches"] == before
    assert torch_mi350.report().dict() == {"cpu": {}}
    torch.matmul(a, b)
    assert [c["kernel"] for c in explanation.calls] == list(torch_mi350.report().dict()["mm"]["hits"])
    assert str(explanation).startswith("mm bf16 40x48x64 nn -> mi350_gemm_bf16_")


def test_explain_gives_every_config_a_cost_or_a_reason():
    (call,) = torch_mi350.explain(torch.mm, ones(5, 7), ones(7, 3)).calls
    assert len(call["candidates"]) > 3
    assert all(bool(refused) != (cost > 0) for _, refused, cost in call["candidates"])
    assert any("is not a multiple of" in refused for _, refused, _ in call["candidates"])
    chosen = min((cost, config) for config, refused, cost in call["candidates"] if not refused)
    assert chosen[1] == call["kernel"]


def test_explain_follows_a_module_and_its_backward():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)).to(
        "cdna", BF16
    )
    x = ones(3, 8)
    assert [c["op"] for c in torch_mi350.explain(model, x).calls] == ["addmm", "addmm"]
    ops = {c["op"] for c in torch_mi350.explain(lambda t: model(t).sum().backward(), x).calls}
    assert ops == {"addmm", "mm"}


def test_explain_says_why_a_call_is_left_alone():
    with torch_mi350.disabled("mm"):
        (call,) = torch_mi350.explain(torch.mm, ones(4, 8), ones(8, 4)).calls
    assert call["refused"] == "disabled"
    (call,) = torch_mi350.explain(
        torch.mm, ones(4, 8, dtype=torch.float64), ones(8, 4, dtype=torch.float64)
    ).calls
    assert call["refused"].startswith("dtype Double")


def test_explain_of_calls_that_are_not_ours_is_one_sentence():
    assert (
        str(torch_mi350.explain(torch.mm, torch.ones(2, 2), torch.ones(2, 2)))
        == "no call to an op that torch_mi350 routes"
    )


def test_explain_refuses_functions_that_read_values():
    with pytest.raises(RuntimeError, match="explain: the function reads the values of a tensor"):
        torch_mi350.explain(lambda t: t[0, 0].item(), ones(2, 2))


def test_explain_leaves_inputs_and_outputs_untouched():
    a, b, out = ones(4, 8), ones(8, 4), torch.zeros(4, 4, dtype=BF16, device="cdna")
    torch_mi350.explain(lambda: torch.mm(a, b, out=out))
    torch_mi350.explain(lambda: out.addmm_(a, b))
    assert out.cpu().abs().sum() == 0


# ---- memory overlap and unusual tensors -----------------------------------------------------------------


def test_out_that_shares_memory_with_an_input_goes_to_stock():
    base = ones(4, 8)
    square = base[:, :4]
    want = torch.mm(square.cpu(), square.cpu())
    got = torch.mm(square, square, out=base[:, 4:])  # neighbours in one buffer: ranges touch, elements do not
    assert torch.equal(got.cpu(), want)
    x = ones(4, 4)
    torch_mi350.reset()
    torch.mm(x, x, out=x)
    assert torch_mi350.report().dict()["mm"]["misses"] == {"out shares memory with an input": 1}


def test_addend_may_be_the_output_itself_but_not_a_shifted_view_of_it():
    buffer = torch.arange(20.0).to(BF16).to("cdna")
    out, shifted, a, b = buffer[:16].view(4, 4), buffer[4:].view(4, 4), ones(4, 8), ones(8, 4)
    torch_mi350.reset()
    torch.addmm(out, a, b, out=out)
    assert torch.equal(buffer[:16].cpu(), torch.arange(16.0).to(BF16) + 8)
    with pytest.raises(
        RuntimeError,
        match="some elements of the input tensor and the written-to tensor refer to a single memory location",
    ):
        torch.addmm(shifted, a, b, out=out)
    ledger = torch_mi350.report().dict()["addmm"]
    assert sum(ledger["hits"].values()) == 1 and ledger["misses"] == {"out shares memory with an input": 1}


def test_out_that_stock_would_resize_goes_to_stock():
    out = torch.empty(0, dtype=BF16, device="cdna")
    torch.mm(ones(4, 8), ones(8, 4), out=out)
    assert out.shape == (4, 4) and bool((out.cpu() == 8).all())
    assert torch_mi350.report().dict()["mm"]["misses"] == {"out has another shape than the result": 1}


def test_complex_tensors_and_lazy_conjugates_go_to_stock():
    z = torch.complex(torch.ones(4, 4), torch.ones(4, 4)).to("cdna")
    want = torch.mm(z.cpu().conj(), z.cpu())
    torch_mi350.reset()
    torch.mm(z, z)
    assert torch.equal(torch.mm(z.conj(), z).cpu(), want)
    assert torch_mi350.report().dict()["mm"]["misses"] == {
        "complex dtype": 1,
        "lazy conjugate or negative view": 1,
    }


# ---- threads and streams --------------------------------------------------------------------------------


def test_calls_of_many_threads_are_all_counted_and_right():
    a, b = ones(20, 40), ones(40, 24)
    wrong = []

    def work():
        for _ in range(50):
            if not bool((torch.mm(a, b).cpu() == 40).all()):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert sum(torch_mi350.report().dict()["mm"]["hits"].values()) == 200


def test_a_call_runs_on_the_current_stream():
    stream = torch.Stream(device="cdna")
    with stream:
        got = torch.mm(ones(4, 8), ones(8, 4))
    stream.synchronize()
    assert bool((got.cpu() == 8).all())
