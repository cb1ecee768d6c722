"""What an outsider reads off a release, whether of explanations or of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools
from countervail.core.canonical import code_values
from countervail.core.explanation import Explanations
from countervail.core.region import Axis, Range, Regions, Values
from countervail.core.release import Release
from countervail.core.schema import Schema

Released = Explanations | Release


def quasi_regions(release: Released) -> Regions:
    """One region of quasi-identifiers per released thing."""
    if isinstance(release, Explanations):
        return release.regions
    rows: Regions = release.holding()[release.groups]
    quasi = release.schema.names("quasi") or release.schema.features
    return Regions(tuple(a for a in rows.axes if a.name in quasi), len(rows))


def shown_cells(release: Released) -> pd.DataFrame:
    """The cells of every released thing, as they are shown."""
    if isinstance(release, Explanations):
        return release.counterfactuals.loc[release.found].reset_index(drop=True)
    return release.to_frame()


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


def plain_axis(values: pd.Series, name: str, schema: Schema) -> Axis:
    """A column that is shown plainly, as sets of one value."""
    if schema[name].numeric and not values.isna().any():
        numbers = values.to_numpy(dtype=float)
        return Range(name, numbers, numbers)
    codes, kinds = code_values(values)
    member = np.zeros((len(values), len(kinds)), dtype=bool)
    member[np.arange(len(values)), codes] = True
    return Values.of(name, kinds, member)


def plain_sets(people: pd.DataFrame, names: Sequence[str], schema: Schema) -> Regions:
    """People's own rows, as if they had been released."""
    rows = people.reset_index(drop=True)
    return Regions(tuple(plain_axis(rows[n], n, schema) for n in names), len(rows))
