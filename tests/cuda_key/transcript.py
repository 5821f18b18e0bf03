"""What the CUDA key does on a GPU that is not gfx950, checked and timed: python tests/cuda_key/transcript.py

Runs every check in a process of its own (the package, the allocator and the environment are per process) and
prints one line per check. Exits nonzero if one fails. Needs a CUDA build of torch, a GPU and the built package.
"""

import json
import os
import pathlib
import subprocess
import sys

import torch

CHECKS = pathlib.Path(__file__).with_name("checks.py")
# Environment of each mode; "stock" never imports the package.
MODES = {
    "stock": {},
    "inactive": {},
    "fallback": {"TORCH_MI350_FORCE": "fallback"},
    "emulate": {"TORCH_MI350_FORCE": "emulate"},
    "emulate_without_allocator": {"TORCH_MI350_FORCE": "emulate"},
}
WRONG = (
    ({"TORCH_MI350_FORCE": "maybe"}, "TORCH_MI350_FORCE must be fallback or emulate, got 'maybe'"),
    (
        {"TORCH_MI350_FORCE": "fallback", "TORCH_MI350_DISABLE": "mmm"},
        "no op is called 'mmm', known ops are mm, addmm, bmm, baddbmm",
    ),
)
MISS_LIMIT_US, DISABLED_LIMIT_US, IMPORT_LIMIT_MS = 0.5, 0.2, 150
INACTIVE_NOISE_US = 0.1  # two processes of stock torch differ by this much
REPEATS = 8  # processes of each kind, taken in turn; the best counts

failures = []


def say(ok, what, detail=""):
    print(f"{'PASS' if ok else 'FAIL'}  {what}{': ' if detail else ''}{detail}", flush=True)
    if not ok:
        failures.append(what)


def child(mode, part, extra=None):
    """Runs one part in one mode; returns its facts, having printed its checks."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("TORCH_MI350_")}
    env |= MODES[mode] | (extra or {})
    done = subprocess.run(
        [sys.executable, str(CHECKS), mode, part], capture_output=True, text=True, env=env, timeout=420
    )
    facts = None
    for line in done.stdout.splitlines():
        kind, _, rest = line.partition("\t")
        if kind == "CHECK":
            ok, what, detail = json.loads(rest)
            say(ok, f"[{mode}] {what}", detail)
        elif kind == "FACTS":
            facts = json.loads(rest)
    if done.returncode != 0 or facts is None:
        say(False, f"[{mode}] {part} ran to its end", f"status {done.returncode}\n{done.stderr[-3000:]}")
        return {}
    return facts


def check_same_when_inactive():
    stock, inactive = child("stock", "state"), child("inactive", "state")
    for key in stock:
        say(stock[key] == inactive.get(key), f"[inactive] {key} is stock's", str(inactive.get(key))[:160])


def check_wrong_variables():
    for env, sentence in WRONG:
        done = subprocess.run(
            [sys.executable, "-c", "import torch_mi350"],
            capture_output=True,
            text=True,
            env={**os.environ, **env},
        )
        last = (done.stderr.strip().splitlines() or [""])[-1]
        say(done.returncode != 0 and sentence in last, f"[wrong] {env} is a sentence", last)


def check_speed():
    timings = {"stock": [], "inactive": [], "miss": [], "disabled": []}
    runs = (
        ("stock", "stock", None),
        ("inactive", "inactive", None),
        ("miss", "fallback", None),
        ("disabled", "fallback", {"TORCH_MI350_DISABLE": "all"}),
    )
    for _ in range(REPEATS):
        for name, mode, extra in runs:
            timings[name].append(child(mode, "speed", extra))
    if not all(all(runs) for runs in timings.values()):
        return
    best = {
        name: {op: min(run[op] for run in runs if run) for op in ("mm", "addmm", "bmm", "baddbmm")}
        for name, runs in timings.items()
    }
    for op in ("mm", "addmm", "bmm", "baddbmm"):
        over = {name: best[name][op] - best["stock"][op] for name in best}
        print(
            f"      {op}: stock {best['stock'][op]:.3f} us per call; above stock: inactive "
            f"{over['inactive']:+.3f}, miss {over['miss']:+.3f}, disabled {over['disabled']:+.3f}"
        )
        say(over["inactive"] < INACTIVE_NOISE_US, f"[speed] {op} inactive adds nothing but noise")
        say(over["miss"] < MISS_LIMIT_US, f"[speed] {op} miss adds less than {MISS_LIMIT_US} us")
        say(over["disabled"] < DISABLED_LIMIT_US, f"[speed] {op} disabled adds less than {DISABLED_LIMIT_US} us")


def check_planned_miss():
    """A miss whose arguments are looked at: forced emulation, a dtype that is not served, no rows."""
    stock, miss = float("inf"), float("inf")
    for _ in range(REPEATS):
        stock = min(stock, child("stock", "speed_planned")["planned"])
        miss = min(miss, child("emulate", "speed_planned")["planned"])
    print(f"      mm of float64: stock {stock:.3f} us, examined and refused {miss:.3f} us: {miss - stock:+.3f}")
    say(miss - stock < MISS_LIMIT_US, f"[speed] an examined miss adds less than {MISS_LIMIT_US} us")


def check_import_time():
    code = (
        "import time; a = time.perf_counter(); import torch; b = time.perf_counter()\n"
        "import {}; c = time.perf_counter(); print(c - b)"
    )
    best = min(
        float(
            subprocess.run(
                [sys.executable, "-c", code.format("torch_mi350")], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(REPEATS)
    )
    say(best * 1e3 < IMPORT_LIMIT_MS, f"[import] under {IMPORT_LIMIT_MS} ms", f"{best * 1e3:.1f} ms")


def main():
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name(0)}, Python {sys.version.split()[0]}")
    check_same_when_inactive()
    for mode, part in (
        ("fallback", "routing"),
        ("fallback", "opinfo"),
        ("fallback", "frameworks"),
        ("emulate", "hits"),
        ("emulate", "ordering"),
        ("emulate", "capture"),
        ("emulate_without_allocator", "refusal"),
    ):
        child(mode, part)
    check_wrong_variables()
    check_import_time()
    check_speed()
    check_planned_miss()
    print(f"{len(failures)} failed" if failures else "all passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
