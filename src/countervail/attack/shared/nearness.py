"""How far released things lie from people, column by column: wide cells are near to nobody in particular."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.arrays import Bools, Floats, Ints
from countervail.core.canonical import canonical_value, code_values
from countervail.core.region import Axis, Range, Regions
from countervail.core.schema import Column, Schema

Block = NDArray[np.float32]
_CELLS = 1 << 22  # of a person x thing matrix worked on at once


@dataclass(frozen=True, eq=False, slots=True)
class Gaps:
    """One column of the released things: numbers and ranks as ranges, labels as codes or sets.

    `typical` is how far two people are apart on average: it stands where a thing says nothing.
    """

    name: str
    scale: float
    typical: float
    position: dict[Any, int] | None = None  # of each value: a label's code, a level's rank; None: numbers
    low: Block | None = None
    high: Block | None = None
    holes: Bools | None = None
    code: Ints | None = None
    member: Bools | None = None  # value x thing, and a last row for values that nothing holds
    size: Block | None = None  # how many values a thing holds
    free: Bools | None = None

    def encode(self, values: pd.Series) -> Any:
        """What people have: numbers in units of the scale (NaN: missing), or codes (-1: none that was released)."""
        if self.position is None:
            return (values.to_numpy(dtype=float, na_value=np.nan) / self.scale).astype(np.float32)
        codes, kinds = code_values(values)
        at = np.array([self.position.get(v, -1) for v in kinds], dtype=np.int64)[codes]
        if self.low is None:
            return at
        return np.where(at < 0, np.nan, at / self.scale).astype(np.float32)

    def apart(self, people: Any) -> Block:
        """Person x thing: from 0 (the same) to 1; inside a range or set, what is to be expected of its values."""
        if self.low is not None and self.high is not None:
            gaps = self._ranges(people, self.low, self.high)
        elif self.code is not None:
            gaps = (people[:, None] != self.code[None, :]).astype(np.float32)
        else:
            assert self.member is not None and self.size is not None
            gaps = 1 - self.member[people] / self.size[None, :]
        if self.free is not None:
            gaps[:, self.free] = self.typical
        return gaps

    def _ranges(self, people: Any, low: Block, high: Block) -> Block:
        x = people[:, None]
        wide = high > low
        gaps: Block = np.abs(x - low[None, :])
        if wide.all():
            inside = ((x - low) ** 2 + (high - x) ** 2) / (2 * (high - low))
            gaps = np.where((x >= low) & (x <= high), inside, np.abs(x - (low + high) / 2))
        elif wide.any():
            a, b = low[wide][None, :], high[wide][None, :]
            inside = ((x - a) ** 2 + (b - x) ** 2) / (2 * (b - a))  # the mean distance to all values of the range
            middle = np.abs(x - (a + b) / 2)
            gaps[:, wide] = np.where((x >= a) & (x <= b), inside, middle)
        np.minimum(gaps, np.float32(1), out=gaps)
        lost = np.isnan(people)
        if lost.any() or self.holes is not None or np.isnan(low).any():
            gaps[np.isnan(gaps)] = 1
            if self.holes is not None:
                gaps[np.ix_(lost, self.holes)] = 0
        return gaps


class Nearness:
    """The released things, ready to be measured against people; scales are those of a reference, never the table."""

    def __init__(self, sets: Regions, names: Sequence[str], schema: Schema, reference: pd.DataFrame) -> None:
        self.things = len(sets)
        self.gaps = [
            _gaps(axis, schema[axis.name], reference[axis.name], None if sets.free is None else sets.free[:, j])
            for j, axis in enumerate(sets.axes)
            if axis.name in names
        ]
        self.names = [g.name for g in self.gaps]

    def blocks(self, people: pd.DataFrame) -> Iterator[tuple[slice, list[Block]]]:
        """Some people at a time, and person x thing for every column."""
        coded = [g.encode(people[g.name]) for g in self.gaps]
        step = max(1, _CELLS // max(1, self.things))
        for start in range(0, len(people), step):
            at = slice(start, min(start + step, len(people)))
            yield at, [g.apart(c[at]) for g, c in zip(self.gaps, coded)]

    def nearest_thing(self, people: pd.DataFrame) -> tuple[Ints, Floats]:
        """The first of the nearest things for each person (-1: none), and how far it is."""
        which, far = np.full(len(people), -1, dtype=np.int64), np.full(len(people), np.inf)
        if self.things and self.gaps:
            for at, columns in self.blocks(people):
                total = _sum(columns)
                which[at] = total.argmin(axis=1)
                far[at] = total[np.arange(len(total)), which[at]]
        return which, far

    def nearest_person(self, people: pd.DataFrame) -> Floats:
        """How far the nearest person is from each thing."""
        far = np.full(self.things, np.inf)
        for _, columns in self.blocks(people) if self.things and self.gaps else ():
            np.minimum(far, _sum(columns).min(axis=0), out=far)
        return far

    def people_within(self, people: pd.DataFrame, limit: float, person: Ints | None = None) -> Ints:
        """How many people are no farther than a limit from each thing; whose each row is, where some have several."""
        count = np.zeros(self.things, dtype=np.int64)
        pairs: list[Ints] = []
        for at, columns in self.blocks(people) if self.things and self.gaps else ():
            near = _sum(columns) <= limit
            if person is None:
                count += near.sum(axis=0)
            else:
                row, thing = np.nonzero(near)
                pairs.append(np.unique(person[at][row] * self.things + thing))
        if pairs:
            count += np.bincount(np.unique(np.concatenate(pairs)) % self.things, minlength=self.things)
        return count


def _sum(columns: list[Block]) -> Block:
    total = columns[0]
    for column in columns[1:]:
        total += column
    return total


def _gaps(axis: Axis, column: Column, reference: pd.Series, free: Bools | None) -> Gaps:
    if isinstance(axis, Range):
        numbers = reference.to_numpy(dtype=float, na_value=np.nan)
        held = numbers[~np.isnan(numbers)]
        scale = float(np.ptp(held)) if len(held) and np.ptp(held) > 0 else 1.0
        spread = np.minimum(np.abs(held - np.roll(held, len(held) // 2 + 1)) / scale, 1)
        low, high = ((v / scale).astype(np.float32) for v in (axis.low, axis.high))
        typical = float(spread.mean()) if len(held) else 1.0
        return Gaps(axis.name, scale, typical, low=low, high=high, holes=axis.holes, free=free)
    shares = reference.value_counts(normalize=True, dropna=False).to_numpy()
    alike = float((shares**2).sum()) if len(shares) else 0.0
    if column.type == "ordinal" and column.levels is not None:
        known = [canonical_value(v) for v in axis.known]
        return _ranks(axis.name, known, axis.member, column.levels, reference, free)
    position = {canonical_value(v): i for i, v in enumerate(axis.known)}
    sizes = axis.sizes
    if len(sizes) and (sizes == 1).all():
        return Gaps(axis.name, 1.0, 1 - alike, position, code=axis.first, free=free)
    held = np.append(axis.member.T, np.zeros((1, len(sizes)), dtype=bool), axis=0)
    size = np.maximum(sizes, 1).astype(np.float32)
    return Gaps(axis.name, 1.0, 1 - alike, position, member=held, size=size, free=free)


def _ranks(
    name: str, known: list[Any], member: Bools, levels: Sequence[Any], reference: pd.Series, free: Bools | None
) -> Gaps:
    """Levels in their order: a set of them is the range from its lowest to its highest."""
    position = {canonical_value(v): i for i, v in enumerate(levels)}
    scale = float(max(len(levels) - 1, 1))
    rank = np.array([position.get(v, np.nan) for v in known], dtype=float)
    spread = np.where(member, rank[None, :], np.nan)
    said = ~np.isnan(spread).all(axis=1)
    low, high = np.full(len(member), np.nan, np.float32), np.full(len(member), np.nan, np.float32)
    low[said], high[said] = np.nanmin(spread[said], axis=1) / scale, np.nanmax(spread[said], axis=1) / scale
    holes: Bools = np.asarray(member[:, [i for i, v in enumerate(known) if v not in position]].any(axis=1))
    codes, kinds = code_values(reference)
    held = np.array([position.get(v, np.nan) for v in kinds], dtype=float)[codes]
    held = held[~np.isnan(held)]
    typical = float(np.abs(held - np.roll(held, len(held) // 2 + 1)).mean() / scale) if len(held) else 1.0
    return Gaps(name, scale, typical, position, low=low, high=high, holes=holes if holes.any() else None, free=free)
