"""TORCH_MI350_VERIFY and replay: right kernels never warn, a wrong one is caught, written down and explained."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import warnings

import pytest
import torch
from test_demo import mfma_file_offset

import torch_mi350
from torch_mi350 import _C, _verify, replay
from torch_mi350.testing import cases, compare

PACKAGE = pathlib.Path(_C.package_dir())
KERNEL = "mi350_gemm_bf16_nn_16x64x128_s3"  # serves mm of 64x64x64
OBJECT = "gemm_bf16_16x64x128.hsaco"


@pytest.fixture
def verify(tmp_path, monkeypatch):
    """install(text), and the outcomes since then; nothing is verified afterwards."""
    monkeypatch.setenv("TORCH_MI350_REPRO_DIR", str(tmp_path))
    monkeypatch.setattr(_verify, "_settled", set())
    monkeypatch.setattr(_verify, "_counts", dict.fromkeys(_verify._counts, 0))
    yield _verify.install
    _verify.clear()


@pytest.fixture
def all_bad(monkeypatch):
    """Every result counts as wrong, so that right kernels write repro files."""
    monkeypatch.setattr(
        _verify.Judge,
        "differs",
        lambda self, ours, stock: _verify.Bad((0,) * ours.dim(), 0.0, 1, "", "forced"),
    )


def matrix(rows, cols, dtype=torch.bfloat16, seed=0):
    return torch.randn(rows, cols, generator=torch.Generator().manual_seed(seed)).to(dtype).to("cdna")


def outcome(checked, mismatched=0, failed=0):
    return {"checked": checked, "mismatched": mismatched, "failed": failed}


def only_repro(folder):
    (path,) = folder.glob("mi350-repro-*.pt")
    return path


def run_python(*args, path=None, cwd=None, **env):
    env = {**os.environ, **env}
    if path is not None:
        env["PYTHONPATH"] = str(path)
    return subprocess.run(
        [sys.executable, *map(str, args)], capture_output=True, text=True, env=env, cwd=cwd, timeout=300
    )


# ---- the variable -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("softmax", "no op is called 'softmax', known ops are all, mm, addmm"),
        ("mm,", "no op is called ''"),
        ("mm:0", "every_n must be a number from 1 to 4294967295, got '0'"),
        ("mm:-1", "got '-1'"),
        ("mm:", "got ''"),
        ("mm:two", "got 'two'"),
        ("mm:4294967296", "got '4294967296'"),
        ("all,mm", "mm is named twice"),
    ],
)
def test_a_bad_variable_is_a_sentence(text, sentence):
    with pytest.raises(ValueError, match="TORCH_MI350_VERIFY is a list of op") as error:
        _verify.parse(text, _C.ops())
    assert sentence in str(error.value)


def test_the_variable_is_read_at_import():
    code = (
        "import torch, torch_mi350; a = torch.ones(64, 64).bfloat16().to('cdna'); [torch.mm(a, a) for _ in range(5)];"
        "from torch_mi350 import _verify; print(_verify.counts())"
    )
    done = run_python("-c", code, TORCH_MI350_VERIFY="mm:2, addmm")
    assert done.stdout.strip() == str(outcome(2)), done.stderr
    done = run_python("-c", code, TORCH_MI350_VERIFY="mm:0")
    assert done.returncode != 0 and done.stderr.strip().splitlines()[-1].startswith(
        "ValueError: torch_mi350: TORCH_MI350_VERIFY"
    )


def test_parse_reads_lists_and_all():
    assert _verify.parse("mm:3, bmm", _C.ops()) == {"mm": 3, "bmm": 1}
    assert set(_verify.parse("all:7", _C.ops()).items()) == {(op, 7) for op in _C.ops()}


def test_every_routed_op_has_a_policy():
    assert set(_C.ops()) == set(_verify._OPERANDS)


# ---- right kernels ----------------------------------------------------------------------------------------


def test_a_right_kernel_never_warns_over_the_gemm_grid(verify, recwarn):
    torch_mi350.reset()
    verify("all")
    for number, case in enumerate(c for c in cases.gemm_grid(1, seed=4) if not c.empty):
        a, b = (operand.tensor for operand in cases.operands(case, device="cdna", seed=number))
        c = cases.additive("row", case.m, case.n, case.dtype, device="cdna").tensor
        torch.mm(a, b)
        torch.addmm(c, a, b, alpha=0.7, beta=1.3)
        torch.baddbmm(c, a[None], b[None])
        torch.bmm(a[None], b[None])
    hits = torch_mi350.report().hits
    assert hits >= 36, torch_mi350.report()
    assert _verify.counts() == outcome(hits)
    assert not [w for w in recwarn if "torch_mi350" in str(w.message)]


def test_nan_inf_and_overflow_are_no_mismatch(verify):
    verify("mm")
    for value in (float("nan"), float("inf"), -float("inf"), 3e38):
        a, b = matrix(64, 64), matrix(64, 64, seed=1)
        a[3, 5] = value
        torch.mm(a, b)
    assert _verify.counts() == outcome(4)


def test_products_without_terms_and_empty_results_are_no_mismatch(verify):
    verify("mm,addmm")
    torch.mm(matrix(16, 0), matrix(0, 16))
    torch.addmm(matrix(16, 16), matrix(16, 0), matrix(0, 16))
    torch.mm(matrix(0, 16), matrix(16, 16))
    counts = _verify.counts()
    assert counts == outcome(counts["checked"])


def test_every_n_counts_the_hits_of_its_op_alone(verify):
    verify("mm:3,addmm:2")
    a, b = matrix(64, 64), matrix(64, 64, seed=1)
    for done in range(1, 11):
        torch.mm(a, b)
        torch.bmm(a[None], b[None])
        assert _verify.counts() == outcome(done // 3)
    torch.addmm(b, a, b)
    assert _verify.counts() == outcome(3)
    torch.addmm(b, a, b)
    assert _verify.counts() == outcome(4)


def test_off_verifies_nothing_and_misses_are_not_counted(verify):
    verify("mm")
    torch.mm(matrix(8, 8, torch.float64), matrix(8, 8, torch.float64))
    _verify.clear()
    torch.mm(matrix(64, 64), matrix(64, 64))
    assert _verify.counts() == outcome(0)


def test_results_and_ledger_are_the_same_with_and_without(verify):
    a, b, c = matrix(64, 48), matrix(48, 33, seed=1), matrix(64, 33, seed=2)

    def hits():
        torch_mi350.reset()
        results = [
            torch.mm(a, b),
            torch.addmm(c, a, b),
            c.clone().addmm_(a, b, beta=0.5),
            torch.mm(a, b, out=torch.empty_like(c)),
        ]
        return results, {op: one for op, one in torch_mi350.report().dict().items() if op != "cpu"}

    plain, plain_ledger = hits()
    verify("all")
    checked, ledger = hits()
    assert _verify.counts() == outcome(4) and ledger == plain_ledger
    for x, y in zip(plain, checked):
        compare.assert_bits_equal(x, y)


def test_a_schema_without_another_kernel_is_judged_by_the_policy_alone(verify):
    verify("mm")
    torch.mm(matrix(64, 64), matrix(64, 64), out_dtype=torch.float32)
    assert _verify.counts() == outcome(1)


def test_backward_threads_verify_too(verify, monkeypatch):
    threads = set()
    real = _verify._compare
    monkeypatch.setattr(_verify, "_compare", lambda *args: threads.add(threading.get_ident()) or real(*args))
    layer = torch.nn.Linear(64, 48).bfloat16().to("cdna")
    x = matrix(32, 64).requires_grad_()
    verify("all")
    layer(x).sum().backward()
    assert _verify.counts() == outcome(3)
    assert len(threads) == 2 and x.grad is not None


def test_a_verification_verifies_nothing_itself(verify, monkeypatch):
    a = matrix(64, 64)
    monkeypatch.setattr(_verify, "_compare", lambda *args: (torch.mm(a, a), None)[1])
    verify("mm")
    torch.mm(a, a)
    assert _verify.counts() == outcome(1)


@contextlib.contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize(
    "state", ["autocast", "inference_mode", "default_device", "default_dtype", "no_grad"]
)
def test_the_state_of_the_caller_does_not_leak_in(verify, state):
    context = {
        "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
        "inference_mode": torch.inference_mode,
        "default_device": lambda: torch.device("cdna"),
        "default_dtype": lambda: default_dtype(torch.bfloat16),
        "no_grad": torch.no_grad,
    }[state]
    a, b = matrix(64, 64, torch.float32), matrix(64, 64, torch.float32, seed=1)
    verify("mm,addmm")
    with context():
        torch.mm(a, b)
        torch.addmm(b, a, b)
    assert _verify.counts() == outcome(2)


# ---- trouble inside ---------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("action", ["default", "error"])
def test_a_failing_verification_does_not_reach_the_caller(verify, monkeypatch, action):
    def fail(*args):
        raise MemoryError("no memory for the reference")

    a, b = matrix(64, 64), matrix(64, 64, seed=1)
    expected = torch.mm(a, b)
    monkeypatch.setattr(_verify, "_compare", fail)
    verify("mm")
    with warnings.catch_warnings(record=action == "default") as caught:
        warnings.simplefilter(action)
        for _ in range(3):
            compare.assert_bits_equal(torch.mm(a, b), expected)
    if action == "default":
        assert [str(w.message) for w in caught] == [
            "torch_mi350: TORCH_MI350_VERIFY could not check mm bf16 64x64x64 nn: MemoryError: no memory for the reference"
        ]
    assert _verify.counts() == outcome(0, failed=1)


def test_a_folder_that_cannot_be_written_is_said(verify, monkeypatch, all_bad, tmp_path):
    monkeypatch.setenv("TORCH_MI350_REPRO_DIR", str(tmp_path / "absent"))
    verify("mm")
    with pytest.warns(UserWarning, match="The repro file could not be written: .*absent"):
        torch.mm(matrix(64, 64), matrix(64, 64))


# ---- repro files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", cases.FORMS)
@pytest.mark.parametrize("letter", "nt")
def test_saved_operands_keep_values_strides_and_alignment(form, letter):
    t = cases.operand(33, 20, letter, torch.bfloat16, form=form, device="cdna").tensor
    spec = _verify.encode(t, t)
    back = replay.decode(spec, "cdna")
    assert spec["storage_offset"] == t.storage_offset()
    assert back.stride() == t.stride() and back.data_ptr() % 256 == t.data_ptr() % 256
    compare.assert_bits_equal(back, t)


def test_a_view_with_far_strides_is_saved_without_what_lies_between():
    t = torch.arange(4.0).as_strided((2, 2), (1, 1))
    far = torch.empty(1 << 20).as_strided((2, 2), (1 << 19, 1)).copy_(t)
    spec = _verify.encode(far, far)
    assert spec["values"].untyped_storage().nbytes() == 16
    back = replay.decode(spec, "cpu")
    assert back.stride() == far.stride() and torch.equal(back, far)


def in_place(c, a, b):
    return c.addmm_(a, b, beta=0.5, alpha=2)


def out_is_new(c, a, b):
    return torch.addmm(c, a, b, beta=0.5, alpha=2, out=torch.full_like(c, 7.0))


def out_is_self(c, a, b):
    return torch.addmm(c, a, b, beta=0.5, alpha=2, out=c)


@pytest.mark.parametrize("form", [in_place, out_is_new, out_is_self])
def test_written_operands_are_saved_as_before_the_call(verify, all_bad, tmp_path, form):
    a, b = matrix(64, 48), matrix(48, 64, seed=1)
    wide = matrix(64, 130, seed=2)
    c = wide[:, 2:66]
    before = c.cpu().clone()
    verify("addmm")
    with pytest.warns(UserWarning, match="forced"):
        result = form(c, a, b)
    repro = replay.load(only_repro(tmp_path))
    named = replay.arguments(repro, "cdna")
    compare.assert_bits_equal(named["self"], before, "self")
    assert named["self"].stride() == (130, 1) and repro["arguments"][0]["tensor"]["storage_offset"] == 2
    compare.assert_bits_equal(repro["ours"], result, "ours")
    compare.assert_gemm(repro["stock"], a, b, before, beta=0.5, alpha=2)
    if form is out_is_self:
        assert named["out"] is named["self"]
    compare.assert_bits_equal(replay._call(repro, named), result, "the call again")


def test_a_repro_says_what_ran(verify, all_bad, tmp_path):
    verify("mm")
    with pytest.warns(UserWarning) as caught:
        for _ in range(2):
            torch.mm(matrix(64, 64), matrix(64, 64))
    path = only_repro(tmp_path)
    (message,) = {str(w.message) for w in caught}
    assert (
        f"mm bf16 64x64x64 nn by {KERNEL} is forced: first bad element (0, 0): ours" in message
        and str(path) in message
    )
    repro = replay.load(path)
    assert (repro["op"], repro["kernel"], repro["device"]) == ("mm", KERNEL, "cdna:0")
    facts = repro["versions"]
    assert facts["object"] == OBJECT and facts["torch"] == torch.__version__
    assert facts["object_sha256"] == _verify.object_hash(facts["object"]) and "clang" in facts["compiler"]
    assert repro["launch"]["grid"] == [4, 1, 1] and repro["launch"]["block"] == 256


# ---- judging ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", cases.DTYPES)
def test_the_bound_is_that_of_the_policy(dtype):
    a, b = torch.randn(7, 100).to(dtype), torch.randn(100, 5).to(dtype)
    judge = _verify.Judge("mm", {"self": a, "mat2": b}, torch.float32)
    right = judge.expected.exact.float()
    for factor, bad in ((0.9, False), (1.1, True)):
        moved = right.clone()
        moved[3, 2] = (judge.expected.exact + factor * judge.bound)[3, 2]
        found = judge.outside(moved)
        # Below the bound the policy's other rule, on the rms error of a block, may still speak.
        assert bad is (found is not None and "first bad element (3, 2)" in found.text), (factor, found)
        assert found is None or (found.at == (3, 2) and found.elements == bad)


# ---- replay -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def good_repro(tmp_path_factory):
    """A repro file of a right kernel."""
    folder = tmp_path_factory.mktemp("repro")
    code = """
import torch, torch_mi350
from torch_mi350 import _verify
_verify.Judge.differs = lambda self, ours, stock: _verify.Bad((0, 0), 0.0, 1, "forced")
_verify.install("mm")
a, b = torch.randn(64, 64).bfloat16().to("cdna"), torch.randn(64, 64).bfloat16().to("cdna")
torch.mm(a, b)
"""
    done = run_python("-c", code, cwd=folder)
    assert done.returncode == 0, done.stderr
    return only_repro(folder)


def changed(path, tmp_path, **changes):
    repro = torch.load(path, weights_only=True)
    repro.update(changes)
    torch.save(repro, tmp_path / "changed.pt")
    return tmp_path / "changed.pt"


def replay_file(path, *args, package=None):
    return run_python("-m", "torch_mi350.replay", *args, path, path=package)


def test_replay_of_a_right_result_says_tolerance(good_repro):
    done = run_python(
        "-m", "torch_mi350.replay", good_repro, TORCH_MI350_DEVICE="0", TORCH_MI350_DISABLE="all"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verdict: tolerance" in done.stdout and "differ in 0 of 4096 elements" in done.stdout
    assert f"mm bf16 64x64x64 nn -> {KERNEL}" in done.stdout


def test_replay_of_a_wrong_result_of_the_same_machine_code_says_hardware(good_repro, tmp_path):
    ours = torch.load(good_repro, weights_only=True)["ours"]
    ours[17, 3] += 4
    done = replay_file(changed(good_repro, tmp_path, ours=ours, device="cuda:0", board="AMD Instinct MI350X"))
    assert done.returncode == 4, done.stdout + done.stderr
    assert (
        "verdict: hardware\n  AMD Instinct MI350X did not compute" in done.stdout and "(17, 3)" in done.stdout
    )


def damaged_files(path, tmp_path):
    whole = torch.load(path, weights_only=True)
    content = path.read_bytes()
    truncated, flipped, text = tmp_path / "truncated.pt", tmp_path / "flipped.pt", tmp_path / "text.pt"
    truncated.write_bytes(content[: len(content) // 2])
    flipped.write_bytes(content[:100] + b"\xff" * 200 + content[300:])
    text.write_text("no repro\n")
    yield truncated, "is damaged or no file of TORCH_MI350_VERIFY"
    yield flipped, "is damaged or no file of TORCH_MI350_VERIFY"
    yield text, "is damaged or no file of TORCH_MI350_VERIFY"
    yield tmp_path / "absent.pt", "no such file"
    torch.save({"weights": torch.ones(2)}, tmp_path / "weights.pt")
    yield tmp_path / "weights.pt", "is no file of TORCH_MI350_VERIFY"
    versions = {**whole["versions"], "torch_mi350": "99.0"}
    for changes, sentence in (
        ({"format": 2}, "has format 2, this torch_mi350 reads format 1"),
        ({"versions": versions}, "was written by torch_mi350 99.0"),
        ({"ours": None}, "ours missing or of another type"),
        ({"op": "conv"}, "records the op 'conv'"),
        ({"name": "aten::no_such"}, "records aten::no_such"),
        ({"arguments": whole["arguments"][:1]}, "the arguments of aten::mm must be self, mat2"),
    ):
        yield changed(path, tmp_path, **changes), sentence


def test_an_unusable_file_is_a_sentence(good_repro, tmp_path, capsys):
    for path, sentence in damaged_files(good_repro, tmp_path):
        assert replay.main([str(path)]) == 2, path
        err = capsys.readouterr().err
        assert err.startswith("replay: ") and sentence in err and err.count("\n") == 1, err


@pytest.mark.parametrize(
    "changes, sentence",
    [
        (
            {"kernel": "mi350_gemm_bf16_nn_1x1x1_s1"},
            "this torch_mi350 has no kernel mi350_gemm_bf16_nn_1x1x1_s1 for mm",
        ),
        (
            {"kernel": "mi350_gemm_f16_nn_64x64x64_s3"},
            "mi350_gemm_f16_nn_64x64x64_s3 does not serve mm bf16 64x64x64 nn here: pinned",
        ),
        ({"ours": torch.ones(3, 3)}, "the recorded result has shape (3, 3), its inputs give (64, 64)"),
    ],
)
def test_a_call_that_cannot_be_repeated_is_a_sentence(good_repro, tmp_path, changes, sentence):
    done = replay_file(changed(good_repro, tmp_path, **changes))
    assert done.returncode == 2 and sentence in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_a_tensor_that_does_not_fit_its_strides_is_a_sentence(good_repro, tmp_path):
    entries = torch.load(good_repro, weights_only=True)["arguments"]
    entries[1]["tensor"]["strides"] = [640, 1]
    done = replay_file(changed(good_repro, tmp_path, arguments=entries))
    assert done.returncode == 2 and "the recorded tensor mat2 cannot be made: " in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1


# ---- the seeded fault -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broken_package(tmp_path_factory):
    """A copy of the package with one bit of the first MFMA of KERNEL flipped."""
    folder = tmp_path_factory.mktemp("broken")
    shutil.copytree(PACKAGE, folder / "torch_mi350", ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "torch_mi350" / "code_objects" / OBJECT
    offset, _ = mfma_file_offset(path, KERNEL)
    image = bytearray(path.read_bytes())
    image[offset + 4] ^= 0x04  # bit 34 of the MFMA: it reads a from another register
    path.write_bytes(image)
    return folder


def test_a_flipped_bit_is_caught_by_verify_and_explained_by_replay(broken_package, tmp_path):
    code = """
import torch, torch_mi350
a, b = torch.randn(64, 512).bfloat16().to("cdna"), torch.randn(512, 64).bfloat16().to("cdna")
for _ in range(3):
    torch.mm(a, b)
"""
    done = run_python("-c", code, path=broken_package, cwd=tmp_path, TORCH_MI350_VERIFY="mm")
    assert done.returncode == 0, done.stderr
    assert (
        done.stderr.count(
            f"UserWarning: torch_mi350: mm bf16 64x64x512 nn by {KERNEL} is outside the numerics policy: first bad"
        )
        == 1
    ), done.stderr
    repro = only_repro(tmp_path)
    assert str(repro.name) in done.stderr

    same = replay_file(repro, package=broken_package)
    assert same.returncode == 3, same.stdout + same.stderr
    assert "verdict: kernel\n  the recorded code object gives a wrong result in the emulator" in same.stdout

    good = replay_file(repro)
    assert good.returncode == 5, good.stdout + good.stderr
    assert "verdict: another code object" in good.stdout and "runs another code object (sha256" in good.stdout
