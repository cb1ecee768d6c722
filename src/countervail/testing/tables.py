"""Small tables and models for the contract checks."""

from __future__ import annotations

import numpy as np
import pandas as pd

from countervail.core.rng import generator
from countervail.core.table import Table

_DOMAINS = {
    "age": (18, 90),
    "city": ["a", "b", "c"],
    "level": ["low", "mid", "high"],
    "ill": ["no", "yes"],
    "income": (-50.0, 150.0),
    "ok": ["no", "yes"],
}


def small_table(n: int = 60, seed: int = 0, *, domains: bool = True) -> Table:
    """People with an identifier, mixed quasi-identifiers, a sensitive attribute, and an index that is not a range."""
    rng = generator(seed)
    age = rng.integers(20, 80, n)
    frame = pd.DataFrame(
        {
            "id": [f"person-{i}" for i in rng.permutation(n) + 1000],
            "age": age,
            "city": rng.choice(["a", "b", "c"], n),
            "level": pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True),
            "ill": rng.choice(["no", "yes"], n),
            "income": rng.normal(50, 20, n).round(1),
        },
        index=rng.permutation(n) + 5000,
    )
    frame["ok"] = np.where(frame["income"] + (frame["level"] == "high") * 20 > 55, "yes", "no")
    return Table.from_frame(
        frame,
        target="ok",
        favourable="yes",
        identifiers=["id"],
        quasi_identifiers=["age", "city", "level"],
        sensitive=["ill"],
        domains=_DOMAINS if domains else None,
    )


def small_model(frame: pd.DataFrame) -> np.ndarray:
    """Scores of "no" and "yes" that follow the rule behind :func:`small_table` almost everywhere."""
    merit = (
        frame["income"].to_numpy(float) + (frame["level"] == "high").to_numpy() * 20 - frame["age"].to_numpy(float) / 20
    )
    yes = 1 / (1 + np.exp(-(merit - 53) / 10))
    return np.column_stack([1 - yes, yes])
