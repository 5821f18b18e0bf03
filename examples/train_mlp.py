"""Trains a small classifier on the emulated MI350: forward, backward and AdamW, no line of it special.

    python examples/train_mlp.py [--steps 60]

Two interleaved spirals, a three-layer MLP in bf16. The GEMMs of both directions run gfx950 machine code; the
report at the end says which kernels, and what ran on the CPU instead.
"""
import argparse
import math

import torch
from torch import nn

import torch_mi350


def spirals(points):
    generator = torch.Generator().manual_seed(0)
    angle = torch.rand(points, generator=generator) * 2.5 * math.pi + 0.5
    label = torch.randint(2, (points,), generator=generator)
    turned = angle + math.pi * label
    position = torch.stack((turned.cos(), turned.sin()), dim=1) * (angle / 8)[:, None]
    return position + 0.01 * torch.randn(points, 2, generator=generator), label


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--device", default="cdna", help="cdna, or cuda on an MI350")
    args = parser.parse_args()

    torch.manual_seed(0)
    features, label = (t.to(args.device) for t in spirals(512))
    features = torch.cat([features, (3 * features).sin(), (3 * features).cos(), (6 * features).sin()], dim=1).bfloat16()
    model = nn.Sequential(nn.Linear(8, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 2))
    model = model.to(args.device, torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    first = None
    for step in range(args.steps):
        optimizer.zero_grad()
        logits = model(features)
        loss = nn.functional.cross_entropy(logits.float(), label)
        loss.backward()
        optimizer.step()
        first = loss.item() if first is None else first
        if step % 10 == 0 or step == args.steps - 1:
            accuracy = (logits.argmax(dim=1) == label).float().mean().item()
            print(f"step {step:4d}   loss {loss.item():.4f}   accuracy {accuracy:.3f}", flush=True)
    print(f"loss {first:.4f} -> {loss.item():.4f}\n")
    print(torch_mi350.report())


if __name__ == "__main__":
    main()
