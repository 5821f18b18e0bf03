"""python -m torch_mi350.run [--report] [--] script.py args...        (or -m module args...)

Runs a script that was written for `cuda` on the emulated device of a CPU box, unchanged: in this process
`cuda` means `cdna`. Exit status, sys.argv, __main__ and tracebacks are those of `python script.py args...`.
"""

import argparse
import os
import pathlib
import runpy
import sys

import torch

from . import _as_cuda, _install, cdna

_OWN_FRAMES = ("runpy.py", "<frozen runpy>")
UNUSABLE = 2


def _why_not():
    """Why this process cannot take cuda for cdna, or None."""
    asked = os.environ.get("TORCH_MI350_DEVICE", "")
    if asked == "0":
        return (
            "TORCH_MI350_DEVICE=0 keeps the emulated device away, and the script needs it: unset the variable"
        )
    if torch.cuda.is_available() and asked != "1":
        return (
            f"torch {torch.__version__} has a GPU here, so there is nothing to emulate: run the script with python, "
            "or set TORCH_MI350_DEVICE=1 to emulate all the same"
        )
    return None


def _register():
    """The device, where the import did not bring it (a GPU build of torch)."""
    if _install.homes["cdna"][0] is None:
        from . import _C

        cdna.register()
        _install.homes["cdna"] = (_C.install_cdna(), "")


def _hook_without_our_frames(stock):
    """sys.excepthook that starts the traceback at the script."""
    here = os.path.abspath(__file__)

    def hook(kind, error, traceback):
        while traceback is not None:
            path = traceback.tb_frame.f_code.co_filename
            if os.path.abspath(path) != here and os.path.basename(path) not in _OWN_FRAMES:
                break
            traceback = traceback.tb_next
        stock(kind, error.with_traceback(traceback), traceback)

    return hook


def _print_report():
    from ._report import report

    sys.stdout.flush()
    print(report(), file=sys.stderr)


def _run(asked):
    sys.argv = [asked.target, *asked.args]
    if asked.module:  # python -m torch_mi350.run has put the current folder into sys.path, as -m does
        runpy.run_module(asked.target, run_name="__main__", alter_sys=True)
        return
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = str(pathlib.Path(asked.target).resolve().parent)
    runpy.run_path(asked.target, run_name="__main__")


def _parse(argv):
    parser = argparse.ArgumentParser(
        prog="python -m torch_mi350.run",
        usage="%(prog)s [--report] [--] script.py args...\n       %(prog)s [--report] -m module args...",
        description="Runs a script written for `cuda` on the emulated device of a CPU box.",
    )
    parser.add_argument(
        "--report", action="store_true", help="print which kernel served which call at the end"
    )
    parser.add_argument("-m", dest="module", action="store_true", help="run a module, as python -m does")
    parser.add_argument("target", metavar="script.py", help="the script, or the module after -m")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    own, rest = _split(argv)
    asked = parser.parse_args([*own, *rest[:1]])
    asked.args = rest[1:]
    return asked


def _split(argv):
    """Our options, and the script with its arguments: nothing after the script is ours."""
    for at, word in enumerate(argv):
        if word == "--":
            return argv[:at], argv[at + 1 :]
        if not word.startswith("-"):
            return argv[:at], argv[at:]
    return argv, []


def main(argv=None):
    asked = _parse(sys.argv[1:] if argv is None else argv)
    why = _why_not()
    if why is None and not asked.module and not os.path.exists(asked.target):
        why = f"there is no {asked.target}"
    if why is not None:
        print(f"torch_mi350.run: {why}", file=sys.stderr)
        return UNUSABLE
    _register()
    _as_cuda.install()
    sys.excepthook = _hook_without_our_frames(sys.excepthook)
    try:
        _run(asked)
    finally:
        if asked.report:
            _print_report()
    return 0


if __name__ == "__main__":
    sys.exit(main())
