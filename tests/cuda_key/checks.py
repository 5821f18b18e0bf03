"""One part of transcript.py in one mode: python checks.py MODE PART. Prints CHECK and FACTS lines of JSON."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import torch

MODE, PART = sys.argv[1:]
OPS = ("mm", "addmm", "bmm", "baddbmm")

if MODE != "stock":
    import torch_mi350


def check(ok, what, detail=""):
    print("CHECK\t" + json.dumps([bool(ok), what, str(detail)]), flush=True)


def ledger():
    return {op: calls for op, calls in torch_mi350.report().dict().items() if op in OPS}


def calls(kind):
    return sum(sum(op[kind].values()) for name, op in ledger().items() if name in OPS)


def make(*shape, dtype=torch.bfloat16, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-3, 4, shape, generator=generator).to(dtype).cuda()


# ---- inactive: what a process can see of us -------------------------------------------------------------


def state():
    facts = {"cuda initialized by import": torch.cuda.is_initialized()}
    facts["current accelerator"] = str(torch.accelerator.current_accelerator())
    facts["pin_memory"] = str(torch.ones(3).pin_memory().is_pinned())
    facts["default dtype and device"] = f"{torch.get_default_dtype()} {torch.get_default_device()}"
    a, q = make(64, 64), make(1, 2, 64, 64)
    work = {
        "mm": lambda: a @ a,
        "sdpa": lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q),
        "topk": lambda: torch.topk(a.float(), 4),
        "rms_norm": lambda: torch.nn.functional.rms_norm(a, (64,)),
    }
    for name, run in work.items():
        run()
        torch.cuda.synchronize()
        with torch.profiler.profile() as profile:
            run()
            torch.cuda.synchronize()
        on_gpu = torch.autograd.DeviceType.CUDA
        facts[f"kernels of {name}"] = sorted({e.name for e in profile.events() if e.device_type == on_gpu})
    if MODE == "inactive":
        status = torch_mi350.status()
        check(not status.active and status.dict()["installed"] == {}, "nothing is installed")
        check("no HIP runtime is mapped" in str(status), "status says why", status.dict()["why_inactive"])
    return facts


# ---- forced fallback ------------------------------------------------------------------------------------


def routing():
    status = torch_mi350.status()
    installed = status.dict()["installed"].get("CUDA", [])
    skipped = status.dict()["skipped"]
    check(len(installed) + len(skipped) == 18 and not skipped, "18 rows at key CUDA", skipped or "none skipped")
    check(not torch.cuda.is_initialized(), "import initialised no context")
    a, b, c = make(8, 8), make(2, 8, 8), make(8)
    d, e = make(8, 8), make(2, 8, 8)
    f32 = torch.float32
    run = {
        "mm": lambda: torch.mm(a, a),
        "mm.out": lambda: torch.mm(a, a, out=d),
        "mm.dtype": lambda: torch.mm(a, a, out_dtype=f32),
        "addmm": lambda: torch.addmm(c, a, a),
        "addmm.out": lambda: torch.addmm(c, a, a, out=d),
        "addmm_": lambda: d.addmm_(a, a),
        "addmm.dtype": lambda: torch.addmm(c.float(), a, a, out_dtype=f32),
        "bmm": lambda: torch.bmm(b, b),
        "bmm.out": lambda: torch.bmm(b, b, out=e),
        "bmm.dtype": lambda: torch.bmm(b, b, out_dtype=f32),
        "baddbmm": lambda: torch.baddbmm(c, b, b),
        "baddbmm.out": lambda: torch.baddbmm(c, b, b, out=e),
        "baddbmm_": lambda: e.baddbmm_(b, b),
        "baddbmm.dtype": lambda: torch.baddbmm(c.float(), b, b, out_dtype=f32),
        "mm.dtype_out": lambda: torch.mm(a, a, out_dtype=f32, out=d.float()),
        "addmm.dtype_out": lambda: torch.addmm(c.float(), a, a, out_dtype=f32, out=d.float()),
        "bmm.dtype_out": lambda: torch.bmm(b, b, out_dtype=f32, out=e.float()),
        "baddbmm.dtype_out": lambda: torch.baddbmm(c.float(), b, b, out_dtype=f32, out=e.float()),
    }
    wrong = []
    for name, call in run.items():
        torch_mi350.reset()
        call()
        op = name.split(".")[0].rstrip("_")
        if ledger() != {op: {"hits": {}, "misses": {"TORCH_MI350_FORCE=fallback": 1}}}:
            wrong.append((name, ledger()))
    check(not wrong, f"{len(run)} overloads: one ledger entry each, with the reason", wrong)
    with torch_mi350.disabled("mm"):
        torch_mi350.reset()
        torch.mm(a, a)
        check(ledger()["mm"]["misses"] == {"disabled": 1}, "a disabled op is counted as disabled")
    return {}


def same(ours, stock):
    if type(ours) is not type(stock):
        return False
    if isinstance(ours, torch.Tensor):
        if (ours.shape, ours.stride(), ours.dtype) != (stock.shape, stock.stride(), stock.dtype):
            return False
        return torch.equal(ours, stock) or torch.equal(torch.nan_to_num(ours), torch.nan_to_num(stock))
    return ours == stock


def outcome(call):
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def samples_of(op):
    from torch.testing._internal.common_methods_invocations import op_db

    info = next(o for o in op_db if o.name == op and not o.variant_test_name)
    for dtype in sorted(info.supported_dtypes("cuda"), key=str):
        for grad in {False, dtype.is_floating_point}:
            torch.manual_seed(350)
            for sample in info.sample_inputs("cuda", dtype, requires_grad=grad):
                yield info, dtype, grad, sample


def run_sample(info, grad, sample):
    inputs = [sample.input, *(t for t in sample.args if isinstance(t, torch.Tensor))]

    def call():
        result = info(sample.input, *sample.args, **sample.kwargs)
        if not grad or not result.requires_grad:
            return [result]
        wanted = [t for t in inputs if t.requires_grad]
        return [result.detach(), *torch.autograd.grad(result, wanted, torch.ones_like(result))]

    return outcome(call)


def opinfo():
    """This process, with our rows above stock, against one that never imports us: same seeds, same samples."""
    results = {}
    for op in OPS:
        torch_mi350.reset()
        results[op] = [run_sample(i, g, s) for i, _, g, s in samples_of(op)]
        check(calls("misses") > 0 and calls("hits") == 0, f"OpInfo {op}: ours is called and refuses")
    errors = error_outcomes()
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/stock.pt"
        command = [sys.executable, sys.argv[0], "stock", "opinfo_stock"]
        clean = {k: v for k, v in os.environ.items() if not k.startswith("TORCH_MI350_")}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=clean | {"STOCK_RESULTS": path})
        stock, stock_errors = torch.load(path, weights_only=False)
    for op in OPS:
        pairs = list(zip(results[op], stock[op], strict=True))
        bad = [
            i
            for i, (a, b) in enumerate(pairs)
            if (a != b if isinstance(a, str) or isinstance(b, str) else not all(map(same, a, b)))
        ]
        check(not bad, f"OpInfo {op}: {len(pairs)} samples equal stock: values, strides, gradients", bad[:5])
    differ = [(a, b) for a, b in zip(errors, stock_errors, strict=True) if a != b]
    check(not differ, f"{len(errors)} errors have stock's type and text", differ[:2])
    return {}


def error_outcomes():
    a, b, cpu = make(4, 5), make(2, 4, 5), torch.ones(5, 4, dtype=torch.bfloat16)
    x = torch.ones(5, 4, device="cuda")
    cases = [
        lambda: torch.mm(a, a),
        lambda: torch.mm(a, x),
        lambda: torch.mm(a, cpu),
        lambda: torch.mm(a, b),
        lambda: torch.mm(a, x.bfloat16(), out=torch.empty(3, 3, device="cuda")),
        lambda: torch.addmm(make(7), a, x.bfloat16()),
        lambda: torch.addmm(cpu, a, x.bfloat16()),
        lambda: torch.bmm(b, b),
        lambda: torch.bmm(b, a),
        lambda: torch.baddbmm(make(3), b, b),
    ]
    return [r if isinstance(r, str) else "no error" for r in map(outcome, cases)]


def opinfo_stock():
    results = {op: [run_sample(i, g, s) for i, _, g, s in samples_of(op)] for op in OPS}
    torch.save((results, error_outcomes()), os.environ["STOCK_RESULTS"])
    return {}


def frameworks():
    a, w = make(16, 32, dtype=torch.float32), make(8, 32, dtype=torch.float32, seed=1)
    bias = make(8, dtype=torch.float32)
    torch_mi350.reset()
    with torch.autocast("cuda", torch.bfloat16):
        y = torch.nn.functional.linear(a, w, bias)
    expected = torch.nn.functional.linear(a.cpu(), w.cpu(), bias.cpu())
    check(y.dtype == torch.bfloat16 and calls("misses") == 1, "autocast reaches us with bf16 operands", ledger())
    check(torch.allclose(y.float().cpu(), expected, rtol=1e-2, atol=0.5), "autocast gives the right values")

    layer = torch.nn.Linear(32, 8).cuda()
    eager = layer(a)
    torch_mi350.reset()
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True)(a)
    check(torch.allclose(compiled, eager, rtol=1e-5, atol=1e-5), "torch.compile, no graph break: same values")
    check(calls("misses") >= 1, "torch.compile reaches us through the extern kernels", ledger())
    x = a.clone().requires_grad_()
    torch.compile(layer, fullgraph=True)(x).sum().backward()
    check(torch.allclose(x.grad, layer.weight.sum(0).expand_as(x), atol=1e-5), "compiled backward")

    static = a.clone()
    with torch.no_grad():
        layer(static)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = layer(static)
        static.copy_(2 * a)
        graph.replay()
        check(torch.allclose(out, layer(2 * a), atol=1e-4), "CUDA graph capture and replay")
    batch = make(3, 4, 5, dtype=torch.float32)
    mapped = torch.vmap(torch.mm)(batch, batch.transpose(1, 2).contiguous())
    check(torch.equal(mapped, torch.bmm(batch, batch.transpose(1, 2))), "vmap")
    return {}


# ---- forced emulation -----------------------------------------------------------------------------------


def pinned():
    from torch_mi350.testing.pinned import use_pinned_allocator

    use_pinned_allocator()


def hits():
    pinned()
    check(torch_mi350.status().active, "status is active", torch_mi350.status().dict()["devices"])
    launches = 0
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        a, b, c = make(48, 64, dtype=dtype), make(64, 80, dtype=dtype, seed=1), make(80, dtype=dtype, seed=2)
        ba, bb = make(3, 48, 64, dtype=dtype), make(3, 64, 80, dtype=dtype, seed=1)
        d = torch.empty(48, 80, dtype=dtype, device="cuda")
        torch_mi350.reset()
        found = {
            "mm": torch.mm(a, b),
            "mm.out": torch.mm(a, b, out=d),
            "addmm": torch.addmm(c, a, b),
            "bmm": torch.bmm(ba, bb),
            "baddbmm": torch.baddbmm(c, ba, bb),
        }
        book = ledger()
        check(calls("hits") == 5 and calls("misses") == 0, f"{dtype}: 5 calls, 5 hits", book)
        exact, exact3, add = a.cpu().double() @ b.cpu().double(), ba.cpu().double() @ bb.cpu().double(), c.cpu()
        want = {"mm": exact, "mm.out": exact, "addmm": exact + add, "bmm": exact3, "baddbmm": exact3 + add}
        wrong = [k for k, v in want.items() if not torch.equal(found[k].cpu(), v.to(dtype))]
        check(not wrong, f"{dtype}: integer products are exact, rounded once", wrong)
        launches += torch_mi350.emulator_counters()["launches"]
    check(launches == 15, "the emulator ran them", f"{launches} launches")
    dtype_overloads()

    layer = torch.nn.Linear(64, 32).cuda().bfloat16()
    x = make(16, 64).requires_grad_()
    torch_mi350.reset()
    out = layer(x)
    out.sum().backward()
    book = ledger()
    check(book["addmm"]["hits"] and book["mm"]["hits"] and calls("misses") == 0, "Linear forward and backward hit", book)
    ones = torch.ones(16, 32, dtype=torch.double)
    w = layer.weight.detach().cpu().double()
    y = x.detach().cpu().double() @ w.T + layer.bias.detach().cpu().double()
    check(torch.allclose(out.detach().cpu().double(), y, rtol=1e-2, atol=1e-2), "forward is right")
    check(torch.allclose(x.grad.cpu().double(), ones @ w, rtol=1e-2, atol=1e-2), "input gradient is right")
    check(
        torch.allclose(layer.weight.grad.cpu().double(), ones.T @ x.detach().cpu().double(), rtol=1e-2, atol=1e-2),
        "weight gradient is right",
    )
    return {}


def dtype_overloads():
    f32 = torch.float32
    a, b, c = make(48, 64), make(64, 80, seed=1), make(80, dtype=f32, seed=2)
    ba, bb = make(3, 48, 64), make(3, 64, 80, seed=1)
    d, e = (torch.empty(*s, 48, 80, dtype=f32, device="cuda") for s in ((), (3,)))
    torch_mi350.reset()
    found = [
        torch.mm(a, b, out_dtype=f32),
        torch.mm(a, b, out_dtype=f32, out=d).clone(),
        torch.addmm(c, a, b, out_dtype=f32),
        torch.addmm(c, a, b, out_dtype=f32, out=d),
        torch.bmm(ba, bb, out_dtype=f32),
        torch.bmm(ba, bb, out_dtype=f32, out=e).clone(),
        torch.baddbmm(c, ba, bb, out_dtype=f32),
        torch.baddbmm(c, ba, bb, out_dtype=f32, out=e),
    ]
    exact, exact3, add = a.cpu().double() @ b.cpu().double(), ba.cpu().double() @ bb.cpu().double(), c.cpu()
    want = [exact, exact, exact + add, exact + add, exact3, exact3, exact3 + add, exact3 + add]
    wrong = [i for i, (f, w) in enumerate(zip(found, want, strict=True)) if not torch.equal(f.cpu(), w.to(f32))]
    check(calls("hits") == 8 and calls("misses") == 0, "8 dtype and dtype_out overloads, 8 hits", ledger())
    check(not wrong, "their float32 results are exact", wrong)


def capture():
    """A graph would hold nothing of a kernel that ran on the host: the call is left to stock."""
    pinned()
    a, b = make(32, 64, dtype=torch.float32), make(64, 32, dtype=torch.float32, seed=1)
    out = torch.zeros(32, 32, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side), torch_mi350.disabled("mm"):
        torch.mm(a, b, out=out)  # stock's workspace of this stream
    side.synchronize()
    torch_mi350.reset()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        graph.capture_begin(capture_error_mode="relaxed")
        torch.mm(a, b, out=out)
        graph.capture_end()
    misses = ledger()["mm"]["misses"]
    check(calls("hits") == 0 and any("graph capture" in reason for reason in misses), "capture is refused", misses)
    a.copy_(2 * a)
    torch.cuda.synchronize()
    graph.replay()
    torch.cuda.synchronize()
    check(torch.equal(out.cpu().double(), a.cpu().double() @ b.cpu().double()), "the captured graph is stock's, right")
    torch_mi350.reset()
    torch.mm(a, b, out=out)
    check(calls("hits") == 1, "the next call outside of capture is a hit", ledger())
    return {}


def slowly_filled(value):
    """A tensor whose elements arrive late: the GPU sleeps first on the current stream."""
    t = torch.zeros(32, 64, dtype=torch.bfloat16, device="cuda")
    torch.cuda.synchronize()
    torch.cuda._sleep(400_000_000)
    t.fill_(value)
    return t


def ordering():
    pinned()
    b = make(64, 32)
    ones = torch.ones(64, 32, dtype=torch.bfloat16, device="cuda")
    torch_mi350.reset()
    late = torch.mm(slowly_filled(2.0), ones)
    check((late == 128).all().item(), "the kernel waits for the current stream's work")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        late = torch.mm(slowly_filled(3.0), ones)
        after = late + 1
    side.synchronize()
    check((after == 193).all().item(), "side stream: ordered before and after")
    with torch.cuda.stream(side):
        filled = slowly_filled(1.0)
        event = side.record_event()
    torch.cuda.current_stream().wait_event(event)
    check((torch.mm(filled, ones) == 64).all().item(), "an event that the stream waits for is waited for")
    seen = []
    x = make(32, 64).requires_grad_()
    y = torch.mm(x, b)
    y.register_hook(lambda grad: seen.append(threading.get_ident()))
    before = calls("hits")
    y.backward(torch.ones_like(y))
    check(seen and seen[0] != threading.get_ident(), "backward runs on another thread")
    expected = torch.ones(32, 32, dtype=torch.double) @ b.cpu().double().T
    check(calls("hits") == before + 1, "its product is a hit", ledger())
    check(torch.equal(x.grad.cpu().double(), expected), "its values are right")
    check(calls("misses") == 0, "nothing was refused", ledger())
    count = torch.cuda.device_count()
    for i in range(count):
        with torch.cuda.device(0):
            t = torch.ones(16, 64, dtype=torch.bfloat16, device=f"cuda:{i}")
            check((torch.mm(t, t.t()) == 64).all().item() and torch.cuda.current_device() == 0, f"guard of cuda:{i}")
    return {}


def refusal():
    a = make(16, 64)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = torch.mm(a, a.t())
    misses = ledger()["mm"]["misses"]
    check(calls("hits") == 0 and any("use_pinned_allocator" in reason for reason in misses), "a miss", misses)
    check(any("use_pinned_allocator" in str(w.message) for w in caught), "one warning names the helper")
    check(torch.equal(out.cpu().double(), (a.cpu().double() @ a.cpu().double().t()).bfloat16().double()), "stock answered")
    from torch_mi350.testing.pinned import use_pinned_allocator

    text = outcome(use_pinned_allocator)
    check("before the first cuda tensor" in str(text), "the helper after the first tensor is a sentence", text)
    return {}


# ---- cost of a call -------------------------------------------------------------------------------------


def us_per_call(run, batch=500, rounds=120):
    """Best of many short batches, taken in turn: a shared host slows down for tenths of a second at a time."""
    best = dict.fromkeys(run, float("inf"))
    for _ in range(rounds):
        for name, call in run.items():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(batch):
                call()
            best[name] = min(best[name], (time.perf_counter() - begin) / batch * 1e6)
    return best


def speed():
    """No rows: torch allocates and launches nothing, so that the host's path is what is timed."""
    a, w, c = (torch.empty(*s, dtype=torch.bfloat16, device="cuda") for s in ((0, 8), (8, 8), (8,)))
    ba, bw = a[None], w[None]
    mm, addmm, bmm, baddbmm = torch.mm, torch.addmm, torch.bmm, torch.baddbmm
    out, bout = torch.mm(a, w), torch.bmm(ba, bw)
    return us_per_call(
        {
            "mm": lambda: mm(a, w, out=out),
            "addmm": lambda: addmm(c, a, w, out=out),
            "bmm": lambda: bmm(ba, bw, out=bout),
            "baddbmm": lambda: baddbmm(c, ba, bw, out=bout),
        }
    )


def speed_planned():
    if MODE == "emulate":
        pinned()
    a, w = (torch.empty(*s, dtype=torch.float64, device="cuda") for s in ((0, 8), (8, 8)))
    out, mm = torch.mm(a, w), torch.mm
    return us_per_call({"planned": lambda: mm(a, w, out=out)})


print("FACTS\t" + json.dumps(globals()[PART]()), flush=True)
