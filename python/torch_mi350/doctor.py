"""python -m torch_mi350.doctor [--json FILE]: checks an installation, says what to do about each failure.

Works where `import torch_mi350` does not: this module needs nothing but Python, and what could fail or crash
runs in child processes (_doctor_checks.py). Exit status 0: nothing failed, 1: something did, 2: wrong call.
The JSON names hardware and versions, no host, no user, no path outside the package.
"""

import argparse
import importlib.machinery
import json
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys

from . import _variables

FORMAT = 1
PREFIX = "mi350-doctor "  # lines of the child that are for us
PACKAGE = pathlib.Path(__file__).absolute().parent
CHILD_SECONDS = 900

REINSTALL = "Reinstall the package: pip install --force-reinstall --no-deps torch-mi350 (in its checkout: pip install .)."


def result(name, status, detail, todo="", **facts):
    """A check: status is PASS, FAIL or skip; `todo` is the sentence for a failure."""
    return {
        "name": name,
        "status": status,
        "detail": without_paths(detail),
        "todo": without_paths(todo),
        **facts,
    }


def without_paths(text):
    """`text` without what identifies the machine or its user."""
    text = text.replace(str(PACKAGE), "<package>").replace(str(PACKAGE.resolve()), "<package>")
    return text.replace(os.path.expanduser("~") + os.sep, "~/")


# ---- what this machine is ---------------------------------------------------------------------------------


def _first(path, pattern, otherwise):
    try:
        found = re.search(pattern, pathlib.Path(path).read_text(), re.M)
    except OSError:
        return otherwise
    return found[1] if found else otherwise


def environment():
    """Versions and hardware, for the head of the report."""
    facts = {
        "python": platform.python_version(),
        "os": _first("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)', platform.system()),
        "kernel": platform.release(),
        "cpu": _first("/proc/cpuinfo", r"^model name\s*: (.*)", platform.machine()),
        "cpus": os.cpu_count(),
    }
    for name in ("torch", "numpy"):
        try:
            facts[name] = __import__(name).__version__
        except Exception as error:  # noqa: BLE001  (a broken install raises anything)
            facts[name] = f"cannot be imported: {without_paths(_last_error(str(error)))}"
    return facts


# ---- checks of this process -------------------------------------------------------------------------------


def check_torch(facts):
    if facts["torch"].startswith("cannot"):
        return result(
            "torch", "FAIL", facts["torch"], "Install torch 2.11 to 2.14, then reinstall torch_mi350 on it."
        )
    return result("torch", "PASS", facts["torch"])


def check_build():
    """The extension's torch minor, read from the file."""
    from . import _load

    paths = [PACKAGE / f"_C{suffix}" for suffix in importlib.machinery.EXTENSION_SUFFIXES]
    path = next((p for p in paths if p.exists()), None)
    if path is None:
        return result("built for this torch", "FAIL", "no _C*.so for this Python in <package>", REINSTALL)
    import torch

    built = _load.built_for(path)
    sentence = _load.mismatch(built, torch.__version__)
    if sentence is not None:
        todo = "Build it for this torch: pip install --no-build-isolation --force-reinstall --no-deps ."
        return result("built for this torch", "FAIL", sentence, todo)
    return result("built for this torch", "PASS", f"built for {built}")


def _child(code, environ):
    """Runs Python code on this package; returns (exit status, stdout, stderr)."""
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]))
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            env={**environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CHILD_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        text = error.stdout or b""
        return None, text.decode(errors="replace") if isinstance(text, bytes) else text, ""
    return done.returncode, done.stdout, done.stderr


def _last_error(text):
    """First line of the last exception that `text` shows, else its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    return (errors or lines or ["no message"])[-1]


def _how_it_ended(status, stderr):
    if status is None:
        return f"did not end within {CHILD_SECONDS} s"
    if status < 0:
        return f"died of {signal.Signals(-status).name}"
    return _last_error(stderr)


def _environ_without_ours(**ours):
    """No TORCH_MI350_* but `ours`: the package as it comes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TORCH_MI350_")}
    return {**kept, **ours}


def check_import():
    status, _, stderr = _child("import torch_mi350", _environ_without_ours())
    if status == 0:
        return result("import", "PASS", "the extension loads and installs")
    return result("import", "FAIL", f"import torch_mi350 fails: {_how_it_ended(status, stderr)}", REINSTALL)


def check_variables():
    """Every TORCH_MI350_* of this environment is known and takes its value."""
    ours = {name: value for name, value in os.environ.items() if name.startswith("TORCH_MI350_")}
    unknown = [name for name in ours if name.removeprefix("TORCH_MI350_") not in _variables.NAMES]
    if unknown:
        return result(
            "environment variables",
            "FAIL",
            f"{', '.join(sorted(unknown))}: no such variable",
            f"Unset or correct it; known are TORCH_MI350_ and one of {', '.join(_variables.NAMES)}.",
        )
    if not ours:
        return result("environment variables", "PASS", "none is set")
    code = "import torch, torch_mi350\nif hasattr(torch, 'cdna'): torch.empty(1, device='cdna')"
    status, _, stderr = _child(code, dict(os.environ))
    named = ", ".join(f"{name}={value}" for name, value in sorted(ours.items()))
    if status == 0:
        return result("environment variables", "PASS", named)
    todo = "Correct or unset the variable that the message names: until then the package cannot be imported."
    return result("environment variables", "FAIL", f"{named}: {_how_it_ended(status, stderr)}", todo)


def check_autoload():
    from importlib.metadata import entry_points

    name = "autoload entry point"
    registered = [e.value for e in entry_points(group="torch.backends") if e.name == "torch_mi350"]
    if not registered:
        return result(name, "skip", "not installed by pip, so TORCH_MI350_AUTOLOAD=1 would do nothing")
    code = "import sys, torch; sys.exit('torch_mi350._C' not in sys.modules)"
    status, _, stderr = _child(code, _environ_without_ours(TORCH_MI350_AUTOLOAD="1"))
    if status != 0:
        why = f"{registered[0]} is registered, but import torch does not load the package"
        return result(name, "FAIL", f"{why}: {_how_it_ended(status, stderr)}", REINSTALL)
    state = "on" if os.environ.get("TORCH_MI350_AUTOLOAD") == "1" else "off (TORCH_MI350_AUTOLOAD is not 1)"
    return result(name, "PASS", f"{registered[0]} works, {state}")


def checks_of_child():
    """The checks that use the device. A crash costs the check that was running, and those after it."""
    threads = os.environ.get("TORCH_MI350_EMU_THREADS")
    ours = {"TORCH_MI350_DEVICE": "1", **({"TORCH_MI350_EMU_THREADS": threads} if threads else {})}
    code = "from torch_mi350 import _doctor_checks; _doctor_checks.main()"
    status, stdout, stderr = _child(code, _environ_without_ours(**ours))
    results, facts, running = [], {}, "start"
    for line in stdout.splitlines():
        if not line.startswith(PREFIX):
            continue
        message = json.loads(line.removeprefix(PREFIX))
        if "running" in message:
            running = message["running"]
        elif "facts" in message:
            facts = message["facts"]
        else:
            results.append(result(**message))
            running = ""
    if status != 0:
        todo = REINSTALL + " If it stays, attach the JSON of --json to an issue."
        where = f"{running}: " if running else ""
        results.append(result("device checks", "FAIL", where + _how_it_ended(status, stderr), todo))
    return results, facts


# ---- the report -------------------------------------------------------------------------------------------


def examine():
    """All checks, as the JSON has them."""
    facts = environment()
    checks, device = [check_torch(facts)], {}
    if checks[-1]["status"] == "PASS":
        checks.append(check_build())
    if checks[-1]["status"] == "PASS":
        checks.append(check_import())
    if checks[-1]["status"] == "PASS":
        checks += [check_variables(), check_autoload()]
        results, device = checks_of_child()
        checks += results
    else:
        checks.append(result("everything else", "skip", "needs the above"))
    return {"format": FORMAT, "environment": facts, "package": device, "checks": checks}


def lines(report):
    from ._table import table

    facts, package = report["environment"], report["package"]
    yield f"python {facts['python']}, torch {facts['torch']}, numpy {facts['numpy']}"
    yield f"{facts['os']}, Linux {facts['kernel']}, {facts['cpus']} x {facts['cpu']}"
    if package:
        yield f"torch_mi350 {package['version']}, code objects by {package['compiler']}"
    yield ""
    yield from table(
        ("check", "", "detail"), [(c["name"], c["status"], c["detail"]) for c in report["checks"]]
    )
    failed = [check for check in report["checks"] if check["status"] == "FAIL"]
    if failed:
        yield ""
    for check in failed:
        yield f"{check['name']}: {check['todo']}"
    yield ""
    counts = {
        status: sum(c["status"] == status for c in report["checks"]) for status in ("PASS", "FAIL", "skip")
    }
    yield ", ".join(f"{count} {status}" for status, count in counts.items())


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m torch_mi350.doctor", description="Checks an installation of torch_mi350."
    )
    parser.add_argument(
        "--json", type=pathlib.Path, metavar="FILE", help="also write all of it, to attach to an issue"
    )
    asked = parser.parse_args(sys.argv[1:] if argv is None else argv)
    if asked.json and not asked.json.absolute().parent.is_dir():
        parser.error(f"--json: there is no folder {asked.json.absolute().parent}")
    report = examine()
    print("\n".join(lines(report)))
    if asked.json:
        asked.json.write_text(json.dumps(report, indent=1) + "\n")
        print(f"wrote {asked.json}")
    return int(any(check["status"] == "FAIL" for check in report["checks"]))


if __name__ == "__main__":
    sys.exit(main())
