"""Builds torch_mi350 with CMake: the torch extension, the emulator, and the gfx950 code objects.

The torch it builds against is the one that the running Python finds without PYTHONPATH, so that pip's
isolated build sees the user's torch and never another. MI350_CMAKE_ARGS adds options, MAX_JOBS limits jobs.
"""
import os
import pathlib
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).parent.resolve()
SHIPPED = ("_C*.so", "libmi350emu.so", "mi350-emu", "code_objects")


def require_torch() -> None:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    probe = subprocess.run([sys.executable, "-I", "-c", "import torch"], env=env, capture_output=True, text=True)
    if probe.returncode != 0:
        last_line = (probe.stderr.strip().splitlines() or ["no message"])[-1]
        sys.exit(
            "torch_mi350: no torch (2.11 to 2.14) can be imported by the Python that builds. Install torch first; if it is "
            f"installed in a place that pip's build isolation hides, add --no-build-isolation. ({last_line})"
        )


class CMakeBuild(build_ext):
    """Configure and build in build/cmake (kept between builds), then copy what ships beside the Python files."""

    def run(self) -> None:
        require_torch()
        build_dir = ROOT / "build" / "cmake"
        cmake, ninja = shutil.which("cmake"), shutil.which("ninja")
        if cmake is None or ninja is None:
            sys.exit("torch_mi350: cmake >= 3.25 and ninja are needed to build, and were not both found: install them.")
        extra = os.environ.get("MI350_CMAKE_ARGS", "").split()
        subprocess.check_call(
            [cmake, "-S", str(ROOT), "-B", str(build_dir), "-G", "Ninja",
             # Named anew each time: pip's isolated environments, and the ninja in them, do not outlive a build.
             f"-DCMAKE_MAKE_PROGRAM={ninja}", f"-DPython_EXECUTABLE={sys.executable}", *extra])
        jobs = os.environ.get("MAX_JOBS") or str(os.cpu_count() or 1)
        subprocess.check_call([cmake, "--build", str(build_dir), "-j", jobs])
        package = pathlib.Path(self.build_lib) / "torch_mi350"
        package.mkdir(parents=True, exist_ok=True)
        for pattern in SHIPPED:
            found = sorted((build_dir / "torch_mi350").glob(pattern))
            if not found:
                sys.exit(f"torch_mi350: the build made no {pattern}")
            for path in found:
                copy(path, package / path.name)


def copy(source: pathlib.Path, target: pathlib.Path) -> None:
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)


setup(ext_modules=[Extension("torch_mi350._C", sources=[])], cmdclass={"build_ext": CMakeBuild})
