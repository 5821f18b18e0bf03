"""The speed and memory bars of the emulated device, measured side by side in one run.

    python benchmarks/bench.py [--out FILE] [--demo] [--only NAME ...]

Every row is a ratio or a difference against stock torch on the same cores in the same process, so that the host's
speed cancels. A row is measured only after its result was checked. Exit status 1: a bar was missed.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORES = 2
os.environ.setdefault("TORCH_MI350_EMU_THREADS", str(CORES))

import torch  # noqa: E402  after the thread count is set

import torch_mi350  # noqa: E402

import emulator_speed  # noqa: E402

DEVICE = "cdna"
BF16 = torch.bfloat16


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def interleaved(functions, rounds):
    """Median seconds of each function, taken in turn so that a slow spell of the host hits all of them."""
    for function in functions:
        function()
    samples = [[seconds(function) for function in functions] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*samples)]


def host_cost():
    """A routed mm whose launch does nothing, above stock's mm of the same shape."""
    a = torch.ones(1, 1, dtype=BF16, device=DEVICE)
    host = torch.ones(1, 1)
    assert (a @ a).item() == 1.0
    calls = 2000

    def loop(x):
        mm = torch.mm
        for _ in range(calls):
            mm(x, x)

    torch_mi350._C._set_noop_launch(True)
    try:
        with torch.no_grad():
            ours, stock = interleaved([lambda: loop(a), lambda: loop(host)], 25)
    finally:
        torch_mi350._C._set_noop_launch(False)
    ours, stock = ours / calls * 1e6, stock / calls * 1e6
    return {"value": ours - stock, "detail": f"{ours:.2f} us routed, {stock:.2f} us stock fp32 mm, both 1x1"}


LAUNCH_MEMORY = """
import torch, torch_mi350
from torch_mi350.testing import compare
def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(name))) / 1024
a = torch.randn(2048, 2048).to(torch.bfloat16).to("cdna")
b = torch.randn(2048, 512).to(torch.bfloat16).to("cdna")
out = torch.zeros(2048, 512, dtype=torch.bfloat16, device="cdna")
open("/proc/self/clear_refs", "w").write("5")  # VmHWM starts again from here
before = status("VmRSS")
torch.mm(a, b, out=out)
peak = status("VmHWM") - before
compare.assert_gemm(out, a, b)
print(peak)
"""


def launch_memory():
    """Peak resident memory of a process's first launch, its tensors not counted."""
    done = subprocess.run([sys.executable, "-c", LAUNCH_MEMORY], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    return {"value": float(done.stdout.split()[-1]), "detail": "mm 2048x512x2048 in a fresh process, module load included"}


def demo():
    """./demo, once for its set-up and once timed."""
    command = [str(ROOT / "demo")]
    subprocess.run(command, check=True, capture_output=True)
    elapsed = seconds(lambda: subprocess.run(command, check=True, capture_output=True))
    return {"value": elapsed, "detail": "second run"}


def of_emulator(row):
    return lambda: row(interleaved, CORES)


# name -> function, unit, bar, whether more is better
ROWS = {
    "gemm_rate": (of_emulator(emulator_speed.gemm_rate), "of stock fp32 mm", 1 / 5, True),
    "valu_rate": (of_emulator(emulator_speed.valu_rate), "million wave-instructions/s", 60, True),
    "check_gemm": (of_emulator(emulator_speed.check_gemm), "x fast mode", 6, False),
    "check_valu": (of_emulator(emulator_speed.check_valu), "x fast mode", 6, False),
    "host_cost": (host_cost, "us above stock", 3.0, False),
    "launch_memory": (launch_memory, "MB beside the tensors", 64.0, False),
    "demo": (demo, "s", 60.0, False),
}


def commit():
    done = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "none"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, help="also write the rows as JSON to this file")
    parser.add_argument("--demo", action="store_true", help="also time ./demo")
    parser.add_argument("--only", nargs="+", choices=ROWS, help="only these rows")
    args = parser.parse_args()

    chosen = args.only or [name for name in ROWS if name != "demo" or args.demo]
    print(f"commit {commit()}   torch {torch.__version__}   {platform.machine()}, {os.cpu_count()} cores, load "
          f"{os.getloadavg()[0]:.1f}\n")
    rows, missed = [], 0
    print(f"{'row':<14} {'measured':>9}  {'bar':>8}  {'':<4}  unit, detail")
    for name in chosen:
        function, unit, bar, more_is_better = ROWS[name]
        result = function()
        passed = result["value"] >= bar if more_is_better else result["value"] <= bar
        missed += not passed
        sign = ">=" if more_is_better else "<="
        print(f"{name:<14} {result['value']:>9.3f}  {sign} {bar:<5.3g}  {'pass' if passed else 'FAIL'}  "
              f"{unit}: {result['detail']}", flush=True)
        rows.append({"commit": commit(), "device": DEVICE, "row": name, "unit": unit, "bar": bar, "passed": passed, **result})
    if args.out:
        args.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
