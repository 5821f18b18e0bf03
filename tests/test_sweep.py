"""docs/ops_on_cdna.md lists what an ops sweep finds: a fixed sample of ops here, every op at night."""
import pathlib
import re

import pytest
import torch

import torch_mi350
import torch_mi350.cdna as cdna

cdna.register()
pytest.importorskip("expecttest", reason="torch.testing._internal needs the package expecttest")
from torch_mi350.testing import sweep, sweep_op  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "ops_on_cdna.md"
REFUSED = "## Errors on cdna where the CPU has none"
# Layouts that cdna does not have, ops that broke once, and one op of each kind that models use.
SAMPLE = ("_foreach_add", "add", "addr", "index_put", "jiterator_unary", "mode", "nn.functional.conv2d",
          "nn.functional.linear", "nn.functional.scaled_dot_product_attention", "sgn", "sparse.mm.reduce",
          "sparse.sampled_addmm", "tensor_split", "to", "to_sparse")
DEV = "cdna:0"


def section(text, title):
    return text.partition(f"{title}\n")[2].partition("\n## ")[0]


def rows(text, title, names=None):
    found = [line for line in section(text, title).splitlines() if line.startswith("| `")]
    return [line for line in found if names is None or line.split("`")[1] in names]


@pytest.fixture(scope="module")
def sampled():
    return sweep.sweep(SAMPLE)


@pytest.mark.parametrize("title", [REFUSED, "## Different results", "## Accepted where the CPU refuses"])
def test_page_lists_what_a_sweep_of_the_sample_finds(sampled, title):
    assert rows(sweep.page(sampled), title) == rows(PAGE.read_text(), title, SAMPLE)


def test_sample_holds_refusals_and_equal_calls(sampled):
    assert len(rows(sweep.page(sampled), REFUSED)) >= 3
    assert all(r["counts"].get("equal", 0) >= 10 for name, r in sampled.items() if name in ("add", "sgn", "mode", "to"))
    assert sampled["nn.functional.linear"]["routed"]


@pytest.mark.nightly
def test_page_is_what_the_whole_sweep_writes():
    # The version of torch is named in the page and need not be this one.
    def without_version(text):
        return re.sub(r"with torch \S+", "", text)

    assert without_version(sweep.page(sweep.sweep())) == without_version(PAGE.read_text())


# ---- the sweep sees faults --------------------------------------------------------------------------------

@pytest.mark.parametrize("wrong, why", [
    (lambda x: x.nextafter(x + 1), "values"),
    (lambda x: -x, "values"),
    (lambda x: x.double(), "dtype"),
    (lambda x: x[:1], "shape"),
    (lambda x: x.t().contiguous().t(), "strides"),
    (lambda x: x.cpu(), "device"),
])
def test_a_wrong_result_is_told(wrong, why):
    right = torch.zeros(3, 2)
    assert sweep_op.difference(right.to(DEV), right, "cdna") is None
    assert why in sweep_op.difference(wrong(right.to(DEV)), right, "cdna")


def test_an_op_that_fails_on_cdna_only_is_a_row_with_its_reason():
    def only_cpu(x, *args, **kwargs):
        if x.device.type != "cpu":
            raise NotImplementedError("cdna:0: dense strided tensors only")
        return torch.add(x, *args, **kwargs)

    one = sweep_op.Sweep("add", sweep_op.ops()["add"], samples=1)
    sample = one.sample_inputs(torch.float32)[0]
    one.pair("forward", only_cpu, sample, torch.float32, 0.0)
    assert sweep.refused_rows({"add": one.verdicts.dict()}) == [
        "| `add` | forward | float32 | layout: cdna holds dense strided tensors only |"]


def test_a_worker_that_dies_becomes_a_line_and_the_next_op_runs(monkeypatch):
    ask = sweep.Worker.ask

    def die_on_sub(worker, name):
        if name == "sub":
            worker.process.kill()
        return ask(worker, name)

    monkeypatch.setattr(sweep.Worker, "ask", die_on_sub)
    results = sweep.sweep(["sub", "t"], jobs=1)
    assert sweep.refused_rows(results) == ["| `sub` | process | - | crash |"]
    assert results["t"]["counts"]["equal"] > 0


def test_an_unknown_op_is_named():
    with pytest.raises(ValueError, match="no op 'nope'"):
        sweep_op.sweep_op("nope")
    with pytest.raises(SystemExit):
        sweep.main(["--only", "add", "--write", "x.md"])


# ---- what the sweep found ---------------------------------------------------------------------------------

def test_zero_tensors_of_autograd_have_values():
    zero = torch._efficientzerotensor((2, 3), device=DEV)
    assert zero._is_zerotensor() and zero.device == torch.device(DEV)
    assert torch.equal(zero.cpu(), torch.zeros(2, 3))
    assert torch.equal((zero + torch.ones(3, device=DEV)).cpu(), torch.ones(2, 3))
    assert torch.equal(zero.clone().fill_(2).cpu(), torch.full((2, 3), 2.0))
    assert torch.dot(zero[0], torch.ones(3, device=DEV)).item() == 0
    with pytest.raises(RuntimeError, match="ZeroTensors are immutable"):
        zero.copy_(torch.ones(2, 3))


def test_gradient_of_sgn_is_zero():
    x = torch.randn(4, device=DEV, requires_grad=True)
    x.sgn().sum().backward()
    assert x.grad.cpu().tolist() == [0, 0, 0, 0]


def test_addr_in_place_refuses_a_number():
    vector = torch.ones(2, device=DEV)
    with pytest.raises(RuntimeError, match="2D tensor expected, got 0D tensor"):
        torch.tensor(1.0, device=DEV).addr_(vector, vector)


def test_mode_writes_to_out():
    x = torch.tensor([[1, 2, 2], [3, 3, 1]], device=DEV)
    out = (torch.empty(0, dtype=torch.int64, device=DEV), torch.empty(0, dtype=torch.int64, device=DEV))
    torch.mode(x, 1, out=out)
    assert out[0].cpu().tolist() == [2, 3]


@pytest.mark.parametrize("call, text", [
    (lambda d, c: d + c, r"found at least two devices, cdna:0 and cpu!$"),
    (lambda d, c: torch.cat([d, c]), r"but got tensors is on cpu, different from other tensors on cdna:0 .*aten::cat"),
    (lambda d, c: torch.index_select(d, 0, c.long()[0]),
     r"but got index is on cpu, different from other tensors on cdna:0 .*index_select"),
])
def test_mixed_devices_are_refused_in_stocks_words(call, text):
    with torch_mi350.disabled(), pytest.raises(RuntimeError, match=text):
        call(torch.ones(2, 2, device=DEV), torch.ones(2, 2))
