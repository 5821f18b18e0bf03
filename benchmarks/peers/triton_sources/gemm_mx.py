"""Microscaled GEMMs: one e8m0 scale per 32 k."""
import triton
import triton.language as tl

from triton_sources.table import case, GRID_2D, MFMA16

@triton.jit
def gemm_mx_kernel(a, b, sa, sb, c, M, N, K, lda, ldb, ldc, lsa, lsb,
                   FA: tl.constexpr, FB: tl.constexpr, A_SCALED: tl.constexpr, HAS_TAIL: tl.constexpr,
                   BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = (A*2^(sa-127)) @ (B*2^(sb-127))^T, one e8m0 scale per 32 k.
    A [M, K] (e4m3: bytes; e2m1: [M, K/2] packed, low nibble first), B stored [N, K] the same way,
    sa [M, K/32] u8, sb [N, K/32] u8.  lda/ldb in bytes (elements of the stored array)."""
    DA: tl.constexpr = 2 if FA == "e2m1" else 1
    DB: tl.constexpr = 2 if FB == "e2m1" else 1
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rka = tl.arange(0, BK // DA)
    rkb = tl.arange(0, BK // DB)
    rks = tl.arange(0, BK // 32)
    ap = a + (rm % M)[:, None] * lda + rka[None, :]
    bp = b + rkb[:, None] + (rn % N)[None, :] * ldb
    sap = sa + (rm % M)[:, None] * lsa + rks[None, :]
    sbp = sb + (rn % N)[:, None] * lsb + rks[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        if HAS_TAIL:
            x = tl.load(ap, mask=rka[None, :] < (K - k * BK) // DA, other=0)
            y = tl.load(bp, mask=rkb[:, None] < (K - k * BK) // DB, other=0)
            vb = tl.load(sbp, mask=rks[None, :] < (K - k * BK) // 32, other=127)
            va = tl.load(sap, mask=rks[None, :] < (K - k * BK) // 32, other=127)
        else:
            x = tl.load(ap)
            y = tl.load(bp)
            vb = tl.load(sbp)
            va = tl.load(sap)
        if A_SCALED:
            acc = tl.dot_scaled(x, va, FA, y, vb, FB, acc)
        else:
            acc = tl.dot_scaled(x, None, FA, y, vb, FB, acc)
        ap += BK // DA
        bp += BK // DB
        sap += BK // 32
        sbp += BK // 32
    tl.store(c + rm[:, None] * ldc + rn[None, :], acc.to(c.dtype.element_ty),
             mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def gemm_mxfp4_npack_kernel(a, b, sa, sb, c, M, N, K, lda, ldb, ldc, lsa, lsb,
                            BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """MXFP4 with B stored [K, N/2], two consecutive n per byte (rhs_k_pack=False); sb [N, K/32]."""
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rnp = pn * (BN // 2) + tl.arange(0, BN // 2)
    rka = tl.arange(0, BK // 2)
    rk = tl.arange(0, BK)
    rks = tl.arange(0, BK // 32)
    ap = a + (rm % M)[:, None] * lda + rka[None, :]
    bp = b + rk[:, None] * ldb + rnp[None, :]
    sap = sa + (rm % M)[:, None] * lsa + rks[None, :]
    sbp = sb + (rn % N)[:, None] * lsb + rks[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        acc = tl.dot_scaled(tl.load(ap), tl.load(sap), "e2m1", tl.load(bp), tl.load(sbp), "e2m1", acc,
                            rhs_k_pack=False)
        ap += BK // 2
        bp += BK * ldb
        sap += BK // 32
        sbp += BK // 32
    tl.store(c + rm[:, None] * ldc + rn[None, :], acc.to(c.dtype.element_ty),
             mask=(rm[:, None] < M) & (rn[None, :] < N))


def mx(name, fa, fb, bm, bn, bk, scaled=True, tail=False, **kw):
    ty = {"e4m3": "fp8e4nv", "e5m2": "fp8e5", "e2m1": "u8", "bf16": "bf16", "fp16": "fp16"}
    case(name, gemm_mx_kernel,
         f"a:*{ty[fa]} b:*{ty[fb]} sa:*u8 sb:*u8 c:*bf16 M:i32 N:i32 K:i32! lda:i32! ldb:i32! ldc:i32! lsa:i32 lsb:i32",
         dict(FA=fa, FB=fb, A_SCALED=scaled, HAS_TAIL=tail, BM=bm, BN=bn, BK=bk), GRID_2D,
         requires="K%32==0" if tail else f"K%{bk}==0", **kw)


mx("gemm_mxfp8_128x128x128", "e4m3", "e4m3", 128, 128, 128)
mx("gemm_mxfp8_mfma16_128x128x128", "e4m3", "e4m3", 128, 128, 128, **MFMA16)
mx("gemm_mxfp4_mfma16_128x128x256", "e2m1", "e2m1", 128, 128, 256, **MFMA16)
mx("gemm_mxfp8_mxfp4_mfma16_64x128x128", "e4m3", "e2m1", 64, 128, 128, **MFMA16)
case("gemm_mxfp4_npack_64x64x128", gemm_mxfp4_npack_kernel,
     "a:*u8 b:*u8 sa:*u8 sb:*u8 c:*bf16 M:i32 N:i32 K:i32! lda:i32! ldb:i32! ldc:i32! lsa:i32 lsb:i32",
     dict(BM=64, BN=64, BK=128), GRID_2D, requires="K%128==0, N%64==0")
case("gemm_mxfp4_npack_mfma16_64x64x128", gemm_mxfp4_npack_kernel,
     "a:*u8 b:*u8 sa:*u8 sb:*u8 c:*bf16 M:i32 N:i32 K:i32! lda:i32! ldb:i32! ldc:i32! lsa:i32 lsb:i32",
     dict(BM=64, BN=64, BK=128), GRID_2D, requires="K%128==0, N%64==0", **MFMA16)
mx("gemm_mxfp4_128x128x256", "e2m1", "e2m1", 128, 128, 256)
mx("gemm_mxfp4_256x256x256_w8", "e2m1", "e2m1", 256, 256, 256, warps=8)
mx("gemm_mxfp4_tail_64x64x128", "e2m1", "e2m1", 64, 64, 128, tail=True)
mx("gemm_mxfp8_mxfp4_128x128x128", "e4m3", "e2m1", 128, 128, 128)
mx("gemm_mxbf8_mxfp8_128x128x128", "e5m2", "e4m3", 128, 128, 128)
mx("gemm_bf16_mxfp4_64x64x128", "bf16", "e2m1", 64, 64, 128, scaled=False)
mx("gemm_bf16_mxfp8_64x64x128", "bf16", "e4m3", 64, 64, 128, scaled=False)
