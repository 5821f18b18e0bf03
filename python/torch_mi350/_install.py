"""What happens at import: the device, the routed ops and the environment variables. Touches no GPU."""

import importlib.metadata
import os

import torch

from . import _C

# What became of each home: rows per aten overload, or why there are none. Read by status().
homes = {}
# TORCH_MI350_FORCE of this process: "", "fallback" or "emulate".
force = ""


def package_version():
    try:
        return importlib.metadata.version("torch-mi350")
    except importlib.metadata.PackageNotFoundError:
        return "0+source"


def wants_cdna(asked, has_gpu_build):
    """TORCH_MI350_DEVICE: registered on CPU builds unless 0, on CUDA and ROCm builds only if 1."""
    if asked not in ("", "0", "1"):
        raise RuntimeError(f"torch_mi350: TORCH_MI350_DEVICE must be 0 or 1, got {asked!r}")
    return asked == "1" or (asked == "" and not has_gpu_build)


def _has_gpu_build():
    return torch.version.cuda is not None or torch.version.hip is not None


def forced(asked, has_gpu_build):
    """TORCH_MI350_FORCE, checked: what to do with `cuda` tensors on devices that are not gfx950."""
    if asked not in ("", "fallback", "emulate"):
        raise RuntimeError(f"torch_mi350: TORCH_MI350_FORCE must be fallback or emulate, got {asked!r}")
    if asked and not has_gpu_build:
        raise RuntimeError(
            f"torch_mi350: TORCH_MI350_FORCE={asked} is about cuda tensors and needs a CUDA or ROCm build of "
            f"torch, this is {torch.__version__}"
        )
    return asked


def _install_cdna():
    if not wants_cdna(os.environ.get("TORCH_MI350_DEVICE", ""), _has_gpu_build()):
        homes["cdna"] = (None, "device not registered (TORCH_MI350_DEVICE)")
        return
    from . import cdna

    cdna.register()
    homes["cdna"] = (_C.install_cdna(), "")


def _install_cuda():
    global force
    force = forced(os.environ.get("TORCH_MI350_FORCE", ""), _has_gpu_build())
    if force:
        homes["cuda"] = (_C.install_forced(force), "")
        return
    rows, why = _C.install_cuda()
    homes["cuda"] = (rows, why)


def _names(text):
    return [name.strip() for name in text.split(",") if name.strip()]


def _apply_environment():
    _C.set_log(os.environ.get("TORCH_MI350_LOG", ""))
    known = _C.ops()
    if not known:
        return
    disabled = _names(os.environ.get("TORCH_MI350_DISABLE", ""))
    for op in known if "all" in disabled else disabled:
        _C.set_enabled(op, False)
    for pin in _names(os.environ.get("TORCH_MI350_CONFIG", "")):
        op, colon, config = pin.partition(":")
        if not colon or not config:
            raise ValueError(f"torch_mi350: TORCH_MI350_CONFIG is a list of op:config, got {pin!r}")
        _C.pin(op, config)
    verify = os.environ.get("TORCH_MI350_VERIFY", "")
    if verify:
        from . import _verify

        _verify.install(verify)


def install():
    _install_cdna()
    _install_cuda()
    _apply_environment()
