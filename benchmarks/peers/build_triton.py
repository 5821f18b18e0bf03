"""Compiles the kernels of triton_sources/ for gfx950 without a GPU; run it by ./build_triton.

    build_triton OUT [--version V] [--only GLOB] [--jobs N] [--asm] [--list]

Writes OUT/<name>.hsaco, OUT/<name>.json (the launch facts, see triton_object.py) and with --asm OUT/<name>.s and
.ttgir; a build of all kernels lists failures in OUT/failed.txt. A kernel that the release cannot compile is no failure of this command
unless nothing compiled at all.
"""
from __future__ import annotations

import argparse
import fnmatch
import json
import multiprocessing.connection
import os
import pathlib
import sys
import tempfile
import time

scratch = tempfile.TemporaryDirectory(prefix="triton_peers_")
os.environ["TRITON_CACHE_DIR"] = scratch.name
os.environ["TRITON_ALWAYS_COMPILE"] = "1"
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # the default, named to silence 3.9's warning

import triton  # noqa: E402  after its environment is set
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

import code_object_facts  # noqa: E402
from triton_sources import CASES  # noqa: E402

TARGET = GPUTarget("hip", "gfx950", 64)
SECONDS = 300  # for one kernel; the slowest takes 4 s on an idle core
HIDDEN_POINTERS = ("global_scratch", "profile_scratch")  # Triton's own trailing arguments


def source(case: dict) -> tuple[ASTSource, dict]:
    fn, signature, attributes = case["fn"], {}, {}
    for n, name in enumerate(fn.arg_names):
        if name in case["constants"]:
            signature[name] = "constexpr"
            continue
        type_ = case["signature"][name]
        signature[name] = type_.rstrip("!")
        if type_[0] == "*" or type_.endswith("!"):
            attributes[(n,)] = [["tt.divisibility", 16]]
            if type_[0] == "*" and case["buffers"]:
                attributes[(n,)].append(["tt.pointer_range", 32])
    return ASTSource(fn=fn, signature=signature, constexprs=dict(case["constants"]), attrs=attributes), signature


def kernarg_layout(arguments: list[dict], names: list[str], signature: dict) -> list[dict]:
    layout = []
    for n, argument in enumerate(arguments):
        entry = dict(offset=argument[".offset"], size=argument[".size"], kind=argument[".value_kind"])
        if n < len(names):
            entry |= dict(name=names[n], type=signature[names[n]])
        elif n - len(names) < len(HIDDEN_POINTERS):
            entry |= dict(name=HIDDEN_POINTERS[n - len(names)], hidden=True)
        else:
            entry |= dict(name=argument[".value_kind"], hidden=True)
        layout.append(entry)
    return layout


def sidecar(name: str, case: dict, compiled, signature: dict, seconds: float) -> dict:
    elf, facts = compiled.asm["hsaco"], compiled.metadata
    kernel = code_object_facts.metadata(elf)["amdhsa.kernels"][0]
    constants = {k: v if isinstance(v, (int, float, str, bool)) else str(v) for k, v in case["constants"].items()}
    names = [a for a in case["fn"].arg_names if signature[a] != "constexpr"]
    grid = case["grid"]
    for constant, value in constants.items():
        grid = grid.replace("{" + constant + "}", str(value))
    return dict(
        name=name, symbol=kernel[".name"], code_object=name + ".hsaco", triton=triton.__version__, arch="gfx950",
        doc=(case["fn"].fn.__doc__ or "").strip(), requires=case["requires"], note=case["note"], constexprs=constants,
        grid=grid, block=[64 * facts.num_warps, 1, 1], num_stages=case["stages"], pointer_range_32bit=case["buffers"],
        options=case["options"], shared_bytes=facts.shared, private_bytes=kernel[".private_segment_fixed_size"],
        kernarg_bytes=kernel[".kernarg_segment_size"], kernarg=kernarg_layout(kernel[".args"], names, signature),
        global_scratch_bytes=getattr(facts, "global_scratch_size", 0) or 0, vgprs=kernel[".vgpr_count"],
        agprs=kernel.get(".agpr_count", 0), sgprs=kernel[".sgpr_count"],
        multiples_of_16=[a for a, t in case["signature"].items() if t.endswith("!") or t[0] == "*"],
        start=code_object_facts.start_state(elf, kernel[".name"]), compile_seconds=round(seconds, 2), bytes=len(elf))


def build(name: str, out: pathlib.Path, asm: bool) -> str:
    """Compiles one kernel; returns '' or why not."""
    case, start = CASES[name], time.perf_counter()
    try:
        from_source, signature = source(case)
        options = dict(num_warps=case["warps"], num_stages=case["stages"], **case["options"])
        compiled = triton.compile(from_source, target=TARGET, options=options)
    except Exception as e:  # of any kind that the compiler raises; the next kernel may do
        return f"{type(e).__name__}: " + " | ".join(x.strip() for x in str(e).strip().splitlines()[-4:])[:400]
    facts = sidecar(name, case, compiled, signature, time.perf_counter() - start)
    (out / facts["code_object"]).write_bytes(compiled.asm["hsaco"])
    (out / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n")
    for suffix, stage in (("s", "amdgcn"), ("ttgir", "ttgir")) if asm else ():
        (out / f"{name}.{suffix}").write_text(compiled.asm[stage])
    return ""


def child(name: str, out: pathlib.Path, asm: bool, connection) -> None:
    connection.send(build(name, out, asm))


def build_all(names: list[str], out: pathlib.Path, asm: bool, jobs: int):
    """Yields (name, '' or why not). One forked process a kernel: aborts inside the compiler stay local."""
    context = multiprocessing.get_context("fork")
    waiting, running = list(names), []
    while waiting or running:
        while waiting and len(running) < jobs:
            receive, send = context.Pipe(False)
            process = context.Process(target=child, args=(waiting[0], out, asm, send))
            process.start()
            send.close()
            running.append((waiting.pop(0), process, receive, time.perf_counter()))
        multiprocessing.connection.wait([receive for _, _, receive, _ in running], timeout=1)
        for entry in list(running):
            name, process, receive, start = entry
            if receive.poll(0):
                try:
                    why = receive.recv()
                except EOFError:
                    process.join()
                    why = f"the compiler died, exit code {process.exitcode}"
            elif time.perf_counter() - start > SECONDS:
                process.kill()
                why = f"more than {SECONDS} s"
            else:
                continue
            process.join()
            running.remove(entry)
            yield name, why


def main() -> int:
    parser = argparse.ArgumentParser(prog="build_triton", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--only", default="*", metavar="GLOB")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--asm", action="store_true", help="also write assembly and Triton's GPU dialect")
    parser.add_argument("--list", action="store_true", help="print the kernels and stop")
    args = parser.parse_args()
    names = [n for n in CASES if fnmatch.fnmatch(n, args.only)]
    if args.list or args.out is None:
        print("\n".join(names))
        return 0 if args.list else 2
    args.out.mkdir(parents=True, exist_ok=True)
    start, failed = time.perf_counter(), []
    for name, why in build_all(names, args.out, args.asm, args.jobs):
        if why:
            failed.append(f"{name}: {why}")
        print(f"{name:40s} {'not compiled: ' + why if why else 'ok'}", flush=True)
    if args.only == "*":
        (args.out / "failed.txt").write_text("".join(line + "\n" for line in failed))
    print(f"triton {triton.__version__}: {len(names) - len(failed)} code objects, {len(failed)} not compiled, "
          f"{time.perf_counter() - start:.0f} s")
    return 1 if len(failed) == len(names) else 0


if __name__ == "__main__":
    sys.exit(main())
