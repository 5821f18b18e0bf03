"""Arithmetic, conversions, random numbers and quantisation, element by element."""
import triton
import triton.language as tl
from triton.language.extra import libdevice

from triton_sources.table import case

@triton.jit
def grid3d_kernel(out, BLOCK: tl.constexpr):
    """out[((z*ny+y)*nx+x)*BLOCK + i] = x + 1000*y + 1000000*z + i; uses all program ids and counts."""
    x = tl.program_id(0)
    y = tl.program_id(1)
    z = tl.program_id(2)
    lin = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    i = tl.arange(0, BLOCK)
    tl.store(out + lin * BLOCK + i, x + 1000 * y + 1000000 * z + i)


@triton.jit
def math_kernel(x, y, N, BLOCK: tl.constexpr):
    """sin+cos+log+exp+sqrt+tanh+erf+pow+div+floor+fmod in one row of outputs, f32."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < N
    v = tl.load(x + i, mask=m, other=1.0)
    tl.store(y + 0 * N + i, tl.sin(v), mask=m)
    tl.store(y + 1 * N + i, tl.cos(v), mask=m)
    tl.store(y + 2 * N + i, tl.log(v), mask=m)
    tl.store(y + 3 * N + i, tl.exp(v), mask=m)
    tl.store(y + 4 * N + i, tl.sqrt_rn(v), mask=m)
    tl.store(y + 5 * N + i, libdevice.tanh(v), mask=m)
    tl.store(y + 6 * N + i, tl.erf(v), mask=m)
    tl.store(y + 7 * N + i, libdevice.pow(v, 1.7), mask=m)
    tl.store(y + 8 * N + i, tl.div_rn(1.0, v), mask=m)
    tl.store(y + 9 * N + i, tl.floor(v), mask=m)
    tl.store(y + 10 * N + i, libdevice.fmod(v, 3.0), mask=m)


@triton.jit
def math64_kernel(x, y, N, BLOCK: tl.constexpr):
    """exp, log, sqrt, 1/x, x*x+1, max(x,2), floor of f64."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < N
    v = tl.load(x + i, mask=m, other=1.0)
    tl.store(y + 0 * N + i, tl.exp(v), mask=m)
    tl.store(y + 1 * N + i, tl.log(v), mask=m)
    tl.store(y + 2 * N + i, tl.sqrt(v), mask=m)
    tl.store(y + 3 * N + i, 1.0 / v, mask=m)
    tl.store(y + 4 * N + i, v * v + 1.0, mask=m)
    tl.store(y + 5 * N + i, tl.maximum(v, 2.0), mask=m)
    tl.store(y + 6 * N + i, tl.floor(v), mask=m)


@triton.jit
def int_kernel(x, y, o, o64, N, BLOCK: tl.constexpr):
    """integer division/remainder/mulhi/shift, i32 and i64."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < N
    a = tl.load(x + i, mask=m, other=1)
    b = tl.load(y + i, mask=m, other=1)
    tl.store(o + i, a // b, mask=m)
    tl.store(o + N + i, a % b, mask=m)
    tl.store(o + 2 * N + i, tl.umulhi(a.to(tl.uint32), b.to(tl.uint32)).to(tl.int32), mask=m)
    tl.store(o + 3 * N + i, (a << (b & 31)) ^ (a >> (b & 31)), mask=m)
    a6 = a.to(tl.int64) * 1000003 + b
    b6 = b.to(tl.int64) | 1
    tl.store(o64 + i, a6 * b6, mask=m)
    tl.store(o64 + N + i, a6 // b6, mask=m)


@triton.jit
def addcmul_kernel(a, b, c, y, N, BLOCK: tl.constexpr):
    """y = max(a*b + c, 0) - a, in the storage type (packed 16-bit forms)."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < N
    av = tl.load(a + i, mask=m, other=0)
    bv = tl.load(b + i, mask=m, other=0)
    cv = tl.load(c + i, mask=m, other=0)
    z = av * bv + cv
    tl.store(y + i, tl.maximum(z, 0) - av, mask=m)


@triton.jit
def dropout_kernel(x, y, N, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < N
    v = tl.load(x + i, mask=m, other=0.0).to(tl.float32)
    keep = tl.rand(seed, i) > p
    tl.store(y + i, tl.where(keep, v / (1 - p), 0.0).to(y.dtype.element_ty), mask=m)


@triton.jit
def cast_kernel(x, y, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < N
    tl.store(y + i, tl.load(x + i, mask=m, other=0.0).to(y.dtype.element_ty), mask=m)


@triton.jit
def quant_mxfp8_kernel(x, y, s, N, BR: tl.constexpr):
    """BR blocks of 32 values -> e4m3 + e8m0 (floor(log2(amax))-8)."""
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    i = r[:, None] * 32 + tl.arange(0, 32)[None, :]
    m = i < N
    v = tl.load(x + i, mask=m, other=0.0).to(tl.float32)
    amax = tl.max(tl.abs(v), 1)
    e = (amax.to(tl.int32, bitcast=True) >> 23) & 0xFF
    e = tl.maximum(e - 8, 0)
    inv = ((254 - e) << 23).to(tl.float32, bitcast=True)
    q = tl.clamp(v * inv[:, None], -448.0, 448.0)
    tl.store(y + i, q.to(y.dtype.element_ty), mask=m)
    tl.store(s + r, e.to(tl.uint8), mask=r * 32 < N)


@triton.jit
def swiglu_kernel(g, u, y, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < N
    a = tl.load(g + i, mask=m, other=0.0).to(tl.float32)
    b = tl.load(u + i, mask=m, other=0.0).to(tl.float32)
    tl.store(y + i, (a * tl.sigmoid(a) * b).to(y.dtype.element_ty), mask=m)


case("grid3d_i32", grid3d_kernel, "out:*i32", dict(BLOCK=64), "[nx,ny,nz]", warps=1)
for t in ("fp16", "bf16", "i16", "i8", "fp64"):
    case(f"addcmul_{t}", addcmul_kernel, f"a:*{t} b:*{t} c:*{t} y:*{t} N:i32!", dict(BLOCK=1024),
         "[cdiv(N,{BLOCK}),1,1]")
case("math_f32", math_kernel, "x:*fp32 y:*fp32 N:i32!", dict(BLOCK=256), "[cdiv(N,{BLOCK}),1,1]")
case("math_f32_unfused", math_kernel, "x:*fp32 y:*fp32 N:i32!", dict(BLOCK=256), "[cdiv(N,{BLOCK}),1,1]",
     options=dict(enable_fp_fusion=False))
case("math_f64", math64_kernel, "x:*fp64 y:*fp64 N:i32!", dict(BLOCK=256), "[cdiv(N,{BLOCK}),1,1]")
case("int_i32_i64", int_kernel, "x:*i32 y:*i32 o:*i32 o64:*i64 N:i32!", dict(BLOCK=256), "[cdiv(N,{BLOCK}),1,1]")
case("dropout_bf16", dropout_kernel, "x:*bf16 y:*bf16 N:i32 p:fp32 seed:i32", dict(BLOCK=1024),
     "[cdiv(N,{BLOCK}),1,1]")
for s, d in (("fp32", "fp8e4nv"), ("fp32", "fp8e5"), ("fp8e4nv", "bf16"), ("fp8e5", "fp32"), ("bf16", "fp8e4nv"),
             ("fp32", "bf16"), ("fp16", "fp32"), ("fp64", "fp32"), ("i32", "fp16")):
    case(f"cast_{s}_to_{d}", cast_kernel, f"x:*{s} y:*{d} N:i32!", dict(BLOCK=1024), "[cdiv(N,{BLOCK}),1,1]")
case("quant_mxfp8_bf16", quant_mxfp8_kernel, "x:*bf16 y:*fp8e4nv s:*u8 N:i32!", dict(BR=32),
     "[cdiv(N,32*{BR}),1,1]")
case("swiglu_bf16", swiglu_kernel, "g:*bf16 u:*bf16 y:*bf16 N:i32!", dict(BLOCK=2048), "[cdiv(N,{BLOCK}),1,1]")
