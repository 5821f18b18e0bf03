"""Quantisation to the small formats and the byte layouts that AITER's fmha_v4_fwd objects read.

Every function takes float64 [batch, token, head, 128] and gives an Operand: the bytes, the scales, the strides
(sequence, token, head) that the host passes, and what the bytes mean in float64. Blocks of 32 share an E8M0 scale.
"""
from __future__ import annotations

from dataclasses import dataclass

import torch

FP8, FP6, FP4, INT8 = 3, 7, 9, 10
PER_TENSOR, PER_32 = 1, 5
TILE = 128  # tokens
FP4_VALUES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64)
FP6_VALUES = torch.tensor([m / 8 for m in range(8)] + [2.0 ** e * (1 + m / 8) for e in range(3) for m in range(8)],
                          dtype=torch.float64)


@dataclass
class Operand:
    data: torch.Tensor
    scale: torch.Tensor
    strides: tuple[int, int, int]
    exact: torch.Tensor
    scale_strides: tuple[int, int] = (0, 0)


def tiles(tokens: int) -> int:
    return -(-tokens // TILE)


def encode(x: torch.Tensor, table: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Blocks along the last dimension (32): codes, E8M0 bytes, values. The sign is the bit above the table's codes."""
    peak = x.abs().amax(-1, keepdim=True)
    exponent = torch.where(peak > 0, torch.floor(torch.log2(peak.clamp_min(1e-300))) - 2, 0.0).clamp(-127, 127)
    y = x / 2.0 ** exponent
    code = torch.bucketize(y.abs().contiguous(), (table[1:] + table[:-1]) / 2)
    exact = table[code] * y.sign() * 2.0 ** exponent
    return (code + (y < 0) * len(table)).to(torch.uint8), (exponent + 127).to(torch.uint8).squeeze(-1), exact


def pack4(codes: torch.Tensor) -> torch.Tensor:
    return codes[..., 0::2] | codes[..., 1::2] << 4


def pack6(codes: torch.Tensor) -> torch.Tensor:
    """Four fields in three bytes, the first in the low bits."""
    c = codes.to(torch.int32).unflatten(-1, (-1, 4))
    word = c[..., 0] | c[..., 1] << 6 | c[..., 2] << 12 | c[..., 3] << 18
    return torch.stack([word & 255, word >> 8 & 255, word >> 16 & 255], -1).flatten(-2).to(torch.uint8)


def zeros(n: int) -> torch.Tensor:
    return torch.zeros(n, dtype=torch.uint8)


def strides(t: torch.Tensor) -> tuple[int, int, int]:
    return t.stride()[:3]


def per_tensor(x: torch.Tensor, format_: int) -> Operand:
    largest = 127.0 if format_ == INT8 else 448.0
    scale = (x.abs().amax() / largest).float().view(1)
    y = x / scale.double()
    q = y.round().to(torch.int8) if format_ == INT8 else y.float().to(torch.float8_e4m3fn)
    return Operand(q, scale, strides(q), q.double() * scale.double())


def mxfp8(x: torch.Tensor) -> Operand:
    blocks = x.unflatten(-1, (4, 32))
    exponent = torch.floor(torch.log2(blocks.abs().amax(-1, keepdim=True))) - 8
    q = (blocks / 2.0 ** exponent).float().clamp(-448, 448).to(torch.float8_e4m3fn)
    data = q.view(x.shape)
    return Operand(data, (exponent + 127).to(torch.uint8).squeeze(-1), strides(data),
                   (q.double() * 2.0 ** exponent).view(x.shape), (x.shape[1] * x.shape[2] * 4, 4))


def interleaved(codes: torch.Tensor) -> torch.Tensor:
    """FP6 blocks in the order in which v_cvt_scalef32_2xpk16_fp6_f32 packs two vectors of 16."""
    field = torch.arange(32)
    return codes[..., torch.where(field % 2 == 0, field // 2, 16 + field // 2)]


def blocks_of(x: torch.Tensor, format_: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Bytes [batch, token, head, block, 24 or 16], scales [.., block], values."""
    code, scale, exact = encode(x.unflatten(-1, (4, 32)), FP6_VALUES if format_ == FP6 else FP4_VALUES)
    return pack6(interleaved(code)) if format_ == FP6 else pack4(code), scale, exact.view(x.shape)


def queries(x: torch.Tensor, format_: int, scale_mode: int) -> Operand:
    if scale_mode == PER_TENSOR:
        return per_tensor(x, format_)
    if format_ == FP8:
        return mxfp8(x)
    data, scale, exact = blocks_of(x, format_)
    data = data.flatten(-2)
    return Operand(data, scale, strides(data), exact, (x.shape[1] * x.shape[2] * 4, 4))


def by_tile(t: torch.Tensor, count: int) -> torch.Tensor:
    """[batch, token, ...] -> [batch, tile, 128, ...], zeros at the end."""
    padded = torch.zeros(t.shape[0], count * TILE, *t.shape[2:], dtype=t.dtype)
    padded[:, :t.shape[1]] = t
    return padded.unflatten(1, (count, TILE))


def keys(x: torch.Tensor, format_: int, scale_mode: int) -> Operand:
    if scale_mode == PER_TENSOR or format_ == FP8:
        return queries(x, format_, scale_mode)
    batch, tokens, heads, _ = x.shape
    count = tiles(tokens)
    data, scale, exact = blocks_of(x, format_)
    tiled = by_tile(data, count)
    if format_ == FP4:  # tile: block, token, 16 bytes
        image = tiled.permute(0, 3, 1, 4, 2, 5).contiguous()
        return Operand(image, scale, (heads * count * 8192, 64, count * 8192), exact, (tokens * heads * 4, 4))
    # FP6 tile of 17408 bytes: 32 tokens x (block, token, 16 bytes), the same with the other 8 bytes, 4096 unused, then
    # the scales by (16 tokens' half, token, quarter, block), then those again one byte further on.
    image = torch.zeros(batch, heads, count, 17408, dtype=torch.uint8)
    parts = tiled.unflatten(2, (4, 32)).permute(0, 4, 1, 2, 5, 3, 6)
    image[..., :8192] = parts[..., :16].flatten(3)
    image[..., 8192:12288] = parts[..., 16:].flatten(3)
    padded = torch.zeros(batch, count * TILE + 1, heads, 4, dtype=torch.uint8)
    padded[:, :tokens] = scale
    further = torch.cat([padded[:, :-1, :, 1:], padded[:, 1:, :, :1]], -1)
    for at, s in ((16384, padded[:, :-1]), (16896, further)):
        order = s.reshape(batch, count, 4, 2, 16, heads, 4).permute(0, 5, 1, 3, 4, 2, 6)
        image[..., at:at + 512] = order.flatten(3)
    return Operand(torch.cat([image.flatten(), zeros(256)]), torch.cat([scale.flatten(), zeros(64)]),
                   (heads * count * 17408, 136, count * 17408), exact, (tokens * heads * 4, 4))


def fp4_columns() -> torch.Tensor:
    """Token of a half tile (64) that column c of MXFP4 v holds."""
    token = torch.arange(64)
    lane = token % 32
    column = 32 * (token // 32) + 4 * (lane // 8) + 16 * (lane // 4 % 2) + lane % 4
    return torch.empty(64, dtype=torch.long).scatter_(0, column, token)


def fp6_fields() -> torch.Tensor:
    """Token of a half tile that field [block of 32, field] of MXFP6 v meets: FP6 index a goes with FP8 index a whose
    bits 4 and 5 change places, and p's bytes are in the order of its MFMA rows."""
    a = torch.arange(64)
    paired = a & 15 | (a & 16) << 1 | (a & 32) >> 1
    group, byte = paired // 32, paired % 32
    return (32 * (byte // 16) + 8 * (byte % 16 // 4) + byte % 4 + 4 * group).view(2, 32)


def values(x: torch.Tensor, format_: int, scale_mode: int) -> Operand:
    if scale_mode == PER_TENSOR:
        return per_tensor(x, format_)
    batch, tokens, heads, _ = x.shape
    if format_ == FP8:  # one scale per channel
        scale = (x.abs().amax(1) / 448).float()
        q = (x / scale[:, None].double()).float().clamp(-448, 448).to(torch.float8_e4m3fn)
        return Operand(q, scale, strides(q), q.double() * scale[:, None].double(), (heads * 512, 512))
    count = tiles(tokens)
    halves = by_tile(x, count).unflatten(2, (2, 64))
    order = fp4_columns().view(2, 32) if format_ == FP4 else fp6_fields()
    blocks = halves[:, :, :, order].movedim(4, -1)  # batch, tile, half, block, head, channel, 32 tokens
    code, scale, exact = encode(blocks, FP4_VALUES if format_ == FP4 else FP6_VALUES)
    back = torch.empty(batch, count, 2, 64, heads, 128, dtype=torch.float64)
    back[:, :, :, order.flatten()] = exact.movedim(-1, 4).flatten(3, 4)
    exact = back.flatten(1, 3)[:, :tokens]
    if format_ == FP4:  # tile: 32 channels, half, token column, 16 bytes; scales: half, block, channel % 32, channel / 32
        packed = pack4(code.unflatten(5, (4, 32)).movedim(-1, -2)).permute(0, 4, 1, 5, 2, 3, 6, 7)
        ordered = scale.unflatten(5, (4, 32)).permute(0, 4, 1, 2, 3, 6, 5)
        bytes_, slack = 8192, 64
    else:  # tile: 32 channels, half, block, channel, 24 bytes
        packed = pack6(code).unflatten(5, (4, 32)).permute(0, 4, 1, 5, 2, 3, 6, 7)
        ordered = scale.unflatten(5, (4, 32)).permute(0, 4, 1, 2, 3, 6, 5)
        bytes_, slack = 12288, 256
    return Operand(torch.cat([packed.flatten(), zeros(slack)]), ordered.reshape(batch, heads, -1).contiguous(),
                   (heads * count * bytes_, bytes_ // TILE, count * bytes_), exact, (heads * count * 512, count * 512))
