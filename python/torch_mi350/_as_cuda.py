"""Makes this process take `cuda` for `cdna`, for python -m torch_mi350.run.

Two mechanisms, both installed by install():
  AsCuda    a torch function mode: in the arguments of every torch call "cuda" means cdna, and tensor.device,
            tensor.is_cuda and tensor.type() of a cdna tensor answer as on a GPU
  tables    what no mode sees: the functions of torch.cuda, and classes that take a device when they are made
"""

import functools
import importlib
import re
import sys

import torch
from torch.overrides import TorchFunctionMode

from . import cdna

_CUDA = re.compile(r"cuda(:\d+)?")
_LEGACY = re.compile(r"torch\.cuda\.(\w+Tensor)")

# Type names of torch.cuda.FloatTensor and its like.
_LEGACY_DTYPES = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "ByteTensor": torch.uint8,
    "CharTensor": torch.int8,
    "ShortTensor": torch.int16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "BoolTensor": torch.bool,
}


# ---- names of devices -------------------------------------------------------------------------------------


def on_cdna(value):
    """`value` with the device cuda replaced; anything that names no CUDA device is returned as it is."""
    if type(value) is str:
        return cdna.NAME + value[4:] if value.startswith("cuda") and _CUDA.fullmatch(value) else value
    if type(value) is torch.device and value.type == "cuda":
        return torch.device(cdna.NAME) if value.index is None else torch.device(cdna.NAME, value.index)
    return value


def on_cuda(device):
    """The device as the script knows it."""
    return torch.device("cuda", device.index or 0) if device.type == cdna.NAME else device


def _accept(function):
    """`function` that takes cuda devices for cdna ones."""

    @functools.wraps(function)
    def accepting(*args, **kwargs):
        return function(*map(on_cdna, args), **{name: on_cdna(value) for name, value in kwargs.items()})

    return accepting


# ---- the mode ---------------------------------------------------------------------------------------------


def _to_device(tensor, device=None, non_blocking=False, memory_format=torch.preserve_format):
    device = torch.device(cdna.NAME, device if isinstance(device, int) else cdna._index(device))
    return tensor.to(device, non_blocking=non_blocking, memory_format=memory_format)


def _type(tensor, dtype=None, non_blocking=False, **kwargs):
    legacy = _LEGACY.fullmatch(dtype) if isinstance(dtype, str) else None
    if isinstance(dtype, _LegacyType):
        legacy = _LEGACY.fullmatch(f"torch.cuda.{dtype.__name__}")
    if legacy:
        return tensor.to(cdna.NAME, _LEGACY_DTYPES[legacy[1]], non_blocking=non_blocking)
    if dtype is None:
        return tensor.type().replace(f"torch.{cdna.NAME}.", "torch.cuda.")
    return tensor.type(dtype, non_blocking, **kwargs)


def _is_cuda(tensor):
    return tensor.device.type in (cdna.NAME, "cuda")


_INSTEAD = {
    torch.Tensor.device.__get__: lambda tensor: on_cuda(tensor.device),
    torch.Tensor.is_cuda.__get__: _is_cuda,
    torch.Tensor.cuda: _to_device,
    torch.Tensor.type: _type,
}


class AsCuda(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.device:  # the script's own device objects keep their name
            return func(*args, **kwargs)
        args = tuple(map(on_cdna, args))
        if kwargs:
            kwargs = {name: on_cdna(value) for name, value in kwargs.items()}
        return _INSTEAD.get(func, func)(*args, **kwargs)


def _run_in_mode(function):
    """torch calls no mode inside a function that it has shown to one; what `function` calls back is the script's.
    Not while torch traces: the tensors that it makes then must carry the true device."""

    @functools.wraps(function)
    def running(*args, **kwargs):
        if torch._C._len_torch_dispatch_stack():
            return function(*args, **kwargs)
        with AsCuda():
            return function(*args, **kwargs)

    return running


def _without_mode(function):
    """For torch's own code that copies a tensor's device and must read the true one."""

    @functools.wraps(function)
    def running(*args, **kwargs):
        with torch._C.DisableTorchFunction():
            return function(*args, **kwargs)

    return running


def _start_thread_in_mode(start):
    """Modes belong to a thread: the script's own threads enter one too."""

    @functools.wraps(start)
    def started(thread, *args, **kwargs):
        run = thread.run

        def run_in_mode():
            with AsCuda():
                run()

        thread.run = run_in_mode
        return start(thread, *args, **kwargs)

    return started


# ---- what torch.cuda becomes ------------------------------------------------------------------------------


class _Device(cdna.device):
    def __init__(self, device):
        super().__init__(on_cdna(device))


class _DeviceOf(_Device):
    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else -1)


class _Stream(cdna.Stream):
    def __new__(cls, device=None, priority=0, **ids):
        return super().__new__(cls, on_cdna(device), priority, **ids)


class _StreamContext:
    def __init__(self, stream):
        self.stream = stream
        self._context = cdna.stream(stream)

    def __enter__(self):
        return self._context.__enter__()

    def __exit__(self, *exc):
        return self._context.__exit__(*exc)


class _Made(type):
    """A class that makes objects of another: `_made` is what its instances are."""

    def __instancecheck__(cls, obj):
        return isinstance(obj, cls._made)

    def __subclasscheck__(cls, other):
        return issubclass(other, cls._made)


class _LegacyType(type):
    def __instancecheck__(cls, obj):
        return isinstance(obj, torch.Tensor) and obj.is_cuda and obj.dtype is cls.dtype

    def __call__(cls, *args):
        return getattr(torch, cls.__name__)(*args).to(cdna.NAME)


def _making(made):
    """`made`, a class of torch written in C, with a constructor that accepts cuda devices."""

    def new(cls, *args, **kwargs):
        return made(*map(on_cdna, args), **{name: on_cdna(value) for name, value in kwargs.items()})

    return _Made(made.__name__, (), {"__new__": new, "_made": made, "__doc__": made.__doc__})


def _nothing(value=None):
    """A function that takes anything and returns `value`."""
    return lambda *args, **kwargs: value


def _refused(name, old):
    """What stands where torch.cuda has `old` and the device nothing; a class stays one, for annotations."""

    def refuse(*args, **kwargs):
        raise NotImplementedError(
            f"torch.cuda.{name}: not available on {cdna.NAME}, the emulated device that stands for cuda in this process"
        )

    return type(name, (), {"__new__": refuse}) if isinstance(old, type) else refuse


# Functions of torch.cdna that serve under the same name in torch.cuda.
_SAME = """
    _exchange_device _is_in_bad_fork _lazy_init _maybe_exchange_device can_device_access_peer current_device
    current_stream default_stream device_count empty_cache get_device_capability get_device_name
    get_device_properties get_rng_state get_rng_state_all init initial_seed ipc_collect is_available
    is_bf16_supported is_initialized manual_seed manual_seed_all max_memory_allocated max_memory_reserved
    mem_get_info memory_allocated memory_reserved memory_stats memory_summary reset_accumulated_memory_stats
    reset_max_memory_allocated reset_peak_memory_stats seed seed_all set_device set_rng_state set_rng_state_all
    set_stream synchronize
""".split()

_TORCH_CUDA = {
    "Event": cdna.Event,
    "Stream": _Stream,
    "StreamContext": _StreamContext,
    "device": _Device,
    "device_of": _DeviceOf,
    "stream": _StreamContext,
    "default_generators": cdna.default_generators,
    "_initialized": True,
    "get_allocator_backend": _nothing("native"),
    "get_arch_list": lambda: ["gfx950"],
    "get_gencode_flags": _nothing(""),
    "get_sync_debug_mode": _nothing(0),
    "is_current_stream_capturing": _nothing(False),
    "is_tf32_supported": _nothing(False),
    "max_memory_cached": _accept(cdna.max_memory_reserved),
    "memory_cached": _accept(cdna.memory_reserved),
    "reset_max_memory_cached": _accept(cdna.reset_peak_memory_stats),
    "set_per_process_memory_fraction": _nothing(),
    "set_sync_debug_mode": _nothing(),
}

# Classes and functions that stay as they are.
_KEPT = {
    "OutOfMemoryError",
    "AcceleratorError",
    "CudaError",
    "DeferredCudaCallError",
    "check_error",
    "lru_cache",
}

# (module, name, replacement made from what was there)
_ELSEWHERE = (
    ("torch.cuda.nvtx", "range_push", lambda old: _nothing(0)),
    ("torch.cuda.nvtx", "range_pop", lambda old: _nothing(0)),
    ("torch.cuda.nvtx", "range_start", lambda old: _nothing(0)),
    ("torch.cuda.nvtx", "range_end", lambda old: _nothing()),
    ("torch.cuda.nvtx", "mark", lambda old: _nothing()),
    ("torch.backends.cuda", "is_built", lambda old: _nothing(True)),
    ("torch.backends.cudnn", "is_acceptable", lambda old: _nothing(False)),
    ("torch.accelerator", "current_accelerator", lambda old: lambda *a, **k: on_cuda_type(old(*a, **k))),
    ("torch.accelerator._utils", "_get_device_index", lambda old: functools.partial(_accelerator_index, old)),
    ("torch.accelerator", "_get_device_index", lambda old: functools.partial(_accelerator_index, old)),
    ("torch.accelerator.memory", "_get_device_index", lambda old: functools.partial(_accelerator_index, old)),
    ("torch.utils._device", "DeviceContext.__init__", _accept),
    ("torch.amp.autocast_mode", "autocast.__init__", _accept),
    ("torch", "get_autocast_dtype", _accept),
    ("torch", "set_autocast_dtype", _accept),
    ("torch", "is_autocast_enabled", lambda old: lambda device_type="cuda": old(on_cdna(device_type))),
    ("torch", "set_autocast_enabled", lambda old: functools.partial(_set_autocast_enabled, old)),
    ("torch", "get_autocast_gpu_dtype", lambda old: lambda: torch.get_autocast_dtype(cdna.NAME)),
    ("torch", "set_autocast_gpu_dtype", lambda old: lambda dtype: torch.set_autocast_dtype(cdna.NAME, dtype)),
    ("torch.amp", "is_autocast_available", _accept),
    ("torch.amp.autocast_mode", "is_autocast_available", _accept),
    ("torch", "Generator", _making),
    ("torch", "Stream", _making),
    ("torch", "Event", _making),
    ("torch", "set_default_tensor_type", lambda old: functools.partial(_set_default_tensor_type, old)),
    ("torch", "compile", lambda old: functools.partial(_compile, old)),
    ("torch.profiler.profiler", "_KinetoProfile.__init__", lambda old: _with_activities(old)),
    (
        "torch.profiler",
        "supported_activities",
        lambda old: lambda: old() | {torch.profiler.ProfilerActivity.CUDA},
    ),
    (
        "torch.autograd.graph",
        "saved_tensors_hooks.__init__",
        lambda old: functools.partialmethod(_hooks_in_mode, old),
    ),
    ("torch._subclasses.fake_tensor", "FakeTensorMode.from_tensor", _without_mode),
    ("torch.autograd", "_engine_run_backward", _run_in_mode),
    ("threading", "Thread.start", _start_thread_in_mode),
)


def on_cuda_type(device):
    """As on_cuda, of a device that may be None and have no index."""
    if device is None or device.type != cdna.NAME:
        return device
    return torch.device("cuda") if device.index is None else on_cuda(device)


def _accelerator_index(stock, device, optional=False):
    """torch's own code asks with either name."""
    if isinstance(device, (str, torch.device)):
        device = on_cuda_type(torch.device(device))
    return stock(device, optional)


def _set_autocast_enabled(stock, *args):
    stock(*map(on_cdna, args if len(args) == 2 else ("cuda", *args)))


def _hooks_in_mode(self, stock, pack, unpack):
    stock(self, _run_in_mode(pack), _run_in_mode(unpack))


def _set_default_tensor_type(stock, wanted):
    name = wanted.__name__ if isinstance(wanted, _LegacyType) else str(wanted).removeprefix("torch.cuda.")
    if isinstance(wanted, _LegacyType) or _LEGACY.fullmatch(str(wanted)):
        torch.set_default_dtype(_LEGACY_DTYPES[name])
        torch.set_default_device("cuda")
    else:
        torch.set_default_device(None)
        stock(wanted)


def _compile(stock, model=None, *, backend="inductor", mode=None, options=None, **kwargs):
    """Inductor writes no code for the device; graphs are captured and run op by op."""
    if backend == "inductor":
        backend, mode, options = "aot_eager", None, None
    return stock(model, backend=backend, mode=mode, options=options, **kwargs)


def _with_activities(stock):
    @functools.wraps(stock)
    def init(self, *, activities=None, **kwargs):
        kinds = torch.profiler.ProfilerActivity
        if activities is not None:
            activities = [kinds.PrivateUse1 if one == kinds.CUDA else one for one in activities]
        stock(self, activities=activities, **kwargs)

    return init


# ---- installation -----------------------------------------------------------------------------------------


def _replace(module, path, make):
    owner = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    setattr(owner, name, make(getattr(owner, name)))


def _fill_torch_cuda():
    table = {name: _accept(getattr(cdna, name)) for name in _SAME} | _TORCH_CUDA
    for name, dtype in _LEGACY_DTYPES.items():
        table[name] = _LegacyType(name, (), {"dtype": dtype})
    for name in torch.cuda.__all__:
        old = getattr(torch.cuda, name, None)
        if (
            name in table
            or name in _KEPT
            or not callable(old)
            or (isinstance(old, type) and "Storage" in name)
        ):
            continue
        table[name] = _refused(name, old)
    modules = [m for n, m in list(sys.modules.items()) if n == "torch.cuda" or n.startswith("torch.cuda.")]
    for name, new in table.items():
        old = getattr(torch.cuda, name, None)
        for module in modules:  # torch.cuda.memory.memory_allocated is torch.cuda.memory_allocated
            if module is torch.cuda or (callable(old) and module.__dict__.get(name) is old):
                setattr(module, name, new)


def _tag(storage):
    """Files say cuda, as the script's files from a GPU do."""
    return f"cuda:{storage.device.index or 0}" if storage.device.type == cdna.NAME else None


def _restore(storage, location):
    return storage.to(device=torch.device(on_cdna(location))) if _CUDA.fullmatch(location) else None


def install():
    """From here on this process takes cuda for cdna, which is registered. Not undone."""
    _fill_torch_cuda()
    for module, path, make in _ELSEWHERE:
        _replace(module, path, make)
    torch.serialization.register_package(5, _tag, _restore)  # before torch's own for cuda
    torch.set_autocast_dtype(cdna.NAME, torch.float16)  # as cuda's
    AsCuda().__enter__()
