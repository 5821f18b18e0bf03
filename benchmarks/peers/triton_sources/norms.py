"""Norms, softmax and cross-entropy: reductions along rows."""
import triton
import triton.language as tl

from triton_sources.table import case

@triton.jit
def rmsnorm_fwd_kernel(x, w, y, rstd, M, N, eps, BR: tl.constexpr, BN: tl.constexpr):
    """y = x*rsqrt(mean(x^2)+eps)*w; BR rows per program, BN >= N power of two; rstd fp32 [M]."""
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    cidx = tl.arange(0, BN)
    m = (r[:, None] < M) & (cidx[None, :] < N)
    v = tl.load(x + r[:, None] * N + cidx[None, :], mask=m, other=0.0).to(tl.float32)
    s = tl.math.rsqrt(tl.sum(v * v, 1) / N + eps)
    wv = tl.load(w + cidx, mask=cidx < N, other=0.0).to(tl.float32)
    out = v * s[:, None] * wv[None, :]
    tl.store(y + r[:, None] * N + cidx[None, :], out.to(y.dtype.element_ty), mask=m)
    tl.store(rstd + r, s, mask=r < M)


@triton.jit
def rmsnorm_fwd_loop_kernel(x, w, y, rstd, N, eps, BN: tl.constexpr):
    """Row too long for registers: two passes over chunks of BN."""
    r = tl.program_id(0)
    cidx = tl.arange(0, BN)
    acc = tl.zeros((BN, ), tl.float32)
    for n in range(0, N, BN):
        v = tl.load(x + r * N + n + cidx, mask=n + cidx < N, other=0.0).to(tl.float32)
        acc += v * v
    s = tl.math.rsqrt(tl.sum(acc, 0) / N + eps)
    for n in range(0, N, BN):
        m = n + cidx < N
        v = tl.load(x + r * N + n + cidx, mask=m, other=0.0).to(tl.float32)
        wv = tl.load(w + n + cidx, mask=m, other=0.0).to(tl.float32)
        tl.store(y + r * N + n + cidx, (v * s * wv).to(y.dtype.element_ty), mask=m)
    tl.store(rstd + r, s)


@triton.jit
def rmsnorm_bwd_kernel(dy, x, w, rstd, dx, dwp, M, N, rows_per, BN: tl.constexpr):
    """dx and per-program partial dw [programs, N] fp32."""
    pid = tl.program_id(0)
    cidx = tl.arange(0, BN)
    m = cidx < N
    wv = tl.load(w + cidx, mask=m, other=0.0).to(tl.float32)
    dw = tl.zeros((BN, ), tl.float32)
    for i in range(0, rows_per):
        r = pid * rows_per + i
        mm = m & (r < M)
        xv = tl.load(x + r * N + cidx, mask=mm, other=0.0).to(tl.float32)
        g = tl.load(dy + r * N + cidx, mask=mm, other=0.0).to(tl.float32)
        s = tl.load(rstd + r, mask=r < M, other=0.0)
        xh = xv * s
        gw = g * wv
        mean = tl.sum(gw * xh, 0) / N
        tl.store(dx + r * N + cidx, ((gw - xh * mean) * s).to(dx.dtype.element_ty), mask=mm)
        dw += g * xh
    tl.store(dwp + pid * N + cidx, dw, mask=m)


@triton.jit
def layernorm_fwd_kernel(x, w, b, y, mean, rstd, N, eps, BN: tl.constexpr):
    r = tl.program_id(0)
    cidx = tl.arange(0, BN)
    m = cidx < N
    v = tl.load(x + r * N + cidx, mask=m, other=0.0).to(tl.float32)
    mu = tl.sum(v, 0) / N
    d = tl.where(m, v - mu, 0.0)
    s = tl.math.rsqrt(tl.sum(d * d, 0) / N + eps)
    wv = tl.load(w + cidx, mask=m, other=0.0).to(tl.float32)
    bv = tl.load(b + cidx, mask=m, other=0.0).to(tl.float32)
    tl.store(y + r * N + cidx, (d * s * wv + bv).to(y.dtype.element_ty), mask=m)
    tl.store(mean + r, mu)
    tl.store(rstd + r, s)


@triton.jit
def softmax_kernel(x, y, M, N, BR: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    cidx = tl.arange(0, BN)
    m = (r[:, None] < M) & (cidx[None, :] < N)
    v = tl.load(x + r[:, None] * N + cidx[None, :], mask=m, other=float("-inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 1)[:, None])
    tl.store(y + r[:, None] * N + cidx[None, :], (e / tl.sum(e, 1)[:, None]).to(y.dtype.element_ty), mask=m)


@triton.jit
def softmax_persistent_kernel(x, y, M, N, BN: tl.constexpr):
    """Grid-stride over rows with tl.num_programs (reads the grid size at run time)."""
    for r in range(tl.program_id(0), M, tl.num_programs(0)):
        cidx = tl.arange(0, BN)
        m = cidx < N
        v = tl.load(x + r * N + cidx, mask=m, other=float("-inf")).to(tl.float32)
        e = tl.exp(v - tl.max(v, 0))
        tl.store(y + r * N + cidx, (e / tl.sum(e, 0)).to(y.dtype.element_ty), mask=m)


@triton.jit
def cross_entropy_kernel(x, t, loss, lse, N, BN: tl.constexpr):
    """online softmax over chunks: loss[r] = lse - x[r, t[r]]."""
    r = tl.program_id(0)
    c = tl.arange(0, BN)
    m = tl.full((BN, ), float("-inf"), tl.float32)
    s = tl.zeros((BN, ), tl.float32)
    for n in range(0, N, BN):
        v = tl.load(x + r * N + n + c, mask=n + c < N, other=float("-inf")).to(tl.float32)
        mn = tl.maximum(tl.maximum(m, v), -1e30)
        s = s * tl.exp(m - mn) + tl.exp(v - mn)
        m = mn
    mm = tl.max(m, 0)
    z = mm + tl.log(tl.sum(s * tl.exp(m - mm), 0))
    tl.store(lse + r, z)
    tl.store(loss + r, z - tl.load(x + r * N + tl.load(t + r)).to(tl.float32))


for t in ("bf16", "fp32"):
    case(f"rmsnorm_fwd_{t}_4096", rmsnorm_fwd_kernel, f"x:*{t} w:*{t} y:*{t} rstd:*fp32 M:i32 N:i32! eps:fp32",
         dict(BR=1, BN=4096), "[cdiv(M,{BR}),1,1]", requires="N<=BN")
case("rmsnorm_fwd_bf16_rows4_512", rmsnorm_fwd_kernel, "x:*bf16 w:*bf16 y:*bf16 rstd:*fp32 M:i32 N:i32! eps:fp32",
     dict(BR=4, BN=512), "[cdiv(M,{BR}),1,1]", requires="N<=BN")
case("rmsnorm_fwd_bf16_rows16_oddN", rmsnorm_fwd_kernel, "x:*bf16 w:*bf16 y:*bf16 rstd:*fp32 M:i32 N:i32 eps:fp32",
     dict(BR=16, BN=128), "[cdiv(M,{BR}),1,1]", requires="N<=BN")
case("rmsnorm_fwd_loop_bf16", rmsnorm_fwd_loop_kernel, "x:*bf16 w:*bf16 y:*bf16 rstd:*fp32 N:i32! eps:fp32",
     dict(BN=4096), "[M,1,1]", warps=8)
case("rmsnorm_bwd_bf16_2048", rmsnorm_bwd_kernel,
     "dy:*bf16 x:*bf16 w:*bf16 rstd:*fp32 dx:*bf16 dwp:*fp32 M:i32 N:i32! rows_per:i32",
     dict(BN=2048), "[cdiv(M,rows_per),1,1]", requires="N<=BN")
case("layernorm_fwd_f16_1024", layernorm_fwd_kernel,
     "x:*fp16 w:*fp16 b:*fp16 y:*fp16 mean:*fp32 rstd:*fp32 N:i32! eps:fp32", dict(BN=1024), "[M,1,1]")
case("softmax_f32_1024", softmax_kernel, "x:*fp32 y:*fp32 M:i32 N:i32!", dict(BR=1, BN=1024), "[cdiv(M,{BR}),1,1]")
case("softmax_bf16_rows8_256", softmax_kernel, "x:*bf16 y:*bf16 M:i32 N:i32", dict(BR=8, BN=256), "[cdiv(M,{BR}),1,1]")
case("softmax_persistent_f32_1024", softmax_persistent_kernel, "x:*fp32 y:*fp32 M:i32 N:i32", dict(BN=1024),
     "[min(M,256),1,1]")
case("cross_entropy_bf16", cross_entropy_kernel, "x:*bf16 t:*i32 loss:*fp32 lse:*fp32 N:i32", dict(BN=1024), "[M,1,1]")
