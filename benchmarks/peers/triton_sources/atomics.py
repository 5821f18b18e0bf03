"""Atomic operations of 16, 32 and 64 bits."""
import triton
import triton.language as tl

from triton_sources.table import case

@triton.jit
def atomics_kernel(keys, cnt, fsum, fmax, imax, imin, ior, lastpos, lock, total, N, BLOCK: tl.constexpr):
    """Histogram and friends.  keys i32 in [0, bins); per-bin: cnt += 1, fsum += key*0.5 (f32),
    fmax = max(f32), imax/imin = max/min index, ior |= key, lastpos xchg; then a CAS spin lock around total += n."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < N
    kx = tl.load(keys + i, mask=m, other=0)
    tl.atomic_add(cnt + kx, 1, mask=m)
    tl.atomic_add(fsum + kx, kx.to(tl.float32) * 0.5, mask=m, sem="relaxed")
    tl.atomic_max(fmax + kx, i.to(tl.float32), mask=m)
    tl.atomic_max(imax + kx, i, mask=m)
    tl.atomic_min(imin + kx, i, mask=m)
    tl.atomic_or(ior + kx, kx, mask=m)
    tl.atomic_xchg(lastpos + kx, i, mask=m)
    n = tl.sum(m.to(tl.int32), 0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total, volatile=True) + n)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def atomics64_kernel(keys, c64, f64, a32, x32, N, BLOCK: tl.constexpr):
    """c64[key] += i (i64), f64[key] += i*0.25, a32[key] &= ~(1<<(i&31)), x32[key] ^= i."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < N
    kx = tl.load(keys + i, mask=m, other=0)
    tl.atomic_add(c64 + kx, i.to(tl.int64), mask=m)
    tl.atomic_add(f64 + kx, i.to(tl.float64) * 0.25, mask=m)
    tl.atomic_and(a32 + kx, ~(1 << (i & 31)), mask=m)
    tl.atomic_xor(x32 + kx, i, mask=m)


@triton.jit
def atomic_pk_kernel(idx, src, dst, N, D, BLOCK: tl.constexpr):
    """index_add_ rows: dst[idx[i], :] += src[i, :] with packed 16-bit atomics."""
    i = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    m = c < D
    t = tl.load(idx + i)
    tl.atomic_add(dst + t * D + c, tl.load(src + i * D + c, mask=m, other=0.0), mask=m, sem="relaxed")


case("atomics_i32_f32", atomics_kernel,
     "keys:*i32 cnt:*i32 fsum:*fp32 fmax:*fp32 imax:*i32 imin:*i32 ior:*i32 lastpos:*i32 lock:*i32 total:*i32 N:i32",
     dict(BLOCK=256), "[cdiv(N,{BLOCK}),1,1]")
case("atomics_global_i32_f32", atomics_kernel,
     "keys:*i32 cnt:*i32 fsum:*fp32 fmax:*fp32 imax:*i32 imin:*i32 ior:*i32 lastpos:*i32 lock:*i32 total:*i32 N:i32",
     dict(BLOCK=256), "[cdiv(N,{BLOCK}),1,1]", buffers=False)
case("atomics64", atomics64_kernel, "keys:*i32 c64:*i64 f64:*fp64 a32:*i32 x32:*i32 N:i32", dict(BLOCK=256),
     "[cdiv(N,{BLOCK}),1,1]")
for t in ("bf16", "fp16"):
    case(f"index_add_{t}", atomic_pk_kernel, f"idx:*i32 src:*{t} dst:*{t} N:i32 D:i32!", dict(BLOCK=512),
         "[N,cdiv(D,{BLOCK}),1]")
