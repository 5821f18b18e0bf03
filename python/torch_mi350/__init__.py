"""AMD MI350 (gfx950) kernels behind the aten ops that scripts already call.

Importing routes the ops and, on a CPU build of torch, registers the emulated device `cdna`.
It touches no GPU.
"""

import sys

if sys.argv[:1] == ["-m"] and "torch_mi350.doctor" in sys.orig_argv:
    # The doctor speaks where the rest of this import fails, so it starts first.
    from . import doctor

    raise SystemExit(doctor.main())

from . import _load  # noqa: E402

_C = _load.extension()

from . import _install  # noqa: E402  (needs _C)

_install.install()

from ._explain import explain  # noqa: E402
from ._report import emulator_counters, report, reset  # noqa: E402
from ._status import status  # noqa: E402
from ._switch import disable, disabled, enable  # noqa: E402

__version__ = _install.package_version()
__all__ = ["disable", "disabled", "emulator_counters", "enable", "explain", "report", "reset", "status"]
