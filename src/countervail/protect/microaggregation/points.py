"""Quasi-identifiers as points, and groups of points as the values that they are published by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.region import Axis, Range, Regions, Values
from countervail.protect.microaggregation.mdav import APART, Points
from countervail.protect.mondrian.columns import ORDERED, Attributes, Quasi, place_values
from countervail.protect.mondrian.constraints import Floats, Ints, Longs

_FINE = 1e-5  # of a column's range: means are rounded to decimals no coarser
_BLOCK = 1 << 22


@dataclass(frozen=True, slots=True)
class Scale:
    """How a column becomes coordinates: numbers and ranks in standard deviations, labels by their codes."""

    name: str
    numeric: bool
    ordered: bool
    known: tuple[Any, ...]
    mean: float = 0.0
    deviation: float = 1.0

    def read(self, values: pd.Series) -> tuple[Floats | None, Ints]:
        """Coordinates of new values, and codes that differ where labels do (an ordered column: 1 for missing)."""
        if self.numeric:
            raw = values.to_numpy(dtype=float, na_value=np.nan)
        else:
            place = place_values(values, self.known)
            holes = values.isna().to_numpy(dtype=bool)
            if not self.ordered:
                return None, np.where(holes, len(self.known), place).astype(np.int32)
            raw = np.where(place < 0, np.nan, place.astype(float))
        there = np.isfinite(raw)
        return np.where(there, (raw - self.mean) / self.deviation, 0.0), (~there).astype(np.int32)


def scales(quasi: Sequence[Quasi], data: Attributes, distinct: Ints, weight: Longs) -> list[Scale]:
    """The scales of a table's quasi-identifiers."""
    out = []
    for j, q in enumerate(quasi):
        numeric, ordered = q.column.numeric, q.kind == ORDERED
        known = () if numeric else tuple(v for v in q.known if v is not None)
        there = distinct[:, j] != data.missing[j]
        if not ordered or not there.any():
            out.append(Scale(q.column.name, numeric, ordered, known))
            continue
        low, span = data.positions[j][0], data.span[j]
        part, w = (data.positions[j][distinct[there, j]] - low) / span, weight[there]
        mean = float(np.average(part, weights=w))
        deviation = float(span * np.sqrt(np.average((part - mean) ** 2, weights=w)))
        mean, deviation = float(low + span * mean), deviation if deviation > 0 else 1.0
        out.append(Scale(q.column.name, numeric, ordered, known, mean, deviation))
    return out


def place(quasi: Sequence[Quasi], data: Attributes, scale: Sequence[Scale], distinct: Ints, weight: Longs) -> Points:
    """Distinct rows of codes as points."""
    numbers, labels = [], []
    for j, (q, s) in enumerate(zip(quasi, scale)):
        there = distinct[:, j] != data.missing[j]
        if not s.ordered:
            labels.append(distinct[:, j])
            continue
        numbers.append(np.where(there, (data.positions[j][distinct[:, j]] - s.mean) / s.deviation, 0.0))
        if q.missing:
            labels.append((~there).astype(np.int32))
    n = len(distinct)
    return Points(
        np.ascontiguousarray(np.column_stack(numbers) if numbers else np.zeros((n, 0))),
        np.ascontiguousarray(np.column_stack(labels) if labels else np.zeros((n, 0)), dtype=np.int32),
        np.ascontiguousarray(weight, dtype=np.int64),
    )


def centres(quasi: Sequence[Quasi], data: Attributes, distinct: Ints, weight: Longs, group: Longs) -> Regions:
    """The value that each group is published by, column by column.

    Numbers: the mean. Levels: the lower median. Labels: the commonest, the first of those that are equally common. A
    number or level is missing where more than half of the group's are.
    """
    n = int(group.max()) + 1
    axes = [_centre(q, j, data, distinct[:, j], weight, group, n) for j, q in enumerate(quasi)]
    return Regions(tuple(axes), n).pruned()


def _centre(q: Quasi, j: int, data: Attributes, codes: Ints, weight: Longs, group: Longs, n: int) -> Axis:
    if q.kind != ORDERED:
        counts = np.zeros((n, q.size), np.int64)
        np.add.at(counts, (group, codes), weight)
        return _shown(q, counts.argmax(axis=1))
    there = codes != data.missing[j]
    held = np.bincount(group[there], weight[there], n)
    gone = np.bincount(group, weight, n) > 2 * held
    if not q.column.numeric:
        counts = np.zeros((n, q.size), np.int64)
        np.add.at(counts, (group[there], codes[there]), weight[there])
        middle = (2 * counts.cumsum(axis=1) >= held[:, None]).argmax(axis=1)
        return _shown(q, np.where(gone, q.size - 1, middle))
    low, span = float(data.positions[j][0]), float(data.span[j])  # parts of the range: large numbers keep their digits
    total = np.bincount(group[there], weight[there] * ((data.positions[j][codes[there]] - low) / span), n)
    mean = low + span * np.divide(total, held, out=np.zeros(n), where=held > 0)
    decimals = int(np.clip(np.ceil(-np.log10(_FINE * data.span[j])), -300, 300))
    if decimals < 300:
        mean = np.round(mean, max(decimals, 0))
    mean = np.where(gone, np.nan, mean)
    return Range(q.column.name, mean, mean.copy(), holes=gone if gone.any() else None).canonical()


def _shown(q: Quasi, at: Ints) -> Values:
    member = np.zeros((len(at), q.size), dtype=bool)
    member[np.arange(len(at)), at] = True
    return Values.of(q.column.name, q.known, member)


def nearest_centre(frame: pd.DataFrame, scale: Sequence[Scale], regions: Regions) -> Ints:
    """The class of each new row: the one whose published centre is nearest; the first of those equally near."""
    shown = regions.to_frame()
    rows, middle = (_coordinates(f, scale) for f in (frame, shown))
    out = np.empty(len(frame), np.int32)
    step = max(1, _BLOCK // max(1, len(shown)))
    for a in range(0, len(frame), step):
        part = slice(a, a + step)
        far = np.zeros((len(out[part]), len(shown)))
        for x, c in zip(rows[0], middle[0]):
            far += (x[part, None] - c[None, :]) ** 2
        for label, shown_label in zip(rows[1], middle[1]):
            far += APART * ((label[part, None] != shown_label[None, :]) | (label[part, None] < 0))
        out[part] = far.argmin(axis=1)
    return out


def _coordinates(frame: pd.DataFrame, scale: Sequence[Scale]) -> tuple[list[Floats], list[Ints]]:
    read = [s.read(frame[s.name]) for s in scale]
    return [numbers for numbers, _ in read if numbers is not None], [labels for _, labels in read]
