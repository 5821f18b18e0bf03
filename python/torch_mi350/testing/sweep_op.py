"""One op of torch's own tables of ops (OpInfo) on cdna against the CPU: every dtype, form, gradient and refusal.

A call is judged by its outcome, the bits, strides and dtypes of its results, and what it wrote to its arguments.
With routing off the bits are the CPU's. Ops that reach a routed op run a second time with routing on, within a
tolerance: the numerics policy judges a single product, and these are compositions.
"""
from __future__ import annotations

import re
import warnings

import torch
from torch.utils._pytree import tree_flatten, tree_map

import torch_mi350
import torch_mi350.cdna as cdna

try:
    from torch.testing._internal import common_methods_invocations as tables
except ImportError as e:
    raise ImportError(f"sweep: torch's tables of ops need another package (pip install expecttest): {e}") from e

DEV = "cdna:0"
SAMPLES = 6
DTYPES = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64)
ROUTED_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 3e-2}  # relative to the largest element

# Their results hold whatever the memory held.
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
# Stock reads these tensors from the CPU on every device: their samples stay there.
ON_CPU_EVERYWHERE = {"tensor_split": ("args", "tensor_indices_or_sections")}
_BLOCKING = "LAPACK's blocking follows the alignment of its scratch memory"
_POLICY = "torch chooses the accumulation by device: other roundings on the CPU than elsewhere"
# {op: (tolerance relative to the largest element, dtypes, reason)}: what may differ in bits with routing off.
TOLERANCES = {
    "linalg.lstsq": (1e-3, (torch.float32, torch.complex64), _BLOCKING),
    "linalg.lstsq.grad_oriented": (1e-3, (torch.float32, torch.complex64), _BLOCKING),
    "nn.functional.linear_cross_entropy.chunked": (3e-2, (torch.bfloat16,), _POLICY),
    "nn.functional.linear_cross_entropy.chunked_none": (3e-2, (torch.bfloat16,), _POLICY),
}


def tolerance_of(name, dtype):
    tolerance, dtypes, _ = TOLERANCES.get(name, (0.0, (), ""))
    return tolerance if dtype in dtypes else 0.0


def full_name(op):
    variant = getattr(op, "variant_test_name", "")
    return op.name + (f".{variant}" if variant else "")


def foreach_ops():
    lists = ("unary", "binary", "pointwise", "reduce", "other")
    return [op for kind in lists for op in getattr(tables, f"foreach_{kind}_op_db", ())]


def ops():
    """{name: OpInfo} of op_db (unary and binary lists are part of it) and the foreach lists."""
    return {full_name(op): op for op in (*tables.op_db, *foreach_ops())}


# ---- moving samples ---------------------------------------------------------------------------------------

def _place(x, device):
    if isinstance(x, torch.Tensor):
        return _place_tensor(x, device)
    if isinstance(x, torch.device) and x.type == "cpu":
        return torch.device(device)
    return device if isinstance(x, str) and x == "cpu" else x


def _place_tensor(x, device):
    """A copy with the whole storage, so that views look at what they looked at."""
    moved = x.detach()
    if moved.layout != torch.strided or moved.is_conj() or moved.is_neg():
        moved = moved.clone().to(device)
    else:
        whole = torch.empty(0, dtype=x.dtype).set_(moved.untyped_storage()).clone().to(device)
        moved = whole.as_strided(x.shape, x.stride(), x.storage_offset())
    return moved.requires_grad_(x.requires_grad)


def place(tree, device):
    return tree_map(lambda x: _place(x, device), tree)


class Call:
    """A function and its arguments on one device, its outcome once run."""

    def __init__(self, function, sample, device, name, make_out=None):
        self.error = self.result = None
        try:
            on_cpu = ON_CPU_EVERYWHERE.get(name, ())
            self.input = place(sample.input, device)
            self.args = place(sample.args, "cpu" if "args" in on_cpu else device)
            self.kwargs = {k: place(v, "cpu" if k in on_cpu else device) for k, v in sample.kwargs.items()}
            if make_out is not None:
                self.kwargs["out"] = place(make_out, device)
            torch.manual_seed(1)
            self.result = function(self.input, *self.args, **self.kwargs)
        except Exception as e:
            self.error = e

    def tensors_in(self):
        return [x for x in tree_flatten((self.input, self.args, self.kwargs))[0] if isinstance(x, torch.Tensor)]


# ---- comparison -------------------------------------------------------------------------------------------

def _same_values(got, want, tolerance):
    if tolerance and (want.is_floating_point() or want.is_complex()):
        scale = torch.nan_to_num(want.abs().float(), 0.0, 0.0, 0.0).max().item() if want.numel() else 0.0
        return torch.allclose(got, want, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    if want.is_complex():
        got, want = torch.view_as_real(got.resolve_conj()), torch.view_as_real(want.resolve_conj())
    same = got == want
    if want.is_floating_point():
        same = (same & (torch.signbit(got) == torch.signbit(want))) | (torch.isnan(got) & torch.isnan(want))
    return bool(same.all())


def difference(got, want, device, tolerance=0.0, values=True):
    """None, or what differs between the results of two calls."""
    got, want = tree_flatten(got)[0], tree_flatten(want)[0]
    if len(got) != len(want):
        return f"{len(got)} results, CPU {len(want)}"
    for g, w in zip(got, want):
        if not isinstance(w, torch.Tensor):
            if type(g) is not type(w):
                return f"type {type(g).__name__}, CPU {type(w).__name__}"
            # A generator or a device is another one on each side.
            if isinstance(w, (bool, int, float, complex, str)) and g != w and g == g and not isinstance(w, str):
                return f"{g}, CPU {w}"
            continue
        if g.device.type != device:
            return f"device {g.device}"
        for what in ("dtype", "shape", "layout", "requires_grad"):
            if getattr(g, what) != getattr(w, what):
                return f"{what} {getattr(g, what)}, CPU {getattr(w, what)}"
        if w.layout == torch.strided and g.stride() != w.stride():
            return f"strides {g.stride()}, CPU {w.stride()}"
        if values and not _same_values(g.detach().cpu(), w.detach(), tolerance):
            return "values"
    return None


def _text(error):
    """Of an exception: type and first line, without what names the device, addresses or the schema."""
    lines = str(error).strip().splitlines() or [""]
    text = re.sub(r"cdna(:\d+)?", "cdna", lines[0])
    text = re.sub(r"0x[0-9a-f]+", "0x..", text)
    return f"{type(error).__name__}: {text[:220]}"


# ---- one op -----------------------------------------------------------------------------------------------

class Verdicts:
    """Counts of calls by verdict, and the distinct faults with the dtypes that have them."""

    def __init__(self, name):
        self.name, self.counts, self.faults, self.same_texts = name, {}, {}, 0

    def count(self, verdict):
        self.counts[verdict] = self.counts.get(verdict, 0) + 1

    def fault(self, verdict, form, dtype, text):
        self.count(verdict)
        entry = self.faults.setdefault((verdict, form, text), [])
        if str(dtype)[6:] not in entry:
            entry.append(str(dtype)[6:])

    def dict(self):
        faults = [{"verdict": v, "form": f, "text": t, "dtypes": d} for (v, f, t), d in self.faults.items()]
        return {"op": self.name, "counts": self.counts, "same_texts": self.same_texts, "faults": faults}


class Sweep:
    def __init__(self, name, op, samples=SAMPLES):
        self.name, self.op, self.samples = name, op, samples
        self.verdicts = Verdicts(name)

    def judge(self, form, dtype, cpu, dev, tolerance):
        """Counts one pair of calls; True if both gave results."""
        v = self.verdicts
        if cpu.error is not None and dev.error is not None:
            v.count("refused by both")
            v.same_texts += _text(cpu.error) == _text(dev.error)
        elif dev.error is not None:
            v.fault("error", form, dtype, _text(dev.error))
        elif cpu.error is not None:
            v.fault("accepted", form, dtype, _text(cpu.error))
        else:
            values = self.name not in UNINITIALISED
            why = difference(dev.result, cpu.result, "cdna", tolerance, values)
            if why is None and self.name not in ON_CPU_EVERYWHERE:
                why = difference(dev.tensors_in(), cpu.tensors_in(), "cdna", tolerance, values)
                why = why and f"arguments afterwards: {why}"
            if why is None:
                v.count("equal")
            else:
                v.fault("different", form, dtype, why)
            return True
        return False

    def pair(self, form, function, sample, dtype, tolerance, make_out=None):
        cpu = Call(function, sample, "cpu", self.name, make_out)
        dev = Call(function, sample, DEV, self.name, make_out)
        return cpu, dev, self.judge(form, dtype, cpu, dev, tolerance)

    def sample_inputs(self, dtype, requires_grad=False):
        torch.manual_seed(0)
        if self.name.startswith("_foreach"):
            inputs = self.op.sample_inputs("cpu", dtype, requires_grad=requires_grad, noncontiguous=False,
                                           allow_higher_dtype_scalars=True)
        else:
            inputs = self.op.sample_inputs("cpu", dtype, requires_grad=requires_grad)
        return [sample for _, sample in zip(range(self.samples), inputs)]

    def forms(self):
        foreach = self.name.startswith("_foreach")
        function = self.op.method_variant if foreach and self.op.method_variant else self.op.op
        yield "forward", function
        if self.op.inplace_variant is not None and self.op.inplace_variant is not function:
            yield "in place", self.op.inplace_variant

    def forward(self, dtype, tolerance, prefix=""):
        for index, sample in enumerate(self.sample_inputs(dtype)):
            for form, function in self.forms():
                cpu, _, both = self.pair(prefix + form, function, sample, dtype, tolerance)
                if form == "forward" and index == 0 and both and getattr(self.op, "supports_out", False):
                    self.out_form(prefix, function, sample, dtype, cpu.result, tolerance)

    def out_form(self, prefix, function, sample, dtype, result, tolerance):
        results = result if isinstance(result, (tuple, list)) else (result,)
        if all(isinstance(x, torch.Tensor) for x in results):
            blanks = tuple(torch.zeros_like(x) for x in results)
            out = blanks if len(blanks) > 1 else blanks[0]
            self.pair(f"{prefix}out=", function, sample, dtype, tolerance, make_out=out)

    def backward(self, tolerance):
        dtype = torch.float32
        for sample in self.sample_inputs(dtype, requires_grad=True):
            def gradients(*args, **kwargs):
                leaves = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor) and x.requires_grad]
                result = sample.output_process_fn_grad(self.op.op(*args, **kwargs))
                outputs = [x for x in tree_flatten(result)[0] if isinstance(x, torch.Tensor) and x.requires_grad]
                seeds = [torch.randn(x.shape, dtype=x.dtype).to(x.device) for x in outputs]
                if not leaves or not outputs:
                    return ()
                return torch.autograd.grad(outputs, leaves, seeds, allow_unused=True)

            self.pair("backward", gradients, sample, dtype, tolerance)

    def refusals(self):
        if getattr(self.op, "error_inputs_func", None) is None or self.name.startswith("_foreach"):
            return
        for refusal in self.op.error_inputs("cpu"):
            self.pair("refusal", self.op.op, refusal.sample_input, "torch.mixed", 0.0)

    def guarded(self, form, dtype, f, *args):
        """Samples that cannot be made on the CPU are nobody's fault; they are counted."""
        try:
            f(*args)
        except Exception as e:
            self.verdicts.fault("no sample", form, dtype, _text(e))

    def run(self):
        supported = self.op.supported_dtypes("cpu")
        torch_mi350.reset()
        with torch_mi350.disabled():
            for dtype in DTYPES:
                if dtype in supported:
                    self.guarded("forward", dtype, self.forward, dtype, tolerance_of(self.name, dtype))
            if torch.float32 in supported and self.op.supports_autograd:
                self.guarded("backward", torch.float32, self.backward,
                             tolerance_of(self.name, torch.float32))
            self.guarded("refusal", "torch.mixed", self.refusals)
        reached = torch_mi350.report().misses > 0
        if reached:
            for dtype, tolerance in ROUTED_TOLERANCE.items():
                if dtype in supported:
                    self.guarded("routed", dtype, self.forward, dtype, tolerance, "routed ")
        return {**self.verdicts.dict(), "routed": torch_mi350.report().hits > 0}


def sweep_op(name, samples=SAMPLES):
    """Everything about the op `name` as a dict of plain values."""
    cdna.register()
    table = ops()
    if name not in table:
        raise ValueError(f"sweep: no op {name!r} among the {len(table)} of op_db and the foreach lists")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Sweep(name, table[name], samples).run()
