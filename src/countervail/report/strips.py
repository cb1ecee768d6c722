"""Small pictures of a region: where each of its cells sits among the people, drawn coarsely enough to tell no one."""

from __future__ import annotations

import html
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.explanation import Explanation
from countervail.core.people import each_once
from countervail.core.table import Table
from countervail.core.words.catalogue import catalogue
from countervail.core.words.dates import shown_cell

FEW = 10  # a bar that stands for fewer people is not drawn
_BINS, _STEPS = 8, 10
_WIDTH, _HEIGHT, _BARS, _ACROSS = 180, 104, 48, 4


def region_strip(e: Explanation, table: Table, language: str = "en") -> str:
    """One panel per quasi-identifier: the column's distribution, the region's part of it, and the asker's place."""
    names = table.schema.names("quasi")
    said = catalogue(language)
    cells = {n: shown_cell(e.cells[n], table.schema[n].type) for n in names if n not in e.own}
    words = {n: _short(cells[n]) if n in cells else said.say("page.own") for n in names}
    panels = [_panel(i, n, e.factual[n], e.cells[n], words[n], table) for i, n in enumerate(names)]
    width, height = _WIDTH * min(len(names), _ACROSS), _HEIGHT * -(-len(names) // _ACROSS)
    title = html.escape(said.say("page.lies", columns=", ".join(names)))
    return (
        f'<svg role="img" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'font-family="sans-serif" font-size="10"><title>{title}</title>{"".join(panels)}</svg>'
    )


def coarse_shares(table: Table, name: str) -> tuple[list[Any], NDArray[np.float64]]:
    """Bins of a column and their heights: at most eight, in tenths, and nothing where fewer than ten people are."""
    values = each_once(table, name).dropna()
    if values.empty:
        return [], np.zeros(0)
    if table.schema[name].numeric:
        edges = np.linspace(float(values.min()), float(values.max()), _BINS + 1)
        bins: list[Any] = [pd.Interval(a, b, closed="both") for a, b in pairwise(edges)]
        counts = np.histogram(values.to_numpy(float), edges)[0]
    else:
        known = table.schema[name].levels or sorted(values.unique(), key=str)
        sizes = values.value_counts()
        ranked = sorted(known, key=lambda v: -sizes.get(v, 0))[:_BINS] if len(known) > _BINS else known
        bins = [v for v in known if v in set(ranked)]
        counts = np.array([sizes.get(v, 0) for v in bins])
    shown = np.where(counts >= FEW, counts, 0)
    return bins, np.ceil(_STEPS * shown / max(shown.max(initial=0), 1)) / _STEPS


def _panel(i: int, name: str, value: Any, cell: Any, words: str, table: Table) -> str:
    bins, heights = coarse_shares(table, name)
    step = (_WIDTH - 20) / max(len(bins), 1)
    bars = []
    for j, (b, h) in enumerate(zip(bins, heights)):
        colour = "#1f6f8b" if _touches(b, cell) else "#c9d3dc"
        tall = max(float(h) * _BARS, 1.0)
        bars.append(
            f'<rect x="{j * step:.1f}" y="{20 + _BARS - tall:.1f}" width="{max(step - 2, 1):.1f}" '
            f'height="{tall:.1f}" fill="{colour}"/>'
        )
    asker = next((j for j, b in enumerate(bins) if _touches(b, value)), None)
    if asker is not None:
        bars.append(f'<circle cx="{(asker + 0.5) * step - 1:.1f}" cy="{20 + _BARS + 5}" r="3" fill="#d1792a"/>')
    head = f'<text x="0" y="12" font-weight="bold" fill="#1c2430">{html.escape(name)}</text>'
    foot = f'<text x="0" y="{20 + _BARS + 20}" fill="#5b6675">{html.escape(words)}</text>'
    across, down = i % _ACROSS, i // _ACROSS
    return f'<g transform="translate({across * _WIDTH + 4} {down * _HEIGHT})">{head}{"".join(bars)}{foot}</g>'


def _touches(place: Any, cell: Any) -> bool:
    """Whether a bin and a cell have anything in common."""
    if isinstance(cell, frozenset):
        return any(_touches(place, c) for c in cell)
    if not isinstance(place, pd.Interval):
        return bool(place == cell)
    if isinstance(cell, pd.Interval):
        return bool(place.left <= cell.right and cell.left <= place.right)
    return not pd.isna(cell) and bool(place.left <= cell <= place.right)


def _short(text: str) -> str:
    return text if len(text) <= 24 else text[:23] + "…"
