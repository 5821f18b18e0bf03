"""Dense GEMMs, and grouped, split-K and scaled ones."""
import triton
import triton.language as tl

from triton_sources.table import case, GRID_1D, GRID_2D, MFMA16

@triton.jit
def gemm_kernel(a, b, c, M, N, K, lda, ldb, ldc,
                TA: tl.constexpr, TB: tl.constexpr, EVEN_K: tl.constexpr,
                BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP_M: tl.constexpr,
                ACC: tl.constexpr):
    """C[M,N] = A[M,K] @ B[K,N]; row-major storage; TA: A stored [K,M]; TB: B stored [N,K]."""
    pid = tl.program_id(0)
    nm = tl.cdiv(M, BM)
    nn = tl.cdiv(N, BN)
    width = GROUP_M * nn
    gid = pid // width
    gsz = min(nm - gid * GROUP_M, GROUP_M)
    pm = gid * GROUP_M + (pid % width) % gsz
    pn = (pid % width) // gsz
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    am = rm % M
    bn = rn % N
    if TA:
        ap = a + am[:, None] + rk[None, :] * lda
    else:
        ap = a + am[:, None] * lda + rk[None, :]
    if TB:
        bp = b + rk[:, None] + bn[None, :] * ldb
    else:
        bp = b + rk[:, None] * ldb + bn[None, :]
    acc = tl.zeros((BM, BN), dtype=ACC)
    for k in range(0, tl.cdiv(K, BK)):
        if EVEN_K:
            x = tl.load(ap)
            y = tl.load(bp)
        else:
            x = tl.load(ap, mask=rk[None, :] < K - k * BK, other=0.0)
            y = tl.load(bp, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(x, y, acc, out_dtype=ACC)
        if TA:
            ap += BK * lda
        else:
            ap += BK
        if TB:
            bp += BK
        else:
            bp += BK * ldb
    cp = c + rm[:, None] * ldc + rn[None, :]
    tl.store(cp, acc.to(c.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def gemm_bias_gelu_kernel(a, b, bias, c, M, N, K, lda, ldb, ldc,
                          BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = gelu_erf(A[M,K] @ B[N,K]^T + bias[N])"""
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    ap = a + (rm % M)[:, None] * lda + rk[None, :]
    bp = b + rk[:, None] + (rn % N)[None, :] * ldb
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(tl.load(ap), tl.load(bp), acc)
        ap += BK
        bp += BK
    bv = tl.load(bias + rn, mask=rn < N, other=0.0).to(tl.float32)
    z = acc + bv[None, :]
    z = 0.5 * z * (1.0 + tl.math.erf(z * 0.7071067811865476))
    tl.store(c + rm[:, None] * ldc + rn[None, :], z.to(c.dtype.element_ty),
             mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def gemm_fp8_rowwise_kernel(a, b, sa, sb, c, M, N, K, lda, ldb, ldc,
                            BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = (A_fp8[M,K] @ B_fp8[N,K]^T) * sa[M] * sb[N]"""
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    ap = a + (rm % M)[:, None] * lda + rk[None, :]
    bp = b + rk[:, None] + (rn % N)[None, :] * ldb
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(tl.load(ap), tl.load(bp), acc)
        ap += BK
        bp += BK
    va = tl.load(sa + rm, mask=rm < M, other=0.0)
    vb = tl.load(sb + rn, mask=rn < N, other=0.0)
    acc = acc * va[:, None] * vb[None, :]
    tl.store(c + rm[:, None] * ldc + rn[None, :], acc.to(c.dtype.element_ty),
             mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def gemm_fp8_block_kernel(a, b, sa, sb, c, M, N, K, lda, ldb, ldc, lsa, lsb,
                          BM: tl.constexpr, BN: tl.constexpr):
    """DeepSeek style: sa[M, K/128] f32, sb[N/128, K/128] f32; BK = 128."""
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, 128)
    ap = a + (rm % M)[:, None] * lda + rk[None, :]
    bp = b + rk[:, None] + (rn % N)[None, :] * ldb
    sap = sa + (rm % M) * lsa
    sbp = sb + ((rn % N) // 128) * lsb
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K // 128):
        va = tl.load(sap + k)
        vb = tl.load(sbp + k)
        acc += tl.dot(tl.load(ap), tl.load(bp)) * va[:, None] * vb[None, :]
        ap += 128
        bp += 128
    tl.store(c + rm[:, None] * ldc + rn[None, :], acc.to(c.dtype.element_ty),
             mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def gemm_splitk_kernel(a, b, c, M, N, K, lda, ldb, ldc, SPLIT: tl.constexpr,
                       BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C (fp32, zeroed) += A[M,K] @ B[N,K]^T, split over program_id(2) with atomic adds; K % (BK*SPLIT) == 0."""
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    pk = tl.program_id(2)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rk = pk * BK + tl.arange(0, BK)
    ap = a + (rm % M)[:, None] * lda + rk[None, :]
    bp = b + rk[:, None] + (rn % N)[None, :] * ldb
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK * SPLIT)):
        acc = tl.dot(tl.load(ap), tl.load(bp), acc)
        ap += BK * SPLIT
        bp += BK * SPLIT
    tl.atomic_add(c + rm[:, None] * ldc + rn[None, :], acc.to(c.dtype.element_ty),
                  mask=(rm[:, None] < M) & (rn[None, :] < N), sem="relaxed")


@triton.jit
def grouped_gemm_kernel(a, b, c, offs, G, N, K, lda, ldc,
                        BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, NPROG: tl.constexpr):
    """Persistent 2D x 3D grouped GEMM: rows offs[g-1]..offs[g]-1 of A[totalM,K] use B[g,K,N] (row-major)."""
    tile = tl.program_id(0)
    nn = tl.cdiv(N, BN)
    start = 0
    done = 0
    for g in range(0, G):
        end = tl.load(offs + g)
        m = end - start
        tiles = tl.cdiv(m, BM) * nn
        while (tile >= done) & (tile < done + tiles):
            t = tile - done
            pm = t // nn
            pn = t % nn
            rm = pm * BM + tl.arange(0, BM)
            rn = pn * BN + tl.arange(0, BN)
            rk = tl.arange(0, BK)
            ap = a + (start + rm % m)[:, None] * lda + rk[None, :]
            bp = b + rk[:, None] * N + (rn % N)[None, :]
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for k in range(0, tl.cdiv(K, BK)):
                x = tl.load(ap, mask=rk[None, :] < K - k * BK, other=0.0)
                y = tl.load(bp, mask=rk[:, None] < K - k * BK, other=0.0)
                acc = tl.dot(x, y, acc)
                ap += BK
                bp += BK * N
            tl.store(c + (start + rm)[:, None] * ldc + rn[None, :], acc.to(c.dtype.element_ty),
                     mask=(rm[:, None] < m) & (rn[None, :] < N))
            tile += NPROG
        done += tiles
        start = end
        b += N * K


def gemm_signature(i, o, s="i32!"):
    return f"a:*{i} b:*{i} c:*{o} M:i32 N:i32 K:{s} lda:{s} ldb:{s} ldc:{s}"


def gemm(name, i, o, bm, bn, bk, ta=False, tb=True, even=True, acc=tl.float32, s="i32!", group=4, **kw):
    case(name, gemm_kernel, gemm_signature(i, o, s),
         dict(TA=ta, TB=tb, EVEN_K=even, BM=bm, BN=bn, BK=bk, GROUP_M=group, ACC=acc), GRID_1D,
         requires=f"K%{bk}==0" if even else "any K", **kw)


gemm("gemm_bf16_nt_128x128x64", "bf16", "bf16", 128, 128, 64)
gemm("gemm_bf16_nn_128x128x64", "bf16", "bf16", 128, 128, 64, tb=False)
gemm("gemm_bf16_tn_128x128x64", "bf16", "bf16", 128, 128, 64, ta=True, tb=True)
gemm("gemm_bf16_nt_tail_64x64x32", "bf16", "bf16", 64, 64, 32, even=False, s="i32")
gemm("gemm_bf16_nt_256x256x64_w8", "bf16", "bf16", 256, 256, 64, warps=8)
gemm("gemm_bf16_nt_128x128x64_s3", "bf16", "bf16", 128, 128, 64, stages=3)
gemm("gemm_bf16_nt_128x128x64_global", "bf16", "bf16", 128, 128, 64, buffers=False)
gemm("gemm_bf16_nt_16x64x128_w1", "bf16", "bf16", 16, 64, 128, warps=1)
gemm("gemm_bf16_nt_mfma16_128x128x64", "bf16", "bf16", 128, 128, 64, **MFMA16)
gemm("gemm_bf16_nn_mfma16_128x128x64", "bf16", "bf16", 128, 128, 64, tb=False, **MFMA16)
gemm("gemm_f16_nt_mfma16_128x128x64", "fp16", "fp16", 128, 128, 64, **MFMA16)
gemm("gemm_i8_nt_mfma16_64x64x128", "i8", "i32", 64, 64, 128, acc=tl.int32, **MFMA16)
gemm("gemm_f32_nt_mfma16_64x64x32", "fp32", "fp32", 64, 64, 32, **MFMA16)
gemm("gemm_fp8_nt_mfma16_128x128x128", "fp8e4nv", "bf16", 128, 128, 128, **MFMA16)
gemm("gemm_fp8_nn_mfma16_64x64x128", "fp8e4nv", "bf16", 64, 64, 128, tb=False, **MFMA16)
gemm("gemm_fp8_k32_mfma16_64x64x32", "fp8e4nv", "bf16", 64, 64, 32, **MFMA16)
gemm("gemm_bf16_nt_128x128x64_wpe2", "bf16", "bf16", 128, 128, 64, options=dict(waves_per_eu=2))
gemm("gemm_f16_nt_128x128x64", "fp16", "fp16", 128, 128, 64)
gemm("gemm_f16_nn_f32out_64x128x32", "fp16", "fp32", 64, 128, 32, tb=False)
gemm("gemm_f32_nn_64x64x32", "fp32", "fp32", 64, 64, 32, tb=False)
gemm("gemm_f64_nn_32x32x16", "fp64", "fp64", 32, 32, 16, tb=False, acc=tl.float64)
gemm("gemm_i8_nt_128x128x128", "i8", "i32", 128, 128, 128, acc=tl.int32)
gemm("gemm_fp8_nt_128x128x128", "fp8e4nv", "bf16", 128, 128, 128)
gemm("gemm_fp8_nn_128x128x128", "fp8e4nv", "bf16", 128, 128, 128, tb=False)
gemm("gemm_bf8_nt_128x128x64", "fp8e5", "bf16", 128, 128, 64)
case("gemm_bias_gelu_bf16_128x128x64", gemm_bias_gelu_kernel,
     "a:*bf16 b:*bf16 bias:*bf16 c:*bf16 M:i32 N:i32 K:i32! lda:i32! ldb:i32! ldc:i32!",
     dict(BM=128, BN=128, BK=64), GRID_2D, requires="K%64==0")
case("gemm_fp8_rowwise_256x128x128", gemm_fp8_rowwise_kernel,
     "a:*fp8e4nv b:*fp8e4nv sa:*fp32 sb:*fp32 c:*bf16 M:i32 N:i32 K:i32! lda:i32! ldb:i32! ldc:i32!",
     dict(BM=256, BN=128, BK=128), GRID_2D, warps=8, requires="K%128==0")
case("gemm_fp8_blockscale_128x128", gemm_fp8_block_kernel,
     "a:*fp8e4nv b:*fp8e4nv sa:*fp32 sb:*fp32 c:*bf16 M:i32 N:i32 K:i32! lda:i32! ldb:i32! ldc:i32! lsa:i32 lsb:i32",
     dict(BM=128, BN=128), GRID_2D, requires="K%128==0")
case("gemm_bf16_splitk_64x64x64", gemm_splitk_kernel, gemm_signature("bf16", "fp32"),
     dict(SPLIT=4, BM=64, BN=64, BK=64), "[cdiv(M,{BM}),cdiv(N,{BN}),{SPLIT}]", requires="K%256==0; c zeroed")
case("gemm_bf16_splitk_bf16_64x64x64", gemm_splitk_kernel, gemm_signature("bf16", "bf16"),
     dict(SPLIT=4, BM=64, BN=64, BK=64), "[cdiv(M,{BM}),cdiv(N,{BN}),{SPLIT}]", requires="K%256==0; c zeroed")
case("grouped_gemm_bf16_128x128x64", grouped_gemm_kernel,
     "a:*bf16 b:*bf16 c:*bf16 offs:*i32 G:i32 N:i32! K:i32! lda:i32! ldc:i32!",
     dict(BM=128, BN=128, BK=64, NPROG=256), "[{NPROG},1,1]")
