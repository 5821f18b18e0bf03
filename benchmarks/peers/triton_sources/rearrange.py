"""Sorts, scans, selections and moves."""
import triton
import triton.language as tl

from triton_sources.table import case

@triton.jit
def sort_kernel(x, y, N: tl.constexpr, DESC: tl.constexpr):
    r = tl.program_id(0)
    cidx = tl.arange(0, N)
    v = tl.load(x + r * N + cidx)
    tl.store(y + r * N + cidx, tl.sort(v, descending=DESC))


@triton.jit
def topk_kernel(x, vals, idx, N, K: tl.constexpr, BN: tl.constexpr):
    """fp32 top-K per row: key = orderable(value)<<32 | ~index, tl.topk on int64 keys."""
    r = tl.program_id(0)
    cidx = tl.arange(0, BN)
    v = tl.load(x + r * N + cidx, mask=cidx < N, other=float("-inf"))
    bits = v.to(tl.int32, bitcast=True)
    key32 = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    key = (key32.to(tl.int64) << 32) | (0x7FFFFFFF - cidx).to(tl.int64)
    top = tl.topk(key, K)
    hi = (top >> 32).to(tl.int32)
    ob = tl.where(hi < 0, hi ^ 0x7FFFFFFF, hi)
    o = tl.arange(0, K)
    tl.store(vals + r * K + o, ob.to(tl.float32, bitcast=True))
    tl.store(idx + r * K + o, 0x7FFFFFFF - (top & 0xFFFFFFFF).to(tl.int32))


@triton.jit
def argmax_kernel(x, out, N, BN: tl.constexpr):
    r = tl.program_id(0)
    cidx = tl.arange(0, BN)
    v = tl.load(x + r * N + cidx, mask=cidx < N, other=float("-inf"))
    tl.store(out + r, tl.argmax(v, 0))


@triton.jit
def _lin(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1


@triton.jit
def scan_kernel(a, b, y, z, N: tl.constexpr):
    """h[t] = a[t]*h[t-1] + b[t] (associative scan) and inclusive cumsum of b."""
    r = tl.program_id(0)
    cidx = tl.arange(0, N)
    av = tl.load(a + r * N + cidx)
    bv = tl.load(b + r * N + cidx)
    _, h = tl.associative_scan((av, bv), 0, _lin)
    tl.store(y + r * N + cidx, h)
    tl.store(z + r * N + cidx, tl.cumsum(bv, 0))


@triton.jit
def shape_kernel(x, y, z, w, N: tl.constexpr):
    """y = x[N-1-i] (by gather), z = interleave(x, -x), w[r] = reverse cumsum over a [32, N/32] view's axis 0."""
    r = tl.program_id(0)
    c = tl.arange(0, N)
    v = tl.load(x + r * N + c)
    tl.store(y + r * N + c, tl.gather(v, N - 1 - c, 0))
    tl.store(z + r * 2 * N + tl.arange(0, 2 * N), tl.interleave(v, -v))
    t = tl.cumsum(tl.reshape(v, (32, N // 32)), 0, reverse=True)
    tl.store(w + r * N + c, tl.reshape(t, (N, )))


@triton.jit
def gather_kernel(x, idx, y, N: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, N)
    v = tl.load(x + r * N + c)
    t = tl.load(idx + r * N + c)
    tl.store(y + r * N + c, tl.gather(v, t, 0))


@triton.jit
def transpose_kernel(x, y, M, N, B: tl.constexpr):
    rm = tl.program_id(0) * B + tl.arange(0, B)
    rn = tl.program_id(1) * B + tl.arange(0, B)
    v = tl.load(x + rm[:, None] * N + rn[None, :], mask=(rm[:, None] < M) & (rn[None, :] < N))
    tl.store(y + rn[:, None] * M + rm[None, :], tl.trans(v), mask=(rn[:, None] < N) & (rm[None, :] < M))


@triton.jit
def histogram_kernel(x, h, N, BLOCK: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < N, other=0)
    hist = tl.histogram(v, BINS, mask=i < N)
    tl.atomic_add(h + tl.arange(0, BINS), hist)


case("shape_f32_1024", shape_kernel, "x:*fp32 y:*fp32 z:*fp32 w:*fp32", dict(N=1024), "[M,1,1]")
case("sort_f32_512", sort_kernel, "x:*fp32 y:*fp32", dict(N=512, DESC=False), "[M,1,1]")
case("sort_i32_desc_256", sort_kernel, "x:*i32 y:*i32", dict(N=256, DESC=True), "[M,1,1]")
case("topk_f32_k8_1024", topk_kernel, "x:*fp32 vals:*fp32 idx:*i32 N:i32", dict(K=8, BN=1024), "[M,1,1]")
case("argmax_f32_1024", argmax_kernel, "x:*fp32 out:*i32 N:i32", dict(BN=1024), "[M,1,1]")
case("scan_f32_1024", scan_kernel, "a:*fp32 b:*fp32 y:*fp32 z:*fp32", dict(N=1024), "[M,1,1]")
case("histogram_i32", histogram_kernel, "x:*i32 h:*i32 N:i32", dict(BLOCK=1024, BINS=64), "[cdiv(N,{BLOCK}),1,1]")
case("gather_f32_256", gather_kernel, "x:*fp32 idx:*i32 y:*fp32", dict(N=256), "[M,1,1]")
case("transpose_bf16_64", transpose_kernel, "x:*bf16 y:*bf16 M:i32! N:i32!", dict(B=64),
     "[cdiv(M,{B}),cdiv(N,{B}),1]")
