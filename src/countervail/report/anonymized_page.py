"""The page that shows what anonymising a table has kept and what it has blurred."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail import measure
from countervail.core.arrays import Floats
from countervail.core.cells import cell_text
from countervail.core.people import each_once, rows_per_person
from countervail.core.region import Axis, Range
from countervail.core.release import Release
from countervail.core.table import Table
from countervail.core.words.dates import iso
from countervail.report.figures import before_after
from countervail.report.page import Fact, Page, Section, in_full

_BINS, _SHOWN = 20, 15
_LONG = 40  # characters of a set that is listed
_FLOOR = 10  # values that fewer people hold are on no page, whatever k is


@dataclass(frozen=True, slots=True)
class Spread:
    """One column before and after: how many people each value or bin holds."""

    name: str
    values: tuple[str, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    ncp: float
    shift: float
    labels: tuple[tuple[str, int], ...] = ()  # what the release says most often, where no value can be drawn


@dataclass(frozen=True, slots=True)
class AnonymizedSummary:
    """What the page says, as plain data."""

    rows: int
    classes: int
    suppressed: int
    smallest: int
    average: float
    ncp: float
    prosecutor: float
    marketer: float
    query_error: float
    promise: str
    caveats: tuple[str, ...]
    columns: tuple[Spread, ...]
    people: int  # in the smallest class, at least: some may have several of its rows


@dataclass(frozen=True, slots=True)
class Making:
    """How a release was made, and all that was said of it: what a person who signs must know."""

    source: str
    written: str
    sha256: str
    when: str
    version: str
    schema: str
    options: tuple[tuple[str, str], ...]
    leaves: tuple[tuple[str, str, str], ...]  # column, role, how it leaves
    notes: tuple[str, ...]


def summarize(release: Release, table: Table, *, hide_below: int = 1) -> AnonymizedSummary:
    """The figures of a release beside its table; values and counts of fewer than `hide_below` (or 10) are not told."""
    hide_below = max(hide_below, _FLOOR)
    sizes = np.bincount(release.classes())
    risk = measure.release_risk(release)
    moved = {s.name: s.distance for s in measure.column_shifts(release, table=table)}
    columns = [_spread(axis, release, table, hide_below, moved[axis.name]) for axis in release.regions.axes]
    columns = [_as_published(c, axis, release, hide_below) for c, axis in zip(columns, release.regions.axes)]
    asked = measure.query_error(release, table=table, columns=min(2, len(columns)))
    return AnonymizedSummary(
        len(release),
        len(sizes),
        release.suppressed,
        int(sizes.min()),
        float(sizes.mean()),
        float(measure.ncp(release, table=table).mean()),
        risk.prosecutor,
        risk.marketer,
        asked.median,
        in_full(release.guarantee),
        release.caveats,
        tuple(columns),
        -(-int(sizes.min()) // rows_per_person(table)),
    )


def anonymized_page(
    summary: AnonymizedSummary, making: Making | None = None, title: str = "An anonymised table"
) -> Page:
    """Figures first, then what leaves and what was said of it, each column before and after, and how it was made."""
    facts = [
        Fact(f"{summary.classes:,}", "classes of people who share their published quasi-identifiers"),
        _smallest(summary),
        Fact(f"{summary.ncp:.1%}", "of the information in the quasi-identifiers is lost (NCP)"),
        Fact(f"{summary.query_error:.1%}", "median error of random counts over two quasi-identifiers"),
        Fact(f"{summary.prosecutor:.1%}", "highest chance of finding one person again"),
        Fact(f"{summary.marketer:.1%}", "of all people would be matched rightly by guessing"),
    ]
    lead = f"{summary.rows:,} rows are released, {summary.suppressed:,} are suppressed."
    sections = [Section("What it costs and what it hides", facts=facts)]
    noted = () if making is None else making.notes
    bare = {text.removeprefix("Note: ") for text in noted}
    notes = [*(text for text in dict.fromkeys(summary.caveats) if text not in bare), *noted]
    if making is not None:
        sections.append(Section("What leaves", header=("column", "role", "how it leaves"), rows=making.leaves))
    if notes:
        sections.append(Section("What to know", notes))
    for column in summary.columns:
        drawn = "rows of the original, and of the release with each class spread evenly over its range or set."
        few = "no value of its own is drawn: too few people hold one, or it leaves in groups."
        caption = f"{column.name}: {drawn if column.values else few}"
        caption += f" NCP {column.ncp:.1%}; the distribution moved by {column.shift:.1%}."
        picture = before_after(column.values, column.before, column.after, column.name) if column.values else ""
        words = [] if picture else [caption]
        if column.labels:
            words.append(f"Published as {', '.join(f'{text} ({rows:,} rows)' for text, rows in column.labels)}.")
        sections.append(Section(column.name, words, picture=picture, caption=caption if picture else ""))
    if making is not None:
        made = [
            ("read from", making.source),
            ("written to", making.written),
            ("SHA-256 of what was written", making.sha256),
            ("time (UTC)", making.when),
            ("Countervail", making.version),
            ("digest of the schema", making.schema),
            *making.options,
        ]
        sections.append(Section("How it was made", header=("what", "value"), rows=made))
    note = (
        f"Drawn are the {_SHOWN} most frequent values. Values and bars of the original that stand for fewer people "
        f"than a class must hold, or ten, are left out."
    )
    return Page(title, lead, sections, summary.promise, note)


def _smallest(summary: AnonymizedSummary) -> Fact:
    if summary.people == summary.smallest:
        return Fact(f"{summary.smallest:,}", f"people in the smallest class; {summary.average:.1f} on average")
    rows = f"it has {summary.smallest:,} rows, classes {summary.average:.1f} on average"
    return Fact(f"{summary.people:,}", f"people at least in the smallest class; {rows}")


def _spread(axis: Axis, release: Release, table: Table, hide_below: int, shift: float) -> Spread:
    weights = np.bincount(release.groups, minlength=len(release.regions)).astype(float)
    values, once = table.frame[axis.name], each_once(table, axis.name)
    if isinstance(axis, Range):
        names, before, people, after = _bins(axis, weights, values, once)
        if table.schema[axis.name].type == "date":
            names = [iso(float(n)) for n in names]
    else:
        names, before, people, after = _values(axis.known, axis.member, weights, values, once)
        named = people >= hide_below
        names, before, after = [n for n, told in zip(names, named) if told], before[named], after[named]
        people = people[named]
        if names == [cell_text(None)]:  # says nothing of those who have a value
            names, before, people, after = [], before[:0], people[:0], after[:0]
    shown = np.where(people < hide_below, 0.0, before)
    one = measure.ncp(release, table=table, weights={a.name: float(a is axis) for a in release.regions.axes})
    return Spread(axis.name, tuple(names), tuple(shown.tolist()), tuple(after.tolist()), float(one.mean()), shift)


def _as_published(column: Spread, axis: Axis, release: Release, hide_below: int) -> Spread:
    """A column that cannot be drawn, by what the release says of it: values that nobody may know, or the few most
    frequent of very many that leave by the names of groups only."""
    if column.values and (isinstance(axis, Range) or len(axis.known) <= _SHOWN or not _is_grouped(axis, release)):
        return column
    labels = _labels(release, column.name, hide_below)
    if column.values and not labels:
        return column
    return replace(column, values=(), before=(), after=(), labels=labels)


def _is_grouped(axis: Axis, release: Release) -> bool:
    """Whether the classes of a column are called by groups: then what is inside them is not in the release."""
    made = release.provenance["parameters"]
    return made.get("labels") == "hierarchy" and axis.name in (made.get("hierarchies") or ())


def _labels(release: Release, name: str, hide_below: int) -> tuple[tuple[str, int], ...]:
    """What the release says of a column in most rows; what it says in few is left out, and sets: they list values, each
    of which few may hold."""
    rows = release.to_text_frame()[name].value_counts()
    told = ((str(text), int(n)) for text, n in rows.items() if n >= hide_below and not str(text).startswith("{"))
    texts = sorted(told, key=lambda one: (-one[1], one))
    return tuple((text if len(text) <= _LONG else f"{text[:_LONG]}...", n) for text, n in texts[:_SHOWN])


def _bins(axis: Range, weights: Floats, values: pd.Series, once: pd.Series) -> tuple[list[str], Floats, Floats, Floats]:
    """Rows and people per bin; a class's rows lie evenly over its range."""
    numbers = values.to_numpy(dtype=float, na_value=np.nan)
    inside = numbers[np.isfinite(numbers)]
    ends = np.concatenate([axis.low[np.isfinite(axis.low)], axis.high[np.isfinite(axis.high)]])  # that leave anyway
    if axis.whole and len(ends):
        step = np.ceil((ends.max() - ends.min() + 1) / _BINS)  # bins of equally many whole numbers
        edges = np.arange(ends.min() - 0.5, ends.max() + 0.5 + step, step)
    else:
        edges = np.histogram_bin_edges(ends, _BINS) if len(ends) else np.array([0.0, 1.0])
    before = np.histogram(inside, edges)[0].astype(float)
    people = np.histogram(once.dropna().to_numpy(dtype=float), edges)[0].astype(float)
    pad = 0.5 if axis.whole else 0.0
    low, high = axis.low - pad, axis.high + pad
    some = np.isfinite(low)
    low, high, mass = low[some], high[some], weights[some]
    width = np.maximum(high - low, 1e-12)
    left, right = np.maximum(low[:, None], edges[:-1]), np.minimum(high[:, None], edges[1:])
    share = np.clip(right - left, 0, None) / width[:, None]
    point = high <= low
    share[point] = np.eye(len(edges) - 1)[np.clip(np.searchsorted(edges, low[point], "right") - 1, 0, len(edges) - 2)]
    total = share.sum(axis=1, keepdims=True)
    after = (mass[:, None] * np.divide(share, total, out=np.zeros_like(share), where=total > 0)).sum(axis=0)
    names = [f"{(a + b) / 2:.4g}" if not axis.whole else f"{np.ceil(a) + 0.0:.0f}" for a, b in pairwise(edges)]
    return names, before, people, after


def _values(
    known: tuple[object, ...], member: NDArray[np.bool_], weights: Floats, values: pd.Series, once: pd.Series
) -> tuple[list[str], Floats, Floats, Floats]:
    """Rows and people per value, the most frequent first; a class's rows lie evenly over its set."""
    share = member / np.maximum(member.sum(axis=1, keepdims=True), 1)
    after = weights @ share
    before, people = (_times(known, held) for held in (values, once))
    order = np.argsort(-before, kind="stable")[:_SHOWN]
    return [cell_text(known[i]) for i in order], before[order], people[order], after[order]


def _times(known: tuple[object, ...], values: pd.Series) -> Floats:
    """How often each value is there."""
    counts = values.value_counts(dropna=False)
    held = {None if pd.isna(v) else v: float(n) for v, n in counts.items()}  # type: ignore[call-overload]
    return np.array([held.get(v, 0.0) for v in known])
