"""AMD MI350 (gfx950) kernels behind the aten ops that scripts already call.

Importing routes the ops and, on a CPU build of torch, registers the emulated device `cdna`.
It touches no GPU.
"""

from . import _load

_C = _load.extension()

from . import _install  # noqa: E402  (needs _C)

_install.install()

from ._explain import explain  # noqa: E402
from ._report import emulator_counters, report, reset  # noqa: E402
from ._status import status  # noqa: E402
from ._switch import disable, disabled, enable  # noqa: E402

__version__ = _install.package_version()
__all__ = ["disable", "disabled", "emulator_counters", "enable", "explain", "report", "reset", "status"]
