"""Triton's own launcher on the emulator: vector add, softmax and matmul through kernel[grid](...) on cdna tensors.

    pip install triton          # 3.6 or later; no GPU, no ROCm
    python examples/triton_on_cdna.py
"""
import torch
import triton
import triton.language as tl
from triton.testing import do_bench

from torch_mi350 import triton_driver


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax_kernel(x, out, row_stride, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * row_stride + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, axis=0))
    result = powers / tl.sum(powers, axis=0)
    tl.store(out + row * row_stride + at, result.to(out.dtype.element_ty), mask=at < columns)


@triton.jit
def matmul_kernel(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    depth = tl.arange(0, K)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        left = tl.load(a + rows[:, None] * k + (start + depth)[None, :],
                       mask=(rows < m)[:, None] & (start + depth < k)[None, :], other=0.0)
        right = tl.load(b + (start + depth)[:, None] * n + columns[None, :],
                        mask=(start + depth < k)[:, None] & (columns < n)[None, :], other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(c.dtype.element_ty),
             mask=(rows < m)[:, None] & (columns < n)[None, :])


def add(n=5000, device="cdna"):
    x, y = torch.randn(n, device=device), torch.randn(n, device=device)
    out = torch.empty_like(x)
    launch = lambda: add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    launch()
    return out.cpu(), x.cpu() + y.cpu(), 0.0, launch


def softmax(rows=7, columns=781, dtype=torch.float32, device="cdna"):
    x = torch.randn(rows, columns, device=device).to(dtype)
    out = torch.empty_like(x)
    launch = lambda: softmax_kernel[(rows,)](x, out, x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    launch()
    unit = torch.finfo(dtype).eps
    return out.cpu(), torch.softmax(x.cpu().double(), -1), 8 * unit, launch


def matmul(m=200, n=120, k=96, device="cdna"):
    a = torch.randn(m, k, device=device).to(torch.bfloat16)
    b = torch.randn(k, n, device=device).to(torch.bfloat16)
    c = torch.empty(m, n, device=device, dtype=torch.bfloat16)
    launch = lambda: matmul_kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64))](a, b, c, m, n, k, M=64, N=64, K=32)
    launch()
    wide = a.cpu().double() @ b.cpu().double()
    # Half a step of bf16 of the largest result, and the fp32 sum of k products.
    limit = float(wide.abs().max()) * 2**-8 + k * 2**-22
    return c.cpu(), wide, limit, launch


def main():
    triton_driver.activate()
    torch.manual_seed(0)
    print(f"triton {triton.__version__}, target {triton.runtime.driver.active.get_current_target()}")
    for name, run in [("vector add", add), ("softmax", softmax), ("matmul bf16", matmul)]:
        result, want, limit, launch = run()
        error = float((result.double() - want.double()).abs().max())
        times = do_bench(launch, warmup=1, rep=20)
        print(f"{name:12s} max error {error:.2e} (limit {limit:.2e})  {times:8.3f} ms of emulation")
        if error > limit:
            raise SystemExit(f"{name}: wrong result")


if __name__ == "__main__":
    main()
