"""Flash attention, forward and backward."""
import triton
import triton.language as tl

from triton_sources.table import case, MFMA16

@triton.jit
def flash_fwd_kernel(q, k, v, o, lse, Sq, Sk, H, HKV, scale_log2,
                     sqb, sqh, sqs, skb, skh, sks, svb, svh, svs, sob, soh, sos,
                     D: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """softmax(q k^T * scale) v, GQA, last dim contiguous; scale_log2 = scale*log2(e); lse natural log [B,H,Sq]."""
    pm = tl.program_id(0)
    bh = tl.program_id(1)
    bb = bh // H
    h = bh % H
    hk = h // (H // HKV)
    rm = pm * BM + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    rd = tl.arange(0, D)
    qq = tl.load(q + bb * sqb + h * sqh + rm[:, None] * sqs + rd[None, :], mask=rm[:, None] < Sq, other=0.0)
    kp = k + bb * skb + hk * skh + rd[:, None] + rn[None, :] * sks
    vp = v + bb * svb + hk * svh + rn[:, None] * svs + rd[None, :]
    mi = tl.full((BM, ), float("-inf"), tl.float32)
    li = tl.zeros((BM, ), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    hi = Sk
    if CAUSAL:
        hi = min(Sk, (pm + 1) * BM + Sk - Sq)
    for n in range(0, hi, BN):
        ok = (n + rn) < Sk
        kk = tl.load(kp, mask=ok[None, :], other=0.0)
        s = tl.dot(qq, kk) * scale_log2
        s = tl.where(ok[None, :], s, float("-inf"))
        if CAUSAL:
            s = tl.where((n + rn)[None, :] <= rm[:, None] + Sk - Sq, s, float("-inf"))
        mn = tl.maximum(mi, tl.max(s, 1))
        p = tl.exp2(s - mn[:, None])
        al = tl.exp2(mi - mn)
        li = li * al + tl.sum(p, 1)
        vv = tl.load(vp, mask=ok[:, None], other=0.0)
        acc = tl.dot(p.to(vv.dtype), vv, acc * al[:, None])
        mi = mn
        kp += BN * sks
        vp += BN * svs
    acc = acc / li[:, None]
    tl.store(o + bb * sob + h * soh + rm[:, None] * sos + rd[None, :], acc.to(o.dtype.element_ty),
             mask=rm[:, None] < Sq)
    tl.store(lse + bh * Sq + rm, (mi + tl.log2(li)) * 0.6931471805599453, mask=rm < Sq)


@triton.jit
def flash_bwd_kernel(q, k, v, do, lse, delta, dq, dk, dv, S, scale, ss,
                     D: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """One (batch*head) plane [S, D] per program_id(1), row stride ss; dk/dv per K block, dq (fp32) by atomics."""
    pn = tl.program_id(0)
    bh = tl.program_id(1)
    base = bh * S * ss
    rn = pn * BN + tl.arange(0, BN)
    rd = tl.arange(0, D)
    rm0 = tl.arange(0, BM)
    kn = rn[:, None] * ss + rd[None, :]
    ok = rn[:, None] < S
    kk = tl.load(k + base + kn, mask=ok, other=0.0)
    vv = tl.load(v + base + kn, mask=ok, other=0.0)
    adk = tl.zeros((BN, D), tl.float32)
    adv = tl.zeros((BN, D), tl.float32)
    lo = 0
    if CAUSAL:
        lo = (pn * BN // BM) * BM
    for m in range(lo, S, BM):
        rm = m + rm0
        qm = rm[:, None] < S
        qo = rm[:, None] * ss + rd[None, :]
        qq = tl.load(q + base + qo, mask=qm, other=0.0)
        dd = tl.load(do + base + qo, mask=qm, other=0.0)
        l = tl.load(lse + bh * S + rm, mask=rm < S, other=0.0)
        de = tl.load(delta + bh * S + rm, mask=rm < S, other=0.0)
        s = tl.dot(qq, tl.trans(kk)) * scale
        p = tl.exp(s - l[:, None])
        p = tl.where(qm & (rn[None, :] < S), p, 0.0)
        if CAUSAL:
            p = tl.where(rn[None, :] <= rm[:, None], p, 0.0)
        adv = tl.dot(tl.trans(p.to(dd.dtype)), dd, adv)
        dp = tl.dot(dd, tl.trans(vv))
        ds = (p * (dp - de[:, None]) * scale).to(qq.dtype)
        adk = tl.dot(tl.trans(ds), qq, adk)
        dqv = tl.dot(ds, kk)
        tl.atomic_add(dq + base + qo, dqv, mask=qm, sem="relaxed")
    tl.store(dk + base + kn, adk.to(dk.dtype.element_ty), mask=ok)
    tl.store(dv + base + kn, adv.to(dv.dtype.element_ty), mask=ok)


@triton.jit
def flash_fp8_kernel(q, k, v, o, S, scale_log2, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Non-causal e4m3 attention, one contiguous [S, D] plane per program_id(1), S % BM == S % BN == 0; out bf16."""
    pm = tl.program_id(0)
    base = tl.program_id(1) * S * D
    rm = pm * BM + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    rd = tl.arange(0, D)
    qq = tl.load(q + base + rm[:, None] * D + rd[None, :])
    kp = k + base + rd[:, None] + rn[None, :] * D
    vp = v + base + rn[:, None] * D + rd[None, :]
    mi = tl.full((BM, ), float("-inf"), tl.float32)
    li = tl.zeros((BM, ), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, S, BN):
        s = tl.dot(qq, tl.load(kp)) * scale_log2
        mn = tl.maximum(mi, tl.max(s, 1))
        p = tl.exp2(s - mn[:, None])
        al = tl.exp2(mi - mn)
        li = li * al + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float8e4nv), tl.load(vp), acc * al[:, None])
        mi = mn
        kp += BN * D
        vp += BN * D
    tl.store(o + base + rm[:, None] * D + rd[None, :], (acc / li[:, None]).to(o.dtype.element_ty))


FSIG = ("q:*{t} k:*{t} v:*{t} o:*{t} lse:*fp32 Sq:i32 Sk:i32 H:i32 HKV:i32 scale_log2:fp32 "
        + " ".join(f"s{x}{y}:i32!" for x in "qkvo" for y in "bhs"))
FG = "[cdiv(Sq,{BM}),B*H,1]"
case("flash_fwd_bf16_d128_causal", flash_fwd_kernel, FSIG.format(t="bf16"),
     dict(D=128, CAUSAL=True, BM=128, BN=64), FG)
case("flash_fwd_bf16_d64", flash_fwd_kernel, FSIG.format(t="bf16"), dict(D=64, CAUSAL=False, BM=128, BN=64), FG)
case("flash_fwd_f16_d128_w8_s1", flash_fwd_kernel, FSIG.format(t="fp16"),
     dict(D=128, CAUSAL=True, BM=256, BN=64), FG, warps=8, stages=1)
case("flash_fwd_bf16_d128_mfma16", flash_fwd_kernel, FSIG.format(t="bf16"),
     dict(D=128, CAUSAL=False, BM=128, BN=64), FG, **MFMA16)
case("flash_fwd_fp8_d128", flash_fp8_kernel, "q:*fp8e4nv k:*fp8e4nv v:*fp8e4nv o:*bf16 S:i32! scale_log2:fp32",
     dict(D=128, BM=128, BN=64), "[S/{BM},B*H,1]", requires="S%128==0")
case("flash_bwd_bf16_d64_causal", flash_bwd_kernel,
     "q:*bf16 k:*bf16 v:*bf16 do:*bf16 lse:*fp32 delta:*fp32 dq:*fp32 dk:*bf16 dv:*bf16 S:i32 scale:fp32 ss:i32!",
     dict(D=64, CAUSAL=True, BM=64, BN=64), "[cdiv(S,{BN}),B*H,1]", stages=1, requires="dq zeroed")
