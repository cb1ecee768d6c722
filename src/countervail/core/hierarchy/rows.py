"""Lines of hierarchies built by a rule: intervals, quantiles, dates, prefixes, an order."""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd

from countervail.core.cells import number_text
from countervail.core.conform import plain
from countervail.core.errors import bad_parameter

Lines = tuple[tuple[str, ...], ...]
ROOT: Final = "*"
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?$")
_INTERVAL: Final = re.compile(r"-?\d+(\.\d+)?\s*(-|~|to)\s*-?\d+(\.\d+)?$")
_MOST_PARTS: Final = 100_000
PERIODS: Final = ("month", "quarter", "year", "decade", "century")


def interval_rows(values: Iterable[Any], widths: Sequence[float], start: float) -> Lines:
    """Each number under the interval of each width that holds it; whole numbers are shown as `20-24`."""
    numbers = _numbers(values, "intervals")
    if not widths or any(not 0 < w <= sys.float_info.max for w in widths):
        raise bad_parameter("Hierarchy.intervals", "widths", "positive numbers, the smallest first", list(widths))
    for small, large in pairwise(widths):
        times = large / small
        if times <= 1 or abs(times - round(times)) > 1e-9:
            must = "multiples of one another, the smallest first, so that intervals nest"
            raise bad_parameter("Hierarchy.intervals", "widths", must, list(widths))
    whole = all(float(x).is_integer() for x in [*numbers, *widths, start])

    def label(number: float, width: float) -> str:
        low = start + np.floor((number - start) / width + 1e-9) * width
        if whole:
            return number_text(low) if width == 1 else f"{number_text(low)}-{number_text(low + width - 1)}"
        return f"[{low:.12g}, {low + width:.12g})"

    return tuple((plain(x), *(label(x, w) for w in widths), ROOT) for x in numbers)


def quantile_rows(values: Iterable[Any], parts: int) -> Lines:
    """Each number under its quantile group; neighbouring groups are joined by two until one is left."""
    if not isinstance(parts, (int, np.integer)) or isinstance(parts, bool) or not 2 <= parts <= _MOST_PARTS:
        raise bad_parameter("Hierarchy.quantiles", "parts", f"a whole number from 2 to {_MOST_PARTS:,}", parts)
    given = np.sort(np.array([float(v) for v in values if not pd.isna(v)]))
    numbers = _numbers(given, "quantiles")
    # The last value of each group; equal values are never parted, so there may be fewer groups than asked for.
    last = sorted({float(given[max(int(np.ceil(len(given) * (i + 1) / parts)) - 1, 0)]) for i in range(parts)})
    lowest = [bisect_left(last, x) for x in numbers]
    return _joined([plain(x) for x in numbers], lowest, 2, lambda a, b: a if a == b else f"{a}-{b}", with_first=True)


def date_rows(values: Iterable[Any], periods: Sequence[str]) -> Lines:
    """Each day under its month, quarter, year, decade or century."""
    if not periods or [p for p in PERIODS if p in periods] != list(periods):
        raise bad_parameter("Hierarchy.dates", "periods", f"some of {PERIODS}, in this order", list(periods))
    days: dict[str, date] = {}
    for value in values:
        if not pd.isna(value):
            days.setdefault(plain(value), _day(value))
    ordered = sorted(days, key=lambda v: (days[v], v))
    return tuple((v, *(_period(days[v], p) for p in periods), ROOT) for v in ordered)


def prefix_rows(values: Iterable[Any], lengths: Sequence[int] | None) -> Lines:
    """Each text under its first characters; the rest is written as `*`, so that `9021` becomes `90**`."""
    texts = sorted({plain(v) for v in values if not pd.isna(v)})
    if not texts:
        raise bad_parameter("Hierarchy.prefixes", "values", "at least one value", "none")
    longest = max(map(len, texts))
    shown = list(range(longest - 1, 0, -1)) if lengths is None else list(lengths)
    if not all(isinstance(n, (int, np.integer)) and n >= 1 for n in shown) or any(a <= b for a, b in pairwise(shown)):
        must = "positive numbers of characters, the largest first"
        raise bad_parameter("Hierarchy.prefixes", "lengths", must, shown)
    # A value that is shorter than a prefix is padded as well: `90` among `9021` is not the name of their group.
    return tuple((t, *(t[:n] + "*" * (longest - min(n, len(t))) for n in shown), ROOT) for t in texts)


def order_rows(levels: Sequence[Any], size: int) -> Lines:
    """Each level under groups of `size`, then `size` times as many neighbours, until one is left."""
    if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 2:
        raise bad_parameter("Hierarchy.order", "size", "a whole number of at least 2", size)
    texts = [plain(v) for v in levels]
    if not texts or len(set(texts)) < len(texts):
        raise bad_parameter("Hierarchy.order", "levels", "different values, the lowest first", f"{len(texts)} values")
    return _joined(texts, list(range(len(texts))), int(size), lambda a, b: a if a == b else f"{a} to {b}")


def nested_rows(rows: Lines) -> Lines:
    """Lines whose intervals nest: one that reaches over the border of the level above is parted there.

    ARX reads every level on its own, so its files may hold 41-60 under both 1-50 and 51-100. The parts are named by
    the values that they hold: 41-50 and 51-60.
    """
    lines = [list(row) for row in rows]
    for level in range(len(lines[0]) - 2, 0, -1):
        parents: dict[str, set[str]] = {}
        for line in lines:
            parents.setdefault(line[level], set()).add(line[level + 1])
        for label, above in parents.items():
            if len(above) < 2 or not all(_INTERVAL.match(x) for x in (label, *above)):
                continue
            for parent in above:
                held = [line for line in lines if line[level] == label and line[level + 1] == parent]
                if not all(_NUMBER.match(line[0]) for line in held):
                    break
                ends = [min(held, key=lambda x: float(x[0]))[0], max(held, key=lambda x: float(x[0]))[0]]
                for line in held:
                    line[level] = ends[0] if ends[0] == ends[1] else f"{ends[0]}-{ends[1]}"
    return tuple(tuple(line) for line in lines)


def _joined(
    texts: Sequence[str],
    lowest: Sequence[int],
    size: int,
    name: Callable[[str, str], str],
    *,
    with_first: bool = False,
) -> Lines:
    """Values in order with the number of their lowest group; `size` neighbouring groups are joined per level."""
    levels: list[list[str]] = []
    group = list(lowest) if with_first else [g // size for g in lowest]
    while max(group) > 0:
        ends: dict[int, tuple[str, str]] = {}
        for text, g in zip(texts, group):
            ends[g] = (ends.get(g, (text, text))[0], text)
        levels.append([name(*ends[g]) for g in group])
        group = [g // size for g in group]
    return tuple((text, *(level[i] for level in levels), ROOT) for i, text in enumerate(texts))


def _numbers(values: Iterable[Any], builder: str) -> list[float]:
    try:
        numbers = sorted({float(v) for v in values if not pd.isna(v)})
    except (TypeError, ValueError):
        raise bad_parameter(f"Hierarchy.{builder}", "values", "numbers", "something else") from None
    if not numbers or not np.isfinite(numbers).all():
        raise bad_parameter(f"Hierarchy.{builder}", "values", "at least one number, none infinite", "none or infinite")
    return numbers


def _day(value: Any) -> date:
    """The day of a date, a timestamp, or a text that begins with one (2024-05-31)."""
    if isinstance(value, date):  # also datetime and pandas' Timestamp
        return date(value.year, value.month, value.day)
    try:
        return date.fromisoformat(str(value)[:10])
    except ValueError:
        must = "dates, or texts that begin with year-month-day"
        raise bad_parameter("Hierarchy.dates", "values", must, "something else") from None


def _period(day: date, period: str) -> str:
    if period == "month":
        return f"{day.year:04d}-{day.month:02d}"
    if period == "quarter":
        return f"{day.year:04d} Q{(day.month + 2) // 3}"
    if period == "year":
        return f"{day.year:04d}"
    if period == "decade":
        return f"{day.year // 10 * 10:04d}s"
    return f"{day.year // 100 * 100:04d}-{day.year // 100 * 100 + 99:04d}"
