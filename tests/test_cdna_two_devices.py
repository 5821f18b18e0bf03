"""Two emulated devices under torch: tensors, guards, copies, streams, events, and the errors for mixing them."""
import os
import subprocess
import sys
import textwrap

import torch_mi350  # noqa: F401  fails here, with its sentence, rather than in every script

START = """
import time

import torch, torch_mi350
from pytest import raises
a0 = torch.arange(12.0).reshape(3, 4).to("cdna:0")
a1 = a0.to("cdna:1")
"""


def run(script, **environment):
    done = subprocess.run([sys.executable, "-c", START + textwrap.dedent(script)], capture_output=True, text=True,
                          timeout=300, env={**os.environ, "TORCH_MI350_EMU_DEVICES": "2", **environment})
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return done.stdout


def test_tensors_live_where_they_were_made_and_results_stay_there():
    run("""
        assert torch.cdna.device_count() == 2
        assert a1.device == torch.device("cdna:1") and a0.device == torch.device("cdna:0")
        for result in [a1 + 1, a1.sum(), a1 @ a1.t(), torch.empty_like(a1), a1.cpu().to(a1.device), a1[1:], a1.new_ones(2),
                       torch.cat([a1, a1]), torch.nn.functional.softmax(a1, -1), torch.ones(3, device=a1.device)]:
            assert result.device == a1.device, result.device
        assert torch.equal((a1 * 2).cpu(), (a0 * 2).cpu())
        assert torch.cdna.current_device() == 0, "an op on cdna:1 leaves the current device alone"
        assert torch.zeros(2, device="cdna").device.index == 0
    """)


def test_routed_kernels_run_on_the_device_of_their_operands():
    run("""
        torch.manual_seed(0)
        x, w = torch.randn(96, 64).bfloat16(), torch.randn(64, 80).bfloat16()
        results = []
        for device in ["cdna:1", "cdna:0", "cdna:1"]:
            torch_mi350.reset()
            y = x.to(device) @ w.to(device)
            assert y.device == torch.device(device)
            assert "mi350_gemm_bf16" in str(torch_mi350.report()), torch_mi350.report()
            results.append(y.cpu())
        assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])
        torch.testing.assert_close(results[0].float(), (x.float() @ w.float()), atol=0.25, rtol=0.02)
        with torch.cdna.device(1):  # another current device than the operands'
            assert torch.equal((x.to("cdna:0") @ w.to("cdna:0")).cpu(), results[0])
        # On both: torch starts a backward thread per device, and a process that ends before one of them has begun aborts.
        for device in ["cdna:1", "cdna:0"]:
            layer = torch.nn.Linear(64, 80, dtype=torch.bfloat16).to(device)
            layer(x.to(device).requires_grad_()).sum().backward()
            assert layer.weight.grad.device == torch.device(device)
        # A backward thread that still lets go of its graph while the interpreter ends is ended by CPython inside
        # torch's noexcept code, which aborts the process (torch's own race, on any device).
        time.sleep(1)
    """)


def test_guards_set_and_restore_the_current_device():
    run("""
        import threading
        with torch.cdna.device(1):
            assert torch.cdna.current_device() == 1 and torch.ones(1, device="cdna").device.index == 1
            with torch.cdna.device("cdna:0"):
                assert torch.accelerator.current_device_index() == 0
            with torch.cdna.device_of(a0):
                assert torch.cdna.current_device() == 0
            assert torch.cdna.current_device() == 1
            seen = []
            thread = threading.Thread(target=lambda: seen.append(torch.cdna.current_device()))
            thread.start(); thread.join()
            assert seen == [0], "every thread begins on device 0"
        assert torch.cdna.current_device() == 0
        torch.cdna.set_device(1)
        assert torch.ones(1, device="cdna").device.index == 1
        with raises(RuntimeError, match=r"device index must be in \\[0, 2\\), got 2"): torch.cdna.set_device(2)
        with raises(RuntimeError, match=r"\\[0, 2\\), got 5"): torch.ones(1, device="cdna:5")
    """)


def test_copies_between_devices_keep_values_strides_and_gradients():
    run("""
        for source, target in [(a0, "cdna:1"), (a1, "cdna:0")]:
            moved = source.t().to(target)
            assert moved.device == torch.device(target) and torch.equal(moved.cpu(), source.t().cpu())
        a1.copy_(a0 + 5)
        assert torch.equal(a1.cpu(), a0.cpu() + 5)
        a1[:, ::2].copy_(a0[:, ::2], non_blocking=True)
        assert torch.equal(a1.cpu()[:, ::2], a0.cpu()[:, ::2])
        leaf = a0.clone().requires_grad_()
        (leaf.to("cdna:1") * 3).sum().backward()
        assert leaf.grad.device.index == 0 and torch.equal(leaf.grad.cpu(), torch.full((3, 4), 3.0))
        assert a0.to("cdna:0") is a0
        pinned = a1.cpu().pin_memory()
        assert torch.equal(pinned.to("cdna:1").cpu(), pinned)
        import io
        file = io.BytesIO()
        torch.save(a1, file); file.seek(0)
        assert torch.load(file).device.index == 1
        file.seek(0)
        assert torch.load(file, map_location="cdna:0").device.index == 0
    """)


def test_mixed_devices_raise_what_torch_raises_elsewhere():
    run("""
        same = "Expected all tensors to be on the same device, but (found at least two devices|got)"
        for op in [lambda: a0 + a1, lambda: a0 @ a1.t(), lambda: torch.cat([a0, a1]), lambda: torch.where(a0 > 0, a1, a0),
                   lambda: torch.nn.functional.linear(a0, a1), lambda: a0.add_(a1), lambda: torch.addmm(a0[0], a0, a1.t()),
                   lambda: torch.mm(a0.bfloat16(), a1.bfloat16().t()),
                   lambda: torch.mm(a0, a0.t(), out=torch.empty(3, 3, device="cdna:1"))]:
            with raises(RuntimeError, match=same) as error: op()
            assert "cdna:0" in str(error.value) and "cdna:1" in str(error.value), error.value
        assert torch.equal((a1 + torch.tensor(2.0)).cpu(), a1.cpu() + 2), "0-dim CPU tensors stand for numbers"
        with raises(RuntimeError, match=same): a0 + torch.tensor(2.0, device="cdna:1")[None]
    """)


def test_streams_and_events_belong_to_their_device():
    run("""
        s0, s1 = torch.cdna.Stream(device=0), torch.cdna.Stream(device="cdna:1")
        assert s0.device.index == 0 and s1.device.index == 1
        with torch.cdna.stream(s1):
            assert torch.cdna.current_stream().stream_id == s1.stream_id and torch.cdna.current_device() == 1
            assert torch.cdna.current_stream(0).stream_id == 0
            y = torch.ones(4, device="cdna") * 2
            x = torch.randn(64, 64, device="cdna").bfloat16()
            x @ x  # a routed kernel on that stream
        assert y.device.index == 1 and torch.cdna.current_device() == 0
        begin, end = torch.cdna.Event(enable_timing=True, device=1), torch.cdna.Event(enable_timing=True, device=1)
        begin.record(s1); end.record(s1); end.synchronize()
        assert begin.elapsed_time(end) >= 0
        with raises(RuntimeError, match="event belongs to device 1, the stream to device 0|device 1.*device 0|match"):
            begin.record(s0)
        other = torch.cdna.Event(enable_timing=True, device=0)
        other.record(s0)
        with raises((RuntimeError, ValueError)): begin.elapsed_time(other)
        s0.wait_event(end); s1.wait_stream(s0)
        torch.cdna.synchronize(1); torch.cdna.synchronize("cdna:0")
    """)


def test_memory_and_random_state_are_kept_per_device():
    run("""
        torch.cdna.empty_cache()
        before = [torch.cdna.memory_allocated(d) for d in (0, 1)]
        big = torch.empty(1 << 20, device="cdna:1")
        after = [torch.cdna.memory_allocated(d) for d in (0, 1)]
        assert after[0] == before[0] and after[1] - before[1] >= 4 << 20
        torch.cdna.set_device(1)
        free, total = torch.cdna.mem_get_info(1)
        assert 0 < free < total
        torch.cdna.manual_seed_all(3)
        r0, r1 = torch.rand(4, device="cdna:0"), torch.rand(4, device="cdna:1")
        assert torch.equal(r0.cpu(), r1.cpu()), "each device has its own generator"
        torch.cdna.manual_seed_all(3)
        assert torch.equal(torch.rand(4, device="cdna:1").cpu(), r0.cpu())
        assert torch.cdna.can_device_access_peer(0, 1) and not torch.cdna.can_device_access_peer(1, 1)
        p = torch.cdna.get_device_properties(1)
        assert p.multi_processor_count == 256
    """)


def test_the_machine_of_the_environment_reaches_torch():
    run("""
        assert torch.cdna.get_device_properties(1).multi_processor_count == 32
        x = torch.randn(300, 200, device="cdna:1").bfloat16()
        torch.testing.assert_close((x @ x.t()).cpu().float(), x.cpu().float() @ x.cpu().float().t(), atol=0.5, rtol=0.02)
    """, TORCH_MI350_EMU_XCDS="1", TORCH_MI350_EMU_CUS="32", TORCH_MI350_EMU_ORDER="reverse")


def test_a_bad_variable_is_named():
    done = subprocess.run([sys.executable, "-c", "import torch, torch_mi350; torch.ones(1, device='cdna')"],
                          capture_output=True, text=True, timeout=300,
                          env={**os.environ, "TORCH_MI350_EMU_DEVICES": "two"})
    assert done.returncode != 0
    assert "TORCH_MI350_EMU_DEVICES must be a whole number from 0 to 64, got 'two'" in done.stderr, done.stderr
