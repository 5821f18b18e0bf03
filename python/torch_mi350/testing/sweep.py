"""All of torch's op tables on cdna against the CPU, and the page that lists what cdna refuses.

  python -m torch_mi350.testing.sweep                              prints the page
  python -m torch_mi350.testing.sweep --write docs/ops_on_cdna.md  writes it
  python -m torch_mi350.testing.sweep --only add nn.functional.relu --jobs 1

Ops run in worker processes, one op at a time, with a time limit: an op that ends its process is a line of the page.
"""
from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import queue
import select
import subprocess
import sys
import tempfile
import threading
import time

COMMAND = "python -m torch_mi350.testing.sweep --write docs/ops_on_cdna.md"
SECONDS_PER_OP = 120
START_SECONDS = 120

# (text in the message, reason), first match wins.
REASONS = (
    ("dense strided tensors only", "layout: cdna holds dense strided tensors only"),
    ("no CPU kernel", "torch has no CPU kernel for it"),
    ("two devices", "tensors of two devices"),
    ("the process ended", "crash"),
    ("no answer within", "timeout"),
)


# ---- the worker -------------------------------------------------------------------------------------------

def serve():
    """Names come in one a line, results go out one a line; what ops print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import torch

    from .sweep_op import ops, sweep_op

    torch.set_num_threads(1)
    print(json.dumps(list(ops())), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(sweep_op(line.strip())), file=answers, flush=True)


class Worker:
    def __init__(self):
        self.stderr = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([sys.executable, "-m", "torch_mi350.testing.sweep", "--serve"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr, text=True,
                                        env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.names = self._answer(START_SECONDS)

    def _answer(self, seconds):
        """The next line, or why there is none. A worker writes whole lines, so one readable byte means a line."""
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            self.close()
            raise RuntimeError(f"no answer within {seconds} s")
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            self.stderr.seek(0)
            last = (self.stderr.read().strip().splitlines() or ["nothing on stderr"])[-1]
            raise RuntimeError(f"the process ended with {code}: {last[:200]}")
        return json.loads(line)

    def ask(self, name):
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # _answer tells why
        return self._answer(SECONDS_PER_OP)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.stderr.close()


def _crashed(name, why):
    fault = {"verdict": "error", "form": "process", "text": str(why), "dtypes": []}
    return {"op": name, "counts": {"error": 1}, "same_texts": 0, "routed": False, "faults": [fault]}


def _work(names, results, failures):
    worker = None
    while True:
        try:
            name = names.get_nowait()
        except queue.Empty:
            break
        try:
            worker = worker or Worker()
        except RuntimeError as e:
            failures.append(e)
            return
        try:
            results[name] = worker.ask(name)
        except RuntimeError as e:
            results[name], worker = _crashed(name, e), None
    if worker is not None:
        worker.close()


def sweep(only=(), jobs=None):
    """{op: result of sweep_op} in the order of the names."""
    first = Worker()
    known = first.names
    first.close()
    unknown = sorted(set(only) - set(known))
    if unknown:
        raise ValueError(f"sweep: no op {', '.join(unknown)} among the {len(known)} of op_db and the foreach lists")
    names = queue.Queue()
    for name in sorted(only or known):
        names.put(name)
    results, failures = {}, []
    threads = [threading.Thread(target=_work, args=(names, results, failures)) for _ in range(jobs or os.cpu_count())]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failures:
        raise RuntimeError(f"sweep: a worker did not start: {failures[0]}")
    return dict(sorted(results.items()))


# ---- the page ---------------------------------------------------------------------------------------------

def reason(text):
    for part, name in REASONS:
        if part in text:
            return name
    return text.partition(":")[2].strip() or text


def faults(result, verdict):
    return [fault for fault in result["faults"] if fault["verdict"] == verdict]


def refused_rows(results):
    """One line of the page per op and distinct reason: what errors on cdna and not on the CPU."""
    rows = []
    for name, result in results.items():
        merged = collections.defaultdict(lambda: (set(), set()))
        for fault in faults(result, "error"):
            forms, dtypes = merged[reason(fault["text"])]
            forms.add(fault["form"])
            dtypes.update(fault["dtypes"])
        for why, (forms, dtypes) in sorted(merged.items()):
            rows.append(f"| `{name}` | {', '.join(sorted(forms))} | {', '.join(sorted(dtypes)) or '-'} "
                        f"| {why.replace('|', '/')} |")
    return rows


def other_rows(results, verdict):
    rows = []
    for name, result in results.items():
        for fault in sorted(faults(result, verdict), key=lambda f: (f["form"], f["text"])):
            rows.append(f"| `{name}` | {fault['form']} | {', '.join(sorted(fault['dtypes']))} "
                        f"| {fault['text'].replace('|', '/')} |")
    return rows


def counts(results):
    calls = collections.Counter()
    for result in results.values():
        calls.update(result["counts"])
    kinds = {name: {f["verdict"] for f in r["faults"]} - {"no sample"} for name, r in results.items()}
    untested = [name for name, r in results.items() if not set(r["counts"]) - {"no sample", "refused by both"}]
    return {
        "ops": len(results),
        "equal": sum(not kinds[name] for name in results) - len(untested),
        "error": sum("error" in k for k in kinds.values()),
        "different": sum("different" in k for k in kinds.values()),
        "accepted": sum("accepted" in k for k in kinds.values()),
        "untested": untested,
        "routed": sum(r["routed"] for r in results.values()),
        "calls": calls,
        "same_texts": sum(r["same_texts"] for r in results.values()),
    }


def _table(rows, head):
    return [head, "|" + "---|" * (head.count("|") - 1), *rows] if rows else ["None."]


def page(results):
    import torch

    from .sweep_op import DTYPES, SAMPLES, TOLERANCES

    n = counts(results)
    calls = n["calls"]
    lines = [
        "# torch's ops on `cdna`", "",
        f"Made by `{COMMAND}` with torch {torch.__version__.partition('+')[0]}. Every op of torch's `op_db` and its "
        "foreach lists,",
        f"up to {SAMPLES} samples for each of {', '.join(str(d)[6:] for d in DTYPES)}: forward, in place, `out=`, "
        "float32 backward, refusals.",
        "Compared with the CPU bit for bit (values, dtype, shape, strides, written arguments) with routing off; ops "
        "that reach a routed",
        "op (\"routed\") run again with routing on, within a tolerance.", "",
        "| | ops | calls |", "|---|---|---|",
        f"| swept | {n['ops']} | {sum(calls.values()) - calls['no sample']} |",
        f"| as on the CPU in every call | {n['equal']} | {calls['equal']} equal, {calls['refused by both']} refused "
        f"by both ({n['same_texts']} with the same text) |",
        f"| error on cdna, not on the CPU | {n['error']} | {calls['error']} |",
        f"| different result | {n['different']} | {calls['different']} |",
        f"| accepted on cdna, refused by the CPU | {n['accepted']} | {calls['accepted']} |",
        f"| no sample that the CPU accepts | {len(n['untested'])} | |",
        f"| reached an MI350 kernel | {n['routed']} | |", "",
        "## Errors on cdna where the CPU has none", "",
        *_table(refused_rows(results), "| op | form | dtypes | reason |"), "",
        "## Different results", "", *_table(other_rows(results, "different"), "| op | form | dtypes | what differs |"),
        "", "## Accepted where the CPU refuses", "",
        *_table(other_rows(results, "accepted"), "| op | form | dtypes | the CPU's refusal |"), "",
        "## Compared within a tolerance", "",
        *_table([f"| `{name}` | {', '.join(str(d)[6:] for d in dtypes)} | {tolerance:g} | {why} |"
                 for name, (tolerance, dtypes, why) in sorted(TOLERANCES.items())],
                "| op | dtypes | tolerance | reason |"), "",
        "## Not compared: no sample that the CPU accepts", "",
        ", ".join(f"`{name}`" for name in n["untested"]) + "." if n["untested"] else "None.",
    ]
    return "\n".join(lines) + "\n"


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m torch_mi350.testing.sweep", description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--only", nargs="+", default=(), metavar="OP")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also the results of each op")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.serve:
        return serve()
    if options.write and options.only:
        parser.error("--write needs the whole sweep, and --only names a part of it")
    if options.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {options.jobs}")
    begin = time.monotonic()
    results = sweep(options.only, options.jobs)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    text = page(results)
    if options.write:
        options.write.write_text(text)
    else:
        print(text)
    print(f"{len(results)} ops in {time.monotonic() - begin:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
