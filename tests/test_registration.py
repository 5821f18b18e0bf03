"""Every row of csrc/register.cpp, read back from the dispatcher.

Schema, correctness case, one ledger entry per user call on both kinds of key, fake and real results, and the
original op when ours is disabled.
"""

import json
import os
import subprocess
import sys

import pytest
import torch

import torch_mi350

M, N, K, B = 5, 6, 8, 3


def _inputs(device, dtype):
    generator = torch.Generator().manual_seed(350)

    def make(*shape):
        return torch.randint(-2, 3, shape, generator=generator).to(dtype).to(device)

    return {
        "a": make(M, K),
        "b": make(K, N),
        "c": make(N),
        "d": make(M, N),
        "ba": make(B, M, K),
        "bb": make(B, K, N),
        "bc": make(B, 1, N),
        "bd": make(B, M, N),
    }


def _empty(like, dtype=None):
    return torch.full_like(like, float("nan"), dtype=dtype)


# Row -> a call of exactly that overload, and its inputs as (addend, left, right, beta, alpha).
# `t` holds small integers: every product is exact in every served dtype.
AA, F32 = torch.ops.aten, torch.float32
MM, BMM = ("", "a", "b", 0, 1), ("", "ba", "bb", 0, 1)
ADD, BADD, ADD_, BADD_ = (
    ("c", "a", "b", 2, 0.5),
    ("bc", "ba", "bb", 2, 0.5),
    ("d", "a", "b", 1, 1),
    ("bd", "ba", "bb", 1, 1),
)
CASES = {
    "mm": (lambda t: AA.mm.default(t["a"], t["b"]), MM),
    "mm.out": (lambda t: AA.mm.out(t["a"], t["b"], out=_empty(t["d"])), MM),
    "mm.dtype": (lambda t: AA.mm.dtype(t["a"], t["b"], F32), MM),
    "mm.dtype_out": (lambda t: AA.mm.dtype_out(t["a"], t["b"], F32, out=_empty(t["d"], F32)), MM),
    "addmm": (lambda t: AA.addmm.default(t["c"], t["a"], t["b"], beta=2, alpha=0.5), ADD),
    "addmm.out": (lambda t: AA.addmm.out(t["c"], t["a"], t["b"], beta=2, alpha=0.5, out=_empty(t["d"])), ADD),
    "addmm_": (lambda t: AA.addmm_.default(t["d"].clone(), t["a"], t["b"]), ADD_),
    "addmm.dtype": (lambda t: AA.addmm.dtype(t["c"].float(), t["a"], t["b"], F32, beta=2, alpha=0.5), ADD),
    "addmm.dtype_out": (
        lambda t: AA.addmm.dtype_out(
            t["c"].float(), t["a"], t["b"], F32, beta=2, alpha=0.5, out=_empty(t["d"], F32)
        ),
        ADD,
    ),
    "bmm": (lambda t: AA.bmm.default(t["ba"], t["bb"]), BMM),
    "bmm.out": (lambda t: AA.bmm.out(t["ba"], t["bb"], out=_empty(t["bd"])), BMM),
    "bmm.dtype": (lambda t: AA.bmm.dtype(t["ba"], t["bb"], F32), BMM),
    "bmm.dtype_out": (lambda t: AA.bmm.dtype_out(t["ba"], t["bb"], F32, out=_empty(t["bd"], F32)), BMM),
    "baddbmm": (lambda t: AA.baddbmm.default(t["bc"], t["ba"], t["bb"], beta=2, alpha=0.5), BADD),
    "baddbmm.out": (
        lambda t: AA.baddbmm.out(t["bc"], t["ba"], t["bb"], beta=2, alpha=0.5, out=_empty(t["bd"])),
        BADD,
    ),
    "baddbmm_": (lambda t: AA.baddbmm_.default(t["bd"].clone(), t["ba"], t["bb"]), BADD_),
    "baddbmm.dtype": (
        lambda t: AA.baddbmm.dtype(t["bc"].float(), t["ba"], t["bb"], F32, beta=2, alpha=0.5),
        BADD,
    ),
    "baddbmm.dtype_out": (
        lambda t: AA.baddbmm.dtype_out(
            t["bc"].float(), t["ba"], t["bb"], F32, beta=2, alpha=0.5, out=_empty(t["bd"], F32)
        ),
        BADD,
    ),
}
DTYPE_FORMS = sorted(name for name in CASES if ".dtype" in name)
rows = pytest.mark.parametrize("row", sorted(CASES))


def _registered(key):
    """Overloads whose kernel at `key` is ours, from the dispatcher."""
    found = set()
    for name in torch._C._dispatch_get_all_op_names():
        if not name.startswith("aten::") or not torch._C._dispatch_has_kernel_for_dispatch_key(name, key):
            continue
        dump = torch._C._dispatch_dump_table(name)
        line = next((line for line in dump.splitlines() if line.startswith(f"{key}:")), "")
        if "torch_mi350/register.cpp" in line:
            found.add(name.removeprefix("aten::"))
    return found


def _op(row):
    return row.partition(".")[0].rstrip("_")


def _overload(row):
    packet, _, overload = row.partition(".")
    return getattr(getattr(AA, packet), overload or "default")


def _entries(row):
    """(hits, misses) of the ledger; any entry under another op is an error."""
    ledger = torch_mi350.report().dict()
    ledger.pop("cpu")
    assert set(ledger) <= {_op(row)}, ledger
    one = ledger.get(_op(row), {"hits": {}, "misses": {}})
    return sum(one["hits"].values()), sum(one["misses"].values())


def _expected(row, dtype):
    """The exact result, in float64 on the CPU."""
    t = {name: x.double() for name, x in _inputs("cpu", dtype).items()}
    addend, left, right, beta, alpha = CASES[row][1]
    product = alpha * (t[left] @ t[right])
    return product + beta * t[addend] if addend else product


def test_the_dispatcher_holds_exactly_the_rows_that_have_a_case():
    assert _registered("PrivateUse1") == set(CASES)


def test_status_lists_every_row_and_skips_none():
    facts = torch_mi350.status().dict()
    assert set(facts["installed"]["PrivateUse1"]) == set(CASES)
    assert facts["skipped"] == {}


@rows
def test_schema_is_the_one_that_was_compiled(row):
    overload = _overload(row)
    assert overload.name() == f"aten::{row}"
    assert str(overload._schema).startswith(f"aten::{row}(Tensor")


@rows
@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16, torch.float32))
def test_one_call_is_one_hit_with_the_exact_result(row, dtype):
    inputs = _inputs("cdna", dtype)
    torch_mi350.reset()
    got = CASES[row][0](inputs)
    assert _entries(row) == (1, 0)
    assert got.device.type == "cdna"
    assert torch.equal(got.cpu().double(), _expected(row, dtype))


@rows
def test_fake_and_real_results_agree_in_dtype_shape_and_stride(row):
    from torch._subclasses.fake_tensor import FakeTensorMode

    inputs = _inputs("cdna", torch.bfloat16)
    real = CASES[row][0](inputs)
    mode = FakeTensorMode()
    fakes = {name: mode.from_tensor(t) for name, t in inputs.items()}
    with mode:
        try:
            fake = CASES[row][0](fakes)
        except TypeError as error:
            assert row.startswith("baddbmm.dtype")
            pytest.skip(f"this torch has no fake kernel that takes {row}: {error}")
    assert (fake.dtype, fake.shape, fake.stride(), fake.device) == (
        real.dtype,
        real.shape,
        real.stride(),
        real.device,
    )


@rows
def test_original_op_answers_when_ours_is_disabled(row):
    inputs = _inputs("cdna", torch.bfloat16)
    torch_mi350.reset()
    with torch_mi350.disabled(_op(row)):
        if row in DTYPE_FORMS:
            with pytest.raises(NotImplementedError, match=f"{_op(row)}: aten::{row} .* disabled"):
                CASES[row][0](inputs)
        else:
            got = CASES[row][0](inputs)
            assert torch.equal(got.cpu(), CASES[row][0](_inputs("cpu", torch.bfloat16)))
    assert _entries(row) == (0, 1)
    assert torch_mi350.report().dict()[_op(row)]["misses"] == {"disabled": 1}


@rows
def test_opcheck_passes(row):
    if row in DTYPE_FORMS:
        pytest.skip("no autograd formula and no CPU kernel: opcheck has nothing to compare with")
    t = _inputs("cdna", torch.bfloat16)
    addend, left, right, beta, alpha = CASES[row][1]
    args = ([t[addend].clone()] if addend else []) + [t[left], t[right]]
    kwargs = {"beta": beta, "alpha": alpha} if addend else {}
    if row.endswith(".out"):
        kwargs["out"] = _empty(t["d"] if left == "a" else t["bd"])
    torch.library.opcheck(_overload(row), tuple(args), kwargs, test_utils=("test_schema", "test_faketensor"))


def entries_on_cpu_key():
    """Run in a process of its own, because installing on the CPU key is for the whole process."""
    from torch_mi350 import _C

    inputs = _inputs("cpu", torch.bfloat16)
    before = {row: call(inputs).tolist() for row, (call, _) in CASES.items() if row not in DTYPE_FORMS}
    installed = {r["name"]: r["skipped"] for r in _C._install_for_test("CPU")}
    result = {"installed": installed, "registered": sorted(_registered("CPU")), "rows": {}}
    for row, (call, _) in CASES.items():
        torch_mi350.reset()
        try:
            same = call(inputs).tolist() == before.get(row)
        except NotImplementedError as error:
            same = str(error)
        result["rows"][row] = {"same": same, "entries": _entries(row)}
    print(json.dumps(result))


@pytest.fixture(scope="module")
def cpu_key():
    code = "import sys; sys.path.insert(0, sys.argv[1]); import test_registration as t; t.entries_on_cpu_key()"
    done = subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(__file__)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_key_with_kernels_of_its_own_takes_every_row(cpu_key):
    assert set(cpu_key["registered"]) == set(CASES)
    assert set(cpu_key["installed"].values()) == {""}


@rows
def test_one_call_is_one_miss_and_the_previous_kernel_answers_on_the_cpu_key(row, cpu_key):
    result = cpu_key["rows"][row]
    assert result["entries"] == [0, 1]
    if row in DTYPE_FORMS:  # stock has no CPU kernel
        assert result["same"].startswith(f"{_op(row)}: aten::{row} has no other kernel for device type 'cpu'")
    else:
        assert result["same"] is True
