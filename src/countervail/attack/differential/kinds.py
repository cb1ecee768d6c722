"""Which kinds of people stick out: combinations of one or two quasi-identifiers that at least ten people share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from countervail.attack.differential.result import FEW, Kind
from countervail.core.arrays import Floats, Ints
from countervail.core.canonical import code_values
from countervail.core.cells import cell_text, number_text
from countervail.core.people import count_people, people_of, person_columns
from countervail.core.stats import mean_interval
from countervail.core.table import Table
from countervail.core.words.dates import iso

_BANDS = 4
_TRIED = 200  # kinds that are looked at, from the most affected down


def kinds_of_people(table: Table, rows: Ints, d_pp: NDArray[np.float64], shown: int = 8) -> list[Kind]:
    """The kinds with the largest mean distance; one is told only if it lies above everybody's mean.

    No sum or difference of what is told is about fewer than ten people, however many rows these have.
    """
    if len(rows) < FEW or not np.isfinite(d_pp).all():
        return []
    who_is = people_of(table.frame, person_columns(table))
    bands = [_bands(table, n) for n in table.schema.names("quasi")]
    found: list[tuple[float, str, int, int, Ints]] = []
    for size in (1, 2):
        for chosen in combinations(bands, size):
            codes, names = chosen[0]
            for other, more in chosen[1:]:
                codes, names = codes * len(more) + other, [f"{a}, {b}" for a in names for b in more]
            mine = codes[rows]
            tested = np.bincount(mine, minlength=len(names))
            sums = np.bincount(mine, d_pp, len(names))
            people = _people(codes, who_is, len(names))
            enough = _people(mine, who_is[rows], len(names)) >= FEW
            found += [
                (-float(sums[kind] / tested[kind]), names[kind], int(people[kind]), int(kind), mine)
                for kind in np.flatnonzero(enough & (sums > tested * d_pp.mean()))
            ]
    found.sort(key=lambda f: f[:2])
    told: list[Kind] = []
    part = np.zeros(len(rows), dtype=np.int64)
    for _, who, n, kind, tested_codes in found[:_TRIED]:
        inside = tested_codes == kind
        # Means can be subtracted: whatever the kinds tell apart must be ten people again, or nobody.
        finer = 2 * part + inside
        sizes = _people(finer, who_is[rows])
        if (sizes[sizes > 0] >= FEW).all():
            told.append(Kind(who, n, mean_interval(d_pp[inside])))
            part = (np.cumsum(sizes > 0) - 1)[finer]
        if len(told) == shown:
            break
    return told


def _people(codes: Ints, who_is: Ints, many: int = 0) -> Ints:
    """How many people there are of each code."""
    counted = count_people(codes, who_is)
    return np.pad(counted, (0, max(0, many - len(counted))))


def _bands(table: Table, name: str) -> tuple[Ints, list[str]]:
    """Each row's kind by one column, and what the kinds are called; numbers lie in four bands with open ends."""
    column, values = table.schema[name], table.frame[name]
    if not column.numeric:
        codes, kinds = code_values(values, column.values)
        return codes, [f"{name} {cell_text(v)}" for v in kinds]
    numbers = values.to_numpy(dtype=float, na_value=np.nan)
    there = numbers[np.isfinite(numbers)]
    cuts = np.quantile(there, np.linspace(0, 1, _BANDS + 1)[1:-1]) if len(there) else [0.0]
    if column.type == "date":
        edges = _beginnings(cuts)
        words = [f"{name} before {iso(edges[0])}"]
        words += [f"{name} from {iso(a)} to before {iso(b)}" for a, b in pairwise(edges)]
        words += [f"{name} {iso(edges[-1])} or later", f"{name} missing"]
    else:
        edges = np.unique([float(f"{e:.2g}") for e in cuts])
        words = [f"{name} below {number_text(edges[0])}"]
        words += [f"{name} from {number_text(a)} to below {number_text(b)}" for a, b in pairwise(edges)]
        words += [f"{name} {number_text(edges[-1])} or more", f"{name} missing"]
    at = np.where(np.isfinite(numbers), np.searchsorted(edges, numbers, side="right"), len(words) - 1)
    return at.astype(np.int64), words


def _beginnings(days: Sequence[float] | Floats) -> Floats:
    """The years in which these days lie, or the months where that is one year, as their first days."""
    exact = np.floor(np.asarray(days, dtype=float)).astype(np.int64).astype("datetime64[D]")
    years = np.unique(exact.astype("datetime64[Y]").astype("datetime64[D]"))
    months = np.unique(exact.astype("datetime64[M]").astype("datetime64[D]"))
    return (years if len(years) > 1 else months).astype(np.int64).astype(float)
