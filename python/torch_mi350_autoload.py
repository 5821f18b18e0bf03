"""Entry point of torch.backends: with TORCH_MI350_AUTOLOAD=1, `import torch` also imports torch_mi350.

Its own top-level module, so that reading the variable imports nothing of ours. Never raises: an
exception here would break `import torch`.
"""
import os


def load() -> None:
    if os.environ.get("TORCH_MI350_AUTOLOAD") != "1":
        return
    try:
        import torch_mi350  # noqa: F401
    except Exception as error:
        import warnings

        warnings.warn(f"TORCH_MI350_AUTOLOAD=1: torch_mi350 was not loaded: {error}", stacklevel=2)
