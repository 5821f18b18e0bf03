"""Triton's dense GEMMs: bf16, f16, f32, f64, i8, fp8, bf8; NT, NN, TN; tails; split-K; bias + GELU; row and block scales.

Reference: torch float64 matmul of the same stored values. Bound of one element, with A = sum over k of |a||b|:
    one rounding to the output type + (K + 2) * u * A,     u = 2^-24, for f64 outputs 2^-53
the second term being the worst case of K products summed in that type in any order (twice that for f64, whose
reference is no better); integers are exact.
"""
from __future__ import annotations

import torch

from families import FP32_ROUNDOFF, UNIT_ROUNDOFF, Case, Result, compare, intact, rounding, worst
from triton_object import TritonObject, objects

PAD = 16        # extra columns of C: nothing may be written there
FILL = 0xFF


def operand(rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
    if not dtype.is_floating_point:
        return torch.randint(-128, 128, (rows, columns)).to(dtype)
    return torch.randn(rows, columns, dtype=torch.float64).to(torch.float32 if dtype.itemsize < 4 else dtype).to(dtype)


def wide(t: torch.Tensor) -> torch.Tensor:
    return t.to(torch.float32).to(torch.float64) if t.dtype.itemsize < 4 else t.to(torch.float64)


def product(a: torch.Tensor, b: torch.Tensor, accumulate: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """a[M,K] @ b[K,N] in float64, and the accumulation bound."""
    u = 0.0 if not accumulate.is_floating_point else max(UNIT_ROUNDOFF[accumulate], 2.0 ** -53)
    return a @ b, (a.shape[1] + 2) * u * (1 if accumulate != torch.float64 else 2) * (a.abs() @ b.abs())


def check_output(c, obj: TritonObject, reference, slack, columns: int) -> Result:
    """C [M, columns + PAD] against the reference, and its padding."""
    dtype = obj.dtype("c")
    got = c.read(dtype, reference.shape[0], columns + PAD)
    return worst(compare(wide(got[:, :columns]), reference, rounding(reference, dtype) + slack, "c"),
                 intact(got[:, columns:], FILL, "padding of c"))


def shape(obj: TritonObject, tails: bool) -> tuple[int, int, int]:
    """Two tiles each way, ragged where the kernel has masks for it; K: three steps of its loop."""
    m, n = obj["BM"] + obj["BM"] // 2 + 3, obj["BN"] + obj["BN"] // 2 + 8
    bk = obj.constants.get("BK", 128)
    return m, n, 3 * bk - (bk // 2 - 3 if tails else 0)


def run_dense(obj: TritonObject, m: int, n: int, k: int):
    def run(emulator) -> Result:
        transposed_a, transposed_b = obj["TA"], obj["TB"]
        a, b = operand(m, k, obj.dtype("a")), operand(k, n, obj.dtype("b"))
        ab, bb = (t.t() if flip else t for t, flip in ((a, transposed_a), (b, transposed_b)))
        c = emulator.filled(m * (n + PAD) * obj.dtype("c").itemsize)
        keep = emulator.buffer(ab), emulator.buffer(bb)
        obj.launch(emulator, dict(a=keep[0], b=keep[1], c=c, M=m, N=n, K=k, lda=ab.shape[1], ldb=bb.shape[1], ldc=n + PAD))
        accumulate = obj.dtype("c") if obj.dtype("c").itemsize > 4 or not obj.dtype("c").is_floating_point else torch.float32
        return check_output(c, obj, *product(wide(a), wide(b), accumulate), n)
    return run


def dense(obj: TritonObject) -> list[Case]:
    tails = not obj["EVEN_K"]
    m, n, k = shape(obj, tails)
    if not tails:
        m, n = m // 16 * 16, n // 16 * 16  # leading dimensions were compiled as multiples of 16
    cases = [Case(obj.path, obj.name, run_dense(obj, m, n, k))]
    if tails:
        cases.append(Case(obj.path, f"{obj.name} K=1", run_dense(obj, 5, 7, 1)))
    return cases


def even_shape(obj: TritonObject) -> tuple[int, int, int]:
    m, n, k = shape(obj, tails=False)
    return m, n // 16 * 16, k


def launch_nt(emulator, obj: TritonObject, a, b, c, **more) -> None:
    """The kernels that take A [M,K] and B stored [N,K], both contiguous, and C with PAD columns more."""
    m, n, k = a.shape[0], b.shape[0], a.shape[1]
    device = {name: emulator.buffer(value) if isinstance(value, torch.Tensor) else value for name, value in more.items()}
    keep = emulator.buffer(a), emulator.buffer(b)
    obj.launch(emulator, dict(a=keep[0], b=keep[1], c=c, M=m, N=n, K=k, lda=k, ldb=k, ldc=n + PAD, **device))


def bias_gelu(obj: TritonObject) -> list[Case]:
    """gelu(z), z = a b^T + bias: the error of z goes through gelu, whose slope is at most 1.13; erf is trusted to
    16 units of fp32 (OpenCL's bound)."""
    def run(emulator) -> Result:
        m, n, k = even_shape(obj)
        a, b = operand(m, k, obj.dtype("a")), operand(n, k, obj.dtype("b"))
        bias = operand(1, n, obj.dtype("bias"))[0]
        c = emulator.filled(m * (n + PAD) * obj.dtype("c").itemsize)
        launch_nt(emulator, obj, a, b, c, bias=bias)
        z, slack = product(wide(a), wide(b).t(), torch.float32)
        z = z + wide(bias)
        slack = 1.13 * (slack + 2 * FP32_ROUNDOFF * (z.abs() + wide(bias).abs())) + 16 * FP32_ROUNDOFF * z.abs()
        return check_output(c, obj, torch.nn.functional.gelu(z), slack, n)
    return [Case(obj.path, obj.name, run)]


def row_scaled(obj: TritonObject) -> list[Case]:
    """(a b^T) sa[m] sb[n]: two more roundings in fp32."""
    def run(emulator) -> Result:
        m, n, k = even_shape(obj)
        a, b = operand(m, k, obj.dtype("a")), operand(n, k, obj.dtype("b"))
        sa, sb = torch.rand(m) + 0.25, torch.rand(n) + 0.25
        c = emulator.filled(m * (n + PAD) * obj.dtype("c").itemsize)
        launch_nt(emulator, obj, a, b, c, sa=sa, sb=sb)
        scales = wide(sa)[:, None] * wide(sb)
        reference, slack = product(wide(a), wide(b).t(), torch.float32)
        return check_output(c, obj, reference * scales, slack * scales + 2 * FP32_ROUNDOFF * (reference * scales).abs(), n)
    return [Case(obj.path, obj.name, run)]


def block_scaled(obj: TritonObject) -> list[Case]:
    """One scale of A per row and 128 k, one of B per 128 n and 128 k; each adds a rounding to every product."""
    def run(emulator) -> Result:
        m, n, k = even_shape(obj)
        a, b = operand(m, k, obj.dtype("a")), operand(n, k, obj.dtype("b"))
        sa, sb = torch.rand(m, k // 128) + 0.25, torch.rand((n + 127) // 128, k // 128) + 0.25
        c = emulator.filled(m * (n + PAD) * obj.dtype("c").itemsize)
        launch_nt(emulator, obj, a, b, c, sa=sa, sb=sb, lsa=k // 128, lsb=k // 128)
        a64 = wide(a) * wide(sa).repeat_interleave(128, 1)
        b64 = wide(b) * wide(sb).repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)
        reference, slack = product(a64, b64.t(), torch.float32)
        return check_output(c, obj, reference, slack * (k + 4) / (k + 2), n)
    return [Case(obj.path, obj.name, run)]


def split_k(obj: TritonObject) -> list[Case]:
    """SPLIT partial sums p are added by atomics in C's type: each is rounded to it once, and each of the SPLIT
    additions rounds a sum of at most sum |p|: (SPLIT + 1) u_C * sum |p|."""
    def run(emulator) -> Result:
        split, bk, dtype = obj["SPLIT"], obj["BK"], obj.dtype("c")
        m, n, _ = even_shape(obj)
        k = 2 * split * bk
        a, b = operand(m, k, obj.dtype("a")), operand(n, k, obj.dtype("b"))
        initial = torch.full((m, n + PAD), float("nan")).to(dtype)
        initial.view(torch.uint8).fill_(FILL)
        initial[:, :n] = 0
        c = emulator.buffer(initial)
        launch_nt(emulator, obj, a, b, c)
        reference, slack = product(wide(a), wide(b).t(), torch.float32)
        steps = torch.arange(k) // bk % split
        partial = sum((wide(a[:, steps == s]) @ wide(b[:, steps == s]).t()).abs() for s in range(split))
        got = c.read(dtype, m, n + PAD)
        bound = (split + 1) * UNIT_ROUNDOFF[dtype] * partial + slack
        return worst(compare(wide(got[:, :n]), reference, bound, "c"), intact(got[:, n:], FILL, "padding of c"))
    return [Case(obj.path, obj.name, run)]


def grouped(obj: TritonObject) -> list[Case]:
    """Rows offs[g-1] .. offs[g] of A use B[g] (K by N); one group is empty, K ends inside a step."""
    def run(emulator) -> Result:
        sizes = [obj["BM"] + 5, 0, 7, obj["BM"] - 1]
        n, k = obj["BN"] + 16, obj["BK"] + 16
        a = operand(sum(sizes), k, obj.dtype("a"))
        b = torch.stack([operand(k, n, obj.dtype("b")) for _ in sizes])
        ends = torch.tensor(sizes).cumsum(0).to(torch.int32)
        c = emulator.filled(len(a) * (n + PAD) * obj.dtype("c").itemsize)
        device = [emulator.buffer(t) for t in (a, b, ends)]
        obj.launch(emulator, dict(a=device[0], b=device[1], offs=device[2], c=c, G=len(sizes), N=n, K=k, lda=k, ldc=n + PAD))
        parts = [product(wide(rows), wide(b[g]), torch.float32) for g, rows in enumerate(a.split(sizes))]
        return check_output(c, obj, torch.cat([p for p, _ in parts]), torch.cat([s for _, s in parts]), n)
    return [Case(obj.path, obj.name, run)]


KERNELS = {"gemm_kernel": dense, "gemm_bias_gelu_kernel": bias_gelu, "gemm_fp8_rowwise_kernel": row_scaled,
           "gemm_fp8_block_kernel": block_scaled, "gemm_splitk_kernel": split_k, "grouped_gemm_kernel": grouped}


def cases(folder) -> list[Case]:
    return [case for obj in objects(folder) if obj.symbol in KERNELS for case in KERNELS[obj.symbol](obj)]
