"""The device itself: registration, torch.cdna and torch.accelerator, streams, events, memory, fork."""
import os
import subprocess
import sys
import textwrap
import threading

import pytest
import torch

import torch_mi350.cdna as cdna

cdna.register()
DEV = torch.device("cdna:0")


def run(code, **env):
    """A fresh Python with the package; its stdout."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env={**os.environ, **env}, text=True,
                          capture_output=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_registering_again_changes_nothing():
    cdna.register()
    assert torch.cdna is cdna and torch._C._get_privateuse1_backend_name() == "cdna"


def test_a_foreign_backend_is_named_and_left_alone():
    out = run("""
        import os
        os.environ["TORCH_MI350_DEVICE"] = "0"
        import torch
        torch.utils.rename_privateuse1_backend("other")
        import torch_mi350.cdna as cdna
        try:
            cdna.register()
        except RuntimeError as e:
            print(e)
    """)
    assert "'other' has taken it" in out


def test_accelerator_api():
    assert torch.accelerator.is_available() and torch.accelerator.current_accelerator().type == "cdna"
    assert torch.accelerator.device_count() == torch.cdna.device_count() == int(os.environ.get("TORCH_MI350_EMU_DEVICES", 1))
    assert torch.accelerator.current_device_index() == 0
    torch.accelerator.set_device_index(0)
    torch.accelerator.synchronize()
    stream = torch.accelerator.current_stream()
    assert stream.device == DEV and stream.query()
    assert torch.bfloat16 in torch.accelerator.get_device_capability()["supported_dtypes"]


def test_module_describes_the_device():
    assert torch.cdna.is_available() and torch.cdna.is_initialized() and torch.cdna.current_device() == 0
    assert torch.cdna.get_device_capability() == (9, 5) and "MI350X" in torch.cdna.get_device_name("cdna")
    assert torch.cdna.get_device_properties(0).gcnArchName.startswith("gfx950")
    assert torch.cdna.is_bf16_supported() and torch.get_device_module("cdna") is cdna
    torch.cdna.init()
    torch.cdna.synchronize()


def test_wrong_device_index_is_an_error_that_names_it():
    for call in (lambda: torch.empty(1, device="cdna:77"), lambda: torch.cdna.set_device(77),
                 lambda: torch.cdna.get_device_properties(77), lambda: torch.Generator(device="cdna:77")):
        with pytest.raises(RuntimeError, match="77"):
            call()
    with pytest.raises(ValueError, match="Expected a cdna device, but got: cpu"):
        torch.cdna.set_device("cpu")
    assert torch.ones(1, device=DEV).item() == 1


def test_several_devices():
    out = run("""
        import torch, torch_mi350.cdna as cdna
        cdna.register()
        assert torch.cdna.device_count() == 3
        x = torch.ones(2, device="cdna:2")
        with torch.cdna.device(1):
            y = torch.ones(2, device="cdna")
            assert torch.cdna.current_device() == 1 and y.device.index == 1
        with torch.cdna.device_of(x):
            assert torch.cdna.current_device() == 2
        assert torch.cdna.current_device() == 0
        with torch.device("cdna:2"):
            assert torch.zeros(1).device.index == 2
        assert torch.equal(x.to("cdna:1"), y) and (x.sin()).device.index == 2 and torch.nonzero(x).device.index == 2
        try:
            x + y
        except RuntimeError as e:
            assert "found at least two devices, cdna:2 and cdna:1!" in str(e), e
        else:
            raise AssertionError("mixed devices were accepted")
        torch.manual_seed(0); a = torch.randn(3, device="cdna:1"); b = torch.randn(3, device="cdna:2")
        assert torch.equal(a.cpu(), b.cpu())
        s = torch.cdna.Stream(device=2)
        with torch.cdna.stream(s):
            assert torch.cdna.current_stream(2) == s and torch.cdna.current_device() == 2
        assert torch.cdna.memory_allocated(2) > 0 and torch.cdna.memory_allocated(0) == 0
        print("done")
    """, TORCH_MI350_EMU_DEVICES="3")
    assert out.strip() == "done"


def test_streams():
    default, side = torch.cdna.default_stream(), torch.cdna.Stream()
    assert torch.cdna.current_stream() == default != side and side.device == DEV
    with torch.cdna.stream(side) as entered:
        assert torch.cdna.current_stream() == side and entered is None
        x = torch.ones(3, device=DEV) + 1
    assert torch.cdna.current_stream() == default
    with side:
        assert torch.accelerator.current_stream() == side
    default.wait_stream(side)
    side.synchronize()
    x.record_stream(side)
    assert side.query() and x.sum().item() == 6
    assert len({torch.cdna.Stream().native_handle for _ in range(3)}) == 3
    assert isinstance(side, torch.cdna.Stream) and not isinstance(torch.cdna.Event(), torch.cdna.Stream)
    with pytest.raises(RuntimeError, match="does not exist"):
        torch.cdna.set_stream(torch.Stream(stream_id=10**6, device_index=0, device_type=side.device_type))


def test_streams_are_per_thread():
    seen = []
    with torch.cdna.stream(torch.cdna.Stream()):
        thread = threading.Thread(target=lambda: seen.append(torch.cdna.current_stream()))
        thread.start()
        thread.join()
    assert seen == [torch.cdna.default_stream()]


def test_events_time_and_order():
    start, stop = torch.cdna.Event(enable_timing=True), torch.cdna.Event(enable_timing=True)
    with pytest.raises(ValueError, match="Both events must be recorded"):
        start.elapsed_time(stop)
    start.record()
    torch.randn(200, 200, device=DEV).matmul(torch.randn(200, 200, device=DEV))
    stop.record()
    stop.synchronize()
    assert stop.query() and start.elapsed_time(stop) > 0
    side = torch.cdna.Stream()
    side.wait_event(stop)
    untimed = side.record_event()
    untimed.wait()
    assert untimed.query()
    with pytest.raises(RuntimeError, match="cannot be shared between processes"):
        torch.cdna.Event(interprocess=True)


def test_memory_statistics_follow_tensors():
    torch.cdna.empty_cache()
    before = torch.cdna.memory_allocated()
    torch.cdna.reset_peak_memory_stats()
    x = torch.empty(1 << 20, dtype=torch.float32, device=DEV)
    assert torch.cdna.memory_allocated() - before == 4 << 20
    y = x + 1
    del y
    assert torch.cdna.memory_allocated() - before == 4 << 20
    assert torch.cdna.max_memory_allocated() - before >= 8 << 20
    assert torch.cdna.memory_reserved() >= torch.cdna.memory_allocated()
    del x
    assert torch.cdna.memory_allocated() == before
    held = torch.cdna.memory_reserved()
    torch.cdna.empty_cache()
    assert torch.cdna.memory_reserved() <= held - (8 << 20)
    assert torch.cdna.memory_stats()["allocated_bytes.all.current"] == before
    assert str(before) in torch.cdna.memory_summary()
    free, total = torch.cdna.mem_get_info()
    assert 0 < free <= total


def test_results_of_cpu_kernels_live_in_device_memory():
    before = torch.cdna.memory_allocated()
    x = torch.nn.functional.embedding(torch.zeros(256, dtype=torch.long, device=DEV), torch.ones(4, 1024, device=DEV))
    assert torch.cdna.memory_allocated() - before >= 256 * 1024 * 4
    del x
    assert torch.cdna.memory_allocated() == before


def test_many_small_tensors_and_reuse():
    xs = [torch.full((1,), float(i), device=DEV) for i in range(30000)]
    assert xs[29999].item() == 29999 and sum(x.item() for x in xs[::3000]) == sum(range(0, 30000, 3000))
    del xs
    torch.cdna.empty_cache()
    assert torch.ones(3, device=DEV).sum().item() == 3


def test_cpu_tensors_made_beside_the_device_are_ordinary():
    x = torch.ones(1000)
    before = torch.cdna.memory_allocated()
    y = x * 2
    assert torch.cdna.memory_allocated() == before and not y.is_pinned()
    conv = torch.nn.Conv2d(3, 4, 3)
    a, b = conv(torch.ones(1, 3, 8, 8)), conv.to(DEV)(torch.ones(1, 3, 8, 8, device=DEV))
    torch.testing.assert_close(a, b.cpu())


def test_pinned_memory():
    x = torch.randn(10).pin_memory()
    assert x.is_pinned() and x[3:].is_pinned() and not torch.randn(3).is_pinned()
    assert torch.equal(x.to(DEV, non_blocking=True).cpu(), x)
    assert torch.empty(4, pin_memory=True).is_pinned()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(12.0)), batch_size=4, pin_memory=True)
    batches = [b for (b,) in loader]
    assert all(b.is_pinned() for b in batches) and torch.cat(batches).tolist() == list(range(12))


def test_threads_use_the_device_at_once():
    results = [None] * 6

    def work(i):
        x = torch.full((64, 64), float(i), device=DEV)
        for _ in range(20):
            x = (x + 1) - 1
        results[i] = x.sum().item()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert results == [i * 4096.0 for i in range(6)]


def test_fork_after_import_then_use():
    out = run("""
        import os, torch, torch_mi350.cdna as cdna
        cdna.register()
        torch.manual_seed(0)
        pid = os.fork()
        x = torch.ones(4, device="cdna").sum().item()
        if pid == 0:
            os._exit(0 if x == 4 and not torch.cdna._is_in_bad_fork() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0 and x == 4
        print("done")
    """)
    assert out.strip() == "done"


def test_fork_after_use_is_refused_with_a_sentence():
    out = run("""
        import os, torch, torch_mi350.cdna as cdna
        cdna.register()
        torch.ones(4, device="cdna")
        pid = os.fork()
        if pid == 0:
            torch.manual_seed(1)
            try:
                torch.ones(1 << 20, device="cdna")
            except RuntimeError as e:
                assert torch.cdna._is_in_bad_fork() and not torch.cdna.is_initialized()
                os._exit(0 if "Cannot re-initialize cdna in forked subprocess" in str(e) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        print("done")
    """)
    assert out.strip() == "done"


def test_import_starts_no_thread_and_uses_no_device():
    out = run("""
        import os, torch
        before = len(os.listdir("/proc/self/task"))
        import torch_mi350.cdna as cdna
        cdna.register()
        from torch_mi350 import _C
        torch.cdna.is_available(), torch.cdna.device_count()
        print(len(os.listdir("/proc/self/task")) - before, _C.cdna_used())
    """)
    assert out.split() == ["0", "False"]


def test_dataloader_workers_fork_beside_a_used_device():
    torch.ones(1, device=DEV)
    data = torch.utils.data.TensorDataset(torch.arange(20.0))
    loader = torch.utils.data.DataLoader(data, batch_size=5, num_workers=2, pin_memory=True)
    assert torch.cat([b.to(DEV) for (b,) in loader]).sum().item() == 190


def test_profiler_sees_device_memory():
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        torch.empty(1 << 18, device=DEV)
    events = [e for e in prof.events() if e.name == "[memory]" or "empty" in e.name]
    assert any(getattr(e, "device_memory_usage", 0) >= 1 << 20 for e in events)
