"""Runs a folder of other people's gfx950 code objects in the emulator and compares each with a reference.

    benchmarks/peers/verify FOLDER FAMILY [--only GLOB ...] [--check] [--json FILE] [--timeout S] [--list]

Columns: object (and case), instructions and distinct mnemonics of its text as `mi350-emu dis` decodes it, max error
of the worst element and the limit of that element, pass or fail, advisories of check mode (with --check), seconds.
Findings that check mode calls errors are listed below their row; they do not decide, the result does. Exit status 1: a
case failed, or the folder has no object of the family. Every case runs in its own process: a crash or an endless
kernel costs that case only.

examples:
    benchmarks/peers/verify build/peers/triton-3.6.0 triton
    benchmarks/peers/verify build/peers/triton-3.6.0 triton-gemm --only '*fp8*' --check
"""
from __future__ import annotations

import argparse
import fnmatch
import json
import math
import multiprocessing
import os
import pathlib
import subprocess
import sys
import time

try:
    import torch
except ModuleNotFoundError:
    sys.exit(f"verify: {sys.executable} has no torch: run ./test once, or name an interpreter with PYTHON=")

import emulator
import families

PADDING = ("s_nop", "s_code_end")


def static_counts(path: pathlib.Path) -> tuple[int, int]:
    """Instructions and distinct mnemonics of a code object's text, without the padding after it; (0, 0) if it does
    not decode."""
    out = subprocess.run([emulator.command_path(), "dis", path, "--raw"], capture_output=True, text=True)
    if out.returncode:
        return 0, 0
    mnemonics = [line.split()[0] for line in out.stdout.splitlines() if line.strip()]
    while mnemonics and mnemonics[-1] in PADDING:
        mnemonics.pop()
    return len(mnemonics), len(set(mnemonics))


def run_here(case: families.Case, check: bool, connection) -> None:
    """In the child: the case's row without its static columns."""
    row = {"error": math.inf, "limit": 0.0, "status": "fail", "detail": "", "errors": 0, "advisories": 0}
    try:
        torch.manual_seed(0)
        machine = emulator.Emulator()
        machine.set_mode("check" if check else "fast")
        result = case.run(machine)
        row.update(error=result.error, limit=result.limit, detail=result.detail, status="pass" if result.passed else "fail")
        found = machine.findings() if check else []
        row["errors"] = sum(f.get("severity") == "error" for f in found)
        row["advisories"] = len(found) - row["errors"]
        row["executed"] = machine.counters()["instructions"]
        row["findings"] = found[:20]
    except emulator.EmulatorError as e:
        row["detail"] = str(e)
    except Exception as e:  # a broken case is a failed row, not the end of the table
        row["detail"] = f"{type(e).__name__}: {e}"
    connection.send(row)


def run_case(case: families.Case, check: bool, timeout: float) -> dict:
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(False)
    start = time.perf_counter()
    child = context.Process(target=run_here, args=(case, check, send))
    child.start()
    send.close()
    row = {"error": math.inf, "limit": 0.0, "status": "fail", "errors": 0, "advisories": 0}
    if not receive.poll(timeout):
        child.kill()
        row["detail"] = f"no result after {timeout:.0f} s"
    else:
        try:
            row = receive.recv()
        except EOFError:
            child.join()
            row["detail"] = f"the process died, exit code {child.exitcode}"
    child.join()
    row["seconds"] = round(time.perf_counter() - start, 2)
    return row


def number(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else str(value)


def show(row: dict, width: int) -> str:
    limits = f"{number(row['error'])} / {number(row['limit'])}"
    text = (f"{row['case']:<{width}} {row['instructions']:>8} {row['mnemonics']:>5}  {limits:>22}  {row['status']}"
            f"  {row['advisories']:>4}  {row['seconds']:>6.1f}")
    if row["status"] != "pass":
        text += "".join("\n    " + line for line in row["detail"].splitlines())
    for found in row.get("findings", []):
        if found.get("severity") == "error":
            text += f"\n    {found.get('checker')} at {found.get('pc', 0):#x}, {found.get('disassembly')}: {found.get('message')}"
    return text


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="verify", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("family", choices=sorted(families.FAMILIES))
    parser.add_argument("--only", nargs="+", default=["*"], metavar="GLOB", help="cases whose name or object matches one")
    parser.add_argument("--check", action="store_true", help="run with the emulator's checkers")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the rows")
    parser.add_argument("--timeout", type=float, default=600, metavar="S", help="seconds for one case")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    return parser.parse_args()


def main() -> int:
    args = parse()
    os.environ.setdefault("TORCH_MI350_EMU_FINDINGS", "report")
    os.environ.setdefault("TORCH_MI350_EMU_STRICT", "0")
    torch.set_num_threads(1)  # the children are forked: no threads of this process may hold locks
    if not args.folder.is_dir():
        print(f"verify: {args.folder} is not a folder", file=sys.stderr)
        return 2
    cases = [c for c in families.load(args.family).cases(args.folder)
             if any(fnmatch.fnmatch(text, glob) for text in (c.name, c.object_path.name) for glob in args.only)]
    if args.list:
        print("\n".join(c.name for c in cases))
    if args.list or not cases:
        print(f"{len(cases)} cases of {args.family} in {args.folder}", file=sys.stderr)
        return 0 if cases else 1
    width = max(len(c.name) for c in cases)
    print(f"{'object':<{width}} {'instr.':>8} {'mnem.':>5}  {'max error / limit':>22}  {'':4}  {'adv.':>4}  {'s':>6}")
    rows, counts = [], {}
    for case in cases:
        if case.object_path not in counts:
            counts[case.object_path] = static_counts(case.object_path)
        instructions, mnemonics = counts[case.object_path]
        row = {"case": case.name, "object": case.object_path.name, "instructions": instructions, "mnemonics": mnemonics}
        rows.append(row | run_case(case, args.check, args.timeout))
        print(show(rows[-1], width), flush=True)
    failed = [row for row in rows if row["status"] != "pass"]
    print(f"{len(rows)} cases, {len(counts)} objects, {sum(n for n, _ in counts.values())} instructions: "
          f"{len(rows) - len(failed)} pass, {len(failed)} fail, {sum(r['errors'] for r in rows)} error findings, "
          f"{sum(r['advisories'] for r in rows)} advisories, {sum(r['seconds'] for r in rows):.0f} s")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
