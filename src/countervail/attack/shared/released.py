"""What an outsider reads off a release, whether of explanations or of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from countervail.attack.shared.persons import register_counts
from countervail.core.arrays import Bools, Ints
from countervail.core.canonical import code_values
from countervail.core.explanation import Explanations
from countervail.core.region import Axis, Range, Regions, Values
from countervail.core.release import Release
from countervail.core.schema import Schema
from countervail.engine import Scan
from countervail.engine.columns import distinct_people

Released = Explanations | Release


def as_seen(e: Explanations, asked: pd.DataFrame | None = None) -> Explanations:
    """Answers as whoever gets them sees them, whatever is said of them.

    A value that is called the asker's own is hers only where it equals hers (in the rows that were `asked` about, where
    they are at hand), and a row that shows a value is an answer, though its status says that there is none.
    """
    shows = e.counterfactuals.notna().to_numpy().any(axis=1) & ~e.found
    if shows.any():
        e = replace(e, status=e.status.astype(object).where(~shows, "found"))
    if e.own is None:
        return e
    assert e.query is not None
    hers = e.factuals if asked is None else asked.iloc[e.query].reset_index(drop=True)
    names = e.counterfactuals.columns
    same = [alike(hers[n], e.counterfactuals[n]) if n in hers else np.zeros(len(e), dtype=bool) for n in names]
    own = e.own & np.column_stack(same)
    return e if (own == e.own).all() else replace(e, own=own)


def quasi_classes(release: Released) -> tuple[Regions, Ints]:
    """The different regions of quasi-identifiers, as far as they are known to be, and each released thing's place."""
    if isinstance(release, Explanations):
        regions = release.regions  # made anew each time it is asked for
        return regions, np.arange(len(regions), dtype=np.int64)
    held = release.holding()
    if not held.axes:
        return Regions((), 1), np.zeros(len(release), dtype=np.int64)
    quasi = release.schema.names("quasi") or release.schema.features
    return Regions(tuple(a for a in held.axes if a.name in quasi), len(held)), release.groups


def people_behind(release: Released, register: pd.DataFrame | Scan) -> Ints:
    """How many people of a register each released thing may speak of, by its quasi-identifiers."""
    classes, at = quasi_classes(release)
    return people_of(classes, register)[at]


def people_of(classes: Regions, register: pd.DataFrame | Scan) -> Ints:
    """How many people of a register each region may speak of, by their quasi-identifiers."""
    if isinstance(register, Scan):
        return classes.count(*distinct_people(register, register.schema.names("quasi")))
    return register_counts(classes, register)


def shown_cells(release: Released, names: Sequence[str] | None = None) -> pd.DataFrame:
    """The cells of every released thing as they are shown; of these columns, as far as it has them, or of all."""
    if isinstance(release, Explanations):
        cells = release.counterfactuals.loc[release.found].reset_index(drop=True)
    elif names is not None and not set(names) & set(release.regions.names):
        cells = release.others  # generalised cells are rendered one by one: only where they are asked for
    else:
        cells = release.cells()
    return cells if names is None else cells[[n for n in names if n in cells.columns]]


def unmoved_cells(release: Released, names: Sequence[str]) -> Bools:
    """Released thing x column: which cells are an asker's own values and say nothing about the people of the table."""
    if isinstance(release, Explanations):
        return release.unmoved([n for n in names if n in release.counterfactuals.columns])[release.found]
    return np.zeros((len(release), len(names)), dtype=bool)


def value_sets(release: Released) -> Regions:
    """One region per released thing, over all its columns: what is shown plainly is a set of one value."""
    if isinstance(release, Explanations):
        shown = shown_cells(release)
        if shown.empty:
            return Regions((), 0)
        cells = Regions.from_cells(shown.astype(object).to_dict("records"), release.schema)  # type: ignore[arg-type]
        return cells if release.own is None else replace(cells, free=release.own[release.found])
    rows: Regions = release.holding()[release.groups]
    plain = [plain_axis(release.others[n], str(n), release.schema) for n in release.others.columns]
    return Regions((*rows.axes, *plain), len(rows))


def changed_sets(release: Explanations) -> Regions:
    """One region per answer, over what it changes: cells that are the asker's own, or equal to hers, are free."""
    sets = value_sets(release)
    asked, shown = (f.loc[release.found].reset_index(drop=True) for f in (release.factuals, release.counterfactuals))
    same = [alike(asked[a.name], shown[a.name]) for a in sets.axes]
    own = unmoved_cells(release, sets.names)
    return replace(sets, free=np.column_stack(same) | own) if same else sets


def alike(asked: pd.Series, shown: pd.Series) -> Bools:
    """Where two columns have the same value, or both none."""
    a, b = asked.astype(object), shown.astype(object)
    return np.asarray((a == b).to_numpy(dtype=bool) | (a.isna() & b.isna()).to_numpy(dtype=bool))


def plain_axis(values: pd.Series, name: str, schema: Schema) -> Axis:
    """A column that is shown plainly, as sets of one value."""
    if schema[name].numeric and not values.isna().any():
        numbers = values.to_numpy(dtype=float)
        return Range(name, numbers, numbers)
    codes, kinds = code_values(values)
    bits = np.zeros((len(values), -(-len(kinds) // 8)), dtype=np.uint8)
    bits[np.arange(len(values)), codes >> 3] = np.uint8(128) >> (codes & 7).astype(np.uint8)
    return Values(name, tuple(kinds), bits)


def plain_sets(people: pd.DataFrame, names: Sequence[str], schema: Schema) -> Regions:
    """People's own rows, as if they had been released."""
    rows = people.reset_index(drop=True)
    return Regions(tuple(plain_axis(rows[n], n, schema) for n in names), len(rows))
