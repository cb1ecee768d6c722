"""A tiny public domain with pairs of neighbouring tables: where a broken promise shows soonest."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.arrays import Ints
from countervail.core.table import Table

SEXES, JOBS = ("f", "m"), ("a", "b", "c", "d")
_BASE = [[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 1, 4]]
# Refused people who are in every table: they hold the ranges of the columns whoever is exchanged. One job is left to
# the others: that a label occurs at all is part of what mechanisms give away that read their labels off the rows.
ALWAYS = [[0, 0, 0], [0, 0, 4], [0, 3, 1], [1, 2, 0]]
PAIRS: dict[str, tuple[list[list[int]], list[list[int]]]] = {
    "nearest replaced, other columns change": ([*_BASE, [1, 0, 3]], [*_BASE, [0, 3, 2]]),
    "only neighbour replaced": ([[0, 1, 2]], [[1, 0, 3]]),
    "singleton value": ([[0, 1, 2]] * 3, [[0, 1, 2], [0, 1, 2], [1, 3, 4]]),
}


def rule(rows: Ints) -> NDArray[np.bool_]:
    """The decision: a job and some hours, or the second sex and more hours."""
    sex, job, hours = np.moveaxis(np.asarray(rows), -1, 0)
    yes: NDArray[np.bool_] = ((job >= 1) & (hours >= 2)) | ((sex == 1) & (hours >= 3))
    return yes


def scores(frame: pd.DataFrame) -> NDArray[np.float64]:
    """The same as a model: scores of "no" and "yes", which rise with every column."""
    rows = coded(frame)
    yes = np.where(rule(rows), 0.6, 0.3) + rows.sum(axis=1) / 100
    return np.column_stack([1 - yes, yes])


def table_of(rows: list[list[int]]) -> Table:
    """A table with declared domains, out of codes."""
    every = np.array([*rows, *ALWAYS], dtype=np.int64)
    frame = frame_of(every).assign(ok=np.where(rule(every), "yes", "no"))
    domains = {"sex": list(SEXES), "job": list(JOBS), "hours": (0, 4), "ok": ["no", "yes"]}
    return Table.from_frame(frame, target="ok", favourable="yes", domains=domains)


def frame_of(rows: Ints) -> pd.DataFrame:
    """Codes as values."""
    sex, job = (pd.Categorical.from_codes(rows[:, j], pd.Index(labels)) for j, labels in enumerate((SEXES, JOBS)))
    return pd.DataFrame({"sex": sex, "job": job, "hours": rows[:, 2]})


def coded(frame: pd.DataFrame) -> Ints:
    """Values as codes; -1 for a blank."""
    sex = pd.Categorical(frame["sex"], list(SEXES)).codes
    job = pd.Categorical(frame["job"], list(JOBS)).codes
    hours = frame["hours"].to_numpy(dtype=float, na_value=-1.0)
    return np.column_stack([sex, job, hours]).astype(np.int64)


def asker(n: int) -> pd.DataFrame:
    """The same person, n times."""
    return frame_of(np.zeros((n, 3), dtype=np.int64))
