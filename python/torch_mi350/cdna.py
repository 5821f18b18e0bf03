"""The module registered as ``torch.cdna``: an MI350 emulated on the host.

``register()`` makes the device known to torch; nothing happens before that. Importing and registering start
no thread and no emulator, so workers may be forked after the import.
"""
import contextlib
import os
import sys
import types
from multiprocessing.reduction import ForkingPickler

import torch
from torch.multiprocessing.reductions import reduce_storage

NAME = "cdna"

_registered = False
_initialized = False  # torch.utils.checkpoint saves the device's random state only if this is set


# ---- registration -----------------------------------------------------------------------------------------

def register():
    """Register the device with torch. Calling it again does nothing; raises if another backend is in the way."""
    global _registered, _initialized
    if _registered:
        return
    taken = torch._C._get_privateuse1_backend_name()
    if taken not in ("privateuseone", NAME):
        raise RuntimeError(f"torch has room for one out-of-tree device, and {taken!r} has taken it: "
                           f"the device {NAME!r} is not available in this process")
    from torch_mi350 import _C

    _C.cdna_install()
    if taken != NAME:
        torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, sys.modules[__name__])
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    ForkingPickler.register(torch.UntypedStorage, _reduce_storage)
    _registered = _initialized = True


def _reduce_storage(storage):
    if storage.device.type == NAME:
        raise NotImplementedError("cdna tensors cannot be shared with another process: send tensor.cpu() and move it "
                                  "to the device there")
    return reduce_storage(storage)


def _ext():
    from torch_mi350 import _C

    return _C


# ---- devices ----------------------------------------------------------------------------------------------

def is_available():
    return _registered and device_count() > 0


def device_count():
    return _ext().cdna_device_count() if _registered else 0


def init():
    _lazy_init()


def _lazy_init():
    if _is_in_bad_fork():
        raise RuntimeError("Cannot re-initialize cdna in forked subprocess. To use cdna with multiprocessing, "
                           "you must use the 'spawn' start method")
    if not is_available():
        raise RuntimeError(f"the device cdna is not available: {_why_unavailable()}")


def _why_unavailable():
    if not _registered:
        return "no emulated device is registered"
    try:
        _ext().cdna_attribute(_MULTIPROCESSOR_COUNT, 0)
    except RuntimeError as e:  # the emulator's sentence, which names the variable to change
        return str(e).splitlines()[0]
    return "the emulator gave no device"


def is_initialized():
    return is_available() and not _is_in_bad_fork()


def _is_in_bad_fork():
    return _registered and _ext().cdna_in_bad_fork()


def _get_device_index(device, optional=False, allow_cpu=False):
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if allow_cpu and device.type == "cpu":
            return -1
        if device.type != NAME:
            raise ValueError(f"Expected a {NAME} device, but got: {device}")
        device = device.index
    if device is None:
        if not optional:
            raise ValueError(f"Expected a {NAME} device with a specified index or an integer, but got: None")
        return current_device()
    return int(device)


def _index(device):
    return _get_device_index(device, optional=True)


# Where torch.serialization looks for it.
_utils = types.SimpleNamespace(_get_device_index=_get_device_index)


def current_device():
    return torch._C._accelerator_getDeviceIndex() if is_available() else 0


def set_device(device):
    index = _index(device)
    if index >= 0:
        torch._C._accelerator_setDeviceIndex(index)


class device:
    """Context manager: the current device is ``device`` inside."""

    def __init__(self, device):
        self.idx = _index(device)
        self.prev_idx = -1

    def __enter__(self):
        self.prev_idx = current_device()
        set_device(self.idx)

    def __exit__(self, *exc):
        set_device(self.prev_idx)
        return False


class device_of(device):
    """Context manager: the current device is that of ``obj`` inside, if it is on one."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.device.type == NAME else -1)


def _exchange_device(index):
    previous = current_device()
    set_device(index)
    return previous


def _maybe_exchange_device(index):
    return _exchange_device(index) if index >= 0 else current_device()


def get_device_name(device=None):
    return get_device_properties(device).name


def get_device_capability(device=None):
    properties = get_device_properties(device)
    return properties.major, properties.minor


_MULTIPROCESSOR_COUNT = 63  # of hipDeviceAttribute_t


class _DeviceProperties(types.SimpleNamespace):
    """What an MI350X is and what the emulator gives of it (``total_memory``: of the host)."""


def get_device_properties(device=None):
    index = _index(device)
    if not 0 <= index < device_count():
        raise RuntimeError(f"cdna: device index must be in [0, {device_count()}), got {index}")
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return _DeviceProperties(name="AMD Instinct MI350X (emulated)", gcnArchName="gfx950:sramecc+:xnack-", major=9,
                             minor=5, multi_processor_count=_ext().cdna_attribute(_MULTIPROCESSOR_COUNT, index),
                             warp_size=64, total_memory=min(288 << 30, pages * page),
                             shared_memory_per_block=160 << 10, regs_per_multiprocessor=131072,
                             max_threads_per_multi_processor=2048, is_integrated=0, is_multi_gpu_board=0)


def can_device_access_peer(device, peer_device):
    return _index(device) != _index(peer_device)


def synchronize(device=None):
    _lazy_init()
    torch._C._accelerator_synchronizeDevice(_index(device))


def is_bf16_supported(including_emulation=True):
    return True


def get_amp_supported_dtype():
    return [torch.float16, torch.bfloat16]


# ---- streams and events -----------------------------------------------------------------------------------

class _OnCdna(type):
    """Instances are torch's own objects, as torch's functions insist, if they belong to the device."""

    def __instancecheck__(cls, obj):
        return isinstance(obj, cls._made) and obj.device.type == NAME


class Stream(metaclass=_OnCdna):
    """A stream of cdna. Work runs in the call that submits it; streams keep the order they promise."""

    _made = torch.Stream

    def __new__(cls, device=None, priority=0, **ids):
        if "stream_id" in ids:
            return torch.Stream(**ids)
        return torch.Stream(device=torch.device(NAME, _index(device)), priority=priority)


class Event(metaclass=_OnCdna):
    """An event of cdna; ``enable_timing=True`` for ``elapsed_time``."""

    _made = torch.Event

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False, device=None):
        if interprocess:
            raise RuntimeError("cdna events cannot be shared between processes")
        return torch.Event(device=torch.device(NAME, _index(device)), enable_timing=enable_timing, blocking=blocking)


def current_stream(device=None):
    return torch._C._accelerator_getStream(_index(device))


def default_stream(device=None):
    kind = torch._C._autograd.DeviceType.PrivateUse1
    return Stream(stream_id=0, device_index=_index(device), device_type=int(kind))


def set_stream(stream):
    if stream is not None:
        torch._C._accelerator_setStream(stream)


@contextlib.contextmanager
def stream(stream):
    """Context manager: ``stream`` is current inside."""
    if stream is None:
        yield
        return
    with device(stream.device):
        previous = current_stream()
        set_stream(stream)
        try:
            yield
        finally:
            set_stream(previous)


StreamContext = stream


# ---- random numbers ---------------------------------------------------------------------------------------

class _DefaultGenerators:
    """One default generator per device, made when asked for."""

    def __len__(self):
        return device_count()

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"cdna: device index must be in [0, {len(self)}), got {index}")
        return _ext().cdna_default_generator(index)


default_generators = _DefaultGenerators()


def get_rng_state(device=NAME):
    return default_generators[_index(device)].get_state()


def get_rng_state_all():
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(new_state, device=NAME):
    default_generators[_index(device)].set_state(new_state)


def set_rng_state_all(new_states):
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed):
    default_generators[current_device()].manual_seed(int(seed))


def manual_seed_all(seed):
    for generator in default_generators:
        generator.manual_seed(int(seed))


def seed():
    return default_generators[current_device()].seed()


def seed_all():
    manual_seed_all(seed())


def initial_seed():
    return default_generators[current_device()].initial_seed()


# ---- memory -----------------------------------------------------------------------------------------------

def empty_cache():
    torch.accelerator.empty_cache()


def memory_stats(device=None):
    return torch.accelerator.memory_stats(_index(device))


def memory_allocated(device=None):
    return torch.accelerator.memory_allocated(_index(device))


def max_memory_allocated(device=None):
    return torch.accelerator.max_memory_allocated(_index(device))


def memory_reserved(device=None):
    return torch.accelerator.memory_reserved(_index(device))


def max_memory_reserved(device=None):
    return torch.accelerator.max_memory_reserved(_index(device))


def reset_peak_memory_stats(device=None):
    torch.accelerator.reset_peak_memory_stats(_index(device))


def reset_accumulated_memory_stats(device=None):
    torch.accelerator.reset_accumulated_memory_stats(_index(device))


def reset_max_memory_allocated(device=None):
    reset_peak_memory_stats(device)


def mem_get_info(device=None):
    return torch.accelerator.get_memory_info(_index(device))


def memory_summary(device=None, abbreviated=False):
    allocated, reserved = memory_allocated(device), memory_reserved(device)
    return (f"cdna:{_index(device)}: {allocated} bytes allocated by tensors (peak {max_memory_allocated(device)}), "
            f"{reserved} bytes reserved (peak {max_memory_reserved(device)})")


def ipc_collect():
    """Nothing is shared between processes."""
