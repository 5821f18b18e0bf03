"""The example scripts do what their first lines say."""
import json
import pathlib
import re
import subprocess
import sys

import torch_mi350  # noqa: F401  fails here, with its sentence, rather than in every script

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"


def run(script, *arguments):
    done = subprocess.run([sys.executable, str(EXAMPLES / script), *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_training_lowers_the_loss_through_our_kernels():
    output = run("train_mlp.py", "--steps", "40")
    first, last = map(float, re.search(r"loss (\d+\.\d+) -> (\d+\.\d+)", output).groups())
    assert first > 0.5 and last < 0.7 * first, output
    assert re.search(r"mi350_gemm_bf16_\w+", output), output


def test_profile_prints_kernels_and_writes_a_trace(tmp_path):
    trace = tmp_path / "linear.json"
    output = run("profile_linear.py", "--trace", str(trace))
    assert re.search(r"mi350_gemm_bf16_\w+", output) and "aten::addmm" in output, output
    names = [event["name"] for event in json.loads(trace.read_text())["traceEvents"] if event.get("cat") == "kernel"]
    assert len(names) == 3
