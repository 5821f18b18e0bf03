"""Triton kernels on ``cdna`` tensors: Triton's own AMD compiler, driver and launcher, on the emulator.

    from torch_mi350 import triton_driver
    triton_driver.activate()
    kernel[grid](x, y, n, BLOCK=128)      # x, y on cdna

Triton (3.6 and later) asks its active driver for devices and streams, and finds the HIP runtime by a path that
must end in ``libamdhip64.so``. ``activate`` makes such a path for ``libmi350emu.so`` and sets a driver that answers
for ``torch.cdna`` where Triton's answers for ``torch.cuda``. No file of Triton changes; its launcher is compiled by
the host's C compiler, as always.
"""
import hashlib
import os
import pathlib
import tempfile

import torch

import torch_mi350  # registers the device
from torch_mi350 import _C, cdna

_TESTED = "3.6.0 and 3.7.1"


def library_path():
    """A link to ``libmi350emu.so`` under the only name that Triton takes a HIP runtime by."""
    target = pathlib.Path(_C.package_dir()) / "libmi350emu.so"
    key = hashlib.sha256(os.fsencode(target)).hexdigest()[:16]
    folder = pathlib.Path(tempfile.gettempdir()) / f"torch-mi350-{os.getuid()}" / key
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.parent.stat().st_uid != os.getuid():
        raise RuntimeError(f"{folder.parent} belongs to another user: set TMPDIR to a folder of yours")
    link = folder / "libamdhip64.so"
    if not link.is_symlink() or link.readlink() != target:
        fresh = folder / f"link-{os.getpid()}"
        fresh.symlink_to(target)
        fresh.replace(link)
    return str(link)


def _make_driver():
    from triton.backends.amd.driver import HIPDriver

    class CdnaDriver(HIPDriver):
        """Triton's HIP driver over ``torch.cdna``."""

        def __init__(self):
            super().__init__()
            self.get_device_capability = cdna.get_device_capability
            self.get_current_device = cdna.current_device
            self.set_current_device = cdna.set_device
            self.get_current_stream = _raw_stream

        @staticmethod
        def is_active():
            return cdna.is_available()

        def get_device_interface(self):
            return cdna

        def get_active_torch_device(self):
            return torch.device("cdna", cdna.current_device())

        def get_empty_cache_for_benchmark(self):
            # On the board this flushes the L2; the emulator has none, and 256 MiB would take longer than most kernels.
            return torch.empty(256, dtype=torch.int, device="cdna")

    return CdnaDriver()


def _raw_stream(device):
    handle = cdna.current_stream(device).native_handle
    return 0 if handle is None else int(handle)


def activate():
    """Make ``cdna`` the device of Triton in this process; returns the driver. Calling it again does nothing."""
    try:
        import triton
    except ImportError as e:
        raise RuntimeError(f"torch_mi350.triton_driver needs triton (tested with {_TESTED}): {e}") from e
    active = triton.runtime.driver._active
    if type(active).__name__ == "CdnaDriver":
        return active
    if not cdna.is_available():
        raise RuntimeError("the device cdna is not available in this process: torch_mi350.status() says why")
    # Through the environment, which Triton reads when it loads the runtime, and worker processes inherit.
    os.environ["TRITON_LIBHIP_PATH"] = library_path()
    driver = _make_driver()
    triton.runtime.driver.set_active(driver)
    return driver
