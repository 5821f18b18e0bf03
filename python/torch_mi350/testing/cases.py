"""The GEMM cases: which sizes, layouts, strides and additive inputs every GEMM must get right.

`gemm_grid(rounds)` is a deterministic sample of sizes^3 x layouts in which, every round, each size appears
once as m, once as n and once as k. A layout letter is n (row-major) or t (column-major), for a and then b.
"""
from __future__ import annotations

import random
from dataclasses import dataclass

import torch

from . import guarded

SIZES = (0, 1, 2, 7, 16, 33, 64, 127, 128, 129, 255, 256, 257, 1000)
LAYOUTS = ("nn", "nt", "tn", "tt")
DTYPES = (torch.bfloat16, torch.float16, torch.float32)

# Form of an operand -> strides of a row-major (rows, cols) matrix, element offset.
FORMS = {
    "plain": lambda rows, cols: ((cols, 1), 0),
    "odd_offset": lambda rows, cols: ((cols, 1), 1),
    "odd_pitch": lambda rows, cols: ((cols + 1 + cols % 2, 1), 0),          # always odd
    "aligned_pitch": lambda rows, cols: (((cols + 15) // 8 * 8, 1), 8),
    "sub_view": lambda rows, cols: ((2 * cols + 3, 1), 5),
    "every_second": lambda rows, cols: ((2 * cols, 2), 1),                  # no dimension is dense
    "expanded_rows": lambda rows, cols: ((0, 1), 0),
    "expanded_cols": lambda rows, cols: ((1, 0), 3),
    "one_value": lambda rows, cols: ((0, 0), 0),
    "overlapping": lambda rows, cols: ((3, 1), 0),                          # rows share all but three elements
}

# Additive input of addmm: name -> shape for an (m, n) result. B06 of the bug log.
ADDITIVE = {
    "row": lambda m, n: (n,), "row_2d": lambda m, n: (1, n), "column": lambda m, n: (m, 1),
    "full": lambda m, n: (m, n), "scalar": lambda m, n: (), "one": lambda m, n: (1, 1),
    "transposed": lambda m, n: (m, n), "expanded_row": lambda m, n: (m, n), "expanded_column": lambda m, n: (m, n),
}

SCALARS = ((1.0, 1.0), (0.7, 1.3), (1.0, 0.0), (0.0, 1.0), (-2.0, 0.5), (0.0, 0.0))  # alpha, beta


@dataclass(frozen=True)
class Case:
    m: int
    n: int
    k: int
    layout: str
    dtype: torch.dtype
    a_form: str = "plain"
    b_form: str = "plain"

    def __str__(self):
        name = str(self.dtype).removeprefix("torch.")
        return f"{name}-{self.m}x{self.n}x{self.k}-{self.layout}-{self.a_form}-{self.b_form}"

    @property
    def empty(self):
        return 0 in (self.m, self.n, self.k)


def gemm_grid(rounds, seed=350):
    """14 cases a round; layouts, dtypes and operand forms change from case to case."""
    rng = random.Random(seed)
    forms = list(FORMS)
    cases = []
    for number in range(rounds):
        m, n, k = (rng.sample(SIZES, len(SIZES)) for _ in range(3))
        for i in range(len(SIZES)):
            plain = (number + i) % 3 == 0
            cases.append(Case(m[i], n[i], k[i], LAYOUTS[(number + i) % 4], DTYPES[(number + i // 4) % 3],
                              "plain" if plain else rng.choice(forms), "plain" if plain else rng.choice(forms)))
    return cases


def values(kind, dtype, seed):
    """A function n -> n values. normal: seeded; integers: -2..2, whose short sums every type holds exactly."""
    generator = torch.Generator().manual_seed(seed)
    if kind == "integers":
        return lambda n: torch.randint(-2, 3, (n,), generator=generator).to(dtype)
    return lambda n: torch.randn(n, generator=generator).to(dtype)


def operand(rows, cols, letter, dtype, *, form="plain", kind="normal", seed=0, batch=None, batch_stride=None,
            device="cpu"):
    """A guarded (rows, cols) or (batch, rows, cols) input. batch_stride None: packed one after the other."""
    strides, offset = FORMS[form](rows, cols) if letter == "n" else FORMS[form](cols, rows)
    if letter == "t":
        strides = strides[::-1]
    shape = (rows, cols)
    if batch is not None:
        span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides) if size)
        shape = (batch, rows, cols)
        strides = (max(span, 1) if batch_stride is None else batch_stride, *strides)
    return guarded.guarded_input(values(kind, dtype, seed), shape, strides=strides, offset=offset, device=device)


def operands(case, *, kind="normal", batch=None, device="cpu", seed=0):
    """Guarded a (m, k) and b (k, n) of a case."""
    a = operand(case.m, case.k, case.layout[0], case.dtype, form=case.a_form, kind=kind, seed=2 * seed,
                batch=batch, device=device)
    b = operand(case.k, case.n, case.layout[1], case.dtype, form=case.b_form, kind=kind, seed=2 * seed + 1,
                batch=batch, device=device)
    return a, b


def additive(name, m, n, dtype, *, seed=0, device="cpu"):
    """A guarded additive input at an odd offset, as addmm takes it."""
    shape = ADDITIVE[name](m, n)
    strides = {"transposed": (1, max(m, 1)), "expanded_row": (0, 1), "expanded_column": (1, 0)}.get(name)
    return guarded.guarded_input(values("normal", dtype, seed), shape, strides=strides, offset=1, device=device)
