"""A small table of people, and files of it."""

import numpy as np
import pandas as pd

ROLES = {
    "identifiers": ["id"],
    "quasi_identifiers": ["age", "income", "city"],
    "sensitive": ["illness"],
    "target": "granted",
}


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": np.arange(n),
            "age": rng.integers(18, 90, n),
            "income": np.where(rng.random(n) < 0.05, np.nan, rng.gamma(2, 1000, n).round(-2)),
            "city": rng.choice(["Ghent", "Bruges", "Liège", "Ostend", None], n, p=[0.5, 0.2, 0.15, 0.1, 0.05]),
            "illness": rng.choice(["none", "flu", "gout"], n),
            "granted": rng.choice(["yes", "no"], n),
        }
    )


def spread(frame, folder, files, seed=0):
    """Write a frame into so many files of a new folder, in another order; the folder."""
    folder.mkdir()
    order = np.random.default_rng(seed).permutation(len(frame))
    for i, part in enumerate(np.array_split(order, files)):
        frame.iloc[part].to_parquet(folder / f"{i}.parquet", index=False)
    return folder
