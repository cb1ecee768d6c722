"""What the private studies share: public domains (from documentation, not from the rows), and where results come from.

Adult: the codebook adult.names of the UCI repository lists all labels; the bounds are those of the census form (age
capped at 90, capital gain at 99,999, hours at 99). German credit: labels from the UCI codebook; bounds that a lender
would state in its conditions.
"""

from __future__ import annotations

from typing import Any

import _record  # scripts put benchmarks/speed on the path

import countervail as cv

DROPPED = ("fnlwgt", "education-num", "capital-loss")
_BOUNDS: dict[str, dict[str, tuple[float, ...]]] = {
    "adult": {"age": (17, 90), "capital-gain": (0, 99999), "hours-per-week": (1, 99)},
    "german_credit": {"duration": (0, 72), "credit_amount": (0, 20000), "age": (18, 80)},
}
_MISSING = {"adult": ("workclass", "occupation", "native-country"), "german_credit": ()}


def load_declared(name: str) -> tuple[cv.Table, tuple[str, ...]]:
    """A data set with declared domains, and the columns in which "missing" is a level of its own."""
    table = cv.load(name)
    frame = table.frame.drop(columns=[n for n in DROPPED if n in table.frame.columns])
    domains: dict[str, Any] = {n: b for n, b in _BOUNDS[name].items() if n in frame.columns}
    for column in table.schema:
        if column.name in frame.columns and column.type == "categorical":
            # The file holds every label of its codebook, so listing them here adds nothing to what is public.
            domains[column.name] = sorted(frame[column.name].dropna().unique().tolist())
    kept = tuple(c for c in table.schema if c.name in frame.columns)
    schema = cv.Schema(kept, table.schema.favourable)
    return cv.Table.from_frame(frame, schema=schema, domains=domains), _MISSING[name]


def provenance(seed: int | None, *sets: str) -> dict[str, Any]:
    """Commit, seed, versions and data hashes; ask before the run, which takes minutes."""
    return _record.provenance(sets, seed, "opendp")
