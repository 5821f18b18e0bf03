"""torch.profiler on `cdna`: kernel symbols with device time under the aten ops that launched them."""
import json
import threading

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, schedule

import torch_mi350

pytestmark = pytest.mark.skipif(
    not torch_mi350._C.has_kineto_registry, reason=f"torch {torch.__version__} takes no profiler for the device"
)
DEVICE = "cdna"
KERNEL = "mi350_gemm_"


@pytest.fixture(scope="module")
def step():
    layer = torch.nn.Linear(64, 48, dtype=torch.bfloat16).to(DEVICE)
    x = torch.randn(32, 64, dtype=torch.bfloat16).to(DEVICE).requires_grad_()

    def run():
        layer(x).sum().backward()

    run()
    return run


@pytest.fixture(scope="module")
def profiled(step, tmp_path_factory):
    with profile() as prof:
        step()
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    prof.export_chrome_trace(str(path))
    return prof, json.loads(path.read_text())


def kernel_rows(prof):
    return [row for row in prof.key_averages() if row.key.startswith(KERNEL)]


def events(trace, category):
    return [event for event in trace["traceEvents"] if event.get("cat") == category]


def test_supported_activities_include_the_device():
    assert ProfilerActivity.PrivateUse1 in torch.profiler.supported_activities()


def test_table_has_kernel_symbols_with_device_time(profiled):
    prof, _ = profiled
    rows = kernel_rows(prof)
    assert rows and all(row.self_device_time_total > 0 for row in rows)
    assert sum(row.count for row in rows) == 3  # addmm, and two mm of the backward
    assert KERNEL in prof.key_averages().table(sort_by="self_device_time_total")


def test_device_time_belongs_to_the_aten_ops(profiled):
    prof, _ = profiled
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["aten::addmm"].count == 1 and rows["aten::mm"].count == 2
    total = sum(row.self_device_time_total for row in kernel_rows(prof))
    under_ops = rows["aten::addmm"].self_device_time_total + rows["aten::mm"].self_device_time_total
    assert under_ops == pytest.approx(total)
    assert rows["aten::linear"].device_time_total >= rows["aten::addmm"].self_device_time_total > 0


def test_trace_links_every_kernel_to_its_aten_op(profiled):
    _, trace = profiled
    ops = {event["args"]["External id"]: event for event in events(trace, "cpu_op")}
    kernels = events(trace, "kernel")
    assert [ops[kernel["args"]["External id"]]["name"] for kernel in kernels] == ["aten::addmm", "aten::mm", "aten::mm"]
    for kernel in kernels:
        assert kernel["name"].startswith(KERNEL) and kernel["dur"] > 0
        assert len(kernel["args"]["grid"]) == 3 and kernel["args"]["block"][0] % 64 == 0
        assert kernel["args"]["time source"] == "host time of the emulator"


def test_trace_draws_an_arrow_from_inside_the_aten_op_to_the_kernel(profiled):
    _, trace = profiled
    ops = {event["args"]["External id"]: event for event in events(trace, "cpu_op")}
    launches = {event["args"]["correlation"]: event for event in events(trace, "privateuse1_runtime")}
    arrows = {(event["ph"], event["id"]): event for event in events(trace, "ac2g")}
    kernels = events(trace, "kernel")
    assert kernels and len(arrows) == 2 * len(kernels)
    for kernel in kernels:
        flow = kernel["args"]["correlation"]
        start, finish, launch = arrows["s", flow], arrows["f", flow], launches[flow]
        assert (finish["pid"], finish["tid"], finish["ts"]) == (kernel["pid"], kernel["tid"], kernel["ts"])
        assert (start["pid"], start["tid"], start["ts"]) == (launch["pid"], launch["tid"], launch["ts"])
        op = ops[kernel["args"]["External id"]]
        assert (launch["pid"], launch["tid"]) == (op["pid"], op["tid"])
        slack_us = 50  # the ops' clock is converted from the time stamp counter
        assert op["ts"] - slack_us <= launch["ts"]
        assert launch["ts"] + launch["dur"] <= op["ts"] + op["dur"] + slack_us


def test_kernels_of_another_thread_keep_their_ops(step):
    def work():
        with torch.profiler.record_function("worker"):
            step()

    with profile() as prof:
        inner = threading.Thread(target=step)
        inner.start()
        inner.join()
        work()
    # Threads other than the profiler's record no ops of their own; what they launch is still recorded.
    assert sum(row.count for row in kernel_rows(prof)) == 6
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["worker"].device_time_total > 0 and rows["aten::mm"].self_device_time_total > 0


def test_schedule_reports_only_its_active_steps(step):
    counts = []

    def ready(prof):
        counts.append(sum(row.count for row in kernel_rows(prof)))

    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=ready) as prof:
        for _ in range(9):
            step()
            prof.step()
    assert counts == [6, 6]


def test_cpu_activities_alone_record_no_kernel(step):
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        step()
    assert not kernel_rows(prof)


def test_device_activities_alone_record_kernels_without_ops(step):
    with profile(activities=[ProfilerActivity.PrivateUse1]) as prof:
        step()
    assert sum(row.count for row in kernel_rows(prof)) == 3
    assert not [row for row in prof.key_averages() if row.key.startswith("aten::")]


def test_nothing_is_left_behind_by_a_session_that_raised(step):
    with pytest.raises(ValueError), profile():
        step()
        raise ValueError
    with profile() as prof:
        step()
    assert sum(row.count for row in kernel_rows(prof)) == 3
