"""Which kernels does a Linear run, forward and backward? torch.profiler answers as on any GPU.

    python examples/profile_linear.py [--trace linear.json]

With no `activities` argument the profiler records the CPU and the device. Device times on `cdna` are host times
of the emulator: they say where an emulated run spends its time, not how fast an MI350 is. The trace opens in
chrome://tracing or Perfetto; arrows lead from each aten op to its kernel.
"""
import argparse

import torch
from torch.profiler import profile

import torch_mi350  # noqa: F401  routes the ops


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", help="write a chrome trace to this file")
    parser.add_argument("--device", default="cdna", help="cdna, or cuda on an MI350")
    args = parser.parse_args()

    layer = torch.nn.Linear(256, 256, dtype=torch.bfloat16).to(args.device)
    x = torch.randn(128, 256, dtype=torch.bfloat16).to(args.device).requires_grad_()
    target = torch.randn(128, 256, dtype=torch.bfloat16).to(args.device)

    def step():
        torch.nn.functional.mse_loss(layer(x), target).backward()

    step()  # the first call loads the kernels
    with profile() as prof:
        step()
    print(prof.key_averages().table(sort_by="self_device_time_total", row_limit=12, max_name_column_width=60))
    if args.trace:
        prof.export_chrome_trace(args.trace)
        print(f"trace written to {args.trace}")


if __name__ == "__main__":
    main()
