"""Synthetic rows from noisy counts: post-processing, without chance of its own."""

from __future__ import annotations

import numpy as np

from countervail.core.arrays import Ints
from countervail.core.rng import generator
from countervail.protect.dp.grid import Grid
from countervail.protect.dp.synthetic.accounting import NoiseBudget
from countervail.protect.dp.synthetic.column_tree import ColumnTree
from countervail.protect.dp.synthetic.draw import BudgetShares, Draw, settle

MOST_ROWS = 50_000  # unless more are asked for: people in a larger table are spoken for by these
_FEWEST = 1_000
_LEAST = 1e-6  # variance of a count: a budget without end leaves none, and nothing is divided by that
_PUBLIC = 20_000  # made-up rows where no record is counted, or where the model decides all others alike


def synthetic_rows(draw: Draw, grid: Grid, spread: BudgetShares, budget: NoiseBudget, rows: int | None) -> Ints:
    """Rows as positions: a function of the draw, the declaration and the settings."""
    if spread.level == "nothing":
        return public_rows(grid, rows or _PUBLIC)
    rng = generator(draw.seed())
    marginals, totals = settle(draw.ones, grid, spread, budget)
    wanted = rows or int(np.clip(totals.sum(), _FEWEST, MOST_ROWS))
    one = max(budget.deviation(spread.one) ** 2, _LEAST)
    two = max(budget.deviation(spread.pairs / len(draw.edges)) ** 2, _LEAST) if draw.edges else 0.0
    parts = []
    for k, many in enumerate(_shared(wanted, totals)):
        tree = ColumnTree([m.size for m in marginals], draw.edges, float(totals[k]))
        tree.fit(
            [(m.noisy[k], one * m.widths.astype(float)) for m in marginals],
            [(y[k].astype(float), two) for y in draw.pairs],
        )
        bins = tree.sample(rng, many)
        parts.append(np.column_stack([m.positions(rng, bins[:, j], k) for j, m in enumerate(marginals)]))
    made = np.concatenate(parts)
    shuffled: Ints = made[rng.permutation(len(made))]
    return shuffled


def public_rows(grid: Grid, rows: int = _PUBLIC) -> Ints:
    """Rows of the public domain; anybody can make the same."""
    rng = generator(0)
    return np.column_stack([rng.integers(0, m, rows) for m in grid.sizes])


def _shared(wanted: int, totals: np.ndarray) -> list[int]:
    """How many rows of each stratum, by the largest remainders: together as many as are wanted."""
    exact = totals / totals.sum() * wanted
    many = np.floor(exact).astype(np.int64)
    many[np.argsort(many - exact, kind="stable")[: wanted - int(many.sum())]] += 1
    held: list[int] = many.tolist()
    return held
